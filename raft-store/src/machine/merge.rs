//! RFC 7396 merge patch on JSON text.
//!
//! Owns the patch algorithm. Values that the patch does not touch keep their text, numbers of any size included,
//! and members come out in bytewise order: the result depends on nothing but the two texts, in no build and with no
//! combination of serde_json's features, which is why `serde_json::Value` has no place here.

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

type Members<'a> = BTreeMap<String, &'a RawValue>;

/// The document after the patch, without insignificant whitespace.
pub(super) fn merge_patch(document: &[u8], patch: &[u8]) -> Result<Vec<u8>, MergeError> {
    let document = members(document).ok_or(MergeError::NotADocument)?;
    let patch = members(patch).ok_or(MergeError::BadPatch)?;
    let mut merged = Vec::new();
    merge_into(document, patch, &mut merged, 1)?;
    Ok(merged)
}

/// Parses one level of an object. Of members of the same name the last one counts.
fn members(text: &[u8]) -> Option<Members<'_>> {
    serde_json::from_slice(text).ok()
}

fn merge_into(document: Members, mut patch: Members, out: &mut Vec<u8>, depth: usize) -> Result<(), MergeError> {
    if depth > limits::JSON_DEPTH_MAX {
        return Err(MergeError::BadPatch);
    }
    // Each name once, with what the document and the patch have for it.
    let mut merged: BTreeMap<String, (Option<&RawValue>, Option<&RawValue>)> = BTreeMap::new();
    for (name, old) in document {
        let new = patch.remove(&name);
        merged.insert(name, (Some(old), new));
    }
    merged.extend(patch.into_iter().map(|(name, new)| (name, (None, Some(new)))));

    out.push(b'{');
    let mut separator: &[u8] = b"";
    for (name, (old, new)) in merged {
        if new.is_some_and(|new| new.get() == "null") {
            continue;
        }
        out.extend_from_slice(separator);
        separator = b",";
        serde_json::to_writer(&mut *out, &name).expect("writing a string into memory");
        out.push(b':');
        match (old, new) {
            (old, Some(new)) if is_object(new) => {
                let patch = members(new.get().as_bytes()).ok_or(MergeError::BadPatch)?;
                let document =
                    old.filter(|old| is_object(old)).map_or(Some(Members::new()), |old| members(old.get().as_bytes()));
                merge_into(document.ok_or(MergeError::NotADocument)?, patch, out, depth + 1)?;
            }
            (_, Some(kept)) | (Some(kept), None) => write_compact(kept.get(), out),
            (None, None) => {}
        }
    }
    out.push(b'}');
    Ok(())
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
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
    fn a_patch_of_any_depth_is_survived() {
        for depth in [1, limits::JSON_DEPTH_MAX, limits::JSON_DEPTH_MAX + 1, 100_000] {
            let patch = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
            let fits = depth <= limits::JSON_DEPTH_MAX;
            assert_eq!(merged("{}", &patch).is_ok(), fits, "depth {depth}");
        }
    }
}
