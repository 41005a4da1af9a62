//! One line of an operation stream: read, executed, answered.
//!
//! Owns the frame around an operation in both directions. What an operation is and does is the same as in a request of its
//! own: see `operation`, and `op_body` for how it is read. The names are those of `OpLine` and `AnswerLine` in `quorate_api`, to which tests
//! hold this file.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use quorate_api::{Applied, ErrorCode};
use quorate_machine::types::Step;
use quorate_node_core::backend::LeaderHint;
use quorate_node_core::connection::origin::Origin;
use quorate_node_core::gateway::access_log::AnsweredRequest;
use quorate_node_core::gateway::admission::accounts::Spender;
use quorate_node_core::gateway::admission::answer_memory::{Share, StreamOp, StreamValue};
use quorate_node_core::gateway::admission::body_memory::BodyRoom;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::admission::turns::{Lanes, Turn};
use quorate_node_core::gateway::api::Api;
use quorate_node_core::gateway::auth::who::Who;
use quorate_node_core::gateway::caller::Caller;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::{enter, request_ids};
use quorate_node_core::timings::{self, Part};
use quorate_threads::watchdog;
use serde_json::value::RawValue;
use tokio_util::task::AbortOnDropHandle;

use crate::batch::operation;
use crate::headers;
use crate::input::extract::Faults;
use crate::input::json;
use crate::input::json::JsonFault;
use crate::keys::op_body::ParsedOp;
use crate::output::completed::Completed;
use crate::output::render;
use crate::routes::Route;

const FIELDS: &str = "n, timeout_ms, op";

/// Of a line with more fields only so many are judged: there are faults enough among them.
const FIELDS_READ_MAX: usize = 16;

/// A line that can be executed.
pub struct Line {
    /// The caller's name for it.
    pub n: u64,
    /// The caller's deadline.
    pub timeout: Option<Duration>,
    parsed: ParsedOp,
}

/// A line that cannot.
#[derive(Debug)]
pub struct BadLine {
    /// The caller's name for it, where it can be told.
    pub n: Option<u64>,
    /// Why not.
    pub failure: Failure,
}

/// The frame as it stands in the line.
#[derive(Default)]
struct Frame<'a> {
    n: Option<u64>,
    timeout_ms: Option<u64>,
    op: Option<&'a RawValue>,
}

impl Line {
    /// Reads a line.
    pub fn read(text: &[u8]) -> Result<Self, BadLine> {
        let fields = json::fields(text).map_err(|JsonFault { detail, .. }| {
            let failure =
                Failure::invalid("", format!("a line is a JSON object like {{\"n\":1,\"op\":{{…}}}}: {detail}"));
            BadLine { n: None, failure }
        })?;
        let mut faults = Faults::default();
        let frame = Frame::read(&fields, &mut faults);
        let n = frame.n;
        frame.finish(faults).map_err(|failure| BadLine { n, failure })
    }

    /// Whether it is a write that was decided and asks for no entry: its refusal shows the entry all the same.
    fn may_show_unasked(&self) -> bool {
        !self.parsed.dry_run && matches!(&self.parsed.step, Step::Write(op) if !op.return_previous)
    }
}

impl<'a> Frame<'a> {
    fn read(fields: &[(std::borrow::Cow<'a, str>, &'a RawValue)], faults: &mut Faults) -> Self {
        let mut frame = Self::default();
        for (position, (name, raw)) in fields.iter().take(FIELDS_READ_MAX).enumerate() {
            if fields[..position].iter().any(|(earlier, _)| earlier == name) {
                faults.add(json::pointer(name), "given more than once");
                // Which of the two names the line nobody can tell.
                frame.n = frame.n.filter(|_| name != "n");
                continue;
            }
            match &**name {
                "n" => frame.n = number(raw, "/n", 0, faults),
                "timeout_ms" => frame.timeout_ms = number(raw, "/timeout_ms", 1, faults),
                "op" => frame.op = Some(raw),
                other => faults.add_unknown(json::pointer(other), format!("no such field; there are: {FIELDS}")),
            }
        }
        for (missing, place) in [(frame.n.is_none(), "/n"), (frame.op.is_none(), "/op")] {
            if missing && !faults.has(place) {
                faults.add(place, "missing");
            }
        }
        frame
    }

    fn finish(self, faults: Faults) -> Result<Line, Failure> {
        faults.check()?;
        let (Some(n), Some(op)) = (self.n, self.op) else {
            return Err(Failure::invalid("", "the line is not complete"));
        };
        let parsed = ParsedOp::read(op.get().as_bytes()).map_err(|failure| failure.below("/op"))?;
        if parsed.wait.is_some() {
            // It would keep back all that its stream may have under way.
            return Err(Failure::invalid(
                "/op/wait_ms",
                "a line does not wait for a lock; send it as a request of its own",
            ));
        }
        Ok(Line { n, timeout: self.timeout_ms.map(Duration::from_millis), parsed })
    }
}

