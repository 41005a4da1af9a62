//! Rows of kept answers: `0x40`, bucket, request id, and after a zero byte whose it is → [`KeptReply`].
//!
//! Owns the table that makes a retry safe. An id belongs to its principal; the row key of nobody's in particular
//! ends with the id. A lookup reads the live buckets, newest first: see [`super::bucket`]. Never
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
}

/// Of nearly all rows: numbers of at most 9 bytes, and no value.
const ROW_BYTES: usize = 128;

/// Stands between an id and its owner. No id has it: see [`crate::types::RequestId::is_valid`].
const OWNER_MARK: u8 = 0;

/// The row key of a request id in one bucket. An empty `owner` is nobody in particular.
pub fn row_key(bucket: u64, owner: &str, id: &str) -> Vec<u8> {
    let mut row_key = Vec::with_capacity(10 + id.len() + owner.len());
    row_key.push(family::REQUEST);
    row_key.extend_from_slice(&bucket.to_be_bytes());
    row_key.extend_from_slice(id.as_bytes());
    if !owner.is_empty() {
        row_key.push(OWNER_MARK);
        row_key.extend_from_slice(owner.as_bytes());
    }
    row_key
}

/// What the rows of one id in one bucket begin with whose owners are known by the key, and where they end.
pub fn owned_range(bucket: u64, id: &str) -> (Vec<u8>, Vec<u8>) {
    let mut start = row_key(bucket, "", id);
    let mut end = start.clone();
    start.push(OWNER_MARK);
    end.push(OWNER_MARK + 1);
    (start, end)
}

/// Reverses [`row_key`]: bucket, owner and id.
pub fn decode_key(row_key: &[u8]) -> Result<(u64, &str, &str), CodecError> {
    let (bucket, rest) = split_u64(strip_family(row_key, family::REQUEST)?)?;
    let (id, owner) = match rest.iter().position(|byte| *byte == OWNER_MARK) {
        None => (rest, &[][..]),
        Some(at) if at + 1 == rest.len() => {
            return Err(CodecError::Malformed("a request id of somebody without a name".into()));
        }
        Some(at) => (&rest[..at], &rest[at + 1..]),
    };
    let text = |bytes, what: &str| {
        std::str::from_utf8(bytes).map_err(|error| CodecError::Malformed(format!("{what}: {error}")))
    };
    Ok((bucket, text(owner, "the owner of a request id")?, text(id, "a request id")?))
}

/// Encodes the row of an answer as it was given; leaves the value out.
pub fn encode(fingerprint: u64, reply: &Reply) -> Vec<u8> {
    codec::encode_sized(&KeptReply { fingerprint, reply: reply.to_bare() }, ROW_BYTES)
}
