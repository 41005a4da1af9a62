//! One established outgoing connection: what waits for answers on it, and its life and death.
//!
//! Owns the routes from an answer's id to who waits for it. Ids are never used twice on a connection and a route never
//! outlives it, so an answer cannot reach a later question. Never dials: that is the channel's business.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use quorate_threads::watchdog;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::counters::{ChannelCounters, ChannelKind, Counters};
use super::frame::{Frame, FrameError, FrameKind, FrameReader, HEADER_BYTES, Outgoing};
use super::limits::{CALL_BYTES_IN_FLIGHT_MAX, CALLS_MAX};
use super::writer::{self, FrameSender, QueueClosed};

/// Idle ticks after which a connection is asked whether it still lives.
const IDLE_TICKS: u32 = 20;
/// Ticks that a ping may go unanswered.
const PING_TICKS: u32 = 2;

enum Route {
    Once(oneshot::Sender<Frame>),
    Many(mpsc::Sender<Frame>),
}

/// A connection that passed the handshake. Closing it fails everything that waits on it.
pub(super) struct Connection {
    out: FrameSender,
    /// `None` once closed, so that nobody can begin to wait after that.
    routes: Mutex<Option<HashMap<u64, Route>>>,
    next_id: AtomicU64,
    closing: CancellationToken,
    reason: OnceLock<String>,
    /// Set once nothing new may begin here; the connection closes with the last answer.
    retired: AtomicBool,
    /// Our cluster id as the peer heard it.
    pub local_cluster: Option<u128>,
    pub established: Instant,
    /// Room for further calls and for their bytes.
    pub calls: Semaphore,
    pub call_bytes: Semaphore,
}

