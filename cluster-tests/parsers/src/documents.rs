//! Target `documents`: JSON values, field paths, criteria, patches and rules as they are written.
//!
//! Up to four lines: a document, criteria, a patch, a path (or any other value). Numbers are kept digit by digit, a text that can be read
//! is one that serde_json reads too, what was read is written in a form that means the same, every fault is told with a pointer, and what
//! a patch makes of a document can be read again.

use std::cmp::Ordering;

use quorate_machine::document::path::{Field, Path};
use quorate_machine::document::{Criteria, Fault, Json, JsonError, Patch, Subject, like_matches, order, time};
use quorate_machine::rules::Rules;
use quorate_machine::types::Key;
use quorate_machine::{codec, limits};
use serde_json::Value;

use super::{assert_explained, memory, samples};

const SLACK_BYTES: usize = 4 * 1024 * 1024;

/// See the head of this file.
pub fn check(data: &[u8]) {
    let mut lines = data.splitn(4, |byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (document, criteria, patch, last) = (line(), line(), line(), line());
    memory::within(SLACK_BYTES + 4096 * data.len(), "documents", || {
        let document = parse(document);
        check_criteria(criteria, document.as_ref());
        check_patch(patch, document.as_ref());
        check_path(last);
        if let (Some(a), Some(b)) = (&document, parse(last)) {
            check_order(a, &b);
            check_rules(&b);
        }
    });
}

fn parse(text: &[u8]) -> Option<Json<'_>> {
    let theirs = serde_json::from_slice::<Value>(text);
    let json = match Json::parse(text) {
        Ok(json) => json,
        Err(error) => {
            assert_explained(&error);
            let is_ours = matches!(error, JsonError::TooDeep(_));
            assert!(is_ours || theirs.is_err(), "{error}, but serde_json reads {}", text.escape_ascii());
            return None;
        }
    };
    let theirs = theirs.unwrap_or_else(|error| panic!("{error}, but we read {}", text.escape_ascii()));
    let written = json.to_text();
    assert_eq!(Json::parse(written.as_bytes()).as_ref(), Ok(&json), "{written}");
    assert_eq!(serde_json::from_str::<Value>(&written).ok(), Some(theirs), "{written}");
    assert_eq!(json.text_bytes(), written.len(), "{written}");
    if !text.contains(&b'\\') {
        assert_eq!(written.as_bytes(), without_blanks(text), "numbers and members stay as they were written");
    }
    let record = codec::encode(&json);
    assert_eq!(codec::decode::<Json<'static>>(&record).as_ref(), Ok(&json));
    Some(json)
}

/// A text without escapes, and without the blanks between its parts.
fn without_blanks(text: &[u8]) -> Vec<u8> {
    let mut within = false;
    let keep = |byte: &u8| {
        within ^= *byte == b'"';
        within || !byte.is_ascii_whitespace()
    };
    let mut keep = keep;
    text.iter().copied().filter(|byte| keep(byte)).collect()
}

fn check_faults(faults: &[Fault], root: &str) {
    assert!(!faults.is_empty() && faults.len() <= limits::READ_FAULTS_MAX, "{faults:?}");
    assert!(faults.iter().all(|fault| fault.pointer.starts_with(root) && !fault.detail.is_empty()), "{faults:?}");
}

fn check_criteria(text: &[u8], document: Option<&Json<'_>>) {
    let Some(json) = parse(text) else { return };
    let criteria = match Criteria::read(&json, "/if") {
        Ok(criteria) => criteria,
        Err(faults) => return check_faults(&faults, "/if"),
    };
    assert_eq!(codec::decode::<Criteria>(&codec::encode(&criteria)).as_ref(), Ok(&criteria));
    let key = Key::new("k").expect("a key");
    for document in [None, document] {
        let subject = Subject { key: &key, meta: None, is_locked: false, document, clock: 0, wall: samples::WALL };
        let unmet = criteria.unmet(&subject, "/if");
        assert_eq!(criteria.hold(&subject), unmet.is_empty(), "{unmet:?}");
        assert!(unmet.len() <= limits::UNMET_MAX && unmet.iter().all(|unmet| unmet.pointer.starts_with("/if/")));
    }
}

fn check_patch(text: &[u8], document: Option<&Json<'_>>) {
    let Some(json) = parse(text) else { return };
    let patch = match Patch::read(&json, "/patch") {
        Ok(patch) => patch,
        Err(faults) => return check_faults(&faults, "/patch"),
    };
    assert_eq!(codec::decode::<Patch>(&codec::encode(&patch)).as_ref(), Ok(&patch));
    let Some(document) = document else { return };
    let apply = || patch.apply_to_text(document.clone(), samples::WALL, "/patch");
    let patched = apply();
    assert_eq!(patched, apply(), "the same patch, another outcome");
    match patched {
        Ok(text) => {
            let read = Json::parse(&text).map(drop);
            assert_eq!(read, Ok(()), "what a patch made cannot be read: {}", text.escape_ascii());
        }
        Err(refusal) => assert!(refusal.pointer.starts_with("/patch"), "{refusal:?}"),
    }
}

fn check_path(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    match Path::parse(text) {
        Ok(path) => assert_eq!(Path::parse_pointer(&path.to_string()), Ok(path)),
        Err(error) => assert_explained(&error),
    }
    match Field::parse(text) {
        Ok(field) => assert_eq!(Field::parse(&field.to_string()), Ok(field)),
        Err(error) => assert_explained(&error),
    }
    if let Some(moment) = time::parse(text).and_then(|moment| i64::try_from(moment / 1_000_000).ok()) {
        let _text = time::from_unix_ms(moment);
    }
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (pattern, subject) = text.split_at(middle);
    let _matches = like_matches(pattern, subject);
}

fn check_order(a: &Json<'_>, b: &Json<'_>) {
    assert_eq!(order::compare(a, a), Ordering::Equal);
    assert_eq!(order::compare(a, b), order::compare(b, a).reverse());
    assert_eq!(order::same(a, b), order::same(b, a));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    if order::encode_scalar(a, &mut first) && order::encode_scalar(b, &mut second) {
        assert_eq!(first.cmp(&second), order::compare(a, b), "the bytes of an index are in another order");
        assert_eq!(order::same(a, b), first == second);
        let both = [&first[..], &second].concat();
        assert_eq!(order::skip_sort(&both), Some(&second[..]), "where one form ends");
    }
}

fn check_rules(json: &Json<'_>) {
    match Rules::read(json, "/rules") {
        Ok(rules) => {
            let written = rules.to_json();
            assert_eq!(Rules::read(&written, "/rules").as_ref(), Ok(&rules), "{}", written.to_text());
            assert_eq!(codec::decode::<Rules>(&codec::encode(&rules)).as_ref(), Ok(&rules));
        }
        Err(faults) => check_faults(&faults, "/rules"),
    }
}

/// Documents beside what is asked of them.
pub fn samples() -> Vec<Vec<u8>> {
    let document = r#"{"n":1,"a":{"b":"xyz","c":null},"e":[1.50,-0.0,18446744073709551615,9007199254740993],"t":"2023-01-01T00:00:00Z"}"#;
    let criteria = [
        r#"[{"field":"n","op":"gte","value":1},{"field":"a.b","op":"like","value":"x%"}]"#,
        r#"[{"any":[{"field":"e/0","op":"in","value":[1.5,2]},{"not":{"field":"$version","op":"lt","value":9}}]}]"#,
        r#"[{"all":[{"field":"t","op":"between","value":["2022-01-01T00:00:00Z",{"now":true}]},{"field":"$cas","op":"eq","value":"7"}]}]"#,
        r#"[{"field":"e","op":"contains","value":1.5},{"field":"$locked","op":"eq","value":false},{"field":"x","op":"nexists"}]"#,
    ];
    let patches = [
        r#"{"a":{"b":null,"d":{"e":1}},"n":2}"#,
        r#"[{"op":"add","path":"/e/-","value":{"x":1e2}},{"op":"move","from":"/a/b","path":"/m"},{"op":"test","path":"/n","value":1.0}]"#,
        r#"[{"op":"inc","path":"n","value":2},{"op":"append","path":"e","value":"z"},{"op":"max","path":"a.m","value":5},{"op":"now","path":"w"}]"#,
        r#"[{"op":"copy","from":"/a","path":"/a/c"},{"op":"copy","from":"/a","path":"/a/c/c"},{"op":"remove","path":"/e/1"}]"#,
    ];
    let lasts = [
        "a.b\\.c",
        r#"{"fields":{"n":{"type":"integer","default":0},"t":{"type":"datetime","auto":"write"}},"indexes":[{"fields":["n","a.b"],"unique":true}],"required":["n"]}"#,
        "18446744073709551616",
        "/a~1b/~0",
    ];
    let lines = criteria.iter().zip(patches).zip(lasts);
    let mut all: Vec<_> = lines
        .map(|((criteria, patch), last)| format!("{document}\n{criteria}\n{patch}\n{last}").into_bytes())
        .collect();
    for (one, other) in
        [("9007199254740993", "9007199254740992.0"), ("\"a\\u0000\"", "\"a\""), ("-0", "5e-324"), ("null", "true")]
    {
        all.push(format!("{one}\n[]\n{{}}\n{other}").into_bytes());
    }
    all
}
