//! Nodes that are stopped and started again.

use std::net::SocketAddr;
use std::time::Duration;

use cluster_harness::cluster::PATIENCE;
use cluster_harness::{Cluster, Request, Settings, eventually, sooner_than};
use quorate_client::api::StatusAnswer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarting_with_the_same_join_list_changes_nothing() {
    let mut cluster = Cluster::start().await;
    Request::put("kept", "1").send(cluster.client_address(1)).await.unwrap().expect_success();
    // The write was answered before any state shows it; a linearizable read at each node waits for that.
    for id in cluster.ids() {
        Request::get("/v1/kv/kept").send(cluster.client_address(id)).await.unwrap().expect_success();
    }
    let before = statuses(&cluster).await;
    for round in 0..2 {
        for id in cluster.ids() {
            // In the second round without a chance to say goodbye.
            if round == 0 { cluster.stop(id).await } else { cluster.kill(id).await }
        }
        cluster.start_all();
        cluster.wait_all_ready().await;
        for (before, after) in before.iter().zip(statuses(&cluster).await) {
            assert_eq!(
                (&before.cluster_id, &before.incarnation, before.revision, &before.members.len()),
                (&after.cluster_id, &after.incarnation, after.revision, &after.members.len()),
                "node {} is the same in the same cluster, and nothing was written",
                before.node_id
            );
        }
    }
    cluster.assert_agreement().await;
}

/// What was flushed before the end is there at once; what was applied after that comes from the log, or from a leader where the log
/// had not reached the disk. Until a leader has said how far that was, a local read, that of a certain revision or later included,
/// could show less than before. That it stopped meanwhile as it was told to says nothing of what it had shown before it was killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_killed_shows_nothing_until_it_knows_what_it_had_applied() {
    let mut cluster = Cluster::start_with(Settings::default().flag("--snapshot-every-entries", 50)).await;
    let via = cluster.client_address(1);
    eventually("a snapshot flushed the state", PATIENCE, async || {
        Request::put("early", "1").send(via).await.unwrap().expect_success();
        match cluster.status(1).await?.snapshot_index {
            0 => Err("there is none".to_owned()),
            _ => Ok(()),
        }
    })
    .await;
    Request::put("late", "1").send(via).await.unwrap().expect_success();
    cluster.kill_all().await;

    cluster.start_node(1);
    eventually("it listens", PATIENCE, async || cluster.status(1).await.map(drop)).await;
    assert_shows_nothing(via).await;
    cluster.stop(1).await;
    cluster.start_node(1);
    eventually("it listens again", PATIENCE, async || cluster.status(1).await.map(drop)).await;
    assert_shows_nothing(via).await;
    cluster.start_all();
    cluster.wait_all_ready().await;
    for query in ["consistency=local", "min_revision=2"] {
        Request::get(format!("/v1/kv/late?{query}")).send(via).await.unwrap().expect_success();
    }
    cluster.assert_agreement().await;
}

async fn assert_shows_nothing(via: SocketAddr) {
    for query in ["consistency=local", "min_revision=2"] {
        let read = Request::get(format!("/v1/kv/early?{query}")).send(via).await.unwrap();
        assert_eq!(read.status, 503, "{query}: {}", read.text());
        assert!(read.text().contains("still applying"), "{query}: {}", read.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_order_of_the_first_start_does_not_matter() {
    let mut cluster = Cluster::new(Settings::default());
    // The last of the list alone must not found a cluster of its own.
    cluster.start_node(3);
    cluster.start_node(2);
    cluster.start_node(1);
    cluster.wait_all_ready().await;
    let all = statuses(&cluster).await;
    assert!(all.iter().all(|status| status.cluster_id == all[0].cluster_id && !status.cluster_id.is_empty()));
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_node_is_a_cluster_and_stays_ready_while_nobody_writes() {
    let mut cluster = Cluster::start_with(Settings::with_ids([1])).await;
    Request::put("single", "1").send(cluster.client_address(1)).await.unwrap().expect_success();
    cluster.kill(1).await;
    cluster.bring_up(1).await;
    Request::get("/v1/kv/single").send(cluster.client_address(1)).await.unwrap().expect_success();
    // Several times as long as a leader may be silent before it counts as gone.
    let unready = sooner_than(Duration::from_secs(3), async || match cluster.is_ready(1).await {
        Ok(()) => Err("it is ready".to_owned()),
        Err(reason) => Ok(reason),
    });
    assert_eq!(unready.await.ok(), None, "it has all the quorum that it needs");
    cluster.assert_agreement().await;
}

async fn statuses(cluster: &Cluster) -> Vec<StatusAnswer> {
    let mut all = Vec::new();
    for id in cluster.live() {
        all.push(cluster.status(id).await.unwrap());
    }
    all
}
