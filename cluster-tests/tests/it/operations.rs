//! The commands of `node/OPERATIONS.md`, run as they are typed there.

use cluster_tests::{Cluster, PATIENCE, eventually};

use super::guide::run_page;

const PAGE: &str = include_str!("../../../node/OPERATIONS.md");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_of_the_operators_guide_does_what_it_shows() {
    let mut cluster = Cluster::start().await;
    eventually("the feature level is raised", PATIENCE, async || {
        let status = cluster.status(1).await?;
        if status.level == status.level_known { Ok(()) } else { Err(format!("level {}", status.level)) }
    })
    .await;
    run_page(&cluster, "node/OPERATIONS.md", PAGE).await;
    cluster.assert_agreement().await;
}
