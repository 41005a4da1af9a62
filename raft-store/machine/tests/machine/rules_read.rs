//! Rules as they are written: what is taken, what is refused and where, and that nothing is lost on the way.
//!
//! The seed of a failure is printed by proptest; `PROPTEST_CASES` sets how many are tried.

use crate::document_support::{json, table, values};
use proptest::prelude::*;
use quorate_machine::document::path::Path;
use quorate_machine::document::{Fault, FaultKind};
use quorate_machine::rules::{CollectionName, NameError, Rules, RulesParts, SequenceName, candidates, field_text};
use quorate_machine::{codec, limits};

fn rules(text: &str) -> Rules {
    Rules::read(&json(text), "").unwrap_or_else(|faults| panic!("{text}: {faults:?}"))
}

fn faults(text: &str) -> Vec<(String, String)> {
    let faults = Rules::read(&json(text), "").expect_err(text);
    faults.into_iter().map(|Fault { pointer, detail, .. }| (pointer, detail)).collect()
}

#[test]
fn rules_show_as_they_were_written() {
    for text in [
        "{}",
        r#"{"ttl_ms":1}"#,
        r#"{"precondition_required":true}"#,
        r#"{"required":["b","a.c","/$x"]}"#,
        r#"{"indexes":[["b","a"],{"fields":["a.0"],"unique":true},["a"]]}"#,
        r#"{"fields":{"/":{},"/$a":{},"a":{"type":"object"},"a.b":{"type":"long"},"a\\.b":{"type":"any","sequence":"s"}}}"#,
        r#"{"fields":{"n":{"type":"long","sequence":"orders/n"},"s":{"type":"varchar","max":20,"default":"new"},"t":{"type":"datetime","auto_update":true}},"required":["s"],"indexes":[["s","t"]],"ttl_ms":60000,"precondition_required":true}"#,
    ] {
        let read = rules(text);
        assert_eq!(read.to_json().to_text(), text.replace(r#""type":"any","#, ""), "{read:?}");
        assert_eq!(codec::decode::<Rules>(&codec::encode(&read)).unwrap(), read);
    }
}

#[test]
fn what_says_nothing_is_not_shown_and_defaults_show_as_they_will_be_filled_in() {
    for (text, shown) in [
        (r#"{"fields":{},"required":[],"indexes":[],"precondition_required":false}"#, "{}"),
        (r#"{"fields":{"/a/b":{"type":"any","auto_update":false}}}"#, r#"{"fields":{"a.b":{}}}"#),
        (r#"{"indexes":[{"fields":["/a"],"unique":false}]}"#, r#"{"indexes":[["a"]]}"#),
        (
            r#"{"fields":{"b":{"type":"long","default":"7"},"a":{"type":"datetime","default":0}}}"#,
            r#"{"fields":{"a":{"type":"datetime","default":"1970-01-01T00:00:00.000Z"},"b":{"type":"long","default":7}}}"#,
        ),
    ] {
        assert_eq!(rules(text).to_json().to_text(), shown);
    }
}

#[test]
fn every_fault_has_a_pointer() {
    for row in table("rule_faults") {
        let [text, expected] = &row[..] else { panic!("{row:?}") };
        let (found, expected) = (faults(text), values(expected));
        assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
        for ((pointer, detail), expected) in found.iter().zip(expected) {
            let (place, part) = expected.split_once(' ').unwrap();
            assert_eq!(pointer, if place == "all" { "" } else { place }, "{text}: {found:?}");
            assert!(detail.contains(part), "{text}: {detail}");
        }
    }
    let unknown = Rules::read(&json(r#"{"x":1}"#), "").unwrap_err();
    assert_eq!(unknown[0].kind, FaultKind::UnknownField);
}

#[test]
fn rules_are_bounded() {
    let fields = |count| format!("{{\"fields\":{{{}}}}}", list(count, |at| format!("\"f{at}\":{{}}")));
    let required = |count| format!("{{\"required\":[{}]}}", list(count, |at| format!("\"f{at}\"")));
    let indexes = |count| format!("{{\"indexes\":[{}]}}", list(count, |at| format!("[\"f{at}\"]")));
    let index = |count| format!("{{\"indexes\":[[{}]]}}", list(count, |at| format!("\"f{at}\"")));
    for (make, max, pointer) in [
        (&fields as &dyn Fn(usize) -> String, limits::RULE_FIELDS_MAX, "/fields"),
        (&required, limits::RULE_FIELDS_MAX, "/required"),
        (&indexes, limits::INDEXES_MAX, "/indexes"),
        (&index, limits::INDEX_FIELDS_MAX, "/indexes/0"),
    ] {
        let _accepted = rules(&make(max));
        assert_eq!(faults(&make(max + 1))[0].0, pointer);
    }
    let long = |bytes: usize| format!(r#"{{"fields":{{"a":{{"default":"{}"}}}}}}"#, "x".repeat(bytes));
    let _accepted = rules(&long(limits::RULES_BYTES_MAX - long(0).len()));
    let (pointer, detail) = &faults(&long(limits::RULES_BYTES_MAX + 1 - long(0).len()))[0];
    assert_eq!((pointer.as_str(), detail.contains("have 65537")), ("", true), "{detail}");
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

#[test]
fn a_default_fits_into_the_levels_of_a_document() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let text = |levels| format!(r#"{{"fields":{{"a.b":{{"default":{}}}}}}}"#, nested(levels));
    // The reader of JSON itself takes no more levels than a document has, so the default has to come another way.
    for (levels, fits) in [(limits::JSON_DEPTH_MAX - 4, true), (limits::JSON_DEPTH_MAX - 1, false)] {
        let default = json(&nested(levels));
        let rule = quorate_machine::rules::FieldRule { default: Some(default), ..Default::default() };
        let parts = RulesParts { fields: vec![(Path::parse("a.b").unwrap(), rule)], ..RulesParts::default() };
        assert_eq!(Rules::new(parts).is_ok(), fits, "{levels} levels");
    }
    let _accepted = rules(&text(limits::JSON_DEPTH_MAX - 4));
}

#[test]
fn records_with_faults_are_refused() {
    let parts = |text: &str| RulesParts { required: vec![Path::parse_pointer(text).unwrap()], ..RulesParts::default() };
    assert!(codec::decode::<Rules>(&codec::encode(&parts("/a"))).is_ok());
    assert!(codec::decode::<Rules>(&codec::encode(&parts(""))).is_err(), "the whole document");
}

#[test]
fn names_are_bounded() {
    for (name, expected) in [
        ("a", Ok(())),
        ("a/b c/ü", Ok(())),
        ("", Err(NameError::Empty)),
        ("/a", Err(NameError::EmptySegment)),
        ("a/", Err(NameError::EmptySegment)),
        ("a//b", Err(NameError::EmptySegment)),
        ("1/2/3/4/5/6/7/8", Ok(())),
        ("1/2/3/4/5/6/7/8/9", Err(NameError::TooManySegments(9))),
        (&"x".repeat(256), Ok(())),
        (&"x".repeat(257), Err(NameError::TooLong { max: 256, actual: 257 })),
    ] {
        let made = CollectionName::new(name);
        assert_eq!(made.as_ref().map(drop).map_err(|error| *error), expected, "{name}");
        assert_eq!(codec::decode::<CollectionName>(&codec::encode(&name.to_owned())).is_ok(), expected.is_ok());
    }
    assert!(SequenceName::new("/a//").is_ok(), "a sequence has no segments");
    assert_eq!(SequenceName::new(""), Err(NameError::Empty));
    assert!(SequenceName::new("x".repeat(257)).is_err());
}

#[test]
fn a_key_may_belong_to_every_name_that_it_begins_with() {
    for (key, expected) in
        [("a", &[][..]), ("a/", &["a"]), ("a/b", &["a"]), ("a/b/c", &["a/b", "a"]), ("/a/b", &[]), ("a//b/c", &["a"])]
    {
        assert_eq!(
            candidates(key.as_bytes()).collect::<Vec<_>>(),
            expected.iter().map(|name| name.as_bytes()).collect::<Vec<_>>()
        );
    }
}

proptest! {
    #[test]
    fn candidates_are_the_names_that_a_key_has_below_them(key in "[a/]{0,24}", long in 250..262usize) {
        for key in [key.clone(), format!("{}/{key}", "x".repeat(long))] {
            let mut expected: Vec<_> = (0..key.len())
                .filter(|at| key.as_bytes()[*at] == b'/' && CollectionName::new(&key[..*at]).is_ok())
                .map(|at| &key.as_bytes()[..at])
                .collect();
            expected.reverse();
            prop_assert_eq!(candidates(key.as_bytes()).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_path_shown_reads_as_the_same(names in prop::collection::vec(r"[a.$/~\\0é]{0,3}", 1..4)) {
        let pointer: String = names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect();
        let path = Path::parse_pointer(&pointer).unwrap();
        prop_assert_eq!(Path::parse(&field_text(&path)).unwrap(), path);
    }

    #[test]
    fn rules_read_back_are_the_same(text in rules_texts()) {
        // Some of these contradict themselves; then the parts are left out that do.
        if let Ok(read) = Rules::read(&json(&text), "") {
            let shown = read.to_json().to_text();
            prop_assert_eq!(&rules(&shown), &read, "{} shown as {}", text, shown);
            prop_assert_eq!(&codec::decode::<Rules>(&codec::encode(&read)).unwrap(), &read);
            prop_assert_eq!(rules(&shown).to_json().to_text(), shown);
        }
    }
}

fn rules_texts() -> impl Strategy<Value = String> {
    let path = || prop::sample::select(vec!["a", "b", "/c/d", "c.e", "$x", "/$x", r"a\\.b", "/"]);
    let rule = prop::sample::select(vec![
        "{}",
        r#"{"type":"boolean","default":"true"}"#,
        r#"{"type":"long","sequence":"s/1"}"#,
        r#"{"type":"double","default":1.50}"#,
        r#"{"type":"varchar","max":3,"default":12}"#,
        r#"{"type":"datetime","auto_update":true}"#,
        r#"{"type":"object","default":{"x":[]}}"#,
        r#"{"type":"array"}"#,
    ]);
    let fields = prop::collection::btree_map(path(), rule, 0..4);
    let paths = || prop::collection::btree_set(path(), 0..3);
    let index = (prop::collection::btree_set(path(), 1..3), any::<bool>());
    let rest = (paths(), prop::collection::vec(index, 0..3), prop::option::of(1..9u64), any::<bool>());
    (fields, rest).prop_map(|(fields, (required, indexes, ttl_ms, precondition))| {
        let quoted = |path: &str| format!("\"{path}\"");
        let all = |paths: &std::collections::BTreeSet<&str>| {
            paths.iter().map(|path| quoted(path)).collect::<Vec<_>>().join(",")
        };
        let fields: Vec<_> = fields.iter().map(|(path, rule)| format!("{}:{rule}", quoted(path))).collect();
        let indexes: Vec<_> = indexes
            .iter()
            .map(|(paths, unique)| format!("{{\"fields\":[{}],\"unique\":{unique}}}", all(paths)))
            .collect();
        let ttl = ttl_ms.map(|ttl_ms| format!(",\"ttl_ms\":{ttl_ms}")).unwrap_or_default();
        format!(
            "{{\"fields\":{{{}}},\"required\":[{}],\"indexes\":[{}],\"precondition_required\":{precondition}{ttl}}}",
            fields.join(","),
            all(&required),
            indexes.join(",")
        )
    })
}
