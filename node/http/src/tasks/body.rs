//! Bodies of requests about tasks.
//!
//! Owns reading them, with a pointer to every fault. The names are those of `quorate_api`, which tests hold this file to.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_api::{
    Moment, TaskBackoff, TaskCancel, TaskClaim, TaskComplete, TaskExtend, TaskFail, TaskRequeue, TaskSpec,
};
use quorate_machine::document::time as rfc3339;
use quorate_machine::limits::{
    CLAIM_LIMIT_MAX, TASK_ATTEMPTS_MAX, TASK_CRON_BYTES_MAX, TASK_ERROR_BYTES_MAX, TASK_EVERY_MS_MAX,
    TASK_EVERY_MS_MIN, TASK_FACTOR_MILLI_MAX, TASK_KEEP_MS_DEFAULT, TASK_KEEP_MS_MAX, TASK_LEASE_MS_DEFAULT,
    TASK_LEASE_MS_MAX, TASK_LEASE_MS_MIN, TASK_PAUSE_MS_MAX, TASK_WORKER_BYTES_MAX, TASKS_REQUEUED_MAX,
    TASKS_SCHEDULED_MAX, TTL_MS_MAX, VALUE_BYTES_MAX,
};
use quorate_machine::types::{
    AfterFailure, ContentKind, NewTask, Recurrence, Requeue, RetryPlan, Revision, Start, TaskId, TaskVerb, Ticket,
    Value, WallMillis,
};
use quorate_node_core::cron::{self, CronFault};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::limits::WAIT_MS_MAX;
use quorate_node_core::millis::wall_now;

use crate::coordinate;
use crate::input::extract::Faults;

/// Where the zone of a pattern is not given.
const ZONE_DEFAULT: &str = "UTC";

/// Tasks to be scheduled, as the log has them.
pub fn new_tasks(specs: &[TaskSpec]) -> Result<Vec<NewTask>, Failure> {
    let mut faults = Faults::default();
    if specs.is_empty() || specs.len() > TASKS_SCHEDULED_MAX {
        let detail = format!("has {} tasks; 1 to {TASKS_SCHEDULED_MAX} at once", specs.len());
        return Err(Failure::invalid("/tasks", detail));
    }
    let mut tasks = Vec::with_capacity(specs.len());
    for (at, spec) in specs.iter().enumerate() {
        if faults.is_full() {
            break;
        }
        let before = faults.enter(format_args!("/tasks/{at}"));
        for (given, pointer) in [(spec.request_id.is_some(), "/request_id"), (spec.dry_run, "/dry_run")] {
            if given {
                faults.add(pointer, "belongs to the whole list");
            }
        }
        tasks.extend(checked(spec, &mut faults));
        faults.leave(before);
    }
    faults.check()?;
    Ok(tasks)
}

/// A task to be scheduled, as the log has it.
pub fn new_task(spec: &TaskSpec) -> Result<NewTask, Failure> {
    let mut faults = Faults::default();
    let task = checked(spec, &mut faults);
    faults.complete(task)
}

/// `None` only where a fault was noted.
fn checked(spec: &TaskSpec, faults: &mut Faults) -> Option<NewTask> {
    // A fault of an id that is there must not make it a task without one.
    let id = spec.id.as_deref().map(|id| new_id(id, faults));
    let payload = payload(spec, faults);
    let when = when(spec, faults);
    let mut retry = retry_plan(spec.backoff.as_ref(), faults);
    if let Some(attempts) = faults.within("/max_attempts", spec.max_attempts, 1..=TASK_ATTEMPTS_MAX) {
        retry.max_attempts = attempts;
    }
    let keep_ms = faults.within("/keep_ms", spec.keep_ms, 0..=TASK_KEEP_MS_MAX).unwrap_or(TASK_KEEP_MS_DEFAULT);
    let id = match id {
        Some(id) => Some(id?),
        None => None,
    };
    let ((start, recurrence), payload) = when.zip(payload)?;
    Some(NewTask { id, payload, start, recurrence, retry, keep_ms, replace: spec.replace })
}

