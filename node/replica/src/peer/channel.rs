//! A channel to one peer: at most one connection, made when it is first needed and again after it broke.
//!
//! Owns dialling and its pace. Never dials this node itself, and never dials before somebody wants to send.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use quorate_node_core::net::Stream;
use quorate_node_core::tls;
use quorate_threads::watchdog;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout};

use super::connection::Connection;
use super::counters::{ChannelCounters, ChannelKind};
use super::frame::{FrameError, FrameReader};
use super::handshake::{Hello, Refusal, Unread, hello_frame, read_welcome};
use super::limits::{HANDSHAKE_BYTES_MAX, INSECURE_FLOOR, REDIAL_FLOOR, REFUSED_FLOOR, answer_bytes_max};
use super::net_inner::NetInner;
use super::stream::{PeerRead, PeerStream, PeerWrite, dialled};

/// Whom to reach, and who they have to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ChannelKey {
    pub addr: String,
    pub node: Option<u64>,
    pub incarnation: Option<u128>,
    pub kind: ChannelKind,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DialError {
    /// The peer did not answer.
    Unreachable(String),
    /// The two have no TLS in common, or one does not believe the other's certificate. New certificates may help, so this
    /// is no refusal for good.
    Insecure(String),
    /// Something answered that is no node. A node may be there later, so this is no refusal.
    Stranger(String),
    /// The peer answered, and one of the two refuses to talk to the other.
    Refused(Refusal),
}

impl DialError {
    pub fn into_reason(self) -> String {
        match self {
            Self::Unreachable(reason) | Self::Insecure(reason) | Self::Stranger(reason) => reason,
            Self::Refused(refusal) => refusal.reason,
        }
    }

    fn floor(&self) -> Duration {
        match self {
            Self::Unreachable(_) | Self::Stranger(_) => REDIAL_FLOOR,
            Self::Insecure(_) => INSECURE_FLOOR,
            Self::Refused(_) => REFUSED_FLOOR,
        }
    }
}

type Dialled = Result<Arc<Connection>, DialError>;
type Dialling = Shared<BoxFuture<'static, Dialled>>;

enum State {
    Idle,
    Dialling(Dialling),
    Live(Arc<Connection>),
    Failed { until: Instant, error: DialError },
}

pub(super) struct Channel {
    key: ChannelKey,
    state: Mutex<State>,
}

impl Drop for Channel {
    fn drop(&mut self) {
        if let State::Live(connection) = self.state.get_mut() {
            connection.close("this node closed its connections");
        }
    }
}

impl Channel {
    pub fn new(key: ChannelKey) -> Self {
        Self { key, state: Mutex::new(State::Idle) }
    }

    /// The live connection, or the outcome of the attempt under way. Dropping the future does not end the attempt, so
    /// that impatient callers get a connection in the end.
    pub async fn connection(self: &Arc<Self>, net: &Arc<NetInner>) -> Dialled {
        let dialling = {
            let mut state = self.state.lock();
            if let Some(answer) = self.settled(&mut state, net) {
                return answer;
            }
            match &*state {
                State::Dialling(dialling) => dialling.clone(),
                _ => {
                    let dialling = self.start(net);
                    *state = State::Dialling(dialling.clone());
                    dialling
                }
            }
        };
        dialling.await
    }

    /// Forgets a failure: the peer was just heard of.
    pub fn retry_now(&self, node: u64) {
        let mut state = self.state.lock();
        if self.key.node == Some(node) && matches!(*state, State::Failed { .. }) {
            *state = State::Idle;
        }
    }

    /// Whether anything would be lost by forgetting this channel.
    pub fn is_unused(&self) -> bool {
        match &*self.state.lock() {
            State::Live(connection) => connection.is_closed(),
            State::Dialling(_) => false,
            State::Idle | State::Failed { .. } => true,
        }
    }

    /// What can be said without dialling.
    fn settled(&self, state: &mut State, net: &NetInner) -> Option<Dialled> {
        match state {
            State::Live(connection) if !connection.is_closed() => {
                if connection.local_cluster == net.local.identity.load().cluster_id {
                    return Some(Ok(Arc::clone(connection)));
                }
                // The peer knows us as a node without a cluster; it has to hear of the adoption.
                connection.retire();
                None
            }
            State::Live(connection) if connection.established.elapsed() < REDIAL_FLOOR => {
                Some(Err(DialError::Unreachable(connection.reason())))
            }
            State::Failed { until, error } if Instant::now() < *until => Some(Err(error.clone())),
            State::Idle | State::Dialling(_) | State::Live(_) | State::Failed { .. } => None,
        }
    }

    fn start(self: &Arc<Self>, net: &Arc<NetInner>) -> Dialling {
        let (channel, net) = (Arc::clone(self), Arc::clone(net));
        let task = watchdog::spawn(async move {
            let dialled = channel.dial(&net).await;
            channel.on_dialled(&dialled, &net);
            dialled
        });
        task.map(|joined| joined.unwrap_or_else(|_| Err(DialError::Unreachable("this node is stopping".into()))))
            .boxed()
            .shared()
    }

    fn on_dialled(&self, dialled: &Dialled, net: &NetInner) {
        let mut state = self.state.lock();
        let counters = net.counters.channel(self.key.kind);
        match dialled {
            Ok(connection) => {
                ChannelCounters::add(&counters.connects, 1);
                quorate_node_core::debug!(addr = self.key.addr, channel = self.key.kind.name(), "connected to a peer");
                *state = State::Live(Arc::clone(connection));
            }
            Err(error) => {
                ChannelCounters::add(&counters.connect_failures, 1);
                match error {
                    DialError::Insecure(reason) => net.warn("no secure connection to a peer", reason),
                    DialError::Stranger(reason) => net.warn("no node answers at the address of a peer", reason),
                    DialError::Unreachable(_) | DialError::Refused(_) => {}
                }
                *state = State::Failed { until: Instant::now() + error.floor(), error: error.clone() };
            }
        }
    }

