//! What an apply costs, printed: set `QUORATE_STATE_COST` to the number of puts.

mod state_support;

use quorate_store::types::Command;
use state_support::*;

#[test]
#[expect(clippy::disallowed_methods, reason = "measures")]
fn cost_of_an_apply() {
    let Ok(puts) = std::env::var("QUORATE_STATE_COST") else { return };
    let puts: u64 = puts.parse().unwrap();
    for (commands, entries) in [(1u64, 1u64), (16, 4), (256, 2), (1024, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let (mut state, reader) = open(dir.path());
        let runtime = runtime();
        runtime.block_on(apply(&mut state, vec![blank(0)]));
        let mut index = 1u64;
        let mut next = || {
            index += 1;
            let base = index * commands;
            let commands: Vec<Command> = (0..commands)
                .map(|n| {
                    with_id(
                        put(format!("bench/{:08}", (base + n).wrapping_mul(7_919) % 100_000), vec![b'v'; 256]),
                        &format!("{:032x}", u128::from(base + n) << 64),
                    )
                })
                .collect();
            batch(index - 1, index, &commands)
        };
        let mut spent = std::time::Duration::ZERO;
        let mut worst = std::time::Duration::ZERO;
        let mut done = 0;
        while done < puts {
            let group: Vec<_> = (0..entries).map(|_| next()).collect();
            done += commands * entries;
            let start = std::time::Instant::now();
            runtime.block_on(apply(&mut state, group));
            let took = start.elapsed();
            spent += took;
            worst = worst.max(took);
        }
        let start = std::time::Instant::now();
        for n in 0..100_000u64 {
            reader.get(&key(format!("bench/{:08}", n.wrapping_mul(7_919) % 100_000))).unwrap();
        }
        let get = start.elapsed() / 100_000;
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let rss = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        println!(
            "{entries} entries of {commands} puts: {:.2} us a put, worst group {worst:?}, get {get:?}, {rss}, {:?}",
            spent.as_secs_f64() * 1e6 / done as f64,
            reader.stats().unwrap()
        );
    }
}
