//! Bytes that are no command, rows that are damaged, and commands of which each takes much: nothing ends, and what one apply does has a bound.
//!
//! That commands do what they should is compared with a model, and tried as a rehearsal, again and in other groups, by `quorate-crossing`.
//! The seed of a failure is printed by proptest; `PROPTEST_CASES` sets how many are tried.

use crate::machine_support::{Store, batch, bounds, wander};
use bytes::Bytes;
use proptest::prelude::*;
use quorate_machine::document::{Criteria, Json};
use quorate_machine::keyspace::family;
use quorate_machine::machine::{self, Fault, Vars};
use quorate_machine::types::{
    Action, Batch, BulkItem, Change, Check, Command, Expect, Expiry, ItemOutcome, Key, Maintenance, Outcome, Rejection,
    Reply, RequestId, Step, Txn, WriteOp,
};
use quorate_machine::{codec, command_codec, level, limits};

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// A state that random commands about entries came to, and those commands.
fn entries_of(seed: u64) -> (Store, Vec<Command>) {
    let mut sent = Vec::new();
    let is_of_entries =
        |action: &Action| matches!(action, Action::Write(_) | Action::Bulk(_) | Action::Txn(_) | Action::Maintain(_));
    let store = wander(seed, 16, is_of_entries, |_, commands, _, _| sent.extend_from_slice(commands));
    (store, sent)
}

/// Whether a command raises the feature level to this one.
fn raises(encoded: &[u8], reached: level::Level) -> bool {
    let action = command_codec::decode_command(encoded).map(|command| command.action);
    matches!(action, Ok(Action::Maintain(Maintenance::RaiseLevel { level })) if level == reached)
}

proptest! {
    #![proptest_config(config())]

    /// Bytes from nowhere as commands: refused, on every node alike, and without an effect on the rest. Where they happen to
    /// raise the feature level beyond what this build knows, it stops, as it must.
    #[test]
    fn any_bytes_as_a_command_are_survived(
        garbage in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..5),
        seed in any::<u64>(),
        flip in any::<(prop::sample::Index, prop::sample::Index, u8)>(),
    ) {
        let (_, sent) = entries_of(seed);
        let Some(command) = sent.get(flip.0.index(sent.len().max(1))) else { return Ok(()) };
        let mut flipped = command_codec::encode_command(command).to_vec();
        let at = flip.1.index(flipped.len());
        flipped[at] ^= flip.2;
        let versioned = garbage.iter().map(|bytes| [&[codec::FORMAT_VERSION], bytes.as_slice()].concat());
        let commands: Vec<_> = garbage.iter().cloned().chain(versioned).chain([flipped]).map(Bytes::from).collect();
        let mut store = Store::default();
        match store.apply(&[Batch { clock: 1, wall: 1, seed: [7; 16], commands: commands.clone() }]) {
            Ok((replies, _)) => {
                prop_assert_eq!(replies[0].len(), commands.len());
                store.check();
            }
            Err(Fault::TooNew(refused)) => prop_assert!(commands.iter().any(|bytes| raises(bytes, refused.reached))),
            Err(fault) => panic!("{fault}"),
        }
    }

    /// Damage is a fault or goes unnoticed; it is never a panic.
    #[test]
    fn damaged_rows_are_survived(
        seed in any::<u64>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..4),
        revision in prop::option::of(any::<u64>()),
    ) {
        let (mut store, _) = entries_of(seed);
        let (_, more) = entries_of(seed.wrapping_add(1));
        let clock = store.vars.clock;
        for (row, at, change) in damage {
            let Some(key) = store.view.0.keys().nth(row.index(store.view.0.len().max(1))).cloned() else { break };
            match store.view.0.get_mut(&key).filter(|row| !row.is_empty() && change != 0) {
                Some(row) => { let at = at.index(row.len()); row[at] ^= change; }
                None => { store.view.0.remove(&key); }
            }
        }
        store.vars.revision = revision.unwrap_or(store.vars.revision);
        let _fault_or_not = store.apply(&[batch(clock + 20, &more)]);
    }
}

#[test]
fn an_expired_entry_at_the_end_of_the_revisions_is_a_fault() {
    let mut store = Store { vars: Vars { revision: u64::MAX, ..Vars::default() }, ..Store::default() };
    let command = write(b"a", Change::Remove);
    assert!(matches!(store.apply(&[batch(1, &[command])]), Err(machine::Fault::Invariant(_))));
}

