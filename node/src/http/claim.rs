//! `POST /v1/claim`: entries found and locked in one step.
//!
//! Owns the reading of its body with a pointer to every fault, and its answer. The names are those of
//! `quorate_api::ClaimRequest`, which a test holds this file to.

use axum::body::Body;
use quorate_api::{ClaimAnswer, ClaimRequest, EntryView, Problem};
use quorate_store::document::{Criteria, Order};
use quorate_store::limits::CLAIM_LIMIT_MAX;
use quorate_store::rules::field_text;
use quorate_store::types::{
    Action, ClaimDone, ClaimOp, ClusterMillis, Entry, Key, Outcome as Decided, Reply, Shown, Value,
};
use utoipa_axum::routes;

use super::context::Context;
use super::error::Failure;
use super::extract::Faults;
use super::lanes::Lane;
use super::op_body::{lock_time, request_id, typed};
use super::openapi::Common;
use super::response::Outcome;
use super::routes::{Policy, Routes};
use super::{command, convert, coordinate, criteria, extract, find_body, key, matching, scan, write};

const FIELDS: [&str; 9] =
    ["prefix", "where", "order_by", "limit", "lock_ms", "patch", "guard", "request_id", "dry_run"];

/// The route of claims.
pub fn routes() -> Routes {
    Routes::new().add(Policy::data(Lane::Scan), routes!(post))
}

