//! What was acknowledged is there after all nodes were killed. `histories` kills leaders and all nodes under load, `power` takes their power.

use cluster_tests::Cluster;
use cluster_tests::load::{Load, assert_durable};

const WRITERS: usize = 16;

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
