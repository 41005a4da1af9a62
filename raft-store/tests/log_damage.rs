//! The damage matrix: files of a stopped log are cut, flipped, zeroed, deleted, swapped. The log must then either
//! refuse to open, naming what is wrong, or hold everything that was ever acknowledged.

mod log_common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use log_common::*;
use openraft::storage::{RaftLogReader, RaftLogStorage};
use quorate_store::log::mark;

const ENTRIES: u64 = 400;
const TERM: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    /// Must not open.
    Refuse,
    /// May open if nothing is missing.
    RefuseOrIntact,
}
use Then::{Refuse, RefuseOrIntact};

/// Where the acknowledged data is when the log stops.
#[derive(Debug, Clone, Copy)]
enum Image {
    /// In the WAL: the process was killed.
    Killed,
    /// In table files: the log was closed.
    Closed,
}
use Image::{Closed, Killed};

type Damage = fn(&Path);

const MATRIX: &[(Image, &str, Damage, Then)] = &[
    (Killed, "one bit in the WAL", |dir| flip(&wal(dir), 0.5), Refuse),
    (Killed, "one bit early in the WAL", |dir| flip(&wal(dir), 0.01), Refuse),
    (Killed, "a zeroed block in the WAL", |dir| zero(&wal(dir), 0.4), Refuse),
    (Killed, "the WAL's last 37 bytes", |dir| cut(&wal(dir), |len| len - 37), Refuse),
    (Killed, "the WAL's last byte", |dir| cut(&wal(dir), |len| len - 1), Refuse),
    (Killed, "the WAL's second half", |dir| cut(&wal(dir), |len| len / 2), Refuse),
    (Killed, "all of the WAL's content", |dir| cut(&wal(dir), |_| 0), Refuse),
    (Killed, "the WAL", |dir| remove(&wal(dir)), Refuse),
    (Killed, "the mark", |dir| remove(&dir.join("log.mark")), Refuse),
    (Killed, "one bit in the mark", |dir| flip(&dir.join("log.mark"), 0.5), Refuse),
    (Killed, "half of the mark", |dir| cut(&dir.join("log.mark"), |len| len / 2), Refuse),
    (Killed, "the manifest", |dir| remove(&one(dir, "MANIFEST")), Refuse),
    (Killed, "CURRENT", |dir| remove(&dir.join("log/CURRENT")), Refuse),
    (Killed, "the log directory", |dir| fs::remove_dir_all(dir.join("log")).unwrap(), Refuse),
    (Killed, "everything in the log directory", empty_the_log, Refuse),
    (Closed, "one bit in CURRENT", |dir| flip(&dir.join("log/CURRENT"), 0.6), Refuse),
    (Closed, "CURRENT", |dir| remove(&dir.join("log/CURRENT")), Refuse),
    (Closed, "the manifest", |dir| remove(&one(dir, "MANIFEST")), Refuse),
    (Closed, "one bit in the manifest", |dir| flip(&one(dir, "MANIFEST"), 0.5), Refuse),
    (Closed, "the manifest's second half", |dir| cut(&one(dir, "MANIFEST"), |len| len / 2), Refuse),
    (Closed, "the mark", |dir| remove(&dir.join("log.mark")), Refuse),
    (Closed, "one bit in the mark", |dir| flip(&dir.join("log.mark"), 0.9), Refuse),
    (Closed, "all table files", |dir| tables(dir).iter().for_each(|file| remove(file)), Refuse),
    (Closed, "one bit amid all table files", |dir| tables(dir).iter().for_each(|file| flip(file, 0.5)), Refuse),
    (Closed, "all of the empty WAL", |dir| remove(&wal(dir)), RefuseOrIntact),
    (Killed, "LOCK", |dir| remove(&dir.join("log/LOCK")), RefuseOrIntact),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_damage_goes_unnoticed() {
    let (_root, killed, closed) = images().await;
    for (image, what, damage, then) in MATRIX {
        let source = if let Killed = image { &killed } else { &closed };
        attempt(&format!("{image:?}: {what}"), source, *damage, *then).await;
    }
}

/// Bit flips all over every file: the answer may differ from place to place, silence may not.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_flipped_bit_goes_unnoticed_wherever_it_is() {
    const PLACES: usize = 12;
    let (_root, killed, closed) = images().await;
    for source in [&killed, &closed] {
        for file in files(source) {
            for place in 0..PLACES {
                let at = (place as f64 + 0.37) / PLACES as f64;
                let what = format!("{} at {at:.2}", file.display());
                attempt(&what, source, |dir| flip(&dir.join(&file), at), RefuseOrIntact).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_from_an_older_backup_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (dir, old) = (root.path().join("node"), root.path().join("old"));
    let mut store = open(&dir);
    append(&mut store, entries(TERM, 0..10, 100)).await;
    vote(&mut store, TERM).await;
    store.close();
    copy(&dir, &old);

    let mut store = open(&dir);
    append(&mut store, entries(TERM, 10..20, 100)).await;
    store.close();
    fs::remove_dir_all(dir.join("log")).unwrap();
    copy(&old.join("log"), &dir.join("log"));
    let error = try_open(&dir).map(drop).unwrap_err().to_string();
    assert!(error.contains("lost synced data") && error.contains("log.mark"), "{error}");

    // A vote alone must be missed just as well.
    fs::remove_dir_all(&dir).unwrap();
    copy(&old, &dir);
    let mut store = open(&dir);
    vote(&mut store, TERM + 1).await;
    drop(store);
    fs::remove_dir_all(dir.join("log")).unwrap();
    copy(&old.join("log"), &dir.join("log"));
    let error = try_open(&dir).map(drop).unwrap_err().to_string();
    assert!(error.contains("lost synced data") && error.contains("log.mark"), "{error}");
}

/// A record that was being written when the process died is no damage: nobody was told of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_torn_record_behind_the_mark_is_dropped() {
    let root = tempfile::tempdir().unwrap();
    let [live, torn] = ["live", "torn"].map(|name| root.path().join(name));
    let mut store = open(&live);
    append(&mut store, entries(TERM, 0..50, 700)).await;
    let mark = mark_at(&live, 49).await;
    let whole = fs::metadata(wal(&live)).unwrap().len();
    append(&mut store, entries(TERM, 50..51, 3_000)).await;
    let longer = fs::metadata(wal(&live)).unwrap().len();
    for length in (whole..longer).step_by(293) {
        copy(&live, &torn);
        fs::write(torn.join("log.mark"), &mark).unwrap();
        cut(&wal(&torn), |_| length);
        let mut store = open(&torn);
        assert_eq!(content(&mut store).await, ids(TERM, 0..50), "cut to {length} of {longer}");
        append(&mut store, entries(TERM, 50..60, 100)).await;
        drop(store);
        assert_eq!(content(&mut open(&torn)).await, ids(TERM, 0..60), "cut to {length} of {longer}");
        fs::remove_dir_all(&torn).unwrap();
    }
}

/// The mark alone does not see what came after it: within a WAL, damage must be told from a torn end.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_flipped_bit_behind_the_mark_is_refused_too() {
    let root = tempfile::tempdir().unwrap();
    let [live, damaged] = ["live", "damaged"].map(|name| root.path().join(name));
    let mut store = open(&live);
    append(&mut store, entries(TERM, 0..5, 100)).await;
    let mark = mark_at(&live, 4).await;
    for index in 5..50 {
        append(&mut store, entries(TERM, index..index + 1, 1_000)).await;
    }
    copy(&live, &damaged);
    fs::write(damaged.join("log.mark"), mark).unwrap();
    flip(&wal(&damaged), 0.7);
    let error = try_open(&damaged).map(drop).unwrap_err().to_string();
    assert!(error.contains(wal(&damaged).to_str().unwrap()), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_truncation_is_never_taken_for_a_loss() {
    let root = tempfile::tempdir().unwrap();
    let [live, killed] = ["live", "killed"].map(|name| root.path().join(name));
    let mut store = open(&live);
    append(&mut store, entries(TERM, 0..20, 100)).await;
    mark_at(&live, 19).await;
    store.truncate_after(Some(id(TERM, 4))).await.unwrap();
    copy(&live, &killed);
    assert_eq!(content(&mut open(&killed)).await, ids(TERM, 0..5));
}

/// Two copies of a data directory with `ENTRIES` acknowledged entries and a vote: as if killed, and closed.
async fn images() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let [live, killed] = ["live", "killed"].map(|name| root.path().join(name));
    let mut store = open(&live);
    vote(&mut store, TERM).await;
    for start in (0..ENTRIES).step_by(20) {
        append(&mut store, entries(TERM, start..start + 20, 700)).await;
    }
    mark_at(&live, ENTRIES - 1).await;
    copy(&live, &killed);
    store.close();
    (root, killed, live)
}

/// Waits until the mark is exact, which a resting log must reach by itself. Gives the file's content.
#[expect(clippy::disallowed_methods, reason = "gives up after a while")]
async fn mark_at(dir: &Path, last: u64) -> Vec<u8> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while mark::read(dir).unwrap().and_then(|mark| mark.last).map(|id| id.index) != Some(last) {
        assert!(Instant::now() < deadline, "a resting log gets an exact mark");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    fs::read(dir.join("log.mark")).unwrap()
}

async fn attempt(what: &str, source: &Path, damage: impl Fn(&Path), then: Then) {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("node");
    copy(source, &dir);
    damage(&dir);
    match try_open(&dir) {
        Err(error) => {
            let message = error.to_string();
            println!("{what}: {message}");
            assert!(message.contains(&format!("{}/log", dir.display())), "{what}: nothing is named in: {message}");
        }
        Ok(mut store) => {
            assert_eq!(then, RefuseOrIntact, "{what}: opened");
            let found = store.get_log_reader().await.try_get_log_entries(..).await.unwrap();
            let found: Vec<_> = found.iter().map(checked_id).collect();
            assert_eq!((found, vote_term(&mut store).await), (ids(TERM, 0..ENTRIES), Some(TERM)), "{what}: forgotten");
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy(&file.path(), &target)
        } else {
            fs::copy(file.path(), target).unwrap();
        }
    }
}

/// Every file of the data directory that matters, relative to it.
fn files(dir: &Path) -> Vec<PathBuf> {
    let log = fs::read_dir(dir.join("log")).unwrap().map(|file| Path::new("log").join(file.unwrap().file_name()));
    let kept = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name != "LOG" && !name.starts_with("LOG.") && fs::metadata(dir.join(path)).unwrap().len() > 0
    };
    let mut files: Vec<_> = log.chain([PathBuf::from("log.mark")]).filter(kept).collect();
    files.sort();
    files
}

fn one(dir: &Path, prefix: &str) -> PathBuf {
    let named = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(prefix);
    dir.join(files(dir).into_iter().find(named).unwrap())
}

fn tables(dir: &Path) -> Vec<PathBuf> {
    let tables = files(dir).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "sst"));
    let tables: Vec<_> = tables.map(|path| dir.join(path)).collect();
    assert!(!tables.is_empty(), "no table files in {}", dir.display());
    tables
}

fn wal(dir: &Path) -> PathBuf {
    let files = fs::read_dir(dir.join("log")).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "log")).max().unwrap()
}

fn remove(file: &Path) {
    fs::remove_file(file).unwrap();
}

fn flip(file: &Path, at: f64) {
    let mut bytes = fs::read(file).unwrap();
    let at = (bytes.len() as f64 * at) as usize;
    bytes[at] ^= 0x08;
    fs::write(file, bytes).unwrap();
}

fn zero(file: &Path, at: f64) {
    let mut bytes = fs::read(file).unwrap();
    let at = (bytes.len() as f64 * at) as usize;
    let end = (at + 4096).min(bytes.len());
    bytes[at..end].fill(0);
    fs::write(file, bytes).unwrap();
}

fn cut(file: &Path, to: impl Fn(u64) -> u64) {
    let length = fs::metadata(file).unwrap().len();
    fs::OpenOptions::new().write(true).open(file).unwrap().set_len(to(length)).unwrap();
}

fn empty_the_log(dir: &Path) {
    for file in fs::read_dir(dir.join("log")).unwrap() {
        remove(&file.unwrap().path());
    }
}
