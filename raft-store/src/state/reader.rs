//! Reads beside the state machine.
//!
//! Owns the handle that everything else in the node reads the state through. Never writes, and never waits for the
//! state machine: see [`super::shared`] for how a read gets its exact position.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::audit::{self, AuditPage, AuditQuery};
use super::changes::{self, ChangesQuery, ChangesRead};
use super::declared::{self, CollectionsPage};
use super::faults::{self, FaultsRead};
use super::feed::Feed;
use super::find;
use super::finder::{FindQuery, FindRead};
use super::indexed;
use super::listing;
use super::range::WatchRange;
use super::requests;
use super::retention;
use super::shared::{Shared, position_of};
use super::types::{AppliedState, KeyRead, ListQuery, ListRead, PastRead, ReadPosition, StateFault, StateStats};
use crate::codec;
use crate::keyspace::fault::FaultCounts;
use crate::keyspace::request::KeptReply;
use crate::keyspace::{entry, family, family_range, history, quota};
use crate::machine::{self, Sizes};
use crate::rules::{CollectionName, SequenceName};
use crate::types::CollectionRow;
use crate::types::{ClusterMillis, Command, Entry, Key, QuotaState, Reply, RequestId, Revision, WallMillis};

/// A cheap, cloneable handle for reads beside the state machine. Sees each applied batch whole or not at all, also
/// across the installation of a snapshot.
///
/// Point reads take microseconds and may be called on a runtime's worker. [`Self::list`], [`Self::count`], [`Self::find`],
/// [`Self::get_at`] on cold data and [`Self::flush`] may take long: call them where blocking is allowed.
#[derive(Clone)]
pub struct StateReader {
    pub(crate) shared: Arc<Shared>,
}

impl StateReader {
    /// Reads one key as of now.
    pub fn get(&self, key: &Key) -> Result<KeyRead, StateFault> {
        self.shared.read_entry(&entry::row_key(key.as_bytes()), |at, row| {
            let row = row.map(entry::decode).transpose().map_err(|error| damaged(key, error))?;
            let entry = row.filter(|row| !row.is_expired_at(at.clock)).map(|row| row.to_entry());
            Ok(KeyRead { at, entry })
        })
    }

    /// Reads one key as it was at `revision`.
    pub fn get_at(&self, key: &Key, revision: Revision) -> Result<PastRead, StateFault> {
        self.shared.with_moment(|moment| {
            if revision < moment.at.oldest_revision {
                return Ok(PastRead::Compacted(moment.at));
            }
            if revision > moment.at.revision {
                return Ok(PastRead::Future(moment.at));
            }
            let entry = listing::entry_at(moment, key, revision)?;
            Ok(PastRead::Found(KeyRead { at: ReadPosition { revision, ..moment.at }, entry }))
        })
    }

    /// Lists a range. Takes time in proportion to what it walks over: expired entries that are not removed yet, and in
    /// the past every key of the range that has history.
    pub fn list(&self, query: &ListQuery) -> Result<ListRead, StateFault> {
        self.shared.with_moment(|moment| listing::list(moment, query))
    }

    /// Counts the live entries of `[start, end)` at `revision`: by walking over the range, unless its count was asked for lately at
    /// this revision or one near it. `limit`, `bytes_max` etc. do not apply. Where the revision cannot be read, the position is the
    /// current one and the count 0.
    pub fn count(&self, query: &ListQuery) -> Result<(ReadPosition, u64), StateFault> {
        self.shared.with_counts(|moment, counts| listing::count(moment, query, counts))
    }

    /// Finds entries by what holds of them. Takes time in proportion to the query's bounds.
    pub fn find(&self, query: &FindQuery) -> Result<FindRead, StateFault> {
        self.shared.with_moment(|moment| find::find(moment, query))
    }

    /// The feed of changes, as far as it is in memory.
    pub fn feed(&self) -> &Arc<Feed> {
        &self.shared.feed
    }

    /// Reads the feed of changes from disk. Takes time in proportion to the query's bounds.
    pub fn changes(&self, query: &ChangesQuery) -> Result<ChangesRead, StateFault> {
        self.shared.with_moment(|moment| changes::changes(moment, query))
    }

