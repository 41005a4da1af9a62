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

use std::cell::Cell;
use std::panic;
use std::sync::Once;
use std::thread;

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

/// Takes runs, one seed after the other, one on each processor at a time. `goes_on` is asked before each, with what there was before those that
/// run at that time.
pub fn explore(kind: Kind, seed: u64, mut goes_on: impl FnMut(u64, &Explored) -> bool) -> Explored {
    let texts = Texts::new();
    let mut explored = Explored::default();
    let mut known: Vec<Failure> = Vec::new();
    let at_once = thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let mut runs = 0;
    while known.len() < FAILURES_MAX {
        let next = (runs..runs + at_once).take_while(|nth| goes_on(*nth, &explored));
        let seeds: Vec<u64> = next.map(|nth| seed.wrapping_add(nth)).collect();
        if seeds.is_empty() {
            break;
        }
        runs += seeds.len() as u64;
        for (of_run, came) in take_all(kind, &seeds) {
            match came {
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
        }
    }
    explored
}

/// Takes runs of these seeds, each on a thread of its own.
fn take_all(kind: Kind, of_runs: &[u64]) -> Vec<(u64, Result<Met, Failure>)> {
    let take = |of_run: u64| quietly(|| kind.take(of_run, &kind.seeds(of_run), &Texts::new()));
    thread::scope(|scope| {
        let threads: Vec<_> = of_runs.iter().map(|of_run| (*of_run, scope.spawn(move || take(*of_run)))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("what goes wrong in a run is told");
        threads.into_iter().map(|(of_run, thread)| (of_run, join(thread))).collect()
    })
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Does work whose panics are told by their caller. The hook is that of the process, and other threads want to hear of theirs.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                hook(panic);
            }
        }));
    });
    IS_QUIET.set(true);
    let done = work();
    IS_QUIET.set(false);
    done
}
