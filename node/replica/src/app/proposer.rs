//! The write path: gathers concurrent commands into groups and gets each group decided, here or at the leader.
//!
//! Owns the queues of commands that wait for a group, and the outcome reported for each. Commands by which others hold on to life have
//! a queue and groups of their own, on followers and on the leader, so that no crowd of writes stands before them; and so do large commands, each
//! of which keeps the log and the state busy for as long as hundreds of small ones: while there are small ones, too, a leader gives large ones half
//! of the time. Short ones that are as much work go by themselves, and wait for all others, once that is known. Never retries: a command
//! whose outcome is `NotProposed`, `Dear` or `Unknown` goes back to [`super::write::WritePath::write`], which knows whether a retry is safe.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::ClientWriteError;
use openraft::impls::ProgressResponder;
use openraft::raft::ReadPolicy;
use quorate_machine::command_codec;
use quorate_machine::limits::BATCH_BYTES_SOFT_MAX;
use quorate_machine::types::{Action, Batch, Command, Outcome, Reply, WallMillis};
use quorate_node_core::backend::AppError;
use quorate_node_core::limits::DEAR_BYTES;
use quorate_node_core::metrics::Metrics;
use quorate_store::raft::{BatchReply, CommittedLeaderId, EncodedBatch, NodeId};
use quorate_store::state::StateReader;
use quorate_threads::watchdog;
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;

use super::Raft;
use super::awake::Awake;
use super::clock::Clock;
use super::dear::DearEntries;
use super::lanes::{Decided, Lane, Traffic, Weight};
use super::peers::Peers;
use super::view::View;
use super::wall::{self, WallClocks};
use crate::peer::message::{Forwarded, PeerRequest, PeerResponse, ProposalOutcome};

/// How often the task that makes groups lets others bring their commands, as long as they do. Bounds what that costs a command that waits.
const GATHERING_TURNS_MAX: usize = 16;

/// From so many bytes on a command goes by itself: a group would save nothing, and who writes little would wait for all of it.
const LARGE_BYTES: usize = 16 * 1024;

/// Commands waiting for a group. Beyond it clients are told to come again.
const QUEUE_COMMANDS_MAX: usize = 16_384;

/// Bytes of commands waiting for a group.
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Which queue a command stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Most of them.
    Usual,
    /// Sessions, locks and what hangs on them: small, few, and others wait for them.
    Urgent,
    /// Short commands that look into dear entries, or search where that is dear (see [`super::dear`]): each may be as much work as a large one.
    Patient,
}

impl Urgency {
    /// Of a command that does this.
    pub fn of(action: &Action) -> Self {
        if action.is_vital() { Self::Urgent } else { Self::Usual }
    }
}

/// How long one try at a remote leader may take before its commands count as `Unknown` and go elsewhere.
const FORWARD_TRY: Duration = Duration::from_millis(1_000);
/// The same for a large command, which stands behind others there: one that goes again is as much work again.
const FORWARD_TRY_LARGE: Duration = Duration::from_millis(5_000);

/// A command on its way.
pub struct Pending {
    command: Bytes,
    /// Came from a peer: decide it here or not at all, so that two nodes never pass it to and fro.
    local_only: bool,
    /// Nobody waits for its outcome after that: it is not to be proposed any more.
    deadline: Instant,
    /// Set by whoever is first: the group that takes the command, or its submitter on giving up.
    claimed: Arc<AtomicBool>,
    done: oneshot::Sender<ProposalOutcome>,
}

impl Pending {
    /// As it travels to the leader.
    fn forwarded(&self, now: Instant) -> Forwarded {
        let left = self.deadline.saturating_duration_since(now).as_millis();
        Forwarded { command: self.command.to_vec(), within_ms: u32::try_from(left).unwrap_or(u32::MAX) }
    }
}

/// A command in the queue, as its submitter holds it.
pub struct Submitted {
    claimed: Arc<AtomicBool>,
    done: oneshot::Receiver<ProposalOutcome>,
}

