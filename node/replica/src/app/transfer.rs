//! Handing leadership over.
//!
//! Owns the transfer and the wait for it; who is fit to lead next is in `members::plan`. Never starts a transfer to a node that is behind: a failed
//! transfer leaves the cluster without a leader until an election.

use std::time::Instant;

use quorate_node_core::backend::AppError;
use quorate_store::raft::NodeId;

use super::App;
use super::members::cluster_view::ClusterView;

impl App {
    /// Hands leadership to the best follower, or to `to`. Returns once another node leads, with its number.
    pub async fn transfer_leader(&self, to: Option<NodeId>, deadline: Instant) -> Result<NodeId, AppError> {
        let self_id = self.node_id();
        match self.members().leader() {
            Some(leader) if leader == self_id => {}
            Some(leader) if to == Some(leader) => return Ok(leader),
            Some(leader) => {
                return Err(AppError::NotReady(format!(
                    "node {self_id} does not lead, node {leader} does: ask that one"
                )));
            }
            None => return Err(AppError::NoLeader),
        }
        if to == Some(self_id) {
            return Ok(self_id);
        }
        let successor = self.successor(to)?;
        let mut changes = self.members().view().subscribe();
        self.raft().trigger().transfer_leader(successor).await.map_err(|fatal| AppError::Fault(fatal.to_string()))?;
        let moved = changes.wait_for(|now| now.leader.is_some_and(|leader| leader != self_id));
        match tokio::time::timeout_at(deadline.into(), moved).await {
            Ok(Ok(leadership)) => Ok(leadership.leader.unwrap_or(successor)),
            Ok(Err(_)) | Err(_) => Err(AppError::Unknown),
        }
    }

    /// The voter asked for, or the best one, see `Standing::can_succeed`.
    fn successor(&self, to: Option<NodeId>) -> Result<NodeId, AppError> {
        let standing = ClusterView::of(self).ok_or(AppError::NoLeader)?.membership;
        match to {
            None => standing.successor(standing.voters()).ok_or_else(|| {
                AppError::NotReady("no other voter is up to date, heard of and trusts its state".into())
            }),
            Some(to) if standing.can_succeed(to) => Ok(to),
            Some(to) if !standing.voters().contains(&to) => {
                Err(AppError::Refused(format!("node {to} has no vote, so it cannot lead")))
            }
            Some(to) if standing.is_distrusted(to) => Err(AppError::Refused(format!(
                "node {to} is in quarantine, so it cannot lead; rebuild its state first: member repair {to}"
            ))),
            Some(to) => Err(AppError::NotReady(format!("node {to} is not up to date and heard of"))),
        }
    }
}
