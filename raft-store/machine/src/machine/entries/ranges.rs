//! Steps over ranges of keys within a transaction, and what decides between branches.
//!
//! Owns the walk over the live entries of a range, in order of key. Removing one is `write`'s.

use super::txn::Stepped;
use crate::keyspace::entry::{self, EntryRow};
use crate::keyspace::{family, family_range};
use crate::limits;
use crate::machine::current::decode_current;
use crate::machine::stop::split;
use crate::machine::view::{Fault, View};
use crate::machine::{Applier, Caller, stored_key};
use crate::mutants::Mutant;
use crate::types::{
    Comparison, Key, KeyRange, ListOrder, ListShown, ListStep, Listed, Rejection, RemoveStep, Removed, Revision, Shown,
    StepRejected, TxnRefusal, WriteOp,
};

/// Rows of a range that are read at once.
const PAGE_ROWS: usize = 256;

impl<V: View> Applier<'_, V> {
    /// Whether a comparison holds of every entry of its range.
    pub(in crate::machine) fn compare(&mut self, comparison: &Comparison) -> Result<bool, Fault> {
        let Comparison { range, operator, with } = comparison;
        let (mut holds, mut any) = (true, false);
        self.each_live(range, 0, |_, row| {
            any = true;
            let ordering = with.ordering(Some((&row.meta, row.data)));
            holds = ordering.is_some_and(|ordering| operator.holds(ordering));
            Ok(holds)
        })?;
        Ok(if any { holds } else { with.ordering(None).is_some_and(|ordering| operator.holds(ordering)) })
    }

    /// Reads a range, or says that it cannot be read at the revision that is asked for. `place` points to the step.
    pub(in crate::machine) fn list(&mut self, step: &ListStep, place: &str) -> Stepped<Listed> {
        if let Some(at) = step.at {
            let refused =
                |why| Box::new(StepRejected { pointer: place.to_owned(), key: None, why: Rejection::Txn(why) });
            self.can_be_read(at).map_err(refused)?;
            return Ok(Listed { entries: Vec::new(), count: 0, more: false, left_out: false });
        }
        let ListStep { range, order, filter, shown, .. } = step;
        // In the order in which they come, what is behind the limit is only counted.
        let kept_max = if *order == ListOrder::BY_KEY { step.limit().saturating_add(1) } else { usize::MAX };
        let (mut count, mut found) = (0_u64, Vec::new());
        self.each_live(range, 0, |key, row| {
            count += 1;
            if *shown != ListShown::Count && found.len() < kept_max && filter.passes(&row.meta) {
                found.push((key, row.to_entry()));
            }
            Ok(true)
        })?;
        let (found, more) = step.select(found);
        let entries = found.into_iter().map(|(key, entry)| (key, Shown::Whole(entry))).collect();
        let listed = Listed { entries, count, more, left_out: false };
        self.take_shown(&listed.entries);
        Ok(listed)
    }

    /// Whether a revision could be read before the transaction began.
    fn can_be_read(&self, at: Revision) -> Result<(), TxnRefusal> {
        // A transaction that has changed something has taken the newest one.
        let newest = self.vars.revision - Revision::from(self.batch.joint.flatten().is_some());
        match at {
            at if at < self.vars.oldest_revision => Err(TxnRefusal::Compacted),
            at if at > newest => Err(TxnRefusal::Future),
            _ => Ok(()),
        }
    }

    /// Removes the entries of a range, or says which of them cannot be removed. `place` points to the step.
    pub(in crate::machine) fn remove_range(
        &mut self,
        step: &RemoveStep,
        place: &str,
        caller: &Caller,
    ) -> Stepped<Removed> {
        let refused = |key, why| Box::new(StepRejected { pointer: place.to_owned(), key: Some(key), why });
        let (own_revision, taken_before) = (self.batch.joint.flatten(), self.taken());
        let (mut keys, mut written) = (Vec::new(), None);
        self.each_live(&step.range, limits::REMOVAL_BYTES, |key, row| {
            if own_revision == Some(row.meta.mod_revision) {
                written = Some(key);
                return Ok(false);
            }
            keys.push(key);
            Ok(true)
        })?;
        if let Some(key) = written {
            return Err(refused(key, Rejection::Txn(TxnRefusal::KeyTwice)).into());
        }
        let mut removed = Removed { count: 0, entries: Vec::new() };
        // The transaction is rejected then: what would be removed would only be put back.
        if self.is_too_much_since(taken_before) {
            return Ok(removed);
        }
        for key in keys {
            let op = WriteOp::removal(key.clone(), step.return_previous);
            let written = split(self.write(op, caller.clone()))?.map_err(|why| refused(key.clone(), why))?;
            removed.count += 1;
            removed.entries.extend(written.previous.map(|previous| (key, previous)));
        }
        self.take_shown(&removed.entries);
        Ok(removed)
    }

    /// Counts what an answer carries.
    fn take_shown(&mut self, entries: &[(Key, Shown)]) {
        self.take_bytes(entries.iter().map(|(key, shown)| key.as_bytes().len() + shown.value_bytes()).sum());
    }

    /// Whether that is more than a transaction may take.
    fn is_too_much_since(&self, taken_before: usize) -> bool {
        self.taken() - taken_before > self.bounds.txn_bytes
    }

    /// Calls `visit` with each live entry of a range, in order of key, until it says `false`, or until the transaction has taken more
    /// than it may: the transaction is rejected then in any case. Each entry takes `beside` bytes beside the look at it, since there may be many.
    fn each_live(
        &mut self,
        range: &KeyRange,
        beside: usize,
        mut visit: impl FnMut(Key, EntryRow<'_>) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let (newest, clock) = (self.vars.revision, self.vars.clock);
        // What is no key has no entry.
        if let Some(key) = range.key().and_then(|key| Key::new(key).ok()) {
            let (visited, bytes) = self.live(&key, |key, row| {
                (row.map(|row| visit(key.clone(), *row)).transpose(), row.map_or(0, |row| row.data.len()))
            })?;
            self.take_bytes(bytes + limits::LOOK_BYTES);
            return visited.map(|_| ());
        }
        let mut start = entry::row_key(range.start());
        let end = match range.end() {
            Some(end) => entry::row_key(end),
            None => family_range(family::ENTRY).1,
        };
        let taken_before = self.taken();
        while start < end {
            let page = self.overlay.scan_page(&start, &end, false, self.bounds.page(PAGE_ROWS))?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            start = [last.as_slice(), &[0]].concat();
            for (row_key, row) in &page {
                if self.is_too_much_since(taken_before) && !Mutant::RangesEndWithStoredPages.acts() {
                    return Ok(());
                }
                self.take_bytes(row_key.len() + row.len() + limits::LOOK_BYTES);
                let row = decode_current(row_key, row, newest)?;
                if row.is_expired_at(clock) {
                    continue;
                }
                self.take_bytes(beside);
                let key = entry::decode_key(row_key).map_err(|error| Fault::row(row_key, error))?;
                if !visit(stored_key(key)?, row)? {
                    return Ok(());
                }
            }
            if self.is_too_much_since(taken_before) {
                return Ok(());
            }
        }
        Ok(())
    }
}