impl Submitted {
    /// What became of the command. `None` after the deadline where it was still waiting and is now withdrawn: it will
    /// never be proposed.
    pub async fn outcome(self, deadline: Instant) -> Option<ProposalOutcome> {
        match tokio::time::timeout_at(deadline.into(), self.done).await {
            Ok(proposal_outcome) => Some(proposal_outcome.unwrap_or(ProposalOutcome::Unknown)),
            Err(_late) if self.claimed.swap(true, Ordering::AcqRel) => Some(ProposalOutcome::Unknown),
            Err(_late) => None,
        }
    }
}

/// The queues' front end. Cheap to clone.
#[derive(Clone)]
pub struct Proposer {
    usual: Queue,
    urgent: Queue,
    large: Queue,
    patient: Queue,
    dear: Arc<DearEntries>,
}

/// The front end of one of them.
#[derive(Clone)]
struct Queue {
    sender: mpsc::Sender<Pending>,
    bytes: Arc<AtomicUsize>,
}

/// What the proposer works with.
pub struct ProposerParts {
    /// The Raft group.
    pub raft: Raft,
    /// For the clock at the start of a leadership.
    pub state: StateReader,
    /// Who leads.
    pub view: Arc<View>,
    /// The leader's cluster clock.
    pub clock: Clock,
    /// The cluster's wall clock.
    pub wall_clocks: Arc<WallClocks>,
    /// The way to other nodes.
    pub peers: Arc<Peers>,
    /// This node.
    pub self_id: NodeId,
    /// What batches and forwards are counted in.
    pub metrics: Arc<Metrics>,
    /// Told that a write is on its way, and that another may follow it.
    pub awake: Awake,
}

impl Proposer {
    /// Starts the gathering tasks; they end when the last clone of the proposer is dropped.
    pub fn start(parts: Arc<ProposerParts>) -> Self {
        watchdog::spawn(watch_clock(Arc::downgrade(&parts)));
        let (traffic, dear) = (Arc::new(Traffic::default()), Arc::new(DearEntries::default()));
        let start = |urgency, weight| {
            let lane = Lane::new(weight, Arc::clone(&traffic));
            Gatherer::start(urgency, lane, Arc::clone(&dear), parts.clone())
        };
        Self {
            usual: start(Urgency::Usual, Weight::Small),
            urgent: start(Urgency::Urgent, Weight::Small),
            large: start(Urgency::Usual, Weight::Large),
            patient: start(Urgency::Patient, Weight::Dear),
            dear,
        }
    }

    fn queue(&self, urgency: Urgency, bytes: usize) -> &Queue {
        match urgency {
            Urgency::Usual if bytes >= LARGE_BYTES => &self.large,
            Urgency::Usual => &self.usual,
            Urgency::Urgent => &self.urgent,
            Urgency::Patient => &self.patient,
        }
    }

    /// Chooses the queue of a command.
    pub fn urgency_of(&self, command: &Command) -> Urgency {
        if self.dear.are_looked_into(command) { Urgency::Patient } else { Urgency::of(&command.action) }
    }

    /// Chooses that of the only command of a group that another node forwarded. In a larger group, which all would wait for, they are looked
    /// for before it is proposed: they are sent back, to be forwarded alone.
    pub fn urgency_of_forwarded(&self, command: &Bytes, told: Urgency) -> Urgency {
        let is_patient = told == Urgency::Usual && self.dear.are_looked_into_by(command);
        if is_patient { Urgency::Patient } else { told }
    }

    /// Learns from what a command came to that was decided here or at the leader.
    pub fn learn(&self, command: &Bytes, reply: &Reply) {
        if !reply.replayed {
            self.dear.note(&reply.outcome, || command_codec::decode_command(command).ok());
        }
    }

    /// Learns that a command is dear, as who leads has found.
    pub fn learn_dear(&self, command: &[u8]) {
        self.dear.note_told(command);
    }

