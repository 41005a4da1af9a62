//! Listings: a range of keys as of now or as of a past revision.
//!
//! Owns the walk over current entries and history in key order, both ways. Never judges expiry in the past.

use std::cmp::Ordering;

use rocksdb::{DB, DBRawIteratorWithThreadMode};

use super::shared::Moment;
use super::types::{ListPage, ListQuery, ListRead, ReadPosition, StateFault};
use crate::keyspace::entry::{self, EntryRow};
use crate::keyspace::history::{self, Version};
use crate::keyspace::{family, family_range};
use crate::types::{Entry, Key, Revision};

type Rows<'m> = DBRawIteratorWithThreadMode<'m, DB>;

/// Lists a page.
pub(crate) fn list(moment: &Moment<'_>, query: &ListQuery) -> Result<ListRead, StateFault> {
    let at = match position(moment, query.revision) {
        Ok(at) => at,
        Err(refusal) => return Ok(refusal),
    };
    let mut page = ListPage { at, entries: Vec::new(), more: false };
    let mut bytes_left = query.bytes_max;
    walk(moment, query, |key, row| {
        let bytes = key.len() + if query.keys_only { 0 } else { row.data.len() };
        if page.entries.len() >= query.limit || (bytes > bytes_left && !page.entries.is_empty()) {
            page.more = true;
            return Ok(false);
        }
        bytes_left = bytes_left.saturating_sub(bytes);
        let entry: Entry = if query.keys_only { row.to_entry_without_data() } else { row.to_entry() };
        let key = Key::new(key).map_err(|error| StateFault(format!("a stored key is not one: {error}")))?;
        page.entries.push((key, entry));
        Ok(true)
    })?;
    Ok(ListRead::Page(page))
}

/// Counts what a listing without bounds would give. A revision that cannot be read is a fault of the caller, who must
/// have listed or checked before; it counts nothing.
pub(crate) fn count(moment: &Moment<'_>, query: &ListQuery) -> Result<(ReadPosition, u64), StateFault> {
    let at = match position(moment, query.revision) {
        Ok(at) => at,
        Err(_) => return Ok((moment.at, 0)),
    };
    let mut count = 0;
    walk(moment, query, |_, _| {
        count += 1;
        Ok(true)
    })?;
    Ok((at, count))
}

/// Where a query is evaluated, or why it cannot be.
fn position(moment: &Moment<'_>, revision: Option<Revision>) -> Result<ReadPosition, ListRead> {
    match revision {
        None => Ok(moment.at),
        Some(revision) if revision < moment.at.oldest_revision => Err(ListRead::Compacted(moment.at)),
        Some(revision) if revision > moment.at.revision => Err(ListRead::Future(moment.at)),
        Some(revision) => Ok(ReadPosition { revision, ..moment.at }),
    }
}

