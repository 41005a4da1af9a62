//! How much of a processor merges of table files take.
//!
//! Owns the share, and the rests that a merge takes to keep to it. RocksDB merges as fast as it can once it begins, for seconds, in
//! which all requests share the processors with it; with rests the same work is spread over the time until the next merge is due.
//! RocksDB asks a filter about each row that it merges: there its thread rests. Never changes or drops a row, and never holds up a
//! flush, which asks no filter.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rocksdb::compaction_filter::Decision;

/// Per cent of its time in which a merge works while no more flushed files wait than start one.
const SHARE_MIN: u32 = 35;

/// Work between two rests.
const STRETCH: Duration = Duration::from_millis(2);

/// What a stretch counts for at most: the time before a merge began is none of its work.
const STRETCH_MAX: Duration = Duration::from_millis(20);

/// Rows and bytes between two looks at the clock.
const ROWS_BETWEEN: u32 = 64;
const BYTES_BETWEEN: usize = 64 << 10;

/// How much of its time a merge works.
pub(crate) struct MergePace {
    /// Flushed files that start a merge.
    files: u64,
    /// In per cent, between [`SHARE_MIN`] and 100.
    share: AtomicU32,
}

impl MergePace {
    /// Of a database that merges once so many flushed files wait.
    pub(crate) fn new(files: u64) -> Arc<Self> {
        Arc::new(Self { files, share: AtomicU32::new(SHARE_MIN) })
    }

    /// Follows how many flushed files wait: a merge that does not keep up gets more, and rests no more once there are twice as many as
    /// start one. RocksDB itself slows writes down at three times as many.
    pub(crate) fn follow(&self, waiting: u64) {
        let beyond = waiting.saturating_sub(self.files).min(self.files);
        let more = u64::from(100 - SHARE_MIN) * beyond / self.files;
        self.share.store(SHARE_MIN + u32::try_from(more).expect("at most 100"), Ordering::Relaxed);
    }

    /// For RocksDB, which calls it from several threads: what it remembers belongs to each.
    pub(crate) fn filter(self: &Arc<Self>) -> impl FnMut(u32, &[u8], &[u8]) -> Decision + Send + 'static {
        let pace = Arc::clone(self);
        move |_, key, value| {
            if is_time_to_look(key.len() + value.len()) {
                pace.rest();
            }
            Decision::Keep
        }
    }

    /// Rests if the thread worked for a stretch since it last did.
    fn rest(&self) {
        let worked = WORKS_SINCE.get().elapsed();
        if worked < STRETCH {
            return;
        }
        thread::sleep(rest_after(worked, self.share.load(Ordering::Relaxed)));
        WORKS_SINCE.set(now());
    }
}

thread_local! {
    /// When the thread last rested.
    static WORKS_SINCE: Cell<Instant> = Cell::new(now());
    /// Rows and bytes since the last look at the clock.
    static UNSEEN: Cell<(u32, usize)> = const { Cell::new((0, 0)) };
}

#[expect(clippy::disallowed_methods, reason = "how long a merge takes changes no row")]
fn now() -> Instant {
    Instant::now()
}

/// Counts a row.
fn is_time_to_look(bytes: usize) -> bool {
    let (rows, sum) = UNSEEN.get();
    let (rows, sum) = (rows + 1, sum + bytes);
    let is_time = rows >= ROWS_BETWEEN || sum >= BYTES_BETWEEN;
    UNSEEN.set(if is_time { (0, 0) } else { (rows, sum) });
    is_time
}

/// How long to rest after so much work, to have worked for `share` per cent of the time.
fn rest_after(worked: Duration, share: u32) -> Duration {
    worked.min(STRETCH_MAX) * (100 - share) / share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_gets_more_the_more_files_wait_and_all_before_writes_are_slowed_down() {
        let pace = MergePace::new(12);
        let shares = [0, 12, 18, 24, 36, u64::MAX].map(|waiting| {
            pace.follow(waiting);
            pace.share.load(Ordering::Relaxed)
        });
        assert_eq!(shares, [35, 35, 67, 100, 100, 100]);
    }

    #[test]
    fn rests_leave_the_share_and_have_a_bound() {
        let ms = Duration::from_millis;
        assert_eq!(rest_after(ms(7), 35), ms(13));
        assert_eq!(rest_after(ms(3), 100), Duration::ZERO);
        assert_eq!(rest_after(ms(60_000), 50), STRETCH_MAX, "it did not merge for all that time");
    }

    #[test]
    fn the_clock_is_looked_at_after_many_rows_or_large_ones() {
        let looks = |rows: u32, bytes: usize| (0..rows).filter(|_| is_time_to_look(bytes)).count();
        assert_eq!((looks(2 * ROWS_BETWEEN, 100), looks(3, BYTES_BETWEEN)), (2, 3));
    }

    #[test]
    fn a_merge_keeps_every_row_and_takes_its_time() {
        let mut keep = MergePace::new(12).filter();
        let begin = now();
        let mut work = Duration::ZERO;
        while work < 10 * STRETCH {
            let row = now();
            while row.elapsed() < STRETCH / 8 {}
            work += row.elapsed();
            assert!(matches!(keep(1, b"key", &[0; BYTES_BETWEEN]), Decision::Keep));
        }
        let rested = begin.elapsed() - work;
        // Of a stretch in which the test had no processor only a part counts.
        assert!(rested > 12 * STRETCH, "{rested:?} of rest for work of {work:?}");
    }
}
