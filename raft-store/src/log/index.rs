//! What is on disk: a place in a segment for every entry that the log holds.
//!
//! Owns the order of locations and segments, and what a group does to them, the same for the writer and at open. Never does
//! I/O.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::group::{LogState, Record, directory_end};
use super::segment::Segment;

/// Everything that was written, in the order in which it was.
///
/// Invariant: the index ends where the log state says, and has a place for every entry that is not purged.
#[derive(Debug, Default)]
pub struct Content {
    /// Places of the entries.
    pub index: Index,
    /// The files that they are in.
    pub segments: Segments,
    /// What all of it amounts to.
    pub log_state: LogState,
}

impl Content {
    /// Takes in a group that stands at `offset` of the segment. An error is a record that cannot follow; then nothing
    /// must be read from this any more.
    pub fn apply(&mut self, segment: &Arc<Segment>, offset: u64, records: &[Record]) -> Result<(), String> {
        let (mut at, mut end) = (offset + directory_end(records.len()) as u64, 0);
        for record in records {
            let before = self.log_state;
            self.log_state.apply(record)?;
            let mut place = Location { segment: segment.number(), offset: 0, bytes: 0 };
            if let Record::Entry { id, bytes } = *record {
                place.offset = u32::try_from(at).map_err(|_| format!("entry {} at offset {at}", id.index))?;
                place.bytes = bytes;
                at += u64::from(bytes);
                end = end.max(id.index + 1);
            }
            self.index.apply(&before, record, place);
        }
        self.segments.written(segment, end);
        Ok(())
    }
}

impl Content {
    /// Whether the first group is still there.
    pub fn is_from_the_start(&self) -> bool {
        self.segments.held.front().is_none_or(|held| held.segment.number() == 1)
    }
}

/// Where a sealed entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// Number of the segment.
    pub segment: u64,
    /// Offset in it.
    pub offset: u32,
    /// Bytes of the sealed entry.
    pub bytes: u32,
}

/// A place for each of a run of consecutive entries.
///
/// Invariant: entry `first + i` stands at `locations[i]`.
#[derive(Debug, Default)]
pub struct Index {
    first: u64,
    locations: VecDeque<Location>,
}

impl Index {
    /// An empty run that goes on at `next`.
    pub fn new(next: u64) -> Self {
        Self { first: next, locations: VecDeque::new() }
    }

    /// Index of the first entry, or of the next where there is none.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Index after the last entry.
    pub fn next(&self) -> u64 {
        self.first + self.locations.len() as u64
    }

    /// Takes in what a record does. `before` is the log state it comes upon, `place` that of an entry.
    pub fn apply(&mut self, before: &LogState, record: &Record, place: Location) {
        match *record {
            Record::Entry { id, .. } => {
                if before.last.is_none() {
                    *self = Self::new(id.index);
                }
                assert_eq!(id.index, self.next(), "entry {} after an index up to {}", id.index, self.next());
                self.locations.push_back(place);
            }
            Record::Truncate(keep) => self.truncate(keep.map_or(0, |id| id.index + 1)),
            Record::Purge(upto) => self.drop_below(upto.index + 1),
            Record::Vote(_) => {}
        }
    }

    fn truncate(&mut self, next: u64) {
        self.locations.truncate(next.saturating_sub(self.first) as usize);
        self.first = self.first.min(next);
    }

    fn drop_below(&mut self, first: u64) {
        let dropped = first.saturating_sub(self.first).min(self.locations.len() as u64) as usize;
        self.locations.drain(..dropped);
        // Rarely, and only what a burst has left behind.
        if self.locations.capacity() > 4 * self.locations.len() + 4096 {
            self.locations.shrink_to(2 * self.locations.len());
        }
        self.first = self.first.max(first);
    }

    /// Start of a run of entries before `end` that takes about so many bytes on disk; at least one entry if there is one.
    pub fn run_before(&self, end: u64, bytes_max: u64) -> u64 {
        let known = self.locations.range(..(end.min(self.next()) - self.first) as usize);
        let mut bytes = 0;
        let run = known.rev().take_while(|place| {
            let fits = bytes < bytes_max;
            bytes += u64::from(place.bytes);
            fits
        });
        end - run.count() as u64
    }

