//! Queries of a state.
//!
//! Owns every answer that is computed from rows, over a [`Snapshot`] of any store: one in RocksDB, or one in memory. Never writes, never
//! waits, and knows no clock: the question brings its moment.

mod cursor;
mod fault;
mod table;
mod types;

mod access;
mod audit;
mod changes;
mod collections;
mod coordination;
mod faults;
mod find;
mod finder;
mod indexed;
mod listing;
mod members;
mod quotas;
mod range;
mod requests;
mod retention;
mod tasks;

pub use audit::{AuditFound, AuditPage, AuditPlace, AuditQuery};
pub use changes::{ChangesPage, ChangesQuery, ChangesRead, FeedPosition, FullChange, as_it_was};
pub use collections::{CollectionsPage, IndexWork};
pub use coordination::{BarrierRead, CoordinationCounts, LeaderChange, LockRead, Party, PartyShown, SessionHeld};
pub use cursor::{Cursor, MemoryCursor, Snapshot, take_page};
pub use fault::StateFault;
pub use faults::{FaultsRead, KeptFault, Parked};
pub use finder::{FindBounds, FindMoment, FindPage, FindPin, FindQuery, FindRead, Finder, Found, ValueShown, Wanted};
pub use listing::{Bounds, Counts, Known, Uncounted};
pub use quotas::{QuotaRead, QuotaUse};
pub use range::WatchRange;
pub use table::Queries;
pub use tasks::{QueueView, QueuesPage, TaskCounts, TaskFilter, TasksPage, TasksQuery, Unplanned};
pub use types::{KeyRead, ListPage, ListQuery, ListRead, Observed, Page, PastRead, ReadPosition};

use std::borrow::Cow;

use crate::codec;
use crate::keyspace::fault::FaultCounts;
use crate::keyspace::request::KeptReply;
use crate::keyspace::{entry, quota};
use crate::machine::{self, Fault, Most, Row, Vars, View};
use crate::rules::{CollectionName, SequenceName};
use crate::types::{
    ClusterMillis, CollectionRow, Command, Entry, Key, QuotaState, Reply, RequestId, Revision, WallMillis,
};

/// The state at one position. It stays the same while further entries are applied, and all answers are of this position.
#[derive(Debug)]
pub struct Moment<S> {
    /// Its rows.
    pub snapshot: S,
    /// Its scalars.
    pub vars: Vars,
    /// The position.
    pub at: ReadPosition,
}

impl<S: Snapshot> Moment<S> {
    /// The state after the entry at `index`.
    pub fn new(snapshot: S, vars: Vars, index: u64) -> Self {
        let at = ReadPosition::new(index, &vars);
        Self { snapshot, vars, at }
    }

    /// Adds the moment to what is read.
    fn observe<T>(&self, read: impl FnOnce(&Self) -> Result<T, Fault>) -> Result<Observed<T>, Fault> {
        Ok(Observed { at: self.at, wall: self.vars.wall, found: read(self)? })
    }

