//! The key of an entry's lock is told to who locked it, and to nobody else: no number that anybody can be shown is one.

use std::collections::BTreeSet;

use crate::machine_support::{Store, batch, wander};
use quorate_crossing::run;
use quorate_machine::document::Criteria;
use quorate_machine::keyspace::{audit, entry, family, history, lock};
use quorate_machine::machine;
use quorate_machine::types::{
    Action, Change, Command, ContentKind, Expect, Expiry, Key, Outcome, Refusal, Reply, Shown, Step, Txn, Value,
    WriteOp,
};

/// Runs of random commands.
const RUNS: u64 = 10;

/// All numbers in a thing, whatever their fields.
fn numbers(thing: &impl std::fmt::Debug, numbers: &mut BTreeSet<u64>) {
    let text = format!("{thing:?}");
    numbers.extend(text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|word| word.parse::<u64>().ok()));
}

/// What opens the locks that hold, by the rule that `has_token` follows.
fn held(store: &Store) -> BTreeSet<u64> {
    let rows = store.rows(family::ENTRY);
    let rows = rows.iter().map(|(_, row)| entry::decode(row).unwrap());
    let held: Vec<_> = rows.filter(|row| row.meta.is_locked_at(store.vars.clock)).collect();
    for row in &held {
        assert!(row.has_token(row.key.expect("a lock has a key"), store.vars.clock));
        assert!(!row.has_token(row.meta.cas, store.vars.clock), "the cas opens the lock: {row:?}");
    }
    held.into_iter().filter_map(|row| row.key).collect()
}

/// Everything that whoever may read can be shown: entries as they are and were, the audit trail, and the store's own numbers.
fn shown_to_all(store: &Store) -> BTreeSet<u64> {
    let mut shown = BTreeSet::new();
    for (row_key, row) in store.rows(family::ENTRY) {
        let row = entry::decode(&row).unwrap();
        numbers(&row.to_entry(), &mut shown);
        let Shown::Whole(whole) = row.to_shown() else { panic!("without its value") };
        numbers(&(whole.meta, Shown::Whole(whole).to_bare()), &mut shown);
        for revision in store.vars.oldest_revision..=store.vars.revision {
            numbers(&store.read_at(entry::decode_key(&row_key).unwrap(), revision), &mut shown);
        }
    }
    for (row_key, row) in store.rows(family::HISTORY) {
        numbers(&history::decode_key(&row_key).unwrap().1, &mut shown);
        if let history::Version::Entry(row) = history::decode(&row).unwrap() {
            numbers(&row.to_entry(), &mut shown);
        }
    }
    for (_, row) in store.rows(family::AUDIT) {
        numbers(&audit::decode(&row).unwrap(), &mut shown);
    }
    for (row_key, _) in store.rows(family::LOCK) {
        numbers(&lock::decode_key(&row_key).unwrap().0, &mut shown);
    }
    numbers(&store.vars, &mut shown);
    shown
}

/// Whether who sent a command may be told a key.
fn locks(action: &Action) -> bool {
    let locks = |op: &WriteOp| matches!(op.change, Change::Lock(_) | Change::Claim { .. } | Change::Extend(_));
    match action {
        Action::Write(op) => locks(op),
        Action::Bulk(ops) => ops.iter().any(locks),
        Action::Txn(txn) => txn.all_writes().any(locks),
        Action::Claim(_) => true,
        _ => false,
    }
}

#[test]
fn nothing_that_is_shown_is_the_key_of_a_lock_that_holds() {
    let (mut locked, mut answers) = (0, 0);
    for seed in 0..RUNS {
        wander(
            seed,
            run::STEPS,
            |_| true,
            |store, commands, replies, changed| {
                let held = held(store);
                locked += held.len();
                let mut shown = shown_to_all(store);
                numbers(&changed, &mut shown);
                for (_, reply) in commands.iter().zip(replies).filter(|(command, _)| !locks(&command.action)) {
                    answers += 1;
                    numbers(reply, &mut shown);
                }
                let known: Vec<_> = held.intersection(&shown).collect();
                assert!(known.is_empty(), "anybody may know {known:?}, keys of locks, after {commands:?}");
            },
        );
    }
    assert!(locked > 500 && answers > 1_000, "{locked} locks and {answers} answers prove little");
}

fn op(change: Change, expect: Expect) -> WriteOp {
    WriteOp {
        key: Key::new("jobs/1").unwrap(),
        expect,
        condition: Criteria::default(),
        change,
        expiry: Expiry::Keep,
        return_previous: false,
        session: None,
        guard: None,
    }
}

fn value(text: &str) -> Value {
    Value { kind: ContentKind::Json, data: text.into() }
}

fn write(change: Change, expect: Expect) -> Command {
    Command::unnamed(Action::Write(op(change, expect)))
}

/// The token that a write is answered with, or the word for its refusal.
fn token(reply: &Reply) -> Result<u64, String> {
    match &reply.outcome {
        Outcome::Written(written) => Ok(written.meta.expect("an entry is left").cas),
        Outcome::Rejected(why) => Err(format!("{:?}", Refusal::from(why))),
        other => panic!("{other:?}"),
    }
}

fn apply(store: &mut Store, clock: u64, command: Command) -> Reply {
    let replies = store.apply(&[batch(clock, &[command])]).unwrap().0;
    store.check();
    replies[0][0].clone()
}

fn row_of(store: &Store) -> Vec<u8> {
    store.rows(family::ENTRY).pop().expect("there is one entry").1
}

