//! Reading request bodies: bounded in size, bounded in time, without copies where they come in one piece.
//!
//! Owns the size limit, the bound on all bodies together, the deadline and the minimum rate of bodies. Never looks at what
//! is in them.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::header;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use quorate_api::{Applied, ErrorCode};
use tokio::time::Instant;

use crate::context::RequestContext;
use crate::gateway::api::ApiSettings;
use crate::gateway::failure::Failure;
use crate::input::headers;
use crate::timings::{self, Part};

/// Refuses what can be refused from the head alone: compression, and a declared length over the limit.
pub fn check_declared(context: &RequestContext, bytes_max: Option<usize>) -> Result<(), Failure> {
    let fields = &context.head.headers;
    if let Some(encoding) = fields.get(header::CONTENT_ENCODING)
        && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        let failure = headers::unsupported("compressed bodies are not taken; send it without Content-Encoding");
        return Err(failure.closing());
    }
    // hyper refuses lengths that are no numbers or differ.
    let declared = fields.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    match (declared, bytes_max) {
        (Some(length), Some(limit)) if length > limit as u64 => Err(over(limit, Some(length))),
        _ => Ok(()),
    }
}

/// Collects a body of at most `bytes_max` bytes, and no more than is configured.
pub async fn collect(context: &RequestContext, body: Body, bytes_max: usize) -> Result<Bytes, Failure> {
    let bytes_max = bytes_max.min(context.api.settings.body_bytes_max);
    collect_long(context, body, bytes_max).await
}

/// Reads a body that may be longer than the configured limit. It keeps its place in memory until the request is
/// answered: until then there is the body, or what was made of it.
pub async fn collect_long(context: &RequestContext, body: Body, bytes_max: usize) -> Result<Bytes, Failure> {
    let body = timings::on(Part::Body, collect_in_time(context, body, bytes_max)).await?;
    context.take_large_turn(body.len()).await?;
    Ok(body)
}

async fn collect_in_time(context: &RequestContext, mut body: Body, bytes_max: usize) -> Result<Bytes, Failure> {
    let settings = &context.api.settings;
    if let Some(declared) = body.size_hint().exact()
        && declared > bytes_max as u64
    {
        return Err(over(bytes_max, Some(declared)));
    }
    let mut lease = Lease::new(settings, context.deadline);
    let Some(first) = lease.next(&mut body, 0).await? else { return Ok(Bytes::new()) };
    check_size(first.len(), bytes_max)?;
    context.body_permit.grow(first.len())?;
    if body.is_end_stream() {
        return Ok(first);
    }
    let expected = body.size_hint().exact().unwrap_or(0).min(bytes_max as u64) as usize;
    let mut whole = BytesMut::with_capacity(first.len() + expected);
    whole.extend_from_slice(&first);
    while let Some(chunk) = lease.next(&mut body, whole.len()).await? {
        check_size(whole.len() + chunk.len(), bytes_max)?;
        context.body_permit.grow(chunk.len())?;
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

/// How long a body, or a line of a stream, may take: the timeout, and a second for each `rate_min` bytes that came.
#[derive(Debug, Clone, Copy)]
pub struct BodyPatience {
    timeout: Duration,
    rate_min: u64,
}

impl BodyPatience {
    /// As configured.
    pub fn of(settings: &ApiSettings) -> Self {
        Self { timeout: settings.body_timeout, rate_min: settings.body_rate_min.max(1) }
    }

    /// Once this many bytes have come.
    pub fn after(self, received: usize) -> Duration {
        self.timeout + Duration::from_millis((received as u64).saturating_mul(1_000) / self.rate_min)
    }
}

/// The patience with one body, from its beginning on.
struct Lease {
    started: Instant,
    patience: BodyPatience,
    /// When the answer has to be there: what comes later comes for nothing.
    answer_due: Instant,
}

impl Lease {
    fn new(settings: &ApiSettings, answer_due: std::time::Instant) -> Self {
        Self { started: Instant::now(), patience: BodyPatience::of(settings), answer_due: answer_due.into() }
    }

    /// The next piece; `None` at the end.
    async fn next(&mut self, body: &mut Body, received: usize) -> Result<Option<Bytes>, Failure> {
        let deadline = self.answer_due.min(self.started + self.patience.after(received));
        loop {
            let frame = tokio::time::timeout_at(deadline, body.frame()).await.map_err(|_| self.too_slow(received))?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| cut_short(&error))?;
            // Trailers end a body and mean nothing here.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }

    fn too_slow(&self, received: usize) -> Failure {
        let took = self.started.elapsed().as_millis();
        let detail = match Instant::now() >= self.answer_due {
            true => format!("the deadline passed while the body came: {received} bytes in {took} ms"),
            false => format!("the body came too slowly: {received} bytes in {took} ms"),
        };
        Failure::new(ErrorCode::Timeout, Applied::No, detail).closing()
    }
}

fn check_size(actual: usize, bytes_max: usize) -> Result<(), Failure> {
    if actual > bytes_max { Err(over(bytes_max, None)) } else { Ok(()) }
}

fn over(limit: usize, actual: Option<u64>) -> Failure {
    Failure::too_large("", "the body", limit as u64, actual).closing()
}

fn cut_short(error: &axum::Error) -> Failure {
    Failure::invalid("", format!("the body could not be read to its end: {error}")).closing()
}
