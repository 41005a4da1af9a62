//! How many entries there are in ranges that are asked for again and again.
//!
//! Owns the counts that were found, and the creations and removals since, by which they are carried to another revision. A count of all of
//! a range is a walk over it; whoever reads a range in pages is told the count with each. Never reads the database, and never holds a count
//! that is not exactly that of its revision: where it cannot tell, the range is walked.
//!
//! Counts here are of what is stored: an entry that is past its deadline counts until it is removed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use quorate_machine::keyspace::changes::KeyChange;
use quorate_machine::query::{self, Bounds, Known};
use quorate_machine::types::{Key, Revision};

/// Most ranges whose counts are held.
const HELD_MAX: usize = 64;
/// Smaller ranges are walked as quickly.
const COUNT_MIN: u64 = 512;
/// Most creations and removals held: a count is forgotten once so many came after it.
const CHANGES_MAX: usize = 16_384;
/// Bounds longer than that are not held.
const BOUND_BYTES_MAX: usize = 1_024;

/// The counts of one database.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Whether changes are noted: from the first question on, until nothing is held that they could be of use for.
    listens: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The counts, those that were asked for last at the end.
    held: VecDeque<Held>,
    changes: VecDeque<Change>,
    /// The changes of the revisions `(floor, tip]` are complete; `None` before the first.
    known: Option<(Revision, Revision)>,
}

#[derive(Debug)]
struct Held {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    revision: Revision,
    count: u64,
}

#[derive(Debug)]
struct Change {
    revision: Revision,
    key: Key,
    /// Or removed.
    is_created: bool,
}

impl Counts {
    /// Notes from now on what is created and removed: before the state is looked at, so that what is found there can be carried on.
    pub(crate) fn listen(&self) {
        self.listens.store(true, Ordering::SeqCst);
    }

    /// Notes what is about to change in `(before, after]`, before readers can see it: every reader that sees a change finds it here.
    pub(crate) fn note(&self, changes: &[KeyChange], before: Revision, after: Revision) {
        if after == before || !self.listens.load(Ordering::SeqCst) {
            return;
        }
        let mut inner = self.inner.lock();
        match inner.known {
            Some((floor, tip)) if tip == before => inner.known = Some((floor, after)),
            Some(_) => {
                inner.forget();
                inner.known = Some((before, after));
            }
            None => inner.known = Some((before, after)),
        }
        inner.changes.extend(changes.iter().filter_map(Change::of));
        if inner.changes.len() > CHANGES_MAX {
            inner.drop_oldest();
        }
        if inner.held.is_empty() && inner.changes.len() > CHANGES_MAX / 2 {
            // Nobody has asked for anything of worth since.
            inner.forget();
            self.listens.store(false, Ordering::SeqCst);
        }
    }
}

impl query::Counts for Counts {
    fn known(&self, (start, end): Bounds<'_>, revision: Revision) -> Known {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let of_end = |held: &Held| held.end.as_deref() == end && held.start.as_slice() <= start;
        // The nearest one, which is that of the range itself where there is one.
        let nearest =
            inner.held.iter().enumerate().filter(|(_, held)| of_end(held)).max_by_key(|(_, held)| &held.start);
        let Some(at) = nearest.map(|(at, _)| at) else { return Known::Nothing };
        let Some(held) = inner.held.remove(at) else { return Known::Nothing };
        let Some(count) = inner.carried(&held, revision) else {
            // One of the past may be asked for beside those of now, which is not to be forgotten for that.
            if revision < held.revision {
                inner.held.push_back(held);
            }
            return Known::Nothing;
        };
        let known = match held.start == start {
            true => Known::Count(count),
            false => Known::From(held.start.clone(), count),
        };
        // Asked for at an older revision, it stays where it is: the next question may be about now.
        let (revision, count) = if revision > held.revision { (revision, count) } else { (held.revision, held.count) };
        inner.held.push_back(Held { revision, count, ..held });
        known
    }

    fn found(&self, (start, end): Bounds<'_>, revision: Revision, count: u64) {
        let is_long = start.len() > BOUND_BYTES_MAX || end.is_some_and(|end| end.len() > BOUND_BYTES_MAX);
        if count < COUNT_MIN || is_long {
            return;
        }
        let mut inner = self.inner.lock();
        if inner.known.is_none() {
            inner.known = Some((revision, revision));
        }
        inner.held.retain(|held| held.start != start || held.end.as_deref() != end);
        if inner.held.len() >= HELD_MAX {
            inner.held.pop_front();
        }
        let (start, end) = (start.to_vec(), end.map(<[u8]>::to_vec));
        inner.held.push_back(Held { start, end, revision, count });
    }
}

