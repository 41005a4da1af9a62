//! RFC 7396 merge patch on JSON text.
//!
//! Owns which of the two texts is to blame where there is no result; the algorithm is [`crate::document`]'s. Members
//! keep the order of the document, new ones follow in that of the patch, and what it does not touch keeps its spelling.

use crate::document::{self, Json};

/// Why a patch cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MergeError {
    /// The value is not a JSON object.
    NotADocument,
    /// The patch is not a JSON object, or too deep.
    BadPatch,
}

/// The document after the patch, without insignificant whitespace. Its size is for the caller to check.
pub(super) fn merge_patch(source: &[u8], patch: &[u8]) -> Result<Vec<u8>, MergeError> {
    let Ok(Json::Object(mut document)) = Json::parse(source) else { return Err(MergeError::NotADocument) };
    let Ok(Json::Object(patch)) = Json::parse(patch) else { return Err(MergeError::BadPatch) };
    document::merge(&mut document, &patch);
    let mut merged = Vec::with_capacity(source.len());
    Json::Object(document).write(&mut merged);
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    fn merged(document: &str, patch: &str) -> Result<String, MergeError> {
        merge_patch(document.as_bytes(), patch.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn what_is_no_object_is_refused_by_side() {
        for text in ["1", "[]", "null", "\"{}\"", "", "{", "{}x", "{\"a\":}", "{\"a\":01}", "{\"\\ud800\":1}", "\u{1}"]
        {
            assert_eq!(merged(text, "{}"), Err(MergeError::NotADocument), "{text}");
            assert_eq!(merged("{}", text), Err(MergeError::BadPatch), "{text}");
            assert_eq!(merged(text, text), Err(MergeError::NotADocument), "{text}");
        }
        assert_eq!(merge_patch(b"{\"a\":\"\xFF\"}", b"{}"), Err(MergeError::NotADocument));
    }

    #[test]
    fn the_last_of_several_members_counts() {
        assert_eq!(merged(r#"{"a":{"x":1}}"#, r#"{"a":{"y":2},"a":null}"#).unwrap(), "{}");
        assert_eq!(merged("{}", r#"{"a":null,"\u0061":1}"#).unwrap(), r#"{"a":1}"#);
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
