//! Bugs on purpose: each shows that a test which looks for bugs of its kind finds one.
//!
//! Owns their names and which one the thread at hand has. The code of a mutant stands where it acts, in a crate above too. Builds with
//! debug assertions have them, so that tests need no build of their own; a release build has none, and the compiler leaves their branches
//! out.

/// Makes the enum of the mutants: a variant, its name, and what it forgets. Those of the state machine stand before those of nodes.
macro_rules! mutants {
    (
        of_machine: { $($variant:ident = $name:literal, $forgets:literal;)* }
        of_nodes: { $($other:ident = $its_name:literal, $its_forgets:literal;)* }
    ) => {
        /// A bug on purpose.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Mutant {
            $(
                #[doc = $forgets]
                $variant,
            )*
            $(
                #[doc = $its_forgets]
                $other,
            )*
        }

        impl Mutant {
            /// Every mutant of the state machine.
            pub const OF_MACHINE: &'static [Self] = &[$(Self::$variant),*];

            /// The mutants of nodes, whose bugs no state machine shows by itself: simulated clusters have to find them.
            pub const OF_NODES: &'static [Self] = &[$(Self::$other),*];

            /// Its name in the environment, on command lines and in tables.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    $(Self::$other => $its_name,)*
                }
            }

            /// The omission, in words for tables.
            pub const fn forgets(self) -> &'static str {
                match self {
                    $(Self::$variant => $forgets,)*
                    $(Self::$other => $its_forgets,)*
                }
            }
        }
    };
}

mutants! {
    of_machine: {
        AnyTokenGuards = "any token guards", "a guard does not look at its token";
        TokensComeTwice = "tokens come twice", "a grant takes a token that may have been given before";
        OneSlotTooMany = "one slot too many", "the slots of a lock are counted from none on";
        SessionsEndEarly = "sessions end early", "a session is over a millisecond before its end";
        RenewalsAreForgotten = "renewals are forgotten", "a renewal moves no end";
        OutcomesAreForgotten = "outcomes are forgotten", "the outcome of a command is not kept under its request id";
        AnyTokenReleases = "any token releases", "a release does not look at its token";
        LocksHaveNoBytes = "locks have no bytes", "the lock of an entry does not count in the bytes of its session";
        GreatNumbersAreNotRead = "great numbers are not read", "stored numbers beyond every double are no numbers to criteria and indexes";
        LocksChangeThePast = "locks change the past", "a change of a lock does not keep what the lock was for reads as of before";
        LocksThatEndedLeaveRows = "locks that ended leave rows", "the next write of an entry leaves the row of a lock that ended by itself";
        EntriesStayOnTheirSession = "entries stay on their session", "an entry that goes with another session hangs on the first one as well";
        ClaimsHaveNoEnd = "claims have no end", "a claim with a patch does not note when its lock ends";
        JointRemovalsStayIndexed = "joint removals stay indexed", "what goes with its session, or in a transaction, stays in the indexes";
        WhoLeavesKeepsATimer = "who leaves keeps a timer", "a place in a queue that is given up keeps the timer of its end";
        EndedSessionsGrantNothing = "ended sessions grant nothing", "the end of a session gives its locks to nobody who waits";
        EndedSessionsStayInBarriers = "ended sessions stay in barriers", "the end of a session leaves it in its barriers";
        EndedSessionsKeepClaimsCounted = "ended sessions keep claims counted", "the end of a session does not count its tasks anew";
        UndoneRevisionsStay = "undone revisions stay", "a transaction that is undone keeps the revision that it took";
        TombstonesStay = "tombstones stay", "compaction leaves the tombstones of what was removed";
        ShorterDelaysStay = "shorter delays stay", "a lock that is held back for longer keeps the timer of before";
        AnyTokenIsAnybodys = "any token is anybody's", "who knows a token may release what somebody else holds by it";
        RemovalsStayInQuotas = "removals stay in quotas", "what is removed still counts for the quotas of its prefixes";
        LocksStayWithTheirPrincipal = "locks stay with their principal", "a place in a lock that is given up still counts for its principal";
        QuotasCountFromNowOn = "quotas count from now on", "what was there before a quota does not count for it";
        PagesEndWhereStoredOnesDo = "pages end where stored ones do", "what is pending makes a page shorter, and with it a step of counting";
        RangesEndWithStoredPages = "ranges end with stored pages", "what is pending moves the place at which a range is too much";
        LooksAtHandAreFree = "looks at hand are free", "quotas that were looked for last cost nothing, also where that was in another entry";
        RowsAtHandAreFree = "rows at hand are free", "a row that was written before, also by another entry, takes nothing of the bound of a batch";
        TasksAtHandAreFree = "tasks at hand are free", "a task that was read before, also by another entry, takes nothing of the bound of a batch";
        BudgetsGoOn = "budgets go on", "what one entry took counts for the next one of its call";
        CollectionsOutliveTheirRules = "collections outlive their rules", "what is known of a collection is kept for the entries that follow";
        QuotasOutliveTheirChange = "quotas outlive their change", "what is known of quotas is kept for the entries that follow";
        TimersFireOnceACall = "timers fire once a call", "timers fire at the first entry of a call only";
        AuditBeginsWithTheCall = "audit begins with the call", "a group of audit begins at the revision before its call";
        OneRandomnessForACall = "one randomness for a call", "the randomness of the first entry of a call is that of all";
        TheClockStandsInACall = "the clock stands in a call", "the clock moves at the first entry of a call only";
        TheWallClockStandsInACall = "the wall clock stands in a call", "the wall clock moves at the first entry of a call only";
        RequestsAreLookedUpBeforeTheCall = "requests are looked up before the call", "a request that an earlier entry of its call made is made again";
        DroppedBucketsStayPending = "dropped buckets stay pending", "what a call wrote into a bucket stays when a later entry drops it";
    }
    of_nodes: {
        OldAnswersMoveTheClock = "old answers move the clock", "the wall clock moves far by answers to questions that were asked before the move was due";
    }
}

