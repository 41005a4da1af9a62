//! Members.

use super::header::ResponseHeader;
use crate::define::messages;

messages! {
    Member {
        1 id: uint64 [rename = "ID"],
        2 name: string,
        3 peer_urls: repeated string [rename = "peerURLs"],
        4 client_urls: repeated string [rename = "clientURLs"],
        5 is_learner: bool [rename = "isLearner"],
    }

    MemberAddRequest {
        1 peer_urls: repeated string [rename = "peerURLs"],
        2 is_learner: bool [rename = "isLearner"],
    }

    MemberAddResponse {
        1 header: optional ResponseHeader,
        2 member: optional Member,
        3 members: repeated Member,
    }

    MemberRemoveRequest {
        1 id: uint64 [rename = "ID"],
    }

    MemberRemoveResponse {
        1 header: optional ResponseHeader,
        2 members: repeated Member,
    }

    MemberUpdateRequest {
        1 id: uint64 [rename = "ID"],
        2 peer_urls: repeated string [rename = "peerURLs"],
    }

    MemberUpdateResponse {
        1 header: optional ResponseHeader,
        2 members: repeated Member,
    }

    MemberListRequest {
        1 linearizable: bool,
    }

    MemberListResponse {
        1 header: optional ResponseHeader,
        2 members: repeated Member,
    }

    MemberPromoteRequest {
        1 id: uint64 [rename = "ID"],
    }

    MemberPromoteResponse {
        1 header: optional ResponseHeader,
        2 members: repeated Member,
    }
}
