//! Snapshots that are built, sent, received and installed, and what is left of them.

use std::fs;
use std::path::Path;

use openraft::storage::{RaftSnapshotBuilder, RaftStateMachine};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::raft::SnapshotMeta;
use quorate_store::state::StateReader;
use quorate_store::state::receive::SnapshotReceiver;
use quorate_store::state::snapshot::SnapshotHandle;

use super::{apply, workload_entry};

pub async fn build(state: &mut StateMachine) -> SnapshotHandle {
    let mut builder = state.try_create_snapshot_builder(true).await.expect("forced");
    builder.build_snapshot().await.expect("a snapshot").snapshot
}

pub async fn install(state: &mut StateMachine, snapshot: SnapshotHandle) -> std::io::Result<()> {
    let meta: SnapshotMeta = snapshot.manifest().meta.clone().try_into().unwrap();
    state.install_snapshot(&meta, snapshot).await
}

/// Sends what the receiver lacks, in chunks of `chunk` bytes; stops after `chunks_max` of them.
pub fn send(from: &SnapshotHandle, to: &mut SnapshotReceiver, chunk: usize, chunks_max: usize) -> usize {
    let mut sent = 0;
    for (file, have) in to.have().into_iter().enumerate() {
        let mut offset = have;
        while offset < from.manifest().files[file].bytes && sent < chunks_max {
            let bytes = from.read_chunk(file, offset, chunk).unwrap();
            to.write(file, offset, &bytes).unwrap();
            offset += bytes.len() as u64;
            sent += 1;
        }
    }
    sent
}

pub fn receive(from: &SnapshotHandle, to: &StateReader) -> SnapshotHandle {
    let mut receiver = SnapshotReceiver::begin(to.state_dir(), from.manifest().clone()).unwrap();
    send(from, &mut receiver, 1 << 20, usize::MAX);
    receiver.finish().unwrap()
}

/// Waits until the files of dropped snapshots are gone: dropping one does not wait for that.
pub fn wait_until_so_many_are_left(snapshots: &Path, count: usize) {
    for _ in 0..1_000 {
        if names_in(snapshots).len() == count {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("other than {count} snapshots are left: {:?}", names_in(snapshots));
}

pub fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Databases that were replaced go away once nobody reads from them. A process that ends while one is being closed may be
/// ended by RocksDB.
pub fn wait_until_replaced_are_closed(reader: &StateReader) {
    while names_in(reader.state_dir()).into_iter().filter(|name| name.starts_with("db-")).count() > 1 {
        std::thread::yield_now();
    }
}

pub async fn workload(state: &mut StateMachine, from: u64, to: u64) {
    apply(state, (from..=to).map(workload_entry).collect()).await;
}
