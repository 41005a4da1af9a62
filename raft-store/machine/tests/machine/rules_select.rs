//! Which index answers a search: the tables of `testscripts/documents/index_*`, and a slow model that looks at everything.
//!
//! The seed of a failure is printed by proptest; `PROPTEST_CASES` sets how many are tried.

use std::collections::BTreeMap;

use crate::document_support::{NUMBERS, json, table, values};
use proptest::prelude::*;
use quorate_machine::document::path::{Field, Path};
use quorate_machine::document::{Criteria, Json, Order, OrderField, Subject};
use quorate_machine::rules::{IndexRule, RuleFaultKind, Selection, select, selections};
use quorate_machine::types::{EntryMeta, Key};
use quorate_machine::{codec, limits};

/// 2026-11-21T01:06:00.123Z.
const WALL: u64 = 1_795_223_160_123;

/// Written as `a,b` or, where it is unique, as `!a,b`.
fn index(text: &str) -> IndexRule {
    let (unique, fields) = text.strip_prefix('!').map_or((false, text), |fields| (true, fields));
    IndexRule::new(fields.split(',').map(|field| Path::parse(field).unwrap()).collect(), unique).unwrap()
}

/// Written as `a,-b`.
fn order(text: &str) -> Order {
    let field = |text: &str| {
        let name = text.strip_prefix('-').unwrap_or(text);
        OrderField { field: Field::parse(name).unwrap(), descending: name != text }
    };
    Order::new(text.split(',').filter(|field| !field.is_empty()).map(field).collect())
}

fn criteria(text: &str) -> Criteria {
    Criteria::read(&json(text), "/where").unwrap_or_else(|faults| panic!("{text}: {faults:?}"))
}

/// Criteria written as `a eq 1; b lt 2`.
fn terms(text: &str) -> Criteria {
    let term = |text: &str| {
        let mut parts = text.trim().splitn(3, ' ');
        let (field, op) = (parts.next().unwrap(), parts.next().unwrap());
        let value = parts.next().map(|value| format!(",\"value\":{value}")).unwrap_or_default();
        format!("{{\"field\":\"{field}\",\"op\":\"{op}\"{value}}}")
    };
    let all: Vec<_> = text.split(';').filter(|text| !text.trim().is_empty()).map(term).collect();
    criteria(&format!("[{}]", all.join(",")))
}

/// The selections for indexes with the ids 10, 11, …
fn all_of(indexes: &[IndexRule], criteria: &Criteria, order: Option<&Order>) -> Vec<Selection> {
    let indexes: Vec<_> = indexes.iter().zip(10..).collect();
    let order: Vec<_> = order.iter().flat_map(|order| order.fields()).collect();
    let all = selections(&indexes, criteria, &order, WALL);
    assert_eq!(select(&indexes, criteria, &order, WALL).as_ref(), all.first());
    assert!(all.iter().all(|selection| selection.id == 10 + selection.index as u64), "{all:?}");
    all
}

const META: EntryMeta = EntryMeta {
    create_revision: 5,
    mod_revision: 9,
    version: 3,
    cas: 12,
    expires_at: None,
    locked_until: None,
    session: None,
};

fn subject<'a>(key: &'a Key, document: Option<&'a Json<'a>>) -> Subject<'a> {
    Subject { key, meta: Some(&META), is_locked: false, document, clock: 0, wall: WALL }
}

/// Entries by key; `None` is a value that is not JSON.
type Entries = BTreeMap<Key, Option<Json<'static>>>;

fn entries(documents: &[Option<&str>]) -> Entries {
    let entry =
        |(at, text): (usize, &Option<&str>)| (Key::new(format!("c/{:02}", at * 37 % 100)).unwrap(), text.map(json));
    documents.iter().enumerate().map(entry).collect()
}

/// The keys that a walk through the selected part of an index meets.
fn walked(rule: &IndexRule, selection: &Selection, entries: &Entries) -> Vec<Key> {
    let rows: BTreeMap<Vec<u8>, &Key> = entries
        .iter()
        .map(|(key, document)| ([&rule.key_of(document.as_ref()).unwrap(), key.as_bytes()].concat(), key))
        .collect();
    let ranges = &selection.ranges;
    assert!(ranges.len() <= limits::INDEX_RANGES_MAX, "{} ranges", ranges.len());
    assert!(ranges.iter().all(|(start, end)| start < end), "{ranges:?}");
    assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ranges:?}");
    let met = ranges.iter().flat_map(|(start, end)| rows.range(start.clone()..end.clone()));
    let mut met: Vec<_> = met.map(|(_, key)| (*key).clone()).collect();
    if selection.reverse {
        met.reverse();
    }
    met
}

