//! `/v1/access/roles` and `/v1/access/roles/{name}`.
//!
//! Owns their bodies and their answers. What a change of roles does is decided where commands are applied.

use quorate_api::{Problem, RoleAnswer, RoleList, RoleRemoved, RoleRequest, path};
use quorate_machine::query::Observed;
use quorate_machine::types::{AccessOp, AccessReply, Reply, RoleName, RoleRow};
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::propose;
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::gateway::text::quoted;
use utoipa_axum::routes;

use crate::access::own;
use crate::command;
use crate::context::Context;
use crate::coordinate;
use crate::described::{Common, Page, Reused};
use crate::input::extract::Faults;
use crate::input::json_body::Json;
use crate::output::response::{Outcome, created};
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const ADMIN: Policy = Policy::node(Guard::Admin);
    Routes::new().all(ADMIN, [routes!(list), routes!(get), routes!(put), routes!(delete)])
}

/// Lists the roles, by name.
#[utoipa::path(get, path = "/v1/access/roles", tag = "access", operation_id = "roles",
    params(Page),
    responses(
        (status = 200, description = "A page.", body = RoleList, example = json!({"roles": [{"role": "orders", "grants": [{"permission": "write", "prefix": "orders/"}], "created": "2026-11-22T01:06:00.123Z", "set_revision": "12"}], "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn list(context: Context) -> Outcome {
    let (limit, after) = coordinate::page_of(&context, |text| RoleName::new(text).ok())?;
    context.admit_read(&requirement::on_prefix(Permission::Admin, b"")).await?;
    let Observed { at, found, .. } = scan(&context, move |backend| backend.roles(after.as_ref(), limit)).await?;
    let last = found.items.last().map(|(name, _)| name.to_string());
    let roles = found.items.iter().map(|(name, row)| view(name, row)).collect();
    let answer = RoleList { roles, cursor: last.filter(|_| found.more), revision: at.revision, index: at.index };
    command::answer(&answer, at.revision, None)
}

/// Shows a role.
#[utoipa::path(get, path = "/v1/access/roles/{name}", tag = "access", operation_id = "role",
    params(
        ("name" = String, Path, description = "The name, percent-encoded; slashes may stand as they are.", example = "orders", min_length = 1, max_length = 128),
    ),
    responses(
        (status = 200, description = "The role.", body = RoleAnswer, example = json!({"role": "orders", "grants": [{"permission": "write", "prefix": "orders/"}], "created": "2026-11-22T01:06:00.123Z", "set_revision": "12", "revision": "20", "index": 31})),
        (status = 404, description = "`not_found`: there is no such role.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let name = own::path_name(context.name(), RoleName::new)?;
    context.admit_read(&requirement::on_prefix(Permission::Admin, b"")).await?;
    let Observed { at, found, .. } = context.api.node.role(&name).map_err(|fault| Failure::from_fault(&fault))?;
    let missing = || command::missing(format!("there is no role {}", quoted(name.as_str())), at);
    let row = found.ok_or_else(missing)?;
    let answer = RoleAnswer { revision: Some(at.revision), index: Some(at.index), ..view(&name, &row) };
    command::answer(&answer, at.revision, None)
}

/// Makes a role, or gives one other grants: they hold at once for all who have it. The same again changes nothing.
#[utoipa::path(put, path = "/v1/access/roles/{name}", tag = "access", operation_id = "put_role",
    params(
        ("name" = String, Path, description = "The name, percent-encoded; slashes may stand as they are.", example = "orders", min_length = 1, max_length = 128),
    ),
    request_body(content = RoleRequest, content_type = "application/json", example = json!({"grants": [{"permission": "write", "prefix": "orders/"}]})),
    responses(
        (status = 200, description = "The role.", body = RoleAnswer, example = json!({"role": "orders", "grants": [{"permission": "write", "prefix": "orders/"}], "created": "2026-11-22T01:06:00.123Z", "set_revision": "12", "revision": "12", "index": 20})),
        (status = 201, description = "The same, and it was not there before: `Location` is its path.", body = RoleAnswer, example = json!({"role": "orders", "grants": [{"permission": "write", "prefix": "orders/"}], "created": "2026-11-22T01:06:00.123Z", "set_revision": "12", "revision": "12", "index": 20})),
        (status = 507, description = "`quota_exceeded`: the quota is used up or a disk nearly full; removals still work.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn put(context: Context, Json(request): Json<RoleRequest>) -> Outcome {
    let name = own::path_name(context.name(), RoleName::new)?;
    let mut faults = Faults::default();
    let grants = own::grants(request.grants, &mut faults);
    context.with_request_id(request.request_id, faults.check())?;
    let is_new = command::is_absent(&context, |backend| backend.role(&name)).await?;
    let op = AccessOp::SetRole { name: name.clone(), grants };
    match own::decide(&context, name.as_str(), op).await? {
        (Reply { revision, index, replayed, .. }, AccessReply::Role(row)) => {
            let at = (Some(revision), Some(index));
            let answer = RoleAnswer { revision: at.0, index: at.1, replayed, ..view(&name, &row) };
            let shown = command::answer(&answer, revision, None)?;
            let location = || format!("/v1/access/roles/{}", path::encode(name.as_str()));
            Ok(if is_new && !replayed { created(shown, location()) } else { shown })
        }
        (reply, _) => Err(propose::confused(&reply)),
    }
}

/// Removes a role that no user has.
#[utoipa::path(delete, path = "/v1/access/roles/{name}", tag = "access", operation_id = "delete_role",
    params(
        ("name" = String, Path, description = "The name, percent-encoded; slashes may stand as they are.", example = "orders", min_length = 1, max_length = 128),
    ),
    responses(
        (status = 200, description = "It is gone.", body = RoleRemoved, example = json!({"role": "orders", "revision": "22", "index": 34})),
        (status = 404, description = "`not_found`: there is no such role.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "`in_use`: a user has it; `detail` names one. `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn delete(context: Context) -> Outcome {
    let name = own::path_name(context.name(), RoleName::new)?;
    match own::decide(&context, name.as_str(), AccessOp::RemoveRole(name.clone())).await? {
        (Reply { revision, index, replayed, .. }, AccessReply::Removed { .. }) => {
            let answer = RoleRemoved { role: name.to_string(), revision, index, replayed };
            command::answer(&answer, revision, None)
        }
        (reply, _) => Err(propose::confused(&reply)),
    }
}

/// A role as a list shows it.
fn view(name: &RoleName, row: &RoleRow) -> RoleAnswer {
    RoleAnswer {
        role: name.to_string(),
        grants: own::grants_view(&row.grants),
        created: coordinate::moment(row.created),
        set_revision: row.revision,
        revision: None,
        index: None,
        replayed: false,
    }
}
