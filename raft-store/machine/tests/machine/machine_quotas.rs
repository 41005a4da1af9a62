//! Quotas: what counts, what is refused, and that what was there before is counted first.

use crate::machine_support::{Store, batch, bounds};
use quorate_machine::codec;
use quorate_machine::keyspace::quota;
use quorate_machine::limits;
use quorate_machine::machine::View;
use quorate_machine::types::*;

/// What came of a command.
fn apply(store: &mut Store, action: Action) -> Outcome {
    apply_as(store, "", action)
}

fn apply_as(store: &mut Store, principal: &str, action: Action) -> Outcome {
    let command = Command { principal: principal.into(), ..Command::unnamed(action) };
    let (mut replies, _) = store.apply(&[batch(1, &[command])]).unwrap();
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

fn beyond(outcome: &Outcome) -> Option<(QuotaSubject, Counted, u64, u64)> {
    match outcome {
        Outcome::Rejected(Rejection::BeyondQuota(why)) => Some((why.subject.clone(), why.what, why.bound, why.used)),
        _ => None,
    }
}

const ENTRIES: QuotaBounds = QuotaBounds { entries: Some(3), sessions: None, locks: None, bytes: None, tasks: None };

#[test]
fn each_prefix_around_a_key_counts_it_and_refuses_what_is_beyond() {
    let mut store = Store::default();
    set(&mut store, prefix("t/a/"), ENTRIES);
    set(&mut store, prefix("t/"), QuotaBounds { entries: Some(4), ..ENTRIES });
    set(&mut store, prefix("u"), ENTRIES);
    count(&mut store);
    for key in ["t/a/1", "t/a/2", "t/b", "t"] {
        assert!(matches!(apply(&mut store, put(key, 10)), Outcome::Written(_)), "{key}");
    }
    assert_eq!((used(&store, "t/a/").entries, used(&store, "t/").entries, used(&store, "u").entries), (2, 3, 0));
    apply(&mut store, put("t/a/3", 10));
    assert_eq!(beyond(&apply(&mut store, put("t/c", 10))), Some((prefix("t/"), Counted::Entries, 4, 4)));
    assert_eq!(beyond(&apply(&mut store, put("t/a/4", 10))), Some((prefix("t/a/"), Counted::Entries, 3, 3)));
    // What is there may change, and go.
    assert!(matches!(apply(&mut store, put("t/a/3", 500)), Outcome::Written(_)));
    apply(&mut store, Action::Write(WriteOp::removal(Key::new("t/b").unwrap(), false)));
    assert!(matches!(apply(&mut store, put("t/c", 10)), Outcome::Written(_)));
    // The one around another goes; that one still holds.
    apply(&mut store, Action::Quota(QuotaOp::Remove(prefix("t/"))));
    assert!(matches!(apply(&mut store, put("t/d", 10)), Outcome::Written(_)));
    assert!(beyond(&apply(&mut store, put("t/a/4", 10))).is_some());
}

#[test]
fn bytes_are_those_that_are_stored() {
    let mut store = Store::default();
    set(&mut store, prefix("t/"), QuotaBounds { bytes: Some(300), ..QuotaBounds::default() });
    count(&mut store);
    apply(&mut store, put("t/a", 100));
    let one = used(&store, "t/").bytes;
    assert!((103..160).contains(&one), "{one}");
    assert!(beyond(&apply(&mut store, put("t/b", 200))).is_some());
    apply(&mut store, put("t/b", 10));
    assert!(beyond(&apply(&mut store, put("t/b", 200))).is_some(), "a larger value is refused like a new one");
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
    assert!(beyond(&apply(&mut store, put("t/b", 4))).is_some());
    // In a new epoch the rows have other sizes: it is counted anew.
    store.begin_epoch();
    assert!(used(&store, "t/").from.is_some());
    count(&mut store);
    assert_eq!(used(&store, "t/").entries, 2_500);
}

fn begin(store: &mut Store, principal: &str) -> Result<SessionId, Box<Outcome>> {
    let create = SessionOp::Create { ttl_ms: 1_000_000, owner: String::new(), labels: Vec::new() };
    match apply_as(store, principal, Action::Session(create)) {
        Outcome::Session(SessionReply::Created { id, .. }) => Ok(id),
        other => Err(Box::new(other)),
    }
}

fn lock(store: &mut Store, name: &str, session: SessionId) -> Outcome {
    let lock = LockName { space: LockSpace::Lock, name: Name::new(name).unwrap() };
    let (mode, slots, wait_ms, delay_ms, value) = (LockMode::Exclusive, None, 60_000, 0, None);
    apply(store, Action::Lock(LockOp::Acquire(Acquire { lock, session, mode, slots, wait_ms, delay_ms, value })))
}

#[test]
fn a_principal_has_its_own_quota_or_that_of_all_and_nobody_in_particular_has_none() {
    let mut store = Store::default();
    let two = QuotaBounds { sessions: Some(2), locks: Some(2), ..QuotaBounds::default() };
    set(&mut store, QuotaSubject::Default, two);
    let ann = begin(&mut store, "ann").unwrap();
    begin(&mut store, "ann").unwrap();
    let refused = begin(&mut store, "ann").unwrap_err();
    let of_ann = QuotaSubject::Principal("ann".into());
    assert_eq!(beyond(&refused), Some((of_ann.clone(), Counted::Sessions, 2, 2)));
    for _ in 0..3 {
        begin(&mut store, "").unwrap();
    }
    begin(&mut store, "bob").unwrap();
    // Places in queues count as well, and those of a session that ends are given back with it.
    let bob = begin(&mut store, "bob").unwrap();
    assert!(matches!(lock(&mut store, "l", bob), Outcome::Lock(LockReply::Held { .. })));
    assert!(matches!(lock(&mut store, "l", ann), Outcome::Lock(LockReply::Waiting { .. })));
    assert!(matches!(lock(&mut store, "m", ann), Outcome::Lock(LockReply::Held { .. })));
    assert_eq!(beyond(&lock(&mut store, "n", ann)), Some((of_ann.clone(), Counted::Locks, 2, 2)));
    assert!(matches!(lock(&mut store, "m", ann), Outcome::Lock(LockReply::Held { .. })), "it has that place already");
    apply(&mut store, Action::Session(SessionOp::End(ann)));
    let ann = begin(&mut store, "ann").unwrap();
    assert!(matches!(lock(&mut store, "n", ann), Outcome::Lock(LockReply::Held { .. })));
    // One of its own counts instead, also where it bounds nothing.
    set(&mut store, of_ann, QuotaBounds::default());
    for _ in 0..3 {
        begin(&mut store, "ann").unwrap();
    }
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

#[test]
fn tasks_of_queues_below_a_prefix_count_until_they_are_done() {
    let mut store = Store::default();
    set(&mut store, prefix("mail"), QuotaBounds { tasks: Some(2), ..QuotaBounds::default() });
    count(&mut store);
    let schedule = |store: &mut Store, ids: &[&str]| {
        let task = |id: &&str| NewTask {
            id: Some(TaskId::new(*id).unwrap()),
            payload: Value { kind: ContentKind::Bytes, data: vec![1; 50] },
            start: Start::In(0),
            recurrence: None,
            retry: RetryPlan { max_attempts: 1, initial_ms: 1, max_ms: 1, factor_milli: 1_000 },
            keep_ms: 0,
            replace: false,
        };
        let (queue, verb) = (QueueName::new("mail/out").unwrap(), TaskVerb::Schedule(ids.iter().map(task).collect()));
        apply(store, Action::Task(TaskOp { queue, verb }))
    };
    assert!(beyond(&schedule(&mut store, &["a", "b", "c"])).is_some(), "all of them or none");
    assert!(matches!(schedule(&mut store, &["a", "b"]), Outcome::Task(_)));
    assert!(matches!(schedule(&mut store, &["a", "b"]), Outcome::Task(_)), "they are there already");
    assert_eq!(beyond(&schedule(&mut store, &["c"])), Some((prefix("mail"), Counted::Tasks, 2, 2)));
    let (queue, verb) = (QueueName::new("mail/out").unwrap(), TaskVerb::Cancel(TaskId::new("a").unwrap()));
    apply(&mut store, Action::Task(TaskOp { queue, verb }));
    assert!(matches!(schedule(&mut store, &["c"]), Outcome::Task(_)));
}
