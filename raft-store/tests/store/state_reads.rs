//! Reads of the state store: exact positions, history, listings, waiting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use quorate_machine::query::{ListRead, PastRead};
use quorate_machine::types::{Maintenance, Outcome, Rejection, RequestId};
use quorate_store::state::StateReader;
use quorate_threads::watchdog;

use crate::state_support::*;

#[test]
fn an_expired_entry_is_not_read_before_it_is_buried() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        apply(&mut state, vec![blank(0), batch(1, 100, &[with_ttl(put("a", "1"), 10), put("b", "2")])]).await;
        assert!(reader.get(&key("a")).unwrap().entry.is_some());
        assert_eq!(reader.first_deadline().unwrap(), Some(110));
        apply(&mut state, vec![batch(2, 110, &[])]).await;
        assert_eq!(reader.get(&key("a")).unwrap().entry, None);
        assert_eq!(page(reader.list(&query("", None)).unwrap()).entries.len(), 1);
        assert_eq!(reader.count(&query("", None)).unwrap().1, 1);
        apply(&mut state, vec![batch(3, 120, &[maintain(Maintenance::ExpireDue { limit: 9 })])]).await;
        assert_eq!(reader.first_deadline().unwrap(), None);
    });
}

/// Each batch writes both keys, `a` first: so at every position the revision says what both hold.
#[test]
fn readers_beside_a_writer_see_whole_batches_at_exact_positions() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let runtime = runtime();
    let both = |n: u64| [put("a", n.to_string()), put("b", n.to_string())];
    runtime.block_on(apply(&mut state, vec![blank(0), batch(1, 1, &both(1))]));
    let stop = Arc::new(AtomicBool::new(false));
    let reads = Arc::new(AtomicU64::new(0));
    let readers: Vec<_> = (0..3)
        .map(|which| {
            let (reader, stop, reads) = (reader.clone(), Arc::clone(&stop), Arc::clone(&reads));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    match which {
                        0 => check_get(&reader),
                        1 => check_list(&reader),
                        _ => check_past(&reader),
                    }
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let mut n = 1;
    while n < 3_000 || reads.load(Ordering::Relaxed) < 3_000 {
        n += 1;
        runtime.block_on(apply(&mut state, vec![batch(n, n, &both(n))]));
        assert!(n < 1_000_000 && !readers.iter().any(|reader| reader.is_finished()), "a reader failed");
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
}

fn check_get(reader: &StateReader) {
    let read = reader.get(&key("a")).unwrap();
    let entry = read.entry.unwrap();
    assert_eq!(entry.meta.mod_revision, read.at.revision - 1, "{:?}", read.at);
    assert_eq!(entry.value.data, read.at.index.to_string().into_bytes());
    assert_eq!(read.at.clock, read.at.index);
}

fn check_list(reader: &StateReader) {
    let page = page(reader.list(&query("", None)).unwrap());
    let [(_, a), (_, b)] = page.entries.as_slice() else { panic!("{page:?}") };
    assert_eq!((&a.value.data, b.meta.mod_revision), (&b.value.data, page.at.revision));
}

fn check_past(reader: &StateReader) {
    let at = reader.position();
    let PastRead::Found(read) = reader.get_at(&key("b"), at.revision).unwrap() else { panic!("not found") };
    assert_eq!(read.entry.unwrap().value.data, at.index.to_string().into_bytes());
}

/// A model of every revision, against reads and listings of each of them in all forms.
#[test]
fn every_revision_stays_readable_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let mut rng = Rng::seeded("every_revision_stays_readable_as_it_was");
    let names: [&[u8]; 8] = [b"a", b"a\0", b"a\0\x01", b"a\0\xff", b"a\x01", b"aa", b"b", b"\xff"];
    let mut now: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut model = BTreeMap::from([(1, now.clone())]);
    let mut entries = vec![blank(0)];
    let mut revision = 1;
    for index in 1..=150 {
        let name = names[rng.below(8) as usize];
        if rng.below(3) == 0 {
            entries.push(batch(index, index, &[remove(name)]));
            revision += u64::from(now.remove(name).is_some());
        } else {
            entries.push(batch(index, index, &[put(name, index.to_string())]));
            now.insert(name.to_vec(), index.to_string().into_bytes());
            revision += 1;
        }
        model.insert(revision, now.clone());
    }
    runtime().block_on(apply(&mut state, entries));
    assert_eq!(reader.position().revision, revision);
    for (revision, expected) in &model {
        for name in names {
            let PastRead::Found(read) = reader.get_at(&key(name), *revision).unwrap() else { panic!("{revision}") };
            assert_eq!(read.entry.map(|e| e.value.data), expected.get(name).cloned(), "{name:?} at {revision}");
        }
        check_listings(&reader, &names, *revision, expected);
    }
    let ahead = revision + 1;
    assert!(matches!(reader.get_at(&key("a"), ahead).unwrap(), PastRead::Future(at) if at.revision == revision));
    assert!(matches!(reader.get_at(&key("a"), 0).unwrap(), PastRead::Compacted(_)));
    let future = quorate_machine::query::ListQuery { revision: Some(ahead), ..query("", None) };
    assert_eq!(reader.count(&future).unwrap().1, 0);
}

fn check_listings(reader: &StateReader, names: &[&[u8]], revision: u64, expected: &BTreeMap<Vec<u8>, Vec<u8>>) {
    for (from, to) in [(0, 8), (2, 6), (5, 5), (6, 2)] {
        let end = names.get(to).copied();
        let mut query = query(names[from], end);
        query.revision = Some(revision);
        let inside = |name: &Vec<u8>| name.as_slice() >= names[from] && end.is_none_or(|end| name.as_slice() < end);
        let mut want: Vec<Vec<u8>> = expected.keys().filter(|name| inside(name)).cloned().collect();
        assert_eq!(reader.count(&query).unwrap().1, want.len() as u64);
        for reverse in [false, true] {
            query.reverse = reverse;
            query.limit = 2;
            assert_eq!(all_pages(reader, query.clone()), want, "{from}..{to} at {revision} reverse {reverse}");
            want.reverse();
        }
    }
}

/// Follows a listing from page to page, and checks the values on the way.
fn all_pages(reader: &StateReader, mut query: quorate_machine::query::ListQuery) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    loop {
        let page = page(reader.list(&query).unwrap());
        assert!(page.entries.len() <= query.limit);
        names.extend(page.entries.iter().map(|(key, _)| key.as_bytes().to_vec()));
        let Some((last, _)) = page.entries.last().filter(|_| page.more) else { return names };
        if query.reverse {
            query.end = Some(last.as_bytes().to_vec());
        } else {
            query.start = [last.as_bytes(), b"\0"].concat();
        }
    }
}

