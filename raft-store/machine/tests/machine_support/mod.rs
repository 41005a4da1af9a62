//! What the machine's tests share: a store in memory that checks itself after each apply, and text forms of rows.
//!
//! Never decides what is right beyond the invariants that the key space documents.
#![allow(dead_code, reason = "each test binary uses a part")]

pub mod access;
pub mod coordination;
pub mod memory;
pub mod model;
pub mod show;
pub mod tasks;

use std::collections::BTreeSet;

use quorate_machine::document::Json;
use quorate_machine::keyspace::audit::AuditEffect;
use quorate_machine::keyspace::backed_up::is_kept;
use quorate_machine::keyspace::collection::{CollectionRow, IndexStage};
use quorate_machine::keyspace::fault::{self, FaultCounts};
use quorate_machine::keyspace::request::KeptReply;
use quorate_machine::keyspace::{
    audit, bucket, collection, deadline, entry, family, history, index, lock, lock_queue, refusals, request,
};
use quorate_machine::machine::{
    self, Applied, Applier, Contained, Epoch, EpochStep, Fault, MemoryView, Sizes, Vars, View, Write,
};
use quorate_machine::types::{Batch, Command, ContentKind, Entry, Key, Reply, Revision, Waker};
use quorate_machine::{codec, digest};

/// Replies of each batch, and changes of keys.
pub type Answers = (Vec<Vec<Reply>>, Vec<(Key, Revision)>);

/// A whole node's state in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Store {
    pub view: MemoryView,
    pub vars: Vars,
    pub index: u64,
}

impl Store {
    /// Applies batches in one apply call; replies and changes.
    pub fn apply(&mut self, batches: &[Batch]) -> Result<Answers, Fault> {
        let (replies, applied) = self.attempt(batches, false)?;
        Ok((replies, self.keep(batches, applied)))
    }

    /// The same as a node does it: what can be contained is, and told.
    pub fn apply_contained(&mut self, batches: &[Batch]) -> (Vec<Vec<Reply>>, Vec<Contained>) {
        let (replies, mut applied) = machine::applying(|contain| self.attempt(batches, contain)).unwrap();
        let contained = std::mem::take(&mut applied.contained);
        self.keep(batches, applied);
        (replies, contained)
    }

    fn attempt(&self, batches: &[Batch], contain: bool) -> Result<(Vec<Vec<Reply>>, Applied), Fault> {
        let mut applier = Applier::new(&self.view, self.vars.clone()).containing(contain);
        let replies = (self.index + 1..).zip(batches).map(|(index, batch)| applier.apply_batch(index, batch));
        let replies = replies.collect::<Result<_, _>>()?;
        Ok((replies, applier.finish()))
    }

    /// Keeps what was applied; changes.
    fn keep(&mut self, batches: &[Batch], applied: Applied) -> Vec<(Key, Revision)> {
        let Applied { writes, vars, changed, woken: _, contained } = applied;
        assert_eq!(contained, [], "a fault was contained, which is a bug");
        assert_ordered(&writes);
        self.view.write(writes);
        self.vars = vars;
        self.index += batches.len() as u64;
        changed.into_iter().map(|change| (change.key, change.revision)).collect()
    }

    /// What it goes on as in another cluster.
    pub fn begin_epoch(&mut self) {
        let mut epoch = Epoch::after(self.vars.clone(), 0).unwrap();
        let rows = std::mem::take(&mut self.view.0).into_iter().filter(|(row_key, _)| is_kept(row_key));
        self.view.0 = rows.map(|(row_key, row)| (row_key.clone(), epoch.take(&row_key, row).unwrap())).collect();
        self.vars = epoch.finish().unwrap();
        self.check();
        let mut step = EpochStep::default();
        while let Some(applied) = step.next(&self.view, self.vars.clone(), self.index).unwrap() {
            self.view.write(applied.writes);
            self.vars = applied.vars;
            self.check();
        }
    }

    /// How much faulted and was contained.
    pub fn fault_counts(&self) -> FaultCounts {
        let row = self.view.get(fault::COUNTS_KEY).unwrap();
        row.map(|row| codec::decode(&row).unwrap()).unwrap_or_default()
    }

