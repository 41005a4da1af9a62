//! Reads, writes and transactions.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::entry::KeyValue;
use super::header::ResponseHeader;
use crate::json;
use crate::json::named;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum RangeRequestSortOrder {
    None = 0,
    Ascend = 1,
    Descend = 2,
}

named!(RangeRequestSortOrder { None = "NONE", Ascend = "ASCEND", Descend = "DESCEND" });

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum RangeRequestSortTarget {
    Key = 0,
    Version = 1,
    Create = 2,
    Mod = 3,
    Value = 4,
}

named!(RangeRequestSortTarget { Key = "KEY", Version = "VERSION", Create = "CREATE", Mod = "MOD", Value = "VALUE" });

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(alias = "rangeEnd", with = "json::base64", skip_serializing_if = "json::is_default")]
    pub range_end: Bytes,
    #[prost(int64, tag = "3")]
    #[serde(with = "json::integer", skip_serializing_if = "json::is_default")]
    pub limit: i64,
    #[prost(int64, tag = "4")]
    #[serde(with = "json::integer", skip_serializing_if = "json::is_default")]
    pub revision: i64,
    #[prost(enumeration = "RangeRequestSortOrder", tag = "5")]
    #[serde(
        alias = "sortOrder",
        serialize_with = "json::name::serialize::<RangeRequestSortOrder, _>",
        deserialize_with = "json::name::deserialize::<RangeRequestSortOrder, _>",
        skip_serializing_if = "json::is_default"
    )]
    pub sort_order: i32,
    #[prost(enumeration = "RangeRequestSortTarget", tag = "6")]
    #[serde(
        alias = "sortTarget",
        serialize_with = "json::name::serialize::<RangeRequestSortTarget, _>",
        deserialize_with = "json::name::deserialize::<RangeRequestSortTarget, _>",
        skip_serializing_if = "json::is_default"
    )]
    pub sort_target: i32,
    #[prost(bool, tag = "7")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub serializable: bool,
    #[prost(bool, tag = "8")]
    #[serde(alias = "keysOnly", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub keys_only: bool,
    #[prost(bool, tag = "9")]
    #[serde(alias = "countOnly", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub count_only: bool,
    #[prost(int64, tag = "10")]
    #[serde(alias = "minModRevision", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub min_mod_revision: i64,
    #[prost(int64, tag = "11")]
    #[serde(alias = "maxModRevision", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub max_mod_revision: i64,
    #[prost(int64, tag = "12")]
    #[serde(alias = "minCreateRevision", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub min_create_revision: i64,
    #[prost(int64, tag = "13")]
    #[serde(alias = "maxCreateRevision", with = "json::integer", skip_serializing_if = "json::is_default")]
    pub max_create_revision: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub more: bool,
    #[prost(int64, tag = "4")]
    #[serde(with = "json::integer", skip_serializing_if = "json::is_default")]
    pub count: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub value: Bytes,
    #[prost(int64, tag = "3")]
    #[serde(with = "json::integer", skip_serializing_if = "json::is_default")]
    pub lease: i64,
    #[prost(bool, tag = "4")]
    #[serde(alias = "prevKv", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub prev_kv: bool,
    #[prost(bool, tag = "5")]
    #[serde(alias = "ignoreValue", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub ignore_value: bool,
    #[prost(bool, tag = "6")]
    #[serde(alias = "ignoreLease", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub ignore_lease: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PutResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(message, optional, tag = "2")]
    #[serde(alias = "prevKv", skip_serializing_if = "Option::is_none")]
    pub prev_kv: Option<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(alias = "rangeEnd", with = "json::base64", skip_serializing_if = "json::is_default")]
    pub range_end: Bytes,
    #[prost(bool, tag = "3")]
    #[serde(alias = "prevKv", deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub prev_kv: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DeleteRangeResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(int64, tag = "2")]
    #[serde(with = "json::integer", skip_serializing_if = "json::is_default")]
    pub deleted: i64,
    #[prost(message, repeated, tag = "3")]
    #[serde(alias = "prevKvs", skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub prev_kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(try_from = "RequestOpRead")]
