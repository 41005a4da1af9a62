//! The read path: one read-index question in flight serves every reader that asked before it began.
//!
//! Owns the queue of waiting readers. A reader only ever joins a question that starts after it arrived. Each question waits for a
//! quorum to answer; but openraft takes an answer for one to the latest notice that it covers, also where it was given to an
//! earlier one, before the reader came. So a read leans on the lease that such an answer gives: who gave it elects nobody else
//! until that is over, not even where its process ended meanwhile, which `peer::gate` sees to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use openraft::errors::{LinearizableReadError, RaftError};
use openraft::raft::ReadPolicy;
use quorate_store::raft::NodeId;
use quorate_threads::watchdog;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::Raft;
use super::peers::Peers;
use super::view::View;
use crate::peer::message::{PeerRequest, PeerResponse};

/// Questions in flight at once. A second one would halve the wait of a reader that comes just too late, and double the
/// rounds that all readers pay for: one served more reads.
const QUESTIONS_IN_FLIGHT_MAX: usize = 1;

/// Readers waiting for the next question.
const QUEUE_MAX: usize = 65_536;

/// How long one question to a remote leader may take before the readers ask again.
const ASK_TRY: Duration = Duration::from_millis(500);

/// The log index to wait for, or that this try found no leader able to tell.
type Answer = Option<u64>;

/// The front end. Cheap to clone.
#[derive(Clone)]
pub struct ReadIndex {
    queue: mpsc::Sender<oneshot::Sender<Answer>>,
    round: Arc<ReadIndexRound>,
}

/// How full the queue is.
pub struct Readers(mpsc::WeakSender<oneshot::Sender<Answer>>);

impl Readers {
    /// Readers that wait at the moment.
    pub fn now(&self) -> usize {
        self.0.upgrade().map_or(0, |queue| queue.max_capacity() - queue.capacity())
    }
}

struct ReadIndexRound {
    raft: Raft,
    view: Arc<View>,
    peers: Arc<Peers>,
    self_id: NodeId,
    metrics: Arc<quorate_node_core::metrics::Metrics>,
}

impl ReadIndex {
    /// Starts the gathering task; it ends when the last clone is dropped.
    pub fn start(
        raft: Raft,
        view: Arc<View>,
        peers: Arc<Peers>,
        self_id: NodeId,
        metrics: Arc<quorate_node_core::metrics::Metrics>,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let round = Arc::new(ReadIndexRound { raft, view, peers, self_id, metrics });
        watchdog::spawn(gather(waiting, round.clone()));
        Self { queue, round }
    }

    /// For watching the queue without keeping it open.
    pub fn readers(&self) -> Readers {
        Readers(self.queue.downgrade())
    }

    /// The log index that a read arriving now has to wait for; `None` where no leader could be asked by this try.
    pub async fn index(&self) -> Answer {
        let (answer, waiting) = oneshot::channel();
        self.queue.send(answer).await.ok()?;
        waiting.await.ok().flatten()
    }

    /// The read index for readers of a peer. Fails unless this node leads.
    pub async fn index_as_leader(&self) -> Answer {
        if self.round.view.now().leader != Some(self.round.self_id) {
            return None;
        }
        self.index().await
    }
}

async fn gather(mut waiting: mpsc::Receiver<oneshot::Sender<Answer>>, round: Arc<ReadIndexRound>) {
    let in_flight = Arc::new(Semaphore::new(QUESTIONS_IN_FLIGHT_MAX));
    loop {
        let mut readers = Vec::with_capacity(64);
        let permit = in_flight.clone().acquire_owned().await.expect("the semaphore is never closed");
        if waiting.recv_many(&mut readers, QUEUE_MAX).await == 0 {
            return;
        }
        let round = round.clone();
        watchdog::spawn(async move {
            let answer = round.ask().await;
            drop(permit);
            round.metrics.observe_read_round(readers.len());
            for reader in readers {
                // A reader that gave up needs no answer.
                let _ = reader.send(answer);
            }
        });
    }
}

impl ReadIndexRound {
    async fn ask(&self) -> Answer {
        match self.view.now().leader? {
            leader if leader == self.self_id => self.ask_own().await,
            leader => self.ask_leader(leader).await,
        }
    }

    async fn ask_own(&self) -> Answer {
        match self.raft.get_read_linearizer(ReadPolicy::ReadIndex).await {
            Ok(linearizer) => Some(linearizer.read_log_id().index()),
            Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(_))) => None,
            Err(error) => {
                quorate_node_core::debug!(%error, "no quorum for a read");
                None
            }
        }
    }

    async fn ask_leader(&self, leader: NodeId) -> Answer {
        let mut view = self.view.subscribe();
        let answer = tokio::select! {
            biased;
            answer = self.peers.ask(leader, PeerRequest::ReadIndex, Instant::now() + ASK_TRY) => answer,
            // A hung leader must not hold the readers once there is another.
            _ = view.wait_for(|now| now.leader.is_some_and(|now| now != leader)) => return None,
        };
        match answer {
            Ok(PeerResponse::ReadIndex { index }) => Some(index),
            Ok(other) => {
                quorate_node_core::debug!(leader, ?other, "no read index from the leader");
                None
            }
            Err(error) => {
                quorate_node_core::debug!(leader, %error, "no read index from the leader");
                None
            }
        }
    }
}
