//! Elections by name (`v3electionpb`).

use super::entry::KeyValue;
use super::header::ResponseHeader;
use crate::define::messages;

messages! {
    CampaignRequest {
        1 name: bytes,
        2 lease: int64,
        3 value: bytes,
    }

    CampaignResponse {
        1 header: optional ResponseHeader,
        2 leader: optional LeaderKey,
    }

    LeaderKey {
        1 name: bytes,
        2 key: bytes,
        3 rev: int64,
        4 lease: int64,
    }

    LeaderRequest {
        1 name: bytes,
    }

    LeaderResponse {
        1 header: optional ResponseHeader,
        2 kv: optional KeyValue,
    }

    ResignRequest {
        1 leader: optional LeaderKey,
    }

    ResignResponse {
        1 header: optional ResponseHeader,
    }

    ProclaimRequest {
        1 leader: optional LeaderKey,
        2 value: bytes,
    }

    ProclaimResponse {
        1 header: optional ResponseHeader,
    }
}
