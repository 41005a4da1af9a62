//! Bodies of the Raft frames: our own twins of openraft's messages.
//!
//! Owns their layout, and the cutting of a long append request into pieces. Never does I/O. A piece is a complete
//! append request of its own, so whoever answers needs to know nothing of the cut.

use bincode::{Decode, Encode};
use bytes::{Buf, BufMut, Bytes};
use openraft::raft::{
    AppendEntriesRequest, StreamAppendError, StreamAppendResult, TransferLeaderError, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use quorate_machine::codec::{self, CodecError};
use quorate_store::raft::wire::{self, LogIdRecord, VoteRecord};
use quorate_store::raft::{LogId, TypeConfig};
use quorate_store::state::snapshot::SnapshotManifest;

use super::frame::{FrameBuilder, FrameKind, Outgoing};
use super::limits::{APPEND_PIECE_BYTES, SHARE_BYTES_MIN};

/// Twin of [`VoteRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct VoteQuery {
    /// The candidate's vote.
    pub vote: VoteRecord,
    /// The end of its log.
    pub last: Option<LogIdRecord>,
    /// Whether the leader asked for this election.
    pub transfer: bool,
}

/// Twin of [`VoteResponse`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct VoteGrant {
    /// The answering node's vote.
    pub vote: VoteRecord,
    /// Whether it was granted.
    pub granted: bool,
    /// The end of the answering node's log.
    pub last: Option<LogIdRecord>,
}

/// Twin of [`TransferLeaderRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TransferAsk {
    /// The leader that steps back.
    pub from: VoteRecord,
    /// Who is to follow.
    pub to: u64,
    /// The log it has to have.
    pub last: Option<LogIdRecord>,
}

/// Twin of [`TransferLeaderResponse`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum TransferAnswer {
    /// Accepted.
    Done,
    /// Another vote was seen.
    VoteChanged {
        /// As asked.
        expected: VoteRecord,
        /// As found.
        actual: VoteRecord,
    },
    /// The log is not there yet.
    NotFlushed {
        /// As asked.
        expected: Option<LogIdRecord>,
        /// As found.
        actual: Option<LogIdRecord>,
    },
}

/// What a Raft question comes to: its answer, or why this node's Raft cannot answer.
pub type RaftAnswer<T> = Result<T, String>;

/// Answers `count` append requests of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct AppendAnswer {
    /// How many requests, in the order in which they were sent; the outcome is that of the last of them.
    pub count: u32,
    /// The outcome.
    pub outcome: AppendOutcome,
}

/// Twin of [`StreamAppendResult`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum AppendOutcome {
    /// The logs match up to here, durably.
    Matching(Option<LogIdRecord>),
    /// The entry before the request is another one here. Ends the stream.
    Conflict(LogIdRecord),
    /// The sender is no longer the leader. Ends the stream.
    HigherVote(VoteRecord),
    /// This node's Raft cannot answer. Ends the stream.
    Failed(String),
}

/// Opens a snapshot transfer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotBegin {
    /// The leader's vote.
    pub vote: VoteRecord,
    /// What will be sent.
    pub manifest: SnapshotManifest,
}

#[derive(Encode, Decode)]
struct AppendHead {
    vote: VoteRecord,
    prev: Option<LogIdRecord>,
    commit: Option<LogIdRecord>,
    entries: u32,
}

impl From<&VoteRequest<TypeConfig>> for VoteQuery {
    fn from(request: &VoteRequest<TypeConfig>) -> Self {
        Self {
            vote: (&request.vote).into(),
            last: request.last_log_id.as_ref().map(Into::into),
            transfer: request.leadership_transfer,
        }
    }
}

impl From<VoteQuery> for VoteRequest<TypeConfig> {
    fn from(ask: VoteQuery) -> Self {
        let mut request = VoteRequest::new(ask.vote.into(), ask.last.map(Into::into));
        request.leadership_transfer = ask.transfer;
        request
    }
}

