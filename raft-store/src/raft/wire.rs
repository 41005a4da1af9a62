//! Our own byte forms of openraft's types, for the log, the state and the peer protocol alike.
//!
//! Owns the only conversion between the two, because openraft's serde forms promise nothing between alphas.
//! Never does I/O. Checksums belong to whoever stores or sends the bytes.

use std::collections::{BTreeMap, BTreeSet};

use bincode::{Decode, Encode};
use bytes::{BufMut, Bytes, BytesMut};
use openraft::EntryPayload;
use openraft::impls::leader_id_adv::LeaderId;
use quorate_machine::codec::{self, CodecError};

use super::{EncodedBatch, LogEntry, LogId, Member, Membership, NodeId, SnapshotMeta, StoredMembership, Vote};

/// Twin of [`LogId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct LogIdRecord {
    /// Term of the leader that proposed the entry.
    pub term: u64,
    /// That leader.
    pub node: NodeId,
    /// Position in the log.
    pub index: u64,
}

/// Twin of [`Vote`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct VoteRecord {
    /// Term voted in.
    pub term: u64,
    /// Candidate voted for.
    pub node: NodeId,
    /// Whether a quorum granted it.
    pub committed: bool,
}

/// Twin of [`Member`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct MemberRecord {
    /// See [`Member::peer_addr`].
    pub peer_addr: String,
    /// See [`Member::client_addr`].
    pub client_addr: String,
    /// See [`Member::incarnation`].
    pub incarnation: u128,
}

/// Twin of [`Membership`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct MembershipRecord {
    /// Voter sets: one, or two while a change is under way.
    pub configs: Vec<BTreeSet<NodeId>>,
    /// Every member, voters and learners.
    pub nodes: BTreeMap<NodeId, MemberRecord>,
}

/// Twin of [`StoredMembership`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct StoredMembershipRecord {
    /// The entry that set it.
    pub log_id: Option<LogIdRecord>,
    /// The membership.
    pub membership: MembershipRecord,
}

/// Twin of [`SnapshotMeta`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotMetaRecord {
    /// Last entry applied in the snapshot.
    pub last_log_id: Option<LogIdRecord>,
    /// Last membership applied in the snapshot.
    pub last_membership: StoredMembershipRecord,
}

impl From<&LogId> for LogIdRecord {
    fn from(id: &LogId) -> Self {
        Self { term: id.leader_id.term, node: id.leader_id.node_id, index: id.index }
    }
}

impl From<LogIdRecord> for LogId {
    fn from(record: LogIdRecord) -> Self {
        LogId::new(LeaderId { term: record.term, node_id: record.node }, record.index)
    }
}

impl From<&Vote> for VoteRecord {
    fn from(vote: &Vote) -> Self {
        Self { term: vote.leader_id.term, node: vote.leader_id.node_id, committed: vote.committed }
    }
}

impl From<VoteRecord> for Vote {
    fn from(record: VoteRecord) -> Self {
        Vote { leader_id: LeaderId { term: record.term, node_id: record.node }, committed: record.committed }
    }
}

impl From<&Member> for MemberRecord {
    fn from(member: &Member) -> Self {
        Self {
            peer_addr: member.peer_addr.clone(),
            client_addr: member.client_addr.clone(),
            incarnation: member.incarnation,
        }
    }
}

impl From<MemberRecord> for Member {
    fn from(record: MemberRecord) -> Self {
        Self { peer_addr: record.peer_addr, client_addr: record.client_addr, incarnation: record.incarnation }
    }
}

impl From<&Membership> for MembershipRecord {
    fn from(membership: &Membership) -> Self {
        Self {
            configs: membership.get_joint_config().clone(),
            nodes: membership.nodes().map(|(id, member)| (*id, member.into())).collect(),
        }
    }
}

impl TryFrom<MembershipRecord> for Membership {
    type Error = CodecError;

    fn try_from(record: MembershipRecord) -> Result<Self, CodecError> {
        if record.configs.is_empty() && record.nodes.is_empty() {
            return Ok(Membership::default());
        }
        let nodes: BTreeMap<NodeId, Member> =
            record.nodes.into_iter().map(|(id, member)| (id, member.into())).collect();
        Membership::new(record.configs, nodes).map_err(|error| CodecError::Malformed(format!("membership: {error}")))
    }
}

