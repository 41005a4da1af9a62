//! All attacks in turn on a cluster of real nodes, those of the generator as well, and tables of what honest clients lost by each.
//!
//! Owns the clusters, the turns and the tables. `scripts/abuse` builds and runs it.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Parser;
use cluster_harness::seed::seeded;
use cluster_harness::{Cluster, Request, Settings};
use cluster_tests::abuse::generator::{self, Amount, Coverage, Field, Size};
use cluster_tests::abuse::{
    ATTACKS, Attack, Broken, FROM, Honest, Load, Measure, Measured, NICENESS, Target, Way, create_user,
};
use rand::rngs::StdRng;
use serde_json::json;

/// Attacks clusters of three nodes, a fresh one by each kind in turn, among honest clients. Then by every combination of the generator: each
/// operation of the OpenAPI document and each call of etcd's services, by each protocol, in each shape, by each caller, from one address and
/// from two.
#[derive(Debug, Clone, Parser)]
struct Args {
    /// Seconds for all attacks together, those of the generator aside
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Seconds for those of the generator together
    #[arg(long, default_value_t = 900)]
    generated_seconds: u64,
    /// Hostile connections at a time
    #[arg(long, default_value_t = 1_000)]
    connections: usize,
    /// How much nicer hostile threads are than nodes (0 to 19): attackers have processors of their own as a rule
    #[arg(long, default_value_t = NICENESS)]
    niceness: u8,
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
    /// Only these attacks; `generated` for those of the generator
    attacks: Vec<String>,
}

/// How long a new cluster is left alone, and how long it is looked at then before it is attacked.
const REST: Duration = Duration::from_secs(3);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let args = Args::parse();
    let is_generated = args.attacks.is_empty() || args.attacks.iter().any(|name| name == GENERATED);
    let mut attacks = Vec::new();
    for name in args.attacks.iter().filter(|name| *name != GENERATED) {
        let Some(attack) = Attack::named(name) else {
            let names: Vec<_> = ATTACKS.iter().map(|attack| attack.name).collect();
            eprintln!("there is no attack `{name}`; there are: {}, {GENERATED}", names.join(", "));
            return ExitCode::from(2);
        };
        attacks.push(attack);
    }
    if args.attacks.is_empty() {
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
    let mut failed = listed(&args, &attacks, &settings).await;
    if is_generated {
        failed.extend(generated(&args, settings).await);
    }
    if failed.is_empty() {
        println!("\nThe measure held under all of them; after each, all nodes lived and held the same state.");
        return ExitCode::SUCCESS;
    }
    println!("\nFAILED");
    failed.iter().for_each(|sentence| println!("- {sentence}"));
    ExitCode::FAILURE
}

/// Stands for all attacks of the generator.
const GENERATED: &str = "generated";

/// Who is honest.
const HONEST: &str = "honest";
/// Who turns hostile.
const HOSTILE: &str = "hostile";
const ROOT: &str = "5f0d3c0b6a6f4a0cb7a2f5e1c9d8b7a65f0d3c0b6a6f4a0c";

