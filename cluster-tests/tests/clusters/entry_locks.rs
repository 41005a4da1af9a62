//! Locks of entries, and waiting for them: first come first served at whichever node, over a new leader, and given up with the request.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cluster_harness::{Answer, Cluster, PATIENCE, Request, eventually};
use quorate_client::api::{EntryView, ErrorCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

const KEY: &str = "waited/for";

async fn op(to: SocketAddr, body: Value) -> Answer {
    Request::post("/v1/ops", body.to_string()).send_within(to, PATIENCE).await.expect("an answer")
}

fn locking(wait_ms: u64) -> Value {
    json!({"op": "get_and_lock", "key": KEY, "lock_ms": 30_000, "wait_ms": wait_ms})
}

/// The key of a lock that somebody got.
fn key_of(answer: Answer) -> String {
    answer.expect_success().json::<EntryView>().cas.expect("the key").to_string()
}

async fn unlock(to: SocketAddr, key: &str) {
    op(to, json!({"op": "unlock", "key": KEY, "cas": key})).await.expect_success();
}

/// How many wait in queues at this node.
async fn places(to: SocketAddr) -> Result<u64, String> {
    let metrics = Request::get("/metrics").send(to).await.map_err(|error| error.to_string())?.text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("quorate_entry_lock_waiters "));
    let number = line.ok_or("no such metric")?.parse::<f64>().map_err(|error| error.to_string())?;
    Ok(number as u64)
}

async fn until_places(cluster: &Cluster, leader: u64, expected: u64) {
    eventually("they wait in the queue", PATIENCE, async || match places(cluster.client_address(leader)).await? {
        found if found == expected => Ok(()),
        found => Err(format!("{found} places, not {expected}")),
    })
    .await;
}

/// The queue is at the leader, and who waits, goes away or asks again is at any node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_of_all_nodes_stand_in_one_queue() {
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    whoever_waited_first_has_it_first_whichever_node_was_asked(&cluster, leader).await;
    the_end_of_the_wait_is_told_as_without_one_and_the_end_of_a_lock_lets_the_next_in(&cluster, leader).await;
    who_goes_away_is_not_waited_for_and_what_is_removed_is_told_to_all(&cluster, leader).await;
    a_retry_is_told_what_the_first_try_was_given(&cluster, leader).await;
    cluster.assert_agreement().await;
}

async fn whoever_waited_first_has_it_first_whichever_node_was_asked(cluster: &Cluster, leader: u64) {
    const WAITERS: u64 = 7;
    op(cluster.client_address(1), json!({"op": "insert", "key": KEY, "value": {"n": 0}})).await.expect_success();
    let key = key_of(op(cluster.client_address(2), locking(0)).await);
    let (got, mut order) = mpsc::unbounded_channel();
    let mut waiters = tokio::task::JoinSet::new();
    for n in 0..WAITERS {
        let (to, got) = (cluster.client_address(1 + n % 3), got.clone());
        waiters.spawn(async move {
            let key = key_of(op(to, locking(60_000)).await);
            got.send(n).expect("the test listens");
            // A write with the key ends the lock as well.
            op(to, json!({"op": "replace", "key": KEY, "value": {"n": n}, "cas": key})).await.expect_success();
        });
        until_places(cluster, leader, n + 1).await;
    }
    assert!(order.try_recv().is_err(), "somebody got a lock that is held");
    assert_eq!(op(cluster.client_address(1), locking(0)).await.problem().code, ErrorCode::Locked);
    unlock(cluster.client_address(3), &key).await;
    for n in 0..WAITERS {
        let next = tokio::time::timeout(PATIENCE, order.recv()).await.expect("the next one has it").expect("it lives");
        assert_eq!(next, n, "out of turn");
    }
    while let Some(done) = waiters.join_next().await {
        done.expect("a waiter gave up");
    }
    until_places(cluster, leader, 0).await;
}

async fn the_end_of_the_wait_is_told_as_without_one_and_the_end_of_a_lock_lets_the_next_in(
    cluster: &Cluster,
    leader: u64,
) {
    // One that waits itself, and one that asks it to.
    for id in [leader, cluster.live_but(leader)[0]] {
        let to = cluster.client_address(id);
        op(to, json!({"op": "upsert", "key": KEY, "value": {"n": id}})).await.expect_success();
        let key = key_of(op(to, locking(0)).await);
        let begun = Instant::now();
        let problem = op(to, locking(300)).await.problem();
        assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
        let at_once = op(to, locking(0)).await.problem();
        assert_eq!((problem.status, problem.code, problem.applied), (423, ErrorCode::Locked, at_once.applied));
        assert_eq!((problem.detail, problem.retry), (at_once.detail, at_once.retry));
        assert!(problem.current.is_some_and(|current| current.locked && current.cas.is_none()));
        until_places(cluster, leader, 0).await;

        // It runs out, and nobody says so.
        op(to, json!({"op": "extend", "key": KEY, "cas": key, "lock_ms": 800})).await.expect_success();
        let begun = Instant::now();
        let next = key_of(op(to, locking(30_000)).await);
        let waited = begun.elapsed();
        assert!(waited >= Duration::from_millis(700) && waited < Duration::from_secs(10), "{waited:?}");
        assert_eq!(op(to, json!({"op": "unlock", "key": KEY, "cas": key})).await.problem().code, ErrorCode::Locked);
        unlock(to, &next).await;
    }
}

