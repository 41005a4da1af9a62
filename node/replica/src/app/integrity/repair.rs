//! The way out of quarantine: the leader's state, as a snapshot, in place of the own.
//!
//! Owns the order on both sides. The node to be repaired takes no more entries (see [`crate::peer::gate`]), the leader makes a
//! snapshot of a later moment and sends it, and the node trusts itself again once it saw its state replaced. The leader looks all the
//! time whether it still leads and the others are a quorum without that node, and gives up where not. What breaks off in between
//! leaves a node in quarantine, and may be asked for again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use openraft::async_runtime::WatchReceiver;
use quorate_machine::command_codec;
use quorate_machine::types::{Action, Command, Maintenance};
use quorate_node_core::backend::{AppError, Repaired};
use quorate_store::raft::NodeId;
use quorate_store::state::snapshot::SnapshotHandle;
use quorate_threads::watchdog;

use super::super::members::cluster_view::ClusterView;
use super::super::members::plan::majority;
use super::super::view::Leadership;
use super::super::{App, Urgency, snapshot};
use crate::peer::message::{PeerRequest, PeerResponse, ProposalOutcome};

/// How long a node takes no entries unless the leader says again that it is on its way.
const HALT_MAX: Duration = Duration::from_secs(10);
/// How often the leader says so: whatever takes long meanwhile, three questions may get lost.
const SAY_AGAIN: Duration = Duration::from_secs(2);
/// How often the leader looks whether the cluster can do without that node.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// For one question.
const ASK: Duration = Duration::from_secs(5);
/// How long a snapshot may take to be made.
const SNAPSHOT_MAX: Duration = Duration::from_secs(300);

impl App {
    /// Rebuilds the state of a member in quarantine from the leader's. Takes as long as a snapshot takes to be made and sent; goes
    /// on when the deadline has passed, and asking again then waits for it.
    pub async fn repair(&self, node: NodeId, deadline: Instant) -> Result<Repaired, AppError> {
        match self.members().leader() {
            Some(leader) if leader == self.node_id() => {
                let app = self.clone();
                let work = watchdog::spawn(async move { app.repair_as_leader(node).await });
                match tokio::time::timeout_at(deadline.into(), work).await {
                    Ok(Ok(done)) => done,
                    Ok(Err(error)) => Err(AppError::Fault(format!("a repair ended: {error}"))),
                    Err(_) => Err(AppError::Unknown),
                }
            }
            Some(leader) => match self.peers().ask(leader, PeerRequest::Repair { node_id: node }, deadline).await {
                Ok(PeerResponse::Done) => Ok(Repaired::Done),
                Ok(PeerResponse::NotNeeded) => Ok(Repaired::NotNeeded),
                Ok(PeerResponse::Refused { reason }) => Err(AppError::NotReady(reason)),
                Ok(_) => Err(AppError::NoLeader),
                Err(error) => Err(AppError::NotReady(format!("node {leader}, which leads: {error}"))),
            },
            None => Err(AppError::NoLeader),
        }
    }

    async fn repair_as_leader(&self, node: NodeId) -> Result<Repaired, AppError> {
        let _one_at_a_time = self.integrity().repairs.lock().await;
        if let Some(reason) = self.quarantine() {
            return Err(AppError::NotReady(format!(
                "the leader, node {}, does not trust its own state: {reason}",
                self.node_id()
            )));
        }
        if node == self.node_id() {
            return Ok(Repaired::NotNeeded);
        }
        let leadership = self.members().view().now();
        let view = ClusterView::settled(self).await.ok_or(AppError::NoLeader)?;
        check_spared(&view, node)?;
        let _noted = UnderRepair::begin(self, node);
        let done = tokio::select! {
            done = self.replace_state_of(node) => done,
            stopped = self.stay_able(node, leadership) => Err(stopped),
        };
        // In any case: it may take entries again.
        let ended = self.ask_about_repair(node, PeerRequest::EndRepair).await;
        match (done?, ended?) {
            (Repaired::NotNeeded, _) => Ok(Repaired::NotNeeded),
            (Repaired::Done, PeerResponse::Done) => Ok(Repaired::Done),
            (Repaired::Done, other) => Err(unexpected(node, &other)),
        }
    }

