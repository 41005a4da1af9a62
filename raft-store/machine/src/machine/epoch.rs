//! A new epoch: what becomes of a state that goes on in another cluster, after a restore or a recovery.
//!
//! Owns what a client of before may still hold afterwards, which is nothing: revisions jump, tokens are exchanged, sessions
//! and locks end. Pure like the rest, but never part of a log: it is done before the new cluster has its first entry, and
//! all its nodes begin with the outcome.
//!
//! Golden scripts, in `testscripts/machine`: `epoch`.

use super::vars::{Sums, Vars};
use super::view::{Fault, View};
use super::{Applied, Applier, Caller, applying};
use crate::codec;
use crate::keyspace::audit::AuditOp;
use crate::keyspace::digest::RowHasher;
use crate::keyspace::entry::EntryRow;
use crate::keyspace::session::{self, SessionRow};
use crate::keyspace::timer::{self, TimerKind};
use crate::keyspace::{bucket, entry, family, family_range, quota};
use crate::types::{EntryMeta, PrefixUse, QuotaState, QuotaSubject, Revision, Seed};

/// By so much revisions jump: more than a cluster does in three years of 10,000 writes a second, so whatever the old one
/// did after the backup stays below; and ten thousand such jumps fit into a number of JSON.
pub const EPOCH_REVISIONS: Revision = 1_000_000_000_000;

/// Most sessions ended and locks forgotten in one step. A step takes what a batch may, and what the last of them takes beyond that; claims of tasks that are left are given back by the first batches of the new epoch.
const STEP: usize = 16;

/// Whose name the lines of audit bear.
const PRINCIPAL: &str = "new epoch";

/// The rows and scalars of a state as its new epoch begins, taken in one by one.
pub struct Epoch {
    vars: Vars,
    /// Those of the rows, counted anew one by one.
    sums: Sums,
    hasher: RowHasher,
    collections: u64,
}

impl Epoch {
    /// After a state with these scalars, of which the rows come without its history and its request table. Begins at `floor` or
    /// above: one state may go on in several epochs, of one backup restored twice, and what clients know from one of them must
    /// not fit another.
    pub fn after(vars: Vars, floor: Revision) -> Result<Self, Fault> {
        let revision = vars.revision.checked_add(EPOCH_REVISIONS).map(|revision| revision.max(floor));
        let revision = revision.ok_or_else(|| Fault::Invariant("no revisions are left for a new epoch".into()))?;
        let epoch = vars.epoch + 1;
        let (oldest_revision, epoch_revision) = (revision, revision);
        // Users, roles and tokens go on; what was authorised before does not.
        let access = if vars.access == 0 { 0 } else { revision };
        let vars = Vars { revision, oldest_revision, epoch, epoch_revision, access, ..vars };
        Ok(Self { vars, sums: Sums::default(), hasher: RowHasher::default(), collections: 0 })
    }

    /// Takes a row in: the value it has from now on. Entries get a new token, so that none of before fits.
    pub fn take(&mut self, row_key: &[u8], value: Vec<u8>) -> Result<Vec<u8>, Fault> {
        assert!(bucket::of_row(row_key).is_none(), "a row of a bucket in a new epoch");
        let damaged = |error| Fault::row(row_key, error);
        let value = match row_key.first() {
            Some(&family::ENTRY) => {
                let row = entry::decode(&value).map_err(damaged)?;
                // A key has to go as well, and sessions count the bytes of rows.
                let (cas, key) = (self.vars.revision, row.key.map(|_| self.vars.revision));
                let meta = EntryMeta { cas, ..row.meta };
                entry::encode_row(&EntryRow { meta, key, is_relocked: false, ..row })
            }
            Some(&family::COLLECTION) => {
                self.collections += 1;
                value
            }
            // The tokens of entries are other ones, and with them their sizes: what prefixes have is counted anew.
            Some(&family::QUOTA_USE) => match quota::decode_use_key(row_key).map_err(damaged)? {
                QuotaSubject::Prefix(prefix) => {
                    let [(start, _), _] = quota::counted_rows(&prefix);
                    codec::encode(&PrefixUse { from: Some(start), ..PrefixUse::default() })
                }
                QuotaSubject::Default | QuotaSubject::Principal(_) => value,
            },
            Some(&family::QUOTA_STATE) => {
                let state: QuotaState = codec::decode(&value).map_err(damaged)?;
                codec::encode(&QuotaState { counting: state.prefixes, ..state })
            }
            _ => value,
        };
        let mark = self.hasher.mark(row_key, &value);
        self.sums.exchange(row_key, None, Some(mark));
        Ok(value)
    }

    /// The scalars once all rows are taken in.
    pub fn finish(mut self) -> Result<Vars, Fault> {
        self.vars.put_sums(self.sums);
        match self.collections == self.vars.collections {
            true => Ok(self.vars),
            false => Err(Fault::Invariant(format!(
                "{} rows of collections, but {} are counted",
                self.collections, self.vars.collections
            ))),
        }
    }
}