#[test]
fn a_page_ends_at_its_bytes_but_holds_at_least_one_entry() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let commands: Vec<_> = (0..4).map(|n| put(format!("k{n}"), vec![b'v'; 98])).collect();
    runtime().block_on(apply(&mut state, vec![blank(0), batch(1, 1, &commands)]));
    for (bytes_max, entries, more) in [(1, 1, true), (100, 1, true), (299, 2, true), (300, 3, true), (400, 4, false)] {
        let mut query = query("", None);
        query.bytes_max = bytes_max;
        let page = page(reader.list(&query).unwrap());
        assert_eq!((page.entries.len(), page.more), (entries, more), "{bytes_max}");
    }
    let mut query = query("k1", Some(b"k3"));
    (query.keys_only, query.bytes_max) = (true, 4);
    let page = page(reader.list(&query).unwrap());
    assert_eq!((page.entries.len(), page.more), (2, false));
    assert!(page.entries.iter().all(|(_, entry)| entry.value.data.is_empty() && entry.meta.version == 1));
}

#[test]
fn compaction_is_proposed_for_what_is_both_old_and_far_back() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let mut rng = Rng::seeded("compaction_is_proposed_for_what_is_both_old_and_far_back");
    // (last revision, clock) of each batch.
    let (mut ends, mut revision, mut clock) = (Vec::new(), 1, 1_000);
    let mut entries = vec![blank(0)];
    for index in 1..=120 {
        clock += rng.below(20);
        let commands: Vec<_> = (0..rng.below(4)).map(|n| put(format!("k{n}"), "v")).collect();
        revision += commands.len() as u64;
        entries.push(batch(index, clock, &commands));
        if !commands.is_empty() {
            ends.push((revision, clock));
        }
    }
    runtime().block_on(async {
        apply(&mut state, entries).await;
        assert_eq!(reader.compactable_to(0, revision).unwrap(), None);
        assert_eq!(reader.compactable_to(clock, 0).unwrap(), None);
        let compact = Maintenance::Compact { revision: ends[20].0, groups_max: 1_000 };
        apply(&mut state, vec![batch(121, clock, &[maintain(compact)])]).await;
        let oldest = reader.position().oldest_revision;
        assert_eq!(oldest, ends[20].0);
        for keep_ms in (0..1_500).step_by(37) {
            for keep_revisions in [0, 1, 10, 50, 100, 10_000] {
                let fits = |(end, at): &&(u64, u64)| *end + keep_revisions <= revision && at + keep_ms <= clock;
                let expected = ends.iter().rev().find(fits).map(|(end, _)| *end).filter(|end| *end > oldest);
                assert_eq!(
                    reader.compactable_to(keep_ms, keep_revisions).unwrap(),
                    expected,
                    "{keep_ms} {keep_revisions}"
                );
            }
        }
        let mut past = query("", None);
        past.revision = Some(oldest - 1);
        assert!(matches!(reader.list(&past).unwrap(), ListRead::Compacted(at) if at.oldest_revision == oldest));
        past.revision = Some(oldest);
        assert!(matches!(reader.list(&past).unwrap(), ListRead::Page(page) if page.at.revision == oldest));
    });
}

