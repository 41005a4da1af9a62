//! Audit rows: `0x30`, last revision, log index → what one batch did.
//!
//! Owns the record of a batch, which is at once the audit trail, the change feed in revision order, and what
//! compaction walks. A batch that changed nothing is recorded in [`super::refusals`] instead: compaction counts
//! revisions, and a crowd of refused commands takes none, so here they would pile up without bound.

use bincode::{Decode, Encode};

use super::digest::RowMark;
use super::{decode_pair_key, family, pair_key};
use crate::codec::{self, CodecError};
use crate::types::{ClusterMillis, Key, Refusal, RequestId, Revision, WallMillis};

/// Of a group at most, without its lines: version byte, six numbers.
const HEAD_BYTES: usize = 1 + 6 * 9;

/// Of a line at most, without its key, id and principal: three numbers, a hash, three lengths, five tags.
const LINE_BYTES: usize = 3 * 9 + 17 + 3 * 9 + 5;

/// What one batch did.
///
/// Invariant: `first_revision <= last_revision` where the batch changed something, and the changed lines carry each
/// revision from first to last in order: once, or for each key that a transaction changed and each task that a command
/// did. Where it changed nothing, `first_revision == last_revision + 1`.
#[derive(Debug, Clone, PartialEq, Eq, Encode)]
pub struct AuditGroup {
    /// Log index of the batch.
    pub index: u64,
    /// Cluster clock it was evaluated at.
    pub clock: ClusterMillis,
    /// Wall clock it was evaluated at.
    pub wall: WallMillis,
    /// First revision it took.
    pub first_revision: Revision,
    /// The revision after it.
    pub last_revision: Revision,
    /// One for each command that was decided (a replayed one is not) and each entry that expired, in order.
    pub lines: Vec<AuditLine>,
}

/// What one command did to one key.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct AuditLine {
    /// The revision it took, or at which it was refused.
    pub revision: Revision,
    /// What was asked.
    pub op: AuditOp,
    /// The key; `None` only where the command could not be decoded.
    pub key: Option<Key>,
    /// The command's request id.
    pub request_id: Option<RequestId>,
    /// Who asked; empty for expiry.
    pub principal: String,
    /// What came of it.
    pub effect: AuditEffect,
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum AuditOp {
    /// A [`crate::types::Change::Put`] that expects that there is no entry.
    Insert,
    /// A [`crate::types::Change::Put`], whether or not there is an entry.
    Upsert,
    /// A [`crate::types::Change::Put`] that expects that there is an entry.
    Replace,
    /// See [`crate::types::Change::Patch`].
    Update,
    /// See [`crate::types::Change::Remove`].
    Remove,
    /// See [`crate::types::Change::Touch`].
    Touch,
    /// See [`crate::types::Change::Lock`].
    Lock,
    /// See [`crate::types::Change::Extend`].
    Extend,
    /// See [`crate::types::Change::Unlock`].
    Unlock,
    /// The entry was past its deadline and was removed for that reason, not by a client's request.
    Expire,
    /// A command that this build cannot read.
    Unknown,
    /// A transaction that was refused: see [`crate::types::Txn`]. One that was carried out has a line for each write.
    Txn,
    /// Rules of a collection were set or removed.
    Rules,
    /// Numbers were drawn from a sequence.
    Numbers,
    /// Entries were claimed: one line for each.
    Claim,
    /// A session began.
    SessionCreate,
    /// A session ended by a client's request.
    SessionEnd,
    /// A session was not renewed in time, and ended. Also of each entry that went with it.
    SessionExpire,
    /// A lock was asked for: granted, or a place in its queue.
    Acquire,
    /// A lock was granted to the first of its queue.
    Grant,
    /// A lock was given up, or a place in its queue.
    Release,
    /// A place in a queue was given up because its time was over.
    GiveUp,
    /// A leader exchanged its value.
    Proclaim,
    /// A barrier was entered or left.
    Barrier,
    /// A latch was made, counted down or removed.
    Latch,
    /// A [`crate::types::WhereOp`] that was refused as such. Each entry that one changes has a line of its own kind.
    Where,
    /// Something was done to a task. The key of the line is the queue, a slash and the id.
    Task(TaskAct),
    /// See [`crate::types::AccessOp::SetUser`]. The key of these lines is [`crate::types::AccessOp::subject`].
    UserSet,
    /// See [`crate::types::AccessOp::RemoveUser`].
    UserRemove,
    /// See [`crate::types::AccessOp::SetRole`].
    RoleSet,
    /// See [`crate::types::AccessOp::RemoveRole`].
    RoleRemove,
    /// See [`crate::types::AccessOp::AddToken`].
    TokenAdd,
    /// See [`crate::types::AccessOp::RemoveToken`].
    TokenRemove,
    /// An operator did something about faults: see [`crate::types::FaultsOp`].
    Faults,
    /// See [`crate::types::MembersOp::Invite`]. The key of these lines is [`crate::types::MembersOp::subject`].
    MemberInvite,
    /// See [`crate::types::MembersOp::Revoke`].
    InvitationRevoke,
    /// See [`crate::types::MembersOp::Admit`].
    MemberAdmit,
    /// A membership entry let a member go. Nobody asks for it in the log: who did stands in the node's own audit log.
    MemberRemove,
    /// See [`crate::types::QuotaOp::Set`]. The key of these lines is [`crate::types::QuotaSubject::audit_key`].
    QuotaSet,
    /// See [`crate::types::QuotaOp::Remove`].
    QuotaRemove,
}

