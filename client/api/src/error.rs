//! What an error answer says: the problem document.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::decimal;
use super::error_code::{Applied, ErrorCode, Retry, code_name};
use super::strict::given;

/// One fault in the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct InputFault {
    /// JSON pointer into the body (empty for all of it), or `query:NAME`, `header:NAME`, `path:NAME`.
    pub pointer: String,
    /// What is wrong with it.
    pub detail: String,
}

/// A predicate that does not hold, or an operation of a patch that does not fit the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Failed {
    /// JSON pointer into the request, such as `/if/0` or `/patch/2`.
    pub pointer: String,
    /// For a patch: JSON pointer into the document, to where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What is wrong.
    pub detail: String,
    /// The value found there; absent where there is none.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub actual: Option<super::JsonText>,
    /// The start of a value that is too long to be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual_start: Option<String>,
}

/// An RFC 9457 problem document (`application/problem+json`): the body of every error.
///
/// # Examples
///
/// ```
/// use quorate_api::{Applied, ErrorCode, Problem, Retry};
///
/// let problem: Problem = serde_json::from_str(
///     r#"{"type":"/errors/not_found","title":"Not found","status":404,
///         "detail":"there is no entry with the key `orders/o2`","code":"not_found","applied":"no",
///         "retry":"after_reading","request_id":"r-1"}"#,
/// )?;
/// assert_eq!((problem.code, problem.applied, problem.retry), (ErrorCode::NotFound, Applied::No, Retry::AfterReading));
/// assert_eq!(problem.to_string(), "Not found: there is no entry with the key `orders/o2`");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Problem {
    /// `/errors/CODE`: a path of the node, where it says what the code means.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// Short and fixed for each code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time.
    pub detail: String,
    /// The code.
    pub code: ErrorCode,
    /// Whether the request was applied.
    pub applied: Applied,
    /// What the caller may do.
    pub retry: Retry,
    /// The request id, given or made by the node.
    pub request_id: String,
    /// Each fault of a malformed request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<InputFault>,
    /// For a condition or a patch that failed: which part of it, and what is there instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// For a failed condition: the entry as it was then; absent when there was none, and in a retry long after, when that
    /// version is no longer kept. A collection has its name as `key` and its rules as `value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<super::EntryView>,
    /// Revision at which the request was evaluated, where it was.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::shown, required = false)]
    pub revision: Option<u64>,
    /// Log index that decided it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Whether this is the kept answer of an earlier try with the same request id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// With `compacted`: the oldest revision that can be read.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::shown, required = false)]
    pub oldest_revision: Option<u64>,
    /// With `locked` of a lock or an election: how many hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holders: Option<u64>,
    /// With `locked` of a lock or an election: how many wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiters: Option<u64>,
    /// With `locked` of a lock or an election: milliseconds for which nobody gets it, because the session of a holder has
    /// expired. With `too_many_requests`: milliseconds after which to ask again, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// With `quota_exceeded`, where it is the quota of a principal or a prefix: which, and how much is used of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<super::QuotaExceeded>,
}

impl Problem {
    /// A problem with the code's own title, status and retry advice.
    pub fn new(code: ErrorCode, applied: Applied, detail: impl Into<String>) -> Self {
        Self {
            type_uri: format!("/errors/{}", code_name(code)),
            title: code.title().into(),
            status: code.status(),
            detail: detail.into(),
            code,
            applied,
            retry: code.retry(),
            request_id: String::new(),
            errors: Vec::new(),
            failed: Vec::new(),
            current: None,
            revision: None,
            index: None,
            replayed: false,
            oldest_revision: None,
            holders: None,
            waiters: None,
            retry_after_ms: None,
            quota: None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.title, self.detail)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_server_says_stays_readable() {
        let text = r#"{"type":"urn:quorate:error:moon_is_full","title":"The moon is full","status":418,"detail":"wait",
            "code":"moon_is_full","applied":"maybe","retry":"at_dawn","request_id":"r","phase":{"of":"moon"}}"#;
        let problem: Problem = serde_json::from_str(text).expect("it has what every problem has");
        assert!(matches!(problem.code, ErrorCode::Other(code) if code.as_str() == "moon_is_full"));
        assert_eq!((problem.status, problem.applied, problem.retry), (418, Applied::Unknown, Retry::Never));
        assert_eq!(code_name(problem.code), "moon_is_full");
        assert_eq!(problem.to_string(), "The moon is full: wait");
    }
}