/// What a search finds by looking at everything, in order.
fn found(criteria: &Criteria, order: &Order, entries: &Entries) -> Vec<Key> {
    let mut found: Vec<_> = entries
        .iter()
        .map(|(key, document)| subject(key, document.as_ref()))
        .filter(|subject| criteria.hold(subject))
        .map(|subject| (order.rank(&subject), subject.key.clone()))
        .collect();
    found.sort();
    found.into_iter().map(|(_, key)| key).collect()
}

fn matching(keys: Vec<Key>, criteria: &Criteria, entries: &Entries) -> Vec<Key> {
    keys.into_iter().filter(|key| criteria.hold(&subject(key, entries[key].as_ref()))).collect()
}

#[test]
fn the_index_chosen_is_in_order_and_narrows_before_all_else() {
    for row in table("index_choices") {
        let [indexes, text, by, expected] = &row[..] else { panic!("{row:?}") };
        let indexes: Vec<_> = values(indexes).into_iter().map(index).collect();
        let order = (by != "*").then(|| order(if by == "key" { "" } else { by }));
        let criteria = terms(if text == "-" { "" } else { text });
        let chosen = all_of(&indexes, &criteria, order.as_ref()).into_iter().next().map(|chosen| {
            let order = if chosen.in_order { "in order" } else { "without order" };
            let way = if chosen.reverse { ", backwards" } else { "" };
            format!("index {}, {order}{way}, {} ranges", chosen.index, chosen.ranges.len())
        });
        assert_eq!(chosen.as_deref().unwrap_or("-"), expected, "{text} by {by:?} of {indexes:?}");
    }
}

#[test]
fn groups_narrow_only_where_all_of_them_must_hold() {
    let of = |text: &str| all_of(&[index("a")], &criteria(text), None).len();
    let term = r#"{"field":"a","op":"eq","value":1}"#;
    assert_eq!(of(&format!("[{{\"all\":[{term}]}}]")), 1);
    assert_eq!(of(&format!("[{{\"all\":[{{\"all\":[{term}]}}]}}]")), 1);
    assert_eq!(of(&format!("[{{\"any\":[{term}]}}]")), 0);
    assert_eq!(of(&format!("[{{\"not\":{term}}}]")), 0);
}

/// Values of every kind, near to each other.
const VALUES: [&str; 26] = [
    "null",
    "false",
    "true",
    "-1",
    "0",
    "1",
    "1.0",
    "1.5",
    "2",
    "1795223160122",
    "1795223160123",
    "1795223160124",
    "\"\"",
    "\"a\"",
    "\"a\\u0000\"",
    "\"a\\u0000b\"",
    "\"ab\"",
    "\"b\"",
    "\"2026-11-20T23:00:00Z\"",
    "\"2026-11-21T01:06:00.123Z\"",
    "\"2026-11-22T00:00:00+23:59\"",
    "\"2026-11-20T01:07:00.1-23:59\"",
    "\"2026-11-21T01:06:00.124Z\"",
    "[]",
    "[1]",
    "{}",
];

#[test]
fn ranges_hold_no_more_than_they_have_to() {
    let documents: Vec<_> = VALUES.iter().map(|value| format!("{{\"a\":{value}}}")).collect();
    let documents: Vec<_> =
        documents.iter().map(|text| Some(text.as_str())).chain([Some("{}"), Some("1"), None]).collect();
    let entries = entries(&documents);
    for row in table("index_ranges") {
        let (text, numbers) = row.split_first().unwrap();
        let (rule, criteria) = (index("a"), terms(text));
        let selection = all_of(std::slice::from_ref(&rule), &criteria, None).remove(0);
        let met = walked(&rule, &selection, &entries);
        let count = met.len();
        let matching = matching(met, &criteria, &entries).len();
        assert_eq!(matching, found(&criteria, &order(""), &entries).len(), "{text}");
        assert_eq!([matching, count - matching].map(|number| number.to_string()), numbers, "{text}");
    }
}

#[test]
fn a_long_list_is_looked_at_as_fewer_wider_ranges() {
    let list = |count: usize| (0..count).map(|at| (at * 2).to_string()).collect::<Vec<_>>().join(",");
    for (text, ranges, in_order) in [
        (format!("a in [{}]", list(64)), 64, true),
        (format!("a in [{}]", list(65)), 33, true),
        (format!("a in [{}]", list(1000)), 63, true),
        (format!("a in [{}]; b in [{}]", list(8), list(8)), 64, true),
        (format!("a in [{}]; b in [{}]", list(8), list(9)), 40, true),
        (format!("a in [{}]; b in [{}]", list(33), list(2)), 33, true),
        (format!("a in [{}]; b in [{}]", list(1000), list(2)), 63, true),
    ] {
        let selection = all_of(&[index("a,b")], &terms(&text), Some(&order("a,b"))).remove(0);
        assert_eq!((selection.ranges.len(), selection.in_order), (ranges, in_order), "{}…", &text[..20]);
    }
}

