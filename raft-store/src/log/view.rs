//! What the log holds as its callers see it: ahead of the disk by whatever is still queued.
//!
//! Owns the bounds of the log, the vote and the tail in memory. Never does I/O.

use super::tail::Tail;
use crate::raft::{LogEntry, LogId, Vote};

/// Memory for the newest entries. A slow follower within this distance costs no disk reads.
pub const TAIL_BYTES_MAX: usize = 32 * 1024 * 1024;

/// See the top of the file.
///
/// Invariant: the log holds exactly the entries `first..next`, where `next` follows `last`; with `first == next` it
/// holds none and `last == purged`. The tail ends at `next`; entries below `tail.first()` are in the segments.
#[derive(Debug)]
pub struct View {
    /// Last purged entry.
    pub purged: Option<LogId>,
    /// Last entry, or what was purged last.
    pub last: Option<LogId>,
    /// Index of the first entry, or of the next where there is none.
    pub first: u64,
    /// The last durable vote.
    pub vote: Option<Vote>,
    /// The newest entries.
    pub tail: Tail,
    /// Entries below this index are in the segments.
    written: u64,
    /// Truncations so far. Entries that came before a truncation say nothing about those that came after it.
    pub epoch: u64,
}

impl View {
    /// The view of a log as it was found on disk. `tail` holds the entries that were read on the way.
    pub fn new(purged: Option<LogId>, last: Option<LogId>, first: u64, vote: Option<Vote>, tail: Tail) -> Self {
        let next = tail.next();
        assert_eq!(next, next_index(&last), "the tail ends before {next}, the log's last id is {last:?}");
        Self { purged, last, first, vote, tail, written: next, epoch: 0 }
    }

    /// Index that the next entry gets.
    pub fn next(&self) -> u64 {
        self.tail.next()
    }

    /// Takes the entries in. They must follow the last entry; only a log that never held anything may start
    /// anywhere.
    pub fn append(&mut self, entries: &[LogEntry]) {
        let Some(head) = entries.first() else { return };
        if self.last.is_none() {
            self.first = head.log_id.index;
            self.tail.restart(self.first);
            self.written = self.first;
        }
        for entry in entries {
            self.tail.push(entry.clone());
            self.last = Some(entry.log_id);
        }
        self.tail.evict(self.written);
    }

    /// Drops every entry after `keep`; `last` then says what the log ends with. False where there was none to drop.
    pub fn truncate_after(&mut self, keep: Option<LogId>) -> bool {
        let next = next_index(&keep).max(self.first);
        if next >= self.next() {
            return false;
        }
        self.tail.truncate(next);
        self.written = self.written.min(next);
        self.epoch += 1;
        self.last = if next == self.first { self.purged } else { keep };
        true
    }

    /// Drops every entry up to `upto`. False where that was purged before.
    pub fn purge(&mut self, upto: LogId) -> bool {
        if self.purged.is_some_and(|purged| purged.index >= upto.index) {
            return false;
        }
        let first = upto.index + 1;
        self.purged = Some(upto);
        if self.next() <= first {
            self.last = Some(upto);
        }
        self.first = self.first.max(first);
        self.tail.drop_below(first);
        self.written = self.written.max(first);
        true
    }

    /// Takes note that the entries below `next`, queued in `epoch`, are in the segments.
    pub fn written_up_to(&mut self, next: u64, epoch: u64) {
        if epoch == self.epoch {
            self.written = self.written.max(next);
            self.tail.evict(self.written);
        }
    }
}

fn next_index(last: &Option<LogId>) -> u64 {
    last.as_ref().map_or(0, |id| id.index + 1)
}

#[cfg(test)]
mod tests {
    use openraft::EntryPayload;

    use super::*;
    use crate::raft::wire::LogIdRecord;

    fn id(term: u64, index: u64) -> LogId {
        LogIdRecord { term, node: 1, index }.into()
    }

    fn entries(term: u64, indexes: std::ops::Range<u64>) -> Vec<LogEntry> {
        indexes.map(|index| LogEntry { log_id: id(term, index), payload: EntryPayload::Blank }).collect()
    }

    fn empty() -> View {
        View::new(None, None, 0, None, Tail::new(0, 0))
    }

    fn held(view: &View) -> (u64, u64, Option<u64>) {
        (view.first, view.next(), view.last.as_ref().map(|id| id.index))
    }

    #[test]
    fn entries_of_an_old_epoch_do_not_let_new_ones_be_evicted() {
        let mut view = empty();
        view.append(&entries(1, 0..5));
        view.truncate_after(Some(id(1, 1)));
        view.append(&entries(2, 2..5));
        view.written_up_to(5, 0);
        assert_eq!(view.tail.first(), 0, "the writer spoke of entries that were truncated since");
        view.written_up_to(5, 1);
        assert_eq!(view.tail.first(), 5);
        assert_eq!(held(&view), (0, 5, Some(4)));
    }

    #[test]
    fn a_truncation_to_nothing_empties_the_log_and_falls_back_to_the_purge_mark() {
        let mut view = empty();
        view.append(&entries(1, 0..5));
        assert!(view.truncate_after(None));
        assert_eq!(held(&view), (0, 0, None));
        view.append(&entries(1, 0..5));
        view.purge(id(1, 2));
        assert_eq!(held(&view), (3, 5, Some(4)));
        assert!(view.truncate_after(Some(id(1, 2))));
        assert_eq!(held(&view), (3, 3, Some(2)));
        assert!(!view.truncate_after(Some(id(1, 2))), "nothing is left to truncate");
    }

    #[test]
    fn a_purge_beyond_the_end_becomes_the_last_id_and_appends_go_on_after_it() {
        let mut view = empty();
        view.append(&entries(1, 0..5));
        assert!(view.purge(id(2, 9)));
        assert_eq!(held(&view), (10, 10, Some(9)));
        assert!(!view.purge(id(1, 4)), "an older purge changes nothing");
        view.append(&entries(2, 10..12));
        assert_eq!(held(&view), (10, 12, Some(11)));
    }
}
