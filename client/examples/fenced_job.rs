//! A job of which each step is done once, although its worker is replaced in the middle and does not know:
//! `cargo run --example fenced_job` on the local cluster, or the one in `QUORATE_ENDPOINTS`.
//!
//! The steps stand in one entry with what they did, and each write of it is guarded by the lock of the job. So whoever has lost
//! the lock cannot write any more, however late it wakes up, and whoever follows goes on where the last write was.

use std::error::Error as StdError;

use quorate_client::api::ErrorCode;
use quorate_client::{Client, Error, LockGuard, Value};
use serde::{Deserialize, Serialize};

const LOCK: &str = "recipes/job";
const KEY: &str = "recipes/job-state";
const STEPS: usize = 6;

/// The job as far as it was done: who did each step.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Job {
    done_by: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let client = Client::from_env()?;
    client.put(KEY, Value::json(&Job::default())?).await?;

    let first = client.session().owner("first").await?;
    let held = first.lock(LOCK).acquire().await?;
    for _ in 0..3 {
        step(&client, "first", &held).await?;
    }
    // As the cluster does with one that was asleep for longer than its session lives.
    println!("first falls asleep, and its session ends");
    client.session_by_id(first.id()).end().await?;

    let second = client.session().owner("second").await?;
    let taken = second.lock(LOCK).acquire().await?;
    println!("second has the lock; its token {} is greater than {}", taken.token()?, held.guard().token);
    step(&client, "second", &taken).await?;
    match step(&client, "first", &held).await {
        Err(Error::Rejected(refused)) if refused.code == ErrorCode::GuardFailed => {
            println!("first wakes up, and is refused: {}", refused.detail);
        }
        other => panic!("a step was done by one that had lost the lock: {other:?}"),
    }
    while step(&client, "second", &taken).await? {}

    let job: Job = client.get_json(KEY).await?.ok_or("somebody removed the job")?.content;
    println!("each step was done once, by {}", job.done_by.join(", "));
    assert_eq!(job.done_by, ["first", "first", "first", "second", "second", "second"]);
    second.end().await?;
    Ok(())
}

/// Does the next step and notes it, in one write. Tells whether there are more.
async fn step(client: &Client, who: &str, lock: &LockGuard) -> Result<bool, Error> {
    let mut job = client.get_json::<Job>(KEY).await?.map(|entry| entry.content).unwrap_or_default();
    if job.done_by.len() == STEPS {
        return Ok(false);
    }
    job.done_by.push(who.to_owned());
    client.put(KEY, Value::json(&job)?).guarded_by(lock).await?;
    println!("{who} did step {}", job.done_by.len());
    Ok(job.done_by.len() < STEPS)
}
