//! Timed tasks: every verb after the leader died, claims that wait at another node; how late tasks are; the worker of the Rust client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cluster_harness::{Cluster, PATIENCE, Request, Settings, eventually};
use quorate_client::api::{TaskClaimAnswer, TaskScheduled, TaskState, TasksScheduled};
use quorate_client::{RequestId, TaskError, Value as Content};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::clocks::wall_ms;

fn write(route: &str, body: &Value) -> Request {
    Request::post(route, body.to_string())
}

async fn done<T: DeserializeOwned>(cluster: &Cluster, id: u64, route: &str, body: Value) -> T {
    let answer = write(route, &body).send_within(cluster.client_address(id), Duration::from_secs(20)).await;
    answer.expect("the node answers").expect_success().json()
}

/// The claim waits at one node, and the task is scheduled through another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_scheduled_elsewhere_while_a_claim_waits_is_told_at_its_end() {
    let mut cluster = Cluster::start().await;
    // The write may take more than a second, as on a machine that is busy.
    let (none, _) =
        tokio::join!(done::<TaskClaimAnswer>(&cluster, 1, "/v1/tasks/other/claim", json!({"wait_ms": 2_000})), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let late = json!({"execute_at": "2100-01-01T00:00:00Z"});
            done::<TaskScheduled>(&cluster, 2, "/v1/tasks/other", late).await
        });
    assert_eq!((none.count, none.next_at.as_deref()), (0, Some("2100-01-01T00:00:00.000Z")));
    cluster.assert_agreement().await;
}

/// Fault: the leader is killed, also while a worker waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sent_again_after_the_leader_died_is_answered_again_and_who_waits_gets_what_comes_then() {
    let mut cluster = Cluster::start().await;
    let schedule = json!({"tasks": [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}], "request_id": "s"});
    let claim = json!({"limit": 4, "lease_ms": 60_000, "request_id": "c"});
    let _: TasksScheduled = done(&cluster, 1, "/v1/tasks/q", schedule.clone()).await;
    let claimed: TaskClaimAnswer = done(&cluster, 2, "/v1/tasks/q/claim", claim.clone()).await;
    assert_eq!(claimed.count, 4);
    let token = claimed.tasks[0].token;
    let verbs = [
        ("extend", json!({"id": "a", "token": token, "lease_ms": 50_000, "request_id": "e"})),
        ("complete", json!({"id": "b", "token": token, "request_id": "d"})),
        ("fail", json!({"id": "c", "token": token, "dead": true, "request_id": "f"})),
        ("cancel", json!({"id": "d", "request_id": "x"})),
        ("requeue", json!({"id": "c", "request_id": "r"})),
    ];
    let mut first: Vec<Value> = Vec::new();
    for (verb, body) in &verbs {
        first.push(done(&cluster, 3, &format!("/v1/tasks/q/{verb}"), body.clone()).await);
    }
    let leader = cluster.leader().await;
    let later = cluster.client_without(Some(leader)).tasks("later");
    let worker = tokio::spawn(async move {
        loop {
            // It may be told that nobody leads for a moment.
            if let Ok(claimed) = later.claim().wait(PATIENCE).await
                && let Some(task) = claimed.first()
            {
                return task.id().to_owned();
            }
        }
    });
    // The claim is on its way, or waits.
    tokio::time::sleep(Duration::from_millis(200)).await;
    cluster.kill(leader).await;
    cluster.leader().await;
    for id in cluster.live() {
        let again: TasksScheduled = done(&cluster, id, "/v1/tasks/q", schedule.clone()).await;
        assert!(again.replayed && again.created == 4, "{again:?}");
        let again: TaskClaimAnswer = done(&cluster, id, "/v1/tasks/q/claim", claim.clone()).await;
        assert!(again.replayed && again.count == 4 && again.revision == claimed.revision, "{again:?}");
        assert!(again.tasks[0].payload.is_some() && again.tasks[0].lease_ms <= 50_000, "what is left: {again:?}");
        assert!(again.tasks[1].payload.is_none() && again.tasks[1].lease_ms == 0, "that claim is over: {again:?}");
        for ((verb, body), first) in verbs.iter().zip(&first) {
            let mut expected = first.clone();
            expected["replayed"] = json!(true);
            let again: Value = done(&cluster, id, &format!("/v1/tasks/q/{verb}"), body.clone()).await;
            assert_eq!(again, expected, "{verb} through node {id}");
        }
    }
    let _: TaskScheduled = done(&cluster, cluster.live()[0], "/v1/tasks/later", json!({"id": "z"})).await;
    let came = tokio::time::timeout(PATIENCE, worker).await.expect("a task for who waits").expect("it ran");
    assert_eq!(came, "z");
    cluster.bring_up(leader).await;
    cluster.assert_agreement().await;
}

