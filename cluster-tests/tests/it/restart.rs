//! Nodes that are stopped and started again.

use std::time::Duration;

use cluster_tests::{Cluster, Request, sooner_than};
use quorate_client::api::StatusAnswer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarting_with_the_same_join_list_changes_nothing() {
    let mut cluster = Cluster::start().await;
    Request::put("kept", "1").send(cluster.client_address(1)).await.unwrap().expect_success();
    cluster.assert_agreement().await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_order_of_the_first_start_does_not_matter() {
    let mut cluster = Cluster::new(cluster_tests::Settings::default());
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
async fn a_single_node_stays_ready_while_nobody_writes() {
    let cluster = Cluster::start_with(cluster_tests::Settings::with_ids([1])).await;
    // Several times as long as a leader may be silent before it counts as gone.
    let unready = sooner_than(Duration::from_secs(3), async || match cluster.is_ready(1).await {
        Ok(()) => Err("it is ready".to_owned()),
        Err(reason) => Ok(reason),
    });
    assert_eq!(unready.await.ok(), None, "it has all the quorum that it needs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_node_is_a_cluster() {
    let mut cluster = Cluster::start_with(cluster_tests::Settings::with_ids([1])).await;
    Request::put("single", "1").send(cluster.client_address(1)).await.unwrap().expect_success();
    cluster.kill(1).await;
    cluster.bring_up(1).await;
    Request::get("/v1/kv/single").send(cluster.client_address(1)).await.unwrap().expect_success();
    cluster.assert_agreement().await;
}

async fn statuses(cluster: &Cluster) -> Vec<StatusAnswer> {
    let mut all = Vec::new();
    for id in cluster.live() {
        all.push(cluster.status(id).await.unwrap());
    }
    all
}
