//! What rules make of a document: tables, those of `testscripts/documents/rule_*` among them, and properties of every outcome.
//!
//! The seed of a failure is printed by proptest; `PROPTEST_CASES` sets how many are tried.

use crate::document_support::{json, objects, table, texts};
use proptest::prelude::*;
use quorate_machine::document::{Criteria, Json, Steps, Subject, TooDear, time};
use quorate_machine::rules::{FieldKind, RuleFault, RuleFaultKind, Rules, SequenceName};
use quorate_machine::types::Key;
use quorate_machine::{codec, limits};

/// 2026-11-21T01:06:00.123Z.
const WALL: u64 = 1_795_223_160_123;
const NOW: &str = "\"2026-11-21T01:06:00.123Z\"";

fn rules(text: &str) -> Rules {
    Rules::read(&json(text), "").unwrap_or_else(|faults| panic!("{text}: {faults:?}"))
}

/// The document, if it is accepted, and the sequences asked, which begin at 100.
fn run(rules: &Rules, old: Option<&str>, new: &str) -> (Result<String, Vec<RuleFault>>, Vec<String>) {
    let (old, new) = (old.map(json), json(new));
    let mut drawn = Vec::new();
    let mut next = |name: &SequenceName| {
        drawn.push(name.as_str().to_owned());
        99 + drawn.len() as u64
    };
    let outcome = rules.conform(old.as_ref(), new.clone(), WALL, &mut next, &Steps::unbounded()).unwrap();
    let outcome = outcome.map(|conformed| {
        assert_eq!(conformed.is_changed, conformed.document != new, "{conformed:?} of {new:?}");
        conformed.document.to_text()
    });
    if let Err(faults) = &outcome {
        assert!(
            !faults.is_empty() && faults.len() <= limits::RULE_FAULTS_MAX && drawn.is_empty(),
            "{faults:?} {drawn:?}"
        );
        assert_eq!(&codec::decode::<Vec<RuleFault>>(&codec::encode(faults)).unwrap(), faults);
    }
    (outcome, drawn)
}

fn conformed(rules: &Rules, old: Option<&str>, new: &str) -> String {
    run(rules, old, new).0.unwrap_or_else(|faults| panic!("{new}: {faults:?}"))
}

fn faults(rules: &Rules, new: &str) -> Vec<(String, RuleFaultKind)> {
    let faults = run(rules, None, new).0.expect_err(new);
    faults.into_iter().map(|RuleFault { pointer, kind }| (pointer, kind)).collect()
}

