//! Invariants between the rows of sessions, locks, elections and barriers.

use std::collections::{BTreeMap, BTreeSet};

use quorate_machine::codec;
use quorate_machine::keyspace::lock_queue::{self, HolderRow, LockHead, WaiterRow};
use quorate_machine::keyspace::session::{self, AttachedKind, PartyAt, SessionRow};
use quorate_machine::keyspace::task::TaskRow;
use quorate_machine::keyspace::timer::{self, TimerKind};
use quorate_machine::keyspace::{entry, family, gates};
use quorate_machine::types::{BarrierRow, LockMode, LockName, SessionId, TaskState};

use crate::store::Store;

/// Every invariant between the rows of coordination.
pub fn check(store: &Store) {
    let mut timers = BTreeSet::new();
    let attached = check_sessions(store, &mut timers);
    let expected = check_parties(store, &mut timers);
    assert_eq!(attached, expected, "what hangs on sessions on the left, what there is on the right");
    let is_of_task =
        |key: &[u8]| matches!(timer::decode_key(key).unwrap().1, TimerKind::TaskLease | TimerKind::TaskKept);
    let rows = store.rows(family::TIMER).into_iter().map(|(key, _)| key);
    let rows: BTreeSet<_> = rows.filter(|key| !is_of_task(key)).collect();
    let is_rest = |key: &[u8]| {
        let kind = timer::decode_key(key).unwrap().1;
        matches!(kind, TimerKind::Grant | TimerKind::SessionTasks | TimerKind::TasksAhead)
    };
    let for_moments: BTreeSet<_> = rows.iter().filter(|key| !is_rest(key)).cloned().collect();
    assert_eq!(for_moments, timers, "timers on the left, what is to come on the right");
    let first = rows.first().map(|key| timer::decode_key(key).unwrap().0);
    let next = store.vars.next_timer;
    assert!(first.is_none_or(|first| next.is_some_and(|next| next <= first)), "{next:?}, the first timer is {first:?}");
}

/// Whether something that a batch had no room for goes on with the next.
fn goes_on(store: &Store, kind: TimerKind, subject: &[u8]) -> bool {
    let timers = store.rows(family::TIMER);
    timers.iter().any(|(row_key, _)| matches!(timer::decode_key(row_key), Ok((_, k, s)) if k == kind && s == subject))
}

/// Gives what hangs on sessions that live, with where it is.
fn check_sessions(store: &Store, timers: &mut BTreeSet<Vec<u8>>) -> BTreeSet<(Vec<u8>, Vec<u8>)> {
    let attached = store.rows(family::ATTACHED);
    let sessions = store.rows(family::SESSION);
    assert_eq!(sessions.len() as u64, store.vars.sessions);
    let mut counts = BTreeMap::new();
    for (row_key, _) in &attached {
        *counts.entry(session::decode_attached(row_key).unwrap().0).or_insert(0) += 1;
    }
    let mut bytes: BTreeMap<SessionId, u64> = BTreeMap::new();
    for (_, row) in store.rows(family::ENTRY) {
        if let Some(id) = entry::decode(&row).unwrap().meta.session {
            *bytes.entry(id).or_default() += row.len() as u64;
        }
    }
    for (row_key, row) in sessions {
        let (id, row) = (session::decode_key(&row_key).unwrap(), codec::decode::<SessionRow>(&row).unwrap());
        assert!(row.armed_at <= row.expires_at, "{row:?}");
        assert_eq!(row.attached, counts.remove(&id).unwrap_or(0), "{row:?}");
        let sum = bytes.remove(&id).unwrap_or(0);
        assert_eq!(row.bytes, sum, "what the entries have on the right: {row:?}");
        timers.insert(timer::row_key(row.armed_at, TimerKind::Session, &id.0.to_be_bytes()));
    }
    for (row_key, _) in &attached {
        let (id, kind, _) = session::decode_attached(row_key).unwrap();
        let is_ending = || goes_on(store, TimerKind::SessionTasks, &id.0.to_be_bytes());
        let is_of_none = counts.contains_key(&id);
        assert!(!is_of_none || (kind == AttachedKind::Task && is_ending()), "{kind:?} hangs on {id}, which is none");
    }
    attached.into_iter().collect()
}