/// How far the end of what belongs to clients of before is.
#[derive(Debug, Clone, Default)]
pub struct EpochStep {
    /// Row key behind the last session that was ended.
    sessions_from: Vec<u8>,
    /// Row key behind the last lock of an entry that was forgotten.
    locks_from: Vec<u8>,
}

impl EpochStep {
    /// Ends the next sessions, with all that hangs on them, then forgets the next locks on entries; `index` is that of the
    /// last log entry. `None` once there are none. Contains faults as a node does: what its cluster would set aside keeps no
    /// state from going on in another one.
    pub fn next<V: View>(&mut self, view: &V, vars: Vars, index: u64) -> Result<Option<Applied>, Fault> {
        let (after, applied) = applying(|is_containing| {
            let mut after = self.clone();
            let mut applier = Applier::new(view, vars.clone()).containing(is_containing);
            applier.begin(index, Seed::default());
            let has_more = after.take(view, &mut applier)?;
            Ok((after, has_more.then(|| applier.finish())))
        })?;
        *self = after;
        Ok(applied)
    }

    /// Takes one step. Whether there was anything to do.
    fn take<V: View>(&mut self, view: &V, applier: &mut Applier<'_, V>) -> Result<bool, Fault> {
        let (start, end) = family_range(family::SESSION);
        let sessions = view.scan(start.max(self.sessions_from.clone()).as_slice(), &end, STEP)?;
        if !sessions.is_empty() {
            for (row_key, row) in &sessions {
                applier.end_session_of_before(row_key, row)?;
                self.sessions_from = [row_key.as_slice(), &[0]].concat();
                if applier.has_taken_all() {
                    break;
                }
            }
            applier.close_batch()?;
            return Ok(true);
        }
        let (start, end) = family_range(family::LOCK);
        let locks = view.scan(start.max(self.locks_from.clone()).as_slice(), &end, STEP)?;
        for (row_key, _) in &locks {
            applier.work_on_row(row_key, |applier| applier.end_lock(row_key))?;
            self.locks_from = [row_key.as_slice(), &[0]].concat();
            if applier.has_taken_all() {
                break;
            }
        }
        Ok(!locks.is_empty())
    }
}

impl<V: View> Applier<'_, V> {
    /// Ends a session, and where that faults takes at least it away: nobody of before may live on in the new epoch.
    fn end_session_of_before(&mut self, row_key: &[u8], row: &[u8]) -> Result<(), Fault> {
        match self.at_savepoint(|applier| applier.end_whole_session(row_key, row))? {
            Ok(()) => Ok(()),
            Err(fault) => self.take_session_alone(row_key, row, fault),
        }
    }

    fn end_whole_session(&mut self, row_key: &[u8], row: &[u8]) -> Result<(), Fault> {
        let damaged = |error| Fault::row(row_key, error);
        let id = session::decode_key(row_key).map_err(damaged)?;
        let row: SessionRow = codec::decode(row).map_err(damaged)?;
        self.disarm(row.armed_at, TimerKind::Session, &id.0.to_be_bytes())?;
        let caller = Caller { request_id: None, principal: PRINCIPAL.to_owned() };
        // Whoever waits is of before, too: nobody is granted anything.
        self.take_session(id, AuditOp::SessionEnd, caller).map(|_| ())
    }

    /// Takes the row of a session that cannot be ended, and its timer where that is known; what hangs on it is set aside, each thing
    /// for itself, until an operator has it tried again or dropped.
    fn take_session_alone(&mut self, row_key: &[u8], row: &[u8], fault: Fault) -> Result<(), Fault> {
        self.overlay.replace(row_key, None)?;
        self.vars.sessions = self.vars.sessions.saturating_sub(1);
        if let Ok(id) = session::decode_key(row_key) {
            if let Ok(SessionRow { armed_at, .. }) = codec::decode(row) {
                self.forget_work(&timer::row_key(armed_at, TimerKind::Session, &id.0.to_be_bytes()))?;
            }
            let (start, end) = session::attached_to(id);
            let attached = self.overlay.scan(&start, &end, usize::MAX)?;
            // Nobody knows whose a damaged one was, and a damaged count is found when the counts are looked at.
            let _counted = self.at_savepoint(|applier| applier.uncount_session(id, row, &attached))?;
            for (attached, _) in attached {
                self.park(&attached, fault.clone())?;
            }
        }
        self.note_contained(row_key, fault);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_epochs_of_one_state_share_no_revision() {
        let begun = |floor| Epoch::after(Vars { revision: 40, ..Vars::default() }, floor).unwrap().vars.epoch_revision;
        assert_eq!(begun(0), 40 + EPOCH_REVISIONS);
        assert_eq!(begun(2 * EPOCH_REVISIONS), 2 * EPOCH_REVISIONS);
        assert_eq!(begun(7), 40 + EPOCH_REVISIONS, "never below what the old cluster may have reached");
        assert!(Epoch::after(Vars { revision: u64::MAX - 5, ..Vars::default() }, 0).is_err());
    }
}
