//! What a checker says of a history.
//!
//! Owns how a counterexample is shown: one sentence, then the operations that contradict one another, in words.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::file::History;

/// Most operations that a counterexample shows.
const SHOWN_MAX: usize = 12;

/// What a checker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The rule holds of all of these, as many as were looked at.
    Holds(u64),
    /// It does not.
    Broken(Box<Counterexample>),
    /// It cannot be told, for this reason.
    Unknown(String),
}

/// Why a rule does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterexample {
    /// What contradicts what.
    pub what: String,
    /// The numbers of the operations that show it.
    pub records: BTreeSet<u64>,
}

impl Counterexample {
    /// A contradiction between these operations.
    pub fn new(what: impl Into<String>, records: impl IntoIterator<Item = u64>) -> Box<Self> {
        Box::new(Self { what: what.into(), records: records.into_iter().collect() })
    }

    /// In words.
    pub fn describe(&self, history: &History) -> String {
        let mut text = self.what.clone();
        for id in self.records.iter().take(SHOWN_MAX) {
            let line = history.record(*id).map_or_else(|| format!("[{id}] is not in the history"), ToString::to_string);
            write!(text, "\n    {line}").expect("a string takes everything");
        }
        if let Some(more) = self.records.len().checked_sub(SHOWN_MAX + 1) {
            write!(text, "\n    and {} more", more + 1).expect("a string takes everything");
        }
        text
    }
}

impl Verdict {
    /// That of a checker which stops at the first contradiction.
    pub fn of(checked: Result<u64, Box<Counterexample>>) -> Self {
        checked.map_or_else(Self::Broken, Self::Holds)
    }

    /// Whether the rule is broken.
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::Broken(_))
    }
}
