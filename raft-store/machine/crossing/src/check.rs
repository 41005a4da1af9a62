//! Every invariant of the key space, recomputed from the rows alone.
//!
//! Owns what must hold of entries with their times, indexes, history, audit and the request table; what hangs together in
//! coordination, tasks and access is in the modules below. A violation is a panic that says what differs. Never decides what a
//! command should have done.

mod access;
mod coordination;
pub mod quotas;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};

use quorate_machine::document::Json;
use quorate_machine::keyspace::audit::AuditEffect;
use quorate_machine::keyspace::bucket_use::{self, BucketUse, OwnerUse, RefusedUse, Whose};
use quorate_machine::keyspace::digest;
use quorate_machine::keyspace::request::KeptReply;
use quorate_machine::keyspace::{
    audit, bucket, collection, deadline, entry, family, history, index, lock, lock_queue, refusals, relocked, request,
};
use quorate_machine::machine::{Sizes, View};
use quorate_machine::types::{CollectionRow, IndexStage};
use quorate_machine::types::{ContentKind, Key, Waker};
use quorate_machine::{codec, limits};

use crate::store::Store;

impl Store {
    /// Every invariant of the key space, from the rows alone.
    pub fn check(&self) {
        let store = self;
        let vars = &store.vars;
        assert_eq!(vars.digest(), digest::of_rows(&store.view.0), "the incremental digest differs from the real one");
        assert_eq!(vars.sizes, Sizes::of_rows(&store.view.0), "the sizes kept differ from the real ones");
        assert!(1 <= vars.oldest_revision && vars.oldest_revision <= vars.revision, "{vars:?}");
        check_deadlines(store);
        let superseded = check_audit(store);
        let history: BTreeSet<_> = store.rows(family::HISTORY).into_iter().map(|(key, _)| key).collect();
        assert_eq!(history, superseded, "history rows on the left, what the audit groups say on the right");
        check_buckets(store);
        check_indexes(store);
        coordination::check(store);
        tasks::check(store);
        access::check(store);
        quotas::check(store);
    }
}

/// Checks that each index holds what its stage says, and nothing is left of others but what is to be cleared.
fn check_indexes(store: &Store) {
    let collections = store.rows(family::COLLECTION);
    assert_eq!(collections.len() as u64, store.vars.collections);
    let to_clear: BTreeSet<u64> =
        store.rows(family::DROPPED_INDEX).iter().map(|(key, _)| index::decode_dropped(key).unwrap()).collect();
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
            for (row_key, row) in store.view.scan(&entry::row_key(&start), &entry::row_key(&end), usize::MAX).unwrap() {
                let key = entry::decode_key(&row_key).unwrap();
                if !state.holds(key) {
                    continue;
                }
                let row = entry::decode(&row).unwrap();
                let document = Json::parse_stored(row.data).ok().filter(|_| row.kind == ContentKind::Json);
                let values = rule.key_of(document.as_ref()).unwrap();
                expected.insert(index::row_key(state.id, &values, key));
                let is_bound = rule.is_bound(document.as_ref()) && !row.is_expired_at(store.vars.clock);
                assert!(!is_bound || bound.insert(values), "two entries with the same values in {rule:?}");
            }
        }
    }
    let rows = store.rows(family::INDEX).into_iter().map(|(key, _)| key);
    let held: BTreeSet<_> =
        rows.filter(|row_key| !to_clear.contains(&u64::from_be_bytes(row_key[1..9].try_into().unwrap()))).collect();
    assert_eq!(held, expected, "index rows on the left, what entries ask for on the right");
}

fn check_deadlines(store: &Store) {
    let decoded = store.rows(family::ENTRY);
    let expected: BTreeSet<_> = decoded
        .iter()
        .filter_map(|(row_key, row)| {
            let row = entry::decode(row).unwrap();
            assert!(row.meta.mod_revision <= store.vars.revision);
            row.meta.expires_at.map(|at| deadline::row_key(at, entry::decode_key(row_key).unwrap()))
        })
        .collect();
    let deadlines: BTreeSet<_> = store.rows(family::DEADLINE).into_iter().map(|(key, _)| key).collect();
    assert_eq!(deadlines, expected, "deadline rows on the left, deadlines of entries on the right");
    let locked = decoded.iter().filter_map(|(row_key, row)| {
        let until = entry::decode(row).unwrap().meta.locked_until?;
        Some((until, lock::row_key(until, entry::decode_key(row_key).unwrap())))
    });
    // An entry keeps when its lock ended by itself, and the row goes.
    let (ended, expected): (Vec<_>, Vec<_>) = locked.partition(|(until, _)| *until <= store.vars.clock);
    let mut locks: BTreeSet<_> = store.rows(family::LOCK).into_iter().map(|(key, _)| key).collect();
    locks.retain(|row_key| !ended.iter().any(|(_, ended)| ended == row_key));
    let expected: BTreeSet<_> = expected.into_iter().map(|(_, row_key)| row_key).collect();
    assert_eq!(locks, expected, "lock rows on the left, locks of entries on the right");
}

