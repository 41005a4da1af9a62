//! A snapshot that is installed while another one is built.

use std::sync::{Arc, Barrier};

use openraft::storage::{RaftSnapshotBuilder, RaftStateMachine};
use quorate_threads::watchdog;

use crate::state_support::snapshots::*;
use crate::state_support::*;

/// A node is told to install a snapshot while it builds one of the state before, which it has a snapshot of
/// already and is sending to somebody.
#[test]
fn a_build_that_an_installation_overtakes_ends_well_and_hides_nothing() {
    let scenario = fail::FailScenario::setup();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut leader, _) = open(one.path());
    let (mut follower, reader) = open(two.path());
    let runtime = runtime();
    let newer = runtime.block_on(async {
        workload(&mut leader, 0, 99).await;
        workload(&mut follower, 0, 99).await;
        workload(&mut leader, 100, 120).await;
        build(&mut leader).await
    });
    let received = receive(&newer, &reader);
    let sent = runtime.block_on(build(&mut follower));
    let mut builder = runtime.block_on(follower.try_create_snapshot_builder(true)).unwrap();
    let (built, go_on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let hold = {
        let (built, go_on) = (Arc::clone(&built), Arc::clone(&go_on));
        move || {
            built.wait();
            go_on.wait();
        }
    };
    fail::cfg_callback("snapshot-before-keep", hold).unwrap();
    let build = watchdog::spawn_on(runtime.handle(), async move { builder.build_snapshot().await });
    built.wait();
    runtime.block_on(install(&mut follower, received)).unwrap();
    go_on.wait();
    let built = runtime.block_on(build).unwrap().expect("the build of what is old by now");
    scenario.teardown();
    assert_eq!(built.meta.last_log_id.unwrap().index, 99);
    let current = runtime.block_on(follower.get_current_snapshot()).unwrap().unwrap();
    assert_eq!(current.meta.last_log_id.unwrap().index, 120);
    for snapshot in [&sent, &built.snapshot, &current.snapshot] {
        for (number, file) in snapshot.manifest().files.iter().enumerate() {
            let bytes = snapshot.read_chunk(number, 0, usize::MAX).unwrap();
            assert_eq!(bytes.len() as u64, file.bytes, "{} of {:?}", file.name, snapshot.manifest().meta);
        }
    }
    drop((sent, built));
    wait_until_so_many_are_left(&reader.state_dir().join("snap"), 1);
    wait_until_replaced_are_closed(&reader);
}
