//! What patches do: the tables of `testscripts/documents/patch_*`, and what must hold of any patch of any document.
//!
//! The seed of a failure is printed by proptest; `PROPTEST_CASES` sets how many are tried.

use std::collections::BTreeMap;

use crate::document_support::{json, objects, places, table, texts};
use proptest::prelude::*;
use quorate_machine::document::{Excerpt, Json, Patch, PatchFault, PatchRefusal};
use quorate_machine::{codec, limits};

/// 2026-11-21T01:06:00.123Z.
const WALL: u64 = 1_795_223_160_123;

fn patch(text: &str) -> Patch {
    Patch::read(&json(text), "/patch").unwrap_or_else(|faults| panic!("{text}: {faults:?}"))
}

fn apply(document: &str, patch: &Patch) -> Result<String, PatchRefusal> {
    let decoded: Patch = codec::decode(&codec::encode(patch)).unwrap();
    assert_eq!(&decoded, patch);
    let document = Json::parse(document.as_bytes()).expect("a document");
    patch.apply_to_text(document, WALL, "/patch").map(|text| String::from_utf8(text).unwrap())
}

/// As tables say it: `operation place fault`.
fn shown(PatchRefusal { pointer, path, fault }: &PatchRefusal) -> String {
    let text = |excerpt: &Excerpt| excerpt.text.clone();
    let fault = match fault {
        PatchFault::NotADocument => "not a document".to_owned(),
        PatchFault::Missing => "missing".to_owned(),
        PatchFault::IntoScalar { actual } => format!("into scalar {}", text(actual)),
        PatchFault::OutOfRange { length } => format!("out of range of {length}"),
        PatchFault::TestFailed { actual } => format!("test found {}", actual.as_ref().map_or("nothing".into(), text)),
        PatchFault::WrongType { actual } => format!("wrong type {}", text(actual)),
        PatchFault::Overflow { actual } => format!("overflow {}", text(actual)),
        PatchFault::TooDeep => "too deep".to_owned(),
        PatchFault::TooLarge { .. } => "too large".to_owned(),
        PatchFault::TooDear(dear) => format!("too dear, {} of {}", dear.actual, dear.limit),
    };
    format!("{} {path} {fault}", pointer.strip_prefix("/patch").unwrap())
}

#[test]
fn patches_do_what_their_table_says() {
    for row in table("patch_results") {
        let [document, text, expected] = &row[..] else { panic!("{row:?}") };
        assert_eq!(apply(document, &patch(text)).as_ref(), Ok(expected), "{document} with {text}");
    }
}

#[test]
fn patches_that_do_not_fit_are_refused_as_their_table_says() {
    for row in table("patch_refusals") {
        let [document, text, expected] = &row[..] else { panic!("{row:?}") };
        let refusal = apply(document, &patch(text)).expect_err(text);
        assert_eq!(shown(&refusal).trim_start(), expected, "{document} with {text}");
        assert_eq!(codec::decode::<PatchRefusal>(&codec::encode(&refusal)), Ok(refusal));
    }
}

