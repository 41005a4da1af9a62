//! Names as text: stored keys shown, names in paths decoded.
//!
//! Owns percent-decoding. Never judges a name.

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

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
