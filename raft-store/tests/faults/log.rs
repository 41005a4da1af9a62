//! A disk that fails: the first error ends the log, for everyone and for good.

use std::sync::Arc;

use crate::log_common::*;
use openraft::storage::{IOFlushed, RaftLogStorage};
use parking_lot::Mutex;
use quorate_store::log::LogStore;

#[tokio::test]
async fn the_first_failed_sync_ends_the_log_and_is_told_once() {
    let scenario = fail::FailScenario::setup();
    let dir = tempfile::tempdir().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let told = Arc::clone(&told);
        Arc::new(move |fault: &str| told.lock().push(fault.to_owned()))
    };
    let mut store = LogStore::open(dir.path(), &identity(), hook).unwrap();
    append(&mut store, entries(1, 0..10, 100)).await;

    fail::cfg("log-sync-error", "1*return").unwrap();
    let first = submit(&mut store, entries(1, 10..12, 100)).await;
    assert!(first.await.unwrap().is_err());
    assert!(store.append(entries(1, 12..13, 100), IOFlushed::noop()).await.is_err(), "the next sync would succeed");
    assert!(store.save_vote(&quorate_store::raft::Vote::new(1, 1)).await.is_err());
    assert!(store.truncate_after(Some(id(1, 3))).await.is_err());
    store.close();
    let told = told.lock().clone();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("log-sync-error"), "{told:?}");

    let mut store = open(dir.path());
    let found = content(&mut store).await;
    assert!(found.starts_with(&ids(1, 0..10)) && found.len() <= 12, "{found:?}");
    scenario.teardown();
}
