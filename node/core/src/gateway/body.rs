//! The body of a request while it comes, over any protocol: bounded in size and in time, without copies where it comes in one piece.
//!
//! Owns the place of what is still on its way, the size limit, and the deadline and the minimum rate of bodies. A request takes nothing of
//! its class before it is whole. Never looks at what is in a body.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use quorate_api::{Applied, ErrorCode};
use tokio::time::Instant;

use crate::gateway::admission::shares::HeldShare;
use crate::gateway::api::ApiSettings;
use crate::gateway::call::Call;
use crate::gateway::failure::Failure;
use crate::limits;
use crate::timings::{self, Part};

/// A body of at most `bytes_max` bytes, once it is whole. It keeps its place in the memory for all bodies until its request is answered:
/// until then there is the body, or what was made of it.
pub async fn collect(call: &Call, body: Body, bytes_max: usize) -> Result<Bytes, Failure> {
    timings::on(Part::Body, collect_in_time(call, body, bytes_max)).await
}

async fn collect_in_time(call: &Call, body: Body, bytes_max: usize) -> Result<Bytes, Failure> {
    if let Some(declared) = body.size_hint().exact()
        && declared > bytes_max as u64
    {
        return Err(over(bytes_max, Some(declared)));
    }
    let mut coming = Coming::new(call, body);
    let Some(first) = coming.next().await? else { return Ok(Bytes::new()) };
    check_size(first.len(), bytes_max)?;
    call.take_body(first.len())?;
    if coming.body.is_end_stream() {
        return Ok(first);
    }
    let expected = coming.body.size_hint().exact().unwrap_or(0).min(bytes_max as u64) as usize;
    let mut whole = BytesMut::with_capacity(first.len() + expected);
    whole.extend_from_slice(&first);
    while let Some(chunk) = coming.next().await? {
        check_size(whole.len() + chunk.len(), bytes_max)?;
        call.take_body(chunk.len())?;
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
    /// The configured timeout and rate.
    pub fn of(settings: &ApiSettings) -> Self {
        Self { timeout: settings.body_timeout, rate_min: settings.body_rate_min.max(1) }
    }

    /// Once this many bytes have come.
    pub fn after(self, received: usize) -> Duration {
        self.timeout + Duration::from_millis((received as u64).saturating_mul(1_000) / self.rate_min)
    }
}

/// How long to wait for the rest of a body: until it is due, or, without a place among those on their way, until it needs one.
pub fn wait_until(begun: Instant, due: Instant, has_place: bool) -> Instant {
    if has_place { due } else { due.min(begun + Duration::from_millis(limits::ARRIVING_GRACE_MS)) }
}

/// A body on its way.
pub struct Coming<'c> {
    call: &'c Call,
    body: Body,
    started: Instant,
    patience: BodyPatience,
    received: usize,
    /// Its place among the bodies on their way, once it has been for a while.
    place: Option<HeldShare>,
}

impl<'c> Coming<'c> {
    /// Nothing of it came yet.
    pub fn new(call: &'c Call, body: Body) -> Self {
        let (started, patience) = (Instant::now(), BodyPatience::of(&call.api.settings));
        Self { call, body, started, patience, received: 0, place: None }
    }

    /// When the answer has to be there: what comes later comes for nothing.
    fn answer_due(&self) -> Instant {
        self.call.deadline.into()
    }

    /// The next piece; `None` at the end.
    ///
    /// A body right behind its head takes no place: a caller that sends little at once is never refused for others that do not.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            let deadline = self.answer_due().min(self.started + self.patience.after(self.received));
            let until = wait_until(self.started, deadline, self.place.is_some());
            let Ok(frame) = tokio::time::timeout_at(until, self.body.frame()).await else {
                if until >= deadline {
                    return Err(self.too_slow());
                }
                self.place = Some(self.call.arrive()?);
                continue;
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| cut_short(&error))?;
            // Trailers end a body and mean nothing here.
            if let Ok(data) = frame.into_data() {
                self.received += data.len();
                return Ok(Some(data));
            }
        }
    }

    fn too_slow(&self) -> Failure {
        let (took, received) = (self.started.elapsed().as_millis(), self.received);
        let detail = match Instant::now() >= self.answer_due() {
            true => format!("the deadline passed while the body came: {received} bytes in {took} ms"),
            false => format!("the body came too slowly: {received} bytes in {took} ms"),
        };
        Failure::new(ErrorCode::Timeout, Applied::No, detail).closing()
    }
}

fn check_size(actual: usize, bytes_max: usize) -> Result<(), Failure> {
    if actual > bytes_max { Err(over(bytes_max, None)) } else { Ok(()) }
}

/// A body that is longer than it may be.
pub fn over(limit: usize, actual: Option<u64>) -> Failure {
    Failure::too_large("", "the body", limit as u64, actual).closing()
}

fn cut_short(error: &axum::Error) -> Failure {
    Failure::invalid("", format!("the body could not be read to its end: {error}")).closing()
}
