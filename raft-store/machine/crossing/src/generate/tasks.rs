//! Timed tasks of one queue.

use quorate_machine::limits;
use quorate_machine::types::{
    AfterFailure, NewTask, PlanTask, Recurrence, Requeue, RetryPlan, Start, TaskId, TaskOp, TaskState, TaskVerb, Ticket,
};

use super::Generator;
use crate::{names, states};

impl Generator<'_> {
    /// About tasks.
    pub(super) fn task(&mut self) -> TaskOp {
        let verb = match self.chance.weighted(&[16, 22, 8, 12, 14, 6, 6, 4, 8, 8]) {
            0 => {
                // Now and then twice the same, which is refused.
                TaskVerb::Schedule((0..self.chance.between(1, 2)).map(|_| self.new_task()).collect())
            }
            1 => {
                let session = self.chance.percent(50).then(|| self.some_session());
                let (limit, lease_ms) = (self.chance.between(1, 3) as u32, self.lease());
                TaskVerb::Claim { limit, lease_ms, worker: "w".into(), session }
            }
            2 => TaskVerb::Extend { ticket: self.ticket(), lease_ms: self.lease() },
            3 => TaskVerb::Complete(self.ticket()),
            4 => {
                let retry_in = self.chance.below(300);
                let then = *self.chance.pick(&[
                    AfterFailure::Retry,
                    AfterFailure::RetryIn(retry_in),
                    AfterFailure::Die,
                    AfterFailure::GiveBack,
                ]);
                TaskVerb::Fail { ticket: self.ticket(), error: "e".into(), then }
            }
            5 => TaskVerb::Cancel(self.id()),
            6 => TaskVerb::Requeue(Requeue::One(self.id())),
            7 => TaskVerb::Requeue(Requeue::Oldest(self.chance.between(1, 2) as u32)),
            8 => TaskVerb::Plan(self.plan()),
            _ => TaskVerb::ScheduleOne(self.new_task()),
        };
        TaskOp { queue: names::queue(), verb }
    }

    fn lease(&mut self) -> u64 {
        *self.chance.pick(&[limits::TASK_LEASE_MS_MIN, limits::TASK_LEASE_MS_MIN, 1_500, 4_000])
    }

    /// An id: of a task in a state drawn before it, if there is one.
    fn id(&mut self) -> TaskId {
        let wanted = *self.chance.pick(&states::TASK);
        let other = TaskId::new(*self.chance.pick(&names::TASKS)).expect("it is an id");
        let ids: Vec<_> = self.picture.tasks.keys().map(|(_, id)| id.clone()).collect();
        let is_wanted = |id: &&TaskId| states::of_one_task(self.picture, &names::queue(), id).contains(&wanted);
        let fitting: Vec<_> = ids.iter().filter(is_wanted).collect();
        match self.chance.percent(60) {
            true => self.chance.maybe(&fitting).map_or(other, |id| (*id).clone()),
            false => other,
        }
    }

    fn ticket(&mut self) -> Ticket {
        let token_of = |state: &TaskState| match state {
            TaskState::Claimed { token, .. } => Some(*token),
            _ => None,
        };
        let tasks = self.picture.tasks.iter();
        let claimed: Vec<_> =
            tasks.filter_map(|((_, id), row)| token_of(&row.head.state).map(|token| (id.clone(), token))).collect();
        let (id, wrong) = (self.id(), self.chance.below(self.picture.vars.revision + 1));
        match (self.chance.percent(75), self.chance.maybe(&claimed)) {
            (true, Some((id, token))) => Ticket { id: id.clone(), token: *token },
            _ => Ticket { id, token: wrong },
        }
    }

    fn plan(&mut self) -> PlanTask {
        let id = self.id();
        let seen = self.picture.tasks.get(&(names::queue(), id.clone())).map_or(1, |row| row.head.revision);
        let seen = if self.chance.percent(85) { seen } else { seen + 1 };
        let due = self.chance.percent(75).then(|| self.picture.vars.wall + self.chance.below(300));
        PlanTask { id, seen, due }
    }

    fn new_task(&mut self) -> NewTask {
        let wall = self.picture.vars.wall;
        let recurrence = match self.chance.weighted(&[60, 20, 20]) {
            0 => None,
            1 => Some(Recurrence::Every(limits::TASK_EVERY_MS_MIN + self.chance.below(200))),
            _ => Some(Recurrence::Cron { pattern: "* * * * *".into(), zone: "UTC".into() }),
        };
        let start = match recurrence {
            Some(Recurrence::Cron { .. }) => Start::Planned,
            _ if self.chance.percent(70) => Start::In(*self.chance.pick(&[0, 0, 0, 200])),
            _ => Start::At(wall.saturating_sub(100) + self.chance.below(400)),
        };
        let max_attempts = self.chance.between(1, 3) as u32;
        let retry = RetryPlan { max_attempts, initial_ms: 50, max_ms: 400, factor_milli: 2_000 };
        let keep_ms = *self.chance.pick(&[0, 500, 5_000, 20_000]);
        let id = self.chance.percent(92).then(|| self.id()).filter(|id| !id.is_made());
        let payload = names::json(self.chance.text(&names::VALUES));
        NewTask { id, payload, start, recurrence, retry, keep_ms, replace: self.chance.percent(30) }
    }
}
