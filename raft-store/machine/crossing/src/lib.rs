//! Features meet features: every command of the state machine in every state that its target can be in.
//!
//! Owns a generator of commands over a handful of names, the recomputation of every sum and cross-reference of the rows after
//! each of them, and the table of what met what. Tests only: what is wrong is a panic that says so. Never part of a node.

#![allow(clippy::unwrap_used, reason = "a violation is a panic")]

pub mod chance;
pub mod check;
pub mod generate;
pub mod hunt;
pub mod kinds;
pub mod memory;
pub mod model;
pub mod names;
pub mod pairs;
pub mod picture;
pub mod run;
pub mod shrink;
pub mod states;
pub mod store;

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

/// Takes runs, one seed after the other. `goes_on` is asked before each, with what there was so far.
pub fn explore(seed: u64, mut goes_on: impl FnMut(u64, &Explored) -> bool) -> Explored {
    let texts = Texts::new();
    let mut explored = Explored::default();
    let mut known: Vec<Failure> = Vec::new();
    let mut runs = 0;
    while goes_on(runs, &explored) && known.len() < FAILURES_MAX {
        let of_run = seed.wrapping_add(runs);
        match quietly(|| run::run(of_run, &run::seeds(of_run), &texts, &mut |_, _| {})) {
            Ok(met) => {
                explored.met.commands += met.commands;
                explored.met.pairs.add(&met.pairs);
            }
            Err(failure) if known.iter().any(|known| known.is_like(&failure)) => {}
            Err(failure) => {
                let words = quietly(|| {
                    let shrunk = shrink::shrink(of_run, failure.clone(), &texts);
                    shrink::told(of_run, &shrunk, &texts)
                });
                explored.failures.push(format!("seed {of_run} fails; in fewer steps:\n{words}"));
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
