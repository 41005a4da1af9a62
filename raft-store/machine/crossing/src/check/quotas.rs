//! What is counted for quotas, counted anew from the rows; and that nobody gets more than they may.

use std::collections::{BTreeMap, BTreeSet};

use quorate_machine::codec;
use quorate_machine::keyspace::session::{self, AttachedKind, SessionRow};
use quorate_machine::keyspace::task::{self, TaskRow};
use quorate_machine::keyspace::{entry, family};
use quorate_machine::types::{
    Action, BeyondQuota, Counted, Outcome, PrefixUse, PrincipalUse, QuotaBounds, QuotaState, QuotaSubject, Rejection,
    SessionId, TaskState,
};

use crate::picture::Picture;
use crate::store::Store;

/// Every invariant between the rows of quotas and what they count.
pub fn check(store: &Store) {
    let picture = Picture::of(store);
    let Picture { quotas, prefix_uses, principal_uses, quota_state, .. } = &picture;
    let prefixes: BTreeSet<_> = quotas.keys().filter_map(prefix_of).collect();
    assert!(prefixes.iter().eq(prefix_uses.keys()), "what is counted on the left: {prefix_uses:?}, quotas {quotas:?}");
    for (subject, row) in quotas {
        let Some(prefix) = prefix_of(subject) else {
            assert_eq!(row.parent, None, "{subject}");
            continue;
        };
        let around = prefixes.iter().filter(|other| **other != prefix && prefix.starts_with(other));
        assert_eq!(row.parent.as_ref(), around.max_by_key(|other| other.len()), "around {subject}");
    }
    let of = |is_one: &dyn Fn(&QuotaSubject) -> bool| quotas.keys().filter(|subject| is_one(subject)).count() as u32;
    let expected = QuotaState {
        prefixes: of(&|subject| prefix_of(subject).is_some()),
        principals: of(&|subject| matches!(subject, QuotaSubject::Principal(_))),
        counting: prefix_uses.values().filter(|used| used.from.is_some()).count() as u32,
    };
    assert_eq!(*quota_state, expected, "what is said of quotas on the left, what there is on the right");
    for (prefix, used) in prefix_uses {
        assert_eq!(*used, recount(store, prefix, used), "counted for {} on the left", prefix.escape_ascii());
    }
    assert_eq!(
        *principal_uses,
        principals(store),
        "what is counted for principals on the left, what they have on the right"
    );
}

fn prefix_of(subject: &QuotaSubject) -> Option<Vec<u8>> {
    match subject {
        QuotaSubject::Prefix(prefix) => Some(prefix.clone()),
        QuotaSubject::Default | QuotaSubject::Principal(_) => None,
    }
}

/// What a prefix has, of the rows before the place up to which it is counted.
fn recount(store: &Store, prefix: &[u8], used: &PrefixUse) -> PrefixUse {
    let mut recounted = PrefixUse { from: used.from.clone(), ..PrefixUse::default() };
    let is_counted = |row_key: &Vec<u8>| used.from.as_ref().is_none_or(|from| row_key < from);
    for (row_key, row) in store.rows(family::ENTRY).into_iter().filter(|(row_key, _)| is_counted(row_key)) {
        let key = entry::decode_key(&row_key).unwrap();
        if key.starts_with(prefix) {
            recounted.entries += 1;
            recounted.bytes += (key.len() + row.len()) as u64;
        }
    }
    for (row_key, row) in store.rows(family::TASK).into_iter().filter(|(row_key, _)| is_counted(row_key)) {
        let (queue, id) = task::decode_key(&row_key).unwrap();
        if queue.as_str().as_bytes().starts_with(prefix) {
            let task: TaskRow = codec::decode(&row).unwrap();
            recounted.tasks += u64::from(!matches!(task.head.state, TaskState::Done { .. }));
            recounted.bytes += (id.as_str().len() + row.len()) as u64;
        }
    }
    recounted
}

/// What all principals have.
fn principals(store: &Store) -> BTreeMap<String, PrincipalUse> {
    let mut of_sessions: BTreeMap<SessionId, u64> = BTreeMap::new();
    for (row_key, _) in store.rows(family::ATTACHED) {
        let (id, kind, _) = session::decode_attached(&row_key).unwrap();
        *of_sessions.entry(id).or_default() += u64::from(kind == AttachedKind::Lock);
    }
    let mut recounted: BTreeMap<String, PrincipalUse> = BTreeMap::new();
    for (row_key, row) in store.rows(family::SESSION) {
        let (id, row) = (session::decode_key(&row_key).unwrap(), codec::decode::<SessionRow>(&row).unwrap());
        if !row.principal.is_empty() {
            let used = recounted.entry(row.principal).or_default();
            used.sessions += 1;
            used.locks += of_sessions.get(&id).copied().unwrap_or(0);
        }
    }
    recounted
}

/// Says what is wrong with what a command came to, by the quotas as they were.
pub fn judge(before: &Picture, action: &Action, outcome: &Outcome, after: &Picture) {
    if let Outcome::Rejected(Rejection::BeyondQuota(beyond)) = outcome {
        let BeyondQuota { subject, is_own, what, bound, used } = &**beyond;
        let bounds = before.bounds_of(subject).unwrap_or_else(|| panic!("no quota of {subject} holds"));
        assert_eq!(bounds.of(*what), Some(*bound), "{beyond:?}");
        assert_eq!(before.used_of(subject, *what), *used, "{beyond:?}");
        assert_eq!(before.quotas.contains_key(subject), *is_own, "{beyond:?}");
    }
    let subjects = before.prefix_uses.keys().cloned().map(QuotaSubject::Prefix);
    let principals = after.principal_uses.keys().cloned().map(QuotaSubject::Principal);
    for subject in subjects.chain(principals) {
        let Some(bounds) = before.bounds_of(&subject) else { continue };
        for what in [Counted::Sessions, Counted::Locks, Counted::Entries, Counted::Tasks] {
            is_within(before, after, &subject, &bounds, what);
        }
        // A lock on an entry, and what a task has beside its payload, are counted and never refused.
        if matches!(action, Action::Write(op) if !op.change.is_of_lock()) {
            is_within(before, after, &subject, &bounds, Counted::Bytes);
        }
    }
}

fn is_within(before: &Picture, after: &Picture, subject: &QuotaSubject, bounds: &QuotaBounds, what: Counted) {
    let (was, is) = (before.used_of(subject, what), after.used_of(subject, what));
    let is_beyond = is > was && bounds.of(what).is_some_and(|bound| is > bound);
    assert!(!is_beyond, "{subject} has {is} {what:?} and had {was}: {bounds:?}");
}

/// Whether a quota refused something of what was asked: the model knows none.
pub fn refused(outcome: &Outcome) -> bool {
    use quorate_machine::types::ItemOutcome;
    let is_beyond = |why: &Rejection| matches!(why, Rejection::BeyondQuota(_));
    match outcome {
        Outcome::Rejected(why) => is_beyond(why),
        Outcome::TxnRejected(rejected) => is_beyond(&rejected.why),
        Outcome::Bulk(items) => {
            items.iter().any(|item| matches!(&item.outcome, ItemOutcome::Rejected(why) if is_beyond(why)))
        }
        _ => false,
    }
}
