//! What openraft takes for granted about the positions it starts from, but a crash or an operator can break.
//!
//! Owns that judgement. Never repairs: what is missing has to come from somewhere else.

use super::state_machine::StateMachine;
use crate::log::LogStore;

/// Entries that are neither in the log nor in the state nor in a snapshot.
#[derive(Debug, thiserror::Error)]
#[error(
    "the state is at log index {applied}, but the log was purged up to {purged}, and no snapshot covers the gap: \
     the state directory is older than the log. Bring the newer state back, or remove this node and join again \
     under a new node id"
)]
pub struct Gap {
    /// Last index applied.
    pub applied: u64,
    /// Last index purged.
    pub purged: u64,
}

/// Makes sure that openraft can start from this log and this state, which is at index `applied`.
///
/// A snapshot ahead of the state is what a crash in the middle of its installation leaves. openraft installs it before it
/// looks at the log, so that is where the node starts from.
pub fn reconcile(log: &LogStore, machine: &StateMachine, applied: u64) -> Result<(), Gap> {
    let purged = log.purged_index().unwrap_or(0);
    let snapshot = machine.snapshot_index();
    let start = snapshot.map_or(applied, |snapshot| snapshot.max(applied));
    if purged > start {
        return Err(Gap { applied, purged });
    }
    if start > applied {
        tracing::warn!(applied, snapshot = start, purged, "the state is older than its snapshot, which replaces it");
    }
    // Where the state is ahead, openraft purges the log up to it.
    let needed = if start > log.last_index() { start } else { purged };
    if snapshot.is_some_and(|index| index < needed) {
        tracing::info!(needed, "the snapshot is older than the start of the log; a new one will be built");
        machine.discard_snapshot();
    }
    Ok(())
}
