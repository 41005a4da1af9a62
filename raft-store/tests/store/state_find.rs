//! Finds: pages against a naive filter and sort, while the state changes under them.

use std::cmp::Ordering;

use quorate_machine::document::path::{Field, MetaField, Path};
use quorate_machine::document::{Criteria, Json, Order, OrderField, Patch, Projection, Subject, order};
use quorate_machine::keyspace::lock;
use quorate_machine::query::{
    FindBounds, FindMoment, FindPage, FindQuery, FindRead, Found, ListQuery, PastRead, ValueShown, Wanted,
};
use quorate_machine::rules::{CollectionName, Rules};
use quorate_machine::types::{
    Action, Change, Command, ContentKind, Entry, Expect, Key, Maintenance, RulesChange, RulesOp, Value,
};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::state::StateReader;

use crate::state_support::*;

const UNBOUNDED: FindBounds = FindBounds { entries_max: u64::MAX, bytes_max: usize::MAX };
const CASES: u64 = 400;

fn document(name: impl AsRef<[u8]>, text: impl Into<Vec<u8>>) -> Command {
    write(key(name), Change::Put(Value { kind: ContentKind::Json, data: text.into() }))
}

fn rules(name: &str, indexes: &str) -> Command {
    let text = format!("{{\"indexes\":{indexes}}}");
    let change = RulesChange::Set(Rules::read(&Json::parse(text.as_bytes()).unwrap(), "").unwrap());
    let op = RulesOp { name: CollectionName::new(name).unwrap(), expect: Expect::ANY, change };
    Command::unnamed(Action::Rules(op))
}

fn criteria(text: &str) -> Criteria {
    Criteria::read(&Json::parse(text.as_bytes()).unwrap(), "/where").unwrap()
}

fn order_by(names: &[&str]) -> Order {
    let field = |name: &&str| {
        let (name, descending) = name.strip_prefix('-').map_or((*name, false), |name| (name, true));
        OrderField { field: Field::parse(name).unwrap(), descending }
    };
    Order::new(names.iter().map(field).collect())
}

fn find(prefix: &str, filter: &str, names: &[&str], limit: usize) -> FindQuery {
    let wanted = Wanted::Page { order: order_by(names), limit, bytes_max: usize::MAX, shown: ValueShown::Whole };
    let (prefix, criteria) = (prefix.as_bytes().to_vec(), criteria(filter));
    FindQuery {
        prefix,
        criteria,
        wanted,
        moment: FindMoment::Now(0),
        after: None,
        bounds: UNBOUNDED,
        may_walk_past: true,
    }
}

fn found(read: FindRead) -> FindPage {
    match read {
        FindRead::Page(page) => page,
        other => panic!("no page: {other:?}"),
    }
}

fn names(page: &FindPage) -> Vec<String> {
    page.items.iter().map(|found| String::from_utf8_lossy(found.key.as_bytes()).into_owned()).collect()
}

/// A value with fields of all kinds, or none, or bytes.
fn any_write(rng: &mut Rng) -> Command {
    const SCALARS: [&str; 12] = [
        "null",
        "false",
        "true",
        "0",
        "-1",
        "2.5",
        "18446744073709551615",
        "1e300",
        "\"\"",
        "\"a\"",
        "[1]",
        "{\"x\":1}",
    ];
    let mut name = format!("{}/{}", ["p", "q"][rng.below(2) as usize], rng.below(12)).into_bytes();
    // Some are no text, and U+FFFD is one.
    match rng.below(8) {
        0 => name.push(0xFE + rng.below(2) as u8),
        1 => name.extend("\u{FFFD}".bytes()),
        _ => {}
    }
    let scalar = SCALARS[rng.below(12) as usize];
    match rng.below(12) {
        0 => remove(name),
        1 => put(name, "bytes"),
        2 => document(name, scalar),
        3 => document(name, "{}"),
        4..6 => with_ttl(document(name, format!("{{\"a\":{scalar}}}")), 1 + rng.below(40)),
        _ => document(name, format!("{{\"a\":{scalar},\"b\":{{\"c\":{}}}}}", rng.below(4))),
    }
}

