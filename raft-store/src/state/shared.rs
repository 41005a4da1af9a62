//! What the state machine, its readers and the background thread share.
//!
//! Owns the publication of each applied group: readers see all of it or nothing. Knows nothing of what a row means.
//!
//! A counter stands around each change of the state: odd while it happens. A reader that finds the same even number
//! before and after its one read (of RocksDB, or of what is kept of it in memory) knows that the published position is
//! exactly that of what it read, without a lock. A reader that does not takes a RocksDB snapshot and reads the position
//! from the applied row in it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use quorate_feed::Feed;
use quorate_machine::machine::{self, Bounds, Fault, Sizes};
use quorate_machine::query::{ReadPosition, Snapshot as _, StateFault};
use quorate_machine::types::{Revision, WallMillis};
use quorate_threads::uptime::Uptime;
use rocksdb::DBPinnableSlice;

use super::counts::Counts;
use super::db::{self, Db};
use super::digests::Digests;
use super::frozen::{Frozen, Moment};
use super::heads::{Building, Heads};
use super::home::Home;
use super::kept::Kept;
use super::reading::rocks_fault;
use super::types::StateOptions;
use super::watermark::Watermark;
use crate::durations::Durations;
use crate::meta::{APPLIED_KEY, AppliedRecord};

/// How often a point read tries without a lock before it takes a RocksDB snapshot.
const READ_TRIES: usize = 4;

/// What the state has done since the start, for the metrics. Relaxed: nothing is decided by it.
#[derive(Debug, Default)]
pub(crate) struct WorkCounters {
    pub(crate) apply: Durations,
    pub(crate) applied_entries: AtomicU64,
    pub(crate) snapshots_built: AtomicU64,
    /// Faults that were contained.
    pub(crate) contained: AtomicU64,
}

type DurableHook = Arc<dyn Fn(u64) + Send + Sync>;

/// The applied row as published last.
struct Published {
    record: AppliedRecord,
    /// When the wall clock in it was published.
    wall_since: Uptime,
}

pub(crate) struct Shared {
    pub(crate) home: Home,
    db: ArcSwap<Db>,
    /// Even while the state stands still.
    sequence: AtomicU64,
    position: PublishedPosition,
    /// [`quorate_machine::machine::Vars::access`] as published last.
    access: AtomicU64,
    applied: Mutex<Published>,
    pub(crate) applied_mark: Watermark,
    pub(crate) revision_mark: Watermark,
    pub(crate) feed: Arc<Feed>,
    /// [`StateOptions::checks_groups`].
    pub(crate) checks_groups: bool,
    /// [`StateOptions::bounds`].
    pub(crate) bounds: Bounds,
    /// Index of the last entry that was answered here, to whoever proposed it here.
    pub(crate) answered: AtomicU64,
    pub(crate) digests: Digests,
    pub(crate) work: WorkCounters,
    /// How often the state was replaced by a snapshot.
    pub(crate) replacements: AtomicU64,
    /// Index after the last durable entry, so that 0 is none.
    durable: AtomicU64,
    /// Held while a new durable index is told, so that the hook hears them in order.
    durable_hook: Mutex<Option<DurableHook>>,
    pub(crate) snapshots: Kept,
}

/// A [`ReadPosition`] that is only meaningful between two equal even sequence numbers.
struct PublishedPosition {
    index: AtomicU64,
    revision: AtomicU64,
    clock: AtomicU64,
    oldest_revision: AtomicU64,
}

impl PublishedPosition {
    fn load(&self) -> ReadPosition {
        ReadPosition {
            index: self.index.load(Ordering::Relaxed),
            revision: self.revision.load(Ordering::Relaxed),
            clock: self.clock.load(Ordering::Relaxed),
            oldest_revision: self.oldest_revision.load(Ordering::Relaxed),
        }
    }

    fn store(&self, at: ReadPosition) {
        self.index.store(at.index, Ordering::Relaxed);
        self.revision.store(at.revision, Ordering::Relaxed);
        self.clock.store(at.clock, Ordering::Relaxed);
        self.oldest_revision.store(at.oldest_revision, Ordering::Relaxed);
    }
}

/// The position an applied row speaks of.
pub(crate) fn position_of(record: &AppliedRecord) -> ReadPosition {
    ReadPosition::new(record.log_id.map_or(0, |id| id.index), &record.vars)
}

/// Index after the last entry applied; 0 where there is none.
fn index_after(record: &AppliedRecord) -> u64 {
    record.log_id.map_or(0, |id| id.index + 1)
}

