//! The body of an answer on its way to its reader, whatever the protocol.
//!
//! Owns the count of what it holds, the watch over whether it is taken, and the wait of a stream for room. Never knows what it says.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;

use crate::connection::monitor::{ConnectionMonitor, Taking};
use crate::gateway::admission::answer_memory::{self, Share};
use crate::gateway::call::Call;
use crate::limits;

/// The body as its call has to answer with it: a short one that is there as a whole as it is.
pub fn of(call: &Call, body: Body) -> Body {
    let exact = body.size_hint().exact();
    if exact.is_some_and(|bytes| bytes < limits::LONG_ANSWER_BYTES) {
        return body;
    }
    let Some(monitor) = call.monitor() else { return body };
    let share = call.answer_share();
    let taking = share.watch_taking(&monitor);
    if exact.is_some() {
        return whole(body, &share, &taking);
    }
    // Its peer may not even let it begin.
    taking.offered(0);
    Body::new(Stream { body, share, monitor, taking, look: None })
}

/// A long answer that is there. It counts from now on, whether its peer lets it begin or not.
fn whole(body: Body, share: &Arc<Share>, taking: &Taking) -> Body {
    Body::from(share.hold(frame_of(body), taking))
}

/// One frame, and it is there.
fn frame_of(mut body: Body) -> Bytes {
    let frame = body.frame().now_or_never().flatten().and_then(Result::ok);
    frame.and_then(|frame| frame.into_data().ok()).unwrap_or_default()
}

/// A long message that is there, for a body that has more than that. It counts from now on.
pub fn held(call: &Call, message: Bytes) -> Bytes {
    match call.monitor() {
        Some(monitor) if message.len() as u64 >= limits::LONG_ANSWER_BYTES => {
            let share = call.answer_share();
            share.hold(message, &share.watch_taking(&monitor))
        }
        _ => message,
    }
}

/// The body of an answer whose bytes stay in memory anyway: they take no more of it while they wait for their reader.
pub fn lent(call: &Call, body: Body) -> Body {
    let is_long = body.size_hint().exact().is_some_and(|bytes| bytes >= limits::LONG_ANSWER_BYTES);
    match call.monitor() {
        Some(monitor) if is_long => Body::from(answer_memory::lend(frame_of(body), &monitor.watch_taking_lent())),
        _ => body,
    }
}

/// Marks an answer whose bytes are [`lent`].
#[derive(Debug, Clone, Copy)]
pub struct Lent;

/// An answer that is made while it is sent.
struct Stream {
    body: Body,
    share: Arc<Share>,
    monitor: Arc<ConnectionMonitor>,
    /// Whether its peer takes what is on its way, and asks for the next frame.
    taking: Taking,
    /// When to look for room again.
    look: Option<Pin<Box<Sleep>>>,
}

impl Stream {
    /// Waits until there is room for what comes next.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.share.has_room() && !self.monitor.stop().is_cancelled() {
            let pause = || Box::pin(tokio::time::sleep(Duration::from_millis(limits::ANSWER_ROOM_LOOK_MS)));
            std::task::ready!(self.look.get_or_insert_with(pause).as_mut().poll(cx));
            self.look = None;
        }
        Poll::Ready(())
    }

    /// Counts a frame, however short: below HTTP many of them wait for a peer that does not read.
    fn offer(&self, bytes: Bytes) -> Bytes {
        self.taking.offered(bytes.len());
        self.share.hold(bytes, &self.taking)
    }
}

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        this.taking.taken();
        std::task::ready!(this.poll_room(cx));
        let frame = std::task::ready!(Pin::new(&mut this.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(|bytes| this.offer(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
