//! A request id makes a write happen once, wherever and whenever it is sent again. `histories` sends writes to all nodes at once.

use cluster_harness::Cluster;

use crate::forms::Forms;

/// Faults: the leader is killed, and then all nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_of_a_write_is_told_its_first_outcome_by_every_node_and_after_a_failover_and_a_restart_of_all() {
    let mut cluster = Cluster::start().await;
    let forms = Forms::decide(&cluster).await;
    for id in cluster.live() {
        forms.assert_replayed(&cluster, id).await;
    }
    let leader = cluster.leader().await;
    cluster.kill(leader).await;
    cluster.leader().await;
    for id in cluster.live() {
        forms.assert_replayed(&cluster, id).await;
    }
    cluster.kill_all().await;
    cluster.start_all();
    cluster.wait_all_ready().await;
    for id in cluster.live() {
        forms.assert_replayed(&cluster, id).await;
    }
    cluster.assert_agreement().await;
}
