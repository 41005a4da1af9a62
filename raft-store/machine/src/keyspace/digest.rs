//! The digest of all replicated state: a wrapping 128-bit sum of row hashes.
//!
//! Owns the hash of a row, and the mark by which a row is taken out of the sums unread. A sum, so that each apply updates it by the rows it touched; two nodes with equal digests
//! at one log index hold equal rows. Not meant against an adversary.

use bincode::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_128;

use super::family;

/// What has to be known of a row to take it out of all sums over rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct RowMark {
    /// [`RowHasher::hash`] of it.
    pub hash: u128,
    /// Bytes of its key and its value together.
    pub bytes: u64,
}

/// Hashes rows, reusing one buffer.
#[derive(Debug, Default)]
pub struct RowHasher {
    scratch: Vec<u8>,
}

impl RowHasher {
    /// XXH3-128 of the length of the key (u32 LE), the key, the value.
    pub fn hash(&mut self, row_key: &[u8], value: &[u8]) -> u128 {
        let length = u32::try_from(row_key.len()).expect("row keys are bounded by limits::KEY_BYTES_MAX");
        self.scratch.clear();
        self.scratch.reserve(4 + row_key.len() + value.len());
        self.scratch.extend_from_slice(&length.to_le_bytes());
        self.scratch.extend_from_slice(row_key);
        self.scratch.extend_from_slice(value);
        xxh3_128(&self.scratch)
    }

    /// The mark of a row.
    pub fn mark(&mut self, row_key: &[u8], value: &[u8]) -> RowMark {
        RowMark { hash: self.hash(row_key, value), bytes: (row_key.len() + value.len()) as u64 }
    }
}

/// Whether the digest covers a row.
pub fn covers(row_key: &[u8]) -> bool {
    row_key.first().is_some_and(|family| *family != family::META)
}

/// The digest from scratch, of rows in any order; rows outside the digest are left out. What
/// [`crate::machine::Vars::digest`] must equal.
pub fn of_rows<K: AsRef<[u8]>, V: AsRef<[u8]>>(rows: impl IntoIterator<Item = (K, V)>) -> u128 {
    let mut hasher = RowHasher::default();
    rows.into_iter()
        .filter(|(key, _)| covers(key.as_ref()))
        .fold(0, |sum: u128, (key, value)| sum.wrapping_add(hasher.hash(key.as_ref(), value.as_ref())))
}
