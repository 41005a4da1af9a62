//! Names as text: stored keys shown, names in paths decoded.
//!
//! Owns percent-encoding, both ways. Never judges a name.

use std::borrow::Cow;

use quorate_store::types::Key;

/// A stored key as text. All keys came in as UTF-8; should one not be, it is better shown badly than not at all.
pub fn shown(key: &Key) -> Cow<'_, str> {
    String::from_utf8_lossy(key.as_bytes())
}

/// A key for people: quoted, escaped, cut.
pub fn quoted(key: &str) -> String {
    const SHOWN_MAX: usize = 80;
    let mut text: String = key.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect();
    if key.chars().nth(SHOWN_MAX).is_some() {
        text.push('…');
    }
    format!("`{text}`")
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

/// A name as it stands in a path; slashes stay as they are.
pub fn path_of(name: &str) -> String {
    encoded(name, |byte| byte == b'/')
}

/// A name as one segment of a path.
pub fn segment_of(name: &str) -> String {
    encoded(name, |_| false)
}

fn encoded(name: &str, stays: impl Fn(u8) -> bool) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            _ if stays(byte) => text.push(char::from(byte)),
            _ => write!(text, "%{byte:02X}").expect("a string takes all text"),
        }
    }
    text
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
    fn a_name_in_a_path_is_read_back() {
        assert_eq!((path_of("a/b c"), segment_of("a/b c")), ("a/b%20c".to_owned(), "a%2Fb%20c".to_owned()));
        for name in ["orders/o42", "ü%2F+?#\"\n", "~-_.", "..//"] {
            assert!(path_of(name).is_ascii());
            assert_eq!(percent_decode(&path_of(name)).as_deref(), Ok(name));
            assert_eq!(percent_decode(&segment_of(name)).as_deref(), Ok(name));
        }
    }
}
