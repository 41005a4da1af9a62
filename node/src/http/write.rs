//! The one way a write goes from a checked request to its answer.
//!
//! Owns what PUT, PATCH, DELETE and `POST /v1/ops` have in common: request id, dry runs, the answer. Checks nothing.

use http::header;
use quorate_store::types::{Action, Command, Outcome, Rejection, Reply, RequestId, WriteOp, Written};

use super::ask::Ask;
use super::error::{Effect, Failure};
use super::{Answer, Backend, headers, ok, read, render};
use crate::app::Consistency;

/// Submits a write, or only evaluates it, and answers.
pub async fn submit<B: Backend>(
    ask: &mut Ask<'_, B>,
    key: &str,
    op: WriteOp,
    dry_run: bool,
) -> Result<Answer, Failure> {
    let reply = if dry_run { evaluate(ask, op).await? } else { propose(ask, op).await? };
    match &reply.outcome {
        Outcome::Written(written) => Ok(answer(key, &reply, written, dry_run)),
        Outcome::Rejected(rejection) => Err(Failure::from_rejection(key, &reply, rejection)),
        // A deferred write goes back to the queue, it is never answered.
        Outcome::Maintained { .. } | Outcome::Deferred => {
            let confused = Rejection::Unsupported("a write was not answered as one".into());
            Err(Failure::from_rejection(key, &reply, &confused))
        }
    }
}

/// Each write has a request id, the caller's or our own, so that nodes may forward and retry it safely.
async fn propose<B: Backend>(ask: &mut Ask<'_, B>, op: WriteOp) -> Result<Reply, Failure> {
    let request_id = Some(RequestId(ask.request_id.clone()));
    let command = Command { request_id, principal: String::new(), action: Action::Write(op) };
    ask.api.backend.write(command, ask.deadline).await.map_err(|error| Failure::from_app(error, Effect::Write))
}

/// A dry run is a linearizable read of what the write would do. It has no request id: nothing is kept of it.
async fn evaluate<B: Backend>(ask: &mut Ask<'_, B>, op: WriteOp) -> Result<Reply, Failure> {
    let backend = &ask.api.backend;
    read::barrier(ask, Consistency::Linearizable).await?;
    let command = Command { request_id: None, principal: String::new(), action: Action::Write(op) };
    backend.dry_run(&command).map_err(|fault| Failure::from_fault(&fault))
}

fn answer(key: &str, reply: &Reply, written: &Written, dry_run: bool) -> Answer {
    let mut response = ok(headers::JSON, render::write(key, reply, written, dry_run));
    let fields = response.headers_mut();
    fields.insert(headers::REVISION, reply.revision.into());
    if let (Some(meta), false) = (&written.meta, dry_run) {
        fields.insert(header::ETAG, headers::etag_value(meta.cas));
    }
    response
}
