//! The state that the committed entries amount to when they are applied one by one to an empty one.
//!
//! Owns that replay. Never crashes, and shares nothing with the storage under test but the code.

use std::collections::BTreeMap;

use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::state::StateReader;

use super::entries::entry;
use super::note::Promised;
use super::store::{Fault, apply, open_state, print_of};

/// Prints of the state, by index of the last entry applied.
pub type Prints = BTreeMap<u64, u64>;

/// See the top of the file.
pub struct Reference {
    seed: u64,
    next: u64,
    machine: StateMachine,
    reader: StateReader,
    /// After each entry, but for those that nobody asks for any more.
    pub prints: Prints,
    _dir: tempfile::TempDir,
}

impl Reference {
    /// An empty state.
    pub fn new(seed: u64) -> Result<Reference, Fault> {
        let dir = super::scratch("reference")?;
        let (machine, reader) = open_state(dir.path())?;
        Ok(Reference { seed, next: 0, machine, reader, prints: Prints::new(), _dir: dir })
    }

    /// Applies what is known to be committed.
    pub async fn follow(&mut self, promised: &Promised) -> Result<(), Fault> {
        while let Some(term) = promised.committed.get(&self.next) {
            apply(&mut self.machine, vec![entry(self.seed, *term, self.next)]).await?;
            self.prints.insert(self.next, print_of(&self.reader.applied()));
            self.next += 1;
        }
        match promised.committed.keys().next_back() {
            Some(last) if *last >= self.next => Err(format!("entry {} was committed, but not {}", last, self.next)),
            _ => Ok(()),
        }
    }

    /// Forgets what is older than anything that a storage with these promises may come back with.
    pub fn prune(&mut self, promised: &Promised) {
        self.prints = self.prints.split_off(&promised.durable.saturating_sub(1));
    }
}
