//! Rows of indexes: `0x61`, id, values, key → nothing; and of those to be cleared: `0x63`, id → nothing.
//!
//! Owns their order: by index, then as [`crate::rules::IndexRule::key_of`] orders the values, then by key. The values end
//! by themselves, so that the key is what is left.

use super::{family, split_u64, strip_family};
use crate::codec::CodecError;
use crate::document::order;

/// The row key of an entry in an index.
pub fn row_key(id: u64, values: &[u8], key: &[u8]) -> Vec<u8> {
    let mut row_key = start_of(id, values, key.len());
    row_key.extend_from_slice(key);
    row_key
}

/// Reverses [`row_key`] for an index of so many fields: its id and the key of the entry.
pub fn decode_key(row_key: &[u8], fields: usize) -> Result<(u64, &[u8]), CodecError> {
    let (id, mut rest) = split_u64(strip_family(row_key, family::INDEX)?)?;
    for _ in 0..fields {
        let malformed = || CodecError::Malformed("an index row without its values".into());
        rest = order::skip_sort(rest).ok_or_else(malformed)?;
    }
    Ok((id, rest))
}

/// The bounds `[start, end)` of the rows between two places of an index, which are values or beginnings of them.
pub fn between(id: u64, start: &[u8], end: &[u8]) -> (Vec<u8>, Vec<u8>) {
    (start_of(id, start, 0), start_of(id, end, 0))
}

/// The bounds `[start, end)` of the rows with exactly these values.
pub fn with_values(id: u64, values: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let start = start_of(id, values, 0);
    let mut end = start.clone();
    // The byte of the family is less than the greatest, so this ends.
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    (start, end)
}

/// The bounds `[start, end)` of all rows of an index.
pub fn of_index(id: u64) -> (Vec<u8>, Vec<u8>) {
    (start_of(id, b"", 0), start_of(id.saturating_add(1), b"", 0))
}

/// The row key of an index that is to be cleared.
pub fn dropped_key(id: u64) -> Vec<u8> {
    let mut row_key = vec![family::DROPPED_INDEX];
    row_key.extend_from_slice(&id.to_be_bytes());
    row_key
}

/// Reverses [`dropped_key`].
pub fn decode_dropped(row_key: &[u8]) -> Result<u64, CodecError> {
    match split_u64(strip_family(row_key, family::DROPPED_INDEX)?)? {
        (id, []) => Ok(id),
        (_, rest) => Err(CodecError::Malformed(format!("{} bytes too many in a row key", rest.len()))),
    }
}

fn start_of(id: u64, values: &[u8], spare: usize) -> Vec<u8> {
    let mut start = Vec::with_capacity(9 + values.len() + spare);
    start.push(family::INDEX);
    start.extend_from_slice(&id.to_be_bytes());
    start.extend_from_slice(values);
    start
}
