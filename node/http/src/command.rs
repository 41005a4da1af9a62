//! Commands that are not about one entry: from a body to the reply of the cluster.
//!
//! Owns what transactions, changes of all that matches, claims, collections and sequences have in common as requests. Never knows what
//! one of them is about.

use axum::body::Body;
use bytes::Bytes;
use http::header;
use quorate_api::{Applied, ErrorCode};
use quorate_machine::query::{Observed, ReadPosition, StateFault};
use quorate_machine::types::Revision;
use quorate_node_core::backend::SharedNode;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::freshness;

use crate::context::RequestContext;
use crate::headers;
use crate::input::{body, json_body};
use crate::output::response::{Outcome, etag_value, ok_json};

/// The body of a request that has no parameters: `what`, as strict JSON.
pub async fn text(context: &RequestContext, body: Body, what: &str) -> Result<Bytes, Failure> {
    let kind = headers::json_kind(&context.head, what)?;
    let body = body::collect(context, body, usize::MAX).await?;
    Ok(body.slice_ref(json_body::json_of(kind, &body)?))
}

/// Whether there is no such thing before a request that puts it there. Two that come at once may both hear so.
pub async fn is_absent<T>(
    context: &RequestContext,
    look: impl FnOnce(&SharedNode) -> Result<Observed<Option<T>>, StateFault>,
) -> Result<bool, Failure> {
    let backend = &context.api.node;
    freshness::refresh(backend, context.deadline).await?;
    let seen = look(backend).map_err(|fault| Failure::from_fault(&fault))?;
    Ok(seen.found.is_none())
}

/// The failure that there is no such thing, as of a position.
pub fn missing(detail: impl Into<String>, at: ReadPosition) -> Failure {
    Failure::new(ErrorCode::NotFound, Applied::No, detail).evaluated_at(at.revision, at.index)
}

/// A 200 that was evaluated at `revision`, about what has this token now.
pub fn answer<T: serde::Serialize>(answer: &T, revision: Revision, cas: Option<u64>) -> Outcome {
    let mut response = ok_json(answer)?;
    response.headers_mut().insert(headers::REVISION, revision.into());
    if let Some(cas) = cas {
        response.headers_mut().insert(header::ETAG, etag_value(cas));
    }
    Ok(response)
}
