//! The damage matrix: files of a stopped log are cut, flipped, zeroed, deleted, swapped. The log must then either
//! refuse to open, naming what is wrong, or hold everything that was ever acknowledged.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::log_common::*;
use openraft::storage::{RaftLogReader, RaftLogStorage};
use quorate_store::high_water_mark;

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

type Damage = fn(&Path);

const MATRIX: &[(&str, Damage, Then)] = &[
    ("one bit in the oldest segment's header", |dir| flip_at(&segments(dir)[0], 40), Refuse),
    ("one bit in the newest segment's header", |dir| flip_at(&newest(dir), 9), Refuse),
    ("one bit in the spare segment's header", |dir| flip_at(&spare(dir), 17), Refuse),
    ("one bit in the first group's header", |dir| flip_at(&segments(dir)[1], BLOCK + 50), Refuse),
    ("one bit in the first group's entries", |dir| flip_at(&segments(dir)[1], BLOCK + 5_000), Refuse),
    ("one bit in the last group's header", |dir| flip_at(&newest(dir), last_group(dir) + 20), Refuse),
    ("one bit in the last group's entries", |dir| flip_at(&newest(dir), last_group(dir) + 9_000), Refuse),
    ("a zeroed block in a full segment", |dir| zero(&segments(dir)[2], 9 * BLOCK, BLOCK), Refuse),
    (
        "the last group of a full segment",
        |dir| zero(&segments(dir)[2], *groups(&segments(dir)[2]).last().unwrap(), BLOCK),
        Refuse,
    ),
    ("a zeroed block in the last group", |dir| zero(&newest(dir), last_group(dir) + BLOCK, BLOCK), Refuse),
    ("all of the last group", |dir| zero(&newest(dir), last_group(dir), 4 * BLOCK), Refuse),
    ("all groups of the newest segment", |dir| zero(&newest(dir), BLOCK, last_group(dir)), Refuse),
    ("all groups of a full segment", |dir| zero(&segments(dir)[1], BLOCK, 30 * BLOCK), Refuse),
    ("the newest segment's last byte", |dir| cut(&newest(dir), |len| len - 1), Refuse),
    ("the newest segment's second half", |dir| cut(&newest(dir), |len| len / 2), Refuse),
    ("all of the newest segment's content", |dir| cut(&newest(dir), |_| 0), Refuse),
    ("the oldest segment's second half", |dir| cut(&segments(dir)[0], |len| len / 2), Refuse),
    ("the oldest segment", |dir| remove(&segments(dir)[0]), Refuse),
    ("the second segment", |dir| remove(&segments(dir)[1]), Refuse),
    ("the newest segment", |dir| remove(&newest(dir)), Refuse),
    ("the newest segment and the spare", |dir| [newest(dir), spare(dir)].iter().for_each(|file| remove(file)), Refuse),
    ("two segments in each other's place", |dir| swap(&segments(dir)[1], &segments(dir)[2]), Refuse),
    ("the newest segment in the place of the spare", |dir| swap(&newest(dir), &spare(dir)), Refuse),
    ("a segment of another node", foreign_segment, Refuse),
    ("the mark", |dir| remove(&dir.join("log.mark")), Refuse),
    ("half of the mark", |dir| cut(&dir.join("log.mark"), |len| len / 2), Refuse),
    ("one slot of the mark", |dir| zero(&dir.join("log.mark"), 0, BLOCK), RefuseOrIntact),
    ("both slots of the mark", |dir| [3, BLOCK + 99].iter().for_each(|at| flip_at(&dir.join("log.mark"), *at)), Refuse),
    ("the log directory", |dir| fs::remove_dir_all(dir.join("log")).unwrap(), Refuse),
    ("everything in the log directory", empty_the_log, Refuse),
    ("LOCK", |dir| remove(&dir.join("log/LOCK")), RefuseOrIntact),
    ("the spare segment", |dir| remove(&spare(dir)), RefuseOrIntact),
    ("one bit in the spare segment", |dir| flip_at(&spare(dir), 3 * BLOCK + 7), RefuseOrIntact),
];

const BLOCK: u64 = 4096;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_damage_goes_unnoticed() {
    let (_root, image) = image().await;
    for (what, damage, then) in MATRIX {
        attempt(what, &image, *damage, *then).await;
    }
}

