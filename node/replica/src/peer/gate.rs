//! What this node refuses of Raft's requests from peers, for a while.
//!
//! Owns two refusals between the transport and Raft. A [`Halt`] takes no entries of the leader that repairs this node: the log does not grow
//! meanwhile, so that a snapshot that the leader makes is ahead of it, and Raft installs it. After its start a node gives no vote: a process that ended has forgotten
//! that it promised a leader to elect nobody else, and that leader counts on it. Never refuses what the leader itself asked for:
//! votes for the node that it hands over to, and snapshots.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream;
use futures::{FutureExt, StreamExt};
use openraft::raft::{
    AppendEntriesRequest, StreamAppendResult, TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use parking_lot::Mutex;
use quorate_store::raft::{NodeId, TypeConfig, Vote};
use quorate_store::state::snapshot::SnapshotManifest;

use super::raft_rpc::{Answering, Appended, Appends, BegunIntake, RaftRpc};

const HALTED: &str = "this node's state is being repaired; it takes no entries meanwhile";

/// The halt. Ends by itself, and with the first entries of another leader, so that one that dies in the middle of a repair leaves a
/// node that works.
#[derive(Debug, Clone, Default)]
pub struct Halt(Arc<Mutex<Option<Halted>>>);

#[derive(Debug, Clone, Copy)]
struct Halted {
    until: Instant,
    /// The leader that repairs this node.
    by: NodeId,
}

impl Halt {
    /// From now on, for so long, nothing is taken of this leader.
    pub fn begin(&self, by: NodeId, lasting: Duration) {
        *self.0.lock() = Some(Halted { until: Instant::now() + lasting, by });
    }

    /// Over.
    pub fn end(&self) {
        *self.0.lock() = None;
    }

    /// Whether nothing is taken at the moment, of one leader at least.
    pub fn is_on(&self) -> bool {
        self.0.lock().is_some_and(|halted| Instant::now() < halted.until)
    }

    /// Whether what a leader with this vote sends is not to be taken. Another one than the one that repairs this node ends the halt:
    /// it knows nothing of it, and may need this node for a quorum.
    fn holds_back(&self, vote: &Vote, current: impl FnOnce() -> Vote) -> bool {
        let mut halted = self.0.lock();
        match *halted {
            Some(found) if Instant::now() >= found.until => *halted = None,
            Some(found) if vote.leader_id.node_id == found.by => return true,
            // One that was deposed ends nothing; Raft refuses it.
            Some(_) if *vote >= current() => *halted = None,
            Some(_) | None => {}
        }
        false
    }
}

/// A Raft behind both refusals.
pub struct Gate {
    /// What they protect.
    pub raft: Arc<dyn RaftRpc>,
    /// While it lasts, no entries are taken.
    pub halt: Halt,
    /// Until then, no vote is given.
    pub votes_from: Instant,
}

impl Gate {
    fn refusal(&self, request: &VoteRequest<TypeConfig>) -> Option<VoteResponse<TypeConfig>> {
        let refuses = !request.leadership_transfer && Instant::now() < self.votes_from;
        refuses.then(|| VoteResponse { vote: self.raft.current_vote(), vote_granted: false, last_log_id: None })
    }
}

impl RaftRpc for Gate {
    fn stream_append(&self, requests: Appends) -> Appended {
        let (halt, raft) = (self.halt.clone(), Arc::clone(&self.raft));
        let answers = async move {
            let mut requests = requests.peekable();
            let first = Pin::new(&mut requests).peek().await;
            if first.is_some_and(|first| halt.holds_back(&first.vote, || raft.current_vote())) {
                return stream::iter([Err(HALTED.to_owned())]).boxed();
            }
            let current = Arc::clone(&raft);
            let taken = move |request: &AppendEntriesRequest<TypeConfig>| {
                std::future::ready(!halt.holds_back(&request.vote, || current.current_vote()))
            };
            raft.stream_append(requests.take_while(taken).boxed())
        };
        answers.flatten_stream().boxed()
    }

    fn append(&self, request: AppendEntriesRequest<TypeConfig>) -> Answering<StreamAppendResult<TypeConfig>> {
        if self.halt.holds_back(&request.vote, || self.raft.current_vote()) {
            return std::future::ready(Err(HALTED.to_owned())).boxed();
        }
        self.raft.append(request)
    }

    fn vote(&self, request: VoteRequest<TypeConfig>) -> Answering<VoteResponse<TypeConfig>> {
        match self.refusal(&request) {
            Some(refusal) => std::future::ready(Ok(refusal)).boxed(),
            None => self.raft.vote(request),
        }
    }

    fn pre_vote(&self, request: VoteRequest<TypeConfig>) -> Answering<VoteResponse<TypeConfig>> {
        match self.refusal(&request) {
            Some(refusal) => std::future::ready(Ok(refusal)).boxed(),
            None => self.raft.pre_vote(request),
        }
    }

    fn transfer_leader(
        &self,
        request: TransferLeaderRequest<TypeConfig>,
    ) -> Answering<TransferLeaderResponse<TypeConfig>> {
        self.raft.transfer_leader(request)
    }

    fn current_vote(&self) -> Vote {
        self.raft.current_vote()
    }

    fn receive_snapshot(&self, state_dir: &Path, manifest: SnapshotManifest, vote: Vote) -> BegunIntake {
        self.raft.receive_snapshot(state_dir, manifest, vote)
    }

    fn on_peer_connected(&self, node: NodeId) -> BoxFuture<'static, ()> {
        self.raft.on_peer_connected(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(term: u64, node: NodeId) -> Vote {
        Vote::from(quorate_store::raft::wire::VoteRecord { term, node, committed: true })
    }

    #[test]
    fn a_halt_holds_back_the_leader_that_asked_for_it_and_ends_with_the_next_one() {
        let halt = Halt::default();
        let current = || vote(4, 1);
        assert!(!halt.holds_back(&vote(4, 1), current));
        halt.begin(1, Duration::from_secs(60));
        assert!(halt.holds_back(&vote(4, 1), current) && halt.is_on());
        assert!(!halt.holds_back(&vote(3, 2), current) && halt.is_on(), "one that was deposed changes nothing");
        assert!(!halt.holds_back(&vote(5, 2), current) && !halt.is_on());
        assert!(!halt.holds_back(&vote(4, 1), current));
        halt.begin(1, Duration::ZERO);
        assert!(!halt.holds_back(&vote(4, 1), current), "it ends by itself");
    }
}
