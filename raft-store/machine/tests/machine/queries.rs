//! Queries of rows in memory, without RocksDB and without counts that are kept: they say what the rows say.

use std::borrow::Cow;

use crate::machine_support::{Store, batch};
use quorate_machine::machine::MemoryView;
use quorate_machine::query::{ListQuery, ListRead, Moment, PastRead, Uncounted};
use quorate_machine::types::*;

/// All keys that anything is written to, and one more.
const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

fn put(name: &str, text: &str, expiry: Expiry) -> Command {
    let change = Change::Put(Value { kind: ContentKind::Bytes, data: text.into() });
    Command::unnamed(Action::Write(WriteOp { change, expiry, ..WriteOp::removal(key(name), false) }))
}

fn removal(name: &str) -> Command {
    Command::unnamed(Action::Write(WriteOp::removal(key(name), false)))
}

/// Keys that were changed, removed and written anew. One of them is past its deadline, and its entry is still there.
fn written() -> (Store, Moment<MemoryView>) {
    let mut store = Store::default();
    let first = [put("a", "1", Expiry::Never), put("b", "1", Expiry::After(10)), put("c", "1", Expiry::Never)];
    let second = [put("a", "2", Expiry::Never), removal("c")];
    let third = [put("d", "1", Expiry::Never), put("c", "2", Expiry::Never)];
    store.apply(&[batch(1, &first), batch(2, &second), batch(20, &third)]).unwrap();
    store.check();
    let moment = Moment::new(store.view.clone(), store.vars.clone(), store.index);
    (store, moment)
}

/// Entries at a revision, read from the rows. Expired ones are included.
fn there(store: &Store, revision: Revision) -> Vec<(Key, Entry)> {
    KEYS.iter().filter_map(|name| Some((key(name), store.read_at(name.as_bytes(), revision)?))).collect()
}

fn all(revision: Option<Revision>, reverse: bool) -> ListQuery {
    let (limit, bytes_max) = (usize::MAX, usize::MAX);
    ListQuery { start: Vec::new(), end: None, revision, limit, bytes_max, keys_only: false, reverse }
}

fn listed(moment: &Moment<MemoryView>, query: &ListQuery) -> Vec<(Key, Entry)> {
    match moment.list(query).unwrap() {
        ListRead::Page(page) => page.entries,
        other => panic!("{other:?}"),
    }
}

/// Lists both ways and counts.
fn assert_range(moment: &Moment<MemoryView>, revision: Option<Revision>, expected: &[(Key, Entry)]) {
    assert_eq!(listed(moment, &all(revision, false)), expected, "at {revision:?}");
    let backwards: Vec<_> = expected.iter().rev().cloned().collect();
    assert_eq!(listed(moment, &all(revision, true)), backwards, "backwards at {revision:?}");
    let (_, count) = moment.count(&all(revision, false), &Uncounted).unwrap();
    assert_eq!(count, expected.len() as u64, "at {revision:?}");
}

#[test]
fn entries_are_read_as_they_were() {
    let (store, moment) = written();
    assert_eq!(moment.at.oldest_revision, 1);
    for revision in 1..=moment.at.revision {
        let expected = there(&store, revision);
        for name in KEYS {
            let entry = expected.iter().find(|(known, _)| *known == key(name)).map(|(_, entry)| entry.clone());
            match moment.get_at(&key(name), revision).unwrap() {
                PastRead::Found(read) => assert_eq!(read.entry, entry, "{name} at {revision}"),
                other => panic!("{other:?}"),
            }
        }
        assert_range(&moment, Some(revision), &expected);
    }
    let future = moment.at.revision + 1;
    assert_eq!(moment.get_at(&key("a"), future).unwrap(), PastRead::Future(moment.at));
    assert_eq!(moment.count(&all(Some(future), false), &Uncounted).unwrap(), (moment.at, 0));
}

#[test]
fn entries_past_their_deadline_are_not_there_now() {
    fn borrowed(row_key: &[u8]) -> Cow<'_, [u8]> {
        row_key.into()
    }
    let (store, moment) = written();
    let mut expected = there(&store, moment.at.revision);
    assert_eq!(expected.len(), 4, "the one past its deadline is stored");
    expected.retain(|(known, _)| *known != key("b"));
    for name in KEYS {
        let entry = expected.iter().find(|(known, _)| *known == key(name)).map(|(_, entry)| entry.clone());
        assert_eq!(moment.entry(&key(name)).unwrap().entry, entry, "{name}");
    }
    assert_range(&moment, None, &expected);
    assert_eq!(moment.first_deadline(borrowed).unwrap(), Some(11));
}
