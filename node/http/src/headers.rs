//! Header names, pre-built values, and the reading of request headers.
//!
//! Owns the rules of `Idempotency-Key`, `Request-Timeout`, `X-Request-Id` and `Content-Type`; those of `If-Match` and `If-None-Match`
//! are in `input::conditions`, those of `Accept` in `input::accept`. Nothing from outside gets into a response header unless it was
//! checked to be visible ASCII.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, header};
use quorate_api::{Applied, ErrorCode, STREAM_CONTENT_TYPE, WATCH_CONTENT_TYPE};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::limits;

/// Revision at which the answer was evaluated; where it was not, the node's own.
pub const REVISION: HeaderName = HeaderName::from_static("quorate-revision");
/// Log index at which the answer was evaluated.
pub const INDEX: HeaderName = HeaderName::from_static("quorate-index");
/// Raft term of the node.
pub const TERM: HeaderName = HeaderName::from_static("quorate-term");
/// Node id of the leader, or `none`.
pub const LEADER: HeaderName = HeaderName::from_static("quorate-leader");
/// Id of the cluster that the node belongs to, 32 hexadecimal digits; without one while the node is in none.
pub const CLUSTER: HeaderName = HeaderName::from_static("quorate-cluster");
/// The caller's id, else ours.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Revision that created the entry.
pub const CREATE_REVISION: HeaderName = HeaderName::from_static("quorate-create-revision");
/// Revision of the entry's last change.
pub const MOD_REVISION: HeaderName = HeaderName::from_static("quorate-mod-revision");
/// Changes of the entry since creation.
pub const VERSION: HeaderName = HeaderName::from_static("quorate-version");
/// Milliseconds the entry has left.
pub const TTL_MS: HeaderName = HeaderName::from_static("quorate-ttl-ms");
/// With a local read: milliseconds since this node last heard from a leader.
pub const STALENESS_MS: HeaderName = HeaderName::from_static("quorate-staleness-ms");
/// On the answer to a write that does not say it in its body: `true` for the kept answer of an earlier try.
pub const REPLAYED: HeaderName = HeaderName::from_static("quorate-replayed");
/// The caller's request id of a write.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Where an interrupted watch goes on.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const REQUEST_TIMEOUT: HeaderName = HeaderName::from_static("request-timeout");

/// `application/json`
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// `application/octet-stream`
pub const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// `application/problem+json`
pub const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
/// `application/x-ndjson`
pub const STREAM: HeaderValue = HeaderValue::from_static(STREAM_CONTENT_TYPE);
/// `text/event-stream`
pub const EVENTS: HeaderValue = HeaderValue::from_static(WATCH_CONTENT_TYPE);
/// `text/html`
pub const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// `text/plain`
pub const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The one value of a header; `None` without it. Given twice, or not ASCII, it is an error.
pub fn single<'a>(head: &'a Parts, name: &HeaderName) -> Result<Option<&'a str>, Failure> {
    let mut values = head.headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(fault(name, "given more than once"));
    }
    value.to_str().map(Some).map_err(|_| fault(name, "not visible ASCII"))
}

/// A fault in a header.
pub fn fault(name: &HeaderName, detail: impl Into<String>) -> Failure {
    Failure::invalid(pointer(name), detail)
}

fn pointer(name: &HeaderName) -> String {
    let shown = match name.as_str() {
        "if-match" => "If-Match",
        "if-none-match" => "If-None-Match",
        "idempotency-key" => "Idempotency-Key",
        "request-timeout" => "Request-Timeout",
        "content-type" => "Content-Type",
        "content-encoding" => "Content-Encoding",
        "last-event-id" => "Last-Event-ID",
        other => other,
    };
    format!("header:{shown}")
}

/// A checked or own id as a header value.
pub fn id_value(id: String) -> HeaderValue {
    HeaderValue::from_maybe_shared(Bytes::from(id)).expect("an id is visible ASCII, checked or made by ourselves")
}

