//! Steps over ranges of keys: bounds, and that a transaction changes each key once on the way that it takes. What they answer is compared
//! with a model by the crossing of commands and states (`crossing/`).

use crate::machine_support::bounds::{bytes, put, write};
use crate::machine_support::{Store, batch};
use quorate_machine::keyspace::family;
use quorate_machine::level;
use quorate_machine::limits::{KEY_BYTES_MAX, REMOVAL_BYTES};
use quorate_machine::machine::Vars;
use quorate_machine::types::*;

fn store() -> Store {
    Store { vars: Vars { level: level::KNOWN, ..Vars::default() }, ..Store::default() }
}

fn apply(store: &mut Store, command: Command) -> Reply {
    let (replies, _) = store.apply(&[batch(1, &[command])]).expect("nothing faults");
    store.check();
    replies.into_iter().flatten().next().expect("a reply")
}

fn txn(then: Vec<Step>) -> Command {
    Command::unnamed(Action::Txn(Txn { then, ..Txn::default() }))
}

fn written(key: &str) -> Step {
    Step::Write(write(key, bytes("1")))
}

fn removal(key: &[u8]) -> Step {
    Step::Remove(RemoveStep { range: KeyRange::of_key(key), return_previous: true })
}

fn list(range: KeyRange) -> Step {
    let (order, filter) = (ListOrder::BY_KEY, RevisionFilter::ALL);
    Step::List(ListStep { range, limit: 0, order, filter, shown: ListShown::Entries, at: None })
}

/// A branch whose one comparison holds, or does not.
fn nested(holds: bool, then: Vec<Step>, otherwise: Vec<Step>) -> Step {
    let with = Compared::Version(if holds { 0 } else { 1 });
    let range = KeyRange::of_key(b"none");
    let comparisons = vec![Comparison { range, operator: ComparisonOperator::Equal, with }];
    Step::Branch(Branch { comparisons, then, otherwise })
}

/// Why a transaction was refused on its way, if it was.
fn refusal(reply: &Reply) -> Option<(TxnRefusal, Option<Key>)> {
    match &reply.outcome {
        Outcome::TxnRejected(rejected) => match rejected.why {
            Rejection::Txn(why) => Some((why, rejected.key.clone())),
            _ => panic!("{reply:?}"),
        },
        Outcome::Txn(_) => None,
        _ => panic!("{reply:?}"),
    }
}

#[test]
fn what_is_too_long_for_a_key_has_no_entry() {
    for length in [KEY_BYTES_MAX + 1, KEY_BYTES_MAX + 2, 2 * KEY_BYTES_MAX, 100_000] {
        let mut store = store();
        let long = vec![b'k'; length];
        apply(&mut store, put(&long[..KEY_BYTES_MAX], b"1".to_vec(), None));
        let before = store.vars.revision;
        let absent = Comparison {
            range: KeyRange::of_key(&long),
            operator: ComparisonOperator::Equal,
            with: Compared::Version(0),
        };
        let within = Branch { comparisons: vec![absent], then: vec![removal(&long)], otherwise: Vec::new() };
        let steps = vec![removal(&long), list(KeyRange::of_key(&long)), Step::Branch(within), written("beside")];
        let reply = apply(&mut store, txn(steps));
        let Outcome::Txn(done) = reply.outcome else { panic!("{reply:?}") };
        let nothing = Removed { count: 0, entries: Vec::new() };
        assert_eq!(done.results[0], StepReply::Removed(nothing.clone()));
        assert!(matches!(&done.results[1], StepReply::Listed(listed) if listed.count == 0 && !listed.more));
        let branched = Branched { succeeded: true, results: vec![StepReply::Removed(nothing)] };
        assert_eq!(done.results[2], StepReply::Branched(branched));
        assert_eq!(store.vars.revision, before + 1);
    }
}

