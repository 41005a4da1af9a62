//! What criteria mean: the tables of `testscripts/documents/criteria_*`, and a slow model.
//!
//! The seed of a failure is printed by proptest; `PROPTEST_CASES` sets how many are tried.

use std::cmp::Ordering;

use crate::document_support::{NUMBERS, json, number_texts, objects, places, table, texts, values};
use proptest::prelude::*;
use quorate_machine::document::path::Field;
use quorate_machine::document::{Criteria, Json, Order, OrderField, Subject, Unmet, like_matches};
use quorate_machine::types::{EntryMeta, Key};
use quorate_machine::{codec, limits};

const META: EntryMeta = EntryMeta {
    create_revision: 5,
    mod_revision: 9,
    version: 3,
    cas: 12,
    expires_at: None,
    locked_until: None,
    session: None,
};

/// 2026-11-21T01:06:00.123Z.
const WALL: u64 = 1_795_223_160_123;

/// The cluster clock at that moment.
const CLOCK: u64 = 50_000;

fn criteria(text: &str) -> Criteria {
    Criteria::read(&json(text), "/if").unwrap_or_else(|faults| panic!("{text}: {faults:?}"))
}

/// A criterion; `-` is no value.
fn predicate(field: &str, op: &str, value: &str) -> Criteria {
    let value = if value == "-" { String::new() } else { format!(",\"value\":{value}") };
    criteria(&format!("[{{\"field\":\"{field}\",\"op\":\"{op}\"{value}}}]"))
}

fn key() -> Key {
    Key::new("orders/o1").unwrap()
}

fn subject<'a>(key: &'a Key, document: Option<&'a Json<'a>>) -> Subject<'a> {
    Subject { key, meta: Some(&META), is_locked: false, document, clock: CLOCK, wall: WALL }
}

fn holds(criteria: &Criteria, document: &str) -> bool {
    let (key, document) = (key(), json(document));
    let subject = subject(&key, Some(&document));
    let held = criteria.hold(&subject);
    assert_eq!(criteria.unmet(&subject, "/if").is_empty(), held, "{criteria:?} of {document:?}");
    assert_eq!(criteria.ready().hold(&subject), held, "{criteria:?} of {document:?}, made ready");
    let decoded: Criteria = codec::decode(&codec::encode(criteria)).unwrap();
    assert_eq!(&decoded, criteria);
    held
}

fn unmet(criteria: &Criteria, document: &str) -> Vec<(String, Option<String>)> {
    let (key, document) = (key(), json(document));
    let reasons = criteria.unmet(&subject(&key, Some(&document)), "/if");
    reasons.into_iter().map(|Unmet { pointer, actual }| (pointer, actual.map(|actual| actual.text))).collect()
}

fn faults(text: &str) -> String {
    places(&Criteria::read(&json(text), "/if").expect_err(text))
}