/// Claims entries: finds those that match and are not locked, in order, and locks each.
///
/// Finding, locking and the patch are one step at one revision: no two claims get the same entry while its lock holds. The `cas`
/// of each entry is the key to its lock: any write with it ends the lock, `extend` lets it hold longer, and what is not finished
/// in time can be claimed again.
///
/// With `order_by` the first of all that match are claimed; without, the first found: by key, or in the order of the index that
/// is used. At most 10,000 entries are looked at: `more` says that it ended there and not for want of entries. Where an order
/// would need more of them and no index gives it, the answer is 413. An entry that the patch does not fit is passed over, and
/// told in `failed`; after 16 of those it ends.
#[utoipa::path(post, path = "/v1/claim", tag = "entries", operation_id = "claim",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Makes retries safe; the same as `request_id` in the body."),
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds."),
    ),
    request_body(content = ClaimRequest, content_type = "application/json",
        example = json!({"prefix": "jobs/", "where": [{"field": "due", "op": "lte", "value": {"now": true}}], "order_by": ["due"], "limit": 10, "lock_ms": 20000, "patch": [{"op": "inc", "path": "tries", "value": 1}], "request_id": "worker-7-1"})),
    responses(
        (status = 200, description = "What was claimed; nothing, where `count` is 0.", body = ClaimAnswer, example = json!({"entries": [{"key": "jobs/j1", "value": {"due": "2026-11-21T00:00:00Z", "tries": 1}, "content_type": "json", "cas": "21", "create_revision": 17, "mod_revision": 21, "version": 2, "locked": true, "lock_ms": 20000}], "count": 1, "examined": 12, "more": false, "revision": 21, "index": 33})),
        (status = 409, description = "`request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        (status = 412, description = "`guard_failed`: the token does not hold its lock.", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "`unsupported_media_type`: `detail` says which header to send.", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "`quota_exceeded`: the quota is used up or a disk nearly full; deletes still work.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn post(context: Context, body: Body) -> Outcome {
    let text = command::text(&context, body, "a claim").await?;
    let ClaimWish { op, dry_run, request_id } = scan::beside(text.len(), || ClaimWish::read(&text))?;
    context.take_request_id(request_id)?;
    context.costs_a_find()?;
    let _place = scan::place_in_log(&context).await?;
    let reply = command::decide(&context, Action::Claim(op), dry_run).await?;
    match &reply.outcome {
        Decided::Claimed(done) => command::answer(&answer_of(&reply, done, dry_run), reply.revision, None),
        Decided::Rejected(why) => Err(Failure::from_rejection("", &reply, why)),
        _ => Err(write::confused(&reply)),
    }
}

/// A checked request.
#[derive(Debug)]
struct ClaimWish {
    op: ClaimOp,
    dry_run: bool,
    request_id: Option<String>,
}

impl ClaimWish {
    /// Reads a body that is known to be strict JSON. Reports every fault, not only the first.
    fn read(text: &[u8]) -> Result<Self, Failure> {
        let mut faults = Faults::default();
        let wish = Self::read_fields(text, &mut faults);
        faults.check()?;
        wish.ok_or_else(|| Failure::invalid("", "the claim is not complete"))
    }

    fn read_fields(text: &[u8], faults: &mut Faults) -> Option<Self> {
        let fields = extract::object(text, "a claim", FIELDS, faults)?;
        let [prefix, matching, order_by, limit, lock_ms, patch, guard, id, dry_run] = fields;
        if prefix.is_none() {
            faults.add("/prefix", "missing; keys begin with it; `\"\"` for every key");
        }
        let prefix = prefix.and_then(|raw| find_body::prefix(raw, faults));
        let criteria = match matching {
            Some(raw) => criteria::criteria(raw.get().as_bytes(), "/where", faults),
            None => Some(Criteria::default()),
        };
        let (order, _) = order_by.map(|raw| find_body::order_by(raw, faults)).unwrap_or_default();
        let limit = limit.and_then(|raw| command::whole(raw, "/limit", 1..=CLAIM_LIMIT_MAX, faults));
        let lock_ms = lock_ms.and_then(|raw| typed(raw, "/lock_ms", "a whole number of milliseconds", faults));
        let patch = patch.and_then(|raw| criteria::patch(raw.get().as_bytes(), "/patch", faults));
        let guard = guard.and_then(|raw| coordinate::guard(raw, faults));
        let dry_run = dry_run.and_then(|raw| typed(raw, "/dry_run", "true or false", faults)).unwrap_or(false);
        let request_id = id.and_then(|raw| request_id(raw, faults)).map(|id| id.into_owned());
        let op = ClaimOp {
            prefix: prefix?.into_owned().into_bytes(),
            criteria: criteria?,
            order: Order::new(order),
            limit: limit.unwrap_or(1),
            lock_ms: lock_time(lock_ms),
            patch,
            guard,
        };
        Some(Self { op, dry_run, request_id })
    }
}

fn answer_of(reply: &Reply, done: &ClaimDone, dry_run: bool) -> ClaimAnswer {
    let index = done.index.as_ref();
    ClaimAnswer {
        entries: done.entries.iter().map(|(key, shown)| claimed(key, shown, reply.clock)).collect(),
        count: done.entries.len() as u64,
        failed: done.refused.iter().map(|item| matching::item_of(reply, item)).collect(),
        examined: done.examined.into(),
        more: done.more,
        index_used: index.map(|paths| paths.iter().map(field_text).collect()),
        revision: reply.revision,
        index: reply.index,
        replayed: reply.replayed,
        dry_run,
    }
}

/// An entry as it is for who claimed it: with the key to its lock. In the kept answer to a retry the value may be compacted.
fn claimed(key: &Key, shown: &Shown, clock: ClusterMillis) -> EntryView {
    let key = key::shown(key);
    let view = match shown {
        Shown::Whole(entry) => convert::entry_view(&key, entry, clock),
        Shown::Bare { meta, kind } => {
            let entry = Entry { meta: *meta, value: Value { kind: *kind, data: Vec::new() } };
            EntryView { value: None, value_base64: None, ..convert::entry_view(&key, &entry, clock) }
        }
    };
    EntryView { cas: Some(shown.meta().cas.to_string()), ..view }
}

#[cfg(test)]
mod tests {
    use quorate_api::Guard;

    use super::super::json;
    use super::*;

    #[test]
    fn the_fields_are_those_of_the_wire_type() {
        let full = ClaimRequest {
            prefix: String::new(),
            criteria: Some(Vec::new()),
            order_by: Some(Vec::new()),
            limit: Some(1),
            lock_ms: Some(1),
            patch: serde_json::from_str("{}").ok(),
            guard: Some(Guard::lock("l", 1)),
            request_id: Some("r".into()),
            dry_run: true,
        };
        let text = serde_json::to_vec(&full).expect("JSON");
        let names: Vec<_> = json::fields(&text).expect("an object").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, FIELDS);
    }
}
