//! The recipes in `client/examples`: each runs to its end on a real cluster.

use std::process::Stdio;
use std::time::Duration;

use cluster_harness::Cluster;
use tokio::process::Command;

use crate::guide::built;

/// Each ends by itself, long before this.
const WITHIN: Duration = Duration::from_secs(60);

/// Runs an example; gives what it printed.
async fn run(cluster: &Cluster, name: &str) -> String {
    let endpoints: Vec<_> = cluster.ids().into_iter().map(|id| cluster.client_address(id).to_string()).collect();
    let mut command = Command::new(built(&format!("examples/{name}")));
    command.env("QUORATE_ENDPOINTS", endpoints.join(",")).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(WITHIN, command.output()).await;
    let output = output.unwrap_or_else(|_| panic!("{name} does not end")).expect("it runs");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{name} failed:\n{text}");
    println!("--- {name}\n{text}");
    text
}

/// Examples as they are published, on nodes as they are run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_recipes_of_coordination_run() {
    let mut cluster = Cluster::start().await;
    for (name, last) in [
        ("leader_service", "leads now"),
        ("worker_pool", "never more than 3 at once"),
        ("fenced_job", "each step was done once"),
        ("service_registry", "is gone"),
        ("distributed_cron", "ticks in all, none of them twice"),
    ] {
        let text = run(&cluster, name).await;
        assert!(text.contains(last), "{name} does not say `{last}`:\n{text}");
    }
    cluster.assert_agreement().await;
}
