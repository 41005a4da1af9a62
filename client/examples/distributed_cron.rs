//! A cron that runs on several machines and does each thing once: `cargo run --example distributed_cron`.
//!
//! Each machine schedules the same jobs under the same ids, so that it does not matter who does; each has a worker, so that
//! it does not matter who lives. Here the machines are three tasks of one program, one of which dies half-way. It talks to the local
//! cluster, or to the one in `QUORATE_ENDPOINTS`, and ends by itself.

use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorate_client::{Client, RequestId, TaskQueue, TaskRun, Value};
use serde_json::json;

type Outcome = Result<(), Box<dyn StdError + Send + Sync>>;

/// How often the job is to run before this program ends.
const TICKS: u64 = 5;

#[tokio::main]
async fn main() -> Outcome {
    let client = Client::from_env()?;
    // A queue of its own for each run of this program.
    let queue = client.tasks(format!("cron-{}", RequestId::random()));
    let ticks = Arc::new(AtomicU64::new(0));
    let mut machines: Vec<_> = ["anna", "bert", "cleo"]
        .into_iter()
        .map(|name| tokio::spawn(machine(name, queue.clone(), ticks.clone())))
        .collect();
    // One machine loses its power. What it had claimed comes back when its lease is over.
    tokio::time::sleep(Duration::from_secs(2)).await;
    machines.swap_remove(0).abort();
    println!("anna is gone");
    for machine in machines {
        machine.await??;
    }
    let stats = queue.stats().await?;
    println!("{} ticks in all, none of them twice", stats.completed_total);
    assert!(stats.completed_total >= TICKS);
    queue.cancel("tick", RequestId::random()).await?;
    Ok(())
}

/// What every machine does.
async fn machine(name: &'static str, queue: TaskQueue, ticks: Arc<AtomicU64>) -> Outcome {
    // Every second. Whoever comes first schedules it, the others find it there.
    let job = queue.schedule(Value::json(&json!({"job": "tick"}))?).id("tick").cron("* * * * * *").zone("UTC").await?;
    println!("{name}: {}", if job.created { "scheduled the job" } else { "the job is there" });
    let seen = ticks.clone();
    let stop = async move {
        while seen.load(Ordering::Relaxed) < TICKS {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let worker = queue.worker().name(name).lease(Duration::from_secs(1));
    let report = worker.run_until(stop, move |run: TaskRun| {
        let ticks = ticks.clone();
        async move {
            println!("{name}: tick of {}", run.task().task.planned_at);
            ticks.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    });
    println!("{name}: {:?}", report.await?);
    Ok(())
}
