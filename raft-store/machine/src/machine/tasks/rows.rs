//! The rows of timed tasks.
//!
//! Owns that a task has exactly the rows that its state asks for, that its queue counts it there, and that those who wait for
//! tasks are told. Never decides what becomes of one.

use crate::codec;
use crate::keyspace::audit::{AuditEffect, AuditOp, TaskAct};
use crate::keyspace::session::AttachedKind;
use crate::keyspace::task::{self, QueueRow, TaskRow};
use crate::keyspace::timer::TimerKind;
use crate::machine::quotas::counts::Amount;
use crate::machine::quotas::walk::amount_of_task;
use crate::machine::view::{Fault, View};
use crate::machine::{Applier, Caller};
use crate::mutants::Mutant;
use crate::types::{QueueName, TaskHead, TaskId, TaskState, Waker};

/// A queue while a command is about it.
pub(in crate::machine) struct Queue {
    pub(in crate::machine) name: QueueName,
    pub(in crate::machine) row: QueueRow,
    before: Option<QueueRow>,
}

impl<V: View> Applier<'_, V> {
    /// The queue of this name, as it is or empty.
    pub(in crate::machine) fn open_queue(&mut self, name: QueueName) -> Result<Queue, Fault> {
        let row_key = task::queue_key(&name);
        let row = self.overlay.get(&row_key)?;
        let before: Option<QueueRow> =
            row.map(codec::decode).transpose().map_err(|error| Fault::row(&row_key, error))?;
        Ok(Queue { name, row: before.clone().unwrap_or_default(), before })
    }

    /// Writes down what was changed.
    pub(in crate::machine) fn close_queue(&mut self, queue: Queue) -> Result<(), Fault> {
        let Queue { name, row, before } = queue;
        if before.as_ref().map_or(row == QueueRow::default(), |before| *before == row) {
            return Ok(());
        }
        self.overlay.replace(&task::queue_key(&name), Some(codec::encode(&row)))?;
        Ok(())
    }

    /// A task, if it is there.
    pub(in crate::machine) fn task_row(&mut self, queue: &QueueName, id: &TaskId) -> Result<Option<TaskRow>, Fault> {
        let row_key = task::row_key(queue, id);
        let is_free = Mutant::TasksAtHandAreFree.acts() && self.overlay.is_at_hand(&row_key);
        let Some(row) = self.overlay.get(&row_key)? else { return Ok(None) };
        let (bytes, row) = (row.len(), codec::decode(row).map_err(|error| Fault::row(&row_key, error))?);
        if !is_free {
            self.take_bytes(bytes);
        }
        Ok(Some(row))
    }

    /// Reads a task without keeping it in the overlay.
    pub(in crate::machine) fn peek_task(&self, queue: &QueueName, id: &TaskId) -> Result<Option<TaskRow>, Fault> {
        self.decoded(&task::row_key(queue, id))
    }

    /// What is known of a task beside its payload, if it is there; nothing is kept at hand.
    pub(in crate::machine) fn task_head(&mut self, queue: &QueueName, id: &TaskId) -> Result<Option<TaskHead>, Fault> {
        let row_key = task::row_key(queue, id);
        let Some(row) = self.overlay.peek(&row_key)? else { return Ok(None) };
        let bytes = row.len();
        let row: TaskRow = codec::decode(&row).map_err(|error| Fault::row(&row_key, error))?;
        self.take_bytes(bytes);
        Ok(Some(row.head))
    }

    /// A task that another row says is there.
    pub(in crate::machine) fn indexed_task(
        &mut self,
        queue: &QueueName,
        id: &TaskId,
        row_key: &[u8],
    ) -> Result<TaskRow, Fault> {
        let row = self.task_row(queue, id)?;
        row.ok_or_else(|| Fault::Invariant(format!("row {} without the task {id}", row_key.escape_ascii())))
    }

    /// Puts a task in place of what it was, at a new revision; `None` takes it away.
    pub(in crate::machine) fn put_task(
        &mut self,
        queue: &mut Queue,
        id: &TaskId,
        before: Option<TaskHead>,
        after: Option<TaskRow>,
    ) -> Result<(), Fault> {
        if let Some(before) = &before {
            self.leave_state(queue, id, before)?;
        }
        self.put_task_row(queue, id, before.as_ref(), after)
    }

    /// Writes a task whose timer fired, so that the timer's row is gone already.
    pub(in crate::machine) fn put_task_after_timer(
        &mut self,
        queue: &mut Queue,
        id: &TaskId,
        before: TaskHead,
        after: Option<TaskRow>,
    ) -> Result<(), Fault> {
        self.put_task_row(queue, id, Some(&before), after)
    }

    fn put_task_row(
        &mut self,
        queue: &mut Queue,
        id: &TaskId,
        before: Option<&TaskHead>,
        after: Option<TaskRow>,
    ) -> Result<(), Fault> {
        if let Some(before) = before {
            *count_of(queue, &before.state) -= 1;
            if let TaskState::Claimed { session: Some(session), .. } = before.state {
                self.detach(session, AttachedKind::Task, &task::subject(&queue.name, id))?;
            }
        }
        self.take_revision()?;
        let row_key = task::row_key(&queue.name, id);
        let Some(mut after) = after else {
            let taken = self.overlay.take(&row_key)?;
            let had = amount_of_task(id.as_str(), before.map(|head| (&head.state, taken.len())));
            return self.count_in_prefixes(&row_key, queue.name.as_str().as_bytes(), had, Amount::default());
        };
        after.head.revision = self.vars.revision;
        *count_of(queue, &after.head.state) += 1;
        self.enter_state(queue, id, &mut after.head)?;
        let row = codec::encode_sized(&after, 256 + after.payload.data.len());
        let has = amount_of_task(id.as_str(), Some((&after.head.state, row.len())));
        let replaced = self.overlay.replace(&row_key, Some(row))?;
        let had = before.zip(replaced).map(|(head, row)| (&head.state, row.len()));
        let had = amount_of_task(id.as_str(), had);
        self.count_in_prefixes(&row_key, queue.name.as_str().as_bytes(), had, has)
    }

    fn leave_state(&mut self, queue: &Queue, id: &TaskId, head: &TaskHead) -> Result<(), Fault> {
        let name = &queue.name;
        match &head.state {
            TaskState::Scheduled => self.overlay.take(&task::due_key(name, head.due, head.number)).map(|_| ()),
            TaskState::Dead { at } => self.overlay.take(&task::dead_key(name, *at, head.number)).map(|_| ()),
            TaskState::Unplanned => {
                self.vars.unplanned -= 1;
                self.take_work(&task::unplanned_key(name, id))
            }
            TaskState::Claimed { until, .. } => self.disarm(*until, TimerKind::TaskLease, &task::subject(name, id)),
            TaskState::Done { until } => self.disarm(*until, TimerKind::TaskKept, &task::subject(name, id)),
        }
    }

    fn enter_state(&mut self, queue: &mut Queue, id: &TaskId, head: &mut TaskHead) -> Result<(), Fault> {
        if matches!(head.state, TaskState::Scheduled | TaskState::Dead { .. }) {
            queue.row.last_number += 1;
            head.number = queue.row.last_number;
        }
        let name = &queue.name;
        let id_bytes = || id.as_str().as_bytes().to_vec();
        match &head.state {
            TaskState::Scheduled => {
                queue.row.due_from = queue.row.due_from.min((head.due, head.number));
                self.overlay.insert_absent(task::due_key(name, head.due, head.number), id_bytes())?;
                self.wake(Waker::Tasks.of(name.as_str()));
            }
            TaskState::Dead { at } => {
                self.overlay.insert_absent(task::dead_key(name, *at, head.number), id_bytes())?;
            }
            TaskState::Unplanned => {
                self.vars.unplanned += 1;
                self.overlay.insert_absent(task::unplanned_key(name, id), Vec::new())?;
            }
            TaskState::Claimed { until, session, .. } => {
                let subject = task::subject(name, id);
                self.arm(*until, TimerKind::TaskLease, &subject)?;
                session.map_or(Ok(()), |session| self.attach(session, AttachedKind::Task, &subject, Vec::new()))?;
            }
            TaskState::Done { until } => self.arm(*until, TimerKind::TaskKept, &task::subject(name, id))?,
        }
        Ok(())
    }

    /// Adds the line of a task at the current revision.
    pub(in crate::machine) fn record_task(&mut self, act: TaskAct, queue: &Queue, id: &TaskId, caller: &Caller) {
        // No key of an entry: both may change at one revision.
        let key = Waker::Tasks.of(format!("{}/{id}", queue.name));
        self.record(AuditOp::Task(act), Some(key), caller.clone(), AuditEffect::Beside);
    }
}

/// Where a queue counts the tasks in a state.
fn count_of<'q>(queue: &'q mut Queue, state: &TaskState) -> &'q mut u64 {
    let row = &mut queue.row;
    match state {
        TaskState::Scheduled => &mut row.scheduled,
        TaskState::Claimed { .. } => &mut row.claimed,
        TaskState::Dead { .. } => &mut row.dead,
        TaskState::Unplanned => &mut row.unplanned,
        TaskState::Done { .. } => &mut row.kept,
    }
}
