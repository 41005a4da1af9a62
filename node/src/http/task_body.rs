//! Bodies of requests about tasks.
//!
//! Owns reading them, with a pointer to every fault. The names are those of `quorate_api`, which tests hold this file to.

use std::ops::RangeInclusive;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_store::document::time as rfc3339;
use quorate_store::limits::{
    CLAIM_LIMIT_MAX, TASK_ATTEMPTS_MAX, TASK_CRON_BYTES_MAX, TASK_ERROR_BYTES_MAX, TASK_EVERY_MS_MAX,
    TASK_EVERY_MS_MIN, TASK_FACTOR_MILLI_MAX, TASK_KEEP_MS_DEFAULT, TASK_KEEP_MS_MAX, TASK_LEASE_MS_DEFAULT,
    TASK_LEASE_MS_MAX, TASK_LEASE_MS_MIN, TASK_PAUSE_MS_MAX, TASK_WORKER_BYTES_MAX, TASKS_REQUEUED_MAX,
    TASKS_SCHEDULED_MAX, TTL_MS_MAX, VALUE_BYTES_MAX,
};
use quorate_store::types::{
    AfterFailure, ContentKind, NewTask, Recurrence, Requeue, RetryPlan, Revision, SessionId, Start, TaskId, TaskVerb,
    Ticket, Value, WallMillis,
};
use serde_json::value::RawValue;

use super::error::Failure;
use super::extract::{self, Faults};
use super::headers::decimal;
use super::op_body::{self, typed};
use super::{command, coordinate, json};
use crate::app::cron::{self, CronFault};
use crate::app::wall_now;
use crate::limits::WAIT_MS_MAX;

const SPEC_FIELDS: [&str; 14] = [
    "id",
    "payload",
    "payload_base64",
    "execute_at",
    "delay_ms",
    "every_ms",
    "cron",
    "zone",
    "max_attempts",
    "backoff",
    "keep_ms",
    "replace",
    "request_id",
    "dry_run",
];

/// Where the zone of a pattern is not given.
const ZONE_DEFAULT: &str = "UTC";

/// Tasks to be scheduled.
pub struct ScheduleWish {
    /// They.
    pub tasks: Vec<NewTask>,
    /// Whether they were given as a list, and are answered so.
    pub is_list: bool,
    /// Only evaluate it.
    pub dry_run: bool,
    /// The caller's request id.
    pub request_id: Option<String>,
}

impl ScheduleWish {
    /// Whether a body may have a pattern in it, whose next time is reckoned as it is read. A name may be written with escapes.
    pub fn may_reckon(text: &[u8]) -> bool {
        text.contains(&b'\\') || text.windows(6).any(|part| part == b"\"cron\"")
    }

    /// Reads a body that is known to be strict JSON.
    pub fn read(text: &[u8]) -> Result<Self, Failure> {
        let mut faults = Faults::default();
        let is_list = json::fields(text).is_ok_and(|fields| fields.iter().any(|(name, _)| name == "tasks"));
        let wish = if is_list { Self::read_list(text, &mut faults) } else { Self::read_one(text, &mut faults) };
        faults.check()?;
        wish.ok_or_else(|| Failure::invalid("", "the schedule is not complete"))
    }

    fn read_one(text: &[u8], faults: &mut Faults) -> Option<Self> {
        let fields = extract::object(text, "a task", SPEC_FIELDS, faults)?;
        let [.., id, dry] = fields;
        let (request_id, dry_run) = (request_id(id, faults), dry_run(dry, faults));
        let tasks = vec![new_task(fields, faults)?];
        Some(Self { tasks, is_list: false, dry_run, request_id })
    }

