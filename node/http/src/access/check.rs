//! `/v1/access/check`: whether somebody may do something, without their doing it.
//!
//! Owns the question. The judgement is that of every request: [`Rights::allow`].

use std::borrow::Cow;

use quorate_api::{AccessCheckAnswer, Applied, ErrorCode, Permission as PermissionView, Problem};
use quorate_machine::access::{RequiredPermission, Rights};
use quorate_machine::types::UserName;
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::freshness;
use quorate_node_core::gateway::text::quoted;
use utoipa_axum::routes;

use crate::access::own;
use crate::command;
use crate::context::Context;
use crate::described::Common;
use crate::input::extract::Query;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    Routes::new().add(Policy::node(Guard::Known), routes!(get))
}

/// Says whether somebody may do something: the caller, or with `user` another one, about whom only those may ask who may administer
/// everything. Nothing is done.
#[utoipa::path(get, path = "/v1/access/check", tag = "access", operation_id = "may",
    params(
        ("permission" = PermissionView, Query, description = "What they would need.", example = "write"),
        ("name" = Option<String>, Query, description = "On this key or other name.", example = "orders/o42"),
        ("prefix" = Option<String>, Query, description = "Or on all names that begin so; empty for everything."),
        ("user" = Option<String>, Query, description = "Who; the caller without it."),
    ),
    responses(
        (status = 200, description = "The answer.", body = AccessCheckAnswer, example = json!({"user": "app", "permission": "write", "name": "orders/o42", "allowed": true, "access_revision": "12"})),
        (status = 404, description = "`not_found`: there is no such user.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let mut query = Query::parse(context.head.uri.query());
    let permission = query.text("permission");
    let (name, prefix) = (query.bytes("name"), query.bytes("prefix"));
    let user = query.text("user").map(Cow::into_owned);
    let permission =
        permission.and_then(|text| serde_json::from_value::<PermissionView>(text.into_owned().into()).ok());
    if permission.is_none() {
        query.faults.add("query:permission", "give read, write, lock, admin, backup or monitor");
    }
    if name.is_some() == prefix.is_some() {
        query.faults.add("query:name", "give either name or prefix; an empty prefix stands for everything");
    }
    query.finish()?;
    let Some(permission) = permission else { return Err(Failure::invalid("query:permission", "missing")) };
    freshness::refresh(&context.api.node, context.deadline).await?;
    let access_revision = context.api.node.access_revision();
    let (user, rights) = rights_of(&context, user)?;
    let needed = own::permission(permission);
    let allowed = match (&name, &prefix) {
        (Some(name), _) => rights.allow(&RequiredPermission::Name(needed, name)),
        (None, prefix) => rights.allow(&RequiredPermission::Prefix(needed, prefix.as_deref().unwrap_or_default())),
    };
    let (name, prefix) = (name.map(|name| name.into_owned().into()), prefix.map(|prefix| prefix.into_owned().into()));
    let answer = AccessCheckAnswer { user, permission, name, prefix, allowed, access_revision };
    command::answer(&answer, context.api.node.position().revision, None)
}

/// The rights of the caller, or of somebody whom the caller may ask about.
fn rights_of(context: &Context, user: Option<String>) -> Result<(Option<String>, Rights), Failure> {
    let caller = context.caller();
    let Some(user) = user else { return caller.rights() };
    caller.check_may_ask_about(&user)?;
    let name = UserName::new(user.as_str()).map_err(|why| Failure::invalid("query:user", why.to_string()))?;
    let found = context.api.node.rights_of(&name).map_err(|fault| Failure::from_fault(&fault))?;
    match found {
        Some(rights) => Ok((Some(user), rights)),
        None => {
            let detail = format!("there is no user {}", quoted(&user));
            Err(Failure::new(ErrorCode::NotFound, Applied::No, detail))
        }
    }
}
