//! What every answer begins with.

use quorate_etcd_api::header::ResponseHeader;
use quorate_machine::types::Revision;
use quorate_node_core::gateway::api::Api;

/// The header of an answer that was evaluated at a revision.
pub fn header(api: &Api, revision: Revision) -> ResponseHeader {
    ResponseHeader {
        cluster_id: api.cluster_number(),
        member_id: api.settings.node_id,
        revision: revision as i64,
        raft_term: api.node.leader_hint().term,
    }
}

/// The header of an answer within another one.
pub fn inner(revision: Revision) -> ResponseHeader {
    ResponseHeader { revision: revision as i64, ..ResponseHeader::default() }
}

/// The header of an answer that only tells of the present: never behind a write that this node has confirmed.
pub fn header_now(api: &Api) -> ResponseHeader {
    header(api, api.revision())
}