    /// A cursor over the rows of `[start, end)`.
    pub fn rows(&self, start: &[u8], end: &[u8]) -> S::Cursor<'_> {
        self.snapshot.rows(start, end)
    }

    fn decoded<T: bincode::Decode<codec::Written>>(&self, row_key: impl AsRef<[u8]>) -> Result<Option<T>, Fault> {
        let row = self.snapshot.get_pinned(row_key)?;
        Ok(row.map(|row| codec::decode(&row)).transpose()?)
    }

    /// Reads one key as of now.
    pub fn entry(&self, key: &Key) -> Result<KeyRead, Fault> {
        let row = self.snapshot.get_pinned(entry::row_key(key.as_bytes()))?;
        let row = row.as_deref().map(entry::decode).transpose()?;
        let entry = row.filter(|row| !row.is_expired_at(self.at.clock)).map(|row| row.to_entry());
        Ok(KeyRead { at: self.at, entry })
    }

    /// Reads one key as it was at `revision`.
    pub fn get_at(&self, key: &Key, revision: Revision) -> Result<PastRead, Fault> {
        if revision < self.at.oldest_revision {
            return Ok(PastRead::Compacted(self.at));
        }
        if revision > self.at.revision {
            return Ok(PastRead::Future(self.at));
        }
        let entry = listing::entry_at(self, key, revision)?;
        Ok(PastRead::Found(KeyRead { at: ReadPosition { revision, ..self.at }, entry }))
    }

    /// The version that a key got at a revision, as it was then; `None` where it is compacted, or there never was one.
    pub fn version(&self, key: &Key, revision: Revision) -> Result<Option<Entry>, Fault> {
        changes::version(self, key, revision)
    }

    /// Lists a range. Takes time in proportion to what it walks over: expired entries that are not removed yet, and in
    /// the past every key of the range that has history.
    pub fn list(&self, query: &ListQuery) -> Result<ListRead, Fault> {
        listing::list(self, query)
    }

    /// Counts the live entries of `[start, end)` at `revision`: by a walk over the range, unless `counts` knows it. `limit`, `bytes_max` etc.
    /// do not apply. If the revision cannot be read, the position is the current one and the count 0.
    pub fn count(&self, query: &ListQuery, counts: &impl Counts) -> Result<(ReadPosition, u64), Fault> {
        listing::count(self, query, counts)
    }

    /// Finds entries that meet criteria. Takes time in proportion to the query's bounds.
    pub fn find(&self, query: &FindQuery) -> Result<FindRead, Fault> {
        find::find(self, query)
    }

    /// Reads the feed of changes. Takes time in proportion to the query's bounds.
    pub fn changes(&self, query: &ChangesQuery) -> Result<ChangesRead, Fault> {
        changes::changes(self, query)
    }

    /// Reads the audit trail of a key. May take long.
    pub fn audit(&self, query: &AuditQuery) -> Result<AuditPage, Fault> {
        audit::audit(self, query)
    }

    /// The collection that all keys with this prefix belong to, if it is declared.
    pub fn collection_over(&self, prefix: &[u8]) -> Result<Option<CollectionRow>, Fault> {
        Ok(indexed::collection_of(self, prefix)?.map(|(_, row)| row))
    }

    /// A collection, if it is declared.
    pub fn collection(&self, name: &CollectionName) -> Result<(ReadPosition, Option<CollectionRow>), Fault> {
        Ok((self.at, collections::collection(self, name)?))
    }

    /// Collections after this name, in order of names: at most `limit`, and as many as have `bytes_max` bytes of rows, the last one beyond
    /// that.
    pub fn collections(
        &self,
        after: Option<&CollectionName>,
        limit: usize,
        bytes_max: usize,
    ) -> Result<CollectionsPage, Fault> {
        collections::collections(self, after, limit, bytes_max)
    }

    /// The last number that a sequence gave; 0 before the first.
    pub fn last_number(&self, name: &SequenceName) -> Result<(ReadPosition, u64), Fault> {
        Ok((self.at, collections::last_number(self, name)?))
    }

    /// Looks for work on indexes. No collection before `none_before` has an index that is being built.
    pub fn index_work(&self, none_before: Option<Vec<u8>>) -> Result<IndexWork, Fault> {
        collections::index_work(self, none_before)
    }

    /// The kept answer of a request id of `owner` (empty: nobody in particular).
    pub fn request(&self, owner: &str, id: &RequestId) -> Result<(ReadPosition, Option<KeptReply>), Fault> {
        Ok((self.at, requests::kept(self, owner, id)?))
    }

    /// The owners of kept answers under this request id: at most `limit` names, in order. Scans the rows of this id alone.
    pub fn request_owners(&self, id: &RequestId, limit: usize) -> Result<Vec<String>, Fault> {
        requests::owners(self, id, limit)
    }

    /// How much faulted and was contained.
    pub fn fault_counts(&self) -> Result<FaultCounts, Fault> {
        faults::counts(self)
    }

    /// How many commands that faulted are kept, and how many pieces of work are set aside. Copies none of them.
    pub fn open_faults(&self) -> Result<(usize, u64), Fault> {
        faults::open(self)
    }

    /// The contained faults that are kept: up to several megabytes.
    pub fn faults(&self) -> Result<FaultsRead, Fault> {
        faults::faults(self)
    }

    /// The first pending end of an entry or of a document's lock, or timer. `begin` gives a row before which there is none from another one
    /// on.
    pub fn first_deadline(&self, begin: impl Fn(&[u8]) -> Cow<'_, [u8]>) -> Result<Option<ClusterMillis>, Fault> {
        retention::first_deadline(self, begin)
    }

    /// The revision up to which history can be compacted under the retention rule: it keeps all that is younger than `keep_ms` of
    /// cluster clock, and the last `keep_revisions`. `None` when there is nothing to do.
    pub fn compactable_to(&self, keep_ms: u64, keep_revisions: u64) -> Result<Option<Revision>, Fault> {
        retention::compactable_to(self, keep_ms, keep_revisions)
    }

    /// Whether something is still to be counted for quotas.
    pub fn has_counting_work(&self) -> Result<bool, Fault> {
        let state = self.decoded::<QuotaState>(quota::STATE_KEY)?;
        Ok(state.is_some_and(|state| state.has_work()))
    }

    /// Evaluates a command where the cluster's wall clock shows `wall`, and throws the writes away. The reply is as of this moment: the
    /// revision that the writes would have made is not there, and will be that of something else.
    pub fn dry_run(&self, command: &Command, wall: WallMillis) -> Result<Reply, Fault> {
        let reply = machine::evaluate(self, &self.vars_at(wall), self.at.index, command)?;
        Ok(Reply { revision: reply.revision.min(self.at.revision), ..reply })
    }

    /// Evaluates commands one after the other, see [`machine::rehearse`], where the cluster's wall clock shows `wall`, and throws the writes
    /// away.
    pub fn rehearse(
        &self,
        wall: WallMillis,
        next: &mut dyn FnMut(Option<Reply>) -> Option<Command>,
    ) -> Result<(), Fault> {
        machine::rehearse(self, &self.vars_at(wall), self.at.index, next)
    }

    /// The scalars with which a batch begins that is stamped with this wall clock. An old one moves nothing.
    fn vars_at(&self, wall: WallMillis) -> Vars {
        Vars { wall: self.vars.wall.max(wall), ..self.vars.clone() }
    }
}

impl<S: Snapshot> View for Moment<S> {
    fn get(&self, row_key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.snapshot.get_pinned(row_key)?.map(|row| row.to_vec()))
    }

    fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault> {
        self.scan_page(start, end, false, Most::rows(limit))
    }

    fn scan_back(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault> {
        self.scan_page(start, end, true, Most::rows(limit))
    }

    fn scan_page(&self, start: &[u8], end: &[u8], reverse: bool, most: Most) -> Result<Vec<Row>, Fault> {
        let mut rows = self.rows(start, end);
        if reverse {
            rows.seek_to_last();
        } else {
            rows.seek_to_first();
        }
        cursor::take_page(rows, reverse, most)
    }
}
