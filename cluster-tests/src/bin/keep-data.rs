//! Writes the data that every later build has to read: `tests/fixtures/README.md` says when and how.
//!
//! Owns the order: fill, load, backup, kill under load, look, pack. What is in it is `cluster_tests::kept`'s.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use cluster_harness::drive::client::Nodes;
use cluster_harness::drive::crossing::ApiClients;
use cluster_harness::load::Load;
use cluster_harness::node_process::run_to_end;
use cluster_harness::{Cluster, Request};
use cluster_tests::kept::{self, BACKUP, Claim, MANIFEST, Manifest, NODES};
use rand::SeedableRng;
use rand::rngs::StdRng;

/// Writes data directories of three nodes under load, a backup, and what must be found in them.
#[derive(Parser)]
struct Args {
    /// Where `NAME-nodes.tar.xz` is written
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// The name, as a rule the version of the release
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    name: String,
}

/// Writes of the load before the nodes are killed.
const WRITES: u64 = 300;
/// How long clients ask everything there is to ask.
const CROSSING: Duration = Duration::from_secs(4);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let args = Args::parse();
    let _claim = Claim::wait();
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut cluster = Cluster::new(kept::settings().data_home(home.path()));
    cluster.start_all();
    cluster.wait_all_ready().await;
    let reached = cluster.status(1).await.expect("it answers");
    let at = cluster.client_address(cluster.leader().await);
    let session = kept::fill(at).await;
    ask_everything(&cluster).await;
    let backup = Request::get("/v1/cluster/backup").send(at).await.expect("a backup").expect_success();
    std::fs::write(home.path().join(BACKUP), backup.body).expect("the backup can be written");

    let load = Load::start(&cluster, 4, "kept");
    load.wait_for_more(WRITES).await;
    let contents = kept::contents(at, &session).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    for (asked, later) in kept::contents(at, &session).await {
        let difference = kept::difference(&later, &contents[&asked]);
        assert_eq!(difference, None, "{asked}: what is kept must not change with time");
    }
    cluster.kill_all().await;
    let written = load.abandon().await;
    let load =
        written.keys().map(|(key, written)| (key.to_owned(), (written.acknowledged, written.attempted))).collect();
    drop(cluster);

    let manifest = Manifest {
        version: reached.version,
        level: reached.level,
        contents,
        checks: NODES.iter().map(|id| (*id, check(home.path(), *id))).collect(),
        backup: said(home.path(), &["backup", "verify", &home.path().join(BACKUP).display().to_string()]),
        load,
        session,
    };
    let text = serde_json::to_string_pretty(&manifest).expect("it can be said in JSON");
    std::fs::write(home.path().join(MANIFEST), text).expect("the manifest can be written");
    dig_holes(home.path());
    let archive = args.into.join(format!("{}-nodes.tar.xz", args.name));
    kept::pack(home.path(), &archive);
    let bytes = std::fs::metadata(&archive).expect("it was written").len();
    println!("{}: {bytes} bytes, level {}, version {}", archive.display(), manifest.level, manifest.version);
}

/// Requests of every route: rows of every kind, in states that nobody thought of.
async fn ask_everything(cluster: &Cluster) {
    let api_clients = ApiClients::default();
    let mut dice = StdRng::seed_from_u64(1);
    let asking = api_clients.start(2, &Nodes::of(cluster), &mut dice, Duration::from_millis(10));
    tokio::time::sleep(CROSSING).await;
    api_clients.end();
    asking.join_all().await;
    assert!(api_clients.wrong().is_empty(), "{}", api_clients.wrong().join("\n"));
}

fn check(home: &Path, id: u64) -> Vec<String> {
    said(home, &["check", "--data-dir", &home.join(id.to_string()).join("data").display().to_string()])
}

fn said(home: &Path, arguments: &[&str]) -> Vec<String> {
    let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
    let output = run_to_end(&arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    kept::lines(&text, home)
}

/// Segments of logs are whole of zeros behind what was written.
fn dig_holes(home: &Path) {
    let segments = walk(home).into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "seg"));
    for segment in segments {
        let status = std::process::Command::new("fallocate").arg("--dig-holes").arg(&segment).status();
        assert!(status.expect("fallocate can be run").success(), "{}", segment.display());
    }
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("a directory can be read");
    let each = |path: PathBuf| if path.is_dir() { walk(&path) } else { vec![path] };
    entries.flat_map(|entry| each(entry.expect("it is there").path())).collect()
}
