//! Listings: a range of keys as of now or as of a past revision.
//!
//! Owns the walk over current entries and history in key order, both ways. Never judges expiry in the past.

use std::cmp::Ordering;

use super::{Cursor, ListPage, ListQuery, ListRead, Moment, ReadPosition, Snapshot};
use crate::keyspace::entry::{self, EntryRow};
use crate::keyspace::history::{self, Version};
use crate::keyspace::{deadline, family, family_range, relocked};
use crate::machine::Fault;
use crate::types::{Entry, Key, Revision};

/// Lists a page.
pub fn list(moment: &Moment<impl Snapshot>, query: &ListQuery) -> Result<ListRead, Fault> {
    let at = match position(moment, query.revision) {
        Ok(at) => at,
        Err(refusal) => return Ok(refusal),
    };
    let mut page = ListPage { at, entries: Vec::new(), more: false };
    let mut bytes_left = query.bytes_max;
    walk_live(moment, query, |key, row| {
        let bytes = key.len() + if query.keys_only { 0 } else { row.data.len() };
        if page.entries.len() >= query.limit || (bytes > bytes_left && !page.entries.is_empty()) {
            page.more = true;
            return Ok(false);
        }
        bytes_left = bytes_left.saturating_sub(bytes);
        let entry: Entry = if query.keys_only { row.to_entry_without_data() } else { row.to_entry() };
        let key = Key::new(key).map_err(|error| Fault::Invariant(format!("a stored key is none: {error}")))?;
        page.entries.push((key, entry));
        Ok(true)
    })?;
    Ok(ListRead::Page(page))
}

/// Farthest that is walked from where a count is known, or a quarter of that count; what is farther away is as soon counted.
const STEP_MAX: u64 = 4_096;

/// Counts what a listing without bounds would give. A revision that cannot be read is a fault of the caller, who must
/// have listed or checked before; it counts nothing.
pub fn count(
    moment: &Moment<impl Snapshot>,
    query: &ListQuery,
    counts: &impl Counts,
) -> Result<(ReadPosition, u64), Fault> {
    let at = match position(moment, query.revision) {
        Ok(at) => at,
        Err(_) => return Ok((moment.at, 0)),
    };
    let range = Range { reverse: false, ..Range::of(query) };
    if range.end.is_some_and(|end| end <= range.start) {
        return Ok((at, 0));
    }
    let stored = stored_count(moment, range, at.revision, counts)?;
    // In the past nothing is judged.
    let expired = if query.revision.is_none() { expired_count(moment, range)? } else { 0 };
    Ok((at, stored.saturating_sub(expired)))
}

/// A range of keys.
pub type Bounds<'b> = (&'b [u8], Option<&'b [u8]>);