impl Shared {
    pub(crate) fn new(home: Home, db: Db, snapshots: Kept, options: &StateOptions) -> Result<Self, StateFault> {
        let record = db.applied()?;
        let at = position_of(&record);
        let digests = Digests::default();
        digests.restart(at.index, record.vars.digest());
        let position = PublishedPosition {
            index: AtomicU64::new(at.index),
            revision: AtomicU64::new(at.revision),
            clock: AtomicU64::new(at.clock),
            oldest_revision: AtomicU64::new(at.oldest_revision),
        };
        Ok(Self {
            home,
            db: ArcSwap::from_pointee(db),
            sequence: AtomicU64::new(0),
            position,
            access: AtomicU64::new(record.vars.access),
            applied_mark: Watermark::new(at.index),
            revision_mark: Watermark::new(at.revision),
            feed: Feed::new(at.revision, options.feed_bytes_max),
            checks_groups: options.checks_groups,
            bounds: options.bounds,
            answered: AtomicU64::new(0),
            digests,
            work: WorkCounters::default(),
            replacements: AtomicU64::new(0),
            durable: AtomicU64::new(index_after(&record)),
            applied: Mutex::new(Published { record, wall_since: Uptime::now() }),
            durable_hook: Mutex::new(None),
            snapshots,
        })
    }

    /// The live database, for a short while.
    pub(crate) fn db(&self) -> Guard<Arc<Db>> {
        self.db.load()
    }

    /// The live database, for long work.
    pub(crate) fn db_owned(&self) -> Arc<Db> {
        self.db.load_full()
    }

    /// The applied row as published last.
    pub(crate) fn applied(&self) -> AppliedRecord {
        self.applied.lock().record.clone()
    }

    /// The wall clock of the log, and when it came to be applied here.
    pub(crate) fn wall(&self) -> (WallMillis, Uptime) {
        let applied = self.applied.lock();
        (applied.record.vars.wall, applied.wall_since)
    }

    /// The sizes published last.
    pub(crate) fn sizes(&self) -> Sizes {
        self.applied.lock().record.vars.sizes
    }

    /// Whether any task waits for a plan.
    pub(crate) fn has_unplanned_tasks(&self) -> bool {
        self.applied.lock().record.vars.unplanned > 0
    }

    /// The revision at which the present epoch began.
    pub(crate) fn epoch_revision(&self) -> Revision {
        self.applied.lock().record.vars.epoch_revision
    }

    /// The access revision published last.
    pub(crate) fn access_revision(&self) -> Revision {
        self.access.load(Ordering::Acquire)
    }

    /// The position published last.
    pub(crate) fn position(&self) -> ReadPosition {
        position_of(&self.applied.lock().record)
    }

    /// Carries out a change of the state and publishes its position; then wakes who waits for it, but for the keys.
    /// There must be one caller at a time. After an error the counter stays odd: what the database holds is what the
    /// applied row in it says, and readers go by that.
    pub(crate) fn publish<T>(
        &self,
        record: &AppliedRecord,
        change: impl FnOnce() -> Result<T, StateFault>,
    ) -> Result<T, StateFault> {
        let before = self.sequence.load(Ordering::Relaxed);
        if before % 2 == 1 {
            return Err(StateFault::new("an earlier change of the state failed"));
        }
        self.sequence.store(before + 1, Ordering::Relaxed);
        // A reader that sees anything of the change also sees the odd number.
        fence(Ordering::SeqCst);
        let changed = change()?;
        let at = position_of(record);
        self.position.store(at);
        // Before anybody who waits for this position goes on.
        self.access.store(record.vars.access, Ordering::Release);
        let mut applied = self.applied.lock();
        if applied.record.vars.wall != record.vars.wall {
            applied.wall_since = Uptime::now();
        }
        applied.record.clone_from(record);
        drop(applied);
        self.sequence.store(before + 2, Ordering::Release);
        self.applied_mark.reach(at.index);
        self.revision_mark.reach(at.revision);
        Ok(changed)
    }

    /// Puts another database in place of the live one; gives the old one. Only within [`Self::publish`].
    pub(crate) fn swap_db(&self, fresh: Db) -> Arc<Db> {
        self.db.swap(Arc::new(fresh))
    }

    /// Reads the row of a current entry together with the exact position of the state it belongs to.
    pub(crate) fn read_entry<T>(
        &self,
        row_key: &[u8],
        read: impl Fn(ReadPosition, Option<&[u8]>) -> Result<T, StateFault>,
    ) -> Result<T, StateFault> {
        for _ in 0..READ_TRIES {
            let before = self.sequence.load(Ordering::Acquire);
            if before % 2 == 1 {
                std::hint::spin_loop();
                continue;
            }
            let db = self.db.load();
            let at = self.position.load();
            if let Some(recent) = db.recent.get(row_key) {
                if self.is_still(before) {
                    return read(at, Some(recent.row()));
                }
                continue;
            }
            let row: Option<DBPinnableSlice<'_>> = db.rocks.get_pinned(row_key).map_err(rocks_fault)?;
            if self.is_still(before) {
                return read(at, row.as_deref());
            }
        }
        self.with_moment(|moment| read(moment.at, moment.snapshot.get_pinned(row_key)?.as_deref()))
    }

