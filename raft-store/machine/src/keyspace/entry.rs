//! Rows of current entries: `0x10`, key → entry.
//!
//! Owns the layout of an entry row, which is also that of a superseded version in [`super::history`], so that
//! superseding moves bytes and encodes nothing. Laid out by hand: this row is on the path of every read.
//!
//! ```text
//! byte 0      codec::FORMAT_VERSION
//! byte 1      bit 0: 0 json, 1 bytes; bit 1: has a deadline; bit 2: has a lock; bit 3: has a session;
//!             bit 4: its lock was another before; the others 0
//! 8 bytes LE  create revision, mod revision, version, cas, deadline (only where bit 1 is set), end of the lock (bit 2),
//!             session (bit 3), key of the lock (bit 2)
//! the rest    data
//! ```

use super::{family, strip_family};
use crate::codec::{CodecError, FORMAT_VERSION, RECORDS};
use crate::types::{ClusterMillis, ContentKind, Entry, EntryMeta, SessionId, Shown, Value};

const BYTES_BIT: u8 = 1;
const DEADLINE_BIT: u8 = 2;
const LOCK_BIT: u8 = 4;
const SESSION_BIT: u8 = 8;
const RELOCKED_BIT: u8 = 16;

/// An entry row, decoded in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryRow<'a> {
    /// Sound: see [`EntryMeta`]'s invariant.
    pub meta: EntryMeta,
    /// What opens the lock on it, see [`super::lock::key_of`]. `None` where there is no lock, and where the entry is seen as it was:
    /// nothing opens a lock of the past. Never part of an [`Entry`], so nothing that reads entries can show it.
    pub key: Option<u64>,
    /// Whether there may be rows of [`super::relocked`] of this version.
    pub is_relocked: bool,
    /// How to read `data`.
    pub kind: ContentKind,
    /// The value's bytes.
    pub data: &'a [u8],
}

impl EntryRow<'_> {
    /// An owned copy with the value.
    pub fn to_entry(&self) -> Entry {
        Entry { meta: self.meta, value: Value { kind: self.kind, data: self.data.to_vec() } }
    }

    /// An owned copy with the value, for an answer.
    pub fn to_shown(&self) -> Shown {
        Shown::Whole(self.to_entry())
    }

    /// Whether a write that names this token means the entry as it is: while a lock holds, its key; else the cas, and for the one
    /// whose lock ended by itself the key as well.
    pub fn has_token(&self, token: u64, clock: ClusterMillis) -> bool {
        match self.key {
            Some(key) if self.meta.is_locked_at(clock) => token == key,
            key => token == self.meta.cas || key == Some(token),
        }
    }

    /// An owned copy with empty data, for listings of keys.
    pub fn to_entry_without_data(&self) -> Entry {
        Entry { meta: self.meta, value: Value { kind: self.kind, data: Vec::new() } }
    }

    /// Whether the entry is gone for anything evaluated at `clock`.
    pub fn is_expired_at(&self, clock: ClusterMillis) -> bool {
        self.meta.expires_at.is_some_and(|deadline| deadline <= clock)
    }
}

/// The row key of a key. Also good as a bound: `row_key(b"")` is the start of the family.
pub fn row_key(key: &[u8]) -> Vec<u8> {
    let mut row_key = Vec::with_capacity(1 + key.len());
    row_key.push(family::ENTRY);
    row_key.extend_from_slice(key);
    row_key
}

/// Reverses [`row_key`].
pub fn decode_key(row_key: &[u8]) -> Result<&[u8], CodecError> {
    strip_family(row_key, family::ENTRY)
}

/// Encodes a row without a lock, in one allocation.
pub fn encode(meta: &EntryMeta, kind: ContentKind, data: &[u8]) -> Vec<u8> {
    encode_row(&EntryRow { meta: *meta, key: None, is_relocked: false, kind, data })
}

/// Encodes a row in one allocation.
pub fn encode_row(row: &EntryRow<'_>) -> Vec<u8> {
    let EntryRow { meta, key, is_relocked, kind, data } = row;
    assert_eq!(key.is_some(), meta.locked_until.is_some(), "a lock has a key, and nothing else has: {meta:?}");
    assert!(is_sound(meta), "an entry about to be written breaks create <= mod <= cas, version >= 1: {meta:?}");
    let mut flags = match kind {
        ContentKind::Json => 0,
        ContentKind::Bytes => BYTES_BIT,
    };
    if meta.expires_at.is_some() {
        flags |= DEADLINE_BIT;
    }
    if meta.locked_until.is_some() {
        flags |= LOCK_BIT;
    }
    if meta.session.is_some() {
        flags |= SESSION_BIT;
    }
    if *is_relocked {
        flags |= RELOCKED_BIT;
    }
    let mut row = Vec::with_capacity(2 + 8 * 8 + data.len());
    row.extend_from_slice(&[FORMAT_VERSION, flags]);
    for word in [meta.create_revision, meta.mod_revision, meta.version, meta.cas] {
        row.extend_from_slice(&word.to_le_bytes());
    }
    for word in [meta.expires_at, meta.locked_until, meta.session.map(|id| id.0), *key].into_iter().flatten() {
        row.extend_from_slice(&word.to_le_bytes());
    }
    row.extend_from_slice(data);
    row
}

/// Reverses [`encode`]; refuses what breaks the invariant of [`EntryMeta`].
pub fn decode(row: &[u8]) -> Result<EntryRow<'_>, CodecError> {
    let (head, mut rest) = row.split_first_chunk::<2>().ok_or(CodecError::Empty)?;
    let [version, flags] = *head;
    if !RECORDS.reads(version.into()) {
        return Err(CodecError::UnknownVersion { found: version });
    }
    if flags & !(BYTES_BIT | DEADLINE_BIT | LOCK_BIT | SESSION_BIT | RELOCKED_BIT) != 0 {
        return Err(CodecError::Malformed(format!("unknown entry flags {flags:#04x}")));
    }
    let mut word = || {
        let (word, tail) = rest.split_first_chunk::<8>()?;
        rest = tail;
        Some(u64::from_le_bytes(*word))
    };
    let cut_short = || CodecError::Malformed(format!("an entry of {} bytes", row.len()));
    let meta = EntryMeta {
        create_revision: word().ok_or_else(cut_short)?,
        mod_revision: word().ok_or_else(cut_short)?,
        version: word().ok_or_else(cut_short)?,
        cas: word().ok_or_else(cut_short)?,
        expires_at: if flags & DEADLINE_BIT != 0 { Some(word().ok_or_else(cut_short)?) } else { None },
        locked_until: if flags & LOCK_BIT != 0 { Some(word().ok_or_else(cut_short)?) } else { None },
        session: if flags & SESSION_BIT != 0 { Some(SessionId(word().ok_or_else(cut_short)?)) } else { None },
    };
    let key = if flags & LOCK_BIT != 0 { Some(word().ok_or_else(cut_short)?) } else { None };
    if !is_sound(&meta) {
        return Err(CodecError::Malformed(format!("an entry that breaks its invariant: {meta:?}")));
    }
    let kind = if flags & BYTES_BIT != 0 { ContentKind::Bytes } else { ContentKind::Json };
    Ok(EntryRow { meta, key, is_relocked: flags & RELOCKED_BIT != 0, kind, data: rest })
}

/// The invariant of [`EntryMeta`].
fn is_sound(meta: &EntryMeta) -> bool {
    meta.create_revision <= meta.mod_revision && meta.mod_revision <= meta.cas && meta.version >= 1
}