#[test]
fn a_dry_run_changes_nothing_and_a_request_id_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        apply(&mut state, vec![blank(0), batch(1, 1, &[with_id(put("a", "1"), "first")])]).await;
        let before = reader.applied();
        let reply = reader.dry_run(&put("a", "2"), 0).unwrap();
        assert!(matches!(reply.outcome, Outcome::Written(_)));
        let reply = reader.dry_run(&with_id(put("a", "other"), "first"), 0).unwrap();
        assert_eq!(reply.outcome, Outcome::Rejected(Rejection::RequestIdReused));
        assert_eq!(reader.applied(), before);
        let (at, kept) = reader.request("", &RequestId("first".into())).unwrap();
        assert_eq!((at.index, kept.unwrap().reply.index), (1, 1));
        assert_eq!(reader.request("", &RequestId("unknown".into())).unwrap().1, None);
    });
}

#[test]
fn an_entry_that_leaves_a_gap_or_comes_twice_stops_the_node() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        apply(&mut state, vec![blank(0), batch(1, 1, &[put("a", "1")])]).await;
        let before = reader.applied();
        let error = try_apply(&mut state, vec![batch(2, 1, &[put("a", "2")]), batch(4, 1, &[])]).await.unwrap_err();
        assert!(error.to_string().contains("3 is the next"), "{error}");
        let error = try_apply(&mut state, vec![batch(2, 1, &[])]).await.unwrap_err();
        assert!(error.to_string().contains("must stop"), "{error}");
        assert_eq!(reader.applied(), before, "nothing of a group that failed is there");
        reader.flush().unwrap();
        drop((state, reader));
        let (mut state, reader) = open(dir.path());
        let error = try_apply(&mut state, vec![batch(1, 1, &[])]).await.unwrap_err();
        assert!(error.to_string().contains("already"), "{error}");
        assert_eq!(reader.applied(), before);
    });
}

#[test]
fn a_batch_of_an_unknown_format_stops_the_node_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, _reader) = open(dir.path());
    runtime().block_on(async {
        let mut entry = batch(1, 1, &[]);
        entry.payload = openraft::EntryPayload::Normal(quorate_store::raft::EncodedBatch(vec![99, 0].into()));
        let error = try_apply(&mut state, vec![blank(0), entry]).await.unwrap_err();
        assert!(error.to_string().contains("format version 99"), "{error}");
    });
}