fn number(raw: &RawValue, pointer: &str, least: u64, faults: &mut Faults) -> Option<u64> {
    let number = headers::decimal(raw.get()).filter(|number| *number >= least);
    if number.is_none() {
        faults.add(pointer, format!("must be a whole number from {least} to {}", u64::MAX));
    }
    number
}

/// A line's place in its class, among the requests in flight and among those of streams, and its bytes' among the bodies. All are free
/// again when it goes.
pub struct LinePermit {
    api: Arc<Api>,
    room: BodyRoom,
    bytes: usize,
    stream_op: StreamOp,
    _turn: Turn,
}

impl LinePermit {
    /// Takes both, or says which of them is full. Share and room are those of its account, lanes of its account.
    pub fn take(
        api: &Arc<Api>,
        (share, lanes, room): (&Arc<Share>, &Lanes, &BodyRoom),
        bytes: usize,
    ) -> Result<Self, Failure> {
        api.admission.classes.take(RequestClass::Point, 1)?;
        if let Err(failure) = room.take(bytes) {
            api.admission.classes.give_back(RequestClass::Point, 1);
            return Err(failure);
        }
        api.admission.in_flight.fetch_add(1, Ordering::Relaxed);
        let (api, room) = (Arc::clone(api), room.clone());
        Ok(Self { api, room, bytes, stream_op: share.stream_op(), _turn: lanes.begin_op() })
    }

    /// Waits for room for the value that the answer shows, and takes it.
    async fn value(&self, deadline: Instant) -> Result<StreamValue, Failure> {
        match self.stream_op.try_value() {
            Some(value) => Ok(value),
            None => Box::pin(self.wait_for_value(deadline)).await,
        }
    }

    /// The failure to answer with, and room for the entry that it shows, if that is long. Without room the failure is that there is none: nothing
    /// was applied either way, and a line sent again is answered with the entry as it is then.
    fn shown(&self, failure: Failure) -> (Failure, Option<StreamValue>) {
        if failure.applied() != Applied::No || !failure.shows_long_entry() {
            return (failure, None);
        }
        match self.stream_op.try_value() {
            Some(value) => (failure, Some(value)),
            None => (StreamOp::no_entry(), None),
        }
    }

    async fn wait_for_value(&self, deadline: Instant) -> Result<StreamValue, Failure> {
        let waited = timings::on(Part::Wait, tokio::time::timeout_at(deadline.into(), self.stream_op.value())).await;
        waited.map_err(|_late| StreamOp::no_value())
    }
}

impl Drop for LinePermit {
    fn drop(&mut self) {
        self.api.admission.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.room.give_back(self.bytes);
        self.api.admission.classes.give_back(RequestClass::Point, 1);
    }
}

/// A line on its way.
pub struct Task {
    /// What to do.
    pub line: Line,
    /// Where it is counted.
    pub place: LinePermit,
    /// Why it is not to be executed, if so, and whose account has taken all that it may.
    pub refused: Option<(Failure, Spender)>,
    /// When it came.
    pub came: Instant,
    /// When it has to be answered.
    pub deadline: Instant,
    /// Who asks.
    pub who: Who,
    /// From where.
    pub origin: Arc<Origin>,
    /// The turns of its account.
    pub lanes: Arc<Lanes>,
    /// The route of operations.
    pub route: &'static Route,
}

/// An answer, not yet written.
pub struct Answered {
    /// The caller's name for the line, where it had one.
    pub n: Option<u64>,
    /// As of a response.
    pub status: StatusCode,
    /// The body of a response.
    pub json: Vec<u8>,
    /// When the line came.
    pub came: Instant,
    /// The room that it takes until it is written.
    _kept: Option<Kept>,
}

/// The room that a line takes until its answer is written.
struct Kept {
    _place: LinePermit,
    _value: Option<StreamValue>,
}

impl Answered {
    /// A failure that nothing was tried after.
    pub fn refused(n: Option<u64>, failure: Failure, came: Instant) -> Self {
        Self::failed(n, failure, &request_ids::trace_id(), came)
    }

    fn failed(n: Option<u64>, mut failure: Failure, request_id: &str, came: Instant) -> Self {
        Self { n, status: failure.status(), json: failure.document(request_id), came, _kept: None }
    }

