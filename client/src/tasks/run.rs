//! One task in a worker, from its claim to its end.
//!
//! Owns how long the claim is certain to hold, by this machine's clock: from before a request was sent on, so never longer than the
//! cluster lets it hold. What is not certain any more is neither completed nor failed.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use tokio::sync::watch;

use crate::api::{ErrorCode, TaskFail};
use crate::call::error::Error;
use crate::call::operation::milliseconds;
use crate::call::request_id::LastingId;
use crate::tasks::claim::Task;

/// Before the end of a claim nothing is begun any more.
const MARGIN_MAX: Duration = Duration::from_millis(500);
/// Shortest and longest claim that nodes take.
const CLAIM_MIN: Duration = Duration::from_secs(1);
const CLAIM_MAX: Duration = Duration::from_secs(24 * 3_600);
/// How long after a failed extension or completion it is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// What a task failed with whose handler panicked.
const PANICKED: &str = "the handler panicked";

/// How a task ended here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Completed,
    Failed,
    Lost,
    Released,
}

/// Why a handler did not do its task. Anything that can be shown is a reason to try again.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use quorate_client::TaskError;
/// use serde_json::json;
///
/// fn deliver(parcel: &serde_json::Value) -> Result<(), TaskError> {
///     match parcel["to"].as_str() {
///         None => Err(TaskError::dead("it has no address")),
///         Some("the moon") => Err(TaskError::retry_in("there is no rocket today", Duration::from_secs(86_400))),
///         Some(to) => Ok(println!("to {to}")),
///     }
/// }
/// assert_eq!(deliver(&json!({})), Err(TaskError::dead("it has no address")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskError {
    reason: String,
    then: Then,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Retry,
    RetryIn(Duration),
    Die,
    GiveBack,
}

impl TaskError {
    /// Try again after the pause that the task has.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), then: Then::Retry }
    }

    /// Try again after this pause.
    pub fn retry_in(reason: impl Into<String>, pause: Duration) -> Self {
        Self { reason: reason.into(), then: Then::RetryIn(pause) }
    }

    /// Give the task back as if it had not been claimed: it was not tried, or not to its end.
    pub fn give_back() -> Self {
        Self { reason: String::new(), then: Then::GiveBack }
    }

    /// Do not try again: it would fail again.
    pub fn dead(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), then: Then::Die }
    }
}

impl<E: std::error::Error> From<E> for TaskError {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

/// How long each claim of a task holds, and how much of that is kept for the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease {
    lease: Duration,
    grace: Duration,
}

impl Lease {
    /// A task that was begun may go on for `grace` after the loss.
    pub fn new(lease: Duration, grace: Duration) -> Self {
        Self { lease, grace }
    }

    /// How long a claim is asked for.
    pub fn claimed(self) -> Duration {
        self.lease.saturating_add(self.kept())
    }

    /// The part of a claim kept for a task that was begun: as much of the grace as nodes let a claim hold beyond the lease. A lease that they
    /// refuse is not made one that they take.
    fn kept(self) -> Duration {
        if self.lease < CLAIM_MIN { Duration::ZERO } else { self.grace.min(CLAIM_MAX.saturating_sub(self.lease)) }
    }

    /// When the task counts as lost, for a claim that ends at `until`.
    fn held_until(self, until: Instant) -> Instant {
        let kept = (self.lease / 10).min(MARGIN_MAX) + self.kept();
        until.checked_sub(kept).unwrap_or_else(Instant::now)
    }
}

/// A task as its handler sees it.
#[derive(Debug, Clone)]
pub struct TaskRun {
    task: Task,
    lost: watch::Receiver<bool>,
}

impl TaskRun {
    /// The task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Whether the claim may be over. Somebody else may do the task then, so nothing more should be done for it here.
    pub fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }

    /// Ready once the claim may be over.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        // An error means that the worker is gone, and nobody extends the claim any more.
        drop(lost.wait_for(|lost| *lost).await);
    }
}

