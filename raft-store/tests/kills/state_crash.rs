//! What is there after a crash: always a whole prefix of the log, and the rest applies to it as if nothing had
//! happened. The children of these tests are this test binary itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use quorate_machine::{codec, level};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::meta::{APPLIED_KEY, AppliedRecord};
use quorate_store::state::{AppliedState, StateOptions};

use crate::state_support::*;

const ENTRIES: u64 = 3_000;
const CHILD_DIR: &str = "QUORATE_TEST_STATE_DIR";

/// The state after each entry of the workload, on a node that never crashed.
fn undisturbed() -> Vec<AppliedState> {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let runtime = runtime();
    let step = |index| {
        runtime.block_on(apply(&mut state, vec![workload_entry(index)]));
        reader.applied()
    };
    (0..ENTRIES).map(step).collect()
}

/// The child: goes on from what is there until it is killed, tells each index that is applied, flushes now and then.
#[test]
fn child_that_applies_until_it_is_killed() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    let options = StateOptions { durable_poll: Duration::from_millis(1), ..options() };
    let (mut state, reader) = StateMachine::open(Path::new(&dir), options).unwrap();
    let runtime = runtime();
    let mut rng = Rng::seeded("child_that_applies_until_it_is_killed");
    let first = reader.applied().log_id.map_or(0, |id| id.index + 1);
    println!("applied {}", first as i64 - 1);
    let mut index = first;
    while index < ENTRIES {
        let end = (index + 1 + rng.below(8)).min(ENTRIES);
        runtime.block_on(apply(&mut state, (index..end).map(workload_entry).collect()));
        println!("applied {}", end - 1);
        println!("durable {}", reader.durable_index());
        index = end;
        if rng.below(40) == 0 {
            println!("durable {}", reader.flush().unwrap());
        }
    }
    loop {
        std::thread::park();
    }
}

#[test]
fn after_kill_9_the_state_is_a_prefix_of_the_log_and_the_rest_applies_to_it() {
    let expected = undisturbed();
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::seeded("after_kill_9_the_state_is_a_prefix_of_the_log_and_the_rest_applies_to_it");
    let (mut durable, mut lost) = (0, 0);
    for round in 0..8 {
        let stop_at = 1 + rng.below(ENTRIES - 1);
        let told = run_child_until(dir.path(), stop_at);
        durable = durable.max(told.durable);
        let (state, reader) = open(dir.path());
        let found = reader.applied();
        match found.log_id {
            Some(id) => assert_eq!(found, expected[id.index as usize], "round {round}"),
            None => assert_eq!(found.at.revision, 1),
        }
        assert!(found.at.index >= durable, "round {round}: durable {durable}, found {:?}", found.at);
        lost += told.applied.saturating_sub(found.at.index);
        durable = reader.durable_index();
        assert_eq!(durable, found.at.index);
        drop((state, reader));
    }
    assert!(lost > 0, "no crash ever lost anything: the children do not crash");
    let (mut state, reader) = open(dir.path());
    let next = reader.applied().log_id.map_or(0, |id| id.index + 1);
    runtime().block_on(apply(&mut state, (next..ENTRIES).map(workload_entry).collect()));
    assert_eq!(reader.applied(), expected[ENTRIES as usize - 1]);
}

#[derive(Default)]
struct Acknowledged {
    applied: u64,
    durable: u64,
}

/// Runs the child and kills it as soon as it has applied `stop_at` or the end of the workload.
fn run_child_until(dir: &Path, stop_at: u64) -> Acknowledged {
    let mut child = Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "state_crash::child_that_applies_until_it_is_killed", "--nocapture"])
        .env(CHILD_DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = Acknowledged::default();
    let mut start = None;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // The test runner may have written the beginning of the line.
        if let Some((_, index)) = line.split_once("applied ") {
            let index: i64 = index.parse().unwrap();
            let start = *start.get_or_insert(index);
            told.applied = index.max(0) as u64;
            if index >= (stop_at as i64).max(start + 1) || index == ENTRIES as i64 - 1 {
                break;
            }
        } else if let Some((_, index)) = line.split_once("durable ") {
            told.durable = index.parse().unwrap();
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    told
}

fn state_dir(dir: &Path) -> PathBuf {
    dir.join("state")
}

/// A store with some tables in it, closed.
fn make_store(dir: &Path) {
    let (mut state, reader) = open(dir);
    runtime().block_on(apply(&mut state, (0..200).map(workload_entry).collect()));
    reader.flush().unwrap();
}

fn table_of(dir: &Path) -> PathBuf {
    let tables = fs::read_dir(state_dir(dir).join("db-1")).unwrap().map(|entry| entry.unwrap().path());
    tables.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "sst")).max().unwrap()
}

