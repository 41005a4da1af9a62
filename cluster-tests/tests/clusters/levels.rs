//! The feature level of real clusters: raised once every member agrees to it, and not before.

use std::time::{Duration, Instant};

use cluster_tests::{Cluster, PATIENCE, Request, Settings, eventually};
use quorate_client::api::StatusAnswer;

async fn levels(cluster: &Cluster) -> Result<Vec<(u32, u32)>, String> {
    let mut levels = Vec::new();
    for id in cluster.live() {
        let StatusAnswer { level, level_known, .. } = cluster.status(id).await?;
        levels.push((level, level_known));
    }
    Ok(levels)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_level_waits_for_the_member_that_does_not_agree_and_survives_restarts() {
    let mut cluster = Cluster::new(Settings::default());
    cluster.set_flag(3, "--feature-level-max", 0);
    cluster.start_all();
    cluster.wait_all_ready().await;
    // The leader has asked often enough by then.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        Request::put("levels", "1").send(cluster.client_address(1)).await.expect("an answer").expect_success();
    }
    let before = levels(&cluster).await.expect("all answer");
    assert!(before.iter().all(|(level, _)| *level == 0), "{before:?}: one member does not agree");
    assert_eq!(before[2].1, 0, "it says so");
    let known = before[0].1;
    assert!(known > 0, "this build knows a level");

    cluster.stop(3).await;
    cluster.unset_flags(3);
    cluster.bring_up(3).await;
    let raised = async || {
        let now = levels(&cluster).await?;
        if now.iter().all(|level| *level == (known, known)) { Ok(()) } else { Err(format!("{now:?}")) }
    };
    eventually("every node has raised the level", PATIENCE, raised).await;

    cluster.kill_all().await;
    cluster.start_all();
    cluster.wait_all_ready().await;
    let after = levels(&cluster).await.expect("all answer");
    assert!(after.iter().all(|level| *level == (known, known)), "{after:?}: a level is part of the state");
    cluster.assert_agreement().await;
}
