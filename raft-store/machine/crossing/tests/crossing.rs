//! Every command meets every state of its target, and nothing goes wrong.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use quorate_crossing::{Kind, explore};

/// Runs of fixed seeds that are taken in any case. The first seed is 1.
const FIXED: u64 = 100;

/// Most further runs while a pair was not met: each that can occur has to be. A change of the machine makes other runs of the same seeds.
const MORE: u64 = 500;

/// Runs of large states, of the same seeds.
const GROUPED: u64 = 60;

/// Runs of seeds that are others each time.
const OTHERS: u64 = 20;

#[test]
fn every_command_meets_every_state_of_its_target() {
    println!("seeds from 1 on");
    let mut taken = 0;
    let explored = explore(Kind::Crossing, 1, |runs, so_far| {
        let lacks = || runs < FIXED + MORE && !so_far.met.pairs.missing().is_empty();
        taken = runs;
        so_far.failures.is_empty() && (runs < FIXED || lacks())
    });
    assert!(explored.failures.is_empty(), "{}", explored.failures.join("\n\n"));
    let pairs = &explored.met.pairs;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pairs.txt");
    std::fs::write(&file, pairs.table()).unwrap();
    println!("{}\n{taken} runs, {} commands; the table is in {}", pairs.table(), explored.met.commands, file.display());
    let (missing, impossible) = (pairs.missing(), pairs.impossible());
    assert!(missing.is_empty(), "not met: {missing:#?}");
    assert!(impossible.is_empty(), "met, and said not to be: {impossible:#?}");
}

#[test]
fn what_an_entry_comes_to_does_not_depend_on_its_group() {
    println!("seeds from 1 on");
    let explored = explore(Kind::Groupings, 1, |runs, so_far| {
        let lacks = || runs < 2 * FIXED && !so_far.met.reached.missing().is_empty();
        so_far.failures.is_empty() && (runs < GROUPED || lacks())
    });
    assert!(explored.failures.is_empty(), "{}", explored.failures.join("\n\n"));
    let met = &explored.met;
    println!("{} groups of entries in {} commands: {:?}", met.groups, met.commands, met.reached);
    assert!(met.groups > 10 * GROUPED, "{} groups", met.groups);
    assert_eq!(met.reached.missing(), [""; 0], "not met");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "each time other seeds are tried")]
fn nothing_goes_wrong_from_other_seeds_each_time() {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    println!("again: cargo run -p quorate-crossing -- --seed {seed} --runs {OTHERS}");
    let goes_on = |runs, so_far: &quorate_crossing::Explored| so_far.failures.is_empty() && runs < OTHERS;
    let explored = explore(Kind::Crossing, seed, goes_on);
    assert!(explored.failures.is_empty(), "{}", explored.failures.join("\n\n"));
    let grouped = explore(Kind::Groupings, seed, goes_on);
    assert!(grouped.failures.is_empty(), "{}", grouped.failures.join("\n\n"));
    let impossible = explored.met.pairs.impossible();
    assert!(impossible.is_empty(), "met, and said not to be: {impossible:#?}");
}
