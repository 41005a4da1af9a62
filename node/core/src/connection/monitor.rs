//! What a connection is doing at the moment, and since when.
//!
//! Owns the state that the watchdog of each connection looks at: an I/O wrapper and the request handler write it, with a
//! few relaxed atomics and no timer of their own. hyper's own header timeout would allocate and arm a timer for each
//! request, and counts an idle keep-alive connection as a slow header.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::connection::origin::Neighbour;
use crate::evicting_limit::{EvictingPermit, Idle, Standing};
use crate::limits;
use crate::net::{self, Stream};

/// Stands for `not at the moment` in the marks below.
const NEVER: u64 = 0;

/// The state of one connection. All marks are milliseconds since `born`, plus one.
#[derive(Debug)]
pub struct ConnectionMonitor {
    born: Instant,
    /// Cancelled when no more may be asked on this connection.
    stop: CancellationToken,
    /// The number of its socket, as long as that is open.
    socket: AtomicI32,
    /// How long it may stand without a request; a stream without an operation.
    idle: Duration,
    /// Its place among all connections. Not held: the task that serves it gives it back.
    place: Weak<EvictingPermit<Neighbour>>,
    /// The standing that its place knows of.
    standing: AtomicU8,
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
    takers: Mutex<Vec<Taker>>,
    /// When the peer has to have taken the bytes on their way, since others need the memory.
    wanted_by: AtomicU64,
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
    /// Nobody is there any more to whom a request in the works could be answered.
    HungUp,
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
    pub fn new(stop: CancellationToken, idle: Duration, place: Weak<EvictingPermit<Neighbour>>) -> Arc<Self> {
        let monitor = Self {
            born: Instant::now(),
            stop,
            socket: AtomicI32::new(net::NO_SOCKET),
            idle,
            place,
            standing: AtomicU8::new(Standing::Stranger as u8),
            busy: AtomicU32::new(0),
            endless: AtomicU32::new(0),
            idle_since: AtomicU64::new(NEVER),
            head_since: AtomicU64::new(NEVER),
            stalled_since: AtomicU64::new(NEVER),
            takers: Mutex::default(),
            wanted_by: AtomicU64::new(NEVER),
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

    /// Whether its place was told of so much, or more.
    pub fn has_shown(&self, standing: Standing) -> bool {
        self.standing.load(Ordering::Relaxed) >= standing as u8
    }

    /// Records that the connection has shown this standing, also with its place.
    pub fn prove(self: &Arc<Self>, standing: Standing) {
        self.prove_with(standing, |place, idle| place.prove(standing, idle));
    }

    /// The same where it has shown whose it is.
    pub fn prove_person(self: &Arc<Self>, person: &Arc<str>) {
        self.prove_with(Standing::Known, |place, idle| place.prove_person(person, idle));
    }

    fn prove_with(self: &Arc<Self>, standing: Standing, tell: impl FnOnce(&EvictingPermit<Neighbour>, Weak<dyn Idle>)) {
        // Every request asks, and the first one only has something to tell.
        if self.has_shown(standing) {
            return;
        }
        self.standing.fetch_max(standing as u8, Ordering::Relaxed);
        if let Some(place) = self.place.upgrade() {
            let own: Weak<Self> = Arc::downgrade(self);
            let idle: Weak<dyn Idle> = own;
            tell(&place, idle);
        }
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
        self.verdict_at(self.now(), patience)
    }

    fn verdict_at(&self, now: u64, patience: &Patience) -> Verdict {
        if lasted(&self.stalled_since, now, patience.stall) || self.has_stalled_taker(now, patience.stall) {
            return Verdict::Stalled;
        }
        if self.keeps_what_others_need(now) {
            return Verdict::Stalled;
        }
        if lasted(&self.lingering_since, now, Duration::from_millis(limits::LINGER_MS)) {
            return Verdict::Lingered;
        }
        if self.busy.load(Ordering::Relaxed) > 0 {
            // HTTP/2 reads all the time and sees it by itself. HTTP/1.1 reads no further than the beginning of the next request, and behind
            // that an end is not seen: a request that waits would do so for as long as it may, and be given a lock that nobody hears of.
            let has_hung_up = patience.head.is_some() && net::has_hung_up(self.socket.load(Ordering::Relaxed));
            return if has_hung_up { Verdict::HungUp } else { Verdict::Fine };
        }
        if patience.head.is_some_and(|head| lasted(&self.head_since, now, head)) {
            return Verdict::SlowHead;
        }
        if lasted(&self.idle_since, now, patience.idle) { Verdict::Idle } else { Verdict::Fine }
    }

    /// Also forgets the answers that are over.
    fn has_stalled_taker(&self, now: u64, limit: Duration) -> bool {
        let mut stalled = false;
        self.takers.lock().retain_mut(|taker| {
            let Some(offer) = taker.offer.upgrade() else { return false };
            let bytes = offer.bytes.load(Ordering::Relaxed);
            stalled |= lasted(&offer.since, now, limit + time_for(bytes)) || taker.round.is_late(&offer, now, limit);
            true
        });
        stalled
    }

    /// Bytes of its answers that are on their way, without those that take no memory of their own.
    pub fn on_its_way(&self) -> u64 {
        let takers = self.takers.lock();
        takers.iter().filter_map(|taker| taker.offer.upgrade()).map(|offer| offer.takes()).sum()
    }

    /// Others need the memory that its answers hold: its peer has to take the bytes on their way by now, as fast as a network is, or the
    /// connection ends. `false` where no bytes are, and where this was asked before: the earlier deadline holds.
    pub fn want_room(&self) -> bool {
        self.want_room_at(self.now())
    }

    fn want_room_at(&self, now: u64) -> bool {
        let mut takers = self.takers.lock();
        if self.wanted_by.load(Ordering::Relaxed) != NEVER {
            return false;
        }
        let mut bytes = 0;
        for taker in takers.iter_mut() {
            let Some(offer) = taker.offer.upgrade() else { continue };
            bytes += offer.takes();
            taker.wanted = if offer.is_lent { 0 } else { offer.handed.load(Ordering::Relaxed) };
        }
        if bytes > 0 {
            let time = limits::ANSWER_ROOM_GRACE_MS + bytes.saturating_mul(1_000) / limits::ANSWER_ROOM_RATE_MIN;
            self.wanted_by.store(now + time, Ordering::Relaxed);
        }
        bytes > 0
    }

    /// The time is over, and bytes that were on their way when others needed the memory still are. Bytes handed on later do not count: a
    /// peer that reads always has some on their way. Taking a few is no excuse for the rest.
    fn keeps_what_others_need(&self, now: u64) -> bool {
        if self.wanted_by.load(Ordering::Relaxed) == NEVER {
            return false;
        }
        let takers = self.takers.lock();
        let keeps = |taker: &Taker| {
            taker.offer.upgrade().is_some_and(|offer| offer.gone.load(Ordering::Relaxed) < taker.wanted)
        };
        if !takers.iter().any(keeps) {
            self.wanted_by.store(NEVER, Ordering::Relaxed);
            return false;
        }
        now >= self.wanted_by.load(Ordering::Relaxed)
    }

    /// Watches whether the peer takes what is offered to it.
    pub fn watch_taking(self: &Arc<Self>) -> Taking {
        self.watch(Offer::default())
    }

    /// The same for bytes that stay in memory anyway: taking them gives others no room.
    pub fn watch_taking_lent(self: &Arc<Self>) -> Taking {
        self.watch(Offer { is_lent: true, ..Offer::default() })
    }

    fn watch(self: &Arc<Self>, offer: Offer) -> Taking {
        let offer = Arc::new(offer);
        let mut takers = self.takers.lock();
        // Between two verdicts many answers may come and go.
        if takers.len() == takers.capacity() {
            takers.retain(|taker| taker.offer.strong_count() > 0);
        }
        takers.push(Taker { offer: Arc::downgrade(&offer), round: Round::default(), wanted: 0 });
        drop(takers);
        Taking { monitor: Arc::clone(self), offer }
    }
}

impl Idle for ConnectionMonitor {
    fn idle_for(&self) -> Option<Duration> {
        let since = self.idle_since.load(Ordering::Relaxed);
        let is_busy = self.busy.load(Ordering::Relaxed) > 0;
        (!is_busy).then(|| Duration::from_millis(self.now().saturating_sub(since)))
    }
}

fn lasted(mark: &AtomicU64, now: u64, limit: Duration) -> bool {
    let since = mark.load(Ordering::Relaxed);
    since != NEVER && u128::from(now.saturating_sub(since)) >= limit.as_millis()
}

/// The time that so many bytes may take beyond that of a peer which takes nothing.
fn time_for(bytes: u64) -> Duration {
    Duration::from_millis(bytes.saturating_mul(1_000) / limits::ANSWER_RATE_MIN)
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

/// What waits for the peer to take it: all of an answer, or of its frames.
#[derive(Debug, Default)]
struct Offer {
    /// Since when the peer has not asked for the next frame.
    since: AtomicU64,
    /// How long the last one was.
    bytes: AtomicU64,
    /// Bytes that were handed on since the beginning.
    handed: AtomicU64,
    /// Those of them that are gone.
    gone: AtomicU64,
    /// Whether they take no memory of their own.
    is_lent: bool,
}

impl Offer {
    /// Bytes of memory that it takes.
    fn takes(&self) -> u64 {
        let gone = self.gone.load(Ordering::Relaxed);
        if self.is_lent { 0 } else { self.handed.load(Ordering::Relaxed).saturating_sub(gone) }
    }
}

/// An answer, and how far its peer was seen to take it.
#[derive(Debug)]
struct Taker {
    offer: Weak<Offer>,
    round: Round,
    /// How many bytes had been handed on when others needed their memory.
    wanted: u64,
}

/// What of an answer was on its way at some verdict. All of it has to be gone in time; then the next round begins with what is on its way
/// by then. So frames are judged together, however many there are, and they go in the order in which they came.
#[derive(Debug, Default)]
struct Round {
    since: u64,
    /// How many bytes had been handed on.
    until: u64,
    /// How many of them were on their way.
    bytes: u64,
}

impl Round {
    /// Whether what is on its way has been for too long.
    fn is_late(&mut self, offer: &Offer, now: u64, limit: Duration) -> bool {
        let gone = offer.gone.load(Ordering::Relaxed);
        if gone < self.until {
            return u128::from(now.saturating_sub(self.since)) >= (limit + time_for(self.bytes)).as_millis();
        }
        let until = offer.handed.load(Ordering::Relaxed);
        *self = Self { since: now, until, bytes: until.saturating_sub(gone) };
        false
    }
}

/// Whether the peer takes an answer, or one frame of it after the other.
pub struct Taking {
    monitor: Arc<ConnectionMonitor>,
    offer: Arc<Offer>,
}

impl Taking {
    /// So many bytes are offered: from now on the peer is to ask for the next ones.
    pub fn offered(&self, bytes: usize) {
        self.offer.bytes.store(bytes as u64, Ordering::Relaxed);
        self.offer.since.store(self.monitor.now(), Ordering::Relaxed);
    }

    /// It does.
    pub fn taken(&self) {
        self.offer.since.store(NEVER, Ordering::Relaxed);
    }

    /// So many bytes are on their way, until what is returned is dropped.
    pub fn hand_on(&self, bytes: usize) -> OnItsWay {
        self.offer.handed.fetch_add(bytes as u64, Ordering::Relaxed);
        OnItsWay { offer: Arc::clone(&self.offer), bytes: bytes as u64 }
    }
}

/// Bytes of an answer that are on their way.
#[derive(Debug)]
pub struct OnItsWay {
    offer: Arc<Offer>,
    bytes: u64,
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.offer.gone.fetch_add(self.bytes, Ordering::Relaxed);
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
    /// Bytes written since others had the thread.
    burst: usize,
}

impl Watched {
    /// Wraps a stream.
    pub fn new(stream: impl Into<Stream>, monitor: Arc<ConnectionMonitor>) -> Self {
        let stream = stream.into();
        monitor.socket.store(stream.socket(), Ordering::Relaxed);
        Self { stream, monitor, swallowed: 0, burst: 0 }
    }

    /// How much may be written before others get the thread; they get it where that is nothing.
    fn poll_burst(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        if self.burst < limits::WRITE_BURST_BYTES {
            return Poll::Ready(limits::WRITE_BURST_BYTES - self.burst);
        }
        self.burst = 0;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn wrote(&mut self, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.monitor.sending(outcome.is_ready());
        match &outcome {
            Poll::Ready(Ok(written)) => self.burst += written,
            Poll::Ready(Err(_)) | Poll::Pending => self.burst = 0,
        }
        outcome
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

impl Drop for Watched {
    fn drop(&mut self) {
        // The system gives the number to the next socket.
        self.monitor.socket.store(net::NO_SOCKET, Ordering::Relaxed);
    }
}

/// Parts of a write that is cut.
const PARTS_MAX: usize = 64;

/// Puts so many bytes at the beginning of `bufs` into `parts`, and says into how many.
fn cut<'a>(bufs: &'a [io::IoSlice<'_>], most: usize, parts: &mut [io::IoSlice<'a>; PARTS_MAX]) -> usize {
    let (mut left, mut count) = (most, 0);
    for buf in bufs.iter().filter(|buf| !buf.is_empty()) {
        if left == 0 || count == PARTS_MAX {
            break;
        }
        let length = buf.len().min(left);
        parts[count] = io::IoSlice::new(&buf[..length]);
        (left, count) = (left - length, count + 1);
    }
    count
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
        let most = std::task::ready!(self.poll_burst(cx));
        let outcome = Pin::new(&mut self.stream).poll_write(cx, &buf[..buf.len().min(most)]);
        self.wrote(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let most = std::task::ready!(self.poll_burst(cx));
        let outcome = if bufs.iter().map(|buf| buf.len()).sum::<usize>() <= most {
            Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
        } else {
            let mut parts = [io::IoSlice::new(&[]); PARTS_MAX];
            let count = cut(bufs, most, &mut parts);
            Pin::new(&mut self.stream).poll_write_vectored(cx, &parts[..count])
        };
        self.wrote(outcome)
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

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::evicting_limit::EvictingLimit;
    use crate::net::Simulated;

    const SECOND: u64 = 1_000;

    fn patience() -> Patience {
        Patience { head: Some(Duration::from_secs(10)), idle: Duration::from_secs(300), stall: Duration::from_secs(30) }
    }

    fn monitor() -> Arc<ConnectionMonitor> {
        ConnectionMonitor::new(CancellationToken::new(), Duration::from_secs(300), Weak::new())
    }

    impl ConnectionMonitor {
        /// The verdict some seconds from now.
        fn after(&self, seconds: u64) -> Verdict {
            self.verdict_at(self.now() + seconds * SECOND, &patience())
        }

        /// Whether others were said to need the memory that its answers hold.
        pub fn has_to_make_room(&self) -> bool {
            self.wanted_by.load(Ordering::Relaxed) != NEVER
        }
    }

    #[test]
    fn a_connection_without_a_request_is_idle_in_time_and_one_with_a_request_never() {
        let monitor = monitor();
        assert_eq!((monitor.after(299), monitor.after(300)), (Verdict::Fine, Verdict::Idle));
        let busy = Busy::new(Arc::clone(&monitor));
        assert_eq!(monitor.after(1_000_000), Verdict::Fine);
        drop(busy);
        assert_eq!((monitor.after(299), monitor.after(301)), (Verdict::Fine, Verdict::Idle));
    }

    #[test]
    fn a_connection_that_has_shown_who_it_is_keeps_its_place_and_one_that_waits_is_not_idle() {
        let limit = EvictingLimit::new(4, 4);
        let of = |last: u8| Neighbour::from(IpAddr::from([10, 0, 0, last]));
        let connect = |last| {
            let end = CancellationToken::new();
            let place = Arc::new(limit.take(of(last), end.clone()).expect("there is room"));
            let monitor =
                ConnectionMonitor::new(CancellationToken::new(), Duration::from_secs(60), Arc::downgrade(&place));
            (place, monitor, end)
        };
        let (_known_place, known, known_end) = connect(1);
        assert!(!known.has_shown(Standing::Served));
        known.prove(Standing::Known);
        known.prove(Standing::Served);
        assert!(known.has_shown(Standing::Served) && known.has_shown(Standing::Known));
        let (_silent_place, _silent, silent_end) = connect(1);
        let crowd = [connect(2), connect(2)];
        let newcomer = connect(3);
        assert!(crowd[0].2.is_cancelled(), "the older one of the largest crowd of those that have shown nothing");
        assert!(!known_end.is_cancelled() && !silent_end.is_cancelled());
        assert!(!crowd[1].2.is_cancelled() && !newcomer.2.is_cancelled());
        let busy = Busy::new(Arc::clone(&known));
        assert_eq!(known.idle_for(), None);
        drop(busy);
        assert!(known.idle_for().is_some());
    }

    #[test]
    fn a_head_has_its_time_and_bytes_beside_a_request_are_none() {
        let monitor = monitor();
        monitor.bytes_came();
        assert_eq!((monitor.after(9), monitor.after(10)), (Verdict::Fine, Verdict::SlowHead));
        let over_http2 = Patience { head: None, ..patience() };
        assert_eq!(monitor.verdict_at(monitor.now() + 10 * SECOND, &over_http2), Verdict::Fine);
        let busy = Busy::new(Arc::clone(&monitor));
        // The body of the request, or the next one behind it.
        monitor.bytes_came();
        assert_eq!(monitor.after(10), Verdict::Fine);
        drop(busy);
        assert_eq!(monitor.after(10), Verdict::Fine, "the head came whole");
    }

    #[test]
    fn a_peer_that_takes_nothing_has_stalled_whatever_else_it_does() {
        let monitor = monitor();
        let _busy = Busy::new(Arc::clone(&monitor));
        monitor.sending(false);
        assert_eq!((monitor.after(29), monitor.after(30)), (Verdict::Fine, Verdict::Stalled));
        monitor.sending(true);
        assert_eq!(monitor.after(30), Verdict::Fine);
    }

    #[test]
    fn a_reader_by_drops_has_the_time_of_the_least_rate_and_no_more() {
        let monitor = monitor();
        let _busy = Busy::new(Arc::clone(&monitor));
        let taking = monitor.watch_taking();
        // A hundred seconds at the least rate.
        let answer = taking.hand_on(100 * limits::ANSWER_RATE_MIN as usize);
        drop(taking);
        assert_eq!(monitor.after(0), Verdict::Fine, "it begins");
        for second in 1..130 {
            // A byte now and then.
            monitor.sending(false);
            monitor.sending(true);
            assert_eq!(monitor.after(second), Verdict::Fine, "{second}");
        }
        assert_eq!(monitor.after(131), Verdict::Stalled);
        drop(answer);
        assert_eq!(monitor.after(131), Verdict::Fine, "all of it is gone");
        assert!(monitor.takers.lock().is_empty(), "and forgotten");
    }

    #[test]
    fn what_others_need_the_memory_of_has_to_be_taken_as_fast_as_a_network_is() {
        const EACH: usize = limits::ANSWER_ROOM_RATE_MIN as usize;
        // The grace, and a second for each of two.
        const BY: u64 = 10 + limits::ANSWER_ROOM_GRACE_MS + 2_000;
        let monitor = monitor();
        let verdict = |now| monitor.verdict_at(now, &patience());
        let taking = monitor.watch_taking();
        let (first, second) = (taking.hand_on(EACH), taking.hand_on(EACH));
        assert_eq!((monitor.on_its_way(), verdict(BY)), (2 * EACH as u64, Verdict::Fine), "nobody needs it");
        assert!(monitor.want_room_at(10));
        assert_eq!(verdict(10), Verdict::Fine, "whoever reads has the time to take it");
        assert!(!monitor.want_room_at(BY - 1));
        drop(first);
        assert_eq!(verdict(BY - 1), Verdict::Fine);
        assert_eq!(verdict(BY), Verdict::Stalled, "a part of it is no excuse, and asking again puts nothing off");
        let third = taking.hand_on(EACH);
        drop(second);
        assert_eq!(verdict(BY), Verdict::Fine, "what came later was not asked for");
        assert!(monitor.want_room_at(BY));
        drop((third, taking));
        assert_eq!((monitor.on_its_way(), verdict(2 * BY)), (0, Verdict::Fine), "all of it is taken");
    }

    #[test]
    fn what_is_lent_takes_no_memory_that_others_need() {
        let monitor = monitor();
        let taking = monitor.watch_taking_lent();
        let _lent = taking.hand_on(1_000_000);
        assert!(!monitor.want_room_at(10));
        let later = 11 + 2 * limits::ANSWER_ROOM_GRACE_MS;
        assert_eq!((monitor.on_its_way(), monitor.verdict_at(later, &patience())), (0, Verdict::Fine));
    }

    #[test]
    fn a_stream_may_always_have_something_on_its_way_while_its_reader_is_fast_enough() {
        const FRAME: usize = 2 * limits::ANSWER_RATE_MIN as usize;
        let monitor = monitor();
        let _busy = Busy::new(Arc::clone(&monitor));
        let taking = monitor.watch_taking();
        let mut on_its_way = std::collections::VecDeque::from([taking.hand_on(FRAME)]);
        // Each frame is taken before the next verdict, with another one behind it.
        for second in 0..600 {
            on_its_way.push_back(taking.hand_on(FRAME));
            drop(on_its_way.pop_front());
            assert_eq!(monitor.after(second), Verdict::Fine, "{second}");
        }
        // From now on none is.
        assert_eq!(monitor.after(600), Verdict::Fine);
        on_its_way.push_back(taking.hand_on(FRAME));
        assert_eq!(monitor.after(625), Verdict::Fine, "30 s and those of a frame");
        assert_eq!(monitor.after(640), Verdict::Stalled);
    }

    #[test]
    fn short_frames_that_go_one_by_one_are_judged_together() {
        let monitor = monitor();
        let taking = monitor.watch_taking();
        let mut on_its_way: Vec<_> = (0..1_000).map(|_| taking.hand_on(100)).collect();
        on_its_way.reverse();
        assert_eq!(monitor.after(0), Verdict::Fine);
        for second in 1..=30 {
            // One frame a second goes, and another comes.
            drop(on_its_way.pop());
            on_its_way.insert(0, taking.hand_on(100));
            assert_eq!(monitor.after(second), Verdict::Fine, "{second}");
        }
        assert_eq!(
            monitor.after(34),
            Verdict::Stalled,
            "what was there at first is not gone after 30 s and its own two"
        );
    }

    #[test]
    fn a_peer_that_does_not_ask_for_the_next_frame_has_stalled_with_nothing_on_its_way() {
        let monitor = monitor();
        let _busy = Busy::new(Arc::clone(&monitor));
        let taking = monitor.watch_taking();
        taking.offered(0);
        assert_eq!((monitor.after(29), monitor.after(31)), (Verdict::Fine, Verdict::Stalled));
        taking.offered(10 * limits::ANSWER_RATE_MIN as usize);
        assert_eq!((monitor.after(39), monitor.after(41)), (Verdict::Fine, Verdict::Stalled));
        taking.taken();
        assert_eq!(monitor.after(41), Verdict::Fine);
    }

    #[test]
    fn the_rest_of_a_refused_request_is_not_waited_for_long() {
        let monitor = monitor();
        monitor.lingering_since.store(monitor.now(), Ordering::Relaxed);
        assert_eq!((monitor.after(0), monitor.after(2)), (Verdict::Fine, Verdict::Lingered));
    }

    /// A socket whose kernel has room for everything.
    struct TakesAll;

    impl AsyncRead for TakesAll {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for TakesAll {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(data.len()))
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            parts: &[io::IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(parts.iter().map(|part| part.len()).sum()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl Simulated for TakesAll {
        fn poll_peek(&mut self, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<usize>> {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn others_get_the_thread_though_the_socket_takes_all_at_once() {
        const BURST: usize = limits::WRITE_BURST_BYTES;
        let mut watched = Watched::new(Stream::Simulated(Box::new(TakesAll)), monitor());
        let data = vec![7; 3 * BURST];
        let (small, large) = (io::IoSlice::new(&data[..10]), io::IoSlice::new(&data));
        for parts in [&[large][..], &[small, small, large], &[io::IoSlice::new(&[]), large]] {
            let written = std::future::poll_fn(|cx| {
                let mut written = 0;
                // Until it gives way, or has had what two turns take.
                while written < 2 * BURST {
                    match Pin::new(&mut watched).poll_write_vectored(cx, parts) {
                        Poll::Ready(Ok(more)) => written += more,
                        Poll::Ready(Err(error)) => panic!("{error}"),
                        Poll::Pending => break,
                    }
                }
                Poll::Ready(written)
            });
            assert_eq!(written.await, BURST, "{} parts", parts.len());
            assert_eq!(watched.burst, 0, "the next turn begins");
        }
        let written = std::future::poll_fn(|cx| Pin::new(&mut watched).poll_write(cx, &data));
        assert_eq!(written.await.unwrap(), BURST);
        assert_eq!(watched.monitor.stalled_since.load(Ordering::Relaxed), NEVER, "to give way is not to be stalled");
    }

    #[test]
    fn parts_are_cut_where_the_room_ends() {
        let data = [0; 10];
        let parts = [4, 0, 6, 10].map(|length| io::IoSlice::new(&data[..length]));
        let lengths = |most| {
            let mut into = [io::IoSlice::new(&[]); PARTS_MAX];
            let count = cut(&parts, most, &mut into);
            into[..count].iter().map(|part| part.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(3), [3]);
        assert_eq!(lengths(4), [4]);
        assert_eq!(lengths(11), [4, 6, 1]);
    }

    #[test]
    fn answers_that_go_on_are_looked_at_rarely_and_those_that_are_over_leave_nothing() {
        let (monitor, tick) = (monitor(), Duration::from_secs(1));
        assert_eq!(monitor.next_look(tick, &patience()), tick);
        let mut busy = Busy::new(Arc::clone(&monitor));
        busy.goes_on();
        busy.goes_on();
        assert_eq!(monitor.next_look(tick, &patience()), patience().stall / 4);
        drop(busy);
        assert_eq!(monitor.next_look(tick, &patience()), tick);
        for _ in 0..10_000 {
            drop(monitor.watch_taking().hand_on(1));
        }
        assert!(monitor.takers.lock().len() < 10, "without a verdict between");
    }
}
