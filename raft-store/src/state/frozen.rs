//! A state that stands still in RocksDB, behind the machine's queries.
//!
//! Owns RocksDB's snapshot and its iterators. Never knows what a row means.

use rocksdb::{DB, DBAccess, DBPinnableSlice, DBRawIteratorWithThreadMode};

use super::reading::{range_options, read_fault};
use crate::machine::Fault;
use crate::meta::AppliedRecord;
use crate::query::{self, Cursor, Snapshot};
use crate::raft::wire::{LogIdRecord, StoredMembershipRecord};

/// What a walk over much reads at once: it is sequential, and a disk does few large reads faster than many small ones.
const WALK_READ_AHEAD_BYTES: usize = 256 << 10;

/// The state at one position, whatever is applied meanwhile.
pub(crate) type Moment<'d> = query::Moment<Frozen<'d>>;

/// The rows at one position, and the part of its applied row that the machine knows nothing of.
pub(crate) struct Frozen<'d> {
    pub(crate) rocks: rocksdb::Snapshot<'d>,
    pub(crate) log_id: Option<LogIdRecord>,
    pub(crate) membership: StoredMembershipRecord,
}

impl<'d> Frozen<'d> {
    /// The moment that an applied row of these rows speaks of.
    pub(crate) fn moment(rocks: rocksdb::Snapshot<'d>, record: AppliedRecord) -> Moment<'d> {
        let AppliedRecord { log_id, membership, vars } = record;
        let index = log_id.map_or(0, |id| id.index);
        Moment::new(Self { rocks, log_id, membership }, vars, index)
    }

    /// A cursor for a long walk that reads each row once; it leaves the block cache to other readers.
    pub(crate) fn rows_once(&self, start: &[u8], end: &[u8]) -> Rows<'_, DB> {
        let mut options = range_options(start, end);
        options.fill_cache(false);
        options.set_readahead_size(WALK_READ_AHEAD_BYTES);
        Rows(self.rocks.raw_iterator_opt(options))
    }
}

/// The applied row of a moment.
pub(crate) fn record_of(moment: &Moment<'_>) -> AppliedRecord {
    let Frozen { log_id, membership, .. } = &moment.snapshot;
    AppliedRecord { log_id: *log_id, membership: membership.clone(), vars: moment.vars.clone() }
}

impl Snapshot for Frozen<'_> {
    type Pinned<'s>
        = DBPinnableSlice<'s>
    where
        Self: 's;
    type Cursor<'s>
        = Rows<'s, DB>
    where
        Self: 's;

    fn get_pinned(&self, row_key: impl AsRef<[u8]>) -> Result<Option<DBPinnableSlice<'_>>, Fault> {
        self.rocks.get_pinned(row_key).map_err(read_fault)
    }

    fn rows(&self, start: &[u8], end: &[u8]) -> Rows<'_, DB> {
        Rows(self.rocks.raw_iterator_opt(range_options(start, end)))
    }
}

/// A cursor of RocksDB.
pub(crate) struct Rows<'m, D: DBAccess>(pub(crate) DBRawIteratorWithThreadMode<'m, D>);

impl<D: DBAccess> Cursor for Rows<'_, D> {
    fn seek_to_first(&mut self) {
        self.0.seek_to_first();
    }

    fn seek_to_last(&mut self) {
        self.0.seek_to_last();
    }

    fn seek(&mut self, row_key: impl AsRef<[u8]>) {
        self.0.seek(row_key);
    }

    fn seek_for_prev(&mut self, row_key: impl AsRef<[u8]>) {
        self.0.seek_for_prev(row_key);
    }

    fn next(&mut self) {
        self.0.next();
    }

    fn prev(&mut self) {
        self.0.prev();
    }

    fn item(&self) -> Option<(&[u8], &[u8])> {
        self.0.item()
    }

    fn status(&self) -> Result<(), Fault> {
        self.0.status().map_err(read_fault)
    }

    fn valid(&self) -> bool {
        self.0.valid()
    }

    fn key(&self) -> Option<&[u8]> {
        self.0.key()
    }

    fn value(&self) -> Option<&[u8]> {
        self.0.value()
    }
}
