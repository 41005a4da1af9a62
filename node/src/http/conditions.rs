//! `If-Match` and `If-None-Match`: what must hold of the entry, or what the caller already has.
//!
//! Owns the reading of both. One tag at most, strong, a cas: everything else that HTTP allows is refused rather than half
//! understood.

use http::request::Parts;
use http::{HeaderName, header};

use super::error::Failure;
use super::headers::{decimal, fault, single};

/// What a write demands of the entry as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    None,
    /// `If-None-Match: *`
    Absent,
    /// `If-Match: *`
    Present,
    /// `If-Match: "cas"`
    Cas(u64),
}

/// The condition of a write.
pub fn condition(head: &Parts) -> Result<Condition, Failure> {
    match (single(head, &header::IF_MATCH)?, single(head, &header::IF_NONE_MATCH)?) {
        (None, None) => Ok(Condition::None),
        (Some(_), Some(_)) => {
            Err(fault(&header::IF_MATCH, "If-Match and If-None-Match cannot be given together; choose one"))
        }
        (Some("*"), None) => Ok(Condition::Present),
        (Some(text), None) => Ok(Condition::Cas(etag(&header::IF_MATCH, text)?)),
        (None, Some("*")) => Ok(Condition::Absent),
        (None, Some(_)) => Err(fault(&header::IF_NONE_MATCH, "on a write it can only be *, for `must not exist`")),
    }
}

/// What the caller of a read already has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Any version of the entry (`*`).
    Any,
    /// The entry with this token; 0 stands for `no entry`.
    Cas(u64),
}

/// The condition of a read.
pub fn known(head: &Parts) -> Result<Option<Known>, Failure> {
    if head.headers.contains_key(header::IF_MATCH) {
        return Err(fault(&header::IF_MATCH, "is for writes; a read takes If-None-Match"));
    }
    match single(head, &header::IF_NONE_MATCH)? {
        None => Ok(None),
        Some("*") => Ok(Some(Known::Any)),
        Some(text) => Ok(Some(Known::Cas(etag(&header::IF_NONE_MATCH, text)?))),
    }
}

/// The token in an entity tag.
fn etag(name: &HeaderName, text: &str) -> Result<u64, Failure> {
    if text.starts_with("W/") {
        return Err(fault(name, "weak tags are not supported; give the tag of an answer's ETag as it is"));
    }
    if text.contains(',') {
        return Err(fault(name, "lists are not supported; give one tag"));
    }
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let Some(inner) = inner else {
        return Err(fault(name, "a tag stands in double quotes, like \"42\" (in a shell: '\"42\"')"));
    };
    decimal(inner).ok_or_else(|| fault(name, "the cas in the tag is not a decimal number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::headers::tests::head;

    #[test]
    fn a_condition_is_a_quoted_decimal_or_a_star() {
        assert_eq!(condition(&head(&[])).ok(), Some(Condition::None));
        assert_eq!(condition(&head(&[("if-match", "*")])).ok(), Some(Condition::Present));
        assert_eq!(condition(&head(&[("if-none-match", "*")])).ok(), Some(Condition::Absent));
        assert_eq!(condition(&head(&[("if-match", "\"42\"")])).ok(), Some(Condition::Cas(42)));
        for bad in
            ["42", "\"\"", "\"x\"", "W/\"42\"", "\"1\", \"2\"", "\"-1\"", "\"007\"", "\"18446744073709551616\"", "\""]
        {
            assert!(condition(&head(&[("if-match", bad)])).is_err(), "{bad}");
        }
        assert!(condition(&head(&[("if-none-match", "\"42\"")])).is_err());
        assert!(condition(&head(&[("if-match", "*"), ("if-none-match", "*")])).is_err());
    }
}
