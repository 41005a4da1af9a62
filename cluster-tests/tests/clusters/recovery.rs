//! A cluster that lost its majority for good, and the survivor that goes on alone.

use std::process::{Command, Stdio};
use std::time::Duration;

use cluster_harness::cluster::PATIENCE;
use cluster_harness::load::{Load, assert_durable};
use cluster_harness::seed::seeded;
use cluster_harness::{Cluster, Request, Settings, eventually};

use rand::RngExt;

use crate::backups::{refuse, succeed};
use crate::guide::built;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_survivor_becomes_a_cluster_of_its_own_that_fresh_nodes_join_and_lost_ones_do_not() {
    let mut cluster = Cluster::start().await;
    let load = Load::start(&cluster, 4, "before");
    load.wait_for_more(500).await;
    let report = load.finish().await;
    cluster.assert_agreement().await;
    let old = cluster.status(1).await.unwrap();
    let survivor = cluster.follower().await;
    let lost = cluster.live_but(survivor);
    cluster.kill_all().await;
    let data = cluster.data_dir(survivor);
    let dir = data.to_str().unwrap();

    refuse("quorate-node", &["recover", "--data-dir", dir], 2, "say --accept-data-loss").await;
    cluster.start_node(survivor);
    eventually("it runs", PATIENCE, async || cluster.status(survivor).await.map(drop)).await;
    refuse("quorate-node", &["recover", "--data-dir", dir, "--accept-data-loss"], 1, "in use by another process").await;
    cluster.kill(survivor).await;

    let printed = succeed("quorate-node", &["recover", "--data-dir", dir, "--accept-data-loss"]).await;
    for words in ["Kept: everything this disk had", "Lost: writes that were acknowledged", "epoch 1"] {
        assert!(printed.contains(words), "no `{words}` in:\n{printed}");
    }
    assert!(data.join("before-epoch-1").join("identity").exists(), "the old content is kept");
    let alone = format!("{survivor}={}", cluster.peer_address(survivor));
    cluster.set_flag(survivor, "--join", alone);
    cluster.bring_up(survivor).await;
    assert_durable(&cluster, survivor, &report.history).await;
    let new = cluster.status(survivor).await.unwrap();
    assert_ne!(new.cluster_id, old.cluster_id);
    assert_eq!((new.epoch, new.members.len()), (1, 1));
    assert!(new.revision > old.revision + 1_000_000_000);
    Request::put("after", "1").send(cluster.client_address(survivor)).await.unwrap().expect_success();

    // A lost one comes back: it is told whose it is, and counts for nothing.
    let (returned, gone) = (lost[0], lost[1]);
    cluster.start_node(returned);
    let words = format!("belongs to cluster {}", old.cluster_id);
    eventually(&format!("node {returned} is refused"), PATIENCE, async || {
        let logs = [cluster.log_text(returned), cluster.log_text(survivor)].concat();
        if logs.contains(&words) { Ok(()) } else { Err(format!("no `{words}`")) }
    })
    .await;
    assert!(cluster.is_ready(returned).await.is_err(), "it must not serve");
    cluster.kill(returned).await;

    cluster.wipe(returned);
    cluster.wipe(gone);
    cluster.start_all();
    cluster.wait_all_ready().await;
    assert_durable(&cluster, gone, &report.history).await;
    assert_eq!(cluster.status(gone).await.unwrap().epoch, 1);
    let voters = async || {
        let status = cluster.status(survivor).await?;
        let count = status.members.iter().filter(|member| member.voter).count();
        if count == 3 { Ok(()) } else { Err(format!("{count} voters")) }
    };
    eventually("three voters", PATIENCE, voters).await;
    cluster.assert_agreement().await;
}

/// Recoveries that are killed before one is let through.
const KILLED: u64 = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovery_that_is_killed_at_any_moment_is_done_by_the_next() {
    let mut cluster = Cluster::start_with(Settings::with_ids([1])).await;
    let load = Load::start(&cluster, 8, "before");
    load.wait_for_more(1_000).await;
    let report = load.finish().await;
    cluster.kill(1).await;
    let data = cluster.data_dir(1);
    let arguments = ["recover", "--data-dir", data.to_str().unwrap(), "--accept-data-loss"];
    let mut random = seeded();
    for _ in 0..KILLED {
        let mut process = Command::new(built("quorate-node"));
        let process = process.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut process = process.unwrap();
        // From its begin to beyond its end.
        let after = Duration::from_millis(random.random_range(0..120));
        tokio::time::sleep(after).await;
        let done = process.try_wait().unwrap().is_some();
        process.kill().unwrap();
        process.wait().unwrap();
        println!("after {after:?} it was {}", if done { "done" } else { "killed" });
    }
    succeed("quorate-node", &arguments).await;
    succeed("quorate-node", &["check", "--data-dir", data.to_str().unwrap()]).await;
    cluster.bring_up(1).await;
    assert_durable(&cluster, 1, &report.history).await;
    assert!(cluster.status(1).await.unwrap().epoch >= 1);
}