    /// Appends the line.
    pub fn write(&self, out: &mut Vec<u8>, hint: LeaderHint) {
        out.reserve(self.json.len() + 128);
        out.extend_from_slice(b"{\"n\":");
        optional(out, self.n);
        out.extend_from_slice(b",\"status\":");
        render::number(out, self.status.as_u16().into());
        render::token(out, "term", hint.term);
        out.extend_from_slice(b",\"leader\":");
        optional(out, hint.leader_id);
        out.extend_from_slice(b",\"answer\":");
        let start = out.len();
        out.extend_from_slice(&self.json);
        render::to_one_line(&mut out[start..]);
        out.extend_from_slice(b"}\n");
    }
}

fn optional(out: &mut Vec<u8>, number: Option<u64>) {
    match number {
        Some(number) => render::number(out, number),
        None => out.extend_from_slice(b"null"),
    }
}

/// Executes a line.
///
/// A stream that is not read looks after none of its lines, and what came of them waits as it came: of a write that was refused with the entry as
/// it is. Beyond the room for that it has a task of its own, which makes its answer as soon as it can.
pub async fn run(task: Task) -> Answered {
    let may_show = task.refused.is_none() && task.line.may_show_unasked();
    let room = if may_show { task.place.stream_op.try_refusal() } else { None };
    match may_show && room.is_none() {
        true => carry_out_aside(task).await,
        false => carry_out(task, false).await,
    }
}

async fn carry_out_aside(task: Task) -> Answered {
    let (n, came) = (task.line.n, task.came);
    let carried_out = AbortOnDropHandle::new(watchdog::spawn(carry_out(task, true))).await;
    carried_out.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => {
            let detail = format!("the line was not looked after to its end: {error}");
            Answered::refused(Some(n), Failure::new(ErrorCode::Internal, Applied::Unknown, detail), came)
        }
    })
}

/// Executes a line where its answer is sent, or aside.
async fn carry_out(task: Task, is_aside: bool) -> Answered {
    let (api, route, bytes_in, came) = (Arc::clone(&task.place.api), task.route, task.place.bytes, task.came);
    let ((answered, request_id), timings) = timings::of(pin!(execute(task, is_aside))).await;
    let (status, bytes, took) = (answered.status, (bytes_in, Some(answered.json.len() as u64)), came.elapsed());
    if answered.status != StatusCode::TOO_MANY_REQUESTS {
        api.admission.classes.observe(RequestClass::Point, took);
    }
    let (method, path, request_id) = ("POST", "", &request_id);
    AnsweredRequest { route: route.template(), method, path, request_id, status, bytes, took, timings, who: None }
        .tell(&api, &HeaderMap::new());
    answered
}

/// The answer, and the id under which the line was executed.
async fn execute(task: Task, is_aside: bool) -> (Answered, String) {
    let Task { line: Line { n, mut parsed, .. }, place, refused, came, deadline, who, origin, lanes, route } = task;
    if let Some((failure, account)) = refused {
        // It waits, and takes nothing of what others need, nor memory that nobody counts.
        drop((place, parsed));
        account.keep_back(&failure, deadline.saturating_duration_since(came)).await;
        let request_id = request_ids::trace_id();
        return (Answered::failed(Some(n), failure, &request_id, came), request_id);
    }
    let caller = Caller { api: &place.api, who: &who, origin: &origin, lanes: &lanes, route: route.template() };
    let mut request_id = match parsed.request_id.take() {
        Some(given) => given,
        None if parsed.writes() => request_ids::fresh_id(),
        None => String::new(),
    };
    let mut value = None;
    let answered = match perform(&caller, &place, parsed, &request_id, deadline).await {
        Ok(done) => Answered { n: Some(n), status: done.status(), json: done.json, came, _kept: None },
        Err(mut failure) => {
            if request_id.is_empty() {
                request_id = request_ids::trace_id();
            }
            if is_aside {
                (failure, value) = place.shown(failure);
            }
            let answered = Answered::failed(Some(n), failure, &request_id, came);
            enter::note_refused(&caller, answered.status, &request_id);
            answered
        }
    };
    let kept = Some(Kept { _place: place, _value: value });
    (Answered { _kept: kept, ..answered }, request_id)
}

/// A stream that is not read keeps the answers of what was decided for it, so few of those that show values are decided at once.
async fn perform(
    caller: &Caller<'_>,
    place: &LinePermit,
    parsed: ParsedOp,
    request_id: &str,
    deadline: Instant,
) -> Result<Completed, Failure> {
    let shows = !parsed.dry_run && matches!(&parsed.step, Step::Write(op) if op.return_previous);
    let _value = if shows { Some(place.value(deadline).await?) } else { None };
    operation::perform(caller, parsed, request_id, deadline).await
}
