//! What all connections of this node to its peers share.
//!
//! Owns the times, the counters and the identity that handshakes show. Never connects.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use quorate_node_core::net::Network;
use quorate_node_core::tls::PortTls;
use tokio::time::Instant;

use super::counters::{ChannelKind, Counters};
use super::handshake::LocalPeer;
use super::service::PeerService;

/// How long a node is taken to speak the older protocol that it was seen to speak.
const OLDER_FOR: Duration = Duration::from_secs(30);

/// The times that the transport derives its own from; those of Raft in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerTimings {
    /// Raft's heartbeat interval.
    pub heartbeat_ms: u64,
    /// For so long after it heard a leader a node elects nobody else.
    pub lease_ms: u64,
    /// The shortest silence after which a node stands for election.
    pub election_min_ms: u64,
    /// How long connecting may take.
    pub connect: Duration,
    /// How long the handshake may take, on either side.
    pub handshake: Duration,
    /// How long a snapshot transfer may make no progress.
    pub snapshot_idle: Duration,
}

impl PeerTimings {
    /// Raft's times with the defaults for the rest.
    pub fn new(heartbeat_ms: u64, lease_ms: u64, election_min_ms: u64) -> Self {
        Self {
            heartbeat_ms,
            lease_ms,
            election_min_ms,
            connect: Duration::from_secs(1),
            handshake: Duration::from_secs(2),
            snapshot_idle: Duration::from_secs(10),
        }
    }

    /// How long an append request may go unanswered. Below the lease, because openraft may credit an answer with a later request's
    /// time of sending: that is harmless only while no other leader can have come up, and whoever sees the connections of its leader
    /// end asks for votes as soon as the lease is over.
    pub fn append_deadline(&self) -> Duration {
        let wanted = (4 * self.heartbeat_ms).max(self.election_min_ms / 2);
        Duration::from_millis(wanted.min(self.lease_ms * 9 / 10))
    }

    /// How long a peer may be silent while it owes us something. More patient where giving up costs certainty.
    pub(super) fn dead_after(&self, channel: ChannelKind) -> Duration {
        match channel {
            ChannelKind::Control | ChannelKind::Append => Duration::from_millis(self.election_min_ms),
            ChannelKind::App | ChannelKind::Snapshot => Duration::from_millis(3 * self.election_min_ms),
        }
    }
}

pub(super) struct NetInner {
    pub network: Arc<dyn Network>,
    pub local: LocalPeer,
    pub timings: PeerTimings,
    pub counters: Arc<Counters>,
    /// Weak, because the service in turn holds a [`super::client::PeerNet`].
    service: OnceLock<Weak<dyn PeerService>>,
    pub snapshot_bytes_per_second: AtomicU64,
    /// With it, no connection is plain.
    pub tls: Option<Arc<PortTls>>,
    /// Protocols of those that speak an older one than this node, by address, and when that was seen.
    protocols: Mutex<HashMap<String, (u16, Instant)>>,
    warned: AtomicU64,
    started: Instant,
}

impl NetInner {
    pub fn new(network: Arc<dyn Network>, local: LocalPeer, timings: PeerTimings, tls: Option<Arc<PortTls>>) -> Self {
        Self {
            network,
            local,
            timings,
            counters: Arc::default(),
            service: OnceLock::new(),
            snapshot_bytes_per_second: AtomicU64::new(0),
            tls,
            protocols: Mutex::default(),
            warned: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// Lets handshakes of both sides ask the service.
    pub fn attach(&self, service: &Arc<dyn PeerService>) {
        self.service.get_or_init(|| Arc::downgrade(service));
    }

    pub fn known_incarnation(&self, node: u64) -> Option<u128> {
        self.service.get()?.upgrade()?.known_incarnation(node)
    }

    /// The protocol to begin with at an address. What was seen there is tried for a while: the node may be a newer one by now.
    pub fn protocol_with(&self, addr: &str) -> u16 {
        let newest = self.local.hello(ChannelKind::Control, None).protocol;
        let seen = self.protocols.lock().get(addr).copied();
        seen.filter(|(_, at)| at.elapsed() < OLDER_FOR).map_or(newest, |(protocol, _)| protocol)
    }

    /// The node at an address speaks no newer protocol than this.
    pub fn note_protocol(&self, addr: &str, protocol: u16) {
        let mut protocols = self.protocols.lock();
        protocols.retain(|_, (_, at)| at.elapsed() < OLDER_FOR);
        protocols.insert(addr.to_owned(), (protocol, Instant::now()));
    }

    /// At most one line in five seconds: all channels to a node try for ever.
    pub fn warn(&self, what: &str, reason: &str) {
        let now = 1 + self.started.elapsed().as_secs() / 5;
        if self.warned.swap(now, Relaxed) != now {
            tracing::warn!(reason, "{what}; this node tries again");
        }
    }

    pub fn snapshot_rate(&self) -> u64 {
        self.snapshot_bytes_per_second.load(Relaxed)
    }
}
