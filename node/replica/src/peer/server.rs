//! The answering side: accepts connections, shakes hands, and hands each to the channel it is for.
//!
//! Owns the accept loop and the end of all connections at shutdown. A connection counts with those that have not said anything until it
//! has shaken hands, and from then on with those of its node: no crowd of strangers takes the permits of peers. Never lets a peer in that
//! the handshake refused.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use quorate_machine::types::NodeDisk;
use quorate_node_core::evicting_limit::EvictingLimit;
use quorate_node_core::net::{Listener, PeerAddress, Stream};
use quorate_threads::watchdog;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::channel::tune;
use super::client::PeerNet;
use super::counters::{ChannelCounters, ChannelKind};
use super::frame::FrameReader;
use super::handshake::{Hello, Refusal, Welcome, read_hello, welcome_frame};
use super::inbound::{CountedReader, Inbound, Server};
use super::limits::{
    ADDRESS_GREETINGS_MAX, CONNECTIONS_MAX, GREETINGS_MAX, HANDSHAKE_BYTES_MAX, NODE_CONNECTIONS_MAX, request_bytes_max,
};
use super::peer_membership::PeerMembership;
use super::raft_rpc::RaftCell;
use super::service::{MembershipStatus, PeerInfo, PeerService};
use super::stream::{PeerStream, PeerWrite, Shown, accepted};
use super::writer::{self, FrameSender};
use super::{serve_app, serve_raft, serve_snapshot};

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
    let greetings = EvictingLimit::new(ADDRESS_GREETINGS_MAX, GREETINGS_MAX);
    let connections = EvictingLimit::new(NODE_CONNECTIONS_MAX, CONNECTIONS_MAX);
    let server = Server { net, raft, service, state_dir, snapshot_gate, greetings, connections, warned, started };
    let server = Arc::new(server);
    let tasks = TaskTracker::new();
    shutdown.run_until_cancelled(accept(&mut listener, &server, &tasks, &shutdown)).await;
    tasks.close();
    tasks.wait().await;
}