    /// Whether nothing changed since the counter stood at `sequence`.
    fn is_still(&self, sequence: u64) -> bool {
        fence(Ordering::Acquire);
        self.sequence.load(Ordering::Relaxed) == sequence
    }

    /// Reads any number of rows of one state. A panic on the way is a fault of this read alone.
    pub(crate) fn with_moment<T>(
        &self,
        read: impl FnOnce(&Moment<'_>) -> Result<T, StateFault>,
    ) -> Result<T, StateFault> {
        moment_of(&self.db.load_full(), read)
    }

    /// Asks one state. A panic on the way is a fault of this question alone.
    pub(crate) fn query<T>(&self, ask: impl FnOnce(&Moment<'_>) -> Result<T, Fault>) -> Result<T, StateFault> {
        self.with_moment(|moment| Ok(ask(moment)?))
    }

    /// Counts entries in a state. What is found is held by its database, so none of another one is ever told.
    pub(crate) fn with_counts<T>(
        &self,
        read: impl FnOnce(&Moment<'_>, &Counts) -> Result<T, StateFault>,
    ) -> Result<T, StateFault> {
        let db = self.db.load_full();
        db.counts.listen();
        moment_of(&db, |moment| read(moment, &db.counts))
    }

    /// Looks how far the durable state is and tells the hook if it moved.
    pub(crate) fn note_durable(&self) -> Result<u64, StateFault> {
        let hook = self.durable_hook.lock();
        let after = index_after(&self.db.load_full().durable()?);
        let before = self.durable.swap(after, Ordering::AcqRel);
        assert!(after >= before, "the durable state went back from before index {before} to before {after}");
        if let Some(hook) = hook.as_ref().filter(|_| after > before) {
            hook(after - 1);
        }
        Ok(after.saturating_sub(1))
    }

    /// Reads the state together with the bounds of what is first in it, which are of now: what they leave out is gone.
    pub(crate) fn with_heads<T>(
        &self,
        read: impl FnOnce(&Moment<'_>, &Heads) -> Result<T, StateFault>,
    ) -> Result<T, StateFault> {
        let db = self.db.load_full();
        moment_of(&db, |moment| read(moment, &db.heads))
    }

    /// Reads the state together with what was known of indexes that are being built before that moment.
    pub(crate) fn with_building<T>(
        &self,
        read: impl FnOnce(&Moment<'_>, &Building, (Option<Vec<u8>>, u64)) -> Result<T, StateFault>,
    ) -> Result<T, StateFault> {
        let db = self.db.load_full();
        let known = db.building.none_before();
        moment_of(&db, |moment| read(moment, &db.building, known))
    }

    /// Finds out where the first rows are by now.
    pub(crate) fn refresh_heads(&self) -> Result<(), StateFault> {
        let db = self.db.load_full();
        db.heads.refresh(&db.rocks)
    }

    /// Gives merges as much time as they need to keep up with what is written.
    pub(crate) fn pace_merges(&self) -> Result<(), StateFault> {
        self.db.load_full().pace_merges()
    }

    /// Makes all that is applied durable.
    pub(crate) fn flush(&self) -> Result<u64, StateFault> {
        self.db.load_full().flush()?;
        self.note_durable()
    }

    pub(crate) fn durable_index(&self) -> u64 {
        self.durable.load(Ordering::Acquire).saturating_sub(1)
    }

    /// Sets who is told of the durable index; it is told at once, unless nothing is durable.
    pub(crate) fn set_durable_hook(&self, hook: DurableHook) {
        let mut place = self.durable_hook.lock();
        if let Some(index) = self.durable.load(Ordering::Acquire).checked_sub(1) {
            hook(index);
        }
        *place = Some(hook);
    }

    pub(crate) fn state_dir(&self) -> &Path {
        &self.home.0
    }
}

fn moment_of<T>(db: &Db, read: impl FnOnce(&Moment<'_>) -> Result<T, StateFault>) -> Result<T, StateFault> {
    let snapshot = db.rocks.snapshot();
    let record = db::decode_applied(snapshot.get_pinned(APPLIED_KEY).map_err(rocks_fault)?.as_deref())?;
    let moment = Frozen::moment(snapshot, record);
    machine::catching(|| Ok(read(&moment)))?
}
