//! What patches do: tables that read as the specification, and what must hold of any patch of any document.
//!
//! The seed of a failure is printed by proptest; `PROPTEST_CASES` sets how many are tried.

use std::collections::BTreeMap;

use crate::document_support::{json, objects, texts};
use proptest::prelude::*;
use quorate_machine::document::{Excerpt, FaultKind, Json, Patch, PatchFault, PatchRefusal};
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

/// Checks documents after patches, as texts: order and spelling count.
fn check_results(table: &[(&str, &str, &str)]) {
    for (document, text, expected) in table {
        assert_eq!(apply(document, &patch(text)).as_deref(), Ok(*expected), "{document} with {text}");
    }
}

/// Checks refusals, as `operation place fault`.
fn check_refusals(table: &[(&str, &str, &str)]) {
    for (document, text, expected) in table {
        let refusal = apply(document, &patch(text)).expect_err(text);
        assert_eq!(shown(&refusal), *expected, "{document} with {text}");
        assert_eq!(codec::decode::<PatchRefusal>(&codec::encode(&refusal)), Ok(refusal));
    }
}

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
fn a_merge_patch_replaces_merges_and_removes() {
    // The examples of RFC 7396 that are about objects, then order and spelling.
    check_results(&[
        (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
        (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
        (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
        (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
        (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
        (r#"{}"#, r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        (r#"{"a":1}"#, r#"{"a":{"b":{"x":null,"y":[null]}}}"#, r#"{"a":{"b":{"y":[null]}}}"#),
        (
            r#"{"z":1,"a":{"y":1,"x":2},"m":3}"#,
            r#"{"n":5,"m":4,"a":{"x":null,"b":0}}"#,
            r#"{"z":1,"a":{"y":1,"b":0},"m":4,"n":5}"#,
        ),
        (
            r#" { "big" : 123456789012345678901234567890 , "f" : 1.10 } "#,
            r#"{"n":1E5}"#,
            r#"{"big":123456789012345678901234567890,"f":1.10,"n":1E5}"#,
        ),
        (r#"{"b":1}"#, r#"{"z":1,"c":null,"a":{"y":1,"x":2}}"#, r#"{"b":1,"z":1,"a":{"y":1,"x":2}}"#),
        (r#"{"a":1}"#, "{}", r#"{"a":1}"#),
    ]);
    check_refusals(&[("[]", "{}", "  not a document"), ("1", "{}", "  not a document")]);
}

#[test]
fn json_patch_operations_do_what_rfc_6902_says() {
    check_results(&[
        // Add: a member, over a member, into arrays at every place, the whole.
        (r#"{"a":1}"#, r#"[]"#, r#"{"a":1}"#),
        (r#"{"a":1}"#, r#"[{"op":"add","path":"/b","value":[2]}]"#, r#"{"a":1,"b":[2]}"#),
        (r#"{"a":null,"b":1}"#, r#"[{"op":"add","path":"/a","value":2}]"#, r#"{"a":2,"b":1}"#),
        (r#"{}"#, r#"[{"op":"add","path":"/","value":1}]"#, r#"{"":1}"#),
        (r#"{}"#, r#"[{"op":"add","path":"/0","value":1}]"#, r#"{"0":1}"#),
        (r#"{}"#, r#"[{"op":"add","path":"/-","value":1}]"#, r#"{"-":1}"#),
        (r#"{"l":[1,2]}"#, r#"[{"op":"add","path":"/l/0","value":0}]"#, r#"{"l":[0,1,2]}"#),
        (r#"{"l":[1,2]}"#, r#"[{"op":"add","path":"/l/1","value":[0]}]"#, r#"{"l":[1,[0],2]}"#),
        (r#"{"l":[1,2]}"#, r#"[{"op":"add","path":"/l/2","value":0}]"#, r#"{"l":[1,2,0]}"#),
        (r#"{"l":[1,[2]]}"#, r#"[{"op":"add","path":"/l/1/-","value":0}]"#, r#"{"l":[1,[2,0]]}"#),
        (r#"{"l":[]}"#, r#"[{"op":"add","path":"/l/-","value":null}]"#, r#"{"l":[null]}"#),
        (r#"{"l":[{"x":1}]}"#, r#"[{"op":"add","path":"/l/0/y","value":2}]"#, r#"{"l":[{"x":1,"y":2}]}"#),
        (r#"{"a":1}"#, r#"[{"op":"add","path":"","value":{"b":2}}]"#, r#"{"b":2}"#),
        // Remove: later elements move up.
        (r#"{"a":1,"b":2}"#, r#"[{"op":"remove","path":"/a"}]"#, r#"{"b":2}"#),
        (r#"{"a":null}"#, r#"[{"op":"remove","path":"/a"}]"#, r#"{}"#),
        (r#"{"l":[1,2,3,4]}"#, r#"[{"op":"remove","path":"/l/1"},{"op":"remove","path":"/l/2"}]"#, r#"{"l":[1,3]}"#),
        // Replace: in place.
        (r#"{"a":1,"b":2}"#, r#"[{"op":"replace","path":"/a","value":{"x":null}}]"#, r#"{"a":{"x":null},"b":2}"#),
        (r#"{"l":[1,2]}"#, r#"[{"op":"replace","path":"/l/0","value":[3]}]"#, r#"{"l":[[3],2]}"#),
        (r#"{"a":1}"#, r#"[{"op":"replace","path":"","value":{}}]"#, r#"{}"#),
        // Move: taken out first, so indexes count without it.
        (r#"{"a":1,"b":2}"#, r#"[{"op":"move","from":"/a","path":"/c"}]"#, r#"{"b":2,"c":1}"#),
        (r#"{"a":1,"b":2}"#, r#"[{"op":"move","from":"/a","path":"/b"}]"#, r#"{"b":1}"#),
        (r#"{"l":[1,2,3]}"#, r#"[{"op":"move","from":"/l/0","path":"/l/2"}]"#, r#"{"l":[2,3,1]}"#),
        (r#"{"l":[1,2,3]}"#, r#"[{"op":"move","from":"/l/2","path":"/l/0"}]"#, r#"{"l":[3,1,2]}"#),
        (r#"{"l":[1,2]}"#, r#"[{"op":"move","from":"/l/0","path":"/l/-"}]"#, r#"{"l":[2,1]}"#),
        (r#"{"a":1,"b":2}"#, r#"[{"op":"move","from":"/a","path":"/a"}]"#, r#"{"a":1,"b":2}"#),
        (r#"{"a/":{"b~":1,"c":2}}"#, r#"[{"op":"move","from":"/a~1/b~0","path":"/x"}]"#, r#"{"a/":{"c":2},"x":1}"#),
        (r#"{"a":{"b":{"c":1}}}"#, r#"[{"op":"move","from":"/a/b","path":"/a"}]"#, r#"{"a":{"c":1}}"#),
        (r#"{"a":{"b":{"c":1}}}"#, r#"[{"op":"move","from":"/a/b","path":""}]"#, r#"{"c":1}"#),
        (r#"{"a":1,"b":{"c":{}}}"#, r#"[{"op":"move","from":"/a","path":"/b/c/d"}]"#, r#"{"b":{"c":{"d":1}}}"#),
        // Copy: a value of its own.
        (
            r#"{"a":{"x":1}}"#,
            r#"[{"op":"copy","from":"/a","path":"/b"},{"op":"replace","path":"/a/x","value":2}]"#,
            r#"{"a":{"x":2},"b":{"x":1}}"#,
        ),
        (r#"{"a":{}}"#, r#"[{"op":"copy","from":"/a","path":"/a/b"}]"#, r#"{"a":{"b":{}}}"#),
        (r#"{"a":1}"#, r#"[{"op":"copy","from":"","path":"/b"}]"#, r#"{"a":1,"b":{"a":1}}"#),
        (r#"{"l":[1.50]}"#, r#"[{"op":"copy","from":"/l/0","path":"/l/0"}]"#, r#"{"l":[1.50,1.50]}"#),
        // Test: the same to a user.
        (
            r#"{"a":1.0,"b":{"x":1,"y":[null]}}"#,
            r#"[{"op":"test","path":"/a","value":1},{"op":"test","path":"/b","value":{"y":[null],"x":1e0}},{"op":"test","path":"","value":{"b":{"x":1,"y":[null]},"a":1}}]"#,
            r#"{"a":1.0,"b":{"x":1,"y":[null]}}"#,
        ),
        (
            r#"{"1e0":"x","":0," ":7,"c%d":2}"#,
            r#"[{"op":"test","path":"/1e0","value":"x"},{"op":"test","path":"/","value":0},{"op":"test","path":"/ ","value":7},{"op":"test","path":"/c%d","value":2}]"#,
            r#"{"1e0":"x","":0," ":7,"c%d":2}"#,
        ),
        // What the RFC does not define is ignored.
        (r#"{"a":1}"#, r#"[{"op":"remove","path":"/a","value":2,"comment":"x"}]"#, r#"{}"#),
    ]);
}

#[test]
fn a_json_patch_that_does_not_fit_is_refused() {
    check_refusals(&[
        (r#"{"l":[1,2]}"#, r#"[{"op":"add","path":"/l/3","value":0}]"#, "/0 /l/3 out of range of 2"),
        (r#"{"l":[1,2]}"#, r#"[{"op":"add","path":"/l/-1","value":0}]"#, "/0 /l/-1 out of range of 2"),
        (r#"{"l":[1,2]}"#, r#"[{"op":"add","path":"/l/1e0","value":0}]"#, "/0 /l/1e0 out of range of 2"),
        (r#"{"l":[1,2]}"#, r#"[{"op":"add","path":"/l/01","value":0}]"#, "/0 /l/01 out of range of 2"),
        (r#"{"l":[1,2]}"#, r#"[{"op":"add","path":"/l/x","value":0}]"#, "/0 /l/x out of range of 2"),
        (r#"{"l":[1,2]}"#, r#"[{"op":"remove","path":"/l/-"}]"#, "/0 /l/- out of range of 2"),
        (r#"{"l":[1,2]}"#, r#"[{"op":"replace","path":"/l/2","value":0}]"#, "/0 /l/2 out of range of 2"),
        (r#"{"l":[1,2]}"#, r#"[{"op":"move","from":"/l/0","path":"/l/2"}]"#, "/0 /l/2 out of range of 1"),
        (r#"{}"#, r#"[{"op":"add","path":"/a/b","value":0}]"#, "/0 /a missing"),
        (r#"{"a":{}}"#, r#"[{"op":"remove","path":"/a/b"}]"#, "/0 /a/b missing"),
        (r#"{}"#, r#"[{"op":"replace","path":"/a","value":0}]"#, "/0 /a missing"),
        (r#"{}"#, r#"[{"op":"copy","from":"/a","path":"/b"}]"#, "/0 /a missing"),
        (r#"{}"#, r#"[{"op":"move","from":"/a","path":"/a"}]"#, "/0 /a missing"),
        (r#"{"a":"x"}"#, r#"[{"op":"add","path":"/a/b","value":0}]"#, "/0 /a into scalar \"x\""),
        (r#"{"a":null}"#, r#"[{"op":"add","path":"/a/b/c","value":0}]"#, "/0 /a into scalar null"),
        (r#"{"a":1}"#, r#"[{"op":"test","path":"/a","value":"1"}]"#, "/0 /a test found 1"),
        (r#"{"a":[1,2,5]}"#, r#"[{"op":"test","path":"/a","value":[1,2]}]"#, "/0 /a test found [1,2,5]"),
        (r#"{"l":["x","y"]}"#, r#"[{"op":"test","path":"/l/1e0","value":"y"}]"#, "/0 /l/1e0 test found nothing"),
        (r#"{}"#, r#"[{"op":"test","path":"/a","value":null}]"#, "/0 /a test found nothing"),
        // Nothing of what came before is left, as the result is an error.
        (
            r#"{"a":1}"#,
            r#"[{"op":"remove","path":"/a"},{"op":"test","path":"/a","value":1}]"#,
            "/1 /a test found nothing",
        ),
        (r#"{"a":1}"#, r#"[{"op":"replace","path":"","value":[]}]"#, "  not a document"),
        (r#"[1]"#, r#"[{"op":"replace","path":"","value":{}}]"#, "  not a document"),
    ]);
}

#[test]
fn update_operators_do_what_their_rules_say() {
    check_results(&[
        // Inc.
        (r#"{"n":1}"#, r#"[{"op":"inc","path":"n","value":2}]"#, r#"{"n":3}"#),
        (r#"{}"#, r#"[{"op":"inc","path":"a.n","value":-2}]"#, r#"{"a":{"n":-2}}"#),
        (r#"{"n":9223372036854775807}"#, r#"[{"op":"inc","path":"n","value":1}]"#, r#"{"n":9223372036854775808}"#),
        (r#"{"n":0}"#, r#"[{"op":"inc","path":"n","value":-9223372036854775808}]"#, r#"{"n":-9223372036854775808}"#),
        (r#"{"n":1}"#, r#"[{"op":"inc","path":"n","value":0.5}]"#, r#"{"n":1.5}"#),
        (r#"{"n":1.5}"#, r#"[{"op":"inc","path":"n","value":1}]"#, r#"{"n":2.5}"#),
        (r#"{"l":[1,2]}"#, r#"[{"op":"inc","path":"l.1","value":5}]"#, r#"{"l":[1,7]}"#),
        // Set: makes objects, never arrays, and keeps places.
        (r#"{"a":1,"b":2}"#, r#"[{"op":"set","path":"a","value":{"x":[]}}]"#, r#"{"a":{"x":[]},"b":2}"#),
        (r#"{}"#, r#"[{"op":"set","path":"a.b.c","value":null}]"#, r#"{"a":{"b":{"c":null}}}"#),
        (r#"{}"#, r#"[{"op":"set","path":"a.0","value":1}]"#, r#"{"a":{"0":1}}"#),
        (r#"{"l":[1,{"x":2}]}"#, r#"[{"op":"set","path":"l.1.y.z","value":3}]"#, r#"{"l":[1,{"x":2,"y":{"z":3}}]}"#),
        (r#"{"l":[1,2]}"#, r#"[{"op":"set","path":"/l/0","value":3}]"#, r#"{"l":[3,2]}"#),
        (
            r#"{}"#,
            r#"[{"op":"set","path":"a\\.b","value":1},{"op":"set","path":"/$key","value":2},{"op":"set","path":"/","value":3}]"#,
            r#"{"a.b":1,"$key":2,"":3}"#,
        ),
        // Unset: nothing to do where there is nothing.
        (r#"{"a":1,"b":2}"#, r#"[{"op":"unset","path":"a"}]"#, r#"{"b":2}"#),
        (
            r#"{"a":{"b":1}}"#,
            r#"[{"op":"unset","path":"a.b"},{"op":"unset","path":"x.y"},{"op":"unset","path":"a.b.c"}]"#,
            r#"{"a":{}}"#,
        ),
        (
            r#"{"l":[1,2,3]}"#,
            r#"[{"op":"unset","path":"l.0"},{"op":"unset","path":"l.7"},{"op":"unset","path":"l.x"}]"#,
            r#"{"l":[2,3]}"#,
        ),
        (r#"{"a":1}"#, r#"[{"op":"unset","path":"a.b"}]"#, r#"{"a":1}"#),
        // Append: one element, whatever it is.
        (r#"{"l":[1]}"#, r#"[{"op":"append","path":"l","value":2}]"#, r#"{"l":[1,2]}"#),
        (r#"{"l":[1]}"#, r#"[{"op":"append","path":"l","value":[2,3]}]"#, r#"{"l":[1,[2,3]]}"#),
        (r#"{}"#, r#"[{"op":"append","path":"a.l","value":{"x":1}}]"#, r#"{"a":{"l":[{"x":1}]}}"#),
        // Max and min: the field keeps its spelling where it stays.
        (r#"{"n":1}"#, r#"[{"op":"max","path":"n","value":2}]"#, r#"{"n":2}"#),
        (r#"{"n":2.50}"#, r#"[{"op":"max","path":"n","value":2.5}]"#, r#"{"n":2.50}"#),
        (r#"{"n":1}"#, r#"[{"op":"min","path":"n","value":0.5}]"#, r#"{"n":0.5}"#),
        (r#"{"n":1}"#, r#"[{"op":"min","path":"n","value":2}]"#, r#"{"n":1}"#),
        (
            r#"{"s":"b"}"#,
            r#"[{"op":"max","path":"s","value":"c"},{"op":"min","path":"s","value":"bb"}]"#,
            r#"{"s":"bb"}"#,
        ),
        (
            r#"{}"#,
            r#"[{"op":"max","path":"a.n","value":-1},{"op":"min","path":"m","value":1}]"#,
            r#"{"a":{"n":-1},"m":1}"#,
        ),
        (
            r#"{"n":9007199254740992}"#,
            r#"[{"op":"max","path":"n","value":9007199254740993}]"#,
            r#"{"n":9007199254740993}"#,
        ),
        // Now.
        (r#"{"t":null}"#, r#"[{"op":"now","path":"t"}]"#, r#"{"t":"2026-11-21T01:06:00.123Z"}"#),
        (r#"{}"#, r#"[{"op":"now","path":"a.t","form":"unix_ms"}]"#, r#"{"a":{"t":1795223160123}}"#),
        // Each sees what the ones before it did.
        (
            r#"{}"#,
            r#"[{"op":"set","path":"n","value":5},{"op":"inc","path":"n","value":1},{"op":"max","path":"n","value":9}]"#,
            r#"{"n":9}"#,
        ),
    ]);
}

#[test]
fn an_update_that_does_not_fit_is_refused() {
    check_refusals(&[
        (r#"{"n":"1"}"#, r#"[{"op":"inc","path":"n","value":1}]"#, "/0 /n wrong type \"1\""),
        (r#"{"n":null}"#, r#"[{"op":"inc","path":"n","value":1}]"#, "/0 /n wrong type null"),
        (
            r#"{"n":18446744073709551615}"#,
            r#"[{"op":"inc","path":"n","value":1}]"#,
            "/0 /n overflow 18446744073709551615",
        ),
        (
            r#"{"n":-9223372036854775808}"#,
            r#"[{"op":"inc","path":"n","value":-1}]"#,
            "/0 /n overflow -9223372036854775808",
        ),
        (
            r#"{"n":100000000000000000000}"#,
            r#"[{"op":"inc","path":"n","value":1}]"#,
            "/0 /n overflow 100000000000000000000",
        ),
        (r#"{}"#, r#"[{"op":"inc","path":"n","value":100000000000000000000}]"#, "/0 /n overflow 0"),
        (r#"{"n":1.7e308}"#, r#"[{"op":"inc","path":"n","value":1.7e308}]"#, "/0 /n overflow 1.7e308"),
        (r#"{"a":1}"#, r#"[{"op":"set","path":"a.b","value":1}]"#, "/0 /a into scalar 1"),
        (r#"{"a":null}"#, r#"[{"op":"set","path":"a.b.c","value":1}]"#, "/0 /a into scalar null"),
        (r#"{"a":"x"}"#, r#"[{"op":"inc","path":"a.b","value":1}]"#, "/0 /a into scalar \"x\""),
        (r#"{"l":[1]}"#, r#"[{"op":"set","path":"l.1","value":1}]"#, "/0 /l/1 out of range of 1"),
        (r#"{"l":[1]}"#, r#"[{"op":"set","path":"l.x","value":1}]"#, "/0 /l/x out of range of 1"),
        (r#"{"l":[1]}"#, r#"[{"op":"append","path":"l.1.m","value":1}]"#, "/0 /l/1 out of range of 1"),
        (r#"{"l":"x"}"#, r#"[{"op":"append","path":"l","value":1}]"#, "/0 /l wrong type \"x\""),
        (r#"{"l":null}"#, r#"[{"op":"append","path":"l","value":1}]"#, "/0 /l wrong type null"),
        (r#"{"n":"1"}"#, r#"[{"op":"max","path":"n","value":2}]"#, "/0 /n wrong type \"1\""),
        (r#"{"n":true}"#, r#"[{"op":"min","path":"n","value":"a"}]"#, "/0 /n wrong type true"),
        (
            r#"{"a":1}"#,
            r#"[{"op":"unset","path":"a"},{"op":"now","path":"b"},{"op":"inc","path":"b","value":1}]"#,
            "/2 /b wrong type \"2026-11-21T01:06:00.123Z\"",
        ),
        ("[1]", r#"[{"op":"set","path":"a","value":1}]"#, "  not a document"),
    ]);
}

#[test]
fn each_fault_of_a_patch_is_told_with_its_place() {
    use FaultKind::{Invalid, UnknownField};

    let many = format!("[{}]", vec![r#"{"op":"unset","path":"a"}"#; limits::PATCH_OPERATIONS_MAX + 1].join(","));
    for (text, expected) in [
        ("1", vec![("/patch", Invalid)]),
        ("\"{}\"", vec![("/patch", Invalid)]),
        ("[1]", vec![("/patch/0", Invalid)]),
        ("[{}]", vec![("/patch/0/op", Invalid), ("/patch/0/path", Invalid)]),
        (r#"[{"op":"spam","path":"/a","value":1}]"#, vec![("/patch/0/op", Invalid)]),
        (r#"[{"op":"add","path":"/a"}]"#, vec![("/patch/0/value", Invalid)]),
        (r#"[{"op":"add","path":"a","value":1}]"#, vec![("/patch/0/path", Invalid)]),
        (r#"[{"op":"add","path":"/~","value":1}]"#, vec![("/patch/0/path", Invalid)]),
        (r#"[{"op":"add","value":1}]"#, vec![("/patch/0/path", Invalid)]),
        (r#"[{"op":"copy","path":"/a"}]"#, vec![("/patch/0/from", Invalid)]),
        (r#"[{"op":"move","from":"/a","path":"/a/b"}]"#, vec![("/patch/0", Invalid)]),
        (r#"[{"op":"remove","path":""}]"#, vec![("/patch/0", Invalid)]),
        (
            r#"[{"op":"remove","path":"/a"},{"op":"inc","path":"a","value":1}]"#,
            vec![("/patch/1/path", Invalid), ("/patch/1/op", Invalid)],
        ),
        (r#"[{"op":"inc","path":"a","value":"1"}]"#, vec![("/patch/0", Invalid)]),
        (r#"[{"op":"max","path":"a","value":null}]"#, vec![("/patch/0", Invalid)]),
        (r#"[{"op":"set","path":"$version","value":1}]"#, vec![("/patch/0/path", Invalid)]),
        (r#"[{"op":"set","path":"","value":1}]"#, vec![("/patch/0/path", Invalid)]),
        (r#"[{"op":"unset","path":"a","value":1}]"#, vec![("/patch/0/value", UnknownField)]),
        (r#"[{"op":"now","path":"a","form":"iso"}]"#, vec![("/patch/0/form", Invalid)]),
        (
            r#"[{"op":"inc","path":"a..b","value":"x"},{"op":"set"}]"#,
            vec![("/patch/0/path", Invalid), ("/patch/1/path", Invalid), ("/patch/1/value", Invalid)],
        ),
        (&many, vec![("/patch", Invalid)]),
    ] {
        let faults = Patch::read(&json(text), "/patch").expect_err(text);
        let found: Vec<_> = faults.iter().map(|fault| (fault.pointer.as_str(), fault.kind)).collect();
        assert_eq!(found, expected, "{text}");
    }
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
