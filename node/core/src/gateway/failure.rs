//! The only place where errors become problem documents.
//!
//! Owns the mapping of everything that can go wrong to a code of the catalogue, and the truth of `applied`. What a caller
//! of a write is told here decides whether they write twice, so each doubtful row says why it is as it is.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use quorate_api::{Applied, ErrorCode, InputFault, Problem, Retry};
use quorate_machine::document::TooDear;
use quorate_machine::query::{ReadPosition, StateFault};
use quorate_machine::types::{Entry, Key, Rejection, Reply, Revision, SessionId, Shown, StepRejected};

use crate::backend::AppError;
use crate::gateway::rejection::{beyond, explain, faults_below, no_session, rejection_code};
use crate::gateway::text::quoted;
use crate::gateway::{entry_view, failed};
use crate::limits;

/// A request that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Boxed, so that the `Result` of each handler stays small.
    problem: Box<Problem>,
    allow: Option<&'static str>,
    /// Whether the connection can carry no further request.
    close: bool,
}

/// Whether what failed could have changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only reads: whatever happened, nothing was applied.
    Read,
    /// It writes.
    Write,
}

impl Failure {
    /// A failure with the code's own status and advice.
    pub fn new(code: ErrorCode, applied: Applied, detail: impl Into<String>) -> Self {
        let mut problem = Box::new(Problem::new(code, applied, detail));
        if applied == Applied::Unknown {
            // Only the request id can tell whether it took effect, whatever the code says in general.
            problem.retry = Retry::SameRequestId;
        }
        Self { problem, allow: None, close: false }
    }

