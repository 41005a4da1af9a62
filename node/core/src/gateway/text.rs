//! Names as text: for people, and as paths have them.
//!
//! Owns how a name is quoted, and reads percent-encoding, which [`quorate_api::path`] writes. Never judges a name, and never makes one
//! text that is none: no two names look alike, but where one is cut for people.

use std::borrow::Cow;

/// A name for people: quoted, escaped, cut. Bytes that are no text are escaped as such.
pub fn quoted(name: impl AsRef<[u8]>) -> String {
    const SHOWN_MAX: usize = 80;
    let mut shown = parts(name.as_ref());
    let mut text: String = shown.by_ref().take(SHOWN_MAX).map(|part| escaped(&part)).collect();
    if shown.next().is_some() {
        text.push('…');
    }
    format!("`{text}`")
}

/// A part of a name.
enum Part {
    Character(char),
    /// A byte that belongs to no character.
    Byte(u8),
}

fn parts(name: &[u8]) -> impl Iterator<Item = Part> {
    name.utf8_chunks().flat_map(|chunk| {
        let bytes = chunk.invalid().iter().copied().map(Part::Byte);
        chunk.valid().chars().map(Part::Character).chain(bytes)
    })
}

fn escaped(part: &Part) -> String {
    match part {
        Part::Character(character) => character.escape_debug().collect(),
        Part::Byte(byte) => format!("\\x{byte:02x}"),
    }
}

/// Decodes percent-encoding of what has to be a text.
pub fn percent_decode(text: &str) -> Result<Cow<'_, str>, String> {
    as_text(percent_decode_bytes(text)?)
}

/// What was decoded, as the text that it has to be.
pub fn as_text(decoded: Cow<'_, [u8]>) -> Result<Cow<'_, str>, String> {
    let bad = |error: std::str::Utf8Error| format!("not UTF-8 once decoded: bad byte at {}", error.valid_up_to());
    match decoded {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(bad),
        Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|error| bad(error.utf8_error())),
    }
}

/// Decodes percent-encoding. Unlike most decoders it lets no malformed escape pass as it is: two readers could take it for
/// different keys.
pub fn percent_decode_bytes(text: &str) -> Result<Cow<'_, [u8]>, String> {
    let Some(first) = text.find('%') else { return Ok(Cow::Borrowed(text.as_bytes())) };
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
    Ok(Cow::Owned(decoded))
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
    use quorate_api::path;

    use super::*;

    #[test]
    fn a_name_in_a_path_is_read_back() {
        for name in ["orders/o42", "ü%2F+?#\"\n", "~-_.", "..//", "a/../b", ".", ".."] {
            for path in [path::encode(name), path::encode_segment(name)] {
                assert!(path.is_ascii());
                assert_eq!(percent_decode(&path).as_deref(), Ok(name));
            }
        }
        assert_eq!(percent_decode_bytes(&path::encode(b"a/\xFF")).as_deref(), Ok(&b"a/\xFF"[..]));
        assert!(percent_decode("a/%FF").is_err());
    }

    #[test]
    fn no_two_short_names_are_quoted_alike() {
        assert_eq!(quoted("a\n/ü"), "`a\\n/ü`");
        assert_eq!(quoted(b"a\xFF\xE2\x82"), "`a\\xff\\xe2\\x82`");
        assert_eq!(quoted("a\\xff"), "`a\\\\xff`");
        assert_eq!(quoted("x".repeat(81)), format!("`{}…`", "x".repeat(80)));
    }
}