impl From<&VoteResponse<TypeConfig>> for VoteGrant {
    fn from(response: &VoteResponse<TypeConfig>) -> Self {
        Self {
            vote: (&response.vote).into(),
            granted: response.vote_granted,
            last: response.last_log_id.as_ref().map(Into::into),
        }
    }
}

impl From<VoteGrant> for VoteResponse<TypeConfig> {
    fn from(grant: VoteGrant) -> Self {
        let vote: quorate_store::raft::Vote = grant.vote.into();
        VoteResponse::new(vote, grant.last.map(Into::into), grant.granted)
    }
}

impl From<&TransferLeaderRequest<TypeConfig>> for TransferAsk {
    fn from(request: &TransferLeaderRequest<TypeConfig>) -> Self {
        Self {
            from: request.from_leader().into(),
            to: *request.to_node_id(),
            last: request.last_log_id().map(Into::into),
        }
    }
}

impl From<TransferAsk> for TransferLeaderRequest<TypeConfig> {
    fn from(ask: TransferAsk) -> Self {
        TransferLeaderRequest::new(ask.from.into(), ask.to, ask.last.map(Into::into))
    }
}

impl From<&TransferLeaderResponse<TypeConfig>> for TransferAnswer {
    fn from(response: &TransferLeaderResponse<TypeConfig>) -> Self {
        match response {
            Ok(()) => Self::Done,
            Err(TransferLeaderError::VoteChanged { expected, actual }) => {
                Self::VoteChanged { expected: expected.into(), actual: actual.into() }
            }
            Err(TransferLeaderError::LogNotFlushed { expected, actual }) => Self::NotFlushed {
                expected: expected.as_ref().map(Into::into),
                actual: actual.as_ref().map(Into::into),
            },
        }
    }
}

impl From<TransferAnswer> for TransferLeaderResponse<TypeConfig> {
    fn from(answer: TransferAnswer) -> Self {
        match answer {
            TransferAnswer::Done => Ok(()),
            TransferAnswer::VoteChanged { expected, actual } => {
                Err(TransferLeaderError::VoteChanged { expected: expected.into(), actual: actual.into() })
            }
            TransferAnswer::NotFlushed { expected, actual } => Err(TransferLeaderError::LogNotFlushed {
                expected: expected.map(Into::into),
                actual: actual.map(Into::into),
            }),
        }
    }
}

impl From<&StreamAppendResult<TypeConfig>> for AppendOutcome {
    fn from(result: &StreamAppendResult<TypeConfig>) -> Self {
        match result {
            Ok(matching) => Self::Matching(matching.as_ref().map(Into::into)),
            Err(StreamAppendError::Conflict(at)) => Self::Conflict(at.into()),
            Err(StreamAppendError::HigherVote(vote)) => Self::HigherVote(vote.into()),
        }
    }
}

impl AppendOutcome {
    /// Reverses the conversion; `Err` holds the peer's reason for having no answer.
    pub fn into_result(self) -> RaftAnswer<StreamAppendResult<TypeConfig>> {
        match self {
            Self::Matching(matching) => Ok(Ok(matching.map(Into::into))),
            Self::Conflict(at) => Ok(Err(StreamAppendError::Conflict(at.into()))),
            Self::HigherVote(vote) => Ok(Err(StreamAppendError::HigherVote(vote.into()))),
            Self::Failed(reason) => Err(reason),
        }
    }
}

/// An append request that is being sent in pieces.
pub struct AppendPieces {
    request: AppendEntriesRequest<TypeConfig>,
    sent: usize,
    prev: Option<LogId>,
    done: bool,
}

impl AppendPieces {
    /// Nothing sent yet.
    pub fn new(request: AppendEntriesRequest<TypeConfig>) -> Self {
        let prev = request.prev_log_id;
        Self { request, sent: 0, prev, done: false }
    }

