//! The state of a node in memory: it comes to what any other state comes to by the same log, and answers for itself.

use std::collections::BTreeSet;

use crate::machine_support::{Store, batch};
use quorate_machine::keyspace::digest;
use quorate_machine::machine::Vars;
use quorate_machine::memory::MemoryState;
use quorate_machine::query::{ListQuery, ListRead, PastRead, Queries};
use quorate_machine::types::*;

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

fn write(name: &str, expect: Expect, change: Change) -> Command {
    Command::unnamed(Action::Write(WriteOp { expect, change, ..WriteOp::removal(key(name), false) }))
}

fn put(name: &str, expect: Expect, text: &str) -> Command {
    write(name, expect, Change::Put(Value { kind: ContentKind::Bytes, data: text.into() }))
}

fn everything() -> ListQuery {
    let (limit, bytes_max) = (usize::MAX, usize::MAX);
    ListQuery { start: Vec::new(), end: None, revision: None, limit, bytes_max, keys_only: false, reverse: false }
}

#[test]
fn a_log_comes_to_the_same_in_memory_as_anywhere() {
    let log = [
        batch(1, &[put("a", Expect::ABSENT, "1"), put("a", Expect::ABSENT, "2"), put("b", Expect::ANY, "1")]),
        batch(2, &[put("a", Expect::cas(2), "2"), put("a", Expect::cas(2), "3")]),
        batch(3, &[write("b", Expect::ANY, Change::Lock(5)), write("b", Expect::ANY, Change::Remove)]),
        batch(9, &[]),
    ];
    let (mut state, mut store) = (MemoryState::default(), Store::default());
    for entry in &log {
        let before = state.position().revision;
        let step = state.apply(entry).unwrap();
        let (replies, changed) = store.apply(std::slice::from_ref(entry)).unwrap();
        let changes: Vec<_> = step.changed.iter().map(|change| (change.key.clone(), change.revision)).collect();
        assert_eq!((vec![step.replies], changes, step.before), (replies, changed, before));
        assert_eq!(step.contained, []);
        assert_eq!((state.rows(), state.vars()), (&store.view, &store.vars));
    }
    assert_eq!(state.position().index, log.len() as u64);
    assert_eq!(state.vars().digest(), digest::of_rows(state.rows().0.iter()));
}

#[test]
fn questions_are_answered_from_the_state_as_it_is() {
    let mut state = MemoryState::new(Vars { clock: 1_000, wall: 7_000, ..Vars::default() }, 100);
    assert_eq!((state.position().index, state.position().clock, state.moment().vars.wall), (100, 1_000, 7_000));
    let entry = Batch { wall: 7_000, ..batch(1_000, &[put("a", Expect::ANY, "1"), put("b", Expect::ANY, "1")]) };
    state.apply(&entry).unwrap();
    state.apply(&Batch { wall: 7_000, ..batch(1_000, &[put("a", Expect::ANY, "2")]) }).unwrap();
    let read = state.get(&key("a")).unwrap();
    let now = read.entry.expect("it was written");
    assert_eq!((now.meta.cas, now.meta.version, &*now.value.data, read.at), (4, 2, &b"2"[..], state.position()));
    assert_eq!((read.at.index, read.at.revision), (102, 4));
    let PastRead::Found(past) = state.get_at(&key("a"), 3).unwrap() else { panic!("it is kept") };
    assert_eq!(past.entry.map(|entry| entry.value.data).as_deref(), Some(&b"1"[..]));
    let ListRead::Page(page) = state.list(&everything()).unwrap() else { panic!("it is the present") };
    let keys: BTreeSet<_> = page.entries.into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, BTreeSet::from([key("a"), key("b")]));
    assert_eq!(state.count(&everything()).unwrap(), (state.position(), 2));
    // A rehearsal leaves nothing behind.
    let before = state.clone();
    let reply = state.moment().dry_run(&put("a", Expect::ABSENT, "3"), 7_000).unwrap();
    assert!(matches!(reply.outcome, Outcome::Rejected(Rejection::AlreadyExists { .. })), "{reply:?}");
    // One that would write names no revision that is yet to come.
    let reply = state.moment().dry_run(&put("a", Expect::ANY, "3"), 7_000).unwrap();
    assert!(matches!(reply.outcome, Outcome::Written(_)), "{reply:?}");
    assert_eq!((reply.index, reply.revision), (before.position().index, before.position().revision));
    assert_eq!(state, before);
}
