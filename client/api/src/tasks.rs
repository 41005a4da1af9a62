//! Timed tasks: queues whose tasks are given out once they are due.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::answers;
use super::decimal;
use super::strict::{given, given_object, objects};
use super::{JsonText, Moment};

/// Most tasks of one schedule.
pub const TASKS_SCHEDULED_MAX: usize = 1_000;

/// Most tasks of one claim.
pub const TASKS_CLAIMED_MAX: u32 = 100;

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum TaskState {
    /// It waits until it is due, or for somebody who claims it.
    Scheduled,
    /// Somebody works on it.
    Claimed,
    /// It failed and is not tried any more.
    Dead,
    /// It recurs by a cron pattern, and the leader is about to say when.
    Unplanned,
    /// It was completed; only its id is still in use.
    Done,
    /// It is not there any more.
    Gone,
}

/// The pauses between attempts: the first, then each by the factor longer, up to the longest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBackoff {
    /// The first, in milliseconds; 1000 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 604800000, nullable = false)]
    pub initial_ms: Option<u64>,
    /// The longest, in milliseconds; 300000 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 604800000, nullable = false)]
    pub max_ms: Option<u64>,
    /// By how much each is longer than the one before, 1 to 10; 2 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10, nullable = false)]
    pub factor: Option<f64>,
}

/// A task to be scheduled: the body of `POST /v1/tasks/{queue}`, or one of its list. When it is due says at most one of
/// `execute_at`, `delay_ms` and `cron`; without any, at once, or with `every_ms` after that time.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// Its id: another schedule with it changes nothing while it is in use, and is refused where the task is dead. Without one it gets
    /// one that begins with `~`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256, pattern = "^[^~]", nullable = false)]
    pub id: Option<String>,
    /// What it is about, any JSON; `null` without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<JsonText>,
    /// The payload as bytes, in base64.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub payload_base64: Option<String>,
    /// When it is due: RFC 3339, or Unix milliseconds.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Moment, required = false)]
    pub execute_at: Option<Moment>,
    /// It is due so many milliseconds from now.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 3153600000000_u64, nullable = false)]
    pub delay_ms: Option<u64>,
    /// It comes again every so many milliseconds, 100 to 31622400000, counted from the first time.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 100, maximum = 31622400000_u64, nullable = false)]
    pub every_ms: Option<u64>,
    /// It comes again by this pattern of five fields (minute, hour, day of month, month, day of week), or six with seconds first.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256, nullable = false)]
    pub cron: Option<String>,
    /// The time zone of the pattern, by its IANA name; UTC without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256, nullable = false)]
    pub zone: Option<String>,
    /// Most attempts, 1 to 1000; 20 without it. A recurring task goes on with its next occurrence after that.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000, nullable = false)]
    pub max_attempts: Option<u32>,
    /// The pauses between attempts.
    #[serde(default, deserialize_with = "given_object", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub backoff: Option<TaskBackoff>,
    /// How long the id given stays in use after the task was completed, in milliseconds, up to 604800000; 900000 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 604800000, nullable = false)]
    pub keep_ms: Option<u64>,
    /// Take the place of a task with this id that waits or is dead; refused where that is worked on or was completed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again. Not in a list.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Say what would be scheduled, change nothing. Not in a list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// Several tasks to be scheduled: the other form of the body of `POST /v1/tasks/{queue}`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSpecs {
    /// They, at most 1000: each on its own, all at one revision.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "objects")]
    pub tasks: Vec<TaskSpec>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Say what would be scheduled, change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The two forms of the body of `POST /v1/tasks/{queue}`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ScheduleRequest {
    /// Several tasks: there is a field `tasks`.
    Several(TaskSpecs),
    /// One task.
    One(Box<TaskSpec>),
}

impl ScheduleRequest {
    /// The caller's request id.
    pub fn request_id(&self) -> Option<String> {
        match self {
            Self::One(one) => one.request_id.clone(),
            Self::Several(several) => several.request_id.clone(),
        }
    }

    /// Whether it is only to be tried.
    pub fn dry_run(&self) -> bool {
        match self {
            Self::One(one) => one.dry_run,
            Self::Several(several) => several.dry_run,
        }
    }
}

