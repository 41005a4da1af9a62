//! What must hold of collections, indexes, claims and changes by criteria under any sequence of commands. That the rows agree
//! with each other after each command is seen by the crossing of commands and states (`crossing/`).
//!
//! The seed of a failure is printed by proptest; `PROPTEST_CASES` sets how many are tried.

use crate::machine_support::{Store, batch};
use proptest::prelude::*;
use quorate_crossing::run::without_keys;
use quorate_machine::document::path::Field;
use quorate_machine::document::{Criteria, Json, Order, OrderField, Patch, Subject};
use quorate_machine::keyspace::{entry, family};
use quorate_machine::rules::{CollectionName, Rules, SequenceName};
use quorate_machine::types::*;
use quorate_machine::{limits, machine};

/// The last of them are no text, but for U+FFFD, which they must not become.
const KEYS: [&[u8]; 10] =
    [b"c/1", b"c/1\0", b"c/2", b"c/3", b"c/4", b"c/5", b"d/1", b"c/\xFE", b"c/\xFF", "c/\u{FFFD}".as_bytes()];

fn json(text: &str) -> Json<'_> {
    Json::parse(text.as_bytes()).unwrap()
}

fn criteria(text: &str) -> Criteria {
    Criteria::read(&json(text), "/if").unwrap()
}

fn keys() -> impl Strategy<Value = Key> {
    prop::sample::select(KEYS.to_vec()).prop_map(|key| Key::new(key).unwrap())
}

fn values() -> impl Strategy<Value = Value> {
    let texts = [
        r#"{}"#,
        r#"{"a":1}"#,
        r#"{"a":2,"b":"x"}"#,
        r#"{"a":2,"b":"y"}"#,
        r#"{"a":"2"}"#,
        r#"{"a":null,"b":"x"}"#,
        r#"{"b":[1]}"#,
        r#"{"n":7,"a":3}"#,
        r#"[1]"#,
    ];
    prop::sample::select(texts.to_vec()).prop_map(|text| Value { kind: ContentKind::Json, data: text.into() })
}

