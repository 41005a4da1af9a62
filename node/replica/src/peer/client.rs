//! The asking side: the pool of channels to all peers, and questions to them.
//!
//! Owns [`PeerNet`]. Never retries: whoever asks knows whether asking twice is safe, and the error tells what is known.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use quorate_node_core::net::{Network, Tcp};
use quorate_node_core::tls::PortTls;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::channel::{Channel, ChannelKey, DialError};
use super::connection::Connection;
use super::counters::{ChannelKind, PeerCounters};
use super::frame::{Frame, FrameKind, Outgoing};
use super::handshake::{LocalPeer, Refusal};
use super::limits::{CALL_BYTES_MAX, LANES_MAX};
use super::message::{PeerRequest, PeerResponse};
use super::net_inner::NetInner;

pub use super::net_inner::PeerTimings;

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// It never left this node.
    #[error("not sent: {0}")]
    NotSent(String),
    /// It was sent, or may have been, and whether the peer acted on it is unknown.
    #[error("the answer was lost: {0}")]
    Lost(String),
    /// The peer, or this node on seeing who it is, refused; the question was not acted on.
    #[error("refused: {0}")]
    Refused(Refusal),
}

impl From<DialError> for CallError {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Unreachable(reason) | DialError::Insecure(reason) | DialError::Stranger(reason) => {
                Self::NotSent(reason)
            }
            DialError::Refused(refusal) => Self::Refused(refusal),
        }
    }
}

/// Connections to all peers. Cheap to clone; the connections close with the last clone.
#[derive(Clone)]
pub struct PeerNet {
    pub(super) inner: Arc<NetInner>,
    channels: Arc<Mutex<HashMap<ChannelKey, Arc<Channel>>>>,
}

impl PeerNet {
    /// Connects to nobody yet. With `tls`, no connection of either side is plain.
    pub fn new(local: LocalPeer, timings: PeerTimings, tls: Option<Arc<PortTls>>) -> Self {
        Self::over(Arc::new(Tcp), local, timings, tls)
    }

    /// [`Self::new`] over another network than this machine's.
    pub fn over(network: Arc<dyn Network>, local: LocalPeer, timings: PeerTimings, tls: Option<Arc<PortTls>>) -> Self {
        let inner = Arc::new(NetInner::new(network, local, timings, tls));
        Self { inner, channels: Arc::default() }
    }

    /// Asks the node at `addr`, which has to be `expect_node` where that is given. Questions share a connection and are
    /// answered in any order.
    pub async fn call(
        &self,
        addr: &str,
        expect_node: Option<u64>,
        request: PeerRequest,
        deadline: std::time::Instant,
    ) -> Result<PeerResponse, CallError> {
        let deadline = Instant::from_std(deadline);
        let body = request.encode();
        if body.len() > CALL_BYTES_MAX {
            let reason = format!("a question of {} bytes, {CALL_BYTES_MAX} are allowed", body.len());
            return Err(CallError::Refused(reason.into()));
        }
        let key = ChannelKey { addr: addr.to_owned(), node: expect_node, incarnation: None, kind: ChannelKind::App };
        let channel = self.channel(key);
        let connecting = timeout_at(deadline, channel.connection(&self.inner));
        let connection = connecting.await.map_err(|_| late("connecting to the peer"))??;
        let _room = take_room(&connection, body.len(), deadline).await?;
        ask(&connection, body, deadline).await
    }

    pub(super) fn channel(&self, key: ChannelKey) -> Arc<Channel> {
        let mut channels = self.channels.lock();
        if let Some(channel) = channels.get(&key) {
            return Arc::clone(channel);
        }
        if channels.len() >= LANES_MAX {
            channels.retain(|_, channel| !channel.is_unused());
        }
        Arc::clone(channels.entry(key.clone()).or_insert_with(|| Arc::new(Channel::new(key))))
    }

    /// The peer connected to us, so it can be connected to.
    pub(super) fn on_peer_heard(&self, node: u64) {
        self.channels.lock().values().for_each(|channel| channel.retry_now(node));
    }

    /// Whether peers show certificates.
    pub fn has_tls(&self) -> bool {
        self.inner.tls.is_some()
    }

    /// What was sent and received so far.
    pub fn counters(&self) -> PeerCounters {
        self.inner.counters.read()
    }

    /// Bounds the speed of outgoing snapshots, together with nothing else; 0 lifts the bound.
    pub fn limit_snapshots(&self, bytes_per_second: u64) {
        self.inner.snapshot_bytes_per_second.store(bytes_per_second, Relaxed);
    }
}

fn late(doing: &str) -> CallError {
    CallError::NotSent(format!("the deadline passed while {doing}"))
}

/// Room for one more unanswered call on the connection, kept until the answer is there.
async fn take_room(
    connection: &Connection,
    bytes: usize,
    deadline: Instant,
) -> Result<(SemaphorePermit<'_>, SemaphorePermit<'_>), CallError> {
    let room = async {
        let bytes = connection.call_bytes.acquire_many(bytes as u32).await?;
        Ok::<_, tokio::sync::AcquireError>((bytes, connection.calls.acquire().await?))
    };
    let room = timeout_at(deadline, room).await.map_err(|_| late("many other questions waited"))?;
    Ok(room.expect("the semaphores of a connection are never closed"))
}

async fn ask(connection: &Connection, body: Vec<u8>, deadline: Instant) -> Result<PeerResponse, CallError> {
    let closed = || CallError::NotSent(connection.reason());
    let mut waiting = connection.expect_one().ok_or_else(closed)?;
    let sending = timeout_at(deadline, connection.send(Outgoing::whole(FrameKind::Call, waiting.id, body))).await;
    sending.map_err(|_| late("the connection was busy"))?.map_err(|_| closed())?;
    // From here on the frame may be on its way.
    match timeout_at(deadline, waiting.answer()).await {
        Ok(Some(frame)) => read_answer(frame),
        Ok(None) => Err(CallError::Lost(connection.reason())),
        Err(_) => Err(CallError::Lost("no answer by the deadline".into())),
    }
}

fn read_answer(frame: Frame) -> Result<PeerResponse, CallError> {
    let sentence = || String::from_utf8_lossy(&frame.body).into_owned();
    match frame.kind {
        FrameKind::Answer => PeerResponse::decode(&frame.body).map_err(|error| CallError::Lost(error.to_string())),
        FrameKind::CallRefused => Err(CallError::Refused(sentence().into())),
        FrameKind::CallFailed => Err(CallError::Lost(sentence())),
        kind => Err(CallError::Lost(format!("the peer answered with a frame of kind {kind:?}"))),
    }
}
