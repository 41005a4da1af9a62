//! What the tests of the log share: a fixed identity, entries that can tell whether they are right, short names for
//! openraft's traits. Never asserts anything about the log's inside.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use openraft::EntryPayload;
use openraft::storage::{IOFlushed, RaftLogReader, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use quorate_store::identity::Identity;
use quorate_store::log::{LogOpenError, LogOptions, LogStore};
use quorate_store::raft::wire::{LogIdRecord, VoteRecord};
use quorate_store::raft::{EncodedBatch, LogEntry, LogId, TypeConfig};
use tokio::sync::oneshot;

/// How often a lock may be found held by a process that was just started.
const LOCKED_TRIES: usize = 500;

pub fn identity() -> Identity {
    Identity { cluster_id: Some(1), node_id: 1, incarnation: 0xfeed_beef }
}

/// A log whose first fault fails the test.
pub fn open(dir: &Path) -> LogStore {
    try_open(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
}

/// Opens a log. Waits a moment for its lock: a process that another test starts holds it as well until that runs its own program.
pub fn try_open(dir: &Path) -> Result<LogStore, LogOpenError> {
    quorate_store::durable::create_dir(dir).unwrap();
    let open = || LogStore::open(dir, &identity(), Arc::new(|fault| panic!("the log failed: {fault}")));
    for _ in 0..LOCKED_TRIES {
        match open() {
            Err(LogOpenError::InUse { .. }) => thread::sleep(Duration::from_millis(2)),
            opened => return opened,
        }
    }
    open()
}

/// A log whose segments are so small that everything happens at their ends.
pub fn open_small(dir: &Path, segment_bytes: u64) -> LogStore {
    quorate_store::durable::create_dir(dir).unwrap();
    let options = LogOptions { segment_bytes, ..LogOptions::default() };
    LogStore::open_with(dir, &identity(), &options, Arc::new(|fault| panic!("the log failed: {fault}")))
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
}

/// The segments, oldest first.
pub fn segments(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir.join("log")).unwrap().map(|file| file.unwrap().path());
    let mut segments: Vec<_> = files.filter(|path| path.extension().is_some_and(|ext| ext == "seg")).collect();
    segments.sort();
    segments
}

pub fn id(term: u64, index: u64) -> LogId {
    LogIdRecord { term, node: 1, index }.into()
}

/// An entry whose payload follows from its id, `bytes` long.
pub fn entry(term: u64, index: u64, bytes: usize) -> LogEntry {
    let pattern = [term.to_le_bytes(), index.to_le_bytes()].concat();
    let mut payload = pattern.repeat(bytes / pattern.len() + 1);
    payload.truncate(bytes);
    LogEntry { log_id: id(term, index), payload: EntryPayload::Normal(EncodedBatch(payload.into())) }
}

pub fn entries(term: u64, indexes: std::ops::Range<u64>, bytes: usize) -> Vec<LogEntry> {
    indexes.map(|index| entry(term, index, bytes)).collect()
}

/// Term and index of an entry, after checking that its payload is the one that belongs to them.
pub fn checked_id(found: &LogEntry) -> (u64, u64) {
    let (term, index) = (found.log_id.leader_id.term, found.log_id.index);
    let EntryPayload::Normal(batch) = &found.payload else { panic!("entry {index} is not one of ours: {found:?}") };
    assert!(*found == entry(term, index, batch.0.len()), "entry {index} of term {term} holds another payload");
    (term, index)
}

pub type Ack = oneshot::Receiver<Result<(), std::io::Error>>;

/// Appends without waiting for the disk.
pub async fn submit(store: &mut LogStore, entries: Vec<LogEntry>) -> Ack {
    let (sender, ack) = TypeConfig::oneshot();
    store.append(entries, IOFlushed::signal(sender)).await.expect("the log takes entries");
    ack
}

pub async fn append(store: &mut LogStore, entries: Vec<LogEntry>) {
    submit(store, entries).await.await.expect("the callback is called").expect("the disk takes entries");
}

pub async fn vote(store: &mut LogStore, term: u64) {
    store.save_vote(&VoteRecord { term, node: 1, committed: true }.into()).await.expect("the log takes a vote");
}

pub async fn vote_term(store: &mut LogStore) -> Option<u64> {
    store.get_log_reader().await.read_vote().await.unwrap().map(|vote| vote.leader_id.term)
}

/// Terms and indexes of everything in the log, payloads checked.
pub async fn content(store: &mut LogStore) -> Vec<(u64, u64)> {
    let found = store.get_log_reader().await.try_get_log_entries(..).await.expect("the log can be read");
    found.iter().map(checked_id).collect()
}

/// Last purged index and last index.
pub async fn bounds(store: &mut LogStore) -> (Option<u64>, Option<u64>) {
    let state = store.get_log_state().await.unwrap();
    (state.last_purged_log_id.map(|id| id.index), state.last_log_id.map(|id| id.index))
}

pub fn ids(term: u64, indexes: std::ops::Range<u64>) -> Vec<(u64, u64)> {
    indexes.map(|index| (term, index)).collect()
}