async fn who_goes_away_is_not_waited_for_and_what_is_removed_is_told_to_all(cluster: &Cluster, leader: u64) {
    for id in cluster.ids() {
        let (to, other) = (cluster.client_address(id), cluster.client_address(id % 3 + 1));
        op(to, json!({"op": "upsert", "key": KEY, "value": {"n": id}})).await.expect_success();
        let key = key_of(op(to, locking(0)).await);
        let gone = tokio::spawn(op(to, locking(60_000)));
        until_places(cluster, leader, 1).await;
        let next = tokio::spawn(op(other, locking(60_000)));
        until_places(cluster, leader, 2).await;
        gone.abort();
        assert!(gone.await.is_err_and(|error| error.is_cancelled()));
        until_places(cluster, leader, 1).await;
        unlock(to, &key).await;
        let key = key_of(next.await.expect("it ran"));
        let waiting = [to, other].map(|to| tokio::spawn(op(to, locking(60_000))));
        until_places(cluster, leader, 2).await;
        op(to, json!({"op": "remove", "key": KEY, "cas": key})).await.expect_success();
        for waiting in waiting {
            assert_eq!(waiting.await.expect("it ran").problem().code, ErrorCode::NotFound);
        }
        until_places(cluster, leader, 0).await;
    }
}

/// Fault: the leader, which has the queue, is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_goes_on_at_a_new_leader() {
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let others = cluster.live_but(leader);
    let [one, two] = [others[0], others[1]].map(|id| cluster.client_address(id));
    op(one, json!({"op": "insert", "key": KEY, "value": 1})).await.expect_success();
    let key = key_of(op(one, locking(0)).await);
    let waiting = [one, two, one].map(|to| {
        tokio::spawn(async move {
            let key = key_of(op(to, locking(60_000)).await);
            unlock(to, &key).await;
        })
    });
    until_places(&cluster, leader, 3).await;
    cluster.kill(leader).await;
    let next = cluster.leader().await;
    until_places(&cluster, next, 3).await;
    // The lock is held yet, and nobody has it beside its holder.
    op(two, json!({"op": "extend", "key": KEY, "cas": key, "lock_ms": 30_000})).await.expect_success();
    unlock(one, &key).await;
    for waiting in waiting {
        waiting.await.expect("it had its turn");
    }
    until_places(&cluster, next, 0).await;
    cluster.start_node(leader);
    cluster.assert_agreement().await;
}

/// The retry comes to another node.
async fn a_retry_is_told_what_the_first_try_was_given(cluster: &Cluster, leader: u64) {
    let (one, two) = (cluster.client_address(1), cluster.client_address(2));
    op(one, json!({"op": "insert", "key": KEY, "value": 1})).await.expect_success();
    let key = key_of(op(one, locking(0)).await);
    let mut waits = locking(60_000);
    waits["request_id"] = json!("waits-1");
    let waiting = tokio::spawn(op(one, waits.clone()));
    until_places(cluster, leader, 1).await;
    unlock(two, &key).await;
    let first: EntryView = waiting.await.expect("it ran").expect_success().json();
    let begun = Instant::now();
    let again: EntryView = op(two, waits).await.expect_success().json();
    assert!(begun.elapsed() < Duration::from_secs(20), "it waited for its own lock");
    assert_eq!((&again.cas, again.replayed), (&first.cas, true));
    let outcome: Value =
        Request::get("/v1/requests/waits-1").send(two).await.expect("an answer").expect_success().json();
    assert_eq!((&outcome["state"], &outcome["cas"]), (&json!("applied"), &json!(first.cas)));
}

/// Fault: the leader is killed while the lock is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_outlives_the_leader_and_ends_neither_early_nor_never() {
    const LOCK: Duration = Duration::from_secs(4);
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let survivor = cluster.client_address(if leader == 1 { 2 } else { 1 });
    assert_eq!(op(survivor, json!({"op": "insert", "key": KEY, "value": 1})).await.status, 201);
    // Before the lock began: it cannot have begun earlier.
    let asked = Instant::now();
    assert_eq!(op(survivor, json!({"op": "lock", "key": KEY, "lock_ms": LOCK.as_millis() as u64})).await.status, 200);
    cluster.kill(leader).await;
    let mut refused = 0;
    loop {
        let answer = op(survivor, json!({"op": "upsert", "key": KEY, "value": 2})).await;
        match answer.status {
            200 => break,
            412 => refused += 1,
            // No leader yet.
            503 | 504 => {}
            other => panic!("{other}: {}", answer.text()),
        }
        assert!(asked.elapsed() < LOCK + Duration::from_secs(10), "the lock never ends");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(asked.elapsed() >= LOCK, "the lock ended after {:?}", asked.elapsed());
    assert!(refused > 0, "the lock was never seen after the leader was killed");
    cluster.start_node(leader);
    cluster.assert_agreement().await;
}
