//! A write of one entry, from its checked request to its answer.
//!
//! Owns the answer to one operation. Never decides whether it applies.

use std::time::Instant;

use quorate_machine::types::{Action, Change, Key, Outcome, Reply, RequestId, WriteOp};
use quorate_node_core::gateway::caller::Caller;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::propose::{confused, evaluate, propose};

use crate::output::completed::Completed;

/// How a write is carried out and answered.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// It is only evaluated.
    pub dry_run: bool,
    /// The answer is the entry after it. Of a write that leaves the value and returns the entry before.
    pub shows_entry: bool,
}

/// Submits a write, or only evaluates it.
pub async fn perform(
    caller: &Caller<'_>,
    key: &Key,
    op: WriteOp,
    manner: Manner,
    request_id: &str,
    deadline: Instant,
) -> Result<Completed, Failure> {
    let may_create = matches!(op.change, Change::Put(_));
    let reply = match manner.dry_run {
        true => evaluate(caller, Action::Write(op), deadline).await?,
        false => propose(caller, Action::Write(op), RequestId(request_id.to_owned()), deadline).await?,
    };
    answer(key, &reply, manner, may_create)
}

/// What a write came to, which may have created the entry.
pub fn answer(key: &Key, reply: &Reply, manner: Manner, may_create: bool) -> Result<Completed, Failure> {
    match &reply.outcome {
        Outcome::Written(written) if manner.shows_entry => {
            Completed::read_by_write(key, reply, written, manner.dry_run).ok_or_else(|| confused(reply))
        }
        Outcome::Written(written) => Ok(Completed::write(key, reply, written, manner.dry_run, may_create)),
        Outcome::Rejected(rejection) => Err(Failure::from_rejection(key, reply, rejection)),
        // A deferred write goes back to the queue, it is never answered.
        _ => Err(confused(reply)),
    }
}
