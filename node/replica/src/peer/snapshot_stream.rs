//! Sending a snapshot to a peer over a connection of its own.
//!
//! The sender opens with vote and manifest; the receiver answers with what it has of each file already, so that a
//! broken transfer continues where it stopped. Chunks follow without waiting, then a final frame; while the receiver
//! verifies and installs it says so now and then. Owns the sending side and its pace. Never holds more than one chunk.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use quorate_machine::codec;
use quorate_store::raft::wire::VoteRecord;
use quorate_store::raft::{Member, NodeId, Vote};
use quorate_store::state::snapshot::{SnapshotHandle, SnapshotManifest};
use quorate_threads::background;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep_until, timeout};

use super::channel::{ChannelKey, dial};
use super::client::PeerNet;
use super::counters::{ChannelCounters, ChannelKind};
use super::frame::{Frame, FrameBuilder, FrameKind, FrameReader, HEADER_BYTES, Outgoing};
use super::limits::SNAPSHOT_CHUNK_BYTES;
use super::raft_codec::SnapshotBegin;
use super::stream::{PeerRead, PeerWrite};

/// Where the bytes of a snapshot come from.
pub trait SnapshotSource: Send + Sync + 'static {
    /// What it consists of.
    fn manifest(&self) -> &SnapshotManifest;

    /// Up to `length` bytes of file number `file` at `offset`. Blocks.
    fn read_chunk(&self, file: usize, offset: u64, length: usize) -> io::Result<Bytes>;
}

impl SnapshotSource for SnapshotHandle {
    fn manifest(&self) -> &SnapshotManifest {
        SnapshotHandle::manifest(self)
    }

    fn read_chunk(&self, file: usize, offset: u64, length: usize) -> io::Result<Bytes> {
        SnapshotHandle::read_chunk(self, file, offset, length)
    }
}

/// Why a snapshot did not get through.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection to the peer.
    #[error("{0}")]
    Unreachable(String),
    /// The peer could not take it in.
    #[error("the peer did not install the snapshot: {0}")]
    Refused(String),
    /// The connection broke.
    #[error("{0}")]
    Lost(String),
    /// Neither side got anything done for too long.
    #[error("the snapshot transfer made no progress")]
    Idle,
    /// This node's state may be wrong.
    #[error("this node does not trust its state, and gives it to nobody")]
    Untrusted,
    /// A file of the snapshot could not be read here.
    #[error("reading the snapshot: {0}")]
    Source(io::Error),
}

/// Sends a snapshot to a member. Returns the vote of the peer: a higher one than `vote` says that it was not installed
/// because this node no longer leads. Dropping the future ends the transfer; what has arrived stays there.
pub async fn send_to(
    net: &PeerNet,
    target: NodeId,
    node: &Member,
    vote: Vote,
    source: Arc<dyn SnapshotSource>,
) -> Result<Vote, SendError> {
    let (addr, incarnation) = (node.peer_addr.clone(), Some(node.incarnation));
    send(net, ChannelKey { addr, node: Some(target), incarnation, kind: ChannelKind::Snapshot }, vote, source).await
}

pub(super) async fn send(
    net: &PeerNet,
    key: ChannelKey,
    vote: Vote,
    source: Arc<dyn SnapshotSource>,
) -> Result<Vote, SendError> {
    if !(net.inner.local.trusts_state)() {
        return Err(SendError::Untrusted);
    }
    let counters = net.inner.counters.channel(ChannelKind::Snapshot);
    let (reader, write) = dial(&key, &net.inner).await.map_err(|error| {
        ChannelCounters::add(&counters.connect_failures, 1);
        SendError::Unreachable(error.into_reason())
    })?;
    ChannelCounters::add(&counters.connects, 1);
    Transfer { net, counters, reader, write, source, idle: net.inner.timings.snapshot_idle }.run(vote).await
}

struct Transfer<'n> {
    net: &'n PeerNet,
    counters: &'n ChannelCounters,
    reader: FrameReader<PeerRead>,
    write: PeerWrite,
    source: Arc<dyn SnapshotSource>,
    idle: Duration,
}

