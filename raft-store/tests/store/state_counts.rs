//! Counts of ranges: exactly what a walk finds, at every revision, however they were found.

use quorate_machine::query::ListQuery;
use quorate_machine::types::Revision;
use quorate_store::state::StateReader;

use crate::state_many::rows;
use crate::state_support::{Rng, apply, batch, blank, open, page, put, query, remove, runtime, with_ttl};
use crate::state_traces::{EACH_BATCH, Store};

fn name(nth: u64) -> String {
    format!("k/{nth:05}")
}

/// Counts, and compares with what a listing has.
fn assert_count(reader: &StateReader, of: &ListQuery) -> u64 {
    let (at, count) = reader.count(of).unwrap();
    let listed = page(reader.list(of).unwrap());
    assert_eq!((count, at.revision), (listed.entries.len() as u64, listed.at.revision), "{of:?}");
    count
}

#[test]
fn a_count_is_that_of_a_walk_at_every_revision() {
    let mut rng = Rng::seeded("a_count_is_that_of_a_walk_at_every_revision");
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        let filled: Vec<_> = (0..2_000).map(|nth| put(name(nth), "1")).collect();
        apply(&mut state, vec![blank(0), batch(1, 1, &filled[..1_000]), batch(2, 1, &filled[1_000..])]).await;
        let first = reader.position().revision;
        for index in 3..300 {
            let commands: Vec<_> = (0..rng.below(8))
                .map(|_| {
                    let key = name(rng.below(2_500));
                    match rng.below(4) {
                        0 => remove(key),
                        1 => with_ttl(put(key, "2"), 1 + rng.below(40)),
                        _ => put(key, "3"),
                    }
                })
                .collect();
            // Some entries are past their deadline, and nobody has removed them yet.
            apply(&mut state, vec![batch(index, index * 3, &commands)]).await;
            let (from, to) = (rng.below(2_500), rng.below(2_500));
            let newest = reader.position().revision;
            let then = |rng: &mut Rng| first + rng.below(newest - first + 1);
            for (start, end) in [(0, None), (from, None), (0, Some(to)), (from, Some(to))] {
                let range =
                    ListQuery { start: name(start).into(), end: end.map(|end| name(end).into()), ..query("", None) };
                assert_count(&reader, &range);
                assert_count(&reader, &ListQuery { revision: Some(then(&mut rng)), ..range });
            }
        }
    });
}

#[test]
fn pages_of_one_revision_are_counted_while_others_write() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        apply(&mut state, vec![blank(0)]).await;
        for part in 0..3_u64 {
            let filled: Vec<_> = (0..1_000).map(|nth| put(name(part * 1_000 + nth), "1")).collect();
            apply(&mut state, vec![batch(1 + part, 1, &filled)]).await;
        }
        let mut at: Option<Revision> = None;
        for page in 0..6 {
            let rest = ListQuery { start: name(page * 500).into(), revision: at, ..query("", None) };
            assert_eq!(assert_count(&reader, &rest), 3_000 - page * 500, "page {page}");
            at.get_or_insert(reader.position().revision);
            let changes = [put(name(9_000 + page), "1"), remove(name(page * 7 + 600)), put(name(2_000), "2")];
            apply(&mut state, vec![batch(4 + page, 1, &changes)]).await;
        }
    });
}

/// The cost of a listing with a limit follows from the limit and not from its range, once that was counted: entries that came and went since
/// are added, and a next page begins where the count of the one before it is known.
#[test]
fn a_page_with_its_count_looks_at_few_rows_of_a_large_range() {
    const ENTRIES: u64 = 4_000;
    const LIMIT: u64 = 100;
    let mut store = Store::new();
    for first in (0..ENTRIES).step_by(EACH_BATCH as usize) {
        let filled: Vec<_> = (first..first + EACH_BATCH).map(|nth| put(name(nth), "1")).collect();
        store.apply(1, &filled);
    }
    let looked = |store: &Store, from: u64, expected: u64| {
        let rest = ListQuery { start: name(from).into(), limit: LIMIT as usize, ..query("", None) };
        rows(|| {
            assert_eq!(page(store.reader.list(&rest).unwrap()).entries.len() as u64, LIMIT);
            assert_eq!(store.reader.count(&rest).unwrap().1, expected);
        })
    };
    let walked = looked(&store, 0, ENTRIES);
    assert!(walked >= ENTRIES, "{walked} rows for the first count: nothing is proved by what is counted");
    store.apply(2, &[put(name(9_000), "1"), put(name(9_001), "1"), remove(name(2_000))]);
    for page in 0..3 {
        let again = looked(&store, page * LIMIT, ENTRIES + 1 - page * LIMIT);
        assert!(again < walked / 4, "{again} rows for page {page} of {LIMIT}, {walked} for the whole range");
    }
}
