//! `POST /v1/ops` as `application/x-ndjson`: many operations in one request, each a line, each answered by a line.
//!
//! Owns the pump between the body of such a request and the body of its answer. It runs wherever the answer's body is
//! polled, so in the connection's task: there is no task, channel or timer for an operation. Lines are read while there is room
//! for their answers, operations run beside each other, and what is answered at one moment goes out as one frame.
//! Never knows what an operation is: that is in `line`.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt};
use http::{Response, header};
use hyper::body::{Body as HttpBody, Frame};
use quorate_api::{Applied, ErrorCode};
use quorate_node_core::connection::monitor::Busy;
use quorate_node_core::connection::origin::Origin;
use quorate_node_core::gateway::admission::accounts::Spender;
use quorate_node_core::gateway::admission::answer_memory::Share;
use quorate_node_core::gateway::admission::body_memory::BodyRoom;
use quorate_node_core::gateway::admission::turns::Lanes;
use quorate_node_core::gateway::api::Api;
use quorate_node_core::gateway::auth::who::Who;
use quorate_node_core::gateway::body::BodyPatience;
use quorate_node_core::gateway::caller::Caller;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::lines::{Lines, Next};
use quorate_node_core::limits;
use quorate_threads::{background, watchdog};
use tokio::time::Sleep;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::batch::line::{Answered, BadLine, Line, LinePermit, Task, run};
use crate::context::RequestContext;
use crate::headers;
use crate::input::json;
use crate::output::response::Outcome;
use crate::routes::Route;

/// Answers a stream: the head at once, the lines as their operations are done.
pub async fn open(context: &RequestContext, body: Body) -> Outcome {
    if context.has_idempotency_key() {
        let why = "a stream has no request id; each operation in it carries its own `request_id`";
        return Err(headers::fault(&headers::IDEMPOTENCY_KEY, why).closing());
    }
    // It has no end to wait for: each line takes a place of its own once that is whole.
    context.enter().await?;
    let busy = context.take_busy()?;
    let mut pump = Pump::new(context, body, busy, run);
    pump.account = context.account().cloned();
    if context.head.headers.contains_key(header::EXPECT) {
        pump.invite().await;
    }
    let mut response = Response::new(Body::new(pump));
    response.headers_mut().insert(header::CONTENT_TYPE, headers::STREAM);
    Ok(response)
}

/// How far a stream is.
#[derive(Debug)]
enum Phase {
    /// Lines are read.
    Reading,
    /// No more lines are read; what is under way is answered.
    Ending,
    /// The request broke off: what is under way runs to its end, and nobody is there to be told.
    Broken(Option<io::Error>),
}

/// Both ends of a stream and what is between them.
///
/// Invariant: `out` is shorter than a frame before an answer is added, so a frame and one answer is the most that waits here
/// for a slow reader.
struct Pump<F, R> {
    api: Arc<Api>,
    /// The request, until its last line.
    body: Body,
    lines: Lines,
    /// Bytes of `lines` that are counted among the bodies.
    counted: usize,
    /// Deadline of a line that names none.
    timeout: Duration,
    /// Who asks.
    who: Who,
    /// From where.
    origin: Arc<Origin>,
    run: R,
    under_way: FuturesUnordered<F>,
    /// Answers to be sent.
    out: Vec<u8>,
    /// What its account holds.
    share: Arc<Share>,
    /// The part of its account in the memory for bodies.
    room: BodyRoom,
    /// The turns of its account.
    lanes: Arc<Lanes>,
    /// The route of operations.
    route: &'static Route,
    /// Who pays for the lines.
    account: Option<Spender>,
    phase: Phase,
    clock: StreamClock,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    busy: Busy,
}

