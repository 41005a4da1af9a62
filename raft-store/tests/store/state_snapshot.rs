//! Snapshots: built, sent, received in pieces, installed, kept.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use openraft::storage::{RaftSnapshotBuilder, RaftStateMachine};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::raft::SnapshotMeta;
use quorate_store::raft::wire::SnapshotMetaRecord;
use quorate_store::state::receive::SnapshotReceiver;
use quorate_store::state::snapshot::SnapshotManifest;
use quorate_store::state::{StateOptions, StateReader};
use quorate_threads::watchdog;

use crate::state_support::snapshots::*;
use crate::state_support::*;

/// All rows that reads can see, at the current and a past revision.
fn contents(reader: &StateReader) -> String {
    let mut past = query("", None);
    past.revision = Some(reader.position().oldest_revision);
    format!("{:?} {:?}", reader.list(&query("", None)).unwrap(), reader.list(&past).unwrap())
}

#[test]
fn a_snapshot_sent_in_pieces_makes_the_receiver_equal_and_survives_its_restart() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut leader, leader_reader) = open(one.path());
    let (mut follower, reader) = open(two.path());
    runtime().block_on(async {
        workload(&mut leader, 0, 400).await;
        workload(&mut follower, 0, 20).await;
        let snapshot = build(&mut leader).await;
        assert_eq!(snapshot.manifest().meta.last_log_id.unwrap().index, 400);

        // Cut off three times, once with another receiver still there.
        let mut receiver = SnapshotReceiver::begin(reader.state_dir(), snapshot.manifest().clone()).unwrap();
        assert_eq!(send(&snapshot, &mut receiver, 1_000, 3), 3);
        let busy = SnapshotReceiver::begin(reader.state_dir(), snapshot.manifest().clone()).unwrap_err();
        assert_eq!(busy.kind(), std::io::ErrorKind::WouldBlock);
        drop(receiver);
        let mut receiver = SnapshotReceiver::begin(reader.state_dir(), snapshot.manifest().clone()).unwrap();
        assert!(receiver.have().iter().sum::<u64>() > 0, "what was sent before is still there");
        assert_eq!(send(&snapshot, &mut receiver, 1_000, 5), 5);
        drop(receiver);
        let mut receiver = SnapshotReceiver::begin(reader.state_dir(), snapshot.manifest().clone()).unwrap();
        send(&snapshot, &mut receiver, 1_000, usize::MAX);
        let received = receiver.finish().unwrap();

        install(&mut follower, received).await.unwrap();
        assert_eq!(reader.applied(), leader_reader.applied());
        assert_eq!(contents(&reader), contents(&leader_reader));
        assert_eq!(reader.durable_index(), 400, "an installed snapshot is durable");
        let received = reader.state_dir().join("recv");
        wait_until_so_many_are_left(&received, 1);
        assert_eq!(names_in(&received), ["LOCK"]);

        workload(&mut leader, 401, 450).await;
        workload(&mut follower, 401, 450).await;
        assert_eq!(reader.applied(), leader_reader.applied());

        let current = follower.get_current_snapshot().await.unwrap().unwrap();
        assert_eq!(current.snapshot.manifest(), snapshot.manifest());
        let applied = reader.applied();
        reader.flush().unwrap();
        drop((follower, reader, current));
        let (mut follower, reader) = open(two.path());
        assert_eq!(reader.applied(), applied);
        let current = follower.get_current_snapshot().await.unwrap().unwrap();
        assert_eq!(current.snapshot.manifest(), snapshot.manifest());
        // And it can be passed on.
        let three = tempfile::tempdir().unwrap();
        let (mut third, third_reader) = open(three.path());
        let received = receive(&current.snapshot, &third_reader);
        install(&mut third, received).await.unwrap();
        workload(&mut third, 401, 450).await;
        assert_eq!(third_reader.applied(), leader_reader.applied());
    });
}

