//! Commands about timed tasks, and what applying them answers.
//!
//! Owns their form in the log. A command has no time of its own but delays: what is due is judged when it is applied, by the
//! wall clock of its batch; how long a claim holds counts cluster clock.

use bincode::{Decode, Encode};

use super::task_name::{QueueName, TaskId};
use super::{ClusterMillis, Revision, SessionId, Value, WallMillis};
use crate::limits;

/// Something done to a queue of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TaskOp {
    /// The queue. It is there once a task was scheduled into it.
    pub queue: QueueName,
    /// What is done.
    pub verb: TaskVerb,
}

/// What is done to a queue.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum TaskVerb {
    /// Schedules tasks, at most [`limits::TASKS_SCHEDULED_MAX`]: all at one revision, each on its own.
    Schedule(Vec<NewTask>),
    /// Takes tasks that are due, in the order in which they are, all at one revision, which is their token.
    Claim {
        /// Most tasks: 1 to [`limits::CLAIM_LIMIT_MAX`].
        limit: u32,
        /// For so many milliseconds of cluster clock.
        lease_ms: u64,
        /// Who works on them, for people.
        worker: String,
        /// The session that the claims hang on, if any: they are over when it ends, at the latest.
        session: Option<SessionId>,
    },
    /// Lets a claim hold for so many milliseconds from now.
    Extend {
        /// The claim.
        ticket: Ticket,
        /// Milliseconds of cluster clock.
        lease_ms: u64,
    },
    /// The task is done.
    Complete(Ticket),
    /// The attempt at the task is over without success.
    Fail {
        /// The claim.
        ticket: Ticket,
        /// Why, for people: at most [`limits::TASK_ERROR_BYTES_MAX`] bytes.
        error: String,
        /// What is to become of the task.
        then: AfterFailure,
    },
    /// Takes a task away, in whatever state it is.
    Cancel(TaskId),
    /// Puts dead tasks back, as if they had never been tried.
    Requeue(Requeue),
    /// Says when a task recurs; by the leader, since patterns need tables of time zones, which differ between builds.
    Plan(PlanTask),
    /// Schedules a task on its own. Unlike one of a list it is refused where it would be lost without a word: the task that has its id is
    /// dead, or is to be replaced and is worked on or was completed.
    ScheduleOne(NewTask),
}

/// A claim of one task.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Ticket {
    /// The task.
    pub id: TaskId,
    /// The revision at which it was claimed.
    pub token: Revision,
}

/// A task to be scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewTask {
    /// Its id, not [made](TaskId::made). One that is in use leaves that task as it is.
    pub id: Option<TaskId>,
    /// What it is about.
    pub payload: Value,
    /// When it is due.
    pub start: Start,
    /// Whether it comes again.
    pub recurrence: Option<Recurrence>,
    /// How often it is tried.
    pub retry: RetryPlan,
    /// Milliseconds of cluster clock for which a given id stays in use after the task was completed.
    pub keep_ms: u64,
    /// Whether it takes the place of a task with its id that waits or is dead.
    pub replace: bool,
}

/// When a task is due first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Start {
    /// At this time.
    At(WallMillis),
    /// So many milliseconds after it was scheduled.
    In(u64),
    /// When the leader says, by the pattern of its recurrence.
    Planned,
}

/// How a task comes again.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Recurrence {
    /// Every so many milliseconds, from the first time on. Times that have passed are left out.
    Every(u64),
    /// By a cron pattern.
    Cron {
        /// The pattern.
        pattern: String,
        /// The time zone that it is in, by its IANA name.
        zone: String,
    },
}

/// How often a task is tried, and after which pauses: `initial_ms`, then by `factor_milli` thousandths more each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct RetryPlan {
    /// Most attempts: 1 to [`limits::TASK_ATTEMPTS_MAX`].
    pub max_attempts: u32,
    /// Pause after the first.
    pub initial_ms: u64,
    /// Longest pause.
    pub max_ms: u64,
    /// From 1,000 to [`limits::TASK_FACTOR_MILLI_MAX`].
    pub factor_milli: u32,
}

impl Default for RetryPlan {
    fn default() -> Self {
        Self { max_attempts: limits::TASK_ATTEMPTS_DEFAULT, initial_ms: 1_000, max_ms: 300_000, factor_milli: 2_000 }
    }
}

impl RetryPlan {
    /// Milliseconds until the next attempt once `attempts` were made.
    pub fn pause_after(&self, attempts: u32) -> u64 {
        let mut pause = self.initial_ms;
        for _ in 1..attempts {
            if pause >= self.max_ms {
                break;
            }
            pause = (pause.saturating_mul(self.factor_milli.into()) / 1_000).max(pause);
        }
        pause.min(self.max_ms)
    }
}

/// What becomes of a task after an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum AfterFailure {
    /// It is tried again after a pause by its [`RetryPlan`], as long as there are attempts left.
    Retry,
    /// It is tried again after this pause, in milliseconds.
    RetryIn(u64),
    /// It is not tried again.
    Die,
    /// It is given back as if it had not been claimed: the attempt does not count.
    GiveBack,
}

/// Which dead tasks are put back.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Requeue {
    /// This one.
    One(TaskId),
    /// The first to die, at most so many: 1 to [`limits::TASKS_REQUEUED_MAX`].
    Oldest(u32),
}