/// The members of each object on the way, twice as many where the field is given a value.
#[test]
fn each_look_for_a_field_is_a_step() {
    let old = json(r#"{"a":1,"b":2,"c":3}"#);
    for (text, expected) in [
        (r#"{"fields":{"b":{"type":"long"}}}"#, 2),
        (r#"{"fields":{"b":{"type":"any"}},"required":["a","b"]}"#, 2 + 2 + 2),
        (r#"{"fields":{"c":{"type":"long","default":7}}}"#, 2 + 2 * 2),
        // In the old document, too, and once more for the number.
        (r#"{"fields":{"c":{"type":"long","sequence":"s"}}}"#, 2 + 3 + 2 * 2 + 2 * 3),
        // A text is read to become a time.
        (r#"{"fields":{"b":{"type":"datetime"}}}"#, 2 + 20 / 2 + 2 * 2),
    ] {
        let is_time = text.contains("datetime");
        let new = json(if is_time { r#"{"a":1,"b":"2026-11-21T01:06:00Z"}"# } else { r#"{"a":1,"b":2}"# });
        let rules = rules(text);
        let taken = |most| {
            let steps = Steps::up_to(most);
            let outcome = rules.conform(Some(&old), new.clone(), WALL, &mut |_| 1, &steps);
            outcome.map(|conformed| (conformed.is_ok(), steps.taken()))
        };
        assert_eq!(taken(expected), Ok((true, expected)), "{text}");
        assert_eq!(taken(expected - 1), Err(TooDear { limit: expected - 1, actual: expected }), "{text}");
    }
}

#[test]
fn a_value_becomes_of_the_type_of_its_field_or_is_refused() {
    let rows = table("rule_types");
    assert!(FieldKind::NAMES.iter().all(|(kind, _)| rows.iter().any(|row| row[0] == *kind)), "a type is missing");
    for row in &rows {
        let [kind, given, becomes] = &row[..] else { panic!("{row:?}") };
        let rules = rules(&format!(r#"{{"fields":{{"x":{{"type":"{kind}"}}}}}}"#));
        if becomes == "refused" {
            let expected = ("/value/x".to_owned(), RuleFaultKind::Type(FieldKind::parse(kind).unwrap()));
            assert_eq!(faults(&rules, &format!("{{\"x\":{given}}}")), [expected], "{given} as {kind}");
        } else {
            let document = |value| format!("{{\"a\":1.0,\"x\":{value},\"b\":{{}}}}");
            assert_eq!(conformed(&rules, None, &document(given)), document(becomes), "{given} as {kind}");
        }
    }
}

#[test]
fn times_as_text_sort_as_the_times_do() {
    let mut texts: Vec<_> = [
        i64::MIN,
        -62_167_219_200_001,
        -62_167_219_200_000,
        -1,
        0,
        1,
        1_795_223_160_123,
        253_402_300_799_999,
        253_402_300_800_000,
        i64::MAX,
    ]
    .into_iter()
    .map(time::from_unix_ms)
    .collect();
    assert_eq!((texts[1].take(), texts[8].take()), (None, None));
    let texts: Vec<_> = texts.into_iter().flatten().collect();
    assert_eq!(texts.len(), 6);
    assert!(texts.is_sorted(), "{texts:?}");
}

#[test]
fn a_default_fills_what_is_missing_and_nothing_else() {
    let rules =
        rules(r#"{"fields":{"s":{"type":"varchar","default":5},"o.p":{"default":[1]},"l.0.q":{"default":true}}}"#);
    for (given, becomes) in [
        ("{}", r#"{"l":{"0":{"q":true}},"o":{"p":[1]},"s":"5"}"#),
        (r#"{"s":null,"o":{"p":null},"l":[{"q":0}]}"#, r#"{"s":null,"o":{"p":null},"l":[{"q":0}]}"#),
        (r#"{"l":[{}],"s":"","o":{"x":1}}"#, r#"{"l":[{"q":true}],"s":"","o":{"x":1,"p":[1]}}"#),
    ] {
        assert_eq!(conformed(&rules, None, given), becomes);
    }
    for (given, pointer) in [
        (r#"{"o":null,"l":[{}]}"#, "/value/o/p"),
        (r#"{"o":"text","l":[{}]}"#, "/value/o/p"),
        (r#"{"l":[]}"#, "/value/l/0/q"),
    ] {
        assert_eq!(faults(&rules, given), [(pointer.to_owned(), RuleFaultKind::NoPlace)], "{given}");
    }
}

#[test]
fn what_a_default_brings_is_held_to_the_rules_inside_of_it() {
    let rules = rules(
        r#"{"fields":{"o":{"type":"object","default":{"n":"7"}},"o.n":{"type":"long"},"o.m":{"default":1}},"required":["o.n"]}"#,
    );
    assert_eq!(conformed(&rules, None, "{}"), r#"{"o":{"n":7,"m":1}}"#);
}

#[test]
fn a_sequence_numbers_each_write_that_does_not_set_the_field() {
    let rules = rules(r#"{"fields":{"a.n":{"type":"long","sequence":"s/1"},"m":{"sequence":"s/2"}}}"#);
    // Old document, new one, what it becomes, sequences asked.
    let table: &[(Option<&str>, &str, &str, &[&str])] = &[
        (None, "{}", r#"{"a":{"n":100},"m":101}"#, &["s/1", "s/2"]),
        (None, r#"{"a":{"n":5},"m":null}"#, r#"{"a":{"n":5},"m":100}"#, &["s/2"]),
        (Some(r#"{"a":{"n":5},"m":"x"}"#), r#"{"a":{"n":5.0},"m":"x"}"#, r#"{"a":{"n":100},"m":101}"#, &["s/1", "s/2"]),
        (Some(r#"{"a":{"n":5},"m":1}"#), r#"{"a":{"n":"5"},"m":"1"}"#, r#"{"a":{"n":100},"m":"1"}"#, &["s/1"]),
        (Some(r#"{"a":{"n":"5"},"m":1}"#), r#"{"a":{"n":"5"},"m":2}"#, r#"{"a":{"n":100},"m":2}"#, &["s/1"]),
        (Some(r#"{"a":{"n":5},"m":1}"#), r#"{"a":{"n":6},"m":[]}"#, r#"{"a":{"n":6},"m":[]}"#, &[]),
        (Some(r#"{"a":{"n":5},"m":1}"#), r#"{"a":{}}"#, r#"{"a":{"n":100},"m":101}"#, &["s/1", "s/2"]),
        (Some("[]"), r#"{"a":{"n":1}}"#, r#"{"a":{"n":1},"m":100}"#, &["s/2"]),
    ];
    for (old, new, becomes, asked) in table {
        let (outcome, drawn) = run(&rules, *old, new);
        assert_eq!(outcome.as_deref(), Ok(*becomes), "{old:?} {new}");
        assert_eq!(drawn, *asked, "{old:?} {new}");
    }
}

#[test]
fn no_number_is_drawn_for_a_document_that_is_refused() {
    let rules = rules(r#"{"fields":{"a":{"type":"long","sequence":"s"},"z":{"type":"long"}},"required":["y"]}"#);
    for new in [r#"{"y":1,"z":"x"}"#, "{}", r#"{"y":null}"#, "[]", "1"] {
        let (outcome, drawn) = run(&rules, None, new);
        assert!(outcome.is_err() && drawn.is_empty(), "{new}: {outcome:?} {drawn:?}");
    }
}

#[test]
fn an_automatic_time_is_that_of_the_write_unless_the_write_brings_another() {
    let rules =
        rules(r#"{"fields":{"d":{"type":"datetime","auto_update":true},"n":{"type":"long","auto_update":true}}}"#);
    let now = format!(r#"{{"d":{NOW},"n":{WALL}}}"#);
    let old = r#"{"d":"2020-01-01T00:00:00.000Z","n":5}"#;
    for (old, new, becomes) in [
        (None, "{}", now.as_str()),
        (None, r#"{"d":null,"n":null}"#, &now),
        (Some(old), old, &now),
        (Some(old), r#"{"d":"2020-01-01T01:00:00+01:00","n":"5"}"#, &now),
        (Some(old), r#"{"d":0,"n":6}"#, r#"{"d":"1970-01-01T00:00:00.000Z","n":6}"#),
    ] {
        assert_eq!(conformed(&rules, old, new), becomes, "{old:?} {new}");
    }
}

#[test]
fn required_fields_are_there_after_all_that_fills_them() {
    let rules = rules(
        r#"{"fields":{"d":{"default":1},"n":{"sequence":"s"},"o.x":{"default":1}},"required":["a","d","n","o","o.x","l.1"]}"#,
    );
    assert_eq!(conformed(&rules, None, r#"{"a":0,"l":[0,0]}"#), r#"{"a":0,"l":[0,0],"d":1,"n":100,"o":{"x":1}}"#);
    let required = |pointer: &str| (pointer.to_owned(), RuleFaultKind::Required);
    assert_eq!(faults(&rules, r#"{"a":null,"l":[0],"d":null}"#), ["/value/a", "/value/d", "/value/l/1"].map(required));
    assert_eq!(
        faults(&rules, r#"{"a":1,"l":[0,0],"o":null}"#),
        [("/value/o/x".to_owned(), RuleFaultKind::NoPlace), required("/value/o"),]
    );
}

#[test]
fn a_varchar_has_at_most_so_many_bytes() {
    let rules = rules(r#"{"fields":{"x":{"type":"varchar","max":3}}}"#);
    for (given, becomes) in [("\"abc\"", "\"abc\""), ("\"aü\"", "\"aü\""), ("1.5", "\"1.5\""), ("null", "null")] {
        assert_eq!(conformed(&rules, None, &format!("{{\"x\":{given}}}")), format!("{{\"x\":{becomes}}}"));
    }
    for (given, actual) in [("\"abcd\"", 4), ("\"üü\"", 4), ("12.50", 5), ("true", 4)] {
        let expected = ("/value/x".to_owned(), RuleFaultKind::TooLong { max: 3, actual });
        assert_eq!(faults(&rules, &format!("{{\"x\":{given}}}")), [expected]);
    }
}

#[test]
fn only_documents_have_fields() {
    for text in [r#"{"fields":{"0":{}}}"#, r#"{"required":["0"]}"#] {
        for value in ["[1]", "1", "null", "\"x\""] {
            assert_eq!(faults(&rules(text), value), [("/value".to_owned(), RuleFaultKind::NotAnObject)]);
        }
    }
    let free = rules(r#"{"indexes":[["a"]],"ttl_ms":1,"precondition_required":true}"#);
    assert_eq!(conformed(&free, None, "[1]"), "[1]");
}

#[test]
fn faults_are_bounded_and_their_texts_are_fixed() {
    let fields: Vec<_> = (0..20).map(|at| format!("\"f{at:02}\":{{\"type\":\"long\"}}")).collect();
    let rules = rules(&format!("{{\"fields\":{{{}}}}}", fields.join(",")));
    let document: Vec<_> = (0..20).map(|at| format!("\"f{at:02}\":true")).collect();
    assert_eq!(faults(&rules, &format!("{{{}}}", document.join(","))).len(), limits::RULE_FAULTS_MAX);
    for (kind, text) in [
        (RuleFaultKind::NotAnObject, "the collection has rules for fields, so a value must be an object"),
        (RuleFaultKind::Type(FieldKind::Long), "the collection wants a whole number of 64 bits here"),
        (RuleFaultKind::TooLong { max: 3, actual: 4 }, "at most 3 bytes, this has 4"),
        (RuleFaultKind::Required, "required, and not null"),
        (RuleFaultKind::IndexedTooLong { actual: 1025 }, "an indexed string has at most 1024 bytes, this one has 1025"),
    ] {
        assert_eq!(kind.to_string(), text);
    }
}

#[test]
fn criteria_compare_with_what_the_field_holds() {
    let rules = rules(
        r#"{"fields":{"t":{"type":"datetime"},"n":{"type":"long"},"s":{"type":"varchar"},"b":{"type":"boolean"},"x":{}}}"#,
    );
    let document = json(&format!(r#"{{"t":{NOW},"n":{WALL},"s":"7","b":true,"x":"7"}}"#));
    for row in table("rule_criteria") {
        let [criterion, plain, typed] = &row[..] else { panic!("{row:?}") };
        let criteria = Criteria::read(&json(&format!("[{criterion}]")), "/if").unwrap();
        let key = Key::new("k").unwrap();
        let document = Some(&document);
        let subject = Subject { key: &key, meta: None, is_locked: false, document, clock: 0, wall: WALL };
        let converted = rules.converted(&criteria, WALL);
        let held = (criteria.hold(&subject), converted.hold(&subject));
        assert_eq!(held, (plain == "yes", typed == "yes"), "{criterion}: {converted:?}");
        assert_eq!(*rules.converted(&converted, WALL), *converted, "a second time");
    }
}

/// Rules of random types, none of which refuses another.
fn any_rules() -> impl Strategy<Value = Rules> {
    let rule = prop::sample::select(vec![
        "{}",
        r#"{"type":"boolean"}"#,
        r#"{"type":"long"}"#,
        r#"{"type":"long","sequence":"s"}"#,
        r#"{"type":"double","default":1}"#,
        r#"{"type":"varchar","max":4}"#,
        r#"{"type":"datetime","auto_update":true}"#,
        r#"{"default":"d"}"#,
        r#"{"type":"array"}"#,
    ]);
    let paths = ["a", "/b/a", "/b/0", "c.b.c", "/"];
    let fields = prop::collection::vec(prop::option::weighted(0.6, rule), paths.len());
    (fields, prop::sample::subsequence(paths.to_vec(), 0..3)).prop_map(move |(fields, required)| {
        let fields: Vec<_> = fields
            .iter()
            .zip(paths)
            .filter_map(|(rule, path)| rule.as_ref().map(|rule| format!("\"{path}\":{rule}")))
            .collect();
        let required: Vec<_> = required.iter().map(|path| format!("\"{path}\"")).collect();
        rules(&format!(r#"{{"fields":{{{}}},"required":[{}]}}"#, fields.join(","), required.join(",")))
    })
}

fn is_of(kind: FieldKind, value: &Json<'_>) -> bool {
    match (kind, value) {
        (_, Json::Null) | (FieldKind::Any, _) => true,
        (FieldKind::Long, Json::Number(number)) => {
            number.as_str().parse::<i64>().is_ok() || number.as_str().parse::<u64>().is_ok()
        }
        (FieldKind::Datetime, Json::String(text)) => {
            time::parse(text).and_then(|nanos| time::from_unix_ms((nanos / 1_000_000) as i64)).as_deref() == Some(text)
        }
        (kind, value) => {
            let name = match kind {
                FieldKind::Double => "number",
                FieldKind::Varchar => "string",
                kind => kind.name(),
            };
            value.kind() == name
        }
    }
}

proptest! {
    #[test]
    fn what_is_accepted_satisfies_every_rule_and_a_second_time_changes_nothing(
        rules in any_rules(), old in prop::option::of(objects()), new in prop_oneof![4 => objects(), 1 => texts()],
    ) {
        if let (Ok(text), _) = run(&rules, old.as_deref(), &new) {
            let document = json(&text);
            for (path, rule) in rules.fields() {
                let value = path.find(&document);
                prop_assert!(value.is_none_or(|value| is_of(rule.kind, value)), "{} in {}", path, text);
                prop_assert!(value.is_some() || (rule.default.is_none() && !rule.is_automatic()), "{} in {}", path, text);
                if let (Some(Json::String(text)), Some(max)) = (value, rule.max) {
                    prop_assert!(text.len() as u64 <= max);
                }
            }
            for path in rules.required() {
                prop_assert!(!matches!(path.find(&document), None | Some(Json::Null)), "{} in {}", path, text);
            }
            // With another document before it, so that what is automatic counts as set.
            let (again, drawn) = run(&rules, None, &text);
            prop_assert_eq!((again.as_deref(), drawn.len()), (Ok(text.as_str()), 0));
        }
    }

    #[test]
    fn fields_without_rules_stay_as_they_were(rules in any_rules(), new in objects()) {
        if let (Ok(text), _) = run(&rules, None, &new) {
            let (before, after) = (json(&new), json(&text));
            let (Json::Object(before), Json::Object(after)) = (&before, &after) else { unreachable!("objects") };
            let is_ruled = |name: &str| rules.fields().iter().any(|(path, _)| path.names()[0] == name);
            let kept = |object: &quorate_machine::document::Object<'static>| {
                let kept = object.iter().filter(|(name, _)| !is_ruled(name));
                kept.map(|(name, value)| format!("{name}:{}", value.to_text())).collect::<Vec<_>>()
            };
            prop_assert_eq!(kept(before), kept(after));
        }
    }
}