    fn read_list(text: &[u8], faults: &mut Faults) -> Option<Self> {
        let [list, id, dry] = extract::object(text, "a schedule", ["tasks", "request_id", "dry_run"], faults)?;
        let (request_id, dry_run) = (request_id(id, faults), dry_run(dry, faults));
        let Some((items, count)) = list.and_then(|raw| json::items(raw, TASKS_SCHEDULED_MAX)) else {
            faults.add("/tasks", "must be a list of tasks");
            return None;
        };
        if count == 0 || count > TASKS_SCHEDULED_MAX {
            faults.add("/tasks", format!("has {count} tasks; 1 to {TASKS_SCHEDULED_MAX} at once"));
            return None;
        }
        let mut tasks = Vec::with_capacity(items.len());
        for (at, raw) in items.into_iter().enumerate() {
            if faults.is_full() {
                break;
            }
            let before = faults.enter(format_args!("/tasks/{at}"));
            tasks.extend(Self::read_item(raw, faults));
            faults.leave(before);
        }
        Some(Self { tasks, is_list: true, dry_run, request_id })
    }

    fn read_item(raw: &RawValue, faults: &mut Faults) -> Option<NewTask> {
        let fields = extract::object(raw.get().as_bytes(), "a task", SPEC_FIELDS, faults)?;
        for (field, pointer) in fields[12..].iter().zip(["/request_id", "/dry_run"]) {
            if field.is_some() {
                faults.add(pointer, "belongs to the whole list");
            }
        }
        new_task(fields, faults)
    }
}

fn new_task(fields: [Option<&RawValue>; 14], faults: &mut Faults) -> Option<NewTask> {
    let [id, payload, base64, execute_at, delay, every, cron, zone, max_attempts, backoff, keep, replace, ..] = fields;
    let id = id.map(|raw| new_id(raw, faults));
    let payload = self::payload(payload, base64, faults);
    let when = When {
        execute_at: execute_at.map(|raw| time(raw, faults)),
        delay_ms: delay.map(|raw| number(raw, "/delay_ms", 0..=TTL_MS_MAX, faults)),
        every_ms: every.map(|raw| number(raw, "/every_ms", TASK_EVERY_MS_MIN..=TASK_EVERY_MS_MAX, faults)),
        cron: cron.map(|raw| short_text(raw, "/cron", TASK_CRON_BYTES_MAX, faults)),
        zone: zone.map(|raw| short_text(raw, "/zone", TASK_CRON_BYTES_MAX, faults)),
    };
    let when = when.check(faults);
    let mut retry = retry_plan(backoff, faults);
    if let Some(raw) = max_attempts {
        retry.max_attempts = command::whole(raw, "/max_attempts", 1..=TASK_ATTEMPTS_MAX, faults)?;
    }
    let keep_ms = match keep {
        Some(raw) => number(raw, "/keep_ms", 0..=TASK_KEEP_MS_MAX, faults)?,
        None => TASK_KEEP_MS_DEFAULT,
    };
    let replace = replace.and_then(|raw| typed(raw, "/replace", "true or false", faults)).unwrap_or(false);
    let (start, recurrence) = when?;
    // A fault of an id that is there must not make it a task without one.
    let id = match id {
        Some(id) => Some(id?),
        None => None,
    };
    Some(NewTask { id, payload: payload?, start, recurrence, retry, keep_ms, replace })
}

/// When a task is due, as far as that was given; what was given and is wrong is `Some(None)`.
struct When {
    execute_at: Option<Option<WallMillis>>,
    delay_ms: Option<Option<u64>>,
    every_ms: Option<Option<u64>>,
    cron: Option<Option<String>>,
    zone: Option<Option<String>>,
}

