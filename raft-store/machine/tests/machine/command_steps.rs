//! The work that one command does on documents, in steps: the dearest command of each kind is refused and changes nothing, and all steps
//! count for the batch.

use crate::machine_support::bounds::{self, keep};
use crate::machine_support::{Store, batch};
use quorate_machine::document::path::{Field, MetaField};
use quorate_machine::document::{Criteria, Json, Order, OrderField, Patch, Steps, Subject, TooDear};
use quorate_machine::keyspace::family;
use quorate_machine::limits;
use quorate_machine::machine::{self, Applier};
use quorate_machine::types::*;

/// Elements of the list that conditions look through and patches move.
const ELEMENTS: usize = 250_000;

/// More than one command takes of the bound of a batch: all its steps, and what a transaction may read and write.
const TAKEN_MAX: usize = 3 * limits::BATCH_EFFECT_BYTES_MAX;

fn json(text: &str) -> Json<'static> {
    Json::parse(text.as_bytes()).unwrap().into_owned()
}

fn criteria(terms: &[String]) -> Criteria {
    Criteria::read(&json(&format!("[{}]", terms.join(","))), "/if").unwrap()
}

/// A condition that looks through all of the list, and holds.
fn through_all() -> String {
    r#"{"field":"a","op":"ncontains","value":7}"#.to_owned()
}

fn dearest_criteria() -> Criteria {
    criteria(&vec![through_all(); limits::CRITERIA_TERMS_MAX])
}

/// A patch that repeats an operation as often as a patch may.
fn patch_of(operation: &str) -> Patch {
    let operations = vec![operation.to_owned(); limits::PATCH_OPERATIONS_MAX];
    Patch::read(&json(&format!("[{}]", operations.join(","))), "/patch").unwrap()
}

