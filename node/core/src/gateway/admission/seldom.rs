//! A throttle: work that is done at most once in a while, however often it is asked for.
//!
//! Owns the time of the last time. Takes no lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time of the last time.
#[derive(Debug)]
pub struct Seldom {
    every: Duration,
    born: Instant,
    /// In milliseconds since `born`, and one more; 0 for never.
    last: AtomicU64,
}

impl Seldom {
    /// It was never done.
    pub fn new(every: Duration) -> Self {
        Self { every, born: Instant::now(), last: AtomicU64::new(0) }
    }

    /// Whether it is to be done now: one of all calls within that time gets true.
    pub fn is_due(&self) -> bool {
        self.is_due_at(self.born.elapsed())
    }

    fn is_due_at(&self, age: Duration) -> bool {
        // A node does not run for 2^64 milliseconds.
        let (now, last) = (age.as_millis() as u64 + 1, self.last.load(Ordering::Relaxed));
        let is_early = last > 0 && u128::from(now.saturating_sub(last)) < self.every.as_millis();
        !is_early && self.last.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_once_in_each_stretch_of_time() {
        let seldom = Seldom::new(Duration::from_secs(10));
        let due = [0, 0, 1, 9_999, 10_000, 10_001, 19_999, 60_000, 60_001]
            .map(|millis| seldom.is_due_at(Duration::from_millis(millis)));
        assert_eq!(due, [true, false, false, false, true, false, false, true, false]);
    }

    #[test]
    fn of_many_who_ask_at_once_one_is_told_so() {
        let seldom = Seldom::new(Duration::from_secs(3_600));
        let due: usize = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..1_000).filter(|_| seldom.is_due_at(Duration::from_secs(7))).count()))
                .collect();
            asking.into_iter().map(|asked| asked.join().expect("it asked")).sum()
        });
        assert_eq!(due, 1);
    }
}
