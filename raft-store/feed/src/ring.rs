//! The changes of late, in memory.
//!
//! Owns which of them are kept and what is known to be complete: a ring that does not go back far enough says so, it never
//! leaves anything out. Not the truth: what is not here is in the audit rows. Holds no values by itself; whoever shows a change
//! may leave the bytes made of it, for all others who show it in the same form.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use quorate_machine::keyspace::changes::{KeyChange, ValueChange};
use quorate_machine::query::FeedPosition;
use quorate_machine::types::{Entry, Key, Revision};
use quorate_threads::background;

/// Changes looked at in one step: bounds how long the writer may have to wait for a reader.
const LOOKED_AT_MAX: usize = 1_024;

/// Changes taken in one step.
const TAKEN_MAX: usize = 256;

/// So many changes are not given back by the writer, whom all wait for.
const MANY: usize = 1_024;

/// Forms in which a change can be shown.
pub const FORMS: usize = 4;

/// What a change takes beside its key.
const CHANGE_BYTES: usize = size_of::<RecentChange>() + 64;

/// A change of a value, and what was made of it so far.
#[derive(Debug)]
pub struct RecentChange {
    /// The key.
    pub key: Key,
    /// The revision it took.
    pub revision: Revision,
    /// What it did.
    pub change: ValueChange,
    forms: [OnceLock<Bytes>; FORMS],
    entry: OnceLock<Arc<Entry>>,
    /// Bytes that it counts for in the ring. Changed under the ring's lock alone.
    counted: AtomicUsize,
}

impl RecentChange {
    fn new(change: KeyChange) -> Option<Self> {
        let KeyChange { key, revision, value } = change;
        let counted = AtomicUsize::new(CHANGE_BYTES + key.as_bytes().len());
        let (forms, entry) = Default::default();
        value.map(|change| Self { key, revision, change, forms, entry, counted })
    }

    /// Where it stands.
    pub fn position(&self) -> FeedPosition {
        FeedPosition { revision: self.revision, index: self.change.index }
    }

    /// What was made of it in this form, less than [`FORMS`].
    pub fn form(&self, form: usize) -> Option<&Bytes> {
        self.forms[form].get()
    }

    /// The entry that it left, or removed, if somebody has read it.
    pub fn entry(&self) -> Option<&Arc<Entry>> {
        self.entry.get()
    }
}

/// What the ring has after a position.
pub(crate) struct Taken {
    pub changes: Vec<Arc<RecentChange>>,
    /// How far it looked.
    pub to: FeedPosition,
    /// Whether that is not all there is.
    pub more: bool,
}

/// The ring. Empty and useless until the first change is told.
pub(crate) struct Ring {
    changes: VecDeque<Arc<RecentChange>>,
    bytes: usize,
    bytes_max: usize,
    /// The revisions `(floor, tip]` are complete; `None` where nothing is known.
    known: Option<(Revision, Revision)>,
}

