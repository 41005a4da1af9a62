//! Features meet features: every command of the state machine in every state that its target can be in.
//!
//! Owns a generator of commands over a handful of names, the recomputation of every sum and cross-reference of the rows after
//! each of them, and the table of what met what. Tests only: what is wrong is a panic that says so. Never part of a node.

#![allow(clippy::unwrap_used, reason = "a violation is a panic")]

pub mod chance;
pub mod check;
pub mod dearest;
pub mod generate;
pub mod groupings;
pub mod hunt;
pub mod kinds;
pub mod memory;
pub mod model;
pub mod names;
pub mod pairs;
pub mod picture;
pub mod reached;
pub mod run;
pub mod shrink;
pub mod states;
pub mod store;
pub mod twins;

use std::panic;

use crate::names::Texts;
use crate::run::{Failure, Met};

/// What all runs met, and the failures of those that failed, each in as few steps as can be found.
#[derive(Debug, Default)]
pub struct Explored {
    /// What all runs met.
    pub met: Met,
    /// What went wrong, no two alike.
    pub failures: Vec<String>,
}

/// No more failures are looked for than this.
const FAILURES_MAX: usize = 8;

/// What a run is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Every command in every state, each outcome compared with a model.
    Crossing,
    /// Much at once, within bounds that are lowered: see [`groupings`].
    Groupings,
}

impl Kind {
    /// The seeds of the steps of a run.
    pub fn seeds(self, of_run: u64) -> Vec<u64> {
        let steps = match self {
            Self::Crossing => run::STEPS,
            Self::Groupings => groupings::STEPS,
        };
        run::seeds(of_run, steps)
    }

    /// Takes the steps of a run.
    pub fn take(self, of_run: u64, seeds: &[u64], texts: &Texts) -> Result<Met, Failure> {
        match self {
            Self::Crossing => run::run(of_run, seeds, texts, &mut |_, _| {}),
            Self::Groupings => groupings::run(of_run, seeds, texts),
        }
    }

    /// A failure in few steps, and how many those are.
    fn told(self, of_run: u64, failure: Failure, texts: &Texts) -> (usize, String) {
        let shrunk = shrink::shrink(failure, |seeds| self.take(of_run, seeds, texts));
        let words = match self {
            Self::Crossing => shrink::told(of_run, &shrunk, texts),
            Self::Groupings => {
                format!("{} steps by their seeds, {:?}\n=> {}", shrunk.seeds.len(), shrunk.seeds, shrunk.words)
            }
        };
        (shrunk.seeds.len(), words)
    }
}

/// Takes runs, one seed after the other. `goes_on` is asked before each, with what there was so far.
pub fn explore(kind: Kind, seed: u64, mut goes_on: impl FnMut(u64, &Explored) -> bool) -> Explored {
    let texts = Texts::new();
    let mut explored = Explored::default();
    let mut known: Vec<Failure> = Vec::new();
    let mut runs = 0;
    while goes_on(runs, &explored) && known.len() < FAILURES_MAX {
        let of_run = seed.wrapping_add(runs);
        match quietly(|| kind.take(of_run, &kind.seeds(of_run), &texts)) {
            Ok(met) => {
                explored.met.commands += met.commands;
                explored.met.groups += met.groups;
                explored.met.reached.add(&met.reached);
                explored.met.pairs.add(&met.pairs);
            }
            Err(failure) if known.iter().any(|known| known.is_like(&failure)) => {}
            Err(failure) => {
                let (_, words) = quietly(|| kind.told(of_run, failure.clone(), &texts));
                explored.failures.push(format!("seed {of_run} of {kind:?} fails; in fewer steps:\n{words}"));
                known.push(failure);
            }
        }
        runs += 1;
    }
    explored
}

/// Does work whose panics are told by their caller.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let done = work();
    panic::set_hook(hook);
    done
}
