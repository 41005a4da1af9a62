//! What a node can do for its clients, without any HTTP in it.
//!
//! Owns the write path (proposer, forwarding), the read path (read index) and the view of the cluster.

use std::time::Instant;

use quorate_store::state::StateReader;
use quorate_store::types::{Command, Reply, Revision};

/// How fresh a read has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consistency {
    /// Sees every write acknowledged before the read began.
    #[default]
    Linearizable,
    /// Whatever this node has.
    Local,
    /// At least this revision; waits for it.
    AtLeast(Revision),
}

/// Why a request to the cluster did not end in a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppError {
    /// No leader is known, and the deadline is near. Not applied.
    #[error("no leader is known at the moment")]
    NoLeader,
    /// This node is starting, stopping or not a member yet. Not applied.
    #[error("{0}")]
    NotReady(String),
    /// This node does not trust its own state. Not applied.
    #[error("{0}")]
    Quarantined(String),
    /// The queue of the proposer is full. Not applied.
    #[error("too many writes are waiting on this node")]
    Overloaded,
    /// The disk is nearly full. Not applied.
    #[error("{0}")]
    NoSpace(String),
    /// The deadline passed before anything was proposed. Not applied.
    #[error("the deadline passed before the request was put into the log")]
    TimeoutNotProposed,
    /// The deadline passed, or leadership moved, with the request in the log. Its fate is unknown.
    #[error("the request was put into the log but its outcome did not come back in time")]
    Unknown,
    /// The command is larger than a log entry can hold. Not applied.
    #[error("the encoded command has {actual} bytes, the limit is {limit}")]
    TooLarge {
        /// Bytes it has.
        actual: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The node's own state is damaged or its disk fails; it is stopping. The fate of a write is unknown.
    #[error("{0}")]
    Fault(String),
}

/// Headers of every answer, from the node's current view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClusterGlance {
    /// Raft term.
    pub term: u64,
    /// The leader, if known.
    pub leader_id: Option<u64>,
    /// Revision at the applied index.
    pub revision: Revision,
}

/// The node's services. Cheap to clone.
#[derive(Clone)]
pub struct App {}

impl App {
    /// Puts one command through the log, here or at the leader, and returns its reply. Retries by itself only while it
    /// is certain that nothing was proposed, or the command carries a request id.
    pub async fn write(&self, _command: Command, _deadline: Instant) -> Result<Reply, AppError> {
        unimplemented!("stub")
    }

    /// Returns once reads of [`Self::state`] are as fresh as asked for.
    pub async fn read_barrier(&self, _consistency: Consistency, _deadline: Instant) -> Result<(), AppError> {
        unimplemented!("stub")
    }

    /// The state to read from, after [`Self::read_barrier`].
    pub fn state(&self) -> &StateReader {
        unimplemented!("stub")
    }

    /// Term, leader, revision for the response headers; never blocks, a few nanoseconds.
    pub fn glance(&self) -> ClusterGlance {
        unimplemented!("stub")
    }

    /// Milliseconds since this node last heard from a leader (0 on the leader); `None` if it never did. For `local` reads.
    pub fn staleness_ms(&self) -> Option<u64> {
        unimplemented!("stub")
    }

    /// The cluster as this node sees it.
    pub fn status(&self) -> quorate_client::api::StatusAnswer {
        unimplemented!("stub")
    }

    /// Hands leadership to the best follower, or to `to`. Returns once another node leads.
    pub async fn transfer_leader(&self, _to: Option<u64>, _deadline: Instant) -> Result<u64, AppError> {
        unimplemented!("stub")
    }

    /// Why this node should not be sent traffic, if so (cheap part of `/readyz`; the other part is a real read).
    pub fn unready_reason(&self) -> Option<String> {
        unimplemented!("stub")
    }
}
