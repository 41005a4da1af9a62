//! What a peer is to this cluster: a member, one of before, or nobody yet.
//!
//! Owns the judgement by what this node knows, and the question to others where that may be old. Never asks a leader: a peer that this
//! node does not know may be the leader itself.

use std::time::{Duration, Instant};

use futures::future::join_all;
use quorate_machine::types::NodeDisk;
use quorate_store::raft::NodeId;
use quorate_store::state::StateReader;

use super::super::join_list::JoinList;
use super::super::peers::Peers;
use crate::peer::MembershipStatus;
use crate::peer::message::{PeerRequest, PeerResponse};

/// For the questions to other members, which a handshake waits for.
const ASK: Duration = Duration::from_millis(1_000);

/// By what this node knows. Who was removed is so for good, whoever says otherwise; what this node has not applied yet it has at least
/// in its log.
pub fn of(peers: &Peers, state: &StateReader, peer: NodeDisk) -> MembershipStatus {
    if peers.knows(peer) {
        return MembershipStatus::Member;
    }
    if peers.has_gone(peer) || was_removed(state, peer) {
        return MembershipStatus::Removed;
    }
    // A disk without a log has nobody to ask, and nothing to lose.
    if peers.members().is_empty() { MembershipStatus::Member } else { MembershipStatus::Unknown }
}

fn was_removed(state: &StateReader, peer: NodeDisk) -> bool {
    state.was_removed(peer).unwrap_or_else(|fault| {
        tracing::warn!(%fault, "it cannot be told whether a peer was removed; it is taken for a removed one");
        true
    })
}

/// Whether another member knows a peer that this node does not know. Those of the join list are asked, too: who was away for long may
/// know nobody else who is left.
pub async fn confirm(peers: &Peers, node_id: NodeId, list: &JoinList, peer: NodeDisk) -> bool {
    let mut others = list.clone();
    others.extend(peers.members().iter().map(|(id, member)| (*id, member.peer_addr.clone())));
    others.remove(&node_id);
    others.remove(&peer.node_id);
    let by = Instant::now() + ASK;
    let asked = others.iter().map(|(id, addr)| peers.ask_at(addr, Some(*id), PeerRequest::Knows(peer), by));
    let is_known = |answer: &Result<_, _>| matches!(answer, Ok(PeerResponse::Known { is_member: true }));
    join_all(asked).await.iter().any(is_known)
}
