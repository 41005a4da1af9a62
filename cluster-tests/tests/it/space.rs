//! A disk that runs full: what is refused and by which words, what goes on, and what comes back by itself.

use std::time::Duration;

use cluster_tests::cluster::PATIENCE;
use cluster_tests::load::{Load, assert_durable};
use cluster_tests::{Cluster, Request, Settings, eventually};
use quorate_client::api::{Applied, ErrorCode};
use tokio::time::Instant;

/// More than any disk has free: a node with this limit takes its disk for nearly full.
const MORE_THAN_FREE: u64 = 1 << 50;

/// A refusal is an answer. It must come long before the deadline of the request.
const PROMPT: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_leader_refuses_what_followers_forward_by_its_name_and_still_deletes() {
    let mut cluster = Cluster::start().await;
    Request::put("kept", "1").send(cluster.client_address(1)).await.unwrap().expect_success();
    let full = cluster.follower().await;
    cluster.stop(full).await;
    cluster.set_flag(full, "--min-free-bytes", MORE_THAN_FREE);
    cluster.start_node(full);
    cluster.wait_all_ready().await;
    cluster.hand_leadership_to(full).await;

    let follower = cluster.client_address(cluster.live_but(full)[0]);
    let begin = Instant::now();
    let refused = Request::put("more", "1").header("Request-Timeout", "10000").send(follower).await.unwrap();
    assert_eq!(refused.status, 507, "{}", refused.text());
    assert!(begin.elapsed() < PROMPT, "the refusal took {:?}", begin.elapsed());
    let problem = refused.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::QuotaExceeded, Applied::No));
    let detail = problem.detail;
    assert!(detail.contains(&format!("node {full} ")), "it is that node's disk, not this one's: {detail}");

    let delete = Request::new("DELETE", "/v1/kv/kept").header("Request-Timeout", "10000");
    delete.send(follower).await.unwrap().expect_success();
    assert_eq!(Request::get("/v1/kv/kept").send(follower).await.unwrap().status, 404);
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_gets_the_room_of_the_log_back_by_itself() {
    let mut cluster = Cluster::start_with(Settings::with_ids([1])).await;
    let load = Load::start(&cluster, 8, "before-full");
    eventually("the log has something to give", PATIENCE, async || {
        let last = cluster.status(1).await?.last_log_index;
        if last > 500 { Ok(()) } else { Err(format!("it has {last} entries")) }
    })
    .await;
    let history = load.finish().await.history;
    let before = cluster.status(1).await.unwrap();
    assert_eq!((before.purged_index, before.snapshot_index), (0, 0), "by itself it would have kept all of its log");
    cluster.stop(1).await;
    cluster.set_flag(1, "--min-free-bytes", MORE_THAN_FREE);
    cluster.bring_up(1).await;
    let purged = eventually("the log was purged", PATIENCE, async || {
        let status = cluster.status(1).await?;
        let purged = status.purged_index;
        if purged >= before.last_log_index { Ok(purged) } else { Err(format!("up to {purged}: {status:?}")) }
    });
    println!("of {} entries the log gave up {}", before.last_log_index, purged.await);
    assert_durable(&cluster, 1, &history).await;

    // What is left starts again, and takes writes once there is room.
    cluster.kill(1).await;
    cluster.unset_flags(1);
    cluster.bring_up(1).await;
    Request::put("room", "1").send(cluster.client_address(1)).await.unwrap().expect_success();
    assert_durable(&cluster, 1, &history).await;
    cluster.assert_agreement().await;
}
