//! The key of an entry's lock is told to who locked it, and to nobody else: no number that anybody can be shown is one. What it opens is in
//! the golden script `lock_keys`.

use std::collections::BTreeSet;

use crate::machine_support::{Store, batch, wander};
use quorate_crossing::run;
use quorate_machine::keyspace::{audit, entry, family, history, lock};
use quorate_machine::machine;
use quorate_machine::types::{
    Action, Change, Command, ContentKind, Expect, Key, Outcome, Refusal, Reply, Shown, Value, WriteOp,
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

fn write(change: Change, expect: Expect) -> Command {
    let removal = WriteOp::removal(Key::new("jobs/1").unwrap(), false);
    Command::unnamed(Action::Write(WriteOp { expect, change, ..removal }))
}

fn put(text: &str, expect: Expect) -> Command {
    write(Change::Put(Value { kind: ContentKind::Json, data: text.into() }), expect)
}

/// The token that a write is answered with, or the word for its refusal.
fn token(reply: &Reply) -> Result<u64, String> {
    match &reply.outcome {
        Outcome::Written(written) => Ok(written.meta.expect("an entry is left").cas),
        Outcome::Rejected(why) => Err(format!("{:?}", Refusal::from(why))),
        other => panic!("{other:?}"),
    }
}

fn apply(store: &mut Store, command: Command) -> Reply {
    let replies = store.apply(&[batch(1, &[command])]).unwrap().0;
    store.check();
    replies[0][0].clone()
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
    apply(&mut store, put("1", Expect::ABSENT));
    let locks = write(Change::Lock(100), Expect::ANY);
    let dry = machine::evaluate(&store.view, &store.vars, store.index + 1, &locks).unwrap();
    let real = apply(&mut store, locks);
    assert_ne!(token(&dry), token(&real), "the dry run tells the key");
    let guessed = put("2", Expect::cas(token(&dry).unwrap()));
    assert_eq!(token(&apply(&mut store, guessed)), Err("CasMismatch".into()));
}

/// What SHA-256 makes of the first of those, by another implementation.
const KEY_OF_ONES: u64 = 16_929_863_837_585_759_063;
