//! Histories: what clients did and were told while things went wrong, and whether the promises held all the same.
//!
//! Owns the record of a run, its checkers, each a pure function of the history, and the workloads that make one. Never talks to a node: a history
//! of a real cluster, of simulated nodes, of the simulated store here and of a file are checked by the same code.
//!
//! Order of reading: `operation` and `record` (the vocabulary), `file` (a history and its form), `recorder` (how it comes
//! about), `model` (what a sound store answers), `timeline` (which operation took effect at which revision), `check` (the
//! checkers), `workload` (what clients do), `sim` (a store that can be broken, to try both on).

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
pub mod workload;

pub use file::History;
pub use recorder::Recorder;
pub use verdict::{Counterexample, Verdict};
