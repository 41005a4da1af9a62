//! Rows of sessions: `0x71`, id → [`SessionRow`]; and `0x72`, id, kind, subject → where: what hangs on a session.
//!
//! Owns their bytes. What hangs on a session has exactly one row here, so that the session can take it along when it ends.

use bincode::{Decode, Encode};

use super::{family, split_u64, strip_family};
use crate::codec::CodecError;
use crate::types::{ClusterMillis, Revision, SessionId, WallMillis};

/// A session.
///
/// Invariant: `armed_at <= expires_at`, and there is a timer for it at `armed_at`. A renewal moves only `expires_at`; the
/// timer follows when it fires, once for many renewals.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionRow {
    /// Milliseconds of cluster clock that it lives without a renewal.
    pub ttl_ms: u64,
    /// Cluster clock at which it ends.
    pub expires_at: ClusterMillis,
    /// Cluster clock of its timer.
    pub armed_at: ClusterMillis,
    /// Whose it is.
    pub owner: String,
    /// In order of names.
    pub labels: Vec<(String, String)>,
    /// Wall clock at which it began.
    pub created: WallMillis,
    /// How many things hang on it.
    pub attached: u32,
    /// Bytes of the rows of the entries among them.
    pub bytes: u64,
    /// Who began it: nobody else may renew, end or use it. Empty where that was nobody in particular.
    pub principal: String,
}

/// What may hang on a session. The numbers are on disk and never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum AttachedKind {
    /// An entry; the subject is its key.
    Entry = 1,
    /// A party of a lock or election; the subject is [`crate::types::LockName::to_bytes`], the value a [`PartyAt`].
    Lock = 2,
    /// A party of a barrier; the subject is its name.
    Barrier = 3,
    /// A claim of a task; the subject is that of [`super::task::subject`].
    Task = 4,
}

/// Where a party of a lock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum PartyAt {
    /// It holds the lock with this token.
    Holding(Revision),
    /// It waits at this place.
    Waiting(Revision),
}

/// The row key of a session.
pub fn row_key(id: SessionId) -> Vec<u8> {
    [&[family::SESSION][..], &id.0.to_be_bytes()].concat()
}

/// Reverses [`row_key`].
pub fn decode_key(row_key: &[u8]) -> Result<SessionId, CodecError> {
    decode_id(strip_family(row_key, family::SESSION)?)
}

/// Eight bytes big endian: also what the timer of a session has as its subject.
pub fn decode_id(bytes: &[u8]) -> Result<SessionId, CodecError> {
    match split_u64(bytes)? {
        (id, []) => Ok(SessionId(id)),
        (_, rest) => Err(CodecError::Malformed(format!("{} bytes too many in the id of a session", rest.len()))),
    }
}

/// The row key of what hangs on a session.
pub fn attached_key(id: SessionId, kind: AttachedKind, subject: &[u8]) -> Vec<u8> {
    let mut row_key = Vec::with_capacity(10 + subject.len());
    row_key.push(family::ATTACHED);
    row_key.extend_from_slice(&id.0.to_be_bytes());
    row_key.push(kind as u8);
    row_key.extend_from_slice(subject);
    row_key
}

/// Reverses [`attached_key`].
pub fn decode_attached(row_key: &[u8]) -> Result<(SessionId, AttachedKind, &[u8]), CodecError> {
    let (id, rest) = split_u64(strip_family(row_key, family::ATTACHED)?)?;
    let kinds = [AttachedKind::Entry, AttachedKind::Lock, AttachedKind::Barrier, AttachedKind::Task];
    let Some((&byte, subject)) = rest.split_first() else {
        return Err(CodecError::Malformed("what hangs on a session has no kind".into()));
    };
    match kinds.into_iter().find(|kind| *kind as u8 == byte) {
        Some(kind) => Ok((SessionId(id), kind, subject)),
        None => Err(CodecError::Malformed(format!("the unknown kind {byte} hangs on a session"))),
    }
}

/// The bounds `[start, end)` of what hangs on a session.
pub fn attached_to(id: SessionId) -> (Vec<u8>, Vec<u8>) {
    let start = [&[family::ATTACHED][..], &id.0.to_be_bytes()].concat();
    let end = match id.0.checked_add(1) {
        Some(next) => [&[family::ATTACHED][..], &next.to_be_bytes()].concat(),
        None => vec![family::ATTACHED + 1],
    };
    (start, end)
}
