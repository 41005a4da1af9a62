//! The log as openraft sees it: what it promises to readers, in what order, and what is left of it after reopening.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::log_common::*;
use futures::TryStreamExt;
use openraft::storage::{RaftLogReader, RaftLogStorage};

#[tokio::test]
async fn a_new_log_is_empty_and_stays_so_over_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut store = open(dir.path());
        assert_eq!(bounds(&mut store).await, (None, None));
        assert_eq!(vote_term(&mut store).await, None);
        assert_eq!((content(&mut store).await, store.last_index()), (vec![], 0));
    }
}

#[tokio::test]
async fn appended_entries_are_readable_at_once_and_after_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let ack = submit(&mut store, entries(1, 0..20, 500)).await;
    assert_eq!(content(&mut store).await, ids(1, 0..20));
    ack.await.unwrap().unwrap();
    append(&mut store, entries(2, 20..25, 500)).await;
    let mut reader = store.get_log_reader().await;
    let middle: Vec<_> = reader.try_get_log_entries(18..=21).await.unwrap().iter().map(checked_id).collect();
    assert_eq!(middle, [(1, 18), (1, 19), (2, 20), (2, 21)]);
    assert!(reader.try_get_log_entries(25..).await.unwrap().is_empty());
    drop((store, reader));

    let mut store = open(dir.path());
    assert_eq!(content(&mut store).await, [ids(1, 0..20), ids(2, 20..25)].concat());
    assert_eq!((bounds(&mut store).await, store.last_index()), ((None, Some(24)), 24));
}

#[tokio::test]
async fn limited_reads_are_capped_by_bytes_but_never_empty() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    append(&mut store, entries(1, 0..10, 300 * 1024)).await;
    append(&mut store, entries(1, 10..11, 3 * 1024 * 1024)).await;
    let mut reader = store.get_log_reader().await;
    assert_eq!(reader.limited_get_log_entries(2, 11).await.unwrap().len(), 3);
    assert_eq!(reader.limited_get_log_entries(10, 11).await.unwrap().len(), 1);
    assert!(reader.limited_get_log_entries(3, 3).await.unwrap().is_empty());
    let streamed: Vec<_> = reader.entries_stream(1..11).await.map_ok(|e| checked_id(&e)).try_collect().await.unwrap();
    assert_eq!(streamed, ids(1, 1..11), "a stream goes on over its chunks");
}

#[tokio::test]
async fn what_was_truncated_is_gone_and_its_place_is_taken_by_the_next_term() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    append(&mut store, entries(1, 0..10, 100)).await;
    store.truncate_after(Some(id(1, 4))).await.unwrap();
    assert_eq!(content(&mut store).await, ids(1, 0..5));
    drop(store);

    let mut store = open(dir.path());
    assert_eq!(content(&mut store).await, ids(1, 0..5), "a truncation is durable when it returns");
    append(&mut store, entries(3, 5..8, 100)).await;
    drop(store);

    let mut store = open(dir.path());
    assert_eq!(content(&mut store).await, [ids(1, 0..5), ids(3, 5..8)].concat());
    store.truncate_after(None).await.unwrap();
    assert_eq!(bounds(&mut store).await, (None, None));
    drop(store);

    let mut store = open(dir.path());
    assert_eq!(content(&mut store).await, []);
    append(&mut store, entries(4, 0..2, 100)).await;
    assert_eq!(content(&mut store).await, ids(4, 0..2));
}

#[tokio::test]
async fn a_truncation_behind_unwritten_appends_leaves_only_what_it_should() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    for round in 0..30 {
        let acks = [
            submit(&mut store, entries(round + 1, round..round + 50, 2_000)).await,
            submit(&mut store, entries(round + 1, round + 50..round + 100, 2_000)).await,
        ];
        store.truncate_after(Some(id(round + 1, round))).await.unwrap();
        for ack in acks {
            ack.await.unwrap().unwrap();
        }
    }
    let expected: Vec<_> = (0..30).map(|round| (round + 1, round)).collect();
    assert_eq!(content(&mut store).await, expected);
    drop(store);
    assert_eq!(content(&mut open(dir.path())).await, expected);
}

