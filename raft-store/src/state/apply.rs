//! Applying log entries: the machine's answers, one atomic write, then everybody may see it.
//!
//! Owns the order of these steps and the check that entries come without gaps. Knows no openraft trait.

#![expect(clippy::disallowed_methods, reason = "measures how long a group took; nothing of it is replicated")]

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use openraft::EntryPayload;

use super::db::LatestView;
use super::digests;
use super::feed::Told;
use super::shared::{Shared, position_of};
use super::types::StateFault;
use crate::codec;
use crate::keyspace::meta::AppliedRecord;
use crate::limits;
use crate::machine::Applier;
use crate::raft::wire::{LogIdRecord, MembershipRecord, StoredMembershipRecord};
use crate::raft::{BatchReply, EncodedBatch, LogEntry};

/// A group is closed once what its entries read, write and answer takes so many bytes: as many as one entry may take.
/// The entries of a group may be small and still rewrite megabytes each.
const GROUP_EFFECT_BYTES_MAX: usize = limits::BATCH_EFFECT_BYTES_MAX;

/// The only writer of the state.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    /// The applied row on disk, unless `is_unsound`.
    record: AppliedRecord,
    /// Set while a group is under way: it stays so after a fault, and then nothing may be applied any more.
    is_unsound: bool,
}

impl Committer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let record = shared.applied();
        Self { shared, record, is_unsound: false }
    }

    /// The applied row on disk; also what the next entries are applied to.
    pub(crate) fn reload(&mut self) -> Result<&AppliedRecord, StateFault> {
        self.record = self.shared.db().applied()?;
        self.is_unsound = false;
        Ok(&self.record)
    }

    /// Index of the last entry applied; 0 also while there is none.
    pub(crate) fn index(&self) -> u64 {
        self.record.log_id.map_or(0, |id| id.index)
    }

    /// Applies entries as one group, up to the one that makes it [`GROUP_EFFECT_BYTES_MAX`] large or at which digests are
    /// compared; one answer for each applied. When it returns they are visible to all readers, and after a crash either all or none of them are there.
    /// An error means that this node must stop.
    pub(crate) fn apply<'e>(
        &mut self,
        entries: impl IntoIterator<Item = &'e LogEntry>,
    ) -> Result<Vec<BatchReply>, StateFault> {
        if std::mem::replace(&mut self.is_unsound, true) {
            return Err(StateFault("applying failed before; the node must stop".into()));
        }
        let begin = Instant::now();
        let db = self.shared.db_owned();
        let view = LatestView(&db);
        let mut applier = Applier::new(&view, self.record.vars.clone());
        let mut answers = Vec::new();
        for entry in entries {
            let answer = apply_entry(&mut self.record, &mut applier, entry);
            answers.push(answer.map_err(|fault| StateFault(format!("log entry {}: {}", entry.log_id, fault.0)))?);
            if applier.taken_bytes() >= GROUP_EFFECT_BYTES_MAX || digests::is_mark(entry.log_id.index) {
                break;
            }
        }
        let mut applied = applier.finish();
        let before = self.record.vars.revision;
        self.record.vars = std::mem::take(&mut applied.vars);
        fail::fail_point!("state-before-write");
        self.shared.publish(&self.record, || db.write(&applied, &self.record))?;
        fail::fail_point!("state-after-write-before-reply");
        self.is_unsound = false;
        self.shared.work.apply.observe(begin.elapsed());
        self.shared.work.applied_entries.fetch_add(answers.len() as u64, Relaxed);
        let at = position_of(&self.record);
        self.shared.digests.note(at.index, self.record.vars.digest());
        let (changes, names) = (applied.changed, &applied.woken);
        let (after, oldest) = (at.revision, at.oldest_revision);
        self.shared.feed.tell(Told { changes, names, before, after, oldest });
        Ok(answers)
    }
}

fn apply_entry(
    record: &mut AppliedRecord,
    applier: &mut Applier<'_, LatestView<'_>>,
    entry: &LogEntry,
) -> Result<BatchReply, StateFault> {
    let log_id = LogIdRecord::from(&entry.log_id);
    if record.log_id.is_some_and(|last| log_id.index <= last.index) {
        return Err(StateFault(format!("the state is at {:?} already", record.log_id)));
    }
    let replies = match &entry.payload {
        EntryPayload::Blank => Vec::new(),
        EntryPayload::Membership(membership) => {
            let membership = MembershipRecord::from(membership);
            record.membership = StoredMembershipRecord { log_id: Some(log_id), membership };
            Vec::new()
        }
        EntryPayload::Normal(EncodedBatch(bytes)) => {
            // openraft's own conformance suite leaves gaps, but only between entries without commands.
            let expected = record.log_id.map_or(0, |last| last.index + 1);
            if log_id.index != expected {
                return Err(StateFault(format!("entries are missing before it: {expected} is the next")));
            }
            let batch = codec::decode_batch(bytes)
                .map_err(|error| StateFault(format!("the batch cannot be decoded: {error}")))?;
            applier.apply_batch(log_id.index, &batch)?
        }
    };
    record.log_id = Some(log_id);
    Ok(BatchReply { replies })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Criteria;
    use crate::state::{StateOptions, StateStore};
    use crate::types::{Action, Batch, Change, Command, ContentKind, Expect, Expiry, Key, Value, WriteOp};

    fn entry(index: u64, change: Change) -> LogEntry {
        let key = Key::new("document").unwrap();
        let (expect, condition, expiry) = (Expect::Any, Criteria::default(), Expiry::Keep);
        let op = WriteOp { key, expect, condition, change, expiry, return_previous: false, session: None, guard: None };
        let command = Command::unnamed(Action::Write(op));
        let batch = Batch { clock: index, wall: index, commands: vec![codec::encode_command(&command)] };
        let payload = EntryPayload::Normal(EncodedBatch(codec::encode_batch(&batch)));
        LogEntry { log_id: LogIdRecord { term: 1, node: 1, index }.into(), payload }
    }

    #[test]
    fn a_group_ends_once_its_effect_is_as_large_as_that_of_one_entry_may_be() {
        let dir = tempfile::tempdir().unwrap();
        let (_state, reader) = StateStore::open(dir.path(), StateOptions::new(1)).unwrap();
        let mut committer = Committer::new(Arc::clone(&reader.shared));
        let value = Value { kind: ContentKind::Bytes, data: vec![7; 1 << 20] };
        let blank =
            LogEntry { log_id: LogIdRecord { term: 1, node: 1, index: 0 }.into(), payload: EntryPayload::Blank };
        // Each entry but the first two is a few bytes that read, keep and write the megabyte again.
        let mut entries = vec![blank, entry(1, Change::Upsert(value))];
        entries.extend((2..7).map(|index| entry(index, Change::Touch)));
        let first = committer.apply(&entries).unwrap();
        assert_eq!(first.len(), 5, "0 + 1 + 3 * 3 megabytes are the first sum above 8");
        assert_eq!(reader.position().index, 4);
        let second = committer.apply(&entries[first.len()..]).unwrap();
        assert_eq!((second.len(), reader.position().index), (2, 6));
    }
}
