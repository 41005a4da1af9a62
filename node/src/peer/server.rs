//! The answering side: accepts connections, shakes hands, and hands each to the channel it is for.
//!
//! Owns the accept loop and the end of all connections at shutdown. Never lets a peer in that the handshake refused.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::channel::tune;
use super::client::PeerNet;
use super::counters::{ChannelCounters, ChannelKind};
use super::frame::FrameReader;
use super::handshake::{read_hello, welcome_frame};
use super::inbound::{CountedReader, Inbound, Server};
use super::limits::{CONNECTIONS_MAX, HANDSHAKE_BYTES_MAX, request_bytes_max};
use super::raft_rpc::RaftCell;
use super::service::{PeerInfo, PeerService};
use super::stream::{PeerStream, PeerWrite, accepted};
use super::writer::{self, FrameSender};
use super::{serve_app, serve_raft, serve_snapshot};
use crate::net::{Listener, PeerAddress, Stream};

/// How long answers that are queued already may take to be written once a connection ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves peers until `shutdown`; returns once every connection is closed. May start before Raft is there.
pub async fn serve(
    listener: impl Into<Listener>,
    net: PeerNet,
    raft: RaftCell,
    service: Arc<dyn PeerService>,
    state_dir: PathBuf,
    shutdown: CancellationToken,
) {
    let mut listener = listener.into();
    net.inner.attach(&service);
    let snapshot_gate = Arc::default();
    let (warned, started) = (AtomicU64::new(0), Instant::now());
    let server = Arc::new(Server { net, raft, service, state_dir, snapshot_gate, warned, started });
    let tasks = TaskTracker::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    shutdown.run_until_cancelled(accept(&mut listener, &server, &room, &tasks, &shutdown)).await;
    tasks.close();
    tasks.wait().await;
}

