//! What lies on a disk beside what belongs there: a snapshot or a state of an earlier cluster. It is named before anything is replaced by it.

use std::fs;
use std::sync::Arc;

use openraft::StorageHelper;
use openraft::storage::{RaftLogStorage, RaftSnapshotBuilder, RaftStateMachine};
use quorate_store::adapters::start::{self, Part, Unfit};
use quorate_store::identity::{self, Identity};
use quorate_store::log::LogStore;
use quorate_store::offline::check;
use quorate_store::raft::LogEntry;
use quorate_store::raft::wire::{LogIdRecord, MembershipRecord};
use tempfile::TempDir;

use crate::log_damage::copy;
use crate::offline::survivor_dir;
use crate::state_support::*;

/// A node of one cluster that applied 200 of its entries, flushed.
struct Disk {
    home: TempDir,
}

impl Disk {
    fn new() -> Self {
        let disk = Self { home: tempfile::tempdir().unwrap() };
        survivor_dir(&disk.dir());
        disk
    }

    fn dir(&self) -> std::path::PathBuf {
        self.home.path().join("data")
    }

    fn identity(&self) -> Identity {
        identity::read(&self.dir()).unwrap().unwrap()
    }

    fn log(&self) -> LogStore {
        LogStore::open(&self.dir(), &self.identity(), Arc::new(|fault| panic!("{fault}"))).unwrap()
    }

    fn applied(&self) -> u64 {
        open(&self.dir()).1.position().index
    }

    fn membership(&self) -> MembershipRecord {
        open(&self.dir()).1.applied().membership.membership
    }

    /// What a start says.
    fn reconcile(&self) -> Result<(), Unfit> {
        let (log, (machine, _reader)) = (self.log(), open(&self.dir()));
        let said = start::reconcile(&log, &machine, &self.identity());
        drop(machine);
        log.close();
        said
    }

    /// What a look without a start says.
    fn faults(&self) -> Vec<String> {
        check(&self.dir(), |_, _| {}).unwrap().faults
    }

    /// Puts a snapshot beside the state: of a cluster with these members, that has come to this entry in this term.
    fn plant(&self, membership: MembershipRecord, term: u64, last: u64) {
        let other = tempfile::tempdir().unwrap();
        let (mut state, _reader) = open(other.path());
        let entries = (0..=last).map(|index| {
            let mut entry = workload_entry(index);
            if index == 0 {
                entry.payload = openraft::EntryPayload::Membership(membership.clone().try_into().unwrap());
            }
            LogEntry { log_id: LogIdRecord { term, node: 1, index }.into(), ..entry }
        });
        runtime().block_on(async {
            apply(&mut state, entries.collect()).await;
            state.get_snapshot_builder().await.build_snapshot().await.unwrap();
        });
        copy(&other.path().join("state/snap"), &self.snapshots());
    }

    fn snapshots(&self) -> std::path::PathBuf {
        self.dir().join("state/snap")
    }

    /// The operator does as told.
    fn clear(&self) {
        fs::remove_dir_all(self.snapshots()).unwrap();
    }
}

/// Names the snapshot, by start and check alike, changes nothing, and all is well once it is gone.
fn is_refused(disk: &Disk, words: &str) {
    let applied = disk.applied();
    let said = disk.reconcile().unwrap_err().to_string();
    assert!(said.contains("the snapshot in state/snap") && said.contains(words), "{said}");
    assert_eq!(disk.faults(), [said]);
    assert_eq!(disk.applied(), applied, "the state is as it was");
    disk.clear();
    disk.reconcile().unwrap();
    assert_eq!(disk.faults(), [""; 0]);
}

#[test]
fn a_snapshot_of_an_earlier_cluster_takes_no_state_away() {
    let disk = Disk::new();
    disk.plant(disk.membership(), 9, 50);
    is_refused(&disk, "entry 50 from node 1 in term 9");
}

#[test]
fn a_snapshot_of_the_same_place_and_another_leader_is_named() {
    let disk = Disk::new();
    disk.plant(disk.membership(), 9, 199);
    is_refused(&disk, "entry 199 from node 1 in term 9");
}

#[test]
fn a_snapshot_ahead_of_the_state_has_to_be_of_the_log() {
    let disk = Disk::new();
    disk.plant(disk.membership(), 9, 250);
    is_refused(&disk, "the log has entry 301 from node 1 in term 1");
}

/// By its place alone it could be what an interrupted installation left.
#[test]
fn a_snapshot_of_a_node_of_this_number_on_another_disk_is_named() {
    let disk = Disk::new();
    let mut membership = disk.membership();
    membership.nodes.get_mut(&1).unwrap().incarnation = 6;
    disk.plant(membership, 9, 400);
    is_refused(&disk, "knows node 1 with another data directory");
}

/// It was removed, came back under its number with an empty disk, and was sent a snapshot from before that.
#[test]
fn a_node_that_came_back_under_its_number_starts_from_what_knows_its_former_disk() {
    let disk = Disk::new();
    let mut membership = disk.membership();
    membership.nodes.get_mut(&1).unwrap().incarnation = 6;
    disk.plant(membership, 1, 150);
    disk.reconcile().unwrap();
    assert_eq!(disk.faults(), [""; 0]);
    // So does its state, until it applied what took it in again.
    let (log, (machine, _reader)) = (disk.log(), open(&disk.dir()));
    let own = Identity { incarnation: 7, ..disk.identity() };
    start::reconcile(&log, &machine, &own).unwrap();
    drop(machine);
    log.close();
}

#[test]
fn a_state_of_an_earlier_cluster_is_named_as_well() {
    let (disk, other) = (Disk::new(), Disk::new());
    // One that voted on and applied the same entries, then found itself in the directory of another.
    let mut log = other.log();
    runtime().block_on(log.truncate_after(Some(LogIdRecord { term: 1, node: 1, index: 150 }.into()))).unwrap();
    let more = (151..=303).map(|index| LogEntry {
        log_id: LogIdRecord { term: 3, node: 2, index }.into(),
        payload: openraft::EntryPayload::Blank,
    });
    runtime()
        .block_on(openraft::storage::RaftLogStorageExt::blocking_append(&mut log, more.collect::<Vec<_>>()))
        .unwrap();
    log.close();
    fs::remove_dir_all(other.dir().join("state")).unwrap();
    copy(&disk.dir().join("state"), &other.dir().join("state"));
    let said = other.reconcile().unwrap_err();
    assert!(matches!(&said, Unfit::TwoHistories { one, .. } if one.part == Part::State), "{said}");
    assert_eq!(other.faults(), [said.to_string()]);
}

/// Why the judgement has to come first. Where this fails, openraft judges by itself, and ours can be looked at again.
#[test]
fn openraft_itself_replaces_the_state_by_such_a_snapshot_before_it_looks() {
    let disk = Disk::new();
    disk.plant(disk.membership(), 9, 50);
    let (mut log, (mut machine, reader)) = (disk.log(), open(&disk.dir()));
    assert_eq!(reader.position().index, 199);
    let started = runtime().block_on(StorageHelper::new(&mut log, &mut machine).with_id(1).get_initial_state());
    let said = started.map(drop).unwrap_err().to_string();
    assert!(said.contains("the durable state went back"), "{said}");
    drop((machine, reader));
    log.close();
    assert_eq!(disk.applied(), 50, "what was applied is gone");
}
