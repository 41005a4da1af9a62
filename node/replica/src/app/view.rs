//! The node's view of who leads, kept current by one task and read by everybody for a few nanoseconds.
//!
//! Owns the mapping from openraft's server metrics to [`Leadership`]. Never decides anything: a leader named here may
//! just have lost its place, and every path that depends on leadership checks again with openraft.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use openraft::async_runtime::WatchReceiver;
use openraft::{Instant as _, ServerState};
use openraft_rt_tokio::TokioInstant;
use quorate_node_core::backend::AppError;
use quorate_store::raft::NodeId;
use tokio::sync::watch;

use super::Raft;

/// Longest pause before another try where nothing is heard of a new leader: long enough not to compete with an election
/// for the CPU, short against one.
pub const TRY_AGAIN: Duration = Duration::from_millis(25);

/// How often the view looks when the leader was last heard.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Who leads, as far as this node knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leadership {
    /// Raft term.
    pub term: u64,
    /// The leader of that term, once known.
    pub leader: Option<NodeId>,
}

/// Shared, cheap view of the leadership.
///
/// Invariant: the two atomics may be read between two updates; each alone is always a value that was true.
pub struct View {
    term: AtomicU64,
    /// 0 stands for none: node ids start at 1.
    leader: AtomicU64,
    changes: watch::Sender<Leadership>,
    since: Instant,
    /// Milliseconds after `since` at which a leader was last heard, by the last look; 0 for never.
    heard_ms: AtomicU64,
    silence_max: Duration,
}

impl View {
    /// A view that knows no leader yet, and gives one up after `silence_max`.
    pub fn new(silence_max: Duration) -> Self {
        Self {
            term: AtomicU64::new(0),
            leader: AtomicU64::new(0),
            changes: watch::Sender::new(Leadership::default()),
            since: Instant::now(),
            heard_ms: AtomicU64::new(0),
            silence_max,
        }
    }

    /// Milliseconds since a leader was heard here (on the leader: since a quorum answered it); `None` for never. Up to
    /// [`LOOK_EVERY`] too old.
    pub fn silence_ms(&self) -> Option<u64> {
        let heard = self.heard_ms.load(Ordering::Relaxed);
        (heard != 0).then(|| self.elapsed_ms().saturating_sub(heard))
    }

    /// Time since a leader was heard here, as [`Self::silence_ms`] says it; since the start where none was heard yet.
    pub fn silence(&self) -> Duration {
        Duration::from_millis(self.silence_ms().unwrap_or_else(|| self.elapsed_ms()))
    }

    /// Whether a leader is known and was heard lately. The view alone names a dead leader until another is elected.
    pub fn hears_leader(&self) -> bool {
        let fresh = |silence| u128::from(silence) <= self.silence_max.as_millis();
        self.now().leader.is_some() && self.silence_ms().is_some_and(fresh)
    }

    /// The error of a request that found no leader until its deadline. Not applied.
    pub fn no_leader_error(&self) -> AppError {
        if self.hears_leader() { AppError::TimeoutNotProposed } else { AppError::NoLeader }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Looks again and again how long the leader has been silent, until openraft stops.
    pub async fn listen(&self, raft: &Raft) {
        loop {
            let (acked, is_a_quorum_alone) = {
                let metrics = raft.metrics().borrow_watched().clone();
                let is_alone = metrics.membership_config.voter_ids().eq([metrics.id]);
                (metrics.last_quorum_acked.map(|at| *at), is_alone && metrics.state == ServerState::Leader)
            };
            let heard = match acked {
                // openraft notes it only when something is written: there are no heartbeats to answer.
                _ if is_a_quorum_alone => Some(TokioInstant::now()),
                Some(acked) => Some(acked),
                None => match raft.with_raft_state(|state| state.vote_last_modified()).await {
                    Ok(heard) => heard,
                    Err(_stopped) => return,
                },
            };
            if let Some(heard) = heard {
                let silence = u64::try_from(heard.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.heard_ms.store(self.elapsed_ms().saturating_sub(silence).max(1), Ordering::Relaxed);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The latest view.
    pub fn now(&self) -> Leadership {
        let leader = self.leader.load(Ordering::Relaxed);
        Leadership { term: self.term.load(Ordering::Relaxed), leader: (leader != 0).then_some(leader) }
    }

    /// For waiting until it changes.
    pub fn subscribe(&self) -> watch::Receiver<Leadership> {
        self.changes.subscribe()
    }

    fn set(&self, leadership: Leadership) {
        self.term.store(leadership.term, Ordering::Relaxed);
        self.leader.store(leadership.leader.unwrap_or(0), Ordering::Relaxed);
        self.changes.send_if_modified(|current| {
            let changed = *current != leadership;
            *current = leadership;
            changed
        });
    }

    /// Follows openraft until it stops.
    pub async fn follow(&self, raft: &Raft) {
        let mut metrics = raft.server_metrics();
        loop {
            let leadership = {
                let current = metrics.borrow_watched();
                Leadership { term: current.vote.leader_id.term, leader: current.current_leader }
            };
            if leadership != self.now() {
                tracing::info!(term = leadership.term, leader = leadership.leader, "leadership");
            }
            self.set(leadership);
            if metrics.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Waits until the leadership is another than when `seen` was subscribed, or a moment has passed: the view names a
/// leader that died until the next one is elected. False: the deadline passed.
pub async fn wait_for_leader(mut seen: watch::Receiver<Leadership>, deadline: Instant) -> bool {
    let again = deadline.min(Instant::now() + TRY_AGAIN);
    // The view lives as long as the app, so this ends by a change or by the time.
    let _ = tokio::time::timeout_at(again.into(), seen.changed()).await;
    Instant::now() < deadline
}