/// What would be found if everything were in memory.
fn naive(all: &[(Key, Entry)], query: &FindQuery, names: &[&str], wall: u64) -> Vec<Key> {
    let parse = |entry: &Entry| match entry.value.kind {
        ContentKind::Json => Some(Json::parse(&entry.value.data).unwrap().into_owned()),
        ContentKind::Bytes => None,
    };
    let holds = |key: &Key, entry: &Entry| {
        let document = parse(entry);
        let (meta, document) = (Some(&entry.meta), document.as_ref());
        query.criteria.hold(&Subject { key, meta, is_locked: false, document, clock: 0, wall })
    };
    let mut matching: Vec<_> = all
        .iter()
        .filter(|(key, entry)| key.as_bytes().starts_with(&query.prefix) && holds(key, entry))
        .map(|(key, entry)| (key.clone(), entry.meta.version, parse(entry)))
        .collect();
    matching.sort_by(|a, b| {
        for name in names {
            let (field, descending) = name.strip_prefix('-').map_or((*name, false), |name| (name, true));
            let ordering = match Field::parse(field).unwrap() {
                Field::Meta(MetaField::Key) => a.0.cmp(&b.0),
                Field::Meta(_) => a.1.cmp(&b.1),
                Field::Document(path) => {
                    let of =
                        |document: &Option<Json<'static>>| document.as_ref().and_then(|root| path.find(root).cloned());
                    compare_fields(of(&a.2).as_ref(), of(&b.2).as_ref())
                }
            };
            let ordering = if descending { ordering.reverse() } else { ordering };
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        let is_last_descending = names.last().is_some_and(|name| name.starts_with('-'));
        if is_last_descending { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) }
    });
    matching.into_iter().map(|(key, ..)| key).collect()
}

