//! The error catalogue: one code for each thing that can go wrong, and what follows from it.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::OtherCode;
use super::decimal;
use super::strict::given;

/// Whether a request that ended in an error was applied. A word of a newer server reads as `unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum Applied {
    /// It was not, and never will be.
    No,
    /// It was.
    Yes,
    /// The outcome is really not known; ask again with the same request id.
    #[serde(other)]
    Unknown,
}

/// What a caller may do after an error. A word of a newer server reads as `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum Retry {
    /// Read the current state, decide anew.
    AfterReading,
    /// Send the same request again under the same request id (reads need none).
    SameRequestId,
    /// Repeating the request can only fail again.
    #[serde(other)]
    Never,
}

/// Error codes, each with one HTTP status; but where a condition in a header failed, the status is 412 whatever the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum ErrorCode {
    /// 409: insert on a key that exists. 412 where `If-None-Match` asked for that.
    AlreadyExists,
    /// 409: the session has a place in the queue already, with another mode or value; release that first.
    AlreadyQueued,
    /// 412: the token given is not the current one.
    CasMismatch,
    /// 409: the change of the members would harm the cluster, or makes no sense; `detail` says why.
    ChangeRefused,
    /// 410: the revision asked for was compacted; `oldest_revision` names the oldest readable one.
    Compacted,
    /// 412: a condition of the request does not hold.
    ConditionNotMet,
    /// 409: it is in use with another number of slots, parties or counts.
    DifferentSettings,
    /// 412: the token of a guard does not hold its lock, or not any more.
    GuardFailed,
    /// 409: something else needs it; `detail` names that.
    InUse,
    /// 500: a bug or a fault of the node; the node log has the rest.
    Internal,
    /// 400: the request is not well formed; `errors` points at each fault.
    InvalidArgument,
    /// 422: the document does not fit the rules of its collection; `errors` points at each fault, below `/value`.
    InvalidDocument,
    /// 423: somebody holds a lock on the entry, or the lock asked for; `holders` and `waiters` tell of the latter.
    Locked,
    /// 405: the path exists, the method does not; `Allow` lists those that do.
    MethodNotAllowed,
    /// 503: no leader is known at the moment.
    NoLeader,
    /// 404: no such key, or no such path. 412 where `If-Match` asked for a key that exists.
    NotFound,
    /// 409: the entry is not locked, or the token does not hold the lock; or not any more.
    NotLockHolder,
    /// 503: the node is starting, stopping or not yet caught up.
    NotReady,
    /// 403: who asks has no right to do this; `detail` names the permission that is missing, and on what.
    PermissionDenied,
    /// 428: the collection takes no write without a token or a condition.
    PreconditionRequired,
    /// 503: the node does not trust its own state and serves nothing; `detail` says why.
    Quarantined,
    /// 507: the disk is nearly full; deletes still work.
    QuotaExceeded,
    /// 409: the request id was used before for another request.
    RequestIdReused,
    /// 409: there is no such session, or not any more.
    SessionExpired,
    /// 504: the deadline passed first; see `applied`.
    Timeout,
    /// 413: a key, value or body over its limit; `detail` has limit and actual.
    TooLarge,
    /// 429: more concurrent requests than the node takes.
    TooManyRequests,
    /// 401: the request says not who asks, or what it says does not hold, or not any more.
    Unauthenticated,
    /// 409: another document has these values already in the fields of a unique index; `detail` names both.
    UniqueViolation,
    /// 400: a JSON field or query parameter that does not exist.
    UnknownField,
    /// 415: a content type that this route does not take.
    UnsupportedMediaType,
    /// A code of a newer server; its problem document says status, advice and what happened.
    #[serde(untagged)]
    Other(OtherCode),
}

impl ErrorCode {
    /// All that this version knows, by name.
    pub const ALL: [Self; 31] = [
        Self::AlreadyExists,
        Self::AlreadyQueued,
        Self::CasMismatch,
        Self::ChangeRefused,
        Self::Compacted,
        Self::ConditionNotMet,
        Self::DifferentSettings,
        Self::GuardFailed,
        Self::InUse,
        Self::Internal,
        Self::InvalidArgument,
        Self::InvalidDocument,
        Self::Locked,
        Self::MethodNotAllowed,
        Self::NoLeader,
        Self::NotFound,
        Self::NotLockHolder,
        Self::NotReady,
        Self::PermissionDenied,
        Self::PreconditionRequired,
        Self::Quarantined,
        Self::QuotaExceeded,
        Self::RequestIdReused,
        Self::SessionExpired,
        Self::Timeout,
        Self::TooLarge,
        Self::TooManyRequests,
        Self::Unauthenticated,
        Self::UniqueViolation,
        Self::UnknownField,
        Self::UnsupportedMediaType,
    ];

