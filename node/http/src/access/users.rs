//! `/v1/access/users` and `/v1/access/users/{name}`.
//!
//! Owns their bodies and their answers. What a change of users does is decided where commands are applied.

use quorate_api::{Problem, UserAnswer, UserList, UserRemoved, UserRequest, path};
use quorate_machine::limits::USER_ROLES_MAX;
use quorate_machine::query::Observed;
use quorate_machine::types::{AccessOp, AccessReply, Reply, RoleName, UserName, UserRow};
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

/// Lists the users, by name.
#[utoipa::path(get, path = "/v1/access/users", tag = "access", operation_id = "users",
    params(Page),
    responses(
        (status = 200, description = "A page.", body = UserList, example = json!({"users": [{"user": "app", "roles": ["orders"], "created": "2026-11-22T01:06:00.123Z", "set_revision": "12"}], "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn list(context: Context) -> Outcome {
    let (limit, after) = coordinate::page_of(&context, |text| UserName::new(text).ok())?;
    context.admit_read(&requirement::on_prefix(Permission::Admin, b"")).await?;
    let Observed { at, found, .. } = scan(&context, move |backend| backend.users(after.as_ref(), limit)).await?;
    let last = found.items.last().map(|(name, _)| name.to_string());
    let users = found.items.iter().map(|(name, row)| view(name, row)).collect();
    let answer = UserList { users, cursor: last.filter(|_| found.more), revision: at.revision, index: at.index };
    command::answer(&answer, at.revision, None)
}

/// Shows a user.
#[utoipa::path(get, path = "/v1/access/users/{name}", tag = "access", operation_id = "user",
    params(
        ("name" = String, Path, description = "The name, percent-encoded; slashes may stand as they are.", example = "app", min_length = 1, max_length = 128),
    ),
    responses(
        (status = 200, description = "The user.", body = UserAnswer, example = json!({"user": "app", "roles": ["orders"], "created": "2026-11-22T01:06:00.123Z", "set_revision": "12", "revision": "20", "index": 31})),
        (status = 404, description = "`not_found`: there is no such user.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let name = own::path_name(context.name(), UserName::new)?;
    context.admit_read(&requirement::on_prefix(Permission::Admin, b"")).await?;
    let Observed { at, found, .. } = context.api.node.user(&name).map_err(|fault| Failure::from_fault(&fault))?;
    let missing = || command::missing(format!("there is no user {}", quoted(name.as_str())), at);
    let row = found.ok_or_else(missing)?;
    let answer = UserAnswer { revision: Some(at.revision), index: Some(at.index), ..view(&name, &row) };
    command::answer(&answer, at.revision, None)
}

/// Makes a user, or gives one other roles. The same again changes nothing.
///
/// `root` is the user that there always is, with every right; no other can be called so.
#[utoipa::path(put, path = "/v1/access/users/{name}", tag = "access", operation_id = "put_user",
    params(
        ("name" = String, Path, description = "The name, percent-encoded; slashes may stand as they are.", example = "app", min_length = 1, max_length = 128),
    ),
    request_body(content = UserRequest, content_type = "application/json", example = json!({"roles": ["orders"]})),
    responses(
        (status = 200, description = "The user.", body = UserAnswer, example = json!({"user": "app", "roles": ["orders"], "created": "2026-11-22T01:06:00.123Z", "set_revision": "12", "revision": "12", "index": 20})),
        (status = 201, description = "The same, and it was not there before: `Location` is its path.", body = UserAnswer, example = json!({"user": "app", "roles": ["orders"], "created": "2026-11-22T01:06:00.123Z", "set_revision": "12", "revision": "12", "index": 20})),
        (status = 404, description = "`not_found`: there is no such role; `detail` names it.", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "`quota_exceeded`: the quota is used up or a disk nearly full; removals still work.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn put(context: Context, Json(request): Json<UserRequest>) -> Outcome {
    let name = own::path_name(context.name(), UserName::new)?;
    let roles = roles_of(&request.roles);
    let roles = context.with_request_id(request.request_id, roles)?;
    let is_new = command::is_absent(&context, |backend| backend.user(&name)).await?;
    let op = AccessOp::SetUser { name: name.clone(), roles };
    match own::decide(&context, name.as_str(), op).await? {
        (Reply { revision, index, replayed, .. }, AccessReply::User(row)) => {
            let at = (Some(revision), Some(index));
            let answer = UserAnswer { revision: at.0, index: at.1, replayed, ..view(&name, &row) };
            let shown = command::answer(&answer, revision, None)?;
            let location = || format!("/v1/access/users/{}", path::encode(name.as_str()));
            Ok(if is_new && !replayed { created(shown, location()) } else { shown })
        }
        (reply, _) => Err(propose::confused(&reply)),
    }
}

/// Removes a user, and its tokens with it. Whoever shows one of them is nobody from now on.
#[utoipa::path(delete, path = "/v1/access/users/{name}", tag = "access", operation_id = "delete_user",
    params(
        ("name" = String, Path, description = "The name, percent-encoded; slashes may stand as they are.", example = "app", min_length = 1, max_length = 128),
    ),
    responses(
        (status = 200, description = "It is gone.", body = UserRemoved, example = json!({"user": "app", "tokens": 2, "revision": "22", "index": 34})),
        (status = 404, description = "`not_found`: there is no such user.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn delete(context: Context) -> Outcome {
    let name = own::path_name(context.name(), UserName::new)?;
    match own::decide(&context, name.as_str(), AccessOp::RemoveUser(name.clone())).await? {
        (Reply { revision, index, replayed, .. }, AccessReply::Removed { tokens }) => {
            let answer = UserRemoved { user: name.to_string(), tokens: tokens.into(), revision, index, replayed };
            command::answer(&answer, revision, None)
        }
        (reply, _) => Err(propose::confused(&reply)),
    }
}

fn roles_of(names: &[String]) -> Result<Vec<RoleName>, Failure> {
    let mut faults = Faults::default();
    own::bounded(names, "/roles", USER_ROLES_MAX, "names of roles", &mut faults);
    let names = names.iter().enumerate();
    let roles =
        names.filter_map(|(at, name)| own::name(name, &format!("/roles/{at}"), &mut faults, RoleName::new)).collect();
    faults.check()?;
    Ok(roles)
}

/// A user as a list shows it.
fn view(name: &UserName, row: &UserRow) -> UserAnswer {
    UserAnswer {
        user: name.to_string(),
        roles: row.roles.iter().map(ToString::to_string).collect(),
        created: coordinate::moment(row.created),
        set_revision: row.revision,
        revision: None,
        index: None,
        replayed: false,
    }
}
