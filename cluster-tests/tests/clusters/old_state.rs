//! A state that is older than where the log begins: made good from a snapshot, or refused.

use std::fs;
use std::path::{Path, PathBuf};

use cluster_harness::cluster::PATIENCE;
use cluster_harness::load::{Load, assert_durable};
use cluster_harness::{Cluster, Settings, eventually};

use crate::damage::copy;

/// A node whose database of the state is that of an earlier time, beside a log that has been purged since. The snapshot
/// that the purge relied on is there. All of it on one disk: no other node could help.
async fn node_with_an_old_state() -> (Cluster, cluster_harness::written::Writes) {
    let settings = Settings::with_ids([1]).flag("--snapshot-every-entries", 100).flag("--keep-log-entries", 20);
    let mut cluster = Cluster::start_with(settings).await;
    let old = Load::start(&cluster, 8, "old");
    old.wait_for_more(50).await;
    let mut history = old.finish().await.history;
    cluster.stop(1).await;
    let applied = cluster.data_dir(1).with_extension("old");
    copy(&live_database(&cluster), &applied);

    cluster.bring_up(1).await;
    let had = cluster.status(1).await.unwrap().last_log_index;
    let new = Load::start(&cluster, 8, "new");
    eventually("the log was purged beyond the old state", PATIENCE, async || {
        let purged = cluster.status(1).await?.purged_index;
        if purged > had { Ok(()) } else { Err(format!("purged up to {purged}, the old state is at {had}")) }
    })
    .await;
    history.merge(new.finish().await.history);
    cluster.kill(1).await;
    let live = live_database(&cluster);
    fs::remove_dir_all(&live).unwrap();
    fs::rename(&applied, &live).unwrap();
    (cluster, history)
}

fn live_database(cluster: &Cluster) -> PathBuf {
    cluster.data_dir(1).join("state/db-1")
}

fn snapshots(cluster: &Cluster) -> PathBuf {
    cluster.data_dir(1).join("state/snap")
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

/// Fault: the database of the state is replaced by that of an earlier time; at first the snapshots are gone as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_older_than_the_log_is_made_good_from_the_snapshot_that_covers_the_gap_and_refused_without() {
    let (mut cluster, history) = node_with_an_old_state().await;
    let data = cluster.data_dir(1);
    let aside = data.with_extension("aside");
    copy(&data, &aside);
    fs::remove_dir_all(snapshots(&cluster)).unwrap();
    cluster.start_node(1);
    let (end, log) = cluster.wait_end(1, PATIENCE).await;
    assert!(!end.success(), "it must not end as if all were well:\n{log}");
    assert!(log.contains("the log was purged up to"), "no reason in:\n{log}");

    fs::remove_dir_all(&data).unwrap();
    fs::rename(&aside, &data).unwrap();
    assert!(!is_empty(&snapshots(&cluster)), "there must be a snapshot, or this tests nothing");
    cluster.bring_up(1).await;
    assert_durable(&cluster, 1, &history).await;
    // And once more from what that start left behind.
    cluster.kill(1).await;
    cluster.bring_up(1).await;
    assert_durable(&cluster, 1, &history).await;
    cluster.assert_agreement().await;
}
