//! Timed tasks: what each verb does.
//!
//! Owns when a task is given out and its outcome. `rows` owns the rows of each state. The wall clock of the batch decides which tasks are
//! due, the cluster clock how long a claim holds.
//!
//! Golden scripts, in `testscripts/machine`: `tasks`, `tasks_again`, `tasks_recur`, `wall_clock`, `wall_clock_attempts`, `wall_clock_recur`,
//! `wall_clock_plans`.

mod ahead;
mod check;
mod rows;

use super::quotas::counts::Amount;
use super::stop::{Tried, split};
use super::view::{Fault, View};
use super::{Applier, Caller, is_of_before};
use crate::keyspace::audit::{AuditEffect, AuditOp, TaskAct};
use crate::keyspace::session;
use crate::keyspace::task::{self, TaskRow};
use crate::limits;
use crate::mutants::Mutant;
use crate::types::{
    AfterFailure, ClaimedTask, ContentKind, NewTask, Outcome, PlanTask, QueueName, Recurrence, Rejection, Reply,
    Requeue, ScheduledTask, SessionId, Start, TaskHead, TaskId, TaskOp, TaskReply, TaskState, TaskSummary, TaskVerb,
    TasksClaimed, Ticket, Value, WallMillis,
};
use ahead::{first_after, reckon_anew};
use rows::Queue;

/// What is told of a claim that was over before the task was completed.
const RUN_OUT: &str = "lease expired";

/// What is told of a claim whose session ended first.
const SESSION_OVER: &str = "session ended";

/// What is told of a pattern that gives no time any more.
const NEVER_AGAIN: &str = "the cron pattern has no next time";

/// Who claims, and for how long.
struct Holder {
    lease_ms: u64,
    worker: String,
    session: Option<SessionId>,
}