    /// The next piece as a frame; `None` when all was sent. A request without entries is one piece.
    pub fn next(&mut self, kind: FrameKind, stream: u64) -> Option<Outgoing> {
        if self.done {
            return None;
        }
        let rest = &self.request.entries[self.sent..];
        let (count, inline) = piece_of(rest);
        let head = AppendHead {
            vote: (&self.request.vote).into(),
            prev: self.prev.as_ref().map(Into::into),
            commit: self.request.leader_commit.as_ref().map(Into::into),
            entries: u32::try_from(count).expect("a piece is bounded by its bytes"),
        };
        let head = codec::encode(&head);
        let mut builder = FrameBuilder::new(kind, stream, 2 + head.len() + inline);
        builder.tail().put_u16_le(u16::try_from(head.len()).expect("the head has fixed fields only"));
        builder.tail().put_slice(&head);
        rest[..count].iter().for_each(|entry| put_entry(&mut builder, entry));
        self.sent += count;
        self.prev = rest[..count].last().map(|entry| entry.log_id).or(self.prev);
        self.done = self.sent == self.request.entries.len();
        Some(builder.finish())
    }
}

/// How many entries go into the next piece (at least one, if there is any), and how many of their bytes are copied.
fn piece_of(entries: &[quorate_store::raft::LogEntry]) -> (usize, usize) {
    let (mut bytes, mut inline) = (0, 0);
    for (at, entry) in entries.iter().enumerate() {
        let length = 4 + wire::encoded_entry_len(entry);
        if at > 0 && bytes + length > APPEND_PIECE_BYTES {
            return (at, inline);
        }
        bytes += length;
        inline += if length < SHARE_BYTES_MIN { length } else { 64 };
    }
    (entries.len(), inline)
}

/// Length, then the entry as of [`wire::encode_entry`], its payload shared rather than copied.
fn put_entry(builder: &mut FrameBuilder, entry: &quorate_store::raft::LogEntry) {
    let at = builder.tail().len();
    builder.tail().put_u32_le(0);
    let payload = wire::encode_entry_head(entry, builder.tail());
    let length = builder.tail().len() - at - 4 + payload.map_or(0, Bytes::len);
    let length = u32::try_from(length).expect("an entry is bounded by limits::BATCH_BYTES_MAX");
    builder.tail()[at..at + 4].copy_from_slice(&length.to_le_bytes());
    if let Some(payload) = payload {
        builder.put_shared(payload);
    }
}

/// Reverses [`AppendPieces::next`].
///
/// Each entry gets bytes of its own. They stay in the log's cache long after this frame: as slices of the read buffer
/// an entry of 300 bytes could keep 64 KiB alive, and the buffer could not be used again. The copy is once per entry
/// (a whole group of commands) and cheap beside the write to disk that follows.
pub fn decode_append(body: &Bytes) -> Result<AppendEntriesRequest<TypeConfig>, CodecError> {
    let mut rest = &body[..];
    let head = take_sized(&mut rest, 2)?;
    let head: AppendHead = codec::decode(head)?;
    let mut entries = Vec::with_capacity((head.entries as usize).min(rest.len() / 4));
    for _ in 0..head.entries {
        entries.push(wire::decode_entry(&Bytes::copy_from_slice(take_sized(&mut rest, 4)?))?);
    }
    if !rest.is_empty() {
        return Err(CodecError::Malformed(format!("{} bytes too many", rest.len())));
    }
    Ok(AppendEntriesRequest {
        vote: head.vote.into(),
        prev_log_id: head.prev.map(Into::into),
        entries,
        leader_commit: head.commit.map(Into::into),
    })
}

/// Takes a length of `width` bytes and then as many bytes.
fn take_sized<'b>(rest: &mut &'b [u8], width: usize) -> Result<&'b [u8], CodecError> {
    let short = || CodecError::Malformed("an append request is cut short".into());
    if rest.remaining() < width {
        return Err(short());
    }
    let length = rest.get_uint_le(width) as usize;
    let (taken, after) = rest.split_at_checked(length).ok_or_else(short)?;
    *rest = after;
    Ok(taken)
}
