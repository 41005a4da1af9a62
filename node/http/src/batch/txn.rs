//! `POST /v1/txn`: checks on any keys, and steps that take effect together or not at all.
//!
//! Owns which transactions go into the log and which are only evaluated. How a body is read is in `txn_body`, how the
//! answer is written in `txn_answer`.

use axum::body::Body;
use quorate_api::{Problem, TxnAnswer, TxnRequest};
use quorate_machine::types::{Action, Outcome as Decided};
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::propose;
use quorate_node_core::gateway::scan::parse;
use quorate_threads::background;
use utoipa_axum::routes;

use crate::batch::txn_answer::render_txn;
use crate::batch::txn_body::ParsedTxn;
use crate::context::Context;
use crate::described::{Common, Conditional};
use crate::headers;
use crate::input::extract::Query;
use crate::input::{body, json_body};
use crate::output::response::{Outcome, ok};
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    Routes::new().add(Policy::data(RequestClass::Point), routes!(post))
}

/// Takes the steps of `then` if all checks of `if` hold, else those of `else`: all of them, or none.
///
/// Steps are operations as of `/v1/ops`, `get` too, or transactions again (`"op": "txn"`), at most 4 deep with the outermost.
/// They are taken in order, each sees what those before it did, and all writes have one revision. A key may be
/// written once on any way through the transaction. At most 1,024 checks and steps, nested ones too.
///
/// Checks that do not hold are no error: the answer says `succeeded: false` and in `failed` which one it was. A step that is refused
/// (by its own `cas` or `if`, an `insert` of what is there) refuses all of it: a problem document with the code of
/// that step, the step in `detail` and in the pointers of `failed`, and the entry as `current`.
///
/// A transaction that cannot write is a linearizable read: it has no request id. The kept answer to a
/// retry shows what was read the first time; long after, where such a version is no longer kept, without its value.
#[utoipa::path(post, path = "/v1/txn", tag = "entries", operation_id = "txn",
    params(
        ("dry_run" = Option<bool>, Query, description = "Say what would happen, write nothing; the same as `dry_run` in the body."),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes retries safe; the same as `request_id` in the body.", example = "transfer-42"),
    ),
    request_body(content = TxnRequest, content_type = "application/json", examples(
        ("transfer" = (value = json!({"if": [{"key": "accounts/a", "if": [{"field": "balance", "op": "gte", "value": 10}]}], "then": [{"op": "update", "key": "accounts/a", "patch": [{"op": "inc", "path": "balance", "value": -10}]}, {"op": "update", "key": "accounts/b", "patch": [{"op": "inc", "path": "balance", "value": 10}]}], "else": [{"op": "get", "key": "accounts/a"}], "request_id": "transfer-42"}))),
        ("first one in" = (value = json!({"if": [{"key": "leader", "exists": false}], "then": [{"op": "insert", "key": "leader", "value": "a", "ttl_ms": 10000}], "else": [{"op": "txn", "if": [{"key": "leader", "cas": "17"}], "then": [{"op": "touch", "key": "leader", "ttl_ms": 10000}], "else": [{"op": "get", "key": "leader"}]}]}))),
    )),
    responses(
        (status = 200, description = "One branch was taken, all of it.", body = TxnAnswer, example = json!({"succeeded": true, "results": [{"op": "update", "key": "accounts/a", "revision": "21", "cas": "21", "create_revision": "11", "version": 3}, {"op": "update", "key": "accounts/b", "revision": "21", "cas": "21", "create_revision": "12", "version": 7}], "revision": "21", "index": 33})),
        (status = 404, description = "`not_found`: a step needs an entry that is not there.", body = Problem, content_type = "application/problem+json"),
        Conditional, Common,
    ))]
pub async fn post(context: Context, body: Body) -> Outcome {
    let mut query = Query::parse(context.head.uri.query());
    let dry_run = query.flag("dry_run");
    query.finish()?;
    let kind = headers::json_kind(&context.head, "a transaction")?;
    let body = body::collect(&context, body, usize::MAX).await?;
    let parsed = parse(&context, body, move |body| ParsedTxn::read(json_body::object_of(kind, body)?)).await?;
    context.take_request_id(parsed.request_id)?;
    context.costs(parsed.count, parsed.count)?;
    let dry_run = dry_run || parsed.dry_run;
    let only_reads = dry_run || !parsed.txn.writes();
    let reply = decide(&context, Action::Txn(parsed.txn), only_reads).await?;
    let done = match &reply.outcome {
        Decided::Txn(done) => done,
        Decided::TxnRejected(rejected) => return Err(Failure::from_step(&reply, rejected)),
        Decided::Rejected(rejection) => return Err(Failure::from_rejection("", &reply, rejection)),
        _ => return Err(propose::confused(&reply)),
    };
    let rendered =
        background::in_place(reply.outcome.value_bytes(), || render_txn(&parsed.shape, done, &reply, dry_run));
    let json = rendered.ok_or_else(|| propose::confused(&reply))?;
    let mut response = ok(headers::JSON, json);
    response.headers_mut().insert(headers::REVISION, reply.revision.into());
    Ok(response)
}
