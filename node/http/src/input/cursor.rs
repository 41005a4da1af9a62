//! The opaque cursors: what is left of a listing or a find, pinned to a revision, of a change of all that matches, of a list of
//! tasks, and of an audit trail.
//!
//! Owns their encoding, with a version and a checksum, so that a damaged or invented cursor is refused rather than
//! understood. It is no capability: whoever may list the range may also make the cursor.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bincode::{Decode, Encode};
use quorate_machine::codec;
use quorate_machine::query::{AuditPlace, FindPin};
use quorate_machine::types::{Key, Revision};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::input::part::Part;

/// Keep checksums of other things from passing for ours, and one kind of cursor from passing for another.
const SEED: u64 = 0x7175_6f72_6375_7273;
const FIND_SEED: u64 = 0x7175_6f72_6669_6e64;
const WHERE_SEED: u64 = 0x7175_6f72_7768_6572;
const TASK_SEED: u64 = 0x7175_6f72_7461_736b;
const AUDIT_SEED: u64 = 0x7175_6f72_6175_6474;
const CHECKSUM_BYTES: usize = 8;
/// Two keys of the largest size and the rest, in base64.
const TEXT_BYTES_MAX: usize = 12 * 1024;

/// What is left to list.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Cursor {
    /// First key, inclusive.
    pub start: Vec<u8>,
    /// End key, exclusive.
    pub end: Option<Vec<u8>>,
    /// At which revision the whole listing is evaluated.
    pub revision: Revision,
    /// From the end backwards.
    pub reverse: bool,
    /// Only the keys of this part.
    pub part: Option<Part>,
}

impl Cursor {
    /// As the caller gets it.
    pub fn encode(&self) -> String {
        seal(self, SEED)
    }

    /// Reverses [`Self::encode`]; `None` for anything else.
    pub fn decode(text: &str) -> Option<Self> {
        open(text, SEED)
    }
}

/// Where a find goes on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FindCursor {
    /// Hash of the query that it belongs to: the next request has to repeat it, since a cursor has no room for it.
    pub query: u64,
    /// The moment that all pages show.
    pub pin: FindPin,
    /// The entry after which the next page begins.
    pub after: Key,
}

impl FindCursor {
    /// As the caller gets it.
    pub fn encode(&self) -> String {
        seal(self, FIND_SEED)
    }

    /// Reverses [`Self::encode`]; `None` for anything else.
    pub fn decode(text: &str) -> Option<Self> {
        open(text, FIND_SEED)
    }
}

/// Where the audit trail of a key goes on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct AuditCursor {
    /// The last batch that was looked at.
    pub after: AuditPlace,
}

impl AuditCursor {
    /// As the caller gets it.
    pub fn encode(&self) -> String {
        seal(self, AUDIT_SEED)
    }

    /// Reverses [`Self::encode`]; `None` for anything else.
    pub fn decode(text: &str) -> Option<Self> {
        open(text, AUDIT_SEED)
    }
}

/// Where a list of tasks goes on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TaskCursor {
    /// The last row that was looked at.
    pub after: Vec<u8>,
}

impl TaskCursor {
    /// As the caller gets it.
    pub fn encode(&self) -> String {
        seal(self, TASK_SEED)
    }

    /// Reverses [`Self::encode`]; `None` for anything else.
    pub fn decode(text: &str) -> Option<Self> {
        open(text, TASK_SEED)
    }
}

/// Where a change of all that matches goes on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WhereCursor {
    /// Hash of what is to be changed how: the next request has to repeat it.
    pub query: u64,
    /// The last entry that was looked at.
    pub after: Key,
}

impl WhereCursor {
    /// As the caller gets it.
    pub fn encode(&self) -> String {
        seal(self, WHERE_SEED)
    }

    /// Reverses [`Self::encode`]; `None` for anything else.
    pub fn decode(text: &str) -> Option<Self> {
        open(text, WHERE_SEED)
    }
}

fn seal<T: Encode>(record: &T, seed: u64) -> String {
    let mut bytes = codec::encode(record);
    let checksum = xxh3_64_with_seed(&bytes, seed);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn open<T: Decode<codec::Written>>(text: &str, seed: u64) -> Option<T> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (record, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
    (xxh3_64_with_seed(record, seed).to_le_bytes() == checksum).then(|| codec::decode(record).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_and_a_changed_one_does_not() {
        let cursor =
            Cursor { start: b"a\0".to_vec(), end: Some(b"b".to_vec()), revision: 12, reverse: false, part: None };
        let text = cursor.encode();
        assert_eq!(Cursor::decode(&text), Some(cursor));
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("ASCII");
            assert_eq!(Cursor::decode(&changed), None, "changed at {at}");
        }
        assert_eq!(FindCursor::decode(&text), None);
        let pin = FindPin { revision: 12, clock: 3, wall: 4 };
        let find = FindCursor { query: 7, pin, after: Key::new("a").expect("a key") };
        assert_eq!(FindCursor::decode(&find.encode()), Some(find.clone()));
        assert_eq!(Cursor::decode(&find.encode()), None);
        let after = Key::new("a").expect("a key");
        let changes = WhereCursor { query: 7, after };
        assert_eq!(WhereCursor::decode(&changes.encode()), Some(changes.clone()));
        assert_eq!(FindCursor::decode(&changes.encode()), None);
        assert_eq!(Cursor::decode(""), None);
        assert_eq!(Cursor::decode(&"A".repeat(20_000)), None);
    }
}
