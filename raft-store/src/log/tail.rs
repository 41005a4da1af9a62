//! The newest entries in memory, so that replication and apply never read back what was just written.
//!
//! Owns a bounded run of consecutive entries that ends with the last one. Never reads a file. Payloads are
//! shared `Bytes`: an entry costs its bytes once, however many readers hold it.

use std::collections::VecDeque;

use quorate_threads::background;

use crate::raft::{LogEntry, wire};

/// What an entry costs beside its encoded bytes: the struct, its slot, allocator slack. An estimate.
pub const ENTRY_OVERHEAD_BYTES: usize = 128;

/// So many entries are not given back by whoever purges, which is Raft itself.
const MANY: usize = 1_024;

/// Memory that an entry takes in the tail or in a read.
pub fn cost(entry: &LogEntry) -> usize {
    wire::encoded_entry_len(entry) + ENTRY_OVERHEAD_BYTES
}

/// A run of consecutive entries.
///
/// Invariant: `entries[i]` has index `first + i`. With no entries, `first` is the index that comes next.
#[derive(Debug)]
pub struct Tail {
    first: u64,
    entries: VecDeque<LogEntry>,
    bytes: usize,
    bytes_max: usize,
}

impl Tail {
    /// An empty run before `next`.
    pub fn new(next: u64, bytes_max: usize) -> Self {
        Self { first: next, entries: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// Index of the first entry held, or the next index where none is.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Index after the last entry held.
    pub fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Memory held, in bytes, by estimate.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the entry after the last one.
    pub fn push(&mut self, entry: LogEntry) {
        let index = entry.log_id.index;
        assert_eq!(index, self.next(), "entry {index} would leave a hole in a tail that ends before {}", self.next());
        self.bytes += cost(&entry);
        self.entries.push_back(entry);
    }

    /// Adds the entry before the first one, unless that would exceed the bound.
    pub fn push_front_within_bound(&mut self, entry: LogEntry) -> bool {
        let index = entry.log_id.index;
        assert_eq!(index + 1, self.first, "entry {index} does not stand before {}", self.first);
        let bytes = self.bytes + cost(&entry);
        if bytes > self.bytes_max {
            return false;
        }
        (self.first, self.bytes) = (index, bytes);
        self.entries.push_front(entry);
        true
    }

    /// Drops every entry with an index of `next` or above; the next one pushed is `next`.
    pub fn truncate(&mut self, next: u64) {
        while self.next() > next {
            match self.entries.pop_back() {
                Some(dropped) => self.bytes -= cost(&dropped),
                None => self.first = next,
            }
        }
    }

    /// Drops every entry below `first`. With none left, the next one pushed is `first` or later.
    pub fn drop_below(&mut self, first: u64) {
        let below = usize::try_from(first.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.entries.len());
        if below >= MANY {
            let kept = self.entries.split_off(below);
            let gone = std::mem::replace(&mut self.entries, kept);
            self.first += below as u64;
            self.bytes -= gone.iter().map(cost).sum::<usize>();
            background::let_go(gone);
        }
        while self.first < first {
            match self.entries.pop_front() {
                Some(dropped) => {
                    self.bytes -= cost(&dropped);
                    self.first += 1;
                }
                None => self.first = first,
            }
        }
    }

    /// Restarts an empty run at `next`: for a log that has no entries at all.
    pub fn restart(&mut self, next: u64) {
        assert!(self.entries.is_empty(), "a tail of {} entries cannot restart at {next}", self.entries.len());
        self.first = next;
    }

    /// Drops the oldest entries until the bound holds, but none at or above `written`, as only memory has those.
    pub fn evict(&mut self, written: u64) {
        while self.bytes > self.bytes_max && self.first < written {
            self.drop_below(self.first + 1);
        }
    }

    /// Appends the entries of `start..end` to `into`, all of which must be held, until `bytes_max` is exceeded; at
    /// least one.
    pub fn read(&self, start: u64, end: u64, bytes_max: usize, into: &mut Vec<LogEntry>) {
        assert!(self.first <= start && end <= self.next(), "{start}..{end} of {}..{}", self.first, self.next());
        let offset = |index: u64| (index - self.first) as usize;
        let mut bytes = 0;
        for entry in self.entries.range(offset(start)..offset(end)) {
            bytes += cost(entry);
            if bytes > bytes_max && !into.is_empty() {
                return;
            }
            into.push(entry.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use openraft::EntryPayload;

    use super::*;
    use crate::raft::{EncodedBatch, LogId, wire::LogIdRecord};

    fn entry(index: u64) -> LogEntry {
        let log_id = LogId::from(LogIdRecord { term: 1, node: 1, index });
        LogEntry { log_id, payload: EntryPayload::Normal(EncodedBatch(vec![0; 1_000].into())) }
    }

    fn indexes(tail: &Tail, start: u64, end: u64, bytes_max: usize) -> Vec<u64> {
        let mut read = Vec::new();
        tail.read(start, end, bytes_max, &mut read);
        read.iter().map(|entry| entry.log_id.index).collect()
    }

    #[test]
    fn the_bound_is_kept_but_never_at_the_cost_of_unwritten_entries() {
        let mut tail = Tail::new(5, 3 * cost(&entry(0)));
        (5..15).for_each(|index| tail.push(entry(index)));
        tail.evict(7);
        assert_eq!((tail.first(), tail.next()), (7, 15), "7.. is only in memory");
        tail.evict(15);
        assert_eq!((tail.first(), tail.next()), (12, 15));
        assert_eq!(tail.bytes(), 3 * cost(&entry(0)));
    }

    #[test]
    fn a_truncated_tail_goes_on_where_it_was_cut_even_before_its_first_entry() {
        let mut tail = Tail::new(5, usize::MAX);
        (5..10).for_each(|index| tail.push(entry(index)));
        tail.truncate(8);
        assert_eq!(indexes(&tail, 5, 8, usize::MAX), [5, 6, 7]);
        tail.truncate(3);
        assert_eq!((tail.first(), tail.next(), tail.bytes()), (3, 3, 0));
        tail.push(entry(3));
        assert_eq!(indexes(&tail, 3, 4, usize::MAX), [3]);
    }

    #[test]
    fn a_purge_beyond_the_end_leaves_an_empty_tail_at_the_index_after_it() {
        let mut tail = Tail::new(5, usize::MAX);
        (5..10).for_each(|index| tail.push(entry(index)));
        tail.drop_below(7);
        assert_eq!(tail.first(), 7);
        tail.drop_below(20);
        assert_eq!((tail.first(), tail.next(), tail.bytes()), (20, 20, 0));
    }

    #[test]
    fn a_purge_of_many_entries_leaves_what_one_after_the_other_would() {
        let many = MANY as u64;
        let mut tail = Tail::new(5, usize::MAX);
        (5..2 * many).for_each(|index| tail.push(entry(index)));
        tail.drop_below(many + 7);
        assert_eq!((tail.first(), tail.next()), (many + 7, 2 * many));
        assert_eq!(tail.bytes(), (many as usize - 7) * cost(&entry(0)));
        tail.drop_below(3 * many);
        assert_eq!((tail.first(), tail.next(), tail.bytes()), (3 * many, 3 * many, 0));
    }

    #[test]
    fn a_capped_read_is_a_prefix_and_never_empty() {
        let mut tail = Tail::new(0, usize::MAX);
        (0..10).for_each(|index| tail.push(entry(index)));
        assert_eq!(indexes(&tail, 2, 9, 2 * cost(&entry(0))), [2, 3]);
        assert_eq!(indexes(&tail, 2, 9, 1), [2]);
    }
}
