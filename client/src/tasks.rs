//! Timed tasks: scheduling, looking at queues, and what to do with dead ones. Claiming is `task_claim`, working one off
//! `task_worker`.

use std::future::IntoFuture;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use http::{HeaderValue, Method};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::{
    JsonText, Moment, QueueList, QueueStats, TaskAnswer, TaskBackoff, TaskCancel, TaskList, TaskRequeue, TaskScheduled,
    TaskSpec, TaskSpecs, TaskView, TasksRequeued, TasksScheduled,
};
use crate::client::Client;
use crate::endpoints::Preference;
use crate::error::Error;
use crate::kv::is_missing;
use crate::op::checked_json;
use crate::operation::milliseconds;
use crate::request::{Call, Intent, RequestId, json_body, name_path, push_query};
use crate::value::Value;

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
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use quorate_client::Value;
    /// # use std::time::Duration;
    /// # async fn example(client: &quorate_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// client.tasks("parcels").schedule(Value::json("p1")?).delay(Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn tasks(&self, queue: impl Into<String>) -> TaskQueue {
        TaskQueue { client: self.clone(), name: queue.into() }
    }

    /// Queues by name, a page of at most 1000; `cursor` is that of the page before.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// for queue in client.task_queues(None).await?.queues {
    ///     println!("{}: {} wait, {} are dead", queue.queue, queue.scheduled, queue.dead);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn task_queues(&self, cursor: Option<&str>) -> Result<QueueList, Error> {
        let mut target = "/v1/tasks?limit=1000".to_owned();
        if let Some(cursor) = cursor {
            push_query(&mut target, "cursor", cursor);
        }
        self.fetch(Call::new(Method::GET, target, Intent::Read, self.read_preference())?).await
    }
}

