//! A state that stands still in RocksDB, behind the machine's queries.
//!
//! Owns RocksDB's snapshot and its iterators. Never knows what a row means.

use quorate_machine::machine::Fault;
use quorate_machine::query::{self, Cursor, Snapshot};
use rocksdb::{DB, DBAccess, DBPinnableSlice, DBRawIteratorWithThreadMode};

use super::reading::{range_options, read_fault};
use crate::meta::AppliedRecord;
use crate::raft::wire::{LogIdRecord, StoredMembershipRecord};

/// Bytes that a long walk reads at once: it is sequential, and a disk does few large reads faster than many small ones.
const WALK_READ_AHEAD_BYTES: usize = 256 << 10;

/// The state at one position. It stays the same while further entries are applied.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quorate_machine::machine::MemoryView;
    use rocksdb::DB;

    use super::*;
    use crate::raft::wire::MembershipRecord;

    /// A move of a cursor.
    #[derive(Debug, Clone)]
    enum Move {
        First,
        Last,
        From(Vec<u8>),
        UpTo(Vec<u8>),
        Next,
        Previous,
    }

    fn row_key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0..3_u8, 0..4)
    }

    fn moves() -> impl Strategy<Value = Move> {
        prop_oneof![
            1 => Just(Move::First),
            1 => Just(Move::Last),
            1 => row_key().prop_map(Move::From),
            1 => row_key().prop_map(Move::UpTo),
            3 => Just(Move::Next),
            3 => Just(Move::Previous),
        ]
    }

    fn go(cursor: &mut impl Cursor, to: &Move) -> Option<(Vec<u8>, Vec<u8>)> {
        match to {
            Move::First => cursor.seek_to_first(),
            Move::Last => cursor.seek_to_last(),
            Move::From(row_key) => cursor.seek(row_key),
            Move::UpTo(row_key) => cursor.seek_for_prev(row_key),
            Move::Next => cursor.next(),
            Move::Previous => cursor.prev(),
        }
        cursor.status().expect("it can be read");
        let item = cursor.item().map(|(row_key, row)| (row_key.to_vec(), row.to_vec()));
        assert_eq!(cursor.valid(), item.is_some());
        assert_eq!(cursor.key().zip(cursor.value()).map(|(row_key, row)| (row_key.to_vec(), row.to_vec())), item);
        item
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_cursor_of_rocksdb_goes_where_one_in_memory_goes(
            rows in prop::collection::btree_map(row_key(), row_key(), 0..30),
            walks in prop::collection::vec((row_key(), row_key(), prop::collection::vec(moves(), 1..20)), 1..10),
        ) {
            let dir = tempfile::tempdir().expect("a directory");
            let rocks = DB::open_default(dir.path()).expect("a database");
            for (row_key, row) in &rows {
                rocks.put(row_key, row).expect("written");
            }
            let membership = MembershipRecord { configs: Vec::new(), nodes: std::collections::BTreeMap::new() };
            let (view, frozen) = (MemoryView(rows), rocks.snapshot());
            let frozen = Frozen { rocks: frozen, log_id: None, membership: StoredMembershipRecord { log_id: None, membership } };
            for (start, end, walk) in &walks {
                let (start, end) = (start.min(end), start.max(end));
                prop_assert_eq!(
                    frozen.get_pinned(start).expect("it can be read").map(|row| row.to_vec()),
                    view.get_pinned(start).expect("it can be read").map(<[u8]>::to_vec)
                );
                let (mut one, mut other) = (frozen.rows(start, end), view.rows(start, end));
                for to in walk {
                    prop_assert_eq!(go(&mut one, to), go(&mut other, to), "{:?} within {:?}..{:?}", to, start, end);
                }
            }
        }
    }
}