impl<V: View> Applier<'_, V> {
    /// Carries out what is asked about tasks, or says why not.
    pub(super) fn task(&mut self, op: TaskOp, caller: Caller) -> Result<Outcome, Fault> {
        let act = act_of(&op.verb);
        let decided = match check::fault(&op) {
            Some(why) => Err(Rejection::Unsupported(why)),
            None => self.sharing_revision(|applier| split(applier.task_verb(op, &caller)))?,
        };
        match decided {
            Ok(done) => Ok(Outcome::Task(Box::new(done))),
            Err(rejection) => {
                self.record(AuditOp::Task(act), None, caller, AuditEffect::Refused((&rejection).into()));
                Ok(Outcome::Rejected(rejection))
            }
        }
    }

    fn task_verb(&mut self, TaskOp { queue, verb }: TaskOp, caller: &Caller) -> Tried<TaskReply> {
        let mut queue = self.open_queue(queue)?;
        let done = match verb {
            TaskVerb::Schedule(tasks) => self.schedule(&mut queue, tasks, caller)?,
            TaskVerb::ScheduleOne(task) => match self.in_the_way(&queue.name, &task)? {
                Some(other) => return Err(Rejection::TaskInUse(Box::new(other)).into()),
                None => self.schedule(&mut queue, vec![task], caller)?,
            },
            TaskVerb::Claim { limit, lease_ms, worker, session } => {
                let room = match session {
                    Some(id) => self.room_on_session(id)?,
                    None => u32::MAX,
                };
                let holder = Holder { lease_ms, worker, session };
                self.claim_tasks(&mut queue, limit.min(room) as usize, &holder, caller)?
            }
            TaskVerb::Extend { ticket, lease_ms } => self.extend_task(&mut queue, &ticket, lease_ms, caller)?,
            TaskVerb::Complete(ticket) => self.complete_task(&mut queue, &ticket, caller)?,
            TaskVerb::Fail { ticket, error, then } => self.fail_task(&mut queue, &ticket, error, then, caller)?,
            TaskVerb::Cancel(id) => self.cancel_task(&mut queue, &id, caller)?,
            TaskVerb::Requeue(Requeue::One(id)) => self.requeue_one(&mut queue, &id, caller)?,
            TaskVerb::Requeue(Requeue::Oldest(limit)) => self.requeue_oldest(&mut queue, limit as usize, caller)?,
            TaskVerb::Plan(plan) => self.plan_task(&mut queue, plan, caller)?,
        };
        self.close_queue(queue)?;
        Ok(done)
    }

    fn schedule(&mut self, queue: &mut Queue, tasks: Vec<NewTask>, caller: &Caller) -> Tried<TaskReply> {
        self.check_tasks_there(&queue.name, &tasks)?;
        self.check_room_for(&queue.name, &tasks)?;
        let mut done = Vec::with_capacity(tasks.len());
        for (nth, new) in tasks.into_iter().enumerate() {
            done.push(self.schedule_one(queue, new, nth, caller)?);
        }
        Ok(TaskReply::Scheduled(done))
    }

    /// The task that has the id of a new one, where neither is the same as scheduled before nor makes room for it.
    fn in_the_way(&mut self, queue: &QueueName, new: &NewTask) -> Result<Option<TaskSummary>, Fault> {
        let Some(id) = &new.id else { return Ok(None) };
        let head = self.task_head(queue, id)?;
        let is_in_the_way = |head: &TaskHead| match head.state {
            TaskState::Scheduled | TaskState::Unplanned => false,
            TaskState::Dead { .. } => !new.replace,
            TaskState::Claimed { .. } | TaskState::Done { .. } => new.replace,
        };
        Ok(head.filter(is_in_the_way).map(|head| summary(id, &head)))
    }

    /// Whether the tasks that have the ids of new ones are few or small enough to be looked at: all of it is one revision, so
    /// it cannot be cut.
    fn check_tasks_there(&mut self, queue: &QueueName, tasks: &[NewTask]) -> Tried<()> {
        let (limit, mut actual) = (self.bounds.txn_bytes, 0);
        for id in tasks.iter().filter_map(|task| task.id.as_ref()) {
            let row = self.overlay.peek(&task::row_key(queue, id))?;
            actual += row.map_or(0, |row| row.len());
            if actual > limit {
                self.take_bytes(actual);
                return Err(Rejection::TooMuch { limit: limit as u64 }.into());
            }
        }
        Ok(())
    }

    /// Whether the prefixes of a queue have room for so many tasks more, and their payloads. What a task has beside its payload is
    /// counted once it is there.
    fn check_room_for(&mut self, queue: &QueueName, tasks: &[NewTask]) -> Tried<()> {
        if self.quotas_around(queue.as_str().as_bytes())?.is_empty() {
            return Ok(());
        }
        let mut more = Amount::default();
        for task in tasks {
            let known = match &task.id {
                Some(id) => self.task_head(queue, id)?,
                None => None,
            };
            if known.is_none() {
                more.tasks += 1;
                more.bytes += task.payload.data.len() as u64;
            } else if task.replace {
                more.bytes += task.payload.data.len() as u64;
            }
        }
        self.check_prefixes(queue.as_str().as_bytes(), more)
    }

    fn schedule_one(
        &mut self,
        queue: &mut Queue,
        new: NewTask,
        nth: usize,
        caller: &Caller,
    ) -> Result<ScheduledTask, Fault> {
        let NewTask { id, payload, start, recurrence, retry, keep_ms, replace } = new;
        let keep_ms = if id.is_some() { keep_ms } else { 0 };
        let id = match id {
            Some(id) => id,
            None => TaskId::made(self.next_revision()?, nth),
        };
        let before = self.task_head(&queue.name, &id)?;
        if let Some(head) = &before
            && !(replace && matches!(head.state, TaskState::Scheduled | TaskState::Unplanned | TaskState::Dead { .. }))
        {
            return Ok(ScheduledTask { task: summary(&id, head), created: false, replaced: false });
        }
        let wall = self.vars.wall;
        let (state, due) = match start {
            Start::At(due) => (TaskState::Scheduled, due),
            Start::In(ms) => (TaskState::Scheduled, wall.saturating_add(ms)),
            Start::Planned => (TaskState::Unplanned, wall),
        };
        let head = TaskHead {
            state,
            due,
            number: 0,
            planned: due,
            attempts: 0,
            retry,
            recurrence,
            last_error: None,
            keep_ms,
            created: wall,
            revision: 0,
            runs: 0,
        };
        let task = summary(&id, &head);
        let replaced = before.is_some();
        self.put_task(queue, &id, before, Some(TaskRow { head, payload }))?;
        self.record_task(TaskAct::Schedule, queue, &id, caller);
        Ok(ScheduledTask { task, created: true, replaced })
    }

    fn claim_tasks(
        &mut self,
        queue: &mut Queue,
        limit: usize,
        holder: &Holder,
        caller: &Caller,
    ) -> Result<TaskReply, Fault> {
        let wall = self.vars.wall;
        let mut done = TasksClaimed { wall, ..TasksClaimed::default() };
        if queue.row.scheduled == 0 {
            return Ok(TaskReply::Claimed(done));
        }
        let (start, end) = task::due_range(&queue.name, queue.row.due_from, Some(wall));
        let due = self.overlay.scan(&start, &end, limit + limits::TASKS_DUE_LOOK)?;
        for (row_key, id) in due.iter().take(limit) {
            if !done.tasks.is_empty() && self.has_taken_all() {
                break;
            }
            let damaged = |error| Fault::row(row_key, error);
            let (due, number) = task::decode_due(row_key).map_err(damaged)?;
            let id = task::decode_id(id).map_err(damaged)?;
            let row = self.indexed_task(&queue.name, &id, row_key)?;
            if (&row.head.state, row.head.due, row.head.number) != (&TaskState::Scheduled, due, number) {
                let row_key = row_key.escape_ascii();
                return Err(Fault::Invariant(format!("row {row_key} for the task {id}, which is {:?}", row.head)));
            }
            // All that is due and before it is claimed.
            queue.row.due_from = (due, number);
            done.tasks.push(self.claim_task(queue, id, row, holder, caller)?);
        }
        let left = due.len() - done.tasks.len();
        done.due_left = u32::try_from(left.min(limits::TASKS_DUE_LOOK)).expect("limits::TASKS_DUE_LOOK is small");
        if done.tasks.is_empty() {
            let (start, end) = task::due_range(&queue.name, queue.row.due_from, None);
            if let Some((row_key, _)) = self.overlay.scan(&start, &end, 1)?.first() {
                let (due, _) = task::decode_due(row_key).map_err(|error| Fault::row(row_key, error))?;
                done.next_due = Some(due);
            }
        }
        Ok(TaskReply::Claimed(done))
    }

    fn claim_task(
        &mut self,
        queue: &mut Queue,
        id: TaskId,
        mut row: TaskRow,
        holder: &Holder,
        caller: &Caller,
    ) -> Result<ClaimedTask, Fault> {
        let before = row.head.clone();
        let Holder { lease_ms, ref worker, session } = *holder;
        let until = self.vars.clock.saturating_add(lease_ms);
        row.head.state = TaskState::Claimed { token: self.next_revision()?, until, worker: worker.clone(), session };
        row.head.attempts += 1;
        let task = ClaimedTask {
            id: id.clone(),
            attempt: row.head.attempts,
            max_attempts: row.head.retry.max_attempts,
            due: row.head.due,
            planned: row.head.planned,
            lease_left_ms: lease_ms,
            last_error: row.head.last_error.clone(),
            payload: Some(row.payload.clone()),
        };
        self.take_bytes(row.payload.data.len());
        self.put_task(queue, &id, Some(before), Some(row))?;
        self.record_task(TaskAct::Claim, queue, &id, caller);
        Ok(task)
    }

    fn extend_task(&mut self, queue: &mut Queue, ticket: &Ticket, lease_ms: u64, caller: &Caller) -> Tried<TaskReply> {
        let mut row = self.held_task(queue, ticket)?;
        let before = row.head.clone();
        if let TaskState::Claimed { until, .. } = &mut row.head.state {
            *until = self.vars.clock.saturating_add(lease_ms);
        }
        Ok(self.change_task(TaskAct::Extend, queue, &ticket.id, before, row, caller)?)
    }

    fn complete_task(&mut self, queue: &mut Queue, ticket: &Ticket, caller: &Caller) -> Tried<TaskReply> {
        let mut row = self.held_task(queue, ticket)?;
        let before = row.head.clone();
        queue.row.completed += 1;
        row.head.runs += 1;
        row.head.last_error = None;
        if row.head.recurrence.is_some() {
            recur(&mut row.head, self.vars.wall);
        } else if row.head.keep_ms > 0 {
            row.head.state = TaskState::Done { until: self.vars.clock.saturating_add(row.head.keep_ms) };
            row.payload = Value { kind: ContentKind::Bytes, data: Vec::new() };
        } else {
            return Ok(self.remove_task(TaskAct::Complete, queue, &ticket.id, before, caller)?);
        }
        Ok(self.change_task(TaskAct::Complete, queue, &ticket.id, before, row, caller)?)
    }

    fn fail_task(
        &mut self,
        queue: &mut Queue,
        ticket: &Ticket,
        error: String,
        then: AfterFailure,
        caller: &Caller,
    ) -> Tried<TaskReply> {
        let mut row = self.held_task(queue, ticket)?;
        let before = row.head.clone();
        after_failure(queue, &mut row.head, error, then, self.vars.wall);
        Ok(self.change_task(TaskAct::Fail, queue, &ticket.id, before, row, caller)?)
    }

    fn cancel_task(&mut self, queue: &mut Queue, id: &TaskId, caller: &Caller) -> Tried<TaskReply> {
        let row = self.task_row(&queue.name, id)?.ok_or(Rejection::NotFound)?;
        if !matches!(row.head.state, TaskState::Done { .. }) {
            queue.row.cancelled += 1;
        }
        Ok(self.remove_task(TaskAct::Cancel, queue, id, row.head, caller)?)
    }

    fn requeue_one(&mut self, queue: &mut Queue, id: &TaskId, caller: &Caller) -> Tried<TaskReply> {
        match self.task_row(&queue.name, id)? {
            Some(row) if matches!(row.head.state, TaskState::Dead { .. }) => Ok(self.requeue(queue, id, row, caller)?),
            _ => Err(Rejection::NotFound.into()),
        }
    }

    fn requeue_oldest(&mut self, queue: &mut Queue, limit: usize, caller: &Caller) -> Result<TaskReply, Fault> {
        let (start, end) = task::dead_range(&queue.name);
        let mut count = 0;
        for (row_key, id) in self.overlay.scan(&start, &end, limit)? {
            if count > 0 && self.has_taken_all() {
                break;
            }
            let id = task::decode_id(&id).map_err(|error| Fault::row(&row_key, error))?;
            let row = self.indexed_task(&queue.name, &id, &row_key)?;
            self.requeue(queue, &id, row, caller)?;
            count += 1;
        }
        Ok(TaskReply::Requeued { count, more: queue.row.dead > 0 })
    }

    fn requeue(
        &mut self,
        queue: &mut Queue,
        id: &TaskId,
        mut row: TaskRow,
        caller: &Caller,
    ) -> Result<TaskReply, Fault> {
        let before = row.head.clone();
        let wall = self.vars.wall;
        row.head = TaskHead { state: TaskState::Scheduled, due: wall, planned: wall, attempts: 0, ..row.head };
        self.change_task(TaskAct::Requeue, queue, id, before, row, caller)
    }

    fn plan_task(&mut self, queue: &mut Queue, plan: PlanTask, caller: &Caller) -> Result<TaskReply, Fault> {
        let PlanTask { id, seen, due } = plan;
        let row = self.task_row(&queue.name, &id)?;
        let row = row.filter(|row| row.head.state == TaskState::Unplanned && row.head.revision == seen);
        let Some(mut row) = row else { return Ok(TaskReply::Planned) };
        let before = row.head.clone();
        match due {
            Some(due) => {
                row.head.state = TaskState::Scheduled;
                (row.head.due, row.head.planned) = (due, due);
            }
            None => {
                queue.row.died += 1;
                row.head.state = TaskState::Dead { at: self.vars.wall };
                row.head.last_error = Some(NEVER_AGAIN.into());
            }
        }
        self.put_task(queue, &id, Some(before), Some(row))?;
        self.record_task(TaskAct::Plan, queue, &id, caller);
        Ok(TaskReply::Planned)
    }

    /// A claim is over.
    pub(super) fn task_lease_over(&mut self, subject: &[u8]) -> Result<(), Fault> {
        self.task_time_over(subject, TaskAct::RunOut, |queue, mut row, wall| {
            after_failure(queue, &mut row.head, RUN_OUT.into(), AfterFailure::Retry, wall);
            Some(row)
        })
    }

    /// The session of a claim ends.
    pub(super) fn task_session_over(&mut self, subject: &[u8], caller: &Caller) -> Result<(), Fault> {
        let (name, id) = task::of_subject(subject)?;
        let mut queue = self.open_queue(name)?;
        let mut row = self.indexed_task(&queue.name, &id, subject)?;
        let before = row.head.clone();
        after_failure(&mut queue, &mut row.head, SESSION_OVER.into(), AfterFailure::Retry, self.vars.wall);
        self.put_task(&mut queue, &id, Some(before), Some(row))?;
        self.record_task(TaskAct::RunOut, &queue, &id, caller);
        if Mutant::EndedSessionsKeepClaimsCounted.acts() {
            return Ok(());
        }
        self.close_queue(queue)
    }

    /// The id of a completed task is free again.
    pub(super) fn task_kept_over(&mut self, subject: &[u8]) -> Result<(), Fault> {
        self.task_time_over(subject, TaskAct::Forget, |_, _, _| None)
    }

    fn task_time_over(
        &mut self,
        subject: &[u8],
        act: TaskAct,
        next: impl FnOnce(&mut Queue, TaskRow, WallMillis) -> Option<TaskRow>,
    ) -> Result<(), Fault> {
        let (name, id) = task::of_subject(subject)?;
        let mut queue = self.open_queue(name)?;
        let row = self.indexed_task(&queue.name, &id, subject)?;
        let before = row.head.clone();
        let after = next(&mut queue, row, self.vars.wall);
        self.put_task_after_timer(&mut queue, &id, before, after)?;
        self.record_task(act, &queue, &id, &Caller::default());
        self.close_queue(queue)
    }

    /// A task that is claimed under this ticket.
    fn held_task(&mut self, queue: &Queue, ticket: &Ticket) -> Tried<TaskRow> {
        let row = self.task_row(&queue.name, &ticket.id)?;
        let row = row.filter(|row| matches!(row.head.state, TaskState::Claimed { token, .. } if token == ticket.token));
        match row {
            Some(row) if self.is_session_there(&row.head.state)? => Ok(row),
            _ => Err(Rejection::NotHolder.into()),
        }
    }

    /// Whether the session of a claim lives, if there is one: one that ended may not have given all of its claims back yet.
    fn is_session_there(&self, state: &TaskState) -> Result<bool, Fault> {
        match state {
            TaskState::Claimed { session: Some(id), .. } => Ok(self.overlay.peek(&session::row_key(*id))?.is_some()),
            _ => Ok(true),
        }
    }

    fn change_task(
        &mut self,
        act: TaskAct,
        queue: &mut Queue,
        id: &TaskId,
        before: TaskHead,
        row: TaskRow,
        caller: &Caller,
    ) -> Result<TaskReply, Fault> {
        let changed = summary(id, &row.head);
        self.put_task(queue, id, Some(before), Some(row))?;
        self.record_task(act, queue, id, caller);
        Ok(TaskReply::Changed(changed))
    }

    fn remove_task(
        &mut self,
        act: TaskAct,
        queue: &mut Queue,
        id: &TaskId,
        before: TaskHead,
        caller: &Caller,
    ) -> Result<TaskReply, Fault> {
        let removed = TaskSummary { state: None, ..summary(id, &before) };
        self.put_task(queue, id, Some(before), None)?;
        self.record_task(act, queue, id, caller);
        Ok(TaskReply::Changed(removed))
    }

    /// A kept claim as it is answered again: with the payloads as long as the claim holds, and what is left of that.
    pub(super) fn replay_claim(&self, queue: &QueueName, mut reply: Reply) -> Result<Reply, Fault> {
        let (revision, clock) = (reply.revision, self.vars.clock);
        let Outcome::Task(done) = &mut reply.outcome else { return Ok(reply) };
        let TaskReply::Claimed(claimed) = &mut **done else { return Ok(reply) };
        for task in &mut claimed.tasks {
            let row = self.peek_task(queue, &task.id)?;
            let is_over = match &row {
                Some(row) => !self.is_session_there(&row.head.state)?,
                None => true,
            };
            let held = row.filter(|_| !is_over).and_then(|row| match row.head.state {
                TaskState::Claimed { token, until, .. } if token == revision => Some((row.payload, until)),
                _ => None,
            });
            task.lease_left_ms = held.as_ref().map_or(0, |(_, until)| until.saturating_sub(clock));
            task.payload = held.map(|(payload, _)| payload);
        }
        Ok(reply)
    }
}