fn patches() -> impl Strategy<Value = Patch> {
    let texts = [r#"{"a":5}"#, r#"{"b":"z","a":null}"#, r#"[{"op":"inc","path":"a","value":1}]"#, r#"{"n":null}"#];
    prop::sample::select(texts.to_vec()).prop_map(|text| Patch::read(&json(text), "/patch").unwrap())
}

fn conditions() -> impl Strategy<Value = Criteria> {
    let texts = [
        "[]",
        "[]",
        r#"[{"field":"a","op":"eq","value":2}]"#,
        r#"[{"field":"a","op":"gte","value":"2"}]"#,
        r#"[{"field":"b","op":"in","value":["x","z"]}]"#,
        r#"[{"field":"b","op":"starts","value":"x"},{"field":"a","op":"between","value":[1,3]}]"#,
        r#"[{"field":"a","op":"nexists"}]"#,
        "[{\"field\":\"$key\",\"op\":\"eq\",\"value\":\"c/\u{FFFD}\"}]",
        r#"[{"field":"$key","op":"in","value":[{"base64":"Yy//"},{"base64":"Yy/+"},"c/1"]}]"#,
    ];
    prop::sample::select(texts.to_vec()).prop_map(criteria)
}

fn orders() -> impl Strategy<Value = Order> {
    let orders =
        [vec![], vec![("a", false)], vec![("a", true)], vec![("b", false), ("a", false)], vec![("$key", true)]];
    prop::sample::select(orders.to_vec()).prop_map(|fields| {
        let field = |(name, descending): (&str, bool)| OrderField { field: Field::parse(name).unwrap(), descending };
        Order::new(fields.into_iter().map(field).collect())
    })
}

fn rules() -> impl Strategy<Value = RulesChange> {
    let texts = [
        r#"{"indexes":[["a"]]}"#,
        r#"{"indexes":[["a"],{"fields":["b"],"unique":true}]}"#,
        r#"{"indexes":[["b","a"]],"fields":{"a":{"type":"long","default":1}}}"#,
        r#"{"indexes":[{"fields":["a","b"],"unique":true}],"fields":{"n":{"type":"long","sequence":"s"}},"ttl_ms":8}"#,
        r#"{"required":["a"],"precondition_required":true}"#,
    ];
    prop_oneof![
        8 => prop::sample::select(texts.to_vec()).prop_map(|text| RulesChange::Set(Rules::read(&json(text), "").unwrap())),
        1 => Just(RulesChange::Remove),
    ]
}

fn writes() -> impl Strategy<Value = WriteOp> {
    let change = prop_oneof![
        6 => values().prop_map(Change::Put),
        3 => patches().prop_map(Change::Patch),
        1 => Just(Change::Remove),
        1 => Just(Change::Touch),
        1 => Just(Change::Lock(5)),
    ];
    let expiry = prop_oneof![2 => Just(Expiry::Usual), 2 => Just(Expiry::Keep), 1 => (0..9u64).prop_map(Expiry::After)];
    let expect = prop_oneof![
        4 => Just(Expect::ANY),
        2 => Just(Expect::ABSENT),
        1 => Just(Expect::PRESENT),
        1 => (1..30u64).prop_map(Expect::cas),
    ];
    (keys(), expect, conditions(), change, expiry).prop_map(|(key, expect, condition, change, expiry)| WriteOp {
        key,
        expect,
        condition,
        change,
        expiry,
        return_previous: false,
        session: None,
        guard: None,
    })
}

fn claims() -> impl Strategy<Value = ClaimOp> {
    let prefix = prop::sample::select(vec!["c/", "c", "", "c/3", "d/"]);
    (prefix, conditions(), orders(), 1..4u32, prop::option::weighted(0.4, patches())).prop_map(
        |(prefix, criteria, order, limit, patch)| ClaimOp {
            prefix: prefix.into(),
            criteria,
            order,
            limit,
            lock_ms: 6,
            patch,
            guard: None,
        },
    )
}

fn wheres() -> impl Strategy<Value = WhereOp> {
    let change = prop_oneof![
        3 => patches().prop_map(|patch| WhereChange::Patch { patch, expiry: Expiry::Keep }),
        1 => Just(WhereChange::Remove),
    ];
    let after = prop::option::weighted(0.2, keys());
    (conditions(), conditions(), change, 1..4u32, after).prop_map(|(criteria, condition, change, limit, after)| {
        WhereOp { prefix: b"c/".to_vec(), criteria, condition, change, limit, after, guard: None }
    })
}

fn commands() -> impl Strategy<Value = Command> {
    let action = prop_oneof![
        10 => writes().prop_map(Action::Write),
        2 => prop::collection::vec(writes(), 0..4).prop_map(Action::Bulk),
        2 => prop::collection::vec(writes().prop_map(Step::Write), 0..3).prop_map(|then| Action::Txn(Txn { then, ..Txn::default() })),
        3 => claims().prop_map(Action::Claim),
        2 => wheres().prop_map(Action::Where),
        2 => rules().prop_map(|change| {
            Action::Rules(RulesOp { name: CollectionName::new("c").unwrap(), expect: Expect::ANY, change })
        }),
        1 => (0..4u32).prop_map(|count| Action::Numbers(NumbersOp { name: SequenceName::new("s").unwrap(), count })),
        5 => (1..4u32).prop_map(|rows_max| Action::Maintain(Maintenance::Indexes { rows_max })),
        1 => (0..4u32).prop_map(|limit| Action::Maintain(Maintenance::ExpireDue { limit })),
    ];
    (action, prop::option::weighted(0.3, 0..5u8)).prop_map(|(action, id)| {
        let request_id = id.filter(|_| !matches!(action, Action::Maintain(_))).map(|id| RequestId(format!("r{id}")));
        Command { request_id, principal: String::new(), action, access_revision: None }
    })
}

fn histories() -> impl Strategy<Value = Vec<(u64, Vec<Command>)>> {
    let step = prop_oneof![3 => Just(0), 1 => 1..6u64];
    let command = (commands(), prop::option::weighted(0.1, any::<prop::sample::Index>()));
    prop::collection::vec((step, prop::collection::vec(command, 0..6)), 1..20).prop_map(|steps| {
        let (mut clock, mut sent) = (0, Vec::<Command>::new());
        let mut batches = Vec::new();
        for (step, commands) in steps {
            clock += step;
            let again = |(fresh, again): (Command, Option<prop::sample::Index>)| {
                let command = again.filter(|_| !sent.is_empty()).map_or(fresh, |again| again.get(&sent).clone());
                sent.push(command.clone());
                command
            };
            batches.push((clock, commands.into_iter().map(again).collect()));
        }
        batches
    })
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// The keys that a claim should get: all that match and are not locked, sorted, the first so many.
fn claimable(store: &Store, op: &ClaimOp) -> Vec<Key> {
    let wall = store.vars.wall;
    let name = op.prefix.starts_with(b"c/").then_some(b"c");
    let row = name.and_then(|_| store.rows(family::COLLECTION).into_iter().next());
    let criteria = match row {
        Some((_, row)) => {
            let row: quorate_machine::types::CollectionRow = quorate_machine::codec::decode(&row).unwrap();
            row.rules.converted(&op.criteria, wall).into_owned()
        }
        None => op.criteria.clone(),
    };
    let mut found = Vec::new();
    for (row_key, row) in store.rows(family::ENTRY) {
        let key = Key::new(entry::decode_key(&row_key).unwrap()).unwrap();
        let row = entry::decode(&row).unwrap();
        let is_free = !row.is_expired_at(store.vars.clock) && !row.meta.is_locked_at(store.vars.clock);
        let document = Json::parse(row.data).ok();
        let (meta, clock) = (Some(&row.meta), store.vars.clock);
        let subject = Subject { key: &key, meta, is_locked: false, document: document.as_ref(), clock, wall };
        if is_free && key.as_bytes().starts_with(&op.prefix) && criteria.hold(&subject) {
            found.push((op.order.rank(&subject), key.clone()));
        }
    }
    found.sort();
    found.into_iter().map(|(_, key)| key).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_apply_call_equals_two_cut_anywhere(history in histories()) {
        let batches: Vec<Batch> = history.iter().map(|(clock, commands)| batch(*clock, commands)).collect();
        crate::machine_support::assert_cuts_agree(&batches);
    }

    #[test]
    fn a_dry_run_answers_what_the_command_then_answers(history in histories(), command in commands()) {
        let mut store = Store::default();
        let batches: Vec<Batch> = history.iter().map(|(clock, commands)| batch(*clock, commands)).collect();
        store.apply(&batches).unwrap();
        let dry = machine::evaluate(&store.view, &store.vars, store.index + 1, &command).unwrap();
        let (replies, _) = store.apply(&[batch(store.vars.clock, &[command])]).unwrap();
        prop_assert_eq!(without_keys(&dry), without_keys(&replies[0][0]));
    }

    /// Whatever index is used: the first in the order asked for, each of them once.
    #[test]
    fn a_claim_gets_the_first_that_match(history in histories(), op in claims()) {
        let mut store = Store::default();
        let batches: Vec<Batch> = history.iter().map(|(clock, commands)| batch(*clock, commands)).collect();
        store.apply(&batches).unwrap();
        let expected = claimable(&store, &op);
        let command = Command { request_id: None, principal: String::new(), action: Action::Claim(op.clone()), access_revision: None };
        let (replies, _) = store.apply(&[batch(store.vars.clock, &[command])]).unwrap();
        store.check();
        let Outcome::Claimed(done) = &replies[0][0].outcome else { panic!("{replies:?}") };
        // What the patch does not fit is passed over, and nothing else is.
        prop_assert!(done.refused.is_empty() || op.patch.is_some());
        let refused = |key: &Key| done.refused.iter().any(|item| item.key == *key);
        prop_assert!(done.refused.iter().all(|item| expected.contains(&item.key)));
        let expected: Vec<_> = expected.into_iter().filter(|key| !refused(key)).collect();
        let claimed: Vec<_> = done.entries.iter().map(|(key, _)| key.clone()).collect();
        let wanted = (op.limit as usize).min(expected.len());
        if op.order.by_key() == Some(false) {
            // Without an order any of them will do.
            prop_assert_eq!(claimed.len(), wanted);
            prop_assert!(claimed.iter().all(|key| expected.contains(key)), "{:?} of {:?}", claimed, expected);
        } else {
            prop_assert_eq!(&claimed, &expected[..wanted]);
        }
    }
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
    let command = |action| Command { request_id: None, principal: String::new(), action, access_revision: None };
    let entries = limits::COMMAND_ENTRIES_MAX + 10;
    for first in (0..entries).step_by(limits::COMMAND_WRITES_MAX) {
        let ops = (first..entries.min(first + limits::COMMAND_WRITES_MAX as u64)).map(insert).collect();
        store.apply(&[batch(1, &[command(Action::Bulk(ops))])]).unwrap();
    }
    let due = OrderField { field: Field::parse("due").unwrap(), descending: true };
    let claim = |order: Vec<OrderField>, list: &str| {
        let (criteria, order) = (criteria(list), Order::new(order));
        command(Action::Claim(ClaimOp {
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
    outcome(&mut store, command(Action::Rules(rules)));
    let step = command(Action::Maintain(Maintenance::Indexes { rows_max: 4_000 }));
    while outcome(&mut store, step.clone()) != (Outcome::Maintained { removed: 0, more: false }) {}
    let Outcome::Claimed(last) = outcome(&mut store, claim(vec![due], "[]")) else { panic!("not claimed") };
    assert_eq!((last.examined, last.entries[0].0.to_string()), (1, format!("q/{:06}", entries - 1)));
}

#[test]
fn a_claim_of_large_entries_ends_at_the_bound_of_a_batch() {
    let mut store = Store::default();
    let command = |action| Command { request_id: None, principal: String::new(), action, access_revision: None };
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
        store.apply(&[batch(1, &[command(Action::Write(op))])]).unwrap();
    }
    let patch = Some(Patch::read(&json(r#"{"n":1}"#), "/patch").unwrap());
    let (criteria, order) = (Criteria::default(), Order::new(Vec::new()));
    let op = ClaimOp { prefix: b"q/".to_vec(), criteria, order, limit: 20, lock_ms: 5, patch, guard: None };
    let (replies, _) = store.apply(&[batch(1, &[command(Action::Claim(op))])]).unwrap();
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
