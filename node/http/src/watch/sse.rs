//! The body of an answer that goes on until somebody ends it: server-sent events.
//!
//! Owns the time of such a stream: when it is silent for too long it says something, now and then it looks whether it has to
//! end, be it to make room for others, and when the node stops it says so. It runs wherever the body is polled, in the connection's task, and pulls from its
//! source only once the peer took what was there: there is no queue. Never knows what the events are about.
//!
//! Owns also what a reader is told for whom a status would be the end for ever: that it goes on from elsewhere, and that it does better
//! to come again.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, header};
use hyper::body::{Body as HttpBody, Frame};
use quorate_api::{ErrorCode, WatchEnd, WatchEndCode, WatchReset};
use quorate_node_core::connection::monitor::Busy;
use quorate_node_core::gateway::admission::accounts::{Held, Spender};
use quorate_node_core::gateway::admission::shares::LentPlace;
use quorate_node_core::gateway::caller::Watching;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::watch;
use quorate_node_core::limits;
use quorate_threads::watchdog;
use tokio::time::Sleep;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::context::RequestContext;
use crate::headers;
use crate::output::render;
use crate::output::response::{Answer, Outcome};

const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// After how many milliseconds a browser whose stream broke comes again.
const RETRY_MS: u64 = 1_000;

/// A part of a stream.
pub enum Chunk {
    /// There may be more after it.
    Some(Bytes),
    /// The last one; it says why.
    Last(Bytes),
}

/// Where the events of a stream come from.
pub trait Source: Send + Unpin + 'static {
    /// The next events, whole ones. An error cuts the connection: the node has a fault and will stop.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Chunk>>;
    /// What to say where nothing was sent for the time of a heartbeat.
    fn heartbeat(&mut self) -> Bytes;
    /// Why the stream has to end by itself, if so. Asked every few seconds.
    fn end_reason(&mut self) -> Option<Bytes>;
    /// The last words where no more may be told to who listens.
    fn refused(&mut self, code: WatchEndCode, detail: String) -> Bytes;
    /// The last words where the stream may go on elsewhere.
    fn ended(&mut self, code: WatchEndCode, detail: String) -> Bytes;
}

/// Says nothing, and shows that the stream lives.
pub const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// Appends an event of this name and JSON; with an id, this is where the stream goes on after it.
pub fn event(out: &mut Vec<u8>, name: &str, id: Option<u64>, data: &impl serde::Serialize) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    if let Some(id) = id {
        out.extend_from_slice(b"\nid: ");
        render::number(out, id);
    }
    out.extend_from_slice(b"\ndata: ");
    render::json(out, data);
    out.extend_from_slice(b"\n\n");
}

/// When to come again, which is said first.
fn retry(millis: u64) -> Vec<u8> {
    format!("retry: {millis}\n\n").into_bytes()
}

/// Appends that a stream does not go on where its reader was, or begins with the state: after which revision it goes on, and what is missing
/// and why. With an id where changes follow and not the state: then that is where to go on.
pub fn reset(out: &mut Vec<u8>, revision: u64, id: Option<u64>, lost: Option<&Failure>) {
    let (code, detail) = lost.map(|lost| (lost.code(), lost.detail().to_owned())).unzip();
    event(out, "reset", id, &WatchReset { revision, code, detail });
}

/// Why a stream has ended that could not begin.
pub fn end_code(failure: &Failure) -> WatchEndCode {
    match failure.code() {
        ErrorCode::NoLeader => WatchEndCode::NoLeader,
        ErrorCode::NotReady => WatchEndCode::NotReady,
        ErrorCode::Quarantined => WatchEndCode::Quarantined,
        ErrorCode::Timeout => WatchEndCode::Timeout,
        ErrorCode::TooManyRequests => WatchEndCode::TooManyRequests,
        _ => WatchEndCode::Internal,
    }
}