/// What an attempt that failed makes of a task.
fn after_failure(queue: &mut Queue, head: &mut TaskHead, error: String, then: AfterFailure, wall: WallMillis) {
    head.state = TaskState::Scheduled;
    if then == AfterFailure::GiveBack {
        head.attempts -= 1;
        // It may have been taken before the wall clock was walked back.
        let due = head.due;
        reckon_anew(head, due, wall);
        return;
    }
    queue.row.failed += 1;
    head.last_error = Some(error);
    if then == AfterFailure::Die || head.attempts >= head.retry.max_attempts {
        queue.row.died += 1;
        match head.recurrence {
            // Whatever happened to this occurrence, the next one comes.
            Some(_) => recur(head, wall),
            None => head.state = TaskState::Dead { at: wall },
        }
        return;
    }
    let pause = match then {
        AfterFailure::RetryIn(ms) => ms,
        _ => head.retry.pause_after(head.attempts),
    };
    head.due = wall.saturating_add(pause);
}

/// Goes on to the next occurrence: one after this one and after now. Where this one was taken before the wall clock was walked back, it is one
/// after now: nobody waits for the wrong time to come.
fn recur(head: &mut TaskHead, wall: WallMillis) {
    head.attempts = 0;
    match &head.recurrence {
        Some(Recurrence::Every(ms)) => {
            head.planned = if is_of_before(head.planned, wall.saturating_add(*ms)) {
                first_after(wall, head.planned, *ms)
            } else {
                let missed = wall.saturating_sub(head.planned) / ms;
                head.planned.saturating_add((missed + 1).saturating_mul(*ms))
            };
            head.due = head.planned;
            head.state = TaskState::Scheduled;
        }
        Some(Recurrence::Cron { .. }) | None => head.state = TaskState::Unplanned,
    }
}

fn summary(id: &TaskId, head: &TaskHead) -> TaskSummary {
    TaskSummary {
        id: id.clone(),
        state: Some(head.state.clone()),
        due: head.due,
        attempts: head.attempts,
        max_attempts: head.retry.max_attempts,
    }
}

fn act_of(verb: &TaskVerb) -> TaskAct {
    match verb {
        TaskVerb::Schedule(_) | TaskVerb::ScheduleOne(_) => TaskAct::Schedule,
        TaskVerb::Claim { .. } => TaskAct::Claim,
        TaskVerb::Extend { .. } => TaskAct::Extend,
        TaskVerb::Complete(_) => TaskAct::Complete,
        TaskVerb::Fail { .. } => TaskAct::Fail,
        TaskVerb::Cancel(_) => TaskAct::Cancel,
        TaskVerb::Requeue(_) => TaskAct::Requeue,
        TaskVerb::Plan(_) => TaskAct::Plan,
    }
}
