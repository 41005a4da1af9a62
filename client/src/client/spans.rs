//! What each call tells `tracing`.
//!
//! Owns the names of spans and of their fields, which the documentation of the crate promises. A span never has a value or a secret.

use std::borrow::Cow;

use tracing::Span;
use tracing::field::Empty;

use crate::api::code_name;
use crate::call::error::{Failure, FailureKind};
use crate::call::request::Call;

/// The whole of a call, all its attempts included.
pub(crate) fn call(call: &Call) -> Span {
    let span = tracing::debug_span!(
        target: "quorate_client",
        "quorate_call",
        operation = %operation(call),
        request_id = Empty
    );
    if let Some(id) = call.request_id().filter(|_| !span.is_disabled()) {
        span.record("request_id", id.as_str());
    }
    span
}

/// One attempt.
pub(crate) fn attempt(attempt: u32, endpoint: &str) -> Span {
    tracing::debug_span!(target: "quorate_client", "quorate_attempt", attempt, endpoint, failure = Empty)
}

/// It brought no final answer. What a node says in words may have a key in it, so only its code is told.
pub(crate) fn failed(span: &Span, failure: &Failure) {
    if span.is_disabled() {
        return;
    }
    match &failure.kind {
        FailureKind::Problem(problem) => span.record("failure", code_name(problem.code).as_str()),
        kind => span.record("failure", kind.reason().as_str()),
    };
}

/// What is done, in few words: the kind of an operation, or what the path begins with and the verb that it ends with.
fn operation(call: &Call) -> Cow<'_, str> {
    const OP: &[u8] = br#"{"op":""#;
    let path = call.target.path();
    if path == "/v1/ops"
        && let Some(rest) = call.body.strip_prefix(OP)
        && let Some(end) = rest.iter().position(|byte| *byte == b'"')
    {
        return String::from_utf8_lossy(&rest[..end]);
    }
    let path = path.strip_prefix("/v1").unwrap_or(path).trim_start_matches('/');
    let (route, rest) = path.split_once('/').unwrap_or((path, ""));
    match rest.rsplit('/').next() {
        Some(verb) if VERBS.contains(&verb) && route != "kv" => format!("{route} {verb}").into(),
        _ => format!("{} {route}", call.method).into(),
    }
}

/// Last words of paths that are not names.
const VERBS: [&str; 24] = [
    "acquire",
    "backup",
    "campaign",
    "cancel",
    "check",
    "claim",
    "complete",
    "count_down",
    "demote",
    "enter",
    "extend",
    "fail",
    "leader",
    "leave",
    "members",
    "next",
    "observe",
    "proclaim",
    "promote",
    "release",
    "renew",
    "requeue",
    "resign",
    "status",
];

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::call::endpoints::Preference;
    use crate::call::request::{Intent, RequestId};

    #[test]
    fn a_call_is_named_by_what_it_does_and_never_by_a_key() {
        let of = |method: Method, target: &str| {
            let call = Call::new(method, target.into(), Intent::Read, Preference::Any).expect("a target");
            operation(&call).into_owned()
        };
        assert_eq!(of(Method::GET, "/v1/kv/secret/claim?wait_ms=5"), "GET kv");
        assert_eq!(of(Method::POST, "/v1/locks/books/acquire"), "locks acquire");
        assert_eq!(of(Method::GET, "/v1/locks/books"), "GET locks");
        assert_eq!(of(Method::GET, "/v1/cluster/status"), "cluster status");
        assert_eq!(of(Method::GET, "/metrics"), "GET metrics");
        let op = br#"{"op":"upsert","key":"k","value":1}"#;
        let call = Call::op(op.as_slice().into(), Intent::Write(RequestId::random()), Preference::Leader);
        assert_eq!(operation(&call), "upsert");
    }
}
