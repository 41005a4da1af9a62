//! JSON values, paths, times, and the order of values.
//!
//! The seed of a failure is printed by proptest; `PROPTEST_CASES` sets how many are tried.

use std::cmp::Ordering;

use crate::document_support::{NUMBERS, json, number_texts, table, texts};
use proptest::prelude::*;
use quorate_machine::document::order::{compare, encode_scalar, same};
use quorate_machine::document::path::{Field, MetaField, Path, PathError};
use quorate_machine::document::{Json, Number, Numeric, time};
use quorate_machine::{codec, limits};

fn key_bytes(value: &Json<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(encode_scalar(value, &mut bytes), "{value:?} is a scalar");
    bytes
}

/// Sign and decimal digits of the exact value of a number, comparable as they are.
fn digits(text: &str) -> (bool, String) {
    let exact = match text.parse::<i128>() {
        Ok(integer) => format!("{integer}."),
        Err(_) => format!("{:.1100}", text.parse::<f64>().unwrap()),
    };
    let (whole, rest) = exact.trim_start_matches('-').split_once('.').unwrap();
    let digits = format!("{whole:0>400}{rest:0<1100}");
    (exact.starts_with('-') && digits.contains(|digit| digit != '0'), digits)
}

fn compare_exactly(a: &str, b: &str) -> Ordering {
    match (digits(a), digits(b)) {
        ((false, a), (false, b)) => a.cmp(&b),
        ((true, a), (true, b)) => b.cmp(&a),
        ((a_is_negative, _), (b_is_negative, _)) => b_is_negative.cmp(&a_is_negative),
    }
}

/// 64-bit integers of both kinds and doubles, with many that lie next to each other.
fn numbers() -> impl Strategy<Value = String> {
    let near = (prop_oneof![any::<i64>().prop_map(i128::from), any::<u64>().prop_map(i128::from)], 0..4).prop_map(
        |(integer, way)| {
            let float = integer as f64;
            match way {
                0 => integer.to_string(),
                1 => format!("{float:?}"),
                2 => format!("{:?}", float.next_up()),
                _ => format!("{:?}", float.next_down()),
            }
        },
    );
    let floats = any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |float| float.is_finite());
    prop_oneof![
        number_texts()
            .prop_filter("fits 64 bits or is a double", |text| text.contains(['.', 'e', 'E']) || text.len() < 20),
        near,
        floats.prop_map(|float| format!("{float:?}")),
        (0..64u32, -2..=2i128).prop_map(|(bits, beside)| ((1i128 << bits) + beside).to_string()),
    ]
}

#[test]
fn numbers_compare_by_value_however_they_are_written() {
    for (row_a, a) in NUMBERS.iter().enumerate().flat_map(|(row, texts)| texts.iter().map(move |text| (row, text))) {
        for (row_b, b) in NUMBERS.iter().enumerate().flat_map(|(row, texts)| texts.iter().map(move |text| (row, text)))
        {
            let expected = row_a.cmp(&row_b);
            assert_eq!(compare(&json(a), &json(b)), expected, "{a} beside {b}");
            assert_eq!(same(&json(a), &json(b)), expected.is_eq(), "{a} beside {b}");
            assert_eq!(key_bytes(&json(a)).cmp(&key_bytes(&json(b))), expected, "{a} beside {b} as bytes");
        }
    }
}