pub struct RequestOp {
    #[prost(oneof = "RequestOpRequest", tags = "1, 2, 3, 4")]
    #[serde(flatten)]
    pub request: Option<RequestOpRequest>,
}

#[derive(Clone, PartialEq, prost::Oneof, Serialize)]
pub enum RequestOpRequest {
    #[prost(message, tag = "1")]
    #[serde(rename = "request_range", alias = "requestRange")]
    RequestRange(RangeRequest),
    #[prost(message, tag = "2")]
    #[serde(rename = "request_put", alias = "requestPut")]
    RequestPut(PutRequest),
    #[prost(message, tag = "3")]
    #[serde(rename = "request_delete_range", alias = "requestDeleteRange")]
    RequestDeleteRange(DeleteRangeRequest),
    #[prost(message, tag = "4")]
    #[serde(rename = "request_txn", alias = "requestTxn")]
    RequestTxn(TxnRequest),
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(try_from = "ResponseOpRead")]
pub struct ResponseOp {
    #[prost(oneof = "ResponseOpResponse", tags = "1, 2, 3, 4")]
    #[serde(flatten)]
    pub response: Option<ResponseOpResponse>,
}

#[derive(Clone, PartialEq, prost::Oneof, Serialize)]
pub enum ResponseOpResponse {
    #[prost(message, tag = "1")]
    #[serde(rename = "response_range", alias = "responseRange")]
    ResponseRange(RangeResponse),
    #[prost(message, tag = "2")]
    #[serde(rename = "response_put", alias = "responsePut")]
    ResponsePut(PutResponse),
    #[prost(message, tag = "3")]
    #[serde(rename = "response_delete_range", alias = "responseDeleteRange")]
    ResponseDeleteRange(DeleteRangeResponse),
    #[prost(message, tag = "4")]
    #[serde(rename = "response_txn", alias = "responseTxn")]
    ResponseTxn(TxnResponse),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum CompareCompareResult {
    Equal = 0,
    Greater = 1,
    Less = 2,
    NotEqual = 3,
}

named!(CompareCompareResult { Equal = "EQUAL", Greater = "GREATER", Less = "LESS", NotEqual = "NOT_EQUAL" });

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum CompareCompareTarget {
    Version = 0,
    Create = 1,
    Mod = 2,
    Value = 3,
    Lease = 4,
}

named!(CompareCompareTarget { Version = "VERSION", Create = "CREATE", Mod = "MOD", Value = "VALUE", Lease = "LEASE" });

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(try_from = "CompareRead")]
pub struct Compare {
    #[prost(enumeration = "CompareCompareResult", tag = "1")]
    #[serde(
        serialize_with = "json::name::serialize::<CompareCompareResult, _>",
        deserialize_with = "json::name::deserialize::<CompareCompareResult, _>",
        skip_serializing_if = "json::is_default"
    )]
    pub result: i32,
    #[prost(enumeration = "CompareCompareTarget", tag = "2")]
    #[serde(
        serialize_with = "json::name::serialize::<CompareCompareTarget, _>",
        deserialize_with = "json::name::deserialize::<CompareCompareTarget, _>",
        skip_serializing_if = "json::is_default"
    )]
    pub target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(with = "json::base64", skip_serializing_if = "json::is_default")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "64")]
    #[serde(alias = "rangeEnd", with = "json::base64", skip_serializing_if = "json::is_default")]
    pub range_end: Bytes,
    #[prost(oneof = "CompareTargetUnion", tags = "4, 5, 6, 7, 8")]
    #[serde(flatten)]
    pub target_union: Option<CompareTargetUnion>,
}

