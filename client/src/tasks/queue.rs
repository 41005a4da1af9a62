//! Timed tasks: scheduling, looking at queues, and what to do with dead ones. Claiming is `claim`, working one off
//! `worker`.

use std::future::IntoFuture;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::{
    JsonText, Moment, QueueList, QueueStats, TaskAnswer, TaskBackoff, TaskCancel, TaskList, TaskRequeue, TaskScheduled,
    TaskSpec, TaskSpecs, TaskView, TasksRequeued, TasksScheduled,
};
use crate::call::error::Error;
use crate::call::op::checked_json;
use crate::call::operation::milliseconds;
use crate::call::request::{Call, Intent, RequestId, name_path, push_query, segment_path};
use crate::call::value::Value;
use crate::client::Client;

/// A queue of timed tasks by its name, from [`Client::tasks`]. It is there once a task was scheduled into it.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use std::time::Duration;
///
/// use quorate_client::Value;
///
/// let parcels = client.tasks("parcels");
/// // Once, however often this is run: the id is in use.
/// parcels.schedule(Value::json("to ann")?).id("order-o42").delay(Duration::from_secs(60)).await?;
/// let stats = parcels.stats().await?;
/// println!("{} wait, the first until {:?}", stats.scheduled, stats.next_at);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TaskQueue {
    pub(crate) client: Client,
    name: String,
}

impl Client {
    /// The queue of this name.
    pub fn tasks(&self, queue: impl Into<String>) -> TaskQueue {
        TaskQueue { client: self.clone(), name: queue.into() }
    }

    /// Queues by name, a page of at most 1000; `cursor` is that of the page before.
    pub async fn task_queues(&self, cursor: Option<&str>) -> Result<QueueList, Error> {
        let mut target = "/v1/tasks?limit=1000".to_owned();
        if let Some(cursor) = cursor {
            push_query(&mut target, "cursor", cursor);
        }
        self.read(target).await
    }
}

impl TaskQueue {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Schedules a task: at once, if nothing else is said.
    pub fn schedule(&self, payload: Value) -> ScheduleTask {
        ScheduleTask {
            queue: self.clone(),
            payload: Some(payload),
            spec: TaskSpec::default(),
            request_id: RequestId::random(),
            timeout: None,
        }
    }

    /// Schedules several tasks at once, at most 1000, under an id that makes it safe to repeat.
    pub async fn schedule_all(&self, tasks: Vec<TaskSpec>, request_id: RequestId) -> Result<TasksScheduled, Error> {
        let body = TaskSpecs { tasks, ..TaskSpecs::default() };
        self.write("", &body, request_id, None).await
    }

    /// Takes a task away, whatever its state.
    pub async fn cancel(&self, id: &str, request_id: RequestId) -> Result<TaskAnswer, Error> {
        self.write("/cancel", &TaskCancel { id: id.to_owned(), request_id: None }, request_id, None).await
    }

    /// Schedules a dead task again.
    pub async fn requeue(&self, id: &str, request_id: RequestId) -> Result<TasksRequeued, Error> {
        let body = TaskRequeue { id: Some(id.to_owned()), ..TaskRequeue::default() };
        self.write("/requeue", &body, request_id, None).await
    }

    /// Schedules those dead tasks again that died first, at most 1000.
    pub async fn requeue_oldest(&self, limit: u32, request_id: RequestId) -> Result<TasksRequeued, Error> {
        let body = TaskRequeue { limit: Some(limit), ..TaskRequeue::default() };
        self.write("/requeue", &body, request_id, None).await
    }

    /// What it counts.
    pub async fn stats(&self) -> Result<QueueStats, Error> {
        self.client.read(self.path("/stats")?).await
    }

    /// A task, if it is there.
    pub async fn get(&self, id: &str) -> Result<Option<TaskView>, Error> {
        let route = self.path("/task/")?;
        self.client.read_if_there(name_path(&route, id, "the id of a task")?).await
    }

    /// A page of its tasks in one state (`scheduled`, `claimed`, `dead`, `done`, `unplanned`, or `all`), at most `limit`; `cursor` is
    /// that of the page before.
    pub async fn list(&self, state: &str, limit: u32, cursor: Option<&str>) -> Result<TaskList, Error> {
        let mut target = self.path("")?;
        push_query(&mut target, "state", state);
        push_query(&mut target, "limit", limit);
        if let Some(cursor) = cursor {
            push_query(&mut target, "cursor", cursor);
        }
        self.client.read(target).await
    }

