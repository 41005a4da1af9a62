//! Quotas: that bytes are those that are stored, that what was there before is counted first, and bounds. What counts and is refused is in
//! the golden scripts `quotas` and `quotas_of_principals`.

use crate::machine_support::{Store, batch, bounds};
use quorate_machine::codec;
use quorate_machine::keyspace::quota;
use quorate_machine::limits;
use quorate_machine::machine::View;
use quorate_machine::types::*;

/// What came of a command.
fn apply(store: &mut Store, action: Action) -> Outcome {
    let (mut replies, _) = store.apply(&[batch(1, &[Command::unnamed(action)])]).unwrap();
    store.check();
    replies.remove(0).remove(0).outcome
}

/// A write of so many bytes that nothing forbids.
fn put(key: &str, bytes: usize) -> Action {
    bounds::put(key, vec![b'v'; bytes], None).action
}

fn prefix(text: &str) -> QuotaSubject {
    QuotaSubject::Prefix(text.into())
}

fn set(store: &mut Store, subject: QuotaSubject, bounds: QuotaBounds) -> Outcome {
    apply(store, Action::Quota(QuotaOp::Set { subject, bounds }))
}

/// Counts until nothing is left; gives how many steps that took.
fn count(store: &mut Store) -> usize {
    let mut steps = 1;
    while let Outcome::Maintained { more: true, .. } = apply(store, Action::Maintain(Maintenance::Count)) {
        steps += 1;
        assert!(steps < 1_000, "it does not end");
    }
    steps
}

fn used(store: &Store, text: &str) -> PrefixUse {
    let row = store.view.get(&quota::use_key(&prefix(text))).unwrap().expect("it is counted");
    codec::decode(&row).unwrap()
}

fn is_beyond(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Rejected(Rejection::BeyondQuota(_)))
}

const ENTRIES: QuotaBounds = QuotaBounds { entries: Some(3), sessions: None, locks: None, bytes: None, tasks: None };

#[test]
fn bytes_are_those_that_are_stored() {
    let mut store = Store::default();
    set(&mut store, prefix("t/"), QuotaBounds { bytes: Some(300), ..QuotaBounds::default() });
    count(&mut store);
    apply(&mut store, put("t/a", 100));
    let one = used(&store, "t/").bytes;
    assert!((103..160).contains(&one), "{one}");
    assert!(is_beyond(&apply(&mut store, put("t/b", 200))));
    apply(&mut store, put("t/b", 10));
    assert!(is_beyond(&apply(&mut store, put("t/b", 200))), "a larger value is refused like a new one");
    apply(&mut store, put("t/a", 1));
    assert!(matches!(apply(&mut store, put("t/b", 200)), Outcome::Written(_)));
}

#[test]
fn what_was_there_before_is_counted_in_steps_and_nothing_is_refused_until_it_is() {
    let mut store = Store::default();
    for nth in 0..2_500 {
        let action = put(&format!("t/{nth:05}"), 4);
        store.apply(&[batch(1, &[Command::unnamed(action)])]).unwrap();
    }
    set(&mut store, prefix("t/"), ENTRIES);
    assert!(used(&store, "t/").from.is_some());
    assert!(matches!(apply(&mut store, put("t/a", 4)), Outcome::Written(_)), "it is not counted yet");
    apply(&mut store, Action::Maintain(Maintenance::Count));
    // Before the place that was reached, and behind it.
    apply(&mut store, Action::Write(WriteOp::removal(Key::new("t/00001").unwrap(), false)));
    apply(&mut store, Action::Write(WriteOp::removal(Key::new("t/02400").unwrap(), false)));
    apply(&mut store, put("t/00000a", 4));
    assert!(count(&mut store) >= 3, "it was counted at once");
    assert_eq!((used(&store, "t/").entries, used(&store, "t/").from), (2_500, None));
    assert!(is_beyond(&apply(&mut store, put("t/b", 4))));
    // In a new epoch the rows have other sizes: it is counted anew.
    store.begin_epoch();
    assert!(used(&store, "t/").from.is_some());
    count(&mut store);
    assert_eq!(used(&store, "t/").entries, 2_500);
}

#[test]
fn quotas_have_bounds_themselves() {
    let mut store = Store::default();
    let deep = |depth: usize| prefix(&"a".repeat(depth));
    for depth in 1..=limits::NESTED_QUOTAS_MAX {
        assert!(matches!(set(&mut store, deep(depth), ENTRIES), Outcome::Quota(Some(_))), "{depth}");
    }
    let too_many = |outcome: Outcome, what: Bounded| matches!(outcome, Outcome::Rejected(Rejection::TooMany { what: of, .. }) if of == what);
    let deepest = limits::NESTED_QUOTAS_MAX + 1;
    assert!(too_many(set(&mut store, deep(deepest), ENTRIES), Bounded::NestedQuotas));
    // Within the others it would be as bad as below them.
    apply(&mut store, Action::Quota(QuotaOp::Remove(deep(3))));
    assert!(matches!(set(&mut store, deep(deepest), ENTRIES), Outcome::Quota(Some(_))));
    assert!(too_many(set(&mut store, deep(3), ENTRIES), Bounded::NestedQuotas));
    for (subject, bounds) in [
        (prefix("b"), QuotaBounds { sessions: Some(1), ..QuotaBounds::default() }),
        (QuotaSubject::Default, ENTRIES),
        (prefix(""), ENTRIES),
        (QuotaSubject::Principal(String::new()), QuotaBounds::default()),
    ] {
        let refused = set(&mut store, subject.clone(), bounds);
        assert!(matches!(refused, Outcome::Rejected(Rejection::Unsupported(_))), "{subject}: {refused:?}");
    }
    assert_eq!(apply(&mut store, Action::Quota(QuotaOp::Remove(prefix("b")))), Outcome::Rejected(Rejection::NotFound));
}