/// Counts that were found before.
pub trait Counts {
    /// Looks for the count of a range at a revision.
    fn known(&self, range: Bounds<'_>, revision: Revision) -> Known;

    /// Keeps what was found out by a walk.
    fn found(&self, range: Bounds<'_>, revision: Revision, count: u64);
}

/// A count, as far as it is known.
#[derive(Debug, PartialEq, Eq)]
pub enum Known {
    /// It.
    Count(u64),
    /// That of the same range from this key on, which is before it.
    From(Vec<u8>, u64),
    /// Nothing.
    Nothing,
}

/// Keeps no count: each is walked anew.
#[derive(Debug)]
pub struct Uncounted;

impl Counts for Uncounted {
    fn known(&self, _range: Bounds<'_>, _revision: Revision) -> Known {
        Known::Nothing
    }

    fn found(&self, _range: Bounds<'_>, _revision: Revision, _count: u64) {}
}

/// How many entries of a range are stored at a revision.
fn stored_count(
    moment: &Moment<impl Snapshot>,
    range: Range<'_>,
    revision: Revision,
    counts: &impl Counts,
) -> Result<u64, Fault> {
    let bounds = (range.start, range.end);
    let count = match counts.known(bounds, revision) {
        Known::Count(count) => return Ok(count),
        // The page between the two, for who goes through the range in pages.
        Known::From(start, count) => {
            let between = Range { start: &start, end: Some(range.start), reverse: false };
            let most = STEP_MAX.max(count / 4);
            let passed = walked_count(moment, between, revision, most)?;
            (passed < most).then(|| count.checked_sub(passed)).flatten()
        }
        Known::Nothing => None,
    };
    let count = match count {
        Some(count) => count,
        None => walked_count(moment, range, revision, u64::MAX)?,
    };
    counts.found(bounds, revision, count);
    Ok(count)
}

/// The same by a walk, which ends at `most`. Of entries as they are now only the keys are looked at.
fn walked_count(moment: &Moment<impl Snapshot>, range: Range<'_>, revision: Revision, most: u64) -> Result<u64, Fault> {
    let mut count = 0;
    if revision < moment.at.revision {
        walk_past(moment, range, revision, |_, row| {
            count += u64::from(row.is_some());
            Ok(count < most)
        })?;
        return Ok(count);
    }
    let mut entries = EntryWalk::new(moment, range);
    while entries.rows.valid() && count < most {
        count += 1;
        entries.step();
    }
    entries.finish()?;
    Ok(count)
}

/// How many entries of a range are stored and past their deadline.
fn expired_count(moment: &Moment<impl Snapshot>, range: Range<'_>) -> Result<u64, Fault> {
    let (start, end) = deadline::due_range(moment.at.clock);
    let mut rows = moment.rows(&start, &end);
    rows.seek_to_first();
    let mut count = 0;
    while let Some(row_key) = rows.key() {
        let (_, key) = deadline::decode_key(row_key)?;
        count += u64::from(range.start <= key && range.end.is_none_or(|end| key < end));
        rows.next();
    }
    rows.status()?;
    Ok(count)
}

/// Where a query is evaluated, or why it cannot be.
fn position(moment: &Moment<impl Snapshot>, revision: Option<Revision>) -> Result<ReadPosition, ListRead> {
    match revision {
        None => Ok(moment.at),
        Some(revision) if revision < moment.at.oldest_revision => Err(ListRead::Compacted(moment.at)),
        Some(revision) if revision > moment.at.revision => Err(ListRead::Future(moment.at)),
        Some(revision) => Ok(ReadPosition { revision, ..moment.at }),
    }
}

/// A range of keys, and from which end.
#[derive(Clone, Copy)]
pub struct Range<'q> {
    /// First key, inclusive.
    pub start: &'q [u8],
    /// End key, exclusive.
    pub end: Option<&'q [u8]>,
    /// From the end backwards.
    pub reverse: bool,
}

impl<'q> Range<'q> {
    fn of(query: &'q ListQuery) -> Self {
        Self { start: &query.start, end: query.end.as_deref(), reverse: query.reverse }
    }
}

/// Calls `visit` with each live key and its row, in the order asked for, until it says `false`.
fn walk_live(
    moment: &Moment<impl Snapshot>,
    query: &ListQuery,
    mut visit: impl FnMut(&[u8], EntryRow<'_>) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let judges_expiry = query.revision.is_none();
    walk(moment, Range::of(query), query.revision, |key, row| match row {
        Some(row) if !(judges_expiry && row.is_expired_at(moment.at.clock)) => visit(key, row),
        _ => Ok(true),
    })
}

/// Calls `visit` with each key, in the order asked for, until it says `false`. Without a row where the key had no entry at
/// the revision. Expiry is not judged.
pub fn walk(
    moment: &Moment<impl Snapshot>,
    range: Range<'_>,
    revision: Option<Revision>,
    visit: impl FnMut(&[u8], Option<EntryRow<'_>>) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    if range.end.is_some_and(|end| end <= range.start) {
        return Ok(());
    }
    match revision.filter(|revision| *revision < moment.at.revision) {
        None => walk_now(moment, range, visit),
        Some(revision) => walk_past(moment, range, revision, visit),
    }
}

fn walk_now(
    moment: &Moment<impl Snapshot>,
    range: Range<'_>,
    mut visit: impl FnMut(&[u8], Option<EntryRow<'_>>) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let mut entries = EntryWalk::new(moment, range);
    while let Some((key, row)) = entries.current()? {
        if !visit(key, Some(row))? {
            break;
        }
        entries.step();
    }
    entries.finish()
}

/// The current entry of a key counts where it is old enough, else the newest old version that is.
fn walk_past(
    moment: &Moment<impl Snapshot>,
    range: Range<'_>,
    revision: Revision,
    mut visit: impl FnMut(&[u8], Option<EntryRow<'_>>) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let mut entries = EntryWalk::new(moment, range);
    let mut versions = VersionWalk::new(moment, range);
    let mut locks = relocks(moment);
    loop {
        let now = entries.current()?;
        let past = versions.current_key()?;
        let order = match (&now, &past) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((key, _)), Some(past)) if range.reverse => past.as_slice().cmp(key),
            (Some((key, _)), Some(past)) => (*key).cmp(past.as_slice()),
        };
        let current = now.filter(|_| order != Ordering::Greater);
        let old = past.as_deref().filter(|_| order != Ordering::Less);
        let go_on = match (current, old) {
            (Some((key, row)), _) if row.meta.mod_revision <= revision => {
                visit(key, Some(locked_as_at(&mut locks, key, row, revision)?))?
            }
            (_, Some(key)) => match versions.newest_up_to(key, revision)? {
                Some(row) => match history::decode(&row)? {
                    Version::Entry(row) => visit(key, Some(locked_as_at(&mut locks, key, row, revision)?))?,
                    Version::Tombstone => visit(key, None)?,
                },
                None => visit(key, None)?,
            },
            (Some((key, _)), None) => visit(key, None)?,
            (None, None) => unreachable!("one of the two walks has a key"),
        };
        if !go_on {
            break;
        }
        if order != Ordering::Greater {
            entries.step();
        }
        if let Some(key) = past.filter(|_| order != Ordering::Less) {
            versions.leave(&key);
        }
    }
    entries.finish()?;
    versions.finish()
}

/// The entry of a key as it was at a revision that can be read.
pub fn entry_at(moment: &Moment<impl Snapshot>, key: &Key, revision: Revision) -> Result<Option<Entry>, Fault> {
    let current = moment.snapshot.get_pinned(entry::row_key(key.as_bytes()))?;
    history::read_at::<Fault>(
        key.as_bytes(),
        revision,
        current.as_deref(),
        |_, _| {
            let (start, end) = family_range(family::HISTORY);
            newest_between(&mut moment.rows(&start, &end), key.as_bytes(), revision)
        },
        |first, last| first_between(&mut relocks(moment), first, last),
    )
}

/// What locks were before they changed.
fn relocks<S: Snapshot>(moment: &Moment<S>) -> S::Cursor<'_> {
    let (start, end) = family_range(family::RELOCKED);
    moment.rows(&start, &end)
}

/// A version with the lock that was on it at a revision.
fn locked_as_at<'r>(
    locks: &mut impl Cursor,
    key: &[u8],
    row: EntryRow<'r>,
    revision: Revision,
) -> Result<EntryRow<'r>, Fault> {
    relocked::as_at(row, key, revision, |first, last| first_between(locks, first, last))
}

