//! Failures as responses.
//!
//! Owns the headers of a problem document. Never decides what it says.

use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, header};
use quorate_node_core::gateway::failure::Failure;

use crate::headers;
use crate::output::response::{Answer, is_http1};

/// The response. `X-Request-Id` and the cluster headers come later, with those of every response.
pub fn refuse(mut failure: Failure, head: &Parts, request_id: &str) -> Answer {
    let mut response = Response::new(Body::from(Bytes::from(failure.document(request_id))));
    *response.status_mut() = failure.status();
    let fields = response.headers_mut();
    fields.reserve(10);
    fields.insert(header::CONTENT_TYPE, headers::PROBLEM);
    if let Some(methods) = failure.allow() {
        fields.insert(header::ALLOW, HeaderValue::from_static(methods));
    }
    match failure.status().as_u16() {
        503 | 429 => drop(fields.insert(header::RETRY_AFTER, HeaderValue::from(failure.retry_after_seconds()))),
        401 => drop(fields.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        _ => {}
    }
    if let Some(revision) = failure.revision() {
        fields.insert(headers::REVISION, HeaderValue::from(revision));
    }
    if failure.closes() && is_http1(head.version) {
        fields.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
