//! The deterministic state machine: rows and a batch in, answers and writes out.
//!
//! Owns what every command means. Knows no clock, no randomness, no I/O and no hash-map order; time arrives as data in
//! the batch, so every node that applies the same log holds the same bytes. A refusal is an answer; an error is a
//! [`Fault`] of this node.

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod vars;
mod view;

pub use vars::{BucketDigest, Vars};
pub use view::{Fault, MemoryView, View, Write};

use crate::types::{Batch, Command, Key, Reply, Revision};

/// Applies the batches of one apply call over a view that does not change meanwhile. Each command sees what the ones
/// before it did, also those of earlier batches.
pub struct Applier<'v, V: View> {
    _view: &'v V,
}

/// What an apply call comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// To be written in this order, in one atomic write with `vars`. Dropped ranges first, then one write for each
    /// row that changed, in key order.
    pub writes: Vec<Write>,
    /// The scalars after it.
    pub vars: Vars,
    /// Each change of a key with the revision it took, in order of revision. A key may be there more than once.
    pub changed: Vec<(Key, Revision)>,
}

impl<'v, V: View> Applier<'v, V> {
    /// Starts on the rows and scalars as of the last apply call.
    pub fn new(_view: &'v V, _vars: Vars) -> Self {
        unimplemented!("stub")
    }

    /// Applies one batch; one reply for each command, in order. `index` is the entry's log index. After an error
    /// the applier must be thrown away.
    pub fn apply_batch(&mut self, _index: u64, _batch: &Batch) -> Result<Vec<Reply>, Fault> {
        unimplemented!("stub")
    }

    /// The writes of everything applied so far.
    pub fn finish(self) -> Applied {
        unimplemented!("stub")
    }
}

/// What a command would answer, by the same code as [`Applier::apply_batch`] with the clocks as they are; nothing is
/// written. `index` is that of the last applied entry. A request id is looked up as usual.
pub fn evaluate<V: View>(_view: &V, _vars: &Vars, _index: u64, _command: &Command) -> Result<Reply, Fault> {
    unimplemented!("stub")
}