impl Connection {
    /// Takes over a socket after the handshake. A peer that is silent for `dead_after` while it should speak is given
    /// up.
    pub fn start<R, W>(
        reader: FrameReader<R>,
        write: W,
        channel: ChannelKind,
        counters: Arc<Counters>,
        local_cluster: Option<u128>,
        dead_after: Duration,
    ) -> Arc<Self>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (out, queue) = writer::queue();
        let connection = Arc::new(Self {
            out,
            routes: Mutex::new(Some(HashMap::new())),
            next_id: AtomicU64::new(1),
            closing: CancellationToken::new(),
            reason: OnceLock::new(),
            retired: AtomicBool::new(false),
            local_cluster,
            established: Instant::now(),
            calls: Semaphore::new(CALLS_MAX),
            call_bytes: Semaphore::new(CALL_BYTES_IN_FLIGHT_MAX),
        });
        let (writing, writing_counters) = (Arc::clone(&connection), Arc::clone(&counters));
        watchdog::spawn(async move {
            let work = writer::run(write, queue, writing_counters.channel(channel));
            if let Some(Err(error)) = writing.closing.clone().run_until_cancelled(work).await {
                writing.close(format!("writing to the peer failed: {error}"));
            }
        });
        let reading = Arc::clone(&connection);
        watchdog::spawn(async move {
            let work = reading.read(reader, counters.channel(channel), dead_after);
            let reason = reading.closing.clone().run_until_cancelled(work).await;
            reading.close(reason.unwrap_or_else(|| "the connection was closed".into()));
        });
        connection
    }

    /// Ends the connection. The first reason given stays.
    pub fn close(&self, reason: impl Into<String>) {
        self.reason.get_or_init(|| reason.into());
        self.closing.cancel();
        drop(self.routes.lock().take());
    }

    pub fn is_closed(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Why it was closed.
    pub fn reason(&self) -> String {
        self.reason.get().cloned().unwrap_or_else(|| "the connection is open".into())
    }

    /// Begins to wait for one answer; `None` where the connection is closed.
    pub fn expect_one(&self) -> Option<Waiting<'_>> {
        let (sender, answer) = oneshot::channel();
        Some(Waiting { connection: self, id: self.register(Route::Once(sender))?, answer })
    }

    /// Begins to wait for up to `window` answers at a time.
    pub fn expect_many(&self, window: usize) -> Option<(u64, mpsc::Receiver<Frame>)> {
        let (sender, receiver) = mpsc::channel(window);
        Some((self.register(Route::Many(sender))?, receiver))
    }

    fn register(&self, route: Route) -> Option<u64> {
        let id = self.next_id.fetch_add(1, Relaxed);
        self.routes.lock().as_mut()?.insert(id, route);
        Some(id)
    }

    /// Nobody waits for this id any more.
    pub fn forget(&self, id: u64) {
        if let Some(routes) = self.routes.lock().as_mut() {
            routes.remove(&id);
        }
        self.close_if_done();
    }

    /// Closes the connection as soon as nobody waits on it. The channel hands out another from now on.
    pub fn retire(&self) {
        self.retired.store(true, Relaxed);
        self.close_if_done();
    }

    fn close_if_done(&self) {
        if self.retired.load(Relaxed) && !self.is_awaited() {
            self.close("the connection was replaced");
        }
    }

    /// Queues a frame, waiting for room.
    pub async fn send(&self, frame: Outgoing) -> Result<(), QueueClosed> {
        let sending = self.closing.run_until_cancelled(self.out.send(frame));
        sending.await.unwrap_or(Err(QueueClosed))
    }

    /// Queues a small frame if there is room.
    pub fn try_send(&self, frame: Outgoing) -> bool {
        self.out.try_send(frame)
    }

    async fn read<R>(&self, mut reader: FrameReader<R>, counters: &ChannelCounters, dead_after: Duration) -> String
    where
        R: AsyncRead + Unpin,
    {
        let mut ticks = interval((dead_after / 3).max(Duration::from_millis(5)));
        // A process that was stopped for a while must not take the missed ticks for the peer's silence.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut monitor = ConnectionMonitor::default();
        loop {
            tokio::select! {
                biased;
                frame = reader.next() => match self.on_read(frame, counters) {
                    Ok(()) => monitor = ConnectionMonitor::default(),
                    Err(reason) => return reason,
                },
                _ = ticks.tick() => match monitor.on_tick(self.is_awaited()) {
                    Beat::Fine => {}
                    Beat::Ask => monitor.asked = self.try_send(Outgoing::bare(FrameKind::Ping, 0)).then_some(0),
                    Beat::Dead => return format!("the peer was silent for {} ms", dead_after.as_millis()),
                },
            }
        }
    }

    fn is_awaited(&self) -> bool {
        self.routes.lock().as_ref().is_some_and(|routes| !routes.is_empty())
    }

    fn on_read(&self, frame: Result<Option<Frame>, FrameError>, counters: &ChannelCounters) -> Result<(), String> {
        let frame = frame.map_err(|error| format!("reading from the peer failed: {error}"))?;
        let frame = frame.ok_or("the peer closed the connection")?;
        ChannelCounters::add(&counters.frames_received, 1);
        ChannelCounters::add(&counters.bytes_received, HEADER_BYTES + frame.body.len());
        if frame.kind == FrameKind::Pong {
            return Ok(());
        }
        self.deliver(frame)
    }

    /// An answer nobody waits for is late and of no use to anyone.
    fn deliver(&self, frame: Frame) -> Result<(), String> {
        let mut guard = self.routes.lock();
        let Some(routes) = guard.as_mut() else { return Ok(()) };
        let id = frame.id;
        let overflown = match routes.get(&id) {
            None => false,
            Some(Route::Many(sender)) => matches!(sender.try_send(frame), Err(mpsc::error::TrySendError::Full(_))),
            Some(Route::Once(_)) => {
                if let Some(Route::Once(sender)) = routes.remove(&id) {
                    // The caller may have given up in this moment; then its answer is late as well.
                    drop(sender.send(frame));
                }
                false
            }
        };
        if overflown { Err("the peer sent more answers than there were questions".into()) } else { Ok(()) }
    }
}

/// Waits for one answer. Its route goes with it, also where the wait is given up.
pub(super) struct Waiting<'c> {
    connection: &'c Connection,
    /// Names the question on this connection.
    pub id: u64,
    answer: oneshot::Receiver<Frame>,
}

impl Waiting<'_> {
    /// The answer; `None` where the connection closed before it came.
    pub async fn answer(&mut self) -> Option<Frame> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.connection.forget(self.id);
    }
}

/// Whether the peer still lives. Begins anew with each frame received.
#[derive(Default)]
struct ConnectionMonitor {
    quiet: u32,
    /// Ticks since an unanswered ping.
    asked: Option<u32>,
}

enum Beat {
    Fine,
    Ask,
    Dead,
}

impl ConnectionMonitor {
    fn on_tick(&mut self, awaited: bool) -> Beat {
        self.quiet += 1;
        if let Some(ticks) = &mut self.asked {
            *ticks += 1;
            return if *ticks >= PING_TICKS { Beat::Dead } else { Beat::Fine };
        }
        if self.quiet > IDLE_TICKS || (awaited && self.quiet > 1) { Beat::Ask } else { Beat::Fine }
    }
}
