//! A worker: claims tasks, runs a handler for each, extends their claims meanwhile, and completes or fails them.
//!
//! Owns that no task is completed whose claim may be over, and that a stop gives back what it does not finish. Knows nothing of what
//! a task is about.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::api::Applied;
use crate::call::error::Error;
use crate::call::request::RequestId;
use crate::call::request_id::LastingId;
use crate::tasks::claim::{ClaimTasks, ClaimedTasks, Task};
use crate::tasks::queue::TaskQueue;
use crate::tasks::run::{self, Ended, Lease, TaskError, TaskRun};

/// How long a claim waits for something to be due.
const POLL: Duration = Duration::from_secs(30);
/// How long after a failed claim the next one is made.
const AFTER_TROUBLE: Duration = Duration::from_millis(500);
/// Tasks of one claim.
const CLAIM_MAX: usize = 100;

type OnTrouble = Arc<dyn Fn(&Error) + Send + Sync>;

impl TaskQueue {
    /// A worker for its tasks: one at a time, with leases of 30 s that are extended as long as a task runs.
    pub fn worker(&self) -> TaskWorker {
        TaskWorker {
            queue: self.clone(),
            name: String::new(),
            concurrency: 1,
            lease: Duration::from_secs(30),
            grace: Duration::ZERO,
            stop_within: Duration::from_secs(30),
            on_trouble: Arc::new(|_| {}),
        }
    }
}

/// A worker to be run.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use std::time::Duration;
///
/// let worker = client.tasks("parcels").worker().name("packer-7").concurrency(4).lease(Duration::from_secs(60));
/// let stop = async {
///     tokio::time::sleep(Duration::from_secs(3600)).await;
/// };
/// let report = worker
///     .run_until(stop, |run| async move {
///         println!("sending {}", run.task().json::<String>()?);
///         Ok(())
///     })
///     .await?;
/// println!("{} sent, {} given back", report.completed, report.released);
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until it is run"]
#[derive(Clone)]
pub struct TaskWorker {
    queue: TaskQueue,
    name: String,
    concurrency: usize,
    lease: Duration,
    grace: Duration,
    stop_within: Duration,
    on_trouble: OnTrouble,
}

/// What a worker did until it was stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerReport {
    /// Tasks completed.
    pub completed: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Tasks whose claim was over before they were done, or may have been.
    pub lost: u64,
    /// Tasks given back at the stop.
    pub released: u64,
}

impl WorkerReport {
    fn count(&mut self, ended: Ended) {
        match ended {
            Ended::Completed => self.completed += 1,
            Ended::Failed => self.failed += 1,
            Ended::Lost => self.lost += 1,
            Ended::Released => self.released += 1,
        }
    }
}

impl TaskWorker {
    /// Tasks at a time. No more are claimed than there are free places.
    pub fn concurrency(mut self, tasks: usize) -> Self {
        self.concurrency = tasks.max(1);
        self
    }

    /// How long a claim holds before it is extended again, at least 1 s: about so long, and for [`Self::grace`], it takes until somebody else
    /// gets the tasks of a worker that died.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long what a handler began may go on after [`TaskRun::lost`], such as another program that has to be ended. Claims are made for so
    /// much longer, up to a day in all, so that nobody else gets the task meanwhile. Default: not at all.
    pub fn grace(mut self, time: Duration) -> Self {
        self.grace = time;
        self
    }

    /// Who works, for people who look at the queue.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How long tasks may go on after the stop before they are given back. Default 30 s.
    pub fn stop_within(mut self, time: Duration) -> Self {
        self.stop_within = time;
        self
    }

    /// Is told of errors that the worker lives with: no node could be reached for a while, say.
    pub fn on_trouble(mut self, tell: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.on_trouble = Arc::new(tell);
        self
    }

