//! Settings of the log.

use std::sync::Arc;
use std::time::Duration;

use super::segment::SEGMENTS;

/// What may differ between logs.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// Bytes of a segment. A group that is larger gets one of its own size.
    pub segment_bytes: u64,
    /// Version of the segments that are made from now on; those that are there keep theirs.
    pub format: u32,
    /// What a simulation makes of the disk. Elsewhere of no effect.
    pub disk: Option<Arc<dyn SimulatedDisk>>,
}

/// The disk of a simulation, as far as the log notices it. What it is given is written to real files in the end.
pub trait SimulatedDisk: std::fmt::Debug + Send + Sync {
    /// How long the next group takes to become durable.
    fn takes(&self) -> Duration;
    /// Whether the sync of the group fails.
    fn fails(&self) -> bool;
    /// Which of so many sectors of a group are there after a crash that came before its sync.
    fn survivors(&self, sectors: usize) -> Vec<bool>;
}

impl Default for LogOptions {
    fn default() -> Self {
        // A second of a busy disk: long enough to make the next one beside it, small enough to give back soon.
        Self { segment_bytes: 32 * 1024 * 1024, format: SEGMENTS.writes(), disk: None }
    }
}

impl LogOptions {
    /// Bytes of the very first segment, which a new node has to wait for.
    pub(super) fn first_segment_bytes(&self) -> u64 {
        (self.segment_bytes / 8).max(4 * super::group::BLOCK as u64)
    }
}
