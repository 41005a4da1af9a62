//! Deadlines: what nobody waits for any more is not done, wherever it stands, and the answer says what is known.

use cluster_harness::{Answer, Cluster, PATIENCE, Request, Settings, eventually};
use quorate_client::api::{Applied, ErrorCode};
use tokio::task::JoinHandle;

/// A leader, a follower that reaches it, and three that decide whether there is a quorum.
const IDS: [u64; 5] = [1, 2, 3, 4, 5];

fn put(cluster: &Cluster, id: u64, key: &str, timeout_ms: u64) -> JoinHandle<Answer> {
    let (to, request) = (cluster.client_address(id), Request::put(key, "1"));
    let request = request.header("Request-Timeout", timeout_ms.to_string()).request_id(key);
    tokio::spawn(async move { request.send(to).await.expect("an answer") })
}

async fn last_log_index(cluster: &Cluster, id: u64) -> u64 {
    eventually("the status", PATIENCE, async || cluster.status(id).await).await.last_log_index
}

async fn queued(cluster: &Cluster, id: u64, count: f64) {
    eventually(&format!("{count} commands in the queue of node {id}"), PATIENCE, async || {
        let answer =
            Request::get("/metrics").send(cluster.client_address(id)).await.map_err(|error| error.to_string())?;
        let text = answer.text();
        let number = text.lines().find_map(|line| line.strip_prefix("quorate_write_queue_commands ")?.parse().ok());
        let now: f64 = number.ok_or("no such metric")?;
        if now >= count { Ok(()) } else { Err(format!("{now}")) }
    })
    .await;
}

/// Fault: a majority stands still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_waits_beyond_its_deadline_is_never_put_into_the_log() {
    // Nobody stands for election while a quorum is missing for a moment.
    let settings = Settings::with_ids(IDS).flag("--election-min-ms", 8_000).flag("--election-max-ms", 9_000);
    let mut cluster = Cluster::start_with(settings).await;
    let leader = cluster.leader().await;
    let others: Vec<_> = IDS.into_iter().filter(|id| *id != leader).collect();
    let (through, paused) = (others[0], &others[1..]);
    Request::put("first", "1").send(cluster.client_address(through)).await.expect("an answer").expect_success();
    for id in paused {
        cluster.pause(*id);
    }
    // Two entries are under way without a quorum, and the leader holds what comes after them.
    let mut under_way = Vec::new();
    for key in ["under_way/a", "under_way/b"] {
        let before = last_log_index(&cluster, leader).await;
        under_way.push(put(&cluster, leader, key, 9_000));
        eventually("it is in the log", PATIENCE, async || match last_log_index(&cluster, leader).await {
            last if last > before => Ok(()),
            last => Err(format!("the log ends at {last}")),
        })
        .await;
    }
    let waiting = put(&cluster, leader, "waiting", 9_000);
    let late = put(&cluster, leader, "late", 400);
    let forwarded_late = put(&cluster, through, "forwarded_late", 400);
    // The first of them stands at the head, and is in the queue no more.
    queued(&cluster, leader, 2.0).await;
    let late = late.await.expect("it ends").problem();
    assert_eq!((late.code, late.applied), (ErrorCode::Timeout, Applied::No), "{late:?}");
    let forwarded_late = forwarded_late.await.expect("it ends").problem();
    assert_eq!(forwarded_late.code, ErrorCode::Timeout, "{forwarded_late:?}");
    for id in paused {
        cluster.resume(*id);
    }
    for write in under_way {
        write.await.expect("it ends").expect_success();
    }
    waiting.await.expect("it ends").expect_success();
    // Behind all that was in the queue.
    Request::put("last", "1").send(cluster.client_address(leader)).await.expect("an answer").expect_success();
    for key in ["late", "forwarded_late"] {
        let read =
            Request::get(format!("/v1/kv/{key}")).send(cluster.client_address(through)).await.expect("an answer");
        assert_eq!(read.status, 404, "{key} was written after its deadline: {}", read.text());
    }
    cluster.assert_agreement().await;
}
