//! Reads, writes and transactions.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::entry::KeyValue;
use super::header::ResponseHeader;
use crate::define::{enumeration, messages, one_of};
use crate::json;
use crate::measure::Measured;

enumeration!(RangeRequestSortOrder { None = 0 "NONE", Ascend = 1 "ASCEND", Descend = 2 "DESCEND" });

enumeration!(RangeRequestSortTarget {
    Key = 0 "KEY",
    Version = 1 "VERSION",
    Create = 2 "CREATE",
    Mod = 3 "MOD",
    Value = 4 "VALUE",
});

messages! {
    RangeRequest {
        1 key: bytes,
        2 range_end: bytes [alias = "rangeEnd"],
        3 limit: int64,
        4 revision: int64,
        5 sort_order: enumeration "RangeRequestSortOrder" [alias = "sortOrder"],
        6 sort_target: enumeration "RangeRequestSortTarget" [alias = "sortTarget"],
        7 serializable: bool,
        8 keys_only: bool [alias = "keysOnly"],
        9 count_only: bool [alias = "countOnly"],
        10 min_mod_revision: int64 [alias = "minModRevision"],
        11 max_mod_revision: int64 [alias = "maxModRevision"],
        12 min_create_revision: int64 [alias = "minCreateRevision"],
        13 max_create_revision: int64 [alias = "maxCreateRevision"],
    }

    RangeResponse {
        1 header: optional ResponseHeader,
        2 kvs: repeated KeyValue,
        3 more: bool,
        4 count: int64,
    }

    PutRequest {
        1 key: bytes,
        2 value: bytes,
        3 lease: int64,
        4 prev_kv: bool [alias = "prevKv"],
        5 ignore_value: bool [alias = "ignoreValue"],
        6 ignore_lease: bool [alias = "ignoreLease"],
    }

    PutResponse {
        1 header: optional ResponseHeader,
        2 prev_kv: optional KeyValue [alias = "prevKv"],
    }

    DeleteRangeRequest {
        1 key: bytes,
        2 range_end: bytes [alias = "rangeEnd"],
        3 prev_kv: bool [alias = "prevKv"],
    }

    DeleteRangeResponse {
        1 header: optional ResponseHeader,
        2 deleted: int64,
        3 prev_kvs: repeated KeyValue [alias = "prevKvs"],
    }
}

one_of! {
    RequestOp {
        request: RequestOpRequest = "RequestOpRequest" "1, 2, 3, 4" {
            1 request_range "requestRange" RequestRange(RangeRequest),
            2 request_put "requestPut" RequestPut(PutRequest),
            3 request_delete_range "requestDeleteRange" RequestDeleteRange(DeleteRangeRequest),
            4 request_txn "requestTxn" RequestTxn(TxnRequest),
        }
    }
}

one_of! {
    ResponseOp {
        response: ResponseOpResponse = "ResponseOpResponse" "1, 2, 3, 4" {
            1 response_range "responseRange" ResponseRange(RangeResponse),
            2 response_put "responsePut" ResponsePut(PutResponse),
            3 response_delete_range "responseDeleteRange" ResponseDeleteRange(DeleteRangeResponse),
            4 response_txn "responseTxn" ResponseTxn(TxnResponse),
        }
    }
}

enumeration!(CompareCompareResult {
    Equal = 0 "EQUAL",
    Greater = 1 "GREATER",
    Less = 2 "LESS",
    NotEqual = 3 "NOT_EQUAL",
});

enumeration!(CompareCompareTarget {
    Version = 0 "VERSION",
    Create = 1 "CREATE",
    Mod = 2 "MOD",
    Value = 3 "VALUE",
    Lease = 4 "LEASE",
});

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(try_from = "CompareRead")]
pub struct Compare {
    #[prost(enumeration = "CompareCompareResult", tag = "1")]
    #[serde(with = "CompareCompareResult", skip_serializing_if = "json::is_default")]
    pub result: i32,
    #[prost(enumeration = "CompareCompareTarget", tag = "2")]
    #[serde(with = "CompareCompareTarget", skip_serializing_if = "json::is_default")]
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

/// It has single values alone.
impl Measured for Compare {}

#[derive(Clone, PartialEq, prost::Oneof, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompareTargetUnion {
    #[prost(int64, tag = "4")]
    #[serde(with = "json::integer")]
    Version(i64),
    #[prost(int64, tag = "5")]
    #[serde(with = "json::integer")]
    CreateRevision(i64),
    #[prost(int64, tag = "6")]
    #[serde(with = "json::integer")]
    ModRevision(i64),
    #[prost(bytes = "bytes", tag = "7")]
    #[serde(with = "json::base64")]
    Value(Bytes),
    #[prost(int64, tag = "8")]
    #[serde(with = "json::integer")]
    Lease(i64),
}

messages! {
    TxnRequest(TooManyOps) {
        1 compare: repeated Compare,
        2 success: repeated RequestOp,
        3 failure: repeated RequestOp,
    }

    TxnResponse {
        1 header: optional ResponseHeader,
        2 succeeded: bool,
        3 responses: repeated ResponseOp,
    }

    CompactionRequest {
        1 revision: int64,
        2 physical: bool,
    }

    CompactionResponse {
        1 header: optional ResponseHeader,
    }

    RangeStreamResponse {
        1 range_response: optional RangeResponse [alias = "rangeResponse"],
    }
}

/// As it is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CompareRead {
    #[serde(deserialize_with = "CompareCompareResult::deserialize")]
    result: i32,
    #[serde(deserialize_with = "CompareCompareTarget::deserialize")]
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