#[test]
fn each_fault_of_a_patch_is_told_with_its_place() {
    let faults = |text: &str| places(&Patch::read(&json(text), "/patch").expect_err(text));
    for row in table("patch_faults") {
        assert_eq!(faults(&row[0]), row[1], "{}", row[0]);
    }
    let many = vec![r#"{"op":"unset","path":"a"}"#; limits::PATCH_OPERATIONS_MAX + 1].join(",");
    assert_eq!(faults(&format!("[{many}]")), "/patch");
}

#[test]
fn a_document_never_gets_too_deep() {
    let nested = |depth: usize| format!("{}{}", "{\"a\":".repeat(depth - 1) + "{}", "}".repeat(depth - 1));
    let lists = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let half = limits::JSON_DEPTH_MAX / 2;
    let to = "/a".repeat(half);
    for (fits, value_depth) in [(true, half), (false, half + 1)] {
        for operation in ["add", "replace"] {
            let text = format!("[{{\"op\":\"{operation}\",\"path\":\"{to}\",\"value\":{}}}]", lists(value_depth));
            assert_eq!(apply(&nested(half + 1), &patch(&text)).is_ok(), fits, "{operation} {value_depth}");
        }
        for operation in ["move", "copy"] {
            let document = format!("{{\"x\":{},\"a\":{}}}", lists(value_depth), nested(half));
            let text = format!("[{{\"op\":\"{operation}\",\"from\":\"/x\",\"path\":\"{to}\"}}]");
            assert_eq!(apply(&document, &patch(&text)).is_ok(), fits, "{operation} {value_depth}");
        }
        for (operation, value_depth) in [("set", value_depth), ("append", value_depth - 1)] {
            let text = format!("[{{\"op\":\"{operation}\",\"path\":\"{to}\",\"value\":{}}}]", lists(value_depth));
            assert_eq!(apply("{}", &patch(&text)).is_ok(), fits, "{operation} {value_depth} into nothing");
        }
        let there =
            format!("[{{\"op\":\"append\",\"path\":\"{}\",\"value\":{}}}]", "/a".repeat(half - 1), lists(value_depth));
        let document = format!("{}[]{}", "{\"a\":".repeat(half - 1), "}".repeat(half - 1));
        assert_eq!(apply(&document, &patch(&there)).is_ok(), fits, "append {value_depth}");
    }
    let copies = vec![r#"{"op":"copy","from":"","path":"/a"}"#; limits::JSON_DEPTH_MAX].join(",");
    assert_eq!(shown(&apply("{}", &patch(&format!("[{copies}]"))).unwrap_err()), "/63 /a too deep");
}

#[test]
fn a_document_never_gets_too_large() {
    let document = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    // Doubles each time, if it may.
    let copies = vec![r#"{"op":"copy","from":"/a","path":"/a/-"}"#; 60].join(",");
    let refusal = apply(r#"{"a":["x"]}"#, &patch(&format!("[{copies}]"))).unwrap_err();
    assert!(matches!(refusal.fault, PatchFault::TooLarge { limit, actual } if actual > limit), "{refusal:?}");
    // Copies count also where each takes the place of the one before.
    let bytes = limits::PATCH_COPIED_BYTES_MAX / 4;
    let copies = [r#"{"op":"copy","from":"/a","path":"/b"}"#; 5].join(",");
    let refusal = apply(&document(bytes + 6), &patch(&format!("[{copies}]"))).unwrap_err();
    assert_eq!((refusal.pointer.as_str(), refusal.path.as_str()), ("/patch/4", "/b"), "{refusal:?}");
    assert!(matches!(refusal.fault, PatchFault::TooLarge { .. }), "{refusal:?}");
    // At the end, to the byte.
    let longer = patch(r#"[{"op":"set","path":"b","value":1}]"#);
    assert_eq!(
        apply(&document(limits::VALUE_BYTES_MAX - 6), &longer).map(|text| text.len()),
        Ok(limits::VALUE_BYTES_MAX)
    );
    let refusal = apply(&document(limits::VALUE_BYTES_MAX - 5), &longer).unwrap_err();
    let (limit, actual) = (limits::VALUE_BYTES_MAX as u64, limits::VALUE_BYTES_MAX as u64 + 1);
    assert_eq!(refusal.fault, PatchFault::TooLarge { limit, actual });
}

#[test]
fn a_merge_of_very_many_members_takes_no_quadratic_time() {
    let members = |from: usize| (from..from + 100_000).map(|at| format!("\"{at}\":1")).collect::<Vec<_>>().join(",");
    let (document, change) = (format!("{{{}}}", members(0)), format!("{{{}}}", members(50_000)));
    // Ten thousand million comparisons would not end before the test is killed.
    let merged = apply(&document, &patch(&change)).unwrap();
    assert!(matches!(json(&merged), Json::Object(object) if object.len() == 150_000));
}

fn operations() -> impl Strategy<Value = String> {
    let path = || prop_oneof![9 => "(/(a|b|c|0|1|-)?){1,4}", 1 => Just(String::new())];
    prop_oneof![
        (prop_oneof![Just("add"), Just("replace"), Just("test")], path(), texts())
            .prop_map(|(op, path, value)| format!(r#"{{"op":"{op}","path":"{path}","value":{value}}}"#)),
        (prop_oneof![Just("move"), Just("copy")], path(), path())
            .prop_map(|(op, from, path)| format!(r#"{{"op":"{op}","from":"{from}","path":"{path}"}}"#)),
        path().prop_map(|path| format!(r#"{{"op":"remove","path":"{path}"}}"#)),
    ]
}

fn updates() -> impl Strategy<Value = String> {
    let path = || "(/(a|b|c|0|1)?){1,4}";
    let name = prop::sample::select(vec!["inc", "set", "append", "max", "min"]);
    prop_oneof![
        5 => (name, path(), texts()).prop_map(|(op, path, value)| format!(r#"{{"op":"{op}","path":"{path}","value":{value}}}"#)),
        1 => path().prop_map(|path| format!(r#"{{"op":"unset","path":"{path}"}}"#)),
        1 => path().prop_map(|path| format!(r#"{{"op":"now","path":"{path}"}}"#)),
    ]
}

/// A value without order of members.
#[derive(Debug, Clone, PartialEq)]
enum Plain {
    Object(BTreeMap<String, Plain>),
    Other(String),
}

fn plain(json: &Json<'_>) -> Plain {
    match json {
        Json::Object(object) => {
            Plain::Object(object.iter().map(|(name, value)| (name.to_owned(), plain(value))).collect())
        }
        other => Plain::Other(other.to_text()),
    }
}

/// The algorithm as RFC 7396 writes it.
fn merge_plainly(target: Plain, patch: Plain) -> Plain {
    let Plain::Object(patch) = patch else { return patch };
    let mut target = if let Plain::Object(target) = target { target } else { BTreeMap::new() };
    for (name, value) in patch {
        let old = target.remove(&name).unwrap_or(Plain::Other("null".to_owned()));
        if value != Plain::Other("null".to_owned()) {
            target.insert(name, merge_plainly(old, value));
        }
    }
    Plain::Object(target)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn a_merge_comes_to_what_the_algorithm_of_the_rfc_does(document in objects(), change in objects()) {
        let merged = apply(&document, &patch(&change)).unwrap();
        let expected = merge_plainly(plain(&json(&document)), plain(&json(&change)));
        prop_assert_eq!(plain(&json(&merged)), expected);
    }

    #[test]
    fn a_json_patch_gives_a_document_or_a_refusal(document in objects(), list in prop::collection::vec(operations(), 0..8)) {
        let Ok(patch) = Patch::read_json_patch(&json(&format!("[{}]", list.join(","))), "/patch") else { return Ok(()) };
        if let Ok(patched) = apply(&document, &patch) {
            prop_assert_eq!(json(&patched).to_text(), patched);
        }
    }

    #[test]
    fn an_update_gives_a_document_or_a_refusal(document in objects(), list in prop::collection::vec(updates(), 0..8)) {
        let Ok(patch) = Patch::read_update(&json(&format!("[{}]", list.join(","))), "/patch") else { return Ok(()) };
        if let Ok(patched) = apply(&document, &patch) {
            prop_assert_eq!(json(&patched).to_text(), patched);
        }
    }

    #[test]
    fn what_was_set_is_found_and_what_was_unset_is_not(document in objects(), path in "(/(a|b|c|0|1)?){1,3}", value in texts()) {
        let set = patch(&format!(r#"[{{"op":"set","path":"{path}","value":{value}}}]"#));
        let Ok(with) = apply(&document, &set) else { return Ok(()) };
        let path = quorate_machine::document::path::Path::parse(&path).unwrap();
        prop_assert_eq!(path.find(&json(&with)).cloned(), Some(json(&value)));
        let unset = patch(&format!(r#"[{{"op":"unset","path":"{path}"}}]"#));
        let without = apply(&with, &unset).unwrap();
        if path.names().iter().all(|name| name.parse::<u8>().is_err()) {
            prop_assert_eq!(path.find(&json(&without)).cloned(), None);
        }
    }

    #[test]
    fn a_damaged_record_is_refused_or_harmless(at in any::<prop::sample::Index>(), byte in any::<u8>(), document in objects()) {
        for text in [
            r#"{"a":{"b":null,"c":[1]}}"#,
            r#"[{"op":"add","path":"/a/0","value":1},{"op":"move","from":"/a","path":"/b"},{"op":"remove","path":"/b"},{"op":"test","path":"","value":{}}]"#,
            r#"[{"op":"inc","path":"a","value":1},{"op":"max","path":"b.0","value":"x"},{"op":"append","path":"c","value":[]},{"op":"now","path":"a"}]"#,
        ] {
            let mut record = codec::encode(&patch(text));
            let at = at.index(record.len());
            record[at] = byte;
            if let Ok(patch) = codec::decode::<Patch>(&record)
                && let Ok(patched) = patch.apply_to_text(json(&document), WALL, "/patch")
            {
                prop_assert!(matches!(Json::parse(&patched), Ok(Json::Object(_))));
            }
        }
    }
}
