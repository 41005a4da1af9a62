//! All nodes lose their power, or are killed, at once: what was acknowledged before is on their disks. `histories` kills them under load.

use cluster_harness::load::{Load, assert_durable};
use cluster_harness::{Cluster, Settings, seed};
use rand::RngExt;

use crate::disk::Disk;

const WRITERS: usize = 16;
const ROUNDS: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_acknowledged_before_all_nodes_lose_their_power_are_there() {
    let mut random = seed::seeded();
    let root = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::make(root.path()) else {
        println!("skipped: needs root and loop devices");
        return;
    };
    // One file system for all of them: no node can bring back to another what the power loss took. Snapshots and purges are
    // frequent, so that it meets those too.
    let settings = Settings::default()
        .data_home(&disk.mount)
        .flag("--min-free-bytes", 0)
        .flag("--snapshot-every-entries", 200)
        .flag("--keep-log-entries", 50);
    let mut cluster = Cluster::start_with(settings).await;
    for round in 0..ROUNDS {
        let load = Load::start(&cluster, WRITERS, &format!("power-{round}"));
        load.wait_for_more(random.random_range(1..3_000)).await;
        let unsynced = disk.leave_unsynced();
        load.wait_for_more(200).await;
        let before = load.so_far();
        disk.cut_power();
        let history = load.lose_power(&before).await;
        cluster.kill_all().await;
        disk.remount();
        unsynced.assert_lost();
        cluster.start_all();
        cluster.wait_all_ready().await;
        println!("round {round}: {} writes were acknowledged", history.acknowledged());
        for id in cluster.ids() {
            assert_durable(&cluster, id, &history).await;
        }
    }
    cluster.assert_agreement().await;
}

/// Fault: all nodes are killed.
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