    async fn dial(&self, net: &Arc<NetInner>) -> Dialled {
        let cluster = net.local.identity.load().cluster_id;
        let (reader, write) = dial(&self.key, net).await?;
        let dead_after = net.timings.dead_after(self.key.kind);
        Ok(Connection::start(reader, write, self.key.kind, Arc::clone(&net.counters), cluster, dead_after))
    }
}

/// A socket after a handshake in which both sides agreed to talk: in the newest protocol, or in the newest that the other side knows.
pub(super) async fn dial(key: &ChannelKey, net: &NetInner) -> Result<(FrameReader<PeerRead>, PeerWrite), DialError> {
    let newest = net.protocol_with(&key.addr);
    match dial_in(newest, key, net).await {
        Err(NoHandshake::Speaks { protocol, .. }) if protocol < newest => {
            quorate_node_core::debug!(addr = key.addr, protocol, "the other end speaks an older protocol");
            net.note_protocol(&key.addr, protocol);
            dial_in(protocol, key, net).await.map_err(NoHandshake::into_error)
        }
        dialled => dialled.map_err(NoHandshake::into_error),
    }
}

/// Why a handshake came to nothing.
enum NoHandshake {
    /// For good, or for now.
    Failed(DialError),
    /// The other end refused, and speaks another protocol that is known here.
    Speaks { protocol: u16, refusal: Refusal },
}

impl NoHandshake {
    fn into_error(self) -> DialError {
        match self {
            Self::Failed(error) => error,
            Self::Speaks { refusal, .. } => DialError::Refused(refusal),
        }
    }
}

impl From<DialError> for NoHandshake {
    fn from(error: DialError) -> Self {
        Self::Failed(error)
    }
}

type ShakenHands = Result<(FrameReader<PeerRead>, PeerWrite), NoHandshake>;

async fn dial_in(protocol: u16, key: &ChannelKey, net: &NetInner) -> ShakenHands {
    let own = net.local.identity.load().node_id;
    if key.node == Some(own) {
        return Err(DialError::Refused(format!("node {own} does not connect to itself").into()).into());
    }
    let connecting = timeout(net.timings.connect, net.network.connect(&key.addr));
    let stream = connecting
        .await
        .map_err(|_| DialError::Unreachable(format!("connecting to {} took too long", key.addr)))?
        .map_err(|error| DialError::Unreachable(format!("connecting to {} failed: {error}", key.addr)))?;
    tune(&stream).map_err(|error| DialError::Unreachable(format!("{}: {error}", key.addr)))?;
    timeout(net.timings.handshake, shake_hands(stream, protocol, key, net))
        .await
        .map_err(|_| DialError::Unreachable(format!("{} did not answer the handshake", key.addr)))?
}

async fn shake_hands(stream: Stream, protocol: u16, key: &ChannelKey, net: &NetInner) -> ShakenHands {
    let broken = |reason: String| DialError::Unreachable(format!("{}: {reason}", key.addr));
    let insecure = |reason: String| DialError::Insecure(format!("{}: {reason}", key.addr));
    let stranger = |reason: String| DialError::Stranger(format!("{}: {reason}", key.addr));
    let PeerStream { read, mut write, shown } = dialled(stream, key.node, net.tls.as_ref()).await.map_err(insecure)?;
    let mut reader = FrameReader::new(read, HANDSHAKE_BYTES_MAX);
    let hello = hello_frame(&Hello { protocol, ..net.local.hello(key.kind, key.node) }).into_bytes();
    write.write_all(&hello).await.map_err(|error| broken(error.to_string()))?;
    write.flush().await.map_err(|error| broken(error.to_string()))?;
    let frame = reader.next().await.map_err(|error| match &error {
        // The other side judges our certificate when the handshake is over for us.
        FrameError::Io(alert) if tls::is_alert(alert) => insecure(tls::failure(alert)),
        FrameError::Io(_) | FrameError::CutShort => broken(error.to_string()),
        _ => stranger(error.to_string()),
    })?;
    let frame = frame.ok_or_else(|| broken("closed during the handshake".into()))?;
    let refused = |refusal: Refusal| DialError::Refused(refusal.by(&key.addr));
    let welcome = read_welcome(&frame).map_err(|unread| match unread {
        Unread::Protocol(reason) => refused(reason.into()),
        Unread::Stranger | Unread::Damaged(_) => stranger(unread.to_string()),
    })?;
    shown.judge(welcome.node_id).map_err(insecure)?;
    if let (true, Some(refusal)) = (welcome.protocol < protocol, &welcome.refusal)
        && let Some(protocol) = net.local.common_protocol(welcome.protocol)
    {
        return Err(NoHandshake::Speaks { protocol, refusal: refusal.clone().by(&key.addr) });
    }
    // Whoever is there is asked who it is: this node may have been away while a member came back with another disk.
    let known = key.incarnation.or_else(|| key.node.and_then(|node| net.known_incarnation(node)));
    net.local.judge_welcome(&welcome, key.node, known).map_err(refused)?;
    reader.set_body_max(answer_bytes_max(key.kind));
    Ok((reader, write))
}

/// Socket options of both sides: frames are batched by us, and a peer that vanished without a word is noticed.
pub(super) fn tune(stream: &Stream) -> std::io::Result<()> {
    stream.set_nodelay()?;
    stream.set_keepalive()
}