/// As values compare, but a missing field comes first, and all arrays are alike, and all objects.
fn compare_fields(a: Option<&Json<'_>>, b: Option<&Json<'_>>) -> Ordering {
    match (a, b) {
        (Some(Json::Array(_)), Some(Json::Array(_))) | (Some(Json::Object(_)), Some(Json::Object(_))) => {
            Ordering::Equal
        }
        (Some(a), Some(b)) => order::compare(a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

const FILTERS: [&str; 9] = [
    "[]",
    r#"[{"field":"a","op":"exists"}]"#,
    r#"[{"field":"a","op":"gte","value":0}]"#,
    r#"[{"field":"a","op":"neq","value":null},{"field":"$version","op":"lt","value":4}]"#,
    r#"[{"any":[{"field":"b.c","op":"in","value":[0,1]},{"field":"a","op":"eq","value":"a"}]}]"#,
    r#"[{"field":"$key","op":"ends","value":"1"}]"#,
    r#"[{"field":"a","op":"lt","value":{"now":true}}]"#,
    r#"[{"not":{"field":"b","op":"exists"}}]"#,
    r#"[{"field":"$key","op":"ends","value":{"base64":"/w=="}}]"#,
];
const INDEXES: [&str; 5] = ["[]", r#"[["a"]]"#, r#"[["b.c","a"]]"#, r#"[["a","b.c"],["b.c"]]"#, r#"[["nothing","a"]]"#];
const ORDERS: [&[&str]; 8] =
    [&[], &["$key"], &["-$key"], &["a"], &["-a"], &["b.c", "-a"], &["-$version", "a"], &["nothing", "-b.c"]];

/// All pages of a query, with `disturb` called before each but the first.
fn pages(reader: &StateReader, query: &FindQuery, mut disturb: impl FnMut()) -> (Vec<FindPage>, FindPage) {
    let mut query = query.clone();
    let mut pages = Vec::new();
    loop {
        let page = found(reader.find(&query).unwrap());
        query.moment = FindMoment::Pinned(page.pin);
        query.after = page.after.clone();
        if query.after.is_none() {
            return (pages, page);
        }
        assert!(page.examined > 0 || !page.items.is_empty(), "a page that gets nowhere: {page:?}");
        pages.push(page);
        disturb();
    }
}

#[test]
fn pages_are_what_a_filter_and_a_sort_give_whatever_is_written_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let mut rng = Rng::seeded("pages_are_what_a_filter_and_a_sort_give_whatever_is_written_meanwhile");
    let runtime = runtime();
    runtime.block_on(apply(&mut state, vec![blank(0)]));
    let (mut index, mut clock) = (0, 0);
    let mut change = |rng: &mut Rng| {
        (index, clock) = (index + 1, clock + rng.below(20));
        let mut commands: Vec<_> = (0..rng.below(8)).map(|_| any_write(rng)).collect();
        if rng.below(4) == 0 {
            commands.push(maintain(Maintenance::ExpireDue { limit: 3 }));
        }
        if rng.below(12) == 0 {
            commands.push(rules("p", INDEXES[rng.below(5) as usize]));
        }
        commands
            .extend((0..rng.below(3)).map(|_| maintain(Maintenance::Indexes { rows_max: 1 + rng.below(9) as u32 })));
        runtime.block_on(apply(&mut state, vec![batch(index, clock, &commands)]));
    };
    let mut indexed = 0;
    for case in 0..CASES {
        change(&mut rng);
        let all = page(reader.list(&query("", None)).unwrap());
        let wall = reader.applied().wall;
        let order = ORDERS[rng.below(8) as usize];
        let limit = 1 + rng.below(6) as usize;
        let mut asked =
            find(["", "p/", "p/", "p/1", "q/1"][rng.below(5) as usize], FILTERS[rng.below(9) as usize], order, limit);
        if matches!(&asked.wanted, Wanted::Page { order, .. } if order.by_key().is_some()) {
            asked.bounds = FindBounds { entries_max: 1 + rng.below(9), bytes_max: 1 + rng.below(300) as usize };
        }
        if let Wanted::Page { bytes_max, .. } = &mut asked.wanted
            && rng.below(3) == 0
        {
            *bytes_max = 1 + rng.below(60) as usize;
        }
        let expected = naive(&all.entries, &asked, order, wall);
        let (mut got, last) = pages(&reader, &asked, || change(&mut rng));
        got.push(last);
        assert!(got.iter().all(|page| page.at.revision == all.at.revision && page.items.len() <= limit), "{got:?}");
        indexed += got.iter().filter(|page| page.index.is_some()).count();
        let items: Vec<_> = got.iter().flat_map(|page| &page.items).collect();
        let keys: Vec<_> = items.iter().map(|found| found.key.clone()).collect();
        assert_eq!(keys, expected, "case {case}: {asked:?}");
        for found in items {
            let (_, entry) = all.entries.iter().find(|(key, _)| *key == found.key).unwrap();
            assert_eq!(found.entry, *entry);
        }
        // The same moment, counted.
        let moment = FindMoment::Pinned(got[0].pin);
        let counted = FindQuery { wanted: Wanted::Count, moment, ..asked.clone() };
        let (parts, last) = pages(&reader, &counted, || change(&mut rng));
        let count = parts.iter().map(|part| part.count).sum::<u64>() + last.count;
        assert_eq!(count, expected.len() as u64, "case {case}: {counted:?}");
    }
    assert!(indexed > 10, "only {indexed} pages were found by an index");
}

#[test]
fn entries_whose_keys_are_no_text_are_found_once_each() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        let keys: [&[u8]; 4] = [b"e/\xFD", b"e/\xFE", b"e/\xFF", "e/\u{FFFD}".as_bytes()];
        let writes: Vec<_> = keys.iter().map(|key| document(key, r#"{"a":1}"#)).collect();
        apply(&mut state, vec![blank(0), batch(1, 1, &writes)]).await;
        for (names, expected) in [(["a"], [3, 0, 1, 2]), (["-a"], [2, 1, 0, 3])] {
            let (mut got, last) = pages(&reader, &find("e/", "[]", &names, 1), || ());
            got.push(last);
            let items: Vec<_> = got.iter().flat_map(|page| &page.items).map(|found| found.key.as_bytes()).collect();
            assert_eq!(items, expected.map(|at: usize| keys[at]));
        }
        let lookalike = "[{\"field\":\"$key\",\"op\":\"eq\",\"value\":\"e/\u{FFFD}\"}]";
        assert_eq!(names(&found(reader.find(&find("e/", lookalike, &["a"], 9)).unwrap())), ["e/\u{FFFD}"]);
    });
}

#[test]
fn an_index_is_looked_at_only_where_the_answer_can_be() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        let many: Vec<_> = (0..500).map(|n| document(format!("p/{n:03}"), format!("{{\"a\":{}}}", n % 250))).collect();
        let index = [rules("p", r#"[["a"]]"#), maintain(Maintenance::Indexes { rows_max: 1_000 })];
        apply(&mut state, vec![blank(0), batch(1, 1, &many), batch(2, 1, &index)]).await;
        let bounds = FindBounds { entries_max: 20, bytes_max: usize::MAX };
        let asked = |filter: &str, names: &[&str]| FindQuery { bounds, ..find("p/", filter, names, 3) };
        let between = r#"[{"field":"a","op":"between","value":[100,103]}]"#;
        for (filter, names_by, examined, expected) in [
            (between, &["a"][..], 3, ["p/100", "p/350", "p/101"]),
            (between, &["-a"], 3, ["p/353", "p/103", "p/352"]),
            (between, &[], 8, ["p/100", "p/101", "p/102"]),
            ("[]", &["-a"], 3, ["p/499", "p/249", "p/498"]),
            (r#"[{"field":"a","op":"eq","value":7.0}]"#, &["-$key"], 2, ["p/257", "p/007", ""]),
        ] {
            let page = found(reader.find(&asked(filter, names_by)).unwrap());
            assert_eq!(names(&page), expected.iter().filter(|name| !name.is_empty()).copied().collect::<Vec<_>>());
            assert_eq!((page.examined, page.index), (examined, Some(vec![Path::parse("a").unwrap()])), "{filter}");
        }
        // Of a part of the collection: what is passed over is looked at too, and the next pages go on behind it.
        let (mut part, mut keys, mut pages) =
            (FindQuery { prefix: b"p/49".to_vec(), ..asked("[]", &["a"]) }, vec![], 0);
        loop {
            let page = found(reader.find(&part).unwrap());
            assert!(page.examined <= 20 && page.index.is_some(), "{page:?}");
            keys.extend(names(&page));
            (part.moment, part.after, pages) = (FindMoment::Pinned(page.pin), page.after, pages + 1);
            if part.after.is_none() {
                break;
            }
        }
        assert_eq!(keys, (490..500).map(|n| format!("p/{n}")).collect::<Vec<_>>());
        assert!((25..30).contains(&pages), "{pages} pages of at most 20 looks for 500 entries");
        // Who may not learn of the rest of the collection walks along its own keys; of all of it there is no rest.
        let own = FindQuery { prefix: b"p/49".to_vec(), may_walk_past: false, ..asked("[]", &["a"]) };
        let page = found(reader.find(&own).unwrap());
        assert_eq!((page.examined, page.index), (10, None));
        let all = FindQuery { may_walk_past: false, ..asked(between, &["a"]) };
        assert!(found(reader.find(&all).unwrap()).index.is_some());
        // Not within the collection, not narrowed, or out of bounds: as without an index.
        let counted = FindQuery { wanted: Wanted::Count, ..asked(between, &[]) };
        let page = found(reader.find(&counted).unwrap());
        assert_eq!((page.count, page.examined, page.after), (8, 8, None));
        let wide = FindQuery { prefix: b"p".to_vec(), ..counted };
        let page = found(reader.find(&wide).unwrap());
        assert_eq!((page.examined, page.index), (20, None));
        assert!(page.after.is_some());
    });
}

#[test]
fn a_revision_shows_what_a_find_showed_when_it_was_new() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        let due = |at: u64| format!("{{\"due\":{at}}}");
        let first = [with_ttl(document("a", due(1_200)), 50), document("b", due(1_050)), document("c", "{}")];
        apply(&mut state, vec![blank(0), batch(1, 100, &first)]).await;
        let asked = find("", r#"[{"field":"due","op":"lte","value":{"now":true}}]"#, &[], 9);
        let revision = reader.position().revision;
        assert_eq!(names(&found(reader.find(&asked).unwrap())), ["b"], "the wall clock is 1100");
        let later = FindQuery { moment: FindMoment::Now(1_300), ..asked.clone() };
        assert_eq!(names(&found(reader.find(&later).unwrap())), ["a", "b"], "time goes by without an entry");
        let earlier = FindQuery { moment: FindMoment::Now(1_000), ..asked.clone() };
        assert_eq!(names(&found(reader.find(&earlier).unwrap())), ["b"], "and never back behind the log's");
        apply(&mut state, vec![batch(2, 500, &[document("b", "{}")])]).await;
        assert_eq!(names(&found(reader.find(&asked).unwrap())), [""; 0], "a is expired, b has no field");
        let asked_then = FindQuery { moment: FindMoment::Revision(revision), ..asked };
        assert_eq!(names(&found(reader.find(&asked_then).unwrap())), ["b"], "as it was");
        let all_then = FindQuery { criteria: criteria("[]"), ..asked_then };
        assert_eq!(names(&found(reader.find(&all_then).unwrap())), ["a", "b", "c"], "a was not expired then");
    });
}

