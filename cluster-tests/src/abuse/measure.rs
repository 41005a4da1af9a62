//! What honest clients lose while an attack is under way.
//!
//! Owns the numbers of one attack and the measure that they have to meet. Never begins an attack.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::abuse::honest::Seen;
use cluster_harness::node_process::memory_of;

/// How often memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What was seen in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Acknowledged writes of honest clients, a second.
    pub writes_per_second: f64,
    /// How long one took on average.
    pub write_took: Duration,
    /// Writes of honest clients that no node acknowledged in time, and reads that none answered.
    pub missed: u64,
    /// Sessions of honest clients that ended.
    pub lost: u64,
    /// Terms that began: elections.
    pub elections: u64,
    /// The most memory of a node, bytes.
    pub memory: u64,
}

impl Measured {
    /// Looks for this long at what honest clients see and the processes of nodes take.
    pub async fn over(time: Duration, seen: &Arc<Seen>, nodes: &[u32]) -> Self {
        let load = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
        let numbers = || [&seen.writes, &seen.micros, &seen.missed, &seen.lost, &seen.term].map(load);
        let (begin, before, mut memory) = (Instant::now(), numbers(), 0);
        while begin.elapsed() < time {
            memory = nodes.iter().map(|node| memory_of(*node)).max().unwrap_or(0).max(memory);
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let after = numbers();
        let [writes, micros, missed, lost, elections] = std::array::from_fn(|n| after[n] - before[n]);
        Self {
            writes_per_second: writes as f64 / begin.elapsed().as_secs_f64(),
            write_took: Duration::from_micros(micros / writes.max(1)),
            missed,
            lost,
            elections,
            memory,
        }
    }
}

/// What has to hold under every attack.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// Honest writes a second without an attack.
    pub quiet: f64,
    /// Part of it that has to be left.
    pub rate_kept: f64,
    /// Most memory of a node, bytes.
    pub memory: u64,
}

impl Measure {
    /// What does not hold, in words.
    pub fn judge(&self, measured: &Measured) -> Vec<Broken> {
        let rate = measured.writes_per_second / self.quiet;
        let mut broken = Vec::new();
        if rate < self.rate_kept {
            broken.push(Broken::Rate(rate));
        }
        if measured.lost > 0 {
            broken.push(Broken::Sessions(measured.lost));
        }
        if measured.elections > 0 {
            broken.push(Broken::Elections(measured.elections));
        }
        if measured.memory > self.memory {
            broken.push(Broken::Memory(measured.memory));
        }
        broken
    }
}

/// What did not hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Broken {
    /// Part of the rate of honest writes that was left.
    Rate(f64),
    /// Sessions that ended.
    Sessions(u64),
    /// Leaders that were lost.
    Elections(u64),
    /// Memory of a node, bytes.
    Memory(u64),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(part) => write!(f, "{:.0} % of the honest writes are left", part * 100.0),
            Self::Sessions(count) => write!(f, "{count} honest sessions ended"),
            Self::Elections(count) => write!(f, "{count} elections"),
            Self::Memory(bytes) => write!(f, "{} MiB of memory", bytes >> 20),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measure_tells_each_promise_that_was_broken() {
        let measure = Measure { quiet: 200.0, rate_kept: 0.5, memory: 100 << 20 };
        let write_took = Duration::from_millis(2);
        let fine =
            Measured { writes_per_second: 101.0, write_took, missed: 0, lost: 0, elections: 0, memory: 99 << 20 };
        assert_eq!(measure.judge(&fine), []);
        let worst = Measured { writes_per_second: 50.0, lost: 3, elections: 1, memory: 200 << 20, ..fine };
        let told: Vec<_> = measure.judge(&worst).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            ["25 % of the honest writes are left", "3 honest sessions ended", "1 elections", "200 MiB of memory"]
        );
    }
}
