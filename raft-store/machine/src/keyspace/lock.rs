//! Rows of pending ends of document locks: `0x51`, end, key → nothing.
//!
//! Owns the order in which locks end by themselves. Kept exactly in step with `locked_until` of the current entries.

use super::{decode_timed_key, family, timed_key, timed_range};
use crate::codec::CodecError;
use crate::types::ClusterMillis;

/// The row key of an entry whose lock ends at `until`.
pub fn row_key(until: ClusterMillis, key: &[u8]) -> Vec<u8> {
    timed_key(family::LOCK, until, key)
}

/// Reverses [`row_key`].
pub fn decode_key(row_key: &[u8]) -> Result<(ClusterMillis, &[u8]), CodecError> {
    decode_timed_key(row_key, family::LOCK)
}

/// The bounds `[start, end)` of what is due at `clock`.
pub fn due_range(clock: ClusterMillis) -> (Vec<u8>, Vec<u8>) {
    timed_range(family::LOCK, clock)
}
