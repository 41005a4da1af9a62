//! Counters of the log, for metrics and benchmarks.
//!
//! Owns relaxed atomics written by the writer thread. Never decides anything.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the fsync latency buckets, microseconds; a last bucket holds everything slower.
pub const FSYNC_BUCKETS_MICROS: [u64; 14] =
    [50, 100, 150, 200, 300, 500, 1_000, 2_000, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000];

/// A reading of the counters since the log was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Syncs done, one for each group.
    pub fsyncs: u64,
    /// Duration of the last one, microseconds.
    pub fsync_micros_last: u64,
    /// Duration of all, microseconds.
    pub fsync_micros_total: u64,
    /// Syncs by duration: not more than `FSYNC_BUCKETS_MICROS[i]` and more than the one before; the last: slower.
    pub fsync_buckets: [u64; FSYNC_BUCKETS_MICROS.len() + 1],
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
}

/// The counters.
#[derive(Debug, Default)]
pub struct Counters {
    fsyncs: AtomicU64,
    fsync_micros_last: AtomicU64,
    fsync_micros_total: AtomicU64,
    fsync_buckets: [AtomicU64; FSYNC_BUCKETS_MICROS.len() + 1],
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
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.fsyncs.fetch_add(1, Relaxed);
        self.fsync_micros_last.store(micros, Relaxed);
        self.fsync_micros_total.fetch_add(micros, Relaxed);
        let bucket = FSYNC_BUCKETS_MICROS.partition_point(|bound| *bound < micros);
        self.fsync_buckets[bucket].fetch_add(1, Relaxed);
    }

    /// Reads all counters; each is right, together they may be of slightly different moments.
    pub fn read(&self, tail_bytes: usize, disk_bytes: u64) -> LogStats {
        LogStats {
            fsyncs: self.fsyncs.load(Relaxed),
            fsync_micros_last: self.fsync_micros_last.load(Relaxed),
            fsync_micros_total: self.fsync_micros_total.load(Relaxed),
            fsync_buckets: std::array::from_fn(|bucket| self.fsync_buckets[bucket].load(Relaxed)),
            groups: self.groups.load(Relaxed),
            entries: self.entries.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            disk_bytes,
            tail_bytes: tail_bytes as u64,
        }
    }
}