    pub fn rows(&self, family: u8) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.view.scan(&[family], &[family + 1], usize::MAX).unwrap()
    }

    /// The entry of a key at a revision, expiry aside.
    pub fn read_at(&self, key: &[u8], revision: Revision) -> Option<Entry> {
        let current = self.view.get(&entry::row_key(key)).unwrap();
        history::read_at::<Fault>(key, revision, current.as_deref(), |first, last| {
            let mut rows = self.view.0.range(first.to_vec()..=last.to_vec());
            Ok(rows.next_back().map(|(_, row)| row.clone()))
        })
        .unwrap()
    }

    /// Every invariant of the key space, from the rows alone.
    pub fn check(&self) {
        let vars = &self.vars;
        assert_eq!(vars.digest(), digest::of_rows(&self.view.0), "the incremental digest differs from the real one");
        assert_eq!(vars.sizes, Sizes::of_rows(&self.view.0), "the sizes kept differ from the real ones");
        assert!(1 <= vars.oldest_revision && vars.oldest_revision <= vars.revision, "{vars:?}");
        self.check_deadlines();
        let superseded = self.check_audit();
        let history: BTreeSet<_> = self.rows(family::HISTORY).into_iter().map(|(key, _)| key).collect();
        assert_eq!(history, superseded, "history rows on the left, what the audit groups say on the right");
        self.check_buckets();
        self.check_indexes();
        coordination::check(self);
        tasks::check(self);
        access::check(self);
    }

    /// Checks that each index holds what its stage says, and nothing is left of others but what is to be cleared.
    fn check_indexes(&self) {
        let collections = self.rows(family::COLLECTION);
        assert_eq!(collections.len() as u64, self.vars.collections);
        let to_clear: BTreeSet<u64> =
            self.rows(family::DROPPED_INDEX).iter().map(|(key, _)| index::decode_dropped(key).unwrap()).collect();
        let mut expected = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for (row_key, row) in collections {
            let row: CollectionRow = codec::decode(&row).unwrap();
            let (start, end) = collection::keys(&collection::decode_key(&row_key).unwrap());
            assert_eq!(row.rules.indexes().len(), row.indexes.len(), "{row:?}");
            for (rule, state) in row.rules.indexes().iter().zip(&row.indexes) {
                assert!(ids.insert(state.id), "an id twice: {row:?}");
                assert!(matches!(state.stage, IndexStage::Failed(_)) || !to_clear.contains(&state.id), "{row:?}");
                let mut bound = BTreeSet::new();
                for (row_key, row) in
                    self.view.scan(&entry::row_key(&start), &entry::row_key(&end), usize::MAX).unwrap()
                {
                    let key = entry::decode_key(&row_key).unwrap();
                    if !state.holds(key) {
                        continue;
                    }
                    let row = entry::decode(&row).unwrap();
                    let document = Json::parse(row.data).ok().filter(|_| row.kind == ContentKind::Json);
                    let values = rule.key_of(document.as_ref()).unwrap();
                    expected.insert(index::row_key(state.id, &values, key));
                    let is_bound = rule.is_bound(document.as_ref()) && !row.is_expired_at(self.vars.clock);
                    assert!(!is_bound || bound.insert(values), "two entries with the same values in {rule:?}");
                }
            }
        }
        let rows = self.rows(family::INDEX).into_iter().map(|(key, _)| key);
        let held: BTreeSet<_> =
            rows.filter(|row_key| !to_clear.contains(&u64::from_be_bytes(row_key[1..9].try_into().unwrap()))).collect();
        assert_eq!(held, expected, "index rows on the left, what entries ask for on the right");
    }

    fn check_deadlines(&self) {
        let decoded = self.rows(family::ENTRY);
        let expected: BTreeSet<_> = decoded
            .iter()
            .filter_map(|(row_key, row)| {
                let row = entry::decode(row).unwrap();
                assert!(row.meta.mod_revision <= self.vars.revision);
                row.meta.expires_at.map(|at| deadline::row_key(at, entry::decode_key(row_key).unwrap()))
            })
            .collect();
        let deadlines: BTreeSet<_> = self.rows(family::DEADLINE).into_iter().map(|(key, _)| key).collect();
        assert_eq!(deadlines, expected, "deadline rows on the left, deadlines of entries on the right");
        let expected: BTreeSet<_> = decoded
            .iter()
            .filter_map(|(row_key, row)| {
                let until = entry::decode(row).unwrap().meta.locked_until;
                until.map(|until| lock::row_key(until, entry::decode_key(row_key).unwrap()))
            })
            .collect();
        let locks: BTreeSet<_> = self.rows(family::LOCK).into_iter().map(|(key, _)| key).collect();
        assert_eq!(locks, expected, "lock rows on the left, locks of entries on the right");
    }

    /// Checks that the groups carry each revision once, in order; gives the history rows that they account for.
    fn check_audit(&self) -> BTreeSet<Vec<u8>> {
        let mut history_rows = BTreeSet::new();
        let mut elected = BTreeSet::new();
        let mut next = None;
        for (row_key, row) in self.rows(family::AUDIT) {
            let group = audit::decode(&row).unwrap();
            assert_eq!(audit::decode_key(&row_key).unwrap(), (group.last_revision, group.index));
            assert!(group.last_revision > self.vars.oldest_revision);
            let mut revision = group.first_revision;
            let mut keys = BTreeSet::new();
            assert_eq!(next.unwrap_or(revision), revision, "a gap between audit groups");
            for line in &group.lines {
                let (previous, removed) = match line.effect {
                    AuditEffect::Changed { previous, removed } => (previous, removed),
                    AuditEffect::Relocked => (None, false),
                    AuditEffect::Beside => (None, false),
                    AuditEffect::Elected { .. } => {
                        let name = Waker::Election.name(line.key.as_ref().unwrap()).unwrap();
                        elected.insert(lock_queue::elected_key(&name, line.revision));
                        (None, false)
                    }
                    AuditEffect::Refused(_) => continue,
                };
                // A revision belongs to one change, or to one of each key that a transaction changed, or of each task.
                if line.revision == revision {
                    revision += 1;
                    keys.clear();
                }
                assert_eq!(line.revision + 1, revision, "{group:?}");
                let Some(key) = line.key.as_ref().map(Key::as_bytes) else {
                    assert_eq!(line.effect, AuditEffect::Beside, "{group:?}");
                    continue;
                };
                assert!(keys.insert(key), "a key changed twice in one revision: {group:?}");
                history_rows.extend(previous.map(|previous| history::row_key(key, previous.revision)));
                history_rows.extend(removed.then(|| history::row_key(key, line.revision)));
            }
            assert_eq!(revision, group.last_revision + 1, "{group:?}");
            next = Some(revision);
        }
        let rows: BTreeSet<_> = self.rows(family::ELECTED).into_iter().map(|(key, _)| key).collect();
        assert_eq!(rows, elected, "elections on the left, what the audit groups say on the right");
        assert_eq!(next.unwrap_or(self.vars.revision + 1), self.vars.revision + 1, "changes without an audit line");
        history_rows
    }

    fn check_buckets(&self) {
        let mut found = BTreeSet::new();
        found.extend(self.rows(family::REQUEST).iter().map(|(key, _)| request::decode_key(key).unwrap().0));
        for (_, row) in self.rows(family::REQUEST) {
            let kept: KeptReply = codec::decode(&row).unwrap();
            let is_bare = kept.reply.outcome.value_bytes() == 0;
            assert!(is_bare && !kept.reply.replayed, "{kept:?}");
        }
        found.extend(self.rows(family::REFUSALS).iter().map(|(key, _)| refusals::decode_key(key).unwrap().0));
        let known: BTreeSet<_> = self.vars.buckets.iter().map(|part| part.bucket).collect();
        assert_eq!(found, known, "buckets with rows on the left, buckets of the digest on the right");
        let oldest = bucket::oldest_live(self.vars.clock);
        assert!(known.iter().all(|bucket| *bucket >= oldest), "{known:?} at clock {}", self.vars.clock);
    }
}

