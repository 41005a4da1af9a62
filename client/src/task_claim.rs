//! Claims of timed tasks, and what to do with each.
//!
//! Owns that whatever is done to a claimed task carries the token of its claim, and until when the claim is certain to hold.

use std::future::IntoFuture;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::api::{TaskAnswer, TaskClaim, TaskClaimAnswer, TaskClaimed, TaskComplete, TaskExtend, TaskFail};
use crate::error::Error;
use crate::operation::milliseconds;
use crate::request::RequestId;
use crate::tasks::TaskQueue;

impl TaskQueue {
    /// Claims tasks that are due: one, for 30 s, without waiting, if nothing else is said.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// if let Some(task) = client.tasks("parcels").claim().await?.first() {
    ///     println!("{}", task.json::<String>()?);
    ///     task.complete().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn claim(&self) -> ClaimTasks {
        ClaimTasks {
            queue: self.clone(),
            request: TaskClaim::default(),
            wait: Duration::ZERO,
            request_id: RequestId::random(),
            timeout: None,
        }
    }

    /// Lets the claim of a task hold for `lease` from now.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client, task_id: &str, token: u64) -> Result<(), quorate_client::Error> {
    /// use std::time::Duration;
    ///
    /// use quorate_client::RequestId;
    ///
    /// // A process that was told the task and the token, and works on it.
    /// client.tasks("parcels").extend(task_id, token, Duration::from_secs(60), RequestId::random()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn extend(
        &self,
        id: &str,
        token: u64,
        lease: Duration,
        request_id: RequestId,
    ) -> Result<TaskAnswer, Error> {
        let body = TaskExtend { id: id.to_owned(), token, lease_ms: Some(milliseconds(lease)), request_id: None };
        self.write("/extend", &body, request_id, None).await
    }

    /// Completes a task that is claimed with this token.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client, task_id: &str, token: u64) -> Result<(), quorate_client::Error> {
    /// use quorate_client::api::ErrorCode;
    /// use quorate_client::RequestId;
    ///
    /// match client.tasks("parcels").complete(task_id, token, RequestId::random()).await {
    ///     Err(error) if error.code() == Some(ErrorCode::NotLockHolder) => println!("the claim was over"),
    ///     other => println!("{:?}", other?.state),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn complete(&self, id: &str, token: u64, request_id: RequestId) -> Result<TaskAnswer, Error> {
        let body = TaskComplete { id: id.to_owned(), token, request_id: None };
        self.write("/complete", &body, request_id, None).await
    }

    /// Ends an attempt at a task that is claimed with this token.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client, task_id: &str, token: u64) -> Result<(), quorate_client::Error> {
    /// use quorate_client::api::TaskFail;
    /// use quorate_client::RequestId;
    ///
    /// let failure = TaskFail {
    ///     id: task_id.into(),
    ///     token,
    ///     error: Some("the address does not exist".into()),
    ///     dead: true,
    ///     ..Default::default()
    /// };
    /// client.tasks("parcels").fail(&failure, RequestId::random()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fail(&self, failure: &TaskFail, request_id: RequestId) -> Result<TaskAnswer, Error> {
        self.write("/fail", failure, request_id, None).await
    }
}

/// A claim to be awaited. Carries a request id from the beginning: a retry gives the same tasks.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use std::time::Duration;
///
/// let parcels = client.tasks("parcels");
/// let claimed = parcels.claim().limit(10).lease(Duration::from_secs(60)).wait(Duration::from_secs(30)).await?;
/// for task in claimed {
///     println!("{}: attempt {}", task.id(), task.attempt());
///     task.complete().await?;
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until awaited"]
#[derive(Debug, Clone)]
pub struct ClaimTasks {
    queue: TaskQueue,
    request: TaskClaim,
    wait: Duration,
    request_id: RequestId,
    timeout: Option<Duration>,
}

