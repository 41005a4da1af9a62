//! The checkers: each a pure function from a history to a verdict.
//!
//! Owns their list and the report of all of them. Each file here owns one rule and knows nothing of the others.

pub mod coverage;
pub mod liveness;
pub mod locals;
pub mod locks;
pub mod phantoms;
pub mod retries;
pub mod search;
pub mod sessions;
pub mod set;
pub mod tasks;
pub mod watches;
pub mod witness;

use std::fmt::Write;

use super::{History, Verdict};

/// A rule and what judges it.
#[derive(Debug, Clone, Copy)]
pub struct Checker {
    /// Its name.
    pub name: &'static str,
    /// What has to hold.
    pub rule: &'static str,
    /// The judge.
    pub check: fn(&History) -> Verdict,
}

/// All of them, the strongest first.
pub const CHECKERS: [Checker; 12] = [
    Checker { name: "witness", rule: "the revisions are an order that explains every answer", check: witness::check },
    Checker { name: "search", rule: "each key alone has an order that explains its values", check: search::check },
    Checker { name: "phantoms", rule: "every value was written by somebody, and once", check: phantoms::check },
    Checker { name: "set", rule: "what was added stays", check: set::check },
    Checker { name: "locals", rule: "no node shows less than it showed, nor than was asked for", check: locals::check },
    Checker { name: "watches", rule: "watches show every change once and in order", check: watches::check },
    Checker { name: "locks", rule: "one holder at a time, tokens only grow, guards hold", check: locks::check },
    Checker { name: "sessions", rule: "nothing ends early, nor much too late", check: sessions::check },
    Checker { name: "tasks", rule: "each task is done once, and none before its time", check: tasks::check },
    Checker { name: "retries", rule: "one request id has one answer", check: retries::check },
    Checker { name: "liveness", rule: "once faults are over, everything goes on", check: liveness::check },
    Checker { name: "coverage", rule: "enough happened to prove something", check: coverage::check },
];

/// The checker of this name.
pub fn named(name: &str) -> Option<&'static Checker> {
    CHECKERS.iter().find(|checker| checker.name == name)
}

/// What all checkers say.
#[derive(Debug, Clone)]
pub struct Report {
    /// Each with its verdict.
    pub verdicts: Vec<(&'static Checker, Verdict)>,
}

impl Report {
    /// That of a history.
    pub fn of(history: &History) -> Self {
        Self { verdicts: CHECKERS.iter().map(|checker| (checker, (checker.check)(history))).collect() }
    }

    /// Those whose rule is broken.
    pub fn broken(&self) -> Vec<&'static str> {
        let broken = self.verdicts.iter().filter(|(_, verdict)| verdict.is_broken());
        broken.map(|(checker, _)| checker.name).collect()
    }

    /// Those that could not tell.
    pub fn unknown(&self) -> Vec<&'static str> {
        let unknown = self.verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Unknown(_)));
        unknown.map(|(checker, _)| checker.name).collect()
    }

    /// In words, one paragraph for each.
    pub fn describe(&self, history: &History) -> String {
        let mut text = String::new();
        for (Checker { name, rule, .. }, verdict) in &self.verdicts {
            let said = match verdict {
                Verdict::Holds(checked) => format!("holds ({checked} checked)"),
                Verdict::Unknown(why) => format!("unknown: {why}"),
                Verdict::Broken(found) => format!("BROKEN: {}", found.describe(history)),
            };
            writeln!(text, "{name:10} {rule}: {said}").expect("a string takes everything");
        }
        text
    }
}