    /// Runs for good; ends only with an error that does not go away, such as a wrong setting.
    pub async fn run<H, F>(self, handler: H) -> Result<WorkerReport, Error>
    where
        H: Fn(TaskRun) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), TaskError>> + Send + 'static,
    {
        self.run_until(std::future::pending(), handler).await
    }

    /// Runs until `stop` is ready. Then nothing more is claimed; what runs may go on for a while, and is given back after that.
    pub async fn run_until<H, F>(self, stop: impl Future<Output = ()> + Send, handler: H) -> Result<WorkerReport, Error>
    where
        H: Fn(TaskRun) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), TaskError>> + Send + 'static,
    {
        let (give_back, given_back) = watch::channel(false);
        let mut running = Running {
            places: Arc::new(Semaphore::new(self.concurrency)),
            tasks: JoinSet::new(),
            report: Arc::default(),
            handler: Arc::new(handler),
            lease: self.claims(),
            on_trouble: self.on_trouble.clone(),
            given_back,
        };
        let outcome = self.serve(stop, &mut running).await;
        let stop_by = Instant::now() + self.stop_within;
        if tokio::time::timeout_at(stop_by.into(), running.drain()).await.is_err() {
            give_back.send_replace(true);
            running.drain().await;
        }
        let report = *running.report.lock();
        outcome.map(|()| report)
    }

    /// Claims and starts tasks until the stop.
    async fn serve<H, F>(&self, stop: impl Future<Output = ()>, running: &mut Running<H>) -> Result<(), Error>
    where
        H: Fn(TaskRun) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), TaskError>> + Send + 'static,
    {
        tokio::pin!(stop);
        // What may have claimed something. Asked again as it was, it tells, and gives that; under another id those tasks would wait
        // for the end of their leases, each with an attempt less.
        let mut undecided: Option<(LastingId, Vec<OwnedSemaphorePermit>)> = None;
        loop {
            let mut is_open = undecided.is_some();
            let (mut lasting, places) = match undecided.take() {
                Some(undecided) => undecided,
                None => {
                    let places = tokio::select! {
                        biased;
                        () = &mut stop => return Ok(()),
                        places = running.free_places() => places,
                    };
                    (LastingId::new(), places)
                }
            };
            let claim = self.claim(places.len(), lasting.current());
            let claimed = tokio::select! {
                biased;
                () = &mut stop => {
                    // It may have claimed something already: the same claim without a wait tells, and gives it.
                    return match claim.wait(Duration::ZERO).await {
                        Ok(tasks) => { running.start(tasks, places); Ok(()) }
                        Err(error) => self.live_with(&error).then_some(()).ok_or(error),
                    };
                }
                claimed = claim.clone().wait(POLL) => claimed,
            };
            match claimed {
                Ok(tasks) => running.start(tasks, places),
                Err(error) if self.live_with(&error) => {
                    // A later refusal before it was proposed says nothing of what was sent before.
                    is_open |= error.applied() == Applied::Unknown;
                    undecided = is_open.then_some((lasting, places));
                    tokio::select! {
                        biased;
                        // Asked for the last time above.
                        () = &mut stop, if !is_open => return Ok(()),
                        () = tokio::time::sleep(AFTER_TROUBLE) => {}
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether a claim failed in a way that may pass, which is told.
    fn live_with(&self, error: &Error) -> bool {
        let passes = error.is_retryable();
        if passes {
            (self.on_trouble)(error);
        }
        passes
    }

    fn claims(&self) -> Lease {
        Lease::new(self.lease, self.grace)
    }

    fn claim(&self, places: usize, id: RequestId) -> ClaimTasks {
        let limit = u32::try_from(places.min(CLAIM_MAX)).expect("CLAIM_MAX is small");
        let claim = self.queue.claim().limit(limit).lease(self.claims().claimed()).request_id(id);
        if self.name.is_empty() { claim } else { claim.worker(&self.name) }
    }
}

/// The tasks that run.
struct Running<H> {
    places: Arc<Semaphore>,
    tasks: JoinSet<()>,
    report: Arc<Mutex<WorkerReport>>,
    handler: Arc<H>,
    lease: Lease,
    on_trouble: OnTrouble,
    given_back: watch::Receiver<bool>,
}

impl<H, F> Running<H>
where
    H: Fn(TaskRun) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), TaskError>> + Send + 'static,
{
    /// Starts what was claimed, each task in a place.
    fn start(&mut self, tasks: ClaimedTasks, mut places: Vec<OwnedSemaphorePermit>) {
        tasks.into_iter().for_each(|task| self.spawn(task, places.pop()));
    }

    fn spawn(&mut self, task: Task, place: Option<OwnedSemaphorePermit>) {
        let (handler, report) = (Arc::clone(&self.handler), Arc::clone(&self.report));
        let (lease, on_trouble, given_back) = (self.lease, self.on_trouble.clone(), self.given_back.clone());
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(async move {
            let ended = run::run(task, lease, &*handler, given_back, &*on_trouble).await;
            report.lock().count(ended);
            drop(place);
        });
    }
}

impl<H> Running<H> {
    /// All places that are free, once there is one.
    async fn free_places(&self) -> Vec<OwnedSemaphorePermit> {
        let first = Arc::clone(&self.places).acquire_owned().await.expect("the semaphore is never closed");
        let mut places = vec![first];
        while places.len() < CLAIM_MAX
            && let Ok(place) = Arc::clone(&self.places).try_acquire_owned()
        {
            places.push(place);
        }
        places
    }

    async fn drain(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}
