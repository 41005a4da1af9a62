//! The ways in which the simulated store can be broken.
//!
//! Owns their names and which checkers are for each. What a mutant does stands in the store, where it does it.

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A read shows an old state under the newest revision.
    StaleRead,
    /// A read shows an old state, and says of which revision.
    FollowerBehind,
    /// A read that may be old shows less than the same node showed before.
    LocalFalls,
    /// A read is answered before the node knows the revision that was asked for.
    MinRevisionIgnored,
    /// A read that may be old shows an entry that is newer than what it says.
    LocalAhead,
    /// A write is acknowledged and not carried out.
    LostWrite,
    /// A request that is sent again is carried out again.
    DoubleApply,
    /// A write takes effect whatever token it gives.
    CasIgnored,
    /// A locked entry is written by somebody without the key to its lock.
    EntryLockIgnored,
    /// An entry is locked for a second client while the first has its lock.
    EntryLockedTwice,
    /// A patch is applied to the document of before the last change.
    PatchOfThePast,
    /// A write takes effect though its condition does not hold.
    ConditionIgnored,
    /// A transaction loses its last step.
    TornTransaction,
    /// A write that was refused for lack of room takes effect all the same.
    FailedWriteApplied,
    /// Two writes take the same revision.
    RevisionReused,
    /// A list leaves out the last entry.
    ListCutShort,
    /// A session ends after half of its time.
    SessionEndsEarly,
    /// A session never ends by itself.
    SessionNeverEnds,
    /// An entry goes after half of its time to live.
    EntryExpiresEarly,
    /// A watch is not shown a change.
    EventSkipped,
    /// A watch is shown a change twice.
    EventRepeated,
    /// A watch is shown two changes in the wrong order.
    EventsReordered,
    /// A watch is shown half of a transaction.
    EventsTorn,
    /// A watch is shown a value that was written as if it were another version.
    EventMisnumbered,
    /// A lock is given to somebody while another has it.
    LockGivenTwice,
    /// A lock is given under the token of the holder before.
    TokenReused,
    /// A guarded write takes effect although its token does not hold.
    GuardIgnored,
    /// A task is given to a second worker while the first has it.
    TaskGivenTwice,
    /// A task is given out before it is due.
    TaskEarly,
    /// A task is never given out.
    TaskLost,
    /// A task is completed by a worker that does not have it any more.
    StaleCompletion,
    /// After the faults nothing is answered.
    NeverRecovers,
}

impl Mutant {
    /// All of them, each with the checkers that have to catch it.
    pub const ALL: [(Self, &'static [&'static str]); 32] = [
        (Self::StaleRead, &["witness", "search"]),
        (Self::FollowerBehind, &["witness", "search", "set"]),
        (Self::LocalFalls, &["locals"]),
        (Self::MinRevisionIgnored, &["locals"]),
        (Self::LocalAhead, &["witness"]),
        (Self::LostWrite, &["witness", "search", "set"]),
        (Self::DoubleApply, &["retries", "phantoms"]),
        (Self::CasIgnored, &["witness", "search"]),
        (Self::EntryLockIgnored, &["witness"]),
        (Self::EntryLockedTwice, &["witness"]),
        (Self::PatchOfThePast, &["witness", "watches"]),
        (Self::ConditionIgnored, &["witness"]),
        (Self::TornTransaction, &["witness"]),
        (Self::FailedWriteApplied, &["phantoms"]),
        (Self::RevisionReused, &["witness"]),
        (Self::ListCutShort, &["witness", "set"]),
        (Self::SessionEndsEarly, &["sessions"]),
        (Self::SessionNeverEnds, &["sessions"]),
        (Self::EntryExpiresEarly, &["sessions"]),
        (Self::EventSkipped, &["watches"]),
        (Self::EventRepeated, &["watches"]),
        (Self::EventsReordered, &["watches"]),
        (Self::EventsTorn, &["watches"]),
        (Self::EventMisnumbered, &["watches"]),
        (Self::LockGivenTwice, &["locks"]),
        (Self::TokenReused, &["locks"]),
        (Self::GuardIgnored, &["locks"]),
        (Self::TaskGivenTwice, &["tasks"]),
        (Self::TaskEarly, &["tasks"]),
        (Self::TaskLost, &["tasks"]),
        (Self::StaleCompletion, &["tasks"]),
        (Self::NeverRecovers, &["liveness"]),
    ];

    /// How often it shows, once in so many chances.
    pub fn rarity(self) -> u32 {
        match self {
            Self::SessionEndsEarly | Self::SessionNeverEnds | Self::EntryExpiresEarly | Self::NeverRecovers => 1,
            Self::TaskLost | Self::CasIgnored | Self::DoubleApply | Self::GuardIgnored | Self::StaleCompletion => 1,
            Self::LocalFalls | Self::MinRevisionIgnored | Self::LocalAhead => 3,
            Self::EntryLockIgnored | Self::EntryLockedTwice | Self::PatchOfThePast | Self::ConditionIgnored => 2,
            Self::LockGivenTwice | Self::TokenReused | Self::TornTransaction => 3,
            _ => 20,
        }
    }
}
