//! Members and the state of this node: parts of etcd's services `Cluster` and `Maintenance`.

use quorate_api::{MemberView, StatusAnswer};
use quorate_etcd_api::cluster::{Member, MemberListRequest, MemberListResponse};
use quorate_etcd_api::maintenance::{StatusRequest, StatusResponse};
use tonic::Status as GrpcStatus;

use crate::etcd::header::header;
use crate::etcd::service::{Policy, Unary};
use crate::gateway::admission::classes::RequestClass;
use crate::gateway::auth::requirement::{Requirement, Visit};
use crate::gateway::call::Call;
use crate::gateway::enter::Guard;
use crate::gateway::versions;

const KNOWN: Policy = Policy { class: RequestClass::Node, guard: Guard::Known, writes: false, is_vital: true };

/// Lists the members.
pub struct MemberList;

impl Unary for MemberList {
    type Request = MemberListRequest;
    type Response = MemberListResponse;
    const PATH: &'static str = "/etcdserverpb.Cluster/MemberList";
    const POLICY: Policy = KNOWN;

    async fn answer(call: &Call, request: MemberListRequest) -> Result<MemberListResponse, GrpcStatus> {
        if request.linearizable {
            call.admit_read(&|visit: &mut Visit<'_>| visit(Requirement::Something)).await?;
        }
        let status = call.api.backend.status();
        let members = status.members.iter().map(|member| shown(call, member)).collect();
        Ok(MemberListResponse { header: Some(header(&call.api, status.revision)), members })
    }
}

fn shown(call: &Call, member: &MemberView) -> Member {
    // A port speaks TLS on all members, or on none.
    let scheme = if call.origin.is_secure { "https" } else { "http" };
    Member {
        id: member.id,
        name: member.id.to_string(),
        peer_urls: vec![format!("http://{}", member.peer_addr)],
        client_urls: vec![format!("{scheme}://{}", member.client_addr)],
        is_learner: !member.voter,
    }
}

/// Tells of this node.
pub struct Status;

impl Unary for Status {
    type Request = StatusRequest;
    type Response = StatusResponse;
    const PATH: &'static str = "/etcdserverpb.Maintenance/Status";
    const POLICY: Policy = KNOWN;

    async fn answer(call: &Call, _: StatusRequest) -> Result<StatusResponse, GrpcStatus> {
        let status: StatusAnswer = call.api.backend.status();
        let is_learner = status.members.iter().any(|member| member.id == status.node_id && !member.voter);
        let bytes = (status.stored_bytes + status.history_bytes) as i64;
        Ok(StatusResponse {
            header: Some(header(&call.api, status.revision)),
            version: versions::ETCD_SERVER.to_owned(),
            db_size: bytes,
            db_size_in_use: bytes,
            db_size_quota: status.quota_bytes as i64,
            leader: status.leader_id.unwrap_or(0),
            raft_index: status.committed_index,
            raft_applied_index: status.applied_index,
            raft_term: status.term,
            errors: status.warnings,
            is_learner,
            storage_version: versions::ETCD_CLUSTER.to_owned(),
            downgrade_info: None,
        })
    }
}
