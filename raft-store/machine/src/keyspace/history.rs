//! Rows of superseded versions: `0x20`, escaped key, mod revision → the version, or nothing for a tombstone.
//!
//! Owns how a version in the past is named and found. A version is written here when it is superseded, under its own
//! mod revision; a removal also leaves a tombstone under the removing revision. So the state of a key at revision R
//! is its current entry where that is not newer than R, else its newest row here that is not newer than R.
//!
//! Keys are escaped as [`named`] does it.

use super::{entry, entry::EntryRow, family, named, relocked};
use crate::codec::CodecError;
use crate::types::{Entry, Revision};

/// A superseded version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version<'a> {
    /// The entry as it was.
    Entry(EntryRow<'a>),
    /// The key was removed at this revision.
    Tombstone,
}

/// The value of a tombstone row. That of any other row is the entry row as it was, which is never empty.
pub const TOMBSTONE: &[u8] = b"";

/// The row key of one version.
pub fn row_key(key: &[u8], revision: Revision) -> Vec<u8> {
    named::numbered(family::HISTORY, key, revision)
}

/// First and last row key, both inclusive, under which the versions of `key` up to `revision` lie.
pub fn bounds_up_to(key: &[u8], revision: Revision) -> (Vec<u8>, Vec<u8>) {
    (row_key(key, 0), row_key(key, revision))
}

/// A lower bound of the rows of `key` and of all keys behind it; `lower_bound(b"")` is the start of the family.
pub fn lower_bound(key: &[u8]) -> Vec<u8> {
    if key.is_empty() { vec![family::HISTORY] } else { named::start(family::HISTORY, key, 0) }
}

/// Reverses [`row_key`]: key and revision.
pub fn decode_key(row_key: &[u8]) -> Result<(Vec<u8>, Revision), CodecError> {
    named::split_numbered(row_key, family::HISTORY)
}

/// Decodes the value of a row, with the lock that was on it at the end.
pub fn decode(row: &[u8]) -> Result<Version<'_>, CodecError> {
    if row == TOMBSTONE {
        return Ok(Version::Tombstone);
    }
    entry::decode(row).map(Version::Entry)
}

/// The entry of `key` as it was at `revision`, which the caller checked not to be compacted. `current` is the entry
/// row of the key as of now. `newest_between(first, last)` gives the value of the greatest row with
/// `first <= row key <= last` (a reverse seek); it is asked only where the current entry is too new. `first_between` is that of
/// [`relocked::as_at`].
///
/// Expiry is not judged: a version counts until something superseded or removed it.
pub fn read_at<E: From<CodecError>>(
    key: &[u8],
    revision: Revision,
    current: Option<&[u8]>,
    newest_between: impl FnOnce(&[u8], &[u8]) -> Result<Option<Vec<u8>>, E>,
    first_between: impl FnOnce(&[u8], &[u8]) -> Result<Option<Vec<u8>>, E>,
) -> Result<Option<Entry>, E> {
    if let Some(row) = current {
        let row = entry::decode(row)?;
        if row.meta.mod_revision <= revision {
            return Ok(Some(relocked::as_at(row, key, revision, first_between)?.to_entry()));
        }
    }
    let (first, last) = bounds_up_to(key, revision);
    match newest_between(&first, &last)? {
        None => Ok(None),
        Some(row) => Ok(match decode(&row)? {
            Version::Entry(row) => Some(relocked::as_at(row, key, revision, first_between)?.to_entry()),
            Version::Tombstone => None,
        }),
    }
}