/// When a task is due first, and when again.
fn when(spec: &TaskSpec, faults: &mut Faults) -> Option<(Start, Option<Recurrence>)> {
    let execute_at = spec.execute_at.as_ref().map(|moment| time(moment, faults));
    faults.within("/delay_ms", spec.delay_ms, 0..=TTL_MS_MAX);
    faults.within("/every_ms", spec.every_ms, TASK_EVERY_MS_MIN..=TASK_EVERY_MS_MAX);
    for (text, pointer) in [(&spec.cron, "/cron"), (&spec.zone, "/zone")] {
        short(text.as_deref(), pointer, TASK_CRON_BYTES_MAX, faults);
    }
    if execute_at.is_some() && spec.delay_ms.is_some() {
        faults.add("/delay_ms", "given beside execute_at; choose one");
    }
    if spec.zone.is_some() && spec.cron.is_none() {
        faults.add("/zone", "belongs to cron, which is missing");
    }
    if let Some(pattern) = &spec.cron {
        let others = [
            ("execute_at", execute_at.is_some()),
            ("delay_ms", spec.delay_ms.is_some()),
            ("every_ms", spec.every_ms.is_some()),
        ];
        for (name, _) in others.into_iter().filter(|(_, given)| *given) {
            faults.add(format!("/{name}"), "given beside cron, which says when; choose one");
        }
        let zone = spec.zone.clone().unwrap_or_else(|| ZONE_DEFAULT.to_owned());
        if pattern.len().max(zone.len()) > TASK_CRON_BYTES_MAX {
            return None;
        }
        return check_cron(pattern.clone(), zone, faults).map(|recurrence| (Start::Planned, Some(recurrence)));
    }
    let start = match (execute_at, spec.delay_ms) {
        (Some(at), _) => Start::At(at?),
        (None, Some(ms)) => Start::In(ms),
        (None, None) => Start::In(spec.every_ms.unwrap_or(0)),
    };
    Some((start, spec.every_ms.map(Recurrence::Every)))
}

/// A pattern that will fire. Where it does is reckoned again by the leader: a retry must be the same command.
fn check_cron(pattern: String, zone: String, faults: &mut Faults) -> Option<Recurrence> {
    match cron::check(&pattern, &zone, wall_now()) {
        Ok(()) => return Some(Recurrence::Cron { pattern, zone }),
        Err(why @ CronFault::Zone) => faults.add("/zone", why.to_string()),
        Err(why) => faults.add("/cron", why.to_string()),
    }
    None
}

fn new_id(text: &str, faults: &mut Faults) -> Option<TaskId> {
    let id = task_id(text, faults)?;
    if id.is_made() {
        faults.add("/id", "begins with `~`, as only those do that are given to tasks without an id");
        return None;
    }
    Some(id)
}

fn payload(spec: &TaskSpec, faults: &mut Faults) -> Option<Value> {
    let (value, pointer) = match (&spec.payload, &spec.payload_base64) {
        (Some(_), Some(_)) => {
            faults.add("/payload_base64", "given beside payload; choose one");
            return None;
        }
        (None, Some(text)) => {
            let Ok(data) = STANDARD.decode(text.as_bytes()) else {
                faults.add("/payload_base64", "not base64 (the standard alphabet, padded)");
                return None;
            };
            (Value { kind: ContentKind::Bytes, data }, "/payload_base64")
        }
        (json, None) => {
            let text = json.as_ref().map_or("null", |json| json.0.get());
            (Value { kind: ContentKind::Json, data: text.as_bytes().to_vec() }, "/payload")
        }
    };
    if value.data.len() > VALUE_BYTES_MAX {
        faults.add_too_large(pointer, "a payload", VALUE_BYTES_MAX, value.data.len());
        return None;
    }
    Some(value)
}

fn retry_plan(backoff: Option<&TaskBackoff>, faults: &mut Faults) -> RetryPlan {
    let mut plan = RetryPlan::default();
    let Some(backoff) = backoff else { return plan };
    let mut pause = |ms, pointer| faults.within(pointer, ms, 0..=TASK_PAUSE_MS_MAX);
    plan.initial_ms = pause(backoff.initial_ms, "/backoff/initial_ms").unwrap_or(plan.initial_ms);
    plan.max_ms = pause(backoff.max_ms, "/backoff/max_ms").unwrap_or(plan.max_ms);
    let most = f64::from(TASK_FACTOR_MILLI_MAX) / 1_000.0;
    match backoff.factor {
        None => {}
        // In bounds that fit into the type.
        Some(factor) if (1.0..=most).contains(&factor) => plan.factor_milli = (factor * 1_000.0).round() as u32,
        Some(_) => faults.add("/backoff/factor", format!("must be a number from 1 to {most}")),
    }
    plan
}

/// A claim as the log has it, and how long it waits until something is due.
pub fn claim(request: TaskClaim) -> Result<(TaskVerb, Duration), Failure> {
    let mut faults = Faults::default();
    let limit = faults.within("/limit", request.limit, 1..=CLAIM_LIMIT_MAX).unwrap_or(1);
    let lease_ms = lease_ms(request.lease_ms, &mut faults);
    let worker = request.worker.unwrap_or_default();
    short(Some(&worker), "/worker", TASK_WORKER_BYTES_MAX, &mut faults);
    let session = request.session.and_then(|text| coordinate::session(&text, "/session", &mut faults));
    let wait_ms = faults.within("/wait_ms", request.wait_ms, 0..=WAIT_MS_MAX).unwrap_or(0);
    faults.check()?;
    Ok((TaskVerb::Claim { limit, lease_ms, worker, session }, Duration::from_millis(wait_ms)))
}