#[test]
fn a_step_of_expiry_is_bounded_whatever_it_asks_for() {
    let mut store = Store::default();
    let entries: Vec<Command> = (0..limits::MAINTENANCE_ROWS_MAX + 1)
        .map(|number| {
            let op = bounds::write(number.to_be_bytes(), bounds::json("1"));
            Command::unnamed(Action::Write(WriteOp { expiry: Expiry::After(1), ..op }))
        })
        .collect();
    store.apply(&[batch(1, &entries)]).unwrap();
    let expire = maintain(Maintenance::ExpireDue { limit: u32::MAX });
    let (replies, _) = store.apply(&[batch(2, &[expire.clone(), expire.clone(), expire])]).unwrap();
    let removed = limits::MAINTENANCE_ROWS_MAX as u32;
    let outcomes: Vec<_> = replies.concat().into_iter().map(|reply: Reply| reply.outcome).collect();
    let step = |removed, more| Outcome::Maintained { removed, more };
    assert_eq!(outcomes, [step(removed, true), step(1, false), step(0, false)]);
    store.check();

    // Three groups of many lines: each step stops after the group in which it reached the bound.
    let compact = maintain(Maintenance::Compact { revision: u64::MAX, groups_max: u32::MAX });
    let mut dropped = Vec::new();
    for _ in 0..3 {
        let (replies, _) = store.apply(&[batch(3, std::slice::from_ref(&compact))]).unwrap();
        dropped.push(replies[0][0].outcome.clone());
        store.check();
    }
    assert_eq!(dropped, [step(2, false), step(0, false), step(0, false)]);
    assert!(store.view.0.is_empty(), "{:?}", store.view.0.keys().next());
}

#[test]
fn what_is_kept_of_a_large_entry_is_small() {
    let large = bounds::json(vec![b'1'; 1 << 20]);
    let mut store = Store::default();
    store.apply(&[batch(1, &[write(b"a", large.clone())])]).unwrap();
    let refused = WriteOp { expect: Expect::ABSENT, ..bounds::write("a", large) };
    let written = WriteOp { return_previous: true, ..bounds::write("a", Change::Remove) };
    let commands = [("refused", refused), ("written", written)].map(|(id, op)| named(id, op));
    let (first, _) = store.apply(&[batch(1, &commands)]).unwrap();
    for (_, row) in store.rows(family::REQUEST) {
        assert!(row.len() < 64, "{} bytes", row.len());
    }
    // Yet a retry is answered in full.
    let (again, _) = store.apply(&[batch(1, &commands)]).unwrap();
    for (first, again) in first[0].iter().zip(&again[0]) {
        assert_eq!(again, &Reply { replayed: true, ..first.clone() });
        assert_eq!(again.outcome.value_bytes(), 1 << 20);
    }
    store.check();
}

/// The commands that are decided and the bytes of values that they are answered with.
fn decided(replies: &[Reply]) -> (usize, usize) {
    let decided = replies.iter().take_while(|reply| reply.outcome != Outcome::Deferred).count();
    assert!(replies[decided..].iter().all(|reply| reply.outcome == Outcome::Deferred), "decided after a deferred one");
    (decided, replies.iter().map(|reply| reply.outcome.value_bytes()).sum())
}

#[test]
fn a_crowd_of_refusals_with_a_large_entry_is_deferred_beyond_the_bound() {
    let mut store = Store::default();
    store.apply(&[batch(1, &[write(b"a", bounds::bytes(vec![7; 1 << 20]))])]).unwrap();
    let refused = || WriteOp { expect: Expect::cas(77), ..bounds::write("a", Change::Remove) };
    let crowd: Vec<Command> = (0..1_000).map(|number| named(&format!("r{number}"), refused())).collect();
    let small = batch(2, &[write(b"b", bounds::json("1"))]);
    let batches = [batch(2, &crowd), small, batch(2, &crowd)];

    let before = store.clone();
    let (replies, _) = store.apply(&batches).unwrap();
    store.check();
    let (first, bytes) = decided(&replies[0]);
    assert!(first > 1 && bytes <= limits::BATCH_EFFECT_BYTES_MAX + limits::VALUE_BYTES_MAX, "{first}: {bytes} bytes");
    assert_eq!(decided(&replies[1]).0, 1, "each batch has the whole bound");
    // A retry takes only what it shows, so a few more than the first time are decided.
    assert!(replies[2][..first].iter().all(|reply| reply.replayed));
    let kept = store.rows(family::REQUEST).len();
    assert_eq!(kept, decided(&replies[2]).0, "nothing is kept of a deferred command");

    // However the batches are cut.
    for cut in 0..=batches.len() {
        let mut parts = before.clone();
        let mut replies_of_parts = parts.apply(&batches[..cut]).unwrap().0;
        replies_of_parts.extend(parts.apply(&batches[cut..]).unwrap().0);
        assert!(replies_of_parts == replies && parts == store, "cut at {cut}");
    }

    // Who comes again is decided in the end.
    let mut left = &crowd[kept..];
    for _ in 0..crowd.len() {
        let (replies, _) = store.apply(&[batch(3, left)]).unwrap();
        left = &left[decided(&replies[0]).0..];
        if left.is_empty() {
            break;
        }
    }
    store.check();
    assert_eq!(store.rows(family::REQUEST).len(), crowd.len());
}

