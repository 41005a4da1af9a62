//! Opening: everything that is checked before a log is believed.
//!
//! Owns the decision to refuse. Never repairs and never forgets: a log that lost or changed what it once synced is
//! the end of this node's membership, and only a person may decide that.
//!
//! What is noticed: a flipped bit or zeroed block in a WAL, a manifest, or the index of a table file (RocksDB), in
//! the newest entries, vote, purge mark (our checksums), a missing file of any kind, a cut WAL (the mark). A flipped
//! bit in the entries of an older table file is noticed when it is read, and stops the node then.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rocksdb::{DB, Direction, ErrorKind, FlushOptions, IteratorMode, WriteBatch};

use super::mark::{self, MARK_FILE, Mark};
use super::options::{self, META_CF, WRITE_BUFFER_BYTES, WRITE_BUFFERS_MAX};
use super::record::{self, ENTRIES_END, FORMAT_KEY, LOG_FORMAT, PURGED_KEY, Stamp, VOTE_KEY};
use super::tail::{self, Tail};
use super::view::{TAIL_BYTES_MAX, View};
use crate::durable::{self, SealError};
use crate::identity::Identity;
use crate::raft::wire::{LogIdRecord, VoteRecord};
use crate::raft::{LogEntry, LogId};

/// Name of the log's directory in the data directory.
pub const LOG_DIR: &str = "log";

/// Bytes of the newest entries that are verified: more than can have been in memtables when the process died, as
/// only those come from the WAL and only a WAL is ever half-written.
const VERIFIED_BYTES: usize = (WRITE_BUFFERS_MAX + 1) * WRITE_BUFFER_BYTES;

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogOpenError {
    /// A file is missing or not what was written.
    #[error("storage damaged: {path}: {reason}")]
    Damaged {
        /// The file, or the directory where only that is known.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The log is sound but ends too early, or has an older vote.
    #[error(
        "log lost synced data: {mark} says that {dir} {claimed}, but it {found}; this node must rejoin under a new id"
    )]
    LostSyncedData {
        /// The high-water mark.
        mark: PathBuf,
        /// The log.
        dir: PathBuf,
        /// What the log held once.
        claimed: String,
        /// What it holds now.
        found: String,
    },
    /// Written by a build that knows another format.
    #[error("{path}: the log has format {found}, this build knows only {LOG_FORMAT}")]
    UnknownFormat {
        /// The log.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Another process has it open.
    #[error("{path} is in use by another process: {reason}")]
    InUse {
        /// The log.
        path: PathBuf,
        /// What RocksDB said.
        reason: String,
    },
    /// Reading or writing failed; nothing is known to be damaged.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A log that was checked.
pub struct Recovered {
    pub db: DB,
    pub stamp: Stamp,
    pub mark: Mark,
    pub view: View,
}

/// Opens or makes the log of `data_dir`.
pub fn recover(data_dir: &Path, identity: &Identity) -> Result<Recovered, LogOpenError> {
    let dir = data_dir.join(LOG_DIR);
    let mark = read_mark(data_dir, &dir, identity)?;
    let db = options::open(&dir, !mark.created).map_err(|error| refusal_to_open(&dir, error))?;
    let opening = Opening { data_dir, dir: &dir, stamp: Stamp::new(identity), db: &db };
    let mark = opening.check_format(mark)?;
    let view = opening.view()?;
    opening.check_mark(&mark, &view)?;
    opening.settle()?;
    Ok(Recovered { stamp: opening.stamp, db, mark, view })
}

/// The mark decides whether a log may be made: only where there never was one.
fn read_mark(data_dir: &Path, dir: &Path, identity: &Identity) -> Result<Mark, LogOpenError> {
    let path = data_dir.join(MARK_FILE);
    let found = mark::read(data_dir).map_err(|error| match error {
        SealError::Io(source) => LogOpenError::Io { path: path.clone(), source },
        damage => LogOpenError::Damaged { path: path.clone(), reason: damage.to_string() },
    })?;
    let occupied = dir.read_dir().is_ok_and(|mut files| files.next().is_some());
    match found {
        None if occupied => {
            let reason = format!("the high-water mark is missing, but there is a log in {}", dir.display());
            Err(LogOpenError::Damaged { path, reason })
        }
        None => {
            // Before the log: a log without a mark is taken for damage.
            let unborn = Mark::unborn(identity);
            mark::write(data_dir, &unborn).map_err(|source| LogOpenError::Io { path, source })?;
            durable::create_dir(dir).map_err(|source| LogOpenError::Io { path: dir.to_owned(), source })?;
            Ok(unborn)
        }
        Some(mark) if mark.incarnation != identity.incarnation => {
            let reason = "it belongs to another data directory".to_owned();
            Err(LogOpenError::Damaged { path, reason })
        }
        Some(mark) if mark.created && !occupied => {
            let reason = format!("empty or missing, but {} says that it holds a log", path.display());
            Err(LogOpenError::Damaged { path: dir.to_owned(), reason })
        }
        Some(mark) => Ok(mark),
    }
}

struct Opening<'a> {
    data_dir: &'a Path,
    dir: &'a Path,
    stamp: Stamp,
    db: &'a DB,
}

