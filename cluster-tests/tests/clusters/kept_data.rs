//! Data that releases have written, see `fixtures/README.md`: this build goes on with all of it.

use std::fs;
use std::path::{Path, PathBuf};

use cluster_harness::load::assert_durable;
use cluster_harness::written::Writes;
use cluster_harness::{Cluster, Request};
use cluster_tests::kept::{self, BACKUP, Claim, MANIFEST, Manifest, NODES};

use crate::backups::succeed;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// What is said of identity and state: rows, position and digest of each directory as its own build saw them.
fn facts(lines: &[String]) -> Vec<&str> {
    let is_fact =
        |line: &&str| ["identity:", "state:", "  digest of its rows"].iter().any(|start| line.starts_with(start));
    lines.iter().map(String::as_str).filter(is_fact).collect()
}

async fn said(home: &Path, arguments: &[&str]) -> Vec<String> {
    kept::lines(&succeed("quorate-node", arguments).await, home)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_release_0_1_0_wrote_under_load_is_read_whole() {
    reads("0.1.0-nodes.tar.xz").await;
}

/// Opens three directories whose nodes were killed under load, and a backup.
async fn reads(archive: &str) {
    let _claim = Claim::wait();
    let home = tempfile::tempdir().expect("a temporary directory");
    kept::unpack(&fixture(archive), home.path());
    let manifest: Manifest = serde_json::from_slice(&fs::read(home.path().join(MANIFEST)).unwrap()).unwrap();
    assert!(manifest.contents.len() > 15 && manifest.load.len() > 20, "or it would prove nothing");
    for id in NODES {
        let data = home.path().join(id.to_string()).join("data");
        let found = said(home.path(), &["check", "--data-dir", data.to_str().unwrap()]).await;
        assert_eq!(facts(&found), facts(&manifest.checks[&id]), "node {id}");
        assert_eq!(facts(&found).len(), 2, "{found:?}");
    }
    let backup = home.path().join(BACKUP);
    let found = said(home.path(), &["backup", "verify", backup.to_str().unwrap()]).await;
    assert_eq!(facts(&found), facts(&manifest.backup));
    assert_eq!(facts(&found).len(), 1, "{found:?}");

    let mut cluster = Cluster::new(kept::settings().data_home(home.path()));
    cluster.start_all();
    cluster.wait_all_ready().await;
    let writes = Writes::of(
        manifest.load.iter().map(|(key, (acknowledged, attempted))| (key.as_str(), *acknowledged, *attempted)),
    );
    for id in NODES {
        let found = kept::contents(cluster.client_address(id), &manifest.session).await;
        for (asked, said) in &manifest.contents {
            assert_eq!(kept::difference(&found[asked], said), None, "node {id}: {asked}");
        }
        assert_durable(&cluster, id, &writes).await;
        assert!(cluster.status(id).await.unwrap().level >= manifest.level, "a level is part of the state");
    }
    // It goes on: what is there can be changed, and what it writes now is read by its next start.
    let at = cluster.client_address(1);
    Request::put("kept/docs/05", r#"{"n": 1, "u": 5}"#).send(at).await.unwrap().expect_success();
    cluster.assert_agreement().await;
    cluster.kill_all().await;
    cluster.start_all();
    cluster.wait_all_ready().await;
    let read = Request::get("/v1/kv/kept/docs/05").send(at).await.unwrap().expect_success();
    assert!(read.text().contains(r#""n": 1"#), "{}", read.text());
    cluster.assert_agreement().await;
    restores(home.path(), &backup).await;
}

/// The backup makes a cluster of its own.
async fn restores(home: &Path, backup: &Path) {
    let mut cluster = Cluster::new(cluster_harness::Settings::with_ids([1]));
    let data = cluster.data_dir(1);
    let join = format!("1={}", cluster.peer_address(1));
    let arguments = [
        "restore",
        "--from",
        backup.to_str().unwrap(),
        "--data-dir",
        data.to_str().unwrap(),
        "--node-id",
        "1",
        "--join",
        &join,
    ];
    let listen = cluster.peer_address(1).to_string();
    let more = ["--peer-listen", &listen];
    said(home, &[&arguments[..], &more[..]].concat()).await;
    cluster.bring_up(1).await;
    let read = Request::get("/v1/kv/kept/docs/05").send(cluster.client_address(1)).await.unwrap().expect_success();
    assert!(read.text().contains(r#""u":5"#), "{}", read.text());
}
