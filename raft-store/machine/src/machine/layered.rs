//! A view with writes over it that are not in the database yet.
//!
//! Owns reading through them, so that entries can be applied one by one to what a group of them is applied to at once: what the two come
//! to is compared. Shares nothing with the rows that an applier holds, whose mistakes it is to show. Never part of what is decided.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::view::{Fault, Most, Page, Row, View, Write};

/// A view with writes over it.
pub struct Layered<'v, V: View> {
    view: &'v V,
    /// Rows that were written, and those that were deleted.
    rows: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Ranges of the view that were deleted.
    deleted: Vec<(Vec<u8>, Vec<u8>)>,
}

impl<'v, V: View> Layered<'v, V> {
    /// A view with nothing over it.
    pub fn new(view: &'v V) -> Self {
        Self { view, rows: BTreeMap::new(), deleted: Vec::new() }
    }

    /// Carries the writes out, in order, and leaves the view as it is.
    pub fn write(&mut self, writes: Vec<Write>) {
        for write in writes {
            match write {
                Write::Put { key, value } => drop(self.rows.insert(key, Some(value))),
                Write::Delete { key } => drop(self.rows.insert(key, None)),
                Write::DeleteRange { start, end } => {
                    self.rows.retain(|key, _| *key < start || *key >= end);
                    self.deleted.push((start, end));
                }
            }
        }
    }

    /// The first of some writes that did not lead to the rows here, by its row key.
    pub fn difference(&self, writes: &[Write]) -> Option<Vec<u8>> {
        let mut other = Layered::new(self.view);
        other.write(writes.to_vec());
        // A row that was written and is gone again need not be deleted.
        let is_same = |layer: &Self, key: &Vec<u8>| layer.get(key).ok() == self.get(key).ok();
        let keys = self.rows.keys().chain(other.rows.keys());
        keys.filter(|key| !is_same(&other, key)).min().cloned()
    }

    fn is_deleted(&self, key: &[u8]) -> bool {
        self.deleted.iter().any(|(start, end)| start.as_slice() <= key && key < end.as_slice())
    }
}

impl<V: View> View for Layered<'_, V> {
    fn get(&self, row_key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        match self.rows.get(row_key) {
            Some(row) => Ok(row.clone()),
            None if self.is_deleted(row_key) => Ok(None),
            None => self.view.get(row_key),
        }
    }

    fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault> {
        self.scan_page(start, end, false, Most::rows(limit))
    }

    fn scan_back(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault> {
        self.scan_page(start, end, true, Most::rows(limit))
    }

    /// One row after the other: the nearer of the next one that was written and the next one of the view.
    fn scan_page(&self, start: &[u8], end: &[u8], reverse: bool, most: Most) -> Result<Vec<Row>, Fault> {
        let mut page = Page::new(most);
        let (mut start, mut end) = (start.to_vec(), end.to_vec());
        let mut stored = Vec::new().into_iter().peekable();
        let mut is_whole = false;
        while start < end && page.room().is_some() {
            if stored.peek().is_none() && !is_whole {
                let part = Most { rows: 64, bytes: 1 << 18 };
                let rows = self.view.scan_page(&start, &end, reverse, part)?;
                is_whole = !part.is_reached_by(&rows);
                stored = rows.into_iter().peekable();
            }
            let mut range = self.rows.range::<[u8], _>((Bound::Included(&start[..]), Bound::Excluded(&end[..])));
            let written = if reverse { range.next_back() } else { range.next() };
            let key = match (stored.peek(), written) {
                (None, None) => break,
                (Some((key, _)), None) | (None, Some((key, _))) => key.clone(),
                (Some((one, _)), Some((other, _))) if reverse => one.max(other).clone(),
                (Some((one, _)), Some((other, _))) => one.min(other).clone(),
            };
            let of_view = stored.next_if(|(stored, _)| *stored == key).filter(|_| !self.is_deleted(&key));
            let row = match written.filter(|(written, _)| **written == key) {
                Some((_, row)) => row.clone(),
                None => of_view.map(|(_, row)| row),
            };
            page.fill(row.map(|row| (key.clone(), row)).into_iter());
            if reverse { end = key } else { start = [key.as_slice(), &[0]].concat() }
        }
        Ok(page.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::MemoryView;
    use super::*;

    #[test]
    fn a_layer_reads_like_the_view_with_its_writes() {
        let view = MemoryView((0..60_u8).filter(|nth| nth % 3 != 0).map(|nth| (vec![nth], vec![nth; 9])).collect());
        let (mut layered, mut written) = (Layered::new(&view), view.clone());
        let put = |nth: u8| Write::Put { key: vec![nth], value: vec![nth; usize::from(nth)] };
        let mut writes = vec![Write::DeleteRange { start: vec![10], end: vec![20] }];
        writes.extend((0..60).filter(|nth| nth % 7 == 0).map(put));
        writes.extend((0..60).filter(|nth| nth % 5 == 1).map(|nth| Write::Delete { key: vec![nth] }));
        layered.write(writes.clone());
        written.write(writes.clone());
        assert_eq!(layered.difference(&writes), None);
        assert_eq!(layered.difference(&writes[..writes.len() - 1]), Some(vec![56]));
        for (start, end) in (0..60_u8).flat_map(|start| (start..=60).map(move |end| ([start], [end]))) {
            for (rows, bytes) in [(0, 9), (1, 900), (4, 30), (100, 1), (100, 70), (100, usize::MAX)] {
                for reverse in [false, true] {
                    let most = Most { rows, bytes };
                    let page = layered.scan_page(&start, &end, reverse, most).unwrap();
                    assert_eq!(page, written.scan_page(&start, &end, reverse, most).unwrap(), "{start:?} to {end:?}");
                }
            }
            assert_eq!(layered.get(&start), written.get(&start));
        }
    }
}