/// The attacks that are listed, each on a cluster of its own. Gives what did not hold, in words.
async fn listed(args: &Args, attacks: &[&Attack], settings: &Settings) -> Vec<String> {
    if attacks.is_empty() {
        return Vec::new();
    }
    println!(
        "| attack | what each of {} connections does | its requests/s | honest writes/s: before | under it | kept | mean | sessions lost | elections | memory |",
        args.connections
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let each = Duration::from_secs(args.seconds) / u32::try_from(attacks.len()).expect("some");
    let mut failed = Vec::new();
    for attack in attacks {
        let settings = if attack.is_guarded { settings.clone().guarded(ROOT) } else { settings.clone() };
        let broken = suffer(args, attack, settings, each).await;
        failed.extend(broken.into_iter().map(|broken| format!("{}: {broken}", attack.name)));
    }
    failed
}

/// Every combination of the generator, by each protocol on a cluster of its own. Gives what did not hold, in words.
async fn generated(args: &Args, settings: Settings) -> Vec<String> {
    println!(
        "\n| generated attack | honest writes/s: before | under it | kept | mean | sessions lost | elections | memory |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    let (mut dice, mut coverage, mut failed) = (seeded(), Coverage::default(), Vec::new());
    for way in Way::ALL {
        failed.extend(generated_by(way, args, settings.clone(), &mut dice, &mut coverage).await);
    }
    println!("\n{}", coverage.table());
    failed.extend(coverage.missing());
    failed
}

/// Combinations that are under way at once: each shape by each of three callers from one address and from two.
const WAVES_OF_WAY: u32 = 8 * 3 * 2;

async fn generated_by(
    way: Way,
    args: &Args,
    settings: Settings,
    dice: &mut StdRng,
    coverage: &mut Coverage,
) -> Vec<String> {
    let mut cluster = Cluster::start_with(settings.guarded(ROOT)).await;
    let nodes: Vec<u32> = cluster.ids().iter().map(|id| cluster.process_id(*id)).collect();
    let field = Field::prepare(&cluster, ROOT, Amount { large: 5, large_bytes: 1_000_000, small: 10_000 }, dice).await;
    let nobody = field.rest(REST).await;
    let mut waves = generator::all(&field.operations);
    waves.retain(|wave| wave.way == way);
    assert_eq!(waves.len(), WAVES_OF_WAY as usize, "the time is shared among as many as there are");
    let hold = Duration::from_secs(args.generated_seconds) / (WAVES_OF_WAY * 4);
    let size = Size {
        connections: args.connections,
        largest: 1_000_000,
        short: 256 * 1_024,
        drop_every: Duration::from_millis(500),
        hold,
        hold_max: (4 * hold).max(Duration::from_secs(20)),
        niceness: args.niceness,
    };
    // Each writer and reader asks again almost as soon as it has its answer: together they ask for nearly as much as nodes can do.
    let load = Load {
        from: FROM,
        nodes: &field.nodes,
        token: Some(&field.honest),
        ways: &Way::ALL,
        sessions: args.sessions,
        writers: 4 * args.writers,
        readers: args.writers,
        every: Duration::from_millis(1),
    };
    let honest = load.start();
    tokio::time::sleep(REST).await;
    let quiet = Measured::over(REST, &honest.seen, &nodes).await;
    let measure = Measure { quiet: quiet.writes_per_second, rate_kept: 0.5, memory: args.memory_mib << 20 };
    let mut failed = Vec::new();
    let wrong = generator::run(&field, &waves, &size, &honest, &nodes, coverage, |wave, measured| {
        println!("| {} | {}", wave.name, numbers(measured, &measure));
        failed.extend(measure.judge(measured).into_iter().map(|broken| format!("{}: {broken}", wave.name)));
    })
    .await;
    failed.extend(wrong);
    // Those, too, that ended between two waves.
    let lost = honest.seen.lost.load(Ordering::Relaxed);
    if lost > 0 {
        failed.push(format!("{way}: {lost} honest sessions ended in all"));
    }
    drop(honest);
    if let Err(left) = field.comes_back(&nobody).await {
        failed.push(format!("{way}: not given back though nobody asks any more: {left}"));
    }
    cluster.wait_all_ready().await;
    cluster.assert_agreement().await;
    failed
}

/// One attack on a cluster of its own: what one leaves behind is nothing that the next one meets.
async fn suffer(args: &Args, attack: &Attack, settings: Settings, time: Duration) -> Vec<Broken> {
    let mut cluster = Cluster::start_with(settings).await;
    let ids = cluster.ids();
    fill(&cluster).await;
    let (honest, hostile) = match attack.is_guarded {
        true => (Some(create_user(&cluster, HONEST).await), Some(create_user(&cluster, HOSTILE).await)),
        false => (None, None),
    };
    let target = Target {
        clients: ids.iter().map(|id| cluster.client_address(*id)).collect(),
        peers: ids.iter().map(|id| cluster.peer_address(*id)).collect(),
        token: hostile,
    };
    let honest = Honest::start(FROM, &target.clients, honest.as_deref(), args.sessions, args.writers);
    let nodes: Vec<u32> = ids.iter().map(|id| cluster.process_id(*id)).collect();
    tokio::time::sleep(REST).await;
    let quiet = Measured::over(REST, &honest.seen, &nodes).await;
    let measure = Measure { quiet: quiet.writes_per_second, rate_kept: 0.5, memory: args.memory_mib << 20 };
    let running = attack.begin(&target, args.connections, args.niceness);
    // What it takes to begin, a thousand connections at once, counts.
    let time = time.saturating_sub(2 * REST).max(REST);
    let measured = Measured::over(time, &honest.seen, &nodes).await;
    let answered = running.answered() as f64 / time.as_secs_f64();
    drop((running, honest));
    row(attack, answered, &measured, &measure);
    cluster.wait_all_ready().await;
    cluster.assert_agreement().await;
    measure.judge(&measured)
}

/// Entries that attacks ask for: large ones, and many.
async fn fill(cluster: &Cluster) {
    let to = cluster.client_address(cluster.leader().await);
    let send = async |request: Request| {
        cluster.by_root(request).send(to).await.expect("an answer").expect_success();
    };
    let large = json!("v".repeat(1_000_000)).to_string();
    for n in 0..5 {
        send(Request::put(&format!("large/{n}"), large.clone())).await;
    }
    for begin in (0..10_000).step_by(1_000) {
        let op = |n| json!({"op": "upsert", "key": format!("doc/{n:06}"), "value": {"n": n}});
        let body = json!({ "ops": (begin..begin + 1_000).map(op).collect::<Vec<_>>() }).to_string();
        send(Request::post("/v1/bulk", body)).await;
    }
}

fn row(attack: &Attack, answered: f64, measured: &Measured, measure: &Measure) {
    println!("| {} | {} | {answered:.0} | {}", attack.name, attack.what, numbers(measured, measure));
}

/// Formats the end of a row: how honest clients fared, and the memory of nodes.
fn numbers(measured: &Measured, measure: &Measure) -> String {
    let quiet = measure.quiet;
    let Measured { writes_per_second, write_took, lost, elections, memory, .. } = measured;
    let kept = writes_per_second / quiet * 100.0;
    format!(
        "{quiet:.0} | {writes_per_second:.0} | {kept:.0} % | {:.1} ms | {lost} | {elections} | {} MiB |",
        write_took.as_secs_f64() * 1e3,
        memory >> 20
    )
}
