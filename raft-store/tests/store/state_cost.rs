//! What a put costs, printed: set `QUORATE_STATE_COST` to the number of puts, in a release build.
//!
//! The workload of the benchmark: overwrites of 10,000 keys with 256 bytes, a fresh request id each, a hundred to an entry.

use std::time::{Duration, Instant};

use quorate_machine::types::Command;
use quorate_store::raft::LogEntry;

use crate::state_support::*;

const COMMANDS: u64 = 100;
const KEYS: u64 = 10_000;

/// Puts a second of cluster time: gives the clock its speed, so that the request table has as many ids as a node has.
const PUTS_PER_SECOND: u64 = 30_000;

fn commands(index: u64, rng: &mut Rng) -> Vec<Command> {
    (0..COMMANDS)
        .map(|n| {
            let mut value = vec![0; 256];
            for word in value.chunks_exact_mut(8) {
                word.copy_from_slice(&rng.below(u64::MAX).to_le_bytes());
            }
            let id = request_id(1_763_000_000_000 + clock(index) + n % 8, rng);
            with_id(put(format!("bench/{:08}", rng.below(KEYS)), value), &id)
        })
        .collect()
}

/// As the client makes them: 20 characters base64url, the milliseconds first.
fn request_id(millis: u64, rng: &mut Rng) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let sextet = |word: u64, at: u32| char::from(alphabet[(word >> (6 * at)) as usize % 64]);
    let random = [rng.below(1 << 36), rng.below(1 << 36)];
    let random = random.iter().flat_map(|word| (0..6).map(move |at| sextet(*word, at)));
    (0..8).rev().map(|at| sextet(millis, at)).chain(random).collect()
}

fn clock(index: u64) -> u64 {
    index * COMMANDS * 1_000 / PUTS_PER_SECOND
}

fn entries(first: u64, count: u64, rng: &mut Rng) -> Vec<LogEntry> {
    (first..first + count).map(|index| batch(index, clock(index), &commands(index, rng))).collect()
}

/// CPU time of this process so far, all threads.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn us_per(spent: Duration, count: u64) -> f64 {
    spent.as_secs_f64() * 1e6 / count as f64
}

#[test]
#[expect(clippy::disallowed_methods, reason = "measures")]
fn cost_of_a_put() {
    let Ok(puts) = std::env::var("QUORATE_STATE_COST") else { return };
    let puts: u64 = puts.parse().expect("QUORATE_STATE_COST is a number");
    let group = std::env::var("QUORATE_STATE_COST_GROUP").map_or(1, |group| group.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let runtime = runtime();
    let mut rng = Rng(12_345);
    runtime.block_on(apply(&mut state, vec![blank(0)]));
    let (mut spent, mut cpu_spent) = (Duration::ZERO, Duration::ZERO);
    let mut slowest: Vec<(Duration, u64)> = Vec::new();
    let mut index = 1;
    while (index - 1) * COMMANDS < puts {
        // Made in advance, so that the CPU time of a stretch is that of the store alone.
        let mut stretch = entries(index, 500 / group * group, &mut rng).into_iter();
        let before = cpu();
        loop {
            let entries: Vec<_> = stretch.by_ref().take(group as usize).collect();
            if entries.is_empty() {
                break;
            }
            index += entries.len() as u64;
            let start = Instant::now();
            runtime.block_on(apply(&mut state, entries));
            let took = start.elapsed();
            spent += took;
            slowest.push((took, index));
        }
        cpu_spent += cpu() - before;
        slowest.sort_unstable_by(|a, b| b.cmp(a));
        slowest.truncate(10);
    }
    let done = (index - 1) * COMMANDS;
    let start = Instant::now();
    for _ in 0..100_000 {
        reader.get(&key(format!("bench/{:08}", rng.below(KEYS)))).unwrap();
    }
    let get = start.elapsed() / 100_000;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let rss = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    println!(
        "{done} puts, {group} entries a group: {:.2} us a put, {:.2} us of CPU with background work, get {get:?}, {rss}",
        us_per(spent, done),
        us_per(cpu_spent, done)
    );
    println!("slowest groups (at index): {slowest:?}");
    println!("{:?}", reader.stats().unwrap());
    if let Ok(to) = std::env::var("QUORATE_STATE_COST_LOG") {
        let dir = std::fs::read_dir(dir.path().join("state")).unwrap().map(|entry| entry.unwrap().path());
        for file in dir.flat_map(std::fs::read_dir).flatten().map(|entry| entry.unwrap().path()) {
            if file.file_name().is_some_and(|name| name == "LOG") {
                std::fs::copy(&file, &to).unwrap();
            }
        }
    }
}
