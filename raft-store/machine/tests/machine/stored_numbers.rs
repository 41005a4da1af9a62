//! Numbers beyond the greatest double that are stored: the API takes none, and whatever reads an entry goes on with one all the same.
//!
//! Here the values come past the API, as commands of a log.

use crate::machine_support::{Store, batch};
use quorate_machine::document::{Criteria, Json, Order, Patch};
use quorate_machine::keyspace::family;
use quorate_machine::rules::{CollectionName, Rules};
use quorate_machine::types::*;

/// Finite for one parser, infinite for another.
const NUMBERS: [&str; 4] =
    ["1.79769313486231581e308", "1.797693134862315899e308", "-1.79769313486231585E+308", "1e999"];

fn json(text: &str) -> Json<'_> {
    Json::parse(text.as_bytes()).unwrap()
}

fn criteria(text: &str) -> Criteria {
    Criteria::read(&json(text), "/where").unwrap()
}

fn patch(text: &str) -> Patch {
    Patch::read(&json(text), "/patch").unwrap()
}

fn write(key: &str, change: Change, condition: &str) -> Action {
    Action::Write(WriteOp {
        key: Key::new(key).unwrap(),
        expect: Expect::ANY,
        condition: criteria(condition),
        change,
        expiry: Expiry::Keep,
        return_previous: true,
        session: None,
        guard: None,
    })
}

fn put(key: &str, text: &str) -> Action {
    write(key, Change::Put(Value { kind: ContentKind::Json, data: text.into() }), "[]")
}

fn rules(text: &str) -> Action {
    let change = RulesChange::Set(Rules::read(&json(text), "").unwrap());
    Action::Rules(RulesOp { name: CollectionName::new("c").unwrap(), expect: Expect::ANY, change })
}

fn found(criteria_text: &str, change: WhereChange) -> Action {
    let (criteria, condition) = (criteria(criteria_text), Criteria::default());
    Action::Where(WhereOp { prefix: b"c/".to_vec(), criteria, condition, change, limit: 9, after: None, guard: None })
}

fn claim(criteria_text: &str, patch: Option<Patch>) -> Action {
    Action::Claim(ClaimOp {
        prefix: b"c/".to_vec(),
        criteria: criteria(criteria_text),
        order: Order::new(Vec::new()),
        limit: 9,
        lock_ms: 5,
        patch,
        guard: None,
    })
}

/// Applies a command, with every fault a failure, and checks all rows.
fn apply(store: &mut Store, action: Action) -> Outcome {
    let command = Command { request_id: Some(RequestId(format!("r{}", store.index))), ..Command::unnamed(action) };
    let clock = store.vars.clock + 1;
    let (mut replies, _) = store.apply(&[batch(clock, &[command])]).unwrap();
    store.check();
    replies.remove(0).remove(0).outcome
}

/// The row of a key, as text.
fn value(store: &Store, key: &str) -> Option<String> {
    store.read_at(key.as_bytes(), store.vars.revision).map(|entry| String::from_utf8(entry.value.data).unwrap())
}

