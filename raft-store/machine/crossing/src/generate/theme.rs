//! What a run is mostly about.
//!
//! Owns how often each kind of action comes in it. A mixed run alone would need all too many steps until what is rare meets what
//! is rare; what goes together comes together here.

/// What a run is mostly about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// All there is.
    Anything,
    /// Entries with their locks and sessions.
    Entries,
    /// Rules and indexes under writes.
    Collections,
    /// Sessions, locks, elections and barriers.
    Coordination,
    /// Tasks that sessions claim.
    Tasks,
}

impl Theme {
    /// That of a run.
    pub fn of(first: u64) -> Self {
        match first % 5 {
            0 => Self::Anything,
            1 => Self::Entries,
            2 => Self::Collections,
            3 => Self::Coordination,
            _ => Self::Tasks,
        }
    }

    /// How often: write, bulk, transaction, change of what is found, claim of what is found, rules, numbers, session, lock,
    /// barrier, latch, task, access, maintenance, faults, newcomers, quotas.
    pub(super) fn weights(self) -> [u64; 17] {
        match self {
            Self::Anything => [36, 10, 14, 4, 4, 4, 1, 8, 14, 3, 2, 9, 4, 8, 1, 6, 5],
            Self::Entries => [30, 30, 30, 3, 3, 1, 0, 12, 8, 0, 0, 0, 0, 5, 1, 0, 4],
            Self::Collections => [26, 22, 30, 6, 5, 12, 1, 8, 3, 0, 0, 0, 0, 30, 1, 0, 2],
            Self::Coordination => [8, 3, 4, 1, 1, 0, 0, 16, 60, 10, 6, 4, 6, 6, 3, 6, 3],
            Self::Tasks => [6, 1, 2, 0, 0, 0, 0, 16, 4, 0, 0, 60, 3, 6, 1, 2, 4],
        }
    }

    /// For how long locks are held back once the session of their holder is over, one as often as another.
    pub(super) fn lock_delays(self) -> &'static [u64] {
        if self == Self::Coordination { &[0, 300, 1_500] } else { &[0, 0, 300] }
    }

    /// How many times out of a hundred a session is to live for a minute.
    pub(super) fn long_sessions(self) -> u64 {
        if self == Self::Coordination { 60 } else { 25 }
    }
}
