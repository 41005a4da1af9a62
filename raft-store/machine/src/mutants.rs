//! Bugs on purpose: each shows that a test which looks for bugs of its kind finds one.
//!
//! Owns their names and which one the thread at hand has. The code of a mutant stands where it acts, in a crate above too. Builds with
//! debug assertions have them, so that tests need no build of their own; a release build has none, and the compiler leaves their branches
//! out.

/// The name of every mutant of the state machine, and what it forgets.
pub const ALL: &[(&str, &str)] = &[
    ("any token guards", "a guard does not look at its token"),
    ("tokens come twice", "a grant takes a token that may have been given before"),
    ("one slot too many", "the slots of a lock are counted from none on"),
    ("sessions end early", "a session is over a millisecond before its end"),
    ("renewals are forgotten", "a renewal moves no end"),
    ("outcomes are forgotten", "the outcome of a command is not kept under its request id"),
    ("any token releases", "a release does not look at its token"),
    ("locks have no bytes", "the lock of an entry does not count in the bytes of its session"),
    ("great numbers are not read", "stored numbers beyond every double are no numbers to criteria and indexes"),
    ("locks change the past", "a change of a lock does not keep what the lock was for reads as of before"),
    ("locks that ended leave rows", "the next write of an entry leaves the row of a lock that ended by itself"),
    ("entries stay on their session", "an entry that goes with another session hangs on the first one as well"),
    ("claims have no end", "a claim with a patch does not note when its lock ends"),
    ("joint removals stay indexed", "what goes with its session, or in a transaction, stays in the indexes"),
    ("who leaves keeps a timer", "a place in a queue that is given up keeps the timer of its end"),
    ("ended sessions grant nothing", "the end of a session gives its locks to nobody who waits"),
    ("ended sessions stay in barriers", "the end of a session leaves it in its barriers"),
    ("ended sessions keep claims counted", "the end of a session does not count its tasks anew"),
    ("undone revisions stay", "a transaction that is undone keeps the revision that it took"),
    ("tombstones stay", "compaction leaves the tombstones of what was removed"),
    ("shorter delays stay", "a lock that is held back for longer keeps the timer of before"),
    ("any token is anybody's", "who knows a token may release what somebody else holds by it"),
    ("removals stay in quotas", "what is removed still counts for the quotas of its prefixes"),
    ("locks stay with their principal", "a place in a lock that is given up still counts for its principal"),
    ("quotas count from now on", "what was there before a quota does not count for it"),
    ("pages end where stored ones do", "what is pending makes a page shorter, and with it a step of counting"),
    ("ranges end with stored pages", "what is pending moves the place at which a range is too much"),
    ("looks at hand are free", "quotas that were looked for last cost nothing, also where that was in another entry"),
    (
        "rows at hand are free",
        "a row that was written before, also by another entry, takes nothing of the bound of a batch",
    ),
    (
        "tasks at hand are free",
        "a task that was read before, also by another entry, takes nothing of the bound of a batch",
    ),
    ("budgets go on", "what one entry took counts for the next one of its call"),
    ("collections outlive their rules", "what is known of a collection is kept for the entries that follow"),
    ("quotas outlive their change", "what is known of quotas is kept for the entries that follow"),
    ("timers fire once a call", "timers fire at the first entry of a call only"),
    ("audit begins with the call", "a group of audit begins at the revision before its call"),
    ("one randomness for a call", "the randomness of the first entry of a call is that of all"),
    ("the clock stands in a call", "the clock moves at the first entry of a call only"),
    ("the wall clock stands in a call", "the wall clock moves at the first entry of a call only"),
    ("dropped buckets stay pending", "what a call wrote into a bucket stays when a later entry drops it"),
];

/// The same of nodes, whose bugs no state machine shows by itself: simulated clusters have to find them.
pub const OF_NODES: &[(&str, &str)] = &[(
    "old answers move the clock",
    "the wall clock moves far by answers to questions that were asked before the move was due",
)];

/// Whether there is a mutant of this name.
#[cfg(debug_assertions)]
fn is_known(name: &str) -> bool {
    ALL.iter().chain(OF_NODES).any(|(known, _)| *known == name)
}

#[cfg(debug_assertions)]
thread_local! {
    static PUT_IN: std::cell::Cell<Option<&'static str>> = const { std::cell::Cell::new(None) };
}

/// The variable that puts a bug into all threads of a process: nodes of tests are processes of their own.
#[cfg(debug_assertions)]
pub const VARIABLE: &str = "QUORATE_MUTANT";

/// The bug of the process, if it has one.
#[cfg(debug_assertions)]
static OF_PROCESS: std::sync::LazyLock<Option<String>> = std::sync::LazyLock::new(|| {
    let name = std::env::var(VARIABLE).ok()?;
    assert!(is_known(&name), "{VARIABLE}: no mutant {name:?}");
    Some(name)
});

/// Whether this thread applies with that bug.
#[cfg(debug_assertions)]
pub fn is(name: &str) -> bool {
    PUT_IN.get() == Some(name) || OF_PROCESS.as_deref() == Some(name)
}

/// Whether this thread applies with that bug: never.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub const fn is(_name: &str) -> bool {
    false
}

/// Does work, on this thread, with one bug or with none.
#[cfg(debug_assertions)]
pub fn with<T>(name: Option<&'static str>, work: impl FnOnce() -> T) -> T {
    assert!(name.is_none_or(is_known), "no mutant {name:?}");
    /// Puts back what was there, after a panic too.
    struct PutBack(Option<&'static str>);
    impl Drop for PutBack {
        fn drop(&mut self) {
            PUT_IN.set(self.0);
        }
    }
    let _put_back = PutBack(PUT_IN.replace(name));
    work()
}

/// Does work, with no bug: a release build has none.
#[cfg(not(debug_assertions))]
pub fn with<T>(name: Option<&'static str>, work: impl FnOnce() -> T) -> T {
    assert!(name.is_none(), "the mutant {name:?} needs a build with debug assertions");
    work()
}
