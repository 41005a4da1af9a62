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
use crate::call::error::Error;
use crate::call::operation::milliseconds;
use crate::call::request::RequestId;
use crate::tasks::queue::TaskQueue;

impl TaskQueue {
    /// Claims tasks that are due: one, for 30 s, without waiting, if nothing else is said.
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
    pub async fn complete(&self, id: &str, token: u64, request_id: RequestId) -> Result<TaskAnswer, Error> {
        let body = TaskComplete { id: id.to_owned(), token, request_id: None };
        self.write("/complete", &body, request_id, None).await
    }

    /// Ends an attempt at a task that is claimed with this token.
    pub async fn fail(&self, failure: &TaskFail, request_id: RequestId) -> Result<TaskAnswer, Error> {
        self.write("/fail", failure, request_id, None).await
    }
}

/// A claim to be awaited. Carries a request id from the beginning: a retry gives the same tasks.
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
    pub fn limit(mut self, limit: u32) -> Self {
        self.request.limit = Some(limit);
        self
    }

    /// How long the claim holds, 1 s to 24 h.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.request.lease_ms = Some(milliseconds(lease));
        self
    }

    /// Who works on them, for people.
    pub fn worker(mut self, name: impl Into<String>) -> Self {
        self.request.worker = Some(name.into());
        self
    }

    /// With the session of this id: the claim is over when that ends, at the latest.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.request.session = Some(id.into());
        self
    }

    /// Wait so long for something to be due, up to a minute.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// An id of one's own instead of a random one: to repeat a claim whose outcome stayed unknown.
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = id;
        self
    }

    /// Deadline instead of the client's own; the wait comes on top.
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
    pub fn len(&self) -> usize {
        self.answer.tasks.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.answer.tasks.is_empty()
    }

    /// The first of them, where there is one: for a claim of one.
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
    pub fn id(&self) -> &str {
        &self.task.id
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.task.attempt
    }

    /// Until when the claim holds at least, as it was made: nobody else gets the task before.
    pub fn held_until(&self) -> Instant {
        self.held_until
    }

    /// What it is about, as `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.payload()?)
            .map_err(|source| Error::Decode { what: format!("the payload of task `{}`", self.id()), source })
    }

    /// What it is about: its JSON text, or its bytes.
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
    pub async fn extend(&self, lease: Duration) -> Result<TaskAnswer, Error> {
        self.queue.extend(self.id(), self.task.token, lease, RequestId::random()).await
    }

    /// It is done.
    pub async fn complete(&self) -> Result<TaskAnswer, Error> {
        self.queue.complete(self.id(), self.task.token, RequestId::random()).await
    }

    /// The attempt failed.
    pub fn failure(&self, error: impl Into<String>) -> TaskFail {
        let (id, token) = (self.id().to_owned(), self.task.token);
        TaskFail { id, token, error: Some(error.into()), ..TaskFail::default() }
    }

    /// Ends the attempt: it is tried again after a pause, as long as it has attempts left.
    pub async fn fail(&self, error: impl Into<String>) -> Result<TaskAnswer, Error> {
        self.queue.fail(&self.failure(error), RequestId::random()).await
    }

    /// Gives it back as if it had not been claimed.
    pub async fn release(&self) -> Result<TaskAnswer, Error> {
        let failure = TaskFail { release: true, error: None, ..self.failure("") };
        self.queue.fail(&failure, RequestId::random()).await
    }

    /// The queue that it is from.
    pub fn queue(&self) -> &TaskQueue {
        &self.queue
    }
}