#[test]
fn a_retry_finds_its_outcome_after_a_restart_and_after_an_installation() {
    let bucket_ms = quorate_machine::limits::REQUEST_BUCKET_MS;
    let put_of = |bucket: u64, n: u64| with_id(put(format!("key/{n}"), "once"), &format!("id-{bucket}-{n}"));
    let puts = |bucket: u64| (0..300).map(|n| put_of(bucket, n)).collect::<Vec<_>>();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut leader, leader_reader) = open(one.path());
    let (mut follower, follower_reader) = open(two.path());
    runtime().block_on(async {
        apply(&mut leader, vec![blank(0), batch(1, 1, &puts(0)), batch(2, bucket_ms, &puts(1))]).await;
        apply(&mut follower, vec![blank(0)]).await;
        let snapshot = build(&mut leader).await;
        install(&mut follower, receive(&snapshot, &follower_reader)).await.unwrap();
    });
    drop((leader, leader_reader));
    let (restarted, restarted_reader) = open(one.path());
    for (mut state, reader) in [(restarted, restarted_reader), (follower, follower_reader)] {
        let revision = reader.position().revision;
        let again = [puts(0), puts(1), vec![put("key/0", "new")]].concat();
        runtime().block_on(apply(&mut state, vec![batch(3, bucket_ms + 1, &again)]));
        assert_eq!(reader.position().revision, revision + 1, "only the write without an id is new");
    }
}

#[test]
fn a_corrupted_chunk_is_found_and_only_its_file_is_fetched_again() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut leader, leader_reader) = open(one.path());
    let (mut follower, reader) = open(two.path());
    runtime().block_on(async {
        workload(&mut leader, 0, 300).await;
        let snapshot = build(&mut leader).await;
        let manifest = snapshot.manifest().clone();
        let table = manifest.files.iter().position(|file| file.name.ends_with(".sst")).unwrap();
        let mut receiver = SnapshotReceiver::begin(reader.state_dir(), manifest.clone()).unwrap();
        for (number, file) in manifest.files.iter().enumerate() {
            let mut bytes = snapshot.read_chunk(number, 0, usize::MAX).unwrap().to_vec();
            assert_eq!(bytes.len() as u64, file.bytes);
            if number == table {
                bytes[100] ^= 4;
            }
            receiver.write(number, 0, &bytes).unwrap();
        }
        let error = receiver.finish().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
        assert!(error.to_string().contains(&manifest.files[table].name), "{error}");
        let mut receiver = SnapshotReceiver::begin(reader.state_dir(), manifest.clone()).unwrap();
        let lacking: Vec<_> =
            (0..manifest.files.len()).filter(|n| receiver.have()[*n] < manifest.files[*n].bytes).collect();
        assert_eq!(lacking, [table]);
        send(&snapshot, &mut receiver, 4_096, usize::MAX);
        install(&mut follower, receiver.finish().unwrap()).await.unwrap();
        assert_eq!(contents(&reader), contents(&leader_reader));
    });
}

#[test]
fn a_receiver_refuses_what_could_do_harm() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut leader, _) = open(one.path());
    let (_follower, reader) = open(two.path());
    runtime().block_on(workload(&mut leader, 0, 30));
    let snapshot = runtime().block_on(build(&mut leader));
    let good = snapshot.manifest().clone();
    let begin = |change: &dyn Fn(&mut SnapshotManifest)| {
        let mut manifest = good.clone();
        change(&mut manifest);
        SnapshotReceiver::begin(reader.state_dir(), manifest).map(drop).unwrap_err().kind()
    };
    let invalid = std::io::ErrorKind::InvalidData;
    for name in
        ["../evil.sst", "/etc/passwd", "", "..", "LOCK", "SNAPSHOT", "x.sst", "MANIFEST-", "MANIFEST-1/..", "0.sst\0"]
    {
        assert_eq!(begin(&|manifest| manifest.files[0].name = name.into()), invalid, "{name:?}");
    }
    assert_eq!(begin(&|manifest| manifest.files.push(manifest.files[0].clone())), invalid);
    assert_eq!(begin(&|manifest| manifest.files.clear()), invalid);
    assert_eq!(begin(&|manifest| manifest.files[0].bytes = u64::MAX), std::io::ErrorKind::StorageFull);

    let mut receiver = SnapshotReceiver::begin(reader.state_dir(), good.clone()).unwrap();
    assert!(receiver.write(0, 1, b"x").is_err(), "a hole");
    assert!(receiver.write(good.files.len(), 0, b"x").is_err(), "no such file");
    let too_long = vec![0; good.files[0].bytes as usize + 1];
    assert!(receiver.write(0, 0, &too_long).is_err(), "more than announced");
    assert_eq!(receiver.have(), vec![0; good.files.len()]);
    assert!(receiver.finish().is_err(), "nothing was sent");
}

