//! RFC 7396 merge patch on JSON text.
//!
//! Owns the patch algorithm. Values that the patch does not touch keep their text, numbers of any size included,
//! and members come out in bytewise order: the result depends on nothing but the two texts, in no build and with no
//! combination of serde_json's features, which is why `serde_json::Value` has no place here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::limits;

/// Why a patch cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MergeError {
    /// The value is not a JSON object.
    NotADocument,
    /// The patch is not a JSON object, or too deep.
    BadPatch,
}

/// One level of an object. Of members of the same name the last one counts.
#[derive(Default)]
struct Level<'a> {
    members: BTreeMap<Cow<'a, str>, Node<'a>>,
    /// Whether a name is no text (half a surrogate pair); nothing can be merged into such an object, or from it.
    is_broken: bool,
}

/// A value: taken apart where the merge must look into it.
enum Node<'a> {
    Object(Level<'a>),
    Text(&'a str),
}

/// Which objects are taken apart.
#[derive(Clone, Copy)]
enum Along<'p, 'a> {
    /// All down to the greatest depth: those of the patch.
    Everything,
    /// Those that the patch has objects for: those of the document.
    Patch(&'p Level<'a>),
}

/// The document after the patch, without insignificant whitespace. Each text is read once, whatever its depth.
pub(super) fn merge_patch(document: &[u8], patch: &[u8]) -> Result<Vec<u8>, MergeError> {
    let patch = parse(patch, Along::Everything);
    let nothing = Level::default();
    let document = parse(document, Along::Patch(patch.as_ref().unwrap_or(&nothing))).ok_or(MergeError::NotADocument)?;
    let mut merged = Vec::new();
    if document.is_broken {
        return Err(MergeError::NotADocument);
    }
    merge_into(document, patch.ok_or(MergeError::BadPatch)?, &mut merged)?;
    Ok(merged)
}

fn merge_into<'a>(document: Level<'a>, mut patch: Level<'a>, out: &mut Vec<u8>) -> Result<(), MergeError> {
    if patch.is_broken {
        return Err(MergeError::BadPatch);
    }
    if document.is_broken {
        return Err(MergeError::NotADocument);
    }
    // Each name once, with what the document and the patch have for it.
    let mut merged: BTreeMap<Cow<str>, (Option<Node>, Option<Node>)> = BTreeMap::new();
    for (name, old) in document.members {
        let new = patch.members.remove(&name);
        merged.insert(name, (Some(old), new));
    }
    merged.extend(patch.members.into_iter().map(|(name, new)| (name, (None, Some(new)))));

    out.push(b'{');
    let mut separator: &[u8] = b"";
    for (name, values) in merged {
        if let (_, Some(Node::Text("null"))) = values {
            continue;
        }
        out.extend_from_slice(separator);
        separator = b",";
        serde_json::to_writer(&mut *out, &name).expect("writing a string into memory");
        out.push(b':');
        match values {
            (Some(Node::Object(document)), Some(Node::Object(patch))) => merge_into(document, patch, out)?,
            (_, Some(Node::Object(patch))) => merge_into(Level::default(), patch, out)?,
            // An object that was not taken apart lies too deep.
            (_, Some(Node::Text(new))) if new.starts_with('{') => return Err(MergeError::BadPatch),
            (_, Some(Node::Text(kept))) | (Some(Node::Text(kept)), None) => write_compact(kept, out),
            (Some(Node::Object(_)), None) | (None, None) => unreachable!("taken apart for nothing"),
        }
    }
    out.push(b'}');
    Ok(())
}

/// Parses an object; `None` where the text is anything else.
fn parse<'a>(text: &'a [u8], along: Along<'_, 'a>) -> Option<Level<'a>> {
    let mut cursor = Cursor { rest: std::str::from_utf8(text).ok()? };
    let level = cursor.object(along, 1)?;
    cursor.next_token();
    cursor.rest.is_empty().then_some(level)
}

/// What of a text was not read yet.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn object(&mut self, along: Along<'_, 'a>, depth: usize) -> Option<Level<'a>> {
        let mut level = Level::default();
        self.expect('{')?;
        if self.expect('}').is_some() {
            return Some(level);
        }
        loop {
            self.next_token();
            let name = self.rest.starts_with('"').then(|| self.value())??;
            let name = decode_name(name);
            self.expect(':')?;
            let inner = name.as_ref().filter(|_| depth < limits::JSON_DEPTH_MAX).and_then(|name| along.into(name));
            let node = match inner {
                Some(along) if self.next_token() == Some('{') => Node::Object(self.object(along, depth + 1)?),
                Some(_) | None => Node::Text(self.value()?),
            };
            match name {
                Some(name) => drop(level.members.insert(name, node)),
                None => level.is_broken = true,
            }
            if self.expect(',').is_none() {
                self.expect('}')?;
                return Some(level);
            }
        }
    }

    /// The next character that is not whitespace; what is left starts with it.
    fn next_token(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest.chars().next()
    }

    fn expect(&mut self, token: char) -> Option<()> {
        self.next_token();
        self.rest = self.rest.strip_prefix(token)?;
        Some(())
    }

    /// The text of a value of any kind, which serde_json finds the end of.
    fn value(&mut self) -> Option<&'a str> {
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<&'a RawValue>();
        let value = values.next()?.ok()?;
        self.rest = &self.rest[values.byte_offset()..];
        Some(value.get())
    }
}