    /// The HTTP status that carries this code. Of a code that is not known, [`Problem::status`] says it.
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidArgument | Self::UnknownField => 400,
            Self::Unauthenticated => 401,
            Self::PermissionDenied => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::AlreadyExists
            | Self::AlreadyQueued
            | Self::ChangeRefused
            | Self::DifferentSettings
            | Self::InUse
            | Self::NotLockHolder
            | Self::RequestIdReused
            | Self::SessionExpired
            | Self::UniqueViolation => 409,
            Self::Compacted => 410,
            Self::CasMismatch | Self::ConditionNotMet | Self::GuardFailed => 412,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::InvalidDocument => 422,
            Self::Locked => 423,
            Self::PreconditionRequired => 428,
            Self::TooManyRequests => 429,
            Self::Internal => 500,
            Self::NoLeader | Self::NotReady | Self::Quarantined => 503,
            Self::Timeout => 504,
            Self::QuotaExceeded => 507,
            Self::Other(_) => 500,
        }
    }

    /// What the caller may do about it.
    pub fn retry(self) -> Retry {
        match self {
            Self::AlreadyExists
            | Self::AlreadyQueued
            | Self::CasMismatch
            | Self::ChangeRefused
            | Self::ConditionNotMet
            | Self::Compacted
            | Self::DifferentSettings
            | Self::GuardFailed
            | Self::InUse
            | Self::Locked
            | Self::NotFound
            | Self::NotLockHolder
            | Self::PreconditionRequired
            | Self::SessionExpired
            | Self::UniqueViolation => Retry::AfterReading,
            Self::NoLeader
            | Self::NotReady
            | Self::Quarantined
            | Self::QuotaExceeded
            | Self::Timeout
            | Self::TooManyRequests => Retry::SameRequestId,
            Self::Internal
            | Self::InvalidArgument
            | Self::InvalidDocument
            | Self::MethodNotAllowed
            | Self::PermissionDenied
            | Self::RequestIdReused
            | Self::TooLarge
            | Self::Unauthenticated
            | Self::Other(_)
            | Self::UnknownField
            | Self::UnsupportedMediaType => Retry::Never,
        }
    }

    /// A short, fixed, human title.
    pub fn title(self) -> &'static str {
        match self {
            Self::AlreadyExists => "The key already exists",
            Self::AlreadyQueued => "The session has another place in the queue",
            Self::CasMismatch => "The entry has changed since its cas was read",
            Self::ChangeRefused => "The members stay as they are",
            Self::Compacted => "The revision has been compacted",
            Self::ConditionNotMet => "A condition does not hold",
            Self::DifferentSettings => "It is in use with other settings",
            Self::GuardFailed => "The token does not hold the lock",
            Self::InUse => "Something else needs it",
            Self::Internal => "Internal error",
            Self::InvalidArgument => "The request is not well formed",
            Self::InvalidDocument => "The document does not fit its collection",
            Self::Locked => "Locked by somebody else",
            Self::NotLockHolder => "Not locked by the caller",
            Self::MethodNotAllowed => "The method is not allowed here",
            Self::NoLeader => "No leader is known",
            Self::NotFound => "Not found",
            Self::NotReady => "The node is not ready",
            Self::Other(_) => "An error of a newer server",
            Self::PermissionDenied => "A permission is missing",
            Self::PreconditionRequired => "The collection demands a condition",
            Self::Quarantined => "The node is quarantined",
            Self::QuotaExceeded => "There is no room for more",
            Self::RequestIdReused => "The request id belongs to another request",
            Self::SessionExpired => "There is no such session",
            Self::Timeout => "The deadline passed",
            Self::TooLarge => "Too large",
            Self::TooManyRequests => "Too many requests",
            Self::Unauthenticated => "It is not known who asks",
            Self::UniqueViolation => "Another document has these values",
            Self::UnknownField => "Unknown field",
            Self::UnsupportedMediaType => "Unsupported content type",
        }
    }
}

// By hand, since what a newer server says is nothing that this one answers.
impl PartialSchema for ErrorCode {
    fn schema() -> RefOr<Schema> {
        let names = Self::ALL.iter().map(|code| code_name(*code));
        let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
        schema.description(Some("Error codes, each with one HTTP status; but where a condition in a header failed, the status is 412 whatever the code.")).into()
    }
}

impl ToSchema for ErrorCode {}

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
    /// version is no longer kept.
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
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.title, self.detail)
    }
}

impl std::error::Error for Problem {}

/// The code as it stands in JSON.
pub fn code_name(code: ErrorCode) -> String {
    match serde_json::to_value(code) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("an ErrorCode is always a JSON string, not {other:?}"),
    }
}

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

    #[test]
    fn every_code_that_is_known_reads_as_itself() {
        for code in &ErrorCode::ALL {
            let text = serde_json::to_string(code).expect("has JSON");
            assert_eq!(serde_json::from_str::<ErrorCode>(&text).expect("a code"), *code);
            assert!(!matches!(code, ErrorCode::Other(_)));
        }
        let long = format!("\"{}\"", "\u{e4}".repeat(40));
        let ErrorCode::Other(code) = serde_json::from_str(&long).expect("any text is a code") else {
            panic!("unknown")
        };
        assert_eq!(code.as_str(), "\u{e4}".repeat(23));
    }
}
