//! Everything that is wrong with a configuration.
//!
//! Owns the collection, what is said of a number out of range, and the ranges that many settings share. Never knows a setting.

use std::time::Duration;

use super::ConfigFault;

/// A day: no interval of a running server is longer.
pub(super) const DAY_MS: u64 = 24 * 3600 * 1000;
/// Upper bound of a number that has no other.
pub(super) const HUGE: u64 = 1 << 50;

/// What was found so far.
pub(super) struct Faults(pub Vec<ConfigFault>);

impl Faults {
    pub fn add(&mut self, field: &'static str, detail: impl Into<String>) {
        self.0.push(ConfigFault { field, detail: detail.into() });
    }

    /// A number within its bounds; outside them the lower bound stands in, and the fault is noted.
    pub fn within(&mut self, field: &'static str, value: u64, lowest: u64, highest: u64) -> u64 {
        if (lowest..=highest).contains(&value) {
            return value;
        }
        self.add(field, format!("{value} is out of range; give a number from {lowest} to {highest}"));
        lowest
    }

    pub fn millis(&mut self, field: &'static str, value: u64, lowest: u64, highest: u64) -> Duration {
        Duration::from_millis(self.within(field, value, lowest, highest))
    }

    pub fn size(&mut self, field: &'static str, value: usize, lowest: usize, highest: usize) -> usize {
        // A usize has at most 64 bits, and what comes back is within usize bounds.
        self.within(field, value as u64, lowest as u64, highest as u64) as usize
    }
}
