//! What the clients count together.
//!
//! Owns the phase, the counters and the histograms. Split into shards so that clients on different threads rarely meet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::mix::Kind;

const SHARDS: usize = 8;
/// Longest latency that is told apart, microseconds: two minutes.
const LATENCY_MAX_US: u64 = 120_000_000;
const DIGITS: u8 = 3;

/// What is going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Load without counting.
    WarmingUp = 0,
    /// Load that counts.
    Measuring = 1,
    /// No further operations.
    Stopped = 2,
}

/// Counters of some of the clients.
struct Shard {
    latencies: [Histogram<u64>; Kind::COUNT],
    errors: BTreeMap<String, u64>,
    mismatches: u64,
}

/// Counters of all clients.
pub struct Tally {
    phase: AtomicU8,
    stopped: Notify,
    /// Operations done in any phase, for the live rate.
    done: AtomicU64,
    /// Operations counted so far, and when to stop.
    counted: AtomicU64,
    ops_max: Option<u64>,
    shards: Vec<Mutex<Shard>>,
}

/// All counters together.
pub struct Totals {
    /// Microseconds, by kind.
    pub latencies: [Histogram<u64>; Kind::COUNT],
    /// By code.
    pub errors: BTreeMap<String, u64>,
    /// Lost races.
    pub mismatches: u64,
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_US, DIGITS).expect("the bounds are constants that fit each other")
}

impl Shard {
    fn new() -> Self {
        Self { latencies: Kind::ALL.map(|_| histogram()), errors: BTreeMap::new(), mismatches: 0 }
    }
}

impl Tally {
    /// Nothing counted yet; with `ops_max` stops itself.
    pub fn new(ops_max: Option<u64>) -> Self {
        Self {
            phase: AtomicU8::new(Phase::WarmingUp as u8),
            stopped: Notify::new(),
            done: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            ops_max,
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new())).collect(),
        }
    }

    /// Goes on to a phase; never back, so that an interrupt is not forgotten.
    pub fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::Relaxed);
        if phase == Phase::Stopped {
            self.stopped.notify_waiters();
        }
    }

    /// Whether clients should go on.
    pub fn is_running(&self) -> bool {
        self.phase.load(Ordering::Relaxed) < Phase::Stopped as u8
    }

    /// Returns once everything is stopped.
    pub async fn stopped(&self) {
        let mut notified = std::pin::pin!(self.stopped.notified());
        notified.as_mut().enable();
        if self.is_running() {
            notified.await;
        }
    }

    /// Operations done in any phase.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Operations that count.
    pub fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    /// An operation that succeeded.
    pub fn on_done(&self, client: u32, kind: Kind, took: Duration) {
        self.done.fetch_add(1, Ordering::Relaxed);
        let Some(mut shard) = self.measured(client) else { return };
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        shard.latencies[kind as usize].saturating_record(micros.max(1));
        drop(shard);
        let counted = self.counted.fetch_add(1, Ordering::Relaxed) + 1;
        if self.ops_max.is_some_and(|max| counted >= max) {
            self.enter(Phase::Stopped);
        }
    }

    /// An operation that failed.
    pub fn on_error(&self, client: u32, code: String) {
        if let Some(mut shard) = self.measured(client) {
            *shard.errors.entry(code).or_insert(0) += 1;
        }
    }

    /// A cas operation that came too late.
    pub fn on_mismatch(&self, client: u32) {
        self.done.fetch_add(1, Ordering::Relaxed);
        if let Some(mut shard) = self.measured(client) {
            shard.mismatches += 1;
        }
    }

    /// Adds up the shards.
    pub fn totals(&self) -> Totals {
        let mut total = Shard::new();
        for shard in &self.shards {
            let shard = shard.lock();
            for (sum, part) in total.latencies.iter_mut().zip(&shard.latencies) {
                sum.add(part).expect("all histograms have the same bounds");
            }
            for (code, count) in &shard.errors {
                *total.errors.entry(code.clone()).or_insert(0) += count;
            }
            total.mismatches += shard.mismatches;
        }
        let Shard { latencies, errors, mismatches } = total;
        Totals { latencies, errors, mismatches }
    }

    fn measured(&self, client: u32) -> Option<parking_lot::MutexGuard<'_, Shard>> {
        let measuring = self.phase.load(Ordering::Relaxed) == Phase::Measuring as u8;
        measuring.then(|| self.shards[client as usize % SHARDS].lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ends_in_the_measurement_counts() {
        let tally = Tally::new(None);
        let took = Duration::from_micros(1_000);
        tally.on_done(0, Kind::Put, took);
        tally.enter(Phase::Measuring);
        tally.on_done(1, Kind::Put, took);
        tally.on_done(9, Kind::Get, took);
        tally.on_error(2, "timeout".into());
        tally.enter(Phase::Stopped);
        tally.enter(Phase::Measuring);
        tally.on_done(0, Kind::Put, took);
        let totals = tally.totals();
        let counts = totals.latencies.map(|latencies| latencies.len());
        assert_eq!((counts, tally.counted(), tally.done()), ([1, 1, 0, 0], 2, 4));
        assert_eq!(totals.errors["timeout"], 1);
        assert!(!tally.is_running(), "a stop is not taken back");
    }

    #[test]
    fn it_stops_at_the_number_of_operations_asked_for() {
        let tally = Tally::new(Some(2));
        tally.enter(Phase::Measuring);
        tally.on_done(0, Kind::Cas, Duration::ZERO);
        assert!(tally.is_running());
        tally.on_done(0, Kind::Cas, Duration::ZERO);
        assert!(!tally.is_running());
    }
}