    /// Does something to it; `verb` follows its name in the path.
    pub(crate) async fn write<T: DeserializeOwned>(
        &self,
        verb: &str,
        body: &impl Serialize,
        request_id: RequestId,
        timeout: Option<Duration>,
    ) -> Result<T, Error> {
        let mut call = self.call(verb, body, request_id)?;
        call.timeout = timeout;
        self.client.fetch(call).await
    }

    pub(crate) fn call(&self, verb: &str, body: &impl Serialize, request_id: RequestId) -> Result<Call, Error> {
        Call::post_to(self.path(verb)?, body, Intent::Write(request_id))
    }

    /// Its path and what follows. A queue is one segment, so that what follows is no part of it.
    fn path(&self, rest: &str) -> Result<String, Error> {
        segment_path("/v1/tasks/", &self.name, rest, "the name of a queue")
    }
}

/// A task to be scheduled, when awaited. Carries a request id from the beginning: a retry schedules nothing twice.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::Value;
///
/// // On each working day at eight, by the clock of Berlin.
/// let report = client
///     .tasks("reports")
///     .schedule(Value::json("daily")?)
///     .id("daily")
///     .cron("0 8 * * 1-5")
///     .zone("Europe/Berlin")
///     .max_attempts(5)
///     .await?;
/// println!("next at {:?}", report.execute_at);
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until awaited"]
#[derive(Debug, Clone)]
pub struct ScheduleTask {
    queue: TaskQueue,
    /// Of an own kind in the request, so kept apart until then.
    payload: Option<Value>,
    spec: TaskSpec,
    request_id: RequestId,
    timeout: Option<Duration>,
}

impl ScheduleTask {
    /// Its id: while it is in use, another task with it is not scheduled. Where that task is dead, the schedule is refused
    /// ([`already_exists`](crate::api::ErrorCode::AlreadyExists)).
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.spec.id = Some(id.into());
        self
    }

    /// It is due at this time: RFC 3339, Unix milliseconds, or a [`std::time::SystemTime`].
    pub fn at(mut self, time: impl Into<Moment>) -> Self {
        self.spec.execute_at = Some(time.into());
        self
    }

    /// It is due after this time.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.spec.delay_ms = Some(milliseconds(delay));
        self
    }

    /// It comes again every so often.
    pub fn every(mut self, every: Duration) -> Self {
        self.spec.every_ms = Some(milliseconds(every));
        self
    }

    /// It comes again by this cron pattern: minute, hour, day of month, month, day of week; or six fields with seconds first.
    pub fn cron(mut self, pattern: impl Into<String>) -> Self {
        self.spec.cron = Some(pattern.into());
        self
    }

    /// The time zone of the pattern, by its IANA name; UTC without it.
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.spec.zone = Some(zone.into());
        self
    }

    /// Most attempts.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.spec.max_attempts = Some(attempts);
        self
    }

    /// The pauses between attempts: the first, and by which factor each is longer than the one before, up to the longest.
    pub fn backoff(mut self, first: Duration, longest: Duration, factor: f64) -> Self {
        let (initial_ms, max_ms) = (Some(milliseconds(first)), Some(milliseconds(longest)));
        self.spec.backoff = Some(TaskBackoff { initial_ms, max_ms, factor: Some(factor) });
        self
    }

    /// How long its id stays in use after it was completed.
    pub fn keep(mut self, time: Duration) -> Self {
        self.spec.keep_ms = Some(milliseconds(time));
        self
    }

    /// Take the place of a task with its id that waits or is dead; refused where that is worked on or was completed.
    pub fn replace(mut self) -> Self {
        self.spec.replace = true;
        self
    }

    /// Say what would be scheduled, change nothing.
    pub fn dry_run(mut self) -> Self {
        self.spec.dry_run = true;
        self
    }

    /// An id of one's own instead of a random one: to repeat it where its outcome stayed unknown.
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = id;
        self
    }

    /// Deadline instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// As a part of [`TaskQueue::schedule_all`].
    pub fn into_spec(mut self) -> Result<TaskSpec, Error> {
        match self.payload.take() {
            Some(value) if value.is_json => self.spec.payload = Some(JsonText(checked_json(&value.data)?.to_owned())),
            Some(value) => self.spec.payload_base64 = Some(STANDARD.encode(&value.data)),
            None => {}
        }
        Ok(self.spec)
    }
}

impl IntoFuture for ScheduleTask {
    type Output = Result<TaskScheduled, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (queue, request_id, timeout) = (self.queue.clone(), self.request_id.clone(), self.timeout);
            queue.write("", &self.into_spec()?, request_id, timeout).await
        })
    }
}
