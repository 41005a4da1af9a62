//! Bounds of claims, and that each key is claimed once. What claims get under any sequence of commands, and that the rows agree with each
//! other after each, is seen by the crossing of commands and states (`crossing/`).

use crate::machine_support::{Store, batch};
use quorate_machine::document::path::Field;
use quorate_machine::document::{Criteria, Json, Order, OrderField, Patch};
use quorate_machine::limits;
use quorate_machine::rules::{CollectionName, Rules};
use quorate_machine::types::*;

fn json(text: &str) -> Json<'_> {
    Json::parse(text.as_bytes()).unwrap()
}

fn criteria(text: &str) -> Criteria {
    Criteria::read(&json(text), "/if").unwrap()
}

#[test]
fn a_claim_that_would_have_to_order_too_much_is_refused_and_one_in_key_order_is_not() {
    let mut store = Store::default();
    let insert = |number: u64| WriteOp {
        key: Key::new(format!("q/{number:06}")).unwrap(),
        expect: Expect::ABSENT,
        condition: Criteria::default(),
        change: Change::Put(Value { kind: ContentKind::Json, data: format!(r#"{{"due":{number}}}"#).into() }),
        expiry: Expiry::Never,
        return_previous: false,
        session: None,
        guard: None,
    };
    let entries = limits::COMMAND_ENTRIES_MAX + 10;
    for first in (0..entries).step_by(limits::COMMAND_WRITES_MAX) {
        let ops = (first..entries.min(first + limits::COMMAND_WRITES_MAX as u64)).map(insert).collect();
        store.apply(&[batch(1, &[Command::unnamed(Action::Bulk(ops))])]).unwrap();
    }
    let due = OrderField { field: Field::parse("due").unwrap(), descending: true };
    let claim = |order: Vec<OrderField>, list: &str| {
        let (criteria, order) = (criteria(list), Order::new(order));
        Command::unnamed(Action::Claim(ClaimOp {
            prefix: b"q/".to_vec(),
            criteria,
            order,
            limit: 1,
            lock_ms: 5,
            patch: None,
            guard: None,
        }))
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
    let change = RulesChange::Set(Rules::read(&json(r#"{"indexes":[["due"]]}"#), "").unwrap());
    let rules = RulesOp { name: CollectionName::new("q").unwrap(), expect: Expect::ANY, change };
    outcome(&mut store, Command::unnamed(Action::Rules(rules)));
    let step = Command::unnamed(Action::Maintain(Maintenance::Indexes { rows_max: 4_000 }));
    while outcome(&mut store, step.clone()) != (Outcome::Maintained { removed: 0, more: false }) {}
    let Outcome::Claimed(last) = outcome(&mut store, claim(vec![due], "[]")) else { panic!("not claimed") };
    assert_eq!((last.examined, last.entries[0].0.to_string()), (1, format!("q/{:06}", entries - 1)));
}

#[test]
fn a_claim_of_large_entries_ends_at_the_bound_of_a_batch() {
    let mut store = Store::default();
    for number in 0..20 {
        let data = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20)).into_bytes();
        let op = WriteOp {
            key: Key::new(format!("q/{number:02}")).unwrap(),
            expect: Expect::ABSENT,
            condition: Criteria::default(),
            change: Change::Put(Value { kind: ContentKind::Json, data }),
            expiry: Expiry::Never,
            return_previous: false,
            session: None,
            guard: None,
        };
        store.apply(&[batch(1, &[Command::unnamed(Action::Write(op))])]).unwrap();
    }
    let patch = Some(Patch::read(&json(r#"{"n":1}"#), "/patch").unwrap());
    let (criteria, order) = (Criteria::default(), Order::new(Vec::new()));
    let op = ClaimOp { prefix: b"q/".to_vec(), criteria, order, limit: 20, lock_ms: 5, patch, guard: None };
    let (replies, _) = store.apply(&[batch(1, &[Command::unnamed(Action::Claim(op))])]).unwrap();
    store.check();
    let Outcome::Claimed(done) = &replies[0][0].outcome else { panic!("{replies:?}") };
    assert!((1..20).contains(&done.entries.len()) && done.more, "{} entries", done.entries.len());
}

#[test]
fn keys_that_are_no_text_are_claimed_each_once() {
    let mut store = Store::default();
    let keys: [&[u8]; 4] = [b"e/\xFD", b"e/\xFE", b"e/\xFF", "e/\u{FFFD}".as_bytes()];
    let insert = |key: &&[u8]| WriteOp {
        key: Key::new(*key).unwrap(),
        expect: Expect::ABSENT,
        condition: Criteria::default(),
        change: Change::Put(Value { kind: ContentKind::Json, data: br#"{"a":1}"#.to_vec() }),
        expiry: Expiry::Never,
        return_previous: false,
        session: None,
        guard: None,
    };
    let inserts: Vec<_> = keys.iter().map(insert).collect();
    store.apply(&[batch(1, &[Command::unnamed(Action::Bulk(inserts))])]).unwrap();
    let order = Order::new(vec![OrderField { field: Field::parse("a").unwrap(), descending: false }]);
    let claim = |criteria: &str, limit: u32| ClaimOp {
        prefix: b"e/".to_vec(),
        criteria: self::criteria(criteria),
        order: order.clone(),
        limit,
        lock_ms: 6,
        patch: None,
        guard: None,
    };
    let mut claimed = |op: ClaimOp| {
        let (replies, _) = store.apply(&[batch(1, &[Command::unnamed(Action::Claim(op))])]).unwrap();
        let Outcome::Claimed(done) = &replies[0][0].outcome else { panic!("{replies:?}") };
        done.entries.iter().map(|(key, _)| key.as_bytes().to_vec()).collect::<Vec<_>>()
    };
    let lookalike = "[{\"field\":\"$key\",\"op\":\"eq\",\"value\":\"e/\u{FFFD}\"}]";
    assert_eq!(claimed(claim(lookalike, 3)), ["e/\u{FFFD}".as_bytes()], "a text means its own bytes");
    assert_eq!(claimed(claim("[]", 3)), [b"e/\xFD", b"e/\xFE", b"e/\xFF"]);
}
