//! `POST /v1/update_where` and `POST /v1/delete_where`: changes of all entries that match.
//!
//! Owns the reading of their bodies with a pointer to every fault, and their answer. Which entries match is decided where
//! the command is applied. The names are those of `quorate_api::WhereRequest`, which a test holds this file to.

use quorate_api::{BulkOutcome, BulkResult, JsonText, Problem, WhereAnswer, WhereRequest};
use quorate_machine::codec;
use quorate_machine::limits::{TTL_MS_MAX, WHERE_LIMIT_MAX};
use quorate_machine::types::{
    Action, Expiry, Key, Outcome as Decided, Rejection, Reply, WhereChange, WhereItem, WhereOp, WhereReply,
};
use quorate_node_core::gateway::admission::LogScan;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::{propose, scan};
use utoipa_axum::routes;
use xxhash_rust::xxh3::xxh3_64;

use crate::command;
use crate::context::{Context, RequestContext};
use crate::coordinate;
use crate::described::{Common, Reused};
use crate::input::cursor::WhereCursor;
use crate::input::extract::Faults;
use crate::input::json_body::Json;
use crate::input::{criteria, key};
use crate::keys::kv;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

/// Which of the two it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `POST /v1/update_where`
    Update,
    /// `POST /v1/delete_where`
    Delete,
}

pub fn routes() -> Routes {
    const SCAN: Policy = Policy::data(RequestClass::Scan);
    Routes::new().add(SCAN, routes!(update)).add(SCAN, routes!(delete))
}

