//! What is wrong with a command about tasks whatever the state.
//!
//! Owns the bounds that every node applies. Its texts are kept in the request table, so they are replicated state: a build that
//! words them otherwise would differ from its peers.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::limits;
use crate::types::{AfterFailure, NewTask, Recurrence, Requeue, RetryPlan, Start, TaskOp, TaskVerb};

/// What is wrong with it, if anything.
pub(in crate::machine) fn fault(op: &TaskOp) -> Option<String> {
    match &op.verb {
        TaskVerb::Schedule(tasks) => {
            within("tasks at once", tasks.len() as u64, 1..=limits::TASKS_SCHEDULED_MAX as u64)
                .or_else(|| tasks.iter().find_map(fault_of_task))
                .or_else(|| twice(tasks))
        }
        TaskVerb::ScheduleOne(task) => fault_of_task(task),
        TaskVerb::Claim { limit, lease_ms, worker, session: _ } => {
            within("tasks at once", u64::from(*limit), 1..=u64::from(limits::CLAIM_LIMIT_MAX))
                .or_else(|| lease(*lease_ms))
                .or_else(|| text("the name of a worker", worker, limits::TASK_WORKER_BYTES_MAX))
        }
        TaskVerb::Extend { lease_ms, .. } => lease(*lease_ms),
        TaskVerb::Fail { error, then, .. } => {
            text("an error", error, limits::TASK_ERROR_BYTES_MAX).or_else(|| match then {
                AfterFailure::RetryIn(ms) => pause(*ms),
                AfterFailure::Retry | AfterFailure::Die | AfterFailure::GiveBack => None,
            })
        }
        TaskVerb::Requeue(Requeue::Oldest(limit)) => {
            within("tasks at once", u64::from(*limit), 1..=u64::from(limits::TASKS_REQUEUED_MAX))
        }
        TaskVerb::Complete(_) | TaskVerb::Cancel(_) | TaskVerb::Requeue(Requeue::One(_)) | TaskVerb::Plan(_) => None,
    }
}

/// That two tasks to be scheduled have one id, if they have: they would take one revision.
fn twice(tasks: &[NewTask]) -> Option<String> {
    let mut ids = BTreeSet::new();
    let again = tasks.iter().filter_map(|task| task.id.as_ref()).find(|id| !ids.insert(*id));
    again.map(|id| format!("the task {id} twice at once"))
}

fn fault_of_task(task: &NewTask) -> Option<String> {
    let NewTask { id, payload, start, recurrence, retry, keep_ms, replace: _ } = task;
    if id.as_ref().is_some_and(crate::types::TaskId::is_made) {
        return Some("an id that begins with a tilde".into());
    }
    let RetryPlan { max_attempts, initial_ms, max_ms, factor_milli } = retry;
    let is_cron = matches!(recurrence, Some(Recurrence::Cron { .. }));
    if is_cron != (*start == Start::Planned) {
        return Some("a plan without a pattern, or a pattern without a plan".into());
    }
    within("bytes in a payload", payload.data.len() as u64, 0..=limits::VALUE_BYTES_MAX as u64)
        .or_else(|| within("attempts", u64::from(*max_attempts), 1..=u64::from(limits::TASK_ATTEMPTS_MAX)))
        .or_else(|| pause(*initial_ms))
        .or_else(|| pause(*max_ms))
        .or_else(|| {
            within("thousandths as a factor", u64::from(*factor_milli), 1_000..=limits::TASK_FACTOR_MILLI_MAX.into())
        })
        .or_else(|| within("milliseconds to keep an id", *keep_ms, 0..=limits::TASK_KEEP_MS_MAX))
        .or_else(|| match start {
            Start::In(ms) => within("milliseconds of delay", *ms, 0..=limits::TTL_MS_MAX),
            Start::At(_) | Start::Planned => None,
        })
        .or_else(|| match recurrence {
            Some(Recurrence::Every(ms)) => {
                within("milliseconds between occurrences", *ms, limits::TASK_EVERY_MS_MIN..=limits::TASK_EVERY_MS_MAX)
            }
            Some(Recurrence::Cron { pattern, zone }) => text("a cron pattern", pattern, limits::TASK_CRON_BYTES_MAX)
                .or_else(|| text("a time zone", zone, limits::TASK_CRON_BYTES_MAX)),
            None => None,
        })
}

fn lease(ms: u64) -> Option<String> {
    within("milliseconds of lease", ms, limits::TASK_LEASE_MS_MIN..=limits::TASK_LEASE_MS_MAX)
}

fn pause(ms: u64) -> Option<String> {
    within("milliseconds before another attempt", ms, 0..=limits::TASK_PAUSE_MS_MAX)
}

fn within(what: &str, given: u64, bounds: RangeInclusive<u64>) -> Option<String> {
    let (least, most) = (bounds.start(), bounds.end());
    (!bounds.contains(&given)).then(|| format!("{given} {what}; {least} to {most}"))
}

fn text(what: &str, given: &str, bytes_max: usize) -> Option<String> {
    let bytes = given.len();
    (bytes > bytes_max).then(|| format!("{what} of {bytes} bytes; the longest has {bytes_max}"))
}