impl Mutant {
    /// The mutant of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::OF_MACHINE.iter().chain(Self::OF_NODES).copied().find(|mutant| mutant.name() == name)
    }

    /// Whether this thread applies with it; never in a release build.
    #[inline]
    pub fn acts(self) -> bool {
        acts(self)
    }
}

impl std::fmt::Display for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(debug_assertions)]
thread_local! {
    static PUT_IN: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// The variable that puts a bug into all threads of a process: nodes of tests are processes of their own.
#[cfg(debug_assertions)]
pub const VARIABLE: &str = "QUORATE_MUTANT";

/// The bug of the process, if it has one.
#[cfg(debug_assertions)]
static OF_PROCESS: std::sync::LazyLock<Option<Mutant>> = std::sync::LazyLock::new(|| {
    let name = std::env::var(VARIABLE).ok()?;
    let mutant = Mutant::named(&name);
    assert!(mutant.is_some(), "{VARIABLE}: no mutant {name:?}");
    mutant
});

#[cfg(debug_assertions)]
fn acts(mutant: Mutant) -> bool {
    PUT_IN.get() == Some(mutant) || *OF_PROCESS == Some(mutant)
}

#[cfg(not(debug_assertions))]
#[inline(always)]
const fn acts(_mutant: Mutant) -> bool {
    false
}

/// Does work, on this thread, with one bug or with none.
#[cfg(debug_assertions)]
pub fn with<T>(mutant: Option<Mutant>, work: impl FnOnce() -> T) -> T {
    /// Puts back what was there, after a panic too.
    struct PutBack(Option<Mutant>);
    impl Drop for PutBack {
        fn drop(&mut self) {
            PUT_IN.set(self.0);
        }
    }
    let _put_back = PutBack(PUT_IN.replace(mutant));
    work()
}

/// Does work, with no bug: a release build has none.
#[cfg(not(debug_assertions))]
pub fn with<T>(mutant: Option<Mutant>, work: impl FnOnce() -> T) -> T {
    assert!(mutant.is_none(), "the mutant {mutant:?} needs a build with debug assertions");
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_back_to_its_mutant() {
        for mutant in Mutant::OF_MACHINE.iter().chain(Mutant::OF_NODES) {
            assert_eq!(Mutant::named(mutant.name()), Some(*mutant));
        }
        assert_eq!(Mutant::named("none of them"), None);
    }
}