#[test]
fn an_order_that_would_need_more_than_may_be_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        let many: Vec<_> = (0..10).map(|n| document(format!("k{n}"), format!("{{\"n\":{n}}}"))).collect();
        apply(&mut state, vec![blank(0), batch(1, 1, &many)]).await;
        let mut asked = find("", "[]", &["-n"], 2);
        asked.bounds.entries_max = 10;
        assert_eq!(names(&found(reader.find(&asked).unwrap())), ["k9", "k8"]);
        asked.bounds.entries_max = 9;
        assert!(matches!(reader.find(&asked).unwrap(), FindRead::TooManyToOrder(at) if at.revision == 11));
        asked.bounds = FindBounds { bytes_max: 30, ..UNBOUNDED };
        assert!(matches!(reader.find(&asked).unwrap(), FindRead::TooManyToOrder(_)));
    });
}

#[test]
fn an_entry_that_is_too_dear_to_judge_is_told_and_what_each_takes_counts() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        let list = format!("{{\"a\":[{}]}}", vec!["0"; 250_000].join(","));
        let documents = [document("k0", "{\"a\":[0]}"), document("k1", list), document("k2", "{\"a\":[0]}")];
        apply(&mut state, vec![blank(0), batch(1, 1, &documents)]).await;
        let asked = |terms: usize| {
            let term = r#"{"field":"a","op":"ncontains","value":7}"#;
            find("k", &format!("[{}]", vec![term; terms].join(",")), &[], 9)
        };
        assert_eq!(names(&found(reader.find(&asked(3)).unwrap())), ["k0", "k1", "k2"]);
        // It reads 0.5 MB, which take 2.5 MB to be parsed, and 1 MB for each term.
        let bounds = FindBounds { bytes_max: 5_000_000, ..UNBOUNDED };
        let cut = found(reader.find(&FindQuery { bounds, ..asked(3) }).unwrap());
        assert_eq!((names(&cut), cut.after), (vec!["k0".to_owned(), "k1".to_owned()], Some(key("k1"))));
        let whole = found(reader.find(&FindQuery { bounds, ..asked(1) }).unwrap());
        assert_eq!((names(&whole).len(), whole.after), (3, None));
        // An order of few large documents is known as long as it fits to parse them.
        let bounds = FindBounds { bytes_max: 2_700_000, ..UNBOUNDED };
        let ordered = found(reader.find(&FindQuery { bounds, ..find("k", "[]", &["b"], 9) }).unwrap());
        assert_eq!(names(&ordered), ["k0", "k1", "k2"]);
        let is_told = |query: &FindQuery| {
            let read = reader.find(query).unwrap();
            let FindRead::TooDear { at, key: of, dear } = &read else { panic!("{read:?}") };
            assert!(at.revision == 4 && *of == key("k1") && dear.actual > dear.limit, "{read:?}");
        };
        // A page or a part of a count ends before it, and the next begins with it.
        for wanted in [asked(64).wanted, Wanted::Count] {
            let query = FindQuery { wanted, ..asked(64) };
            let page = found(reader.find(&query).unwrap());
            assert_eq!((page.count, page.examined, &page.after), (1, 2, &Some(key("k0"))));
            is_told(&FindQuery { after: page.after, moment: FindMoment::Pinned(page.pin), ..query });
        }
        // The first ones are not known without it.
        let Wanted::Page { limit, bytes_max, shown, .. } = asked(64).wanted else { unreachable!() };
        let wanted = Wanted::Page { order: order_by(&["b"]), limit, bytes_max, shown };
        is_told(&FindQuery { wanted, ..asked(64) });
    });
}

