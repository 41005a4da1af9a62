//! The first frame each way: who is there, of which cluster, and whether they may talk.
//!
//! Owns the judgement over a peer's identity, made on both sides, each giving its reason in a sentence. Never lets two
//! nodes of different clusters exchange anything else, nor a node whose disk was made anew pass for its former self.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bincode::{Decode, Encode};
use bytes::Bytes;
use quorate_store::codec;
use quorate_store::identity::Identity;
use quorate_store::level::Level;
use quorate_store::raft::wire::MemberRecord;

use super::counters::ChannelKind;
use super::frame::{Frame, FrameKind, Outgoing};

/// Version of the peer protocol. Nodes of different versions do not talk.
pub const PROTOCOL_VERSION: u16 = 3;
const MAGIC: &[u8; 4] = b"QRTp";
/// Magic and version stand before anything that a version may change.
const PREFIX_BYTES: usize = 4 + 2;

/// What a node says about itself.
#[derive(Clone)]
pub struct LocalPeer {
    /// The marker of its data directory; its cluster id may be filled in while connections are open.
    pub identity: Arc<ArcSwap<Identity>>,
    /// Its addresses and disk.
    pub member: MemberRecord,
    /// Format of log entries and state ([`codec::FORMAT_VERSION`] unless a test says otherwise).
    pub format_version: u8,
    /// Feature levels.
    pub levels: Levels,
    /// Whether its state may be given to others at the moment.
    pub trusts_state: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// Which feature levels a node knows, and which one its state has reached.
#[derive(Clone)]
pub struct Levels {
    /// The highest that its binary knows ([`quorate_store::level::KNOWN`] unless a test says otherwise).
    pub known: Level,
    /// Where its state is at the moment.
    pub reached: Arc<dyn Fn() -> Level + Send + Sync>,
}

/// Said by the side that connects.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Hello {
    /// See [`LocalPeer::format_version`].
    pub format_version: u8,
    /// [`ChannelKind::code`].
    pub channel: u8,
    /// Its cluster, once adopted.
    pub cluster_id: Option<u128>,
    /// Its number.
    pub node_id: u64,
    /// Its disk.
    pub incarnation: u128,
    /// Its addresses.
    pub member: MemberRecord,
    /// Whom it means to reach, if it knows.
    pub to_node: Option<u64>,
    /// See [`Levels::known`].
    pub level_known: Level,
}

/// Said by the side that accepts.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Welcome {
    /// See [`LocalPeer::format_version`].
    pub format_version: u8,
    /// Its cluster, once adopted.
    pub cluster_id: Option<u128>,
    /// Its number.
    pub node_id: u64,
    /// Its disk.
    pub incarnation: u128,
    /// Why the connection is refused, if it is.
    pub refusal: Option<String>,
    /// See [`Levels::known`].
    pub level_known: Level,
}

impl LocalPeer {
    /// The first frame to send on a new connection.
    pub fn hello(&self, channel: ChannelKind, to_node: Option<u64>) -> Hello {
        let identity = self.identity.load();
        Hello {
            format_version: self.format_version,
            channel: channel.code(),
            cluster_id: identity.cluster_id,
            node_id: identity.node_id,
            incarnation: identity.incarnation,
            member: self.member.clone(),
            to_node,
            level_known: self.levels.known,
        }
    }

    /// The first frame to answer with.
    pub fn welcome(&self, refusal: Option<String>) -> Welcome {
        let identity = self.identity.load();
        Welcome {
            format_version: self.format_version,
            cluster_id: identity.cluster_id,
            node_id: identity.node_id,
            incarnation: identity.incarnation,
            refusal,
            level_known: self.levels.known,
        }
    }

    /// Whether a peer of this cluster may send anything, not just ask to be adopted or to join.
    pub fn shares_cluster(&self, peer_cluster: Option<u128>) -> bool {
        let own = self.identity.load().cluster_id;
        own.is_some() && own == peer_cluster
    }

    /// The accepting side's judgement. `known` is the disk that the membership records for the peer.
    pub fn judge_hello(&self, hello: &Hello, known: Option<u128>) -> Result<ChannelKind, String> {
        let identity = self.identity.load();
        let channel =
            ChannelKind::from_code(hello.channel).ok_or_else(|| format!("there is no channel {}", hello.channel))?;
        if let Some(wanted) = hello.to_node.filter(|wanted| *wanted != identity.node_id) {
            return Err(format!("this is node {}, not node {wanted}", identity.node_id));
        }
        self.judge_peer(hello.node_id, hello.incarnation, known, hello.cluster_id, hello.format_version)?;
        self.judge_level(hello.node_id, hello.level_known)?;
        if channel != ChannelKind::App && !self.shares_cluster(hello.cluster_id) {
            let unadopted = if identity.cluster_id.is_none() { identity.node_id } else { hello.node_id };
            return Err(format!("node {unadopted} has not been adopted by a cluster yet"));
        }
        Ok(channel)
    }

