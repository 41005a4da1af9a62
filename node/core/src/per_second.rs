//! At most so many of something in each second.
//!
//! Owns the count, without a lock. Never waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Counts, from a moment on.
#[derive(Debug)]
pub struct PerSecond {
    max: u64,
    begin: Instant,
    /// The second since `begin` that something was last admitted in, and how many in its lowest bits.
    second: AtomicU64,
}

/// Bits for the count of a second.
const COUNT_BITS: u32 = 16;

impl PerSecond {
    /// Admits `max` in each second, fewer than 65,536.
    pub fn new(max: u64) -> Self {
        assert!(max < 1 << COUNT_BITS, "{max} a second cannot be counted");
        Self { max, begin: Instant::now(), second: AtomicU64::new(0) }
    }

    /// Whether one more is within the bound now; counts it then.
    pub fn admit(&self) -> bool {
        self.admit_at(self.begin.elapsed().as_secs())
    }

    /// [`Self::admit`] in this second.
    pub fn admit_at(&self, second: u64) -> bool {
        let next = |known: u64| match known >> COUNT_BITS == second {
            true => (known & ((1 << COUNT_BITS) - 1) < self.max).then_some(known + 1),
            false => Some((second << COUNT_BITS) + 1),
        };
        self.second.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_admitted_in_each_second() {
        let bound = PerSecond::new(3);
        assert_eq!((0..10).filter(|_| bound.admit_at(7)).count(), 3);
        assert_eq!((0..10).filter(|_| bound.admit_at(8)).count(), 3);
    }
}
