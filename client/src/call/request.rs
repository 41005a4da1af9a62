//! A call before it is sent: method, target, conditions, body, and what may be done with it when it fails.
//!
//! Owns the targets of calls. Builds everything once; an attempt only clones it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode, utf8_percent_encode};
use serde::Serialize;

use crate::api::{Cas, Name, path};
use crate::call::endpoints::Preference;
use crate::call::error::Error;
pub use crate::call::request_id::RequestId;

/// Longest request id that nodes take.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Characters to escape in a query.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

impl FromStr for RequestId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let fits = (1..=REQUEST_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        match HeaderValue::from_str(text) {
            Ok(value) if fits => Ok(Self::of_header(value)),
            _ => Err(Error::Invalid(format!(
                "a request id is 1 to {REQUEST_ID_BYTES_MAX} printable ASCII characters without spaces, not `{}`",
                text.escape_default()
            ))),
        }
    }
}

/// What may be done with a call whose attempt failed.
#[derive(Debug, Clone)]
pub(crate) enum Intent {
    /// Changes nothing: may be repeated at will.
    Read,
    /// Changes something under an id: may be repeated at will, is applied at most once.
    Write(RequestId),
    /// Changes something without an id: may be repeated only when it was certainly not applied.
    Once,
}

/// An operation longer than this goes on a connection of its own: on a shared one it would hold up the short ones behind
/// it. Also bounds what one shared connection has to remember.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// A call, ready to be attempted.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub method: Method,
    pub target: PathAndQuery,
    pub intent: Intent,
    pub preference: Preference,
    pub content_type: Option<HeaderValue>,
    pub condition: Option<(HeaderName, HeaderValue)>,
    /// What the answer should have in it.
    pub prefer: Option<HeaderValue>,
    pub body: Bytes,
    /// Whether the body is an operation that may go as a line of an operation stream.
    pub is_line: bool,
    /// Deadline of the whole call; the client's own where there is none.
    pub timeout: Option<Duration>,
    /// How long one node may take before another is asked; the client's own where there is none.
    pub attempt: Option<Duration>,
    /// How long the server is asked to hold its answer back, on top of the deadline.
    pub hold: Duration,
}

impl Call {
    /// A call without condition or body.
    pub fn new(method: Method, target: String, intent: Intent, preference: Preference) -> Result<Self, Error> {
        let target = PathAndQuery::from_maybe_shared(Bytes::from(target))
            .map_err(|error| Error::Invalid(format!("the request has no valid URL: {error}")))?;
        Ok(Self::bare(method, target, intent, preference))
    }

    /// The same for a target that is parsed already.
    fn bare(method: Method, target: PathAndQuery, intent: Intent, preference: Preference) -> Self {
        Self {
            method,
            target,
            intent,
            preference,
            content_type: None,
            condition: None,
            prefer: None,
            body: Bytes::new(),
            is_line: false,
            timeout: None,
            attempt: None,
            hold: Duration::ZERO,
        }
    }

    /// The same call with a JSON body.
    pub fn json(self, body: Bytes) -> Self {
        Self { content_type: Some(HeaderValue::from_static("application/json")), body, ..self }
    }

    /// A call of one operation, given as its JSON.
    pub fn op(op: Bytes, intent: Intent, preference: Preference) -> Self {
        // JSON has line breaks only between its parts, where the text given by the caller has them. They are kept.
        let is_line = op.len() <= LINE_BYTES_MAX && memchr::memchr(b'\n', &op).is_none();
        Self { is_line, ..Self::post("/v1/ops", op, intent, preference) }
    }

    /// A call with a JSON body.
    pub fn post(route: &'static str, body: Bytes, intent: Intent, preference: Preference) -> Self {
        Self::bare(Method::POST, PathAndQuery::from_static(route), intent, preference).json(body)
    }

    /// A call with a JSON body to a path that is made of names.
    pub fn post_to(path: String, body: &impl Serialize, intent: Intent) -> Result<Self, Error> {
        let call = Self::new(Method::POST, path, intent, Preference::Leader)?;
        Ok(call.json(json_body(body)?))
    }

    /// A call that writes, with a JSON body.
    pub fn write(route: &'static str, body: &impl Serialize, id: RequestId) -> Result<Self, Error> {
        Ok(Self::post(route, json_body(body)?, Intent::Write(id), Preference::Leader))
    }

