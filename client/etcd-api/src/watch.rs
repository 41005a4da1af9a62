//! Watches.

use super::entry::Event;
use super::header::ResponseHeader;
use crate::define::{enumeration, messages, one_of};

one_of! {
    WatchRequest {
        request_union: WatchRequestRequestUnion = "WatchRequestRequestUnion" "1, 2, 3" {
            1 create_request "createRequest" CreateRequest(WatchCreateRequest),
            2 cancel_request "cancelRequest" CancelRequest(WatchCancelRequest),
            3 progress_request "progressRequest" ProgressRequest(WatchProgressRequest),
        }
    }
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