/// Checks of what each row of a table holds. Its last cell says so, its first ones are a field, if none is given, an operator and a value.
fn check_table(name: &str, field: Option<&str>, subjects: &[Subject<'_>]) {
    for row in table(name) {
        let (field, op, value, holds) = match (field, &row[..]) {
            (Some(field), [op, value, holds]) => (field, op, value, holds),
            (None, [field, op, value, holds]) => (field.as_str(), op, value, holds),
            _ => panic!("{name}: {row:?}"),
        };
        if holds == "refused" {
            let text = format!("[{{\"field\":\"{field}\",\"op\":\"{op}\",\"value\":{value}}}]");
            assert!(Criteria::read(&json(&text), "/if").is_err(), "{text}");
            continue;
        }
        let criteria = predicate(field, op, value);
        let expected: Vec<_> = holds.split(' ').map(|held| held == "yes").collect();
        let held: Vec<_> = subjects.iter().map(|subject| criteria.hold(subject)).collect();
        assert_eq!(held, expected, "{field} {op} {value}");
        let held: Vec<_> = subjects.iter().map(|subject| criteria.ready().hold(subject)).collect();
        assert_eq!(held, expected, "{field} {op} {value}, made ready");
        assert!(!criteria.needs_document());
        assert_eq!(codec::decode::<Criteria>(&codec::encode(&criteria)).unwrap(), criteria);
    }
}

#[test]
fn each_operator_means_what_the_table_says() {
    for row in table("criteria_operators") {
        let [op, value, hold, do_not] = &row[..] else { panic!("{row:?}") };
        let criteria = predicate("x", op, value);
        for (fields, expected) in [(hold, true), (do_not, false)] {
            for field in values(fields) {
                assert_eq!(holds(&criteria, &format!("{{\"x\":{field}}}")), expected, "{field} {op} {value}");
            }
        }
    }
}

/// Every operator with a value that it takes.
const ALL: [(&str, &str); 16] = [
    ("eq", "1"),
    ("neq", "1"),
    ("lt", "1"),
    ("lte", "1"),
    ("gt", "1"),
    ("gte", "1"),
    ("in", "[1]"),
    ("nin", "[1]"),
    ("between", "[1,2]"),
    ("exists", "-"),
    ("nexists", "-"),
    ("contains", "1"),
    ("ncontains", "1"),
    ("starts", "\"\""),
    ("ends", "\"\""),
    ("like", "\"%\""),
];

#[test]
fn of_a_missing_field_only_the_negative_operators_hold() {
    for (op, value) in ALL {
        let expected = ["nexists", "neq", "nin", "ncontains"].contains(&op);
        for (field, document) in [("x", "{}"), ("x.y", "{\"x\":{}}"), ("x.y", "{\"x\":1}"), ("x.1", "{\"x\":[1]}")] {
            assert_eq!(holds(&predicate(field, op, value), document), expected, "{field} {op} {value} of {document}");
        }
        // A value of bytes has no fields.
        let (key, criteria) = (key(), predicate("x", op, value));
        assert_eq!(criteria.hold(&subject(&key, None)), expected, "{op} {value} of bytes");
        assert!(criteria.needs_document());
    }
}

#[test]
fn metadata_can_be_compared() {
    let key = key();
    let entry = subject(&key, None);
    let (locked, absent) = (Subject { is_locked: true, ..entry }, Subject { meta: None, ..entry });
    check_table("criteria_metadata", None, &[entry, locked, absent]);
    assert!(holds(&predicate("/$key", "eq", "1"), "{\"$key\":1}"));
}

#[test]
fn when_an_entry_expires_can_be_compared_with_times_in_either_form() {
    let key = key();
    // A second from now by the cluster clock.
    let meta = EntryMeta { expires_at: Some(CLOCK + 1_000), ..META };
    let lasting = subject(&key, None);
    let (fleeting, absent) = (Subject { meta: Some(&meta), ..lasting }, Subject { meta: None, ..lasting });
    check_table("criteria_expiry", Some("$expires_at"), &[fleeting, lasting, absent]);
    let unmet = predicate("$expires_at", "lt", "0").unmet(&fleeting, "/if");
    assert_eq!(unmet[0].actual.as_ref().unwrap().text, "\"2026-11-21T01:06:01.123Z\"");
}

#[test]
fn now_is_a_number_beside_numbers_and_a_time_beside_times() {
    let now = "{\"now\":true}";
    // Field, and its order beside now.
    for (field, order) in [
        ("1795223160123", Some(Ordering::Equal)),
        ("1795223160123.0", Some(Ordering::Equal)),
        ("1795223160122.5", Some(Ordering::Less)),
        ("1795223160124", Some(Ordering::Greater)),
        ("\"2026-11-21T01:06:00.123Z\"", Some(Ordering::Equal)),
        ("\"2026-11-21T03:06:00.123000000+02:00\"", Some(Ordering::Equal)),
        ("\"2026-11-21T01:06:00.1230001Z\"", Some(Ordering::Greater)),
        ("\"2026-11-21T01:06:00Z\"", Some(Ordering::Less)),
        ("\"2026-11-21\"", None),
        ("\"soon\"", None),
        ("null", None),
        ("[1795223160123]", None),
    ] {
        let document = format!("{{\"x\":{field}}}");
        let is = |expected: fn(Ordering) -> bool| order.is_some_and(expected);
        for (op, value, expected) in [
            ("lt", now.to_owned(), is(Ordering::is_lt)),
            ("lte", now.to_owned(), is(Ordering::is_le)),
            ("gt", now.to_owned(), is(Ordering::is_gt)),
            ("gte", now.to_owned(), is(Ordering::is_ge)),
            ("eq", now.to_owned(), is(Ordering::is_eq)),
            ("neq", now.to_owned(), !is(Ordering::is_eq)),
            ("in", format!("[{now}]"), is(Ordering::is_eq)),
            ("between", format!("[{now},{now}]"), is(Ordering::is_eq)),
            ("between", format!("[0,{now}]"), is(Ordering::is_le) && !field.starts_with('"')),
        ] {
            assert_eq!(holds(&predicate("x", op, &value), &document), expected, "{field} {op} {value}");
        }
    }
    // Any other object is a value.
    for object in ["{\"now\":false}", "{\"now\":true,\"then\":true}", "{}"] {
        assert!(holds(&predicate("x", "eq", object), &format!("{{\"x\":{object}}}")), "{object}");
    }
}

#[test]
fn terms_combine_and_the_reason_is_named() {
    for row in table("criteria_reasons") {
        let [text, document, expected] = &row[..] else { panic!("{row:?}") };
        let reasons = unmet(&criteria(text), document).into_iter();
        let reasons: Vec<_> =
            reasons.map(|(at, actual)| format!("{at} {}", actual.unwrap_or("missing".into()))).collect();
        assert_eq!(reasons, values(expected), "{text} of {document}");
        assert_eq!(holds(&criteria(text), document), reasons.is_empty(), "{text} of {document}");
    }
}

#[test]
fn a_reason_says_whether_it_holds_and_must_not() {
    let is = r#"{"field":"not","op":"eq","value":1}"#;
    for (text, document, holds) in [
        (format!("[{is}]"), r#"{"not":2}"#, false),
        (format!("[{{\"not\":{is}}}]"), r#"{"not":1}"#, true),
        (format!("[{{\"not\":{{\"not\":{is}}}}}]"), r#"{"not":3}"#, false),
        (format!("[{{\"any\":[{{\"not\":{{\"all\":[{is}]}}}}]}}]"), r#"{"not":1}"#, true),
    ] {
        let (key, document) = (key(), json(document));
        let reasons = criteria(&text).unmet(&subject(&key, Some(&document)), "/if");
        assert_eq!(reasons.iter().map(Unmet::holds).collect::<Vec<_>>(), [holds], "{text}");
    }
}

#[test]
fn what_a_refusal_shows_is_bounded() {
    let many = ["{\"field\":\"a\",\"op\":\"eq\",\"value\":1}"; limits::UNMET_MAX + 1].join(",");
    let document = format!("{{\"a\":\"{}\"}}", "x".repeat(10_000));
    let reasons = unmet(&criteria(&format!("[{{\"any\":[{many}]}}]")), &document);
    assert_eq!(reasons.len(), limits::UNMET_MAX);
    assert!(reasons.iter().all(|(_, actual)| actual.as_ref().unwrap().len() == limits::EXCERPT_BYTES_MAX));
}

#[test]
fn each_fault_of_a_criteria_list_is_told_with_its_place() {
    for row in table("criteria_faults") {
        assert_eq!(faults(&row[0]), row[1], "{}", row[0]);
    }
    let a = |rest: &str| format!("[{{\"field\":\"a\",\"op\":{rest}}}]");
    for long in
        [format!("\"like\",\"value\":\"{}\"", "_".repeat(65)), format!("\"in\",\"value\":[{}0]", "0,".repeat(1_000))]
    {
        assert_eq!(faults(&a(&long)), "/if/0/value", "{long}");
    }
    let deep = |depth| {
        let inner = "{\"field\":\"a\",\"op\":\"exists\"}";
        format!("[{}{inner}{}]", "{\"not\":".repeat(depth), "}".repeat(depth))
    };
    let wide = |count| format!("[{}]", vec!["{\"field\":\"a\",\"op\":\"exists\"}"; count].join(","));
    assert_eq!(faults(&deep(limits::CRITERIA_DEPTH_MAX + 1)), "/if");
    assert_eq!(faults(&wide(limits::CRITERIA_TERMS_MAX + 1)), "/if");
    let _within_the_bounds = (criteria(&deep(limits::CRITERIA_DEPTH_MAX)), criteria(&wide(limits::CRITERIA_TERMS_MAX)));
    assert_eq!(faults(&format!("[{}1]", "1,".repeat(1_000))).split(' ').count(), limits::READ_FAULTS_MAX);
}

#[test]
fn records_of_too_many_or_too_deep_terms_are_refused() {
    // One term that is a `not` of a `not` and so on, as the codec writes it, and a list that promises many.
    for depth in [limits::CRITERIA_DEPTH_MAX, limits::CRITERIA_DEPTH_MAX + 1, 1_000_000] {
        let mut record = codec::encode(&1_usize);
        record.extend(std::iter::repeat_n(3, depth));
        let innermost = codec::encode(&predicate("a", "exists", "-"));
        record.extend_from_slice(&innermost[2..]);
        let fits = depth <= limits::CRITERIA_DEPTH_MAX;
        assert_eq!(codec::decode::<Criteria>(&record).is_ok(), fits, "depth {depth}");
    }
    let one = codec::encode(&predicate("a", "exists", "-"));
    for count in [limits::CRITERIA_TERMS_MAX, limits::CRITERIA_TERMS_MAX + 1, usize::MAX] {
        let mut record = codec::encode(&count);
        record.extend(one[2..].repeat(count.min(1_000)));
        let fits = count <= limits::CRITERIA_TERMS_MAX;
        assert_eq!(codec::decode::<Criteria>(&record).is_ok(), fits, "{count} terms");
    }
}

#[test]
fn like_patterns_match_whole_texts() {
    for (pattern, matching, others) in [
        ("", &[""][..], &["a"][..]),
        ("%", &["", "a", "%"], &[]),
        ("_", &["a", "é", "😀"], &["", "ab"]),
        ("a%", &["a", "ab"], &["", "ba"]),
        ("%a", &["a", "aa", "ba"], &["ab"]),
        ("a%a", &["aa", "aba"], &["a"]),
        ("%ab%ab%", &["abab", "xabyabz"], &["ab", "aab"]),
        ("_%_", &["ab", "abc"], &["a", ""]),
        ("a_c%", &["abc", "aéc!"], &["ac", "abbc"]),
        ("%a_c%", &["aabc", "ababc", "xaac"], &["ac", "abbc"]),
        ("%b_", &["abc", "bbb"], &["b", "abca"]),
        (r"100\%", &["100%"], &["1000", "100"]),
        (r"a\_b%\\", &[r"a_b\", r"a_bcd\"], &[r"axb\", "a_b"]),
        ("A", &["A"], &["a"]),
    ] {
        let _accepted = predicate("x", "like", &serde_json::to_string(pattern).unwrap());
        for text in matching {
            assert!(like_matches(pattern, text), "{text:?} like {pattern:?}");
        }
        for text in others {
            assert!(!like_matches(pattern, text), "{text:?} like {pattern:?}");
        }
    }
}

/// A subject of which only the key matters.
fn named(key: &Key) -> Subject<'_> {
    subject(key, None)
}

#[test]
fn a_key_is_compared_by_its_bytes() {
    let keys = [&b"e/\xFD"[..], b"e/\xFF", "e/\u{FFFD}".as_bytes(), b"e/a"].map(|key| Key::new(key).unwrap());
    check_table("criteria_keys", Some("$key"), &keys.each_ref().map(named));
    let shown = keys.each_ref().map(|key| {
        let unmet = predicate("$key", "eq", "\"other\"").unmet(&named(key), "/if");
        unmet[0].actual.as_ref().unwrap().text.clone()
    });
    assert_eq!(shown, [r#"{"base64":"ZS/9"}"#, r#"{"base64":"ZS//"}"#, "\"e/\u{FFFD}\"", "\"e/a\""]);
    // Beside a field of a document it is a value like others.
    assert!(holds(&predicate("x", "eq", r#"{"base64":"/w=="}"#), r#"{"x":{"base64":"/w=="}}"#));
}

#[test]
fn no_pattern_takes_long() {
    let text = "a".repeat(1_000_000);
    for (pattern, expected) in [
        ("%a".repeat(10_000), true),
        (format!("{}b", "%a".repeat(10_000)), false),
        (format!("{}%b", "%a".repeat(10_000)), false),
        (format!("%{}b%", "a".repeat(10_000)), false),
        (format!("%{}b%", "_".repeat(63)), false),
        (format!("{}%", "%a_".repeat(10_000)), true),
        (format!("%{}b%", "%_a".repeat(10_000)), false),
    ] {
        // With backtracking, these would not end before the test is killed.
        assert_eq!(like_matches(&pattern, &text), expected, "{}…", &pattern[..10]);
    }
}

/// A value whose meaning needs no comparison of texts: a number is its row in the table of all numbers.
#[derive(Debug, Clone, PartialEq)]
enum Model {
    Null,
    Bool(bool),
    Number(usize, usize),
    Text(String),
    List(Vec<Model>),
}

impl Model {
    fn text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Number(row, at) => NUMBERS[*row][at % NUMBERS[*row].len()].to_owned(),
            Self::Text(text) => format!("\"{text}\""),
            Self::List(items) => format!("[{}]", items.iter().map(Self::text).collect::<Vec<_>>().join(",")),
        }
    }

    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(a, _), Self::Number(b, _)) => a == b,
            (Self::List(a), Self::List(b)) => a.len() == b.len() && (0..a.len()).all(|at| a[at].equals(&b[at])),
            (a, b) => a == b,
        }
    }

    fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Number(a, _), Self::Number(b, _)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(items), other) => items.iter().any(|item| item.equals(other)),
            (Self::Text(a), Self::Text(b)) => a.contains(b.as_str()),
            _ => false,
        }
    }

    fn texts(&self, other: &Self, holds: fn(&[char], &[char]) -> bool) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => holds(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>()),
            _ => false,
        }
    }
}

/// Tries everything.
fn slow_like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|skipped| slow_like(&text[skipped..], rest)),
        ['_', rest @ ..] => !text.is_empty() && slow_like(&text[1..], rest),
        [first, rest @ ..] => text.first() == Some(first) && slow_like(&text[1..], rest),
    }
}