/// What came of a task that was to be scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct TaskScheduled {
    /// Its id.
    #[schema(min_length = 1, max_length = 256)]
    pub id: String,
    /// Whether it is a new one. If not, the id was in use, and the rest tells of the task that has it.
    pub created: bool,
    /// Whether it took the place of another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// How far it is.
    pub state: TaskState,
    /// When it is due; absent until it is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute_at: Option<String>,
    /// Attempts so far.
    pub attempts: u32,
    /// Most attempts.
    pub max_attempts: u32,
    /// Revision at which it was scheduled, or looked at. In the answer to a single one.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::shown, required = false)]
    pub revision: Option<u64>,
    /// Log index. In the answer to a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Whether this is the kept answer of an earlier try with the same request id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Whether nothing was changed because a dry run was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The answer to several tasks that were to be scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct TasksScheduled {
    /// One for each, in their order.
    pub tasks: Vec<TaskScheduled>,
    /// How many of them are new.
    pub created: u64,
    /// Revision at which they were scheduled, or looked at.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index.
    pub index: u64,
    /// Whether this is the kept answer of an earlier try with the same request id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Whether nothing was changed because a dry run was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The body of `POST /v1/tasks/{queue}/claim`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskClaim {
    /// Most tasks to claim, 1 to 100; 1 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100, nullable = false)]
    pub limit: Option<u32>,
    /// How long the claim holds, in milliseconds, 1000 to 86400000; 30000 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1000, maximum = 86400000, nullable = false)]
    pub lease_ms: Option<u64>,
    /// Who works on them, for people.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256, nullable = false)]
    pub worker: Option<String>,
    /// The session that the claim hangs on: it is over when that ends, at the latest.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub session: Option<String>,
    /// Where nothing is due: wait so long until something is, up to 60000.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub wait_ms: Option<u64>,
    /// Makes retries safe: what was claimed is given again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A task that was claimed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct TaskClaimed {
    /// Its id.
    #[schema(min_length = 1, max_length = 256)]
    pub id: String,
    /// Stands for this claim: whoever completes, extends or fails the task gives it.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub token: u64,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Most attempts.
    pub max_attempts: u32,
    /// When it was due.
    pub execute_at: String,
    /// When it was to be done, before any failure.
    pub planned_at: String,
    /// Milliseconds that the claim still holds; 0 where it is over, in the answer to a retry.
    pub lease_ms: u64,
    /// Why the last attempt failed, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// What it is about. Neither this nor `payload_base64` is there once the claim is over, in the answer to a retry.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<JsonText>,
    /// The payload in base64, where it is bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
}

answers! {
    /// The answer of `POST /v1/tasks/{queue}/claim`.
    pub struct TaskClaimAnswer: decided {
        /// What was claimed, in the order in which it was due.
        pub tasks: Vec<TaskClaimed>,
        /// How many that is.
        pub count: u64,
        /// Where nothing was due: when the first task is, if there is one; as of the end of the wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next_at: Option<String>,
        /// Milliseconds that the request waited before the claim.
        pub waited_ms: u64,
    }
}

/// The body of `POST /v1/tasks/{queue}/extend`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskExtend {
    /// The task.
    #[schema(min_length = 1, max_length = 256)]
    pub id: String,
    /// That of the claim.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::given)]
    pub token: u64,
    /// How long the claim holds from now, in milliseconds, 1000 to 86400000; 30000 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1000, maximum = 86400000, nullable = false)]
    pub lease_ms: Option<u64>,
    /// Makes retries safe.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The body of `POST /v1/tasks/{queue}/complete`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskComplete {
    /// The task.
    #[schema(min_length = 1, max_length = 256)]
    pub id: String,
    /// That of the claim.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::given)]
    pub token: u64,
    /// Makes retries safe.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The body of `POST /v1/tasks/{queue}/fail`. At most one of `retry_in_ms`, `dead` and `release`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFail {
    /// The task.
    #[schema(min_length = 1, max_length = 256)]
    pub id: String,
    /// That of the claim.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::given)]
    pub token: u64,
    /// Why, for people; what is beyond 4096 bytes is cut off.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
    /// Try again after so many milliseconds, up to 604800000, instead of the pause that it has.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 604800000, nullable = false)]
    pub retry_in_ms: Option<u64>,
    /// Do not try again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dead: bool,
    /// Give it back as if it had not been claimed: the attempt does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub release: bool,
    /// Makes retries safe.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The body of `POST /v1/tasks/{queue}/cancel`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskCancel {
    /// The task.
    #[schema(min_length = 1, max_length = 256)]
    pub id: String,
    /// Makes retries safe.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The body of `POST /v1/tasks/{queue}/requeue`: one dead task, or the first that died.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRequeue {
    /// This one.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256, nullable = false)]
    pub id: Option<String>,
    /// So many, 1 to 1000; 100 without it. Not with `id`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000, nullable = false)]
    pub limit: Option<u32>,
    /// Makes retries safe.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

