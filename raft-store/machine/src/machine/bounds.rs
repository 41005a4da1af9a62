//! How much is read at a time, and what a batch and a transaction may take.
//!
//! Owns these five numbers. A node has those of [`crate::limits`], always: two that differed in them would decide differently. Tests lower
//! them, so that small states reach them, and simulations do for all nodes of a cluster alike. Never counts anything.

use super::view::Most;
use crate::limits;

/// What one applier keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most rows of one page, where its reader does not ask for fewer.
    pub page_rows: usize,
    /// [`limits::PAGE_BYTES`].
    pub page_bytes: usize,
    /// [`limits::BATCH_EFFECT_BYTES_MAX`].
    pub batch_bytes: usize,
    /// [`limits::TXN_EFFECT_BYTES_MAX`].
    pub txn_bytes: usize,
    /// [`limits::COMMAND_STEPS_MAX`].
    pub command_steps: u64,
}

impl Default for Bounds {
    /// Those of a node.
    fn default() -> Self {
        Self {
            page_rows: usize::MAX,
            page_bytes: limits::PAGE_BYTES,
            batch_bytes: limits::BATCH_EFFECT_BYTES_MAX,
            txn_bytes: limits::TXN_EFFECT_BYTES_MAX,
            command_steps: limits::COMMAND_STEPS_MAX,
        }
    }
}

impl Bounds {
    /// Those of a node, but that a transaction takes so many bytes, and one command the steps that take as many: small documents reach them,
    /// too.
    pub fn of_txn(txn_bytes: usize) -> Self {
        Self { txn_bytes, command_steps: (txn_bytes / limits::STEP_BYTES) as u64, ..Self::default() }
    }

    /// A page of so many rows.
    pub(super) fn page(self, rows: usize) -> Most {
        Most { rows: rows.min(self.page_rows), bytes: self.page_bytes }
    }
}
