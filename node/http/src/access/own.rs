//! What requests about users, roles and tokens have in common, and `/v1/access/self`.
//!
//! Owns how names and grants are read and shown, and the way of an operation to what came of it. Never judges who may do
//! something.

use quorate_api::{Grant as GrantView, Permission as PermissionView, SelfAnswer};
use quorate_machine::access::{Grant, Permission};
use quorate_machine::limits::{KEY_BYTES_MAX, ROLE_GRANTS_MAX};
use quorate_machine::rules::NameError;
use quorate_machine::types::{AccessOp, AccessReply, Action, Outcome as Decided, Reply};
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::{decide, freshness, propose, text};
use utoipa_axum::routes;

use crate::command;
use crate::context::{Context, RequestContext};
use crate::described::Common;
use crate::input::extract::Faults;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

/// The route of one's own rights.
pub fn routes() -> Routes {
    Routes::new().add(Policy::node(Guard::Known), routes!(get_self))
}

/// Shows whom a node takes the caller for, and everything that one may do.
#[utoipa::path(get, path = "/v1/access/self", tag = "access", operation_id = "who_am_i",
    responses(
        (status = 200, description = "The caller. Where nodes ask nobody who they are, without `user`, and everything is allowed.", body = SelfAnswer, example = json!({"user": "app", "grants": [{"permission": "write", "prefix": "orders/"}], "access_revision": "12"})),
        Common,
    ))]
pub async fn get_self(context: Context) -> Outcome {
    freshness::refresh(&context.api.node, context.deadline).await?;
    let access_revision = context.api.node.access_revision();
    let (user, rights) = context.caller().rights()?;
    let answer = SelfAnswer { user, grants: grants_view(rights.grants()), access_revision };
    command::answer(&answer, context.api.node.position().revision, None)
}

/// Has the cluster carry out an operation; gives what came of it. `name` is that of its subject, for people.
pub async fn decide(context: &RequestContext, name: &str, op: AccessOp) -> Result<(Reply, AccessReply), Failure> {
    let mut reply = decide::decide(context, Action::Access(op), false).await?;
    match std::mem::replace(&mut reply.outcome, Decided::Deferred) {
        Decided::Access(done) => Ok((reply, *done)),
        Decided::Rejected(why) => Err(Failure::from_rejection(name, &reply, &why)),
        _ => Err(propose::confused(&reply)),
    }
}

/// A name in the rest of a path: all of it, slashes too.
pub fn path_name<T>(rest: &str, read: impl FnOnce(String) -> Result<T, NameError>) -> Result<T, Failure> {
    let text = text::percent_decode(rest).map_err(|why| Failure::invalid("path:name", why))?;
    read(text.into_owned()).map_err(|why| Failure::invalid("path:name", why.to_string()))
}

/// A name in a body; `None` where that is a fault.
pub fn name<T>(
    text: &str,
    pointer: &str,
    faults: &mut Faults,
    read: impl FnOnce(String) -> Result<T, NameError>,
) -> Option<T> {
    read(text.to_owned()).map_err(|why| faults.add(pointer, why.to_string())).ok()
}

/// Whether a list is within its bound, which is a fault if not.
pub fn bounded<T>(list: &[T], pointer: &str, max: usize, what: &str, faults: &mut Faults) {
    if list.len() > max {
        faults.add(pointer, format!("at most {max} {what}, these are {}", list.len()));
    }
}

/// The grants of a role in a body.
pub fn grants(grants: Vec<GrantView>, faults: &mut Faults) -> Vec<Grant> {
    bounded(&grants, "/grants", ROLE_GRANTS_MAX, "grants", faults);
    for (at, _) in grants.iter().enumerate().filter(|(_, grant)| grant.prefix.as_bytes().len() > KEY_BYTES_MAX) {
        faults.add(format!("/grants/{at}/prefix"), format!("longer than a key can be, {KEY_BYTES_MAX} bytes"));
    }
    let grant =
        |grant: GrantView| Grant { permission: permission(grant.permission), prefix: grant.prefix.into_bytes() };
    let grants: Vec<_> = grants.into_iter().map(grant).collect();
    let is_in_vain = |grant: &Grant| grant.permission.is_of_operators() && !grant.prefix.is_empty();
    for (at, _) in grants.iter().enumerate().filter(|(_, grant)| is_in_vain(grant)) {
        faults.add(
            format!("/grants/{at}/prefix"),
            "`backup` and `monitor` are for the whole cluster: leave the prefix empty",
        );
    }
    grants
}

/// A permission as requests name it.
pub fn permission(permission: PermissionView) -> Permission {
    match permission {
        PermissionView::Read => Permission::Read,
        PermissionView::Write => Permission::Write,
        PermissionView::Lock => Permission::Lock,
        PermissionView::Admin => Permission::Admin,
        PermissionView::Backup => Permission::Backup,
        PermissionView::Monitor => Permission::Monitor,
    }
}

/// Grants as answers show them.
pub fn grants_view(grants: &[Grant]) -> Vec<GrantView> {
    let view = |grant: &Grant| GrantView {
        permission: match grant.permission {
            Permission::Read => PermissionView::Read,
            Permission::Write => PermissionView::Write,
            Permission::Lock => PermissionView::Lock,
            Permission::Admin => PermissionView::Admin,
            Permission::Backup => PermissionView::Backup,
            Permission::Monitor => PermissionView::Monitor,
        },
        prefix: grant.prefix.as_slice().into(),
    };
    grants.iter().map(view).collect()
}
