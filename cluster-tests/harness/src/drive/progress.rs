//! How much of what a run requires has happened in its present phase, counted while it happens.
//!
//! Owns the counts by which phases last until they prove something. The verdict is the checker's (`coverage`), which counts again;
//! what a success is, both ask the record.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cluster_histories::record::{Micros, Record};

/// Successes of this phase. All clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<Phase>>);

#[derive(Debug, Default)]
struct Phase {
    since: Micros,
    successes: BTreeMap<&'static str, u64>,
}

impl Progress {
    /// A phase begins: only what is called from now on counts.
    pub fn begin(&self, now: Micros) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Phase { since: now, successes: BTreeMap::new() };
    }

    /// Takes an operation that is over.
    pub fn note(&self, record: &Record) {
        let mut phase = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if record.call >= phase.since && record.is_success() {
            *phase.successes.entry(record.operation.kind()).or_default() += 1;
        }
    }

    /// Whether all of this happened.
    pub fn has(&self, requirements: &[(&'static str, u64)]) -> bool {
        let phase = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        requirements.iter().all(|(kind, at_least)| phase.successes.get(kind).is_some_and(|count| count >= at_least))
    }
}
