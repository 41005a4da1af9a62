//! Rows of what buckets hold: `0x41`, bucket → [`BucketUse`].
//!
//! Owns their bytes. They go with their bucket, so what they count goes with them.

use bincode::{Decode, Encode};

use super::{family, split_u64, strip_family};
use crate::codec::CodecError;

/// How much the rows of a bucket take. Encode and decode with [`crate::codec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct BucketUse {
    /// Bytes of keys and values of kept outcomes.
    pub requests: u64,
    /// Bytes of keys and values of audit groups of refusals.
    pub refusals: u64,
    /// Audit groups of refusals that were not written, since there were too many.
    pub dropped: u64,
}

/// Bytes of each row key.
pub const KEY_BYTES: usize = 1 + size_of::<u64>();

/// The row key of a bucket.
pub fn row_key(bucket: u64) -> Vec<u8> {
    [&[family::BUCKET_USE][..], &bucket.to_be_bytes()].concat()
}

/// Reverses [`row_key`].
pub fn decode_key(row_key: &[u8]) -> Result<u64, CodecError> {
    match split_u64(strip_family(row_key, family::BUCKET_USE)?)? {
        (bucket, []) => Ok(bucket),
        (_, rest) => Err(CodecError::Malformed(format!("{} bytes too many in the key of a bucket", rest.len()))),
    }
}
