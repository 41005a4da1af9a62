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
            tokio::time::sleep(LOOK_EVERY.min(time.saturating_sub(begin.elapsed()))).await;
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

/// Honest writes a second in the quiet moments around an attack.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quiet {
    /// Right before it.
    pub before: f64,
    /// Once what it took was given back.
    pub after: f64,
}

impl Quiet {
    /// Tells whether less than this part of the rate before is left after.
    pub fn has_fallen(self, rate_kept: f64) -> bool {
        self.after < self.before * rate_kept
    }

    /// The rate that an attack between the two is compared with: their mean, which a machine that gets slower by itself moves as much as it
    /// moves the rate under the attack. It is the rate before where too little is left after: damage that lasts is no excuse for the attack.
    pub fn rate(self, rate_kept: f64) -> f64 {
        if self.has_fallen(rate_kept) { self.before } else { f64::midpoint(self.before, self.after) }
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
    /// The part of the honest writes that is left under an attack. Zero where nobody writes without it, either: that shows nothing.
    pub fn kept(&self, measured: &Measured) -> f64 {
        if self.quiet > 0.0 { measured.writes_per_second / self.quiet } else { 0.0 }
    }

    /// What does not hold, in words.
    pub fn judge(&self, measured: &Measured) -> Vec<Broken> {
        let rate = self.kept(measured);
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
        let nobody_wrote = Measure { quiet: 0.0, ..measure };
        assert_eq!(nobody_wrote.judge(&Measured { writes_per_second: 0.0, ..fine }), [Broken::Rate(0.0)]);
        assert_eq!(nobody_wrote.judge(&fine), [Broken::Rate(0.0)]);
    }

    #[test]
    fn an_attack_is_compared_with_what_is_around_it_and_not_with_the_damage_that_it_does() {
        let quiet = |before, after| Quiet { before, after };
        assert_eq!(quiet(200.0, 100.0).rate(0.5), 150.0);
        assert_eq!(quiet(100.0, 200.0).rate(0.5), 150.0);
        // With the mean, 40 % of the rate before it would pass as 53 %.
        assert_eq!(quiet(200.0, 99.0).rate(0.5), 200.0);
        assert_eq!(quiet(0.0, 200.0).rate(0.5), 100.0);
        assert_eq!([quiet(200.0, 100.0), quiet(200.0, 99.0)].map(|quiet| quiet.has_fallen(0.5)), [false, true]);
    }
}