/// One write for each row, in key order, ranges first.
fn assert_ordered(writes: &[Write]) {
    let rows = writes.iter().skip_while(|write| matches!(write, Write::DeleteRange { .. }));
    let keys: Vec<_> = rows
        .map(|write| match write {
            Write::Put { key, .. } | Write::Delete { key } => key,
            Write::DeleteRange { .. } => panic!("a range after a row in {writes:?}"),
        })
        .collect();
    assert!(keys.is_sorted_by(|a, b| a < b), "{writes:?}");
}

/// Applies batches in one call, and in two for each place between them: the answers and rows have to be the same.
pub fn assert_cuts_agree(batches: &[Batch]) {
    let mut whole = Store::default();
    let (replies, changed) = whole.apply(batches).unwrap();
    whole.check();
    for cut in 0..=batches.len() {
        let mut parts = Store::default();
        let mut first = parts.apply(&batches[..cut]).unwrap();
        parts.check();
        let second = parts.apply(&batches[cut..]).unwrap();
        first.0.extend(second.0);
        first.1.extend(second.1);
        assert!(
            first == (replies.clone(), changed.clone()),
            "cut at {cut}: {first:?} instead of {replies:?} {changed:?}"
        );
        assert!(parts == whole, "cut at {cut}: {parts:?} instead of {whole:?}");
    }
}

pub fn batch(clock: u64, commands: &[Command]) -> Batch {
    let commands = commands.iter().map(codec::encode_command).collect();
    Batch { clock, wall: 1_000_000 + clock, commands }
}