impl Inner {
    /// A count at another revision, where all changes between the two are known.
    fn carried(&self, held: &Held, revision: Revision) -> Option<u64> {
        let (first, last) = (held.revision.min(revision), held.revision.max(revision));
        let is_known = first == last || self.known.is_some_and(|(floor, tip)| floor <= first && last <= tip);
        if !is_known {
            return None;
        }
        let (mut created, mut removed) = (0, 0);
        let from = self.changes.partition_point(|change| change.revision <= first);
        for change in self.changes.range(from..).take_while(|change| change.revision <= last) {
            let key = change.key.as_bytes();
            if held.start.as_slice() <= key && held.end.as_ref().is_none_or(|end| key < end.as_slice()) {
                *if change.is_created { &mut created } else { &mut removed } += 1;
            }
        }
        let (more, less) = if revision >= held.revision { (created, removed) } else { (removed, created) };
        (held.count + more).checked_sub(less)
    }

    /// Drops half of the changes, revisions as a whole, and what needs them.
    fn drop_oldest(&mut self) {
        let Some(upto) = self.changes.get(self.changes.len() / 2).map(|change| change.revision) else { return };
        let count = self.changes.partition_point(|change| change.revision <= upto);
        self.changes.drain(..count);
        self.known = self.known.map(|(_, tip)| (upto, tip));
        self.held.retain(|held| held.revision >= upto);
    }

    fn forget(&mut self) {
        self.held.clear();
        self.changes.clear();
        self.known = None;
    }
}

impl Change {
    /// What a change means for counts, if anything.
    fn of(change: &KeyChange) -> Option<Self> {
        let value = change.value?;
        let is_created = value.previous.is_none();
        let counts = is_created || value.cause.is_removal();
        counts.then(|| Self { revision: change.revision, key: change.key.clone(), is_created })
    }
}

#[cfg(test)]
mod tests {
    use quorate_machine::keyspace::changes::{Cause, ValueChange};
    use quorate_machine::query::Counts as _;

    use super::*;

    const ALL: Bounds<'static> = (b"", None);

    fn change(revision: Revision, key: &str, cause: Cause, previous: Option<Revision>) -> KeyChange {
        let value = ValueChange { index: 0, of: 1, cause, locks: false, previous, clock: 0, wall: 0 };
        KeyChange { key: Key::new(key).unwrap(), revision, value: Some(value) }
    }

    fn created(revision: Revision, key: &str) -> KeyChange {
        change(revision, key, Cause::Written, None)
    }

    fn removed(revision: Revision, key: &str) -> KeyChange {
        change(revision, key, Cause::Removed, Some(1))
    }

    #[test]
    fn a_count_is_carried_to_every_revision_between_which_the_changes_are_known() {
        let counts = Counts::default();
        counts.listen();
        assert_eq!(counts.known(ALL, 10), Known::Nothing);
        counts.found(ALL, 10, 1_000);
        counts.found((b"b", Some(b"c")), 10, 600);
        counts.note(&[created(11, "a"), change(12, "b", Cause::Written, Some(4)), removed(12, "b1")], 10, 12);
        counts.note(&[created(13, "b2"), change(13, "b3", Cause::Expired, Some(2))], 12, 14);
        for (revision, all, some) in
            [(14, 1_000, 599), (13, 1_000, 599), (12, 1_000, 599), (11, 1_001, 600), (10, 1_000, 600)]
        {
            assert_eq!(counts.known(ALL, revision), Known::Count(all), "at {revision}");
            assert_eq!(counts.known((b"b", Some(b"c")), revision), Known::Count(some), "at {revision}");
        }
        assert_eq!(counts.known((b"b", None), 14), Known::From(Vec::new(), 1_000));
    }

    #[test]
    fn where_changes_are_missing_nothing_is_known() {
        let counts = Counts::default();
        counts.listen();
        counts.found(ALL, 10, 1_000);
        assert_eq!(counts.known(ALL, 11), Known::Nothing, "a revision that nobody told of");
        counts.found(ALL, 10, 1_000);
        counts.note(&[created(12, "a")], 11, 12);
        assert_eq!(counts.known(ALL, 12), Known::Nothing, "nobody told of revision 11");
        // Found in a state from before what is known.
        counts.found(ALL, 10, 1_000);
        assert_eq!(counts.known(ALL, 12), Known::Nothing);
        counts.found(ALL, 11, 1_000);
        assert_eq!(counts.known(ALL, 12), Known::Count(1_001));
    }

    #[test]
    fn what_is_held_is_bounded_and_small_ranges_are_not() {
        let counts = Counts::default();
        counts.listen();
        counts.found(ALL, 1, COUNT_MIN - 1);
        assert_eq!(counts.known(ALL, 1), Known::Nothing);
        for n in 0..2 * HELD_MAX {
            counts.found((n.to_string().as_bytes(), Some(b"x")), 1, COUNT_MIN);
        }
        assert_eq!(counts.inner.lock().held.len(), HELD_MAX);
        for revision in 2..=4 * CHANGES_MAX as Revision {
            counts.note(&[created(revision, "y")], revision - 1, revision);
            assert!(counts.inner.lock().changes.len() <= CHANGES_MAX);
        }
        assert!(counts.inner.lock().held.is_empty(), "too much has changed since");
        assert!(!counts.listens.load(Ordering::SeqCst), "nobody has asked for long");
    }
}
