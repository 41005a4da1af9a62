//! Keys as they stand in URLs and JSON.
//!
//! Owns strict percent-decoding and the bounds of keys. A key is any UTF-8 of 1 to 4,096 bytes, slashes, dots and control
//! characters included: it is never a file name, never goes into a header, and is escaped wherever it is shown.

use std::borrow::Cow;

use quorate_store::limits::KEY_BYTES_MAX;
use quorate_store::types::{Key, KeyError};

use crate::http::input::extract::Faults;
use crate::http::problem::Failure;

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
    /// The same, on its own.
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

/// The same in a body, where its faults are told with others.
pub fn read<'a>(text: Cow<'a, str>, pointer: &str, faults: &mut Faults) -> Option<NamedKey<'a>> {
    match Key::new(text.as_bytes()) {
        Ok(key) => return Some(NamedKey { text, key }),
        Err(KeyError::Empty) => faults.add(pointer, EMPTY),
        Err(KeyError::TooLong(actual)) => faults.add_too_large(pointer, "a key", KEY_BYTES_MAX, actual),
    }
    None
}

/// A stored key as text. All keys came in as UTF-8; should one not be, it is better shown badly than not at all.
pub fn shown(key: &Key) -> Cow<'_, str> {
    String::from_utf8_lossy(key.as_bytes())
}

/// Decodes percent-encoding. Unlike most decoders it lets no malformed escape pass as it is: two readers could take it for
/// different keys.
pub fn percent_decode(text: &str) -> Result<Cow<'_, str>, String> {
    let Some(first) = text.find('%') else { return Ok(Cow::Borrowed(text)) };
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    decoded.extend_from_slice(&bytes[..first]);
    let mut at = first;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            decoded.push(bytes[at]);
            at += 1;
            continue;
        }
        let pair = (bytes.get(at + 1).copied().and_then(nibble), bytes.get(at + 2).copied().and_then(nibble));
        let (Some(high), Some(low)) = pair else {
            return Err(format!("byte {at}: `%` is not followed by two hex digits"));
        };
        decoded.push(high << 4 | low);
        at += 3;
    }
    String::from_utf8(decoded)
        .map(Cow::Owned)
        .map_err(|error| format!("not UTF-8 once decoded: bad byte at {}", error.utf8_error().valid_up_to()))
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
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