async fn accept(
    listener: &mut Listener,
    server: &Arc<Server>,
    room: &Arc<Semaphore>,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
) {
    loop {
        let Ok(permit) = Arc::clone(room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, remote)) => {
                let (server, token, inner) = (Arc::clone(server), shutdown.child_token(), tasks.clone());
                tasks.spawn(async move {
                    server.on_connection(stream, remote, token, inner).await;
                    drop(permit);
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: they come back, and spinning would not help.
                tracing::warn!(%error, "accepting a peer connection failed");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

impl Server {
    async fn on_connection(
        self: Arc<Self>,
        stream: Stream,
        remote: PeerAddress,
        token: CancellationToken,
        tasks: TaskTracker,
    ) {
        let greeting = timeout(self.net.inner.timings.handshake(), self.greet(stream, remote));
        let greeted = match token.run_until_cancelled(greeting).await {
            None => return,
            Some(Err(_)) => Err("the handshake took too long".to_owned()),
            Some(Ok(greeted)) => greeted,
        };
        match greeted {
            Ok((peer, channel, reader, write)) => self.start(peer, channel, reader, write, token, tasks).await,
            Err(reason) => self.warn(remote, &reason),
        }
    }

    /// Reads the hello and answers it; a refusal is told to the peer before it is returned.
    async fn greet(
        &self,
        stream: Stream,
        remote: PeerAddress,
    ) -> Result<(PeerInfo, ChannelKind, CountedReader, PeerWrite), String> {
        tune(&stream).map_err(|error| error.to_string())?;
        let tls = self.net.inner.tls.as_ref();
        let stream = accepted(stream, tls).await.inspect_err(|_| {
            // Who says nothing that can be read is counted among those on the first channel.
            ChannelCounters::add(&self.net.inner.counters.channel(ChannelKind::Control).refused, 1);
        })?;
        let PeerStream { read, mut write, shown } = stream;
        let mut reader = FrameReader::new(read, HANDSHAKE_BYTES_MAX);
        let frame = reader.next().await.map_err(|error| error.to_string())?;
        let frame = frame.ok_or("it closed during the handshake")?;
        let hello = read_hello(&frame);
        let judged = hello.as_ref().map_err(String::clone).and_then(|hello| {
            shown.judge(hello.node_id)?;
            let known = self.service.known_incarnation(hello.node_id);
            self.net.inner.local.judge_hello(hello, known)
        });
        // Who cannot even say what it wants is counted among those on the first channel.
        let wanted = hello.as_ref().ok().and_then(|hello| ChannelKind::from_code(hello.channel));
        let counters = self.net.inner.counters.channel(wanted.unwrap_or(ChannelKind::Control));
        ChannelCounters::add(if judged.is_ok() { &counters.accepted } else { &counters.refused }, 1);
        let refusal = judged.as_ref().err().cloned();
        let welcome = welcome_frame(&self.net.inner.local.welcome(refusal)).into_bytes();
        write.write_all(&welcome).await.map_err(|error| error.to_string())?;
        write.flush().await.map_err(|error| error.to_string())?;
        let (hello, channel) = (hello?, judged?);
        reader.set_body_max(request_bytes_max(channel));
        let peer = PeerInfo {
            node_id: hello.node_id,
            incarnation: hello.incarnation,
            cluster_id: hello.cluster_id,
            member: hello.member,
            remote,
        };
        let counters = Arc::clone(&self.net.inner.counters);
        Ok((peer, channel, CountedReader { reader, counters, channel }, write))
    }

    async fn start(
        self: Arc<Self>,
        peer: PeerInfo,
        channel: ChannelKind,
        reader: CountedReader,
        write: PeerWrite,
        token: CancellationToken,
        tasks: TaskTracker,
    ) {
        self.on_peer_heard(&peer, channel, &tasks);
        let out = self.start_writer(channel, write, &token, &tasks);
        let remote = peer.remote;
        let inbound = Inbound { server: Arc::clone(&self), peer, channel, reader, out, token: token.clone(), tasks };
        let serving = async {
            match channel {
                ChannelKind::Control | ChannelKind::Append => serve_raft::run(inbound).await,
                ChannelKind::App => serve_app::run(inbound).await,
                ChannelKind::Snapshot => serve_snapshot::run(inbound).await,
            }
        };
        // The writer still sends what is queued: it ends by itself once every sender is gone.
        if let Some(Err(reason)) = token.run_until_cancelled(serving).await {
            self.warn(remote, &reason);
        }
        token.cancel();
    }

    fn start_writer(
        self: &Arc<Self>,
        channel: ChannelKind,
        write: PeerWrite,
        token: &CancellationToken,
        tasks: &TaskTracker,
    ) -> FrameSender {
        let (out, queue) = writer::queue();
        let (server, token) = (Arc::clone(self), token.clone());
        tasks.spawn(async move {
            let writing = writer::run(write, queue, server.net.inner.counters.channel(channel));
            let late = async {
                token.cancelled().await;
                sleep(LAST_WORDS).await;
            };
            tokio::select! {
                written = writing => if let Err(error) = written {
                    tracing::debug!(%error, channel = channel.name(), "writing to a peer failed");
                },
                () = late => {}
            }
            token.cancel();
        });
        out
    }

    /// A peer that came to us can be reached again: neither our channels nor openraft need to wait any longer.
    fn on_peer_heard(self: &Arc<Self>, peer: &PeerInfo, channel: ChannelKind, tasks: &TaskTracker) {
        if channel != ChannelKind::Control {
            return;
        }
        self.net.on_peer_heard(peer.node_id);
        if let Some(raft) = self.raft.get() {
            tasks.spawn(raft.on_peer_connected(peer.node_id));
        }
    }

    /// At most one line a second: a foreign node retries for ever.
    fn warn(&self, remote: PeerAddress, reason: &str) {
        let now = 1 + self.started.elapsed().as_secs();
        if self.warned.swap(now, Relaxed) != now {
            tracing::warn!(%remote, reason, "a peer connection was refused or broken");
        }
    }
}