/// Gives what should hang on sessions.
fn check_parties(store: &Store, timers: &mut BTreeSet<Vec<u8>>) -> BTreeSet<(Vec<u8>, Vec<u8>)> {
    let mut expected = BTreeSet::new();
    for (row_key, row) in store.rows(family::ENTRY) {
        let key = entry::decode_key(&row_key).unwrap();
        if let Some(id) = entry::decode(&row).unwrap().meta.session {
            expected.insert((session::attached_key(id, AttachedKind::Entry, key), Vec::new()));
        }
    }
    let mut parties = |lock: &LockName, session, at: PartyAt| {
        let row_key = session::attached_key(session, AttachedKind::Lock, &lock.to_bytes());
        assert!(expected.insert((row_key, codec::encode(&at))), "session {session} twice in {lock:?}");
    };
    let mut holders: BTreeMap<LockName, Vec<HolderRow>> = BTreeMap::new();
    for (row_key, row) in store.rows(family::HOLDER) {
        let (lock, token) = lock_queue::decode_holder(&row_key).unwrap();
        let row: HolderRow = codec::decode(&row).unwrap();
        assert!(token <= store.vars.revision);
        parties(&lock, row.session, PartyAt::Holding(token));
        holders.entry(lock).or_default().push(row);
    }
    let mut waiters: BTreeMap<LockName, Vec<WaiterRow>> = BTreeMap::new();
    for (row_key, row) in store.rows(family::WAITER) {
        let (lock, place) = lock_queue::decode_waiter(&row_key).unwrap();
        let row: WaiterRow = codec::decode(&row).unwrap();
        parties(&lock, row.party.session, PartyAt::Waiting(place));
        timers.insert(timer::row_key(row.until, TimerKind::Place, &lock_queue::place_subject(&lock, place)));
        waiters.entry(lock).or_default().push(row);
    }
    let waiting = waiters.values().flatten().map(|row| row.asked);
    let granted = holders.values().flatten().filter_map(|row| row.unheard);
    let mut questions: Vec<u64> = waiting.chain(granted).collect();
    questions.sort_unstable();
    assert!(
        questions.windows(2).all(|pair| pair[0] != pair[1]),
        "two questions of one number: {waiters:?} {holders:?}"
    );
    for (row_key, row) in store.rows(family::LOCK_HEAD) {
        let (lock, head) = (lock_queue::decode_head_key(&row_key).unwrap(), codec::decode::<LockHead>(&row).unwrap());
        let (held, waiting) = (holders.remove(&lock).unwrap_or_default(), waiters.remove(&lock).unwrap_or_default());
        assert!(!head.is_idle(), "{lock:?} is idle and there: {head:?}");
        assert_eq!((head.holders as usize, head.waiters as usize), (held.len(), waiting.len()), "{lock:?}: {head:?}");
        assert!(held.iter().all(|holder| holder.mode == head.mode), "{head:?}: {held:?}");
        assert!(head.mode == LockMode::Shared || head.holders <= head.slots, "{lock:?}: {head:?}");
        assert!(
            waiting.first().is_none_or(|first| !head.admits(first.party.mode))
                || goes_on(store, TimerKind::Grant, &lock.to_bytes()),
            "{lock:?} is kept from {waiting:?}"
        );
        let places = store.rows(family::WAITER).into_iter().map(|(key, _)| lock_queue::decode_waiter(&key).unwrap());
        let first = places.filter(|(of, _)| *of == lock).map(|(_, place)| place).min();
        assert!(
            first.is_none_or(|first| first >= head.first_place),
            "{lock:?}: {head:?}, the first waits at {first:?}"
        );
        if let Some(at) = head.not_before {
            timers.insert(timer::row_key(at, TimerKind::LockDelay, &lock.to_bytes()));
        }
    }
    assert!(holders.is_empty() && waiters.is_empty(), "parties of locks without a head: {holders:?} {waiters:?}");
    for (row_key, row) in store.rows(family::TASK) {
        let row: TaskRow = codec::decode(&row).unwrap();
        if let TaskState::Claimed { session: Some(id), .. } = row.head.state {
            expected.insert((session::attached_key(id, AttachedKind::Task, &row_key[1..]), Vec::new()));
        }
    }
    check_barriers(store, &mut expected);
    expected
}

fn check_barriers(store: &Store, expected: &mut BTreeSet<(Vec<u8>, Vec<u8>)>) {
    let mut entered: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for (row_key, _) in store.rows(family::ATTACHED) {
        let (_, kind, subject) = session::decode_attached(&row_key).unwrap();
        if kind == AttachedKind::Barrier {
            *entered.entry(subject.to_vec()).or_default() += 1;
            expected.insert((row_key, Vec::new()));
        }
    }
    for (row_key, row) in store.rows(family::BARRIER) {
        let row: BarrierRow = codec::decode(&row).unwrap();
        let name = gates::decode_barrier(&row_key).unwrap();
        assert_eq!(entered.remove(name.as_str().as_bytes()), Some(row.entered), "{name}: {row:?}");
        assert!(row.entered <= row.parties && (row.opened.is_some() || row.entered < row.parties), "{row:?}");
    }
    assert!(entered.is_empty(), "parties of barriers that are none: {entered:?}");
}