impl When {
    fn check(self, faults: &mut Faults) -> Option<(Start, Option<Recurrence>)> {
        let Self { execute_at, delay_ms, every_ms, cron, zone } = self;
        if execute_at.is_some() && delay_ms.is_some() {
            faults.add("/delay_ms", "given beside execute_at; choose one");
        }
        if zone.is_some() && cron.is_none() {
            faults.add("/zone", "belongs to cron, which is missing");
        }
        if let Some(pattern) = cron {
            let others = [("execute_at", execute_at.is_some()), ("delay_ms", delay_ms.is_some())];
            for (name, _) in others.into_iter().chain([("every_ms", every_ms.is_some())]).filter(|(_, given)| *given) {
                faults.add(format!("/{name}"), "given beside cron, which says when; choose one");
            }
            let zone = zone.unwrap_or_else(|| Some(ZONE_DEFAULT.to_owned()))?;
            return check_cron(pattern?, zone, faults).map(|recurrence| (Start::Planned, Some(recurrence)));
        }
        let every_ms = match every_ms {
            Some(ms) => Some(ms?),
            None => None,
        };
        let start = match (execute_at, delay_ms) {
            (Some(at), _) => Start::At(at?),
            (None, Some(ms)) => Start::In(ms?),
            (None, None) => Start::In(every_ms.unwrap_or(0)),
        };
        Some((start, every_ms.map(Recurrence::Every)))
    }
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

fn new_id(raw: &RawValue, faults: &mut Faults) -> Option<TaskId> {
    let id = task_id(raw, faults)?;
    if id.is_made() {
        faults.add("/id", "begins with `~`, as only those do that are given to tasks without an id");
        return None;
    }
    Some(id)
}

fn payload(json: Option<&RawValue>, base64: Option<&RawValue>, faults: &mut Faults) -> Option<Value> {
    let (value, pointer) = match (json, base64) {
        (Some(_), Some(_)) => {
            faults.add("/payload_base64", "given beside payload; choose one");
            return None;
        }
        (None, Some(raw)) => {
            let text = op_body::text(raw, "/payload_base64", faults)?;
            let Ok(data) = STANDARD.decode(text.as_bytes()) else {
                faults.add("/payload_base64", "not base64 (the standard alphabet, padded)");
                return None;
            };
            (Value { kind: ContentKind::Bytes, data }, "/payload_base64")
        }
        (json, None) => {
            let text = json.map_or("null", RawValue::get);
            (Value { kind: ContentKind::Json, data: text.as_bytes().to_vec() }, "/payload")
        }
    };
    if value.data.len() > VALUE_BYTES_MAX {
        faults.add_too_large(pointer, "a payload", VALUE_BYTES_MAX, value.data.len());
        return None;
    }
    Some(value)
}

fn retry_plan(backoff: Option<&RawValue>, faults: &mut Faults) -> RetryPlan {
    let mut plan = RetryPlan::default();
    let Some(raw) = backoff else { return plan };
    let before = faults.enter(format_args!("/backoff"));
    let fields = extract::object(raw.get().as_bytes(), "a backoff", ["initial_ms", "max_ms", "factor"], faults);
    let [initial, max, factor] = fields.unwrap_or_default();
    let mut pause =
        |raw: Option<&RawValue>, pointer| raw.and_then(|raw| number(raw, pointer, 0..=TASK_PAUSE_MS_MAX, faults));
    (plan.initial_ms, plan.max_ms) =
        (pause(initial, "/initial_ms").unwrap_or(plan.initial_ms), pause(max, "/max_ms").unwrap_or(plan.max_ms));
    if let Some(raw) = factor {
        let most = f64::from(TASK_FACTOR_MILLI_MAX) / 1_000.0;
        let factor = serde_json::from_str::<f64>(raw.get()).ok().filter(|factor| (1.0..=most).contains(factor));
        match factor {
            // In bounds that fit into the type.
            Some(factor) => plan.factor_milli = (factor * 1_000.0).round() as u32,
            None => faults.add("/factor", format!("must be a number from 1 to {most}")),
        }
    }
    faults.leave(before);
    plan
}

/// A claim.
pub struct ClaimWish {
    /// Most tasks.
    pub limit: u32,
    /// How long it holds.
    pub lease_ms: u64,
    /// Who claims.
    pub worker: String,
    /// The session that it hangs on.
    pub session: Option<SessionId>,
    /// How long it waits until something is due.
    pub wait: Duration,
    /// The caller's request id.
    pub request_id: Option<String>,
}

const CLAIM_FIELDS: [&str; 6] = ["limit", "lease_ms", "worker", "session", "wait_ms", "request_id"];

impl ClaimWish {
    /// Reads a body that is known to be strict JSON.
    pub fn read(text: &[u8]) -> Result<Self, Failure> {
        let mut faults = Faults::default();
        let [limit, lease, worker, session, wait, id] =
            extract::object(text, "a claim", CLAIM_FIELDS, &mut faults).unwrap_or_default();
        let limit = limit.and_then(|raw| command::whole(raw, "/limit", 1..=CLAIM_LIMIT_MAX, &mut faults));
        let lease_ms = lease_ms(lease, &mut faults);
        let worker = worker.and_then(|raw| short_text(raw, "/worker", TASK_WORKER_BYTES_MAX, &mut faults));
        let session = session.and_then(|raw| coordinate::session(raw, "/session", &mut faults));
        let wait_ms = wait.and_then(|raw| number(raw, "/wait_ms", 0..=WAIT_MS_MAX, &mut faults));
        let request_id = request_id(id, &mut faults);
        faults.check()?;
        let wait = Duration::from_millis(wait_ms.unwrap_or(0));
        let (limit, worker) = (limit.unwrap_or(1), worker.unwrap_or_default());
        Ok(Self { limit, lease_ms, worker, session, wait, request_id })
    }
}

/// What is done with a task, and the caller's request id.
type Act = (TaskVerb, Option<String>);

/// Reads the body of `extend`.
pub fn extend(text: &[u8]) -> Result<Act, Failure> {
    act(text, "an extension", ["id", "token", "lease_ms", "request_id"], |[id, token, lease, _], faults| {
        let lease_ms = lease_ms(lease, faults);
        Some(TaskVerb::Extend { ticket: ticket(id, token, faults)?, lease_ms })
    })
}

/// Reads the body of `complete`.
pub fn complete(text: &[u8]) -> Result<Act, Failure> {
    act(text, "a completion", ["id", "token", "request_id"], |[id, token, _], faults| {
        ticket(id, token, faults).map(TaskVerb::Complete)
    })
}

/// Reads the body of `fail`.
pub fn fail(text: &[u8]) -> Result<Act, Failure> {
    let names = ["id", "token", "error", "retry_in_ms", "dead", "release", "request_id"];
    act(text, "a failure", names, |[id, token, error, retry, dead, release, _], faults| {
        let ticket = ticket(id, token, faults);
        let error = error.and_then(|raw| op_body::text(raw, "/error", faults));
        let retry_in = retry.and_then(|raw| number(raw, "/retry_in_ms", 0..=TASK_PAUSE_MS_MAX, faults));
        let mut flag = |raw: Option<&RawValue>, pointer| {
            raw.and_then(|raw| typed(raw, pointer, "true or false", faults)).unwrap_or(false)
        };
        let (dead, release) = (flag(dead, "/dead"), flag(release, "/release"));
        let then = match (retry_in, dead, release) {
            (None, false, false) => AfterFailure::Retry,
            (Some(ms), false, false) => AfterFailure::RetryIn(ms),
            (None, true, false) => AfterFailure::Die,
            (None, false, true) => AfterFailure::GiveBack,
            _ => {
                faults.add("", "at most one of retry_in_ms, dead and release");
                return None;
            }
        };
        let mut error = error.map_or_else(|| "failed".to_owned(), |error| error.into_owned());
        if let Some(end) = (0..=TASK_ERROR_BYTES_MAX.min(error.len())).rev().find(|at| error.is_char_boundary(*at)) {
            error.truncate(end);
        }
        Some(TaskVerb::Fail { ticket: ticket?, error, then })
    })
}

/// Reads the body of `cancel`.
pub fn cancel(text: &[u8]) -> Result<Act, Failure> {
    act(text, "a cancellation", ["id", "request_id"], |[id, _], faults| required_id(id, faults).map(TaskVerb::Cancel))
}

/// Reads the body of `requeue`.
pub fn requeue(text: &[u8]) -> Result<Act, Failure> {
    const LIMIT_DEFAULT: u32 = 100;
    act(text, "a requeue", ["id", "limit", "request_id"], |[id, limit, _], faults| match (id, limit) {
        (Some(_), Some(_)) => {
            faults.add("/limit", "given beside id; choose one");
            None
        }
        (Some(id), None) => task_id(id, faults).map(|id| TaskVerb::Requeue(Requeue::One(id))),
        (None, Some(raw)) => {
            let limit = command::whole(raw, "/limit", 1..=TASKS_REQUEUED_MAX, faults)?;
            Some(TaskVerb::Requeue(Requeue::Oldest(limit)))
        }
        (None, None) => Some(TaskVerb::Requeue(Requeue::Oldest(LIMIT_DEFAULT))),
    })
}

/// Reads a body whose last field is the request id.
fn act<const N: usize>(
    text: &[u8],
    what: &str,
    names: [&str; N],
    read: impl FnOnce([Option<&RawValue>; N], &mut Faults) -> Option<TaskVerb>,
) -> Result<Act, Failure> {
    let mut faults = Faults::default();
    let read = extract::object(text, what, names, &mut faults).map(|fields| {
        let id = request_id(fields[N - 1], &mut faults);
        (read(fields, &mut faults), id)
    });
    faults.check()?;
    match read {
        Some((Some(verb), id)) => Ok((verb, id)),
        _ => Err(Failure::invalid("", format!("{what} that is not complete"))),
    }
}

fn ticket(id: Option<&RawValue>, token: Option<&RawValue>, faults: &mut Faults) -> Option<Ticket> {
    let id = required_id(id, faults);
    let token = token.and_then(self::token);
    if token.is_none() {
        faults.add("/token", "missing or no number; give the `token` of the claim");
    }
    Some(Ticket { id: id?, token: token? })
}

/// A number, or one as a string: some languages have no numbers of 64 bits.
fn token(raw: &RawValue) -> Option<Revision> {
    match json::text(raw) {
        Some(text) => decimal(&text),
        None => decimal(raw.get()),
    }
}

fn required_id(raw: Option<&RawValue>, faults: &mut Faults) -> Option<TaskId> {
    match raw {
        Some(raw) => task_id(raw, faults),
        None => {
            faults.add("/id", "missing; which task");
            None
        }
    }
}

fn task_id(raw: &RawValue, faults: &mut Faults) -> Option<TaskId> {
    let text = op_body::text(raw, "/id", faults)?;
    TaskId::new(text).map_err(|why| faults.add("/id", why.to_string())).ok()
}

fn lease_ms(raw: Option<&RawValue>, faults: &mut Faults) -> u64 {
    let given = raw.and_then(|raw| number(raw, "/lease_ms", TASK_LEASE_MS_MIN..=TASK_LEASE_MS_MAX, faults));
    given.unwrap_or(TASK_LEASE_MS_DEFAULT)
}

fn time(raw: &RawValue, faults: &mut Faults) -> Option<WallMillis> {
    let text = op_body::text(raw, "/execute_at", faults)?;
    // A part of a millisecond is the next one: nothing is early.
    let ms = rfc3339::parse(&text).and_then(|nanos| {
        u64::try_from(nanos.div_euclid(1_000_000) + i128::from(nanos.rem_euclid(1_000_000) > 0)).ok()
    });
    if ms.is_none() {
        faults.add("/execute_at", "must be a time after 1970 in RFC 3339, such as `2026-11-21T08:00:00Z`");
    }
    ms
}

fn short_text(raw: &RawValue, pointer: &str, bytes_max: usize, faults: &mut Faults) -> Option<String> {
    let text = op_body::text(raw, pointer, faults)?;
    if text.len() > bytes_max {
        faults.add(pointer, format!("has {} bytes; at most {bytes_max}", text.len()));
        return None;
    }
    Some(text.into_owned())
}

fn number(raw: &RawValue, pointer: &str, bounds: RangeInclusive<u64>, faults: &mut Faults) -> Option<u64> {
    let number = decimal(raw.get()).filter(|number| bounds.contains(number));
    if number.is_none() {
        faults.add(pointer, format!("must be a whole number from {} to {}", bounds.start(), bounds.end()));
    }
    number
}

fn request_id(raw: Option<&RawValue>, faults: &mut Faults) -> Option<String> {
    raw.and_then(|raw| op_body::request_id(raw, faults)).map(|id| id.into_owned())
}

fn dry_run(raw: Option<&RawValue>, faults: &mut Faults) -> bool {
    raw.and_then(|raw| typed(raw, "/dry_run", "true or false", faults)).unwrap_or(false)
}
