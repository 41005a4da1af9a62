//! Work that may take long, on the state or on a long body: on blocking threads, a few at a time.
//!
//! Owns the places, and what that costs an account. The work there bounds itself, and goes on when its caller is gone.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_api::{Applied, ErrorCode};
use quorate_machine::query::StateFault;
use quorate_machine::types::{Action, Command};
use quorate_threads::{background, watchdog};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::backend::{AppError, SharedNode};
use crate::gateway::admission::LogScan;
use crate::gateway::admission::paced::{HeldAwake, hold_awake};
use crate::gateway::auth::requirement;
use crate::gateway::call::Call;
use crate::gateway::failure::{Effect, Failure};

/// Runs it where blocking is allowed, as soon as one of the few places is free.
pub async fn scan<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(SharedNode) -> Result<T, StateFault> + Send + 'static,
) -> Result<T, Failure> {
    aside(call, &call.api.admission.scans, background::patiently, work).await
}

/// Runs work on the entries that a request names. It has permits of its own, which no scan can take.
pub async fn evaluate<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(SharedNode) -> Result<T, StateFault> + Send + 'static,
) -> Result<T, Failure> {
    aside(call, &call.api.admission.evaluations, background::blocking, work).await
}

/// The time of a processor that is charged at the beginning: the next request of the account sees it, however long this one waits for its place.
const AT_LEAST: Duration = Duration::from_micros(500);

/// Growth of the debt of its account, since a scan came, from which on the scan gives its place back.
const MUCH_MORE: Duration = Duration::from_millis(50);

/// Work that is to be done, unless it is too late.
type Work<T> = Box<dyn FnOnce() -> Option<Result<T, StateFault>> + Send>;

async fn aside<T: Send + 'static, Done: Future<Output = io::Result<Option<Result<T, StateFault>>>>>(
    call: &Call,
    places: &Arc<Semaphore>,
    threads: impl FnOnce(Work<T>) -> Done,
    work: impl FnOnce(SharedNode) -> Result<T, StateFault> + Send + 'static,
) -> Result<T, Failure> {
    let (deadline, rules) = (call.deadline, call.api.node.access_revision());
    let share = &call.lanes().share;
    share.spend(AT_LEAST);
    let known = share.paid_at();
    let mut held = held_place(call, places).await?;
    // Others of its account went before it, and were more work than was known then. It comes back once at most: an account that always owes is
    // to get through, too.
    if call.owes() && Duration::from_nanos(share.paid_at().saturating_sub(known)) > MUCH_MORE {
        drop(held);
        call.pay_again().await?;
        held = held_place(call, places).await?;
    }
    let (_awake, place) = held;
    let (backend, turns, lanes) =
        (call.api.node.clone(), Arc::clone(&call.api.admission.turns), Arc::clone(call.lanes()));
    let done = threads(Box::new(move || {
        // Kept until it ends, even if the request ends before.
        let _place = place;
        // Whoever asked has its answer by now.
        if Instant::now() >= deadline {
            return None;
        }
        let begun = watchdog::processor_time();
        let done = work(backend);
        let took = watchdog::processor_time().saturating_sub(begun);
        turns.charge(lanes, took.saturating_sub(AT_LEAST));
        Some(done)
    }));
    let done = done.await;
    // Whoever asked was judged before it waited.
    if !call.api.auth.is_open() && call.api.node.access_revision() != rules {
        let why = "users, roles or tokens changed while the request was at work; ask again";
        return Err(Failure::new(ErrorCode::NotReady, Applied::No, why));
    }
    match done {
        Ok(Some(outcome)) => outcome.map_err(|fault| Failure::from_fault(&fault)),
        Ok(None) => Err(too_late()),
        Err(error) => Err(Failure::from_fault(&StateFault::because("the scan did not end", error))),
    }
}

/// A place of a scan that goes through the log, until it is dropped.
pub struct PlaceInLog<'a> {
    _awake: HeldAwake,
    _of_all: Option<SemaphorePermit<'a>>,
    _own: OwnedSemaphorePermit,
}

/// Waits for one of the few places of scans that go through the log, and so hold up all that is applied. Only a caller with the
/// right waits for it, behind its own requests of the same kind: one caller has one of each kind in the line of all, however many it
/// sends. The head of a caller's own line holds that line while it waits for the other; the reverse never happens.
///
/// None for a dry run, which is one of the scans beside the log: it would keep the log from others while it waits for its place there.
pub async fn place_in_log<'a>(
    call: &'a Call,
    what: LogScan,
    action: &Action,
    dry_run: bool,
) -> Result<Option<PlaceInLog<'a>>, Failure> {
    if dry_run {
        return Ok(None);
    }
    call.caller().admit(call.deadline, &requirement::on_action(action)).await?;
    let mut own = in_time(call, call.own_log_scans(what).acquire_owned()).await?;
    // It pays for those before it in its own line, and leaves the line for that: it gives its turn back and needs another, and the turns may all be
    // held by claims behind it in the line.
    if call.owes() {
        drop(own);
        call.pay_again().await?;
        own = in_time(call, call.own_log_scans(what).acquire_owned()).await?;
    }
    let _awake = hold_awake();
    let command = Command { principal: call.who().name().to_owned(), ..Command::unnamed(action.clone()) };
    // A command that is known to be dear goes through the queue of dear ones, which pauses between two. Other callers must not wait here for that pause.
    let of_all = match call.api.node.is_dear(&command) {
        true => None,
        false => Some(in_time(call, call.api.admission.log_scans.acquire()).await?),
    };
    Ok(Some(PlaceInLog { _awake, _of_all: of_all, _own: own }))
}

/// Waits for a place of all callers, and is awake while it does and while it holds it.
async fn held_place(call: &Call, places: &Arc<Semaphore>) -> Result<(HeldAwake, OwnedSemaphorePermit), Failure> {
    let awake = hold_awake();
    Ok((awake, in_time(call, Arc::clone(places).acquire_owned()).await?))
}

/// Waits for a place until the deadline.
async fn in_time<P>(call: &Call, place: impl Future<Output = Result<P, AcquireError>>) -> Result<P, Failure> {
    let waited = tokio::time::timeout_at(call.deadline.into(), place).await;
    Ok(waited.map_err(|_late| too_late())?.expect(OPEN))
}

const OPEN: &str = "these semaphores are never closed";

/// Nothing was begun.
fn too_late() -> Failure {
    let failure = Failure::from_app(AppError::TimeoutNotProposed, Effect::Read);
    failure.saying("the deadline passed while other listings, finds, bulks and the like were at work on this node")
}

/// Reads a body that may take long to understand, however short it is: where it holds up nobody else.
pub async fn parse_aside<T: Send + 'static>(
    call: &Call,
    body: Bytes,
    read: impl FnOnce(&[u8]) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    evaluate(call, move |_| Ok(read(&body))).await?
}

/// Reads a body; a long one where it holds up nobody else.
pub async fn parse<T: Send + 'static>(
    call: &Call,
    body: Bytes,
    read: impl FnOnce(&[u8]) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match body.len() {
        0..=background::IN_PLACE_BYTES_MAX => read(&body),
        _ => parse_aside(call, body, read).await,
    }
}
