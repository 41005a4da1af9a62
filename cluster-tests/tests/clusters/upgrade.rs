//! Data directories that older builds have written, see `fixtures/README.md`: a node goes on with them and heals them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cluster_tests::{Cluster, PATIENCE, Request, Settings, eventually};
use quorate_store::level::HARDENED;

use crate::backups::succeed;

fn unpack(fixture: &str, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
    let status = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(to).status().unwrap();
    assert!(status.success(), "{} cannot be unpacked: {status}", archive.display());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_an_entry_ended_again_and_again_applies_it_and_ends_with_exact_sums() {
    let mut cluster = Cluster::new(Settings::with_ids([1]));
    let data = cluster.data_dir(1);
    unpack("poisoned.tar.gz", &data);
    cluster.bring_up(1).await;
    let answer = Request::get("/v1/kv/b").send(cluster.client_address(1)).await.unwrap().expect_success();
    assert!(answer.text().contains(r#""value":{"n":2}"#), "{}", answer.text());
    eventually("the level is raised", PATIENCE, async || match cluster.status(1).await?.level {
        level if level >= HARDENED => Ok(()),
        level => Err(format!("level {level}")),
    })
    .await;
    // The leader looks every two seconds whether something is to be healed.
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cluster.stop(1).await;
        let printed = succeed("quorate-node", &["check", "--data-dir", data.to_str().unwrap()]).await;
        if !printed.contains("what is still to be healed") {
            return;
        }
        cluster.bring_up(1).await;
    }
    panic!("the sums of sessions are not healed");
}
