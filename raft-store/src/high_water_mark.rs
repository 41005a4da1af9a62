//! The high-water mark: a small file beside the log that says how far the log once reached.
//!
//! Owns the file `log.mark` in the data directory and the rule that it never claims more than the log holds. A log
//! cannot tell by itself that its last groups were wiped, or that all of it was deleted. The mark can. Never on the path
//! of an append: it trails the log and is written by the housekeeping thread.
//!
//! The file is a [`SlotFile`]: one of its two slots may be torn, and is then one mark behind.
//!
//! Order, on which everything rests: the mark is raised only after the log was synced up to there, and lowered
//! (durably) before a truncation is written. So at any crash the log holds at least what the mark claims.

#![expect(clippy::disallowed_methods, reason = "says how old the mark on disk is; nothing of it is replicated")]

use std::io;
use std::path::Path;
use std::time::Instant;

use bincode::{Decode, Encode};
use parking_lot::Mutex;

use crate::durable::{SealError, SlotFile};
use crate::raft::wire::{LogIdRecord, VoteRecord};

/// Name of the mark in the data directory.
pub const MARK_FILE: &str = "log.mark";

/// What the mark claims.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Mark {
    /// Of the data directory that it belongs to.
    pub incarnation: u128,
    /// Whether the log was made completely. Until then there is nothing to lose.
    pub created: bool,
    /// The log holds an entry with this id, or has purged past it.
    pub last: Option<LogIdRecord>,
    /// The log holds this vote or a later one.
    pub vote: Option<VoteRecord>,
}

impl Mark {
    /// The mark of a log that is about to be made.
    pub fn unborn(incarnation: u128) -> Self {
        Self { incarnation, created: false, last: None, vote: None }
    }
}

/// The mark's file, open.
pub type MarkFile = SlotFile<Mark>;

/// Reads the mark in `data_dir`, if there is one.
pub fn read(data_dir: &Path) -> Result<Option<Mark>, SealError> {
    Ok(open(data_dir)?.map(|(_, mark)| mark))
}

/// Opens the file in `data_dir`, if there is one.
pub fn open(data_dir: &Path) -> Result<Option<(MarkFile, Mark)>, SealError> {
    SlotFile::open(&data_dir.join(MARK_FILE))
}

/// Makes the file.
pub fn create(data_dir: &Path, mark: &Mark) -> io::Result<MarkFile> {
    SlotFile::create(&data_dir.join(MARK_FILE), mark, "mark-before-rename")
}

/// The mark of an open log.
///
/// Invariant: the file never claims more than `wanted` did at some moment since the last [`MarkWriter::lower`].
pub struct MarkWriter {
    /// What the log holds for sure. Taken for a moment only, never across I/O.
    wanted: Mutex<Mark>,
    /// What the file holds. Taken across the write, so that writes keep their order.
    on_disk: Mutex<OnDisk>,
}

struct OnDisk {
    file: MarkFile,
    mark: Mark,
    /// Whether the slot before the last one written says the same.
    twice: bool,
    written_at: Instant,
}

impl MarkWriter {
    /// Takes over the mark that was read or written at open.
    pub fn new(file: MarkFile, mark: Mark) -> Self {
        let on_disk = OnDisk { file, mark: mark.clone(), twice: false, written_at: Instant::now() };
        Self { wanted: Mutex::new(mark), on_disk: Mutex::new(on_disk) }
    }

    /// Takes note that the log is synced up to `last`. Cheap; the file follows later.
    pub fn raise(&self, last: Option<LogIdRecord>) {
        self.wanted.lock().last = last;
    }

    /// Makes sure that the file claims nothing after `keep`, before a truncation that keeps just that.
    pub fn lower(&self, keep: Option<LogIdRecord>) -> io::Result<()> {
        {
            let mut wanted = self.wanted.lock();
            if wanted.last.map(|id| id.index) > keep.map(|id| id.index) {
                wanted.last = keep;
            }
        }
        self.write()?;
        failpoint!("log-after-mark-lowered");
        Ok(())
    }

    /// Takes note of a synced vote, durably: a vote must not be forgotten in any window.
    pub fn vote(&self, vote: VoteRecord) -> io::Result<()> {
        self.wanted.lock().vote = Some(vote);
        self.write()
    }

    /// What the log holds for sure.
    pub fn wanted(&self) -> Mark {
        self.wanted.lock().clone()
    }

    /// Whether the file is behind, and when it was last written.
    pub fn behind(&self) -> (bool, Instant) {
        let on_disk = self.on_disk.lock();
        (on_disk.mark != *self.wanted.lock(), on_disk.written_at)
    }

    /// Brings the file up to date.
    pub fn write(&self) -> io::Result<()> {
        self.write_slot(false)
    }

    /// Brings both slots up to date, for a log that rests: then no damage to one of them loses anything.
    pub fn write_twice(&self) -> io::Result<()> {
        self.write_slot(false)?;
        self.write_slot(true)
    }

    fn write_slot(&self, twice: bool) -> io::Result<()> {
        let mut on_disk = self.on_disk.lock();
        // Read under the lock of the file: whoever lowers afterwards also writes afterwards.
        let wanted = self.wanted();
        let same = on_disk.mark == wanted;
        if same && (on_disk.twice || !twice) {
            return Ok(());
        }
        on_disk.file.write(&wanted, "mark-before-sync")?;
        (on_disk.mark, on_disk.twice, on_disk.written_at) = (wanted, same, Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(term: u64, index: u64) -> Option<LogIdRecord> {
        Some(LogIdRecord { term, node: 1, index })
    }

    fn mark_writer(dir: &Path) -> MarkWriter {
        let mark = Mark { incarnation: 1, created: true, last: None, vote: None };
        MarkWriter::new(create(dir, &mark).unwrap(), mark)
    }

    #[test]
    fn lowering_is_on_disk_at_once_raising_only_when_written() {
        let dir = tempfile::tempdir().unwrap();
        let mark_writer = mark_writer(dir.path());
        mark_writer.raise(id(1, 9));
        assert_eq!(read(dir.path()).unwrap().unwrap().last, None);
        assert!(mark_writer.behind().0);
        mark_writer.write().unwrap();
        assert_eq!(read(dir.path()).unwrap().unwrap().last, id(1, 9));
        mark_writer.lower(id(1, 4)).unwrap();
        assert_eq!(read(dir.path()).unwrap().unwrap().last, id(1, 4));
        assert!(!mark_writer.behind().0);
        mark_writer.lower(id(2, 7)).unwrap();
        assert_eq!(read(dir.path()).unwrap().unwrap().last, id(1, 4), "lowering never raises");
        mark_writer.lower(None).unwrap();
        assert_eq!(read(dir.path()).unwrap().unwrap().last, None);
    }

    #[test]
    fn a_mark_written_twice_survives_the_damage_of_either_slot() {
        let dir = tempfile::tempdir().unwrap();
        let mark_writer = mark_writer(dir.path());
        mark_writer.raise(id(1, 9));
        mark_writer.write_twice().unwrap();
        let path = dir.path().join(MARK_FILE);
        let written = std::fs::read(&path).unwrap();
        for at in [0, 20, 4096, 5000] {
            let mut damaged = written.clone();
            damaged[at] ^= 4;
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(read(dir.path()).unwrap().unwrap().last, id(1, 9), "byte {at}");
        }
    }
}
