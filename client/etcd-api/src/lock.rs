//! Locks by name (`v3lockpb`).

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::header::ResponseHeader;
use crate::json;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LockRequest {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub name: Bytes,
    #[prost(int64, tag = "2")]
    #[serde(with = "json::integer", skip_serializing_if = "json::is_default")]
    pub lease: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LockResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub key: Bytes,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct UnlockRequest {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub key: Bytes,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct UnlockResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}
