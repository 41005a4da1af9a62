//! Rows of pending expiries: `0x50`, deadline, key → nothing.
//!
//! Owns the order in which entries fall due. Kept exactly in step with `expires_at` of the current entries.

use super::{decode_timed_key, family, timed_key, timed_range};
use crate::codec::CodecError;
use crate::types::ClusterMillis;

/// The row key of an entry that expires at `deadline`.
pub fn row_key(deadline: ClusterMillis, key: &[u8]) -> Vec<u8> {
    timed_key(family::DEADLINE, deadline, key)
}

/// Reverses [`row_key`].
pub fn decode_key(row_key: &[u8]) -> Result<(ClusterMillis, &[u8]), CodecError> {
    decode_timed_key(row_key, family::DEADLINE)
}

/// The bounds `[start, end)` of what is due at `clock`.
pub fn due_range(clock: ClusterMillis) -> (Vec<u8>, Vec<u8>) {
    timed_range(family::DEADLINE, clock)
}