impl<F, R> Pump<F, R>
where
    F: Future<Output = Answered>,
    R: Fn(Task) -> F,
{
    fn new(context: &RequestContext, body: Body, busy: Busy, run: R) -> Self {
        let api = Arc::clone(&context.api);
        let stop = Box::pin(busy.monitor().stop().clone().cancelled_owned());
        let lines = Lines::new(api.settings.bounds.body_bytes_max);
        let clock = StreamClock::new(busy.monitor().idle(), BodyPatience::of(&api.settings));
        Self {
            api,
            body,
            lines,
            counted: 0,
            timeout: context.timeout,
            route: context.route,
            who: context.who().clone(),
            origin: Arc::clone(&context.origin),
            run,
            under_way: FuturesUnordered::new(),
            out: Vec::new(),
            share: context.answer_share(),
            room: context.body_room(),
            lanes: Arc::clone(context.lanes()),
            account: None,
            phase: Phase::Reading,
            clock,
            stop,
            busy,
        }
    }

    /// Gives hyper the time to send `100 Continue`: it does so when the body is wanted and no answer has begun.
    async fn invite(&mut self) {
        let now = Instant::now();
        poll_fn(|cx| {
            self.poll_piece(cx, now);
            Poll::Ready(())
        })
        .await;
        tokio::task::yield_now().await;
    }

    fn is_reading(&self) -> bool {
        matches!(self.phase, Phase::Reading)
    }

    /// Tells whether another line may be started. If others of its account have too many under way, or it has had more than its share of the
    /// processors, there are some here as well, and this is asked again once one of them is done.
    fn has_room(&self) -> bool {
        let under_way = self.under_way.len();
        let owes = || self.lanes.share.pause_elsewhere(Instant::now()).is_some();
        under_way < limits::STREAM_OPS_MAX
            && self.out.len() < limits::STREAM_FRAME_BYTES
            && (under_way < limits::STREAM_OPS_MIN
                || (self.share.has_stream_room() && self.lanes.may_begin_op() && !owes()))
    }

    /// Whether everything is answered and sent.
    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ending) && self.under_way.is_empty() && self.out.is_empty()
    }

    /// Ends before the peer does. What it still sends is swallowed for a moment, so that it can read the answers.
    fn end_early(&mut self) {
        self.phase = Phase::Ending;
        self.drop_input();
        self.busy.monitor().linger();
    }

    /// Tells why nothing that follows can be read.
    fn refuse_rest(&mut self, failure: Failure, now: Instant) {
        self.write(&Answered::refused(None, failure, now), now);
        self.end_early();
    }

    fn drop_input(&mut self) {
        self.lines = Lines::new(0);
        self.room.give_back(std::mem::take(&mut self.counted));
    }

    /// Starts what lines there are and asks for the next piece. Returns whether there was anything.
    fn read(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let started = self.start_lines(now);
        if !self.is_reading() || !self.has_room() || self.lines.has_piece() {
            return started;
        }
        let came = self.poll_piece(cx, now);
        // At once, so that the lines of a piece run beside each other and share what they can.
        self.start_lines(now);
        started || came
    }

    /// Takes the next piece of the request. Returns whether something came, its end included.
    fn poll_piece(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => return false,
            Poll::Ready(None) => {
                let last = self.lines.last();
                self.phase = Phase::Ending;
                self.start(&last, now);
                self.drop_input();
            }
            Poll::Ready(Some(Err(error))) => {
                quorate_node_core::debug!(%error, under_way = self.under_way.len(), "an operation stream broke off");
                self.phase = Phase::Broken(Some(io::Error::other(error)));
                self.out.clear();
                self.drop_input();
            }
            Poll::Ready(Some(Ok(frame))) => {
                // Trailers mean nothing here.
                if let Ok(piece) = frame.into_data() {
                    self.lines.feed(piece);
                }
            }
        }
        true
    }

    /// Starts lines as long as there are whole ones and there is room. Returns whether there was one.
    fn start_lines(&mut self, now: Instant) -> bool {
        let mut any = false;
        while self.is_reading() && self.has_room() && self.lines.has_piece() {
            match self.lines.next_line() {
                Next::More => break,
                Next::Line(line) => {
                    any = true;
                    self.clock.line_came(now);
                    self.start(&line, now);
                }
                Next::TooLong => {
                    let limit = self.api.settings.bounds.body_bytes_max as u64;
                    self.refuse_rest(Failure::too_large("", "a line", limit, None), now);
                    return true;
                }
            }
        }
        self.count_input(now);
        any
    }

    /// Keeps the bytes that wait here counted among the bodies.
    fn count_input(&mut self, now: Instant) {
        let held = self.lines.held();
        if held < self.counted {
            self.room.give_back(self.counted - held);
        } else if held > self.counted
            && let Err(failure) = self.room.take(held - self.counted)
        {
            return self.refuse_rest(failure, now);
        }
        self.counted = held;
    }

    /// Starts one line, or answers it at once where that cannot be.
    fn start(&mut self, line: &[u8], came: Instant) {
        let text = json::trim(line);
        if text.is_empty() {
            return;
        }
        let line = match background::in_place(text.len(), || Line::read(text)) {
            Ok(line) => line,
            Err(BadLine { n, failure }) => return self.write(&Answered::refused(n, failure, came), came),
        };
        // Who is not known any more can say no more either.
        let Self { api, who, origin, lanes, route, .. } = &*self;
        let caller = Caller { api, who, origin, lanes, route: route.template() };
        if let Err(failure) = caller.is_known() {
            self.write(&Answered::refused(Some(line.n), failure, came), came);
            return self.end_early();
        }
        match LinePermit::take(&self.api, (&self.share, &self.lanes, &self.room), text.len()) {
            Err(failure) => self.write(&Answered::refused(Some(line.n), failure, came), came),
            Ok(place) => {
                let timeout = line.timeout.map_or(self.timeout, |wanted| self.api.timeout(wanted));
                // Who is refused pays nothing for it.
                let refused = self.account.as_ref().and_then(|account| match account.admit() {
                    Ok(()) => {
                        account.moved(text.len());
                        None
                    }
                    Err(failure) => Some((failure, account.clone())),
                });
                let (who, origin, lanes) = (self.who.clone(), Arc::clone(&self.origin), Arc::clone(&self.lanes));
                let (deadline, route) = (came + timeout, self.route);
                let task = Task { line, place, refused, came, deadline, who, origin, lanes, route };
                self.under_way.push((self.run)(task));
            }
        }
    }

    /// Takes the answers there are, at most a frame of them. Returns whether there was one.
    fn collect(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let mut any = false;
        while self.out.len() < limits::STREAM_FRAME_BYTES {
            let Poll::Ready(Some(answered)) = self.under_way.poll_next_unpin(cx) else { break };
            any = true;
            self.write(&answered, now);
        }
        if any {
            self.clock.answered(now);
        }
        any
    }

    fn write(&mut self, answered: &Answered, now: Instant) {
        let took = now.saturating_duration_since(answered.came);
        self.api.metrics.observe_request(self.route.number(), answered.status, took);
        if !matches!(self.phase, Phase::Broken(_)) {
            answered.write(&mut self.out, self.api.node.leader_hint());
        }
    }

    /// The next frame to be sent.
    fn frame(&mut self, now: Instant) -> Option<Bytes> {
        if self.out.is_empty() {
            return None;
        }
        // The next one is likely to be as long.
        let next = Vec::with_capacity(self.out.len().min(limits::STREAM_FRAME_BYTES));
        let frame = Bytes::from(std::mem::replace(&mut self.out, next));
        self.clock.pause(now);
        if let Some(account) = &self.account {
            account.moved(frame.len());
        }
        Some(frame)
    }

    /// Everything that can be done now. Returns whether there may be more at once.
    fn pump(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        for _ in 0..limits::STREAM_PIECES_MAX {
            let read = self.read(cx, now);
            let answered = self.collect(cx, now);
            if self.out.len() >= limits::STREAM_FRAME_BYTES {
                return true;
            }
            // What was answered made room for lines that wait.
            let may_read = answered && self.is_reading();
            if !(read || may_read) {
                return false;
            }
        }
        true
    }

    /// Ends a stream that nobody uses, and one whose line does not come to its end. Arms the timer for either.
    fn check_time(&mut self, cx: &mut Context<'_>, now: Instant) {
        let waits_for_input = self.is_reading() && self.has_room();
        let begun = if waits_for_input { self.lines.begun() } else { 0 };
        let is_quiet = waits_for_input && self.under_way.is_empty();
        match self.clock.poll(cx, now, begun, is_quiet) {
            Poll::Pending => {}
            Poll::Ready(Overdue::Line) => {
                let detail = format!("the line came too slowly: only its first {begun} bytes came in time");
                self.refuse_rest(Failure::new(ErrorCode::Timeout, Applied::No, detail), now);
            }
            Poll::Ready(Overdue::Idle) => self.end_early(),
        }
    }
}