impl Transfer<'_> {
    async fn run(mut self, vote: Vote) -> Result<Vote, SendError> {
        let begin = SnapshotBegin { vote: VoteRecord::from(&vote), manifest: self.source.manifest().clone() };
        self.write(Outgoing::whole(FrameKind::SnapshotBegin, 0, codec::encode(&begin))).await?;
        let answer = self.answer().await?;
        if answer.kind == FrameKind::SnapshotReply {
            return read_vote(&answer);
        }
        let have = read_have(&answer, &begin.manifest)?;
        self.send_files(&begin.manifest, &have).await?;
        self.write(Outgoing::bare(FrameKind::SnapshotFinish, 0)).await?;
        read_vote(&self.answer().await?)
    }

    async fn send_files(&mut self, manifest: &SnapshotManifest, have: &[u64]) -> Result<(), SendError> {
        let mut pace = Instant::now();
        for (at, (file, have)) in manifest.files.iter().zip(have).enumerate() {
            let mut offset = *have;
            while offset < file.bytes {
                let chunk = self.read_chunk(at, offset, file.bytes - offset).await?;
                let sent = chunk.len() as u64;
                self.send_chunk(chunk_frame(at, offset, &chunk)).await?;
                offset += sent;
                self.keep_pace(&mut pace, sent).await;
            }
        }
        Ok(())
    }

    async fn read_chunk(&self, file: usize, offset: u64, left: u64) -> Result<Bytes, SendError> {
        let source = Arc::clone(&self.source);
        let length = left.min(SNAPSHOT_CHUNK_BYTES as u64) as usize;
        let reading = background::blocking(move || source.read_chunk(file, offset, length));
        let chunk = reading.await.and_then(|read| read).map_err(SendError::Source)?;
        if chunk.is_empty() || chunk.len() > length {
            let reason = format!("{} bytes of file {file} at {offset}, {length} wanted", chunk.len());
            return Err(SendError::Source(io::Error::new(io::ErrorKind::UnexpectedEof, reason)));
        }
        Ok(chunk)
    }

    /// Writes a chunk unless the receiver gives up meanwhile.
    async fn send_chunk(&mut self, frame: Outgoing) -> Result<(), SendError> {
        let bytes = frame.byte_count();
        let parts = frame.parts;
        let writing = async {
            for part in parts {
                self.write.write_all(&part).await?;
            }
            self.write.flush().await
        };
        tokio::select! {
            biased;
            answer = self.reader.next() => {
                return Err(match answer {
                    Ok(Some(frame)) => refusal(&frame),
                    Ok(None) => SendError::Lost("the peer closed the transfer".into()),
                    Err(error) => SendError::Lost(error.to_string()),
                });
            }
            written = timeout(self.idle, writing) => {
                written.map_err(|_| SendError::Idle)?.map_err(|error| SendError::Lost(error.to_string()))?;
            }
        }
        self.count_sent(bytes);
        Ok(())
    }

    async fn write(&mut self, frame: Outgoing) -> Result<(), SendError> {
        self.count_sent(frame.byte_count());
        let frame = frame.into_bytes();
        let writing = async {
            self.write.write_all(&frame).await?;
            self.write.flush().await
        };
        let written = timeout(self.idle, writing).await.map_err(|_| SendError::Idle)?;
        written.map_err(|error| SendError::Lost(error.to_string()))
    }

    fn count_sent(&self, bytes: usize) {
        ChannelCounters::add(&self.counters.bytes_sent, bytes);
        ChannelCounters::add(&self.counters.frames_sent, 1);
    }

    /// The next frame that is more than a sign of life.
    async fn answer(&mut self) -> Result<Frame, SendError> {
        loop {
            let frame = timeout(self.idle, self.reader.next()).await.map_err(|_| SendError::Idle)?;
            let frame = frame.map_err(|error| SendError::Lost(error.to_string()))?;
            let frame = frame.ok_or_else(|| SendError::Lost("the peer closed the transfer".into()))?;
            ChannelCounters::add(&self.counters.frames_received, 1);
            ChannelCounters::add(&self.counters.bytes_received, HEADER_BYTES + frame.body.len());
            if frame.kind != FrameKind::SnapshotBusy {
                return Ok(frame);
            }
        }
    }

    /// Waits until what was sent fits the rate. `pace` is when the bytes sent so far would have been through.
    async fn keep_pace(&self, pace: &mut Instant, bytes: u64) {
        let rate = self.net.inner.snapshot_rate();
        if rate > 0 {
            // Time not used earlier is lost, so a slow disk is not followed by a burst.
            *pace = (*pace).max(Instant::now()) + Duration::from_secs_f64(bytes as f64 / rate as f64);
            sleep_until(*pace).await;
        }
    }
}

fn refusal(frame: &Frame) -> SendError {
    match frame.kind {
        FrameKind::SnapshotFailed => SendError::Refused(String::from_utf8_lossy(&frame.body).into_owned()),
        kind => SendError::Lost(format!("the peer sent a frame of kind {kind:?} into the transfer")),
    }
}

fn read_vote(frame: &Frame) -> Result<Vote, SendError> {
    if frame.kind != FrameKind::SnapshotReply {
        return Err(refusal(frame));
    }
    let vote: VoteRecord = codec::decode(&frame.body).map_err(|error| SendError::Lost(error.to_string()))?;
    Ok(vote.into())
}

fn read_have(frame: &Frame, manifest: &SnapshotManifest) -> Result<Vec<u64>, SendError> {
    if frame.kind != FrameKind::SnapshotHave {
        return Err(refusal(frame));
    }
    let have: Vec<u64> = codec::decode(&frame.body).map_err(|error| SendError::Lost(error.to_string()))?;
    let fits =
        have.len() == manifest.files.len() && have.iter().zip(&manifest.files).all(|(have, file)| *have <= file.bytes);
    if fits { Ok(have) } else { Err(SendError::Lost("the peer claims to have more than there is".into())) }
}

/// File number, offset, bytes; the frame's checksum covers them.
fn chunk_frame(file: usize, offset: u64, chunk: &Bytes) -> Outgoing {
    let mut builder = FrameBuilder::new(FrameKind::SnapshotChunk, 0, 12);
    builder.tail().put_u32_le(u32::try_from(file).expect("a manifest is bounded by limits::MANIFEST_BYTES_MAX"));
    builder.tail().put_u64_le(offset);
    builder.put_shared(chunk);
    builder.finish()
}

/// Reverses [`chunk_frame`]: file number, offset, bytes.
pub(super) fn read_chunk_frame(mut body: Bytes) -> Option<(usize, u64, Bytes)> {
    if body.len() <= 12 {
        return None;
    }
    let file = body.get_u32_le() as usize;
    let offset = body.get_u64_le();
    Some((file, offset, body))
}
