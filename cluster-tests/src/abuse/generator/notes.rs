//! The observations of hostile clients.
//!
//! Owns which combinations were met, and which answers told of a fault of the node. Never judges anything else.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use super::combination::Combination;
use crate::abuse::asker::Told;

/// Faults that are kept. Those after them are more of the same.
const WRONG_MAX: usize = 20;

/// The notes of all hostile clients of a run.
#[derive(Debug, Default)]
pub struct Notes {
    met: Mutex<BTreeSet<String>>,
    wrong: Mutex<Vec<String>>,
}

impl Notes {
    /// A node had to do with a combination: its head was sent over a connection that was taken, or it was answered.
    pub(super) fn meet(&self, combination: &Combination) {
        self.met.lock().insert(combination.to_string());
    }

    /// Tells whether a node had to do with a combination.
    pub fn has_met(&self, combination: &Combination) -> bool {
        self.met.lock().contains(&combination.to_string())
    }

    /// A node said that it met a fault of its own.
    pub(super) fn accuse(&self, combination: &Combination, told: &Told) {
        let mut wrong = self.wrong.lock();
        if wrong.len() < WRONG_MAX {
            let said = String::from_utf8_lossy(&told.body[..told.body.len().min(300)]).into_owned();
            wrong.push(format!("{combination}: status {}, code {:?}: {said}", told.status, told.code));
        }
    }

    /// Lists the faults that were kept, in words.
    pub fn wrong(&self) -> Vec<String> {
        self.wrong.lock().clone()
    }
}
