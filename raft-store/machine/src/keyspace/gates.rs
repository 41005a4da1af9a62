//! Rows of barriers and latches: `0x77`, name → [`crate::types::BarrierRow`]; `0x78`, name → [`crate::types::LatchRow`].
//!
//! Owns their row keys. The parties of a barrier are in [`super::session`].

use super::{family, strip_family};
use crate::codec::CodecError;
use crate::types::Name;

/// The row key of a barrier.
pub fn barrier_key(name: &Name) -> Vec<u8> {
    [&[family::BARRIER][..], name.as_str().as_bytes()].concat()
}

/// The row key of a latch.
pub fn latch_key(name: &Name) -> Vec<u8> {
    [&[family::LATCH][..], name.as_str().as_bytes()].concat()
}

/// Reverses [`barrier_key`].
pub fn decode_barrier(row_key: &[u8]) -> Result<Name, CodecError> {
    name_of(strip_family(row_key, family::BARRIER)?)
}

/// Reverses [`latch_key`].
pub fn decode_latch(row_key: &[u8]) -> Result<Name, CodecError> {
    name_of(strip_family(row_key, family::LATCH)?)
}

/// The name that some bytes are.
pub fn name_of(bytes: &[u8]) -> Result<Name, CodecError> {
    let text = std::str::from_utf8(bytes).map_err(|error| CodecError::Malformed(error.to_string()))?;
    Name::new(text).map_err(|error| CodecError::Malformed(error.to_string()))
}
