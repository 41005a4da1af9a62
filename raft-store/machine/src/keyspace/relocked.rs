//! Rows of what locks on entries were before they changed: `0x21`, escaped key, revision of the change → the lock until then.
//!
//! Owns how an entry is seen as of a revision at which its lock was another. A change of a lock supersedes no version, and the
//! entry's row holds the lock as it is now (or was when the version was superseded). So the lock at revision R is that of the
//! first row here behind R that is of the same version, else that of the entry's row. Holds no key of a lock, and no value.

use bincode::{Decode, Encode};

use super::entry::EntryRow;
use super::{family, named};
use crate::codec::{self, CodecError};
use crate::types::{ClusterMillis, EntryMeta, Revision};

/// A lock on a version until it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct LockBefore {
    /// Mod revision of the version.
    pub version: Revision,
    /// Its token.
    pub cas: u64,
    /// When the lock was to end, if there was one.
    pub locked_until: Option<ClusterMillis>,
}

impl LockBefore {
    /// That of an entry.
    pub fn of(meta: &EntryMeta) -> Self {
        Self { version: meta.mod_revision, cas: meta.cas, locked_until: meta.locked_until }
    }
}

/// The row key of a change at a revision.
pub fn row_key(key: &[u8], revision: Revision) -> Vec<u8> {
    named::numbered(family::RELOCKED, key, revision)
}

/// Reverses [`row_key`]: key and revision.
pub fn decode_key(row_key: &[u8]) -> Result<(Vec<u8>, Revision), CodecError> {
    named::split_numbered(row_key, family::RELOCKED)
}

/// A version with the lock that was on it at `revision`. `first_between(first, last)` gives the value of the smallest row with
/// `first <= row key <= last`; it is asked only where the lock of the version ever changed.
pub fn as_at<'r, E: From<CodecError>>(
    mut row: EntryRow<'r>,
    key: &[u8],
    revision: Revision,
    first_between: impl FnOnce(&[u8], &[u8]) -> Result<Option<Vec<u8>>, E>,
) -> Result<EntryRow<'r>, E> {
    if !row.is_relocked {
        return Ok(row);
    }
    let (first, last) = (row_key(key, revision.saturating_add(1)), row_key(key, Revision::MAX));
    let Some(before) = first_between(&first, &last)? else { return Ok(row) };
    let before: LockBefore = codec::decode(&before)?;
    if before.version == row.meta.mod_revision {
        (row.meta.cas, row.meta.locked_until, row.key) = (before.cas, before.locked_until, None);
    }
    Ok(row)
}
