//! Target `log`: groups and segments of the log.
//!
//! An even first byte: the rest is a group, read as it is and with its checksums put right. An odd one: the rest are changes of the files
//! of a sound log. Whatever was changed, the log is opened with the same entries as before or refused in words.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use openraft::storage::{IOFlushed, RaftLogReader, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use quorate_machine::types::Command;
use quorate_store::identity::Identity;
use quorate_store::log::{LogFacts, LogOptions, LogStore, inspect, pieces};
use quorate_store::raft::wire::VoteRecord;
use quorate_store::raft::{LogEntry, TypeConfig};
use tempfile::TempDir;

use super::{assert_explained, samples};

const SEGMENT_BYTES: u64 = 16 * 1024;
const GROUPS: u64 = 7;
/// Bytes of the log's files that a change can reach beyond.
const REACH: usize = 1 << 16;

struct Base {
    files: Vec<(PathBuf, Vec<u8>)>,
    entries: Vec<LogEntry>,
    facts: LogFacts,
}

fn identity() -> Identity {
    Identity { cluster_id: Some(1), node_id: 1, incarnation: 0xfeed_beef }
}

/// See the head of this file.
pub fn check(data: &[u8]) {
    match data.split_first() {
        None => {}
        Some((kind, bytes)) if kind % 2 == 0 => check_group(bytes),
        Some((_, changes)) => check_files(changes),
    }
}

fn check_group(bytes: &[u8]) {
    let segment = bytes.get(24..32).map_or(1, |number| u64::from_le_bytes(number.try_into().expect("eight bytes")));
    let mut sealed = bytes.to_vec();
    pieces::seal_group(&mut sealed, &identity());
    for bytes in [bytes, &sealed] {
        if let Err(reason) = pieces::read_group(bytes, &identity(), segment) {
            assert_explained(&reason);
        }
    }
}

fn check_files(changes: &[u8]) {
    let base = base();
    let mut files: Vec<Vec<u8>> = base.files.iter().map(|(_, bytes)| bytes.clone()).collect();
    let mut rest = changes;
    while let Some((head, after)) = rest.split_first_chunk::<5>() {
        let [file, kind, low, high, length] = *head;
        let file = &mut files[usize::from(file) % base.files.len()];
        let at = (usize::from(u16::from_le_bytes([low, high])) % REACH).min(file.len());
        let (bytes, after) = after.split_at(after.len().min(usize::from(length)));
        match kind % 4 {
            0 => file.truncate(at),
            1 => file[at..].iter_mut().take(1 + usize::from(length) * 16).for_each(|byte| *byte = 0),
            _ => file[at..].iter_mut().zip(bytes).for_each(|(byte, new)| *byte = *new),
        }
        rest = after;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for ((name, _), bytes) in base.files.iter().zip(&files) {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("below the directory")).expect("a directory");
        fs::write(path, bytes).expect("a file");
    }
    match inspect(dir.path(), &identity(), &mut |_| {}) {
        Err(error) => assert_explained(&error),
        Ok((facts, lock)) => {
            assert_eq!(LogFacts { torn: None, ..facts }, base.facts, "opened as another log");
            drop(lock);
            // Costs some syncs, so now and then.
            if changes.len().is_multiple_of(8) {
                check_opened(dir.path(), base);
            }
        }
    }
}

fn check_opened(dir: &Path, base: &Base) {
    let opened = open(dir);
    let entries = block_on(async move {
        let mut store = opened.expect("what an inspection takes for sound is opened");
        let entries = store.get_log_reader().await.try_get_log_entries(..).await.expect("what was opened can be read");
        store.close();
        entries
    });
    assert!(entries == base.entries, "opened with other entries");
}

fn open(dir: &Path) -> Result<LogStore, quorate_store::log::LogOpenError> {
    let options = LogOptions { segment_bytes: SEGMENT_BYTES, ..LogOptions::default() };
    LogStore::open_with(dir, &identity(), &options, Arc::new(|fault| panic!("the log failed: {fault}")))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work)
}

/// A sound log of several segments, with a vote, made once.
fn base() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| {
        let dir = TempDir::new().expect("a directory");
        // Made before, since it has a runtime of its own.
        let life = samples::life();
        let entries = block_on(write(dir.path(), &life.commands));
        let (facts, _lock) = inspect(dir.path(), &identity(), &mut |_| {}).expect("it was just written");
        let mut files = Vec::new();
        collect(dir.path(), Path::new(""), &mut files);
        files.sort();
        Base { files, entries, facts }
    })
}

async fn write(dir: &Path, commands: &[Command]) -> Vec<LogEntry> {
    let mut store = open(dir).expect("a new log");
    store.save_vote(&VoteRecord { term: 3, node: 1, committed: true }.into()).await.expect("it takes a vote");
    let mut entries = Vec::new();
    for group in 0..GROUPS {
        let of_group: Vec<_> = (0..3)
            .map(|n| {
                let index = group * 3 + n;
                samples::entry(index, &commands[(index as usize) % commands.len()..][..1])
            })
            .collect();
        let (sender, ack) = TypeConfig::oneshot();
        entries.extend(of_group.iter().cloned());
        store.append(of_group, IOFlushed::signal(sender)).await.expect("it takes entries");
        ack.await.expect("it answers").expect("the disk takes entries");
    }
    store.close();
    entries
}

fn collect(root: &Path, below: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(root.join(below)).expect("a directory") {
        let name = below.join(entry.expect("a name").file_name());
        match root.join(&name) {
            dir if dir.is_dir() => collect(root, &name, files),
            file => files.push((name, fs::read(file).expect("a file"))),
        }
    }
}

/// Groups of the sound log, and changes of each of its files.
pub fn samples() -> Vec<Vec<u8>> {
    let base = base();
    let mut all = Vec::new();
    for (_, bytes) in base.files.iter().filter(|(name, _)| name.extension().is_some_and(|ext| ext == "seg")) {
        let groups = bytes.chunks(4096).filter(|block| block.starts_with(b"\x89QRGROUP"));
        all.extend(groups.take(3).map(|block| {
            let end = block.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            [&[0], &block[..end.min(super::replay::FILE_BYTES_MAX - 1)]].concat()
        }));
    }
    all.truncate(9);
    for file in 0..base.files.len().min(8) as u8 {
        all.push(vec![1, file, 2, 0x40, 0x10, 3, 1, 2, 3]);
        all.push(vec![1, file, (file % 2), 0x00, 0x20, 9]);
    }
    all
}