    /// Queues one encoded command, to be proposed until the deadline or never. Fails where the queue is full: nothing was proposed.
    pub fn submit(
        &self,
        command: Bytes,
        urgency: Urgency,
        local_only: bool,
        deadline: Instant,
    ) -> Result<Submitted, AppError> {
        let length = command.len();
        let queue = self.queue(urgency, length);
        if queue.bytes.fetch_add(length, Ordering::Relaxed) + length > QUEUE_BYTES_MAX {
            queue.bytes.fetch_sub(length, Ordering::Relaxed);
            return Err(AppError::Overloaded);
        }
        let (done, proposal_outcome) = oneshot::channel();
        let claimed = Arc::new(AtomicBool::new(false));
        let pending = Pending { command, local_only, deadline, claimed: claimed.clone(), done };
        queue.sender.try_send(pending).map_err(|error| {
            queue.bytes.fetch_sub(length, Ordering::Relaxed);
            match error {
                mpsc::error::TrySendError::Full(_) => AppError::Overloaded,
                mpsc::error::TrySendError::Closed(_) => AppError::NotReady("the node is stopping".into()),
            }
        })?;
        Ok(Submitted { claimed, done: proposal_outcome })
    }

    /// For watching the queues without keeping them open.
    pub fn backlog(&self) -> Backlog {
        let queues = [&self.usual, &self.urgent, &self.large, &self.patient];
        Backlog(queues.map(|queue| (queue.sender.downgrade(), queue.bytes.clone())))
    }
}

/// How full the queues are.
pub struct Backlog([(mpsc::WeakSender<Pending>, Arc<AtomicUsize>); 4]);

impl Backlog {
    /// Commands and their bytes that wait at the moment.
    pub fn now(&self) -> (usize, usize) {
        let (mut commands, mut bytes) = (0, 0);
        for (queue, queued_bytes) in &self.0 {
            commands += queue.upgrade().map_or(0, |queue| queue.max_capacity() - queue.capacity());
            bytes += queued_bytes.load(Ordering::Relaxed);
        }
        (commands, bytes)
    }
}

struct Gatherer {
    urgency: Urgency,
    lane: Lane,
    waiting: mpsc::Receiver<Pending>,
    queued_bytes: Arc<AtomicUsize>,
    dear: Arc<DearEntries>,
    parts: Arc<ProposerParts>,
}

impl Gatherer {
    fn start(urgency: Urgency, lane: Lane, dear: Arc<DearEntries>, parts: Arc<ProposerParts>) -> Queue {
        let (sender, waiting) = mpsc::channel(QUEUE_COMMANDS_MAX);
        let bytes = Arc::new(AtomicUsize::new(0));
        let gatherer = Self { urgency, lane, waiting, queued_bytes: bytes.clone(), dear, parts };
        watchdog::spawn(gatherer.run());
        Queue { sender, bytes }
    }

    async fn run(mut self) {
        let mut left_over = None;
        loop {
            let first = match left_over.take() {
                Some(pending) => pending,
                None => match self.waiting.recv().await {
                    Some(pending) => pending,
                    None => return,
                },
            };
            // Waiting for the turn with a command in hand is what makes groups: the queue fills meanwhile.
            let turn = self.lane.turn().await;
            self.let_others_come().await;
            let group;
            (group, left_over) = self.gather(first);
            let (parts, urgency, dear) = (self.parts.clone(), self.urgency, Arc::clone(&self.dear));
            watchdog::spawn(turn.take(async move { parts.decide(group, urgency, &dear).await }));
        }
    }

    /// Requests that come together are tasks of their own: while these bring commands, each of those needs no group of its own. A group costs
    /// as much as twenty commands, so it waits for all that is about to come, and for nothing else.
    async fn let_others_come(&self) {
        for _ in 0..GATHERING_TURNS_MAX {
            let before = self.waiting.len();
            tokio::task::yield_now().await;
            if self.waiting.len() == before || self.waiting.len() >= self.lane.weight().commands_max() {
                return;
            }
        }
    }

    /// Takes what waits, up to the bounds of a batch. The second part did not fit any more.
    fn gather(&mut self, first: Pending) -> (Vec<Pending>, Option<Pending>) {
        let mut bytes = 0;
        let mut group = Vec::with_capacity(64);
        let mut next = Some(first);
        while let Some(pending) = next.take().or_else(|| self.waiting.try_recv().ok()) {
            let length = pending.command.len();
            if !group.is_empty() && bytes + length > BATCH_BYTES_SOFT_MAX {
                return (group, Some(pending));
            }
            self.queued_bytes.fetch_sub(length, Ordering::Relaxed);
            bytes += length;
            group.push(pending);
            if group.len() == self.lane.weight().commands_max() {
                break;
            }
        }
        (group, None)
    }
}

