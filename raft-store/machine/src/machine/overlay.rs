//! Rows as they are after the writes that were not written yet.
//!
//! Owns the pending writes of an apply call and what they do to the digest. Knows rows, never what they mean.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map;
use std::ops::Bound;

use super::vars::{Sums, Vars};
use super::view::{Fault, Most, Page, Row, View, Write};
use crate::keyspace::bucket;
use crate::keyspace::digest::{RowHasher, RowMark};
use crate::limits;
use crate::mutants::Mutant;

/// A view with pending writes over it.
pub(super) struct Overlay<'v, V: View> {
    view: &'v V,
    slots: BTreeMap<Vec<u8>, Slot>,
    dropped: Vec<(Vec<u8>, Vec<u8>)>,
    hasher: RowHasher,
    /// Digests and sizes of the view's rows, until the writes count.
    sums: Sums,
    /// Bytes of all keys and rows that the batch has written, however often the same one.
    written: usize,
    /// For each [`Self::begin`], the slots changed since as they were then; `None` where there was none. Innermost last.
    before: Vec<BTreeMap<Vec<u8>, Option<Slot>>>,
}

/// One row that was read or written.
#[derive(Clone)]
struct Slot {
    row: Option<Vec<u8>>,
    state: SlotState,
}

/// How the row in a slot relates to the one in the view.
#[derive(Clone)]
enum SlotState {
    /// It is the one in the view.
    Read,
    /// It is to be written.
    Written {
        /// Mark of the row in the view, where there is one.
        original: Option<RowMark>,
        /// Mark of the row in the slot, where it is known already.
        current: Option<RowMark>,
    },
}

impl<'v, V: View> Overlay<'v, V> {
    pub(super) fn new(view: &'v V, sums: Sums) -> Self {
        let (slots, dropped, hasher) = (BTreeMap::new(), Vec::new(), RowHasher::default());
        Self { view, slots, dropped, hasher, sums, written: 0, before: Vec::new() }
    }

    /// What is counted from now on is of another batch.
    pub(super) fn begin_batch(&mut self) {
        self.written = 0;
    }

    /// Bytes of all keys and rows that the batch has written, however often the same one, and however it came to be known before.
    pub(super) fn written_bytes(&self) -> usize {
        self.written
    }

    /// Counts a row that is written or deleted, and refuses one that nobody could read again.
    fn count(&mut self, key: &[u8], row: Option<&[u8]>) -> Result<(), Fault> {
        let bytes = row.map_or(0, <[u8]>::len);
        if !(Mutant::RowsAtHandAreFree.acts() && self.slots.contains_key(key)) {
            self.count_bytes(key.len().saturating_add(bytes));
        }
        match bytes > limits::ROW_BYTES_MAX {
            true => Err(Fault::Invariant(format!("row {} would have {bytes} bytes", key.escape_ascii()))),
            false => Ok(()),
        }
    }

    /// Counts so many bytes as written.
    pub(super) fn count_bytes(&mut self, bytes: usize) {
        self.written = self.written.saturating_add(bytes);
    }

    /// Reads a row and keeps it at hand, because it is likely to be written next.
    pub(super) fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Fault> {
        // One search of the pending rows, at the price of a copy of the key.
        let slot = match self.slots.entry(key.to_vec()) {
            btree_map::Entry::Occupied(slot) => slot.into_mut(),
            btree_map::Entry::Vacant(place) => {
                let row = load(self.view, &self.dropped, place.key())?;
                place.insert(Slot { row, state: SlotState::Read })
            }
        };
        Ok(slot.row.as_deref())
    }

    /// Whether a row was read or written before.
    pub(super) fn is_at_hand(&self, key: &[u8]) -> bool {
        self.slots.contains_key(key)
    }

    /// Whether a row was there before all that is pending.
    pub(super) fn is_stored(&self, key: &[u8]) -> Result<bool, Fault> {
        Ok(load(self.view, &self.dropped, key)?.is_some())
    }

