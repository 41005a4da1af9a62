//! Counters of the log, for metrics and benchmarks.
//!
//! Owns relaxed atomics written by the writer thread. Never decides anything.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::durations::{DurationCounts, Durations};

/// A reading of the counters since the log was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Syncs done, one for each group, by how long each took.
    pub fsync: DurationCounts,
    /// Groups written: operations that shared one write and one sync.
    pub groups: u64,
    /// Entries appended.
    pub entries: u64,
    /// Bytes given to the disk.
    pub bytes: u64,
    /// Bytes of all segments on disk, also of the unused part of the newest and of the spare.
    pub disk_bytes: u64,
    /// Memory held by the newest entries, bytes, by estimate.
    pub tail_bytes: u64,
    /// Bytes that wait for the disk, in steps of a kilobyte.
    pub queue_bytes: u64,
}

/// The counters.
#[derive(Debug, Default)]
pub struct Counters {
    fsync: Durations,
    groups: AtomicU64,
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl Counters {
    /// Counts a group that was written.
    pub fn on_group(&self, entries: u64, bytes: u64) {
        self.groups.fetch_add(1, Relaxed);
        self.entries.fetch_add(entries, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts a sync.
    pub fn on_fsync(&self, took: Duration) {
        self.fsync.observe(took);
    }

    /// Reads all counters; each is right, together they may be of slightly different moments.
    pub fn read(&self, tail_bytes: usize, disk_bytes: u64, queue_bytes: usize) -> LogStats {
        LogStats {
            fsync: self.fsync.read(),
            groups: self.groups.load(Relaxed),
            entries: self.entries.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            disk_bytes,
            tail_bytes: tail_bytes as u64,
            queue_bytes: queue_bytes as u64,
        }
    }
}
