//! Leases.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::header::ResponseHeader;
use crate::json;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseGrantRequest {
    #[prost(int64, tag = "1")]
    #[serde(rename = "TTL", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub ttl: i64,
    #[prost(int64, tag = "2")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseGrantResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(int64, tag = "2")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: i64,
    #[prost(int64, tag = "3")]
    #[serde(rename = "TTL", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub ttl: i64,
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub error: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseRevokeRequest {
    #[prost(int64, tag = "1")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseRevokeResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseCheckpoint {
    #[prost(int64, tag = "1")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: i64,
    #[prost(int64, tag = "2")]
    #[serde(
        rename = "remaining_TTL",
        alias = "remainingTTL",
        with = "json::integer",
        skip_serializing_if = "json::is_default"
    )]
    pub remaining_ttl: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseCheckpointRequest {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub checkpoints: Vec<LeaseCheckpoint>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseCheckpointResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseKeepAliveRequest {
    #[prost(int64, tag = "1")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseKeepAliveResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(int64, tag = "2")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: i64,
    #[prost(int64, tag = "3")]
    #[serde(rename = "TTL", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub ttl: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseTimeToLiveRequest {
    #[prost(int64, tag = "1")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: i64,
    #[prost(bool, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub keys: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseTimeToLiveResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(int64, tag = "2")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: i64,
    #[prost(int64, tag = "3")]
    #[serde(rename = "TTL", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub ttl: i64,
    #[prost(int64, tag = "4")]
    #[serde(rename = "grantedTTL", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub granted_ttl: i64,
    #[prost(bytes = "bytes", repeated, tag = "5")]
    #[serde(skip_serializing_if = "Vec::is_empty", with = "json::base64_list")]
    pub keys: Vec<Bytes>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseLeasesRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseStatus {
    #[prost(int64, tag = "1")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseLeasesResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub leases: Vec<LeaseStatus>,
}
