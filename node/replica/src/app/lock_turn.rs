//! Waiting to lock an entry: for one's turn in the queue that the leader keeps, and until nobody holds the lock.
//!
//! Owns the way to that queue, here or at another node, through changes of the leader: the queue at the next one begins with who comes
//! first there. Never locks anything: whoever has its turn proposes that by itself, and may find that somebody who did not wait was
//! faster.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_machine::query::StateFault;
use quorate_machine::types::{Key, Waker};
use quorate_node_core::backend::LockPlace;
use quorate_store::raft::NodeId;
use quorate_store::state::StateReader;
use quorate_threads::watchdog;
use tokio::sync::Semaphore;

use super::integrity::Integrity;
use super::lock_queues::{Attended, LockQueues, Stay};
use super::peers::{Peers, QueryError};
use super::view::{View, wait_for_leader};
use super::waiting::WaitingCount;
use crate::peer::CallError;
use crate::peer::message::{PeerRequest, PeerResponse};

/// How long one question to the leader waits for a turn; then it is asked again, which shows that somebody still waits.
const QUESTION: Duration = Duration::from_secs(1);

/// How much longer its answer may be on the way.
const ON_THE_WAY: Duration = Duration::from_millis(500);

/// Questions to the leader at a time: they share a connection with forwarded writes.
const QUESTIONS_MAX: usize = 1_024;

/// How long it may take until a place at another node is given up.
const LEAVING: Duration = Duration::from_secs(1);

/// Shortest pause before a lock is looked at again that should have ended by now.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Turns to lock entries, at this node or at the one that leads.
pub struct LockTurns {
    node_id: NodeId,
    state: StateReader,
    view: Arc<View>,
    peers: Arc<Peers>,
    integrity: Arc<Integrity>,
    waiting: WaitingCount,
    /// Those who wait, while this node leads.
    queues: LockQueues,
    /// Held while the leader is asked for a turn.
    questions: Semaphore,
}

/// The place as the node keeps it.
pub struct QueuePlace {
    turns: Arc<LockTurns>,
    key: Key,
    id: u128,
    /// In a queue of this node's own.
    here: Option<Attended>,
    /// In the queue of another node.
    there: Option<NodeId>,
}

/// What a wait for a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is its turn.
    Come,
    /// It is not yet.
    NotYet,
    /// Queues are kept elsewhere.
    NotLeader,
    /// No more may wait.
    Full,
}

impl LockTurns {
    /// The turns at the node `node_id`, by its state and its view of the leadership.
    pub fn new(
        node_id: NodeId,
        state: StateReader,
        view: Arc<View>,
        peers: Arc<Peers>,
        integrity: Arc<Integrity>,
        waiting: WaitingCount,
        queues: LockQueues,
    ) -> Self {
        let questions = Semaphore::new(QUESTIONS_MAX);
        Self { node_id, state, view, peers, integrity, waiting, queues, questions }
    }

    /// A place to be taken in the queue of those who wait to lock an entry.
    pub fn place(self: &Arc<Self>, key: Key) -> QueuePlace {
        QueuePlace { turns: Arc::clone(self), key, id: rand::random(), here: None, there: None }
    }

    /// Gives up a place that somebody who waits at another node has here.
    pub fn leave(&self, key: &Key, id: u128) {
        self.queues.leave(key, id);
    }

    /// Answers another node that asks for the turn of somebody who waits there.
    pub async fn turn_of_peer(&self, key: &Key, id: u128, hold: Duration) -> Result<Turn, StateFault> {
        if !self.leads() {
            return Ok(Turn::NotLeader);
        }
        let Some(place) = self.queues.attend(key, id, Stay::Kept) else { return Ok(Turn::Full) };
        self.turn_in_queue(&place, key, Instant::now() + hold.min(QUESTION), true).await
    }

    fn leads(&self) -> bool {
        self.view.now().leader == Some(self.node_id) && !self.integrity.is_quarantined()
    }

    /// Waits at a place of this node's own; while this node leads, where that is asked for.
    async fn turn_in_queue(
        &self,
        place: &Attended,
        key: &Key,
        until: Instant,
        leads: bool,
    ) -> Result<Turn, StateFault> {
        let mut view = self.view.subscribe();
        let own = self.node_id;
        let is_lost = async {
            match leads {
                // The view lives as long as the app.
                true => drop(view.wait_for(|now| now.leader != Some(own)).await),
                false => std::future::pending().await,
            }
        };
        let come = async {
            place.come_first().await;
            self.wait_unlocked(key).await
        };
        tokio::select! {
            biased;
            () = is_lost => Ok(Turn::NotLeader),
            come = tokio::time::timeout_at(until.into(), come) => match come {
                Ok(found) => found.map(|()| Turn::Come),
                Err(_late) => Ok(Turn::NotYet),
            },
        }
    }

