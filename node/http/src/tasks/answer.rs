//! Tasks and queues as answers show them.
//!
//! Owns the conversion from what the state has. The token of a claim is shown to nobody but who claimed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_api::{JsonText, QueueStats, TaskBackoff, TaskState as ShownState, TaskView};
use quorate_machine::document::time as rfc3339;
use quorate_machine::keyspace::task::{QueueRow, TaskRow};
use quorate_machine::query::QueueView;
use quorate_machine::types::{
    ClusterMillis, ContentKind, Recurrence, RetryPlan, TaskHead, TaskId, TaskState, Value, WallMillis,
};
use serde_json::value::RawValue;

/// A time as text.
pub fn time(wall: WallMillis) -> String {
    rfc3339::format(wall)
}

/// How far a task is; `None` is not there any more.
pub fn state(state: Option<&TaskState>) -> ShownState {
    match state {
        None => ShownState::Gone,
        Some(TaskState::Scheduled) => ShownState::Scheduled,
        Some(TaskState::Claimed { .. }) => ShownState::Claimed,
        Some(TaskState::Dead { .. }) => ShownState::Dead,
        Some(TaskState::Unplanned) => ShownState::Unplanned,
        Some(TaskState::Done { .. }) => ShownState::Done,
    }
}

/// A payload as JSON, or as bytes in base64.
pub fn payload(payload: Option<&Value>) -> (Option<JsonText>, Option<String>) {
    let Some(Value { kind, data }) = payload else { return (None, None) };
    let json = match kind {
        ContentKind::Json => String::from_utf8(data.clone()).ok().and_then(|text| RawValue::from_string(text).ok()),
        ContentKind::Bytes => None,
    };
    // Text that is stored as JSON was checked when it came in. Should it not be JSON, its bytes are still the truth.
    let base64 = json.is_none().then(|| STANDARD.encode(data));
    (json.map(JsonText), base64)
}

/// A task as it is at `clock`.
pub fn task(id: &TaskId, row: &TaskRow, clock: ClusterMillis) -> TaskView {
    let TaskHead { retry, recurrence, .. } = &row.head;
    let head = &row.head;
    let is_done = matches!(head.state, TaskState::Done { .. });
    let (payload, payload_base64) = payload(Some(&row.payload).filter(|_| !is_done));
    let (every_ms, cron, zone) = match recurrence {
        Some(Recurrence::Every(ms)) => (Some(*ms), None, None),
        Some(Recurrence::Cron { pattern, zone }) => (None, Some(pattern.clone()), Some(zone.clone())),
        None => (None, None, None),
    };
    let mut view = TaskView {
        id: id.to_string(),
        state: state(Some(&head.state)),
        execute_at: (head.state != TaskState::Unplanned).then(|| time(head.due)),
        created_at: time(head.created),
        attempts: head.attempts,
        max_attempts: retry.max_attempts,
        backoff: backoff(retry),
        every_ms,
        cron,
        zone,
        runs: head.runs,
        last_error: head.last_error.clone(),
        worker: None,
        session: None,
        lease_ms: None,
        died_at: None,
        kept_ms: None,
        payload,
        payload_base64,
        revision: None,
        index: None,
    };
    match &head.state {
        TaskState::Claimed { until, worker, session, .. } => {
            view.lease_ms = Some(until.saturating_sub(clock));
            view.session = session.map(|id| id.to_string());
            view.worker = Some(worker.clone()).filter(|worker| !worker.is_empty());
        }
        TaskState::Dead { at } => view.died_at = Some(time(*at)),
        TaskState::Done { until } => view.kept_ms = Some(until.saturating_sub(clock)),
        TaskState::Scheduled | TaskState::Unplanned => {}
    }
    view
}

fn backoff(retry: &RetryPlan) -> TaskBackoff {
    TaskBackoff {
        initial_ms: Some(retry.initial_ms),
        max_ms: Some(retry.max_ms),
        factor: Some(f64::from(retry.factor_milli) / 1_000.0),
    }
}

/// A queue in numbers.
pub fn queue(view: &QueueView) -> QueueStats {
    let QueueRow { scheduled, claimed, dead, unplanned, kept, completed, failed, died, cancelled, .. } = view.row;
    QueueStats {
        queue: view.name.to_string(),
        scheduled,
        claimed,
        dead,
        unplanned,
        done: kept,
        completed_total: completed,
        failed_total: failed,
        died_total: died,
        cancelled_total: cancelled,
        next_at: view.first_due.map(time),
        revision: None,
        index: None,
    }
}