impl ClaimTasks {
    /// Most tasks, up to 100.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// println!("{}", client.tasks("parcels").claim().limit(100).await?.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit(mut self, limit: u32) -> Self {
        self.request.limit = Some(limit);
        self
    }

    /// How long the claim holds, 1 s to 24 h.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use std::time::Duration;
    ///
    /// let claimed = client.tasks("parcels").claim().lease(Duration::from_secs(300)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lease(mut self, lease: Duration) -> Self {
        self.request.lease_ms = Some(milliseconds(lease));
        self
    }

    /// Who works on them, for people.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// let claimed = client.tasks("parcels").claim().worker("packer-7").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn worker(mut self, name: impl Into<String>) -> Self {
        self.request.worker = Some(name.into());
        self
    }

    /// With the session of this id: the claim is over when that ends, at the latest.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(session: &quorate_client::Session) -> Result<(), quorate_client::Error> {
    /// // Others get the tasks as soon as we are gone, and not when the lease has run out.
    /// let claimed = session.client().tasks("parcels").claim().session(session.id()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.request.session = Some(id.into());
        self
    }

    /// Wait so long for something to be due, up to a minute.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use std::time::Duration;
    ///
    /// while let Some(task) = client.tasks("parcels").claim().wait(Duration::from_secs(60)).await?.first() {
    ///     task.complete().await?;
    /// }
    /// println!("for a minute nothing was due");
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// An id of one's own instead of a random one: to repeat a claim whose outcome stayed unknown.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::RequestId;
    ///
    /// let id = RequestId::random();
    /// let first = client.tasks("parcels").claim().request_id(id.clone()).await?;
    /// // The same tasks again.
    /// let again = client.tasks("parcels").claim().request_id(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = id;
        self
    }

    /// Deadline instead of the client's own; the wait comes on top.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use std::time::Duration;
    ///
    /// let claimed = client.tasks("parcels").claim().timeout(Duration::from_secs(1)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl IntoFuture for ClaimTasks {
    type Output = Result<ClaimedTasks, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let wait_ms = (!self.wait.is_zero()).then(|| milliseconds(self.wait));
            let request = TaskClaim { wait_ms, ..self.request };
            let mut call = self.queue.call("/claim", &request, self.request_id)?;
            (call.timeout, call.hold) = (self.timeout, self.wait);
            let began = Instant::now();
            let answer: TaskClaimAnswer = self.queue.client.fetch(call).await?;
            // The claim was made after the request came and had waited so long.
            let claimed_after = began + Duration::from_millis(answer.waited_ms);
            Ok(ClaimedTasks { queue: self.queue, claimed_after, answer })
        })
    }
}

/// What was claimed; none where nothing was due.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// let claimed = client.tasks("parcels").claim().limit(10).await?;
/// if claimed.is_empty() {
///     println!("nothing is due before {:?}", claimed.answer.next_at);
/// }
/// for task in claimed {
///     task.complete().await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClaimedTasks {
    queue: TaskQueue,
    claimed_after: Instant,
    /// The answer as the node gave it.
    pub answer: TaskClaimAnswer,
}

impl ClaimedTasks {
    /// How many there are.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// println!("{} of at most 10", client.tasks("parcels").claim().limit(10).await?.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn len(&self) -> usize {
        self.answer.tasks.len()
    }

    /// Whether there are none.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// if client.tasks("parcels").claim().await?.is_empty() {
    ///     println!("nothing is due");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.answer.tasks.is_empty()
    }

    /// The first of them, where there is one: for a claim of one.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// match client.tasks("parcels").claim().await?.first() {
    ///     Some(task) => println!("{}", task.id()),
    ///     None => println!("nothing is due"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn first(self) -> Option<Task> {
        self.into_iter().next()
    }
}

impl IntoIterator for ClaimedTasks {
    type Item = Task;
    type IntoIter = std::vec::IntoIter<Task>;

    fn into_iter(self) -> Self::IntoIter {
        let Self { queue, claimed_after, answer } = self;
        let task = |task: TaskClaimed| {
            let held_until = claimed_after + Duration::from_millis(task.lease_ms);
            Task { queue: queue.clone(), held_until, task }
        };
        answer.tasks.into_iter().map(task).collect::<Vec<_>>().into_iter()
    }
}

/// A task that is ours. What is done to it is refused with `not_lock_holder` once the claim is over.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// #[derive(serde::Deserialize)]
/// struct Parcel {
///     to: String,
/// }
/// if let Some(task) = client.tasks("parcels").claim().await?.first() {
///     match task.json::<Parcel>() {
///         Ok(parcel) => {
///             println!("to {}", parcel.to);
///             task.complete().await?;
///         }
///         // Tried again after a pause, as long as it has attempts left.
///         Err(error) => drop(task.fail(error.to_string()).await?),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Task {
    queue: TaskQueue,
    held_until: Instant,
    /// As it was claimed.
    pub task: TaskClaimed,
}

impl Task {
    /// Its id.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(task: quorate_client::Task) -> Result<(), quorate_client::Error> {
    /// println!("parcel {}", task.id());
    /// # Ok(())
    /// # }
    /// ```
    pub fn id(&self) -> &str {
        &self.task.id
    }

