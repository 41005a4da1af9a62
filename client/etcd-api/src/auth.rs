//! Users, roles and their permissions.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::header::ResponseHeader;
use crate::json;
use crate::json::named;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct UserAddOptions {
    #[prost(bool, tag = "1")]
    #[serde(alias = "noPassword", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub no_password: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct User {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub name: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub password: Bytes,
    #[prost(string, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub roles: Vec<String>,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<UserAddOptions>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum PermissionType {
    Read = 0,
    Write = 1,
    Readwrite = 2,
}

named!(PermissionType { Read = "READ", Write = "WRITE", Readwrite = "READWRITE" });

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Permission {
    #[prost(enumeration = "PermissionType", tag = "1")]
    #[serde(
        rename = "permType",
        serialize_with = "json::name::serialize::<PermissionType, _>",
        deserialize_with = "json::name::deserialize::<PermissionType, _>",
        skip_serializing_if = "json::is_default"
    )]
    pub perm_type: i32,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(alias = "rangeEnd", with = "json::base64", skip_serializing_if = "json::is_default")]
    pub range_end: Bytes,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Role {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub name: Bytes,
    #[prost(message, repeated, tag = "2")]
    #[serde(rename = "keyPermission", skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub key_permission: Vec<Permission>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthEnableRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthDisableRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthStatusRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub password: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserAddRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub password: String,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<UserAddOptions>,
    #[prost(string, tag = "4")]
    #[serde(rename = "hashedPassword", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub hashed_password: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserGetRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserDeleteRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserChangePasswordRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub password: String,
    #[prost(string, tag = "3")]
    #[serde(rename = "hashedPassword", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub hashed_password: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserGrantRoleRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub user: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub role: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserRevokeRoleRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub role: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthRoleAddRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthRoleGetRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub role: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserListRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthRoleListRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthRoleDeleteRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub role: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthRoleGrantPermissionRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub perm: Option<Permission>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthRoleRevokePermissionRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub role: String,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(alias = "rangeEnd", with = "json::base64", skip_serializing_if = "json::is_default")]
    pub range_end: Bytes,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthEnableResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthDisableResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthStatusResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub enabled: bool,
    #[prost(uint64, tag = "3")]
    #[serde(rename = "authRevision", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub auth_revision: u64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthenticateResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub token: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserAddResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserGetResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(string, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub roles: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserDeleteResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserChangePasswordResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserGrantRoleResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserRevokeRoleResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthRoleAddResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthRoleGetResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub perm: Vec<Permission>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthRoleListResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(string, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub roles: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthUserListResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(string, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub users: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthRoleDeleteResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthRoleGrantPermissionResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthRoleRevokePermissionResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}
