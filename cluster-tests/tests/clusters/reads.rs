//! Reads and watches where nodes stand still, are dead or alone. That reads are linearizable on every node, `histories` show.

use cluster_harness::{Cluster, Connection, PATIENCE, Request, eventually};
use quorate_client::api::EntryView;

/// Reads while a node is down: a line of the log for each would show.
const READS: u64 = 300;

fn number(entry: &EntryView) -> u64 {
    let value = entry.value.as_ref().expect("JSON is shown").0.get();
    value.parse().unwrap_or_else(|_| panic!("{value} is not what was written"))
}

/// Fault: the leader stands still until another one leads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_stood_still_while_another_took_over_reads_nothing_stale() {
    let mut cluster = Cluster::start().await;
    for round in 0..3_u64 {
        let old = cluster.leader().await;
        Request::put("paused", (2 * round).to_string())
            .send(cluster.client_address(old))
            .await
            .unwrap()
            .expect_success();
        cluster.pause(old);
        let new = cluster.leader().await;
        let newer = Request::put("paused", (2 * round + 1).to_string());
        newer.send(cluster.client_address(new)).await.unwrap().expect_success();

        // The question is asked while the old leader stands still: it is the first thing it sees when it wakes up.
        let mut connection = Connection::open(cluster.client_address(old)).await.unwrap();
        connection.send(&Request::get("/v1/kv/paused").to_bytes()).await.unwrap();
        cluster.resume(old);
        let answer = connection.answer(false).await.unwrap();
        if answer.is_success() {
            assert_eq!(number(&answer.json()), 2 * round + 1, "a leader of the past answered node {new}'s readers");
        } else {
            assert_eq!(answer.status / 100, 5, "refusing is right, but not as {}: {}", answer.status, answer.text());
        }
        cluster.wait_all_ready().await;
    }
    cluster.assert_agreement().await;
}

/// Fault: a follower is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_while_a_node_is_down_do_not_fill_the_log_of_the_leader() {
    let mut cluster = Cluster::start().await;
    let (leader, down) = (cluster.leader().await, cluster.follower().await);
    cluster.kill(down).await;
    let before = cluster.log_text(leader).lines().count();
    let mut connection = Connection::open(cluster.client_address(leader)).await.unwrap();
    for _ in 0..READS {
        let answer = connection.exchange(&Request::get("/v1/kv/nothing")).await.unwrap();
        assert_eq!(answer.status, 404, "{}", answer.text());
    }
    let log = cluster.log_text(leader);
    let lines: Vec<_> = log.lines().skip(before).collect();
    println!("{} lines for {READS} reads", lines.len());
    assert!((lines.len() as u64) < READS / 3, "{} lines for {READS} reads, like {:?}", lines.len(), lines.last());
}

/// Fault: all others are killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_cut_off_from_the_others_refuses_linearizable_reads_and_ends_its_watches() {
    let mut cluster = Cluster::start().await;
    Request::put("cut-off", "1").send(cluster.client_address(1)).await.unwrap().expect_success();
    let alone = cluster.leader().await;
    let mut watch = Connection::open(cluster.client_address(alone)).await.unwrap();
    watch.send(&Request::get("/v1/watch?prefix=cut&heartbeat_ms=500").to_bytes()).await.unwrap();
    assert_eq!(watch.head().await.unwrap().status, 200);
    for id in cluster.live_but(alone) {
        cluster.kill(id).await;
    }
    let read = Request::get("/v1/kv/cut-off").header("Request-Timeout", "1000");
    let answer = read.send(cluster.client_address(alone)).await.unwrap();
    assert_eq!(answer.status / 100, 5, "without a quorum nobody knows what is current: {}", answer.text());
    let reason =
        eventually("the node says that it is not ready", PATIENCE, async || match cluster.is_ready(alone).await {
            Ok(()) => Err("it says that it is ready".to_owned()),
            Err(reason) => Ok(reason),
        });
    println!("not ready: {}", reason.await);
    // Others may know more by now, so who watches has to go on at another node.
    let mut told = Vec::new();
    let until_its_end = async {
        loop {
            match watch.chunk().await.unwrap() {
                chunk if chunk.is_empty() => break,
                chunk => told.extend(chunk),
            }
        }
    };
    tokio::time::timeout(PATIENCE, until_its_end).await.expect("the watch ends");
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("event: end") && told.contains("\"code\":\"no_leader\""), "{told}");

    cluster.start_all();
    cluster.wait_all_ready().await;
    let entry: EntryView = read.send(cluster.client_address(alone)).await.unwrap().expect_success().json();
    assert_eq!(number(&entry), 1);
    cluster.assert_agreement().await;
}
