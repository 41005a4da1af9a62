//! The checkers of histories, tried on a store that can be broken: they accept the sound one whatever the seed, and each mutant is
//! caught by every checker that is for it. No cluster is started here.

use cluster_tests::history::check::{Report, named};
use cluster_tests::history::sim::{Mutant, simulate};
use cluster_tests::history::{History, Verdict};
use cluster_tests::seed::seeded;
use rand::RngExt;

/// Runs of the sound store.
const SOUND_SEEDS: usize = 20;
/// Runs within which a mutant has to be caught.
const MUTANT_SEEDS: u64 = 3;

#[test]
fn the_sound_store_is_accepted_whatever_the_seed() {
    let mut dice = seeded();
    for _ in 0..SOUND_SEEDS {
        let seed = dice.random();
        let history = simulate(seed, None);
        let report = Report::of(&history);
        let doubts = (report.broken(), report.unknown());
        assert_eq!(doubts, (Vec::new(), Vec::new()), "seed {seed}:\n{}", report.describe(&history));
    }
}

#[test]
fn each_mutant_is_caught_by_every_checker_that_is_for_it() {
    let mut dice = seeded();
    let mut survivors = Vec::new();
    for (mutant, checkers) in Mutant::ALL {
        let seed: u64 = dice.random();
        let histories: Vec<History> = (0..MUTANT_SEEDS).map(|n| simulate(seed.wrapping_add(n), Some(mutant))).collect();
        for name in checkers {
            let checker = named(name).expect("a checker of this name");
            let caught = histories.iter().filter(|history| (checker.check)(history).is_broken()).count();
            println!("{mutant:?} from seed {seed}: {name} caught {caught} of {MUTANT_SEEDS}");
            if caught == 0 {
                survivors.push(format!("{mutant:?} was not seen by {name}, seeds from {seed} on"));
            }
        }
    }
    assert!(survivors.is_empty(), "{}", survivors.join("\n"));
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let seed = seeded().random();
    assert_eq!(simulate(seed, None), simulate(seed, None), "seed {seed}");
}

#[test]
fn a_run_in_which_too_little_happened_proves_nothing() {
    let coverage = named("coverage").expect("a checker of this name");
    let mut history = simulate(1, None);
    assert!(matches!((coverage.check)(&history), Verdict::Holds(_)));
    history.records.truncate(200);
    assert!(matches!((coverage.check)(&history), Verdict::Unknown(_)), "nothing was done after the faults");
    history.records.clear();
    assert!(matches!((coverage.check)(&history), Verdict::Unknown(_)), "nothing was done at all");
}