/// What was done to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum TaskAct {
    /// See [`crate::types::TaskVerb::Schedule`].
    Schedule,
    /// See [`crate::types::TaskVerb::Claim`].
    Claim,
    /// See [`crate::types::TaskVerb::Extend`].
    Extend,
    /// See [`crate::types::TaskVerb::Complete`].
    Complete,
    /// See [`crate::types::TaskVerb::Fail`].
    Fail,
    /// See [`crate::types::TaskVerb::Cancel`].
    Cancel,
    /// See [`crate::types::TaskVerb::Requeue`].
    Requeue,
    /// See [`crate::types::TaskVerb::Plan`].
    Plan,
    /// Its claim was over before it was completed.
    RunOut,
    /// It was done, and its id was given free.
    Forget,
}

/// What came of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum AuditEffect {
    /// It took the line's revision.
    Changed {
        /// The version it superseded; `None` for a creation.
        previous: Option<Superseded>,
        /// Whether the key is gone since.
        removed: bool,
    },
    /// It took the line's revision and changed only the lock: no version was superseded. A row of [`super::relocked`] says what the
    /// lock was.
    Relocked {
        /// The mark of that row.
        row: RowMark,
    },
    /// It had no effect.
    Refused(Refusal),
    /// It took the line's revision and changed no entry.
    Beside,
    /// It changed who leads an election: there is a row that says who. The key is [`crate::types::LockName::waker`].
    Elected {
        /// The mark of that row.
        row: RowMark,
    },
}

/// A version that moved to the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Superseded {
    /// Its mod revision.
    pub revision: Revision,
    /// The mark of its history row: compaction takes it away without reading the row again.
    pub row: RowMark,
}

/// Encodes a group, in one allocation.
pub fn encode(group: &AuditGroup) -> Vec<u8> {
    codec::encode_sized(group, HEAD_BYTES + group.lines.iter().map(line_bytes).sum::<usize>())
}

/// Most bytes that a line takes in an encoded group.
pub fn line_bytes(line: &AuditLine) -> usize {
    let key = line.key.as_ref().map_or(0, |key| key.as_bytes().len());
    let id = line.request_id.as_ref().map_or(0, |id| id.0.len());
    LINE_BYTES + key + id + line.principal.len()
}

/// Reverses [`encode`], line by line: a group of any size can be read again, and a damaged count makes nobody ask for the
/// memory of lines that are not there.
pub fn decode(row: &[u8]) -> Result<AuditGroup, CodecError> {
    let mut parts = codec::Parts::of(row)?;
    let index = parts.take()?;
    let (clock, wall) = parts.take()?;
    let (first_revision, last_revision) = parts.take()?;
    let count: u64 = parts.take()?;
    let lines = (0..count).map(|_| parts.take()).collect::<Result<_, _>>()?;
    parts.end()?;
    Ok(AuditGroup { index, clock, wall, first_revision, last_revision, lines })
}

/// The row key of the group of one batch; `row_key(revision, 0)` is a lower bound of the groups from `revision` on.
pub fn row_key(last_revision: Revision, index: u64) -> Vec<u8> {
    pair_key(family::AUDIT, last_revision, index)
}

/// Reverses [`row_key`]: last revision and log index.
pub fn decode_key(row_key: &[u8]) -> Result<(Revision, u64), CodecError> {
    decode_pair_key(row_key, family::AUDIT)
}
