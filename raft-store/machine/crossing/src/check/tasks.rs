//! Invariants between the rows of timed tasks and of their queues.

use std::collections::{BTreeMap, BTreeSet};

use quorate_machine::codec;
use quorate_machine::keyspace::family;
use quorate_machine::keyspace::task::{self, QueueRow, TaskRow};
use quorate_machine::keyspace::timer::{self, TimerKind};
use quorate_machine::machine::WALL_BACK_MAX_MS;
use quorate_machine::types::{QueueName, Recurrence, TaskHead, TaskState};

use crate::store::Store;

/// Checks that the rows of tasks are exactly those that their states ask for, and that queues count them.
pub fn check(store: &Store) {
    let mut counts: BTreeMap<QueueName, [u64; 5]> = BTreeMap::new();
    let mut expected = BTreeSet::new();
    let mut timers = BTreeSet::new();
    let is_looking = is_looking_ahead(store);
    for (row_key, row) in store.rows(family::TASK) {
        let (queue, id) = task::decode_key(&row_key).unwrap();
        let TaskRow { head, payload } = codec::decode(&row).unwrap();
        assert!(head.revision <= store.vars.revision, "{head:?}");
        assert!(is_looking || !is_silent(&head, store.vars.wall), "at {}: {head:?}", store.vars.wall);
        let subject = task::subject(&queue, &id);
        let (at, row_key) = match &head.state {
            TaskState::Scheduled => (0, task::due_key(&queue, head.due, head.number)),
            TaskState::Claimed { token, until, .. } => {
                assert!(*token <= head.revision && head.attempts >= 1, "{head:?}");
                timers.insert(timer::row_key(*until, TimerKind::TaskLease, &subject));
                (1, Vec::new())
            }
            TaskState::Dead { at } => (2, task::dead_key(&queue, *at, head.number)),
            TaskState::Unplanned => (3, task::unplanned_key(&queue, &id)),
            TaskState::Done { until } => {
                assert!(payload.data.is_empty() && head.keep_ms > 0, "{head:?}");
                timers.insert(timer::row_key(*until, TimerKind::TaskKept, &subject));
                (4, Vec::new())
            }
        };
        assert!(head.attempts <= head.retry.max_attempts, "{head:?}");
        counts.entry(queue).or_default()[at] += 1;
        if !row_key.is_empty() {
            let id = if at == 3 { Vec::new() } else { id.as_str().as_bytes().to_vec() };
            expected.insert((row_key, id));
        }
    }
    let families = [family::TASK_DUE, family::TASK_DEAD, family::TASK_UNPLANNED];
    let found: BTreeSet<_> = families.into_iter().flat_map(|family| store.rows(family)).collect();
    assert_eq!(found, expected, "rows of tasks by state on the left, what their states ask for on the right");
    let is_of_task = |kind| matches!(kind, TimerKind::TaskLease | TimerKind::TaskKept);
    let set = store.rows(family::TIMER).into_iter().map(|(row_key, _)| row_key);
    let found: BTreeSet<_> = set.filter(|row_key| is_of_task(timer::decode_key(row_key).unwrap().1)).collect();
    assert_eq!(found, timers, "timers of tasks on the left, claims and kept ids on the right");
    let unplanned: u64 = counts.values().map(|counts| counts[3]).sum();
    assert_eq!(store.vars.unplanned, unplanned);
    check_queues(store, counts);
}

/// Whether tasks that wait are still to be looked at, since the wall clock was walked back.
fn is_looking_ahead(store: &Store) -> bool {
    let timers = store.rows(family::TIMER);
    timers.iter().any(|(row_key, _)| timer::decode_key(row_key).unwrap().1 == TimerKind::TasksAhead)
}

/// Whether a task waits for its next occurrence for longer than any right time lets it: one period, and one more where the last
/// occurrence was taken a little early.
fn is_silent(head: &TaskHead, wall: u64) -> bool {
    let Some(Recurrence::Every(ms)) = head.recurrence else { return false };
    let is_next = head.attempts == 0 && (head.runs > 0 || head.last_error.is_some());
    head.state == TaskState::Scheduled
        && is_next
        && head.due > wall.saturating_add(ms.saturating_mul(2)).saturating_add(WALL_BACK_MAX_MS)
}

fn check_queues(store: &Store, mut counts: BTreeMap<QueueName, [u64; 5]>) {
    for (row_key, row) in store.rows(family::QUEUE) {
        let queue = task::decode_queue(&row_key).unwrap();
        let row: QueueRow = codec::decode(&row).unwrap();
        let found = counts.remove(&queue).unwrap_or_default();
        assert_eq!([row.scheduled, row.claimed, row.dead, row.unplanned, row.kept], found, "{queue}: {row:?}");
        let (start, end) = task::due_range(&queue, (0, 0), None);
        let first = store.view.0.range(start..end).next().map(|(row_key, _)| task::decode_due(row_key).unwrap());
        assert!(first.is_none_or(|first| row.due_from <= first), "{queue}: {row:?}, the first is at {first:?}");
    }
    assert!(counts.is_empty(), "tasks in queues without a row: {counts:?}");
}
