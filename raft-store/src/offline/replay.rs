//! Going on from a whole state with the log entries that followed it, up to a point of time or a revision.
//!
//! Owns what is compared on the way: that the rows are those of the state that was taken, and that the entries follow it and one
//! another. The entries are applied by the very code that nodes apply them with. Works in a directory of its own.

use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use openraft::EntryPayload;
use quorate_machine::codec::CodecError;
use quorate_machine::machine::Applied;
use quorate_machine::query::StateFault;
use quorate_machine::types::{Revision, WallMillis};
use quorate_machine::{command_codec, level};
use rocksdb::WriteBatch;

use super::OfflineError;
use crate::backup::{BackupEnd, BackupError, BackupHeader, BackupReader, Content, Taker};
use crate::meta::AppliedRecord;
use crate::raft::wire::{self, LogIdRecord};
use crate::raft::{EncodedBatch, LogEntry};
use crate::state::{self, Committer, Db, Flusher, Home, Shared, StateOptions, StateReader};

/// Bytes read of a state at a time.
const READ_BYTES: usize = 1 << 20;

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Through all entries.
    End,
    /// Through the entry with this index.
    Index(u64),
    /// Through the last of the entries at hand at which the wall clock of the log is not beyond this. The clock may go back, so these
    /// have to be all among which that entry may be: those before them go by [`Until::Index`].
    Wall(WallMillis),
    /// Through all changes up to this revision.
    Revision(Revision),
}

/// Where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// The last entry applied.
    pub log_id: LogIdRecord,
    /// The revision there.
    pub revision: Revision,
    /// Wall clock of the log there.
    pub wall: WallMillis,
    /// Digest of the state there.
    pub digest: u128,
    /// Whether the point that was asked for is reached, so that nothing further may be applied.
    pub is_reached: bool,
}

