//! Rows of pending expiries: `0x50`, deadline, key → nothing.
//!
//! Owns the order in which entries fall due. Kept exactly in step with `expires_at` of the current entries.

use super::{family, family_range, split_u64, strip_family};
use crate::codec::CodecError;
use crate::types::ClusterMillis;

/// The row key of an entry that expires at `deadline`.
pub fn row_key(deadline: ClusterMillis, key: &[u8]) -> Vec<u8> {
    let mut row_key = Vec::with_capacity(9 + key.len());
    row_key.push(family::DEADLINE);
    row_key.extend_from_slice(&deadline.to_be_bytes());
    row_key.extend_from_slice(key);
    row_key
}

/// Reverses [`row_key`]: deadline and key.
pub fn decode_key(row_key: &[u8]) -> Result<(ClusterMillis, &[u8]), CodecError> {
    split_u64(strip_family(row_key, family::DEADLINE)?)
}

/// The bounds `[start, end)` of what is due at `clock`.
pub fn due_range(clock: ClusterMillis) -> (Vec<u8>, Vec<u8>) {
    let (start, family_end) = family_range(family::DEADLINE);
    match clock.checked_add(1) {
        Some(after) => (start, row_key(after, b"")),
        None => (start, family_end),
    }
}
