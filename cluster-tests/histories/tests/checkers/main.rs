//! The checkers of histories, tried on a store that can be broken: they accept the sound one whatever the seed, and each mutant is
//! caught by every checker that is for it. No cluster is started here.

#[path = "../../../harness/src/seed.rs"]
mod seed;

use std::time::Instant;

use cluster_histories::Verdict;
use cluster_histories::check::{Report, named};
use cluster_histories::record::{Outcome, Refused, Seen};
use cluster_histories::sim::{Mutant, simulate};
use rand::RngExt;

use seed::seeded;

/// Runs of the sound store.
const SOUND_SEEDS: usize = 12;
/// Runs within which a mutant has to be caught. Most are in the first one; some bugs show in one of three only.
const MUTANT_SEEDS_MAX: u64 = 25;

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
        let (mut missing, mut runs, since) = (checkers.to_vec(), 0, Instant::now());
        while !missing.is_empty() && runs < MUTANT_SEEDS_MAX {
            let history = simulate(seed.wrapping_add(runs), Some(mutant));
            missing.retain(|name| !(named(name).expect("a checker of this name").check)(&history).is_broken());
            runs += 1;
        }
        let took = since.elapsed();
        println!(
            "{mutant:?} from seed {seed}: caught by {checkers:?} within {runs} runs, but for {missing:?}; {took:.1?}"
        );
        survivors.extend(missing.iter().map(|name| format!("{mutant:?} was not seen by {name}, seeds from {seed} on")));
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

#[test]
fn a_run_in_which_everything_was_refused_proves_nothing() {
    let coverage = named("coverage").expect("a checker of this name");
    let mut history = simulate(1, None);
    for record in &mut history.records {
        if let Outcome::Decided(decided) = &mut record.outcome
            && matches!(decided.seen, Seen::Written(_))
        {
            decided.seen = Seen::Refused(Refused { code: "already_exists".into(), current: None });
        }
    }
    assert!(matches!((coverage.check)(&history), Verdict::Unknown(_)));
}
