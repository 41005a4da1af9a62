//! Handing leadership over.
//!
//! Owns the choice of the successor and the wait for it. Never starts a transfer to a node that is behind: a failed
//! transfer leaves the cluster without a leader until an election.

use std::time::{Duration, Instant};

use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;
use quorate_store::raft::NodeId;

use super::{App, AppError};

/// Entries a successor may be behind at the moment of choosing; the leader sends it the rest before it gives up its place.
const BEHIND_MAX: u64 = 2_000;

impl App {
    /// Hands leadership to the best follower, or to `to`. Returns once another node leads, with its number.
    pub async fn transfer_leader(&self, to: Option<NodeId>, deadline: Instant) -> Result<NodeId, AppError> {
        let self_id = self.node_id();
        match self.inner.view.now().leader {
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
        let mut changes = self.inner.view.subscribe();
        self.inner
            .raft
            .trigger()
            .transfer_leader(successor)
            .await
            .map_err(|fatal| AppError::Fault(fatal.to_string()))?;
        let moved = changes.wait_for(|now| now.leader.is_some_and(|leader| leader != self_id));
        match tokio::time::timeout_at(deadline.into(), moved).await {
            Ok(Ok(leadership)) => Ok(leadership.leader.unwrap_or(successor)),
            Ok(Err(_)) | Err(_) => Err(AppError::Unknown),
        }
    }

    /// The voter asked for, or the one furthest ahead among those heard from lately.
    fn successor(&self, to: Option<NodeId>) -> Result<NodeId, AppError> {
        let metrics = self.inner.raft.metrics().borrow_watched().clone();
        let last = metrics.last_log_index.unwrap_or(0);
        let heard_lately = |id: &NodeId| {
            let heard = metrics.heartbeat.as_ref().and_then(|map| map.get(id)).and_then(Option::as_ref);
            heard.is_some_and(|instant| instant.elapsed() < Duration::from_secs(1))
        };
        let matched = |id: &NodeId| {
            let log_id = metrics.replication.as_ref().and_then(|map| map.get(id)).and_then(Option::as_ref);
            log_id.map_or(0, |log_id| log_id.index)
        };
        let fit = |id: &NodeId| *id != metrics.id && heard_lately(id) && matched(id) + BEHIND_MAX >= last;
        let voters = metrics.membership_config.voter_ids().filter(fit);
        let chosen = match to {
            Some(to) => voters.into_iter().find(|id| *id == to),
            None => voters.max_by_key(|id| matched(id)),
        };
        chosen.ok_or_else(|| match to {
            Some(to) if metrics.membership_config.voter_ids().all(|id| id != to) => {
                AppError::Refused(format!("node {to} has no vote, so it cannot lead"))
            }
            Some(to) => AppError::NotReady(format!("node {to} is not up to date and heard from")),
            None => AppError::NotReady("no other voter is up to date and heard from".into()),
        })
    }
}