impl<F, R> HttpBody for Pump<F, R>
where
    F: Future<Output = Answered>,
    R: Fn(Task) -> F + Unpin,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        let now = Instant::now();
        this.clock.resume(now);
        if this.is_reading() && this.stop.as_mut().poll(cx).is_ready() {
            this.end_early();
        }
        let more = watchdog::step("stream of operations", || this.pump(cx, now));
        if this.is_reading() && !more {
            this.check_time(cx, now);
        }
        if let Some(frame) = this.frame(now) {
            return Poll::Ready(Some(Ok(Frame::data(frame))));
        }
        if more {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if !this.under_way.is_empty() {
            return Poll::Pending;
        }
        match &mut this.phase {
            Phase::Reading => Poll::Pending,
            Phase::Ending => Poll::Ready(None),
            Phase::Broken(error) => Poll::Ready(error.take().map(Err)),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_over()
    }
}

impl<F, R> Drop for Pump<F, R> {
    fn drop(&mut self) {
        self.room.give_back(self.counted);
    }
}

/// What took too long.
enum Overdue {
    /// The rest of a line that has begun.
    Line,
    /// The next line.
    Idle,
}

/// The patience of a stream with its peer. One timer, that is armed anew only for an earlier moment: what happens meanwhile
/// costs nothing.
struct StreamClock {
    idle: Duration,
    line: BodyPatience,
    /// Since when there is nothing to do.
    quiet_since: Instant,
    /// Since when the rest of a line is waited for.
    begun_since: Option<Instant>,
    /// Since when a frame is with the connection: until it asks for the next one the peer cannot be blamed.
    paused_since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl StreamClock {
    fn new(idle: Duration, line: BodyPatience) -> Self {
        let (quiet_since, timer) = (Instant::now(), Box::pin(tokio::time::sleep(idle)));
        Self { idle, line, quiet_since, begun_since: None, paused_since: None, timer }
    }

    fn line_came(&mut self, now: Instant) {
        (self.quiet_since, self.begun_since) = (now, None);
    }

    fn answered(&mut self, now: Instant) {
        self.quiet_since = now;
    }

    fn pause(&mut self, now: Instant) {
        self.paused_since = Some(now);
    }

    fn resume(&mut self, now: Instant) {
        let Some(since) = self.paused_since.take() else { return };
        let paused = now.saturating_duration_since(since);
        self.quiet_since += paused;
        self.begun_since = self.begun_since.map(|begun| begun + paused);
    }

    /// `begun` bytes of a line are there and the rest is waited for; `is_quiet`: no operation is under way.
    fn poll(&mut self, cx: &mut Context<'_>, now: Instant, begun: usize, is_quiet: bool) -> Poll<Overdue> {
        if begun == 0 {
            self.begun_since = None;
        } else {
            self.begun_since.get_or_insert(now);
        }
        let line_due = self.begun_since.map(|since| since + self.line.after(begun));
        let idle_due = is_quiet.then(|| self.quiet_since + self.idle);
        if line_due.is_some_and(|due| due <= now) {
            return Poll::Ready(Overdue::Line);
        }
        // Half a line is not nothing: its own deadline counts.
        if line_due.is_none() && idle_due.is_some_and(|due| due <= now) {
            return Poll::Ready(Overdue::Idle);
        }
        let Some(due) = line_due.or(idle_due).map(tokio::time::Instant::from_std) else { return Poll::Pending };
        if due < self.timer.deadline() || self.timer.is_elapsed() {
            self.timer.as_mut().reset(due);
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            // It was due between `now` and this moment: look again.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
