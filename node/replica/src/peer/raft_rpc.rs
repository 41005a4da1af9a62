//! What the transport needs of Raft on the answering side.
//!
//! Owns the trait and its implementation for openraft. Never knows a socket. The trait exists so that the transport
//! can be tested without a Raft behind it, and so that connections can be accepted before Raft is up.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use openraft::async_runtime::watch::WatchReceiver;
use openraft::raft::{
    AppendEntriesRequest, StreamAppendResult, TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::storage::RaftStateMachine;
use openraft::{Raft, Snapshot};
use quorate_store::raft::{LogId, NodeId, SnapshotMeta, TypeConfig, Vote};
use quorate_store::state::receive::SnapshotReceiver;
use quorate_store::state::snapshot::{SnapshotHandle, SnapshotManifest};

use super::raft_codec::RaftAnswer;

/// Filled once Raft is built. Until then Raft's questions are answered with "not up yet".
pub type RaftCell = Arc<OnceLock<Arc<dyn RaftRpc>>>;

/// Append requests of a stream, in their order.
pub type Appends = BoxStream<'static, AppendEntriesRequest<TypeConfig>>;

/// Their answers, in the same order.
pub type Appended = BoxStream<'static, RaftAnswer<StreamAppendResult<TypeConfig>>>;

/// The answer to one question, on its way.
pub type Answering<T> = BoxFuture<'static, RaftAnswer<T>>;

/// A snapshot that is to be taken in, unless it is refused.
pub type BegunIntake = io::Result<Box<dyn SnapshotIntake>>;

/// Raft as the peers of a node see it. A text in an error says that this node's Raft is dead or stopping.
pub trait RaftRpc: Send + Sync + 'static {
    /// Answers append requests in order, one answer each; ends after the first that is not a match.
    fn stream_append(&self, requests: Appends) -> Appended;

    /// Answers one append request that belongs to no stream.
    fn append(&self, request: AppendEntriesRequest<TypeConfig>) -> Answering<StreamAppendResult<TypeConfig>>;

    /// Asks for this node's vote.
    fn vote(&self, request: VoteRequest<TypeConfig>) -> Answering<VoteResponse<TypeConfig>>;

    /// Asks whether this node would vote so, without making it.
    fn pre_vote(&self, request: VoteRequest<TypeConfig>) -> Answering<VoteResponse<TypeConfig>>;

    /// The leader steps back.
    fn transfer_leader(
        &self,
        request: TransferLeaderRequest<TypeConfig>,
    ) -> Answering<TransferLeaderResponse<TypeConfig>>;

    /// The vote this node has given.
    fn current_vote(&self) -> Vote;

    /// Begins or continues to take in a snapshot of the leader with this vote. Blocks. Refuses one that no such leader can have.
    fn receive_snapshot(&self, state_dir: &Path, manifest: SnapshotManifest, vote: Vote) -> BegunIntake;

    /// A peer connected: replication to it need not wait out its backoff.
    fn on_peer_connected(&self, node: NodeId) -> BoxFuture<'static, ()>;
}

/// A snapshot on its way in. All but `install` block.
pub trait SnapshotIntake: Send + 'static {
    /// Bytes already here for each file of the manifest, in its order.
    fn have(&self) -> Vec<u64>;

    /// Appends a chunk at `offset`, which is what is here already.
    fn write(&mut self, file: usize, offset: u64, chunk: &[u8]) -> io::Result<()>;

    /// Verifies and makes durable what was written. Called once, after the last chunk.
    fn verify(&mut self) -> io::Result<()>;

    /// Hands the verified snapshot to Raft, under the leader's vote, and gives the vote of this node.
    fn install(self: Box<Self>, vote: Vote) -> Answering<Vote>;
}

impl<SM> RaftRpc for Raft<TypeConfig, SM>
where
    SM: RaftStateMachine<TypeConfig, SnapshotData = SnapshotHandle>,
{
    fn stream_append(&self, requests: Appends) -> Appended {
        Raft::stream_append(self, requests).map(|answer| answer.map_err(|fatal| fatal.to_string())).boxed()
    }

    fn append(&self, request: AppendEntriesRequest<TypeConfig>) -> Answering<StreamAppendResult<TypeConfig>> {
        let raft = self.clone();
        let prev = request.prev_log_id;
        let last = request.entries.last().map(|entry| entry.log_id).or(prev);
        async move {
            let answer = raft.append_entries(request).await.map_err(|error| error.to_string())?;
            Ok(answer.into_stream_result(prev, last))
        }
        .boxed()
    }

    fn vote(&self, request: VoteRequest<TypeConfig>) -> Answering<VoteResponse<TypeConfig>> {
        let raft = self.clone();
        async move { Raft::vote(&raft, request).await.map_err(|error| error.to_string()) }.boxed()
    }

    fn pre_vote(&self, request: VoteRequest<TypeConfig>) -> Answering<VoteResponse<TypeConfig>> {
        let raft = self.clone();
        async move { Raft::pre_vote(&raft, request).await.map_err(|error| error.to_string()) }.boxed()
    }

    fn transfer_leader(
        &self,
        request: TransferLeaderRequest<TypeConfig>,
    ) -> Answering<TransferLeaderResponse<TypeConfig>> {
        let raft = self.clone();
        async move { raft.handle_transfer_leader(request).await.map_err(|fatal| fatal.to_string()) }.boxed()
    }

    fn current_vote(&self) -> Vote {
        self.metrics().borrow_watched().vote
    }

    fn receive_snapshot(&self, state_dir: &Path, manifest: SnapshotManifest, vote: Vote) -> BegunIntake {
        let invalid =
            |error: Box<dyn std::error::Error + Send + Sync>| io::Error::new(io::ErrorKind::InvalidData, error);
        let meta = SnapshotMeta::try_from(manifest.meta.clone()).map_err(|error| invalid(error.into()))?;
        refuse_foreign(&meta, &vote, committed(self)).map_err(|reason| invalid(reason.into()))?;
        let receiver = Some(SnapshotReceiver::begin(state_dir, manifest)?);
        Ok(Box::new(RaftIntake { raft: self.clone(), meta, receiver, handle: None }))
    }

    fn on_peer_connected(&self, node: NodeId) -> BoxFuture<'static, ()> {
        let raft = self.clone();
        async move {
            if let Err(fatal) = raft.trigger().reset_backoff([node]).await {
                quorate_node_core::debug!(node, %fatal, "replication backoff was not reset");
            }
        }
        .boxed()
    }
}

