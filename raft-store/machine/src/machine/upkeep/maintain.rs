//! The leader's housekeeping: burying expired entries, compacting history.
//!
//! Owns what each step may take away. Every step is bounded and checks again what the leader saw.

use std::borrow::Cow;

use crate::codec;
use crate::keyspace::audit::{self, AuditEffect};
use crate::keyspace::digest::RowHasher;
use crate::keyspace::{deadline, entry, history, lock, lock_queue, relocked};
use crate::level::{self, Level};
use crate::limits;
use crate::machine::Applier;
use crate::machine::current::decode_current;
use crate::machine::view::{Fault, View};
use crate::mutants::Mutant;
use crate::types::{Key, Maintenance, Outcome, Revision, Waker};

/// Audit groups read at a time.
const GROUPS_PAGE_ROWS: usize = 64;

/// Rows of what is due read at a time.
const DUE_PAGE_ROWS: usize = 1_024;

impl<V: View> Applier<'_, V> {
    /// Carries out one step of housekeeping.
    pub(in crate::machine) fn maintain(&mut self, what: Maintenance) -> Result<Outcome, Fault> {
        match what {
            Maintenance::ExpireDue { limit } => self.expire_due(limit as usize),
            Maintenance::Compact { revision, groups_max } => self.compact(revision, groups_max as usize),
            Maintenance::Indexes { rows_max } => self.index_step(rows_max as usize),
            Maintenance::RaiseLevel { level } => self.raise_level(level),
            Maintenance::Count => self.count_step(),
        }
    }

    /// From the next command on what belongs to the level holds. A node that cannot do it must not go on.
    fn raise_level(&mut self, level: Level) -> Result<Outcome, Fault> {
        level::check(level)?;
        self.vars.level = self.vars.level.max(level);
        Ok(maintained(0, false))
    }

    /// Buries what is due, in order of deadline, until the batch has taken all that it may; then forgets the locks that
    /// ended.
    fn expire_due(&mut self, limit: usize) -> Result<Outcome, Fault> {
        let limit = limit.min(limits::MAINTENANCE_ROWS_MAX);
        let (removed, more) = self.each_due(deadline::due_range(self.vars.clock), limit, Self::expire_entry)?;
        if more {
            return Ok(maintained(removed, true));
        }
        let (forgotten, more) = self.each_due(lock::due_range(self.vars.clock), limit - removed, Self::forget_lock)?;
        // The timers fired at the head of the batch, as of every batch; those that are left do so at the next.
        Ok(maintained(removed + forgotten + self.batch.fired, more || self.has_due_timers()))
    }

    /// Takes a step for each row of a range, in order, until the batch has taken all that it may. Gives how many of at most
    /// `limit` were taken, and whether more are left.
    fn each_due(
        &mut self,
        (start, end): (Vec<u8>, Vec<u8>),
        limit: usize,
        step: fn(&mut Self, &[u8]) -> Result<(), Fault>,
    ) -> Result<(usize, bool), Fault> {
        let mut start = start;
        let mut taken = 0;
        loop {
            // One more than are taken tells whether there are more.
            let most = DUE_PAGE_ROWS.min(limit - taken + 1);
            let page = self.overlay.scan_page(&start, &end, false, self.bounds.page(most))?;
            let Some((last, _)) = page.last() else { return Ok((taken, false)) };
            start = [last.as_slice(), &[0]].concat();
            for (row_key, _) in page {
                if taken == limit || self.has_taken_all() {
                    return Ok((taken, true));
                }
                self.take_bytes(limits::EXPIRY_BYTES);
                self.work_on_row(&row_key, |applier| step(applier, &row_key))?;
                taken += 1;
            }
        }
    }

    fn expire_entry(&mut self, deadline_key: &[u8]) -> Result<(), Fault> {
        let damaged = |error| Fault::row(deadline_key, error);
        let (deadline, key) = deadline::decode_key(deadline_key).map_err(damaged)?;
        let row_key = entry::row_key(key);
        let meta = match self.overlay.get(&row_key)? {
            Some(row) => decode_current(&row_key, row, self.vars.revision)?.meta,
            None => {
                return Err(Fault::Invariant(format!("deadline row {} without entry", deadline_key.escape_ascii())));
            }
        };
        if meta.expires_at != Some(deadline) {
            let row_key = row_key.escape_ascii();
            return Err(Fault::Invariant(format!("deadline {deadline} for entry {row_key} with {meta:?}")));
        }
        let key = Key::new(key).map_err(|error| damaged(codec::CodecError::Malformed(error.to_string())))?;
        self.expire(key, &row_key, &meta)
    }

    /// Drops audit groups from the oldest on, each with the versions that it superseded. A group goes as a whole, and
    /// only where all of it is at or before `revision`; so the state at every revision from the last dropped one on
    /// stays readable at each step.
    fn compact(&mut self, revision: Revision, groups_max: usize) -> Result<Outcome, Fault> {
        // What this very batch changed is not on record yet, so it stays out.
        let target = revision.min(self.batch.start);
        if target <= self.vars.oldest_revision {
            return Ok(maintained(0, false));
        }
        // Every group that remains ends after the oldest revision. A scan from the head of the family would walk the
        // tombstones of all that was dropped before.
        let mut start = audit::row_key(self.vars.oldest_revision.saturating_add(1), 0);
        let end = audit::row_key(target.saturating_add(1), 0);
        let (mut groups, mut rows) = (0, 0);
        loop {
            let page = self.overlay.scan_page(&start, &end, false, self.bounds.page(GROUPS_PAGE_ROWS))?;
            if page.is_empty() {
                self.vars.oldest_revision = target;
                return Ok(maintained(groups, false));
            }
            for (row_key, row) in page {
                let is_full = groups >= groups_max || rows >= limits::MAINTENANCE_ROWS_MAX;
                if is_full || (groups > 0 && self.has_taken_all()) {
                    return Ok(maintained(groups, true));
                }
                self.take_bytes(row.len());
                let dropped = self.compact_next(&row_key, &row)?;
                self.take_bytes(dropped * limits::LOOK_BYTES);
                rows += dropped;
                groups += 1;
                start = row_key;
                start.push(0);
            }
        }
    }

    /// Drops one group, or sets it aside where that faults: what is older than the oldest revision nobody reads, whether it is
    /// there or not. Gives the number of rows deleted.
    fn compact_next(&mut self, row_key: &[u8], row: &[u8]) -> Result<usize, Fault> {
        let (last_revision, _) = audit::decode_key(row_key).map_err(|error| Fault::row(row_key, error))?;
        let rows = match self.at_savepoint(|applier| applier.compact_group(row_key, row))? {
            Ok(rows) => rows,
            Err(fault) => self.park(row_key, fault).map(|()| 1)?,
        };
        let oldest = std::mem::replace(&mut self.vars.oldest_revision, last_revision);
        assert!(last_revision > oldest, "a group of revision {last_revision} dropped after revision {oldest}");
        Ok(rows)
    }

    /// Drops a group that was set aside.
    pub(in crate::machine) fn compact_parked(&mut self, row_key: &[u8]) -> Result<(), Fault> {
        let Some(row) = self.overlay.peek(row_key)?.map(Cow::into_owned) else { return Ok(()) };
        self.compact_group(row_key, &row).map(|_| ())
    }

    fn compact_group(&mut self, row_key: &[u8], row: &[u8]) -> Result<usize, Fault> {
        let group = audit::decode(row).map_err(|error| Fault::row(row_key, error))?;
        let mut rows = 1;
        let mut hasher = RowHasher::default();
        for line in group.lines {
            let Some(key) = line.key else { continue };
            let (previous, removed) = match line.effect {
                AuditEffect::Changed { previous, removed } => (previous, removed),
                AuditEffect::Elected { row } => {
                    let Some(name) = Waker::Election.name(&key) else {
                        return Err(Fault::Invariant(format!("{key} stands for no election")));
                    };
                    self.overlay.delete_known(lock_queue::elected_key(&name, line.revision), row)?;
                    rows += 1;
                    continue;
                }
                AuditEffect::Relocked { row } => {
                    self.overlay.delete_known(relocked::row_key(key.as_bytes(), line.revision), row)?;
                    rows += 1;
                    continue;
                }
                AuditEffect::Beside | AuditEffect::Refused(_) => continue,
            };
            if let Some(previous) = previous {
                self.overlay.delete_known(history::row_key(key.as_bytes(), previous.revision), previous.row)?;
                rows += 1;
            }
            if removed && !Mutant::TombstonesStay.acts() {
                let tombstone = history::row_key(key.as_bytes(), line.revision);
                let mark = hasher.mark(&tombstone, history::TOMBSTONE);
                self.overlay.delete_known(tombstone, mark)?;
                rows += 1;
            }
        }
        self.overlay.delete_known(row_key.to_vec(), hasher.mark(row_key, row))?;
        Ok(rows)
    }
}

/// The outcome of a step.
pub(in crate::machine) fn maintained(removed: usize, more: bool) -> Outcome {
    let removed = u32::try_from(removed).expect("a step is bounded by limits::MAINTENANCE_ROWS_MAX");
    Outcome::Maintained { removed, more }
}
