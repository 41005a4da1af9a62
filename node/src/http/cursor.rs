//! The opaque cursor of a listing: what is left of the range, pinned to a revision.
//!
//! Owns its encoding, with a version and a checksum, so that a damaged or invented cursor is refused rather than
//! understood. It is no capability: whoever may list the range may also make the cursor.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bincode::{Decode, Encode};
use quorate_store::codec;
use quorate_store::types::Revision;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Keeps checksums of other things from passing for ours.
const SEED: u64 = 0x7175_6f72_6375_7273;
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
}

impl Cursor {
    /// As the caller gets it.
    pub fn encode(&self) -> String {
        let mut bytes = codec::encode(self);
        let checksum = xxh3_64_with_seed(&bytes, SEED);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reverses [`Self::encode`]; `None` for anything else.
    pub fn decode(text: &str) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (record, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
        (xxh3_64_with_seed(record, SEED).to_le_bytes() == checksum).then(|| codec::decode(record).ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_and_a_changed_one_does_not() {
        let cursor = Cursor { start: b"a\0".to_vec(), end: Some(b"b".to_vec()), revision: 12, reverse: false };
        let text = cursor.encode();
        assert_eq!(Cursor::decode(&text), Some(cursor));
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("ASCII");
            assert_eq!(Cursor::decode(&changed), None, "changed at {at}");
        }
        assert_eq!(Cursor::decode(""), None);
        assert_eq!(Cursor::decode(&"A".repeat(20_000)), None);
    }
}