async fn accept(listener: &mut Listener, server: &Arc<Server>, tasks: &TaskTracker, shutdown: &CancellationToken) {
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => {
                let (server, token, inner) = (Arc::clone(server), shutdown.child_token(), tasks.clone());
                watchdog::spawn_tracked(tasks, server.on_connection(stream, remote, token, inner));
            }
            Err(error) => {
                // Out of file descriptors, most likely: they come back, and spinning would not help.
                tracing::warn!(%error, "accepting a peer connection failed");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A connection whose handshake is over.
struct Greeted {
    peer: PeerInfo,
    known: PeerMembership,
    channel: ChannelKind,
    reader: CountedReader,
    write: PeerWrite,
}

impl Server {
    async fn on_connection(
        self: Arc<Self>,
        stream: Stream,
        remote: PeerAddress,
        token: CancellationToken,
        tasks: TaskTracker,
    ) {
        let pushed_out = token.child_token();
        // Nothing is proved here: there is always one that has to go.
        let Ok(waits) = self.greetings.take(remote.into(), pushed_out.clone()) else { return };
        let greeting = timeout(self.net.inner.timings.handshake, self.greet(stream, remote));
        let greeted = match pushed_out.run_until_cancelled(greeting).await {
            None if token.is_cancelled() => return,
            None => Err("it said nothing while many others came".to_owned()),
            Some(Err(_)) => Err("the handshake took too long".to_owned()),
            Some(Ok(greeted)) => greeted,
        };
        drop(waits);
        match greeted {
            Ok(greeted) => {
                // All who are no members share the permits of one.
                let owner = greeted.known.is_known_member().then_some(greeted.peer.node_id);
                let Ok(_permit) = self.connections.take(owner, token.clone()) else { return };
                self.start(greeted, token, tasks).await;
            }
            Err(reason) => self.warn(remote, &reason),
        }
    }

    /// Reads the hello and answers it; a refusal is told to the peer before it is returned.
    async fn greet(&self, stream: Stream, remote: PeerAddress) -> Result<Greeted, String> {
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
        let protocol = self.net.inner.local.protocol_of(&frame);
        let judged = match &hello {
            Ok(hello) => self.judge(hello, &shown).await,
            Err(unread) => Err(unread.to_string().into()),
        };
        // Who cannot even say what it wants is counted among those on the first channel.
        let wanted = hello.as_ref().ok().and_then(|hello| ChannelKind::from_code(hello.channel));
        let counters = self.net.inner.counters.channel(wanted.unwrap_or(ChannelKind::Control));
        ChannelCounters::add(if judged.is_ok() { &counters.accepted } else { &counters.refused }, 1);
        let refusal = judged.as_ref().err().cloned();
        let welcome = welcome_frame(&Welcome { protocol, ..self.net.inner.local.welcome(refusal) }).into_bytes();
        write.write_all(&welcome).await.map_err(|error| error.to_string())?;
        write.flush().await.map_err(|error| error.to_string())?;
        let (hello, (channel, known)) =
            (hello.map_err(|unread| unread.to_string())?, judged.map_err(|refusal| refusal.reason)?);
        reader.set_body_max(request_bytes_max(channel));
        let peer = PeerInfo {
            protocol,
            node_id: hello.node_id,
            incarnation: hello.incarnation,
            cluster_id: hello.cluster_id,
            member: hello.member,
            remote,
        };
        let counters = Arc::clone(&self.net.inner.counters);
        let reader = CountedReader { reader, counters, channel };
        Ok(Greeted { peer, known, channel, reader, write })
    }

    /// Whether it is who it says, and may be here for what it wants. What goes to Raft is from members only; who wants to become one
    /// asks on the channel of questions, where each is judged by itself.
    async fn judge(&self, hello: &Hello, shown: &Shown) -> Result<(ChannelKind, PeerMembership), Refusal> {
        shown.judge(hello.node_id)?;
        let disk = NodeDisk { node_id: hello.node_id, incarnation: hello.incarnation };
        let known = self.known_incarnation(hello).await;
        let channel = self.net.inner.local.judge_hello(hello, known)?;
        let known = PeerMembership::new(disk, Arc::clone(&self.service), self.net.has_tls());
        if channel != ChannelKind::App {
            known.inquire().await?;
        }
        Ok((channel, known))
    }

    /// The disk by which this node knows a peer. One that comes to Raft with another may have been taken in with it while this node was
    /// away: then it is unknown here, unless the members that this node knows have not heard of it either.
    async fn known_incarnation(&self, hello: &Hello) -> Option<u128> {
        let known = self.service.known_incarnation(hello.node_id).filter(|known| *known != hello.incarnation)?;
        let disk = NodeDisk { node_id: hello.node_id, incarnation: hello.incarnation };
        let is_for_raft = ChannelKind::from_code(hello.channel) != Some(ChannelKind::App);
        let may_be_newer = is_for_raft && self.service.membership_status(disk) == MembershipStatus::Unknown;
        if may_be_newer && self.service.confirm_member(disk).await { None } else { Some(known) }
    }

    async fn start(self: Arc<Self>, greeted: Greeted, token: CancellationToken, tasks: TaskTracker) {
        let Greeted { peer, known, channel, reader, write } = greeted;
        self.on_peer_heard(&peer, channel, &tasks);
        let out = self.start_writer(channel, write, &token, &tasks);
        let (remote, node_id) = (peer.remote, peer.node_id);
        // Followed from here on: who was removed since it was judged is found out now, who is later ends the connection.
        let left = self.service.left(peer.disk());
        if channel != ChannelKind::App
            && let Err(reason) = known.inquire().await
        {
            self.warn(remote, &reason);
            return;
        }
        let (server, service) = (Arc::clone(&self), Arc::clone(&self.service));
        let inbound = Inbound { server, peer, known, channel, reader, out, token: token.clone(), tasks };
        let serving = async {
            match channel {
                ChannelKind::Control | ChannelKind::Append => serve_raft::run(inbound).await,
                ChannelKind::App => serve_app::run(inbound).await,
                ChannelKind::Snapshot => serve_snapshot::run(inbound).await,
            }
        };
        let serving = async {
            tokio::select! {
                served = serving => served,
                () = left => Err("the node was removed from this cluster".to_owned()),
            }
        };
        // The writer still sends what is queued: it ends by itself once every sender is gone.
        if let Some(Err(reason)) = token.run_until_cancelled(serving).await {
            self.warn(remote, &reason);
        }
        token.cancel();
        if channel == ChannelKind::Control {
            service.on_connection_end(node_id);
        }
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
        watchdog::spawn_tracked(tasks, async move {
            let writing = writer::run(write, queue, server.net.inner.counters.channel(channel));
            let late = async {
                token.cancelled().await;
                sleep(LAST_WORDS).await;
            };
            tokio::select! {
                written = writing => if let Err(error) = written {
                    quorate_node_core::debug!(%error, channel = channel.name(), "writing to a peer failed");
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
            watchdog::spawn_tracked(tasks, raft.on_peer_connected(peer.node_id));
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
