//! Reads beside the state machine.
//!
//! Owns the handle that everything else in the node reads the state through. Never writes, and never waits for the
//! state machine: see [`super::shared`] for how a read gets its exact position.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use quorate_feed::Feed;
use quorate_machine::codec;
use quorate_machine::keyspace::{entry, family, family_range, history};
use quorate_machine::machine::Sizes;
use quorate_machine::query::{self, Cursor as _, KeyRead, ListQuery, ReadPosition, StateFault, WatchRange};
use quorate_machine::types::{ClusterMillis, Command, Entry, Key, QueueName, Reply, Revision, Waker, WallMillis};

use super::shared::{Shared, position_of};
use super::types::{AppliedState, StateStats};

macro_rules! of_now {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty;)*) => {
        /// Queries of the state as of now.
        impl StateReader {
            $(
                #[doc = concat!("See [`Moment::", stringify!($name), "`](query::Moment::", stringify!($name), ").")]
                pub fn $name(&self, $($argument: $type),*) -> Result<$answer, StateFault> {
                    self.shared.query(|moment| moment.$name($($argument),*))
                }
            )*
        }
    };
}

quorate_machine::each_query!(of_now);
quorate_machine::each_query_of_upkeep!(of_now);

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

    /// Counts the live entries of `[start, end)` at `revision`: by walking over the range, unless its count was asked for lately at
    /// this revision or one near it. `limit`, `bytes_max` etc. do not apply. Where the revision cannot be read, the position is the
    /// current one and the count 0.
    pub fn count(&self, query: &ListQuery) -> Result<(ReadPosition, u64), StateFault> {
        self.shared.with_counts(|moment, counts| Ok(moment.count(query, counts)?))
    }

    /// The feed of changes, as far as it is in memory.
    pub fn feed(&self) -> &Arc<Feed> {
        &self.shared.feed
    }

    /// The version that a key got at a revision, as it was then; `None` where it is compacted, or there never was one.
    pub fn version(&self, key: &Key, revision: Revision) -> Result<Option<Entry>, StateFault> {
        let current = self.shared.read_entry(&entry::row_key(key.as_bytes()), |_, row| {
            let row = row.map(entry::decode).transpose().map_err(|error| damaged(key, error))?;
            let row = row.filter(|row| row.meta.mod_revision == revision);
            Ok(row.map(|row| query::as_it_was(row.to_entry())))
        })?;
        match current {
            Some(entry) => Ok(Some(entry)),
            None => self.shared.query(|moment| moment.version(key, revision)),
        }
    }

    /// Whether an index is being built, or one is to be cleared. Looks at every collection where there is nothing to do, but not again until
    /// one of them is changed.
    pub fn has_index_work(&self) -> Result<bool, StateFault> {
        self.shared.with_building(|moment, building, (none_before, look)| {
            let work = moment.index_work(none_before)?;
            if let Some(none_before) = work.none_before {
                building.seen(look, &none_before);
            }
            Ok(work.is_some)
        })
    }

    /// See [`Moment::dry_run`](query::Moment::dry_run).
    pub fn dry_run(&self, command: &Command, wall: WallMillis) -> Result<Reply, StateFault> {
        self.shared.query(|moment| moment.dry_run(command, wall))
    }

    /// See [`Moment::rehearse`](query::Moment::rehearse).
    pub fn rehearse(
        &self,
        wall: WallMillis,
        next: &mut dyn FnMut(Option<Reply>) -> Option<Command>,
    ) -> Result<(), StateFault> {
        self.shared.query(|moment| moment.rehearse(wall, next))
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
        let ticket = self.shared.feed.join(WatchRange::Key(key.clone()));
        ticket.arm();
        match self.has_changed_since(key, seen) {
            // At the end of the time the caller reads again, as after a change.
            Ok(false) => drop(tokio::time::timeout(wait, ticket.changed()).await),
            Ok(true) => {}
            // The caller's own read will report it.
            Err(fault) => tracing::warn!(%fault, "a key could not be checked for changes"),
        }
    }

    /// Waits until what has this name (see [`quorate_machine::types::Waker`]) changes, for at most `wait`, unless `is_done` says that
    /// there is nothing to wait for: it looks once the wait would notice every change. Then the caller reads again.
    pub async fn wait_woken(
        &self,
        waker: &Key,
        wait: Duration,
        is_done: impl FnOnce() -> Result<bool, StateFault>,
    ) -> Result<(), StateFault> {
        let ticket = self.shared.feed.join(WatchRange::Key(waker.clone()));
        ticket.arm();
        if !is_done()? {
            // At the end of the time the caller reads again, as after a change.
            drop(tokio::time::timeout(wait, ticket.changed()).await);
        }
        Ok(())
    }

    /// The revision at which users, roles or tokens last changed, 0 while there never were any: what commands are stamped with,
    /// see [`quorate_machine::types::Command::access_revision`]. Cheap. Read it before the rules: they are then as of it, or newer, and a command
    /// that was authorised by newer ones than it says is refused once and authorised again.
    pub fn access_revision(&self) -> Revision {
        self.shared.access_revision()
    }

    /// Whether any task waits for a plan; cheap.
    pub fn has_unplanned_tasks(&self) -> bool {
        self.shared.has_unplanned_tasks()
    }

    /// Waits until a task of the queue looks due here, at or after `revision`, by a wall clock that stood at `wall` when it was
    /// `since`. False: it is `until`. Both may be wrong by now, so the caller claims and sees.
    #[expect(clippy::disallowed_methods, reason = "how long somebody waits is no replicated state")]
    pub async fn wait_tasks(
        &self,
        queue: &QueueName,
        revision: Revision,
        (wall, since): (WallMillis, Instant),
        until: Instant,
    ) -> Result<bool, StateFault> {
        // A task that was claimed here a moment ago must not look due.
        let reached = async {
            self.wait_revision(revision).await;
            self.wait_answered().await;
        };
        if tokio::time::timeout_at(until.into(), reached).await.is_err() {
            return Ok(false);
        }
        let waker = Waker::Tasks.of(queue.as_str());
        let mut is_due = false;
        loop {
            let now = Instant::now();
            let mut wait = until.saturating_duration_since(now);
            if wait.is_zero() {
                return Ok(false);
            }
            // The time of the first is known only once the wait would notice an earlier one, so it is looked for twice.
            if let Some(due) = self.queue(queue)?.1.first_due {
                let due_at = since + Duration::from_millis(due.saturating_sub(wall));
                wait = wait.min(due_at.saturating_duration_since(now));
            }
            let until_due = now + wait;
            self.wait_woken(&waker, wait, || {
                let first = self.queue(queue)?.1.first_due;
                let due_at = first.map(|due| since + Duration::from_millis(due.saturating_sub(wall)));
                is_due = due_at.is_some_and(|at| at <= Instant::now());
                Ok(is_due || due_at.is_some_and(|at| at < until_due))
            })
            .await?;
            if is_due {
                return Ok(true);
            }
        }
    }

    /// The first pending deadline, if any: the leader proposes expiry when it is due.
    pub fn first_deadline(&self) -> Result<Option<ClusterMillis>, StateFault> {
        self.shared.with_heads(|moment, heads| Ok(moment.first_deadline(|start| heads.begin(start))?))
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

    /// Faults that were contained here since the start; cheap.
    pub fn contained_faults(&self) -> u64 {
        self.shared.work.contained.load(Ordering::Relaxed)
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
            watched_keys: self.shared.feed.tickets() as u64,
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
