//! Counting how long something takes, for the metrics.
//!
//! Owns relaxed atomics in buckets. Never measures time itself and never decides anything.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets, microseconds; a last bucket holds everything slower. Fine where a healthy disk lies.
pub const BUCKETS_MICROS: [u64; 14] =
    [50, 100, 150, 200, 300, 500, 1_000, 2_000, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000];

/// The counters.
#[derive(Debug, Default)]
pub struct Durations {
    micros_total: AtomicU64,
    buckets: [AtomicU64; BUCKETS_MICROS.len() + 1],
}

/// A reading of the counters since they were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DurationCounts {
    /// Of all together, microseconds.
    pub micros_total: u64,
    /// How many took not more than `BUCKETS_MICROS[i]` and more than the bound before; the last: longer.
    pub buckets: [u64; BUCKETS_MICROS.len() + 1],
}

impl Durations {
    /// Counts one.
    pub fn observe(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros_total.fetch_add(micros, Relaxed);
        self.buckets[BUCKETS_MICROS.partition_point(|bound| *bound < micros)].fetch_add(1, Relaxed);
    }

    /// Reads all counters; each is right, together they may be of slightly different moments.
    pub fn read(&self) -> DurationCounts {
        DurationCounts {
            micros_total: self.micros_total.load(Relaxed),
            buckets: std::array::from_fn(|bucket| self.buckets[bucket].load(Relaxed)),
        }
    }
}

impl DurationCounts {
    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_bucket_that_still_holds_it() {
        let durations = Durations::default();
        for micros in [0, 50, 51, 500_000, 500_001] {
            durations.observe(Duration::from_micros(micros));
        }
        let counts = durations.read();
        assert_eq!((counts.count(), counts.micros_total), (5, 1_000_102));
        assert_eq!((counts.buckets[0], counts.buckets[1], counts.buckets[13], counts.buckets[14]), (2, 1, 1, 1));
    }
}