#[derive(Clone, PartialEq, prost::Oneof, Serialize)]
pub enum CompareTargetUnion {
    #[prost(int64, tag = "4")]
    #[serde(rename = "version", with = "json::integer")]
    Version(i64),
    #[prost(int64, tag = "5")]
    #[serde(rename = "create_revision", alias = "createRevision", with = "json::integer")]
    CreateRevision(i64),
    #[prost(int64, tag = "6")]
    #[serde(rename = "mod_revision", alias = "modRevision", with = "json::integer")]
    ModRevision(i64),
    #[prost(bytes = "bytes", tag = "7")]
    #[serde(rename = "value", with = "json::base64")]
    Value(Bytes),
    #[prost(int64, tag = "8")]
    #[serde(rename = "lease", with = "json::integer")]
    Lease(i64),
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "json::nullable")]
    pub responses: Vec<ResponseOp>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionRequest {
    #[prost(int64, tag = "1")]
    #[serde(with = "json::integer", skip_serializing_if = "json::is_default")]
    pub revision: i64,
    #[prost(bool, tag = "2")]
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "json::is_default")]
    pub physical: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RangeStreamResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(alias = "rangeResponse", skip_serializing_if = "Option::is_none")]
    pub range_response: Option<RangeResponse>,
}

/// As it is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RequestOpRead {
    #[serde(alias = "requestRange")]
    request_range: Option<RangeRequest>,
    #[serde(alias = "requestPut")]
    request_put: Option<PutRequest>,
    #[serde(alias = "requestDeleteRange")]
    request_delete_range: Option<DeleteRangeRequest>,
    #[serde(alias = "requestTxn")]
    request_txn: Option<TxnRequest>,
}

impl TryFrom<RequestOpRead> for RequestOp {
    type Error = &'static str;

    fn try_from(read: RequestOpRead) -> Result<Self, &'static str> {
        let request = json::one_of([
            read.request_range.map(RequestOpRequest::RequestRange),
            read.request_put.map(RequestOpRequest::RequestPut),
            read.request_delete_range.map(RequestOpRequest::RequestDeleteRange),
            read.request_txn.map(RequestOpRequest::RequestTxn),
        ])?;
        Ok(Self { request })
    }
}

/// As it is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseOpRead {
    #[serde(alias = "responseRange")]
    response_range: Option<RangeResponse>,
    #[serde(alias = "responsePut")]
    response_put: Option<PutResponse>,
    #[serde(alias = "responseDeleteRange")]
    response_delete_range: Option<DeleteRangeResponse>,
    #[serde(alias = "responseTxn")]
    response_txn: Option<TxnResponse>,
}

impl TryFrom<ResponseOpRead> for ResponseOp {
    type Error = &'static str;

    fn try_from(read: ResponseOpRead) -> Result<Self, &'static str> {
        let response = json::one_of([
            read.response_range.map(ResponseOpResponse::ResponseRange),
            read.response_put.map(ResponseOpResponse::ResponsePut),
            read.response_delete_range.map(ResponseOpResponse::ResponseDeleteRange),
            read.response_txn.map(ResponseOpResponse::ResponseTxn),
        ])?;
        Ok(Self { response })
    }
}

/// As it is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CompareRead {
    #[serde(deserialize_with = "json::name::deserialize::<CompareCompareResult, _>")]
    result: i32,
    #[serde(deserialize_with = "json::name::deserialize::<CompareCompareTarget, _>")]
    target: i32,
    #[serde(deserialize_with = "json::base64::deserialize")]
    key: Bytes,
    #[serde(alias = "rangeEnd", deserialize_with = "json::base64::deserialize")]
    range_end: Bytes,
    version: Option<json::Integer>,
    #[serde(alias = "createRevision")]
    create_revision: Option<json::Integer>,
    #[serde(alias = "modRevision")]
    mod_revision: Option<json::Integer>,
    value: Option<json::Base64>,
    lease: Option<json::Integer>,
}

impl TryFrom<CompareRead> for Compare {
    type Error = &'static str;

    fn try_from(read: CompareRead) -> Result<Self, &'static str> {
        let CompareRead { result, target, key, range_end, .. } = read;
        let target_union = json::one_of([
            read.version.map(|number| CompareTargetUnion::Version(number.0)),
            read.create_revision.map(|number| CompareTargetUnion::CreateRevision(number.0)),
            read.mod_revision.map(|number| CompareTargetUnion::ModRevision(number.0)),
            read.value.map(|bytes| CompareTargetUnion::Value(bytes.0)),
            read.lease.map(|number| CompareTargetUnion::Lease(number.0)),
        ])?;
        Ok(Self { result, target, key, range_end, target_union })
    }
}
