//! Histories: what clients did and were told while things went wrong, and whether the promises held all the same.
//!
//! Owns the record of a run and its checkers, each a pure function of the history. Never talks to a node: a history of a real
//! cluster, of the simulated store and of a file are checked by the same code.
//!
//! Order of reading: `operation` and `record` (the vocabulary), `file` (a history and its form), `recorder` (how it comes
//! about), `model` (what a sound store answers), `timeline` (which operation took effect at which revision), `check` (the
//! checkers), `sim` (a store that can be broken, to try them on).

pub mod check;
pub mod file;
pub mod model;
pub mod operation;
mod operation_words;
pub mod outages;
pub mod record;
mod record_words;
pub mod recorder;
pub mod sim;
pub mod timeline;
pub mod verdict;

pub use file::History;
pub use recorder::Recorder;
pub use verdict::{Counterexample, Verdict};