impl Ring {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { changes: VecDeque::new(), bytes: 0, bytes_max, known: None }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        match self.changes.len() {
            MANY.. => background::let_go(std::mem::take(&mut self.changes)),
            _ => self.changes.clear(),
        }
        (self.bytes, self.known) = (0, None);
    }

    /// Takes the changes of `(before, after]`; nothing up to `oldest` can be shown any more.
    pub(crate) fn push(&mut self, changes: Vec<KeyChange>, before: Revision, after: Revision, oldest: Revision) {
        if self.known.is_none_or(|(_, tip)| tip != before) {
            self.clear();
        }
        let floor = self.known.map_or(before, |(floor, _)| floor);
        for change in changes.into_iter().filter_map(RecentChange::new) {
            self.bytes += change.counted.load(Ordering::Relaxed);
            self.changes.push_back(Arc::new(change));
        }
        self.known = Some((floor, after));
        self.forget_up_to(oldest);
        self.shrink();
    }

    /// What follows a position and is wanted; `None` where the ring does not go back that far.
    pub(crate) fn after(&self, position: FeedPosition, wanted: impl Fn(&RecentChange) -> bool) -> Option<Taken> {
        let (floor, tip) = self.known.filter(|(floor, _)| position.is_covered_from(*floor))?;
        let first = self.changes.partition_point(|change| change.position() <= position);
        let mut taken = Vec::new();
        for (looked_at, change) in self.changes.range(first..).enumerate() {
            if taken.len() >= TAKEN_MAX || looked_at >= LOOKED_AT_MAX {
                let to = self.changes[first + looked_at - 1].position();
                return Some(Taken { changes: taken, to, more: true });
            }
            if wanted(change) {
                taken.push(Arc::clone(change));
            }
        }
        debug_assert!(floor <= tip);
        Some(Taken { changes: taken, to: position.max(FeedPosition::after(tip)), more: false })
    }

    /// Counts what somebody made of a change, unless it has gone meanwhile.
    pub(crate) fn grow(&mut self, change: &RecentChange, bytes: usize) {
        if self.known.is_some_and(|(floor, tip)| floor < change.revision && change.revision <= tip) {
            change.counted.fetch_add(bytes, Ordering::Relaxed);
            self.bytes += bytes;
            self.shrink();
        }
    }

    /// Drops the oldest revisions, each as a whole, until the rest fits.
    fn shrink(&mut self) {
        while self.bytes > self.bytes_max {
            let Some(oldest) = self.changes.front() else { return };
            self.forget_up_to(oldest.revision);
        }
    }

    fn forget_up_to(&mut self, revision: Revision) {
        let Some((floor, tip)) = self.known else { return };
        self.known = Some((floor.max(revision).min(tip), tip));
        while let Some(oldest) = self.changes.front().filter(|oldest| oldest.revision <= revision) {
            self.bytes -= oldest.counted.load(Ordering::Relaxed);
            self.changes.pop_front();
        }
    }
}

impl RecentChange {
    /// Leaves what was made of it in a form; false where somebody was faster.
    pub(crate) fn leave_form(&self, form: usize, bytes: Bytes) -> bool {
        self.forms[form].set(bytes).is_ok()
    }