fn refusal(dir: &Path) -> String {
    match StateMachine::open(dir, options()) {
        Err(error) => error.to_string(),
        Ok((_, reader)) => panic!("it opened at {:?}", reader.position()),
    }
}

#[test]
fn a_damaged_state_is_refused_by_name() {
    type Damage = (&'static str, fn(&Path), &'static str);
    let damages: [Damage; 8] = [
        ("a bit in a table", |dir| flip(&table_of(dir), 3), ".sst"),
        ("a zeroed table", |dir| fs::write(table_of(dir), vec![0; 4_096]).unwrap(), ".sst"),
        ("a cut table", |dir| cut(&table_of(dir)), ".sst"),
        ("no table", |dir| fs::remove_file(table_of(dir)).unwrap(), ".sst"),
        ("no CURRENT", |dir| fs::remove_file(state_dir(dir).join("db-1/CURRENT")).unwrap(), "db-1"),
        ("no database", |dir| fs::remove_dir_all(state_dir(dir).join("db-1")).unwrap(), "db-1"),
        ("no pointer", |dir| fs::remove_file(state_dir(dir).join("CURRENT-DB")).unwrap(), "CURRENT-DB"),
        (
            "an unknown pointer",
            |dir| fs::write(state_dir(dir).join("CURRENT-DB"), "quorate-state 2 db-1").unwrap(),
            "2",
        ),
    ];
    for (what, damage, named) in damages {
        let dir = tempfile::tempdir().unwrap();
        make_store(dir.path());
        damage(dir.path());
        let refusal = refusal(dir.path());
        println!("{what}: {refusal}");
        assert!(refusal.contains(named), "{what}: {refusal}");
        assert!(refusal.contains("state storage damaged"), "{what}: {refusal}");
    }
}

/// Flips one bit about `1/part` into the file.
fn flip(path: &Path, part: usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.len() / part;
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

fn cut(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() - 37]).unwrap();
}

#[test]
fn rows_that_do_not_match_the_digest_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    make_store(dir.path());
    let database = rocksdb_of(dir.path());
    database.put(b"\x10smuggled", b"row").unwrap();
    drop(database);
    assert!(refusal(dir.path()).contains("digest"));
}

#[test]
fn a_state_that_a_newer_build_has_gone_on_with_is_refused_and_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    make_store(dir.path());
    let database = rocksdb_of(dir.path());
    let row = database.get(APPLIED_KEY).unwrap().unwrap();
    let mut record: AppliedRecord = codec::decode(&row).unwrap();
    record.vars.level = level::NEXT + 1;
    database.put(APPLIED_KEY, codec::encode(&record)).unwrap();
    drop(database);
    let refusal = refusal(dir.path());
    assert!(refusal.contains("feature level") && refusal.contains("install a newer version"), "{refusal}");
    assert!(!refusal.contains("damaged"), "{refusal}");
    assert_eq!(rocksdb_of(dir.path()).get(APPLIED_KEY).unwrap().unwrap(), codec::encode(&record));
}

fn rocksdb_of(dir: &Path) -> rocksdb::DB {
    rocksdb::DB::open(&rocksdb::Options::default(), state_dir(dir).join("db-1")).unwrap()
}

#[test]
fn leftovers_are_removed_and_a_first_start_that_was_cut_short_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    make_store(dir.path());
    let state = state_dir(dir.path());
    for leftover in ["db-2", "snap/tmp-7", "recv/done-1"] {
        fs::create_dir_all(state.join(leftover)).unwrap();
    }
    drop(open(dir.path()));
    for leftover in ["db-2", "snap/tmp-7", "recv/done-1"] {
        assert!(!state.join(leftover).exists(), "{leftover}");
    }
    // As a crash right before the first database got its name leaves it.
    fs::rename(state.join("db-1"), state.join("new-db")).unwrap();
    let (_state, reader) = open(dir.path());
    assert_eq!(reader.position().index, 199);
}