/// Moves all of the list twice with each operation.
fn dearest_patch() -> Patch {
    patch_of(r#"{"op":"move","from":"/a/0","path":"/a/1"}"#)
}

fn list_of(elements: usize) -> String {
    format!(r#"{{"a":[{}]}}"#, vec!["0"; elements].join(","))
}

fn write(key: &str, change: Change, condition: Criteria) -> WriteOp {
    WriteOp { condition, ..bounds::write(key, change) }
}

fn document(key: &str, text: String) -> WriteOp {
    bounds::write(key, bounds::json(text))
}

fn touch(key: &str, condition: Criteria) -> WriteOp {
    write(key, Change::Touch, condition)
}

fn check(key: &str, condition: Criteria) -> Check {
    Check { key: Key::new(key).unwrap(), expect: Expect::ANY, condition }
}

fn where_op(criteria: Criteria, change: WhereChange) -> WhereOp {
    bounds::found("d/", criteria, change)
}

fn claim(criteria: Criteria, patch: Option<Patch>) -> Action {
    Action::Claim(ClaimOp { patch, ..bounds::claim("d/", criteria) })
}

/// Applies one command, and fails where it takes more than one may.
fn applied(store: &mut Store, action: Action) -> Outcome {
    let batch = batch(2, &[Command::unnamed(action)]);
    let mut applier = Applier::new(&store.view, store.vars.clone()).within(store.bounds);
    let mut replies = applier.apply_batch(store.index + 1, &batch).unwrap();
    let taken = applier.taken_bytes();
    let applied = applier.finish();
    assert!(taken < TAKEN_MAX, "{taken} bytes were taken by {:?}", replies[0].outcome);
    keep(store, &batch, &replies, applied);
    replies.remove(0).outcome
}

/// A small document and, behind it, one with a long list.
fn store() -> Store {
    let mut store = Store::default();
    for op in [document("d/0", list_of(1)), document("d/1", list_of(ELEMENTS))] {
        let outcome = applied(&mut store, Action::Write(op));
        assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    }
    store
}

fn is_dear(why: &Rejection) -> bool {
    matches!(why, Rejection::TooDear(TooDear { limit, actual })
        if *limit == limits::COMMAND_STEPS_MAX && actual > limit)
}

/// The place where a command was refused: empty for one that is no transaction.
fn dear_place(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Rejected(why) if is_dear(why) => "",
        Outcome::TxnRejected(rejected) if is_dear(&rejected.why) => &rejected.pointer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_dearest_command_of_each_kind_is_refused_and_changes_nothing() {
    let mut store = store();
    let (revision, rows) = (store.vars.revision, store.rows(family::ENTRY));
    let any = format!(r#"{{"any":[{}]}}"#, vec![through_all().replace("ncontains", "contains"); 32].join(","));
    let unset = patch_of(r#"{"op":"unset","path":"a.0"}"#);
    let patched = |patch| write("d/1", Change::Patch(patch), Criteria::default());
    let small = || Step::Write(touch("d/0", Criteria::default()));
    let once = || criteria(&[through_all()]);
    for (action, place) in [
        (Action::Write(touch("d/1", dearest_criteria())), ""),
        (Action::Write(touch("d/1", criteria(&[any]))), ""),
        (Action::Write(patched(dearest_patch())), ""),
        (Action::Write(patched(unset)), ""),
        (Action::Txn(Txn { checks: vec![check("d/1", dearest_criteria())], ..Txn::default() }), "/if/0"),
        // Each for itself is not too dear.
        (Action::Txn(Txn { checks: (0..8).map(|_| check("d/1", once())).collect(), ..Txn::default() }), "/if/2"),
        (Action::Txn(Txn { then: vec![small(), Step::Write(patched(dearest_patch()))], ..Txn::default() }), "/then/1"),
    ] {
        let command = Command::unnamed(action.clone());
        let dry = machine::evaluate(&store.view, &store.vars, store.index, &command).unwrap();
        assert_eq!(dear_place(&dry.outcome), place);
        assert_eq!(dear_place(&applied(&mut store, action)), place);
        assert_eq!(store.vars.revision, revision);
        assert!(store.rows(family::ENTRY) == rows, "entries changed");
        store.check();
    }
}

#[test]
fn a_write_of_a_bulk_is_refused_alone_and_takes_all_of_the_batch() {
    let mut store = store();
    let ops = [touch("d/0", Criteria::default()), touch("d/1", dearest_criteria()), touch("d/0", Criteria::default())];
    let Outcome::Bulk(items) = applied(&mut store, Action::Bulk(ops.to_vec())) else { panic!("no bulk") };
    let [first, second, third] = items.as_slice() else { panic!("{items:?}") };
    assert!(matches!(first.outcome, ItemOutcome::Written(_)), "{first:?}");
    assert!(matches!(&second.outcome, ItemOutcome::Rejected(why) if is_dear(why)), "{second:?}");
    assert_eq!(third.outcome, ItemOutcome::Deferred);
    store.check();
}

#[test]
fn a_change_of_what_matches_passes_over_what_is_too_dear_to_judge() {
    let mut store = store();
    applied(&mut store, Action::Write(document("d/2", list_of(1))));
    let op = where_op(dearest_criteria(), WhereChange::Remove);
    let Outcome::Where(done) = applied(&mut store, Action::Where(op.clone())) else { panic!("refused") };
    // The one that was too dear took all of the batch.
    let after = Some(Key::new("d/1").unwrap());
    assert_eq!((done.matched, done.applied, done.failed, &done.after), (2, 1, 1, &after));
    let [WhereItem { n: 1, key, why }] = done.items.as_slice() else { panic!("{:?}", done.items) };
    assert!(Some(key) == after.as_ref() && is_dear(why), "{key} {why:?}");
    let Outcome::Where(done) = applied(&mut store, Action::Where(WhereOp { after, ..op })) else { panic!("refused") };
    assert_eq!((done.matched, done.applied, done.failed, done.after), (1, 1, 0, None));
    assert_eq!(store.rows(family::ENTRY).len(), 1, "only the one that was too dear is left");
    store.check();
}

#[test]
fn a_claim_ends_before_what_is_too_dear_to_judge_and_is_refused_where_it_begins_with_that() {
    let mut store = store();
    let backwards = Order::new(vec![OrderField { field: Field::Meta(MetaField::Version), descending: true }]);
    let Action::Claim(ordered) = claim(dearest_criteria(), None) else { unreachable!() };
    let ordered = Action::Claim(ClaimOp { order: backwards, ..ordered });
    assert_eq!(dear_place(&applied(&mut store, ordered)), "", "which come first is not known without it");
    let Outcome::Claimed(done) = applied(&mut store, claim(dearest_criteria(), None)) else { panic!("refused") };
    let [(key, _)] = done.entries.as_slice() else { panic!("{done:?}") };
    assert_eq!((key, done.more), (&Key::new("d/0").unwrap(), true));
    let revision = store.vars.revision;
    let outcome = applied(&mut store, claim(dearest_criteria(), None));
    assert_eq!((dear_place(&outcome), store.vars.revision), ("", revision));
    store.check();
}

#[test]
fn an_entry_that_is_too_dear_to_change_is_passed_over() {
    let mut store = store();
    let both = || criteria(&[r#"{"field":"$version","op":"eq","value":1}"#.to_owned()]);
    let change = WhereChange::Patch { patch: dearest_patch(), expiry: Expiry::Keep };
    let Outcome::Where(done) = applied(&mut store, Action::Where(where_op(both(), change))) else { panic!("refused") };
    // The small one has no second element to move to.
    assert_eq!((done.matched, done.failed, done.after), (2, 2, None));
    assert!(is_dear(&done.items[1].why), "{:?}", done.items);
    let Outcome::Claimed(done) = applied(&mut store, claim(both(), Some(dearest_patch()))) else { panic!("refused") };
    assert!(done.entries.is_empty() && is_dear(&done.refused[1].why), "{done:?}");
    store.check();
}

#[test]
fn the_largest_document_takes_conditions_that_look_at_little_of_it() {
    let mut store = Store::default();
    // The most elements that fit.
    let text = list_of((limits::VALUE_BYTES_MAX - 8) / 2);
    assert!(text.len() > limits::VALUE_BYTES_MAX - 4, "{} bytes", text.len());
    applied(&mut store, Action::Write(document("d/1", text)));
    let few = vec![r#"{"field":"a.700000","op":"eq","value":0}"#.to_owned(); limits::CRITERIA_TERMS_MAX];
    let outcome = applied(&mut store, Action::Write(touch("d/1", criteria(&few))));
    assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    store.check();
}

#[test]
fn a_long_list_takes_a_few_conditions_and_any_short_patch() {
    let mut store = store();
    let patches = [
        r#"[{"op":"replace","path":"/a/0","value":1}]"#,
        r#"[{"op":"move","from":"/a/0","path":"/a/1"}]"#,
        r#"[{"op":"inc","path":"a.1","value":1}]"#,
    ];
    for text in patches {
        let patch = Patch::read(&json(text), "/patch").unwrap();
        let outcome = applied(&mut store, Action::Write(write("d/1", Change::Patch(patch), Criteria::default())));
        assert!(matches!(outcome, Outcome::Written(_)), "{text}: {outcome:?}");
    }
    let conditions = criteria(&vec![through_all(); 3]);
    let outcome = applied(&mut store, Action::Write(touch("d/1", conditions)));
    assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    store.check();
}

/// An object with `count` members, in the order of their names.
fn members_of(count: usize) -> String {
    let members: Vec<_> = (0..count).map(|n| format!("\"{n:06}\":0")).collect();
    format!("{{{}}}", members.join(","))
}

#[test]
fn a_merge_counts_what_it_puts_in_order_and_looks_for() {
    let mut store = Store::default();
    applied(&mut store, Action::Write(document("d/1", members_of(100_000))));
    let merged = |store: &mut Store, count: usize| {
        let patch = Patch::merge(json(&members_of(count))).unwrap();
        applied(store, Action::Write(write("d/1", Change::Patch(patch), Criteria::default())))
    };
    let few = merged(&mut store, 1_000);
    assert!(matches!(few, Outcome::Written(_)), "{few:?}");
    let revision = store.vars.revision;
    let many = merged(&mut store, 100_000);
    assert_eq!((dear_place(&many), store.vars.revision), ("", revision));
    store.check();
}

/// Gives the entries of `d/` rules.
fn declare(store: &mut Store, text: &str) {
    let outcome = applied(store, bounds::declare("d", text));
    assert!(matches!(outcome, Outcome::RulesSet(Some(_))), "{outcome:?}");
}

/// Rules of so many fields, none of which is among [`members_of`].
fn fields(count: usize) -> String {
    let fields: Vec<_> = (0..count).map(|n| format!(r#""f{n}":{{"type":"long"}}"#)).collect();
    format!(r#"{{"fields":{{{}}}}}"#, fields.join(","))
}

#[test]
fn a_document_that_is_too_dear_for_the_rules_of_its_collection_is_refused_and_can_be_removed() {
    let mut store = Store::default();
    let wide = || Action::Write(document("d/1", members_of(100_000)));
    applied(&mut store, wide());
    declare(&mut store, &fields(8));
    let outcome = applied(&mut store, wide());
    assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    declare(&mut store, &fields(limits::RULE_FIELDS_MAX));
    let revision = store.vars.revision;
    assert_eq!((dear_place(&applied(&mut store, wide())), store.vars.revision), ("", revision));
    // A long list is one member.
    let outcome = applied(&mut store, Action::Write(document("d/2", list_of(ELEMENTS))));
    assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    let outcome = applied(&mut store, Action::Write(write("d/1", Change::Remove, Criteria::default())));
    assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    store.check();
}

#[test]
fn what_indexes_keep_of_a_value_counts_once() {
    let mut store = Store::default();
    let fields = |nth: usize| (0..limits::INDEX_FIELDS_MAX).map(|at| format!(r#""f{nth}_{at}""#)).collect::<Vec<_>>();
    let indexes: Vec<_> = (0..limits::INDEXES_MAX).map(|nth| format!("[{}]", fields(nth).join(","))).collect();
    declare(&mut store, &format!(r#"{{"indexes":[{}]}}"#, indexes.join(",")));
    // It takes 1,350,000 steps to be parsed, and 11 for each member, which is looked for among 128 names.
    let wide = || Action::Write(document("d/1", members_of(100_000)));
    store.bounds.command_steps = 2_440_000;
    let refused = applied(&mut store, wide());
    assert!(matches!(&refused, Outcome::Rejected(Rejection::TooDear(_))), "{refused:?}");
    store.bounds.command_steps = 2_500_000;
    let outcome = applied(&mut store, wide());
    assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    store.check();
}

#[test]
fn what_is_buried_before_a_transaction_is_not_counted_as_its_own() {
    let mut store = Store::default();
    declare(&mut store, r#"{"indexes":[["b"]]}"#);
    let long = |nth: usize| document(&format!("d/{nth}"), list_of(ELEMENTS));
    for op in [0, 1, 2].map(|nth| WriteOp { expiry: Expiry::After(1), ..long(nth) }).into_iter().chain([long(3)]) {
        let outcome = applied(&mut store, Action::Write(op));
        assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    }
    let later = batch(100, &[]);
    let mut applier = Applier::new(&store.view, store.vars.clone());
    let replies = applier.apply_batch(store.index + 1, &later).unwrap();
    let applied_later = applier.finish();
    keep(&mut store, &later, &replies, applied_later);
    // Three are parsed to be taken out of the index, and one is parsed and looked through three times: 6.5 million steps. A
    // command may take 4.2.
    let checks = vec![check("d/3", criteria(&vec![through_all(); 3]))];
    let then = (0..3).map(|nth| Step::Write(document(&format!("d/{nth}"), list_of(1)))).collect();
    let outcome = applied(&mut store, Action::Txn(Txn { checks, then, ..Txn::default() }));
    assert!(matches!(outcome, Outcome::Txn(_)), "{outcome:?}");
    assert_eq!(store.rows(family::ENTRY).len(), 4);
    store.check();
}

/// To take the longest list out of an index takes about all of what a batch may. Nobody can refuse that, and renewals must not wait for it.
#[test]
fn an_entry_that_goes_with_its_session_leaves_commands_their_half() {
    let mut store = Store::default();
    declare(&mut store, r#"{"indexes":[["b"]]}"#);
    let create = SessionOp::Create { ttl_ms: 1_000, owner: String::new(), labels: Vec::new() };
    let Outcome::Session(SessionReply::Created { id, .. }) = applied(&mut store, Action::Session(create)) else {
        panic!("no session")
    };
    let longest = document("d/1", list_of((limits::VALUE_BYTES_MAX - 8) / 2));
    let outcome = applied(&mut store, Action::Write(WriteOp { session: Some(id), ..longest }));
    assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    let later = batch(1_000_000, &[Command::unnamed(Action::Write(document("d/2", list_of(1))))]);
    let mut applier = Applier::new(&store.view, store.vars.clone());
    let replies = applier.apply_batch(store.index + 1, &later).unwrap();
    let applied_later = applier.finish();
    assert!(matches!(replies[0].outcome, Outcome::Written(_)), "{replies:?}");
    keep(&mut store, &later, &replies, applied_later);
    assert_eq!(store.rows(family::ENTRY).len(), 1, "the one of the session is gone");
    store.check();
}

#[test]
fn an_index_is_built_in_parts_where_documents_are_long() {
    let mut store = Store::default();
    for n in 0..5 {
        let outcome = applied(&mut store, Action::Write(document(&format!("d/{n}"), list_of(ELEMENTS))));
        assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    }
    declare(&mut store, r#"{"indexes":[["b"],["a"]]}"#);
    let mut parts = Vec::new();
    loop {
        let step = Maintenance::Indexes { rows_max: u32::MAX };
        let Outcome::Maintained { removed, more } = applied(&mut store, Action::Maintain(step)) else {
            panic!("refused")
        };
        if !more {
            break;
        }
        parts.push(removed);
    }
    // Each takes 3 MB of the bound: it is read, and it is parsed.
    assert_eq!(parts, [2, 2, 1, 2, 2, 1]);
    store.check();
}

#[test]
fn each_look_counts() {
    let key = Key::new("k").unwrap();
    let many = format!("\"{}\"", "x".repeat(400));
    let rows = [
        // The predicate, the members of each object on the way, the elements, which are two steps each.
        (r#"{"a":1,"b":[1,2,3]}"#.to_owned(), r#"{"field":"b","op":"contains","value":7}"#, 1 + 2 + 2 * 3),
        (r#"{"a":{"b":1,"c":2,"d":3}}"#.to_owned(), r#"{"field":"a.d","op":"eq","value":4}"#, 1 + 1 + 3 + 1),
        (r#"{"a":[0,0]}"#.to_owned(), r#"{"field":"a.1","op":"exists"}"#, 1 + 1),
        // One that is not found is looked for as long.
        (r#"{"a":1,"b":2}"#.to_owned(), r#"{"field":"c","op":"exists"}"#, 1 + 2),
        (format!(r#"{{"a":{many}}}"#), r#"{"field":"a","op":"contains","value":"yyyy"}"#, 1 + 1 + 101),
        (format!(r#"{{"a":{many}}}"#), r#"{"field":"a","op":"like","value":"%y%"}"#, 1 + 1 + 403),
        // Elements of lists of the same length are looked at, too.
        (r#"{"a":[[1],[2],[1,2]]}"#.to_owned(), r#"{"field":"a","op":"contains","value":[3]}"#, 1 + 1 + 2 * 3 + 2 * 2),
    ];
    let meta = None;
    for (text, term, expected) in rows {
        let document = json(&text);
        let subject =
            Subject { key: &key, meta, is_locked: false, document: Some(&document), clock: 0, wall: 1_000_000 };
        let criteria = criteria(&[term.to_owned()]);
        let steps = Steps::unbounded();
        let held = criteria.ready().hold_within(&subject, &steps);
        assert_eq!((held, steps.taken()), (Ok(criteria.hold(&subject)), expected), "{term} of {text}");
        let (limit, actual) = (expected - 1, expected);
        let dear = Err(TooDear { limit, actual });
        assert_eq!(criteria.ready().hold_within(&subject, &Steps::up_to(limit)), dear, "{term} of {text}");
        // To say why it does not hold takes more.
        let steps = Steps::up_to(expected);
        assert!(criteria.unmet_within(&subject, "/if", &steps).is_ok() == criteria.hold(&subject), "{term} of {text}");
    }
}

/// Two objects of the same names, each of many bytes that differ at their end only.
#[test]
fn long_names_count_where_objects_are_compared() {
    let key = Key::new("k").unwrap();
    let taken = |name: &str| {
        let members: Vec<_> = (0..64).map(|n| format!("\"{name}{n:02}\":0")).collect();
        let document = json(&format!("{{\"a\":{{{}}}}}", members.join(",")));
        let subject = Subject { key: &key, meta: None, is_locked: false, document: Some(&document), clock: 0, wall: 0 };
        let value = members.iter().rev().cloned().collect::<Vec<_>>().join(",");
        let steps = Steps::unbounded();
        let term = criteria(&[format!(r#"{{"field":"a","op":"eq","value":{{{value}}}}}"#)]);
        assert_eq!(term.ready().hold_within(&subject, &steps), Ok(true));
        steps.taken()
    };
    // Both are put in order: 64 names of 6,400 bytes more, seven times, 64 bytes in a step.
    assert_eq!(taken(&"x".repeat(6_400)) - taken(""), 2 * 64 * 6_400 * 7 / 64);
}

/// The number that is given is read once, however many elements it is compared with.
#[test]
fn a_long_number_is_not_read_for_each_element() {
    let key = Key::new("k").unwrap();
    let document = json(&list_of(10_000));
    let subject = Subject { key: &key, meta: None, is_locked: false, document: Some(&document), clock: 0, wall: 0 };
    let term = |value: &str| criteria(&[format!(r#"{{"field":"a","op":"contains","value":{value}}}"#)]);
    let long = format!("1.{}", "0".repeat(80_000));
    for (value, most) in [(long.clone(), 30_100), (format!("[{long}]"), 20_100)] {
        let steps = Steps::unbounded();
        assert_eq!(term(&value).ready().hold_within(&subject, &steps), Ok(false));
        assert!(steps.taken() < most, "{} steps", steps.taken());
    }
    // Within lists it is, and that counts.
    let lists = json(&format!(r#"{{"a":[{}]}}"#, vec!["[0]"; 1_000].join(",")));
    let subject = Subject { document: Some(&lists), ..subject };
    let steps = Steps::up_to(limits::COMMAND_STEPS_MAX);
    assert!(term(&format!("[{long}]")).ready().hold_within(&subject, &steps).is_err(), "{} steps", steps.taken());
}