/// Bit flips all over every file: the answer may differ from place to place, silence may not.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_flipped_bit_goes_unnoticed_wherever_it_is() {
    const PLACES: usize = 12;
    let (_root, image) = image().await;
    for file in files(&image) {
        for place in 0..PLACES {
            let at = (place as f64 + 0.37) / PLACES as f64;
            let what = format!("{} at {at:.2}", file.display());
            attempt(&what, &image, |dir| flip(&dir.join(&file), at), RefuseOrIntact).await;
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

/// A group that was being written when the power went may have reached the disk in any part, and nobody was told of it:
/// it must go, and nothing else may.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_torn_group_behind_the_mark_is_dropped_however_it_is_torn() {
    let root = tempfile::tempdir().unwrap();
    let [live, torn] = ["live", "torn"].map(|name| root.path().join(name));
    let mut store = open(&live);
    append(&mut store, entries(TERM, 0..50, 700)).await;
    let mark = mark_at(&live, 49).await;
    // More than 32 KiB: RocksDB's log could not open after this.
    append(&mut store, entries(TERM, 50..70, 2_180)).await;
    copy(&live, &torn);
    let (segment, start) = (newest(&torn), last_group(&torn));
    let whole = fs::read(&segment).unwrap();
    let blocks = 11;
    let bytes = blocks * BLOCK;
    assert!(whole[(start + bytes) as usize..].iter().all(|byte| *byte == 0), "the group has {blocks} blocks");
    type Tear = fn(&Path, u64, u64);
    let tears: [(&str, Tear); 4] = [
        ("lost", |file, at, _| zero(file, at, BLOCK)),
        ("lost with all behind it", |file, at, end| zero(file, at, end - at)),
        ("half written", |file, at, _| zero(file, at + 512, BLOCK - 512)),
        ("garbled", |file, at, _| flip_at(file, at + 100)),
    ];
    for block in 0..blocks {
        for (how, tear) in tears {
            fs::write(&segment, &whole).unwrap();
            fs::write(torn.join("log.mark"), &mark).unwrap();
            tear(&segment, start + block * BLOCK, start + bytes);
            let what = format!("block {block} of {blocks} was {how}");
            let mut store = open(&torn);
            assert_eq!(content(&mut store).await, ids(TERM, 0..50), "{what}");
            append(&mut store, entries(TERM, 50..60, 100)).await;
            drop(store);
            assert_eq!(content(&mut open(&torn)).await, ids(TERM, 0..60), "{what}");
        }
    }
    // The same group is refused to be missing once the mark knows of it.
    mark_at(&live, 69).await;
    fs::remove_dir_all(&torn).unwrap();
    copy(&live, &torn);
    zero(&segment, start + 3 * BLOCK, BLOCK);
    let error = try_open(&torn).map(drop).unwrap_err().to_string();
    assert!(error.contains("lost synced data") && error.contains(segment.to_str().unwrap()), "{error}");
}

/// A group is not the last one if one behind it can be read, whatever the mark knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_damaged_group_before_a_whole_one_is_refused_behind_the_mark_too() {
    let root = tempfile::tempdir().unwrap();
    let [live, damaged] = ["live", "damaged"].map(|name| root.path().join(name));
    let mut store = open(&live);
    append(&mut store, entries(TERM, 0..5, 100)).await;
    let mark = mark_at(&live, 4).await;
    for index in 5..10 {
        append(&mut store, entries(TERM, index..index + 1, 9_000)).await;
    }
    for group in 1..5 {
        for at in [0, 20, 200, BLOCK + 100] {
            copy(&live, &damaged);
            fs::write(damaged.join("log.mark"), &mark).unwrap();
            let segment = newest(&damaged);
            flip_at(&segment, groups(&segment)[group] + at);
            let error = try_open(&damaged).map(drop).unwrap_err().to_string();
            // Of damage inside an entry, which the walk over the headers does not see, the reading of entries tells.
            assert!(error.contains(segment.to_str().unwrap()), "group {group}, byte {at}: {error}");
            fs::remove_dir_all(&damaged).unwrap();
        }
    }
}

