//! The end of a database's MANIFEST, in which RocksDB lists the changes of its table files, after a power loss.
//!
//! Owns the judgement of that end, and drops what a crash spoiled of it. Never decodes a change.
//!
//! RocksDB writes a change behind the others, or the few that came together, and syncs the file; only then does it remove what
//! the change made needless. So a power loss spoils the last few changes, which nothing relies on yet. Where only their
//! beginning is left, RocksDB drops it itself. With a hole in them it refuses to open the database, or passes over the hole and
//! takes what stands behind it. So from the first spoiled change on they go before RocksDB looks.
//!
//! Were one of them durable after all, and spoiled by the disk, nothing would be lost in silence: what is left is an
//! earlier state, of which either a table is gone by now, or the log has what came after it, or the start is refused
//! ([`crate::adapters::start`]).

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use crc::{CRC_32_ISCSI, Crc, Table};
use quorate_machine::query::StateFault;

use super::files;

/// A file that names the MANIFEST in use.
const CURRENT: &str = "CURRENT";

/// No record crosses a multiple of this: a change is cut into records there.
const BLOCK_BYTES: usize = 32 << 10;

/// Before the content of each record: checksum (4 bytes), length (2 bytes), kind (1 byte).
const HEADER_BYTES: usize = 7;

/// The checksum covers the header from here on.
const KIND_AT: usize = 6;

/// More whole changes behind a spoiled one were never written with a single sync: one comes from a flush, one from each merge.
const CHANGES_AT_ONCE_MAX: usize = 8;

static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// What a crash left of changes that were being written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TornEnd {
    manifest: PathBuf,
    start: u64,
    end: u64,
}

impl TornEnd {
    /// That of a database which nobody has open; `None` if all changes are whole. Refuses what no crash leaves.
    pub(super) fn of(db: &Path) -> Result<Option<Self>, StateFault> {
        let manifest = manifest_of(db)?;
        let content = fs::read(&manifest).map_err(files::named(&manifest))?;
        let start = whole_bytes(&content);
        if start == content.len() {
            return Ok(None);
        }
        let refuse = |why| Err(StateFault::new(format!("{}: damaged from byte {start} on{why}", manifest.display())));
        if start == 0 {
            return refuse(", which is its first change");
        }
        if changes_in(&content, start) > CHANGES_AT_ONCE_MAX {
            return refuse(", though what follows was written later");
        }
        let (start, end) = (start as u64, content.len() as u64);
        Ok(Some(Self { manifest, start, end }))
    }

    /// Drops it, durably.
    pub(super) fn drop_it(&self) -> Result<(), StateFault> {
        let Self { manifest, start, end } = self;
        let manifest = manifest.display();
        tracing::warn!(%manifest, start, end, "dropped changes of tables that were being written when the machine stopped");
        let cut = || {
            let file = OpenOptions::new().write(true).open(&self.manifest)?;
            file.set_len(*start)?;
            file.sync_all()
        };
        Ok(cut().map_err(files::named(&self.manifest))?)
    }
}

fn manifest_of(db: &Path) -> Result<PathBuf, StateFault> {
    let current = db.join(CURRENT);
    let line = fs::read_to_string(&current).map_err(files::named(&current))?;
    match line.strip_suffix('\n') {
        Some(name) if name.starts_with("MANIFEST-") && !name.contains('/') => Ok(db.join(name)),
        _ => Err(StateFault::new(format!("{}: it holds {line:?}", current.display()))),
    }
}

/// How far the changes are whole. All of them where there is a kind that this build does not know: that is RocksDB's to judge.
fn whole_bytes(content: &[u8]) -> usize {
    let (mut at, mut end, mut is_begun) = (0, 0, false);
    loop {
        let room = BLOCK_BYTES - at % BLOCK_BYTES;
        if room < HEADER_BYTES {
            at += room;
        }
        let Some(record) = Record::at(content, at) else { return end };
        at = record.end;
        match (record.kind, is_begun) {
            (Kind::Full, false) | (Kind::Last, true) => (end, is_begun) = (at, false),
            (Kind::First, false) | (Kind::Middle, true) => is_begun = true,
            (Kind::Other, _) => return content.len(),
            _ => return end,
        }
    }
}

/// Ends of changes from a place on, at which a whole record need not begin.
fn changes_in(content: &[u8], from: usize) -> usize {
    let (mut at, mut found) = (from, 0);
    while at < content.len() {
        let record = Record::at(content, at);
        found += usize::from(record.as_ref().is_some_and(|record| matches!(record.kind, Kind::Full | Kind::Last)));
        at = record.map_or(at + 1, |record| record.end);
    }
    found
}

/// A whole record.
struct Record {
    kind: Kind,
    end: usize,
}

/// Which part of a change a record has.
enum Kind {
    Full,
    First,
    Middle,
    Last,
    Other,
}

impl Record {
    fn at(content: &[u8], at: usize) -> Option<Self> {
        let block_end = (at - at % BLOCK_BYTES + BLOCK_BYTES).min(content.len());
        let (header, rest) = content.get(at..block_end)?.split_first_chunk::<HEADER_BYTES>()?;
        let [c0, c1, c2, c3, l0, l1, kind] = *header;
        let length = usize::from(u16::from_le_bytes([l0, l1]));
        let kind = match kind {
            // Where nothing was written.
            0 => return None,
            1 => Kind::Full,
            2 => Kind::First,
            3 => Kind::Middle,
            4 => Kind::Last,
            _ => Kind::Other,
        };
        if length > rest.len() {
            return None;
        }
        let end = at + HEADER_BYTES + length;
        let found = masked(CRC32C.checksum(&content[at + KIND_AT..end]));
        (found == u32::from_le_bytes([c0, c1, c2, c3])).then_some(Self { kind, end })
    }
}

