//! The audit trail of a key: pages of bounded work, which together miss nothing.

use quorate_machine::query::{AuditPage, AuditQuery};
use quorate_store::state::StateReader;

use crate::state_support::*;

const BATCHES: u64 = 60;
const LINES: u64 = 20;

fn read(reader: &StateReader, query: &AuditQuery) -> Vec<AuditPage> {
    let mut query = query.clone();
    let mut pages = Vec::new();
    loop {
        let page = reader.audit(&query).unwrap();
        query.after = page.next;
        pages.push(page);
        if query.after.is_none() {
            return pages;
        }
        assert!(pages.len() < 1_000, "the pages have no end");
    }
}

#[test]
fn a_page_stops_at_the_bytes_that_it_looked_at_and_the_next_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        let mut entries = vec![blank(0)];
        for index in 1..=BATCHES {
            // One line of twenty is of the key; the others are what a page looks at for nothing.
            let others = (1..LINES).map(|nth| put(format!("other/{nth}"), index.to_string()));
            let commands: Vec<_> = others.chain([put("k", index.to_string())]).collect();
            entries.push(batch(index, 0, &commands));
        }
        apply(&mut state, entries).await;
    });
    let all =
        AuditQuery { key: key("k"), from: 0, after: None, limit: 1_000, groups_max: 1_000, bytes_max: usize::MAX };
    let [whole] = &read(&reader, &all)[..] else { panic!("it takes more than a page") };
    assert_eq!(whole.lines.len() as u64, BATCHES);
    let bounded = AuditQuery { bytes_max: 2_000, ..all.clone() };
    let pages = read(&reader, &bounded);
    assert!(pages.len() > 3, "{} pages", pages.len());
    assert!(pages.iter().all(|page| page.lines.len() < 20), "a page looked at more than it may");
    let together: Vec<_> = pages.into_iter().flat_map(|page| page.lines).collect();
    assert_eq!(together, whole.lines);
    // However little it may look at, it goes on.
    assert_eq!(read(&reader, &AuditQuery { bytes_max: 1, ..all }).len() as u64, BATCHES);
}
