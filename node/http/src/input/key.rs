//! Keys as they stand in URLs and JSON.
//!
//! Owns strict percent-decoding and the bounds of keys. A key is any UTF-8 of 1 to 4,096 bytes, slashes, dots and control
//! characters included: it is never a file name, never goes into a header, and is escaped wherever it is shown.

use crate::gateway::text::percent_decode;
use std::borrow::Cow;

use quorate_store::limits::KEY_BYTES_MAX;
use quorate_store::types::{Key, KeyError};

use crate::gateway::failure::Failure;
use crate::input::extract::Faults;

const EMPTY: &str = "a key has at least 1 byte, this one is empty";

/// A key as text, for answers, with its stored form.
#[derive(Debug, Clone)]
pub struct NamedKey<'a> {
    /// As the caller sees it.
    pub text: Cow<'a, str>,
    /// As the store has it.
    pub key: Key,
}

impl NamedKey<'_> {
    /// Copies the key, so that it outlives the request.
    pub fn into_owned(self) -> NamedKey<'static> {
        NamedKey { text: Cow::Owned(self.text.into_owned()), key: self.key }
    }
}

/// The key in the rest of a path: all of it, slashes too.
pub fn from_path(rest: &str) -> Result<NamedKey<'_>, Failure> {
    let text = percent_decode(rest).map_err(|why| Failure::invalid("path:key", why))?;
    named(text, "path:key")
}

/// A key that stands in `pointer`.
pub fn named<'a>(text: Cow<'a, str>, pointer: &str) -> Result<NamedKey<'a>, Failure> {
    match Key::new(text.as_bytes()) {
        Ok(key) => Ok(NamedKey { text, key }),
        Err(KeyError::Empty) => Err(Failure::invalid(pointer, EMPTY)),
        Err(KeyError::TooLong(actual)) => {
            Err(Failure::too_large(pointer, "a key", KEY_BYTES_MAX as u64, Some(actual as u64)))
        }
    }
}

/// Reads a key of a body and collects its faults.
pub fn read<'a>(text: Cow<'a, str>, pointer: &str, faults: &mut Faults) -> Option<NamedKey<'a>> {
    match Key::new(text.as_bytes()) {
        Ok(key) => return Some(NamedKey { text, key }),
        Err(KeyError::Empty) => faults.add(pointer, EMPTY),
        Err(KeyError::TooLong(actual)) => faults.add_too_large(pointer, "a key", KEY_BYTES_MAX, actual),
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_is_strict_and_keeps_everything() {
        assert_eq!(percent_decode("a/b").as_deref(), Ok("a/b"));
        assert_eq!(percent_decode("a%2Fb%20%00%0d%0a..").as_deref(), Ok("a/b \0\r\n.."));
        assert_eq!(percent_decode("%C3%BC").as_deref(), Ok("ü"));
        for bad in ["%", "%2", "a%zz", "%ff", "%c0%af", "%ed%a0%80"] {
            assert!(percent_decode(bad).is_err(), "{bad}");
        }
    }
}
