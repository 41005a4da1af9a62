//! Entries and events.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::json;
use crate::json::named;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub key: Bytes,
    #[prost(int64, tag = "2")]
    #[serde(alias = "createRevision", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub create_revision: i64,
    #[prost(int64, tag = "3")]
    #[serde(alias = "modRevision", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub mod_revision: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "json::integer", skip_serializing_if = "json::is_default")]
    pub version: i64,
    #[prost(bytes = "bytes", tag = "5")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub value: Bytes,
    #[prost(int64, tag = "6")]
    #[serde(with = "json::integer", skip_serializing_if = "json::is_default")]
    pub lease: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum EventEventType {
    Put = 0,
    Delete = 1,
}

named!(EventEventType { Put = "PUT", Delete = "DELETE" });

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    #[prost(enumeration = "EventEventType", tag = "1")]
    #[serde(
        serialize_with = "json::name::serialize::<EventEventType, _>",
        deserialize_with = "json::name::deserialize::<EventEventType, _>",
        skip_serializing_if = "json::is_default"
    )]
    pub r#type: i32,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv: Option<KeyValue>,
    #[prost(message, optional, tag = "3")]
    #[serde(alias = "prevKv", skip_serializing_if = "Option::is_none")]
    pub prev_kv: Option<KeyValue>,
}
