//! What the tests of documents share.

use std::fs;

use proptest::prelude::*;
use quorate_machine::document::{Fault, FaultKind, Json};

/// The rows of a table of `testscripts/documents`: cells between ` | `. Empty lines and those that begin with `# ` are not of it.
pub fn table(name: &str) -> Vec<Vec<String>> {
    let path = format!("{}/testscripts/documents/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    let rows: Vec<Vec<_>> = lines.map(|line| line.split(" | ").map(str::to_owned).collect()).collect();
    assert!(!rows.is_empty(), "{path} has no row");
    rows
}

/// The values of a cell, which stand between ` ; `. A cell of none is `-`.
pub fn values(cell: &str) -> Vec<&str> {
    if cell == "-" { Vec::new() } else { cell.split(" ; ").collect() }
}

/// Where faults are, as tables say it: a field that nobody knows is `unknown`, every other fault is one of what is there.
pub fn places(faults: &[Fault]) -> String {
    let place = |fault: &Fault| match fault.kind {
        FaultKind::UnknownField => format!("{} unknown", fault.pointer),
        FaultKind::Invalid => fault.pointer.clone(),
    };
    faults.iter().map(place).collect::<Vec<_>>().join(" ")
}

/// Numbers in ascending order; those in one row are equal, however they are written.
pub const NUMBERS: [&[&str]; 18] = [
    &["-1e300"],
    &["-18446744073709551616", "-1.8446744073709551616e19"],
    &["-9223372036854775809.0e0", "-9223372036854775808", "-9.223372036854775808e18"],
    &["-9223372036854775807"],
    &["-9007199254740993"],
    &["-9007199254740992", "-9007199254740992.0"],
    &["-1.5"],
    &["-1", "-1.0", "-10e-1"],
    &["0", "-0", "0.0", "-0.0", "0e5"],
    &["5e-324"],
    &["0.1", "0.10", "1e-1"],
    &["1", "1.0", "1E0"],
    &["2.5"],
    &["9007199254740992", "9007199254740992.0", "9007199254740993.0"],
    &["9007199254740993"],
    &["9223372036854775808", "9223372036854775808.0"],
    &["18446744073709551615"],
    &["18446744073709551616", "18446744073709551616.0", "18446744073709551617"],
];

/// A value with a text of its own.
pub fn json(text: &str) -> Json<'static> {
    Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).into_owned()
}

/// Any number of [`NUMBERS`].
pub fn number_texts() -> impl Strategy<Value = String> {
    (0..NUMBERS.len(), any::<prop::sample::Index>())
        .prop_map(|(row, at)| NUMBERS[row][at.index(NUMBERS[row].len())].to_owned())
}

/// Texts of small values of every kind, without insignificant whitespace and needless escapes. No name occurs twice in an object.
pub fn texts() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        number_texts(),
        "[a-c%_]{0,3}".prop_map(|text| format!("\"{text}\"")),
        Just(r#""\"\\\n\u0000é😀""#.to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            members(inner),
        ]
    })
}

/// Texts of objects.
pub fn objects() -> impl Strategy<Value = String> {
    members(texts())
}

fn members(values: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::vec(values, 5).prop_flat_map(|values| {
        let names = prop::sample::subsequence(vec!["a", "b", "c", "0", ""], 0..=5).prop_shuffle();
        names.prop_map(move |names| {
            let members: Vec<_> =
                names.iter().zip(&values).map(|(name, value)| format!("\"{name}\":{value}")).collect();
            format!("{{{}}}", members.join(","))
        })
    })
}