    /// The version that a key got at a revision, as it was then; `None` where it is compacted, or there never was one.
    pub fn version(&self, key: &Key, revision: Revision) -> Result<Option<Entry>, StateFault> {
        let current = self.shared.read_entry(&entry::row_key(key.as_bytes()), |_, row| {
            let row = row.map(entry::decode).transpose().map_err(|error| damaged(key, error))?;
            let row = row.filter(|row| row.meta.mod_revision == revision);
            Ok(row.map(|row| changes::as_it_was(row.to_entry())))
        })?;
        match current {
            Some(entry) => Ok(Some(entry)),
            None => self.shared.with_moment(|moment| changes::version(moment, key, revision)),
        }
    }

    /// The collection that all keys with this prefix belong to, if it is declared.
    pub fn collection_over(&self, prefix: &[u8]) -> Result<Option<CollectionRow>, StateFault> {
        self.shared.with_moment(|moment| Ok(indexed::collection_of(moment, prefix)?.map(|(_, row)| row)))
    }

    /// A collection, if it is declared.
    pub fn collection(&self, name: &CollectionName) -> Result<(ReadPosition, Option<CollectionRow>), StateFault> {
        self.shared.with_moment(|moment| Ok((moment.at, declared::collection(moment, name)?)))
    }

    /// Collections after this name, in order of names: at most `limit`, and so many that their rows have `bytes_max` bytes,
    /// the last one beyond that.
    pub fn collections(
        &self,
        after: Option<&CollectionName>,
        limit: usize,
        bytes_max: usize,
    ) -> Result<CollectionsPage, StateFault> {
        self.shared.with_moment(|moment| declared::collections(moment, after, limit, bytes_max))
    }

    /// The last number that a sequence gave; 0 before the first.
    pub fn last_number(&self, name: &SequenceName) -> Result<(ReadPosition, u64), StateFault> {
        self.shared.with_moment(|moment| Ok((moment.at, declared::last_number(moment, name)?)))
    }

    /// Whether an index is being built, or one is to be cleared. Looks at every collection where there is nothing to do, but not again until
    /// one of them is changed.
    pub fn has_index_work(&self) -> Result<bool, StateFault> {
        self.shared.with_building(declared::has_index_work)
    }

    /// Reads the audit trail of a key. May take long.
    pub fn audit(&self, query: &AuditQuery) -> Result<AuditPage, StateFault> {
        self.shared.with_moment(|moment| audit::audit(moment, query))
    }

    /// The kept answer of a request id of `owner` (empty: nobody in particular), and who asked: the owner, or somebody else of the
    /// time before ids belonged to their principals.
    pub fn request(&self, owner: &str, id: &RequestId) -> Result<(ReadPosition, Option<KeptReply>), StateFault> {
        self.shared.with_moment(|moment| Ok((moment.at, requests::kept(moment, owner, id)?)))
    }

    /// Who has a kept answer under this request id: at most `limit` names, in order. A scan of the rows of this id alone.
    pub fn request_owners(&self, id: &RequestId, limit: usize) -> Result<Vec<String>, StateFault> {
        self.shared.with_moment(|moment| requests::owners(moment, id, limit))
    }

    /// Evaluates a command against the state as of now, where the cluster's wall clock shows `wall`, and throws the writes away.
    pub fn dry_run(&self, command: &Command, wall: WallMillis) -> Result<Reply, StateFault> {
        self.shared
            .with_moment(|moment| Ok(machine::evaluate(moment, &moment.vars_at(wall), moment.at.index, command)?))
    }

    /// Evaluates commands one after the other, see [`machine::rehearse`], where the cluster's wall clock shows `wall`, and throws the writes
    /// away.
    pub fn rehearse(
        &self,
        wall: WallMillis,
        next: &mut dyn FnMut(Option<Reply>) -> Option<Command>,
    ) -> Result<(), StateFault> {
        self.shared.with_moment(|moment| Ok(machine::rehearse(moment, &moment.vars_at(wall), moment.at.index, next)?))
    }

    /// The applied position with membership and digest.
    pub fn applied(&self) -> AppliedState {
        let record = self.shared.applied();
        AppliedState {
            log_id: record.log_id,
            at: position_of(&record),
            wall: record.vars.wall,
            digest: record.vars.digest(),
            level: record.vars.level,
            sizes: record.vars.sizes,
            epoch: record.vars.epoch,
            epoch_revision: record.vars.epoch_revision,
            membership: record.membership,
        }
    }

