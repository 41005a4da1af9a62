//! The log of what took too long: one line each, a few a second.
//!
//! Owns what counts as slow, and how many lines a second are written. Keys come escaped and cut; nothing of a value is told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::limits;
use crate::per_second::PerSecond;

/// Judges and counts. One for each kind of line.
#[derive(Debug)]
pub struct SlowLog {
    /// `None`: nothing is slow.
    from: Option<Duration>,
    lines: PerSecond,
    left_out: AtomicU64,
}

impl SlowLog {
    /// With this threshold; zero switches it off.
    pub fn new(from: Duration) -> Self {
        let from = (!from.is_zero()).then_some(from);
        Self { from, lines: PerSecond::new(limits::SLOW_LINES_A_SECOND), left_out: AtomicU64::new(0) }
    }

    /// Whether so much is slow.
    pub fn is_slow(&self, took: Duration) -> bool {
        self.from.is_some_and(|from| took >= from)
    }

    /// Whether a line may be written now; gives how many were left out since the last one.
    pub fn admit(&self) -> Option<u64> {
        match self.lines.admit() {
            true => Some(self.left_out.swap(0, Ordering::Relaxed)),
            false => {
                self.left_out.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}

/// Text from outside as a log line shows it: escaped, and cut where it is long.
pub fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(limits::SLOW_PATH_CHARS_MAX).flat_map(char::escape_default).collect();
    if text.chars().nth(limits::SLOW_PATH_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Milliseconds for a log line.
pub fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_lines_a_second_are_written_and_the_rest_is_counted() {
        let log = SlowLog::new(Duration::from_millis(500));
        assert!(log.is_slow(Duration::from_millis(500)) && !log.is_slow(Duration::from_millis(499)));
        // A second may end meanwhile, and then another.
        let admitted = (0..1_000).filter_map(|_| log.admit()).collect::<Vec<_>>();
        let written = admitted.len() as u64;
        assert!((limits::SLOW_LINES_A_SECOND..=3 * limits::SLOW_LINES_A_SECOND).contains(&written), "{written}");
        let left_out = admitted.iter().sum::<u64>() + log.left_out.load(Ordering::Relaxed);
        assert_eq!(written + left_out, 1_000);
        assert!(!SlowLog::new(Duration::ZERO).is_slow(Duration::MAX));
    }

    #[test]
    fn what_comes_from_outside_is_escaped_and_cut() {
        assert_eq!(shown("/v1/kv/a\n\u{1b}[31m\""), "/v1/kv/a\\n\\u{1b}[31m\\\"");
        let long = shown(&"é".repeat(10_000));
        assert!(long.is_ascii() || long.ends_with('…'));
        assert!(long.len() < 1_000, "{} bytes", long.len());
    }
}