    /// Reads a row without keeping it.
    pub(super) fn peek(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, Fault> {
        match self.slots.get(key) {
            Some(slot) => Ok(slot.row.as_deref().map(Cow::Borrowed)),
            None => Ok(load(self.view, &self.dropped, key)?.map(Cow::Owned)),
        }
    }

    /// From now on changes can be undone, within changes that can be undone too.
    pub(super) fn begin(&mut self) {
        self.before.push(BTreeMap::new());
    }

    /// Keeps the changes since the last [`Self::begin`].
    pub(super) fn keep(&mut self) {
        let kept = self.before.pop().expect("changes are kept that were begun");
        if let Some(outer) = self.before.last_mut() {
            for (key, slot) in kept {
                outer.entry(key).or_insert(slot);
            }
        }
    }

    /// Undoes the changes since the last [`Self::begin`].
    pub(super) fn undo(&mut self) {
        for (key, slot) in self.before.pop().expect("changes are undone that were begun") {
            match slot {
                Some(slot) => self.slots.insert(key, slot),
                None => self.slots.remove(&key),
            };
        }
    }

    /// How many times changes were begun that are neither kept nor undone.
    pub(super) fn depth(&self) -> usize {
        self.before.len()
    }

    /// Notes a slot that is about to change.
    fn remember(&mut self, key: &[u8]) {
        if let Some(before) = self.before.last_mut()
            && !before.contains_key(key)
        {
            before.insert(key.to_vec(), self.slots.get(key).cloned());
        }
    }

    /// Writes or deletes a row and gives it as it was.
    pub(super) fn replace(&mut self, key: &[u8], row: Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Fault> {
        self.count(key, row.as_deref())?;
        self.remember(key);
        let Some(slot) = self.slots.get_mut(key) else {
            let old = load(self.view, &self.dropped, key)?;
            let original = old.as_ref().map(|old| self.hasher.mark(key, old));
            let state = SlotState::Written { original, current: None };
            self.slots.insert(key.to_vec(), Slot { row, state });
            return Ok(old);
        };
        let original = match (&slot.state, &slot.row) {
            (SlotState::Read, Some(old)) => Some(self.hasher.mark(key, old)),
            (SlotState::Read, None) => None,
            (SlotState::Written { original, .. }, _) => *original,
        };
        slot.state = SlotState::Written { original, current: None };
        Ok(std::mem::replace(&mut slot.row, row))
    }

    /// Deletes a row that must be there, and gives it as it was.
    pub(super) fn take(&mut self, key: &[u8]) -> Result<Vec<u8>, Fault> {
        self.replace(key, None)?.ok_or_else(|| Fault::Invariant(format!("row {} is missing", key.escape_ascii())))
    }

    /// Writes a row that cannot be there yet as long as nothing contradicts itself. Looks into the view, so that every node
    /// finds such a contradiction, however it groups its entries.
    pub(super) fn insert_absent(&mut self, key: Vec<u8>, row: Vec<u8>) -> Result<(), Fault> {
        self.count(&key, Some(&row))?;
        self.remember(&key);
        let exists = |key: &[u8]| Err(Fault::Invariant(format!("row {} exists already", key.escape_ascii())));
        match self.slots.entry(key) {
            btree_map::Entry::Vacant(place) => {
                if load(self.view, &self.dropped, place.key())?.is_some() {
                    return exists(place.key());
                }
                place.insert(Slot { row: Some(row), state: SlotState::Written { original: None, current: None } });
            }
            btree_map::Entry::Occupied(slot) if slot.get().row.is_some() => return exists(slot.key()),
            btree_map::Entry::Occupied(mut slot) => {
                let original = match slot.get().state {
                    SlotState::Read => None,
                    SlotState::Written { original, .. } => original,
                };
                slot.insert(Slot { row: Some(row), state: SlotState::Written { original, current: None } });
            }
        }
        Ok(())
    }

    /// Writes a row that cannot be there yet, and gives its mark. That it is not in the view follows from the key, which holds
    /// the revision just taken or the log index; builds with debug assertions look all the same.
    pub(super) fn insert_new(&mut self, key: Vec<u8>, row: Vec<u8>) -> Result<RowMark, Fault> {
        self.count(&key, Some(&row))?;
        self.remember(&key);
        let mark = self.hasher.mark(&key, &row);
        match self.slots.entry(key) {
            btree_map::Entry::Vacant(slot) => {
                if cfg!(debug_assertions) && load(self.view, &self.dropped, slot.key())?.is_some() {
                    return Err(Fault::Invariant(format!("row {} exists already", slot.key().escape_ascii())));
                }
                let state = SlotState::Written { original: None, current: Some(mark) };
                slot.insert(Slot { row: Some(row), state });
            }
            btree_map::Entry::Occupied(slot) if slot.get().row.is_some() => {
                return Err(Fault::Invariant(format!("row {} exists already", slot.key().escape_ascii())));
            }
            btree_map::Entry::Occupied(mut slot) => {
                let original = match slot.get().state {
                    SlotState::Read => None,
                    SlotState::Written { original, .. } => original,
                };
                let state = SlotState::Written { original, current: Some(mark) };
                slot.insert(Slot { row: Some(row), state });
            }
        }
        Ok(mark)
    }

    /// Deletes a row that must be there and has this mark, without reading it from the view. Builds with debug
    /// assertions read it and compare.
    pub(super) fn delete_known(&mut self, key: Vec<u8>, mark: RowMark) -> Result<(), Fault> {
        if cfg!(debug_assertions) {
            let row = self.peek(&key)?.map(Cow::into_owned);
            if row.map(|row| self.hasher.mark(&key, &row)) != Some(mark) {
                return Err(Fault::Invariant(format!("row {} has not {mark:?}", key.escape_ascii())));
            }
        }
        self.count(&key, None)?;
        self.remember(&key);
        match self.slots.entry(key) {
            btree_map::Entry::Vacant(slot) => {
                slot.insert(Slot { row: None, state: SlotState::Written { original: Some(mark), current: None } });
            }
            btree_map::Entry::Occupied(mut slot) => {
                let original = match slot.get().state {
                    SlotState::Read => Some(mark),
                    SlotState::Written { original, .. } => original,
                };
                slot.insert(Slot { row: None, state: SlotState::Written { original, current: None } });
            }
        }
        Ok(())
    }

    /// Rows of `[start, end)` in ascending order, at most `limit`.
    pub(super) fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault> {
        self.scan_page(start, end, false, Most::rows(limit))
    }

    /// Rows of `[start, end)` from its start or, in descending order, from its end; at most so much, and one at least where
    /// there is one. A page ends where it is full or the range ends, whatever of its rows is pending: those who look at one see
    /// the same rows in it whether they were written by this call or before it.
    pub(super) fn scan_page(&self, start: &[u8], end: &[u8], reverse: bool, most: Most) -> Result<Vec<Row>, Fault> {
        let mut page = Page::new(most);
        let (mut start, mut end) = (start.to_vec(), end.to_vec());
        while start < end
            && let Some(room) = page.room()
        {
            let (stored, rest) = self.stored_page(&start, &end, reverse, room)?;
            // What is pending beyond the last row that was read stands among rows that were not.
            let (first, last) = match (&rest, reverse) {
                (None, _) => (&start, &end),
                (Some(rest), false) => (&start, rest),
                (Some(rest), true) => (rest, &end),
            };
            let rows = self.merged(stored, first, last).into_iter();
            if reverse {
                page.fill(rows.rev())
            } else {
                page.fill(rows)
            }
            let Some(rest) = rest else { break };
            let is_cut = Mutant::PagesEndWhereStoredOnesDo.acts() || Mutant::RangesEndWithStoredPages.acts();
            if is_cut && !page.rows.is_empty() {
                break;
            }
            *(if reverse { &mut end } else { &mut start }) = rest;
        }
        Ok(page.rows)
    }

    /// The first rows of a range in the view, without those of dropped ranges, and where those begin (or, in descending order, end)
    /// that were not read, if there may be any.
    fn stored_page(
        &self,
        start: &[u8],
        end: &[u8],
        reverse: bool,
        most: Most,
    ) -> Result<(Vec<Row>, Option<Vec<u8>>), Fault> {
        // With as many rows more as pending deletes can take away, one look is enough, unless bytes cut it short.
        let gone = self.pending(start, end).filter(|(_, slot)| slot.row.is_none()).count();
        let most = Most { rows: most.rows.saturating_add(gone), ..most };
        let mut stored = self.view.scan_page(start, end, reverse, most)?;
        let last = stored.last().filter(|_| most.is_reached_by(&stored)).map(|(key, _)| key);
        let rest = last.map(|last| if reverse { last.clone() } else { [last.as_slice(), &[0]].concat() });
        stored.retain(|(key, _)| !is_dropped(&self.dropped, key));
        Ok((stored, rest))
    }

    /// Whether a row of `[start, end)` is to be written.
    pub(super) fn writes_within(&self, start: &[u8], end: &[u8]) -> bool {
        self.pending(start, end).any(|(_, slot)| matches!(slot.state, SlotState::Written { .. }))
    }

    /// What the rows are read from.
    pub(super) fn view(&self) -> &'v V {
        self.view
    }

    /// The pending rows of `[start, end)`, also those that are deleted.
    fn pending(&self, start: &[u8], end: &[u8]) -> btree_map::Range<'_, Vec<u8>, Slot> {
        self.slots.range::<[u8], _>((Bound::Included(start), Bound::Excluded(end)))
    }