impl<'p, 'a> Along<'p, 'a> {
    /// How to go on in the object of this name; `None` where it stays as it is.
    fn into(self, name: &str) -> Option<Self> {
        match self {
            Self::Everything => Some(Self::Everything),
            Self::Patch(patch) => match patch.members.get(name)? {
                Node::Object(patch) => Some(Self::Patch(patch)),
                Node::Text(_) => None,
            },
        }
    }
}

/// A string's content from its JSON text.
fn decode_name(text: &str) -> Option<Cow<'_, str>> {
    if text.contains('\\') {
        return serde_json::from_str(text).ok().map(Cow::Owned);
    }
    text.strip_prefix('"')?.strip_suffix('"').map(Cow::Borrowed)
}

/// Appends valid JSON text without the whitespace between its tokens.
fn write_compact(text: &str, out: &mut Vec<u8>) {
    let mut in_string = false;
    let mut escaped = false;
    for &byte in text.as_bytes() {
        if in_string {
            (in_string, escaped) = (escaped || byte != b'"', !escaped && byte == b'\\');
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            in_string = byte == b'"';
        }
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(document: &str, patch: &str) -> Result<String, MergeError> {
        merge_patch(document.as_bytes(), patch.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn the_examples_of_rfc_7396_on_objects_hold() {
        for (document, patch, expected) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            (r#"{}"#, r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(merged(document, patch).as_deref(), Ok(expected), "{document} with {patch}");
        }
    }

    #[test]
    fn untouched_numbers_and_strings_keep_their_text() {
        let document = r#" { "z" : 18446744073709551615, "i":-9223372036854775808, "big": 123456789012345678901234567890,
            "f" : 1.10 , "s" : "a \" b \\", "l" : [ 1 , { "x" : " y " } ] } "#;
        assert_eq!(
            merged(document, r#"{"n": 1}"#).unwrap(),
            r#"{"big":123456789012345678901234567890,"f":1.10,"i":-9223372036854775808,"l":[1,{"x":" y "}],"n":1,"s":"a \" b \\","z":18446744073709551615}"#
        );
    }

    #[test]
    fn what_is_no_object_is_refused_by_side() {
        for text in ["1", "[]", "null", "\"{}\"", "", "{", "{}x", "{\"a\":}", "\u{1}"] {
            assert_eq!(merged(text, "{}"), Err(MergeError::NotADocument), "{text}");
            assert_eq!(merged("{}", text), Err(MergeError::BadPatch), "{text}");
        }
        assert_eq!(merge_patch(b"{\"a\":\"\xFF\"}", b"{}"), Err(MergeError::NotADocument));
    }

    #[test]
    fn the_last_of_several_members_counts() {
        assert_eq!(merged(r#"{"a":{"x":1},"a":5}"#, r#"{"a":{"y":2}}"#).unwrap(), r#"{"a":{"y":2}}"#);
        assert_eq!(merged(r#"{"a":5,"\u0061":{"x":1}}"#, r#"{"a":{"y":2}}"#).unwrap(), r#"{"a":{"x":1,"y":2}}"#);
        assert_eq!(merged(r#"{"a":{"x":1}}"#, r#"{"a":{"y":2},"a":null}"#).unwrap(), "{}");
    }

    #[test]
    fn a_name_that_is_no_text_matters_only_where_the_patch_goes() {
        let half = r#"{"\ud800":1}"#;
        let (inside, over) = (format!("{{\"a\":{half}}}"), format!("{{\"a\":{half},\"a\":{{}}}}"));
        assert_eq!(merged(half, "{}"), Err(MergeError::NotADocument));
        assert_eq!(merged("{}", half), Err(MergeError::BadPatch));
        assert_eq!(merged(&inside, r#"{"b":1}"#).unwrap(), format!("{{\"a\":{half},\"b\":1}}"));
        assert_eq!(merged(&inside, r#"{"a":{"b":1}}"#), Err(MergeError::NotADocument));
        assert_eq!(merged(&over, r#"{"a":{"b":1}}"#).unwrap(), r#"{"a":{"b":1}}"#);
    }

    #[test]
    fn what_the_patch_looks_into_is_checked_like_the_rest() {
        for broken in
            [r#"{"a":{"b":1,}}"#, r#"{"a":{"b" 1}}"#, r#"{"a":{b:1}}"#, r#"{"a":{"b":1}"#, r#"{"a":{"b":01}}"#]
        {
            for patch in ["{}", r#"{"a":{"c":1}}"#, r#"{"a":{"b":{"c":1}}}"#] {
                assert_eq!(merged(broken, patch), Err(MergeError::NotADocument), "{broken} with {patch}");
                assert_eq!(merged(patch, broken), Err(MergeError::BadPatch), "{patch} with {broken}");
            }
        }
    }

    #[test]
    fn a_patch_of_any_depth_is_survived() {
        for depth in [1, limits::JSON_DEPTH_MAX, limits::JSON_DEPTH_MAX + 1, 100_000] {
            let patch = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
            let fits = depth <= limits::JSON_DEPTH_MAX;
            assert_eq!(merged("{}", &patch).is_ok(), fits, "depth {depth}");
        }
    }
}