/// Changes every entry that matches.
///
/// One request is one command: it looks at entries in key order, 10,000 at most, and changes `limit` of them at most, each on its
/// own. Where it stopped before the end there is a `cursor`: the same body with it, under another request id, goes on. Between
/// two requests others may write: an entry that matches by then only is changed if it stands behind the cursor.
///
/// Entries of which `if` does not hold are skipped, others may fail (the patch does not fit, a lock, rules of a collection, or it
/// takes too much work to tell whether they match): the first 100 of both are in `results`. A dry run says exactly what the request would do now.
#[utoipa::path(post, path = "/v1/update_where", tag = "entries", operation_id = "update_where",
    request_body(content = WhereRequest, content_type = "application/json",
        example = json!({"prefix": "orders/", "where": [{"field": "status", "op": "eq", "value": "pending"}], "patch": {"status": "late"}, "request_id": "late-1"})),
    responses(
        (status = 200, description = "Done, durable on a majority; or how far it got.", body = WhereAnswer, example = json!({"matched": 2, "applied": 1, "skipped": 0, "failed": 1, "examined": 120, "results": [{"n": 1, "key": "orders/o43", "outcome": "failed", "revision": "21", "status": 412, "code": "cas_mismatch", "detail": "`orders/o43` is locked; only a write with the key of the lock as cas is applied"}], "revision": "21", "index": 33})),
        (status = 412, description = "`guard_failed`: the token does not hold its lock.", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "`quota_exceeded`: the quota is used up or a disk nearly full; deletes still work.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn update(context: Context, Json(request): Json<WhereRequest>) -> Outcome {
    answer(&context, request, Kind::Update).await
}

/// Deletes every entry that matches.
///
/// As `POST /v1/update_where` changes them, without `patch` and `ttl_ms`. `prefix` must be given: every key is deleted only where
/// it says so, as `""`.
#[utoipa::path(post, path = "/v1/delete_where", tag = "entries", operation_id = "delete_where",
    request_body(content = WhereRequest, content_type = "application/json",
        example = json!({"prefix": "sessions/", "where": [{"field": "ends", "op": "lt", "value": {"now": true}}], "limit": 500})),
    responses(
        (status = 200, description = "Done, durable on a majority; or how far it got.", body = WhereAnswer, example = json!({"matched": 500, "applied": 500, "skipped": 0, "failed": 0, "examined": 740, "results": [], "cursor": "AgAB", "revision": "521", "index": 34})),
        (status = 412, description = "`guard_failed`: the token does not hold its lock.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn delete(context: Context, Json(request): Json<WhereRequest>) -> Outcome {
    answer(&context, request, Kind::Delete).await
}

async fn answer(context: &RequestContext, mut request: WhereRequest, kind: Kind) -> Outcome {
    let (id, dry_run) = (request.request_id.take(), request.dry_run);
    let (op, hash) = context.with_request_id(id, checked(request, kind))?;
    context.costs_a_find()?;
    let action = Action::Where(op);
    let _place = scan::place_in_log(context, LogScan::Change, &action, dry_run).await?;
    let reply = decide(context, action, dry_run).await?;
    match &reply.outcome {
        Decided::Where(done) => command::answer(&answer_of(&reply, done, hash, dry_run), reply.revision, None),
        Decided::Rejected(why) => Err(Failure::from_rejection("", &reply, why)),
        _ => Err(propose::confused(&reply)),
    }
}

/// What is to be changed, as the log has it, with the hash of what has to be repeated with a cursor.
fn checked(request: WhereRequest, kind: Kind) -> Result<(WhereOp, u64), Failure> {
    let mut faults = Faults::default();
    let WhereRequest { prefix, criteria, condition, patch, ttl_ms, limit, cursor, guard, .. } = request;
    key::check_prefix(prefix.as_bytes(), "/prefix", &mut faults);
    let criteria = criteria::list(Some(&criteria), "/where", &mut faults);
    let condition = criteria::list(condition.as_deref(), "/if", &mut faults);
    let change = match kind {
        Kind::Update => update_of(patch.as_ref(), ttl_ms, &mut faults),
        Kind::Delete => removal(patch.is_some(), ttl_ms.is_some(), &mut faults),
    };
    let limit = faults.within("/limit", limit, 1..=WHERE_LIMIT_MAX).unwrap_or(WHERE_LIMIT_MAX);
    let guard = guard.and_then(|guard| coordinate::guard(&guard, &mut faults));
    let parts = criteria.zip(condition).zip(change);
    let hash = parts.as_ref().map(|((criteria, condition), change)| {
        xxh3_64(&codec::encode(&(prefix.as_bytes(), criteria, condition, change)))
    });
    let after = cursor.zip(hash).and_then(|(cursor, hash)| place(&cursor, hash, &mut faults));
    let (((criteria, condition), change), hash) = faults.complete(parts.zip(hash))?;
    let prefix = prefix.into_bytes();
    Ok((WhereOp { prefix, criteria, condition, change, limit, after, guard }, hash))
}

fn update_of(patch: Option<&JsonText>, ttl_ms: Option<u64>, faults: &mut Faults) -> Option<WhereChange> {
    let ttl_ms = faults.within("/ttl_ms", ttl_ms, 0..=TTL_MS_MAX);
    let Some(patch) = patch else {
        faults.add("/patch", "missing; a merge patch, a JSON Patch or a list of update operators");
        return None;
    };
    let patch = criteria::patch(patch.0.get().as_bytes(), "/patch", faults)?;
    Some(WhereChange::Patch { patch, expiry: ttl_ms.map_or(Expiry::Keep, kv::expiry_of) })
}

fn removal(has_patch: bool, has_ttl: bool, faults: &mut Faults) -> Option<WhereChange> {
    for (given, pointer) in [(has_patch, "/patch"), (has_ttl, "/ttl_ms")] {
        if given {
            faults.add(pointer, "only update_where takes it: nothing is left of what is deleted");
        }
    }
    Some(WhereChange::Remove)
}

/// Where a cursor goes on.
fn place(text: &str, hash: u64, faults: &mut Faults) -> Option<Key> {
    match WhereCursor::decode(text) {
        Some(cursor) if cursor.query == hash => return Some(cursor.after),
        Some(_) if !faults.is_empty() => {}
        Some(_) => {
            faults.add("/cursor", "belongs to another request; repeat all but limit, guard, dry_run and request_id")
        }
        None => {
            faults.add("/cursor", "not a cursor of this route; give back the one of the answer before, or start anew")
        }
    }
    None
}

fn answer_of(reply: &Reply, done: &WhereReply, hash: u64, dry_run: bool) -> WhereAnswer {
    WhereAnswer {
        matched: done.matched.into(),
        applied: done.applied.into(),
        skipped: done.skipped.into(),
        failed: done.failed.into(),
        examined: done.examined.into(),
        results: done.items.iter().map(|item| item_of(reply, item)).collect(),
        left_out: done.left_out,
        cursor: done.after.clone().map(|after| WhereCursor { query: hash, after }.encode()),
        revision: reply.revision,
        index: reply.index,
        replayed: reply.replayed,
        dry_run,
    }
}

/// An entry that was not changed, told as if it had been written alone.
pub fn item_of(reply: &Reply, item: &WhereItem) -> BulkResult {
    let problem: Problem = Failure::from_rejection(&item.key, reply, &item.why).into_problem();
    let outcome = match item.why {
        Rejection::ConditionNotMet { .. } => BulkOutcome::Skipped,
        _ => BulkOutcome::Failed,
    };
    BulkResult {
        n: item.n.into(),
        key: item.key.as_bytes().into(),
        outcome,
        revision: reply.revision,
        cas: None,
        create_revision: None,
        version: None,
        ttl_ms: None,
        lock_ms: None,
        prev: None,
        status: Some(problem.status),
        code: Some(problem.code),
        detail: Some(problem.detail),
        failed: problem.failed,
        errors: problem.errors,
        current: problem.current,
    }
}