    /// Rows of the view with what is pending in `[start, end)`.
    fn merged(&self, stored: Vec<Row>, start: &[u8], end: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut rows: BTreeMap<_, _> = stored.into_iter().collect();
        for (key, slot) in self.pending(start, end) {
            match &slot.row {
                Some(row) => rows.insert(key.clone(), row.clone()),
                None => rows.remove(key),
            };
        }
        rows
    }

    /// Drops the rows of all buckets before one, pending ones and, unread, those of the view.
    pub(super) fn drop_buckets(&mut self, oldest: u64) {
        assert!(self.before.is_empty(), "buckets are dropped among changes that can be undone");
        for family in bucket::FAMILIES {
            let (start, end) = bucket::range(family, 0, oldest);
            if !Mutant::DroppedBucketsStayPending.acts() {
                let range = self.slots.range::<[u8], _>((Bound::Included(&start[..]), Bound::Excluded(&end[..])));
                let keys: Vec<Vec<u8>> = range.map(|(key, _)| key.clone()).collect();
                keys.iter().for_each(|key| drop(self.slots.remove(key)));
            }
            let of_view = self.sums.buckets.iter().filter(|part| part.bucket < oldest);
            self.dropped.extend(of_view.map(|part| bucket::range(family, part.bucket, part.bucket + 1)));
        }
        self.sums.buckets.retain(|part| part.bucket >= oldest);
    }

