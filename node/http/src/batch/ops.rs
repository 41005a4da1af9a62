//! `POST /v1/ops`: one operation in JSON. A stream of them is `stream`'s.
//!
//! Owns what becomes of an operation once it is read, which is `op_body`'s.

use axum::body::Body;
use quorate_api::{AnswerLine, Op, OpLine, Problem};
use quorate_machine::types::Step;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_threads::background;
use utoipa_axum::routes;

use crate::batch::{operation, stream};
use crate::context::Context;
use crate::described::{Common, Conditional, OpAnswer};
use crate::headers;
use crate::input::{body, json_body};
use crate::keys::op_body::ParsedOp;
use crate::keys::prefer::{self, Preferred};
use crate::output::response::Outcome;
use crate::routes::{BodyLimit, Policy, Routes};

pub fn routes() -> Routes {
    Routes::new().add(Policy::data(RequestClass::Point).with_body(BodyLimit::Lines), routes!(post))
}

/// Executes one operation, or a stream of them.
///
/// `get` answers with the entry, `get_and_touch` with the entry as it is with its new time to live, `get_and_lock` with the entry
/// and, as `cas`, the key to its lock; everything else with what was written. A retry of the two long after, when that version is
/// no longer kept, shows the entry without its value.
///
/// With `wait_ms` a lock that somebody else holds is waited for, first come first served: in a line that the leader keeps in memory, so
/// a new leader begins it anew with those who still wait. Who locks without it may come between. `Request-Timeout` counts the wait
/// aside.
///
/// As `application/x-ndjson` the body is a stream: each line is an operation with a number `n` of the caller's choice, and is
/// answered by a line with that `n`, the status and the body that the operation alone would have been answered with. Answers
/// come as operations are done, in any order; a bad line is answered and the stream goes on. At most 1024 operations are
/// under way; then no more is read. The answer ends when the request has ended and everything is answered, when nothing was
/// asked for as long as a connection may be idle, and when the node stops. A line break in a value is answered as a blank.
#[utoipa::path(post, path = "/v1/ops", tag = "entries", operation_id = "op",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Makes retries safe; the same as `request_id` in the body. Not with a stream."),
        ("Prefer" = Option<String>, Header, description = "As with PUT; for one operation that writes, not for a stream.", example = "return=representation"),
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds, the wait aside; for the lines of a stream that name none."),
    ),
    request_body(content(
        (Op = "application/json", example = json!({"op": "update", "key": "orders/o42", "patch": {"status": "paid"}, "cas": "17", "request_id": "order-42-pay"})),
        (OpLine = "application/x-ndjson", example = json!({"n": 1, "timeout_ms": 2000, "op": {"op": "get", "key": "orders/o42"}})),
    )),
    responses(
        (status = 200, description = "Done. A stream is always answered with 200: each line has its own status.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run.")), content(
            (OpAnswer = "application/json", example = json!({"key": "orders/o42", "revision": "21", "index": 33, "cas": "21", "create_revision": "17", "version": 2})),
            (AnswerLine = "application/x-ndjson", example = json!({"n": 1, "status": 200, "term": "3", "leader": 1, "answer": {"key": "orders/o42", "value": {"status": "paid"}, "content_type": "json", "cas": "21", "create_revision": "17", "mod_revision": "21", "version": 2, "revision": "21", "index": 34}})),
        )),
        (status = 201, description = "Done, and there was no entry before: `Location` is its path. With `Prefer: return=minimal` without a body.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run.")), body = OpAnswer),
        (status = 204, description = "Done, with `Prefer: return=minimal`.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run."))),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        Conditional, Common,
    ))]
pub async fn post(context: Context, body: Body) -> Outcome {
    if headers::says_stream(&context.head) {
        return stream::open(&context, body).await;
    }
    let kind = headers::json_kind(&context.head, "an operation")?;
    let body = body::collect(&context, body, usize::MAX).await?;
    let text = json_body::object_of(kind, &body)?;
    let mut parsed = background::in_place(text.len(), || ParsedOp::read(text))?;
    context.take_request_id(parsed.request_id.take())?;
    // What lock answers with is the key, which the entry does not show.
    let preferred = Preferred::of(&context.head, &parsed.key, parsed.prev || parsed.dry_run || parsed.is_of_lock());
    match &parsed.step {
        Step::Write(op) if !parsed.dry_run => {
            let shows = op.return_previous || matches!(preferred, Some(Preferred::Representation(_)));
            match parsed.wait {
                // A wait for a lock would keep the room from others meanwhile.
                Some(_) if shows => context.check_values()?,
                Some(_) => {}
                None => context.take_values_room(usize::from(shows), &|visit| op.requirements(visit)).await?,
            }
        }
        _ => context.only_looks(),
    }
    let done = match parsed.wait.take() {
        Some(wait) => Box::pin(operation::perform_in_turn(&context, parsed, wait)).await?,
        None => operation::perform(&context.caller(), parsed, &context.request_id(), context.deadline).await?,
    };
    Ok(prefer::answer(&context, done, preferred).await)
}