/// Calls `visit` with each live key and its row, in the order asked for, until it says `false`.
fn walk(
    moment: &Moment<'_>,
    query: &ListQuery,
    visit: impl FnMut(&[u8], EntryRow<'_>) -> Result<bool, StateFault>,
) -> Result<(), StateFault> {
    if query.end.as_ref().is_some_and(|end| *end <= query.start) {
        return Ok(());
    }
    match query.revision {
        None => walk_now(moment, query, visit),
        Some(revision) => walk_past(moment, query, revision, visit),
    }
}

fn walk_now(
    moment: &Moment<'_>,
    query: &ListQuery,
    mut visit: impl FnMut(&[u8], EntryRow<'_>) -> Result<bool, StateFault>,
) -> Result<(), StateFault> {
    let mut entries = EntryWalk::new(moment, query);
    while let Some((key, row)) = entries.current()? {
        if !row.is_expired_at(moment.at.clock) && !visit(key, row)? {
            break;
        }
        entries.step();
    }
    entries.finish()
}

/// The current entry of a key counts where it is old enough, else the newest old version that is.
fn walk_past(
    moment: &Moment<'_>,
    query: &ListQuery,
    revision: Revision,
    mut visit: impl FnMut(&[u8], EntryRow<'_>) -> Result<bool, StateFault>,
) -> Result<(), StateFault> {
    let mut entries = EntryWalk::new(moment, query);
    let mut versions = VersionWalk::new(moment, query);
    loop {
        let now = entries.current()?;
        let past = versions.current_key()?;
        let order = match (&now, &past) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((key, _)), Some(past)) if query.reverse => past.as_slice().cmp(key),
            (Some((key, _)), Some(past)) => (*key).cmp(past.as_slice()),
        };
        let old_enough = now.filter(|(_, row)| order != Ordering::Greater && row.meta.mod_revision <= revision);
        let go_on = match (old_enough, &past) {
            (Some((key, row)), _) => visit(key, row)?,
            (None, Some(key)) if order != Ordering::Less => match versions.newest_up_to(key, revision)? {
                Some(row) => match history::decode(&row)? {
                    Version::Entry(row) => visit(key, row)?,
                    Version::Tombstone => true,
                },
                None => true,
            },
            (None, _) => true,
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

/// Current entries, in the order asked for.
struct EntryWalk<'m> {
    rows: Rows<'m>,
    reverse: bool,
}

impl<'m> EntryWalk<'m> {
    fn new(moment: &'m Moment<'_>, query: &ListQuery) -> Self {
        let start = entry::row_key(&query.start);
        let end = match &query.end {
            Some(end) => entry::row_key(end),
            None => family_range(family::ENTRY).1,
        };
        let mut rows = moment.rows(&start, &end);
        if query.reverse {
            rows.seek_to_last()
        } else {
            rows.seek_to_first()
        }
        Self { rows, reverse: query.reverse }
    }

    fn current(&self) -> Result<Option<(&[u8], EntryRow<'_>)>, StateFault> {
        let Some((row_key, row)) = self.rows.item() else { return Ok(None) };
        Ok(Some((entry::decode_key(row_key)?, entry::decode(row)?)))
    }

    fn step(&mut self) {
        if self.reverse { self.rows.prev() } else { self.rows.next() }
    }

    fn finish(&self) -> Result<(), StateFault> {
        Ok(self.rows.status()?)
    }
}

/// Keys that have history, in the order asked for. However many versions a key has, it costs three seeks.
struct VersionWalk<'m> {
    rows: Rows<'m>,
    /// Finds one version, while `rows` stays where it is.
    finder: Rows<'m>,
    reverse: bool,
}

impl<'m> VersionWalk<'m> {
    fn new(moment: &'m Moment<'_>, query: &ListQuery) -> Self {
        let start = history::lower_bound(&query.start);
        let end = match &query.end {
            Some(end) => history::lower_bound(end),
            None => family_range(family::HISTORY).1,
        };
        let mut rows = moment.rows(&start, &end);
        if query.reverse {
            rows.seek_to_last()
        } else {
            rows.seek_to_first()
        }
        Self { rows, finder: moment.rows(&start, &end), reverse: query.reverse }
    }

    fn current_key(&self) -> Result<Option<Vec<u8>>, StateFault> {
        let Some(row_key) = self.rows.key() else { return Ok(None) };
        Ok(Some(history::decode_key(row_key)?.0))
    }

    /// The newest row of `key` that is not newer than `revision`.
    fn newest_up_to(&mut self, key: &[u8], revision: Revision) -> Result<Option<Vec<u8>>, StateFault> {
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

    fn finish(&self) -> Result<(), StateFault> {
        self.rows.status()?;
        Ok(self.finder.status()?)
    }
}

/// The newest history row of `key` that is not newer than `revision`.
pub(crate) fn newest_between(
    rows: &mut Rows<'_>,
    key: &[u8],
    revision: Revision,
) -> Result<Option<Vec<u8>>, StateFault> {
    let (first, last) = history::bounds_up_to(key, revision);
    rows.seek_for_prev(last);
    rows.status()?;
    Ok(rows.item().filter(|(row_key, _)| *row_key >= first.as_slice()).map(|(_, row)| row.to_vec()))
}