#[test]
fn only_the_key_opens_a_lock_and_ends_with_it() {
    for claims in [false, true] {
        let mut store = Store::default();
        let made = token(&apply(&mut store, 1, write(Change::Put(value(r#"{"n":1}"#)), Expect::ABSENT))).unwrap();
        let change = if claims { Change::Claim { ms: 100, patch: None } } else { Change::Lock(100) };
        let key = token(&apply(&mut store, 1, write(change, Expect::cas(made)))).unwrap();
        assert!(key >= lock::KEY_MARK);
        for wrong in [made, store.vars.revision, 0, key - 1, key + 1] {
            let put = write(Change::Put(value("2")), Expect::cas(wrong));
            assert_eq!(token(&apply(&mut store, 1, put)), Err("CasMismatch".into()));
            let (unlock, extend) = (Change::Unlock, Change::Extend(200));
            assert_eq!(token(&apply(&mut store, 1, write(unlock, Expect::cas(wrong)))), Err("Locked".into()));
            assert_eq!(token(&apply(&mut store, 1, write(extend, Expect::cas(wrong)))), Err("Locked".into()));
        }
        assert_eq!(token(&apply(&mut store, 1, write(Change::Extend(200), Expect::cas(key)))), Ok(key));
        let cas = token(&apply(&mut store, 2, write(Change::Unlock, Expect::any_of(vec![7, key])))).unwrap();
        assert_eq!(entry::decode(&row_of(&store)).unwrap().meta.cas, cas);
        assert!(cas < lock::KEY_MARK, "the token of an entry that is not locked is a revision again");
        let put = |token| write(Change::Put(value("3")), Expect::cas(token));
        assert_eq!(token(&apply(&mut store, 2, put(key))), Err("CasMismatch".into()));
        assert_eq!(token(&apply(&mut store, 2, put(cas))), Ok(store.vars.revision));
    }
}

#[test]
fn after_a_lock_that_ended_by_itself_its_key_is_good_until_something_changes() {
    for forgets in [false, true] {
        let mut store = Store::default();
        apply(&mut store, 1, write(Change::Put(value("1")), Expect::ABSENT));
        let key = token(&apply(&mut store, 1, write(Change::Lock(100), Expect::ANY))).unwrap();
        let row = row_of(&store);
        if forgets {
            let due = quorate_machine::types::Maintenance::ExpireDue { limit: 9 };
            apply(&mut store, 101, Command::unnamed(Action::Maintain(due)));
            assert_eq!(store.rows(family::LOCK), [], "the row of its end is gone");
        }
        assert_eq!(row_of(&store), row, "an entry says by itself when its lock ended");
        let extend = write(Change::Extend(5), Expect::cas(key));
        assert_eq!(token(&apply(&mut store, 101, extend)), Err("NotLocked".into()));
        let cas = entry::decode(&row).unwrap().meta.cas;
        for given in [key, cas] {
            let mut store = store.clone();
            let put = write(Change::Put(value("2")), Expect::cas(given));
            assert_eq!(token(&apply(&mut store, 101, put)), Ok(store.vars.revision));
        }
        let next = token(&apply(&mut store, 101, write(Change::Lock(100), Expect::cas(cas)))).unwrap();
        assert!(next >= lock::KEY_MARK && next != key);
        let put = write(Change::Put(value("2")), Expect::cas(key));
        assert_eq!(token(&apply(&mut store, 101, put)), Err("CasMismatch".into()));
    }
}

#[test]
fn keys_differ_between_entries_times_and_seeds_and_a_dry_run_shows_none_that_opens() {
    let keys = [
        lock::key_of(&[1; 16], 5, 7, b"a"),
        lock::key_of(&[2; 16], 5, 7, b"a"),
        lock::key_of(&[1; 16], 6, 7, b"a"),
        lock::key_of(&[1; 16], 5, 8, b"a"),
        lock::key_of(&[1; 16], 5, 7, b"b"),
    ];
    assert_eq!(BTreeSet::from(keys).len(), keys.len(), "{keys:?}");
    // Nodes must agree, builds of later as well.
    assert_eq!(keys[0], KEY_OF_ONES);
    let mut store = Store::default();
    apply(&mut store, 1, write(Change::Put(value("1")), Expect::ABSENT));
    let locks = write(Change::Lock(100), Expect::ANY);
    let dry = machine::evaluate(&store.view, &store.vars, store.index + 1, &locks).unwrap();
    let real = apply(&mut store, 1, locks);
    assert_ne!(token(&dry), token(&real), "the dry run tells the key");
    let put = write(Change::Put(value("2")), Expect::cas(token(&dry).unwrap()));
    assert_eq!(token(&apply(&mut store, 1, put)), Err("CasMismatch".into()));
}

/// What SHA-256 makes of the first of those, by another implementation.
const KEY_OF_ONES: u64 = 16_929_863_837_585_759_063;

#[test]
fn a_check_of_a_transaction_knows_the_key_too() {
    let mut store = Store::default();
    apply(&mut store, 1, write(Change::Put(value("1")), Expect::ABSENT));
    let key = token(&apply(&mut store, 1, write(Change::Lock(100), Expect::ANY))).unwrap();
    let cas = entry::decode(&row_of(&store)).unwrap().meta.cas;
    let holds = |expect| {
        let check =
            quorate_machine::types::Check { key: Key::new("jobs/1").unwrap(), expect, condition: Criteria::default() };
        let then = vec![Step::Get(Key::new("jobs/1").unwrap())];
        let txn = Command::unnamed(Action::Txn(Txn { checks: vec![check], then, otherwise: Vec::new() }));
        let reply = machine::evaluate(&store.view, &store.vars, store.index + 1, &txn).unwrap();
        let Outcome::Txn(done) = reply.outcome else { panic!("{reply:?}") };
        done.succeeded()
    };
    assert!(holds(Expect::cas(key)) && holds(Expect::none_of(vec![cas])));
    assert!(!holds(Expect::cas(cas)) && !holds(Expect::none_of(vec![key])));
}