#[test]
fn a_range_may_begin_and_end_with_what_is_too_long_for_a_key() {
    let mut store = store();
    let longest = vec![b'k'; KEY_BYTES_MAX];
    for key in [&b"a"[..], &longest, b"l"] {
        apply(&mut store, put(key, b"1".to_vec(), None));
    }
    let beyond = [longest.as_slice(), b"k"].concat();
    let counted = |store: &mut Store, range| match apply(store, txn(vec![list(range)])).outcome {
        Outcome::Txn(done) => match &done.results[..] {
            [StepReply::Listed(listed)] => listed.count,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(counted(&mut store, KeyRange::new(beyond.clone(), None)), 1, "only what is behind it");
    assert_eq!(counted(&mut store, KeyRange::new(Vec::new(), Some(beyond.clone()))), 2, "what is before it");
    assert_eq!(counted(&mut store, KeyRange::new(beyond.clone(), Some(beyond))), 0);
}

#[test]
fn what_a_transaction_listed_is_kept_only_where_it_is_short() {
    let mut store = store();
    let long = |n: u32| format!("long/{n:0>1000}");
    for n in 0..20 {
        apply(&mut store, put(long(n), b"1".to_vec(), None));
    }
    let listing = |range: KeyRange, id: &str| {
        let steps = vec![nested(true, vec![list(range)], vec![]), written(id)];
        Command { request_id: Some(RequestId(id.into())), ..txn(steps) }
    };
    let results = |reply: &Reply| match &reply.outcome {
        Outcome::Txn(done) => done.results.clone(),
        other => panic!("{other:?}"),
    };
    let listed = |reply: &Reply| match &results(reply)[0] {
        StepReply::Branched(done) => match &done.results[..] {
            [StepReply::Listed(listed)] => listed.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let all = listing(KeyRange::new(b"long/".to_vec(), Some(b"long0".to_vec())), "all");
    let first = apply(&mut store, all.clone());
    assert_eq!((listed(&first).entries.len(), listed(&first).count, listed(&first).left_out), (20, 20, false));
    let rows = store.rows(family::REQUEST);
    assert!(rows.len() == 1 && rows[0].1.len() < 256, "{} bytes are kept", rows[0].1.len());
    let revision = store.vars.revision;
    let again = apply(&mut store, all);
    assert_eq!(listed(&again), Listed { entries: Vec::new(), count: 20, more: false, left_out: true });
    assert!(again.replayed && results(&again)[0].lacks_listed() && !results(&first)[0].lacks_listed());
    assert_eq!(results(&again)[1], results(&first)[1], "what it wrote is told as it was");
    assert_eq!(store.vars.revision, revision, "nothing is written twice");
    let one = listing(KeyRange::of_key(long(7).as_bytes()), "one");
    let first = apply(&mut store, one.clone());
    assert_eq!(apply(&mut store, one), Reply { replayed: true, ..first });
}

#[test]
fn a_transaction_removes_only_so_many_entries_of_a_range() {
    let mut store = store();
    store.bounds.txn_bytes = 3 * REMOVAL_BYTES;
    apply(&mut store, txn(["a/1", "a/2", "a/3"].map(written).to_vec()));
    let removal = |end: &str| {
        let range = KeyRange::new(b"a/".to_vec(), Some(end.as_bytes().to_vec()));
        txn(vec![Step::Remove(RemoveStep { range, return_previous: false })])
    };
    let (revision, rows) = (store.vars.revision, store.rows(family::ENTRY));
    let all = apply(&mut store, removal("a0"));
    let Outcome::TxnRejected(rejected) = &all.outcome else { panic!("{all:?}") };
    assert!(matches!(rejected.why, Rejection::TooMuch { .. }), "{rejected:?}");
    assert_eq!((store.vars.revision, store.rows(family::ENTRY)), (revision, rows));
    // In parts they go.
    for end in ["a/3", "a0"] {
        let part = apply(&mut store, removal(end));
        assert!(matches!(part.outcome, Outcome::Txn(_)), "{part:?}");
    }
    assert!(store.rows(family::ENTRY).is_empty());
    store.check();
}

#[test]
fn a_nested_deletion_may_follow_a_nested_put_where_only_one_of_them_is_done() {
    let a = || Key::new("a").unwrap();
    for (puts, deletes, refused) in
        [(true, false, false), (false, true, false), (false, false, false), (true, true, true)]
    {
        let mut store = store();
        apply(&mut store, put("a", b"0".to_vec(), None));
        let before = (store.vars.revision, store.read_at(b"a", store.vars.revision));
        let steps =
            vec![nested(puts, vec![written("a")], vec![]), written("b"), nested(!deletes, vec![], vec![removal(b"a")])];
        let reply = apply(&mut store, txn(steps));
        let expected = refused.then(|| (TxnRefusal::KeyTwice, Some(a())));
        assert_eq!(refusal(&reply), expected, "put {puts}, deleted {deletes}");
        let now = (store.vars.revision, store.read_at(b"a", store.vars.revision));
        match refused {
            true => assert_eq!(now, before, "nothing of it is done"),
            false => assert_eq!((now.0, now.1.is_some()), (before.0 + 1, !deletes)),
        }
    }
}

#[test]
fn a_lock_and_a_removal_do_not_share_a_revision() {
    let lock = Step::Write(WriteOp { change: Change::Lock(1_000), ..WriteOp::removal(Key::new("a").unwrap(), false) });
    let steps = vec![nested(true, vec![lock], vec![]), nested(true, vec![removal(b"a")], vec![])];
    assert!(matches!(Txn { then: steps, ..Txn::default() }.fault(), Some(TxnFault::KeyTwice { .. })));
}
