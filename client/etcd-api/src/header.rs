//! What every answer begins with.

use crate::define::messages;

messages! {
    ResponseHeader {
        1 cluster_id: uint64 [alias = "clusterId"],
        2 member_id: uint64 [alias = "memberId"],
        3 revision: int64,
        4 raft_term: uint64 [alias = "raftTerm"],
    }
}
