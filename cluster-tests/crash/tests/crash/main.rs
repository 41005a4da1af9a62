//! One node's storage after power losses and after `kill -9`, and whether a forgotten sync would be noticed. No cluster is
//! started here; `crash --minutes N` does the same for longer.

#[path = "../../../harness/src/seed.rs"]
mod seed;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crash_search::kill;
use crash_search::mutant::Mutant;
use crash_search::power::{self, Counts, Ground};
use rand::RngExt;
use rand::rngs::StdRng;

use seed::seeded;

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_crash").into()
}

fn effort(dice: &mut StdRng, steps: u64) -> power::Effort {
    power::Effort { program: program(), seed: dice.random(), steps, threads: 2, share: 1.0, until: None }
}

#[test]
fn a_power_loss_at_any_sync_breaks_no_promise() {
    const LIVES: u64 = 3;
    const WALK_MAX: Duration = Duration::from_secs(4);
    let mut dice = seeded();
    let mut effort = effort(&mut dice, 100);
    let (mut ground, mut counts, mut life) = (Ground::empty(), Counts::default(), 0);
    // A slow machine needs more of them until enough was tried.
    while life < LIVES || counts.boundaries <= 50 || counts.acked <= 20 {
        let record = power::record(&effort, ground, &mut dice).unwrap();
        effort.until = Some(Instant::now() + WALK_MAX);
        let walked = power::walk(&effort, &record, None, &mut dice, &mut counts).unwrap();
        ground = walked.unwrap_or_else(|broken| panic!("life {life}: {broken}"));
        life += 1;
        println!("{life} lives: {counts:?}");
    }
}

#[test]
fn a_sync_that_is_left_out_is_noticed() {
    /// A life may do without one kind of sync or another.
    const RECORDS_MAX: u64 = 4;
    let mut dice = seeded();
    let mut left: Vec<Mutant> = Mutant::all().to_vec();
    for _ in 0..RECORDS_MAX {
        if left.is_empty() {
            break;
        }
        let effort = effort(&mut dice, 200);
        let record = power::record(&effort, Ground::empty(), &mut dice).unwrap();
        left.retain(|mutant| {
            let mut counts = Counts::default();
            let begun = Instant::now();
            let walked = power::walk(&effort, &record, Some(*mutant), &mut dice, &mut counts).unwrap();
            let said = walked.err().map(|broken| broken.fault);
            println!("{}: {counts:?} {:?} {said:?}", mutant.name(), begun.elapsed());
            said.is_none()
        });
    }
    assert!(left.is_empty(), "nobody noticed that these were left out: {left:?}");
}

#[test]
fn kill_9_at_any_moment_breaks_no_promise() {
    const CYCLES: u64 = 150;
    /// Rounds within which enough has to be tried. One is enough where nothing else runs.
    const ROUNDS_MAX: u64 = 5;
    let is_enough =
        |counts: &kill::Counts| counts.cycles > 30 && counts.acked > 30 && counts.in_recovery < counts.cycles;
    let (mut dice, mut counts) = (seeded(), kill::Counts::default());
    for _ in 0..ROUNDS_MAX {
        let until = Some(Instant::now() + Duration::from_secs(18));
        let effort = |seed| kill::Effort { program: program(), seed, cycles: CYCLES, until };
        let (more, broken) = kill::run_all(&[effort(dice.random()), effort(dice.random())]).unwrap();
        counts = counts.with(more);
        println!("{counts:?}");
        assert!(broken.is_none(), "{}", broken.unwrap());
        if is_enough(&counts) {
            break;
        }
    }
    assert!(is_enough(&counts), "{counts:?}");
}
