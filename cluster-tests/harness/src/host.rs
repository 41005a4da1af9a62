//! What the machine of a node does to it: its disk is slow, fails, runs full or takes only parts of writes, its wall clock jumps.
//!
//! Owns the library that is preloaded into the node (`faults/host.c`) and the page of numbers that rules it, which both have
//! mapped: nothing has to be started anew. Never touches the disk or the clock of anybody else, or a monotonic clock.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Numbers in the page. The same order as `struct page` in `faults/host.c`.
#[derive(Debug, Clone, Copy)]
enum Field {
    WallShift,
    SyncDelay,
    SyncJitter,
    WriteDelay,
    SyncFailures,
    WriteFailures,
    RoomLimited,
    Room,
    ShortEvery,
    LogSpared,
    Syncs,
    Writes,
    Failed,
    Refused,
    Shortened,
    ClockLooks,
}

/// Bytes of the page; more than its fields.
const PAGE_BYTES: usize = 4096;

/// The disk and the wall clock of one node. All clones are the same.
#[derive(Debug, Clone)]
pub struct Host {
    page: Arc<File>,
    path: PathBuf,
    data: PathBuf,
    library: PathBuf,
}

/// What the library did since the host was made, over all starts of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Syncs of files and directories of the node's data.
    pub syncs: i64,
    /// Writes to its files.
    pub writes: i64,
    /// Of both, those that failed.
    pub failed: i64,
    /// What was refused for want of room.
    pub refused: i64,
    /// Writes that took only a part.
    pub shortened: i64,
    /// Looks at the wall clock.
    pub clock_looks: i64,
}

/// How many calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failures {
    /// The next so many.
    Next(u32),
    /// All from now on.
    All,
}

impl Failures {
    fn number(self) -> i64 {
        match self {
            Self::Next(count) => count.into(),
            Self::All => -1,
        }
    }
}

impl Host {
    /// A host on which nothing is wrong, for a node with this data directory. Its page stands in `dir`; the library is what
    /// [`build_library`] built.
    pub fn new(dir: &Path, data: &Path, library: &Path) -> Self {
        fs::create_dir_all(dir).expect("a directory for the page can be made");
        let path = dir.join("host");
        fs::write(&path, [0; PAGE_BYTES]).expect("the page can be written");
        let page = File::options().read(true).write(true).open(&path).expect("the page is there");
        Self { page: Arc::new(page), path, data: data.to_owned(), library: library.to_owned() }
    }

    /// What a process that runs on this host has in its environment.
    pub fn environment(&self) -> [(String, String); 3] {
        let text = |path: &Path| path.display().to_string();
        [
            ("LD_PRELOAD".into(), text(&self.library)),
            ("HOST_PAGE".into(), text(&self.path)),
            ("HOST_DATA".into(), text(&self.data)),
        ]
    }

    /// The wall clock jumps to so many seconds before or after the right time.
    pub fn shift_wall_clock(&self, seconds: i64) {
        self.set(Field::WallShift, seconds * 1_000_000);
    }

    /// Each sync takes so much longer, and by chance up to `jitter` more; each write so much.
    pub fn slow_disk(&self, sync: Duration, jitter: Duration, write: Duration) {
        self.set(Field::SyncDelay, micros(sync));
        self.set(Field::SyncJitter, micros(jitter));
        self.set(Field::WriteDelay, micros(write));
    }

    /// Syncs fail with an I/O error, and sync nothing.
    pub fn fail_syncs(&self, failures: Failures) {
        self.set(Field::SyncFailures, failures.number());
    }

    /// Writes fail with an I/O error, and write nothing.
    pub fn fail_writes(&self, failures: Failures) {
        self.set(Field::WriteFailures, failures.number());
    }

    /// Writes and syncs of the log do not fail, only those of the state.
    pub fn spare_log(&self) {
        self.set(Field::LogSpared, 1);
    }

    /// From now on the files of the node may grow by so many bytes in all, beside what removing some of them gives back.
    pub fn limit_room(&self, bytes: u64) {
        self.set(Field::Room, i64::try_from(bytes).expect("less than all disks of the world"));
        self.set(Field::RoomLimited, 1);
    }

    /// One in so many writes takes only its first half.
    pub fn shorten_writes(&self, one_in: u32) {
        self.set(Field::ShortEvery, one_in.into());
    }

    /// Nothing is wrong any more with disk and clock.
    pub fn heal(&self) {
        self.heal_disk();
        self.set(Field::WallShift, 0);
    }

    /// Nothing is wrong any more with the disk.
    pub fn heal_disk(&self) {
        use Field::{
            LogSpared, RoomLimited, ShortEvery, SyncDelay, SyncFailures, SyncJitter, WriteDelay, WriteFailures,
        };
        let disk = [SyncDelay, SyncJitter, WriteDelay, SyncFailures, WriteFailures, LogSpared, RoomLimited, ShortEvery];
        disk.into_iter().for_each(|field| self.set(field, 0));
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        Counts {
            syncs: self.get(Field::Syncs),
            writes: self.get(Field::Writes),
            failed: self.get(Field::Failed),
            refused: self.get(Field::Refused),
            shortened: self.get(Field::Shortened),
            clock_looks: self.get(Field::ClockLooks),
        }
    }

    fn set(&self, field: Field, value: i64) {
        let at = field as u64 * size_of::<i64>() as u64;
        self.page.write_all_at(&value.to_ne_bytes(), at).expect("the page can be written");
    }

    fn get(&self, field: Field) -> i64 {
        let mut bytes = [0; size_of::<i64>()];
        let at = field as u64 * bytes.len() as u64;
        self.page.read_exact_at(&mut bytes, at).expect("the page can be read");
        i64::from_ne_bytes(bytes)
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).expect("a delay is short")
}

/// Builds the library in a directory. Gives where it stands.
pub fn build_library(dir: &Path) -> PathBuf {
    build(dir).unwrap_or_else(|error| panic!("the library of disk and clock faults: {error}"))
}

fn build(dir: &Path) -> io::Result<PathBuf> {
    let (source, library) = (dir.join("host.c"), dir.join("host.so"));
    fs::write(&source, include_str!("../faults/host.c"))?;
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).output();
    let built = built.map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("no C compiler runs as `cc` ({error}); install gcc, as scripts/setup does"),
        )
    })?;
    if !built.status.success() {
        return Err(io::Error::other(format!("cc: {}", String::from_utf8_lossy(&built.stderr))));
    }
    Ok(library)
}
