//! Why a node has no answer to a request.

use quorate_machine::query::StateFault;
use quorate_machine::types::Revision;

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
    /// There is no room for more. Not applied.
    #[error("{0}")]
    NoSpace(String),
    /// It would harm the cluster; says why. Not applied.
    #[error("{0}")]
    Refused(String),
    /// The deadline passed before anything was proposed. Not applied.
    #[error("the deadline passed before the request was put into the log")]
    TimeoutNotProposed,
    /// The deadline passed, or leadership moved, with the request in the log. Its outcome is unknown.
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
    /// The revision is of before a restore or a recovery. Not applied.
    #[error(
        "revision {revision} is of another history: the cluster was restored or recovered and began anew at {begun}; read without it"
    )]
    AnotherEpoch {
        /// The revision asked for.
        revision: Revision,
        /// The first of this history.
        begun: Revision,
    },
    /// The node's own state is damaged or its disk fails; it is stopping. The outcome of a write is unknown.
    #[error("{0}")]
    Fault(String),
}

impl From<StateFault> for AppError {
    fn from(fault: StateFault) -> Self {
        Self::Fault(fault.to_string())
    }
}
