//! Roles: part of etcd's service `Auth`.
//!
//! Owns which of etcd's permissions has one of ours that means the same. Ours are on prefixes, and writing includes reading: what would
//! be more than was asked for is refused.

use bytes::Bytes;
use quorate_etcd_api::Error;
use quorate_etcd_api::auth::{
    AuthRoleAddRequest, AuthRoleAddResponse, AuthRoleDeleteRequest, AuthRoleDeleteResponse, AuthRoleGetRequest,
    AuthRoleGetResponse, AuthRoleGrantPermissionRequest, AuthRoleGrantPermissionResponse, AuthRoleListRequest,
    AuthRoleListResponse, AuthRoleRevokePermissionRequest, AuthRoleRevokePermissionResponse,
    Permission as EtcdPermission, PermissionType,
};
use quorate_machine::access::{Grant, Permission};
use quorate_machine::keyspace::after_prefix;
use quorate_machine::types::{AccessOp, RoleName, RoleRow};
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::freshness;
use tonic::Code;

use crate::auth::is_root;
use crate::header::{header, header_now};
use crate::paged;
use crate::status::{Status, known};
use crate::users::set;

/// Stands for all keys from the one before it on.
const TO_THE_END: &[u8] = &[0];

/// Makes a role that allows nothing yet.
pub async fn add(call: &Call, request: AuthRoleAddRequest) -> Result<AuthRoleAddResponse, Status> {
    if request.name.is_empty() {
        return Err(known(Error::RoleEmpty));
    }
    if is_root(&request.name) || find(call, &request.name).await?.is_some() {
        return Err(known(Error::RoleAlreadyExist));
    }
    let header = set(call, AccessOp::SetRole { name: name(&request.name)?, grants: Vec::new() }).await?;
    Ok(AuthRoleAddResponse { header: Some(header) })
}

/// Shows what a role allows.
pub async fn get(call: &Call, request: AuthRoleGetRequest) -> Result<AuthRoleGetResponse, Status> {
    let grants = match is_root(&request.role) {
        true => vec![Grant { permission: Permission::Admin, prefix: Vec::new() }],
        false => role(call, &request.role).await?.grants,
    };
    let header = Some(header_now(&call.api));
    Ok(AuthRoleGetResponse { header, perm: grants.iter().filter_map(shown).collect() })
}

/// Lists the roles.
pub async fn list(call: &Call, _: AuthRoleListRequest) -> Result<AuthRoleListResponse, Status> {
    let (names, revision) = paged::names(call, |node, after, limit| node.roles(after, limit)).await?;
    let roles = names.iter().map(ToString::to_string).collect();
    Ok(AuthRoleListResponse { header: Some(header(&call.api, revision)), roles })
}

/// Removes a role that no user has.
pub async fn delete(call: &Call, request: AuthRoleDeleteRequest) -> Result<AuthRoleDeleteResponse, Status> {
    if is_root(&request.role) {
        return Err(known(Error::InvalidAuthMgmt));
    }
    role(call, &request.role).await?;
    let header = set(call, AccessOp::RemoveRole(name(&request.role)?)).await?;
    Ok(AuthRoleDeleteResponse { header: Some(header) })
}

/// Lets a role do more.
pub async fn grant_permission(
    call: &Call,
    request: AuthRoleGrantPermissionRequest,
) -> Result<AuthRoleGrantPermissionResponse, Status> {
    let asked = request.perm.ok_or_else(|| known(Error::PermissionNotGiven))?;
    let mut grants = role(call, &request.name).await?.grants;
    let grant = grant(&asked)?;
    // Another permission on the same keys takes the place of the one before.
    grants.retain(|known| !is_of_entries(known.permission) || known.prefix != grant.prefix);
    grants.push(grant);
    let header = set(call, AccessOp::SetRole { name: name(&request.name)?, grants }).await?;
    Ok(AuthRoleGrantPermissionResponse { header: Some(header) })
}

/// Lets a role do less.
pub async fn revoke_permission(
    call: &Call,
    request: AuthRoleRevokePermissionRequest,
) -> Result<AuthRoleRevokePermissionResponse, Status> {
    let mut grants = role(call, &request.role).await?.grants;
    let had = grants.len();
    let prefix = prefix(&request.key, &request.range_end);
    grants.retain(|known| !is_of_entries(known.permission) || prefix != Some(&known.prefix));
    if grants.len() == had {
        return Err(known(Error::PermissionNotGranted));
    }
    let header = set(call, AccessOp::SetRole { name: name(&request.role)?, grants }).await?;
    Ok(AuthRoleRevokePermissionResponse { header: Some(header) })
}

