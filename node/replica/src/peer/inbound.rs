//! A connection of a peer, after the handshake: what all channels share.
//!
//! Owns reading with counts, and the answers that every channel gives. Never accepts anybody.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use quorate_node_core::connection::origin::Neighbour;
use quorate_node_core::evicting_limit::EvictingLimit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client::PeerNet;
use super::counters::{ChannelCounters, ChannelKind, Counters};
use super::frame::{Frame, FrameError, FrameKind, FrameReader, HEADER_BYTES, Outgoing};
use super::peer_membership::PeerMembership;
use super::raft_rpc::RaftCell;
use super::service::{PeerInfo, PeerService};
use super::stream::PeerRead;
use super::writer::FrameSender;

pub(super) struct Server {
    pub net: PeerNet,
    pub raft: RaftCell,
    pub service: Arc<dyn PeerService>,
    pub state_dir: PathBuf,
    /// Of connections that have not shaken hands, by where they come from.
    pub greetings: EvictingLimit<Neighbour>,
    /// Of the others, by their node; of those who are no members together.
    pub connections: EvictingLimit<Option<u64>>,
    /// One snapshot is taken in at a time.
    pub snapshot_gate: Arc<tokio::sync::Mutex<()>>,
    /// When it warned last, in seconds since `started`.
    pub warned: AtomicU64,
    pub started: Instant,
}

/// An inbound connection after the handshake.
pub(super) struct Inbound {
    pub server: Arc<Server>,
    pub peer: PeerInfo,
    /// What it is to the cluster.
    pub known: PeerMembership,
    pub channel: ChannelKind,
    pub reader: CountedReader,
    pub out: FrameSender,
    /// Ends with the connection; every task that works for it stops with it.
    pub token: CancellationToken,
    pub tasks: TaskTracker,
}

/// Reads frames and counts them.
pub(super) struct CountedReader {
    pub reader: FrameReader<PeerRead>,
    pub counters: Arc<Counters>,
    pub channel: ChannelKind,
}

impl CountedReader {
    pub async fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        let frame = self.reader.next().await?;
        if let Some(frame) = &frame {
            let counters = self.counters.channel(self.channel);
            ChannelCounters::add(&counters.frames_received, 1);
            ChannelCounters::add(&counters.bytes_received, HEADER_BYTES + frame.body.len());
        }
        Ok(frame)
    }
}

/// A frame that has no business on this channel.
pub(super) fn misplaced(kind: FrameKind, channel: ChannelKind) -> String {
    format!("a frame of kind {kind:?} on the {} channel", channel.name())
}

/// Answers a ping without waiting for anything.
pub(super) async fn pong(out: &FrameSender) -> Result<(), String> {
    out.send(Outgoing::bare(FrameKind::Pong, 0)).await.map_err(|_| "the connection broke".to_owned())
}
