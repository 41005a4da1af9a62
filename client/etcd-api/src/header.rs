//! What every answer begins with.

use serde::{Deserialize, Serialize};

use crate::json;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ResponseHeader {
    #[prost(uint64, tag = "1")]
    #[serde(alias = "clusterId", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub cluster_id: u64,
    #[prost(uint64, tag = "2")]
    #[serde(alias = "memberId", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub member_id: u64,
    #[prost(int64, tag = "3")]
    #[serde(with = "json::integer", skip_serializing_if = "json::is_default")]
    pub revision: i64,
    #[prost(uint64, tag = "4")]
    #[serde(alias = "raftTerm", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub raft_term: u64,
}