impl Opening<'_> {
    /// Checks the format version; finishes making the log where that was not finished.
    fn check_format(&self, mut mark: Mark) -> Result<Mark, LogOpenError> {
        match self.meta::<u32>(FORMAT_KEY)? {
            Some(LOG_FORMAT) => {}
            Some(found) => return Err(LogOpenError::UnknownFormat { path: self.dir.to_owned(), found }),
            None if mark.created => return Err(self.lost("was made completely", "is empty")),
            None => {
                let mut batch = WriteBatch::new();
                batch.put_cf(super::meta(self.db), FORMAT_KEY, self.stamp.seal(FORMAT_KEY, &LOG_FORMAT));
                self.db.write(batch).map_err(|error| refusal(self.dir, error))?;
                self.settle()?;
            }
        }
        if !mark.created {
            mark.created = true;
            mark::write(self.data_dir, &mark)
                .map_err(|source| LogOpenError::Io { path: self.data_dir.join(MARK_FILE), source })?;
        }
        Ok(mark)
    }

    /// Moves what was replayed from the WAL into table files, synced. RocksDB does so itself; that an entry which is
    /// found at start counts as durable from then on must not hang on that.
    fn settle(&self) -> Result<(), LogOpenError> {
        let families = [self.entries_cf(), super::meta(self.db)];
        let mut wait = FlushOptions::default();
        wait.set_wait(true);
        self.db.flush_cfs_opt(&families, &wait).map_err(|error| refusal(self.dir, error))
    }

    fn entries_cf(&self) -> &rocksdb::ColumnFamily {
        self.db.cf_handle(rocksdb::DEFAULT_COLUMN_FAMILY_NAME).expect("every database has its default column family")
    }

    fn view(&self) -> Result<View, LogOpenError> {
        let vote = self.meta::<VoteRecord>(VOTE_KEY)?.map(Into::into);
        let purged = self.meta::<LogIdRecord>(PURGED_KEY)?;
        let first = purged.map_or(0, |id| id.index + 1);
        let (last, tail) = self.scan_tail(first)?;
        if last.is_some() {
            self.check_front(first)?;
        }
        let last = last.or(purged).map(LogId::from);
        Ok(View::new(purged.map(LogId::from), last, first, vote, tail))
    }

    /// Verifies the newest entries, backwards, down to `first` at most. The newest of them stay in memory.
    fn scan_tail(&self, first: u64) -> Result<(Option<LogIdRecord>, Tail), LogOpenError> {
        let mut last: Option<LogIdRecord> = None;
        let mut newer: Option<LogIdRecord> = None;
        let (mut tail, mut bytes, mut cached) = (Tail::new(first, TAIL_BYTES_MAX), 0, true);
        for row in self.db.iterator(IteratorMode::From(&ENTRIES_END, Direction::Reverse)) {
            let (key, value) = row.map_err(|error| refusal(self.dir, error))?;
            let index = record::entry_index(&key).ok_or_else(|| self.damaged(format!("a strange key {key:02x?}")))?;
            if index < first || bytes > VERIFIED_BYTES {
                break;
            }
            let entry = self.decode(index, value.into_vec())?;
            let id = LogIdRecord::from(&entry.log_id);
            self.check_order(id, newer)?;
            if last.is_none() {
                last = Some(id);
                tail.restart(index + 1);
            }
            newer = Some(id);
            bytes += tail::cost(&entry);
            cached = cached && tail.push_front_within_bound(entry);
        }
        Ok((last, tail))
    }

    fn check_order(&self, id: LogIdRecord, newer: Option<LogIdRecord>) -> Result<(), LogOpenError> {
        let Some(newer) = newer else { return Ok(()) };
        if id.index + 1 != newer.index {
            return Err(self.damaged(format!("between entry {} and entry {} there is a hole", id.index, newer.index)));
        }
        if (id.term, id.node) > (newer.term, newer.node) {
            return Err(self.damaged(format!("the term falls from {id:?} to {newer:?}")));
        }
        Ok(())
    }

    /// The log must begin right after what was purged.
    fn check_front(&self, first: u64) -> Result<(), LogOpenError> {
        let key = record::entry_key(first);
        let mut rows = self.db.iterator(IteratorMode::From(&key, Direction::Forward));
        let front = rows.next().transpose().map_err(|error| refusal(self.dir, error))?;
        match front.and_then(|(key, _)| record::entry_index(&key)) {
            Some(index) if index == first => Ok(()),
            found => Err(self.damaged(format!("the first entry should be {first}, it is {found:?}"))),
        }
    }

    fn check_mark(&self, mark: &Mark, view: &View) -> Result<(), LogOpenError> {
        let vote = view.vote.as_ref().map(VoteRecord::from);
        if mark.vote.map(|vote| (vote.term, vote.node)) > vote.map(|vote| (vote.term, vote.node)) {
            return Err(self.lost(&format!("holds {:?}", mark.vote), &format!("holds {vote:?}")));
        }
        let Some(claimed) = mark.last else { return Ok(()) };
        if claimed.index >= view.next() {
            return Err(self.lost(&format!("reaches to {claimed:?}"), &format!("ends with {:?}", view.last)));
        }
        if claimed.index < view.first {
            return Ok(());
        }
        let found = LogIdRecord::from(&self.entry(claimed.index)?.log_id);
        if found != claimed {
            return Err(self.lost(&format!("holds {claimed:?}"), &format!("holds {found:?} in its place")));
        }
        Ok(())
    }

    fn entry(&self, index: u64) -> Result<LogEntry, LogOpenError> {
        let row = self.db.get(record::entry_key(index)).map_err(|error| refusal(self.dir, error))?;
        self.decode(index, row.ok_or_else(|| self.damaged(format!("entry {index} is missing")))?)
    }

    fn decode(&self, index: u64, row: Vec<u8>) -> Result<LogEntry, LogOpenError> {
        let entry = self.stamp.open_entry(index, Bytes::from(row));
        entry.map_err(|error| self.damaged(format!("entry {index}: {error}")))
    }

    fn meta<T: bincode::Decode<()>>(&self, key: &[u8]) -> Result<Option<T>, LogOpenError> {
        let row = self.db.get_cf(super::meta(self.db), key).map_err(|error| refusal(self.dir, error))?;
        let record = row.map(|row| self.stamp.open(key, &row)).transpose();
        record.map_err(|error| self.damaged(format!("{}: {error}", String::from_utf8_lossy(key))))
    }

    fn damaged(&self, reason: String) -> LogOpenError {
        LogOpenError::Damaged { path: self.dir.to_owned(), reason }
    }

    fn lost(&self, claimed: &str, found: &str) -> LogOpenError {
        LogOpenError::LostSyncedData {
            mark: self.data_dir.join(MARK_FILE),
            dir: self.dir.to_owned(),
            claimed: claimed.to_owned(),
            found: found.to_owned(),
        }
    }
}

