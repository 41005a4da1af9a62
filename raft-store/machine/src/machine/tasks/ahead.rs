//! Timed tasks once the wall clock was walked back.
//!
//! Owns which of them wait for a time that was reckoned by the clock while it was ahead, and what that time is by the right one:
//! nobody looks at a task before it is due, and so the wrong time would have to come first. The walk through those that wait is
//! a timer's, a few of them a batch. Never changes a time that somebody asked for.

use crate::codec;
use crate::keyspace::audit::TaskAct;
use crate::keyspace::task::{self, QueueRow};
use crate::keyspace::timer::{self, TimerKind};
use crate::keyspace::{family, family_range};
use crate::limits;
use crate::machine::view::{Fault, View};
use crate::machine::{Applier, Caller, is_of_before, wall_after};
use crate::types::{QueueName, Recurrence, TaskHead, TaskState, WallMillis};

/// Most tasks and queues that are looked at in one batch.
const LOOKS: usize = 256;

impl<V: View> Applier<'_, V> {
    /// Has the wall clock follow the stamp of a batch. Where it is walked back, all tasks that wait are looked at, from this batch on.
    pub(in crate::machine) fn move_wall(&mut self, stamped: WallMillis) -> Result<(), Fault> {
        let before = self.vars.wall;
        self.vars.wall = wall_after(before, stamped);
        if self.vars.wall >= before {
            return Ok(());
        }
        let (first, _) = family_range(family::QUEUE);
        self.go_on_later(TimerKind::TasksAhead, &timer::ahead_subject(before, &first))
    }

    /// The timer of a wall clock that was walked back: looks at the next tasks, and goes on with the next batch until none are left.
    pub(in crate::machine) fn fire_tasks_ahead(&mut self, subject: &[u8]) -> Result<(), Fault> {
        let (before, place) = timer::decode_ahead(subject)?;
        let mut place = place.to_vec();
        for looks in 0..LOOKS {
            if looks > 0 && self.has_taken_its_part() {
                break;
            }
            self.take_bytes(limits::LOOK_BYTES);
            let next = match place.first() {
                Some(&family::TASK_DUE) => Some(self.look_at_task(&place, before)?),
                _ => self.look_at_queue(&place)?,
            };
            let Some(next) = next else { return Ok(()) };
            place = next;
        }
        self.go_on_later(TimerKind::TasksAhead, &timer::ahead_subject(before, &place))
    }

    /// Looks at the first queue from a place on. Gives the place of its first task that is not due yet, or that of the next queue.
    fn look_at_queue(&mut self, place: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let (_, end) = family_range(family::QUEUE);
        let Some((row_key, row)) = self.overlay.scan(place, &end, 1)?.pop() else { return Ok(None) };
        let damaged = |error| Fault::row(&row_key, error);
        let name = task::decode_queue(&row_key).map_err(damaged)?;
        let row: QueueRow = codec::decode(&row).map_err(damaged)?;
        if row.scheduled == 0 {
            return Ok(Some(behind(&row_key)));
        }
        // What is due is given out whatever it was due by; and among it are the traces of all that was claimed.
        let (due, number) = row.due_from.max((self.vars.wall.saturating_add(1), 0));
        Ok(Some(task::due_key(&name, due, number)))
    }

    /// Looks at the first task that waits from a place in its queue on. Gives the place behind it, or that of the next queue. One that
    /// faults is passed over: all others are looked at.
    fn look_at_task(&mut self, place: &[u8], before: WallMillis) -> Result<Vec<u8>, Fault> {
        let queue = task::queue_of_due(place)?;
        let (_, end) = task::due_range(&queue, (0, 0), None);
        let Some((row_key, id)) = self.overlay.scan(place, &end, 1)?.pop() else {
            return Ok(behind(&task::queue_key(&queue)));
        };
        if let Err(fault) = self.at_savepoint(|applier| applier.reckon_task_anew(queue, &row_key, &id, before))? {
            self.note_contained(&row_key, fault);
        }
        // A time that is reckoned anew is an earlier one: nobody comes by here twice.
        Ok(behind(&row_key))
    }

    fn reckon_task_anew(
        &mut self,
        queue: QueueName,
        due_key: &[u8],
        id: &[u8],
        before: WallMillis,
    ) -> Result<(), Fault> {
        let id = task::decode_id(id).map_err(|error| Fault::row(due_key, error))?;
        let mut row = self.indexed_task(&queue, &id, due_key)?;
        let head = row.head.clone();
        if head.state != TaskState::Scheduled || !reckon_anew(&mut row.head, before, self.vars.wall) {
            return Ok(());
        }
        let mut queue = self.open_queue(queue)?;
        self.put_task(&mut queue, &id, Some(head), Some(row))?;
        self.record_task(TaskAct::Plan, &queue, &id, &Caller::default());
        self.close_queue(queue)
    }
}

/// Reckons anew when a task that waits is due, if that was reckoned by a wall clock that was ahead, `before` at most, and is at `wall`
/// now. Whether it was.
///
/// The row does not say by which clock it was. But the next occurrence is never further away than one period, nor the next attempt
/// than the longest pause, and what was put back is due at once. A pattern may give any time, so the leader reckons once more.
pub(in crate::machine) fn reckon_anew(head: &mut TaskHead, before: WallMillis, wall: WallMillis) -> bool {
    // The first time of a task that never failed is what was asked for, however far away it is.
    let is_first = head.runs == 0 && head.last_error.is_none();
    match head.recurrence {
        _ if head.attempts > 0 => pause_anew(head, before, wall),
        Some(Recurrence::Cron { .. }) if is_of_before(head.due, wall) => {
            // The leader takes an occurrence that is no more than a little ahead for one that was there already.
            (head.state, head.due, head.planned) = (TaskState::Unplanned, wall, wall);
            true
        }
        Some(Recurrence::Every(ms)) if !is_first && head.due > wall.saturating_add(ms) => {
            head.planned = first_after(wall, head.due, ms);
            head.due = head.planned;
            true
        }
        None if !is_first && wall < head.due && head.due <= before => {
            // It was dead and is put back.
            (head.due, head.planned) = (wall, wall);
            true
        }
        _ => false,
    }
}

/// The same of a task that waits for another attempt. A pause that is beyond what the clock ahead and the plan of the task come to was asked for by
/// who failed, and stays.
fn pause_anew(head: &mut TaskHead, before: WallMillis, wall: WallMillis) -> bool {
    let longest = head.retry.max_ms;
    let is_ahead = head.due > wall.saturating_add(longest) && head.due <= before.saturating_add(longest);
    if is_ahead {
        head.due = wall.saturating_add(head.retry.pause_after(head.attempts));
    }
    is_ahead
}

/// The first moment after now of a series that has one every `ms`, of which `later` is another one.
pub(in crate::machine) fn first_after(now: WallMillis, later: WallMillis, ms: u64) -> WallMillis {
    later - (later - now - 1) / ms * ms
}

/// The first place behind a row.
fn behind(row_key: &[u8]) -> Vec<u8> {
    [row_key, &[0]].concat()
}
