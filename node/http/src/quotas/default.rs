//! `/v1/quotas/default`: what every principal may have that has no quota of its own.

use quorate_api::{Problem, QuotaAnswer, QuotaRemoved, QuotaRequest};
use quorate_machine::types::QuotaSubject;
use quorate_node_core::gateway::auth::guard::Guard;
use utoipa_axum::routes;

use super::body;
use crate::context::Context;
use crate::described::{Common, Reused};
use crate::input::json_body::JsonBytes;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const ADMIN: Policy = Policy::node(Guard::Admin);
    Routes::new().all(ADMIN, [routes!(get), routes!(put), routes!(delete)])
}

/// Shows the quota of every principal that has none of its own.
///
/// As long as nobody has set one it is half of all sessions that the cluster can have.
#[utoipa::path(get, path = "/v1/quotas/default", tag = "quotas", operation_id = "default_quota",
    responses(
        (status = 200, description = "The quota.", body = QuotaAnswer, example = json!({"bounds": {"sessions": 50000}, "state": "enforced", "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    body::get(&context, QuotaSubject::Default).await
}

/// Sets the quota of every principal that has none of its own. The same again changes nothing.
#[utoipa::path(put, path = "/v1/quotas/default", tag = "quotas", operation_id = "put_default_quota",
    request_body(content = QuotaRequest, content_type = "application/json", example = json!({"sessions": 1000, "locks": 5000})),
    responses(
        (status = 200, description = "The quota.", body = QuotaAnswer, example = json!({"bounds": {"sessions": 1000, "locks": 5000}, "set_revision": "12", "created": "2026-11-26T08:00:00.000Z", "revision": "12", "index": 20})),
        (status = 201, description = "The same, and nobody had set it before: `Location` is its path.", body = QuotaAnswer, example = json!({"bounds": {"sessions": 1000, "locks": 5000}, "set_revision": "12", "created": "2026-11-26T08:00:00.000Z", "revision": "12", "index": 20})),
        (status = 507, description = "`quota_exceeded`: the disk is nearly full or the cluster's quota used up; removals still work.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn put(context: Context, JsonBytes(json): JsonBytes) -> Outcome {
    body::put(&context, QuotaSubject::Default, &json, "/v1/quotas/default").await
}

/// Removes the quota that somebody set for every principal: what holds without an operator holds again.
#[utoipa::path(delete, path = "/v1/quotas/default", tag = "quotas", operation_id = "delete_default_quota",
    responses(
        (status = 200, description = "It is gone.", body = QuotaRemoved, example = json!({"revision": "22", "index": 34})),
        (status = 404, description = "`not_found`: nobody set one.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn delete(context: Context) -> Outcome {
    body::delete(&context, QuotaSubject::Default).await
}
