//! Questions of nodes to each other about the members.
//!
//! Owns the question only. Whether a request is granted, the leader's `app::members` judges.

use bincode::{Decode, Encode};
use quorate_node_core::backend::members::MemberRequest;

/// A question about the members.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum MemberQuestion {
    /// Asks for the members (leader only).
    List,
    /// Change them (leader only). Idempotent.
    Change {
        /// The change.
        ask: MemberRequest,
        /// Milliseconds that the asker waits.
        within_ms: u64,
    },
    /// Let another node lead (leader only).
    HandOver {
        /// The next leader; `None` for the best follower.
        to: Option<u64>,
        /// Milliseconds that the asker waits.
        within_ms: u64,
    },
    /// Asks whether the sender is still a member. The receiver asks the leader.
    AmI,
    /// Asks whether a node is still a member. Only the leader answers.
    Is {
        /// The node.
        node_id: u64,
    },
}
