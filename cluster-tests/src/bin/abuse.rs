//! All attacks in turn on a cluster of real nodes, and a table of what honest clients lost by each.
//!
//! Owns the cluster, the turns and the table. `scripts/abuse` builds and runs it.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use cluster_tests::abuse::{ATTACKS, Attack, Honest, Measure, Measured, Target};
use cluster_tests::{Cluster, Request, Settings};
use serde_json::json;

/// Attacks a fresh cluster of three nodes, one kind after the other, among honest clients.
#[derive(Debug, Clone, Parser)]
struct Args {
    /// Seconds for all attacks together
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Hostile connections at a time
    #[arg(long, default_value_t = 1_000)]
    connections: usize,
    /// Honest sessions of 5 s
    #[arg(long, default_value_t = 20)]
    sessions: usize,
    /// Honest clients that write 25 times a second each
    #[arg(long, default_value_t = 8)]
    writers: usize,
    /// Most memory of a node, MiB: twice its bounds for bodies and answers, and its caches
    #[arg(long, default_value_t = 1_536)]
    memory_mib: u64,
    /// A flag for all nodes, as in `--node-flag account-ops-per-second=2000`; may be repeated
    #[arg(long)]
    node_flag: Vec<String>,
    /// Only these attacks
    attacks: Vec<String>,
}

/// How long the cluster is left alone before each attack.
const REST: Duration = Duration::from_secs(3);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let args = Args::parse();
    let mut attacks = Vec::new();
    for name in &args.attacks {
        let Some(attack) = Attack::named(name) else {
            let names: Vec<_> = ATTACKS.iter().map(|attack| attack.name).collect();
            eprintln!("there is no attack `{name}`; there are: {}", names.join(", "));
            return ExitCode::from(2);
        };
        attacks.push(attack);
    }
    if attacks.is_empty() {
        attacks = ATTACKS.iter().collect();
    }
    let mut settings = Settings::default();
    for flag in &args.node_flag {
        let Some((name, value)) = flag.split_once('=') else {
            eprintln!("--node-flag {flag}: say NAME=VALUE");
            return ExitCode::from(2);
        };
        settings = settings.flag(&format!("--{name}"), value);
    }
    run(&args, &attacks, settings).await
}

async fn run(args: &Args, attacks: &[&Attack], settings: Settings) -> ExitCode {
    let mut cluster = Cluster::start_with(settings).await;
    let (ids, leader) = (cluster.ids(), cluster.leader().await);
    let clients: Vec<_> = ids.iter().map(|id| cluster.client_address(*id)).collect();
    let peers = ids.iter().map(|id| cluster.peer_address(*id)).collect();
    let target = Target { clients, peers };
    fill(&cluster, leader).await;
    let honest = Honest::start(&target.clients, args.sessions, args.writers);
    let nodes: Vec<u32> = ids.iter().map(|id| cluster.process_id(*id)).collect();
    tokio::time::sleep(REST).await;
    let quiet = Measured::over(REST, &honest.seen, &nodes).await;
    let measure = Measure { quiet: quiet.writes_per_second, rate_kept: 0.5, memory: args.memory_mib << 20 };
    println!(
        "| attack | what each of {} connections does | honest writes/s | kept | mean | sessions lost | elections | memory |",
        args.connections
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
    row("none", "", &quiet, &measure);
    let share = Duration::from_secs(args.seconds) / u32::try_from(attacks.len()).expect("some");
    let mut failed = Vec::new();
    for attack in attacks {
        let running = attack.begin(&target, args.connections);
        // What it takes to begin, a thousand connections at once, counts.
        let measured = Measured::over(share.saturating_sub(REST).max(REST), &honest.seen, &nodes).await;
        drop(running);
        row(attack.name, attack.what, &measured, &measure);
        failed.extend(measure.judge(&measured).into_iter().map(|broken| format!("{}: {broken}", attack.name)));
        tokio::time::sleep(REST).await;
    }
    drop(honest);
    cluster.wait_all_ready().await;
    cluster.assert_agreement().await;
    if failed.is_empty() {
        println!("\nThe measure held under all of them; all nodes live and hold the same state.");
        return ExitCode::SUCCESS;
    }
    println!("\nFAILED");
    failed.iter().for_each(|sentence| println!("- {sentence}"));
    ExitCode::FAILURE
}

/// Entries that attacks ask for: large ones, and many.
async fn fill(cluster: &Cluster, leader: u64) {
    let to = cluster.client_address(leader);
    let large = json!("v".repeat(1_000_000)).to_string();
    for n in 0..5 {
        Request::put(&format!("large/{n}"), large.clone()).send(to).await.expect("an answer").expect_success();
    }
    for begin in (0..10_000).step_by(1_000) {
        let op = |n| json!({"op": "upsert", "key": format!("doc/{n:06}"), "value": {"n": n}});
        let body = json!({ "ops": (begin..begin + 1_000).map(op).collect::<Vec<_>>() }).to_string();
        Request::post("/v1/bulk", body).send(to).await.expect("an answer").expect_success();
    }
}

fn row(name: &str, what: &str, measured: &Measured, measure: &Measure) {
    let Measured { writes_per_second, write_took, lost, elections, memory, .. } = measured;
    let kept = writes_per_second / measure.quiet * 100.0;
    println!(
        "| {name} | {what} | {writes_per_second:.0} | {kept:.0} % | {:.1} ms | {lost} | {elections} | {} MiB |",
        write_took.as_secs_f64() * 1e3,
        memory >> 20
    );
}
