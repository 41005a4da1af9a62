//! Bulks: a load that can be sent again and again, through any node, goes on where it stopped.

use std::net::SocketAddr;
use std::time::Duration;

use cluster_harness::{Cluster, PATIENCE, Request, eventually};
use quorate_client::api::{BulkAnswer, ErrorCode, ListAnswer, RequestAnswer};
use serde_json::json;

async fn ask(to: SocketAddr, request: Request) -> BulkAnswer {
    request.send_within(to, 2 * PATIENCE).await.expect("the node answers").expect_success().json()
}

/// A load as lines.
fn load(id: &str, lines: impl Iterator<Item = serde_json::Value>) -> Request {
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    Request::new("POST", "/v1/bulk")
        .header("Content-Type", "application/x-ndjson")
        .header("Request-Timeout", "60000")
        .request_id(id)
        .body(lines.into_bytes())
}

fn inserts(prefix: &str, count: u64) -> impl Iterator<Item = serde_json::Value> {
    (0..count).map(move |n| json!({"op": "insert", "key": format!("{prefix}/{n:05}"), "value": {"n": n}}))
}

async fn count(to: SocketAddr, prefix: &str) -> u64 {
    let request = Request::get(format!("/v1/kv?prefix={prefix}/&count_only"));
    request.send(to).await.expect("the node answers").expect_success().json::<ListAnswer>().count
}

/// Fault: the leader is killed, before a bulk is sent again and in the midst of one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_of_several_parts_is_applied_once_through_all_nodes_and_leaders() {
    let mut cluster = Cluster::start().await;
    a_bulk_that_was_answered_is_answered_again(&mut cluster).await;
    a_bulk_that_was_broken_off_goes_on_where_it_stopped(&mut cluster).await;
    cluster.assert_agreement().await;
}

async fn a_bulk_that_was_answered_is_answered_again(cluster: &mut Cluster) {
    let request = load("parts", inserts("parts", 2_500));
    let first = ask(cluster.client_address(1), request.clone()).await;
    assert_eq!((first.applied, first.results.len(), first.replayed), (2_500, 2_500, false));
    assert_eq!(count(cluster.client_address(2), "parts").await, 2_500);
    let kept = BulkAnswer { replayed: true, ..first };
    assert_eq!(ask(cluster.client_address(3), request.clone()).await, kept, "the kept answer");

    // Another bulk that begins alike is another bulk from where it differs.
    let longer = load("parts", inserts("parts", 2_048).chain(inserts("other", 5)));
    let refused = longer.send(cluster.client_address(2)).await.expect("an answer").problem();
    assert_eq!(refused.code, ErrorCode::RequestIdReused);
    assert_eq!(count(cluster.client_address(2), "other").await, 0);

    let leader = cluster.leader().await;
    cluster.kill(leader).await;
    cluster.leader().await;
    for id in cluster.live() {
        assert_eq!(ask(cluster.client_address(id), request.clone()).await, kept, "through node {id}");
    }
    cluster.bring_up(leader).await;
    let kept_outcome: RequestAnswer = Request::get("/v1/requests/parts")
        .send(cluster.client_address(leader))
        .await
        .expect("an answer")
        .expect_success()
        .json();
    assert!(kept_outcome.decided_revision < kept.revision, "known by its first part: {kept_outcome:?}");
}

async fn a_bulk_that_was_broken_off_goes_on_where_it_stopped(cluster: &mut Cluster) {
    let leader = cluster.leader().await;
    let survivor = cluster.client_address(if leader == 1 { 2 } else { 1 });
    let request = load("broken", inserts("broken", 10_000));
    let (to, sent) = (cluster.client_address(leader), request.clone());
    let broken = tokio::spawn(async move { sent.send(to).await });
    eventually("the first part is there", Duration::from_secs(20), async || match count(survivor, "broken").await {
        0 => Err("nothing yet".to_owned()),
        _ => Ok(()),
    })
    .await;
    cluster.kill(leader).await;
    // It may have been faster than the kill: then all of what follows is a replay, which holds as well.
    let _ended = broken.await.expect("the task ends");
    cluster.leader().await;
    println!("broken off after {} of 10000", count(survivor, "broken").await);
    let done = ask(survivor, request.clone()).await;
    assert_eq!((done.applied, done.failed, done.results.len()), (10_000, 0, 10_000));
    assert_eq!(count(survivor, "broken").await, 10_000);
    let versions: Vec<_> = done.results.iter().map(|item| item.version).collect();
    assert!(versions.iter().all(|version| *version == Some(1)), "each was written once");
    cluster.bring_up(leader).await;
    assert!(ask(to, request).await.replayed);
}