answers! {
    /// The answer to `extend`, `complete`, `fail` and `cancel`: the task after it.
    #[derive(Eq)]
    pub struct TaskAnswer: decided {
        /// Its id.
        #[schema(min_length = 1, max_length = 256)]
        pub id: String,
        /// How far it is.
        pub state: TaskState,
        /// When it is due, where it waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub execute_at: Option<String>,
        /// Attempts so far.
        pub attempts: u32,
        /// Most attempts.
        pub max_attempts: u32,
        /// Milliseconds that the claim holds from then on, after `extend`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub lease_ms: Option<u64>,
    }

    /// The answer to `requeue`.
    #[derive(Eq)]
    pub struct TasksRequeued: decided {
        /// How many dead tasks are scheduled again.
        pub count: u64,
        /// Whether there are others.
        pub more: bool,
    }

    /// A task as it is.
    pub struct TaskView: at_unless_listed {
        /// Its id.
        #[schema(min_length = 1, max_length = 256)]
        pub id: String,
        /// How far it is.
        pub state: TaskState,
        /// When it is due, or was; absent until it is planned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub execute_at: Option<String>,
        /// When it was scheduled.
        pub created_at: String,
        /// Attempts so far, a current one too.
        pub attempts: u32,
        /// Most attempts.
        pub max_attempts: u32,
        /// The pauses between attempts.
        pub backoff: TaskBackoff,
        /// It comes again every so many milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub every_ms: Option<u64>,
        /// It comes again by this pattern.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cron: Option<String>,
        /// The time zone of the pattern.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub zone: Option<String>,
        /// How often it was completed.
        pub runs: u64,
        /// Why the last attempt that failed did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_error: Option<String>,
        /// Who works on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub worker: Option<String>,
        /// The session that its claim hangs on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub session: Option<String>,
        /// Milliseconds until the claim is over, where it is claimed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub lease_ms: Option<u64>,
        /// When it died.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub died_at: Option<String>,
        /// Milliseconds until its id is free again, where it is done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub kept_ms: Option<u64>,
        /// What it is about; absent once it is done.
        #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<serde_json::Value>)]
        pub payload: Option<JsonText>,
        /// The payload in base64, where it is bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub payload_base64: Option<String>,
    }

    /// The answer of `GET /v1/tasks/{queue}`.
    pub struct TaskList: page {
        /// A page of them.
        pub tasks: Vec<TaskView>,
    }

    /// A queue in numbers: the answer of `GET /v1/tasks/{queue}/stats`, and one of the list of queues.
    #[derive(Eq)]
    pub struct QueueStats: at_unless_listed {
        /// Its name.
        #[schema(min_length = 1, max_length = 256)]
        pub queue: String,
        /// Tasks that wait, those that are due too.
        pub scheduled: u64,
        /// Tasks that somebody works on.
        pub claimed: u64,
        /// Tasks that are not tried any more.
        pub dead: u64,
        /// Tasks that wait for a plan.
        pub unplanned: u64,
        /// Completed tasks whose ids are still in use.
        pub done: u64,
        /// Completions so far.
        pub completed_total: u64,
        /// Failed attempts so far, claims that ran out too.
        pub failed_total: u64,
        /// Tasks that died so far, occurrences of recurring ones that were given up too.
        pub died_total: u64,
        /// Tasks that were cancelled so far.
        pub cancelled_total: u64,
        /// When the first of those that wait is due.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next_at: Option<String>,
    }

    /// The answer of `GET /v1/tasks`.
    #[derive(Eq)]
    pub struct QueueList: page {
        /// A page of them, by name.
        pub queues: Vec<QueueStats>,
    }
}