/// The first group of a segment is torn like any other, and there may be a spare behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_torn_group_at_the_start_of_a_segment_is_dropped() {
    let root = tempfile::tempdir().unwrap();
    let [live, torn] = ["live", "torn"].map(|name| root.path().join(name));
    let mut store = open_small(&live, 64 * 1024);
    append(&mut store, entries(TERM, 0..1, 9_000)).await;
    for index in 1..5 {
        append(&mut store, entries(TERM, index..index + 1, 9_000)).await;
    }
    let mark = mark_at(&live, 4).await;
    assert_eq!(groups(&newest(&live)).len(), 4, "one more fits");
    append(&mut store, entries(TERM, 5..6, 9_000)).await;
    let full = newest(&live);
    // So small that no segment after the new one is asked for.
    append(&mut store, entries(TERM, 6..7, 5_000)).await;
    store.close();
    for (how, at, bytes) in [("its header", 0, BLOCK), ("its end", BLOCK, BLOCK), ("all of it", 0, 2 * BLOCK)] {
        copy(&live, &torn);
        fs::write(torn.join("log.mark"), &mark).unwrap();
        let segment = newest(&torn);
        assert_ne!(segment.file_name(), full.file_name(), "the last group went into a new segment");
        zero(&segment, last_group(&torn) + at, bytes);
        let mut store = open_small(&torn, 64 * 1024);
        assert_eq!(content(&mut store).await, ids(TERM, 0..6), "{how} was lost");
        append(&mut store, entries(TERM, 6..30, 3_000)).await;
        append(&mut store, entries(TERM, 30..31, 3_000)).await;
        drop(store);
        assert_eq!(content(&mut open(&torn)).await, ids(TERM, 0..31), "{how} was lost");
        fs::remove_dir_all(&torn).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_segment_that_was_being_made_is_made_anew() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("node");
    let mut store = open_small(&dir, 64 * 1024);
    append(&mut store, entries(TERM, 0..3, 1_000)).await;
    store.close();
    let unfinished = dir.join("log/segment.unfinished");
    fs::write(&unfinished, vec![7; 10_000]).unwrap();
    let mut store = open_small(&dir, 64 * 1024);
    assert!(!unfinished.exists());
    for index in 3..40 {
        append(&mut store, entries(TERM, index..index + 1, 5_000)).await;
    }
    drop(store);
    assert_eq!(content(&mut open(&dir)).await, ids(TERM, 0..40));

    // A log that was never created completely.
    let dir = root.path().join("unborn");
    drop(open_small(&dir, 64 * 1024));
    let mut mark = high_water_mark::read(&dir).unwrap().unwrap();
    mark.created = false;
    drop(high_water_mark::create(&dir, &mark).unwrap());
    remove(&newest(&dir));
    fs::write(dir.join("log/segment.unfinished"), "half").unwrap();
    assert_eq!(content(&mut open(&dir)).await, []);
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

/// A closed data directory with `ENTRIES` acknowledged entries and a vote, over several segments and with a spare. A
/// process that is killed once its mark is exact leaves the same.
async fn image() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("image");
    let mut store = open_small(&dir, 128 * 1024);
    vote(&mut store, TERM).await;
    for start in (0..ENTRIES).step_by(20) {
        append(&mut store, entries(TERM, start..start + 20, 700)).await;
    }
    wait_for_spare(&dir).await;
    store.close();
    assert!(segments(&dir).len() >= 4 && newest(&dir) != spare(&dir), "{:?}", segments(&dir));
    (root, dir)
}

/// Waits until there is a segment that holds nothing yet: it is made beside the writes, in small pieces with rests.
#[expect(clippy::disallowed_methods, reason = "gives up after a while")]
async fn wait_for_spare(dir: &Path) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while newest(dir) == spare(dir) {
        assert!(Instant::now() < deadline, "a log that takes entries gets a spare: {:?}", segments(dir));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the mark is exact, which a resting log must reach by itself. Gives the file's content.
#[expect(clippy::disallowed_methods, reason = "gives up after a while")]
async fn mark_at(dir: &Path, last: u64) -> Vec<u8> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while high_water_mark::read(dir).unwrap().and_then(|mark| mark.last).map(|id| id.index) != Some(last) {
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

/// Copies a directory with all that is in it.
pub fn copy(from: &Path, to: &Path) {
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

/// The newest segment that holds anything.
fn newest(dir: &Path) -> PathBuf {
    let used = segments(dir).into_iter().rfind(|path| !groups(path).is_empty());
    used.unwrap_or_else(|| segments(dir).pop().unwrap())
}

/// The segment that holds nothing yet.
fn spare(dir: &Path) -> PathBuf {
    segments(dir).pop().unwrap()
}

/// Where groups start in a segment.
fn groups(segment: &Path) -> Vec<u64> {
    let bytes = fs::read(segment).unwrap();
    let blocks = (0..).step_by(BLOCK as usize).zip(bytes.chunks(BLOCK as usize));
    blocks.filter(|(_, block)| block.starts_with(b"\x89QRGROUP")).map(|(at, _)| at).collect()
}

fn last_group(dir: &Path) -> u64 {
    *groups(&newest(dir)).last().unwrap()
}

fn swap(one: &Path, other: &Path) {
    let aside = one.with_extension("aside");
    fs::rename(one, &aside).unwrap();
    fs::rename(other, one).unwrap();
    fs::rename(aside, other).unwrap();
}

/// Puts a segment of the same number and length, but from another node, in the place of an own one.
fn foreign_segment(dir: &Path) {
    let other = dir.join("other");
    let identity = quorate_store::identity::Identity { node_id: 2, ..identity() };
    quorate_store::durable::create_dir(&other).unwrap();
    let options = quorate_store::log::LogOptions { segment_bytes: 128 * 1024, ..Default::default() };
    let on_fatal = std::sync::Arc::new(|fault: &str| panic!("{fault}"));
    drop(quorate_store::log::LogStore::open_with(&other, &identity, &options, on_fatal).unwrap());
    fs::rename(&segments(&other)[0], &segments(dir)[0]).unwrap();
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

fn flip_at(file: &Path, at: u64) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at as usize] ^= 0x08;
    fs::write(file, bytes).unwrap();
}

fn zero(file: &Path, at: u64, length: u64) {
    let mut bytes = fs::read(file).unwrap();
    let end = ((at + length) as usize).min(bytes.len());
    bytes[at as usize..end].fill(0);
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
