//! Leases.

use super::header::ResponseHeader;
use crate::define::messages;

messages! {
    LeaseGrantRequest {
        1 ttl: int64 [rename = "TTL"],
        2 id: int64 [rename = "ID"],
    }

    LeaseGrantResponse {
        1 header: optional ResponseHeader,
        2 id: int64 [rename = "ID"],
        3 ttl: int64 [rename = "TTL"],
        4 error: string,
    }

    LeaseRevokeRequest {
        1 id: int64 [rename = "ID"],
    }

    LeaseRevokeResponse {
        1 header: optional ResponseHeader,
    }

    LeaseKeepAliveRequest {
        1 id: int64 [rename = "ID"],
    }

    LeaseKeepAliveResponse {
        1 header: optional ResponseHeader,
        2 id: int64 [rename = "ID"],
        3 ttl: int64 [rename = "TTL"],
    }

    LeaseTimeToLiveRequest {
        1 id: int64 [rename = "ID"],
        2 keys: bool,
    }

    LeaseTimeToLiveResponse {
        1 header: optional ResponseHeader,
        2 id: int64 [rename = "ID"],
        3 ttl: int64 [rename = "TTL"],
        4 granted_ttl: int64 [rename = "grantedTTL"],
        5 keys: repeated bytes,
    }

    LeaseLeasesRequest {}

    LeaseStatus {
        1 id: int64 [rename = "ID"],
    }

    LeaseLeasesResponse {
        1 header: optional ResponseHeader,
        2 leases: repeated LeaseStatus,
    }
}