/// Answers with a stream that has ended: why, and when to come again.
pub fn ended(failure: &Failure) -> Answer {
    let code = end_code(failure);
    let wait = u64::try_from(failure.retry_after().as_millis()).unwrap_or(u64::MAX);
    let mut text = retry(wait.max(RETRY_MS));
    let detail = failure.detail().to_owned();
    event(&mut text, "end", None, &WatchEnd { code, detail, oldest_revision: None, revision: None });
    of_events(Body::from(text))
}

/// A stream of events.
fn of_events(body: Body) -> Answer {
    let mut response = Response::new(body);
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, headers::EVENTS);
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would keep events until it has a buffer full of them.
    fields.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Answers with a stream: the head at once, the events as they come.
/// What it says is no more than `watching` says may be told; `first`, which it begins with, tells nothing of what is watched.
pub fn open(
    context: &RequestContext,
    source: impl Source,
    heartbeat: Duration,
    watching: Option<Watching>,
    first: &[u8],
) -> Outcome {
    let mut busy = context.take_busy()?;
    let account = context.account().cloned();
    let counted = account.as_ref().map(Spender::watch).transpose()?;
    let place = context.watch_place()?;
    busy.goes_on();
    let first = [&retry(RETRY_MS)[..], first].concat();
    Ok(of_events(Body::new(Sse {
        account,
        first: Some(first.into()),
        _counted: counted,
        place: Some(place),
        ..Sse::new(source, heartbeat, busy, watching)
    })))
}

struct Sse<S> {
    /// Until it has ended: a place in the feed of changes is not kept until the peer has taken the last words.
    source: Option<S>,
    /// Who listens, where not everybody may.
    watching: Option<Watching>,
    /// The first words, until they are sent.
    first: Option<Bytes>,
    heartbeat: Duration,
    sent: Instant,
    /// The next moment to look at `source`. Armed anew only when it has passed, so that an event costs no timer.
    timer: Pin<Box<Sleep>>,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Who pays for what is sent.
    account: Option<Spender>,
    /// One of the streams that the account may have.
    _counted: Option<Held>,
    /// One of the watches that one caller may have of all.
    place: Option<LentPlace>,
    _busy: Busy,
}

impl<S: Source> Sse<S> {
    fn new(source: S, heartbeat: Duration, busy: Busy, watching: Option<Watching>) -> Self {
        let stop = Box::pin(busy.monitor().stop().clone().cancelled_owned());
        let timer = Box::pin(tokio::time::sleep(look_after(heartbeat)));
        let (source, first, sent) = (Some(source), None, Instant::now());
        let (account, _counted, place, _busy) = (None, None, None, busy);
        Self { source, watching, first, heartbeat, sent, timer, stop, account, _counted, place, _busy }
    }

    /// The next chunk, or nothing for now.
    fn poll_next(&mut self, source: &mut S, cx: &mut Context<'_>) -> Poll<io::Result<Chunk>> {
        if self.stop.as_mut().poll(cx).is_ready() {
            let detail = "this node is stopping; go on at another one".into();
            return Poll::Ready(Ok(Chunk::Last(source.ended(WatchEndCode::Stopping, detail))));
        }
        // Before more is read: a source that always has something would never come to it, and last words that tell how far it is may not
        // cover what is read and then not sent.
        let mut is_silent = false;
        while self.timer.as_mut().poll(cx).is_ready() {
            if let Some(reason) = self.has_to_end(source) {
                return Poll::Ready(Ok(Chunk::Last(reason)));
            }
            let left = self.heartbeat.saturating_sub(self.sent.elapsed());
            is_silent = left.is_zero();
            let next = look_after(if is_silent { self.heartbeat } else { left });
            self.timer.as_mut().reset(tokio::time::Instant::now() + next);
        }
        match source.poll_chunk(cx) {
            // Judged after it was read: what took the right away came before what is read from now on.
            Poll::Ready(chunk) => Poll::Ready(self.refused(source).map_or(chunk, |last| Ok(Chunk::Last(last)))),
            Poll::Pending if is_silent => Poll::Ready(Ok(Chunk::Some(source.heartbeat()))),
            Poll::Pending => Poll::Pending,
        }
    }

    /// The last words, where there is a reason to end.
    fn has_to_end(&mut self, source: &mut S) -> Option<Bytes> {
        self.refused(source).or_else(|| source.end_reason()).or_else(|| self.crowded_out(source))
    }

