//! What a connection is doing at the moment, and since when.
//!
//! Owns the state that the watchdog of each connection looks at: an I/O wrapper and the request handler write it, with a
//! few relaxed atomics and no timer of their own. hyper's own header timeout would allocate and arm a timer for each
//! request, and counts an idle keep-alive connection as a slow header.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::net::Stream;

/// Stands for `not at the moment` in the marks below.
const NEVER: u64 = 0;

/// The state of one connection. All marks are milliseconds since `born`, plus one.
#[derive(Debug)]
pub struct ConnectionMonitor {
    born: Instant,
    /// Cancelled when no more may be asked on this connection.
    stop: CancellationToken,
    /// How long it may stand without a request; a stream without an operation.
    idle: Duration,
    /// Requests between complete head and complete answer.
    busy: AtomicU32,
    /// Those of them whose answer goes on until somebody ends it.
    endless: AtomicU32,
    /// Since when no request is in the works.
    idle_since: AtomicU64,
    /// When the first byte of an incomplete request head came.
    head_since: AtomicU64,
    /// Since when the peer takes nothing of what we want to send.
    stalled_since: AtomicU64,
    /// What of each answer waits for the peer to take it. The socket cannot tell: a peer may read it well and give one of the
    /// streams that share it no window, or read just enough of a long answer to be seen to read.
    takers: Mutex<Vec<Weak<Offer>>>,
    /// Whether the rest of a request is to be swallowed before the connection is closed.
    lingers: AtomicBool,
    /// Since when that happens.
    lingering_since: AtomicU64,
}

/// Why a connection should end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is fine.
    Fine,
    /// No request for too long: nobody loses anything.
    Idle,
    /// A request head that does not come to its end.
    SlowHead,
    /// An answer that is not read.
    Stalled,
    /// The rest of a refused request still comes; the peer had time to read the answer.
    Lingered,
}

/// How long each state may last.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For a request head; `None` for HTTP/2, where bytes between requests are not heads.
    pub head: Option<Duration>,
    /// Without a request.
    pub idle: Duration,
    /// Without progress in sending.
    pub stall: Duration,
}

impl ConnectionMonitor {
    /// A connection that was just accepted and has sent its first byte.
    pub fn new(stop: CancellationToken, idle: Duration) -> Arc<Self> {
        let monitor = Self {
            born: Instant::now(),
            stop,
            idle,
            busy: AtomicU32::new(0),
            endless: AtomicU32::new(0),
            idle_since: AtomicU64::new(NEVER),
            head_since: AtomicU64::new(NEVER),
            stalled_since: AtomicU64::new(NEVER),
            takers: Mutex::default(),
            lingers: AtomicBool::new(false),
            lingering_since: AtomicU64::new(NEVER),
        };
        monitor.idle_since.store(monitor.now(), Ordering::Relaxed);
        Arc::new(monitor)
    }

    /// Cancelled when no more may be asked on this connection.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// How long it may stand without anything to do.
    pub fn idle(&self) -> Duration {
        self.idle
    }

    fn now(&self) -> u64 {
        // Connections do not live for 2^64 milliseconds.
        self.born.elapsed().as_millis() as u64 + 1
    }

