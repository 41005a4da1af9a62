//! openraft's types as ours: the type configuration and, in the child modules, the byte forms and the runtime.
//!
//! Owns the mapping between openraft's types and ours. Never holds domain logic: commands are opaque bytes here. The log and the state
//! stand on it, and openraft's traits over both in [`crate::adapters`].

use std::fmt;

use bytes::Bytes;
use quorate_machine::types::Reply;

pub mod runtime;
pub mod wire;

openraft::declare_raft_types!(
    /// The type configuration of every Raft instance in Quorate.
    pub TypeConfig:
        D = EncodedBatch,
        R = BatchReply,
        NodeId = u64,
        Node = Member,
        AsyncRuntime = runtime::WatchedRuntime,
);

/// A node's number. Chosen by the operator, never used again once its disk is lost.
pub type NodeId = u64;
/// Identity of a log entry.
pub type LogId = openraft::alias::LogIdOf<TypeConfig>;
/// A vote.
pub type Vote = openraft::alias::VoteOf<TypeConfig>;
/// A log entry.
pub type LogEntry = openraft::alias::EntryOf<TypeConfig>;
/// The committed form of a leader id, the first half of a [`LogId`].
pub type CommittedLeaderId = openraft::alias::CommittedLeaderIdOf<TypeConfig>;
/// A membership with the log id that set it.
pub type StoredMembership = openraft::alias::StoredMembershipOf<TypeConfig>;
/// Membership configuration as it stands in a log entry.
pub type Membership = openraft::Membership<NodeId, Member>;
/// What a snapshot covers.
pub type SnapshotMeta = openraft::alias::SnapshotMetaOf<TypeConfig>;

/// A member of the cluster as the membership entries record it.
///
/// Invariant: `incarnation` changes whenever the node's disk is made anew, so a wiped node cannot pass for its
/// former self.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    /// Where its peers reach it, `host:port`.
    pub peer_addr: String,
    /// Where clients reach it, `host:port`.
    pub client_addr: String,
    /// Random identity of its data directory.
    pub incarnation: u128,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (clients at {})", self.peer_addr, self.client_addr)
    }
}

/// A [`quorate_machine::types::Batch`] in its encoded form. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedBatch(pub Bytes);

impl fmt::Debug for EncodedBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodedBatch({} bytes)", self.0.len())
    }
}

impl fmt::Display for EncodedBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// The answers to the commands of one entry, in order. Empty for blank and membership entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchReply {
    /// One for each command.
    pub replies: Vec<Reply>,
    /// The bytes that were counted for each command while it was applied. For who proposed them, and no part of any answer.
    pub costs: Vec<u32>,
}