#[tokio::test]
async fn purged_entries_are_gone_also_beyond_the_end_and_the_log_goes_on_after_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    store.set_durable_state_index(1_000);
    append(&mut store, entries(1, 0..10, 100)).await;
    store.purge(id(1, 3)).await.unwrap();
    assert_eq!((bounds(&mut store).await, content(&mut store).await), ((Some(3), Some(9)), ids(1, 4..10)));
    store.purge(id(2, 99)).await.unwrap();
    assert_eq!((bounds(&mut store).await, content(&mut store).await), ((Some(99), Some(99)), vec![]));
    store.purge(id(1, 50)).await.unwrap();
    append(&mut store, entries(2, 100..103, 100)).await;
    drop(store);

    let mut store = open(dir.path());
    assert_eq!((bounds(&mut store).await, content(&mut store).await), ((Some(99), Some(102)), ids(2, 100..103)));
    store.truncate_after(Some(id(2, 99))).await.unwrap();
    drop(store);
    assert_eq!(bounds(&mut open(dir.path())).await, (Some(99), Some(99)));
}

#[tokio::test]
async fn a_read_in_parts_that_begins_before_the_log_does_gives_nothing_and_not_what_comes_later() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    store.set_durable_state_index(1_000);
    append(&mut store, entries(1, 0..10, 100)).await;
    store.purge(id(1, 3)).await.unwrap();
    let mut reader = store.get_log_reader().await;
    let mut some = async |from| reader.limited_get_log_entries(from, 8).await.unwrap().len();
    assert_eq!((some(0).await, some(3).await, some(4).await, some(8).await), (0, 0, 4, 0));
    let streamed: Vec<_> = reader.entries_stream(2..8).await.try_collect().await.unwrap();
    assert_eq!(streamed.len(), 0, "an apply that begins at 2 must not begin at 4");
    let streamed: Vec<_> = reader.entries_stream(4..8).await.try_collect().await.unwrap();
    assert_eq!(streamed.len(), 4);
    // All that there is: openraft reads so to see what the log holds.
    assert_eq!(reader.try_get_log_entries(0..8).await.unwrap().len(), 4);
}

#[tokio::test]
async fn the_last_vote_is_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    vote(&mut store, 3).await;
    assert_eq!(vote_term(&mut store).await, Some(3));
    vote(&mut store, 7).await;
    drop(store);
    assert_eq!(vote_term(&mut open(dir.path())).await, Some(7));
}

#[tokio::test]
async fn concurrent_appends_share_syncs_and_complete_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let mut acks = Vec::new();
    for index in 0..2_000 {
        acks.push(submit(&mut store, vec![entry(1, index, 1_000)]).await);
    }
    // Looked at from the newest to the oldest: once one is complete, all that come after it here must be.
    loop {
        let mut complete = 0;
        for ack in acks.iter_mut().rev() {
            match ack.try_recv() {
                Ok(result) => {
                    result.unwrap();
                    complete += 1;
                }
                Err(tokio::sync::oneshot::error::TryRecvError::Closed) => complete += 1,
                Err(tokio::sync::oneshot::error::TryRecvError::Empty) => {
                    assert_eq!(complete, 0, "an append completed before an older one");
                }
            }
        }
        if complete == acks.len() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let stats = store.stats();
    assert_eq!((stats.entries, stats.fsync.count()), (2_000, stats.groups));
    assert!(stats.groups < 1_000, "{} groups for 2,000 appends", stats.groups);
    assert!(stats.fsync.micros_total > 0);
    drop(store);
    assert_eq!(content(&mut open(dir.path())).await, ids(1, 0..2_000));
}

