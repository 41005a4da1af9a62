//! Users, roles and their permissions.

use super::header::ResponseHeader;
use crate::define::{enumeration, messages};

messages! {
    UserAddOptions {
        1 no_password: bool [alias = "noPassword"],
    }
}

enumeration!(PermissionType { Read = 0 "READ", Write = 1 "WRITE", Readwrite = 2 "READWRITE" });

messages! {
    Permission {
        1 perm_type: enumeration "PermissionType" [rename = "permType"],
        2 key: bytes,
        3 range_end: bytes [alias = "rangeEnd"],
    }

    AuthEnableRequest {}

    AuthDisableRequest {}

    AuthStatusRequest {}

    AuthenticateRequest {
        1 name: string,
        2 password: string,
    }

    AuthUserAddRequest {
        1 name: string,
        2 password: string,
        3 options: optional UserAddOptions,
        4 hashed_password: string [rename = "hashedPassword"],
    }

    AuthUserGetRequest {
        1 name: string,
    }

    AuthUserDeleteRequest {
        1 name: string,
    }

    AuthUserChangePasswordRequest {
        1 name: string,
        2 password: string,
        3 hashed_password: string [rename = "hashedPassword"],
    }

    AuthUserGrantRoleRequest {
        1 user: string,
        2 role: string,
    }

    AuthUserRevokeRoleRequest {
        1 name: string,
        2 role: string,
    }

    AuthRoleAddRequest {
        1 name: string,
    }

    AuthRoleGetRequest {
        1 role: string,
    }

    AuthUserListRequest {}

    AuthRoleListRequest {}

    AuthRoleDeleteRequest {
        1 role: string,
    }

    AuthRoleGrantPermissionRequest {
        1 name: string,
        2 perm: optional Permission,
    }

    AuthRoleRevokePermissionRequest {
        1 role: string,
        2 key: bytes,
        3 range_end: bytes [alias = "rangeEnd"],
    }

    AuthEnableResponse {
        1 header: optional ResponseHeader,
    }

    AuthDisableResponse {
        1 header: optional ResponseHeader,
    }

    AuthStatusResponse {
        1 header: optional ResponseHeader,
        2 enabled: bool,
        3 auth_revision: uint64 [rename = "authRevision"],
    }

    AuthenticateResponse {
        1 header: optional ResponseHeader,
        2 token: string,
    }

    AuthUserAddResponse {
        1 header: optional ResponseHeader,
    }

    AuthUserGetResponse {
        1 header: optional ResponseHeader,
        2 roles: repeated string,
    }

    AuthUserDeleteResponse {
        1 header: optional ResponseHeader,
    }

    AuthUserChangePasswordResponse {
        1 header: optional ResponseHeader,
    }

    AuthUserGrantRoleResponse {
        1 header: optional ResponseHeader,
    }

    AuthUserRevokeRoleResponse {
        1 header: optional ResponseHeader,
    }

    AuthRoleAddResponse {
        1 header: optional ResponseHeader,
    }

    AuthRoleGetResponse {
        1 header: optional ResponseHeader,
        2 perm: repeated Permission,
    }

    AuthRoleListResponse {
        1 header: optional ResponseHeader,
        2 roles: repeated string,
    }

    AuthUserListResponse {
        1 header: optional ResponseHeader,
        2 users: repeated string,
    }

    AuthRoleDeleteResponse {
        1 header: optional ResponseHeader,
    }

    AuthRoleGrantPermissionResponse {
        1 header: optional ResponseHeader,
    }

    AuthRoleRevokePermissionResponse {
        1 header: optional ResponseHeader,
    }
}