/// How RocksDB writes a checksum: never as it is, since what it covers may hold checksums itself.
fn masked(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use rocksdb::WriteBatch;

    use super::*;
    use crate::state::db::Db;
    use crate::state::reading::rocks_fault;

    const SECTOR: usize = 512;

    /// A database that was flushed so often, each time with the number of the flush in one row, between keys so long that
    /// a change is longer than a block of a file system.
    fn flushed(dir: &Path, flushes: u8) {
        Db::create(dir).unwrap();
        let db = Db::open(dir, 1).unwrap();
        for nth in 1..=flushes {
            let mut batch = WriteBatch::default();
            batch.put([b'a'; 3_000], []);
            batch.put(b"flushes", [nth]);
            batch.put([b'z'; 3_000], []);
            db.load(batch).unwrap();
            db.flush().unwrap();
        }
    }

    fn flushes_in(dir: &Path) -> Result<u8, StateFault> {
        let db = Db::open(dir, 1)?;
        Ok(db.rocks.get(b"flushes").map_err(rocks_fault)?.map_or(0, |row| row[0]))
    }

    /// Where changes end.
    fn ends(content: &[u8]) -> Vec<usize> {
        let mut ends: Vec<usize> = (1..=content.len()).map(|length| whole_bytes(&content[..length])).collect();
        ends.dedup();
        ends
    }

    #[test]
    fn a_hole_in_the_last_changes_costs_those_and_no_earlier_one() {
        let made = tempfile::tempdir().unwrap();
        let dir = made.path().join("db");
        flushed(&dir, 3);
        let manifest = manifest_of(&dir).unwrap();
        let content = fs::read(&manifest).unwrap();
        let ends = ends(&content);
        // Changes of flushes: where they begin and end.
        let flushes: Vec<_> = ends.windows(2).filter(|change| change[1] - change[0] > 4096).collect();
        assert_eq!(flushes.len(), 3, "{ends:?}");
        let mut refused_by_rocksdb = 0;
        for from in (flushes[1][0]..content.len()).step_by(SECTOR) {
            let mut holed = content.clone();
            holed[from..(from + SECTOR).min(content.len())].fill(0);
            let image = tempfile::tempdir().unwrap();
            let dir = image.path().join("db");
            fs::create_dir(&dir).unwrap();
            for name in files::names_in(&made.path().join("db")).unwrap() {
                fs::copy(made.path().join("db").join(&name), dir.join(&name)).unwrap();
            }
            fs::write(manifest_of(&dir).unwrap(), &holed).unwrap();
            refused_by_rocksdb += u8::from(Db::open_to_look(&dir).is_err());
            let whole = flushes.iter().filter(|change| change[1] <= from).count();
            assert_eq!(usize::from(flushes_in(&dir).unwrap()), whole, "{from} of {ends:?}");
            // The next change goes where the dropped one was.
            assert_eq!(TornEnd::of(&dir).unwrap(), None);
        }
        assert!(refused_by_rocksdb > 0, "there would be nothing to mend");
    }

    #[test]
    fn damage_that_is_no_torn_end_is_refused_and_changes_nothing() {
        let made = tempfile::tempdir().unwrap();
        let dir = made.path().join("db");
        flushed(&dir, CHANGES_AT_ONCE_MAX as u8 + 2);
        let manifest = manifest_of(&dir).unwrap();
        let content = fs::read(&manifest).unwrap();
        let first_flush = ends(&content)[ends(&content).len() - CHANGES_AT_ONCE_MAX - 3];
        for at in [10, first_flush + 10] {
            let mut damaged = content.clone();
            damaged[at] ^= 1;
            fs::write(&manifest, &damaged).unwrap();
            let refused = flushes_in(&dir).unwrap_err().to_string();
            assert!(refused.contains("damaged from byte"), "{refused}");
            assert_eq!(fs::read(&manifest).unwrap(), damaged);
        }
        fs::write(&manifest, &content).unwrap();
        assert_eq!(flushes_in(&dir).unwrap(), CHANGES_AT_ONCE_MAX as u8 + 2);
    }

    #[test]
    fn records_end_at_blocks_and_other_kinds_are_left_to_rocksdb() {
        let record = |kind: u8, content: &[u8]| {
            let covered = [&[kind], content].concat();
            let length = (content.len() as u16).to_le_bytes();
            [&masked(CRC32C.checksum(&covered)).to_le_bytes()[..], &length, &covered].concat()
        };
        // Of the first block three bytes are left, which no header fits into.
        let full = record(1, &vec![7; BLOCK_BYTES - HEADER_BYTES - 3]);
        let two = [&full[..], &[0; 3], &record(2, b"one"), &record(4, b"change")].concat();
        assert_eq!(whole_bytes(&two), two.len());
        assert_eq!(changes_in(&two, 1), 1);
        assert_eq!(whole_bytes(&two[..two.len() - 1]), full.len());
        let without_beginning = [&full[..], &[0; 3], &record(4, b"change")].concat();
        assert_eq!(whole_bytes(&without_beginning), full.len());
        let zeros = [&full[..], &[0; 100]].concat();
        assert_eq!(whole_bytes(&zeros), full.len());
        let newer = [&full[..], &[0; 3], &record(130, b"?"), &[1; 9]].concat();
        assert_eq!(whole_bytes(&newer), newer.len());
    }
}