    /// Which attempt this is, from 1.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(task: quorate_client::Task) -> Result<(), quorate_client::Error> {
    /// if task.attempt() > 1 {
    ///     println!("again, for {:?}", task.task.last_error);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn attempt(&self) -> u32 {
        self.task.attempt
    }

    /// Until when the claim holds at least, as it was made: nobody else gets the task before.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(task: quorate_client::Task) -> Result<(), quorate_client::Error> {
    /// let left = task.held_until().saturating_duration_since(std::time::Instant::now());
    /// println!("nobody else has it for {left:?}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn held_until(&self) -> Instant {
        self.held_until
    }

    /// What it is about, as `T`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(task: quorate_client::Task) -> Result<(), quorate_client::Error> {
    /// let parcel: serde_json::Value = task.json()?;
    /// println!("to {}", parcel["to"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.payload()?)
            .map_err(|source| Error::Decode { what: format!("the payload of task `{}`", self.id()), source })
    }

    /// What it is about: its JSON text, or its bytes.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(task: quorate_client::Task) -> Result<(), quorate_client::Error> {
    /// println!("{} bytes", task.payload()?.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn payload(&self) -> Result<Bytes, Error> {
        let invalid = |what: &str| Error::Invalid(format!("the task `{}` {what}", self.id()));
        match (&self.task.payload, &self.task.payload_base64) {
            (Some(json), _) => Ok(Bytes::copy_from_slice(json.0.get().as_bytes())),
            (None, Some(text)) => {
                STANDARD.decode(text).map(Bytes::from).map_err(|_| invalid("has a payload that is not base64"))
            }
            (None, None) => Err(invalid("has no payload: the claim was over when it was answered again")),
        }
    }

    /// Lets the claim hold for `lease` from now.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(task: quorate_client::Task) -> Result<(), quorate_client::Error> {
    /// use std::time::Duration;
    ///
    /// // It takes longer than was thought.
    /// let extended = task.extend(Duration::from_secs(60)).await?;
    /// println!("for {:?} ms", extended.lease_ms);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn extend(&self, lease: Duration) -> Result<TaskAnswer, Error> {
        self.queue.extend(self.id(), self.task.token, lease, RequestId::random()).await
    }

    /// It is done.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(task: quorate_client::Task) -> Result<(), quorate_client::Error> {
    /// use quorate_client::api::ErrorCode;
    ///
    /// match task.complete().await {
    ///     // It was done, and somebody else may do it once more.
    ///     Err(error) if error.code() == Some(ErrorCode::NotLockHolder) => println!("too late"),
    ///     other => println!("{:?}", other?.state),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn complete(&self) -> Result<TaskAnswer, Error> {
        self.queue.complete(self.id(), self.task.token, RequestId::random()).await
    }

    /// The attempt failed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(task: quorate_client::Task) -> Result<(), quorate_client::Error> {
    /// use quorate_client::api::TaskFail;
    /// use quorate_client::RequestId;
    ///
    /// // In an hour, whatever pause it has.
    /// let failure = TaskFail { retry_in_ms: Some(3_600_000), ..task.failure("the shop is closed") };
    /// task.queue().fail(&failure, RequestId::random()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn failure(&self, error: impl Into<String>) -> TaskFail {
        let (id, token) = (self.id().to_owned(), self.task.token);
        TaskFail { id, token, error: Some(error.into()), ..TaskFail::default() }
    }

    /// Ends the attempt: it is tried again after a pause, as long as it has attempts left.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(task: quorate_client::Task) -> Result<(), quorate_client::Error> {
    /// let failed = task.fail("nobody opened").await?;
    /// println!("{} of {} attempts; again at {:?}", failed.attempts, failed.max_attempts, failed.execute_at);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fail(&self, error: impl Into<String>) -> Result<TaskAnswer, Error> {
        self.queue.fail(&self.failure(error), RequestId::random()).await
    }

    /// Gives it back as if it had not been claimed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(task: quorate_client::Task) -> Result<(), quorate_client::Error> {
    /// // We are to stop, and have not begun.
    /// task.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release(&self) -> Result<TaskAnswer, Error> {
        let failure = TaskFail { release: true, error: None, ..self.failure("") };
        self.queue.fail(&failure, RequestId::random()).await
    }

    /// The queue that it is from.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(task: quorate_client::Task) -> Result<(), quorate_client::Error> {
    /// println!("{} of the queue {}", task.id(), task.queue().name());
    /// # Ok(())
    /// # }
    /// ```
    pub fn queue(&self) -> &TaskQueue {
        &self.queue
    }
}
