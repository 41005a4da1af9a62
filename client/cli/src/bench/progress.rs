//! The progress bar. Only on a terminal, on standard error; otherwise nothing is shown.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use parking_lot::Mutex;

use super::tally::Tally;
use crate::said;

/// A bar with the rate of the last moment.
pub struct Progress {
    bar: ProgressBar,
    counts_ops: bool,
    started: Instant,
    last: Mutex<(Instant, u64)>,
}

impl Progress {
    /// Of writing the keys.
    pub fn fill(keys: u64) -> Self {
        Self::new("filling   [{bar:40}] {pos}/{len} keys", keys, true)
    }

    /// Of the measurement, by time or by number of operations.
    pub fn measure(duration: Option<Duration>, ops: Option<u64>) -> Self {
        let millis = duration.map_or(0, |duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        Self::new("measuring [{bar:40}] {percent:>3}%  {msg}", ops.unwrap_or(millis), ops.is_some())
    }

    fn new(template: &str, length: u64, counts_ops: bool) -> Self {
        let bar = said::bar(Some(length), template);
        Self { bar, counts_ops, started: Instant::now(), last: Mutex::new((Instant::now(), 0)) }
    }

    /// Moves the bar to a place.
    pub fn at(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Moves the bar to where the tally is.
    pub fn show(&self, tally: &Tally) {
        let (now, done) = (Instant::now(), tally.done());
        let (before, done_before) = std::mem::replace(&mut *self.last.lock(), (now, done));
        let seconds = now.duration_since(before).as_secs_f64();
        if seconds > 0.0 {
            self.bar.set_message(format!("{:.0} ops/s", done.saturating_sub(done_before) as f64 / seconds));
        }
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.at(if self.counts_ops { tally.counted() } else { elapsed });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