/// RocksDB names every file it finds damaged but the WAL, where the nodes' damage is most likely to be.
fn refusal_to_open(dir: &Path, error: rocksdb::Error) -> LogOpenError {
    match refusal(dir, error) {
        LogOpenError::Damaged { reason, .. } if !names_a_file(&reason) => {
            let wals = wals(dir);
            let reason = format!("{reason} in the write-ahead log ({})", wals.join(", "));
            let path = if let [wal] = &wals[..] { dir.join(wal) } else { dir.to_owned() };
            LogOpenError::Damaged { path, reason }
        }
        other => other,
    }
}

fn names_a_file(reason: &str) -> bool {
    ["CURRENT", "MANIFEST", "OPTIONS", ".sst", ".log"].iter().any(|name| reason.contains(name))
}

fn wals(dir: &Path) -> Vec<String> {
    let names = dir.read_dir().into_iter().flatten().flatten().map(|file| file.file_name());
    let mut wals: Vec<_> = names.filter_map(|name| name.into_string().ok()).filter(|n| n.ends_with(".log")).collect();
    wals.sort();
    wals
}

/// Tells damage from a system that is merely in the way: full disk, permissions, another process.
fn refusal(dir: &Path, error: rocksdb::Error) -> LogOpenError {
    let (kind, reason) = (error.kind(), error.into_string());
    let path = dir.to_owned();
    match kind {
        ErrorKind::IOError if reason.contains("lock") => LogOpenError::InUse { path, reason },
        ErrorKind::IOError if !reason.contains("No such file") => {
            LogOpenError::Io { path, source: io::Error::other(reason) }
        }
        _ => LogOpenError::Damaged { path, reason },
    }
}

const _: () = assert!(VERIFIED_BYTES > TAIL_BYTES_MAX && !META_CF.is_empty());