pub async fn a_waiting_worker_gets_a_task_when_it_is_due_and_never_before() {
    const TASKS: u64 = 40;
    let mut cluster = Cluster::start_with(Settings::default().alone()).await;
    let follower = cluster.follower().await;
    let (to, leader) = (cluster.client_address(follower), cluster.leader().await);
    let waiting = tokio::spawn(async move {
        let mut late = Vec::new();
        while late.len() < TASKS as usize {
            let body = json!({"limit": 1, "wait_ms": 10_000});
            let answer = write("/v1/tasks/clock/claim", &body).send_within(to, Duration::from_secs(20)).await;
            let answer: TaskClaimAnswer = answer.expect("the node answers").expect_success().json();
            let now = wall_ms();
            for task in answer.tasks {
                let due: Value = serde_json::from_str(task.payload.expect("a payload").0.get()).expect("JSON");
                let due = due["due"].as_u64().expect("a time");
                assert!(now >= due, "{} ms early", due - now);
                late.push(now - due);
            }
        }
        late
    });
    // Neither in order nor all known when the wait begins. How long a write takes says how busy this machine is.
    let mut writes = Vec::new();
    for n in 0..TASKS {
        let due = wall_ms() + 300 + (n * 7 % 10) * 60;
        let execute_at = quorate_client_time(due);
        let body = json!({"payload": {"due": due}, "execute_at": execute_at});
        let asked = Instant::now();
        let _: TaskScheduled = done(&cluster, leader, "/v1/tasks/clock", body).await;
        writes.push(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    writes.sort_unstable();
    let write = writes[writes.len() / 2];
    let mut late = waiting.await.expect("the worker ends");
    late.sort_unstable();
    let median = late[late.len() / 2];
    println!(
        "{TASKS} tasks through a follower: {median} ms late at the median, {} ms at most; a write took {write:?}",
        late[late.len() - 1]
    );
    // A claim is a write, and the news of it takes another way between nodes.
    assert!(Duration::from_millis(median) < Duration::from_millis(50).max(4 * write), "late by {late:?} ms, {write:?}");
    cluster.assert_agreement().await;
}

/// RFC 3339 of a Unix time, without a library: by `date`.
fn quorate_client_time(ms: u64) -> String {
    let seconds = format!("@{}.{:03}", ms / 1_000, ms % 1_000);
    let told = std::process::Command::new("date").args(["-u", "-d", &seconds, "+%Y-%m-%dT%H:%M:%S.%3NZ"]).output();
    String::from_utf8(told.expect("there is a date").stdout).expect("text").trim().to_owned()
}

/// Leases run by the clock of a cluster, which no fake has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_extends_what_takes_long_and_gives_back_what_it_does_not_finish() {
    let mut cluster = Cluster::start_with(Settings::with_ids([1])).await;
    let queue = cluster.client_without(None).tasks("long");
    for (id, ms) in [("short", 10), ("long", 5_000), ("endless", 600_000), ("bad", 0)] {
        let payload = Content::json(&json!({"ms": ms})).expect("JSON");
        queue.schedule(payload).id(id).max_attempts(1).await.expect("scheduled");
    }
    let runs = Arc::new(AtomicU64::new(0));
    let counted = runs.clone();
    let handler = move |run: quorate_client::TaskRun| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            let ms = run.task().json::<Value>()?["ms"].as_u64().unwrap_or(0);
            if ms == 0 {
                return Err(TaskError::dead("bad"));
            }
            tokio::time::sleep(Duration::from_millis(ms)).await;
            assert!(!run.is_lost(), "the claim was extended meanwhile");
            Ok(())
        }
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = queue.worker().concurrency(4).lease(Duration::from_secs(3)).stop_within(Duration::from_secs(2));
    let stopping = async move { drop(stopped.await) };
    let working = tokio::spawn(worker.run_until(stopping, handler));
    let finished = async || {
        let stats = queue.stats().await.map_err(|error| error.to_string())?;
        if stats.completed_total == 2 { Ok(()) } else { Err(format!("{stats:?}")) }
    };
    eventually("the short and the long task to be done", Duration::from_secs(40), finished).await;
    stop.send(()).expect("the worker listens");
    let report = working.await.expect("the worker ends").expect("without an error");
    assert_eq!((report.completed, report.failed, report.lost, report.released), (2, 1, 0, 1), "{report:?}");
    assert_eq!(runs.load(Ordering::Relaxed), 4, "each was begun once");
    let endless = queue.get("endless").await.expect("an answer").expect("the task");
    assert_eq!((endless.state, endless.attempts), (TaskState::Scheduled, 0), "given back: {endless:?}");
    let bad = queue.get("bad").await.expect("an answer").expect("the task");
    assert_eq!((bad.state, bad.last_error.as_deref()), (TaskState::Dead, Some("bad")));
    cluster.assert_agreement().await;
}

/// Fault: the task is cancelled while it is worked on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_task_was_cancelled_is_told_and_does_not_complete_it() {
    const LEASE: Duration = Duration::from_secs(3);
    let mut cluster = Cluster::start_with(Settings::with_ids([1])).await;
    let queue = cluster.client_without(None).tasks("lost");
    queue.schedule(Content::json(&json!({})).expect("JSON")).id("t").await.expect("scheduled");
    let (told, was_told) = tokio::sync::mpsc::unbounded_channel::<&'static str>();
    let handler = move |run: quorate_client::TaskRun| {
        let told = told.clone();
        async move {
            told.send("begun")?;
            run.lost().await;
            told.send("lost")?;
            Ok(())
        }
    };
    let mut was_told = was_told;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = queue.worker().lease(LEASE);
    let working = tokio::spawn(worker.run_until(async move { drop(stopped.await) }, handler));
    assert_eq!(was_told.recv().await, Some("begun"));
    queue.cancel("t", RequestId::random()).await.expect("cancelled");
    let cancelled = Instant::now();
    assert_eq!(was_told.recv().await, Some("lost"));
    assert!(cancelled.elapsed() < LEASE, "told after {:?}", cancelled.elapsed());
    stop.send(()).expect("the worker listens");
    let report = working.await.expect("the worker ends").expect("without an error");
    assert_eq!((report.completed, report.lost), (0, 1), "{report:?}");
    cluster.assert_agreement().await;
}