    /// The writes, dropped ranges first; brings the digests and sizes in `vars` up to date.
    pub(super) fn finish(mut self, vars: &mut Vars) -> Vec<Write> {
        let mut writes: Vec<Write> = Vec::with_capacity(self.dropped.len() + self.slots.len());
        writes.extend(self.dropped.into_iter().map(|(start, end)| Write::DeleteRange { start, end }));
        for (key, slot) in self.slots {
            let SlotState::Written { original, current } = slot.state else { continue };
            let mark = match (&slot.row, current) {
                (None, _) => None,
                (Some(_), Some(mark)) => Some(mark),
                (Some(row), None) => Some(self.hasher.mark(&key, row)),
            };
            self.sums.exchange(&key, original, mark);
            match slot.row {
                Some(value) => writes.push(Write::Put { key, value }),
                None if original.is_some() => writes.push(Write::Delete { key }),
                None => {}
            }
        }
        vars.put_sums(self.sums);
        writes
    }
}

/// A row as the view has it, unless it lies in a dropped range.
fn load<V: View>(view: &V, dropped: &[(Vec<u8>, Vec<u8>)], key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
    if is_dropped(dropped, key) { Ok(None) } else { view.get(key) }
}

fn is_dropped(dropped: &[(Vec<u8>, Vec<u8>)], key: &[u8]) -> bool {
    dropped.iter().any(|(start, end)| start.as_slice() <= key && key < end.as_slice())
}