    /// The wall clock of the log as it goes on since an entry with it was applied here. 0 where it never showed anything.
    pub fn wall_by_now(&self) -> WallMillis {
        match self.shared.wall() {
            (0, _) => 0,
            (wall, since) => wall.saturating_add(u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// Digests of the state by log index, of late: [`AppliedState::digest`] as it was at each of them.
    pub fn digests(&self) -> BTreeMap<u64, u128> {
        self.shared.digests.all()
    }

    /// How often the state was replaced by a snapshot since the node started.
    pub fn replacements(&self) -> u64 {
        self.shared.replacements.load(Ordering::Acquire)
    }

    /// How much there is at the applied position; cheap.
    pub fn sizes(&self) -> Sizes {
        self.shared.sizes()
    }

    /// Current position; cheaper than [`Self::applied`].
    pub fn position(&self) -> ReadPosition {
        self.shared.position()
    }

    /// The revision at which the present epoch began; 0 in the first.
    pub fn epoch_revision(&self) -> Revision {
        self.shared.epoch_revision()
    }

    /// Waits until `index` is applied here and visible to reads. Returns at once where it is.
    pub async fn wait_applied(&self, index: u64) {
        self.shared.applied_mark.wait(index).await;
    }

    /// Waits until reads see all that was proposed and answered here, by a leader: an answer is given a moment before.
    pub async fn wait_answered(&self) {
        self.wait_applied(self.shared.answered.load(Ordering::Acquire)).await;
    }

    /// Waits until `revision` is reached here.
    pub async fn wait_revision(&self, revision: Revision) {
        self.shared.revision_mark.wait(revision).await;
    }

    /// Waits for a change of `key` after `seen` (a `mod_revision`, or the revision of a read that found nothing), for
    /// at most `wait`; then the caller reads again. Spurious returns are allowed, missed changes are not.
    ///
    /// An entry that expires is a change once the leader's expiry has removed it.
    pub async fn wait_key_change(&self, key: &Key, seen: Revision, wait: Duration) {
        let ticket = self.shared.feed.register.join(WatchRange::Key(key.clone()));
        ticket.arm();
        match self.has_changed_since(key, seen) {
            // At the end of the time the caller reads again, as after a change.
            Ok(false) => drop(tokio::time::timeout(wait, ticket.changed()).await),
            Ok(true) => {}
            // The caller's own read will report it.
            Err(fault) => tracing::warn!(%fault, "a key could not be checked for changes"),
        }
    }

    /// Waits until what has this name (see [`crate::types::Waker`]) changes, for at most `wait`, unless `is_done` says that
    /// there is nothing to wait for: it looks once the wait would notice every change. Then the caller reads again.
    pub async fn wait_woken(
        &self,
        waker: &Key,
        wait: Duration,
        is_done: impl FnOnce() -> Result<bool, StateFault>,
    ) -> Result<(), StateFault> {
        let ticket = self.shared.feed.register.join(WatchRange::Key(waker.clone()));
        ticket.arm();
        if !is_done()? {
            // At the end of the time the caller reads again, as after a change.
            drop(tokio::time::timeout(wait, ticket.changed()).await);
        }
        Ok(())
    }

    /// The first pending deadline, if any: the leader proposes expiry when it is due.
    pub fn first_deadline(&self) -> Result<Option<ClusterMillis>, StateFault> {
        self.shared.with_heads(retention::first_deadline)
    }

    /// Up to which revision history can be compacted under the retention rule: keep what is younger than `keep_ms` of
    /// cluster clock and the last `keep_revisions`, whichever keeps more. `None` when there is nothing to do.
    pub fn compactable_to(&self, keep_ms: u64, keep_revisions: u64) -> Result<Option<Revision>, StateFault> {
        self.shared.with_moment(|moment| retention::compactable_to(moment, keep_ms, keep_revisions))
    }

    /// The applied index that would survive a crash of the machine; 0 also while nothing would. The log must keep
    /// every entry after it.
    pub fn durable_index(&self) -> u64 {
        self.shared.durable_index()
    }

    /// Sets who is told whenever [`Self::durable_index`] grows; it is told the present one at once, unless nothing is
    /// durable. It is called on whatever thread notices and must be quick: the log's `set_durable_state_index`.
    pub fn on_durable(&self, hook: Arc<dyn Fn(u64) + Send + Sync>) {
        self.shared.set_durable_hook(hook);
    }

    /// Makes all that is applied durable; gives the durable index. For a graceful stop. Blocks.
    pub fn flush(&self) -> Result<u64, StateFault> {
        self.shared.flush()
    }

    /// The directory that [`super::receive::SnapshotReceiver::begin`] takes.
    pub fn state_dir(&self) -> &Path {
        self.shared.state_dir()
    }

    /// Whether something is still to be counted for quotas.
    pub fn has_counting_work(&self) -> Result<bool, StateFault> {
        self.shared.with_moment(|moment| {
            let state = moment.snapshot.get_pinned(quota::STATE_KEY)?;
            let state: Option<QuotaState> = state.map(|row| codec::decode(&row)).transpose()?;
            Ok(state.is_some_and(|state| state.has_work()))
        })
    }

    /// Faults that were contained here since the start; cheap.
    pub fn contained_faults(&self) -> u64 {
        self.shared.work.contained.load(Ordering::Relaxed)
    }

    /// How much faulted and was contained.
    pub fn fault_counts(&self) -> Result<FaultCounts, StateFault> {
        self.shared.with_moment(faults::counts)
    }

    /// How many commands that faulted are kept, and how many pieces of work are set aside. Copies none of them.
    pub fn open_faults(&self) -> Result<(usize, u64), StateFault> {
        self.shared.with_moment(faults::open)
    }

    /// What faulted and was contained, as far as it is kept: up to several megabytes.
    pub fn faults(&self) -> Result<FaultsRead, StateFault> {
        self.shared.with_moment(faults::faults)
    }

    /// Numbers for metrics.
    pub fn stats(&self) -> Result<StateStats, StateFault> {
        let db = self.shared.db_owned();
        let snapshot = self.shared.snapshots.current();
        let work = &self.shared.work;
        Ok(StateStats {
            applied_index: self.position().index,
            durable_index: self.durable_index(),
            rows_estimate: db.number("rocksdb.estimate-num-keys")?,
            memtable_bytes: db.number("rocksdb.cur-size-all-mem-tables")?,
            table_bytes: db.number("rocksdb.live-sst-files-size")?,
            block_cache_bytes: db.cache_bytes(),
            compaction_debt_bytes: db.number("rocksdb.estimate-pending-compaction-bytes")?,
            snapshot_index: snapshot.as_ref().map(|snapshot| snapshot.manifest().index()),
            snapshot_bytes: snapshot.map_or(0, |snapshot| snapshot.manifest().total_bytes()),
            watched_keys: self.shared.feed.register.len() as u64,
            watches: self.shared.feed.watches() as u64,
            is_stalled: db.is_stalled()?,
            apply: work.apply.read(),
            applied_entries: work.applied_entries.load(Ordering::Relaxed),
            snapshots_built: work.snapshots_built.load(Ordering::Relaxed),
            snapshots_installed: self.replacements(),
            contained_faults: work.contained.load(Ordering::Relaxed),
            faults: self.fault_counts()?,
        })
    }

    /// Whether `key` changed after `seen`; also `true` where that is no longer known. The newest version of a key is its
    /// current entry or, once removed, its tombstone.
    fn has_changed_since(&self, key: &Key, seen: Revision) -> Result<bool, StateFault> {
        let (at, newest) = self.shared.read_entry(&entry::row_key(key.as_bytes()), |at, row| {
            let row = row.map(entry::decode).transpose().map_err(|error| damaged(key, error))?;
            Ok((at, row.map(|row| row.meta.mod_revision)))
        })?;
        if let Some(newest) = newest {
            return Ok(newest > seen);
        }
        if at.oldest_revision > seen {
            return Ok(true);
        }
        self.shared.with_moment(|moment| {
            // What is older may be compacted, and leaves traces that a look would walk over.
            let (after, last) =
                (history::row_key(key.as_bytes(), seen), history::row_key(key.as_bytes(), Revision::MAX));
            let mut rows = moment.rows(&after, &family_range(family::HISTORY).1);
            rows.seek_for_prev(last);
            rows.status()?;
            let newest = rows.key().map(history::decode_key).transpose()?;
            Ok(newest.is_some_and(|(_, revision)| revision > seen))
        })
    }
}

fn damaged(key: &Key, error: codec::CodecError) -> StateFault {
    StateFault::because(format!("the entry of key {key} is damaged"), error)
}
