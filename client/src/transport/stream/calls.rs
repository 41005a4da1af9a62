//! The operations on one connection: their lines on the way out, and who waits for which answer.
//!
//! Owns what the callers share with the connection's task, and the rule for the outcome of a call whose connection ends: a line
//! that was never handed over was certainly not sent, any other may have reached the node. Sends and receives nothing.
//!
//! A call that is dropped leaves its place taken until its answer comes or the connection ends. So a place is never given to
//! another call while an answer to the first may come, and what is queued stays bounded while a node does not answer.

use std::fmt::Write;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::call::error::FailureKind;
use crate::call::reason::Reason;
use crate::transport::{Answer, Broken, is_stale};

/// Operations on one connection; further ones wait. As many as nodes take from one stream.
const CALLS_MAX: usize = 1_024;
/// A connection on which answers are due but nothing came for so long gets no further calls once one has waited in vain: the
/// way to the node may be cut, and only a new connection finds out soon.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// The operations on one connection.
pub(super) struct Calls {
    state: Mutex<State>,
    /// One permit for each free place. Closed when the connection has ended.
    room: Semaphore,
}

struct State {
    /// Lines that the connection has not taken.
    lines: BytesMut,
    /// Bytes of lines ever queued, and ever handed over. Invariant: `taken + lines.len() == queued`.
    queued: u64,
    taken: u64,
    /// Invariant: at most [`CALLS_MAX`].
    places: Vec<PendingCall>,
    /// Places that nobody has, by index.
    free: Vec<usize>,
    /// How often a place was given away; makes the number of each call unique.
    given: u64,
    /// When the node was last heard, or when the first call came after all had been answered.
    heard: Instant,
    pace: Pace,
    /// Wakes the connection's task.
    task: Option<Waker>,
    /// Whether the task wants to know of the next line.
    is_hungry: bool,
    /// Whether it gets no further calls; it ends when nobody waits on it.
    is_left: bool,
    /// Why the connection has ended.
    ended: Option<Reason>,
    /// Whether it ended because the node, or what is before it, does not understand the stream.
    misfits: bool,
}

/// When what is queued is worth a system call.
#[derive(Default)]
struct Pace {
    /// Lines queued since the last were taken.
    fresh: usize,
    /// Callers that the last answers woke: they may well have their next operation soon.
    woken: usize,
    /// Whether the callers were already waited for.
    has_waited: bool,
}

struct PendingCall {
    /// The call that has it.
    n: u64,
    /// Where its line begins in all that was queued.
    begin: u64,
    stage: Stage,
}

enum Stage {
    Free,
    Waiting(Waker),
    Over(Result<Answer, Broken>),
    /// The caller is gone, the answer may come.
    Abandoned,
}

/// What the connection's task should do.
pub(super) enum Turn {
    /// Move the bytes.
    Move,
    /// Let the callers queue their lines first.
    Wait,
    /// It is over.
    End,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.lock();
        write!(out, "Calls({} waiting, ended: {:?})", state.unanswered(), state.ended)
    }
}

impl Calls {
    /// Of a connection that is just open.
    pub fn new() -> Self {
        let state = State {
            lines: BytesMut::new(),
            queued: 0,
            taken: 0,
            places: Vec::new(),
            free: Vec::new(),
            given: 0,
            heard: Instant::now(),
            pace: Pace::default(),
            task: None,
            is_hungry: false,
            is_left: false,
            ended: None,
            misfits: false,
        };
        Self { state: Mutex::new(state), room: Semaphore::new(CALLS_MAX) }
    }

    /// Whether it takes calls.
    pub fn is_open(&self) -> bool {
        self.state.lock().takes_calls()
    }

    /// Whether it ended since it was not understood.
    pub fn misfits(&self) -> bool {
        self.state.lock().misfits
    }

    /// Sends an operation and waits for its answer. The node is told that it has `told` milliseconds.
    pub async fn exchange(&self, op: &[u8], told: u64) -> Result<Answer, Broken> {
        match self.room.acquire().await {
            // Comes back with the place.
            Ok(permit) => permit.forget(),
            Err(_) => return Err(self.not_sent()),
        }
        Exchange { calls: self, op, told, at: None }.await
    }

    fn not_sent(&self) -> Broken {
        let reason = self.state.lock().ended.clone();
        Broken::Before(FailureKind::NotSent(reason.unwrap_or_else(|| "the connection has ended".into())))
    }