#[test]
fn a_wait_for_an_index_ends_when_it_is_readable_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        apply(&mut state, vec![blank(0)]).await;
        let waits: Vec<_> = (1..=40u64)
            .map(|index| {
                let reader = reader.clone();
                watchdog::spawn(async move {
                    reader.wait_applied(index).await;
                    let seen = reader.get(&key("a")).unwrap();
                    assert!(seen.at.index >= index && seen.entry.is_some(), "{:?} for {index}", seen.at);
                    reader.wait_revision(index + 1).await;
                    assert!(reader.position().revision > index);
                })
            })
            .collect();
        let given_up = reader.wait_applied(u64::MAX);
        assert!(tokio::time::timeout(Duration::from_millis(1), given_up).await.is_err());
        for index in 1..=40 {
            assert!(index == 40 || !waits[39].is_finished(), "a wait ended early");
            apply(&mut state, vec![batch(index, index, &[put("a", "1")])]).await;
            tokio::task::yield_now().await;
        }
        for wait in waits {
            tokio::time::timeout(LONG, wait).await.expect("nobody waits for ever").unwrap();
        }
    });
}

/// Ping-pong: each change comes the moment the waiters have seen the last one, that is while they register and look.
/// One missed wake-up and the test hangs.
#[test]
fn no_change_of_a_key_is_missed_by_who_waits_for_it() {
    const ROUNDS: u64 = 3_000;
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        apply(&mut state, vec![blank(0)]).await;
        let seen: Arc<[AtomicU64; 2]> = Arc::default();
        let waiters: Vec<_> = (0..2)
            .map(|which| {
                let (reader, seen) = (reader.clone(), Arc::clone(&seen));
                watchdog::spawn(async move {
                    let name = key("k");
                    while seen[which].load(Ordering::SeqCst) < ROUNDS {
                        let read = reader.get(&name).unwrap();
                        let since = read.entry.as_ref().map_or(read.at.revision, |entry| entry.meta.mod_revision);
                        seen[which].store(read.at.index, Ordering::SeqCst);
                        if read.at.index < ROUNDS {
                            reader.wait_key_change(&name, since, Duration::from_secs(3_600)).await;
                        }
                    }
                })
            })
            .collect();
        let rounds = async {
            for index in 1..=ROUNDS {
                let change = if index % 3 == 0 { remove("k") } else { put("k", index.to_string()) };
                apply(&mut state, vec![batch(index, index, &[put("other", "x"), change])]).await;
                while seen.iter().any(|seen| seen.load(Ordering::SeqCst) < index) {
                    tokio::task::yield_now().await;
                }
            }
        };
        tokio::time::timeout(3 * LONG, rounds).await.expect("a waiter hangs: it missed a change");
        for waiter in waiters {
            waiter.await.unwrap();
        }
        assert_eq!(reader.stats().unwrap().watched_keys, 0);
    });
}

/// Who waits for an index never misses it.
#[test]
fn no_index_is_missed_by_who_waits_for_it() {
    const ROUNDS: u64 = 3_000;
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        apply(&mut state, vec![blank(0)]).await;
        let seen: Arc<[AtomicU64; 2]> = Arc::default();
        for which in 0..2 {
            let (reader, seen) = (reader.clone(), Arc::clone(&seen));
            watchdog::spawn(async move {
                for index in 1..=ROUNDS {
                    reader.wait_applied(index).await;
                    seen[which].store(index, Ordering::SeqCst);
                }
            });
        }
        let rounds = async {
            for index in 1..=ROUNDS {
                apply(&mut state, vec![blank(index)]).await;
                while seen.iter().any(|seen| seen.load(Ordering::SeqCst) < index) {
                    tokio::task::yield_now().await;
                }
            }
        };
        tokio::time::timeout(LONG, rounds).await.expect("a waiter hangs: it missed its index");
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "measures that a wait waits")]
fn a_wait_returns_at_once_for_a_removal_that_came_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        let entries = vec![blank(0), batch(1, 1, &[put("a", "1")]), batch(2, 1, &[put("b", "1"), remove("a")])];
        apply(&mut state, entries).await;
        let wait = |name: &'static str, seen, within| {
            let reader = reader.clone();
            async move {
                let name = key(name);
                let change = reader.wait_key_change(&name, seen, within);
                tokio::time::timeout(LONG, change).await.expect("it waits, or hangs");
            }
        };
        // The removal at 4 came after 2.
        wait("a", 2, 3 * LONG).await;
        let start = tokio::time::Instant::now();
        wait("a", 4, Duration::from_millis(50)).await;
        wait("never", 4, Duration::from_millis(50)).await;
        assert!(start.elapsed() >= Duration::from_millis(100), "nothing came after 4");
    });
}