fn stored(number: &str) -> Store {
    let mut store = Store::default();
    apply(&mut store, put("c/1", &format!(r#"{{"a":{number},"b":1}}"#)));
    assert!(value(&store, "c/1").unwrap().contains(number));
    store
}

fn each(test: impl Fn(Store, &str)) {
    for number in NUMBERS {
        test(stored(number), number);
    }
}

#[test]
fn a_claim_finds_it_as_the_furthest_number_of_its_sign() {
    each(|mut store, number| {
        let op = if number.starts_with('-') { "lte" } else { "gte" };
        let furthest = number.strip_prefix('-').map_or("1.7976931348623157e308", |_| "-1.7976931348623157e308");
        let where_it_is = format!(r#"[{{"field":"a","op":"{op}","value":{furthest}}}]"#);
        let outcome = apply(&mut store, claim(&where_it_is, None));
        assert!(matches!(&outcome, Outcome::Claimed(claimed) if claimed.entries.len() == 1), "{outcome:?}");
    });
}

#[test]
fn a_claim_with_a_patch_goes_on() {
    each(|mut store, _| {
        apply(&mut store, claim(r#"[{"field":"b","op":"eq","value":1}]"#, Some(patch(r#"{"b":2}"#))));
    });
}

#[test]
fn changes_by_criteria_go_on_and_the_number_is_one() {
    each(|mut store, number| {
        let patch = patch(r#"{"b":2}"#);
        let change = WhereChange::Patch { patch, expiry: Expiry::Keep };
        apply(&mut store, found(r#"[{"field":"b","op":"eq","value":1}]"#, change));
        let sign = if number.starts_with('-') { "-" } else { "" };
        let expected = format!(r#"{{"a":{sign}1.7976931348623157e308,"b":2}}"#);
        assert_eq!(value(&store, "c/1"), Some(expected));
    });
    each(|mut store, _| {
        apply(&mut store, found(r#"[{"field":"b","op":"eq","value":1}]"#, WhereChange::Remove));
        assert_eq!(value(&store, "c/1"), None);
    });
}

#[test]
fn an_index_over_it_is_built_kept_and_dropped() {
    each(|mut store, number| {
        apply(&mut store, rules(r#"{"indexes":[["a"],{"fields":["b"],"unique":true}]}"#));
        while store.rows(family::INDEX).len() < 2 {
            apply(&mut store, Action::Maintain(Maintenance::Indexes { rows_max: 1 }));
        }
        apply(&mut store, put("c/2", &format!(r#"{{"a":[{number}],"b":2}}"#)));
        apply(&mut store, put("c/2", &format!(r#"{{"a":{number},"b":3}}"#)));
        apply(&mut store, put("c/1", r#"{"a":1,"b":1}"#));
        apply(&mut store, write("c/2", Change::Remove, "[]"));
    });
}

#[test]
fn rules_that_ask_for_documents_read_it() {
    let mut store = stored(NUMBERS[0]);
    apply(&mut store, rules(r#"{"required":["b"]}"#));
    let outcome = apply(&mut store, put("c/1", r#"{"a":1e999,"b":2}"#));
    assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
}

#[test]
fn writes_and_checks_read_it() {
    let condition = r#"[{"field":"b","op":"eq","value":1}]"#;
    let mut store = stored(NUMBERS[0]);
    let check = Check { key: Key::new("c/1").unwrap(), expect: Expect::ANY, condition: criteria(condition) };
    let outcome = apply(&mut store, Action::Txn(Txn { checks: vec![check], ..Txn::default() }));
    assert!(matches!(&outcome, Outcome::Txn(done) if done.succeeded()), "{outcome:?}");
    let outcome = apply(&mut store, write("c/1", Change::Touch, condition));
    assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    let outcome = apply(&mut store, write("c/1", Change::Patch(patch(r#"{"b":2}"#)), "[]"));
    assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
}

#[test]
fn what_is_stored_is_read_more_leniently_in_nothing_else() {
    for text in ["1", r#"{"a":[1.5e3,-0,"x"]}"#, "1.7976931348623157e308", "1.79769313486231580e308"] {
        assert_eq!(Json::parse_stored(text.as_bytes()), Json::parse(text.as_bytes()), "{text}");
    }
    let too_deep = format!("{}1e999{}", "[".repeat(65), "]".repeat(65));
    for text in ["", "{", "1e", "01", "1e999x", "\"\\ud800\"", &too_deep] {
        assert!(Json::parse_stored(text.as_bytes()).is_err(), "{text}");
    }
    // What was read is text that everything reads.
    let read = Json::parse_stored(b"[-1e999,1e999]").unwrap();
    assert_eq!(read.to_text(), "[-1.7976931348623157e308,1.7976931348623157e308]");
    assert_eq!(Json::parse(read.to_text().as_bytes()).as_ref(), Ok(&read));
}
