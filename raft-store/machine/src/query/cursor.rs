//! The source of queries: a state that stands still, and cursors over its rows.
//!
//! Owns the two interfaces, and both of them for rows in memory. Never knows what a row means.

use std::collections::BTreeMap;
use std::ops::{Bound, Deref};

use crate::machine::{Fault, MemoryView, Most, Row};

/// The rows of a state that nothing changes.
pub trait Snapshot {
    /// The value of a row, where the store has it.
    type Pinned<'s>: Deref<Target = [u8]>
    where
        Self: 's;
    /// See [`Self::rows`].
    type Cursor<'s>: Cursor
    where
        Self: 's;

    /// The value of one row.
    fn get_pinned(&self, row_key: impl AsRef<[u8]>) -> Result<Option<Self::Pinned<'_>>, Fault>;

    /// A cursor over the rows of `[start, end)` that stands nowhere yet.
    fn rows(&self, start: &[u8], end: &[u8]) -> Self::Cursor<'_>;
}

/// A place among some rows, in the order of their keys. It stands nowhere behind the last row, before the first, and after a failed read,
/// which only [`Self::status`] tells from the others.
pub trait Cursor {
    /// Goes to the first row.
    fn seek_to_first(&mut self);

    /// Goes to the last row.
    fn seek_to_last(&mut self);

    /// Goes to the first row from this key on.
    fn seek(&mut self, row_key: impl AsRef<[u8]>);

    /// Goes to the last row up to this key, inclusive.
    fn seek_for_prev(&mut self, row_key: impl AsRef<[u8]>);

    /// Goes to the next row.
    fn next(&mut self);

    /// Goes to the row before.
    fn prev(&mut self);

    /// Key and value of the row; `None` where it stands nowhere.
    fn item(&self) -> Option<(&[u8], &[u8])>;

    /// Why it stands nowhere, where that is a failed read.
    fn status(&self) -> Result<(), Fault>;

    /// Whether it stands at a row.
    fn valid(&self) -> bool {
        self.item().is_some()
    }

    /// Key of the row.
    fn key(&self) -> Option<&[u8]> {
        self.item().map(|(row_key, _)| row_key)
    }

    /// Value of the row.
    fn value(&self) -> Option<&[u8]> {
        self.item().map(|(_, row)| row)
    }
}

/// Rows from where a cursor stands on, at most so much.
pub fn take_page(mut rows: impl Cursor, reverse: bool, most: Most) -> Result<Vec<Row>, Fault> {
    let mut is_first = true;
    // The next row is read when it is asked for: one more may be a megabyte that nobody wants.
    let found = most.take(std::iter::from_fn(|| {
        if !std::mem::take(&mut is_first) {
            if reverse { rows.prev() } else { rows.next() }
        }
        rows.item().map(|(row_key, row)| (row_key.to_vec(), row.to_vec()))
    }));
    rows.status()?;
    Ok(found)
}

impl Snapshot for MemoryView {
    type Pinned<'s> = &'s [u8];
    type Cursor<'s> = MemoryCursor<'s>;

    fn get_pinned(&self, row_key: impl AsRef<[u8]>) -> Result<Option<&[u8]>, Fault> {
        Ok(self.0.get(row_key.as_ref()).map(Vec::as_slice))
    }

    fn rows(&self, start: &[u8], end: &[u8]) -> MemoryCursor<'_> {
        MemoryCursor { rows: &self.0, start: start.to_vec(), end: end.to_vec(), item: None }
    }
}

/// Rows that somebody else has.
impl Snapshot for &MemoryView {
    type Pinned<'s>
        = &'s [u8]
    where
        Self: 's;
    type Cursor<'s>
        = MemoryCursor<'s>
    where
        Self: 's;

    fn get_pinned(&self, row_key: impl AsRef<[u8]>) -> Result<Option<&[u8]>, Fault> {
        MemoryView::get_pinned(self, row_key)
    }

    fn rows(&self, start: &[u8], end: &[u8]) -> MemoryCursor<'_> {
        MemoryView::rows(self, start, end)
    }
}

/// A cursor over rows in memory.
#[derive(Debug)]
pub struct MemoryCursor<'s> {
    rows: &'s BTreeMap<Vec<u8>, Vec<u8>>,
    start: Vec<u8>,
    end: Vec<u8>,
    item: Option<(&'s Vec<u8>, &'s Vec<u8>)>,
}

