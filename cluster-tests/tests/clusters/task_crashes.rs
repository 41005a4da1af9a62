//! Timed tasks under fire: workers that crash at random and leaders that are killed lose no task, do none twice and none early.
//!
//! `QUORATE_TASKS` and `QUORATE_TASK_WORKERS` make the run as large as wanted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cluster_harness::seed::seeded;
use cluster_harness::{Cluster, eventually};
use quorate_client::api::{ErrorCode, TaskSpec, TaskState};
use quorate_client::{Client, RequestId, Task, TaskQueue, Value as Content};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::clocks::wall_ms;

/// Shortest there is, so that a crash costs little time.
const LEASE: Duration = Duration::from_secs(1);
/// The tasks are due within this time.
const SPREAD_MS: u64 = 8_000;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// What all workers saw.
#[derive(Default)]
struct Seen {
    /// Completions that were answered with success, by task.
    completed: Mutex<BTreeMap<String, u64>>,
    begun: AtomicU64,
    crashes: AtomicU64,
    refused: AtomicU64,
    is_over: AtomicBool,
}

async fn schedule(queue: &TaskQueue, tasks: u64, dice: &mut StdRng) {
    for first in (0..tasks).step_by(500) {
        let specs: Vec<TaskSpec> = (first..tasks.min(first + 500))
            .map(|n| {
                let delay = dice.random_range(0..SPREAD_MS);
                // The payload says when it is due at the earliest; the cluster counts from later on.
                let payload = Content::json(&json!({"not_before": wall_ms() + delay})).expect("JSON");
                let task = queue.schedule(payload).id(format!("t{n:06}")).delay(Duration::from_millis(delay));
                let pauses = (Duration::from_millis(20), Duration::from_millis(200));
                task.max_attempts(1_000).backoff(pauses.0, pauses.1, 2.0).into_spec().expect("a task")
            })
            .collect();
        queue.schedule_all(specs, RequestId::random()).await.expect("scheduled");
    }
}

/// Works until the end, and begins anew after each crash.
async fn work(queue: TaskQueue, mut dice: StdRng, seen: Arc<Seen>) {
    while !seen.is_over.load(Ordering::Relaxed) {
        let claim = queue.claim().limit(dice.random_range(1..=4)).lease(LEASE).wait(Duration::from_secs(1));
        // A leader may be away for a while.
        let Ok(tasks) = claim.await else { continue };
        for task in tasks {
            seen.begun.fetch_add(1, Ordering::Relaxed);
            check_time(&task);
            match dice.random_range(0..100) {
                // It vanishes with all that it claimed.
                0..3 => {
                    seen.crashes.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                // It hangs longer than its claim holds, and then believes itself done.
                3 => tokio::time::sleep(LEASE + Duration::from_millis(300)).await,
                4..8 => tokio::time::sleep(Duration::from_millis(dice.random_range(1..30))).await,
                8 => {
                    // Whatever becomes of that, the task comes again or was done by others.
                    drop(task.fail("unlucky").await);
                    continue;
                }
                _ => {}
            }
            settle(&task, &seen).await;
        }
    }
}

fn check_time(task: &Task) {
    let Ok(payload) = task.json::<Value>() else { return };
    let (now, due) = (wall_ms(), payload["not_before"].as_u64().expect("a time"));
    assert!(now >= due, "{} came {} ms early", task.id(), due - now);
}

/// Completes a task under one id until its outcome is known.
async fn settle(task: &Task, seen: &Seen) {
    let id = RequestId::random();
    loop {
        match task.queue().complete(task.id(), task.task.token, id.clone()).await {
            Ok(_) => {
                *seen.completed.lock().await.entry(task.id().to_owned()).or_insert(0) += 1;
                return;
            }
            Err(error) if error.code() == Some(ErrorCode::NotLockHolder) => {
                seen.refused.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Err(error) => assert!(error.is_retryable(), "{}: {error}", task.id()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_crash_complete_every_task_exactly_once_and_none_early() {
    let (tasks, workers) = (number("QUORATE_TASKS", 1_000), number("QUORATE_TASK_WORKERS", 8));
    let mut dice = seeded();
    let mut cluster = Cluster::start().await;
    let client: Client = cluster.client_without(None);
    let queue = client.tasks("crashes");
    let began = Instant::now();
    schedule(&queue, tasks, &mut dice).await;
    let seen = Arc::new(Seen::default());
    let mut working = tokio::task::JoinSet::new();
    for worker in 0..workers {
        // Each sees the cluster through other nodes.
        let queue = cluster.client_without(Some(1 + worker % 4)).tasks("crashes");
        working.spawn(work(queue, StdRng::seed_from_u64(dice.random()), seen.clone()));
    }
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(dice.random_range(1_500..3_000))).await;
        let leader = cluster.leader().await;
        cluster.kill(leader).await;
        cluster.leader().await;
        cluster.bring_up(leader).await;
    }
    let all_done = async || {
        let stats = queue.stats().await.map_err(|error| error.to_string())?;
        if stats.scheduled + stats.claimed == 0 { Ok(stats) } else { Err(format!("{stats:?}")) }
    };
    let limit = Duration::from_secs(60 + tasks / 50);
    let stats = eventually("all tasks to be done", limit, all_done).await;
    seen.is_over.store(true, Ordering::Relaxed);
    while let Some(ended) = working.join_next().await {
        ended.expect("a worker met no contradiction");
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{tasks} tasks, {workers} workers, {} attempts, {} crashes, {} stale completions refused, 2 leaders killed, in {:?}",
        count(&seen.begun),
        count(&seen.crashes),
        count(&seen.refused),
        began.elapsed()
    );
    assert_eq!((stats.completed_total, stats.done, stats.dead), (tasks, tasks, 0), "{stats:?}");
    let completed = seen.completed.lock().await;
    assert!(completed.values().all(|count| *count == 1), "a task was completed twice: {completed:?}");
    assert!(completed.len() as u64 == tasks, "{} of {tasks} tasks were completed to somebody", completed.len());
    let sample = queue.get("t000000").await.expect("an answer").expect("its id is kept");
    assert_eq!((sample.state, sample.runs), (TaskState::Done, 1));
    drop(completed);
    cluster.assert_agreement().await;
}
