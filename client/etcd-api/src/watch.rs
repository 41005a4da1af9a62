//! Watches.

use serde::{Deserialize, Serialize};

use super::entry::Event;
use super::header::ResponseHeader;
use crate::define::{enumeration, messages};
use crate::json;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(try_from = "WatchRequestRead")]
pub struct WatchRequest {
    #[prost(oneof = "WatchRequestRequestUnion", tags = "1, 2, 3")]
    #[serde(flatten)]
    pub request_union: Option<WatchRequestRequestUnion>,
}

#[derive(Clone, PartialEq, prost::Oneof, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchRequestRequestUnion {
    #[prost(message, tag = "1")]
    CreateRequest(WatchCreateRequest),
    #[prost(message, tag = "2")]
    CancelRequest(WatchCancelRequest),
    #[prost(message, tag = "3")]
    ProgressRequest(WatchProgressRequest),
}

enumeration!(WatchCreateRequestFilterType { Noput = 0 "NOPUT", Nodelete = 1 "NODELETE" });

messages! {
    WatchCreateRequest {
        1 key: bytes,
        2 range_end: bytes [alias = "rangeEnd"],
        3 start_revision: int64 [alias = "startRevision"],
        4 progress_notify: bool [alias = "progressNotify"],
        5 filters: repeated enumeration "WatchCreateRequestFilterType",
        6 prev_kv: bool [alias = "prevKv"],
        7 watch_id: int64 [alias = "watchId"],
        8 fragment: bool,
    }

    WatchCancelRequest {
        1 watch_id: int64 [alias = "watchId"],
    }

    WatchProgressRequest {}

    WatchResponse {
        1 header: optional ResponseHeader,
        2 watch_id: int64 [alias = "watchId"],
        3 created: bool,
        4 canceled: bool,
        5 compact_revision: int64 [alias = "compactRevision"],
        6 cancel_reason: string [alias = "cancelReason"],
        7 fragment: bool,
        11 events: repeated Event,
    }
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
