//! Answers that are there at once.
//!
//! Owns their form. Never knows what stands in one.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, Version, header};
use quorate_api::{Applied, ErrorCode};
use quorate_node_core::gateway::answer_body::Lent;
use quorate_node_core::gateway::failure::Failure;

use crate::headers;
use crate::output::render;

/// What a handler returns when it succeeds.
pub type Answer = Response<Body>;
/// What a handler returns.
pub type Outcome = Result<Answer, Failure>;

/// A 200 with these bytes.
pub fn ok(content_type: HeaderValue, bytes: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Body::from(bytes.into()));
    // Room for what handlers and `finish` add, in one allocation.
    response.headers_mut().reserve(10);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// A 200 whose bytes stay in memory anyway.
pub fn ok_lent(content_type: HeaderValue, bytes: &Bytes) -> Answer {
    let mut response = ok(content_type, bytes.clone());
    response.extensions_mut().insert(Lent);
    response
}

/// Makes it a 201: what stands at `location`, a path that is percent-encoded, was not there before (RFC 9110, 9.3.3 and 9.3.4).
pub fn created(mut answer: Answer, location: String) -> Answer {
    *answer.status_mut() = StatusCode::CREATED;
    let location = HeaderValue::from_maybe_shared(Bytes::from(location)).expect("an encoded path is visible ASCII");
    answer.headers_mut().insert(header::LOCATION, location);
    answer
}

/// A token as an entity tag.
pub fn etag_value(cas: u64) -> HeaderValue {
    let mut text = Vec::with_capacity(22);
    text.push(b'"');
    render::number(&mut text, cas);
    text.push(b'"');
    HeaderValue::from_maybe_shared(Bytes::from(text)).expect("digits in quotes are a header value")
}

/// A 200 with a wire type, for routes where speed does not matter.
pub fn ok_json<T: serde::Serialize>(body: &T) -> Outcome {
    match serde_json::to_vec(body) {
        Ok(bytes) => Ok(ok(headers::JSON, bytes)),
        Err(error) => Err(Failure::new(ErrorCode::Internal, Applied::No, format!("the answer has no JSON: {error}"))),
    }
}

/// Whether `Connection: close` means something to this peer.
pub fn is_http1(version: Version) -> bool {
    version <= Version::HTTP_11
}
