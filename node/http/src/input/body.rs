//! Reading request bodies: what HTTP adds to the way of every body, which is the gateway's.
//!
//! Owns what is refused from the head alone, and that a request goes on in its class once its body is whole. Never looks at what is in
//! a body.

use axum::body::Body;
use bytes::Bytes;
use http::header;
use quorate_node_core::gateway::body;
use quorate_node_core::gateway::failure::Failure;

use crate::context::RequestContext;
use crate::headers;

/// Refuses what can be refused from the head alone: compression, and a declared length over the limit.
pub fn check_declared(context: &RequestContext, bytes_max: Option<usize>) -> Result<(), Failure> {
    let fields = &context.head.headers;
    if let Some(encoding) = fields.get(header::CONTENT_ENCODING)
        && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        let why = "compressed bodies are not taken; send it without Content-Encoding";
        return Err(headers::unsupported_by(&header::CONTENT_ENCODING, why).closing());
    }
    // hyper refuses lengths that are no numbers or differ.
    let declared = fields.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    match (declared, bytes_max) {
        (Some(length), Some(limit)) if length > limit as u64 => Err(body::over(limit, Some(length))),
        _ => Ok(()),
    }
}

/// Collects a body of at most `bytes_max` bytes, and no more than is configured.
pub async fn collect(context: &RequestContext, body: Body, bytes_max: usize) -> Result<Bytes, Failure> {
    let bytes_max = bytes_max.min(context.api.settings.bounds.body_bytes_max);
    collect_long(context, body, bytes_max).await
}

/// Reads a body that may be longer than the configured limit. Its request takes a place of its class, and its turn, once it is whole.
pub async fn collect_long(context: &RequestContext, body: Body, bytes_max: usize) -> Result<Bytes, Failure> {
    let body = body::collect(context, body, bytes_max).await?;
    context.enter().await?;
    context.take_large_turn(body.len()).await?;
    Ok(body)
}