impl MemoryCursor<'_> {
    /// Goes to the first or last row between two bounds and within its own.
    fn go(&mut self, from: Bound<&[u8]>, to: Bound<&[u8]>, is_last: bool) {
        let from = match from {
            Bound::Included(key) | Bound::Excluded(key) if key >= self.start.as_slice() => from,
            _ => Bound::Included(self.start.as_slice()),
        };
        let to = match to {
            Bound::Included(key) | Bound::Excluded(key) if key < self.end.as_slice() => to,
            _ => Bound::Excluded(self.end.as_slice()),
        };
        let is_empty = match (from, to) {
            (Bound::Included(first), Bound::Included(last)) => first > last,
            (Bound::Included(first) | Bound::Excluded(first), Bound::Included(last) | Bound::Excluded(last)) => {
                first >= last
            }
            _ => false,
        };
        self.item = None;
        if !is_empty {
            let mut range = self.rows.range::<[u8], _>((from, to));
            self.item = if is_last { range.next_back() } else { range.next() };
        }
    }
}

impl Cursor for MemoryCursor<'_> {
    fn seek_to_first(&mut self) {
        self.go(Bound::Unbounded, Bound::Unbounded, false);
    }

    fn seek_to_last(&mut self) {
        self.go(Bound::Unbounded, Bound::Unbounded, true);
    }

    fn seek(&mut self, row_key: impl AsRef<[u8]>) {
        self.go(Bound::Included(row_key.as_ref()), Bound::Unbounded, false);
    }

    fn seek_for_prev(&mut self, row_key: impl AsRef<[u8]>) {
        self.go(Bound::Unbounded, Bound::Included(row_key.as_ref()), true);
    }

    fn next(&mut self) {
        if let Some((row_key, _)) = self.item {
            self.go(Bound::Excluded(row_key), Bound::Unbounded, false);
        }
    }

    fn prev(&mut self) {
        if let Some((row_key, _)) = self.item {
            self.go(Bound::Unbounded, Bound::Excluded(row_key), true);
        }
    }

    fn item(&self) -> Option<(&[u8], &[u8])> {
        self.item.map(|(row_key, row)| (row_key.as_slice(), row.as_slice()))
    }

    fn status(&self) -> Result<(), Fault> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(keys: &[u8]) -> MemoryView {
        MemoryView(keys.iter().map(|key| (vec![*key], vec![*key, 0])).collect())
    }

    fn at(cursor: &MemoryCursor<'_>) -> Option<u8> {
        cursor.key().map(|key| key[0])
    }

    #[test]
    fn a_cursor_stays_within_its_bounds_wherever_it_is_sent() {
        let view = rows(&[1, 3, 5, 7, 9]);
        let mut cursor = view.rows(&[3], &[9]);
        assert_eq!(at(&cursor), None, "nobody sent it anywhere");
        for (send, expected) in [(0, Some(3)), (3, Some(3)), (4, Some(5)), (7, Some(7)), (8, None), (12, None)] {
            cursor.seek([send]);
            assert_eq!(at(&cursor), expected, "from {send} on");
        }
        for (send, expected) in [(0, None), (2, None), (3, Some(3)), (6, Some(5)), (9, Some(7)), (12, Some(7))] {
            cursor.seek_for_prev([send]);
            assert_eq!(at(&cursor), expected, "up to {send}");
        }
    }

    #[test]
    fn a_cursor_walks_both_ways_and_ends() {
        let view = rows(&[1, 3, 5, 7, 9]);
        let mut cursor = view.rows(&[3], &[9]);
        let mut seen = Vec::new();
        cursor.seek_to_first();
        while let Some(key) = at(&cursor) {
            seen.push(key);
            cursor.next();
        }
        cursor.seek_to_last();
        while let Some(key) = at(&cursor) {
            seen.push(key);
            cursor.prev();
        }
        assert_eq!(seen, [3, 5, 7, 7, 5, 3]);
        let mut nothing = view.rows(&[4], &[4]);
        nothing.seek_to_last();
        assert!(!nothing.valid() && nothing.status().is_ok());
    }
}
