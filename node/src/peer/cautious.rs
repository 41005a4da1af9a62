//! Raft that gives no vote for a while after its process began.
//!
//! Owns that while, and the refusals in it. A process that ended has forgotten whom it had promised to elect nobody else for a
//! moment; the leader that it promised this to still counts on it. Never refuses what that leader itself asked for: entries, and
//! votes for the one it hands over to.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use openraft::raft::{
    AppendEntriesRequest, StreamAppendResult, TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use quorate_store::raft::{NodeId, TypeConfig, Vote};
use quorate_store::state::snapshot::SnapshotManifest;

use super::raft_codec::RaftAnswer;
use super::raft_rpc::{RaftRpc, SnapshotIntake};

/// A Raft whose votes have to wait.
pub struct Cautious {
    /// Which.
    pub raft: Arc<dyn RaftRpc>,
    /// Until when it gives none.
    pub until: Instant,
}

impl Cautious {
    fn refusal(&self, request: &VoteRequest<TypeConfig>) -> Option<VoteResponse<TypeConfig>> {
        let refuses = !request.leadership_transfer && Instant::now() < self.until;
        refuses.then(|| VoteResponse { vote: self.raft.current_vote(), vote_granted: false, last_log_id: None })
    }
}

impl RaftRpc for Cautious {
    fn stream_append(
        &self,
        requests: BoxStream<'static, AppendEntriesRequest<TypeConfig>>,
    ) -> BoxStream<'static, RaftAnswer<StreamAppendResult<TypeConfig>>> {
        self.raft.stream_append(requests)
    }

    fn append(
        &self,
        request: AppendEntriesRequest<TypeConfig>,
    ) -> BoxFuture<'static, RaftAnswer<StreamAppendResult<TypeConfig>>> {
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
