//! Clients on a node's machine reach it by a Unix socket: curl, the command line, and clients that know other nodes as well.

use std::path::PathBuf;
use std::process::Command;

use cluster_harness::{Cluster, PATIENCE, Settings, eventually};
use quorate_client::{Client, Value};
use tempfile::TempDir;

use super::guide::{built, command};

fn socket(dir: &TempDir, id: u64) -> PathBuf {
    dir.path().join(format!("clients-{id}"))
}

async fn cluster(dir: &TempDir, settings: Settings) -> Cluster {
    let mut cluster = Cluster::new(settings);
    for id in cluster.ids() {
        cluster.set_flag(id, "--client-socket", socket(dir, id).display());
    }
    cluster.start_all();
    cluster.wait_all_ready().await;
    cluster
}

/// What a command prints that must succeed.
fn output(command: &mut Command) -> String {
    let done = command.output().expect("it runs");
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_the_command_line_and_clients_reach_a_node_by_its_socket() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut cluster = cluster(&dir, Settings::default()).await;
    let endpoint = |id| format!("unix:{}", socket(&dir, id).display());

    let client = Client::new(endpoint(1)).expect("an endpoint");
    let written = client.put("greeting", Value::json_text("\"hello\"")).await.expect("it is written");
    let mut watch = client.watch("greeting").from(written.revision).start().await.expect("it begins");
    let event = watch.next().await.expect("it goes on").event().expect("an event");
    assert_eq!(event.revision, written.revision);
    let mut curl = command("curl");
    curl.args(["--silent", "--fail", "--unix-socket"]).arg(socket(&dir, 2)).arg("http://localhost/v1/kv/greeting");
    assert!(output(&mut curl).contains("\"value\":\"hello\""));
    let mut line = command(built("quorate"));
    assert!(output(line.args(["--endpoints", &endpoint(3), "get", "greeting"])).starts_with("\"hello\"\n"));

    // A node that was killed leaves its file, over which clients go on at another; it listens there again once it is back.
    let both = format!("{},{}", endpoint(1), cluster.client_address(2));
    let client = Client::builder().endpoints(both).discover_members(false).build().expect("endpoints");
    cluster.kill(1).await;
    assert!(socket(&dir, 1).exists());
    client.put("greeting", Value::json_text("\"still here\"")).await.expect("another node serves");
    cluster.bring_up(1).await;
    let alone = Client::new(endpoint(1)).expect("an endpoint");
    eventually("the socket serves again", PATIENCE, async || {
        alone.get("greeting").await.map(drop).map_err(|error| error.to_string())
    })
    .await;
    cluster.stop(1).await;
    assert!(!socket(&dir, 1).exists(), "who stops takes its file along");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_node_and_a_file_at_the_path_are_refused_with_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let _cluster = cluster(&dir, Settings::with_ids([1])).await;
    let addresses = cluster_harness::ports::free_addresses(2);
    let start = |path: &PathBuf| {
        let mut node = command(built("quorate-node"));
        node.args(["--dev", "--client-listen", &addresses[0].to_string(), "--peer-listen", &addresses[1].to_string()]);
        let done = node.arg("--client-socket").arg(path).output().expect("it starts");
        assert_eq!(done.status.code(), Some(1));
        String::from_utf8(done.stderr).expect("text")
    };
    let said = start(&socket(&dir, 1));
    assert!(said.contains("client_socket: ") && said.contains("another process listens there"), "{said}");
    let file = dir.path().join("file");
    std::fs::write(&file, "mine").expect("room");
    let said = start(&file);
    assert!(said.contains("something is there that is no socket"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "mine");
}
