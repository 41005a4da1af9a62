//! Building indexes of entries that are there already, and clearing those that are gone, step by step.
//!
//! Owns how far a step goes. Between two steps writes are applied: what an index holds is always what its stage says.

use super::document_within;
use crate::codec;
use crate::document::Steps;
use crate::keyspace::collection;
use crate::keyspace::{entry, family, family_range, index};
use crate::limits;
use crate::machine::current::decode_current;
use crate::machine::upkeep::maintain::maintained;
use crate::machine::view::{Fault, Row, View};
use crate::machine::{Applier, stored_key};
use crate::types::{CollectionRow, ContentKind, IndexFailure, IndexStage};
use crate::types::{Key, Outcome, Revision};

/// Bytes of the bound of a batch for each byte of a document that is read and parsed: as many as the longest lists take.
const PARSED_BYTE: usize = 6;

/// Collections looked at at a time.
const COLLECTIONS_PAGE_ROWS: usize = 64;

impl<V: View> Applier<'_, V> {
    /// Goes on with the first index that is being built, else with the first to be cleared.
    pub(in crate::machine) fn index_step(&mut self, rows_max: usize) -> Result<Outcome, Fault> {
        let rows_max = rows_max.clamp(1, limits::MAINTENANCE_ROWS_MAX);
        if let Some((row_key, row)) = self.first_building()? {
            let done = match self.at_savepoint(|applier| applier.build(&row_key, row.clone(), rows_max))? {
                Ok(done) => done,
                Err(fault) => self.fail_building(&row_key, row, fault).map(|()| 1)?,
            };
            return Ok(maintained(done, true));
        }
        let (start, end) = family_range(family::DROPPED_INDEX);
        let Some((row_key, _)) = self.overlay.scan(&start, &end, 1)?.into_iter().next() else {
            return Ok(maintained(0, false));
        };
        let cleared = match self.at_savepoint(|applier| applier.clear(&row_key, rows_max))? {
            Ok(cleared) => cleared,
            Err(fault) => self.park(&row_key, fault).map(|()| 0)?,
        };
        Ok(maintained(cleared + 1, true))
    }

    /// Clears the next rows of an index that is gone. Gives how many.
    fn clear(&mut self, dropped_key: &[u8], rows_max: usize) -> Result<usize, Fault> {
        let id = index::decode_dropped(dropped_key).map_err(|error| Fault::row(dropped_key, error))?;
        let (cleared, is_clear) = self.clear_rows(id, rows_max)?;
        if is_clear {
            self.overlay.take(dropped_key)?;
        }
        Ok(cleared)
    }

    /// The index that is being built is no more, because building it faulted: the collection goes on without it.
    fn fail_building(&mut self, row_key: &[u8], mut row: CollectionRow, fault: Fault) -> Result<(), Fault> {
        let is_building = |stage: &IndexStage| matches!(stage, IndexStage::Building(_));
        let state = row.indexes.iter_mut().find(|state| is_building(&state.stage));
        let state = state.ok_or_else(|| Fault::Invariant("no index is being built".into()))?;
        state.stage = IndexStage::Failed(IndexFailure::Internal);
        self.overlay.insert_absent(index::dropped_key(state.id), Vec::new())?;
        self.overlay.replace(row_key, Some(codec::encode(&row)))?;
        self.forget_collections();
        self.note_contained(row_key, fault);
        Ok(())
    }

    /// Takes away the first rows of an index. Gives how many, and whether those were all.
    fn clear_rows(&mut self, id: u64, rows_max: usize) -> Result<(usize, bool), Fault> {
        let (mut start, end) = index::of_index(id);
        let mut cleared = 0;
        while cleared < rows_max {
            let most = self.bounds.page(rows_max - cleared);
            let page = self.overlay.scan_page(&start, &end, false, most)?;
            let Some((last, _)) = page.last() else { return Ok((cleared, true)) };
            start = [last.as_slice(), &[0]].concat();
            for (row_key, _) in page {
                if cleared > 0 && self.has_taken_all() {
                    return Ok((cleared, false));
                }
                self.overlay.take(&row_key)?;
                cleared += 1;
            }
        }
        Ok((cleared, false))
    }

    /// The first collection with an index that is being built.
    fn first_building(&mut self) -> Result<Option<(Vec<u8>, CollectionRow)>, Fault> {
        if self.vars.collections == 0 {
            return Ok(None);
        }
        let (first, end) = family_range(family::COLLECTION);
        // Each step looks again, and there may be ten thousand collections before. Nothing is kept of what is not written yet, since it may
        // never be, nor of rows that cannot be read: each look has them set aside.
        let (view, mut is_sure) = (self.overlay.view(), !self.overlay.writes_within(&first, &end));
        let mut start = view.no_building_before().filter(|_| is_sure).unwrap_or(first);
        loop {
            let page = self.overlay.scan_page(&start, &end, false, self.bounds.page(COLLECTIONS_PAGE_ROWS))?;
            let Some((last, _)) = page.last() else {
                if is_sure {
                    view.note_no_building_before(&end);
                }
                return Ok(None);
            };
            start = [last.as_slice(), &[0]].concat();
            for (row_key, row) in page {
                let row: CollectionRow = match codec::decode(&row).map_err(|error| Fault::row(&row_key, error)) {
                    Ok(row) => row,
                    Err(fault) => {
                        is_sure = false;
                        self.park_unreadable(&row_key, fault)?;
                        continue;
                    }
                };
                if row.indexes.iter().any(|state| matches!(state.stage, IndexStage::Building(_))) {
                    if is_sure {
                        view.note_no_building_before(&row_key);
                    }
                    return Ok(Some((row_key, row)));
                }
            }
        }
    }

    /// Takes the next entries into the first index of the collection that is being built. Gives how many.
    fn build(&mut self, row_key: &[u8], mut row: CollectionRow, rows_max: usize) -> Result<usize, Fault> {
        let is_building = |stage: &IndexStage| matches!(stage, IndexStage::Building(_));
        let at = row.indexes.iter().position(|state| is_building(&state.stage));
        let at = at.ok_or_else(|| Fault::Invariant(format!("no index is being built in {row:?}")))?;
        let name = collection::decode_key(row_key).map_err(|error| Fault::row(row_key, error))?;
        let (first, end) = collection::keys(&name);
        let start = match &row.indexes[at].stage {
            IndexStage::Building(Some(after)) => [after.as_bytes(), &[0]].concat(),
            _ => first,
        };
        let range = (entry::row_key(&start), entry::row_key(&end));
        let (taken, stage) = self.build_entries(&row, at, range, rows_max)?;
        if let IndexStage::Failed(_) = stage {
            self.overlay.insert_absent(index::dropped_key(row.indexes[at].id), Vec::new())?;
        }
        row.indexes[at].stage = stage;
        self.overlay.replace(row_key, Some(codec::encode(&row)))?;
        self.forget_collections();
        Ok(taken.max(1))
    }

    /// Takes the first entries of a range into an index. Gives how many, and how far the index is then.
    fn build_entries(
        &mut self,
        row: &CollectionRow,
        at: usize,
        (mut start, end): (Vec<u8>, Vec<u8>),
        rows_max: usize,
    ) -> Result<(usize, IndexStage), Fault> {
        let mut stage = IndexStage::Ready;
        let mut taken = 0;
        while taken < rows_max {
            let most = self.bounds.page(rows_max - taken);
            let page = self.overlay.scan_page(&start, &end, false, most)?;
            let Some((last, _)) = page.last() else { return Ok((taken, IndexStage::Ready)) };
            start = [last.as_slice(), &[0]].concat();
            for entry in &page {
                if taken > 0 && !self.has_room_for(reckoned_bytes(entry, self.vars.revision)?) {
                    return Ok((taken, stage));
                }
                taken += 1;
                match self.build_entry(row, at, entry)? {
                    Ok(key) => stage = IndexStage::Building(Some(key)),
                    Err(failure) => return Ok((taken, IndexStage::Failed(failure))),
                }
            }
        }
        Ok((taken, stage))
    }

    /// Takes one entry into an index.
    fn build_entry(
        &mut self,
        row: &CollectionRow,
        at: usize,
        (row_key, value): &Row,
    ) -> Result<Result<Key, IndexFailure>, Fault> {
        let (rule, id) = (&row.rules.indexes()[at], row.indexes[at].id);
        let key = entry::decode_key(row_key).map_err(|error| Fault::row(row_key, error))?;
        let key = stored_key(key)?;
        let current = decode_current(row_key, value, self.vars.revision)?;
        // An entry is taken in at any cost: hardly more than a command may take. The rest follows in other steps.
        let steps = Steps::unbounded();
        let document = document_within(row_key, &current, &steps)?.expect("there is no bound");
        let found = rule.values(document.as_ref(), &steps);
        self.take_bytes(value.len());
        self.count_steps(&steps);
        let Ok(values) = rule.key_from(&found) else { return Ok(Err(IndexFailure::TooLong(key))) };
        if rule.is_bound_by(&found)
            && !current.is_expired_at(self.vars.clock)
            && let Some(other) = self.other_with(id, rule, &values, &key)?
        {
            return Ok(Err(IndexFailure::NotUnique(other, key)));
        }
        self.overlay.insert_absent(index::row_key(id, &values, key.as_bytes()), Vec::new())?;
        Ok(Ok(key))
    }
}

/// Estimates by its length what an entry takes to be taken into an index: hardly any takes more, and most documents take less.
fn reckoned_bytes((row_key, value): &Row, newest: Revision) -> Result<usize, Fault> {
    let current = decode_current(row_key, value, newest)?;
    let each = if current.kind == ContentKind::Json { PARSED_BYTE } else { 1 };
    Ok(each * current.data.len())
}
