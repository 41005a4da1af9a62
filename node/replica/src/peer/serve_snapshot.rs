//! The snapshot channel, answering side: takes one snapshot in and has Raft install it.
//!
//! Owns the order: files complete, verified and durable before Raft hears of them. Never blocks a runtime worker on
//! the disk, and never takes in two snapshots at a time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quorate_machine::codec;
use quorate_store::raft::Vote;
use quorate_store::raft::wire::VoteRecord;
use quorate_threads::background;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{interval, timeout};

use super::frame::{Frame, FrameKind, Outgoing};
use super::inbound::{Inbound, misplaced, pong};
use super::raft_codec::SnapshotBegin;
use super::raft_rpc::{RaftRpc, SnapshotIntake};
use super::snapshot_stream::read_chunk_frame;

/// How often the sender is told that verifying and installing go on.
const BUSY_EVERY: Duration = Duration::from_millis(500);

/// A snapshot on its way in, with the right to take one in. The two travel together into the blocking calls, so that
/// the next transfer cannot begin while a write of a broken one is still going on.
struct Gated {
    intake: Box<dyn SnapshotIntake>,
    _gate: OwnedMutexGuard<()>,
}

enum Failure {
    /// Told to the peer: nothing is wrong with the connection.
    Told(String),
    /// The peer broke the protocol or the connection.
    Broken(String),
}

impl Failure {
    fn broken(reason: impl ToString) -> Self {
        Self::Broken(reason.to_string())
    }
}

/// Serves one transfer; `Err` says what the peer did wrong.
pub(super) async fn run(mut inbound: Inbound) -> Result<(), String> {
    let outcome = match receive(&mut inbound).await {
        Ok(vote) => Outgoing::whole(FrameKind::SnapshotReply, 0, codec::encode(&VoteRecord::from(&vote))),
        Err(Failure::Told(reason)) => {
            tracing::warn!(from = inbound.peer.node_id, reason, "a snapshot was not installed");
            Outgoing::whole(FrameKind::SnapshotFailed, 0, Bytes::from(reason))
        }
        Err(Failure::Broken(reason)) => return Err(reason),
    };
    inbound.out.send(outcome).await.map_err(|_| "the connection broke".to_owned())?;
    // The peer closes; doing it here could cost it the answer while its chunks are still arriving.
    let idle = inbound.server.net.inner.timings.snapshot_idle;
    let drain = async { while let Ok(Some(_)) = inbound.reader.next().await {} };
    timeout(idle, drain).await.map_err(|_| "the peer did not close a finished transfer".to_owned())
}

async fn receive(inbound: &mut Inbound) -> Result<Vote, Failure> {
    let begin = next(inbound).await?;
    if begin.kind != FrameKind::SnapshotBegin {
        return Err(Failure::Broken(misplaced(begin.kind, inbound.channel)));
    }
    let begin: SnapshotBegin = codec::decode(&begin.body).map_err(Failure::broken)?;
    let raft = inbound.server.raft.get().ok_or_else(|| Failure::Told("Raft is not up on this node yet".into()))?;
    let (raft, vote, own) = (Arc::clone(raft), Vote::from(begin.vote), raft.current_vote());
    // A vote that is not at least as great would be refused after gigabytes; better now.
    if !own.partial_cmp(&vote).is_some_and(|order| order.is_le()) {
        return Ok(own);
    }
    let server = Arc::clone(&inbound.server);
    let gate = Arc::clone(&server.snapshot_gate).lock_owned();
    let waiting = timeout(server.net.inner.timings.snapshot_idle / 2, gate);
    let gate = waiting.await.map_err(|_| Failure::Told("another snapshot is being taken in".into()))?;
    tracing::info!(from = inbound.peer.node_id, files = begin.manifest.files.len(), "taking a snapshot in");
    let taken = take_files(inbound, &raft, begin, gate).await?;
    let installing = install(taken, vote);
    tokio::pin!(installing);
    let mut busy = interval(BUSY_EVERY);
    loop {
        tokio::select! {
            installed = &mut installing => return installed,
            _ = busy.tick() => send(inbound, Outgoing::bare(FrameKind::SnapshotBusy, 0)).await?,
        }
    }
}

async fn take_files(
    inbound: &mut Inbound,
    raft: &Arc<dyn RaftRpc>,
    begin: SnapshotBegin,
    gate: OwnedMutexGuard<()>,
) -> Result<Gated, Failure> {
    let (raft, dir) = (Arc::clone(raft), inbound.server.state_dir.clone());
    let vote = Vote::from(begin.vote);
    let open = move || Ok(Gated { intake: raft.receive_snapshot(&dir, begin.manifest, vote)?, _gate: gate });
    let mut taken = blocking(open).await?;
    send(inbound, Outgoing::whole(FrameKind::SnapshotHave, 0, codec::encode(&taken.intake.have()))).await?;
    loop {
        let frame = next(inbound).await?;
        match frame.kind {
            FrameKind::Ping => pong(&inbound.out).await.map_err(Failure::Broken)?,
            FrameKind::SnapshotFinish => return Ok(taken),
            FrameKind::SnapshotChunk => {
                let chunk = read_chunk_frame(frame.body);
                let (file, offset, chunk) = chunk.ok_or_else(|| Failure::broken("an empty snapshot chunk"))?;
                taken = blocking(move || taken.intake.write(file, offset, &chunk).map(|()| taken)).await?;
            }
            kind => return Err(Failure::Broken(misplaced(kind, inbound.channel))),
        }
    }
}

async fn install(mut taken: Gated, vote: Vote) -> Result<Vote, Failure> {
    let taken = blocking(move || taken.intake.verify().map(|()| taken)).await?;
    taken.intake.install(vote).await.map_err(Failure::Told)
}

async fn next(inbound: &mut Inbound) -> Result<Frame, Failure> {
    let idle = inbound.server.net.inner.timings.snapshot_idle;
    let frame = timeout(idle, inbound.reader.next()).await;
    let frame = frame.map_err(|_| Failure::broken("the snapshot transfer made no progress"))?;
    frame.map_err(Failure::broken)?.ok_or_else(|| Failure::broken("the peer gave up the transfer"))
}

async fn send(inbound: &Inbound, frame: Outgoing) -> Result<(), Failure> {
    inbound.out.send(frame).await.map_err(|_| Failure::broken("the connection broke"))
}

async fn blocking<T, F>(work: F) -> Result<T, Failure>
where
    T: Send + 'static,
    F: FnOnce() -> std::io::Result<T> + Send + 'static,
{
    let done = background::blocking(work).await.map_err(Failure::broken)?;
    done.map_err(|error| Failure::Told(error.to_string()))
}
