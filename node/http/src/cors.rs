//! Web pages of other origins (the CORS protocol of the Fetch standard): what a browser lets them ask and see.
//!
//! Owns the headers. Closed unless origins are configured. No page gets a browser's own credentials: whoever has to say who it is
//! sends a token, which the page must have. Never lets a request in: `gateway::pages` does.

use axum::body::Body;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use quorate_node_core::gateway::api::ApiSettings;
use quorate_node_core::gateway::pages::{ANY, Allowed};

use crate::output::response::Answer;
use crate::routes::Route;

/// What a page may send.
const ALLOWED: HeaderValue = HeaderValue::from_static(
    "accept, authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id, prefer, request-timeout, \
     traceparent, x-request-id",
);
/// What a page may see, beyond what it always may.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "accept-patch, accept-post, allow, etag, location, preference-applied, quorate-cluster, quorate-create-revision, quorate-index, \
     quorate-leader, quorate-mod-revision, quorate-replayed, quorate-revision, quorate-staleness-ms, quorate-term, quorate-ttl-ms, quorate-version, \
     retry-after, x-request-id",
);
/// For how many seconds a browser may rely on it.
const MAX_AGE: HeaderValue = HeaderValue::from_static("3600");

/// The answer to a browser that asks whether a page may send a request to this route; `None` where it may not, or nobody asks.
pub fn preflight(settings: &ApiSettings, head: &Parts, route: &Route) -> Option<Answer> {
    let asks = head.method == Method::OPTIONS && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !asks || route.is_unknown() {
        return None;
    }
    // Which origin it is for is said with every answer.
    allowed(settings, head)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let fields = response.headers_mut();
    fields.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_str(route.allow()).ok()?);
    fields.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED);
    fields.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    Some(response)
}

/// Lets a page see the answer to its request, if it may.
pub fn say(settings: &ApiSettings, head: &Parts, fields: &mut HeaderMap) {
    if settings.cors_origins.is_empty() {
        return;
    }
    if !Allowed::of(settings).has_all_origins() {
        fields.append(header::VARY, HeaderValue::from_static("origin"));
    }
    if let Some(origin) = allowed(settings, head) {
        fields.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        fields.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}

/// What stands for the origin of the request, if it is allowed.
fn allowed(settings: &ApiSettings, head: &Parts) -> Option<HeaderValue> {
    let (origin, pages) = (head.headers.get(header::ORIGIN)?, Allowed::of(settings));
    if pages.has_all_origins() {
        return Some(HeaderValue::from_static(ANY));
    }
    pages.has_origin(origin).then(|| origin.clone())
}
