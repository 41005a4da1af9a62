//! All attacks in turn on a cluster of real nodes, those of the generator as well, and tables of what honest clients lost by each.
//!
//! Owns the clusters, the turns and the tables. `scripts/abuse` builds and runs it.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Parser;
use cluster_harness::seed::seeded;
use cluster_harness::{Cluster, Request, Settings};
use cluster_tests::abuse::generator::{self, Amount, Coverage, Field, GENERATED, Selection, Size, Turn};
use cluster_tests::abuse::{
    ATTACKS, Attack, Broken, FROM, Honest, Load, Measure, Measured, NICENESS, Quiet, Target, Way, create_user,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

/// Attacks clusters of three nodes, a fresh one by each kind in turn, among honest clients. Then by every combination of the generator: each
/// operation of the OpenAPI document and each call of etcd's services, by each protocol, in each shape, by each caller, from one address and
/// from two.
#[derive(Debug, Clone, Parser)]
struct Args {
    /// Seconds for all attacks together, those of the generator aside
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Seconds for those of the generator together, quiet moments between them included
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
    /// Of the generator's attacks those of this operation only, as in `--operation 'post /v1/find'` or `--operation
    /// /etcdserverpb.KV/Range`; may be repeated. They share all connections. Without ATTACK no listed attack is carried out then
    #[arg(long)]
    operation: Vec<String>,
    /// Only these attacks; `generated` for those of the generator, `generated:HTTP/2` for its waves whose names begin so
    attacks: Vec<String>,
}

/// How long a new cluster is left alone, and how long it is looked at then before it is attacked.
const REST: Duration = Duration::from_secs(3);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let args = Args::parse();
    let (mut attacks, mut begins) = (Vec::new(), Vec::new());
    for name in &args.attacks {
        if let Some(begin) = generator::begin_of(name) {
            begins.push(begin);
            continue;
        }
        let Some(attack) = Attack::named(name) else {
            let names: Vec<_> = ATTACKS.iter().map(|attack| attack.name).collect();
            eprintln!("there is no attack `{name}`; there are: {}, {GENERATED}, {GENERATED}:BEGIN", names.join(", "));
            return ExitCode::from(2);
        };
        attacks.push(attack);
    }
    if args.attacks.is_empty() {
        attacks = if args.operation.is_empty() { ATTACKS.iter().collect() } else { Vec::new() };
        begins.push("");
    }
    let selection = match Selection::of(&begins, &args.operation, &generator::names()) {
        Ok(selection) => selection,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let mut settings = Settings::default();
    for flag in &args.node_flag {
        let Some((name, value)) = flag.split_once('=') else {
            eprintln!("--node-flag {flag}: say NAME=VALUE");
            return ExitCode::from(2);
        };
        settings = settings.flag(&format!("--{name}"), value);
    }
    let mut failed = listed(&args, &attacks, &settings).await;
    failed.extend(generated(&args, &selection, &settings).await);
    if failed.is_empty() {
        println!("\nThe measure held under all of them; after each, all nodes lived and held the same state.");
        return ExitCode::SUCCESS;
    }
    println!("\nFAILED");
    failed.iter().for_each(|sentence| println!("- {sentence}"));
    ExitCode::FAILURE
}

/// Who is honest.
const HONEST: &str = "honest";
/// Who turns hostile.
const HOSTILE: &str = "hostile";
/// Part of the honest writes that has to be left.
const RATE_KEPT: f64 = 0.5;
/// Part of them that has to be back at the end of a protocol, when nobody attacks any more: what a wave leaves behind adds up over all of them,
/// and a machine that gets slower by itself takes less than that.
const RATE_BACK: f64 = 0.75;
/// Waves that are named once more at the end: those that left the least.
const LEAST: usize = 10;
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

/// The account of the generator's attacks.
struct Account {
    coverage: Coverage,
    /// The part of honest writes that each wave left, of how many a second, and its name.
    kept: Vec<(f64, f64, String)>,
    /// What did not hold, in words.
    failed: Vec<String>,
}

/// The combinations of the generator that are selected, by each protocol on a cluster of its own. Gives what did not hold, in words.
async fn generated(args: &Args, selection: &Selection, settings: &Settings) -> Vec<String> {
    let ways: Vec<_> = Way::ALL.into_iter().filter(|way| selection.count(*way) > 0).collect();
    if ways.is_empty() {
        return Vec::new();
    }
    let mut dice = seeded();
    println!(
        "\n| generated attack | honest writes/s: without it | under it | kept | mean | sessions lost | elections | memory |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    let coverage = Coverage::of(Way::ALL.into_iter().filter(|way| selection.is_whole(*way)));
    let mut account = Account { coverage, kept: Vec::new(), failed: Vec::new() };
    let time = Duration::from_secs(args.generated_seconds).saturating_sub(2 * REST * ways.len() as u32);
    let turn = Turn::of(time, ways.iter().map(|way| selection.count(*way)).sum(), ways.len());
    for way in Way::ALL {
        // Each protocol has dice of its own, so its requests are the same whichever others are selected.
        let mut dice = StdRng::seed_from_u64(dice.random());
        if ways.contains(&way) {
            generated_by(way, args, selection, turn, settings.clone(), &mut dice, &mut account).await;
        }
    }
    let Account { coverage, mut kept, mut failed } = account;
    kept.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
    println!("\nThe least was kept under these:");
    for (part, quiet, name) in kept.iter().take(LEAST) {
        println!("- {:.0} % of {quiet:.0} honest writes/s: {name}", part * 100.0);
    }
    println!("\n{}", coverage.table());
    failed.extend(coverage.missing());
    failed
}

async fn generated_by(
    way: Way,
    args: &Args,
    selection: &Selection,
    turn: Turn,
    settings: Settings,
    dice: &mut StdRng,
    account: &mut Account,
) {
    let Account { coverage, kept, failed } = account;
    let mut cluster = Cluster::start_with(settings.guarded(ROOT)).await;
    let nodes: Vec<u32> = cluster.ids().iter().map(|id| cluster.process_id(*id)).collect();
    let field = Field::prepare(&cluster, ROOT, Amount { large: 5, large_bytes: 1_000_000, small: 10_000 }, dice).await;
    let nobody = field.rest(REST).await;
    let mut waves = generator::all(&field.operations);
    waves.retain(|wave| wave.way == way && selection.has(wave));
    waves.iter_mut().for_each(|wave| selection.narrow(wave));
    assert!(waves.iter().all(|wave| !wave.combinations.is_empty()), "nodes know what they are asked for");
    let Turn { quiet, hold } = turn;
    let size = Size {
        connections: args.connections,
        largest: 1_000_000,
        short: 256 * 1_024,
        drop_every: Duration::from_millis(500),
        quiet,
        hold,
        hold_max: (4 * hold).max(Duration::from_secs(20)),
        niceness: args.niceness,
    };
    // Each writer and reader asks again almost as soon as it has its answer: together they ask for nearly as much as nodes can do.
    let load = Load {
        callers: &field.honest(),
        nodes: &field.nodes,
        ways: &Way::ALL,
        sessions: args.sessions,
        writers: 4 * args.writers,
        readers: args.writers,
        every: Duration::from_millis(1),
    };
    let honest = load.start();
    tokio::time::sleep(REST).await;
    // From the first quiet moment to the last.
    let mut span: Option<Quiet> = None;
    let wrong = generator::run(&field, &waves, &size, &honest, &nodes, coverage, |wave, measured, quiet| {
        let rate = quiet.rate(RATE_KEPT);
        let measure = Measure { quiet: rate, rate_kept: RATE_KEPT, memory: args.memory_mib << 20 };
        println!("| {} | {}", wave.name, numbers(measured, &measure));
        failed.extend(measure.judge(measured).into_iter().map(|broken| format!("{}: {broken}", wave.name)));
        kept.push((measure.kept(measured), rate, wave.name.clone()));
        span = Some(Quiet { before: span.map_or(quiet.before, |span| span.before), after: quiet.after });
    })
    .await;
    failed.extend(wrong);
    if let Some(Quiet { before, after }) = span.filter(|span| span.has_fallen(RATE_BACK)) {
        failed.push(format!("{way}: from {before:.0} to {after:.0} honest writes/s though nobody attacks"));
    }
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
    let measure = Measure { quiet: quiet.writes_per_second, rate_kept: RATE_KEPT, memory: args.memory_mib << 20 };
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
    let kept = measure.kept(measured) * 100.0;
    format!(
        "{quiet:.0} | {writes_per_second:.0} | {kept:.0} % | {:.1} ms | {lost} | {elections} | {} MiB |",
        write_took.as_secs_f64() * 1e3,
        memory >> 20
    )
}