    /// The last words, where no more may be told.
    fn refused(&self, source: &mut S) -> Option<Bytes> {
        let (code, detail) = self.watching.as_ref()?.end()?;
        Some(source.refused(code, detail))
    }

    /// The last words, where it has to make room for streams of others.
    fn crowded_out(&mut self, source: &mut S) -> Option<Bytes> {
        let failure = watch::crowded_out(self.place.as_mut()?)?;
        Some(source.ended(end_code(&failure), failure.detail().to_owned()))
    }

    fn frame(&mut self, bytes: Bytes) -> Frame<Bytes> {
        self.sent = Instant::now();
        if let Some(account) = &self.account {
            account.moved(bytes.len());
        }
        Frame::data(bytes)
    }
}

/// When to look next, where something is to be said in so long.
fn look_after(heartbeat: Duration) -> Duration {
    heartbeat.min(Duration::from_millis(limits::WATCH_LOOK_MS))
}

impl<S: Source> HttpBody for Sse<S> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(this.frame(first))));
        }
        let Some(mut source) = this.source.take() else { return Poll::Ready(None) };
        let next = watchdog::step("stream", || this.poll_next(&mut source, cx));
        if matches!(next, Poll::Pending | Poll::Ready(Ok(Chunk::Some(_)))) {
            this.source = Some(source);
        } else {
            // In this order, so that a free place always comes with room in the feed.
            drop(source);
            this.place = None;
        }
        let chunk = std::task::ready!(next);
        Poll::Ready(Some(chunk.map(|(Chunk::Some(bytes) | Chunk::Last(bytes))| this.frame(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.source.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};

    use quorate_node_core::connection::monitor::ConnectionMonitor;
    use quorate_node_core::gateway::admission::accounts::Account;
    use quorate_node_core::gateway::admission::shares::{Scarce, Shares};
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// Always has something to say, and holds something meanwhile.
    struct Endless {
        _held: Arc<()>,
    }

    impl Source for Endless {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Chunk>> {
            Poll::Ready(Ok(Chunk::Some(COMMENT)))
        }

        fn heartbeat(&mut self) -> Bytes {
            Bytes::from_static(b"a heartbeat")
        }

        fn end_reason(&mut self) -> Option<Bytes> {
            None
        }

        fn refused(&mut self, _: WatchEndCode, detail: String) -> Bytes {
            detail.into()
        }

        fn ended(&mut self, _: WatchEndCode, detail: String) -> Bytes {
            detail.into()
        }
    }

    async fn next(body: &mut Sse<Endless>) -> Option<Bytes> {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        Some(frame.expect("no fault").into_data().expect("no trailers"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_always_has_something_to_send_is_asked_back_and_then_holds_nothing() {
        let shares = Shares::new(1, 4, 1);
        let lend = |name: &str| shares.lend(Account::User(name.into()), Scarce::Watches).expect("a place");
        let (_first, second) = (lend("ann"), lend("ann"));
        let stop = CancellationToken::new();
        let busy = Busy::new(ConnectionMonitor::new(stop, Duration::from_secs(60), Weak::new()));
        let held = Arc::new(());
        let source = Endless { _held: Arc::clone(&held) };
        let mut body = Sse { place: Some(second), ..Sse::new(source, Duration::from_secs(60), busy, None) };
        assert_eq!(next(&mut body).await, Some(COMMENT));
        let _of_others = ["bob", "cid"].map(lend);
        assert_eq!(next(&mut body).await, Some(COMMENT), "it is asked now and then");
        tokio::time::advance(Duration::from_millis(limits::WATCH_LOOK_MS + 1)).await;
        let last = next(&mut body).await.expect("the last words");
        assert!(last.starts_with(b"of the 4 watches of this node hardly any is left"), "{last:?}");
        assert!(body.is_end_stream());
        assert_eq!((Arc::strong_count(&held), shares.places(Scarce::Watches).taken()), (1, 3));
        assert_eq!(next(&mut body).await, None);
    }
}
