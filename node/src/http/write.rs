//! The one way a write goes from a checked request to its answer.
//!
//! Owns what PUT, PATCH, DELETE and `POST /v1/ops` have in common: request id, dry runs, the answer. Checks nothing.

use std::time::Instant;

use quorate_store::types::{Action, Command, Outcome, Rejection, Reply, RequestId, WriteOp};

use super::done::Done;
use super::error::{Effect, Failure};
use super::{Backend, read};
use crate::app::Consistency;

/// Submits a write, or only evaluates it.
pub async fn perform<B: Backend>(
    backend: &B,
    key: &str,
    op: WriteOp,
    dry_run: bool,
    request_id: &str,
    deadline: Instant,
) -> Result<Done, Failure> {
    let reply = match dry_run {
        true => evaluate(backend, op, deadline).await?,
        false => propose(backend, op, request_id, deadline).await?,
    };
    match &reply.outcome {
        Outcome::Written(written) => Ok(Done::write(key, &reply, written, dry_run)),
        Outcome::Rejected(rejection) => Err(Failure::from_rejection(key, &reply, rejection)),
        // A deferred write goes back to the queue, it is never answered.
        _ => {
            let confused = Rejection::Unsupported("a write was not answered as one".into());
            Err(Failure::from_rejection(key, &reply, &confused))
        }
    }
}

/// Each write has a request id, the caller's or our own, so that nodes may forward and retry it safely.
async fn propose<B: Backend>(backend: &B, op: WriteOp, request_id: &str, deadline: Instant) -> Result<Reply, Failure> {
    let request_id = Some(RequestId(request_id.to_owned()));
    let command = Command { request_id, principal: String::new(), action: Action::Write(op) };
    backend.write(command, deadline).await.map_err(|error| Failure::from_app(error, Effect::Write))
}

/// A dry run is a linearizable read of what the write would do. It has no request id: nothing is kept of it.
async fn evaluate<B: Backend>(backend: &B, op: WriteOp, deadline: Instant) -> Result<Reply, Failure> {
    read::barrier(backend, Consistency::Linearizable, deadline).await?;
    let command = Command { request_id: None, principal: String::new(), action: Action::Write(op) };
    backend.dry_run(&command).map_err(|fault| Failure::from_fault(&fault))
}
