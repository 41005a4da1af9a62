//! What this node refuses of Raft's requests from peers, for a while.
//!
//! Owns two refusals between the transport and Raft. A [`Halt`] takes no entries: the log does not grow meanwhile, so that a snapshot
//! that the leader makes is ahead of it, and Raft installs it. After its start a node gives no vote: a process that ended has forgotten
//! that it promised a leader to elect nobody else, and that leader counts on it. Never refuses what the leader itself asked for:
//! votes for the node that it hands over to, and snapshots.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use openraft::raft::{
    AppendEntriesRequest, StreamAppendResult, TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use parking_lot::Mutex;
use quorate_store::raft::{NodeId, TypeConfig, Vote};
use quorate_store::state::snapshot::SnapshotManifest;

use super::raft_codec::RaftAnswer;
use super::raft_rpc::{RaftRpc, SnapshotIntake};

const HALTED: &str = "this node's state is being repaired; it takes no entries meanwhile";

/// The halt. Ends by itself, so that a leader that dies in the middle of a repair leaves a node that works.
#[derive(Debug, Clone, Default)]
pub struct Halt(Arc<Mutex<Option<Instant>>>);

impl Halt {
    /// From now on, for so long.
    pub fn begin(&self, lasting: Duration) {
        *self.0.lock() = Some(Instant::now() + lasting);
    }

    /// Over.
    pub fn end(&self) {
        *self.0.lock() = None;
    }

    fn is_on(&self) -> bool {
        self.0.lock().is_some_and(|until| Instant::now() < until)
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
    fn stream_append(
        &self,
        requests: BoxStream<'static, AppendEntriesRequest<TypeConfig>>,
    ) -> BoxStream<'static, RaftAnswer<StreamAppendResult<TypeConfig>>> {
        if self.halt.is_on() {
            return stream::iter([Err(HALTED.to_owned())]).boxed();
        }
        let halt = self.halt.clone();
        self.raft.stream_append(requests.take_while(move |_| std::future::ready(!halt.is_on())).boxed())
    }

    fn append(
        &self,
        request: AppendEntriesRequest<TypeConfig>,
    ) -> BoxFuture<'static, RaftAnswer<StreamAppendResult<TypeConfig>>> {
        if self.halt.is_on() {
            return std::future::ready(Err(HALTED.to_owned())).boxed();
        }
        self.raft.append(request)
    }

    fn vote(&self, request: VoteRequest<TypeConfig>) -> BoxFuture<'static, RaftAnswer<VoteResponse<TypeConfig>>> {
        match self.refusal(&request) {
            Some(refusal) => std::future::ready(Ok(refusal)).boxed(),
            None => self.raft.vote(request),
        }
    }

    fn pre_vote(&self, request: VoteRequest<TypeConfig>) -> BoxFuture<'static, RaftAnswer<VoteResponse<TypeConfig>>> {
        match self.refusal(&request) {
            Some(refusal) => std::future::ready(Ok(refusal)).boxed(),
            None => self.raft.pre_vote(request),
        }
    }

    fn transfer_leader(
        &self,
        request: TransferLeaderRequest<TypeConfig>,
    ) -> BoxFuture<'static, RaftAnswer<TransferLeaderResponse<TypeConfig>>> {
        self.raft.transfer_leader(request)
    }

    fn current_vote(&self) -> Vote {
        self.raft.current_vote()
    }

    fn receive_snapshot(&self, state_dir: &Path, manifest: SnapshotManifest) -> io::Result<Box<dyn SnapshotIntake>> {
        self.raft.receive_snapshot(state_dir, manifest)
    }

    fn on_peer_connected(&self, node: NodeId) -> BoxFuture<'static, ()> {
        self.raft.on_peer_connected(node)
    }
}
