//! The outcome of a seed, and its summary in words.
//!
//! Owns the form in which a process hands it to the one that started it. Never judges anything.

use std::collections::{BTreeMap, BTreeSet};

use quorate_threads::watchdog::SAID;
use serde::{Deserialize, Serialize};

/// The outcome of a seed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Operations of clients.
    pub operations: u64,
    /// Operations whose outcome no client learned.
    pub unknown: u64,
    /// Faults.
    pub faults: u64,
    /// Log groups that a crash left in part: some of their sectors.
    pub torn: u64,
    /// Changes of members that were made.
    pub member_changes: u64,
    /// Milliseconds of virtual time.
    pub millis: u64,
    /// How many clients asked everything there is to ask.
    pub api_clients: usize,
    /// A number of everything that happened.
    pub trace: u64,
    /// Kinds of faults.
    pub kinds: BTreeSet<String>,
    /// Broken rules, in words.
    pub broken: Vec<String>,
    /// Rules that could not tell.
    pub undecided: Vec<String>,
    /// Kinds of steps that kept a thread for too long, and for how long at most, in milliseconds. The seed decides the work of a step, not its
    /// time.
    pub long_steps: BTreeMap<String, u64>,
}

impl Outcome {
    /// Whether every rule could tell, and nothing is broken.
    pub fn is_sound(&self) -> bool {
        self.broken.is_empty() && self.undecided.is_empty() && self.long_steps.is_empty()
    }

    /// Says what is wrong, if anything is, and how to see it again: with the seed and the other options that made the `story`.
    pub fn tell(&self, story: &[String]) {
        self.broken.iter().for_each(|found| println!("seed {}: BROKEN: {found}", self.seed));
        self.undecided.iter().for_each(|rule| println!("seed {}: UNDECIDED: {rule}", self.seed));
        self.long_steps
            .iter()
            .for_each(|(what, ms)| println!("seed {}: BROKEN: {SAID}: {what}, for {ms} ms", self.seed));
        if !self.is_sound() {
            let only = ["simulate".to_owned(), "--only".to_owned(), self.seed.to_string()];
            println!("show it again with: {}", [&only[..], story].concat().join(" "));
        }
    }
}
