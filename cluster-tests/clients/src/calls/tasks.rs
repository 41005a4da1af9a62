//! Timed tasks, and workers that work them off.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_client::api::{TaskBackoff, TaskFail};
use quorate_client::{Client, RequestId, TaskError, TaskRun};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::entries::add;
use super::{Asked, Digits, With, answer, found, json_value};
use crate::failure::{Failure, Outcome};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Schedule {
    queue: String,
    id: Option<String>,
    payload: Value,
    delay_ms: Option<u64>,
    every_ms: Option<u64>,
    cron: Option<String>,
    zone: Option<String>,
    max_attempts: Option<u32>,
    backoff: Option<TaskBackoff>,
    keep_ms: Option<u64>,
    #[serde(default)]
    replace: bool,
    #[serde(default)]
    dry_run: bool,
    request_id: Option<String>,
}

pub async fn schedule(asked: Asked<'_>) -> Outcome {
    let with: Schedule = asked.arguments()?;
    let id = with.request_id.map(|id| id.parse::<RequestId>()).transpose()?;
    let (first, longest, factor) = backoff(with.backoff)?;
    let task = asked
        .client
        .tasks(with.queue)
        .schedule(json_value(&with.payload))
        .with(with.id, |task, id| task.id(id))
        .with(with.delay_ms, |task, ms| task.delay(Duration::from_millis(ms)))
        .with(with.every_ms, |task, ms| task.every(Duration::from_millis(ms)))
        .with(with.cron, |task, pattern| task.cron(pattern))
        .with(with.zone, |task, zone| task.zone(zone))
        .with(with.max_attempts, |task, attempts| task.max_attempts(attempts))
        .with(factor, |task, factor| task.backoff(first, longest, factor))
        .with(with.keep_ms, |task, ms| task.keep(Duration::from_millis(ms)))
        .with_if(with.replace, |task| task.replace())
        .with_if(with.dry_run, |task| task.dry_run())
        .with(id, |task, id| task.request_id(id));
    answer(&task.await?)
}

/// The client has all parts of it or none.
fn backoff(backoff: Option<TaskBackoff>) -> Result<(Duration, Duration, Option<f64>), Failure> {
    match backoff {
        None => Ok((Duration::ZERO, Duration::ZERO, None)),
        Some(TaskBackoff { initial_ms: Some(first), max_ms: Some(longest), factor: Some(factor), .. }) => {
            Ok((Duration::from_millis(first), Duration::from_millis(longest), Some(factor)))
        }
        Some(_) => Err(Failure::Suite("a backoff says `initial_ms`, `max_ms` and `factor`".to_owned())),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    queue: String,
    limit: Option<u32>,
    lease_ms: Option<u64>,
    wait_ms: Option<u64>,
    worker: Option<String>,
    session: Option<String>,
    request_id: Option<String>,
}

pub async fn claim(asked: Asked<'_>) -> Outcome {
    let with: Claim = asked.arguments()?;
    let id = with.request_id.map(|id| id.parse::<RequestId>()).transpose()?;
    let claim = asked
        .client
        .tasks(with.queue)
        .claim()
        .with(with.limit, |claim, limit| claim.limit(limit))
        .with(with.lease_ms, |claim, ms| claim.lease(Duration::from_millis(ms)))
        .with(with.wait_ms, |claim, ms| claim.wait(Duration::from_millis(ms)))
        .with(with.worker, |claim, name| claim.worker(name))
        .with(with.session, |claim, session| claim.session(session))
        .with(id, |claim, id| claim.request_id(id));
    answer(&claim.await?.answer)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Complete {
    queue: String,
    id: String,
    token: Digits,
}

pub async fn complete(asked: Asked<'_>) -> Outcome {
    let Complete { queue, id, token: Digits(token) } = asked.arguments()?;
    let queue = asked.client.tasks(queue);
    answer(&queue.complete(&id, token, RequestId::random()).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fail {
    queue: String,
    id: String,
    token: Digits,
    error: Option<String>,
    retry_in_ms: Option<u64>,
    #[serde(default)]
    dead: bool,
    #[serde(default)]
    release: bool,
}

pub async fn fail(asked: Asked<'_>) -> Outcome {
    let Fail { queue, id, token: Digits(token), error, retry_in_ms, dead, release } = asked.arguments()?;
    let failure = TaskFail { id, token, error, retry_in_ms, dead, release, ..TaskFail::default() };
    answer(&asked.client.tasks(queue).fail(&failure, RequestId::random()).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Get {
    queue: String,
    id: String,
}

pub async fn get(asked: Asked<'_>) -> Outcome {
    let Get { queue, id } = asked.arguments()?;
    found(asked.client.tasks(queue).get(&id).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Work {
    queue: String,
    count: u64,
    counter: Option<String>,
    #[serde(default)]
    fail: BTreeSet<String>,
    lease_ms: Option<u64>,
}

/// Runs a worker until so many tasks are done. The last one is completed after the stop.
pub async fn worker(asked: Asked<'_>) -> Outcome {
    let Work { queue, count, counter, fail, lease_ms } = asked.arguments()?;
    let job = Arc::new(Job {
        client: asked.client.clone(),
        counter,
        fails: Mutex::new(fail),
        left: AtomicU64::new(count),
        done: Notify::new(),
    });
    let worker = asked.client.tasks(queue).worker();
    let worker = worker.with(lease_ms, |worker, ms| worker.lease(Duration::from_millis(ms)));
    let handler = {
        let job = Arc::clone(&job);
        move |run| Arc::clone(&job).handle(run)
    };
    let report = worker.run_until(job.done.notified(), handler).await?;
    Ok(json!({"completed": report.completed, "failed": report.failed}))
}

/// What the handler of a worker does.
struct Job {
    client: Client,
    /// Prefix of the entries that count the runs of each task.
    counter: Option<String>,
    /// Tasks that are still to fail.
    fails: Mutex<BTreeSet<String>>,
    left: AtomicU64,
    done: Notify,
}

impl Job {
    async fn handle(self: Arc<Self>, run: TaskRun) -> Result<(), TaskError> {
        let id = run.task().id();
        if let Some(counter) = &self.counter {
            add(&self.client, &format!("{counter}/{id}"), 1).await?;
        }
        if self.fails.lock().unwrap_or_else(PoisonError::into_inner).remove(id) {
            return Err(TaskError::new("it fails the first time"));
        }
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.done.notify_one();
        }
        Ok(())
    }
}
