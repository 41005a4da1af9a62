//! Measures timed tasks on a cluster of its own: how fast tasks are worked off, and how late a waiting worker gets them, in an
//! empty queue and beside a million tasks that are due another day.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use cluster_harness::Cluster;
use hdrhistogram::Histogram;
use quorate_client::api::TaskSpec;
use quorate_client::{RequestId, TaskQueue, Value};
use serde_json::json;

/// Tasks of one command.
const AT_ONCE: u64 = 500;

#[derive(Parser)]
struct Args {
    /// Tasks that wait for another day.
    #[arg(long, default_value_t = 1_000_000)]
    waiting: u64,
    /// Tasks worked off in each round.
    #[arg(long, default_value_t = 10_000)]
    tasks: u64,
    /// Workers, each with a claim of one task at a time.
    #[arg(long, default_value_t = 16)]
    workers: u64,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let args = Args::parse();
    let mut cluster = Cluster::start().await;
    let queue = cluster.client_without(None).tasks("bench");
    println!("empty queue:");
    round(&cluster, &queue, &args, "first").await;
    let began = Instant::now();
    schedule(&queue, args.waiting, "waits", Duration::from_secs(30 * 24 * 3_600)).await;
    println!("{} tasks scheduled in {:.1?}", args.waiting, began.elapsed());
    println!("beside them:");
    round(&cluster, &queue, &args, "second").await;
    cluster.assert_agreement().await;
}

async fn schedule(queue: &TaskQueue, tasks: u64, prefix: &str, delay: Duration) {
    for first in (0..tasks).step_by(AT_ONCE as usize) {
        let spec = |n: u64| {
            let payload = Value::json(&json!({"n": n, "what": "a payload of a usual size, say a hundred bytes"}));
            let task = queue.schedule(payload.expect("JSON")).id(format!("{prefix}-{n:09}")).keep(Duration::ZERO);
            task.delay(delay).into_spec().expect("a task")
        };
        let specs: Vec<TaskSpec> = (first..tasks.min(first + AT_ONCE)).map(spec).collect();
        queue.schedule_all(specs, RequestId::random()).await.expect("scheduled");
    }
}

async fn round(cluster: &Cluster, queue: &TaskQueue, args: &Args, name: &str) {
    schedule(queue, args.tasks, name, Duration::ZERO).await;
    let began = Instant::now();
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..args.workers {
        workers.spawn(work_off(cluster.client_without(Some(1 + worker % 4)).tasks("bench")));
    }
    let mut claims = Histogram::<u64>::new(3).expect("a histogram");
    while let Some(took) = workers.join_next().await {
        claims.add(took.expect("a worker ends")).expect("of one kind");
    }
    let rate = args.tasks as f64 / began.elapsed().as_secs_f64();
    println!("  {rate:.0} tasks/s claimed and completed by {} workers; a claim {}", args.workers, show(&claims));
    let late = delays(queue).await;
    println!("  a waiting worker gets a task {} late", show(&late));
}

fn show(times: &Histogram<u64>) -> String {
    let ms = |quantile| times.value_at_quantile(quantile) as f64 / 1_000.0;
    format!("p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms", ms(0.5), ms(0.99), times.max() as f64 / 1_000.0)
}

/// Works until nothing is due; gives how long claims took, in microseconds.
async fn work_off(queue: TaskQueue) -> Histogram<u64> {
    let mut claims = Histogram::new(3).expect("a histogram");
    loop {
        let asked = Instant::now();
        let Some(task) = queue.claim().await.expect("a claim").first() else { return claims };
        claims.record(u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX)).expect("it grows");
        task.complete().await.expect("completed");
    }
}

/// How late a worker that waits gets tasks, in microseconds.
async fn delays(queue: &TaskQueue) -> Histogram<u64> {
    const TASKS: usize = 100;
    let mut late = Histogram::new(3).expect("a histogram");
    let worker = queue.clone();
    let waiting = tokio::spawn(async move {
        let mut times = Vec::with_capacity(TASKS);
        while times.len() < TASKS {
            let claimed = worker.claim().wait(Duration::from_secs(10)).await.expect("a claim");
            for task in claimed {
                let due = task.json::<serde_json::Value>().expect("JSON")["due_us"].as_u64().expect("a time");
                times.push(wall_us().saturating_sub(due));
                task.complete().await.expect("completed");
            }
        }
        times
    });
    for _ in 0..TASKS {
        let delay = Duration::from_millis(40);
        let due_us = wall_us() + 40_000;
        let payload = Value::json(&json!({"due_us": due_us})).expect("JSON");
        queue.schedule(payload).delay(delay).await.expect("scheduled");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    waiting.await.expect("the worker ends").into_iter().for_each(|time| late.record(time).expect("it grows"));
    late
}

fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
