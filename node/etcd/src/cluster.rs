//! Members and changes of them: etcd's service `Cluster`.
//!
//! Owns what a change is called here. Whether it is made, the leader judges, as for an operator who asks over HTTP.

use quorate_api::{MemberView, StatusAnswer};
use quorate_etcd_api::Error;
use quorate_etcd_api::cluster::{
    Member, MemberAddRequest, MemberAddResponse, MemberListRequest, MemberListResponse, MemberPromoteRequest,
    MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse, MemberUpdateRequest, MemberUpdateResponse,
};
use quorate_node_core::backend::members::{MemberChange, MemberRequest};
use quorate_node_core::gateway::auth::requirement::{Requirement, Visit};
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::failure::{Effect, Failure};
use tonic::Code;

use crate::header::header;
use crate::status::{Status, known};

/// Lists the members.
pub async fn list(call: &Call, request: MemberListRequest) -> Result<MemberListResponse, Status> {
    if request.linearizable {
        call.admit_read(&|visit: &mut Visit<'_>| visit(Requirement::Something)).await?;
    }
    let status = call.api.node.status();
    Ok(MemberListResponse { header: Some(header(&call.api, status.revision)), members: all(call, &status) })
}

/// Takes in a node that was started and waits.
pub async fn add(call: &Call, request: MemberAddRequest) -> Result<MemberAddResponse, Status> {
    let peer_addr = address(&request.peer_urls)?;
    let status = call.api.node.status();
    if status.members.iter().any(|member| member.peer_addr == peer_addr) {
        return Err(known(Error::PeerURLExist));
    }
    // The next number: those of members that went may be lower, and none is used twice.
    let id = status.members.iter().map(|member| member.id).max().unwrap_or(0) + 1;
    change(call, MemberChange::Add { id, peer_addr: peer_addr.to_owned(), promote: !request.is_learner }).await?;
    let status = call.api.node.status();
    let members = all(call, &status);
    let member = members.iter().find(|member| member.id == id).cloned();
    Ok(MemberAddResponse { header: Some(header(&call.api, status.revision)), member, members })
}

/// Lets a member go.
pub async fn remove(call: &Call, request: MemberRemoveRequest) -> Result<MemberRemoveResponse, Status> {
    member(call, request.id)?;
    change(call, MemberChange::Remove { id: request.id }).await?;
    let status = call.api.node.status();
    let mut members = all(call, &status);
    // This node may hear of it later.
    members.retain(|member| member.id != request.id);
    Ok(MemberRemoveResponse { header: Some(header(&call.api, status.revision)), members })
}

/// Gives a learner a vote.
pub async fn promote(call: &Call, request: MemberPromoteRequest) -> Result<MemberPromoteResponse, Status> {
    if member(call, request.id)?.voter {
        return Err(known(Error::MemberNotLearner));
    }
    change(call, MemberChange::Promote { id: request.id }).await?;
    let status = call.api.node.status();
    let mut members = all(call, &status);
    members.iter_mut().filter(|member| member.id == request.id).for_each(|member| member.is_learner = false);
    Ok(MemberPromoteResponse { header: Some(header(&call.api, status.revision)), members })
}

/// A member keeps its address: the same one again is no change, another is refused.
pub async fn update(call: &Call, request: MemberUpdateRequest) -> Result<MemberUpdateResponse, Status> {
    let peer_addr = address(&request.peer_urls)?;
    if member(call, request.id)?.peer_addr != peer_addr {
        let why = "quorate: a member says its address itself: restart it with another --peer-advertise";
        return Err(Status::new(Code::FailedPrecondition, why));
    }
    let status = call.api.node.status();
    Ok(MemberUpdateResponse { header: Some(header(&call.api, status.revision)), members: all(call, &status) })
}

fn all(call: &Call, status: &StatusAnswer) -> Vec<Member> {
    status.members.iter().map(|member| shown(call, member)).collect()
}

fn shown(call: &Call, member: &MemberView) -> Member {
    // A port speaks TLS on all members, or on none; whoever asks through a Unix socket wants to know, too.
    let url = |uses_tls: bool, address: &str| format!("{}://{address}", if uses_tls { "https" } else { "http" });
    let settings = &call.api.settings;
    Member {
        id: member.id,
        name: member.id.to_string(),
        peer_urls: vec![url(settings.peers_use_tls, &member.peer_addr)],
        client_urls: vec![url(settings.clients_use_tls, &member.client_addr)],
        is_learner: !member.voter,
    }
}

fn member(call: &Call, id: u64) -> Result<MemberView, Status> {
    let members = call.api.node.status().members;
    members.into_iter().find(|member| member.id == id).ok_or_else(|| known(Error::MemberNotFound))
}

/// The one address of a member, as a URL.
fn address(urls: &[String]) -> Result<&str, Status> {
    let [url] = urls else { return Err(known(Error::MemberBadURLs)) };
    let address = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let has_port = |address: &&str| {
        address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    };
    address.filter(has_port).ok_or_else(|| known(Error::MemberBadURLs))
}

async fn change(call: &Call, change: MemberChange) -> Result<(), Status> {
    let asked = MemberRequest { change, dry_run: false, force: false };
    let done = call.api.node.change_members(asked, call.deadline).await;
    done.map(|_| ()).map_err(|error| Failure::from_app(error, Effect::Write).into())
}