    /// Leaves the entry that it left or removed; false where somebody was faster.
    pub(crate) fn leave_entry(&self, entry: Arc<Entry>) -> bool {
        self.entry.set(entry).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use quorate_machine::keyspace::changes::Cause;

    use super::*;

    fn change(revision: Revision, index: u32, of: u32) -> KeyChange {
        let value = ValueChange { index, of, cause: Cause::Written, locks: false, previous: None, clock: 0, wall: 0 };
        KeyChange { key: Key::new(format!("{revision}.{index}")).unwrap(), revision, value: Some(value) }
    }

    fn positions(taken: &Taken) -> Vec<(Revision, u32)> {
        taken.changes.iter().map(|change| (change.revision, change.change.index)).collect()
    }

    fn at(revision: Revision, index: u32) -> FeedPosition {
        FeedPosition { revision, index }
    }

    #[test]
    fn it_gives_what_follows_and_says_where_it_does_not_know() {
        let mut ring = Ring::new(1 << 20);
        assert!(ring.after(FeedPosition::after(1), |_| true).is_none());
        ring.push(vec![change(5, 0, 1), change(6, 0, 2), change(6, 1, 2)], 4, 6, 1);
        assert!(ring.after(FeedPosition::after(3), |_| true).is_none());
        assert!(ring.after(at(4, 0), |_| true).is_none(), "the rest of revision 4 is not known");
        let taken = ring.after(FeedPosition::after(4), |_| true).unwrap();
        assert_eq!(
            (positions(&taken), taken.to, taken.more),
            (vec![(5, 0), (6, 0), (6, 1)], FeedPosition::after(6), false)
        );
        assert_eq!(positions(&ring.after(at(6, 0), |_| true).unwrap()), [(6, 1)]);
        assert_eq!(
            positions(&ring.after(FeedPosition::after(4), |change| change.change.index == 1).unwrap()),
            [(6, 1)]
        );
        let ahead = ring.after(FeedPosition::after(9), |_| true).unwrap();
        assert_eq!((positions(&ahead), ahead.to), (vec![], FeedPosition::after(9)));
    }

    #[test]
    fn what_was_never_compacted_is_covered_from_its_very_beginning() {
        for position in [FeedPosition::after(0), at(0, 0), at(1, 0), FeedPosition::after(1)] {
            assert!(position.is_covered_from(1), "{position:?}");
        }
        assert!(!FeedPosition::after(0).is_covered_from(2) && !FeedPosition::after(1).is_covered_from(2));
        let mut ring = Ring::new(1 << 20);
        ring.push(vec![change(2, 0, 1)], 1, 2, 1);
        assert_eq!(positions(&ring.after(FeedPosition::after(0), |_| true).unwrap()), [(2, 0)]);
    }

    #[test]
    fn a_gap_makes_it_forget_what_was_before() {
        let mut ring = Ring::new(1 << 20);
        ring.push(vec![change(2, 0, 1)], 1, 2, 1);
        ring.push(vec![change(4, 0, 1)], 3, 4, 1);
        assert!(ring.after(FeedPosition::after(2), |_| true).is_none());
        assert_eq!(positions(&ring.after(FeedPosition::after(3), |_| true).unwrap()), [(4, 0)]);
    }

    #[test]
    fn it_stays_within_its_bytes_and_drops_revisions_as_a_whole() {
        let mut ring = Ring::new(3 * CHANGE_BYTES + 40);
        ring.push(vec![change(2, 0, 2), change(2, 1, 2), change(3, 0, 1)], 1, 3, 1);
        assert_eq!(positions(&ring.after(FeedPosition::after(1), |_| true).unwrap()).len(), 3);
        ring.push(vec![change(4, 0, 1)], 3, 4, 1);
        assert!(ring.after(FeedPosition::after(1), |_| true).is_none());
        let kept = ring.after(FeedPosition::after(2), |_| true).unwrap();
        assert_eq!(positions(&kept), [(3, 0), (4, 0)]);
        // What is made of a change counts, also where that is more than all of the ring may hold.
        assert!(kept.changes[1].leave_form(0, Bytes::from(vec![0; 1 << 20])));
        ring.grow(&kept.changes[1], 1 << 20);
        assert_eq!((ring.changes.len(), ring.bytes), (0, 0));
        ring.grow(&kept.changes[0], 1 << 20);
        assert_eq!(ring.bytes, 0);
        assert!(ring.after(FeedPosition::after(3), |_| true).is_none());
        assert!(ring.after(FeedPosition::after(4), |_| true).is_some());
    }

    #[test]
    fn what_is_compacted_is_forgotten() {
        let mut ring = Ring::new(1 << 20);
        ring.push(vec![change(2, 0, 1), change(3, 0, 1), change(4, 0, 1)], 1, 4, 3);
        assert!(ring.after(FeedPosition::after(2), |_| true).is_none());
        assert_eq!(positions(&ring.after(FeedPosition::after(3), |_| true).unwrap()), [(4, 0)]);
    }

    #[test]
    fn a_step_is_bounded_and_the_next_one_goes_on() {
        let mut ring = Ring::new(64 << 20);
        let last = 3_000;
        ring.push((2..=last).map(|revision| change(revision, 0, 1)).collect(), 1, last, 1);
        let (mut position, mut seen) = (FeedPosition::after(1), Vec::new());
        loop {
            let taken = ring.after(position, |change| change.revision % 7 == 0).unwrap();
            assert!(taken.changes.len() <= TAKEN_MAX);
            seen.extend(taken.changes.iter().map(|change| change.revision));
            position = taken.to;
            if !taken.more {
                break;
            }
        }
        assert_eq!(seen, (2..=last).filter(|revision| revision % 7 == 0).collect::<Vec<_>>());
        assert_eq!(position, FeedPosition::after(last));
    }
}