#[test]
fn a_snapshot_for_another_position_is_not_installed() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut leader, _) = open(one.path());
    let (mut follower, reader) = open(two.path());
    runtime().block_on(async {
        workload(&mut leader, 0, 50).await;
        workload(&mut follower, 0, 10).await;
        let before = reader.applied();
        let snapshot = build(&mut leader).await;
        let mut meta = snapshot.manifest().meta.clone();
        meta.last_log_id.as_mut().unwrap().index = 51;
        let wrong: SnapshotMeta = SnapshotMetaRecord::clone(&meta).try_into().unwrap();
        assert!(follower.install_snapshot(&wrong, snapshot.clone()).await.is_err());
        // A manifest that lies in the same way is found out by the state itself.
        let lying = SnapshotManifest { meta, files: snapshot.manifest().files.clone() };
        let mut receiver = SnapshotReceiver::begin(reader.state_dir(), lying).unwrap();
        send(&snapshot, &mut receiver, 1 << 20, usize::MAX);
        let error = install(&mut follower, receiver.finish().unwrap()).await.unwrap_err();
        assert!(error.to_string().contains("its state is at"), "{error}");
        assert_eq!(reader.applied(), before);
        reader.flush().unwrap();
        drop((follower, reader));
        let (mut follower, reader) = open(two.path());
        assert_eq!(reader.applied(), before);
        workload(&mut follower, 11, 60).await;
        let behind = install(&mut follower, snapshot).await.unwrap_err();
        assert!(behind.to_string().contains("the state is at"), "{behind}");
    });
}

#[test]
fn a_superseded_snapshot_lives_until_nobody_sends_it() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let snapshots = reader.state_dir().join("snap");
    runtime().block_on(async {
        workload(&mut state, 0, 50).await;
        let first = build(&mut state).await;
        let again = build(&mut state).await;
        assert_eq!(first.manifest(), again.manifest(), "nothing was applied between them");
        drop(again);
        workload(&mut state, 51, 100).await;
        drop(build(&mut state).await);
        wait_until_so_many_are_left(&snapshots, 2);
        let manifest = first.manifest().clone();
        for (number, file) in manifest.files.iter().enumerate() {
            assert_eq!(first.read_chunk(number, 0, usize::MAX).unwrap().len() as u64, file.bytes);
        }
        drop(first);
        wait_until_so_many_are_left(&snapshots, 1);
        let current = state.get_current_snapshot().await.unwrap().unwrap();
        assert_eq!(current.meta.last_log_id.unwrap().index, 100);
    });
}

#[test]
fn a_snapshot_built_beside_applies_covers_exactly_what_it_says() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut leader, reader) = open(one.path());
    runtime().block_on(async {
        workload(&mut leader, 0, 100).await;
        let mut builder = leader.try_create_snapshot_builder(true).await.unwrap();
        let building = watchdog::spawn(async move { builder.build_snapshot().await.unwrap().snapshot });
        let mut index = 100;
        while !building.is_finished() {
            index += 1;
            workload(&mut leader, index, index).await;
        }
        let snapshot = building.await.unwrap();
        let covered = snapshot.manifest().meta.last_log_id.unwrap().index;
        let (mut follower, follower_reader) = open(two.path());
        let received = receive(&snapshot, &follower_reader);
        install(&mut follower, received).await.unwrap();
        assert_eq!(follower_reader.position().index, covered);
        workload(&mut follower, covered + 1, index.max(covered) + 50).await;
        workload(&mut leader, index + 1, index.max(covered) + 50).await;
        assert_eq!(follower_reader.applied(), reader.applied(), "covered {covered} of {index}");
    });
}

