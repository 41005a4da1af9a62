//! The node's view of who leads, kept current by one task and read by everybody for a few nanoseconds.
//!
//! Owns the mapping from openraft's server metrics to [`Leadership`]. Never decides anything: a leader named here may
//! just have lost its place, and every path that depends on leadership checks again with openraft.

use std::sync::atomic::{AtomicU64, Ordering};

use openraft::async_runtime::WatchReceiver;
use quorate_store::raft::NodeId;
use tokio::sync::watch;

use super::Raft;

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
}

impl View {
    /// A view that knows no leader yet.
    pub fn new() -> Self {
        Self {
            term: AtomicU64::new(0),
            leader: AtomicU64::new(0),
            changes: watch::Sender::new(Leadership::default()),
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
