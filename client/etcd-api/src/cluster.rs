//! Members.

use serde::{Deserialize, Serialize};

use super::header::ResponseHeader;
use crate::json;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    #[prost(uint64, tag = "1")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: u64,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub name: String,
    #[prost(string, repeated, tag = "3")]
    #[serde(rename = "peerURLs", skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub peer_urls: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    #[serde(rename = "clientURLs", skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub client_urls: Vec<String>,
    #[prost(bool, tag = "5")]
    #[serde(rename = "isLearner", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub is_learner: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberAddRequest {
    #[prost(string, repeated, tag = "1")]
    #[serde(rename = "peerURLs", skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub peer_urls: Vec<String>,
    #[prost(bool, tag = "2")]
    #[serde(rename = "isLearner", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub is_learner: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberAddResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<Member>,
    #[prost(message, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub members: Vec<Member>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberRemoveRequest {
    #[prost(uint64, tag = "1")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: u64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberRemoveResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub members: Vec<Member>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberUpdateRequest {
    #[prost(uint64, tag = "1")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: u64,
    #[prost(string, repeated, tag = "2")]
    #[serde(rename = "peerURLs", skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub peer_urls: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberUpdateResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub members: Vec<Member>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberListRequest {
    #[prost(bool, tag = "1")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub linearizable: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberListResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub members: Vec<Member>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberPromoteRequest {
    #[prost(uint64, tag = "1")]
    #[serde(rename = "ID", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub id: u64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberPromoteResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub members: Vec<Member>,
}