/// An extension as the log has it.
pub fn extend(request: &TaskExtend) -> Result<TaskVerb, Failure> {
    let mut faults = Faults::default();
    let lease_ms = lease_ms(request.lease_ms, &mut faults);
    let ticket = ticket(&request.id, request.token, &mut faults);
    Ok(TaskVerb::Extend { ticket: faults.complete(ticket)?, lease_ms })
}

/// A completion as the log has it.
pub fn complete(request: &TaskComplete) -> Result<TaskVerb, Failure> {
    let mut faults = Faults::default();
    let ticket = ticket(&request.id, request.token, &mut faults);
    faults.complete(ticket).map(TaskVerb::Complete)
}

/// A failure as the log has it.
pub fn fail(request: TaskFail) -> Result<TaskVerb, Failure> {
    let mut faults = Faults::default();
    let ticket = ticket(&request.id, request.token, &mut faults);
    let retry_in = faults.within("/retry_in_ms", request.retry_in_ms, 0..=TASK_PAUSE_MS_MAX);
    let then = match (retry_in, request.dead, request.release) {
        (None, false, false) => AfterFailure::Retry,
        (Some(ms), false, false) => AfterFailure::RetryIn(ms),
        (None, true, false) => AfterFailure::Die,
        (None, false, true) => AfterFailure::GiveBack,
        _ => {
            faults.add("", "at most one of retry_in_ms, dead and release");
            AfterFailure::Retry
        }
    };
    let mut error = request.error.unwrap_or_else(|| "failed".to_owned());
    if let Some(end) = (0..=TASK_ERROR_BYTES_MAX.min(error.len())).rev().find(|at| error.is_char_boundary(*at)) {
        error.truncate(end);
    }
    Ok(TaskVerb::Fail { ticket: faults.complete(ticket)?, error, then })
}

/// A cancellation as the log has it.
pub fn cancel(request: &TaskCancel) -> Result<TaskVerb, Failure> {
    let mut faults = Faults::default();
    let id = task_id(&request.id, &mut faults);
    faults.complete(id).map(TaskVerb::Cancel)
}

/// A requeue as the log has it.
pub fn requeue(request: &TaskRequeue) -> Result<TaskVerb, Failure> {
    const LIMIT_DEFAULT: u32 = 100;
    let mut faults = Faults::default();
    let which = match (&request.id, request.limit) {
        (Some(_), Some(_)) => {
            faults.add("/limit", "given beside id; choose one");
            None
        }
        (Some(id), None) => task_id(id, &mut faults).map(Requeue::One),
        (None, limit) => {
            let limit = Some(limit.unwrap_or(LIMIT_DEFAULT));
            faults.within("/limit", limit, 1..=TASKS_REQUEUED_MAX).map(Requeue::Oldest)
        }
    };
    faults.complete(which).map(TaskVerb::Requeue)
}

fn ticket(id: &str, token: Revision, faults: &mut Faults) -> Option<Ticket> {
    Some(Ticket { id: task_id(id, faults)?, token })
}

fn task_id(text: &str, faults: &mut Faults) -> Option<TaskId> {
    TaskId::new(text).map_err(|why| faults.add("/id", why.to_string())).ok()
}

fn lease_ms(given: Option<u64>, faults: &mut Faults) -> u64 {
    let given = faults.within("/lease_ms", given, TASK_LEASE_MS_MIN..=TASK_LEASE_MS_MAX);
    given.unwrap_or(TASK_LEASE_MS_DEFAULT)
}

fn time(moment: &Moment, faults: &mut Faults) -> Option<WallMillis> {
    let ms = match moment {
        // A part of a millisecond is the next one: nothing is early.
        Moment::Text(text) => rfc3339::parse(text).and_then(|nanos| {
            u64::try_from(nanos.div_euclid(1_000_000) + i128::from(nanos.rem_euclid(1_000_000) > 0)).ok()
        }),
        // Answers show it in RFC 3339, which ends with the year 9999.
        Moment::UnixMs(ms) => {
            Some(*ms).filter(|ms| i64::try_from(*ms).is_ok_and(|ms| rfc3339::from_unix_ms(ms).is_some()))
        }
    };
    if ms.is_none() {
        let detail =
            "must be a time from 1970 to 9999, in RFC 3339, such as `2026-11-21T08:00:00Z`, or in Unix milliseconds";
        faults.add("/execute_at", detail);
    }
    ms
}

fn short(text: Option<&str>, pointer: &str, bytes_max: usize, faults: &mut Faults) {
    if let Some(text) = text.filter(|text| text.len() > bytes_max) {
        faults.add(pointer, format!("has {} bytes; at most {bytes_max}", text.len()));
    }
}