#[cfg(debug_assertions)]
mod failpoints {
    use super::*;
    use openraft::storage::{RaftSnapshotBuilder, RaftStateMachine};
    use quorate_store::state::receive::SnapshotReceiver;

    const CHILD_POINT: &str = "QUORATE_TEST_FAILPOINT";

    /// The child: dies at the failpoint while it applies, builds, receives and installs.
    #[test]
    fn child_that_dies_at_a_failpoint() {
        let Ok(point) = std::env::var(CHILD_POINT) else { return };
        let base = PathBuf::from(std::env::var(CHILD_DIR).unwrap());
        let scenario = fail::FailScenario::setup();
        let (mut leader, _) = open(&base.join("leader"));
        let (mut follower, reader) = open(&base.join("follower"));
        let runtime = runtime();
        runtime.block_on(apply(&mut leader, (0..300).map(workload_entry).collect()));
        runtime.block_on(apply(&mut follower, (0..100).map(workload_entry).collect()));
        reader.flush().unwrap();
        let mut builder = runtime.block_on(leader.try_create_snapshot_builder(true)).unwrap();
        let snapshot = runtime.block_on(builder.build_snapshot()).unwrap().snapshot;
        fail::cfg_callback(&point, || std::process::abort()).unwrap();
        let mut receiver = SnapshotReceiver::begin(reader.state_dir(), snapshot.manifest().clone()).unwrap();
        for file in 0..snapshot.manifest().files.len() {
            receiver.write(file, 0, &snapshot.read_chunk(file, 0, usize::MAX).unwrap()).unwrap();
        }
        let received = receiver.finish().unwrap();
        let meta = received.manifest().meta.clone().try_into().unwrap();
        runtime.block_on(follower.install_snapshot(&meta, received)).unwrap();
        runtime.block_on(apply(&mut follower, (300..301).map(workload_entry).collect()));
        let mut builder = runtime.block_on(follower.try_create_snapshot_builder(true)).unwrap();
        runtime.block_on(builder.build_snapshot()).unwrap();
        scenario.teardown();
        panic!("the child passed the failpoint {point}");
    }

    #[test]
    fn a_crash_at_any_step_leaves_the_old_or_the_new_state() {
        let expected = undisturbed();
        let points = [
            ("install-before-pointer", 99, None),
            // The snapshot is kept first: without it a log that was purged up to it could not be started from.
            ("state-pointer-before-rename", 99, Some(299)),
            ("install-after-pointer", 299, Some(299)),
            ("state-before-write", 299, Some(299)),
            ("state-after-write", 299, Some(299)),
            ("snapshot-before-keep", 300, Some(299)),
        ];
        for (point, index, snapshot) in points {
            let dir = tempfile::tempdir().unwrap();
            let status = Process::new(std::env::current_exe().unwrap())
                .args(["--exact", "state_crash::failpoints::child_that_dies_at_a_failpoint"])
                .envs([(CHILD_DIR, dir.path().as_os_str()), (CHILD_POINT, point.as_ref())])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            assert!(status.code().is_none(), "{point}: the child was not killed: {status:?}");
            let (mut state, reader) = open(&dir.path().join("follower"));
            assert_eq!(reader.applied(), expected[index as usize], "{point}");
            let current = runtime().block_on(state.get_current_snapshot()).unwrap();
            assert_eq!(current.and_then(|current| current.meta.last_log_id).map(|id| id.index), snapshot, "{point}");
            let databases = fs::read_dir(reader.state_dir()).unwrap().map(|entry| entry.unwrap().file_name());
            let databases = databases.filter(|name| name.to_str().unwrap().starts_with("db-")).count();
            assert_eq!(databases, 1, "{point}: leftovers");
            runtime().block_on(apply(&mut state, (index + 1..ENTRIES).map(workload_entry).collect()));
            assert_eq!(reader.applied(), expected[ENTRIES as usize - 1], "{point}");
        }
    }
}