    /// The id of a write.
    pub fn request_id(&self) -> Option<&RequestId> {
        match &self.intent {
            Intent::Write(id) => Some(id),
            Intent::Read | Intent::Once => None,
        }
    }
}

/// The text of a body.
pub(crate) fn json_body(body: &impl Serialize) -> Result<Bytes, Error> {
    let text = serde_json::to_vec(body);
    text.map(Bytes::from).map_err(|source| Error::Decode { what: "the request has no JSON form".into(), source })
}

/// `/v1/kv/` and the key, escaped.
pub(crate) fn key_path(key: &Name) -> Result<String, Error> {
    name_path("/v1/kv/", key, "a key")
}

/// A route that ends with a slash, and a name, escaped.
pub(crate) fn name_path(route: &str, name: impl AsRef<[u8]>, what: &str) -> Result<String, Error> {
    let name = name.as_ref();
    if name.is_empty() {
        return Err(Error::Invalid(format!("{what} has at least one character")));
    }
    Ok(format!("{route}{}", path::encode(name)))
}

/// A route that ends with a slash, a name that is one segment, escaped, and what comes after it.
pub(crate) fn segment_path(route: &str, name: &str, rest: &str, what: &str) -> Result<String, Error> {
    if name.is_empty() {
        return Err(Error::Invalid(format!("{what} has at least one character")));
    }
    Ok(format!("{route}{}{rest}", path::encode_segment(name)))
}

/// Appends a name as a query parameter.
pub(crate) fn push_name(target: &mut String, parameter: &str, name: &Name) {
    push_query(target, parameter, "");
    target.extend(percent_encode(name.as_bytes(), QUERY));
}

/// Appends one query parameter.
pub(crate) fn push_query(target: &mut String, name: &str, value: impl fmt::Display) {
    use fmt::Write;
    let first = if target.contains('?') { '&' } else { '?' };
    write!(target, "{first}{name}=").expect("writing to a String cannot fail");
    let text = value.to_string();
    target.extend(utf8_percent_encode(&text, QUERY));
}

/// A token as an entity tag.
pub(crate) fn etag(cas: Cas) -> HeaderValue {
    HeaderValue::try_from(format!("\"{cas}\"")).expect("digits in quotes are a header value")
}

/// Asks a node for its status.
pub(crate) fn status_call() -> Result<Call, Error> {
    Call::new(Method::GET, "/v1/cluster/status".into(), Intent::Read, Preference::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ids_are_20_harmless_characters_and_differ() {
        let (one, other) = (RequestId::random(), RequestId::random());
        assert_eq!(one.as_str().len(), 20);
        assert_ne!(one, other);
        assert_eq!(one.as_str().parse::<RequestId>().expect("an own id parses"), one);
    }

    #[test]
    fn ids_with_spaces_or_nothing_in_them_are_refused() {
        for bad in ["", "a b", "a\nb", "ä", &"x".repeat(129)] {
            assert!(bad.parse::<RequestId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn keys_are_escaped_but_for_their_slashes() {
        assert_eq!(key_path(&"orders/o42".into()).expect("valid"), "/v1/kv/orders/o42");
        assert_eq!(key_path(&"a/../b ".into()).expect("valid"), "/v1/kv/a%2F..%2Fb%20");
        assert!(key_path(&Name::default()).is_err());
        let lock = segment_path("/v1/locks/", "a/b c", "/acquire", "a lock").expect("valid");
        assert_eq!(lock, "/v1/locks/a%2Fb%20c/acquire");
        assert!(segment_path("/v1/locks/", "", "", "a lock").is_err());
    }

    #[test]
    fn an_operation_is_a_line_unless_it_is_long_or_has_lines_of_its_own() {
        let is_line = |op: String| Call::op(op.into(), Intent::Read, Preference::Any).is_line;
        assert!(is_line("{}".into()) && is_line("x".repeat(LINE_BYTES_MAX)));
        assert!(!is_line("{\n}".into()) && !is_line("x".repeat(LINE_BYTES_MAX + 1)));
    }

    #[test]
    fn a_cas_is_digits_in_quotes() {
        assert_eq!(etag(Cas::new(42)), "\"42\"");
    }
}
