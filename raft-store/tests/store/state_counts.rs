//! Counts of ranges: exactly what a walk finds, at every revision, however they were found.

use crate::state_support::{Rng, apply, batch, blank, open, page, put, query, remove, runtime, with_ttl};
use quorate_store::state::{ListQuery, StateReader};
use quorate_store::types::Revision;

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