    /// What the task should do now; `waker` wakes it.
    pub fn turn(&self, waker: &Waker) -> Turn {
        let mut state = self.state.lock();
        if state.ended.is_some() {
            return Turn::End;
        }
        match &mut state.task {
            Some(task) => task.clone_from(waker),
            task => *task = Some(waker.clone()),
        }
        let pace = &mut state.pace;
        if pace.fresh > 0 && pace.fresh < pace.woken && !pace.has_waited {
            pace.has_waited = true;
            return Turn::Wait;
        }
        Turn::Move
    }

    /// Hands over all that is queued. `None`: nothing is, and the task is woken for the next line.
    pub fn take_lines(&self) -> Option<Bytes> {
        let mut state = self.state.lock();
        state.is_hungry = state.lines.is_empty();
        if state.is_hungry {
            return None;
        }
        state.taken = state.queued;
        state.pace = Pace { fresh: 0, woken: state.pace.woken, has_waited: false };
        Some(state.lines.split().freeze())
    }

    /// Gives answers to those who wait for them. An answer that nobody waits for is dropped. `wakers` is kept for its memory.
    pub fn deliver(&self, answers: &mut Vec<(u64, Answer)>, wakers: &mut Vec<Waker>) {
        let mut freed = 0;
        let is_left = {
            let mut state = self.state.lock();
            state.heard = Instant::now();
            for (n, answer) in answers.drain(..) {
                match state.on_answer(n, answer) {
                    Some(Some(waker)) => wakers.push(waker),
                    Some(None) => freed += 1,
                    None => {}
                }
            }
            state.pace.woken = wakers.len();
            state.is_left
        };
        self.room.add_permits(freed);
        wakers.drain(..).for_each(Waker::wake);
        if is_left {
            self.end_if_left();
        }
    }

    /// The connection ends, or has to: everybody who waits is told. Only the first reason counts.
    pub fn end(&self, reason: &Reason) {
        let wakers = self.state.lock().end(reason);
        self.room.close();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends since nobody there understands the stream.
    pub fn end_as_misfit(&self, reason: &Reason) {
        self.state.lock().misfits = true;
        self.end(reason);
    }

    /// Takes no further calls if answers are due and nothing came for long. Those who wait may still be answered.
    pub fn leave_if_silent(&self) {
        {
            let mut state = self.state.lock();
            if state.unanswered() == 0 || state.heard.elapsed() < SILENCE_MAX {
                return;
            }
            state.is_left = true;
        }
        self.room.close();
        self.end_if_left();
    }

    /// Another took its place, or the client was closed.
    pub fn on_let_go(&self) {
        self.state.lock().is_left = true;
        self.end_if_left();
    }

    /// Ends when it takes no further calls and nobody waits.
    fn end_if_left(&self) {
        let is_over = {
            let state = self.state.lock();
            state.is_left && state.ended.is_none() && !state.has_waiting()
        };
        if is_over {
            self.end(&"the connection takes no further calls".into());
        }
    }
}

impl State {
    /// Calls that an answer may come for, or that have not taken theirs.
    fn unanswered(&self) -> usize {
        self.places.len() - self.free.len()
    }

    fn takes_calls(&self) -> bool {
        self.ended.is_none() && !self.is_left
    }

    fn has_waiting(&self) -> bool {
        self.places.iter().any(|place| matches!(place.stage, Stage::Waiting(_)))
    }

    /// Queues a line; returns the place of its call. `None`: the connection takes no more.
    fn queue(&mut self, op: &[u8], told: u64, waker: &Waker) -> Option<usize> {
        if self.takes_calls() && self.unanswered() == 0 {
            let now = Instant::now();
            self.is_left = is_stale(self.heard, now);
            self.heard = now;
        }
        if !self.takes_calls() {
            return None;
        }
        let index = self.free.pop().unwrap_or(self.places.len());
        assert!(index < CALLS_MAX, "a permit stands for a free place, but {index} of {CALLS_MAX} are taken");
        let n = self.given * CALLS_MAX as u64 + index as u64;
        self.given += 1;
        let place = PendingCall { n, begin: self.queued, stage: Stage::Waiting(waker.clone()) };
        match self.places.get_mut(index) {
            Some(free) => *free = place,
            None => self.places.push(place),
        }
        self.write_line(n, op, told);
        self.pace.fresh += 1;
        Some(index)
    }

    fn write_line(&mut self, n: u64, op: &[u8], told: u64) {
        let before = self.lines.len();
        self.lines.reserve(op.len() + 64);
        write!(self.lines, "{{\"n\":{n},\"timeout_ms\":{told},\"op\":").expect("a buffer in memory takes everything");
        self.lines.extend_from_slice(op);
        self.lines.extend_from_slice(b"}\n");
        self.queued += (self.lines.len() - before) as u64;
    }