/// Installs two snapshots one after the other beside readers, waiters and a build.
#[test]
fn readers_and_waiters_go_through_installations() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut leader, leader_reader) = open(one.path());
    let (mut follower, reader) = open(two.path());
    runtime().block_on(async {
        workload(&mut leader, 0, 99).await;
        workload(&mut follower, 0, 99).await;
        apply(&mut leader, vec![batch(100, 100_000, &[put("watched", "1")])]).await;
        let snapshot = build(&mut leader).await;
        let stop = Arc::new(AtomicBool::new(false));
        let reads = Arc::new(AtomicU64::new(0));
        let beside = std::thread::spawn({
            let (reader, stop, reads) = (reader.clone(), Arc::clone(&stop), Arc::clone(&reads));
            move || {
                let mut last = 0;
                while !stop.load(Ordering::Relaxed) {
                    let read = reader.get(&key("watched")).unwrap();
                    assert!(read.at.index >= last, "reads went back from {last} to {}", read.at.index);
                    assert_eq!(read.entry.is_some(), read.at.index >= 100);
                    last = read.at.index;
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let waiting = watchdog::spawn({
            let reader = reader.clone();
            async move {
                let name = key("watched");
                reader.wait_key_change(&name, reader.position().revision, LONG * 10).await;
                reader.wait_applied(100).await;
                reader.get(&name).unwrap()
            }
        });
        while reader.stats().unwrap().watched_keys == 0 || reads.load(Ordering::Relaxed) < 100 {
            tokio::task::yield_now().await;
        }
        let received = receive(&snapshot, &reader);
        install(&mut follower, received).await.unwrap();
        let seen = tokio::time::timeout(LONG, waiting).await.expect("the waiter was woken").unwrap();
        assert_eq!(seen.entry.unwrap().value.data, b"1");
        // A build that began on the former state must not hide the newer one.
        let mut stale = follower.try_create_snapshot_builder(true).await.unwrap();
        apply(&mut leader, vec![batch(101, 100_001, &[put("watched", "2")])]).await;
        let snapshot = build(&mut leader).await;
        let received = receive(&snapshot, &reader);
        let (_, built) = tokio::join!(install(&mut follower, received), stale.build_snapshot());
        built.unwrap();
        let current = follower.get_current_snapshot().await.unwrap().unwrap();
        assert_eq!(current.meta.last_log_id.unwrap().index, 101);
        stop.store(true, Ordering::Relaxed);
        beside.join().unwrap();
        assert_eq!(reader.applied(), leader_reader.applied());
        assert_eq!(contents(&reader), contents(&leader_reader));
    });
    wait_until_replaced_are_closed(&reader);
}

#[test]
fn nodes_build_snapshots_in_turns_but_none_waits_for_ever() {
    let turns: Vec<Vec<u64>> = (1..=3)
        .map(|node_id| {
            let dir = tempfile::tempdir().unwrap();
            let options = StateOptions { snapshot_entries_min: 40, node_id, ..options() };
            let (mut state, _reader) = StateMachine::open(dir.path(), options).unwrap();
            let runtime = runtime();
            let mut built = Vec::new();
            for index in 0..200 {
                runtime.block_on(apply(&mut state, vec![blank(index)]));
                if index % 10 == 9
                    && let Some(mut builder) = runtime.block_on(state.try_create_snapshot_builder(false))
                {
                    runtime.block_on(builder.build_snapshot()).unwrap();
                    built.push(index);
                }
            }
            built
        })
        .collect();
    for built in &turns {
        assert!((4..=6).contains(&built.len()), "{turns:?}");
        assert!(built.iter().all(|index| turns.iter().filter(|other| other.contains(index)).count() == 1), "{turns:?}");
    }
}

#[test]
fn a_damaged_snapshot_is_dropped_at_open_and_the_state_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let applied = runtime().block_on(async {
        workload(&mut state, 0, 50).await;
        drop(build(&mut state).await);
        reader.applied()
    });
    let snapshots = reader.state_dir().join("snap");
    drop((state, reader));
    let name = names_in(&snapshots).pop().unwrap();
    let manifest = snapshots.join(name).join("SNAPSHOT");
    let mut bytes = fs::read(&manifest).unwrap();
    bytes[5] ^= 1;
    fs::write(&manifest, bytes).unwrap();
    let (mut state, reader) = open(dir.path());
    assert_eq!(reader.applied(), applied);
    assert!(runtime().block_on(state.get_current_snapshot()).unwrap().is_none());
    assert!(names_in(&snapshots).is_empty());
}
