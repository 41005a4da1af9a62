//! Workers of task queues: what they claim, and what they do where nobody can tell what became of a claim.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use quorate_client::api::{Applied, ErrorCode};
use quorate_client::{Client, RetryPolicy, TaskError, TaskRun};
use serde_json::json;
use tokio::sync::Notify;

use crate::fake::{Act, Fake};

pub fn claimed(ids: &[&str]) -> Act {
    claimed_for(ids, 30_000)
}

fn claimed_for(ids: &[&str], lease_ms: u64) -> Act {
    let task = |id: &&str| {
        json!({"id": id, "token": "9", "attempt": 1, "max_attempts": 1, "execute_at": "2026-01-01T00:00:00Z",
            "planned_at": "2026-01-01T00:00:00Z", "lease_ms": lease_ms, "payload": 1})
    };
    let tasks: Vec<_> = ids.iter().map(task).collect();
    let answer = json!({"count": tasks.len(), "tasks": tasks, "waited_ms": 0, "revision": "9", "index": 9});
    Act::Answer(200, answer.to_string())
}

pub fn settled() -> Act {
    Act::Answer(
        200,
        json!({"id": "t", "state": "done", "attempts": 1, "max_attempts": 1, "revision": "10", "index": 10})
            .to_string(),
    )
}

/// A fake node and a client that tries nothing twice by itself.
async fn impatient() -> (Fake, Client) {
    let fake = Fake::start().await;
    let client = Client::builder().endpoints(&fake.address).retry(RetryPolicy::never()).build().expect("it is valid");
    fake.always("/complete", settled());
    (fake, client)
}

#[tokio::test]
async fn a_claim_of_unknown_fate_is_asked_again_as_it_was_until_it_is_decided() {
    let (fake, client) = impatient().await;
    let unknown = || Act::problem(ErrorCode::Timeout, Applied::Unknown);
    fake.script([unknown(), Act::problem(ErrorCode::NoLeader, Applied::No), unknown(), claimed(&["a", "b"])]);
    fake.script([claimed(&[])]);
    let (done, both) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (counted, told) = (Arc::clone(&done), Arc::clone(&both));
    let handler = move |_run| {
        let (done, both) = (Arc::clone(&counted), Arc::clone(&told));
        async move {
            if done.fetch_add(1, Ordering::Relaxed) == 1 {
                both.notify_one();
            }
            Ok(())
        }
    };
    let worker = client.tasks("q").worker().concurrency(2).stop_within(Duration::from_secs(5));
    let report = worker.run_until(async move { both.notified().await }, handler).await.expect("it goes on");
    assert_eq!((report.completed, report.lost), (2, 0));
    let asked = fake.seen_at("/claim");
    let tries = &asked[..4];
    assert!(tries.iter().all(|seen| seen.id == asked[0].id && seen.json()["limit"] == 2), "{asked:?}");
    assert!(asked[4..].iter().all(|seen| seen.id != asked[0].id), "{asked:?}");
}

#[tokio::test]
async fn a_stop_learns_the_fate_of_the_last_claim_and_does_what_it_gave() {
    let (fake, client) = impatient().await;
    fake.script([Act::problem(ErrorCode::Timeout, Applied::Unknown), claimed(&["a"])]);
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let worker = client.tasks("q").worker().on_trouble(move |_| stop.notify_one());
    let report = worker.run_until(async move { stopped.notified().await }, |_run| async { Ok(()) }).await;
    assert_eq!(report.expect("it was stopped").completed, 1);
    let asked = fake.seen_at("/claim");
    assert_eq!((asked.len(), &asked[0].id), (2, &asked[1].id), "{asked:?}");
}

#[tokio::test]
async fn a_claim_is_lost_so_much_earlier_as_what_was_begun_may_go_on() {
    let (fake, client) = impatient().await;
    fake.always("/extend", Act::problem(ErrorCode::NoLeader, Applied::No));
    fake.script([claimed_for(&["a"], 4_000)]);
    let stop = Arc::new(Notify::new());
    let (lost, begun) = (Arc::clone(&stop), Instant::now());
    let handler = move |run: TaskRun| {
        let lost = Arc::clone(&lost);
        async move {
            run.lost().await;
            lost.notify_one();
            Err(TaskError::new(format!("lost after {} ms", begun.elapsed().as_millis())))
        }
    };
    let (second, grace) = (Duration::from_secs(1), Duration::from_secs(3));
    let worker = client.tasks("q").worker().lease(second).grace(grace);
    let report = worker.run_until(async move { stop.notified().await }, handler).await.expect("it was stopped");
    // Three of four seconds are for tasks that were begun.
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!((report.lost, report.failed), (1, 0));
    let asked = [fake.seen_at("/claim"), fake.seen_at("/extend")].concat();
    assert!(asked.len() > 1 && asked.iter().all(|seen| seen.json()["lease_ms"] == 4_000), "{asked:?}");
}
