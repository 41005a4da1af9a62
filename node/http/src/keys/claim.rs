//! `POST /v1/claim`: entries found and locked in one step.
//!
//! Owns the reading of its body with a pointer to every fault, and its answer. The names are those of
//! `quorate_api::ClaimRequest`, which a test holds this file to.

use quorate_api::{ClaimAnswer, ClaimRequest, EntryView, Problem};
use quorate_machine::document::Order;
use quorate_machine::limits::CLAIM_LIMIT_MAX;
use quorate_machine::rules::field_text;
use quorate_machine::types::{
    Action, ClaimOp, ClaimReply, ClusterMillis, Entry, Key, Outcome as Decided, Reply, Shown, Value,
};
use quorate_node_core::gateway::admission::LogScan;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::{entry_view, propose, scan};
use utoipa_axum::routes;

use crate::command;
use crate::context::Context;
use crate::coordinate;
use crate::described::Common;
use crate::input::extract::Faults;
use crate::input::json_body::Json;
use crate::input::{criteria, key};
use crate::keys::op_body::lock_time;
use crate::keys::{find_body, matching};
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    Routes::new().add(Policy::data(RequestClass::Scan), routes!(post))
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
/// told in `failed`; after 16 of those it ends. It also ends before an entry that takes too much work to judge, and is refused with
/// `too_dear` where nothing comes before that.
#[utoipa::path(post, path = "/v1/claim", tag = "entries", operation_id = "claim",
    request_body(content = ClaimRequest, content_type = "application/json",
        example = json!({"prefix": "jobs/", "where": [{"field": "due", "op": "lte", "value": {"now": true}}], "order_by": ["due"], "limit": 10, "lock_ms": 20000, "patch": [{"op": "inc", "path": "tries", "value": 1}], "request_id": "worker-7-1"})),
    responses(
        (status = 200, description = "What was claimed; nothing, where `count` is 0.", body = ClaimAnswer, example = json!({"entries": [{"key": "jobs/j1", "value": {"due": "2026-11-21T00:00:00Z", "tries": 1}, "content_type": "json", "cas": "21", "create_revision": "17", "mod_revision": "21", "version": 2, "locked": true, "lock_ms": 20000}], "count": 1, "examined": 12, "more": false, "revision": "21", "index": 33})),
        (status = 409, description = "`request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        (status = 412, description = "`guard_failed`: the token does not hold its lock.", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "`quota_exceeded`: the quota is used up or a disk nearly full; deletes still work.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn post(context: Context, Json(mut request): Json<ClaimRequest>) -> Outcome {
    let (id, dry_run) = (request.request_id.take(), request.dry_run);
    let op = context.with_request_id(id, checked(request))?;
    context.costs_a_find()?;
    context.check_values()?;
    let action = Action::Claim(op);
    let _place = scan::place_in_log(&context, LogScan::Claim, &action, dry_run).await?;
    let reply = decide(&context, action, dry_run).await?;
    match &reply.outcome {
        Decided::Claimed(done) => command::answer(&answer_of(&reply, done, dry_run), reply.revision, None),
        Decided::Rejected(why) => Err(Failure::from_rejection("", &reply, why)),
        _ => Err(propose::confused(&reply)),
    }
}

/// What is to be claimed, as the log has it.
fn checked(request: ClaimRequest) -> Result<ClaimOp, Failure> {
    let mut faults = Faults::default();
    let ClaimRequest { prefix, criteria, order_by, limit, lock_ms, patch, guard, .. } = request;
    key::check_prefix(prefix.as_bytes(), "/prefix", &mut faults);
    let criteria = criteria::list(criteria.as_deref(), "/where", &mut faults);
    let order = find_body::order_by(&order_by.unwrap_or_default(), &mut faults);
    let limit = faults.within("/limit", limit, 1..=CLAIM_LIMIT_MAX).unwrap_or(1);
    let patch = patch.and_then(|patch| criteria::patch(patch.0.get().as_bytes(), "/patch", &mut faults));
    let guard = guard.and_then(|guard| coordinate::guard(&guard, &mut faults));
    let criteria = faults.complete(criteria)?;
    let (prefix, order, lock_ms) = (prefix.into_bytes(), Order::new(order), lock_time(lock_ms));
    Ok(ClaimOp { prefix, criteria, order, limit, lock_ms, patch, guard })
}

fn answer_of(reply: &Reply, done: &ClaimReply, dry_run: bool) -> ClaimAnswer {
    let index = done.index.as_ref();
    ClaimAnswer {
        entries: done.entries.iter().map(|(key, shown)| claimed(key, shown, reply.clock, dry_run)).collect(),
        count: done.entries.len() as u64,
        failed: done.refused.iter().map(|item| matching::item_of(reply, item)).collect(),
        left_out: done.left_out,
        examined: done.examined.into(),
        more: done.more,
        index_used: index.map(|paths| paths.iter().map(field_text).collect()),
        revision: reply.revision,
        index: reply.index,
        replayed: reply.replayed,
        dry_run,
    }
}

/// An entry as it is for who claimed it: with the key to its lock, unless that was only tried. In the kept answer to a retry the value may
/// be compacted.
fn claimed(key: &Key, shown: &Shown, clock: ClusterMillis, dry_run: bool) -> EntryView {
    let view = match shown {
        Shown::Whole(entry) => entry_view::entry_view(key, entry, clock),
        Shown::Bare { meta, kind } => {
            let entry = Entry { meta: *meta, value: Value { kind: *kind, data: Vec::new() } };
            EntryView { value: None, value_base64: None, ..entry_view::entry_view(key, &entry, clock) }
        }
    };
    EntryView { cas: Some(quorate_api::Cas::new(shown.meta().cas)).filter(|_| !dry_run), ..view }
}