/// What this node knows to be committed.
fn committed<SM>(raft: &Raft<TypeConfig, SM>) -> Option<LogId>
where
    SM: RaftStateMachine<TypeConfig, SnapshotData = SnapshotHandle>,
{
    raft.metrics().borrow_watched().local_committed
}

/// Refuses a snapshot that no leader with this vote can have, or that contradicts what is committed here: openraft would end the process
/// over it, that of each node to which it is sent. One that is only old is fine, and not installed.
fn refuse_foreign(meta: &SnapshotMeta, vote: &Vote, committed: Option<LogId>) -> Result<(), String> {
    let Some(last) = meta.last_log_id else { return Ok(()) };
    let made_by = (last.leader_id.term, last.leader_id.node_id);
    if made_by > (vote.leader_id.term, vote.leader_id.node_id) {
        return Err(format!(
            "the snapshot ends with {last}, later than anything of a leader with vote {vote}: it is from another cluster, or \
             from an earlier one of this name"
        ));
    }
    match committed {
        Some(committed) if last > committed && last.index <= committed.index => Err(format!(
            "the snapshot ends with {last}, and {committed} is committed here: it is from another cluster, or from an earlier \
             one of this name"
        )),
        Some(_) | None => Ok(()),
    }
}

/// The store's receiver, then the handle it becomes, then the Raft that installs it.
struct RaftIntake<SM>
where
    SM: RaftStateMachine<TypeConfig, SnapshotData = SnapshotHandle>,
{
    raft: Raft<TypeConfig, SM>,
    meta: SnapshotMeta,
    receiver: Option<SnapshotReceiver>,
    handle: Option<SnapshotHandle>,
}

impl<SM> RaftIntake<SM>
where
    SM: RaftStateMachine<TypeConfig, SnapshotData = SnapshotHandle>,
{
    fn open(&mut self) -> io::Result<&mut SnapshotReceiver> {
        self.receiver.as_mut().ok_or_else(|| io::Error::other("the snapshot was finished already"))
    }
}

impl<SM> SnapshotIntake for RaftIntake<SM>
where
    SM: RaftStateMachine<TypeConfig, SnapshotData = SnapshotHandle>,
{
    fn have(&self) -> Vec<u64> {
        self.receiver.as_ref().map(SnapshotReceiver::have).unwrap_or_default()
    }

    fn write(&mut self, file: usize, offset: u64, chunk: &[u8]) -> io::Result<()> {
        self.open()?.write(file, offset, chunk)
    }

    fn verify(&mut self) -> io::Result<()> {
        self.open()?;
        self.handle = self.receiver.take().map(SnapshotReceiver::finish).transpose()?;
        Ok(())
    }

    fn install(self: Box<Self>, vote: Vote) -> Answering<Vote> {
        async move {
            let snapshot = self.handle.ok_or("the snapshot was not verified")?;
            refuse_foreign(&self.meta, &vote, committed(&self.raft))?;
            let installing = self.raft.install_full_snapshot(vote, Snapshot { meta: self.meta, snapshot });
            installing.await.map(|response| response.vote).map_err(|fatal| fatal.to_string())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use quorate_store::raft::wire::{LogIdRecord, VoteRecord};

    use super::*;

    fn id(term: u64, node: NodeId, index: u64) -> LogId {
        LogIdRecord { term, node, index }.into()
    }

    fn refused(last: LogId, committed: Option<LogId>) -> Option<String> {
        let vote = VoteRecord { term: 5, node: 2, committed: true }.into();
        let meta = SnapshotMeta { last_log_id: Some(last), ..SnapshotMeta::default() };
        refuse_foreign(&meta, &vote, committed).err()
    }

    #[test]
    fn a_snapshot_is_of_the_leader_that_sends_it_or_of_one_before() {
        assert_eq!(refused(id(5, 2, 40), None), None);
        assert_eq!(refused(id(4, 3, 40), None), None);
        for later in [id(5, 3, 40), id(6, 1, 40)] {
            let reason = refused(later, None).expect("no leader of term 5 can have it");
            assert!(reason.contains("from an earlier one of this name"), "{reason}");
        }
    }

    #[test]
    fn a_snapshot_does_not_contradict_what_is_committed() {
        let committed = Some(id(3, 1, 30));
        assert_eq!(refused(id(4, 1, 31), committed), None, "it is ahead");
        assert_eq!(refused(id(3, 1, 30), committed), None, "it is the same");
        assert_eq!(refused(id(2, 1, 10), committed), None, "it is old");
        assert!(refused(id(4, 1, 30), committed).is_some(), "another entry at the same place");
        assert!(refused(id(4, 1, 12), committed).is_some(), "a later leader and an earlier place");
    }
}
