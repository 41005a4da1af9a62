//! Rows of pending ends of document locks: `0x51`, end, key → nothing; and the keys of such locks.
//!
//! Owns the order in which locks end by themselves. Kept in step with `locked_until` of the current entries, but for locks that
//! ended by themselves: the entry keeps that, and the row goes. Owns how a key is made, too.

use sha2::{Digest, Sha256};

use super::{decode_timed_key, family, timed_key, timed_range};
use crate::codec::CodecError;
use crate::types::{ClusterMillis, Revision, Seed};

/// In every key of a lock and in no revision, so that none is ever like a cas that anybody is shown.
pub const KEY_MARK: u64 = 1 << 63;

/// The key of the lock that an entry gets at a revision, by a batch with this seed. No entry is locked twice at one revision, so no
/// two locks have one key but by a chance of 2^63; and the key of one lock tells nothing of the seed, and so of another.
pub fn key_of(seed: &Seed, index: u64, revision: Revision, key: &[u8]) -> u64 {
    let hasher = Sha256::new().chain_update(seed).chain_update(index.to_le_bytes());
    let digest = hasher.chain_update(revision.to_le_bytes()).chain_update(key).finalize();
    let (first, _) = digest.split_first_chunk::<8>().expect("a digest has 32 bytes");
    KEY_MARK | u64::from_le_bytes(*first)
}

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
