//! Locks on entries.
//!
//! Owns who may write a locked entry, and what locking does to its row. A lock is part of the entry: it supersedes no
//! version, and ends with any write of its holder or by itself. Its key is in the row and in the answer to who locked it,
//! and nowhere else.

use crate::codec::{self, CodecError};
use crate::keyspace::audit::AuditEffect;
use crate::keyspace::entry::{self, EntryRow};
use crate::keyspace::relocked::LockBefore;
use crate::keyspace::{lock, relocked};
use crate::machine::current::decode_current;
use crate::machine::quotas::counts::Amount;
use crate::machine::view::{Fault, View};
use crate::machine::{Applier, stored_key};
use crate::mutants::Mutant;
use crate::types::{
    Change, ClusterMillis, Entry, EntryMeta, Key, Presence, Rejection, Revision, Shown, Tokens, Waker, WriteOp,
};

/// Whether a lock on the entry, or its absence, forbids the write.
pub(in crate::machine) fn check(op: &WriteOp, row: &EntryRow<'_>, clock: ClusterMillis) -> Result<(), Rejection> {
    let is_locked = row.meta.is_locked_at(clock);
    let has_key = match &op.expect.tokens {
        Tokens::One(cas) => row.has_token(*cas, clock),
        Tokens::AnyOf(tokens) => tokens.iter().any(|token| row.has_token(*token, clock)),
        Tokens::Any | Tokens::NoneOf(_) => false,
    };
    match &op.change {
        Change::Lock(_) | Change::Claim { .. } if is_locked => Err(Rejection::Locked { current: row.to_shown() }),
        Change::Extend(_) | Change::Unlock if !is_locked => Err(Rejection::NotLocked { current: row.to_shown() }),
        Change::Extend(_) | Change::Unlock if !has_key => Err(Rejection::Locked { current: row.to_shown() }),
        // That the entry is there at all is what these are told.
        _ if op.expect.presence == Presence::Absent => Ok(()),
        _ if is_locked && !has_key => {
            let expected = match op.expect.tokens {
                Tokens::One(expected) => Some(expected),
                _ => None,
            };
            Err(Rejection::CasMismatch { expected, current: Some(row.to_shown()) })
        }
        _ => Ok(()),
    }
}

/// The entry's metadata and the key after a change of its lock at `revision`; `key` is that of a lock that begins.
pub(in crate::machine) fn relocked(
    change: &Change,
    row: &EntryRow<'_>,
    revision: Revision,
    clock: ClusterMillis,
    key: Option<u64>,
) -> (EntryMeta, Option<u64>) {
    let meta = row.meta;
    let until = |ms: u64| Some(clock.saturating_add(ms));
    match change {
        Change::Lock(ms) | Change::Claim { ms, .. } => {
            (EntryMeta { cas: revision, locked_until: until(*ms), ..meta }, key)
        }
        Change::Extend(ms) => (EntryMeta { locked_until: until(*ms), ..meta }, row.key),
        _ => (EntryMeta { locked_until: None, ..meta }, None),
    }
}

/// An entry's metadata for who holds the lock on it: the key is the token that it has to name.
pub(in crate::machine) fn told_to_holder(meta: EntryMeta, key: Option<u64>) -> EntryMeta {
    EntryMeta { cas: key.unwrap_or(meta.cas), ..meta }
}

/// An entry for who holds the lock on it.
pub(in crate::machine) fn shown_to_holder(row: &EntryRow<'_>) -> Shown {
    let entry = row.to_entry();
    Shown::Whole(Entry { meta: told_to_holder(entry.meta, row.key), ..entry })
}

