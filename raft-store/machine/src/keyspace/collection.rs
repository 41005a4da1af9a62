//! Rows of collections: `0x60`, name → [`crate::types::CollectionRow`].
//!
//! Owns their keys. What stands in them is the type's.

use super::{family, strip_family};
use crate::codec::CodecError;
use crate::rules::CollectionName;

/// The row key of a collection. Also good as a bound.
pub fn row_key(name: &[u8]) -> Vec<u8> {
    let mut row_key = Vec::with_capacity(1 + name.len());
    row_key.push(family::COLLECTION);
    row_key.extend_from_slice(name);
    row_key
}

/// Reverses [`row_key`].
pub fn decode_key(row_key: &[u8]) -> Result<CollectionName, CodecError> {
    let name = strip_family(row_key, family::COLLECTION)?;
    let text = std::str::from_utf8(name).map_err(|error| CodecError::Malformed(format!("a collection: {error}")))?;
    CollectionName::new(text).map_err(|error| CodecError::Malformed(error.to_string()))
}

/// The bounds `[start, end)` of the rows of collections within this one.
pub fn within(name: &CollectionName) -> (Vec<u8>, Vec<u8>) {
    let bound = |after: u8| row_key(&[name.as_str().as_bytes(), &[after]].concat());
    // The byte behind a slash.
    (bound(b'/'), bound(b'/' + 1))
}

/// The bounds `[start, end)` of the keys that belong to a collection.
pub fn keys(name: &CollectionName) -> (Vec<u8>, Vec<u8>) {
    let bound = |after: u8| [name.as_str().as_bytes(), &[after]].concat();
    (bound(b'/'), bound(b'/' + 1))
}
