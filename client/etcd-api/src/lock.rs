//! Locks by name (`v3lockpb`).

use super::header::ResponseHeader;
use crate::define::messages;

messages! {
    LockRequest {
        1 name: bytes,
        2 lease: int64,
    }

    LockResponse {
        1 header: optional ResponseHeader,
        2 key: bytes,
    }

    UnlockRequest {
        1 key: bytes,
    }

    UnlockResponse {
        1 header: optional ResponseHeader,
    }
}
