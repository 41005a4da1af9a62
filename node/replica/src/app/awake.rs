//! A worker that stays awake while more is about to come.
//!
//! Owns how long. Never does any work: it only keeps the runtime looking at its sockets instead of going to sleep.
//!
//! A write wakes each node two to four times: for the request, for each answer of a peer, for its log. To wake a processor that sleeps costs
//! more than what it then does, most of all in a virtual machine. So a node that has just taken part in a write looks again for
//! a moment, and lets everybody else go first each time: other tasks, then other threads of this machine. A node that takes
//! part in none sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quorate_threads::{background, watchdog};
use tokio::sync::Notify;

/// Keeps one worker awake. Cheap to clone and to call.
#[derive(Clone, Default)]
pub struct Awake(Option<Arc<Inner>>);

struct Inner {
    begun: Instant,
    longest: Duration,
    /// Microseconds after `begun` until which it stays awake.
    until: AtomicU64,
    is_awake: AtomicBool,
    news: Notify,
}

impl Awake {
    /// Stays awake for so long after each [`Self::expect`], on a runtime with so many workers; with none of it for 0.
    ///
    /// With several workers one of them sleeps on the sockets while others are awake, so it would be in vain. The clock of a
    /// simulation stands still while anybody is awake.
    pub fn start(longest: Duration, workers: usize) -> Self {
        if longest.is_zero() || workers > 1 || background::is_simulated() {
            return Self::default();
        }
        let (begun, news) = (Instant::now(), Notify::new());
        let inner =
            Arc::new(Inner { begun, longest, until: AtomicU64::new(0), is_awake: AtomicBool::new(false), news });
        let looking = Arc::clone(&inner);
        watchdog::spawn(async move {
            loop {
                looking.news.notified().await;
                looking.look_around().await;
            }
        });
        Self(Some(inner))
    }

    /// More will come soon.
    pub fn expect(&self) {
        let Some(inner) = &self.0 else { return };
        inner.until.store(micros(inner.begun.elapsed() + inner.longest), Ordering::Relaxed);
        if !inner.is_awake.swap(true, Ordering::Relaxed) {
            inner.news.notify_one();
        }
    }
}

impl Inner {
    async fn look_around(&self) {
        // Both are whole microseconds, rounded down, so the last of them counts.
        while micros(self.begun.elapsed()) <= self.until.load(Ordering::Relaxed) {
            std::thread::yield_now();
            tokio::task::yield_now().await;
        }
        // What is expected in this very moment goes without; the next time is seen again.
        self.is_awake.store(false, Ordering::Relaxed);
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_millis(50);

    fn is_awake(awake: &Awake) -> bool {
        awake.0.as_ref().is_some_and(|inner| inner.is_awake.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn it_sleeps_until_something_is_expected_and_again_after_that() {
        let awake = Awake::start(LONGEST, 1);
        tokio::task::yield_now().await;
        assert!(!is_awake(&awake));
        for _ in 0..3 {
            let begin = Instant::now();
            awake.expect();
            assert!(is_awake(&awake));
            while is_awake(&awake) {
                tokio::task::yield_now().await;
            }
            assert!(begin.elapsed() >= LONGEST, "asleep after {:?}", begin.elapsed());
        }
    }

    #[tokio::test]
    async fn other_tasks_go_on_while_it_is_awake() {
        let awake = Awake::start(Duration::from_secs(3_600), 1);
        awake.expect();
        let other = tokio::spawn(async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        });
        other.await.expect("the other task ends");
        assert!(is_awake(&awake));
    }

    #[tokio::test]
    async fn it_is_off_where_it_would_be_in_vain() {
        for (longest, workers) in [(Duration::ZERO, 1), (LONGEST, 2)] {
            let awake = Awake::start(longest, workers);
            awake.expect();
            assert!(!is_awake(&awake), "{longest:?} {workers}");
        }
    }
}