    /// The caller to wake; `Some(None)` where the place became free instead; `None` where nobody has that number.
    fn on_answer(&mut self, n: u64, answer: Answer) -> Option<Option<Waker>> {
        let index = (n % CALLS_MAX as u64) as usize;
        let place = self.places.get_mut(index).filter(|place| place.n == n)?;
        match std::mem::replace(&mut place.stage, Stage::Free) {
            Stage::Waiting(waker) => {
                place.stage = Stage::Over(Ok(answer));
                Some(Some(waker))
            }
            Stage::Abandoned => {
                self.free.push(index);
                Some(None)
            }
            // A second answer.
            other @ (Stage::Over(_) | Stage::Free) => {
                place.stage = other;
                None
            }
        }
    }

    fn end(&mut self, reason: &Reason) -> Vec<Waker> {
        if self.ended.is_some() {
            return Vec::new();
        }
        self.ended = Some(reason.clone());
        self.lines = BytesMut::new();
        let taken = self.taken;
        let mut wakers: Vec<Waker> = self.task.take().into_iter().collect();
        for place in &mut self.places {
            if !matches!(place.stage, Stage::Waiting(_)) {
                continue;
            }
            let broken = match place.begin >= taken {
                true => Broken::Before(FailureKind::NotSent(reason.clone())),
                false => Broken::After(reason.clone()),
            };
            if let Stage::Waiting(waker) = std::mem::replace(&mut place.stage, Stage::Over(Err(broken))) {
                wakers.push(waker);
            }
        }
        wakers
    }
}

/// One call.
struct Exchange<'a> {
    calls: &'a Calls,
    op: &'a [u8],
    told: u64,
    /// Its place, once its line is queued and until its answer is taken.
    at: Option<usize>,
}

impl Future for Exchange<'_> {
    type Output = Result<Answer, Broken>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.at {
            None => self.begin(cx.waker()),
            Some(index) => self.look(index, cx.waker()),
        }
    }
}

