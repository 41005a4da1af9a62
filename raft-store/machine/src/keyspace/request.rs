//! Rows of kept answers: `0x40`, bucket, request id → [`KeptReply`].
//!
//! Owns the table that makes a retry safe. A lookup reads the live buckets, newest first: see [`super::bucket`]. Never
//! holds a value: there is one row for each request, and thousands a second may be refused with the same large entry.

use bincode::{Decode, Encode};

use super::{family, split_u64, strip_family};
use crate::codec::{self, CodecError};
use crate::types::Reply;

/// The outcome of a request id.
///
/// Invariant: written once, never changed; `reply.replayed` is false, and an entry in it is [`Shown::Bare`].
///
/// [`Shown::Bare`]: crate::types::Shown::Bare
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct KeptReply {
    /// [`crate::types::Command::fingerprint`] of the command that was decided.
    pub fingerprint: u64,
    /// Its answer, without the value of the entry that it shows.
    pub reply: Reply,
    /// Who asked; empty where that was nobody in particular.
    pub principal: String,
}

/// Of nearly all rows: numbers of at most 9 bytes, and no value.
const ROW_BYTES: usize = 128;

/// The row key of a request id in one bucket.
pub fn row_key(bucket: u64, id: &str) -> Vec<u8> {
    let mut row_key = Vec::with_capacity(9 + id.len());
    row_key.push(family::REQUEST);
    row_key.extend_from_slice(&bucket.to_be_bytes());
    row_key.extend_from_slice(id.as_bytes());
    row_key
}

/// Reverses [`row_key`]: bucket and id.
pub fn decode_key(row_key: &[u8]) -> Result<(u64, &str), CodecError> {
    let (bucket, id) = split_u64(strip_family(row_key, family::REQUEST)?)?;
    let id = std::str::from_utf8(id).map_err(|error| CodecError::Malformed(format!("a request id: {error}")))?;
    Ok((bucket, id))
}

/// Encodes the row of an answer as it was given; leaves the value out.
pub fn encode(fingerprint: u64, reply: &Reply, principal: &str) -> Vec<u8> {
    // As the row is, without a copy of the name.
    codec::encode_sized(&(fingerprint, reply.to_bare(), principal), ROW_BYTES)
}