#[cfg(test)]
mod tests {
    use super::super::MemoryView;
    use super::*;

    /// Rows of different sizes, of which some are pending, deleted, or both.
    fn overlaid(view: &MemoryView) -> (Overlay<'_, MemoryView>, BTreeMap<Vec<u8>, Vec<u8>>) {
        let mut overlay = Overlay::new(view, Sums::default());
        let mut rows = view.0.clone();
        for nth in 0..40_u8 {
            let row = (nth % 3 != 0).then(|| vec![nth; usize::from(nth)]);
            if nth % 2 == 0 && (row.is_some() || rows.contains_key([nth].as_slice())) {
                overlay.replace(&[nth], row.clone()).unwrap();
                match row {
                    Some(row) => rows.insert(vec![nth], row),
                    None => rows.remove([nth].as_slice()),
                };
            }
        }
        (overlay, rows)
    }

    #[test]
    fn a_page_is_the_same_whether_its_rows_are_pending_or_written() {
        let mut view = MemoryView((0..40_u8).filter(|nth| nth % 4 != 2).map(|nth| (vec![nth], vec![0; 30])).collect());
        let other = view.clone();
        let (mut pending, rows) = overlaid(&other);
        pending.dropped.push((vec![20], vec![24]));
        pending.slots.retain(|key, _| !(20..24).contains(&key[0]));
        view.0 = rows.into_iter().filter(|(key, _)| !(20..24).contains(&key[0])).collect();
        let written = Overlay::new(&view, Sums::default());
        for (rows, bytes) in [(0, 9), (1, 1_000), (3, 40), (100, 1), (100, 90), (7, 250), (100, usize::MAX)] {
            for (start, end) in (0..40_u8).flat_map(|start| (start..=40).map(move |end| ([start], [end]))) {
                for reverse in [false, true] {
                    let page = |overlay: &Overlay<'_, _>| {
                        overlay.scan_page(&start, &end, reverse, Most { rows, bytes }).unwrap()
                    };
                    let words = format!("{start:?} to {end:?}, {rows} rows, {bytes} bytes, reverse {reverse}");
                    assert_eq!(page(&pending), page(&written), "{words}");
                }
            }
        }
    }

    #[test]
    fn pages_of_any_size_make_up_the_whole_range_in_either_direction() {
        let view = MemoryView((0..40_u8).filter(|nth| nth % 4 != 2).map(|nth| (vec![nth], vec![0; 30])).collect());
        let (overlay, rows) = overlaid(&view);
        for (rows_max, bytes) in [(1, 1_000), (3, 40), (100, 1), (100, 90), (100, usize::MAX)] {
            for reverse in [false, true] {
                let (mut start, mut end) = (vec![0], vec![40]);
                let mut found = Vec::new();
                loop {
                    let most = Most { rows: rows_max, bytes };
                    let page = overlay.scan_page(&start, &end, reverse, most).unwrap();
                    let Some((last, _)) = page.last() else { break };
                    if reverse {
                        end.clone_from(last)
                    } else {
                        start = [last.as_slice(), &[0]].concat()
                    }
                    let before_last =
                        page[..page.len() - 1].iter().map(|(key, row)| key.len() + row.len()).sum::<usize>();
                    assert!(page.len() <= rows_max && before_last < bytes, "{page:?} is more than {most:?}");
                    found.extend(page);
                }
                if reverse {
                    found.reverse();
                }
                assert!(found.into_iter().eq(rows.clone()), "{rows_max} rows, {bytes} bytes, reverse {reverse}");
            }
        }
    }
}