impl Exchange<'_> {
    fn begin(&mut self, waker: &Waker) -> Poll<Result<Answer, Broken>> {
        let (queued, task) = {
            let mut state = self.calls.state.lock();
            let queued = state.queue(self.op, self.told, waker);
            let is_hungry = queued.is_some() && std::mem::take(&mut state.is_hungry);
            (queued, if is_hungry { state.task.clone() } else { None })
        };
        if let Some(task) = task {
            task.wake();
        }
        if queued.is_none() {
            self.calls.end_if_left();
            return Poll::Ready(Err(self.calls.not_sent()));
        }
        self.at = queued;
        Poll::Pending
    }

    fn look(&mut self, index: usize, waker: &Waker) -> Poll<Result<Answer, Broken>> {
        let outcome = {
            let mut state = self.calls.state.lock();
            let place = &mut state.places[index];
            match std::mem::replace(&mut place.stage, Stage::Free) {
                Stage::Over(outcome) => {
                    state.free.push(index);
                    outcome
                }
                Stage::Waiting(mut known) => {
                    known.clone_from(waker);
                    place.stage = Stage::Waiting(known);
                    return Poll::Pending;
                }
                Stage::Free | Stage::Abandoned => unreachable!("call {} has its place until it leaves it", place.n),
            }
        };
        self.at = None;
        self.calls.room.add_permits(1);
        Poll::Ready(outcome)
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        let Some(index) = self.at else { return };
        let is_left = {
            let mut state = self.calls.state.lock();
            let place = &mut state.places[index];
            if let Stage::Waiting(_) = place.stage {
                place.stage = Stage::Abandoned;
            } else {
                place.stage = Stage::Free;
                state.free.push(index);
                self.calls.room.add_permits(1);
            }
            state.is_left
        };
        if is_left {
            self.calls.end_if_left();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use http::StatusCode;

    use super::*;

    fn answer(text: &'static str) -> Answer {
        Answer { status: StatusCode::OK, hint: Default::default(), body: Bytes::from_static(text.as_bytes()) }
    }

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn numbers(lines: &Bytes) -> Vec<u64> {
        let lines = str::from_utf8(lines).expect("JSON").lines();
        lines.map(|line| serde_json::from_str::<crate::api::OpLine>(line).expect("a line of the API").n).collect()
    }

    const OP: &[u8] = br#"{"op":"get","key":"k"}"#;

    #[test]
    fn answers_find_their_calls_in_any_order_and_only_once() {
        let calls = Calls::new();
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(calls.exchange(OP, 5))).collect();
        assert!(waiting.iter_mut().all(|call| poll(call.as_mut()).is_pending()));
        let lines = calls.take_lines().expect("three lines");
        let n = numbers(&lines);
        assert_eq!((n.len(), calls.take_lines()), (3, None));
        let mut answers =
            vec![(n[2], answer("c")), (n[0], answer("a")), (n[2], answer("again")), (77, answer("stray"))];
        calls.deliver(&mut answers, &mut Vec::new());
        for (at, expected) in [(0, "a"), (2, "c")] {
            let Poll::Ready(Ok(answer)) = poll(waiting[at].as_mut()) else { panic!("call {at} is answered") };
            assert_eq!(answer.body, expected);
        }
        assert!(poll(waiting[1].as_mut()).is_pending());
    }

    #[test]
    fn the_late_answer_to_a_dropped_call_frees_its_place_and_reaches_no_other() {
        let calls = Calls::new();
        {
            let mut dropped = pin!(calls.exchange(OP, 5));
            assert!(poll(dropped.as_mut()).is_pending());
        }
        let late = numbers(&calls.take_lines().expect("a line"));
        let mut waiting: Vec<_> = (0..CALLS_MAX).map(|_| Box::pin(calls.exchange(OP, 5))).collect();
        assert!(waiting.iter_mut().all(|call| poll(call.as_mut()).is_pending()));
        assert_eq!(numbers(&calls.take_lines().expect("lines")).len(), CALLS_MAX - 1, "the dropped call still counts");
        calls.deliver(&mut vec![(late[0], answer("late"))], &mut Vec::new());
        assert!(waiting.iter_mut().all(|call| poll(call.as_mut()).is_pending()), "the answer was nobody's");
        assert_eq!(numbers(&calls.take_lines().expect("the last")).len(), 1, "the place was free again");
    }

    #[test]
    fn when_the_connection_ends_only_lines_never_handed_over_are_certainly_unsent() {
        let calls = Calls::new();
        let (mut sent, mut unsent) = (pin!(calls.exchange(OP, 5)), pin!(calls.exchange(OP, 5)));
        assert!(poll(sent.as_mut()).is_pending());
        assert!(calls.take_lines().is_some());
        assert!(poll(unsent.as_mut()).is_pending());
        calls.end(&"reset".into());
        assert!(matches!(poll(sent), Poll::Ready(Err(Broken::After(_)))));
        assert!(matches!(poll(unsent), Poll::Ready(Err(Broken::Before(_)))));
        let mut next = pin!(calls.exchange(OP, 5));
        assert!(matches!(poll(next.as_mut()), Poll::Ready(Err(Broken::Before(_)))));
    }

    #[test]
    fn a_silent_connection_gets_no_further_calls_and_ends_with_the_last_that_waits() {
        let calls = Calls::new();
        let mut patient = Box::pin(calls.exchange(OP, 5));
        let mut hasty = Box::pin(calls.exchange(OP, 5));
        assert!(poll(patient.as_mut()).is_pending() && poll(hasty.as_mut()).is_pending());
        let n = numbers(&calls.take_lines().expect("two lines"));
        calls.leave_if_silent();
        assert!(calls.is_open(), "it was heard a moment ago");
        calls.state.lock().heard = Instant::now().checked_sub(SILENCE_MAX).expect("the machine runs longer than that");
        drop(hasty);
        calls.leave_if_silent();
        assert!(!calls.is_open() && calls.state.lock().ended.is_none());
        assert!(matches!(poll(pin!(calls.exchange(OP, 5))), Poll::Ready(Err(Broken::Before(_)))));
        calls.deliver(&mut vec![(n[0], answer("late"))], &mut Vec::new());
        assert!(matches!(poll(patient.as_mut()), Poll::Ready(Ok(_))), "who has waited is answered");
        assert!(calls.state.lock().ended.is_some(), "and then nobody needs it");
    }

    #[test]
    fn the_task_waits_once_for_the_callers_it_has_woken() {
        let calls = Calls::new();
        let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(calls.exchange(OP, 5))).collect();
        assert!(waiting.iter_mut().all(|call| poll(call.as_mut()).is_pending()));
        assert!(matches!(calls.turn(Waker::noop()), Turn::Move), "nobody was woken");
        let n = numbers(&calls.take_lines().expect("two lines"));
        calls.deliver(&mut n.iter().map(|n| (*n, answer("x"))).collect(), &mut Vec::new());
        let mut next = pin!(calls.exchange(OP, 5));
        assert!(poll(next.as_mut()).is_pending());
        assert!(matches!(calls.turn(Waker::noop()), Turn::Wait), "the other may come too");
        assert!(matches!(calls.turn(Waker::noop()), Turn::Move), "but is not waited for twice");
    }
}
