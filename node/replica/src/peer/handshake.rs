//! The first frame each way: who is there, of which cluster, and whether they may talk.
//!
//! Owns the judgement over a peer's identity, made on both sides, each giving its reason in a sentence. Never lets two
//! nodes of different clusters exchange anything else, nor a node whose disk was made anew pass for its former self.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bincode::Decode;
use bytes::Bytes;
use quorate_machine::codec::{self, RECORDS, Written};
use quorate_machine::level::Level;
use quorate_machine::versions::Versions;
use quorate_store::identity::Identity;
use quorate_store::raft::wire::MemberRecord;

use super::counters::ChannelKind;
use super::frame::{Frame, FrameKind, Outgoing};

mod v1;

/// Versions of the peer protocol, of which two nodes speak the newest that both know. Who connects begins with its newest; who does not
/// know that one answers in its own newest, and the other connects again in that.
pub const PROTOCOL: Versions = Versions::new(1, 1, 1);

/// The newest.
pub const PROTOCOL_VERSION: u16 = PROTOCOL.writes() as u16;
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
    /// Versions of the protocol ([`PROTOCOL`] unless a test says otherwise).
    pub protocol: Versions,
    /// Format of log entries and state ([`codec::FORMAT_VERSION`] unless a test says otherwise).
    pub format_version: u8,
    /// Feature levels.
    pub levels: Levels,
    /// Whether its state may be given to others at the moment.
    pub trusts_state: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// Why one of two nodes does not talk to the other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// A sentence for people.
    pub reason: String,
    /// Whether it is about the id of the node that connects, which may come under another one.
    pub is_of_the_id: bool,
}

impl Refusal {
    /// Under another id it may be otherwise.
    pub(crate) fn of_the_id(reason: String) -> Self {
        Self { reason, is_of_the_id: true }
    }

    /// The same, with who says it.
    pub(crate) fn by(self, whom: impl std::fmt::Display) -> Self {
        Self { reason: format!("{whom}: {}", self.reason), ..self }
    }
}

/// Whatever id the node would come under.
impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, is_of_the_id: false }
    }
}

/// Which feature levels a node knows, and which one its state has reached.
#[derive(Clone)]
pub struct Levels {
    /// The highest that its binary knows ([`quorate_machine::level::newest`] unless a test says otherwise).
    pub known: Level,
    /// Where its state is at the moment.
    pub reached: Arc<dyn Fn() -> Level + Send + Sync>,
}

/// Said by the side that connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Version of the protocol that it is said in.
    pub protocol: u16,
    /// Oldest and newest format that the node reads.
    pub formats_read: (u8, u8),
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// Version of the protocol that it is said in.
    pub protocol: u16,
    /// Oldest and newest format that the node reads.
    pub formats_read: (u8, u8),
    /// See [`LocalPeer::format_version`].
    pub format_version: u8,
    /// Its cluster, once adopted.
    pub cluster_id: Option<u128>,
    /// Its number.
    pub node_id: u64,
    /// Its disk.
    pub incarnation: u128,
    /// Why the connection is refused, if it is.
    pub refusal: Option<Refusal>,
    /// See [`Levels::known`].
    pub level_known: Level,
}