/// Runs the handler and settles what came of it.
pub(crate) async fn run<H, F>(
    task: Task,
    lease: Lease,
    handler: &H,
    mut given_back: watch::Receiver<bool>,
    on_trouble: &(dyn Fn(&Error) + Send + Sync),
) -> Ended
where
    H: Fn(TaskRun) -> F,
    F: Future<Output = Result<(), TaskError>>,
{
    // Answered again when the claim was over already: there is not even a payload.
    if task.task.lease_ms == 0 {
        return Ended::Lost;
    }
    let (lost, is_lost) = watch::channel(false);
    let claim = Claim { task: &task, lease, on_trouble };
    let run = TaskRun { task: task.clone(), lost: is_lost.clone() };
    let has_ended = AtomicBool::new(false);
    let work = async {
        let outcome = AssertUnwindSafe(async { handler(run).await }).catch_unwind().await;
        has_ended.store(true, Ordering::Relaxed);
        let outcome = outcome.unwrap_or_else(|_| Err(TaskError::new(PANICKED)));
        let is_over = *is_lost.borrow();
        if is_over { Ended::Lost } else { claim.settle(outcome, &is_lost).await }
    };
    let keep = async {
        claim.keep(lease.held_until(task.held_until())).await;
        lost.send_replace(true);
        std::future::pending::<()>().await;
    };
    // An error means that the worker is gone without a stop; then this task is, too.
    let stopped = async {
        drop(given_back.wait_for(|given_back| *given_back).await);
        if has_ended.load(Ordering::Relaxed) {
            // What is done is not given back: it would be done again. The end of the claim bounds how long that is tried.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        ended = work => ended,
        () = keep => unreachable!("it only tells that the claim is lost"),
        () = stopped => claim.give_back(&lost).await,
    }
}

struct Claim<'t> {
    task: &'t Task,
    lease: Lease,
    on_trouble: &'t (dyn Fn(&Error) + Send + Sync),
}

impl Claim<'_> {
    /// Extends the claim at a third of its time, again and again; returns when it may be over.
    async fn keep(&self, mut held: Instant) {
        let (lease, claimed) = (self.lease.lease, self.lease.claimed());
        let mut next = Instant::now() + held.saturating_duration_since(Instant::now()).min(lease) / 3;
        loop {
            tokio::time::sleep_until(next.min(held).into()).await;
            let sent = Instant::now();
            if sent >= held {
                return;
            }
            match tokio::time::timeout_at(held.into(), self.task.extend(claimed)).await {
                Ok(Ok(_)) => {
                    held = self.lease.held_until(sent + claimed);
                    next = sent + lease / 3;
                }
                Ok(Err(error)) if is_over(&error) => return,
                Ok(Err(error)) => {
                    (self.on_trouble)(&error);
                    next = Instant::now() + AGAIN_AFTER;
                }
                Err(_late) => return,
            }
        }
    }

    /// Completes or fails the task, under one request id until that is decided or the claim may be over.
    async fn settle(&self, outcome: Result<(), TaskError>, is_lost: &watch::Receiver<bool>) -> Ended {
        let mut lasting = LastingId::new();
        loop {
            let id = lasting.current();
            let (settled, ended) = match &outcome {
                Ok(()) => {
                    let queue = self.task.queue();
                    (queue.complete(self.task.id(), self.task.task.token, id).await, Ended::Completed)
                }
                Err(error) => {
                    let ended = if error.then == Then::GiveBack { Ended::Released } else { Ended::Failed };
                    (self.task.queue().fail(&self.failure(error), id).await, ended)
                }
            };
            match settled {
                Ok(_) => return ended,
                Err(error) if is_over(&error) => return Ended::Lost,
                Err(error) => {
                    (self.on_trouble)(&error);
                    if *is_lost.borrow() || !error.is_retryable() {
                        return Ended::Lost;
                    }
                }
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    fn failure(&self, error: &TaskError) -> TaskFail {
        let failure = self.task.failure(error.reason.clone());
        match error.then {
            Then::Retry => failure,
            Then::RetryIn(pause) => TaskFail { retry_in_ms: Some(milliseconds(pause)), ..failure },
            Then::Die => TaskFail { dead: true, ..failure },
            Then::GiveBack => TaskFail { release: true, error: None, ..failure },
        }
    }

    /// The handler was dropped.
    async fn give_back(&self, lost: &watch::Sender<bool>) -> Ended {
        lost.send_replace(true);
        match self.task.release().await {
            Ok(_) => Ended::Released,
            Err(error) => {
                (self.on_trouble)(&error);
                Ended::Lost
            }
        }
    }
}

fn is_over(error: &Error) -> bool {
    error.code() == Some(ErrorCode::NotLockHolder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_claim_takes_nothing_of_the_lease() {
        let (second, day) = (Duration::from_secs(1), CLAIM_MAX);
        let margin = MARGIN_MAX;
        for (lease, grace, claimed, held) in [
            (30 * second, Duration::ZERO, 30 * second, 30 * second - margin),
            (30 * second, 5 * second, 35 * second, 30 * second - margin),
            // No claim holds for longer than a day.
            (30 * second, 2 * day, day, 30 * second - margin),
            (day, 5 * second, day, day - margin),
            // A lease that nodes refuse is still refused.
            (Duration::ZERO, 5 * second, Duration::ZERO, Duration::ZERO),
            (2 * day, 5 * second, 2 * day, 2 * day - margin),
        ] {
            let (of, begun) = (Lease::new(lease, grace), Instant::now());
            assert_eq!(of.claimed(), claimed, "{lease:?} and {grace:?}");
            assert_eq!(of.held_until(begun + claimed), begun + held, "{lease:?} and {grace:?}");
        }
    }
}
