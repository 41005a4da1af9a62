//! What an operator asks for.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::header::ResponseHeader;
use crate::json;
use crate::json::named;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HashRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HashKVRequest {
    #[prost(int64, tag = "1")]
    #[serde(with = "json::integer", skip_serializing_if = "json::is_default")]
    pub revision: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HashKVResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(uint32, tag = "2")]
    #[serde(deserialize_with = "json::integer::deserialize", skip_serializing_if = "json::is_default")]
    pub hash: u32,
    #[prost(int64, tag = "3")]
    #[serde(alias = "compactRevision", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub compact_revision: i64,
    #[prost(int64, tag = "4")]
    #[serde(alias = "hashRevision", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub hash_revision: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HashResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(uint32, tag = "2")]
    #[serde(deserialize_with = "json::integer::deserialize", skip_serializing_if = "json::is_default")]
    pub hash: u32,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SnapshotRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SnapshotResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(uint64, tag = "2")]
    #[serde(alias = "remainingBytes", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub remaining_bytes: u64,
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub blob: Bytes,
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub version: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DefragmentRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DefragmentResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MoveLeaderRequest {
    #[prost(uint64, tag = "1")]
    #[serde(rename = "targetID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub target_id: u64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MoveLeaderResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum AlarmType {
    None = 0,
    Nospace = 1,
    Corrupt = 2,
}

named!(AlarmType { None = "NONE", Nospace = "NOSPACE", Corrupt = "CORRUPT" });

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum AlarmRequestAlarmAction {
    Get = 0,
    Activate = 1,
    Deactivate = 2,
}

named!(AlarmRequestAlarmAction { Get = "GET", Activate = "ACTIVATE", Deactivate = "DEACTIVATE" });

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AlarmRequest {
    #[prost(enumeration = "AlarmRequestAlarmAction", tag = "1")]
    #[serde(
        serialize_with = "json::name::serialize::<AlarmRequestAlarmAction, _>",
        deserialize_with = "json::name::deserialize::<AlarmRequestAlarmAction, _>",
        skip_serializing_if = "json::is_default"
    )]
    pub action: i32,
    #[prost(uint64, tag = "2")]
    #[serde(rename = "memberID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub member_id: u64,
    #[prost(enumeration = "AlarmType", tag = "3")]
    #[serde(
        serialize_with = "json::name::serialize::<AlarmType, _>",
        deserialize_with = "json::name::deserialize::<AlarmType, _>",
        skip_serializing_if = "json::is_default"
    )]
    pub alarm: i32,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AlarmMember {
    #[prost(uint64, tag = "1")]
    #[serde(rename = "memberID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub member_id: u64,
    #[prost(enumeration = "AlarmType", tag = "2")]
    #[serde(
        serialize_with = "json::name::serialize::<AlarmType, _>",
        deserialize_with = "json::name::deserialize::<AlarmType, _>",
        skip_serializing_if = "json::is_default"
    )]
    pub alarm: i32,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AlarmResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub alarms: Vec<AlarmMember>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum DowngradeRequestDowngradeAction {
    Validate = 0,
    Enable = 1,
    Cancel = 2,
}

named!(DowngradeRequestDowngradeAction { Validate = "VALIDATE", Enable = "ENABLE", Cancel = "CANCEL" });

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DowngradeRequest {
    #[prost(enumeration = "DowngradeRequestDowngradeAction", tag = "1")]
    #[serde(
        serialize_with = "json::name::serialize::<DowngradeRequestDowngradeAction, _>",
        deserialize_with = "json::name::deserialize::<DowngradeRequestDowngradeAction, _>",
        skip_serializing_if = "json::is_default"
    )]
    pub action: i32,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub version: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DowngradeResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub version: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DowngradeVersionTestRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub ver: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub version: String,
    #[prost(int64, tag = "3")]
    #[serde(rename = "dbSize", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub db_size: i64,
    #[prost(uint64, tag = "4")]
    #[serde(with = "json::integer", skip_serializing_if = "json::is_default")]
    pub leader: u64,
    #[prost(uint64, tag = "5")]
    #[serde(rename = "raftIndex", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub raft_index: u64,
    #[prost(uint64, tag = "6")]
    #[serde(rename = "raftTerm", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub raft_term: u64,
    #[prost(uint64, tag = "7")]
    #[serde(rename = "raftAppliedIndex", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub raft_applied_index: u64,
    #[prost(string, repeated, tag = "8")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub errors: Vec<String>,
    #[prost(int64, tag = "9")]
    #[serde(rename = "dbSizeInUse", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub db_size_in_use: i64,
    #[prost(bool, tag = "10")]
    #[serde(rename = "isLearner", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub is_learner: bool,
    #[prost(string, tag = "11")]
    #[serde(rename = "storageVersion", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub storage_version: String,
    #[prost(int64, tag = "12")]
    #[serde(rename = "dbSizeQuota", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub db_size_quota: i64,
    #[prost(message, optional, tag = "13")]
    #[serde(rename = "downgradeInfo", skip_serializing_if = "Option::is_none")]
    pub downgrade_info: Option<DowngradeInfo>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DowngradeInfo {
    #[prost(bool, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub enabled: bool,
    #[prost(string, tag = "2")]
    #[serde(rename = "targetVersion", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub target_version: String,
}
