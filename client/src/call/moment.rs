//! Moments by both clocks of the machine.
//!
//! Owns the comparison of the two. The monotonic clock stands still while the machine is suspended; the wall clock goes on, but may be
//! set. Nodes go on counting meanwhile, so a time is over as soon as one of the two clocks says so.

#[cfg(feature = "testing")]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Milliseconds by which tests have set the wall clock of this process ahead.
#[cfg(feature = "testing")]
static AHEAD_MS: AtomicU64 = AtomicU64::new(0);

/// See [`crate::testing::set_wall_ahead`].
#[cfg(feature = "testing")]
pub(crate) fn set_wall_ahead(by: Duration) {
    AHEAD_MS.store(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// The lead of this process's wall clock over the machine's.
#[cfg(feature = "testing")]
fn ahead() -> Duration {
    Duration::from_millis(AHEAD_MS.load(Ordering::Relaxed))
}

/// The same where nobody moves it.
#[cfg(not(feature = "testing"))]
const fn ahead() -> Duration {
    Duration::ZERO
}

/// One moment by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub monotonic: Instant,
    pub wall: SystemTime,
}

impl Moment {
    /// This moment.
    pub fn now() -> Self {
        Self { monotonic: Instant::now(), wall: SystemTime::now() + ahead() }
    }

    /// How long ago an earlier moment was, by the clock that says more. A wall clock that was set back takes nothing away.
    pub fn since(self, earlier: Self) -> Duration {
        self.by_monotonic(earlier).max(self.by_wall(earlier))
    }

    /// The time since an earlier moment that only the wall clock shows: the machine was suspended, or its wall clock was set.
    pub fn skipped_since(self, earlier: Self) -> Duration {
        self.by_wall(earlier).saturating_sub(self.by_monotonic(earlier))
    }

    fn by_monotonic(self, earlier: Self) -> Duration {
        self.monotonic.saturating_duration_since(earlier.monotonic)
    }

    fn by_wall(self, earlier: Self) -> Duration {
        self.wall.duration_since(earlier.wall).unwrap_or_default()
    }
}

#[cfg(test)]
impl std::ops::Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self { monotonic: self.monotonic + time, wall: self.wall + time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_that_says_more_counts_and_one_that_is_set_back_takes_nothing_away() {
        let (start, minute) = (Moment::now(), Duration::from_secs(60));
        let later = start + minute;
        assert_eq!((later.since(start), later.skipped_since(start)), (minute, Duration::ZERO));
        let resumed = Moment { wall: later.wall + 10 * minute, ..later };
        assert_eq!((resumed.since(start), resumed.skipped_since(start)), (11 * minute, 10 * minute));
        let set_back = Moment { wall: start.wall - minute, ..later };
        assert_eq!((set_back.since(start), set_back.skipped_since(start)), (minute, Duration::ZERO));
        assert_eq!((start.since(later), start.skipped_since(later)), (Duration::ZERO, Duration::ZERO));
    }
}