#[test]
fn kinds_sort_in_one_order() {
    let ascending = [
        "null",
        "false",
        "true",
        "-1",
        "0",
        "1.5",
        r#""""#,
        r#""\u0000""#,
        r#""a""#,
        r#""a\u0000""#,
        r#""a\u0000a""#,
        r#""aa""#,
        r#""é""#,
        "[]",
        "[null]",
        "[1]",
        "[1,0]",
        "[2]",
        "{}",
        r#"{"a":1}"#,
        r#"{"b":0,"a":1}"#,
        r#"{"a":2}"#,
        r#"{"b":0}"#,
    ];
    for (at_a, a) in ascending.iter().enumerate() {
        for (at_b, b) in ascending.iter().enumerate() {
            assert_eq!(compare(&json(a), &json(b)), at_a.cmp(&at_b), "{a} beside {b}");
        }
    }
    assert!(same(&json(r#"{"a":1,"b":[2.0]}"#), &json(r#"{"b":[2],"a":1e0}"#)));
    assert!(compare(&json(r#"{"a":1,"a":3}"#), &json(r#"{"a":3}"#)).is_eq(), "the last member of a name counts");
    assert!(!encode_scalar(&json("[]"), &mut Vec::new()) && !encode_scalar(&json("{}"), &mut Vec::new()));
}

#[test]
fn a_text_is_read_and_written_as_it_was() {
    for (text, written) in [
        (r#" { "z" : 1 , "a" : [ ] , "m" : { } } "#, r#"{"z":1,"a":[],"m":{}}"#),
        (
            "[1.10,1E5,-0,123456789012345678901234567890,18446744073709551615]",
            "[1.10,1E5,-0,123456789012345678901234567890,18446744073709551615]",
        ),
        (r#""\u0041\/\u00e9\ud83d\ude00\u001F\u007f""#, "\"A/é😀\\u001f\u{7f}\""),
        (r#""\b\f\n\r\t\"\\""#, r#""\b\f\n\r\t\"\\""#),
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":1,"b":2,"a":3}"#),
    ] {
        assert_eq!(json(text).to_text(), written);
        assert_eq!(json(text).text_bytes(), written.len());
    }
    assert!(matches!(json(r#"{"a":1,"a":3}"#), Json::Object(object) if object.get("a") == Some(&json("3"))));
}

#[test]
fn strings_and_numbers_of_any_length_are_read_whole() {
    for length in 1..80 {
        let (letters, digits) = ("x".repeat(length), "7".repeat(length));
        for text in [
            format!("\"{letters}\""),
            format!("\"{letters}\\n{letters}\""),
            format!("\"{letters}\u{1}\""),
            format!("\"{letters}"),
            format!("[{digits},-{digits},{digits}.5,{digits}e1,\"{letters}\",{digits}]"),
            format!("[{digits},0{digits}]"),
            digits.clone(),
        ] {
            let is_json = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            let read = Json::parse(text.as_bytes()).map(|json| json.to_text());
            assert_eq!(read.ok(), is_json.then_some(text));
        }
    }
}

/// All texts of five of these characters.
fn texts_of(characters: [char; 8]) -> impl Iterator<Item = String> {
    (0..characters.len().pow(5))
        .map(move |nth| (0..5).map(|at| characters[nth / characters.len().pow(at) % characters.len()]).collect())
}

/// Alone, and within a list, which has a way of its own to read numbers.
#[test]
fn numbers_and_lists_are_read_as_serde_json_reads_them() {
    for inner in texts_of(['0', '1', '-', '.', 'e', ',', ' ', ']']) {
        for text in [format!("[{inner}]"), inner] {
            let ours = Json::parse(text.as_bytes());
            assert_eq!(ours.is_ok(), serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text:?}");
            if let Ok(json) = ours {
                assert_eq!(json.to_text(), text.replace(' ', ""));
            }
        }
    }
}

/// At the begin of a string, and behind enough bytes that they are looked at in blocks.
#[test]
fn strings_are_read_as_serde_json_reads_them() {
    for inner in texts_of(['"', '\\', 'u', 'd', '8', 'n', '\u{1f}', 'é']) {
        for before in [0, 22, 54] {
            let text = format!("\"{}{inner}\"", "x".repeat(before));
            let theirs = serde_json::from_str::<serde_json::Value>(&text).ok();
            match (Json::parse(text.as_bytes()).ok(), theirs) {
                (Some(Json::String(ours)), Some(serde_json::Value::String(theirs))) => assert_eq!(ours, theirs),
                (ours, theirs) => assert!(ours.is_none() && theirs.is_none(), "{text:?}: {ours:?}, {theirs:?}"),
            }
        }
    }
    for halves in ["\\ud83d\\ude00", "\\ud83d", "\\ude00", "\\ud83dx", "\\ud83d\\n", "\\ude00\\ud83d"] {
        let text = format!("\"{halves}\"");
        assert_eq!(Json::parse(text.as_bytes()).is_ok(), serde_json::from_str::<String>(&text).is_ok(), "{text}");
    }
}

#[test]
fn a_number_is_worth_what_is_written_at_any_length() {
    for length in 1..=40 {
        let round = format!("1{:0>length$}", 0);
        for digits in ["1".repeat(length), "7".repeat(length), "9".repeat(length), round] {
            for text in [digits.clone(), format!("-{digits}"), format!("{digits}.0"), format!("{digits}e1")] {
                let Json::Number(number) = json(&text) else { panic!("{text}") };
                let is_64_bit = |integer: &i128| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(integer);
                match (number.value(), text.parse::<i128>().ok().filter(is_64_bit)) {
                    (Numeric::Integer(found), Some(integer)) => assert_eq!(found, integer, "{text}"),
                    (Numeric::Float(found), None) => {
                        assert_eq!(found.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
                    }
                    (found, _) => panic!("{text}: {found:?}"),
                }
            }
        }
    }
}

#[test]
fn what_is_not_json_is_refused_as_serde_json_refuses_it() {
    let mut texts: Vec<_> = table("json_texts").concat();
    texts.extend(["", " ", "\"\n\"", "\"\u{1}\"", "\u{feff}1", " [ ] "].map(String::from));
    texts.push("9".repeat(308));
    texts.push("9".repeat(400));
    for text in &texts {
        let theirs = serde_json::from_str::<serde_json::Value>(text).is_ok();
        assert_eq!(Json::parse(text.as_bytes()).is_ok(), theirs, "{text:?}");
    }
    assert!(Json::parse(b"\"\xFF\"").is_err() && Json::parse(b"\"\\\xC3\xA9\"").is_err());
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

#[test]
fn depth_is_bounded_in_texts_and_in_records() {
    for depth in [1, limits::JSON_DEPTH_MAX, limits::JSON_DEPTH_MAX + 1, 100_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let fits = depth <= limits::JSON_DEPTH_MAX;
            assert_eq!(Json::parse(text.as_bytes()).is_ok(), fits, "depth {depth} of {open}");
            assert_eq!(codec::decode::<Json<'static>>(&codec::encode(&text)).is_ok(), fits, "depth {depth} of {open}");
        }
    }
    assert_eq!(json("[[],{\"a\":[1]}]").depth(), 3);
}

#[test]
fn sums_of_integers_are_integers_or_overflow() {
    let number = |text: &str| match json(text) {
        Json::Number(number) => number,
        other => panic!("{other:?}"),
    };
    for row in table("sums") {
        let [a, b, sum] = &row[..] else { panic!("{row:?}") };
        let found = number(a).add(&number(b)).ok();
        assert_eq!(found.as_ref().map_or("-", Number::as_str), sum, "{a} + {b}");
        assert_eq!(number(b).add(&number(a)).ok(), found, "{b} + {a}");
    }
}

#[test]
fn paths_are_read_in_both_notations() {
    for (text, names) in [
        ("a", vec!["a"]),
        ("a.b.0.c", vec!["a", "b", "0", "c"]),
        (r"a\.b.c\\d", vec!["a.b", r"c\d"]),
        ("a/b~c", vec!["a/b~c"]),
        ("a.$key", vec!["a", "$key"]),
        ("/a/b/0/c", vec!["a", "b", "0", "c"]),
        ("/", vec![""]),
        ("//x", vec!["", "x"]),
        ("/a~1b/m~0n/~01", vec!["a/b", "m~n", "~1"]),
        ("/$key", vec!["$key"]),
        (r"/a.b\", vec![r"a.b\"]),
    ] {
        let path = Path::parse(text).unwrap();
        assert_eq!(path.names(), names, "{text}");
        assert_eq!(Path::parse_pointer(&path.to_string()), Ok(path.clone()), "{text} as a pointer");
        assert_eq!(codec::decode::<Path>(&codec::encode(&path)), Ok(path), "{text} encoded");
    }
    assert_eq!(Path::parse_pointer("").unwrap().names(), Vec::<String>::new());
}

#[test]
fn what_is_not_a_path_is_refused_by_name() {
    let deep = |count| "/a".repeat(count);
    for (text, error) in [
        ("", PathError::Empty),
        (".", PathError::EmptyName(0)),
        ("a.", PathError::EmptyName(1)),
        ("a..b", PathError::EmptyName(1)),
        (r"a\b", PathError::BadEscape(1)),
        (r"ab\", PathError::BadEscape(2)),
        ("/a~", PathError::BadTilde(2)),
        ("/a~2", PathError::BadTilde(2)),
        ("$nothing", PathError::UnknownMetadata),
        ("$key.x", PathError::UnknownMetadata),
        ("$", PathError::UnknownMetadata),
        (&deep(limits::JSON_DEPTH_MAX + 1), PathError::TooDeep(limits::JSON_DEPTH_MAX + 1)),
        (&"x".repeat(limits::PATH_BYTES_MAX), PathError::TooLong(limits::PATH_BYTES_MAX + 1)),
    ] {
        assert_eq!(Field::parse(text), Err(error), "{text}");
    }
    assert_eq!(Path::parse("$key"), Err(PathError::NotInDocument));
    assert_eq!(Path::parse_pointer("a"), Err(PathError::NoSlash));
    assert!(Path::parse(&deep(limits::JSON_DEPTH_MAX)).is_ok());
    assert_eq!(Field::parse("$cas"), Ok(Field::Meta(MetaField::Cas)));
}

#[test]
fn a_path_leads_to_what_it_names() {
    let document = json(r#"{"a":{"b":[10,{"c":null}],"0":1},"":{"$x":2},"a.b":3}"#);
    for row in table("path_finds") {
        let [path, found] = &row[..] else { panic!("{row:?}") };
        let found = (found != "-").then(|| json(found));
        assert_eq!(Path::parse(path).unwrap().find(&document), found.as_ref(), "{path}");
    }
}

#[test]
fn times_are_written_and_read() {
    for (ms, text) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_795_223_160_123, "2026-11-21T01:06:00.123Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ] {
        assert_eq!(time::format(ms), text);
        assert_eq!(time::parse(text), Some(i128::from(ms) * 1_000_000), "{text}");
    }
    assert_eq!(time::format(u64::MAX), "9999-12-31T23:59:59.999Z");
    assert_eq!(time::parse(""), None);
    for row in table("times") {
        let [text, nanos] = &row[..] else { panic!("{row:?}") };
        let parsed = time::parse(text).map_or("-".into(), |nanos| nanos.to_string());
        assert_eq!(&parsed, nanos, "{text}");
    }
}

#[test]
fn an_excerpt_is_cut_between_characters() {
    let long = json(&format!("\"{}\"", "é".repeat(limits::EXCERPT_BYTES_MAX))).excerpt();
    assert!(!long.is_whole && long.text.len() <= limits::EXCERPT_BYTES_MAX, "{long:?}");
    assert!(long.text.len() >= limits::EXCERPT_BYTES_MAX - 1 && long.text.ends_with('é'), "{long:?}");
    let fitting = format!("[\"{}\"]", "a".repeat(limits::EXCERPT_BYTES_MAX - 4));
    assert_eq!((json(&fitting).excerpt().text, json(&fitting).excerpt().is_whole), (fitting, true));
}

proptest! {
    #[test]
    fn canonical_text_survives_reading_and_writing(text in texts()) {
        let value = json(&text);
        prop_assert_eq!(value.to_text(), text.clone());
        prop_assert_eq!(value.text_bytes(), text.len());
        prop_assert_eq!(codec::decode::<Json<'static>>(&codec::encode(&value)), Ok(value.clone()));
        prop_assert!(same(&value, &value) && value.borrowed() == value);
    }

    #[test]
    fn any_text_is_read_as_serde_json_reads_it(text in r#"[\[\]{}:,"\\u0-9a-f.eE+ \-]{0,12}"#) {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        prop_assert_eq!(Json::parse(text.as_bytes()).is_ok(), theirs.is_ok(), "{:?}", theirs);
    }

    #[test]
    fn numbers_of_all_kinds_compare_exactly_and_so_do_their_bytes(a in numbers(), b in numbers()) {
        let expected = compare_exactly(&a, &b);
        prop_assert_eq!(compare(&json(&a), &json(&b)), expected, "{} beside {}", a, b);
        prop_assert_eq!(key_bytes(&json(&a)).cmp(&key_bytes(&json(&b))), expected, "{} beside {} as bytes", a, b);
    }

    #[test]
    fn the_order_of_values_is_total_and_bytes_follow_it(a in texts(), b in texts(), c in texts()) {
        let (a, b, c) = (json(&a), json(&b), json(&c));
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
        prop_assert_eq!(compare(&a, &b).is_eq(), same(&a, &b));
        if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
            prop_assert!(compare(&a, &c).is_le());
        }
        if a.depth() + b.depth() == 0 {
            prop_assert_eq!(key_bytes(&a).cmp(&key_bytes(&b)), compare(&a, &b));
        }
    }

    #[test]
    fn strings_sort_as_bytes_also_in_front_of_other_parts(a in "[\0\u{1}a]{0,4}", b in "[\0\u{1}a]{0,4}", x in 0..3, y in 0..3) {
        let composite = |text: &str, number: i32| {
            let mut bytes = key_bytes(&Json::String(text.into()));
            bytes.extend(key_bytes(&json(&number.to_string())));
            bytes
        };
        prop_assert_eq!(composite(&a, x).cmp(&composite(&b, y)), (a.as_bytes(), x).cmp(&(b.as_bytes(), y)));
    }
}