impl ProposerParts {
    async fn decide(&self, mut group: Vec<Pending>, urgency: Urgency, dear: &DearEntries) -> Decided {
        // A command whose submitter gave up first was answered with "not applied": it must never be proposed.
        group.retain(|pending| !pending.claimed.swap(true, Ordering::AcqRel));
        // One of a peer has nobody here who gives up for it, and the client that it came from was answered by now.
        let now = Instant::now();
        let (late, group): (Vec<_>, Vec<_>) = group.into_iter().partition(|pending| pending.deadline <= now);
        settle(late, || ProposalOutcome::NotProposed);
        if group.is_empty() {
            return Decided::NotHere;
        }
        match self.view.now().leader {
            Some(leader) if leader == self.self_id => {
                self.propose(group, urgency, dear).await;
                return Decided::Here;
            }
            Some(leader) => {
                let (stranded, group): (Vec<_>, Vec<_>) = group.into_iter().partition(|pending| pending.local_only);
                settle(stranded, || ProposalOutcome::NotProposed);
                self.forward(leader, group, urgency).await;
            }
            None => settle(group, || ProposalOutcome::NotProposed),
        }
        Decided::NotHere
    }

    /// Proposes the group until nothing of it is deferred: a batch whose effects grow too large leaves its rest undecided,
    /// but always decides its first command. A command that is known to be dear goes back and comes again alone, so that no others wait for it.
    async fn propose(&self, mut group: Vec<Pending>, urgency: Urgency, dear: &DearEntries) {
        loop {
            if urgency == Urgency::Usual && dear.may_be_any() {
                let is_dear = |pending: &Pending| dear.are_looked_into_by(&pending.command);
                let (too_dear, others): (Vec<_>, Vec<_>) = group.into_iter().partition(is_dear);
                settle(too_dear, || ProposalOutcome::Dear);
                group = others;
            }
            if group.is_empty() {
                return;
            }
            let commands = group.iter().map(|pending| pending.command.clone()).collect();
            let (index, BatchReply { replies, costs }) = match self.put_in_log(commands).await {
                Ok(done) => done,
                Err(proposal_outcome) => return settle(group, || proposal_outcome.clone()),
            };
            assert_eq!(costs.len(), group.len(), "a batch is answered with one cost for each command");
            for (pending, cost) in group.iter().zip(&costs).filter(|(_, cost)| **cost as usize >= DEAR_BYTES) {
                // Long ones on entries have a queue of their own already. Searches are to leave others more time than that: any can be made long.
                if pending.command.len() < LARGE_BYTES {
                    dear.note_taken(&pending.command, *cost as usize);
                } else {
                    dear.note_search(&pending.command, *cost as usize);
                }
            }
            if urgency == Urgency::Urgent {
                // Who coordinates looks at the state right after the answer: for its place in a queue, or who else came.
                self.state.wait_applied(index).await;
            }
            assert_eq!(replies.len(), group.len(), "a batch is answered with one reply for each command");
            let mut deferred = Vec::new();
            for ((pending, reply), cost) in group.into_iter().zip(replies).zip(costs) {
                if reply.outcome == Outcome::Deferred {
                    deferred.push(pending);
                } else {
                    // The receiver may have given up; its outcome is in the request table.
                    let _ = pending.done.send(ProposalOutcome::Decided { reply, cost });
                }
            }
            group = deferred;
        }
    }

    /// Stamps and proposes one batch of the node's own housekeeping (an empty one moves the clocks). Returns once reads here see
    /// what it did: what is done next follows from what they see.
    pub async fn write_batch(&self, commands: Vec<Bytes>) -> Result<Vec<Reply>, ProposalOutcome> {
        let (index, BatchReply { replies, .. }) = self.put_in_log(commands).await?;
        self.state.wait_applied(index).await;
        Ok(replies)
    }