impl<V: View> Applier<'_, V> {
    /// Puts a row in place of the current one, which `before` is the meta of and which it differs from in the lock only.
    pub(in crate::machine) fn relock(
        &mut self,
        key: &Key,
        row_key: &[u8],
        before: Option<&EntryMeta>,
        row: Option<Vec<u8>>,
        after: Option<&EntryMeta>,
    ) -> Result<(), Fault> {
        let new_bytes = row.as_ref().map_or(0, Vec::len);
        let replaced = self.overlay.replace(row_key, row)?;
        let (Some(before), Some(after), Some(replaced)) = (before, after, replaced) else {
            return Err(Fault::Invariant(format!("a change of the lock of {key}, which is not there")));
        };
        let amount = |bytes| Amount::of_entry(key.as_bytes(), Some(bytes));
        self.count_in_prefixes(row_key, key.as_bytes(), amount(replaced.len()), amount(new_bytes))?;
        if let Some(session) = before.session.filter(|_| !Mutant::LocksHaveNoBytes.acts()) {
            self.count_session_bytes(session, replaced.len(), new_bytes)?;
        }
        self.move_lock(key.as_bytes(), before.locked_until, after.locked_until)
    }

    /// Keeps what the lock on an entry was until the revision just taken, for who reads it as of before.
    pub(in crate::machine) fn remember_lock(&mut self, key: &Key, before: &EntryMeta) -> Result<AuditEffect, Fault> {
        let mut lock = LockBefore::of(before);
        if Mutant::LocksChangeThePast.acts() {
            // It is of no version, so nobody reads it.
            lock.version = 0;
        }
        let row_key = relocked::row_key(key.as_bytes(), self.vars.revision);
        let row = self.overlay.insert_new(row_key, codec::encode(&lock))?;
        Ok(AuditEffect::Relocked { row })
    }

    /// Keeps the row of a lock's end in step with it, and tells those who wait for that end. It may be gone already where the lock
    /// ended by itself, which the entry does not tell.
    pub(in crate::machine) fn move_lock(
        &mut self,
        key: &[u8],
        before: Option<ClusterMillis>,
        after: Option<ClusterMillis>,
    ) -> Result<(), Fault> {
        if before.is_some() && before != after {
            self.wake_lock(key)?;
        }
        let ended = before.filter(|until| *until <= self.vars.clock);
        let Some(until) = ended else {
            return self.move_row(key, before, after, lock::row_key);
        };
        if !Mutant::LocksThatEndedLeaveRows.acts() {
            self.forget_work(&lock::row_key(until, key))?;
        }
        self.move_row(key, None, after, lock::row_key)
    }

    /// Forgets a lock that ended by itself. Nobody sees a change: it was as good as gone, so this takes no revision. The entry stays
    /// as it is: when its lock ended it says by itself, also to who reads it as of a moment before.
    pub(in crate::machine) fn forget_lock(&mut self, lock_key: &[u8]) -> Result<(), Fault> {
        let (_, key) = lock::decode_key(lock_key).map_err(|error| Fault::row(lock_key, error))?;
        self.wake_lock(key)?;
        self.take_work(lock_key)
    }

    /// Tells those who wait for the end of the lock on an entry.
    fn wake_lock(&mut self, key: &[u8]) -> Result<(), Fault> {
        self.wake(Waker::of_entry_lock(&stored_key(key)?));
        Ok(())
    }

    /// Takes a lock off its entry.
    pub(in crate::machine) fn end_lock(&mut self, lock_key: &[u8]) -> Result<(), Fault> {
        let damaged = |error| Fault::row(lock_key, error);
        let (until, key) = lock::decode_key(lock_key).map_err(damaged)?;
        let row_key = entry::row_key(key);
        let Some(row) = self.overlay.get(&row_key)? else {
            return Err(Fault::Invariant(format!("lock row {} without entry", lock_key.escape_ascii())));
        };
        let row = decode_current(&row_key, row, self.vars.revision)?;
        let before = row.meta;
        if before.locked_until != Some(until) {
            let row_key = row_key.escape_ascii();
            return Err(Fault::Invariant(format!("a lock until {until} for entry {row_key} with {before:?}")));
        }
        let after = EntryMeta { locked_until: None, ..before };
        let row = entry::encode(&after, row.kind, row.data);
        let key = Key::new(key).map_err(|error| damaged(CodecError::Malformed(error.to_string())))?;
        self.relock(&key, &row_key, Some(&before), Some(row), Some(&after))
    }
}