/// The value of the first row from `first` on that is not behind `last`.
fn first_between(rows: &mut impl Cursor, first: &[u8], last: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
    rows.seek(first);
    rows.status()?;
    Ok(rows.item().filter(|(row_key, _)| *row_key <= last).map(|(_, row)| row.to_vec()))
}

/// Current entries, in the order asked for.
struct EntryWalk<C> {
    rows: C,
    reverse: bool,
}

impl<C: Cursor> EntryWalk<C> {
    fn new<'m, S: Snapshot<Cursor<'m> = C>>(moment: &'m Moment<S>, range: Range<'_>) -> Self {
        let start = entry::row_key(range.start);
        let end = match range.end {
            Some(end) => entry::row_key(end),
            None => family_range(family::ENTRY).1,
        };
        let mut rows = moment.rows(&start, &end);
        if range.reverse {
            rows.seek_to_last()
        } else {
            rows.seek_to_first()
        }
        Self { rows, reverse: range.reverse }
    }

    fn current(&self) -> Result<Option<(&[u8], EntryRow<'_>)>, Fault> {
        let Some((row_key, row)) = self.rows.item() else { return Ok(None) };
        Ok(Some((entry::decode_key(row_key)?, entry::decode(row)?)))
    }

    fn step(&mut self) {
        if self.reverse { self.rows.prev() } else { self.rows.next() }
    }

    fn finish(&self) -> Result<(), Fault> {
        self.rows.status()
    }
}

/// Keys that have history, in the order asked for. However many versions a key has, it costs three seeks.
struct VersionWalk<C> {
    rows: C,
    /// Finds one version, while `rows` stays where it is.
    finder: C,
    reverse: bool,
}

impl<C: Cursor> VersionWalk<C> {
    fn new<'m, S: Snapshot<Cursor<'m> = C>>(moment: &'m Moment<S>, range: Range<'_>) -> Self {
        let start = history::lower_bound(range.start);
        let end = match range.end {
            Some(end) => history::lower_bound(end),
            None => family_range(family::HISTORY).1,
        };
        let mut rows = moment.rows(&start, &end);
        if range.reverse {
            rows.seek_to_last()
        } else {
            rows.seek_to_first()
        }
        Self { rows, finder: moment.rows(&start, &end), reverse: range.reverse }
    }

    fn current_key(&self) -> Result<Option<Vec<u8>>, Fault> {
        let Some(row_key) = self.rows.key() else { return Ok(None) };
        Ok(Some(history::decode_key(row_key)?.0))
    }

    /// The newest row of `key` that is not newer than `revision`.
    fn newest_up_to(&mut self, key: &[u8], revision: Revision) -> Result<Option<Vec<u8>>, Fault> {
        newest_between(&mut self.finder, key, revision)
    }

    /// Goes to the next key, past all versions of this one.
    fn leave(&mut self, key: &[u8]) {
        let (first, mut last) = history::bounds_up_to(key, Revision::MAX);
        if self.reverse {
            self.rows.seek_for_prev(first);
        } else {
            last.push(0);
            self.rows.seek(last);
        }
    }

    fn finish(&self) -> Result<(), Fault> {
        self.rows.status()?;
        self.finder.status()
    }
}

/// The newest history row of `key` that is not newer than `revision`.
pub fn newest_between(rows: &mut impl Cursor, key: &[u8], revision: Revision) -> Result<Option<Vec<u8>>, Fault> {
    let (first, last) = history::bounds_up_to(key, revision);
    rows.seek_for_prev(last);
    rows.status()?;
    Ok(rows.item().filter(|(row_key, _)| *row_key >= first.as_slice()).map(|(_, row)| row.to_vec()))
}