impl From<&StoredMembership> for StoredMembershipRecord {
    fn from(stored: &StoredMembership) -> Self {
        Self { log_id: stored.log_id().as_ref().map(Into::into), membership: stored.membership().into() }
    }
}

impl TryFrom<StoredMembershipRecord> for StoredMembership {
    type Error = CodecError;

    fn try_from(record: StoredMembershipRecord) -> Result<Self, CodecError> {
        Ok(StoredMembership::new(record.log_id.map(Into::into), record.membership.try_into()?))
    }
}

impl From<&SnapshotMeta> for SnapshotMetaRecord {
    fn from(meta: &SnapshotMeta) -> Self {
        Self { last_log_id: meta.last_log_id.as_ref().map(Into::into), last_membership: (&meta.last_membership).into() }
    }
}

impl TryFrom<SnapshotMetaRecord> for SnapshotMeta {
    type Error = CodecError;

    fn try_from(record: SnapshotMetaRecord) -> Result<Self, CodecError> {
        Ok(SnapshotMeta {
            last_log_id: record.last_log_id.map(Into::into),
            last_membership: record.last_membership.try_into()?,
        })
    }
}

const KIND_BLANK: u8 = 0;
const KIND_NORMAL: u8 = 1;
const KIND_MEMBERSHIP: u8 = 2;
const ENTRY_HEADER_BYTES: usize = 1 + 8 + 8 + 8 + 1;

/// Bytes that [`encode_entry`] will produce for a normal entry; an estimate for the others.
pub fn encoded_entry_len(entry: &LogEntry) -> usize {
    match &entry.payload {
        EntryPayload::Normal(batch) => ENTRY_HEADER_BYTES + batch.0.len(),
        EntryPayload::Blank | EntryPayload::Membership(_) => ENTRY_HEADER_BYTES + 256,
    }
}

/// Appends the entry: version, term, node, index (little endian), kind, payload to the end.
pub fn encode_entry(entry: &LogEntry, into: &mut BytesMut) {
    into.reserve(encoded_entry_len(entry));
    if let Some(payload) = encode_entry_head(entry, into) {
        into.put_slice(payload);
    }
}

/// Appends what [`encode_entry`] would, but leaves off the payload of a normal entry and returns it: for a sender that
/// puts the shared bytes on the wire without copying them.
pub fn encode_entry_head<'e>(entry: &'e LogEntry, into: &mut BytesMut) -> Option<&'e Bytes> {
    let id = LogIdRecord::from(&entry.log_id);
    into.put_u8(codec::FORMAT_VERSION);
    into.put_u64_le(id.term);
    into.put_u64_le(id.node);
    into.put_u64_le(id.index);
    match &entry.payload {
        EntryPayload::Blank => {
            into.put_u8(KIND_BLANK);
            None
        }
        EntryPayload::Normal(batch) => {
            into.put_u8(KIND_NORMAL);
            Some(&batch.0)
        }
        EntryPayload::Membership(membership) => {
            into.put_u8(KIND_MEMBERSHIP);
            into.put_slice(&codec::encode(&MembershipRecord::from(membership)));
            None
        }
    }
}

/// Reverses [`encode_entry`]; the payload of a normal entry shares the given bytes.
pub fn decode_entry(bytes: &Bytes) -> Result<LogEntry, CodecError> {
    let &version = bytes.first().ok_or(CodecError::Empty)?;
    if !codec::RECORDS.reads(version.into()) {
        return Err(CodecError::UnknownVersion { found: version });
    }
    if bytes.len() < ENTRY_HEADER_BYTES {
        return Err(CodecError::Malformed(format!("a log entry of {} bytes", bytes.len())));
    }
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("the length was checked"));
    let log_id = LogId::from(LogIdRecord { term: word(1), node: word(9), index: word(17) });
    let body = bytes.slice(ENTRY_HEADER_BYTES..);
    let payload = match bytes[ENTRY_HEADER_BYTES - 1] {
        KIND_BLANK if body.is_empty() => EntryPayload::Blank,
        KIND_NORMAL => EntryPayload::Normal(EncodedBatch(body)),
        KIND_MEMBERSHIP => EntryPayload::Membership(codec::decode::<MembershipRecord>(&body)?.try_into()?),
        kind => return Err(CodecError::Malformed(format!("log entry kind {kind} with {} bytes", body.len()))),
    };
    Ok(LogEntry { log_id, payload })
}