/// Why it cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The state that it begins with is not whole.
    #[error("the state it begins with: {0}")]
    Base(#[from] BackupError),
    /// An entry is not what was written.
    #[error("an entry cannot be read: {0}")]
    Entry(#[from] CodecError),
    /// Entries do not follow.
    #[error("{0}")]
    Broken(String),
    /// The directory it works in.
    #[error(transparent)]
    Offline(#[from] OfflineError),
}

impl From<StateFault> for ReplayError {
    fn from(fault: StateFault) -> Self {
        Self::Offline(fault.into())
    }
}

/// A state that goes on.
pub struct Replay {
    shared: Arc<Shared>,
    committer: Committer,
    _flusher: Flusher,
    cluster_id: u128,
    is_reached: bool,
}

impl Replay {
    /// Makes the state in `<dir>/state` out of what [`StateReader::take_whole`] wrote. `dir` is there, and empty. `progress` is told the
    /// bytes read so far.
    ///
    /// # Errors
    /// It is not whole, not of this build's form, or the directory cannot be written.
    pub fn begin(dir: &Path, source: impl Read, mut progress: impl FnMut(u64)) -> Result<Self, ReplayError> {
        let source = BufReader::with_capacity(READ_BYTES, source);
        let mut reader = BackupReader::open_of(Content::Whole, source)?;
        let BackupHeader { cluster_id, node_id, log_id, membership, vars, .. } = reader.header().clone();
        level::check(vars.level).map_err(|error| StateFault::because("the state cannot be taken", error))?;
        let live = Home(dir.join("state")).prepare().map_err(OfflineError::from)?;
        let db = Db::open(&live, node_id)?;
        while let Some(rows) = reader.next_block()? {
            let mut batch = WriteBatch::default();
            rows.iter().for_each(|(key, value)| batch.put(key, value));
            db.load(batch)?;
            progress(reader.bytes_read());
        }
        let record = AppliedRecord { log_id, membership, vars };
        let nothing = Applied {
            writes: Vec::new(),
            vars: record.vars.clone(),
            changed: Vec::new(),
            woken: [].into(),
            contained: Vec::new(),
        };
        db.write(&nothing, &record)?;
        db.flush()?;
        drop(db);
        // Opened anew, since what is kept in memory does not follow rows that were loaded; all of them are read and compared.
        let options = StateOptions { verify_bytes_max: u64::MAX, ..StateOptions::new(node_id) };
        let (shared, flusher) = state::open(dir, &options).map_err(OfflineError::from)?;
        let committer = Committer::new(Arc::clone(&shared));
        Ok(Self { shared, committer, _flusher: flusher, cluster_id, is_reached: false })
    }

    /// Where it stands.
    pub fn at(&self) -> Replayed {
        let AppliedRecord { log_id, vars, .. } = self.committer.record();
        let log_id = log_id.unwrap_or(LogIdRecord { term: 0, node: 0, index: 0 });
        let (revision, wall, digest) = (vars.revision, vars.wall, vars.digest());
        Replayed { log_id, revision, wall, digest, is_reached: self.is_reached }
    }

    /// Reads what is in it.
    pub fn reader(&self) -> StateReader {
        StateReader { shared: Arc::clone(&self.shared) }
    }

    /// Applies entries as [`wire::encode_entry`] writes them, up to the point asked for. They follow `before`, and may begin with some
    /// that are in the state already.
    ///
    /// # Errors
    /// They do not follow what is there or one another, cannot be read, or hold no moment up to the wall clock asked for.
    pub fn apply(&mut self, before: Option<LogIdRecord>, entries: &[Bytes], until: Until) -> Result<(), ReplayError> {
        // What follows the point does not follow the state at it.
        if self.is_reached {
            return Ok(());
        }
        let decoded: Vec<LogEntry> = entries.iter().map(wire::decode_entry).collect::<Result<_, _>>()?;
        let new = self.following(before, &decoded)?;
        match until {
            Until::End => self.apply_all(new),
            Until::Index(last) => {
                let count = new.partition_point(|entry| entry.log_id.index <= last);
                self.apply_all(&new[..count])
            }
            Until::Wall(wall) => {
                let count = self.count_until(wall, new)?;
                self.is_reached = count < new.len();
                self.apply_all(&new[..count])
            }
            Until::Revision(revision) => self.apply_to(revision, new),
        }
    }

    /// Those that are not in the state yet. Equal term and index mean equal entries, and equal ones before them.
    fn following<'e>(
        &self,
        before: Option<LogIdRecord>,
        entries: &'e [LogEntry],
    ) -> Result<&'e [LogEntry], ReplayError> {
        let applied = self.committer.record().log_id;
        let mut last = before;
        let mut skip = 0;
        for entry in entries {
            // A replay may begin within.
            if last == applied {
                break;
            }
            let id = LogIdRecord::from(&entry.log_id);
            if applied.is_none_or(|applied| id.index > applied.index) {
                let found = last.map_or("nothing".to_owned(), |id| format!("entry {} of term {}", id.index, id.term));
                let here = applied.map_or("nothing".to_owned(), |id| format!("entry {} of term {}", id.index, id.term));
                return Err(ReplayError::Broken(format!(
                    "entry {} of term {} follows {found}, and the state is at {here}: they are of two histories, or something between is missing",
                    id.index, id.term
                )));
            }
            last = Some(id);
            skip += 1;
        }
        let new = &entries[skip..];
        let mut last = applied;
        for entry in new {
            let id = LogIdRecord::from(&entry.log_id);
            let follows = last.is_none_or(|last| id.index == last.index + 1 && id.term >= last.term);
            if !follows {
                return Err(ReplayError::Broken(format!("entry {id:?} stands behind {last:?}")));
            }
            last = Some(id);
        }
        Ok(new)
    }

    fn apply_all(&mut self, mut entries: &[LogEntry]) -> Result<(), ReplayError> {
        while !entries.is_empty() {
            let done = self.committer.apply(entries)?.len();
            entries = &entries[done..];
        }
        Ok(())
    }

    /// How many of the entries there are up to the last at which the wall clock of the log is not beyond this. One that is beyond it
    /// says nothing of those behind it: the clock may have been walked back.
    fn count_until(&self, wanted: WallMillis, entries: &[LogEntry]) -> Result<usize, ReplayError> {
        let mut wall = self.committer.record().vars.wall;
        let mut found = (wall <= wanted).then_some(0);
        for (count, entry) in (1..).zip(entries) {
            wall = state::wall_after(wall, entry)?;
            if wall <= wanted {
                found = Some(count);
            }
        }
        found.ok_or_else(|| {
            let beyond = format!("the wall clock of the log is beyond {wanted} ms there, and at all entries behind it");
            ReplayError::Broken(beyond)
        })
    }

    /// Applies all that stays at or below a revision: of the entry that goes beyond it, as many of its commands as do.
    fn apply_to(&mut self, wanted: Revision, entries: &[LogEntry]) -> Result<(), ReplayError> {
        for entry in entries {
            if self.committer.record().vars.revision >= wanted {
                self.is_reached = true;
                return Ok(());
            }
            if self.apply_up_to(wanted, entry)? {
                continue;
            }
            self.is_reached = true;
            let EntryPayload::Normal(EncodedBatch(bytes)) = &entry.payload else { return Ok(()) };
            let batch = command_codec::decode_batch(bytes)?;
            // Each command adds to what those before it did, so the first that goes too far ends it. What is due at the beginning of a
            // batch may already do so: then nothing of it is applied.
            for count in (0..batch.commands.len()).rev() {
                let mut shorter = batch.clone();
                shorter.commands.truncate(count);
                let payload = EntryPayload::Normal(EncodedBatch(command_codec::encode_batch(&shorter)));
                if self.apply_up_to(wanted, &LogEntry { log_id: entry.log_id, payload })? {
                    return Ok(());
                }
            }
            return Ok(());
        }
        self.is_reached = self.committer.record().vars.revision >= wanted;
        Ok(())
    }

    /// Applies an entry unless it goes beyond a revision. Whether it did.
    fn apply_up_to(&mut self, wanted: Revision, entry: &LogEntry) -> Result<bool, ReplayError> {
        let (_, decided) = self.committer.decide([entry])?;
        if self.committer.record().vars.revision > wanted {
            drop(decided);
            self.committer.reload()?;
            return Ok(false);
        }
        self.committer.write(decided)?;
        Ok(true)
    }

    /// Writes a backup of where it stands, as the cluster would have given it then.
    ///
    /// # Errors
    /// It cannot be written or read.
    pub fn back_up(&self, node_version: &str, sink: impl std::io::Write) -> Result<BackupEnd, BackupError> {
        let AppliedRecord { log_id, vars, .. } = self.committer.record();
        let taker = Taker {
            cluster_id: self.cluster_id,
            node_id: log_id.map_or(0, |id| id.node),
            node_version: node_version.to_owned(),
            now: vars.wall,
        };
        self.reader().back_up(taker, sink, |_| {}).map(|(_, end)| end)
    }
}
