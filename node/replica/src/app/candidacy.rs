//! Whether and when this node stands for election.
//!
//! Owns openraft's switch for that, and standing before silence has lasted an election timeout: a leader whose process ends leaves
//! connections that end at once. Never stands while the leader may count on a promise of this node, and never deposes one that others hear:
//! they refuse the pre-vote.

use std::time::Duration;

use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;
use openraft_rt_tokio::TokioInstant;
use parking_lot::Mutex;
use quorate_store::raft::NodeId;
use tokio::sync::mpsc;

use super::{Raft, View};

/// Ends of connections that wait to be looked at. More say nothing new.
const ENDS_MAX: usize = 16;

/// Shared by who knows a reason for or against standing.
pub struct Candidacy {
    raft: Raft,
    against: Mutex<Against>,
    ends: mpsc::Sender<NodeId>,
}

/// What speaks against standing.
#[derive(Debug, Clone, Copy)]
struct Against {
    /// It may have promised a leader to elect nobody else, before its process began.
    is_early: bool,
    /// It does not trust its state.
    is_held_back: bool,
}

/// When a node stands whose leader seems to have ended.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// For so long after it heard a leader a node elects nobody else.
    pub lease: Duration,
    /// From one candidate to the next.
    pub step: Duration,
}

/// The ends of connections, for [`Candidacy::run`].
pub struct Ends(mpsc::Receiver<NodeId>);

impl Candidacy {
    /// Of a node that stands from the start on, or, if `is_early`, once [`Self::begin`] says so.
    pub fn new(raft: Raft, is_early: bool) -> (Self, Ends) {
        let (ends, received) = mpsc::channel(ENDS_MAX);
        (Self { raft, against: Mutex::new(Against { is_early, is_held_back: false }), ends }, Ends(received))
    }

    /// It may stand, as far as its past is concerned.
    pub fn begin(&self) {
        self.change(|against| against.is_early = false);
    }

    /// Whether its state speaks against it.
    pub fn hold_back(&self, is_held_back: bool) {
        self.change(|against| against.is_held_back = is_held_back);
    }

    fn change(&self, change: impl FnOnce(&mut Against)) {
        let mut against = self.against.lock();
        change(&mut against);
        self.raft.runtime_config().elect(against.is_none());
    }

    /// A connection of a peer has ended.
    pub fn on_connection_end(&self, peer: NodeId) {
        // Where so many wait, one of the leader is among them, or another soon comes: it connects again and again.
        let _is_queued = self.ends.try_send(peer);
    }

    /// Looks at ended connections for as long as the node runs.
    pub async fn run(&self, mut ends: Ends, view: &View, timing: Timing) {
        while let Some(peer) = ends.0.recv().await {
            self.follow_up(peer, view, timing).await;
        }
    }

    /// Stands if that was the leader, and nothing more is heard of it or of another one for as long as its lease lasts.
    async fn follow_up(&self, peer: NodeId, view: &View, timing: Timing) {
        let before = view.now();
        if before.leader != Some(peer) {
            return;
        }
        let Some(heard) = self.heard().await else { return };
        let Some(place) = self.place_without(peer) else { return };
        tokio::time::sleep(timing.wait(place).saturating_sub(heard.elapsed())).await;
        if view.now() != before || self.heard().await != Some(heard) || !self.against.lock().is_none() {
            return;
        }
        tracing::info!(leader = peer, "the leader's connection ended, and nothing came since: standing for election");
        if self.raft.trigger().elect(true).await.is_err() {
            quorate_node_core::debug!("raft has stopped");
        }
    }

    /// When this node last heard a leader, or gave a vote.
    async fn heard(&self) -> Option<TokioInstant> {
        self.raft.with_raft_state(|state| state.vote_last_modified()).await.ok().flatten()
    }

    /// How many of the other voters stand before this one; `None` where it has no vote.
    fn place_without(&self, leader: NodeId) -> Option<u32> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let mut others = metrics.membership_config.voter_ids().filter(|id| *id != leader).collect::<Vec<_>>();
        others.sort_unstable();
        others.iter().position(|id| *id == metrics.id).and_then(|place| place.try_into().ok())
    }
}

impl Against {
    fn is_none(self) -> bool {
        !self.is_early && !self.is_held_back
    }
}

impl Timing {
    /// From the last word of a leader on: its lease, a little for those who heard it later, and a step for each who stands before.
    fn wait(self, place: u32) -> Duration {
        self.lease + self.step / 4 + self.step * place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_waits_for_the_lease_and_for_those_before_it() {
        let timing = Timing { lease: Duration::from_millis(200), step: Duration::from_millis(40) };
        assert_eq!([0, 1, 2].map(|place| timing.wait(place).as_millis()), [210, 250, 290]);
    }

    #[test]
    fn one_reason_against_it_is_enough() {
        for (is_early, is_held_back) in [(true, false), (false, true), (true, true)] {
            assert!(!Against { is_early, is_held_back }.is_none());
        }
        assert!(Against { is_early: false, is_held_back: false }.is_none());
    }
}