impl TaskQueue {
    /// Its name.
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_client::Client;
    ///
    /// let client = Client::from_env()?;
    /// assert_eq!(client.tasks("parcels").name(), "parcels");
    /// # Ok::<(), quorate_client::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Schedules a task: at once, if nothing else is said.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::Value;
    /// use serde_json::json;
    ///
    /// let task = client.tasks("parcels").schedule(Value::json(&json!({"to": "ann"}))?).await?;
    /// println!("{} is due at {:?}", task.id, task.execute_at);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::{RequestId, Value};
    ///
    /// let parcels = client.tasks("parcels");
    /// let specs = ["ann", "ben"].map(|to| parcels.schedule(Value::json(to)?).id(to).into_spec());
    /// let specs = specs.into_iter().collect::<Result<Vec<_>, _>>()?;
    /// let scheduled = parcels.schedule_all(specs, RequestId::random()).await?;
    /// println!("{} of {} are new", scheduled.created, scheduled.tasks.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn schedule_all(&self, tasks: Vec<TaskSpec>, request_id: RequestId) -> Result<TasksScheduled, Error> {
        let body = TaskSpecs { tasks, ..TaskSpecs::default() };
        self.write("", &body, request_id, None).await
    }

    /// Takes a task away, whatever its state.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::api::ErrorCode;
    /// use quorate_client::RequestId;
    ///
    /// match client.tasks("parcels").cancel("order-o42", RequestId::random()).await {
    ///     Err(error) if error.code() == Some(ErrorCode::NotFound) => println!("there is none"),
    ///     other => println!("after {} attempts", other?.attempts),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self, id: &str, request_id: RequestId) -> Result<TaskAnswer, Error> {
        self.write("/cancel", &TaskCancel { id: id.to_owned(), request_id: None }, request_id, None).await
    }

    /// Schedules a dead task again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::RequestId;
    ///
    /// client.tasks("parcels").requeue("order-o42", RequestId::random()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue(&self, id: &str, request_id: RequestId) -> Result<TasksRequeued, Error> {
        let body = TaskRequeue { id: Some(id.to_owned()), ..TaskRequeue::default() };
        self.write("/requeue", &body, request_id, None).await
    }

    /// Schedules those dead tasks again that died first, at most 1000.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::RequestId;
    ///
    /// // The cause is mended: all dead tasks once more, a hundred at a time.
    /// while client.tasks("parcels").requeue_oldest(100, RequestId::random()).await?.more {}
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue_oldest(&self, limit: u32, request_id: RequestId) -> Result<TasksRequeued, Error> {
        let body = TaskRequeue { limit: Some(limit), ..TaskRequeue::default() };
        self.write("/requeue", &body, request_id, None).await
    }

    /// What it counts.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// let stats = client.tasks("parcels").stats().await?;
    /// println!("{} wait, {} are worked on, {} are dead", stats.scheduled, stats.claimed, stats.dead);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stats(&self) -> Result<QueueStats, Error> {
        self.read(self.path("/stats")?).await
    }

    /// A task, if it is there.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// if let Some(task) = client.tasks("parcels").get("order-o42").await? {
    ///     println!("{:?} after {} attempts: {:?}", task.state, task.attempts, task.last_error);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get(&self, id: &str) -> Result<Option<TaskView>, Error> {
        let route = self.path("/task/")?;
        match self.read(name_path(&route, id, "the id of a task")?).await {
            Ok(task) => Ok(Some(task)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A page of its tasks in one state (`scheduled`, `claimed`, `dead`, `done`, `unplanned`, or `all`), at most `limit`; `cursor` is
    /// that of the page before.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// for task in client.tasks("parcels").list("dead", 100, None).await?.tasks {
    ///     println!("{} died at {:?}: {:?}", task.id, task.died_at, task.last_error);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list(&self, state: &str, limit: u32, cursor: Option<&str>) -> Result<TaskList, Error> {
        let mut target = self.path("")?;
        push_query(&mut target, "state", state);
        push_query(&mut target, "limit", limit);
        if let Some(cursor) = cursor {
            push_query(&mut target, "cursor", cursor);
        }
        self.read(target).await
    }

    async fn read<T: DeserializeOwned>(&self, target: String) -> Result<T, Error> {
        let call = Call::new(Method::GET, target, Intent::Read, self.client.read_preference())?;
        self.client.fetch(call).await
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
        let mut call = Call::new(Method::POST, self.path(verb)?, Intent::Write(request_id), Preference::Leader)?;
        call.content_type = Some(HeaderValue::from_static("application/json"));
        call.body = json_body(body)?;
        Ok(call)
    }

    /// Its path and what follows. A queue is one segment, so that what follows is no part of it.
    fn path(&self, rest: &str) -> Result<String, Error> {
        let name = name_path("", &self.name, "the name of a queue")?.replace('/', "%2F");
        Ok(format!("/v1/tasks/{name}{rest}"))
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
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_client::{Client, Value};
    ///
    /// let client = Client::from_env()?;
    /// let spec = client.tasks("parcels").schedule(Value::json("p1")?).id("order-o42").into_spec()?;
    /// assert_eq!(spec.id.as_deref(), Some("order-o42"));
    /// # Ok::<(), quorate_client::Error>(())
    /// ```
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.spec.id = Some(id.into());
        self
    }

    /// It is due at this time: RFC 3339, Unix milliseconds, or a [`std::time::SystemTime`].
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_client::api::Moment;
    /// use quorate_client::{Client, Value};
    ///
    /// let client = Client::from_env()?;
    /// let spec = client.tasks("parcels").schedule(Value::json("p1")?).at("2026-12-24T18:00:00Z").into_spec()?;
    /// assert_eq!(spec.execute_at, Some(Moment::Text("2026-12-24T18:00:00Z".into())));
    /// # Ok::<(), quorate_client::Error>(())
    /// ```
    pub fn at(mut self, time: impl Into<Moment>) -> Self {
        self.spec.execute_at = Some(time.into());
        self
    }

    /// It is due after this time.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use quorate_client::{Client, Value};
    ///
    /// let client = Client::from_env()?;
    /// let spec = client.tasks("parcels").schedule(Value::json("p1")?).delay(Duration::from_secs(60)).into_spec()?;
    /// assert_eq!(spec.delay_ms, Some(60_000));
    /// # Ok::<(), quorate_client::Error>(())
    /// ```
    pub fn delay(mut self, delay: Duration) -> Self {
        self.spec.delay_ms = Some(milliseconds(delay));
        self
    }

    /// It comes again every so often.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use quorate_client::{Client, Value};
    ///
    /// let client = Client::from_env()?;
    /// let spec = client.tasks("checks").schedule(Value::json("disk")?).id("disk").every(Duration::from_secs(30)).into_spec()?;
    /// assert_eq!(spec.every_ms, Some(30_000));
    /// # Ok::<(), quorate_client::Error>(())
    /// ```
    pub fn every(mut self, every: Duration) -> Self {
        self.spec.every_ms = Some(milliseconds(every));
        self
    }

    /// It comes again by this cron pattern: minute, hour, day of month, month, day of week; or six fields with seconds first.
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_client::{Client, Value};
    ///
    /// let client = Client::from_env()?;
    /// // Each Sunday at three.
    /// let spec = client.tasks("reports").schedule(Value::json("weekly")?).cron("0 3 * * 0").into_spec()?;
    /// assert_eq!(spec.cron.as_deref(), Some("0 3 * * 0"));
    /// # Ok::<(), quorate_client::Error>(())
    /// ```
    pub fn cron(mut self, pattern: impl Into<String>) -> Self {
        self.spec.cron = Some(pattern.into());
        self
    }

    /// The time zone of the pattern, by its IANA name; UTC without it.
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_client::{Client, Value};
    ///
    /// let client = Client::from_env()?;
    /// let daily = client.tasks("reports").schedule(Value::json("daily")?).cron("0 8 * * *");
    /// assert_eq!(daily.zone("Europe/Berlin").into_spec()?.zone.as_deref(), Some("Europe/Berlin"));
    /// # Ok::<(), quorate_client::Error>(())
    /// ```
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.spec.zone = Some(zone.into());
        self
    }

    /// Most attempts.
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_client::{Client, Value};
    ///
    /// let client = Client::from_env()?;
    /// let spec = client.tasks("parcels").schedule(Value::json("p1")?).max_attempts(3).into_spec()?;
    /// assert_eq!(spec.max_attempts, Some(3));
    /// # Ok::<(), quorate_client::Error>(())
    /// ```
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.spec.max_attempts = Some(attempts);
        self
    }

    /// The pauses between attempts: the first, and by which factor each is longer than the one before, up to the longest.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use quorate_client::{Client, Value};
    ///
    /// let client = Client::from_env()?;
    /// // After 1, 2, 4 s and so on, up to a minute.
    /// let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
    /// let spec = client.tasks("parcels").schedule(Value::json("p1")?).backoff(first, longest, 2.0).into_spec()?;
    /// assert_eq!(spec.backoff.and_then(|backoff| backoff.max_ms), Some(60_000));
    /// # Ok::<(), quorate_client::Error>(())
    /// ```
    pub fn backoff(mut self, first: Duration, longest: Duration, factor: f64) -> Self {
        let (initial_ms, max_ms) = (Some(milliseconds(first)), Some(milliseconds(longest)));
        self.spec.backoff = Some(TaskBackoff { initial_ms, max_ms, factor: Some(factor) });
        self
    }

    /// How long its id stays in use after it was completed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use std::time::Duration;
    ///
    /// use quorate_client::Value;
    ///
    /// // No second parcel for this order within a day.
    /// let day = Duration::from_secs(86_400);
    /// client.tasks("parcels").schedule(Value::json("p1")?).id("order-o42").keep(day).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep(mut self, time: Duration) -> Self {
        self.spec.keep_ms = Some(milliseconds(time));
        self
    }

    /// Take the place of a task with its id that waits or is dead; refused where that is worked on or was completed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use std::time::Duration;
    ///
    /// use quorate_client::Value;
    ///
    /// // Later than was said.
    /// let later = client.tasks("parcels").schedule(Value::json("p1")?).id("order-o42").delay(Duration::from_secs(3600));
    /// println!("in place of another: {}", later.replace().await?.replaced);
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace(mut self) -> Self {
        self.spec.replace = true;
        self
    }

    /// Say what would be scheduled, change nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::Value;
    ///
    /// // When would that be?
    /// let would = client.tasks("reports").schedule(Value::json("daily")?).cron("0 8 * * *").dry_run().await?;
    /// println!("{:?}", would.execute_at);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dry_run(mut self) -> Self {
        self.spec.dry_run = true;
        self
    }

    /// An id of one's own instead of a random one: to repeat it where its outcome stayed unknown.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::{RequestId, Value};
    ///
    /// let id: RequestId = "parcel-of-o42".parse()?;
    /// let task = client.tasks("parcels").schedule(Value::json("p1")?).request_id(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = id;
        self
    }

    /// Deadline instead of the client's own.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use std::time::Duration;
    ///
    /// use quorate_client::Value;
    ///
    /// client.tasks("parcels").schedule(Value::json("p1")?).timeout(Duration::from_secs(1)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// As a part of [`TaskQueue::schedule_all`].
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_client::{Client, Value};
    /// use serde_json::json;
    ///
    /// let client = Client::from_env()?;
    /// let spec = client.tasks("parcels").schedule(Value::json(&json!({"to": "ann"}))?).into_spec()?;
    /// assert_eq!(spec.payload.map(|payload| payload.0.get().to_owned()).as_deref(), Some(r#"{"to":"ann"}"#));
    /// # Ok::<(), quorate_client::Error>(())
    /// ```
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
