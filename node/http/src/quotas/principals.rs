//! `/v1/quotas/principals` and `/v1/quotas/principals/{name}`: what single principals may have.

use quorate_api::{Problem, QuotaAnswer, QuotaList, QuotaRemoved, QuotaRequest, path};
use quorate_machine::limits::ACCESS_NAME_BYTES_MAX;
use quorate_machine::types::QuotaSubject;
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::scan::scan;
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

/// Lists principals that have a quota of their own or use something, by name.
#[utoipa::path(get, path = "/v1/quotas/principals", tag = "quotas", operation_id = "principal_quotas",
    params(Page),
    responses(
        (status = 200, description = "A page.", body = QuotaList, example = json!({"quotas": [{"principal": "ann", "bounds": {"sessions": 50000}, "used": {"sessions": 2, "locks": 1}, "state": "enforced", "is_default": true}], "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn list(context: Context) -> Outcome {
    let (limit, after) = coordinate::page_of(&context, |text| Some(text.to_owned()))?;
    context.admit_read(&requirement::on_prefix(Permission::Admin, b"")).await?;
    let seen = scan(&context, move |backend| backend.principal_quotas(after.as_deref(), limit)).await?;
    body::list(&seen)
}

/// Shows the quota of a principal, with what it uses: its own, or that of every principal.
#[utoipa::path(get, path = "/v1/quotas/principals/{name}", tag = "quotas", operation_id = "principal_quota",
    params(
        ("name" = String, Path, description = "The name of the user, percent-encoded; slashes may stand as they are.", example = "ann", min_length = 1, max_length = 128),
    ),
    responses(
        (status = 200, description = "The quota.", body = QuotaAnswer, example = json!({"principal": "ann", "bounds": {"sessions": 50000}, "used": {"sessions": 2, "locks": 1}, "state": "enforced", "is_default": true, "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    body::get(&context, QuotaSubject::Principal(name(context.name())?)).await
}

/// Sets the quota of a principal. What it has beyond it already stays. The same again changes nothing.
#[utoipa::path(put, path = "/v1/quotas/principals/{name}", tag = "quotas", operation_id = "put_principal_quota",
    params(
        ("name" = String, Path, description = "The name of the user, percent-encoded; slashes may stand as they are.", example = "ann", min_length = 1, max_length = 128),
    ),
    request_body(content = QuotaRequest, content_type = "application/json", example = json!({"sessions": 100, "locks": 50})),
    responses(
        (status = 200, description = "The quota.", body = QuotaAnswer, example = json!({"principal": "ann", "bounds": {"sessions": 100, "locks": 50}, "set_revision": "12", "created": "2026-11-26T08:00:00.000Z", "revision": "12", "index": 20})),
        (status = 201, description = "The same, and it had none of its own before: `Location` is its path.", body = QuotaAnswer, example = json!({"principal": "ann", "bounds": {"sessions": 100, "locks": 50}, "set_revision": "12", "created": "2026-11-26T08:00:00.000Z", "revision": "12", "index": 20})),
        (status = 413, description = "`too_large`: 10,000 principals have a quota of their own.", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "`quota_exceeded`: the disk is nearly full or the cluster's quota used up; removals still work.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn put(context: Context, JsonBytes(json): JsonBytes) -> Outcome {
    let name = name(context.name())?;
    let path = format!("/v1/quotas/principals/{}", path::encode(&name));
    body::put(&context, QuotaSubject::Principal(name), &json, &path).await
}

/// Removes the quota of a principal: from now on it has that of every principal.
#[utoipa::path(delete, path = "/v1/quotas/principals/{name}", tag = "quotas", operation_id = "delete_principal_quota",
    params(
        ("name" = String, Path, description = "The name of the user, percent-encoded; slashes may stand as they are.", example = "ann", min_length = 1, max_length = 128),
    ),
    responses(
        (status = 200, description = "It is gone.", body = QuotaRemoved, example = json!({"principal": "ann", "revision": "22", "index": 34})),
        (status = 404, description = "`not_found`: it has none of its own.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn delete(context: Context) -> Outcome {
    body::delete(&context, QuotaSubject::Principal(name(context.name())?)).await
}

/// The principal in the rest of a path. It need not be a user yet, and may be `root`.
fn name(rest: &str) -> Result<String, Failure> {
    let name = body::name_in_path(rest, "path:name", ACCESS_NAME_BYTES_MAX)?;
    String::from_utf8(name).map_err(|_| Failure::invalid("path:name", "not UTF-8 once decoded"))
}