#[expect(clippy::disallowed_methods, reason = "gives up after a while")]
#[tokio::test]
async fn a_log_larger_than_memory_is_read_whole_and_its_files_go_with_a_purge() {
    const ENTRIES: u64 = 1_200;
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    append(&mut store, entries(1, 0..1, 20 * 1024 * 1024)).await;
    for start in (1..ENTRIES).step_by(10) {
        submit(&mut store, entries(1, start..(start + 10).min(ENTRIES), 150 * 1024)).await;
    }
    vote(&mut store, 1).await;
    assert!(store.stats().tail_bytes <= 65 * 1024 * 1024, "{} bytes in memory", store.stats().tail_bytes);
    assert_eq!(content(&mut store).await, ids(1, 0..ENTRIES));
    let mut reader = store.get_log_reader().await;
    let streamed: Vec<_> =
        reader.entries_stream(3..ENTRIES).await.map_ok(|e| checked_id(&e)).try_collect().await.unwrap();
    assert_eq!(streamed, ids(1, 3..ENTRIES));
    assert_eq!(reader.limited_get_log_entries(5, ENTRIES).await.unwrap().len(), 6, "capped on disk too");

    let before = segment_bytes(dir.path());
    assert!(before > 100 << 20, "only {before} bytes in segments");
    store.purge(id(1, ENTRIES - 2)).await.unwrap();
    append(&mut store, entries(1, ENTRIES..ENTRIES + 1, 10)).await;
    assert_eq!(content(&mut store).await, ids(1, ENTRIES - 1..ENTRIES + 1));
    // Nothing says that the state is durable: every file must stay.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(segment_bytes(dir.path()) >= before);
    store.set_durable_state_index(ENTRIES);
    let deadline = Instant::now() + Duration::from_secs(20);
    while segment_bytes(dir.path()) > 100 << 20 {
        assert!(Instant::now() < deadline, "{} bytes are left, {before} before", segment_bytes(dir.path()));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop((store, reader));
    assert_eq!(content(&mut open(dir.path())).await, ids(1, ENTRIES - 1..ENTRIES + 1));
}

fn segment_bytes(dir: &Path) -> u64 {
    segments(dir).iter().map(|path| path.metadata().map_or(0, |metadata| metadata.len())).sum()
}

#[tokio::test]
async fn segments_go_only_when_the_state_is_durable_and_the_log_opens_without_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_small(dir.path(), 64 * 1024);
    vote(&mut store, 3).await;
    for index in 0..100 {
        append(&mut store, vec![entry(3, index, 9_000)]).await;
    }
    assert!(segments(dir.path()).len() > 15);
    store.purge(id(3, 79)).await.unwrap();
    store.set_durable_state_index(49);
    append(&mut store, vec![entry(3, 100, 10)]).await;
    // Twelve kilobytes for each entry of which the state is not durable, and no segment of them went.
    gone_to(&store, 52 * 12_288, 70 * 12_288).await;
    drop(store);
    let mut store = open_small(dir.path(), 64 * 1024);
    assert_eq!((bounds(&mut store).await, content(&mut store).await), ((Some(79), Some(100)), ids(3, 80..101)));
    assert_eq!(vote_term(&mut store).await, Some(3));
    store.set_durable_state_index(79);
    append(&mut store, vec![entry(3, 101, 10)]).await;
    gone_to(&store, 22 * 12_288, 40 * 12_288).await;
    // Files come and go in the log's own threads, each just before it is counted.
    wait_until(|| store.stats().disk_bytes == segment_bytes(dir.path())).await;
    // Purged beyond the end: nothing but the newest segment is needed.
    store.set_durable_state_index(500);
    store.purge(id(3, 500)).await.unwrap();
    append(&mut store, vec![entry(3, 501, 10)]).await;
    gone_to(&store, 1, 2 * 64 * 1024).await;
    drop(store);
    let mut store = open_small(dir.path(), 64 * 1024);
    assert_eq!((bounds(&mut store).await, content(&mut store).await), ((Some(500), Some(501)), ids(3, 501..502)));
    assert_eq!(vote_term(&mut store).await, Some(3));
}

#[expect(clippy::disallowed_methods, reason = "gives up after a while")]
async fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "it did not come true");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn gone_to(store: &quorate_store::log::LogStore, least: u64, most: u64) {
    wait_until(|| store.stats().disk_bytes <= most).await;
    assert!(
        store.stats().disk_bytes >= least,
        "{} bytes are left, at least {least} are needed",
        store.stats().disk_bytes
    );
}

#[tokio::test]
async fn a_closed_log_takes_nothing_more_and_keeps_what_it_took() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let ack = submit(&mut store, entries(1, 0..100, 1_000)).await;
    let mut clone = store.clone();
    store.close();
    ack.await.unwrap().unwrap();
    assert!(clone.append(entries(1, 100..101, 10), openraft::storage::IOFlushed::noop()).await.is_err());
    assert!(clone.save_vote(&quorate_store::raft::Vote::new(1, 1)).await.is_err());
    drop(clone);
    assert_eq!(content(&mut open(dir.path())).await, ids(1, 0..100));
}

#[tokio::test]
async fn a_log_in_use_or_of_another_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    append(&mut store, entries(1, 0..3, 10)).await;
    let error = try_open(dir.path()).map(drop).unwrap_err();
    assert!(matches!(error, quorate_store::log::LogOpenError::InUse { .. }), "{error}");
    drop(store);
    let other = quorate_store::identity::Identity { incarnation: 5, ..identity() };
    let error =
        quorate_store::log::LogStore::open(dir.path(), &other, std::sync::Arc::new(|_| {})).map(drop).unwrap_err();
    assert!(error.to_string().contains("log.mark"), "{error}");
}