#[test]
fn ranges_stay_small_beside_texts_that_no_index_holds() {
    let (exact, long) = ("x".repeat(limits::INDEX_TEXT_BYTES_MAX), "x".repeat(limits::VALUE_BYTES_MAX / 2));
    let zeros = "\\u0000".repeat(limits::INDEX_TEXT_BYTES_MAX);
    let documents: Vec<_> =
        ["w", &exact, "y", &zeros].iter().map(|text| format!("{{\"a\":\"{text}\",\"b\":1}}")).collect();
    let entries = entries(&documents.iter().map(|text| Some(text.as_str())).collect::<Vec<_>>());
    for (op, matches) in [("eq", 0), ("lt", 3), ("lte", 3), ("gt", 1), ("gte", 1), ("starts", 0)] {
        for long in [&long, &format!("{exact}x")] {
            let (rule, criteria) = (index("a,b"), terms(&format!("a {op} \"{long}\"; b eq 1")));
            let selection = all_of(std::slice::from_ref(&rule), &criteria, None).remove(0);
            let longest = selection.ranges.iter().map(|(start, end)| start.len().max(end.len())).max();
            assert!(longest < Some(4_096), "{op}: {longest:?} bytes");
            assert_eq!(matching(walked(&rule, &selection, &entries), &criteria, &entries).len(), matches, "{op}");
        }
    }
    for (text, matches) in [(&exact, 1), (&zeros, 1)] {
        let (rule, criteria) = (index("a"), terms(&format!("a eq \"{text}\"")));
        let selection = all_of(std::slice::from_ref(&rule), &criteria, None).remove(0);
        assert_eq!(walked(&rule, &selection, &entries).len(), matches);
    }
}

