//! Rows of sequences: `0x62`, name → the last number given, eight bytes BE.
//!
//! Owns their bytes. A sequence that gave no number has no row.

use super::{family, split_u64};
use crate::codec::CodecError;
use crate::rules::SequenceName;

/// The row key of a sequence.
pub fn row_key(name: &SequenceName) -> Vec<u8> {
    let name = name.as_str().as_bytes();
    let mut row_key = Vec::with_capacity(1 + name.len());
    row_key.push(family::SEQUENCE);
    row_key.extend_from_slice(name);
    row_key
}

/// The row of a sequence that gave `last` last.
pub fn encode(last: u64) -> Vec<u8> {
    last.to_be_bytes().to_vec()
}

/// Reverses [`encode`].
pub fn decode(row: &[u8]) -> Result<u64, CodecError> {
    match split_u64(row)? {
        (last, []) => Ok(last),
        (_, rest) => Err(CodecError::Malformed(format!("{} bytes too many in a sequence", rest.len()))),
    }
}