fn models() -> impl Strategy<Value = Model> {
    let leaf = prop_oneof![
        Just(Model::Null),
        any::<bool>().prop_map(Model::Bool),
        (0..NUMBERS.len(), 0..3usize).prop_map(|(row, at)| Model::Number(row, at)),
        "[ab%_]{0,4}".prop_map(Model::Text),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Model::List))
}

fn model_holds(op: &str, field: Option<&Model>, value: &Model) -> bool {
    let Some(field) = field else { return ["neq", "nin", "ncontains", "nexists"].contains(&op) };
    let order = field.order(value);
    match op {
        "exists" => true,
        "nexists" => false,
        "eq" => field.equals(value),
        "neq" => !field.equals(value),
        "in" => matches!(value, Model::List(values) if values.iter().any(|value| field.equals(value))),
        "nin" => matches!(value, Model::List(values) if !values.iter().any(|value| field.equals(value))),
        "lt" => order == Some(Ordering::Less),
        "lte" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        "gt" => order == Some(Ordering::Greater),
        "gte" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        "contains" => field.contains(value),
        "ncontains" => !field.contains(value),
        "starts" => field.texts(value, |text, start| text.starts_with(start)),
        "ends" => field.texts(value, |text, end| text.ends_with(end)),
        "like" => field.texts(value, slow_like),
        "between" => {
            let Model::List(ends) = value else { panic!("{value:?}") };
            !matches!(field.order(&ends[0]), None | Some(Ordering::Less))
                && !matches!(field.order(&ends[1]), None | Some(Ordering::Greater))
        }
        other => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn every_operator_agrees_with_a_slow_model(
        field in prop::option::weighted(0.9, models()), value in models(), other in models(), at in 0..ALL.len()
    ) {
        let (op, _) = ALL[at];
        let value = match op {
            "in" | "nin" => Model::List(vec![value, other]),
            "between" => Model::List(vec![value, other]),
            _ => value,
        };
        let given = if op.ends_with("exists") { String::new() } else { format!(",\"value\":{}", value.text()) };
        let text = format!("[{{\"field\":\"x\",\"op\":\"{op}\"{given}}}]");
        let document = field.as_ref().map_or("{}".to_owned(), |field| format!("{{\"x\":{}}}", field.text()));
        // What the constructor refuses is in the table of faults.
        if let Ok(criteria) = Criteria::read(&json(&text), "/if") {
            prop_assert_eq!(holds(&criteria, &document), model_holds(op, field.as_ref(), &value), "{} of {}", text, document);
        }
    }

    #[test]
    fn a_long_list_has_a_value_exactly_where_one_of_it_is_equal(
        values in prop::collection::vec(prop_oneof![3 => texts(), 1 => Just("{\"now\":true}".to_owned())], 0..12),
        at in any::<prop::sample::Index>(),
        field in prop_oneof![texts(), number_texts(), Just(WALL.to_string())],
        is_given in any::<bool>(),
    ) {
        let field = if is_given && !values.is_empty() { &values[at.index(values.len())] } else { &field };
        for op in ["in", "nin"] {
            let text = format!(r#"[{{"field":"x","op":"{op}","value":[{}]}}]"#, values.join(","));
            let one = |value: &String| format!(r#"[{{"field":"x","op":"eq","value":{value}}}]"#);
            let document = format!(r#"{{"x":{field}}}"#);
            let is_listed = values.iter().any(|value| holds(&criteria(&one(value)), &document));
            prop_assert_eq!(holds(&criteria(&text), &document), is_listed == (op == "in"), "{} of {}", text, document);
        }
    }

    #[test]
    fn like_agrees_with_trying_everything(pattern in "[ab%_]{0,7}", text in "[ab]{0,9}") {
        let (p, t): (Vec<_>, Vec<_>) = (pattern.chars().collect(), text.chars().collect());
        prop_assert_eq!(like_matches(&pattern, &text), slow_like(&t, &p));
    }

    /// Bytes that are no character match like a character that no pattern has.
    #[test]
    fn names_match_patterns_as_texts_do(pattern in "[ab%_]{0,7}", name in "[abx]{1,9}") {
        let bytes: Vec<_> = name.bytes().map(|byte| if byte == b'x' { 0xFF } else { byte }).collect();
        let key = Key::new(bytes).unwrap();
        let held = predicate("$key", "like", &format!("\"{pattern}\"")).hold(&named(&key));
        prop_assert_eq!(held, like_matches(&pattern, &name), "{} like {}", key, pattern);
    }

    #[test]
    fn no_two_keys_have_the_same_rank(
        keys in prop::collection::btree_set(prop::collection::vec(prop::sample::select(vec![0, b'a', 0xC3, 0xA9, 0xEF, 0xBF, 0xBD, 0xFE, 0xFF]), 1..6), 2..20),
        descending in any::<bool>(),
    ) {
        let order = Order::new(vec![OrderField { field: Field::parse("$key").unwrap(), descending }]);
        let rank = |key: &Vec<u8>| order.rank(&named(&Key::new(key.clone()).unwrap()));
        let mut ranks: Vec<_> = keys.iter().map(rank).collect();
        if descending {
            ranks.reverse();
        }
        prop_assert!(ranks.is_sorted_by(|a, b| a < b), "the order is not that of the bytes");
    }

    #[test]
    fn a_damaged_record_is_refused_or_harmless(at in any::<prop::sample::Index>(), byte in any::<u8>(), document in objects()) {
        let text = r#"[{"any":[{"field":"a","op":"between","value":[1,{"now":true}]},{"field":"$cas","op":"in","value":["1",null]},{"field":"$key","op":"eq","value":{"base64":"/w=="}}]},
            {"not":{"all":[{"field":"b.0","op":"like","value":"x%_"},{"field":"c","op":"exists"}]}}]"#;
        let mut record = codec::encode(&criteria(text));
        let at = at.index(record.len());
        record[at] = byte;
        if let Ok(criteria) = codec::decode::<Criteria>(&record) {
            let (key, document) = (key(), json(&document));
            let subject = subject(&key, Some(&document));
            prop_assert_eq!(criteria.hold(&subject), criteria.unmet(&subject, "/if").is_empty());
        }
    }
}
