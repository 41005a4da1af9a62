//! Bounds of claims, and that each key is claimed once. What claims get under any sequence of commands, and that the rows agree with each
//! other after each, is seen by the crossing of commands and states (`crossing/`).

use crate::machine_support::bounds::{self, declare, json, write};
use crate::machine_support::{Store, batch};
use quorate_machine::document::path::Field;
use quorate_machine::document::{Criteria, Json, Order, OrderField, Patch};
use quorate_machine::limits;
use quorate_machine::types::*;

fn criteria(text: &str) -> Criteria {
    Criteria::read(&Json::parse(text.as_bytes()).unwrap(), "/if").unwrap()
}

#[test]
fn a_claim_that_would_have_to_order_too_much_is_refused_and_one_in_key_order_is_not() {
    let mut store = Store::default();
    let insert = |number: u64| write(format!("q/{number:06}"), json(format!(r#"{{"due":{number}}}"#)));
    let entries = limits::COMMAND_ENTRIES_MAX + 10;
    for first in (0..entries).step_by(limits::COMMAND_WRITES_MAX) {
        let ops = (first..entries.min(first + limits::COMMAND_WRITES_MAX as u64)).map(insert).collect();
        store.apply(&[batch(1, &[Command::unnamed(Action::Bulk(ops))])]).unwrap();
    }
    let due = OrderField { field: Field::parse("due").unwrap(), descending: true };
    let claim = |order: Vec<OrderField>, list: &str| {
        let order = Order::new(order);
        Command::unnamed(Action::Claim(ClaimOp { order, limit: 1, ..bounds::claim("q/", criteria(list)) }))
    };
    let outcome =
        |store: &mut Store, command: Command| store.apply(&[batch(1, &[command])]).unwrap().0[0][0].outcome.clone();
    let refused = outcome(&mut store, claim(vec![due.clone()], "[]"));
    assert_eq!(refused, Outcome::Rejected(Rejection::TooManyToOrder(limits::COMMAND_ENTRIES_MAX)));
    let Outcome::Claimed(none) = outcome(&mut store, claim(Vec::new(), r#"[{"field":"due","op":"lt","value":0}]"#))
    else {
        panic!("in the order of keys there is no need to see all")
    };
    assert!(none.more && none.entries.is_empty(), "{none:?}");

    // With an index it looks at one.
    outcome(&mut store, Command::unnamed(declare("q", r#"{"indexes":[["due"]]}"#)));
    let step = Command::unnamed(Action::Maintain(Maintenance::Indexes { rows_max: 4_000 }));
    while outcome(&mut store, step.clone()) != (Outcome::Maintained { removed: 0, more: false }) {}
    let Outcome::Claimed(last) = outcome(&mut store, claim(vec![due], "[]")) else { panic!("not claimed") };
    assert_eq!((last.examined, last.entries[0].0.to_string()), (1, format!("q/{:06}", entries - 1)));
}

#[test]
fn a_claim_of_large_entries_ends_at_the_bound_of_a_batch() {
    let mut store = Store::default();
    for number in 0..20 {
        let data = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20));
        let op = write(format!("q/{number:02}"), json(data));
        store.apply(&[batch(1, &[Command::unnamed(Action::Write(op))])]).unwrap();
    }
    let patch = Some(Patch::read(&Json::parse(br#"{"n":1}"#).unwrap(), "/patch").unwrap());
    let op = ClaimOp { limit: 20, patch, ..bounds::claim("q/", Criteria::default()) };
    let (replies, _) = store.apply(&[batch(1, &[Command::unnamed(Action::Claim(op))])]).unwrap();
    store.check();
    let Outcome::Claimed(done) = &replies[0][0].outcome else { panic!("{replies:?}") };
    assert!((1..20).contains(&done.entries.len()) && done.more, "{} entries", done.entries.len());
}

#[test]
fn keys_that_are_no_text_are_claimed_each_once() {
    let mut store = Store::default();
    let keys: [&[u8]; 4] = [b"e/\xFD", b"e/\xFE", b"e/\xFF", "e/\u{FFFD}".as_bytes()];
    let insert = |key: &&[u8]| write(*key, json(br#"{"a":1}"#));
    let inserts: Vec<_> = keys.iter().map(insert).collect();
    store.apply(&[batch(1, &[Command::unnamed(Action::Bulk(inserts))])]).unwrap();
    let order = Order::new(vec![OrderField { field: Field::parse("a").unwrap(), descending: false }]);
    let claim = |list: &str, limit: u32| ClaimOp { order: order.clone(), limit, ..bounds::claim("e/", criteria(list)) };
    let mut claimed = |op: ClaimOp| {
        let (replies, _) = store.apply(&[batch(1, &[Command::unnamed(Action::Claim(op))])]).unwrap();
        let Outcome::Claimed(done) = &replies[0][0].outcome else { panic!("{replies:?}") };
        done.entries.iter().map(|(key, _)| key.as_bytes().to_vec()).collect::<Vec<_>>()
    };
    let lookalike = "[{\"field\":\"$key\",\"op\":\"eq\",\"value\":\"e/\u{FFFD}\"}]";
    assert_eq!(claimed(claim(lookalike, 3)), ["e/\u{FFFD}".as_bytes()], "a text means its own bytes");
    assert_eq!(claimed(claim("[]", 3)), [b"e/\xFD", b"e/\xFE", b"e/\xFF"]);
}