    /// Stamps and proposes one batch. Gives its log index and what came of it, a moment before reads see what it says.
    async fn put_in_log(&self, commands: Vec<Bytes>) -> Result<(u64, BatchReply), ProposalOutcome> {
        self.awake.expect();
        let (leadership, clock) = self.stamp().await.ok_or(ProposalOutcome::NotProposed)?;
        let _under_way = self.clock.propose(leadership);
        let count = commands.len();
        let batch = Batch { clock, wall: self.wall_of(leadership), seed: rand::random(), commands };
        let batch = command_codec::encode_batch(&batch);
        self.metrics.observe_batch(count, batch.len());
        let begin = Instant::now();
        let (responder, written) = ProgressResponder::complete_only();
        let proposal = self.raft.write(EncodedBatch(batch)).responder(responder).with_leader(leadership);
        if let Err(fatal) = proposal.await {
            quorate_node_core::debug!(%fatal, "raft takes no proposals any more");
            return Err(ProposalOutcome::Unknown);
        }
        match written.await {
            Ok(Ok(response)) => {
                self.metrics.observe_batch_done(begin.elapsed());
                self.awake.expect();
                Ok((response.log_id.index, response.data))
            }
            // Rejected before it was appended: openraft gives these two for nothing else.
            Ok(Err(ClientWriteError::ForwardToLeader(_) | ClientWriteError::PreconditionFailed(_))) => {
                Err(ProposalOutcome::NotProposed)
            }
            Ok(Err(error)) => {
                quorate_node_core::debug!(%error, "a proposed batch has an unknown outcome");
                Err(ProposalOutcome::Unknown)
            }
            Err(_stopped) => Err(ProposalOutcome::Unknown),
        }
    }

    /// The current leadership, if it is ours, and its clock. The first call under a leadership waits until everything
    /// committed before it is applied here, so that the clock continues from the last replicated value.
    async fn stamp(&self) -> Option<(CommittedLeaderId, u64)> {
        if let Some(stamp) = self.clock_of_mine() {
            return Some(stamp);
        }
        let leads = || Some(self.raft.as_leader().ok()?.to_committed_leader_id());
        let (confirmed, base) = confirm_one(leads, || self.confirmed_clock()).await?;
        // After a night off the last stamp says nothing of what time it is.
        self.wall_clocks.wait_for_majority(&wall::voters(&self.raft), self.state.wall_by_now()).await;
        self.clock.anchor(confirmed, base);
        Some((confirmed, self.clock.cluster_now(&confirmed, None)?))
    }

    /// The wall clock under this leadership, which is ours.
    fn wall_of(&self, leadership: CommittedLeaderId) -> WallMillis {
        // So long as this node has run on, the time in which nobody led is not lost.
        self.wall_clocks.stamp(&wall::voters(&self.raft), leadership, || self.state.wall_by_now())
    }

    /// What the next batch would be stamped with, if this node leads. May be the first to ask under a leadership.
    pub async fn wall_now(&self) -> Option<WallMillis> {
        let (leadership, _) = self.stamp().await?;
        Some(self.wall_of(leadership))
    }

    /// The replicated clock, once everything is applied that was committed before this node led.
    async fn confirmed_clock(&self) -> Option<u64> {
        // The lease is enough here, and costs no round: all that is needed is that what earlier leaders committed is
        // applied, and the proposal itself is refused unless this leadership still stands.
        match self.raft.get_read_linearizer(ReadPolicy::LeaseRead).await {
            Ok(linearizer) => {
                self.state.wait_applied(linearizer.read_log_id().index()).await;
                Some(self.state.position().clock)
            }
            Err(error) => {
                quorate_node_core::debug!(%error, "leadership not confirmed yet");
                None
            }
        }
    }

    /// The current leadership, if it is ours and was anchored, and its clock.
    fn clock_of_mine(&self) -> Option<(CommittedLeaderId, u64)> {
        let leader = self.raft.as_leader().ok()?;
        let heard = leader.last_quorum_acked().and_then(|heard| Instant::now().checked_sub(heard.elapsed()));
        let leadership = leader.to_committed_leader_id();
        let heard = if self.is_alone() { Some(Instant::now()) } else { heard };
        Some((leadership, self.clock.cluster_now(&leadership, heard)?))
    }

    /// Whether this node is a quorum, which hears itself.
    fn is_alone(&self) -> bool {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let mut voters = metrics.membership_config.membership().voter_ids();
        voters.next() == Some(self.self_id) && voters.next().is_none()
    }