/// The caller's `X-Request-Id`, where it is harmless.
pub fn echoed(head: &Parts) -> Option<HeaderValue> {
    let value = head.headers.get(&REQUEST_ID)?;
    let bytes = value.as_bytes();
    let harmless = (1..=limits::ECHO_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
    harmless.then(|| value.clone())
}

/// Whether a text can be a request id.
pub fn request_id_fault(id: &str) -> Option<String> {
    let max = quorate_machine::limits::REQUEST_ID_BYTES_MAX;
    if id.is_empty() || id.len() > max {
        return Some(format!("a request id has 1 to {max} characters, this one has {}", id.len()));
    }
    (!id.bytes().all(|byte| byte.is_ascii_graphic()))
        .then(|| "a request id is printable ASCII without spaces".to_owned())
}

/// The checked `Idempotency-Key`.
pub fn idempotency_key(head: &Parts) -> Result<Option<String>, Failure> {
    let Some(id) = single(head, &IDEMPOTENCY_KEY)? else { return Ok(None) };
    match request_id_fault(id) {
        None => Ok(Some(id.to_owned())),
        Some(detail) => Err(fault(&IDEMPOTENCY_KEY, detail)),
    }
}

/// The milliseconds of `Request-Timeout`.
pub fn request_timeout(head: &Parts) -> Result<Option<u64>, Failure> {
    let Some(text) = single(head, &REQUEST_TIMEOUT)? else { return Ok(None) };
    match decimal(text) {
        Some(millis) if millis > 0 => Ok(Some(millis)),
        _ => Err(fault(&REQUEST_TIMEOUT, "not a number of milliseconds from 1")),
    }
}

/// A plain decimal number: digits only, no sign, no leading zero.
pub fn decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// What kind of body the caller says it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// `application/json`
    Json,
    /// `application/merge-patch+json`
    MergePatch,
    /// `application/json-patch+json`
    JsonPatch,
    /// `application/octet-stream`
    Bytes,
    /// `application/x-www-form-urlencoded`: what `curl -d` says where nothing else is said. Taken as JSON if it is JSON.
    Form,
}

/// The declared kind of the body; `expected` is what the error recommends.
pub fn body_kind(head: &Parts, expected: &'static str) -> Result<BodyKind, Failure> {
    let Some(text) = single(head, &header::CONTENT_TYPE)? else {
        return Err(unsupported(format!("the body has no Content-Type; add the header `Content-Type: {expected}`")));
    };
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let kind = match media_type(essence) {
        "application/json" => BodyKind::Json,
        "application/merge-patch+json" => BodyKind::MergePatch,
        "application/json-patch+json" => BodyKind::JsonPatch,
        "application/octet-stream" => BodyKind::Bytes,
        "application/x-www-form-urlencoded" => BodyKind::Form,
        _ => return Err(unsupported(format!("`{}` is not taken here; send `Content-Type: {expected}`", shown(text)))),
    };
    if kind != BodyKind::Bytes && !is_bare_or_utf8(parameters) {
        return Err(unsupported(format!("`{}`: JSON is UTF-8; leave the parameters out", shown(text))));
    }
    Ok(kind)
}

/// The declared kind of a body that is `what`, which is JSON.
pub fn json_kind(head: &Parts, what: &str) -> Result<BodyKind, Failure> {
    match body_kind(head, "application/json")? {
        kind @ (BodyKind::Json | BodyKind::Form) => Ok(kind),
        _ => Err(unsupported(format!("{what} is JSON; send `Content-Type: application/json`"))),
    }
}

/// Whether the body is a stream of operations. Other content types are [`body_kind`]'s to judge.
pub fn says_stream(head: &Parts) -> bool {
    let Ok(Some(text)) = single(head, &header::CONTENT_TYPE) else { return false };
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    media_type(essence) == STREAM_CONTENT_TYPE && is_bare_or_utf8(parameters)
}

/// Whether the parameters of a content type say nothing, or what is true of all JSON.
fn is_bare_or_utf8(parameters: &str) -> bool {
    let parameters = parameters.trim();
    parameters.is_empty() || parameters.eq_ignore_ascii_case("charset=utf-8")
}

/// The media type without parameters, as the constants are written. Types are compared without regard to case; anything
/// but lower case is rare enough to name only the common mixed spelling.
fn media_type(text: &str) -> &str {
    const KNOWN: [&str; 6] = [
        STREAM_CONTENT_TYPE,
        "application/json",
        "application/octet-stream",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/x-www-form-urlencoded",
    ];
    let essence = text.split(';').next().unwrap_or("").trim();
    KNOWN.into_iter().find(|known| known.eq_ignore_ascii_case(essence)).unwrap_or(essence)
}

/// Refuses a content type.
pub fn unsupported(detail: impl Into<String>) -> Failure {
    unsupported_by(&header::CONTENT_TYPE, detail)
}

/// Refuses the form of a body, which this header gives.
pub fn unsupported_by(name: &HeaderName, detail: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::UnsupportedMediaType, Applied::No, detail).at(pointer(name), "not supported here")
}

/// At most 80 characters of something from outside.
fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_default).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The head of a request with these headers.
    pub fn head(headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("test headers are valid").into_parts().0
    }

    #[test]
    fn only_harmless_ids_are_echoed() {
        assert!(echoed(&head(&[("x-request-id", "abc-1")])).is_some());
        assert!(echoed(&head(&[("x-request-id", "a b")])).is_none());
        assert!(echoed(&head(&[("x-request-id", &"a".repeat(129))])).is_none());
    }
}