/// When an unplanned task is due.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PlanTask {
    /// The task.
    pub id: TaskId,
    /// Its [`TaskHead::revision`] as the leader saw it; if it changed since, nothing happens.
    pub seen: Revision,
    /// The next time; `None` where the pattern gives none any more.
    pub due: Option<WallMillis>,
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum TaskState {
    /// It waits until it is due, or for somebody who claims it.
    Scheduled,
    /// Somebody works on it.
    Claimed {
        /// The revision at which it was claimed.
        token: Revision,
        /// Cluster clock at which the claim is over.
        until: ClusterMillis,
        /// Who, for people.
        worker: String,
        /// The session that the claim hangs on.
        session: Option<SessionId>,
    },
    /// It is not tried any more.
    Dead {
        /// Since when.
        at: WallMillis,
    },
    /// It waits for the leader to say when it is due.
    Unplanned,
    /// It was completed; only its id is still in use.
    Done {
        /// Cluster clock until which.
        until: ClusterMillis,
    },
}

/// What is known of a task beside its payload.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TaskHead {
    /// How far it is.
    pub state: TaskState,
    /// When it is due, or was.
    pub due: WallMillis,
    /// Its place among those that are due at the same time, or died so.
    pub number: u64,
    /// When this occurrence was to be done, before any failure.
    pub planned: WallMillis,
    /// Attempts at this occurrence so far, a current one too.
    pub attempts: u32,
    /// How often it is tried.
    pub retry: RetryPlan,
    /// Whether it comes again.
    pub recurrence: Option<Recurrence>,
    /// Why the last attempt that failed did.
    pub last_error: Option<String>,
    /// Milliseconds for which its id stays in use after it was completed.
    pub keep_ms: u64,
    /// When it was scheduled.
    pub created: WallMillis,
    /// Revision of its last change.
    pub revision: Revision,
    /// Occurrences that were completed.
    pub runs: u64,
}

/// What came of a [`TaskOp`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum TaskReply {
    /// One for each task that was to be scheduled.
    Scheduled(Vec<ScheduledTask>),
    /// What was claimed.
    Claimed(TasksClaimed),
    /// The task after an extension, completion, failure or cancellation, or put back.
    Changed(TaskSummary),
    /// Dead tasks were put back.
    Requeued {
        /// How many.
        count: u32,
        /// Whether others are left.
        more: bool,
    },
    /// The leader's plan was taken, or was too late.
    Planned,
}

/// What came of a task that was to be scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ScheduledTask {
    /// The task as it is now.
    pub task: TaskSummary,
    /// Whether it is a new one. If not, there was one with this id, which stays as it is.
    pub created: bool,
    /// Whether it took the place of another.
    pub replaced: bool,
}

/// A task in short.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TaskSummary {
    /// Its id.
    pub id: TaskId,
    /// How far it is; `None` where it is not there any more.
    pub state: Option<TaskState>,
    /// When it is due, or was.
    pub due: WallMillis,
    /// Attempts so far.
    pub attempts: u32,
    /// Most attempts.
    pub max_attempts: u32,
}

/// What a claim took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct TasksClaimed {
    /// In the order in which they were due. Their token is the revision of the reply.
    pub tasks: Vec<ClaimedTask>,
    /// How many more are due, up to [`limits::TASKS_DUE_LOOK`].
    pub due_left: u32,
    /// Where none is due: when the next one is.
    pub next_due: Option<WallMillis>,
    /// Wall clock by which that was judged.
    pub wall: WallMillis,
}

/// A task that was claimed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ClaimedTask {
    /// Its id.
    pub id: TaskId,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Most attempts.
    pub max_attempts: u32,
    /// When it was due.
    pub due: WallMillis,
    /// When this occurrence was to be done, before any failure.
    pub planned: WallMillis,
    /// Milliseconds of cluster clock that the claim still holds, at the time of the answer; 0 where it is over.
    pub lease_left_ms: u64,
    /// Why the last attempt failed, if one did.
    pub last_error: Option<String>,
    /// What it is about; left out of what is kept for retries, and of the answer to one once the claim is over.
    pub payload: Option<Value>,
}

impl TaskReply {
    /// Bytes of the payloads that it carries.
    pub fn value_bytes(&self) -> usize {
        match self {
            Self::Claimed(done) => {
                done.tasks.iter().filter_map(|task| task.payload.as_ref()).map(|payload| payload.data.len()).sum()
            }
            _ => 0,
        }
    }

    /// How many tasks it tells of.
    pub(super) fn parts(&self) -> usize {
        match self {
            Self::Scheduled(tasks) => tasks.len(),
            Self::Claimed(done) => done.tasks.len(),
            Self::Changed(_) | Self::Requeued { .. } | Self::Planned => 0,
        }
    }

    /// Drops the payloads: they stand in the rows of the tasks.
    pub(super) fn make_bare(&mut self) {
        if let Self::Claimed(done) = self {
            done.tasks.iter_mut().for_each(|task| task.payload = None);
        }
    }

    /// Whether it is kept for retries. A claim that found nothing changed nothing, and the next try under its id may find
    /// something: so one that waits has one id for all its tries, and the first that finds something is the one that counts.
    pub(crate) fn is_kept(&self) -> bool {
        !matches!(self, Self::Claimed(done) if done.tasks.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_by_the_factor_up_to_the_longest() {
        let plan = RetryPlan { max_attempts: 9, initial_ms: 100, max_ms: 1_000, factor_milli: 1_500 };
        let pauses: Vec<u64> = (1..9).map(|attempts| plan.pause_after(attempts)).collect();
        assert_eq!(pauses, [100, 150, 225, 337, 505, 757, 1_000, 1_000]);
        let steady = RetryPlan { initial_ms: 0, factor_milli: 1_000, ..plan };
        assert_eq!(steady.pause_after(limits::TASK_ATTEMPTS_MAX), 0);
        let long = RetryPlan { initial_ms: u64::MAX, max_ms: u64::MAX, factor_milli: 10_000, ..plan };
        assert_eq!(long.pause_after(1_000), u64::MAX);
    }
}
