//! The asking side: the pool of lanes to all peers, and questions to them.
//!
//! Owns [`PeerNet`]. Never retries: whoever asks knows whether asking twice is safe, and the error tells what is known.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use quorate_store::codec;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::connection::Connection;
use super::counters::{Counters, LaneKind, PeerCounters};
use super::frame::{Frame, FrameKind, Outgoing};
use super::handshake::LocalPeer;
use super::lane::{DialError, Lane, LaneKey};
use super::limits::{CALL_BYTES_MAX, LANES_MAX};
use super::message::{PeerRequest, PeerResponse};
use super::service::PeerService;
use crate::net::{Network, Tcp};
use crate::tls::PortTls;

/// The times that the transport derives its own from, all in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerTimings {
    /// Raft's heartbeat interval.
    pub heartbeat_ms: u64,
    /// Raft's shortest election timeout.
    pub election_min_ms: u64,
    /// How long connecting may take.
    pub connect_ms: u64,
    /// How long the handshake may take, on either side.
    pub handshake_ms: u64,
    /// How long a snapshot transfer may make no progress.
    pub snapshot_idle_ms: u64,
}

impl PeerTimings {
    /// Raft's two times with the defaults for the rest.
    pub fn new(heartbeat_ms: u64, election_min_ms: u64) -> Self {
        Self { heartbeat_ms, election_min_ms, connect_ms: 1_000, handshake_ms: 2_000, snapshot_idle_ms: 10_000 }
    }

    /// How long an append request may go unanswered. Below the election timeout, because openraft may credit an
    /// answer with a later request's time of sending: that is harmless only while no other leader can have come up.
    pub fn append_deadline(&self) -> Duration {
        let wanted = (4 * self.heartbeat_ms).max(self.election_min_ms / 2);
        Duration::from_millis(wanted.min(self.election_min_ms * 9 / 10))
    }

    /// How long a peer may be silent while it owes us something. More patient where giving up costs certainty.
    pub(super) fn dead_after(&self, lane: LaneKind) -> Duration {
        match lane {
            LaneKind::Control | LaneKind::Append => Duration::from_millis(self.election_min_ms),
            LaneKind::App | LaneKind::Snapshot => Duration::from_millis(3 * self.election_min_ms),
        }
    }

    pub(super) fn connect(&self) -> Duration {
        Duration::from_millis(self.connect_ms)
    }

    pub(super) fn handshake(&self) -> Duration {
        Duration::from_millis(self.handshake_ms)
    }

    pub(super) fn snapshot_idle(&self) -> Duration {
        Duration::from_millis(self.snapshot_idle_ms)
    }
}

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
    Refused(String),
}

impl From<DialError> for CallError {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Unreachable(reason) | DialError::Insecure(reason) => Self::NotSent(reason),
            DialError::Refused(reason) => Self::Refused(reason),
        }
    }
}

/// Connections to all peers. Cheap to clone; the connections close with the last clone.
#[derive(Clone)]
pub struct PeerNet {
    pub(super) inner: Arc<NetInner>,
}

pub(super) struct NetInner {
    pub network: Arc<dyn Network>,
    pub local: LocalPeer,
    pub timings: PeerTimings,
    pub counters: Arc<Counters>,
    lanes: Mutex<HashMap<LaneKey, Arc<Lane>>>,
    /// Weak, because the service in turn holds a [`PeerNet`].
    service: OnceLock<Weak<dyn PeerService>>,
    snapshot_bytes_per_second: AtomicU64,
    /// With it, no connection is plain.
    pub tls: Option<Arc<PortTls>>,
    warned: AtomicU64,
    started: Instant,
}

impl PeerNet {
    /// Connects to nobody yet. With `tls`, no connection of either side is plain.
    pub fn new(local: LocalPeer, timings: PeerTimings, tls: Option<Arc<PortTls>>) -> Self {
        Self::over(Arc::new(Tcp), local, timings, tls)
    }

    /// [`Self::new`] over another network than this machine's.
    pub fn over(network: Arc<dyn Network>, local: LocalPeer, timings: PeerTimings, tls: Option<Arc<PortTls>>) -> Self {
        let inner = NetInner {
            network,
            local,
            timings,
            counters: Arc::default(),
            lanes: Mutex::default(),
            service: OnceLock::new(),
            snapshot_bytes_per_second: AtomicU64::new(0),
            tls,
            warned: AtomicU64::new(0),
            started: Instant::now(),
        };
        Self { inner: Arc::new(inner) }
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
        let body = codec::encode(&request);
        if body.len() > CALL_BYTES_MAX {
            return Err(CallError::Refused(format!(
                "a question of {} bytes, {CALL_BYTES_MAX} are allowed",
                body.len()
            )));
        }
        let key = LaneKey { addr: addr.to_owned(), node: expect_node, incarnation: None, kind: LaneKind::App };
        let lane = self.inner.lane(key);
        let connecting = timeout_at(deadline, lane.connection(&self.inner));
        let connection = connecting.await.map_err(|_| late("connecting to the peer"))??;
        let _room = take_room(&connection, body.len(), deadline).await?;
        ask(&connection, body, deadline).await
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

impl NetInner {
    pub fn lane(&self, key: LaneKey) -> Arc<Lane> {
        let mut lanes = self.lanes.lock();
        if let Some(lane) = lanes.get(&key) {
            return Arc::clone(lane);
        }
        if lanes.len() >= LANES_MAX {
            lanes.retain(|_, lane| !lane.is_unused());
        }
        Arc::clone(lanes.entry(key.clone()).or_insert_with(|| Arc::new(Lane::new(key))))
    }

    /// The peer connected to us, so it can be connected to.
    pub fn on_peer_heard(&self, node: u64) {
        self.lanes.lock().values().for_each(|lane| lane.retry_now(node));
    }

    /// Lets handshakes of both sides ask the service.
    pub fn attach(&self, service: &Arc<dyn PeerService>) {
        self.service.get_or_init(|| Arc::downgrade(service));
    }

    pub fn known_incarnation(&self, node: u64) -> Option<u128> {
        self.service.get()?.upgrade()?.known_incarnation(node)
    }

    /// At most one line in five seconds: all lanes to a node try for ever.
    pub fn warn_insecure(&self, reason: &str) {
        let now = 1 + self.started.elapsed().as_secs() / 5;
        if self.warned.swap(now, Relaxed) != now {
            tracing::warn!(reason, "no secure connection to a peer");
        }
    }

    pub fn snapshot_rate(&self) -> u64 {
        self.snapshot_bytes_per_second.load(Relaxed)
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
        FrameKind::Answer => codec::decode(&frame.body).map_err(|error| CallError::Lost(error.to_string())),
        FrameKind::CallRefused => Err(CallError::Refused(sentence())),
        FrameKind::CallFailed => Err(CallError::Lost(sentence())),
        kind => Err(CallError::Lost(format!("the peer answered with a frame of kind {kind:?}"))),
    }
}
