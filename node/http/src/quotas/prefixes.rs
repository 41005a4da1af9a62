//! `/v1/quotas/prefixes` and `/v1/quotas/prefixes/{prefix}`: how much there may be below a prefix.

use std::borrow::Cow;

use quorate_api::{Problem, QuotaAnswer, QuotaList, QuotaRemoved, QuotaRequest, path};
use quorate_machine::limits::KEY_BYTES_MAX;
use quorate_machine::types::QuotaSubject;
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::gateway::text;
use utoipa_axum::routes;

use super::body;
use crate::context::Context;
use crate::coordinate;
use crate::described::{Common, Page, Reused};
use crate::input::json_body::JsonBytes;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const ADMIN: Policy = Policy::node(Guard::Admin);
    Routes::new().all(ADMIN, [routes!(list), routes!(get), routes!(put), routes!(delete)])
}

/// Lists the prefixes that have a quota, in order.
#[utoipa::path(get, path = "/v1/quotas/prefixes", tag = "quotas", operation_id = "prefix_quotas",
    params(Page),
    responses(
        (status = 200, description = "A page.", body = QuotaList, example = json!({"quotas": [{"prefix": "tenants/acme/", "bounds": {"entries": 10000}, "used": {"entries": 3, "bytes": 411, "tasks": 0}, "state": "enforced", "set_revision": "12", "created": "2026-11-26T08:00:00.000Z"}], "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn list(context: Context) -> Outcome {
    let (limit, after) =
        coordinate::page_of(&context, |text| text::percent_decode_bytes(text).ok().map(Cow::into_owned))?;
    context.admit_read(&requirement::on_prefix(Permission::Admin, b"")).await?;
    let seen = scan(&context, move |backend| backend.prefix_quotas(after.as_deref(), limit)).await?;
    body::list(&seen)
}

/// Shows the quota of a prefix, with what there is below it.
#[utoipa::path(get, path = "/v1/quotas/prefixes/{prefix}", tag = "quotas", operation_id = "prefix_quota",
    params(
        ("prefix" = String, Path, description = "The prefix, percent-encoded; slashes may stand as they are.", example = "tenants/acme/", min_length = 1, max_length = 4096),
    ),
    responses(
        (status = 404, description = "`not_found`: the prefix has none.", body = Problem, content_type = "application/problem+json"),
        (status = 200, description = "The quota.", body = QuotaAnswer, example = json!({"prefix": "tenants/acme/", "bounds": {"entries": 10000}, "used": {"entries": 3, "bytes": 411, "tasks": 0}, "state": "enforced", "set_revision": "12", "created": "2026-11-26T08:00:00.000Z", "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    body::get(&context, subject(context.name())?).await
}

/// Sets the quota of all names with a prefix: keys and queues of tasks. What is there beyond it already stays. The same again changes
/// nothing.
///
/// A prefix may lie within another: what is below both counts for both. What was there before is counted first; until then the quota
/// refuses nothing.
#[utoipa::path(put, path = "/v1/quotas/prefixes/{prefix}", tag = "quotas", operation_id = "put_prefix_quota",
    params(
        ("prefix" = String, Path, description = "The prefix, percent-encoded; slashes may stand as they are.", example = "tenants/acme/", min_length = 1, max_length = 4096),
    ),
    request_body(content = QuotaRequest, content_type = "application/json", example = json!({"entries": 10000, "bytes": 67108864})),
    responses(
        (status = 200, description = "The quota.", body = QuotaAnswer, example = json!({"prefix": "tenants/acme/", "bounds": {"entries": 10000, "bytes": 67108864}, "set_revision": "12", "created": "2026-11-26T08:00:00.000Z", "revision": "12", "index": 20})),
        (status = 201, description = "The same, and the prefix had none before: `Location` is its path.", body = QuotaAnswer, example = json!({"prefix": "tenants/acme/", "bounds": {"entries": 10000, "bytes": 67108864}, "set_revision": "12", "created": "2026-11-26T08:00:00.000Z", "revision": "12", "index": 20})),
        (status = 413, description = "`too_large`: 1,000 prefixes have a quota, or 16 of them are around one name.", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "`quota_exceeded`: the disk is nearly full or the cluster's quota used up; removals still work.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn put(context: Context, JsonBytes(json): JsonBytes) -> Outcome {
    let prefix = prefix(context.name())?;
    let path = format!("/v1/quotas/prefixes/{}", path::encode(&prefix));
    body::put(&context, QuotaSubject::Prefix(prefix), &json, &path).await
}

/// Removes the quota of a prefix. Those within it and around it stay.
#[utoipa::path(delete, path = "/v1/quotas/prefixes/{prefix}", tag = "quotas", operation_id = "delete_prefix_quota",
    params(
        ("prefix" = String, Path, description = "The prefix, percent-encoded; slashes may stand as they are.", example = "tenants/acme/", min_length = 1, max_length = 4096),
    ),
    responses(
        (status = 200, description = "It is gone.", body = QuotaRemoved, example = json!({"prefix": "tenants/acme/", "revision": "22", "index": 34})),
        (status = 404, description = "`not_found`: the prefix has none.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn delete(context: Context) -> Outcome {
    body::delete(&context, subject(context.name())?).await
}

fn subject(rest: &str) -> Result<QuotaSubject, Failure> {
    prefix(rest).map(QuotaSubject::Prefix)
}

/// The prefix in the rest of a path.
fn prefix(rest: &str) -> Result<Vec<u8>, Failure> {
    body::name_in_path(rest, "path:prefix", KEY_BYTES_MAX)
}