    /// Waits until this node's state shows no lock on an entry.
    async fn wait_unlocked(&self, key: &Key) -> Result<(), StateFault> {
        let waker = Waker::of_entry_lock(key);
        loop {
            // Whoever had the turn before may have been answered already.
            self.state.wait_answered().await;
            let Some(left) = self.lock_left(key)? else { return Ok(()) };
            let look = || Ok(self.lock_left(key)?.is_none());
            self.state.wait_woken(&waker, left.max(LOOK_AGAIN), look).await?;
        }
    }

    /// How long the lock on an entry holds by itself, if there is one.
    fn lock_left(&self, key: &Key) -> Result<Option<Duration>, StateFault> {
        let read = self.state.get(key)?;
        let until = read.entry.and_then(|entry| entry.meta.locked_until);
        let left = until.and_then(|until| until.checked_sub(read.at.clock)).filter(|left| *left > 0);
        Ok(left.map(Duration::from_millis))
    }
}

impl LockPlace for QueuePlace {
    fn turn(&mut self, until: Instant) -> BoxFuture<'_, Result<bool, StateFault>> {
        Box::pin(async move {
            let turns = Arc::clone(&self.turns);
            let _waiting = turns.waiting.enter();
            loop {
                let seen = turns.view.subscribe();
                match self.try_turn(&turns, until).await? {
                    Turn::Come => return Ok(true),
                    Turn::Full => return Ok(false),
                    Turn::NotYet if Instant::now() < until => {}
                    Turn::NotYet => return Ok(false),
                    Turn::NotLeader if wait_for_leader(seen, until).await => {}
                    Turn::NotLeader => return Ok(false),
                }
            }
        })
    }
}

impl QueuePlace {
    /// Asks whoever leads, for a while.
    async fn try_turn(&mut self, turns: &LockTurns, until: Instant) -> Result<Turn, StateFault> {
        match turns.view.now().leader {
            None => Ok(Turn::NotLeader),
            Some(leader) if leader == turns.node_id => self.turn_here(turns, until, true).await,
            Some(leader) => match self.ask(turns, leader, until).await {
                // A build that keeps no queues: those who wait at this node are in order at least.
                None => self.turn_here(turns, until.min(Instant::now() + QUESTION), false).await,
                Some(turn) => {
                    self.here = None;
                    Ok(turn)
                }
            },
        }
    }

    async fn turn_here(&mut self, turns: &LockTurns, until: Instant, leads: bool) -> Result<Turn, StateFault> {
        self.there = None;
        let place = match self.here.take() {
            Some(place) => place,
            None => match turns.queues.attend(&self.key, self.id, Stay::Gone) {
                Some(place) => place,
                None => return Ok(Turn::Full),
            },
        };
        let place = self.here.insert(place);
        turns.turn_in_queue(place, &self.key, until, leads).await
    }

    /// Asks another node. `None`: it does not know what a queue is.
    async fn ask(&mut self, turns: &LockTurns, leader: NodeId, until: Instant) -> Option<Turn> {
        let asking = tokio::time::timeout_at(until.into(), turns.questions.acquire()).await;
        let Ok(Ok(_asking)) = asking else { return Some(Turn::NotYet) };
        let hold = QUESTION.min(until.saturating_duration_since(Instant::now()));
        // At most a second.
        let hold_ms = hold.as_millis() as u32;
        let question = PeerRequest::LockTurn { key: self.key.clone(), place: self.id, hold_ms };
        self.there = Some(leader);
        match turns.peers.ask(leader, question, Instant::now() + hold + ON_THE_WAY).await {
            Ok(PeerResponse::Turn { has_come: true }) => Some(Turn::Come),
            Ok(PeerResponse::Turn { has_come: false }) => Some(Turn::NotYet),
            Ok(PeerResponse::Refused { .. }) => Some(Turn::Full),
            Err(QueryError::Call(CallError::Refused(_))) => None,
            // Another leads by now, or this one is not to be reached.
            Ok(_) | Err(_) => Some(Turn::NotLeader),
        }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let Some(leader) = self.there.take() else { return };
        let (turns, key, place) = (Arc::clone(&self.turns), self.key.clone(), self.id);
        watchdog::spawn(async move {
            let question = PeerRequest::LeaveLockQueue { key, place };
            // The place goes by itself where this does not come.
            if let Err(error) = turns.peers.ask(leader, question, Instant::now() + LEAVING).await {
                quorate_node_core::debug!(leader, %error, "a place in the queue of a lock was not given up");
            }
        });
    }
}