/// Checks that the groups carry each revision once, in order; gives the history rows that they account for.
fn check_audit(store: &Store) -> BTreeSet<Vec<u8>> {
    let mut history_rows = BTreeSet::new();
    let (mut elected, mut locks) = (BTreeSet::new(), BTreeSet::new());
    let mut next = None;
    for (row_key, row) in store.rows(family::AUDIT) {
        let group = audit::decode(&row).unwrap();
        assert_eq!(audit::decode_key(&row_key).unwrap(), (group.last_revision, group.index));
        assert!(group.last_revision > store.vars.oldest_revision);
        let mut revision = group.first_revision;
        let mut keys = BTreeSet::new();
        assert_eq!(next.unwrap_or(revision), revision, "a gap between audit groups");
        for line in &group.lines {
            let (previous, removed) = match line.effect {
                AuditEffect::Changed { previous, removed } => (previous, removed),
                AuditEffect::Relocked { .. } => {
                    locks.insert(relocked::row_key(line.key.as_ref().unwrap().as_bytes(), line.revision));
                    (None, false)
                }
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
    let rows: BTreeSet<_> = store.rows(family::RELOCKED).into_iter().map(|(key, _)| key).collect();
    assert_eq!(rows, locks, "locks of before on the left, what the audit groups say on the right");
    let rows: BTreeSet<_> = store.rows(family::ELECTED).into_iter().map(|(key, _)| key).collect();
    assert_eq!(rows, elected, "elections on the left, what the audit groups say on the right");
    assert_eq!(next.unwrap_or(store.vars.revision + 1), store.vars.revision + 1, "changes without an audit line");
    history_rows
}

/// Checks how much buckets are said to hold.
fn check_bucket_uses(store: &Store) {
    let mut held: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut owned: BTreeMap<(u64, String), OwnerUse> = BTreeMap::new();
    for (row_key, row) in store.rows(family::REQUEST) {
        let (bucket, owner, _) = request::decode_key(&row_key).unwrap();
        let bytes = (row_key.len() + row.len()) as u64;
        held.entry(bucket).or_default().0 += bytes;
        if !owner.is_empty() {
            owned.entry((bucket, owner.to_owned())).or_default().requests += bytes;
        }
    }
    let mut refused: BTreeMap<(u64, String), RefusedUse> = BTreeMap::new();
    for (row_key, row) in store.rows(family::REFUSALS) {
        let (bucket, _) = refusals::decode_key(&row_key).unwrap();
        let before = &mut held.entry(bucket).or_default().1;
        let is_shared = *before >= limits::REFUSALS_SHARED_FROM;
        *before += (row_key.len() + row.len()) as u64;
        let lines = if is_shared { audit::decode(&row).unwrap().lines } else { Vec::new() };
        for line in lines.into_iter().filter(|line| !line.principal.is_empty()) {
            let bytes = audit::line_bytes(&line) as u64;
            refused.entry((bucket, line.principal)).or_default().refusals += bytes;
        }
    }
    let mut said_owned: BTreeMap<(u64, String), OwnerUse> = BTreeMap::new();
    let mut said_refused: BTreeMap<(u64, String), RefusedUse> = BTreeMap::new();
    for (row_key, row) in store.rows(family::BUCKET_USE) {
        let (bucket, whose) = bucket_use::decode_key(&row_key).unwrap();
        match whose {
            Whose::Kept(owner) => {
                said_owned.insert((bucket, owner.to_owned()), codec::decode(&row).unwrap());
            }
            Whose::Refused(owner) => {
                said_refused.insert((bucket, owner.to_owned()), codec::decode(&row).unwrap());
            }
            Whose::All => {
                let said: BucketUse = codec::decode(&row).unwrap();
                let (requests, refusals) = held.remove(&bucket).unwrap_or_default();
                assert_eq!((said.requests, said.refusals), (requests, refusals), "said on the left, held on the right");
            }
        }
    }
    assert!(held.is_empty(), "no bucket is said to hold {held:?}");
    assert_eq!(said_owned, owned, "what principals are said to have on the left, what they have on the right");
    assert_eq!(said_refused, refused, "what was refused to principals: said on the left, recorded on the right");
}

fn check_buckets(store: &Store) {
    let mut found = BTreeSet::new();
    for (row_key, row) in store.rows(family::REQUEST) {
        let (bucket, ..) = request::decode_key(&row_key).unwrap();
        found.insert(bucket);
        let kept: KeptReply = codec::decode(&row).unwrap();
        let is_bare = kept.reply.outcome.value_bytes() == 0;
        assert!(is_bare && !kept.reply.replayed, "{kept:?}");
    }
    found.extend(store.rows(family::REFUSALS).iter().map(|(key, _)| refusals::decode_key(key).unwrap().0));
    found.extend(store.rows(family::BUCKET_USE).iter().map(|(key, _)| bucket_use::decode_key(key).unwrap().0));
    check_bucket_uses(store);
    let known: BTreeSet<_> = store.vars.buckets.iter().map(|part| part.bucket).collect();
    assert_eq!(found, known, "buckets with rows on the left, buckets of the digest on the right");
    let oldest = bucket::oldest_live(store.vars.clock);
    assert!(known.iter().all(|bucket| *bucket >= oldest), "{known:?} at clock {}", store.vars.clock);
}
