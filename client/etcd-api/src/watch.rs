//! Watches.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::entry::Event;
use super::header::ResponseHeader;
use crate::json;
use crate::json::named;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(try_from = "WatchRequestRead")]
pub struct WatchRequest {
    #[prost(oneof = "WatchRequestRequestUnion", tags = "1, 2, 3")]
    #[serde(flatten)]
    pub request_union: Option<WatchRequestRequestUnion>,
}

#[derive(Clone, PartialEq, prost::Oneof, Serialize)]
pub enum WatchRequestRequestUnion {
    #[prost(message, tag = "1")]
    #[serde(rename = "create_request", alias = "createRequest")]
    CreateRequest(WatchCreateRequest),
    #[prost(message, tag = "2")]
    #[serde(rename = "cancel_request", alias = "cancelRequest")]
    CancelRequest(WatchCancelRequest),
    #[prost(message, tag = "3")]
    #[serde(rename = "progress_request", alias = "progressRequest")]
    ProgressRequest(WatchProgressRequest),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum WatchCreateRequestFilterType {
    Noput = 0,
    Nodelete = 1,
}

named!(WatchCreateRequestFilterType { Noput = "NOPUT", Nodelete = "NODELETE" });

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchCreateRequest {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(alias = "rangeEnd", with = "json::base64", skip_serializing_if = "json::is_default")]
    pub range_end: Bytes,
    #[prost(int64, tag = "3")]
    #[serde(alias = "startRevision", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub start_revision: i64,
    #[prost(bool, tag = "4")]
    #[serde(alias = "progressNotify", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub progress_notify: bool,
    #[prost(enumeration = "WatchCreateRequestFilterType", repeated, tag = "5")]
    #[serde(
        serialize_with = "json::names::serialize::<WatchCreateRequestFilterType, _>",
        deserialize_with = "json::names::deserialize::<WatchCreateRequestFilterType, _>",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub filters: Vec<i32>,
    #[prost(bool, tag = "6")]
    #[serde(alias = "prevKv", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub prev_kv: bool,
    #[prost(int64, tag = "7")]
    #[serde(alias = "watchId", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub watch_id: i64,
    #[prost(bool, tag = "8")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub fragment: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchCancelRequest {
    #[prost(int64, tag = "1")]
    #[serde(alias = "watchId", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub watch_id: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchProgressRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(int64, tag = "2")]
    #[serde(alias = "watchId", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub watch_id: i64,
    #[prost(bool, tag = "3")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub created: bool,
    #[prost(bool, tag = "4")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub canceled: bool,
    #[prost(int64, tag = "5")]
    #[serde(alias = "compactRevision", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub compact_revision: i64,
    #[prost(string, tag = "6")]
    #[serde(alias = "cancelReason", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub cancel_reason: String,
    #[prost(bool, tag = "7")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub fragment: bool,
    #[prost(message, repeated, tag = "11")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub events: Vec<Event>,
}

/// As it is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WatchRequestRead {
    #[serde(alias = "createRequest")]
    create_request: Option<WatchCreateRequest>,
    #[serde(alias = "cancelRequest")]
    cancel_request: Option<WatchCancelRequest>,
    #[serde(alias = "progressRequest")]
    progress_request: Option<WatchProgressRequest>,
}

impl TryFrom<WatchRequestRead> for WatchRequest {
    type Error = &'static str;

    fn try_from(read: WatchRequestRead) -> Result<Self, &'static str> {
        let request_union = json::one_of([
            read.create_request.map(WatchRequestRequestUnion::CreateRequest),
            read.cancel_request.map(WatchRequestRequestUnion::CancelRequest),
            read.progress_request.map(WatchRequestRequestUnion::ProgressRequest),
        ])?;
        Ok(Self { request_union })
    }
}