    /// Says again and again that the repair goes on. Returns why it must not.
    async fn stay_able(&self, node: NodeId, leadership: Leadership) -> AppError {
        let mut said = Instant::now();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Some(view) = ClusterView::of(self).filter(|_| self.members().view().now() == leadership) else {
                return AppError::NotReady("another node leads by now: ask again".into());
            };
            if let Err(stopped) = check_spared(&view, node) {
                tracing::warn!(node, %stopped, "gave a repair up");
                return stopped;
            }
            if said.elapsed() < SAY_AGAIN {
                continue;
            }
            if let Err(error) = self.begin_repair_of(node).await {
                quorate_node_core::debug!(node, %error, "it was not told that its repair goes on");
            }
            said = Instant::now();
        }
    }

    async fn replace_state_of(&self, node: NodeId) -> Result<Repaired, AppError> {
        let Some(mut last) = self.begin_repair_of(node).await? else { return Ok(Repaired::NotNeeded) };
        let snapshot = loop {
            let (covered, snapshot) = self.snapshot_after(last).await?;
            // Entries that were on their way when it stopped taking them may have come since.
            match self.begin_repair_of(node).await? {
                Some(now) if now < covered => break snapshot,
                Some(now) => last = now,
                None => return Ok(Repaired::NotNeeded),
            }
        };
        let vote = self.raft().metrics().borrow_watched().vote;
        let sent = self.peers().send_snapshot(node, vote, Arc::new(snapshot)).await;
        sent.map_err(|error| AppError::NotReady(format!("the snapshot for node {node}: {error}")))?;
        Ok(Repaired::Done)
    }

    /// Has a node stop taking entries. Its last log index, unless it trusts its state.
    async fn begin_repair_of(&self, node: NodeId) -> Result<Option<u64>, AppError> {
        match self.ask_about_repair(node, PeerRequest::BeginRepair).await? {
            PeerResponse::RepairBegun { last_index } => Ok(Some(last_index)),
            PeerResponse::NotNeeded => Ok(None),
            other => Err(unexpected(node, &other)),
        }
    }

    async fn ask_about_repair(&self, node: NodeId, question: PeerRequest) -> Result<PeerResponse, AppError> {
        let answer = self.peers().ask(node, question, Instant::now() + ASK).await;
        answer.map_err(|error| AppError::NotReady(format!("node {node}: {error}")))
    }

    /// A snapshot that covers more than this log index, and what it covers.
    async fn snapshot_after(&self, index: u64) -> Result<(u64, SnapshotHandle), AppError> {
        // An entry of our own, so that there is one after it.
        let command = Command::unnamed(Action::Maintain(Maintenance::ExpireDue { limit: 1 }));
        let deadline = Instant::now() + ASK;
        let submitted =
            self.writes().proposer.submit(command_codec::encode_command(&command), Urgency::Urgent, true, deadline);
        let outcome = submitted.map_err(|_| AppError::Overloaded)?.outcome(deadline).await;
        if !matches!(outcome, Some(ProposalOutcome::Decided { .. })) {
            return Err(AppError::NotReady("no entry could be committed for the snapshot".into()));
        }
        // A build that fails would end the leader.
        if !self.upkeep().snapshots.have_room().await {
            return Err(AppError::NotReady(format!(
                "the data disk of the leader, node {}, has no room for a snapshot; free some space there, or let another node lead",
                self.node_id()
            )));
        }
        if !self.upkeep().snapshots.make(index + 1, SNAPSHOT_MAX).await.map_err(fault)? {
            return Err(AppError::NotReady(format!("no snapshot within {SNAPSHOT_MAX:?}")));
        }
        let snapshot = self.raft().get_snapshot().await.map_err(fault)?;
        let snapshot = snapshot.ok_or_else(|| AppError::Fault("the snapshot that was made is gone".into()))?;
        Ok((snapshot::index(&snapshot.meta.last_log_id), snapshot.snapshot))
    }

    /// The leader, node `by`, is about to replace this node's state: no more entries of it until then.
    pub(in super::super) async fn begin_repair(&self, by: NodeId) -> PeerResponse {
        let integrity = self.integrity();
        if !integrity.is_quarantined() {
            return PeerResponse::NotNeeded;
        }
        self.halt().begin(by, HALT_MAX);
        integrity.replaced_before.lock().get_or_insert(self.state().replacements());
        match self.raft().with_raft_state(|state| state.log_ids.last().map_or(0, |id| id.index)).await {
            Ok(last_index) => PeerResponse::RepairBegun { last_index },
            Err(fatal) => PeerResponse::Refused { reason: fatal.to_string() },
        }
    }

    /// The leader has done what it could: entries again, and trust where the state was replaced.
    pub(in super::super) async fn end_repair(&self) -> PeerResponse {
        let integrity = self.integrity();
        let before = integrity.replaced_before.lock().take();
        self.halt().end();
        if before.is_none_or(|before| self.state().replacements() == before) {
            return PeerResponse::Refused { reason: "the state was not replaced".into() };
        }
        if let Err(error) = integrity.lift().await {
            return PeerResponse::Refused { reason: format!("the mark of the quarantine stays: {error}") };
        }
        self.candidacy().hold_back(false);
        tracing::warn!("the state was replaced by the leader's: out of quarantine");
        PeerResponse::Done
    }
}

/// Refuses where the cluster could decide nothing while that node takes no entries.
fn check_spared(view: &ClusterView, node: NodeId) -> Result<(), AppError> {
    for config in &view.membership.configs {
        let others = config.iter().filter(|id| **id != node && view.membership.is_heard(**id)).count();
        if others < majority(config) {
            return Err(AppError::NotReady(format!(
                "node {node} takes no entries while it is repaired, and without it {others} of {} voters are heard of: \
                 bring another one back first",
                config.len()
            )));
        }
    }
    Ok(())
}

/// Tells whoever looks after the members that a node is under repair, until it is dropped.
struct UnderRepair<'a>(&'a App);

impl<'a> UnderRepair<'a> {
    fn begin(app: &'a App, node: NodeId) -> Self {
        *app.integrity().under_repair.lock() = Some(node);
        Self(app)
    }
}

impl Drop for UnderRepair<'_> {
    fn drop(&mut self) {
        *self.0.integrity().under_repair.lock() = None;
    }
}

fn fault(error: impl std::fmt::Display) -> AppError {
    AppError::Fault(error.to_string())
}

fn unexpected(node: NodeId, answer: &PeerResponse) -> AppError {
    match answer {
        PeerResponse::Refused { reason } => AppError::NotReady(format!("node {node}: {reason}")),
        PeerResponse::NotLeader { .. } => {
            AppError::NotReady(format!("node {node} does not know this node as the leader: ask again"))
        }
        other => AppError::Fault(format!("node {node} answered {other:?} to a repair")),
    }
}