#[test]
fn a_bulk_stops_at_the_bound_and_says_which_items_are_undecided() {
    let op = |number: u8| bounds::write([b'k', number], bounds::bytes(vec![7; 1 << 20]));
    let mut store = Store::default();
    let bulk = |ops: Vec<WriteOp>| Command::unnamed(Action::Bulk(ops));
    // One command cannot carry so much, so the entries are there first, and then each is touched.
    for number in 0..20 {
        store.apply(&[batch(1, &[bulk(vec![op(number)])])]).unwrap();
    }
    let touches: Vec<_> = (0..20).map(|number| WriteOp { change: Change::Touch, ..op(number) }).collect();
    let (replies, _) = store.apply(&[batch(2, &[bulk(touches)])]).unwrap();
    let Outcome::Bulk(items) = &replies[0][0].outcome else { panic!("{replies:?}") };
    let is_deferred = |item: &BulkItem| item.outcome == ItemOutcome::Deferred;
    let decided = items.iter().position(is_deferred).unwrap();
    assert!((1..20).contains(&decided) && items[decided..].iter().all(is_deferred), "{decided}");
    assert_eq!(store.vars.revision, 1 + 20 + decided as u64);
    store.check();
}

#[test]
fn a_transaction_beyond_its_bound_has_no_effect_at_all() {
    let mut store = Store::default();
    let mut steps = Vec::new();
    for number in 0..20 {
        store.apply(&[batch(1, &[write(&[b'k', number], bounds::bytes(vec![7; 1 << 20]))])]).unwrap();
        steps.push(Step::Write(bounds::write([b'k', number], Change::Touch)));
    }
    let before = store.clone();
    let action = Action::Txn(Txn { checks: Vec::new(), then: steps, otherwise: Vec::new() });
    let command = Command::unnamed(action);
    let (replies, changed) = store.apply(&[batch(1, &[command])]).unwrap();
    assert!(matches!(replies[0][0].outcome, Outcome::TxnRejected(_)), "{:?}", replies[0][0].outcome);
    assert_eq!((changed, store.vars.revision), (Vec::new(), before.vars.revision));
    assert_eq!(store.rows(family::ENTRY), before.rows(family::ENTRY));
    store.check();
}

#[test]
fn a_transaction_that_only_looks_is_bounded_too() {
    let mut store = Store::default();
    let list = format!("[{}1]", "1,".repeat(1 << 19));
    store.apply(&[batch(1, &[write(b"a", bounds::json(list))])]).unwrap();
    let check = |_| {
        let list = Json::parse(br#"[{"field":"a","op":"neq","value":1}]"#).unwrap();
        let condition = Criteria::read(&list, "/if").unwrap();
        Check { key: Key::new(b"a").unwrap(), expect: Expect::ANY, condition }
    };
    let action = Action::Txn(Txn { checks: (0..1_000).map(check).collect(), ..Txn::default() });
    let command = Command::unnamed(action);
    let (replies, _) = store.apply(&[batch(1, &[command])]).unwrap();
    let Outcome::TxnRejected(rejected) = &replies[0][0].outcome else { panic!("{replies:?}") };
    assert!(matches!(rejected.why, Rejection::TooDear(_)), "{rejected:?}");
    store.check();
}

#[test]
fn expiry_of_large_entries_stops_at_the_bound_and_goes_on() {
    let mut store = Store::default();
    let entries = 20;
    for number in 0..entries {
        let op = bounds::write([b'k', number], bounds::bytes(vec![7; 1 << 20]));
        let put = Command::unnamed(Action::Write(WriteOp { expiry: Expiry::After(1), ..op }));
        store.apply(&[batch(1, &[put])]).unwrap();
    }
    let expire = maintain(Maintenance::ExpireDue { limit: 1_000 });
    let mut steps = Vec::new();
    while !matches!(steps.last(), Some((_, false))) {
        let (replies, _) = store.apply(&[batch(2, std::slice::from_ref(&expire))]).unwrap();
        let Outcome::Maintained { removed, more } = replies[0][0].outcome else { panic!("{replies:?}") };
        steps.push((removed, more));
    }
    assert_eq!(steps, [(8, true), (8, true), (4, false)]);
    store.check();
}

fn write(key: &[u8], change: Change) -> Command {
    Command::unnamed(Action::Write(bounds::write(key, change)))
}

fn named(id: &str, op: WriteOp) -> Command {
    Command { request_id: Some(RequestId(id.into())), ..Command::unnamed(Action::Write(op)) }
}

fn maintain(what: Maintenance) -> Command {
    Command::unnamed(Action::Maintain(what))
}
