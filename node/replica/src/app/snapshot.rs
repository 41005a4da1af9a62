//! A snapshot out of turn.
//!
//! Owns having one made, the wait for it, and whether there is room for it, which callers ask first. Never decides that one is worth it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use openraft::async_runtime::WatchReceiver;
use openraft::errors::Fatal;
use quorate_store::adapters::state_machine::SnapshotRequest;
use quorate_store::raft::{LogId, TypeConfig};
use quorate_store::state::StateReader;
use quorate_threads::background;

use super::Raft;
use super::space::DiskSpace;

/// A trigger is lost on openraft while it builds another snapshot, so it comes again after so long.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Room that a snapshot takes beside the memtables, which it flushes: manifests, and copies of them.
const OVERHEAD_BYTES: u64 = 16 * 1024 * 1024;

/// Snapshots out of turn of a node.
pub struct Snapshots {
    pub(super) raft: Raft,
    pub(super) state: StateReader,
    pub(super) space: Arc<DiskSpace>,
    pub(super) request: SnapshotRequest,
}

impl Snapshots {
    /// Whether one can be made: a build that fails stops the node, so it is not tried where it would.
    pub async fn have_room(&self) -> bool {
        let (state, free) = (self.state.clone(), self.space.free());
        let stats = background::blocking(move || state.stats()).await;
        match stats.map_err(|error| error.to_string()).and_then(|stats| stats.map_err(|fault| fault.to_string())) {
            Ok(stats) => free >= stats.memtable_bytes.saturating_add(OVERHEAD_BYTES),
            Err(error) => {
                tracing::warn!(error, "the state has no numbers, so no snapshot is tried");
                false
            }
        }
    }

    /// Has this node make a snapshot that covers at least this log index, unless it has one. False: not in that time.
    pub async fn make(&self, upto: u64, within: Duration) -> Result<bool, Fatal<TypeConfig>> {
        let until = Instant::now() + within;
        let is_there = || index(&self.raft.metrics().borrow_watched().snapshot) >= upto;
        while !is_there() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.request.set();
            self.raft.trigger().snapshot().await?;
            let built = self.raft.wait(Some(left.min(AGAIN_AFTER)));
            if let Err(error) = built.metrics(|metrics| index(&metrics.snapshot) >= upto, "a snapshot").await {
                quorate_node_core::debug!(%error, upto, "no snapshot yet");
            }
        }
        Ok(true)
    }
}

/// The index of a log id; 0 where there is none.
pub fn index(log_id: &Option<LogId>) -> u64 {
    log_id.as_ref().map_or(0, |id| id.index)
}
