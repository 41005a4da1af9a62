//! How soon each bug on purpose is found.
//!
//! Owns putting one in at a time, looking until a run fails, and the table of it. What a mutant does stands in the machine.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use quorate_machine::mutants::{self, Mutant};

use crate::names::Texts;
use crate::{Kind, quietly};

/// No bug is looked for longer.
pub const LONGEST: Duration = Duration::from_secs(60);

/// What came of looking for one.
#[derive(Debug, Clone)]
pub struct Hunted {
    /// The deliberate bug.
    pub mutant: Mutant,
    /// Commands applied until it was found, or altogether.
    pub commands: u64,
    /// How long that took.
    pub took: Duration,
    /// The failure in as few steps as can be found, and how many those are; `None` where it was not found.
    pub found: Option<(usize, String)>,
}

/// Looks for one mutant, from a seed on.
#[expect(clippy::disallowed_methods, reason = "it bounds how long it takes")]
pub fn hunt(mutant: Mutant, seed: u64) -> Hunted {
    let (texts, start) = (Texts::new(), Instant::now());
    let mut hunted = Hunted { mutant, commands: 0, took: Duration::ZERO, found: None };
    let runs = (0..)
        .map(|nth| seed.wrapping_add(nth))
        .flat_map(|of_run| [(of_run, Kind::Crossing), (of_run, Kind::Groupings)]);
    for (of_run, kind) in runs {
        let take = || quietly(|| kind.take(of_run, &kind.seeds(of_run), &texts));
        let came = mutants::with(Some(mutant), take);
        hunted.took = start.elapsed();
        match came {
            Ok(met) => hunted.commands += met.commands,
            Err(failure) => {
                hunted.commands += failure.commands;
                hunted.found = Some(mutants::with(Some(mutant), || quietly(|| kind.told(of_run, failure, &texts))));
                break;
            }
        }
        if hunted.took > LONGEST {
            break;
        }
    }
    hunted
}

/// Lines of a table in Markdown, one for each.
pub fn table(all: &[Hunted]) -> String {
    let mut text =
        "| mutant | what it forgets | commands | seconds | steps, shrunk |\n|---|---|---|---|---|\n".to_owned();
    for Hunted { mutant, commands, took, found } in all {
        let forgets = mutant.forgets();
        let steps = found.as_ref().map_or("not found".to_owned(), |(steps, _)| steps.to_string());
        let seconds = took.as_secs_f64();
        let _infallible = writeln!(text, "| {mutant} | {forgets} | {commands} | {seconds:.2} | {steps} |");
    }
    text
}