fn name(text: &str) -> Result<RoleName, Status> {
    RoleName::new(text).map_err(|why| Status::invalid_argument(format!("quorate: {why}")))
}

/// A role as the cluster has it now.
async fn find(call: &Call, text: &str) -> Result<Option<RoleRow>, Status> {
    let Ok(name) = RoleName::new(text) else { return Ok(None) };
    freshness::refresh(&call.api.node, call.deadline).await?;
    let seen = call.api.node.role(&name).map_err(|fault| Failure::from_fault(&fault))?;
    Ok(seen.found)
}

async fn role(call: &Call, name: &str) -> Result<RoleRow, Status> {
    find(call, name).await?.ok_or_else(|| known(Error::RoleNotFound))
}

/// Whether etcd has a word for it.
fn is_of_entries(permission: Permission) -> bool {
    matches!(permission, Permission::Read | Permission::Write)
}

/// The prefix that a range of keys is; `None` where it is none.
fn prefix<'k>(key: &'k Bytes, range_end: &Bytes) -> Option<&'k [u8]> {
    match (&key[..], &range_end[..]) {
        ([] | [0], TO_THE_END) => Some(&[]),
        (_, []) => None,
        (key, TO_THE_END) => after_prefix(key).is_none().then_some(key),
        (key, end) => (after_prefix(key).as_deref() == Some(end)).then_some(key),
    }
}

fn grant(asked: &EtcdPermission) -> Result<Grant, Status> {
    let refused = |why: &str| Status::new(Code::FailedPrecondition, format!("quorate: {why}"));
    let permission = match PermissionType::try_from(asked.perm_type) {
        Ok(PermissionType::Read) => Permission::Read,
        Ok(PermissionType::Readwrite) => Permission::Write,
        Ok(PermissionType::Write) => {
            return Err(refused("who may write may read, too: grant `readwrite`, or nothing"));
        }
        Err(_) => return Err(known(Error::PermissionNotGiven)),
    };
    let prefix = prefix(&asked.key, &asked.range_end);
    let prefix = prefix
        .ok_or_else(|| refused("permissions are on prefixes: grant one with --prefix, or with --from-key on all"))?;
    Ok(Grant { permission, prefix: prefix.to_vec() })
}

/// As etcd shows it; `None` for what says nothing of keys.
fn shown(grant: &Grant) -> Option<EtcdPermission> {
    let perm_type = match grant.permission {
        Permission::Backup | Permission::Monitor => return None,
        // A lock is taken to act on what it protects; of entries it allows to read them.
        Permission::Read | Permission::Lock => PermissionType::Read,
        Permission::Write | Permission::Admin => PermissionType::Readwrite,
    };
    let end = after_prefix(&grant.prefix).unwrap_or_else(|| TO_THE_END.to_vec());
    Some(EtcdPermission {
        perm_type: perm_type as i32,
        key: if grant.prefix.is_empty() { TO_THE_END.to_vec().into() } else { grant.prefix.clone().into() },
        range_end: end.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ranges_that_are_prefixes_are() {
        let of = |key: &'static [u8], end: &'static [u8]| {
            prefix(&Bytes::from_static(key), &Bytes::from_static(end)).map(<[u8]>::to_vec)
        };
        assert_eq!(of(b"a/", b"a0"), Some(b"a/".to_vec()));
        assert_eq!([of(b"", b"\0"), of(b"\0", b"\0")], [Some(vec![]), Some(vec![])]);
        assert_eq!(of(b"\xff", b"\0"), Some(b"\xff".to_vec()));
        assert_eq!([of(b"a", b""), of(b"a", b"\0"), of(b"a", b"c"), of(b"a/", b"a/")], [None, None, None, None]);
    }

    #[test]
    fn what_was_granted_is_shown_again() {
        for prefix in [&b""[..], b"a/", b"\xff"] {
            for (kind, permission) in
                [(PermissionType::Read, Permission::Read), (PermissionType::Readwrite, Permission::Write)]
            {
                let ours = Grant { permission, prefix: prefix.to_vec() };
                let theirs = shown(&ours).expect("etcd has a word for it");
                assert_eq!((theirs.perm_type, grant(&theirs).ok()), (kind as i32, Some(ours)));
            }
        }
    }
}
