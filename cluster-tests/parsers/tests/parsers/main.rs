//! What reads bytes of others, tried on the corpus in `fuzz/corpus` and on seeded changes of it. `QUORATE_BLESS=1` makes the corpus anew;
//! `fuzz-parsers` does the same for longer. No cluster is started here.

mod api;
#[path = "../../../harness/src/seed.rs"]
mod seed;

use std::path::Path;
use std::time::Duration;

use parser_fuzzing::memory::Counting;
use parser_fuzzing::{TARGETS, replay};
use rand::RngExt;

use seed::seeded;

#[global_allocator]
static COUNTING: Counting = Counting;

/// For each target.
const DURING: Duration = Duration::from_millis(1_300);

#[test]
fn no_bytes_make_a_parser_break_a_promise() {
    if std::env::var_os("QUORATE_BLESS").is_some() {
        TARGETS.iter().for_each(|target| replay::bless(target).expect("the corpus can be written"));
    }
    let mut dice = seeded();
    let seeds = TARGETS.map(|target| (target, dice.random::<u32>()));
    let failures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parsers");
    let mut failed = Vec::new();
    for (target, seed) in seeds {
        let replayed = replay::run(&target, seed.into(), DURING, &failures).expect("the corpus can be read");
        println!("{}: {} inputs", target.name, replayed.tries);
        if let Some((path, why)) = replayed.failure {
            failed.push(format!("fuzz-parsers --only {} --replay {}\n{why}", target.name, path.display()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn a_length_that_makes_a_reader_ask_for_memory_is_noticed() {
    use parser_fuzzing::memory::within;
    let caught = std::panic::catch_unwind(|| within(1_000, "this", || drop(Vec::<u8>::with_capacity(5_000))));
    assert!(caught.is_err(), "5,000 bytes within 1,000");
    within(10_000, "that", || drop(Vec::<u8>::with_capacity(5_000)));
}
