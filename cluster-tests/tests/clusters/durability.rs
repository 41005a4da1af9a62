//! What was acknowledged is there, whatever ended meanwhile.

use std::time::Duration;

use cluster_harness::load::{Load, assert_durable};
use cluster_harness::{Cluster, seed};
use rand::RngExt;
use tokio::time::Instant;

const WRITERS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_acknowledged_while_the_leader_is_killed_are_there() {
    let mut random = seed::seeded();
    let mut cluster = Cluster::start().await;
    let load = Load::start(&cluster, WRITERS, "killed");
    for _ in 0..2 {
        run_for(&load, Duration::from_millis(random.random_range(200..1_500))).await;
        let leader = cluster.leader().await;
        cluster.kill(leader).await;
        load.wait_for_more(200).await;
        cluster.bring_up(leader).await;
    }
    let history = load.finish().await.history;
    println!("{} writes were acknowledged", history.acknowledged());
    for id in cluster.ids() {
        assert_durable(&cluster, id, &history).await;
    }
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_acknowledged_before_all_nodes_are_killed_at_once_are_there() {
    let mut random = seed::seeded();
    let mut cluster = Cluster::start().await;
    for round in 0..2 {
        let load = Load::start(&cluster, WRITERS, &format!("all-killed-{round}"));
        run_for(&load, Duration::from_millis(random.random_range(200..1_500))).await;
        cluster.kill_all().await;
        cluster.start_all();
        cluster.wait_all_ready().await;
        // Clients go on where they were: writes whose outcome was open are sent again under their request ids.
        load.wait_for_more(200).await;
        let history = load.finish().await.history;
        println!("round {round}: {} writes were acknowledged", history.acknowledged());
        for id in cluster.ids() {
            assert_durable(&cluster, id, &history).await;
        }
    }
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_acknowledged_just_before_all_nodes_are_killed_are_there_before_any_retry() {
    let mut cluster = Cluster::start().await;
    let load = Load::start(&cluster, WRITERS, "no-retry");
    load.wait_for_more(500).await;
    cluster.kill_all().await;
    // The writers end while nobody serves, so that what is found was written before the kill.
    let history = load.abandon().await;
    cluster.start_all();
    cluster.wait_all_ready().await;
    for id in cluster.ids() {
        assert_durable(&cluster, id, &history).await;
    }
    cluster.assert_agreement().await;
}

/// Lets the load run for about this long, and at least until it wrote something.
async fn run_for(load: &Load, time: Duration) {
    let end = Instant::now() + time;
    load.wait_for_more(50).await;
    while Instant::now() < end {
        load.wait_for_more(1).await;
    }
}