    /// One fault in the input.
    pub fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let (pointer, detail) = (pointer.into(), detail.into());
        let shown = format!("{}: {detail}", place(&pointer));
        Self::new(ErrorCode::InvalidArgument, Applied::No, shown).at(pointer, detail)
    }

    /// That it is not known who asks.
    pub fn unauthenticated(why: &str) -> Self {
        Self::new(ErrorCode::Unauthenticated, Applied::No, why)
    }

    /// That there is no such session, where it was not a command that found out.
    pub fn session_expired(id: SessionId) -> Self {
        Self::new(ErrorCode::SessionExpired, Applied::No, no_session(id))
    }

    /// Something over its limit.
    pub fn too_large(pointer: impl Into<String>, what: &str, limit: u64, actual: Option<u64>) -> Self {
        let detail = over_limit(what, limit, actual);
        Self::new(ErrorCode::TooLarge, Applied::No, detail.clone()).at(pointer, detail)
    }

    /// An entry that takes too many steps to be judged, where it was not a command that found out.
    pub fn too_dear(key: &Key, dear: TooDear) -> Self {
        Self::new(ErrorCode::TooDear, Applied::No, format!("{}: {}", quoted(key), failed::explain_dear(dear)))
    }

    /// More of them than the node takes.
    pub fn too_many(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::TooManyRequests, Applied::No, detail)
    }

    /// Says when another try is worth it.
    pub fn after(mut self, wait: Duration) -> Self {
        self.problem.retry_after_ms = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).ok();
        self
    }

    /// What [`Self::after`] was told; zero if nothing.
    pub fn retry_after(&self) -> Duration {
        Duration::from_millis(self.problem.retry_after_ms.unwrap_or(0))
    }

    /// Adds a fault of the input.
    pub fn at(mut self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        self.problem.errors.push(InputFault { pointer: pointer.into(), detail: detail.into() });
        self
    }

    /// Adds the `Allow` header.
    pub fn allowing(mut self, methods: &'static str) -> Self {
        self.allow = Some(methods);
        self
    }

    /// Ends the connection after the answer: the rest of the request was not read.
    pub fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    /// Says where the request was evaluated.
    pub fn evaluated_at(mut self, revision: Revision, index: u64) -> Self {
        self.problem.revision = Some(revision);
        self.problem.index = Some(index);
        self
    }

    /// All faults of an input at once.
    pub fn faults(faults: Vec<InputFault>, code: ErrorCode) -> Self {
        let mut failure = Self::new(code, Applied::No, summary(&faults));
        failure.problem.errors = faults;
        failure
    }

    /// The faults of both, where both are faults of an input; else this one.
    pub fn and(mut self, other: Self) -> Self {
        if !self.is_of_input() || !other.is_of_input() {
            return self;
        }
        let code = if self.code() == other.code() { self.code() } else { ErrorCode::InvalidArgument };
        let mut faults = std::mem::take(&mut self.problem.errors);
        faults.extend(other.into_problem().errors);
        Self::faults(faults, code)
    }

    /// Whether it is about faults of the input, and points at them.
    fn is_of_input(&self) -> bool {
        let code = self.problem.code;
        let has_faults = matches!(code, ErrorCode::InvalidArgument | ErrorCode::UnknownField | ErrorCode::TooLarge);
        has_faults && !self.problem.errors.is_empty()
    }

    /// What the node's services answered.
    pub fn from_app(error: AppError, effect: Effect) -> Self {
        let (code, applied) = match &error {
            AppError::NoLeader => (ErrorCode::NoLeader, Applied::No),
            AppError::NotReady(_) => (ErrorCode::NotReady, Applied::No),
            AppError::Quarantined(_) => (ErrorCode::Quarantined, Applied::No),
            // 429, not 503: the cluster is well, this node has too much of it.
            AppError::Overloaded => (ErrorCode::TooManyRequests, Applied::No),
            AppError::NoSpace(_) => (ErrorCode::QuotaExceeded, Applied::No),
            AppError::Refused(_) => (ErrorCode::ChangeRefused, Applied::No),
            // Both are 504, and the caller must tell them apart by `applied`: here it is certain that nothing was
            // proposed and nothing of this try ever will be.
            AppError::TimeoutNotProposed => (ErrorCode::Timeout, Applied::No),
            // In the log of some node. It may be committed now, later or never.
            AppError::Unknown => (ErrorCode::Timeout, Applied::Unknown),
            AppError::TooLarge { .. } => (ErrorCode::TooLarge, Applied::No),
            AppError::AnotherEpoch { .. } => (ErrorCode::Compacted, Applied::No),
            // The node stops. A write may have reached other nodes before, so its outcome is open.
            AppError::Fault(_) => (ErrorCode::Internal, Applied::Unknown),
        };
        let applied = if effect == Effect::Read { Applied::No } else { applied };
        if code == ErrorCode::Internal {
            tracing::error!(%error, "a request met a fault of this node");
        }
        let mut failure = Self::new(code, applied, error.to_string());
        if let AppError::AnotherEpoch { begun, .. } = error {
            failure.problem.oldest_revision = Some(begun);
        }
        failure
    }

    /// A fault of the state met by a read or a dry run: nothing was applied, and the node will stop by itself.
    pub fn from_fault(fault: &StateFault) -> Self {
        Self::from_app(AppError::Fault(fault.to_string()), Effect::Read)
    }

    /// A revision that is no longer readable.
    pub fn compacted(revision: Revision, at: ReadPosition) -> Self {
        let oldest = at.oldest_revision;
        let detail = format!("revision {revision} has been compacted; the oldest that can be read is {oldest}");
        let mut failure = Self::new(ErrorCode::Compacted, Applied::No, detail).evaluated_at(at.revision, at.index);
        failure.problem.oldest_revision = Some(oldest);
        failure
    }

    /// A revision that does not exist yet, which `pointer` points at.
    pub fn future(pointer: &'static str, revision: Revision, at: ReadPosition) -> Self {
        let detail = format!("revision {revision} does not exist yet; the current one is {}", at.revision);
        let mut failure = Self::invalid(pointer, detail).evaluated_at(at.revision, at.index);
        // The request is well formed, and succeeds once there is that revision.
        failure.problem.retry = Retry::AfterReading;
        failure
    }

    /// A key without an entry.
    pub fn no_entry(key: &Key, at: ReadPosition) -> Self {
        let detail = format!("there is no entry with the key {}", quoted(key));
        Self::new(ErrorCode::NotFound, Applied::No, detail).evaluated_at(at.revision, at.index)
    }

    /// A read of an entry that has none of the tags in `If-Match`.
    pub fn unwanted_version(key: &Key, entry: &Entry, at: ReadPosition) -> Self {
        // The cas of a locked entry is the key of its lock.
        let detail = match entry.meta.cas_shown_at(at.clock) {
            Some(cas) => format!("{} has cas {cas}, which is not in If-Match", quoted(key)),
            None => format!("{} is locked; while it is, no cas in If-Match matches", quoted(key)),
        };
        let mut failure = Self::new(ErrorCode::CasMismatch, Applied::No, detail).evaluated_at(at.revision, at.index);
        failure.problem.current = Some(entry_view::entry_view(key, entry, at.clock));
        failure
    }

    /// A command that the state machine refused. Definite and replicated, so `applied` is `no` without doubt.
    /// `key` is the name of what the command was about.
    pub fn from_rejection(key: impl AsRef<[u8]>, reply: &Reply, rejection: &Rejection) -> Self {
        let key = key.as_ref();
        let detail = explain(key, reply.clock, rejection);
        let mut failure =
            Self::new(rejection_code(rejection), Applied::No, detail).evaluated_at(reply.revision, reply.index);
        // In the kept answer to a retry the value may be compacted; who needs the entry then reads it.
        failure.problem.failed = failed::of(rejection);
        failure.problem.errors = faults_below(rejection, "");
        let current = rejection.current().and_then(Shown::entry);
        failure.problem.current = current.map(|entry| entry_view::entry_view(key, entry, reply.clock));
        failure.problem.replayed = reply.replayed;
        if let &Rejection::Held { holders, waiters, delay_ms }
        | &Rejection::QueueLong { holders, waiters, delay_ms, .. } = rejection
        {
            failure.problem.holders = Some(holders.into());
            failure.problem.waiters = Some(waiters.into());
            failure.problem.retry_after_ms = Some(delay_ms).filter(|left| *left > 0);
        }
        failure.problem.quota = beyond(rejection);
        failure
    }

    /// A step of a transaction that was refused, and all of the transaction with it.
    pub fn from_step(reply: &Reply, rejected: &StepRejected) -> Self {
        let StepRejected { pointer, key, why } = rejected;
        let key = key.as_ref().map(Key::as_bytes).unwrap_or_default();
        let mut failure = Self::from_rejection(key, reply, why).below(pointer);
        // Not of one step: all that the steps read, write and show is in memory at once.
        if let Rejection::TooMuch { limit } = why
            && pointer.is_empty()
        {
            failure.problem.detail =
                format!("the transaction would read, write and answer more than the {limit} bytes that one may");
        }
        failure
    }

    /// Names the field in which all have to give the same number, if that is why it was refused.
    pub fn of_number(self, name: impl AsRef<[u8]>, why: &Rejection, field: &str) -> Self {
        match why {
            Rejection::OtherNumber(others) => {
                self.saying(format!("{} is in use with `{field}` {others}; all have to name the same", quoted(name)))
            }
            _ => self,
        }
    }

    /// Moves its pointers below `place`, a JSON pointer into a larger input.
    pub fn below(mut self, place: &str) -> Self {
        let is_of_input = self.is_of_input();
        let problem = &mut *self.problem;
        for fault in &mut problem.errors {
            fault.pointer.insert_str(0, place);
        }
        for failed in &mut problem.failed {
            failed.pointer.insert_str(0, place);
        }
        if is_of_input {
            problem.detail = summary(&problem.errors);
        } else if !place.is_empty() {
            problem.detail = format!("{place}: {}", problem.detail);
        }
        self
    }

    /// Says that the second step of a request failed after the first took effect: what holds meanwhile, and that only the request
    /// id can tell what it comes to.
    pub fn undecided(mut self, meanwhile: &str) -> Self {
        let problem = &mut *self.problem;
        (problem.applied, problem.retry) = (Applied::Unknown, Retry::SameRequestId);
        problem.detail = format!("{}; {meanwhile}", problem.detail);
        self
    }

    /// Says that the request took effect when it was sent before: what failed is to tell what became of that.
    pub fn of_a_repeat(mut self) -> Self {
        let problem = &mut *self.problem;
        problem.applied = Applied::Yes;
        problem.detail = format!("{}; an earlier try of this request took effect", problem.detail);
        self
    }

    /// Says that a part of the request took effect before; only the request id can tell how much.
    pub fn after_a_part(mut self, decided: usize, of: usize) -> Self {
        let problem = &mut *self.problem;
        problem.applied = Applied::Unknown;
        if problem.retry != Retry::Never {
            problem.retry = Retry::SameRequestId;
        }
        let before = format!("{}; {decided} of the {of} operations were decided before", problem.detail);
        problem.detail = match problem.retry {
            Retry::Never => before,
            _ => format!("{before}, and the same request with the same request id goes on from there"),
        };
        self
    }

    /// What kind of failure it is.
    pub fn code(&self) -> ErrorCode {
        self.problem.code
    }

    /// Whether it may be otherwise in a moment, here or at another node, and nothing of the request has to change for that.
    pub fn is_passing(&self) -> bool {
        let code = self.problem.code;
        code == ErrorCode::TooManyRequests || (code != ErrorCode::QuotaExceeded && code.status() >= 500)
    }

    /// What happened.
    pub fn detail(&self) -> &str {
        &self.problem.detail
    }

    /// The HTTP status that goes with it.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Whether the request was applied.
    pub fn applied(&self) -> Applied {
        self.problem.applied
    }

    /// Whether it shows an entry whose value makes its document a long answer.
    pub fn shows_long_entry(&self) -> bool {
        let Some(entry) = &self.problem.current else { return false };
        let json = entry.value.as_ref().map_or(0, |value| value.0.get().len());
        let base64 = entry.value_base64.as_ref().map_or(0, String::len);
        (json + base64) as u64 >= limits::LONG_ANSWER_BYTES
    }

    /// The problem document.
    pub fn document(&mut self, request_id: &str) -> Vec<u8> {
        request_id.clone_into(&mut self.problem.request_id);
        serde_json::to_vec(&self.problem).unwrap_or_else(|error| {
            tracing::error!(%error, "a problem document could not be written");
            b"{}".to_vec()
        })
    }

    /// Says that it is a condition in the head of the request that does not hold: the status is 412, whatever the code (RFC 9110, 13).
    pub fn of_precondition(mut self) -> Self {
        self.problem.status = StatusCode::PRECONDITION_FAILED.as_u16();
        self
    }

    /// Replaces the detail.
    pub fn saying(mut self, detail: impl Into<String>) -> Self {
        self.problem.detail = detail.into();
        self
    }

    /// The problem document, for an answer that is made of several.
    pub fn into_problem(self) -> Problem {
        *self.problem
    }

    /// In whole seconds, as HTTP has it.
    pub fn retry_after_seconds(&self) -> u64 {
        let known = self.problem.retry_after_ms.map(|millis| millis.div_ceil(1_000).max(1));
        known.unwrap_or(limits::RETRY_AFTER_SECONDS)
    }

    /// The methods for `Allow`, if that is what it is about.
    pub fn allow(&self) -> Option<&'static str> {
        self.allow
    }

    /// Whether the connection ends with it.
    pub fn closes(&self) -> bool {
        self.close
    }

    /// The revision that it is as of, if it was evaluated.
    pub fn revision(&self) -> Option<Revision> {
        self.problem.revision
    }
}

/// That something is over its limit, and by how much, for people.
pub fn over_limit(what: &str, limit: u64, actual: Option<u64>) -> String {
    let actual = actual.map_or("it has more".to_owned(), |bytes| format!("it has {bytes}"));
    format!("{what} may have at most {limit} bytes, {actual}")
}

/// All faults in a line for people.
fn summary(faults: &[InputFault]) -> String {
    match faults {
        [one] => format!("{}: {}", place(&one.pointer), one.detail),
        many => {
            let first = &many[0];
            format!("{} faults, see `errors`; the first: {}: {}", many.len(), place(&first.pointer), first.detail)
        }
    }
}

/// A pointer for people: the one to the whole body is empty.
fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "body" } else { pointer }
}

/// A handler may end with one: it is made a problem document by what serves its route, which knows the request.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(self);
        response
    }
}