impl LocalPeer {
    /// The first frame to send on a new connection, in the newest protocol.
    pub fn hello(&self, channel: ChannelKind, to_node: Option<u64>) -> Hello {
        let identity = self.identity.load();
        Hello {
            protocol: self.newest_protocol(),
            formats_read: formats_read(),
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

    fn newest_protocol(&self) -> u16 {
        protocol(self.protocol.newest())
    }

    /// The protocol to speak with a peer that said something in this version, if both know one.
    pub fn common_protocol(&self, theirs: u16) -> Option<u16> {
        self.protocol.common(theirs.into()).map(protocol)
    }

    /// The protocol to answer this first frame in: its own where that is known here, else the newest.
    pub fn protocol_of(&self, frame: &Frame) -> u16 {
        let said = version_of(frame, FrameKind::Hello).ok().and_then(|said| self.common_protocol(said));
        said.unwrap_or_else(|| self.newest_protocol())
    }

    /// The first frame to answer with, in the newest protocol.
    pub fn welcome(&self, refusal: Option<Refusal>) -> Welcome {
        let identity = self.identity.load();
        Welcome {
            protocol: self.newest_protocol(),
            formats_read: formats_read(),
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
    pub fn judge_hello(&self, hello: &Hello, known: Option<u128>) -> Result<ChannelKind, Refusal> {
        if !self.protocol.reads(hello.protocol.into()) {
            return Err(unknown_protocol(hello.protocol, self.protocol).into());
        }
        let identity = self.identity.load();
        let channel =
            ChannelKind::from_code(hello.channel).ok_or_else(|| format!("there is no channel {}", hello.channel))?;
        if let Some(wanted) = hello.to_node.filter(|wanted| *wanted != identity.node_id) {
            return Err(format!("this is node {}, not node {wanted}", identity.node_id).into());
        }
        self.judge_peer(hello.node_id, hello.cluster_id)?;
        judge_disk(hello.node_id, hello.incarnation, known).map_err(Refusal::of_the_id)?;
        self.judge_formats(hello.node_id, hello.format_version, hello.formats_read)?;
        self.judge_level(hello.node_id, hello.level_known)?;
        if channel != ChannelKind::App && !self.shares_cluster(hello.cluster_id) {
            let unadopted = if identity.cluster_id.is_none() { identity.node_id } else { hello.node_id };
            return Err(format!("node {unadopted} has not been adopted by a cluster yet").into());
        }
        Ok(channel)
    }

    /// The connecting side's judgement.
    pub fn judge_welcome(&self, welcome: &Welcome, to: Option<u64>, known: Option<u128>) -> Result<(), Refusal> {
        if let Some(refusal) = &welcome.refusal {
            return Err(refusal.clone().by(format_args!("node {} refused the connection", welcome.node_id)));
        }
        if let Some(wanted) = to.filter(|wanted| *wanted != welcome.node_id) {
            return Err(format!("node {} answered instead of node {wanted}", welcome.node_id).into());
        }
        self.judge_peer(welcome.node_id, welcome.cluster_id)?;
        judge_disk(welcome.node_id, welcome.incarnation, known)?;
        self.judge_formats(welcome.node_id, welcome.format_version, welcome.formats_read)?;
        Ok(self.judge_level(welcome.node_id, welcome.level_known)?)
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

    fn judge_peer(&self, node: u64, cluster: Option<u128>) -> Result<(), Refusal> {
        let own = self.identity.load();
        if node == own.node_id {
            let reason = format!("node {node} is this node itself, or another process that bears its number");
            return Err(Refusal::of_the_id(reason));
        }
        if let (Some(ours), Some(theirs)) = (own.cluster_id, cluster)
            && ours != theirs
        {
            let reason =
                format!("node {node} belongs to cluster {theirs:032x}, node {} to cluster {ours:032x}", own.node_id);
            return Err(reason.into());
        }
        Ok(())
    }

    /// Each has to read what the other one writes.
    fn judge_formats(&self, node: u64, writes: u8, reads: (u8, u8)) -> Result<(), String> {
        if !RECORDS.reads(writes.into()) {
            return Err(format!("node {node} writes format {writes}, this node reads {RECORDS}"));
        }
        let own = self.format_version;
        if own < reads.0 || reads.1 < own {
            return Err(format!(
                "this node writes format {own}, node {node} reads versions {} to {}",
                reads.0, reads.1
            ));
        }
        Ok(())
    }
}

/// A node whose disk is another one than the membership records is not that member.
fn judge_disk(node: u64, incarnation: u128, known: Option<u128>) -> Result<(), String> {
    match known.filter(|known| *known != incarnation) {
        None => Ok(()),
        Some(known) => Err(format!(
            "node {node} is known by disk {known:032x} but came with disk {incarnation:032x}: a node whose disk was \
             replaced has to join under a new number"
        )),
    }
}

fn formats_read() -> (u8, u8) {
    (RECORDS.oldest() as u8, RECORDS.newest() as u8)
}

fn protocol(version: u32) -> u16 {
    u16::try_from(version).expect("versions of the protocol are small")
}

/// Why a first frame is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// No node of Quorate says this.
    #[error("the other end does not speak Quorate's peer protocol")]
    Stranger,
    /// A node says it, in a protocol that is not known here.
    #[error("{0}")]
    Protocol(String),
    /// It begins well, and cannot be read to its end.
    #[error("handshake: {0}")]
    Damaged(String),
}

fn unknown_protocol(said: u16, known: Versions) -> String {
    format!("the other end speaks peer protocol {said}, this node speaks {known}")
}

/// Puts a [`Hello`] into its frame.
pub fn hello_frame(hello: &Hello) -> Outgoing {
    let record = codec::encode(&v1::Hello::from(hello.clone()));
    Outgoing::whole(FrameKind::Hello, 0, prefixed(hello.protocol, record))
}

/// Puts a [`Welcome`] into its frame.
pub fn welcome_frame(welcome: &Welcome) -> Outgoing {
    let record = codec::encode(&v1::Welcome::from(welcome.clone()));
    Outgoing::whole(FrameKind::Welcome, 0, prefixed(welcome.protocol, record))
}

fn prefixed(version: u16, record: Vec<u8>) -> Bytes {
    let mut body = Vec::with_capacity(PREFIX_BYTES + record.len());
    body.extend_from_slice(MAGIC);
    body.extend_from_slice(&version.to_le_bytes());
    body.extend_from_slice(&record);
    body.into()
}

/// Reverses [`hello_frame`]; a stranger or a version that is not known is refused in a sentence.
pub fn read_hello(frame: &Frame) -> Result<Hello, Unread> {
    check_version(frame, FrameKind::Hello)?;
    read::<v1::Hello>(frame).map(Into::into)
}

/// Reverses [`welcome_frame`].
pub fn read_welcome(frame: &Frame) -> Result<Welcome, Unread> {
    check_version(frame, FrameKind::Welcome)?;
    read::<v1::Welcome>(frame).map(Into::into)
}

/// Whether it is said in a version that is known. With a second one the layout follows from it: each has a file of its own.
fn check_version(frame: &Frame, kind: FrameKind) -> Result<(), Unread> {
    let version = version_of(frame, kind)?;
    if PROTOCOL.reads(version.into()) { Ok(()) } else { Err(Unread::Protocol(unknown_protocol(version, PROTOCOL))) }
}

/// Stands at the same place in all versions.
fn version_of(frame: &Frame, kind: FrameKind) -> Result<u16, Unread> {
    if frame.kind != kind || !frame.body.starts_with(MAGIC) || frame.body.len() < PREFIX_BYTES {
        return Err(Unread::Stranger);
    }
    Ok(u16::from_le_bytes([frame.body[4], frame.body[5]]))
}

fn read<T: Decode<Written>>(frame: &Frame) -> Result<T, Unread> {
    codec::decode(&frame.body[PREFIX_BYTES..]).map_err(|error| Unread::Damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::peer::frame;

    fn hello() -> Hello {
        let member = MemberRecord { peer_addr: "p:1".into(), client_addr: "c:1".into(), incarnation: 9 };
        Hello {
            protocol: 1,
            formats_read: (1, 2),
            format_version: 1,
            channel: 2,
            cluster_id: Some(7),
            node_id: 1,
            incarnation: 9,
            member,
            to_node: Some(2),
            level_known: 5,
        }
    }

    fn whole(outgoing: Outgoing) -> Frame {
        let mut buffer = BytesMut::from(&outgoing.into_bytes()[..]);
        frame::decode(&mut buffer, 4_096).expect("a frame of ours").expect("all of it")
    }

    #[test]
    fn what_is_said_comes_back_and_a_later_version_is_refused_by_name() {
        assert_eq!(read_hello(&whole(hello_frame(&hello()))), Ok(hello()));
        let welcome = Welcome {
            protocol: 1,
            formats_read: (1, 2),
            format_version: 1,
            cluster_id: None,
            node_id: 2,
            incarnation: 8,
            refusal: Some("no".to_owned().into()),
            level_known: 5,
        };
        let of_the_id = Welcome { refusal: Some(Refusal::of_the_id("no".into())), ..welcome.clone() };
        let none = Welcome { refusal: None, ..welcome.clone() };
        for welcome in [&welcome, &of_the_id, &none] {
            assert_eq!(read_welcome(&whole(welcome_frame(welcome))).as_ref(), Ok(welcome));
        }
        let later = PROTOCOL_VERSION + 1;
        let refused = read_hello(&whole(hello_frame(&Hello { protocol: later, ..hello() }))).unwrap_err().to_string();
        assert!(refused.contains("speaks peer protocol 2, this node speaks version 1"), "{refused}");
        let later = read_welcome(&whole(welcome_frame(&Welcome { protocol: later, ..welcome.clone() }))).unwrap_err();
        let refused = later.to_string();
        assert!(refused.contains("speaks peer protocol 2, this node speaks version 1"), "{refused}");
        // An echo is no answer, and no more is a welcome that is cut short.
        assert_eq!(read_welcome(&whole(hello_frame(&hello()))), Err(Unread::Stranger));
        let mut cut = whole(welcome_frame(&welcome));
        cut.body.truncate(cut.body.len() - 1);
        assert!(matches!(read_welcome(&cut), Err(Unread::Damaged(_))));
    }

    /// Builds of before read and wrote a sentence, if there was one.
    #[test]
    fn a_refusal_that_is_not_of_the_id_has_the_bytes_that_it_had() {
        for before in [None, Some("no".to_owned())] {
            let refusal = before.clone().map(Refusal::from);
            assert_eq!(codec::encode(&v1::Refusal::from(refusal)), codec::encode(&before));
        }
    }

    fn local() -> LocalPeer {
        let identity = Identity { cluster_id: Some(7), node_id: 2, incarnation: 8 };
        LocalPeer {
            identity: Arc::new(ArcSwap::from_pointee(identity)),
            member: hello().member,
            protocol: PROTOCOL,
            format_version: codec::FORMAT_VERSION,
            levels: Levels { known: 5, reached: Arc::new(|| 5) },
            trusts_state: Arc::new(|| true),
        }
    }

    #[test]
    fn a_refusal_says_whether_another_id_would_help_whatever_its_words_are() {
        let refused = |judged: Result<ChannelKind, Refusal>| judged.expect_err("it is refused").is_of_the_id;
        assert!(refused(local().judge_hello(&hello(), Some(5))), "it is known by another disk");
        assert!(refused(local().judge_hello(&Hello { node_id: 2, ..hello() }, None)), "the other bears that id, too");
        assert!(!refused(local().judge_hello(&Hello { cluster_id: Some(8), ..hello() }, None)), "of another cluster");
        let welcome = Welcome { node_id: 3, ..local().welcome(None) };
        let refused = |welcome: &Welcome, known| local().judge_welcome(welcome, None, known).expect_err("refused");
        assert!(!refused(&welcome, Some(5)).is_of_the_id, "the other came with another disk");
        for is_of_the_id in [false, true] {
            let refusal = Some(Refusal { reason: "another disk, another process".into(), is_of_the_id });
            let told = refused(&Welcome { refusal, ..welcome.clone() }, None);
            assert_eq!(told.is_of_the_id, is_of_the_id);
            assert_eq!(told.reason, "node 3 refused the connection: another disk, another process");
        }
    }

    /// What a node says first is read by every build there will be: its bytes are pinned.
    #[test]
    fn the_bytes_of_a_hello_are_what_they_were() {
        let bytes = hello_frame(&hello()).into_bytes();
        let at = bytes.windows(4).position(|four| four == MAGIC).expect("it is there");
        let expected: &[u8] = b"QRTp\x01\x00\x01\x01\x02\x01\x07\x01\x09\x03p:1\x03c:1\x09\x01\x02\x05\x01\x02";
        assert_eq!(bytes[at..].escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
}
