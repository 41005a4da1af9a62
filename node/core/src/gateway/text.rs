//! Names as text: for people, and in paths.
//!
//! Owns percent-encoding, both ways, and how a name is quoted. Never judges a name, and never makes one text that is none: no two names
//! look alike, but where one is cut for people.

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

/// A name as it stands in a path. Slashes stay as they are, but beside a segment that is `.` or `..`: a client that resolves the path
/// takes such a segment for a step (RFC 3986, 5.2.4), and would end elsewhere.
pub fn path_of(name: impl AsRef<[u8]>) -> String {
    let name = name.as_ref();
    if is_step(name) {
        return segment_of(name);
    }
    let mut text = String::with_capacity(name.len());
    let mut before: Option<&[u8]> = None;
    for segment in name.split(|byte| *byte == b'/') {
        if let Some(before) = before {
            text.push_str(if is_step(before) || is_step(segment) { "%2F" } else { "/" });
        }
        encode_onto(&mut text, segment);
        before = Some(segment);
    }
    text
}

/// A name as one segment of a path. One that is `.` or `..` has its dots encoded, too, which not every client leaves so: nothing else can
/// be done for it.
pub fn segment_of(name: impl AsRef<[u8]>) -> String {
    let name = name.as_ref();
    let mut text = String::with_capacity(name.len());
    encode_onto(&mut text, name);
    if is_step(name) { text.replace('.', "%2E") } else { text }
}

/// Whether a segment of a path stands for no name, but for where to go on.
fn is_step(segment: &[u8]) -> bool {
    matches!(segment, b"." | b"..")
}

fn encode_onto(text: &mut String, name: &[u8]) {
    use std::fmt::Write;
    for &byte in name {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            _ => write!(text, "%{byte:02X}").expect("a string takes all text"),
        }
    }
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
        assert_eq!(path_of(b"a/\xFF"), "a/%FF");
        assert_eq!(percent_decode_bytes("a/%FF").as_deref(), Ok(&b"a/\xFF"[..]));
        assert!(percent_decode("a/%FF").is_err());
    }

    #[test]
    fn no_segment_of_a_path_is_a_step() {
        for (name, expected) in [
            ("a/../b", "a%2F..%2Fb"),
            ("../../etc/passwd", "..%2F..%2Fetc/passwd"),
            ("a/b/.", "a/b%2F."),
            ("./a", ".%2Fa"),
            ("/..", "%2F.."),
            (".", "%2E"),
            ("..", "%2E%2E"),
            (".../.a/b..", ".../.a/b.."),
        ] {
            assert_eq!(path_of(name), expected);
            for text in [path_of(name), segment_of(name)] {
                assert!(text.split('/').all(|segment| !is_step(segment.as_bytes())), "{text}");
                assert_eq!(percent_decode(&text).as_deref(), Ok(name));
            }
        }
    }

    #[test]
    fn no_two_short_names_are_quoted_alike() {
        assert_eq!(quoted("a\n/ü"), "`a\\n/ü`");
        assert_eq!(quoted(b"a\xFF\xE2\x82"), "`a\\xff\\xe2\\x82`");
        assert_eq!(quoted("a\\xff"), "`a\\\\xff`");
        assert_eq!(quoted("x".repeat(81)), format!("`{}…`", "x".repeat(80)));
    }
}
