//! Users: part of etcd's service `Auth`.
//!
//! Owns what a change of one role is in terms of ours, which set all roles of a user at once: two changes of one user at the same time
//! may lose one of the two.

use quorate_etcd_api::Error;
use quorate_etcd_api::auth::{
    AuthUserAddRequest, AuthUserAddResponse, AuthUserChangePasswordRequest, AuthUserChangePasswordResponse,
    AuthUserDeleteRequest, AuthUserDeleteResponse, AuthUserGetRequest, AuthUserGetResponse, AuthUserGrantRoleRequest,
    AuthUserGrantRoleResponse, AuthUserListRequest, AuthUserListResponse, AuthUserRevokeRoleRequest,
    AuthUserRevokeRoleResponse,
};
use quorate_etcd_api::header::ResponseHeader;
use quorate_machine::types::{AccessOp, Action, Outcome, RoleName, UserName, UserRow};
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::freshness;
use tonic::Code;

use crate::auth::is_root;
use crate::header::{header, header_now};
use crate::paged;
use crate::status::{self, Status, known};

const NO_PASSWORDS: &str = "quorate: users have tokens and no passwords: add one without (--no-user-password), give it a token \
                            (quorate token create), and let its clients use that as its password";

/// Makes a user.
pub async fn add(call: &Call, request: AuthUserAddRequest) -> Result<AuthUserAddResponse, Status> {
    let has_password = !request.password.is_empty() || !request.hashed_password.is_empty();
    if request.name.is_empty() {
        return Err(known(Error::UserEmpty));
    }
    if is_root(&request.name) || find(call, &request.name).await?.is_some() {
        return Err(known(Error::UserAlreadyExist));
    }
    if has_password {
        return Err(Status::new(Code::FailedPrecondition, NO_PASSWORDS));
    }
    let header = set(call, AccessOp::SetUser { name: name(&request.name)?, roles: Vec::new() }).await?;
    Ok(AuthUserAddResponse { header: Some(header) })
}

/// Shows the roles of a user.
pub async fn get(call: &Call, request: AuthUserGetRequest) -> Result<AuthUserGetResponse, Status> {
    let roles = match is_root(&request.name) {
        true => vec![request.name],
        false => user(call, &request.name).await?.roles.iter().map(ToString::to_string).collect(),
    };
    Ok(AuthUserGetResponse { header: Some(header_now(&call.api)), roles })
}

/// Lists the users.
pub async fn list(call: &Call, _: AuthUserListRequest) -> Result<AuthUserListResponse, Status> {
    let (names, revision) = paged::names(call, |node, after, limit| node.users(after, limit)).await?;
    let users = names.iter().map(ToString::to_string).collect();
    Ok(AuthUserListResponse { header: Some(header(&call.api, revision)), users })
}

/// Removes a user, with its tokens.
pub async fn delete(call: &Call, request: AuthUserDeleteRequest) -> Result<AuthUserDeleteResponse, Status> {
    if is_root(&request.name) {
        return Err(known(Error::InvalidAuthMgmt));
    }
    user(call, &request.name).await?;
    let header = set(call, AccessOp::RemoveUser(name(&request.name)?)).await?;
    Ok(AuthUserDeleteResponse { header: Some(header) })
}

/// Refused: there are no passwords.
pub async fn change_password(
    call: &Call,
    request: AuthUserChangePasswordRequest,
) -> Result<AuthUserChangePasswordResponse, Status> {
    user(call, &request.name).await?;
    Err(Status::new(Code::FailedPrecondition, NO_PASSWORDS))
}

/// Gives a user one more role.
pub async fn grant_role(call: &Call, request: AuthUserGrantRoleRequest) -> Result<AuthUserGrantRoleResponse, Status> {
    let mut roles = user(call, &request.user).await?.roles;
    let role = RoleName::new(request.role).map_err(|_| known(Error::RoleNotFound))?;
    if call.api.node.role(&role).map_err(|fault| Failure::from_fault(&fault))?.found.is_none() {
        return Err(known(Error::RoleNotFound));
    }
    if !roles.contains(&role) {
        roles.push(role);
    }
    let header = set(call, AccessOp::SetUser { name: name(&request.user)?, roles }).await?;
    Ok(AuthUserGrantRoleResponse { header: Some(header) })
}

/// Takes a role from a user.
pub async fn revoke_role(
    call: &Call,
    request: AuthUserRevokeRoleRequest,
) -> Result<AuthUserRevokeRoleResponse, Status> {
    let mut roles = user(call, &request.name).await?.roles;
    let had = roles.len();
    roles.retain(|role| role.as_str() != request.role);
    if roles.len() == had {
        return Err(known(Error::RoleNotGranted));
    }
    let header = set(call, AccessOp::SetUser { name: name(&request.name)?, roles }).await?;
    Ok(AuthUserRevokeRoleResponse { header: Some(header) })
}

fn name(text: &str) -> Result<UserName, Status> {
    UserName::new(text).map_err(|why| Status::invalid_argument(format!("quorate: {why}")))
}

/// A user as the cluster has it now.
async fn find(call: &Call, text: &str) -> Result<Option<UserRow>, Status> {
    let Ok(name) = UserName::new(text) else { return Ok(None) };
    freshness::refresh(&call.api.node, call.deadline).await?;
    let seen = call.api.node.user(&name).map_err(|fault| Failure::from_fault(&fault))?;
    Ok(seen.found)
}

async fn user(call: &Call, name: &str) -> Result<UserRow, Status> {
    find(call, name).await?.ok_or_else(|| known(Error::UserNotFound))
}

/// Has the cluster carry out a change of users or roles.
pub async fn set(call: &Call, op: AccessOp) -> Result<ResponseHeader, Status> {
    let reply = decide(call, Action::Access(op), false).await?;
    match &reply.outcome {
        Outcome::Access(_) => Ok(header(&call.api, reply.revision)),
        _ => Err(status::of_reply("", &reply)),
    }
}
