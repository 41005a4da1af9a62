//! Attacks that a generator makes: every operation of the OpenAPI document and every call of etcd's services, by each protocol, in each
//! shape, among honest clients that ask by all protocols.
//!
//! `scripts/abuse` carries out all combinations, for longer and with optimisation; here the caller of each is drawn.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cluster_harness::seed::seeded;
use cluster_harness::{Cluster, Settings};
use cluster_tests::abuse::generator::{Amount, Coverage, Field, Size, run, some};
use cluster_tests::abuse::{Load, NICENESS, Way};

/// The token of root.
const ROOT: &str = "7c2e3c0b6a6f4a0cb7a2f5e1c9d8b7a65f0d3c0b6a6f4a0c";
const AMOUNT: Amount = Amount { large: 6, large_bytes: 200_000, small: 300 };
const SIZE: Size = Size {
    connections: 0,
    // A dear request grows with it, and an account whose requests are dear has them begin one by one.
    largest: 48 * 1_024,
    short: 16 * 1_024,
    drop_every: Duration::from_millis(100),
    // Nothing is compared here.
    quiet: Duration::ZERO,
    hold: Duration::from_millis(300),
    // A wave lasts that long where somebody else has the processors, or where each of its requests waits for those before.
    hold_max: Duration::from_secs(60),
    niceness: NICENESS,
};
/// The memory that a node may take, bytes: as much as for what clients send and do not read.
const MEMORY: u64 = 1_500 << 20;

pub async fn honest_clients_go_on_under_every_shape_of_every_request_and_all_is_given_back() {
    let mut dice = seeded();
    let mut cluster = Cluster::start_with(Settings::default().guarded(ROOT).alone()).await;
    let processes: Vec<u32> = cluster.ids().iter().map(|id| cluster.process_id(*id)).collect();
    let field = Field::prepare(&cluster, ROOT, AMOUNT, &mut dice).await;
    let nobody = field.rest(Duration::from_millis(500)).await;
    let load = Load {
        callers: &field.honest(),
        nodes: &field.nodes,
        ways: &Way::ALL,
        sessions: 8,
        writers: 4,
        readers: 4,
        every: Duration::from_millis(100),
    };
    let honest = load.start();
    let waves = some(&field.operations, &mut dice);
    let (begun, mut coverage, mut memory) = (Instant::now(), Coverage::of(Way::ALL), 0);
    let wrong = run(&field, &waves, &SIZE, &honest, &processes, &mut coverage, |wave, measured, _quiet| {
        println!("{:5.1} s  {}: {measured:?}", begun.elapsed().as_secs_f64(), wave.name);
        memory = measured.memory.max(memory);
    })
    .await;
    let (took, seen) = (begun.elapsed().as_secs_f64(), &honest.seen);
    let numbers = [&seen.writes, &seen.reads, &seen.missed, &seen.lost, &seen.term];
    let [writes, reads, missed, lost, term] = numbers.map(|number| number.load(Ordering::Relaxed));
    println!("{took:.1} s: {writes} writes, {reads} reads, {missed} missed, {lost} sessions lost, term {term}");
    drop(honest);
    println!("{}", coverage.table());
    assert!(
        wrong.is_empty(),
        "faults of nodes, or what they do not give back; the seed above repeats it:\n{}",
        wrong.join("\n")
    );
    let missing = coverage.missing();
    assert!(missing.is_empty(), "not all was attacked, so the rest shows little:\n{}", missing.join("\n"));
    // Nodes and all clients share the processors with what else runs here: `scripts/abuse` asks for more.
    let under = "the waves above have the numbers of each, and `scripts/abuse generated` those of a release build";
    assert_eq!(lost, 0, "honest sessions ended, or were not opened; {under}");
    assert!(term <= 3, "{term} terms, and a cluster begins with the first; {under}");
    assert!(writes as f64 > 2.0 * took, "{writes} honest writes in {took:.1} s; {under}");
    // A quarter would be missed if one of the four protocols did not serve.
    assert!(missed * 10 < writes + reads, "{missed} of {} asked for in vain; {under}", writes + reads + missed);
    assert!(memory < MEMORY, "a node took {} MiB; {under}", memory >> 20);
    if let Err(left) = field.comes_back(&nobody).await {
        panic!("not given back though nobody asks any more; `quorate node callers` names who holds it: {left}");
    }
    cluster.wait_all_ready().await;
    cluster.assert_agreement().await;
}
