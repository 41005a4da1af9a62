//! A node's state in memory: what the entries of a log come to, and answers about it.
//!
//! Owns how an entry becomes rows, replies and changes where there is no database, by the steps of a node. Never waits, and knows no clock:
//! each entry brings its stamps. Tests and simulations stand on it; a node keeps its rows on disk.

use std::collections::BTreeSet;

use crate::keyspace::changes::KeyChange;
use crate::machine::{self, Applied, Applier, Contained, Fault, MemoryView, Vars};
use crate::query::{KeyRead, ListQuery, Moment, Queries, ReadPosition, StateFault, Uncounted};
use crate::types::{Batch, Entry, Key, Reply, Revision};

/// Rows and scalars after an entry of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryState {
    rows: MemoryView,
    vars: Vars,
    /// Log index of the last entry.
    index: u64,
}

/// The outcome of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// One for each command, in order.
    pub replies: Vec<Reply>,
    /// The revision before it.
    pub before: Revision,
    /// Each change of a key, in order of revision.
    pub changed: Vec<KeyChange>,
    /// Other things that changed, by their names from [`crate::types::Waker`].
    pub woken: BTreeSet<Key>,
    /// The faults that were contained. Each is a bug, and has to be reported by the caller.
    pub contained: Vec<Contained>,
}

impl MemoryState {
    /// An empty state with these scalars, after the entry at `index`.
    pub fn new(vars: Vars, index: u64) -> Self {
        Self { vars, index, ..Self::default() }
    }

    /// Applies the next entry of the log. A fault that is the same on every node is contained. After an error the state must not be used
    /// any more.
    pub fn apply(&mut self, batch: &Batch) -> Result<Step, Fault> {
        let index = self.index + 1;
        let (replies, applied) = machine::applying(|is_containing| {
            let mut applier = Applier::new(&self.rows, self.vars.clone()).containing(is_containing);
            let replies = applier.apply_batch(index, batch)?;
            Ok((replies, applier.finish()))
        })?;
        let Applied { writes, vars, changed, woken, contained } = applied;
        let before = std::mem::replace(&mut self.vars, vars).revision;
        self.rows.write(writes);
        self.index = index;
        Ok(Step { replies, before, changed, woken, contained })
    }

    /// The state as it is, for any question.
    pub fn moment(&self) -> Moment<&MemoryView> {
        Moment::new(&self.rows, self.vars.clone(), self.index)
    }

    /// The position after the last entry.
    pub fn position(&self) -> ReadPosition {
        ReadPosition::new(self.index, &self.vars)
    }

    /// The rows.
    pub fn rows(&self) -> &MemoryView {
        &self.rows
    }

    /// The scalars.
    pub fn vars(&self) -> &Vars {
        &self.vars
    }
}

macro_rules! of_memory {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty;)*) => {
        impl Queries for MemoryState {
            fn get(&self, key: &Key) -> Result<KeyRead, StateFault> {
                Ok(self.moment().entry(key)?)
            }

            fn count(&self, query: &ListQuery) -> Result<(ReadPosition, u64), StateFault> {
                Ok(self.moment().count(query, &Uncounted)?)
            }

            fn version(&self, key: &Key, revision: Revision) -> Result<Option<Entry>, StateFault> {
                Ok(self.moment().version(key, revision)?)
            }

            fn access_revision(&self) -> Revision {
                self.vars.access
            }

            $(
                fn $name(&self, $($argument: $type),*) -> Result<$answer, StateFault> {
                    Ok(self.moment().$name($($argument),*)?)
                }
            )*
        }
    };
}

crate::each_query!(of_memory);
