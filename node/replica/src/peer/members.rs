//! What nodes ask each other about the members.
//!
//! Owns the question only. Whether a request is granted, the leader's `app::members` judges.

use bincode::{Decode, Encode};
use quorate_node_core::backend::members::MemberRequest;

/// A question about the members.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum MemberQuestion {
    /// Who are they (leader only).
    List,
    /// Change them (leader only). Idempotent.
    Change {
        /// What is wanted.
        ask: MemberRequest,
        /// Milliseconds that the asker waits.
        within_ms: u64,
    },
    /// Let another node lead (leader only).
    HandOver {
        /// Who; without it the best follower.
        to: Option<u64>,
        /// Milliseconds that the asker waits.
        within_ms: u64,
    },
    /// Am I one still? Whoever is asked asks the leader.
    AmI,
    /// Is that node one still? Only the leader answers.
    Is {
        /// Which.
        node_id: u64,
    },
}
