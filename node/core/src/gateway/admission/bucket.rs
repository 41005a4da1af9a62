//! A token bucket in one number: when all that was taken will have come back.
//!
//! Owns the arithmetic of rates. What was taken may be more than there was, since the size of a request is known only when it
//! has come and that of an answer when it is there: then nobody gets any before the debt is paid. Never reads a clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// As much as comes in this time is there after a pause.
const BURST_NANOS: u64 = 1_000_000_000;

/// No debt takes longer to pay: one large request must not lock its account out.
const DEBT_NANOS_MAX: u64 = 10 * BURST_NANOS;

/// A bucket. Times are nanoseconds of its owner's clock.
#[derive(Debug, Default)]
pub struct Bucket(AtomicU64);

impl Bucket {
    /// How long until there is something in it; zero if there is.
    pub fn wait(&self, now: u64) -> Duration {
        let taken = self.0.load(Ordering::Relaxed).saturating_sub(now);
        // What is not taken wholly is there: at the bound itself nothing is.
        Duration::from_nanos(taken.saturating_sub(BURST_NANOS - 1))
    }

    /// Takes an amount, whether it is there or not. 0 a second is no bound.
    pub fn take(&self, amount: u64, per_second: u64, now: u64) {
        if per_second == 0 || amount == 0 {
            return;
        }
        let nanos = u128::from(amount) * u128::from(BURST_NANOS) / u128::from(per_second);
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX).max(1);
        let most = now.saturating_add(BURST_NANOS + DEBT_NANOS_MAX);
        let taken = |back: u64| Some(back.max(now).saturating_add(nanos).min(most));
        // The closure always gives a value, so this cannot fail.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
    }

    /// Whether nothing is missing from it.
    pub fn is_full(&self, now: u64) -> bool {
        self.0.load(Ordering::Relaxed) <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Takes one after the other, as fast as there are some, for so long; gives how many.
    fn taken(bucket: &Bucket, per_second: u64, from: u64, nanos: u64) -> u64 {
        let (mut now, mut count) = (from, 0);
        while now < from + nanos {
            match bucket.wait(now) {
                Duration::ZERO => {
                    bucket.take(1, per_second, now);
                    count += 1;
                }
                wait => now += wait.as_nanos() as u64,
            }
        }
        count
    }

    #[test]
    fn it_gives_a_burst_and_then_what_comes() {
        for per_second in [1, 7, 100, 20_000] {
            let bucket = Bucket::default();
            let count = taken(&bucket, per_second, SECOND, 10 * SECOND);
            assert!((11 * per_second..=11 * per_second + 1).contains(&count), "{count} of {per_second} a second");
            assert!(!bucket.is_full(11 * SECOND) && bucket.is_full(13 * SECOND));
            let after_a_pause = taken(&bucket, per_second, 100 * SECOND, SECOND);
            assert!((2 * per_second..=2 * per_second + 1).contains(&after_a_pause), "{after_a_pause}");
        }
    }

    #[test]
    fn a_debt_is_paid_before_more_is_given_and_has_a_bound() {
        let bucket = Bucket::default();
        bucket.take(500, 100, 0);
        assert_eq!(bucket.wait(0).as_millis(), 4_000);
        assert_eq!(bucket.wait(4 * SECOND), Duration::from_nanos(1));
        assert_eq!(bucket.wait(4 * SECOND + 1), Duration::ZERO);
        bucket.take(u64::MAX, 1, 0);
        assert_eq!(bucket.wait(0).as_millis(), 10_000);
    }

    #[test]
    fn without_a_rate_nothing_is_taken() {
        let bucket = Bucket::default();
        bucket.take(1_000_000, 0, 5);
        assert!(bucket.is_full(0) && bucket.wait(0).is_zero());
    }
}
