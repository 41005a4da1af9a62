//! The read path: whether this node may answer, and how fresh its state is.
//!
//! Owns the checks and the waits before a read. Never reads for anybody: callers read the state once it is fresh.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quorate_machine::types::Revision;
use quorate_node_core::backend::{AppError, Consistency};
use quorate_node_core::timings::{self, Part};
use quorate_store::state::StateReader;

use super::integrity::Integrity;
use super::read_index::ReadIndex;
use super::view::{TRY_AGAIN, View, wait_for_leader};

/// Pause of a restarted node before it asks again how far the others are.
const RECOVERY_TRY: Duration = Duration::from_secs(5);

/// Why a node that was started again shows nothing yet: it would be less than it showed before.
const RECOVERING: &str =
    "the node is still applying its log again: no leader has said yet how far, or it is not there yet";

const DOUBTED: &str = "this data directory knows no other node of the join list, and none of them has answered yet: \
    it may be of another cluster";

/// The read path of a node.
pub struct ReadPath {
    state: StateReader,
    read_index: ReadIndex,
    view: Arc<View>,
    integrity: Arc<Integrity>,
    /// Set once the log that was here at start has been applied again.
    recovered: AtomicBool,
    /// Set while this disk may be another cluster's: see [`super::bootstrap::is_doubtful`].
    doubted: AtomicBool,
}

impl ReadPath {
    /// A read path over the state; `is_recovered` says whether the state has everything that this node showed before it was started.
    pub fn new(
        state: StateReader,
        read_index: ReadIndex,
        view: Arc<View>,
        integrity: Arc<Integrity>,
        is_recovered: bool,
    ) -> Self {
        let recovered = AtomicBool::new(is_recovered);
        Self { state, read_index, view, integrity, recovered, doubted: AtomicBool::new(false) }
    }

    /// The state to read from, after [`Self::barrier`].
    pub fn state(&self) -> &StateReader {
        &self.state
    }

    /// Refuses everything while this disk may be another cluster's, or its state is not trusted.
    pub fn check_disk(&self) -> Result<(), AppError> {
        if self.doubted.load(Ordering::Relaxed) {
            return Err(AppError::NotReady(DOUBTED.into()));
        }
        match self.integrity.why_not_served() {
            Some(reason) => Err(AppError::Quarantined(reason)),
            None => Ok(()),
        }
    }

    /// Returns once reads of [`Self::state`] are as fresh as asked for.
    pub async fn barrier(&self, consistency: Consistency, deadline: Instant) -> Result<(), AppError> {
        self.check_disk()?;
        match consistency {
            Consistency::Linearizable => timings::on(Part::Freshness, self.linearizable_barrier(deadline)).await,
            Consistency::Local => {
                self.check_recovered()?;
                let shown = tokio::time::timeout_at(deadline.into(), self.state.wait_answered());
                shown.await.map_err(|_| AppError::TimeoutNotProposed)
            }
            Consistency::AtLeast(revision) => {
                self.check_epoch(revision)?;
                // It may have shown more than this revision before it was started again.
                self.check_recovered()?;
                let reached = self.state.wait_revision(revision);
                let reached = timings::on(Part::Freshness, tokio::time::timeout_at(deadline.into(), reached)).await;
                reached.map_err(|_| AppError::TimeoutNotProposed)
            }
        }
    }

    async fn linearizable_barrier(&self, deadline: Instant) -> Result<(), AppError> {
        loop {
            let seen = self.view.subscribe();
            let confirmed = async {
                let index = self.read_index.index().await?;
                self.state.wait_applied(index).await;
                Some(())
            };
            match tokio::time::timeout_at(deadline.into(), confirmed).await {
                Ok(Some(())) => return Ok(()),
                Ok(None) if wait_for_leader(seen, deadline).await => {}
                Ok(None) | Err(_) => return Err(self.view.no_leader_error()),
            }
        }
    }

    /// The read index for a peer's readers. `None` unless this node leads.
    pub async fn index_as_leader(&self) -> Option<u64> {
        self.read_index.index_as_leader().await
    }

    /// Whether this node shows what it showed before it was started, or more: see [`Self::recover`].
    pub fn is_recovered(&self) -> bool {
        self.recovered.load(Ordering::Relaxed)
    }

    fn check_recovered(&self) -> Result<(), AppError> {
        if self.is_recovered() { Ok(()) } else { Err(AppError::NotReady(RECOVERING.into())) }
    }

    /// Refuses a revision of another history, since this one may lack what the caller saw there. 0 and 1 belong to no history.
    fn check_epoch(&self, revision: Revision) -> Result<(), AppError> {
        match self.state.epoch_revision() {
            begun if revision > 1 && revision < begun => Err(AppError::AnotherEpoch { revision, begun }),
            _ => Ok(()),
        }
    }

    /// Returns once this node shows what it showed before it was started, or more; until then it shows nothing that was not asked of
    /// a leader. Its own log does not say how far that was: a follower applies what a quorum has, whether or not its own disk has it
    /// yet, and a loss of power takes that. A node that stopped cleanly has noted it, and asks nobody.
    pub async fn recover(&self) {
        while !self.is_recovered()
            && self.barrier(Consistency::Linearizable, Instant::now() + RECOVERY_TRY).await.is_err()
        {
            tokio::time::sleep(TRY_AGAIN).await;
        }
        self.recovered.store(true, Ordering::Relaxed);
    }

    /// Why reads should go to another node, if so.
    pub fn unready_reason(&self) -> Option<String> {
        if self.doubted.load(Ordering::Relaxed) {
            return Some(DOUBTED.into());
        }
        if let Some(reason) = self.integrity.why_not_served() {
            return Some(reason);
        }
        if !self.is_recovered() {
            return Some(RECOVERING.into());
        }
        (!self.view.hears_leader()).then(|| "no leader is heard of at the moment".into())
    }

    /// Nothing is answered before [`Self::trust_disk`].
    pub fn doubt_disk(&self) {
        self.doubted.store(true, Ordering::Relaxed);
    }

    /// The disk is this cluster's: requests are answered from now on.
    pub fn trust_disk(&self) {
        if self.doubted.swap(false, Ordering::Relaxed) {
            tracing::info!("the disk is of the cluster of the join list");
        }
    }
}
