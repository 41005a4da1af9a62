//! The error catalogue: one code for each thing that can go wrong, and what follows from it.

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::OtherCode;

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
    /// 413: conditions or operations that take too much work on one document; `detail` has the steps and their limit.
    TooDear,
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
    pub const ALL: [Self; 32] = [
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
        Self::TooDear,
        Self::TooLarge,
        Self::TooManyRequests,
        Self::Unauthenticated,
        Self::UniqueViolation,
        Self::UnknownField,
        Self::UnsupportedMediaType,
    ];

    /// The HTTP status that carries this code. Of a code that is not known, [`status`](crate::Problem::status) says it.
    pub fn status(self) -> u16 {
        self.facts().0
    }

    /// What the caller may do about it.
    pub fn retry(self) -> Retry {
        self.facts().1
    }

    /// A short, fixed, human title.
    pub fn title(self) -> &'static str {
        self.facts().2
    }

    /// Its status, what the caller may do, and its title.
    fn facts(self) -> (u16, Retry, &'static str) {
        use Retry::{AfterReading, Never, SameRequestId};
        match self {
            Self::AlreadyExists => (409, AfterReading, "The key already exists"),
            Self::AlreadyQueued => (409, AfterReading, "The session has another place in the queue"),
            Self::CasMismatch => (412, AfterReading, "The entry has changed since its cas was read"),
            Self::ChangeRefused => (409, AfterReading, "The members stay as they are"),
            Self::Compacted => (410, AfterReading, "The revision has been compacted"),
            Self::ConditionNotMet => (412, AfterReading, "A condition does not hold"),
            Self::DifferentSettings => (409, AfterReading, "It is in use with other settings"),
            Self::GuardFailed => (412, AfterReading, "The token does not hold the lock"),
            Self::InUse => (409, AfterReading, "Something else needs it"),
            Self::Internal => (500, Never, "Internal error"),
            Self::InvalidArgument => (400, Never, "The request is not well formed"),
            Self::InvalidDocument => (422, Never, "The document does not fit its collection"),
            Self::Locked => (423, AfterReading, "Locked by somebody else"),
            Self::MethodNotAllowed => (405, Never, "The method is not allowed here"),
            Self::NoLeader => (503, SameRequestId, "No leader is known"),
            Self::NotFound => (404, AfterReading, "Not found"),
            Self::NotLockHolder => (409, AfterReading, "Not locked by the caller"),
            Self::NotReady => (503, SameRequestId, "The node is not ready"),
            Self::PermissionDenied => (403, Never, "A permission is missing"),
            Self::PreconditionRequired => (428, AfterReading, "The collection demands a condition"),
            Self::Quarantined => (503, SameRequestId, "The node is quarantined"),
            Self::QuotaExceeded => (507, SameRequestId, "There is no room for more"),
            Self::RequestIdReused => (409, Never, "The request id belongs to another request"),
            Self::SessionExpired => (409, AfterReading, "There is no such session"),
            Self::Timeout => (504, SameRequestId, "The deadline passed"),
            Self::TooDear => (413, Never, "Too much work"),
            Self::TooLarge => (413, Never, "Too large"),
            Self::TooManyRequests => (429, SameRequestId, "Too many requests"),
            Self::Unauthenticated => (401, Never, "It is not known who asks"),
            Self::UniqueViolation => (409, AfterReading, "Another document has these values"),
            Self::UnknownField => (400, Never, "Unknown field"),
            Self::UnsupportedMediaType => (415, Never, "Unsupported content type or encoding"),
            Self::Other(_) => (500, Never, "An error of a newer server"),
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
