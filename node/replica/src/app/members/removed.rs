//! A node that is no member any more hears of it.
//!
//! Owns the question that a node asks when no leader speaks to it, the answer, and what a removed node says for people. Believes
//! nobody but a leader that a quorum has just confirmed: a member that is behind knows old things.

use std::time::{Duration, Instant};

use futures::future::join_all;
use openraft::async_runtime::WatchReceiver;
use quorate_store::raft::NodeId;

use super::super::App;
use super::super::join_list::JoinList;
use super::not_leader;
use super::unsettled::is_unsettled;
use crate::peer::members::MemberQuestion;
use crate::peer::message::{PeerRequest, PeerResponse};

/// Between two looks whether a leader is heard of.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// For one round of questions.
const ASK: Duration = Duration::from_millis(1_000);

/// Returns once a leader said that this node is no member any more, with a sentence for people. Never asks while a leader
/// speaks to this node, nor before its log names any members, nor while it may never have been a member: then it has to be taken
/// in, again. Asks those of the join list, too: who was away for years may know nobody else who is left.
pub async fn told(app: &App, list: &JoinList) -> String {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let members = app.peers().members();
        if members.is_empty() || app.members().view().hears_leader() || is_unsettled(app.node_id(), app.raft()) {
            continue;
        }
        let mut others = list.clone();
        others.extend(members.iter().map(|(id, member)| (*id, member.peer_addr.clone())));
        others.remove(&app.node_id());
        let by = Instant::now() + ASK;
        let question = || PeerRequest::Members(MemberQuestion::AmI);
        let answers =
            join_all(others.iter().map(|(id, addr)| app.peers().ask_at(addr, Some(*id), question(), by))).await;
        if answers.iter().any(|answer| matches!(answer, Ok(PeerResponse::Membership { is_member: false }))) {
            return explain(app.node_id());
        }
    }
}

/// Why a removed node ends, and how its machine comes back, for people.
pub fn explain(id: NodeId) -> String {
    format!(
        "node {id} was removed from its cluster, and its data directory is not used again: to bring this machine back, start it with an \
         empty data directory under a node id that was never used, or under its own with an invitation by `quorate member invite --id {id}`"
    )
}

/// The answer to a peer that asks for itself. It may not know who leads now, so this node asks for it.
pub async fn is_member_somewhere(app: &App, node_id: NodeId) -> PeerResponse {
    match app.members().leader() {
        Some(leader) if leader == app.node_id() => is_member(app, node_id).await,
        Some(leader) if leader != node_id => {
            let asked = app
                .peers()
                .ask(leader, PeerRequest::Members(MemberQuestion::Is { node_id }), Instant::now() + ASK)
                .await;
            asked.unwrap_or_else(|_silent| not_leader(app))
        }
        Some(_) | None => not_leader(app),
    }
}

/// The leader's answer. A change that is not committed yet counts for the node.
pub async fn is_member(app: &App, node_id: NodeId) -> PeerResponse {
    if app.reads().index_as_leader().await.is_none() {
        return not_leader(app);
    }
    let metrics = app.raft().server_metrics().borrow_watched().clone();
    let memberships = [&metrics.membership_config, &metrics.committed_membership_config];
    let is_member = memberships.iter().any(|membership| membership.membership().get_node(&node_id).is_some());
    PeerResponse::Membership { is_member }
}
