//! Attacks that a generator makes: every operation of the OpenAPI document and every call of etcd's services, by each protocol, in each
//! shape, among honest clients that ask by all protocols.
//!
//! `scripts/abuse` carries out all combinations, for longer and with optimisation; here the caller of each is drawn.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cluster_tests::abuse::generator::{Amount, Coverage, Field, Size, run, some};
use cluster_tests::abuse::{FROM, Load, NICENESS, Way};
use cluster_tests::seed::seeded;
use cluster_tests::{Cluster, Settings};

/// The token of root.
const ROOT: &str = "7c2e3c0b6a6f4a0cb7a2f5e1c9d8b7a65f0d3c0b6a6f4a0c";
const AMOUNT: Amount = Amount { large: 6, large_bytes: 200_000, small: 300 };
const SIZE: Size = Size {
    connections: 0,
    largest: 128 * 1_024,
    short: 16 * 1_024,
    drop_every: Duration::from_millis(100),
    hold: Duration::from_millis(600),
    hold_max: Duration::from_secs(8),
    niceness: NICENESS,
};
/// As for what clients send and do not read.
const MEMORY: u64 = 1_500 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn honest_clients_go_on_under_every_shape_of_every_request_and_all_is_given_back() {
    let mut dice = seeded();
    let mut cluster = Cluster::start_with(Settings::default().guarded(ROOT).alone()).await;
    let processes: Vec<u32> = cluster.ids().iter().map(|id| cluster.process_id(*id)).collect();
    let field = Field::prepare(&cluster, ROOT, AMOUNT, &mut dice).await;
    let nobody = field.rest(Duration::from_millis(500)).await;
    let load = Load {
        from: FROM,
        nodes: &field.nodes,
        token: Some(&field.honest),
        ways: &Way::ALL,
        sessions: 8,
        writers: 4,
        readers: 4,
        every: Duration::from_millis(100),
    };
    let honest = load.start();
    let waves = some(&field.operations, &mut dice);
    let (begun, mut coverage, mut memory) = (Instant::now(), Coverage::default(), 0);
    let wrong = run(&field, &waves, &SIZE, &honest, &processes, &mut coverage, |wave, measured| {
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
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(coverage.missing(), Vec::<String>::new());
    assert_eq!(lost, 0, "sessions lost");
    // Nodes and all clients share the processors with what else runs here: `scripts/abuse` asks for none.
    assert!(term <= 3, "{term} terms, and a cluster begins with the first");
    assert!(writes as f64 > 2.0 * took, "{writes} writes in {took} s");
    // Where one of the four protocols did not serve, it would be a quarter.
    assert!(missed * 10 < writes + reads, "{missed} of {} were missed", writes + reads + missed);
    assert!(memory < MEMORY, "{} MiB", memory >> 20);
    let given_back = field.comes_back(&nobody).await;
    assert_eq!(given_back, Ok(()), "once nobody asks any more");
    cluster.wait_all_ready().await;
    cluster.assert_agreement().await;
}