    /// The locations from `range.start` on, as far as they are known.
    pub fn locations(&self, range: Range<u64>) -> impl Iterator<Item = (u64, Location)> {
        let known = range.start >= self.first && range.start < self.next();
        let start = if known { (range.start - self.first) as usize } else { self.locations.len() };
        let end = (range.end.min(self.next()).saturating_sub(self.first) as usize).max(start);
        (range.start..).zip(self.locations.range(start..end).copied())
    }
}

/// A segment that groups were written to.
#[derive(Debug)]
struct Held {
    segment: Arc<Segment>,
    /// Index after the highest entry ever written to it.
    end: u64,
}

/// The segments that groups were written to, oldest first; the last one is being written.
#[derive(Debug, Default)]
pub struct Segments {
    held: VecDeque<Held>,
}

impl Segments {
    /// Takes note that a group was written to the segment, with entries below `end` (0 for none).
    pub fn written(&mut self, segment: &Arc<Segment>, end: u64) {
        match self.held.back_mut() {
            Some(last) if last.segment.number() == segment.number() => last.end = last.end.max(end),
            _ => self.held.push_back(Held { segment: Arc::clone(segment), end }),
        }
    }

    /// The segment of this number.
    pub fn get(&self, number: u64) -> Option<&Arc<Segment>> {
        let first = self.held.front()?.segment.number();
        self.held.get(usize::try_from(number.checked_sub(first)?).ok()?).map(|held| &held.segment)
    }

    /// The oldest segment, if it is not the last one and holds no entry at or above `end`. None where nothing was purged:
    /// such a log starts with the first of all segments.
    pub fn removable(&self, end: u64) -> Option<Arc<Segment>> {
        let oldest = self.held.front().filter(|oldest| oldest.end <= end)?;
        (end > 0 && self.held.len() > 1).then(|| Arc::clone(&oldest.segment))
    }

    /// Forgets the oldest segment.
    pub fn forget_oldest(&mut self) {
        self.held.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::wire::LogIdRecord;

    fn id(index: u64) -> LogIdRecord {
        LogIdRecord { term: 1, node: 1, index }
    }

    fn place(offset: u32) -> Location {
        Location { segment: 1, offset, bytes: 10 }
    }

    /// Applies in order; the offset of an entry is its position among the records.
    fn build(next: u64, records: &[Record]) -> Index {
        let mut log_state = LogState { last: next.checked_sub(1).map(id), ..LogState::default() };
        let mut index = Index::new(next);
        for (offset, record) in (0..).zip(records) {
            index.apply(&log_state, record, place(offset));
            log_state.apply(record).unwrap();
            assert!(log_state.last.is_none() || index.next() == log_state.next(), "{record:?}");
        }
        index
    }

    fn entries(indexes: Range<u64>) -> Vec<Record> {
        indexes.map(|index| Record::Entry { id: id(index), bytes: 10 }).collect()
    }

    fn offsets(index: &Index, range: Range<u64>) -> Vec<(u64, u32)> {
        index.locations(range).map(|(index, place)| (index, place.offset)).collect()
    }

    #[test]
    fn what_a_truncation_dropped_is_replaced_by_what_came_later() {
        let records = [entries(0..4), vec![Record::Truncate(Some(id(1)))], entries(2..4)].concat();
        let index = build(0, &records);
        assert_eq!(offsets(&index, 1..9), [(1, 1), (2, 5), (3, 6)]);
        assert_eq!(offsets(&index, 4..9), []);
        let emptied = [records, vec![Record::Truncate(None)], entries(7..9)].concat();
        assert_eq!(offsets(&build(0, &emptied), 7..9), [(7, 8), (8, 9)]);
    }

    #[test]
    fn a_run_that_starts_in_the_middle_takes_truncations_and_purges_on_both_sides() {
        let records = [entries(10..12), vec![Record::Truncate(Some(id(5)))], entries(6..8)].concat();
        let index = build(10, &records);
        assert_eq!((index.first(), index.next()), (6, 8));
        let index = build(10, &[records, vec![Record::Purge(id(6))]].concat());
        assert_eq!((index.first(), index.next()), (7, 8));
        let index = build(10, &[vec![Record::Purge(id(20))], entries(21..23)].concat());
        assert_eq!(offsets(&index, 21..30), [(21, 1), (22, 2)]);
        assert_eq!(offsets(&index, 3..30), []);
    }
}
