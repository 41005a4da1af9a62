//! What a recovery takes for the content of a disk that a crash left in an unusual place.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftSnapshotBuilder, RaftStateMachine};
use quorate_store::identity;
use quorate_store::log::LogStore;
use quorate_store::offline::{OfflineError, RecoverOptions, check, recover, survivor};
use quorate_store::raft::LogEntry;
use quorate_store::state::StateReader;

use crate::offline::{entries, lasting, reopened, survivor_dir};
use crate::state_support::*;

fn chosen(dir: &Path) -> RecoverOptions {
    RecoverOptions { data_dir: dir.to_owned(), cluster_id: 31, revision_floor: 0, incarnation: 41 }
}

fn open_log(dir: &Path) -> LogStore {
    let identity = identity::read(dir).unwrap().expect("there is a node");
    LogStore::open(dir, &identity, Arc::new(|fault| panic!("{fault}"))).unwrap()
}

#[test]
fn the_log_says_how_far_it_reaches_and_not_the_mark_beside_it() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    let last = survivor_dir(&dir);
    // The mark is up to a quarter of a second old when a machine loses its power.
    let older = fs::read(dir.join("log.mark")).unwrap();
    let mut log = open_log(&dir);
    let more: Vec<_> = (last + 1..=last + 40).map(workload_entry).collect();
    runtime().block_on(log.blocking_append(more)).unwrap();
    log.close();
    fs::write(dir.join("log.mark"), older).unwrap();
    assert_eq!(survivor(&dir).unwrap().last.unwrap().index, last + 40);
    assert_eq!(recover(&chosen(&dir), |_| {}).unwrap().last.unwrap().index, last + 40);
}

/// Puts a snapshot of the state after these entries beside the state, as an installation does before it exchanges the state.
fn receive_snapshot(dir: &Path, count: usize) -> (tempfile::TempDir, StateReader) {
    let other = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(other.path());
    // The membership that the survivor has.
    let mut all = entries();
    set_membership(&mut all[0], dir);
    all.truncate(count);
    runtime().block_on(async {
        apply(&mut state, all).await;
        state.get_snapshot_builder().await.build_snapshot().await.unwrap();
    });
    let snapshots = other.path().join("state/snap");
    let made = fs::read_dir(&snapshots).unwrap().next().expect("it was built").unwrap();
    let to = dir.join("state/snap").join(made.file_name());
    fs::create_dir_all(&to).unwrap();
    for file in fs::read_dir(made.path()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    drop(state);
    (other, reader)
}

fn set_membership(entry: &mut LogEntry, dir: &Path) {
    let (state, reader) = open(dir);
    let membership = reader.applied().membership.membership;
    drop((state, reader));
    entry.payload = openraft::EntryPayload::Membership(membership.try_into().unwrap());
}

#[test]
fn a_snapshot_ahead_of_the_state_is_where_a_recovery_goes_on_from() {
    for is_purged in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("data");
        let last = survivor_dir(&dir);
        let (_other, all) = receive_snapshot(&dir, entries().len());
        let mut log = open_log(&dir);
        let upto = all.applied().log_id.expect("it applied them all");
        runtime().block_on(async {
            match is_purged {
                true => log.purge(upto.into()).await.unwrap(),
                // The log of a node that was behind ends before the snapshot.
                false => log.truncate_after(Some(entries()[250].log_id)).await.unwrap(),
            }
        });
        log.close();
        let report = check(&dir, |_, _| {}).unwrap();
        assert_eq!(report.faults, [""; 0], "a start would heal it");
        let looked = report.looked.join("\n");
        assert!(looked.contains(&format!("a snapshot up to entry {last} takes its place")), "{looked}");

        let seen = survivor(&dir).unwrap();
        assert_eq!((seen.applied.unwrap().index, seen.last.unwrap().index), (last, last));
        assert_eq!(seen.revision, all.position().revision);
        let done = recover(&chosen(&dir), |_| {}).unwrap();
        assert_eq!((done.last.unwrap().index, done.revision_before), (last, all.position().revision));
        let (_made, after) = reopened(&dir, 1);
        assert_eq!(lasting(&all), lasting(&after));
    }
}

#[test]
fn entries_that_a_snapshot_replaced_are_not_applied_after_it() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    survivor_dir(&dir);
    // At the index at which the snapshot ends, the log has an entry of another leader.
    let (_other, all) = receive_snapshot(&dir, 251);
    let mut log = open_log(&dir);
    let stale = (250..=255).map(|index| {
        let mut entry = workload_entry(index);
        entry.log_id = quorate_store::raft::wire::LogIdRecord { term: 9, node: 3, index }.into();
        entry
    });
    runtime().block_on(async {
        log.truncate_after(Some(entries()[249].log_id)).await.unwrap();
        log.blocking_append(stale.collect::<Vec<_>>()).await.unwrap();
    });
    log.close();
    let done = recover(&chosen(&dir), |_| {}).unwrap();
    assert_eq!((done.last.unwrap().index, done.revision_before), (250, all.position().revision));
}

#[test]
fn a_damaged_log_is_said_before_anything_is_recovered() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    survivor_dir(&dir);
    fs::remove_file(dir.join("log.mark")).unwrap();
    let error = survivor(&dir).unwrap_err();
    assert!(matches!(&error, OfflineError::Log(_)) && error.to_string().contains("log.mark"), "{error}");
}

#[test]
fn a_second_recovery_by_hand_is_refused_where_the_first_one_kept_the_old_content() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    survivor_dir(&dir);
    let old = recover(&chosen(&dir), |_| {}).unwrap().old.expect("it is kept");
    // Somebody brings the old content back, to try once more, and leaves something where it was.
    for part in ["identity", "log", "log.mark", "state"] {
        let (there, kept) = (dir.join(part), old.join(part));
        if there.is_dir() {
            fs::remove_dir_all(&there).unwrap()
        } else {
            fs::remove_file(&there).unwrap()
        }
        fs::rename(&kept, &there).unwrap();
    }
    fs::write(old.join("identity"), "kept").unwrap();
    let error = recover(&chosen(&dir), |_| {}).unwrap_err();
    assert!(matches!(&error, OfflineError::Refused(said) if said.contains("before-epoch-1")), "{error}");
    assert_eq!(fs::read(old.join("identity")).unwrap(), b"kept", "what was kept is not written over");
    assert!(identity::read(&dir).unwrap().is_some() && !dir.join("recovering").exists(), "the directory is as it was");
    assert_eq!(check(&dir, |_, _| {}).unwrap().faults, [""; 0]);
    fs::remove_dir_all(&old).unwrap();
    recover(&chosen(&dir), |_| {}).unwrap();
}