    /// A request head is complete.
    pub fn request_began(&self) {
        self.head_since.store(NEVER, Ordering::Relaxed);
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    /// The answer is complete, though perhaps not sent.
    pub fn request_ended(&self) {
        self.idle_since.store(self.now(), Ordering::Relaxed);
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }

    /// The connection ends with the answer under way, although the request may not have come whole.
    pub fn linger(&self) {
        self.lingers.store(true, Ordering::Relaxed);
    }

    fn bytes_came(&self) {
        if self.busy.load(Ordering::Relaxed) == 0 && self.head_since.load(Ordering::Relaxed) == NEVER {
            self.head_since.store(self.now(), Ordering::Relaxed);
        }
    }

    fn sending(&self, progress: bool) {
        let stalled = self.stalled_since.load(Ordering::Relaxed) != NEVER;
        if progress && stalled {
            self.stalled_since.store(NEVER, Ordering::Relaxed);
        } else if !progress && !stalled {
            self.stalled_since.store(self.now(), Ordering::Relaxed);
        }
    }

    /// When to judge it again, where that is done every `tick`. While it has an answer that goes on and on, only a peer that does
    /// not read it can be at fault, so there is time.
    pub fn next_look(&self, tick: Duration, patience: &Patience) -> Duration {
        match self.endless.load(Ordering::Relaxed) {
            0 => tick,
            _ => tick.max(patience.stall / 4),
        }
    }

    /// Judges the connection as it is now.
    pub fn verdict(&self, patience: &Patience) -> Verdict {
        if self.lasted(&self.stalled_since, patience.stall) || self.has_stalled_taker(patience.stall) {
            return Verdict::Stalled;
        }
        if self.lasted(&self.lingering_since, Duration::from_millis(limits::LINGER_MS)) {
            return Verdict::Lingered;
        }
        if self.busy.load(Ordering::Relaxed) > 0 {
            return Verdict::Fine;
        }
        if patience.head.is_some_and(|head| self.lasted(&self.head_since, head)) {
            return Verdict::SlowHead;
        }
        if self.lasted(&self.idle_since, patience.idle) { Verdict::Idle } else { Verdict::Fine }
    }

    /// Also forgets what was taken.
    fn has_stalled_taker(&self, limit: Duration) -> bool {
        let mut stalled = false;
        self.takers.lock().retain(|taker| {
            let Some(offer) = taker.upgrade() else { return false };
            stalled |= self.lasted(&offer.since, limit + offer.extra());
            true
        });
        stalled
    }

    /// Watches whether the peer takes what is offered to it.
    pub fn watch_taking(self: &Arc<Self>) -> Taking {
        let offer = Arc::new(Offer { since: AtomicU64::new(NEVER), bytes: AtomicU64::new(0) });
        let mut takers = self.takers.lock();
        // Between two verdicts many answers may come and go.
        if takers.len() == takers.capacity() {
            takers.retain(|taker| taker.strong_count() > 0);
        }
        takers.push(Arc::downgrade(&offer));
        drop(takers);
        Taking { monitor: Arc::clone(self), offer }
    }

    fn lasted(&self, mark: &AtomicU64, limit: Duration) -> bool {
        let since = mark.load(Ordering::Relaxed);
        since != NEVER && u128::from(self.now().saturating_sub(since)) >= limit.as_millis()
    }
}

/// Marks a request as in the works as long as it lives.
pub struct Busy {
    monitor: Arc<ConnectionMonitor>,
    is_endless: bool,
}

impl Busy {
    /// A request head is complete.
    pub fn new(monitor: Arc<ConnectionMonitor>) -> Self {
        monitor.request_began();
        Self { monitor, is_endless: false }
    }

    /// The answer goes on until somebody ends it.
    pub fn goes_on(&mut self) {
        if !std::mem::replace(&mut self.is_endless, true) {
            self.monitor.endless.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Of the connection.
    pub fn monitor(&self) -> &Arc<ConnectionMonitor> {
        &self.monitor
    }
}

/// What waits for the peer to take it.
#[derive(Debug)]
struct Offer {
    /// Since when.
    since: AtomicU64,
    /// How much it is.
    bytes: AtomicU64,
}

impl Offer {
    /// The time that it may take beyond that of a peer which takes nothing.
    fn extra(&self) -> Duration {
        Duration::from_millis(self.bytes.load(Ordering::Relaxed) * 1_000 / limits::ANSWER_RATE_MIN)
    }
}

/// Whether the peer takes an answer, or one frame of it after the other.
pub struct Taking {
    monitor: Arc<ConnectionMonitor>,
    offer: Arc<Offer>,
}

impl Taking {
    /// So many bytes are offered.
    pub fn offered(&self, bytes: usize) {
        self.offer.bytes.store(bytes as u64, Ordering::Relaxed);
        self.offer.since.store(self.monitor.now(), Ordering::Relaxed);
    }

    /// They were taken, or there is room for the next ones.
    pub fn taken(&self) {
        self.offer.since.store(NEVER, Ordering::Relaxed);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.is_endless {
            self.monitor.endless.fetch_sub(1, Ordering::Relaxed);
        }
        self.monitor.request_ended();
    }
}

/// A stream that keeps its monitor.
pub struct Watched {
    stream: Stream,
    monitor: Arc<ConnectionMonitor>,
    /// Bytes swallowed since the answer.
    swallowed: usize,
}

impl Watched {
    /// Wraps a stream.
    pub fn new(stream: impl Into<Stream>, monitor: Arc<ConnectionMonitor>) -> Self {
        Self { stream: stream.into(), monitor, swallowed: 0 }
    }

    /// Reads and forgets until the peer ends, or has sent more than anyone should.
    fn poll_swallow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0u8; 4_096];
        while self.swallowed < limits::LINGER_BYTES {
            let mut buf = ReadBuf::new(&mut scratch);
            let outcome = std::task::ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf));
            if outcome.is_err() || buf.filled().is_empty() {
                break;
            }
            self.swallowed += buf.filled().len();
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        if outcome.is_ready() && buf.filled().len() > before {
            self.monitor.bytes_came();
        }
        outcome
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.monitor.sending(outcome.is_ready());
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.monitor.sending(outcome.is_ready());
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        if self.monitor.lingers.load(Ordering::Relaxed) {
            let now = self.monitor.now();
            // Only the first of several polls sets the mark.
            let _first =
                self.monitor.lingering_since.compare_exchange(NEVER, now, Ordering::Relaxed, Ordering::Relaxed);
            std::task::ready!(self.poll_swallow(cx));
        }
        Poll::Ready(Ok(()))
    }
}