    /// The leader's clock, if this node leads and has stamped something. Has to be asked more often than a lease lasts: what
    /// was not seen to be led does not count.
    pub fn clock_now(&self) -> Option<u64> {
        self.clock_of_mine().map(|(_, clock)| clock)
    }

    async fn forward(&self, leader: NodeId, group: Vec<Pending>, urgency: Urgency) {
        if group.is_empty() {
            return;
        }
        self.metrics.observe_forwarded(group.len());
        let now = Instant::now();
        let commands = group.iter().map(|pending| pending.forwarded(now)).collect();
        let is_urgent = urgency == Urgency::Urgent;
        let mut view = self.view.subscribe();
        let is_large = urgency == Urgency::Patient || group.iter().any(|pending| pending.command.len() >= LARGE_BYTES);
        let by = now + if is_large { FORWARD_TRY_LARGE } else { FORWARD_TRY };
        let ask = self.peers.ask(leader, PeerRequest::Forward { commands, is_urgent }, by);
        let answer = tokio::select! {
            biased;
            answer = ask => answer,
            // A hung leader must not hold these commands once there is another.
            _ = view.wait_for(|now| now.leader.is_some_and(|now| now != leader)) => {
                return settle(group, || ProposalOutcome::Unknown);
            }
        };
        match answer {
            Ok(PeerResponse::Forwarded { outcomes }) if outcomes.len() == group.len() => {
                for (pending, proposal_outcome) in group.into_iter().zip(outcomes) {
                    // The receiver may have given up; its outcome is in the request table.
                    let _ = pending.done.send(proposal_outcome);
                }
            }
            Ok(PeerResponse::NotLeader { .. } | PeerResponse::Refused { .. }) => {
                settle(group, || ProposalOutcome::NotProposed)
            }
            Ok(other) => {
                tracing::warn!(leader, ?other, "an answer to Forward that is none");
                settle(group, || ProposalOutcome::Unknown);
            }
            Err(error) if error.is_certainly_not_processed() => settle(group, || ProposalOutcome::NotProposed),
            Err(error) => {
                quorate_node_core::debug!(leader, %error, "forwarded commands have an unknown outcome");
                settle(group, || ProposalOutcome::Unknown);
            }
        }
    }
}

/// Sees all the time whether this node is heard, so that the clock counts just that time.
async fn watch_clock(parts: Weak<ProposerParts>) {
    let Some(every) = parts.upgrade().map(|parts| parts.clock.look_every()) else { return };
    let mut looks = tokio::time::interval(every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let Some(parts) = parts.upgrade() else { return };
        parts.clock_now();
    }
}

/// What `confirm` gives under one leadership: one that stood before it and after it. Whoever leads again meanwhile, after somebody
/// else, has not read what that one committed.
async fn confirm_one<L: PartialEq, T, F: Future<Output = Option<T>>>(
    leads: impl Fn() -> Option<L>,
    confirm: impl Fn() -> F,
) -> Option<(L, T)> {
    loop {
        let before = leads()?;
        let confirmed = confirm().await?;
        if leads()? == before {
            return Some((before, confirmed));
        }
    }
}

fn settle(group: Vec<Pending>, proposal_outcome: impl Fn() -> ProposalOutcome) {
    for pending in group {
        // The receiver may have given up; it will find the truth through its request id.
        let _ = pending.done.send(proposal_outcome());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test]
    async fn what_was_confirmed_under_one_leadership_is_not_taken_for_another() {
        // Its node led in term 5 when it asked, and in term 7 when it was told: somebody else led in term 6.
        let terms = RefCell::new(vec![5, 7, 7, 7].into_iter());
        let reads = RefCell::new(vec!["of term 5", "of term 7"].into_iter());
        let confirmed =
            confirm_one(|| terms.borrow_mut().next(), || std::future::ready(reads.borrow_mut().next())).await;
        assert_eq!(confirmed, Some((7, "of term 7")));
    }

    #[tokio::test]
    async fn who_does_not_lead_any_more_confirms_nothing() {
        let terms = RefCell::new(vec![5].into_iter());
        assert_eq!(confirm_one(|| terms.borrow_mut().next(), || std::future::ready(Some(()))).await, None);
        assert_eq!(confirm_one(|| Some(5), || std::future::ready(None::<()>)).await, None);
    }
}