#[test]
fn index_entries_are_bounded_and_bind_only_what_is_there() {
    let rule = index("!a,b.c");
    assert_eq!(codec::decode::<IndexRule>(&codec::encode(&rule)).unwrap(), rule);
    for (document, bound) in [
        (r#"{"a":1,"b":{"c":"x"}}"#, true),
        (r#"{"a":false,"b":{"c":""}}"#, true),
        (r#"{"a":1}"#, false),
        (r#"{"a":1,"b":{"c":null}}"#, false),
        (r#"{"a":[1],"b":{"c":1}}"#, false),
        (r#"{"a":1,"b":{"c":{}}}"#, false),
        ("1", false),
    ] {
        assert_eq!(rule.is_bound(Some(&json(document))), bound, "{document}");
        assert!(!index("a,b.c").is_bound(Some(&json(document))), "not a unique one");
    }
    assert!(!rule.is_bound(None));
    let missing = rule.key_of(None).unwrap();
    assert_eq!(rule.key_of(Some(&json("{}"))).unwrap(), missing);
    let text = |bytes: usize| json(&format!("{{\"b\":{{\"c\":\"{}\"}}}}", "x".repeat(bytes)));
    assert!(rule.key_of(Some(&text(limits::INDEX_TEXT_BYTES_MAX))).is_ok());
    let fault = rule.key_of(Some(&text(limits::INDEX_TEXT_BYTES_MAX + 1))).unwrap_err();
    assert_eq!((fault.pointer.as_str(), fault.kind), ("/value/b/c", RuleFaultKind::IndexedTooLong { actual: 1025 }));
}

const FIELDS: [&str; 4] = ["a", "b", "c.d", "/c"];

/// A few values, so that many documents and operands have the same.
fn pools() -> impl Strategy<Value = Vec<String>> {
    let number = (0..NUMBERS.len()).prop_flat_map(|row| prop::sample::select(NUMBERS[row].to_vec()));
    let value = prop_oneof![6 => prop::sample::select(VALUES.to_vec()), 1 => number];
    prop::collection::vec(value.prop_map(str::to_owned), 2..10)
}

/// One predicate of any operator, some of which do not fit their operands.
fn predicates(pool: &[String]) -> BoxedStrategy<String> {
    let operators = prop::sample::select(vec![
        "eq", "eq", "eq", "in", "in", "lt", "lte", "gt", "gte", "between", "between", "starts", "exists", "nexists",
        "neq", "nin", "contains", "ends", "like",
    ]);
    let operand = prop_oneof![
        5 => prop::sample::select(pool.to_vec()),
        1 => Just("{\"now\":true}".to_owned()),
    ];
    let parts = (prop::sample::select(FIELDS.to_vec()), operators, prop::collection::vec(operand, 1..4));
    let written = parts.prop_map(|(field, op, values)| {
        let value = match op {
            "exists" | "nexists" => String::new(),
            "in" | "nin" => format!(",\"value\":[{}]", values.join(",")),
            "between" => format!(",\"value\":[{},{}]", values[0], values.last().unwrap()),
            _ => format!(",\"value\":{}", values[0]),
        };
        format!("{{\"field\":\"{field}\",\"op\":\"{op}\"{value}}}")
    });
    written.boxed()
}

/// Criteria, often none or one.
fn any_criteria(pool: &[String]) -> impl Strategy<Value = Criteria> + use<> {
    let group = (prop::sample::select(vec!["all", "any"]), prop::collection::vec(predicates(pool), 1..3));
    let group = group.prop_map(|(name, terms)| format!("{{\"{name}\":[{}]}}", terms.join(",")));
    let negated = predicates(pool).prop_map(|term| format!("{{\"not\":{term}}}"));
    let term = prop_oneof![8 => predicates(pool), 1 => group, 1 => negated];
    let terms = prop_oneof![1 => prop::collection::vec(term.clone(), 0..2), 1 => prop::collection::vec(term, 2..4)];
    terms.prop_map(|terms| {
        let fits = |term: &String| Criteria::read(&json(&format!("[{term}]")), "").is_ok();
        let terms: Vec<_> = terms.into_iter().filter(fits).collect();
        criteria(&format!("[{}]", terms.join(",")))
    })
}

fn documents(pool: &[String]) -> impl Strategy<Value = Vec<Option<String>>> + use<> {
    let field = || prop::option::weighted(0.8, prop::sample::select(pool.to_vec()));
    let document = (field(), field(), field(), 0..10).prop_map(|(a, b, d, kind)| match kind {
        0 => None,
        1 => Some("[1]".to_owned()),
        _ => {
            let member = |name: &str, value: Option<String>| value.map(|value| format!("\"{name}\":{value}"));
            // The last one stands inside of an object, or in its place.
            let inner = member("d", d.clone()).unwrap_or_default();
            let last = if kind == 2 { d.unwrap_or("0".to_owned()) } else { format!("{{{inner}}}") };
            let members = [member("a", a), member("b", b), Some(format!("\"c\":{last}"))];
            Some(format!("{{{}}}", members.into_iter().flatten().collect::<Vec<_>>().join(",")))
        }
    });
    prop::collection::vec(document, 0..40)
}

/// Indexes, and an order by some fields of the first of them, often all in one direction.
fn indexes_and_order() -> impl Strategy<Value = (Vec<IndexRule>, Order)> {
    let fields = || prop::sample::subsequence(FIELDS.to_vec(), 1..=3).prop_shuffle();
    let indexes = prop::collection::vec((fields(), any::<bool>()), 1..4);
    let flips = prop::collection::vec(prop::bool::weighted(0.15), 5);
    let extra = prop::option::weighted(0.2, prop::sample::select(vec!["$key", "$version", "a", "c.d"]));
    (indexes, 0..4usize, any::<bool>(), flips, extra).prop_map(|(indexes, skipped, descending, flips, extra)| {
        let names = indexes[0].0.iter().skip(skipped).copied().chain(extra).chain(flips[4].then_some("$key"));
        let field = |(name, flip): (&str, &bool)| OrderField {
            field: Field::parse(name).unwrap(),
            descending: descending != *flip,
        };
        let order = Order::new(names.zip(&flips).map(field).collect());
        let rule = |(fields, unique): (Vec<&str>, bool)| {
            IndexRule::new(fields.into_iter().map(|field| Path::parse(field).unwrap()).collect(), unique).unwrap()
        };
        (indexes.into_iter().map(rule).collect(), order)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 8))]

    #[test]
    fn every_index_finds_what_a_scan_finds_and_in_its_order_where_it_says_so(
        (documents, criteria) in pools().prop_flat_map(|pool| (documents(&pool), any_criteria(&pool))),
        (indexes, order) in indexes_and_order(),
        asks in prop::bool::weighted(0.8),
    ) {
        let documents: Vec<_> = documents.iter().map(Option::as_deref).collect();
        let entries = entries(&documents);
        let expected = found(&criteria, &order, &entries);
        for selection in all_of(&indexes, &criteria, asks.then_some(&order)) {
            let met = walked(&indexes[selection.index], &selection, &entries);
            let mut met = matching(met, &criteria, &entries);
            let mut expected = expected.clone();
            if !(asks && selection.in_order) {
                met.sort();
                expected.sort();
            }
            prop_assert_eq!(met, expected, "{:?}", selection);
        }
    }
}
