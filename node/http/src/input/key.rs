//! Keys as they stand in URLs and JSON.
//!
//! Owns the bounds of keys and of what they begin with. A key is any 1 to 4,096 bytes, slashes, dots and control characters included, a
//! text or not: it is never a file name, never goes into a header, and is escaped wherever it is shown.

use std::borrow::Cow;

use quorate_machine::limits::KEY_BYTES_MAX;
use quorate_machine::types::{Key, KeyError};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::text::percent_decode_bytes;

use crate::input::extract::{Faults, Query};

const EMPTY: &str = "a key has at least 1 byte, this one is empty";

/// The key in the rest of a path: all of it, slashes too. What is decoded is the key, whatever bytes that are.
pub fn from_path(rest: &str) -> Result<Key, Failure> {
    let bytes = percent_decode_bytes(rest).map_err(|why| Failure::invalid("path:key", why))?;
    match Key::new(bytes) {
        Ok(key) => Ok(key),
        Err(KeyError::Empty) => Err(Failure::invalid("path:key", EMPTY)),
        Err(KeyError::TooLong(actual)) => {
            Err(Failure::too_large("path:key", "a key", KEY_BYTES_MAX as u64, Some(actual as u64)))
        }
    }
}

/// Reads a key of a body or a query and collects its faults.
pub fn read(bytes: impl Into<Vec<u8>>, pointer: &str, faults: &mut Faults) -> Option<Key> {
    match Key::new(bytes) {
        Ok(key) => return Some(key),
        Err(KeyError::Empty) => faults.add(pointer, EMPTY),
        Err(KeyError::TooLong(actual)) => faults.add_too_large(pointer, "a key", KEY_BYTES_MAX, actual),
    }
    None
}

/// Which keys a query is about.
#[derive(Debug, Default)]
pub struct GivenRange {
    /// Those that begin with this.
    pub prefix: Option<Vec<u8>>,
    /// From this one on.
    pub start: Option<Vec<u8>>,
    /// Before this one.
    pub end: Option<Vec<u8>>,
}

impl GivenRange {
    /// Takes `prefix`, `start` and `end`, each within its bound.
    pub fn take(query: &mut Query<'_>) -> Self {
        let mut take = |name| query.bytes(name).map(Cow::into_owned);
        let range = Self { prefix: take("prefix"), start: take("start"), end: take("end") };
        for (pointer, bound) in
            [("query:prefix", &range.prefix), ("query:start", &range.start), ("query:end", &range.end)]
        {
            if let Some(bound) = bound {
                check_prefix(bound, pointer, &mut query.faults);
            }
        }
        range
    }
}

/// Checks what keys begin with.
pub fn check_prefix(prefix: &[u8], pointer: &str, faults: &mut Faults) {
    if prefix.len() > KEY_BYTES_MAX {
        faults.add(pointer, format!("longer than a key can be, {KEY_BYTES_MAX} bytes"));
    }
}