#[test]
fn a_page_holds_no_more_bytes_than_asked_for_of_what_it_shows() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        let wide = |n: u64| format!("{{\"n\":{n},\"pad\":\"{}\"}}", "x".repeat(100));
        let many: Vec<_> = (0..9).map(|n| document(format!("k{n}"), wide(n))).collect();
        apply(&mut state, vec![blank(0), batch(1, 1, &many)]).await;
        for order in [&["n"], &["$key"]] {
            let mut asked = find("", "[]", order, 100);
            let Wanted::Page { bytes_max, .. } = &mut asked.wanted else { unreachable!() };
            *bytes_max = 36;
            let (pages_whole, _) = pages(&reader, &asked, || {});
            assert_eq!(pages_whole.len(), 8, "one entry a page");
            let Wanted::Page { shown: parts, .. } = &mut asked.wanted else { unreachable!() };
            *parts = ValueShown::Parts(Projection::new(vec![Path::parse("n").unwrap()]));
            let (pages_parts, last) = pages(&reader, &asked, || {});
            assert_eq!((pages_parts.len(), last.items.len()), (2, 1), "four entries of nine bytes a page");
            assert_eq!(last.items[0].entry.value.data, br#"{"n":8}"#);
        }
    });
}

/// Changes of locks, and of entries by who holds them, at random moments.
struct Lockers {
    index: u64,
    clock: u64,
    /// The keys of locks that were told so far, by entry.
    keys: std::collections::BTreeMap<u64, u64>,
}

