//! Names as they stand in paths.
//!
//! Owns their percent-encoding, for who asks and for who answers with a `Location`. Never judges a name: each has a path that is read
//! back as it.

use std::fmt::Write;

/// A name in a path: `/v1/kv/` and this is the path of a key. Slashes stand for themselves, but beside a segment that is `.` or `..`: who
/// resolves the path takes such a segment for a step (RFC 3986, 5.2.4), and would end elsewhere.
pub fn encode(name: impl AsRef<[u8]>) -> String {
    let name = name.as_ref();
    if is_step(name) {
        return encode_segment(name);
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
pub fn encode_segment(name: impl AsRef<[u8]>) -> String {
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
    for &byte in name {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            _ => write!(text, "%{byte:02X}").expect("a string takes all text"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_escaped_but_for_its_slashes_and_a_segment_with_them() {
        for (name, path, segment) in [
            (b"orders/o42".as_slice(), "orders/o42", "orders%2Fo42"),
            ("a b?#%ä".as_bytes(), "a%20b%3F%23%25%C3%A4", "a%20b%3F%23%25%C3%A4"),
            (b"~-_.\"\n+".as_slice(), "~-_.%22%0A%2B", "~-_.%22%0A%2B"),
            (b"a/\xFF".as_slice(), "a/%FF", "a%2F%FF"),
            (b"".as_slice(), "", ""),
            (b"/a//b/".as_slice(), "/a//b/", "%2Fa%2F%2Fb%2F"),
        ] {
            assert_eq!((encode(name).as_str(), encode_segment(name).as_str()), (path, segment));
        }
    }

    #[test]
    fn no_segment_of_a_path_is_a_step() {
        for (name, expected) in [
            ("a/../b", "a%2F..%2Fb"),
            ("../../etc/passwd", "..%2F..%2Fetc/passwd"),
            ("a/b/.", "a/b%2F."),
            ("./a", ".%2Fa"),
            ("/..", "%2F.."),
            ("..//", "..%2F/"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            (".../.a/b..", ".../.a/b.."),
        ] {
            assert_eq!(encode(name), expected);
            for text in [encode(name), encode_segment(name)] {
                assert!(text.split('/').all(|segment| !is_step(segment.as_bytes())), "{text}");
            }
        }
    }
}
