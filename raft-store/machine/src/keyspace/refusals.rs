//! Rows of batches that changed nothing: `0x31`, bucket, log index → [`super::audit::AuditGroup`].
//!
//! Owns only the key. Kept as long as request outcomes are, see [`super::bucket`].

use super::{decode_pair_key, family, pair_key};
use crate::codec::CodecError;

/// The row key of the group of one batch.
pub fn row_key(bucket: u64, index: u64) -> Vec<u8> {
    pair_key(family::REFUSALS, bucket, index)
}

/// Reverses [`row_key`]: bucket and log index.
pub fn decode_key(row_key: &[u8]) -> Result<(u64, u64), CodecError> {
    decode_pair_key(row_key, family::REFUSALS)
}
