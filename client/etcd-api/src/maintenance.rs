//! What an operator asks for.

use super::header::ResponseHeader;
use crate::define::{enumeration, messages};

messages! {
    HashRequest {}

    HashKVRequest {
        1 revision: int64,
    }

    HashKVResponse {
        1 header: optional ResponseHeader,
        2 hash: uint32,
        3 compact_revision: int64 [alias = "compactRevision"],
        4 hash_revision: int64 [alias = "hashRevision"],
    }

    HashResponse {
        1 header: optional ResponseHeader,
        2 hash: uint32,
    }

    SnapshotRequest {}

    SnapshotResponse {
        1 header: optional ResponseHeader,
        2 remaining_bytes: uint64 [alias = "remainingBytes"],
        3 blob: bytes,
        4 version: string,
    }

    DefragmentRequest {}

    DefragmentResponse {
        1 header: optional ResponseHeader,
    }

    MoveLeaderRequest {
        1 target_id: uint64 [rename = "targetID"],
    }

    MoveLeaderResponse {
        1 header: optional ResponseHeader,
    }
}

enumeration!(AlarmType { None = 0 "NONE", Nospace = 1 "NOSPACE", Corrupt = 2 "CORRUPT" });

enumeration!(AlarmRequestAlarmAction { Get = 0 "GET", Activate = 1 "ACTIVATE", Deactivate = 2 "DEACTIVATE" });

messages! {
    AlarmRequest {
        1 action: enumeration "AlarmRequestAlarmAction",
        2 member_id: uint64 [rename = "memberID"],
        3 alarm: enumeration "AlarmType",
    }

    AlarmMember {
        1 member_id: uint64 [rename = "memberID"],
        2 alarm: enumeration "AlarmType",
    }

    AlarmResponse {
        1 header: optional ResponseHeader,
        2 alarms: repeated AlarmMember,
    }
}

enumeration!(DowngradeRequestDowngradeAction { Validate = 0 "VALIDATE", Enable = 1 "ENABLE", Cancel = 2 "CANCEL" });

messages! {
    DowngradeRequest {
        1 action: enumeration "DowngradeRequestDowngradeAction",
        2 version: string,
    }

    DowngradeResponse {
        1 header: optional ResponseHeader,
        2 version: string,
    }

    StatusRequest {}

    StatusResponse {
        1 header: optional ResponseHeader,
        2 version: string,
        3 db_size: int64 [rename = "dbSize"],
        4 leader: uint64,
        5 raft_index: uint64 [rename = "raftIndex"],
        6 raft_term: uint64 [rename = "raftTerm"],
        7 raft_applied_index: uint64 [rename = "raftAppliedIndex"],
        8 errors: repeated string,
        9 db_size_in_use: int64 [rename = "dbSizeInUse"],
        10 is_learner: bool [rename = "isLearner"],
        11 storage_version: string [rename = "storageVersion"],
        12 db_size_quota: int64 [rename = "dbSizeQuota"],
        13 downgrade_info: optional DowngradeInfo [rename = "downgradeInfo"],
    }

    DowngradeInfo {
        1 enabled: bool,
        2 target_version: string [rename = "targetVersion"],
    }
}