    /// The connecting side's judgement.
    pub fn judge_welcome(&self, welcome: &Welcome, to: Option<u64>, known: Option<u128>) -> Result<(), String> {
        if let Some(reason) = &welcome.refusal {
            return Err(format!("node {} refused the connection: {reason}", welcome.node_id));
        }
        if let Some(wanted) = to.filter(|wanted| *wanted != welcome.node_id) {
            return Err(format!("node {} answered instead of node {wanted}", welcome.node_id));
        }
        self.judge_peer(welcome.node_id, welcome.incarnation, known, welcome.cluster_id, welcome.format_version)?;
        self.judge_level(welcome.node_id, welcome.level_known)
    }

    /// A node that does not know what the cluster has agreed to could only stop at the first entry it applies.
    fn judge_level(&self, node: u64, known: Level) -> Result<(), String> {
        let reached = (self.levels.reached)();
        if known < reached {
            return Err(format!(
                "node {node} knows feature levels up to {known}, and the cluster has reached level {reached}: install a newer \
                 version on node {node}"
            ));
        }
        Ok(())
    }

    fn judge_peer(
        &self,
        node: u64,
        incarnation: u128,
        known: Option<u128>,
        cluster: Option<u128>,
        format: u8,
    ) -> Result<(), String> {
        let own = self.identity.load();
        if node == own.node_id {
            return Err(format!("node {node} is this node itself, or another process that bears its number"));
        }
        if let (Some(ours), Some(theirs)) = (own.cluster_id, cluster)
            && ours != theirs
        {
            return Err(format!(
                "node {node} belongs to cluster {theirs:032x}, node {} to cluster {ours:032x}",
                own.node_id
            ));
        }
        if let Some(known) = known.filter(|known| *known != incarnation) {
            return Err(format!(
                "node {node} is known by disk {known:032x} but came with disk {incarnation:032x}: a node whose disk was \
                 replaced has to join under a new number"
            ));
        }
        if format != self.format_version {
            return Err(format!("node {node} writes format {format}, this node writes format {}", self.format_version));
        }
        Ok(())
    }
}

/// Puts a [`Hello`] into its frame.
pub fn hello_frame(hello: &Hello) -> Outgoing {
    Outgoing::whole(FrameKind::Hello, 0, prefixed(PROTOCOL_VERSION, codec::encode(hello)))
}

/// Puts a [`Welcome`] into its frame.
pub fn welcome_frame(welcome: &Welcome) -> Outgoing {
    Outgoing::whole(FrameKind::Welcome, 0, prefixed(PROTOCOL_VERSION, codec::encode(welcome)))
}

fn prefixed(version: u16, record: Vec<u8>) -> Bytes {
    let mut body = Vec::with_capacity(PREFIX_BYTES + record.len());
    body.extend_from_slice(MAGIC);
    body.extend_from_slice(&version.to_le_bytes());
    body.extend_from_slice(&record);
    body.into()
}

/// Reverses [`hello_frame`]; a stranger or another version is refused in a sentence.
pub fn read_hello(frame: &Frame) -> Result<Hello, String> {
    read(frame, FrameKind::Hello)
}

/// Reverses [`welcome_frame`].
pub fn read_welcome(frame: &Frame) -> Result<Welcome, String> {
    read(frame, FrameKind::Welcome)
}

fn read<T: Decode<()>>(frame: &Frame, kind: FrameKind) -> Result<T, String> {
    if frame.kind != kind || !frame.body.starts_with(MAGIC) || frame.body.len() < PREFIX_BYTES {
        return Err("the other end does not speak Quorate's peer protocol".into());
    }
    let version = u16::from_le_bytes([frame.body[4], frame.body[5]]);
    if version != PROTOCOL_VERSION {
        return Err(format!("the other end speaks peer protocol {version}, this node speaks {PROTOCOL_VERSION}"));
    }
    codec::decode(&frame.body[PREFIX_BYTES..]).map_err(|error| format!("handshake: {error}"))
}
