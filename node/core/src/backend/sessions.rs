//! Renewals of sessions: the account that asks, and the answer.

use quorate_machine::types::{ClusterMillis, Revision};

/// The outcome of a renewal of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed {
    /// Log index of the command; of the last one, where it took several.
    pub index: u64,
    /// Revision at which it was evaluated.
    pub revision: Revision,
    /// Cluster clock at which it was evaluated.
    pub clock: ClusterMillis,
    /// For each session, in order: its time to live and its end; `None` without such a session.
    pub each: Vec<Option<(u64, ClusterMillis)>>,
}

/// The account whose renewals take turns: a user, or an address without authentication.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Renewer(String);

impl Renewer {
    /// A user, wherever it asks from.
    pub fn user(name: &str) -> Self {
        Self(format!("user {name}"))
    }

    /// The callers at an address.
    pub fn from(place: &str) -> Self {
        Self(format!("from {place}"))
    }
}