impl Lockers {
    /// One command, of who knows the keys.
    async fn act(&mut self, rng: &mut Rng, state: &mut StateMachine, reader: &StateReader) {
        self.index += 1;
        self.clock += [0, 0, 0, 5, 25][rng.below(5) as usize];
        let nth = rng.below(12);
        let name = format!("p/{nth:02}");
        let locks_for = 10 + rng.below(40);
        let patch = Patch::read(&Json::parse(br#"{"b":1}"#).unwrap(), "/patch").unwrap();
        let change = match rng.below(9) {
            0..3 => Change::Lock(locks_for),
            3 => Change::Claim { ms: locks_for, patch: Some(patch) },
            4 | 5 => Change::Extend(locks_for),
            6 | 7 => Change::Unlock,
            _ => Change::Put(Value { kind: ContentKind::Json, data: format!("{{\"a\":{}}}", rng.below(9)).into() }),
        };
        let mut command = write(key(&name), change.clone());
        if let (Action::Write(op), Some(own)) = (&mut command.action, self.keys.get(&nth)) {
            op.expect = match change {
                Change::Lock(_) | Change::Claim { .. } => Expect::ANY,
                _ => Expect::cas(*own),
            };
        }
        let commands = match rng.below(6) {
            0 => vec![command, maintain(Maintenance::ExpireDue { limit: 9 })],
            _ => vec![command],
        };
        apply(state, vec![batch(self.index, self.clock, &commands)]).await;
        let revision = reader.position().revision;
        let entry = reader.get(&key(&name)).unwrap().entry.unwrap();
        if entry.meta.cas == revision && entry.meta.is_locked_at(self.clock) {
            self.keys.insert(nth, lock::key_of(&[7; 16], self.index, revision, name.as_bytes()));
        }
    }
}

/// What a client sees of an entry and the lock on it.
fn as_shown(found: &Found, clock: u64) -> (Key, u64, Option<u64>, bool, Value) {
    let Entry { meta, value } = &found.entry;
    (found.key.clone(), meta.mod_revision, meta.cas_shown_at(clock), meta.is_locked_at(clock), value.clone())
}

#[test]
fn all_pages_show_the_locks_of_one_moment_and_so_does_its_revision() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let mut rng = Rng::seeded("all_pages_show_the_locks_of_one_moment_and_so_does_its_revision");
    runtime().block_on(async {
        let many: Vec<_> = (0..12).map(|n| document(format!("p/{n:02}"), format!("{{\"a\":{}}}", n % 5))).collect();
        let first = [rules("p", r#"[["a"]]"#)];
        apply(&mut state, vec![blank(0), batch(1, 1, &first), batch(2, 1, &many)]).await;
        let mut lockers = Lockers { index: 2, clock: 1, keys: Default::default() };
        let free = r#"[{"field":"$locked","op":"eq","value":false}]"#;
        let filters =
            ["[]", free, r#"[{"field":"$locked","op":"eq","value":true}]"#, r#"[{"field":"a","op":"gte","value":1}]"#];
        let (mut compared, mut locked, mut indexed) = (0, 0, 0);
        for _ in 0..150 {
            lockers.act(&mut rng, &mut state, &reader).await;
            let filter = filters[rng.below(4) as usize];
            let order = [&[][..], &["a"], &["-$key"]][rng.below(3) as usize];
            let whole = found(reader.find(&find("p/", filter, order, 100)).unwrap());
            let shown =
                |page: &FindPage| -> Vec<_> { page.items.iter().map(|item| as_shown(item, whole.pin.clock)).collect() };
            let mut asked = FindQuery { moment: FindMoment::Pinned(whole.pin), ..find("p/", filter, order, 2) };
            let mut paged = Vec::new();
            loop {
                let page = found(reader.find(&asked).unwrap());
                paged.extend(shown(&page));
                indexed += u64::from(page.index.is_some());
                asked.after = page.after;
                if asked.after.is_none() {
                    break;
                }
                for _ in 0..rng.below(5) {
                    lockers.act(&mut rng, &mut state, &reader).await;
                }
            }
            assert_eq!(paged, shown(&whole), "{filter} by {order:?}: pages on the left, all at once on the right");
            locked += paged.iter().filter(|item| item.3).count();
            compared += paged.len();
            // Point reads and listings of the revision agree.
            let all = found(reader.find(&FindQuery { moment: asked.moment, ..find("p/", "[]", &[], 100) }).unwrap());
            let revision = whole.pin.revision;
            let query = ListQuery { revision: Some(revision), ..query("p/", None) };
            let listed = page(reader.list(&query).unwrap()).entries;
            for (item, (listed_key, listed)) in all.items.iter().zip(listed) {
                let PastRead::Found(read) = reader.get_at(&item.key, revision).unwrap() else { panic!("{revision}") };
                assert_eq!((&item.key, Some(&item.entry)), (&listed_key, read.entry.as_ref()));
                assert_eq!(item.entry, listed);
                assert!(item.entry.meta.cas <= revision, "a cas that was not there yet: {item:?}");
            }
        }
        assert!(
            compared > 200 && locked > 30 && indexed > 20,
            "{compared} entries, {locked} locked, {indexed} by index"
        );
    });
}
