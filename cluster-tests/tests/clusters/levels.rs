//! The feature level of real clusters: raised once every member agrees to it, and not before. Tried with the level that only tests
//! know.

use std::time::{Duration, Instant};

use cluster_harness::{Cluster, PATIENCE, Request, Settings, eventually};
use quorate_client::api::StatusAnswer;
use quorate_machine::level::{FIRST, NEXT};

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
    for id in [1, 2] {
        cluster.set_next_build(id, true);
    }
    cluster.start_all();
    cluster.wait_all_ready().await;
    // The leader has asked often enough by then.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        Request::put("levels", "1").send(cluster.client_address(1)).await.expect("an answer").expect_success();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let before = levels(&cluster).await.expect("all answer");
    assert_eq!(before, [(FIRST, NEXT), (FIRST, NEXT), (FIRST, FIRST)], "one member does not agree");

    // It knows the level as well now, and is told not to agree to it yet.
    cluster.stop(3).await;
    cluster.set_next_build(3, true);
    cluster.set_flag(3, "--feature-level-max", FIRST);
    cluster.bring_up(3).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = levels(&cluster).await.expect("all answer");
    assert!(before.iter().all(|(level, _)| *level == FIRST), "{before:?}");

    cluster.stop(3).await;
    cluster.unset_flags(3);
    cluster.bring_up(3).await;
    let raised = async || {
        let now = levels(&cluster).await?;
        if now.iter().all(|level| *level == (NEXT, NEXT)) { Ok(()) } else { Err(format!("{now:?}")) }
    };
    eventually("every node has raised the level", PATIENCE, raised).await;

    cluster.kill_all().await;
    cluster.start_all();
    cluster.wait_all_ready().await;
    let after = levels(&cluster).await.expect("all answer");
    assert!(after.iter().all(|level| *level == (NEXT, NEXT)), "{after:?}: a level is part of the state");
    cluster.assert_agreement().await;
}
