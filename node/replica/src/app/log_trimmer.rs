//! What a node does by itself when its data disk runs full, or its log grows too long: it lets its log go.
//!
//! Owns when that is worth a snapshot, how far the log is purged after it, and that it waits for the archive where there is one. Never refuses a write (callers of the
//! space guard do), and never gives up an entry that no snapshot covers.

use std::time::{Duration, Instant};

use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::Fatal;
use quorate_store::log::LogStore;
use quorate_store::raft::{NodeId, TypeConfig};

use super::App;
use super::snapshot::index;

/// A purge is a record of the log like any other: not one for each entry.
const PURGE_ENTRIES_MIN: u64 = 64;
/// How often the node looks how full its disk is.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The log has something to give from this many entries on. Each may be a batch of a quarter megabyte, or one command.
const WORTH_ENTRIES: u64 = 256;
/// While the disk stays full the leader's entries still arrive, so the log is looked at again, but not sooner than this:
/// a snapshot writes, too.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// The pause where only the log is long and the last try freed little: there is room for snapshots.
const AGAIN_AFTER_LONG: Duration = Duration::from_secs(5);
/// How long a snapshot may take before this try counts as failed.
const SNAPSHOT_MAX: Duration = Duration::from_secs(60);
/// A follower that is silent for longer does not keep the log from being purged; it will need a snapshot.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// So many times what it may be, and a log is kept for nobody.
const FAR_TOO_LONG: u64 = 2;

type Metrics = openraft::RaftMetrics<TypeConfig>;

/// How long the log may be, and what it is kept for.
#[derive(Debug, Clone, Copy)]
pub struct LogBounds {
    /// Bytes on disk above which it is purged sooner.
    pub bytes_max: u64,
    /// Entries kept behind a snapshot for slow followers; openraft sees to it where there is no archive.
    pub keep_entries: u64,
    /// Bytes on disk up to which it waits for the archive, where there is one.
    pub hold_bytes: Option<u64>,
}

/// Runs until openraft stops.
pub async fn run(app: App, log: LogStore, bounds: LogBounds) {
    let mut trimmer = Trimmer { app, log, bounds, last_try: None };
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if let Err(fatal) = trimmer.tick().await {
            quorate_node_core::debug!(%fatal, "raft has stopped, and with it the purge of its log");
            return;
        }
    }
}

/// Why the log should go.
#[derive(Debug, Clone, Copy)]
enum TrimReason {
    /// The disk is nearly full.
    Disk,
    /// The log is longer than it may be.
    Log {
        /// Bytes that it has.
        bytes: u64,
        /// A follower that lags behind keeps it no more: a snapshot will be its way.
        is_far_too_long: bool,
    },
}

struct Trimmer {
    app: App,
    log: LogStore,
    bounds: LogBounds,
    /// The last try of this episode; `None` while there is enough room.
    last_try: Option<Try>,
}

#[derive(Debug, Clone, Copy)]
struct Try {
    at: Instant,
    /// The last entry that was purged before it.
    purged: u64,
}

impl Try {
    /// Whether to wait before the next one. A log that was let go and is long again grows fast: waiting lets it grow more.
    fn is_too_fresh(self, need: TrimReason, purged: u64) -> bool {
        match need {
            TrimReason::Disk => self.at.elapsed() < AGAIN_AFTER,
            TrimReason::Log { .. } => {
                let gave_little = purged.saturating_sub(self.purged) < WORTH_ENTRIES;
                gave_little && self.at.elapsed() < AGAIN_AFTER_LONG
            }
        }
    }
}

impl Trimmer {
    async fn tick(&mut self) -> Result<(), Fatal<TypeConfig>> {
        self.purge_archived().await?;
        let Some(need) = self.need() else {
            self.last_try = None;
            return Ok(());
        };
        let metrics = self.app.raft().metrics().borrow_watched().clone();
        let purged = index(&metrics.purged);
        if !is_worth_it(&metrics) || self.last_try.is_some_and(|last| last.is_too_fresh(need, purged)) {
            return Ok(());
        }
        // A snapshot is of no use to a log that waits for its archive.
        if self.held(u64::MAX) < purged.saturating_add(WORTH_ENTRIES) {
            return Ok(());
        }
        self.last_try = Some(Try { at: Instant::now(), purged });
        let free = self.app.space().free();
        if !self.app.upkeep().snapshots.have_room().await {
            tracing::warn!(free, "the data disk is too full even for a snapshot; the log cannot be purged");
            return Ok(());
        }
        match need {
            TrimReason::Disk => tracing::warn!(free, "the data disk is nearly full: purging the log"),
            TrimReason::Log { bytes, .. } => tracing::info!(bytes, max = self.bounds.bytes_max, "purging a long log"),
        }
        self.let_the_log_go(need).await
    }

    /// What openraft does where there is no archive: the log goes behind a snapshot, but for what is kept for slow followers; and here
    /// only what is in the archive.
    async fn purge_archived(&self) -> Result<(), Fatal<TypeConfig>> {
        if self.bounds.hold_bytes.is_none() {
            return Ok(());
        }
        let metrics = self.app.raft().metrics();
        let (snapshot, purged) = {
            let now = metrics.borrow_watched();
            (index(&now.snapshot), index(&now.purged))
        };
        let upto = self.held(snapshot.saturating_sub(self.bounds.keep_entries));
        if upto >= purged.saturating_add(PURGE_ENTRIES_MIN.min(self.bounds.keep_entries.max(1))) {
            self.app.raft().trigger().purge_log(upto).await?;
        }
        Ok(())
    }

    /// How far the log may be purged of what shall be: what is not archived waits, unless it is too much or the disk is full.
    fn held(&self, upto: u64) -> u64 {
        let (Some(hold_bytes), Some(archive)) = (self.bounds.hold_bytes, self.app.archive()) else { return upto };
        let archived = archive.archived().unwrap_or(0);
        let gives_up = self.app.space().is_low() || self.log.stats().disk_bytes > hold_bytes;
        if gives_up && archived < upto && upto != u64::MAX {
            tracing::warn!(
                archived,
                upto,
                "the log waits for the archive no longer; entries between will be missing in it"
            );
        }
        held_by_archive(upto, archived, gives_up)
    }

    /// Why the log should go, if it should.
    fn need(&self) -> Option<TrimReason> {
        if self.app.space().is_low() {
            return Some(TrimReason::Disk);
        }
        let bytes = self.log.stats().disk_bytes;
        let is_far_too_long = bytes > self.bounds.bytes_max.saturating_mul(FAR_TOO_LONG);
        (bytes > self.bounds.bytes_max).then_some(TrimReason::Log { bytes, is_far_too_long })
    }

    async fn let_the_log_go(&self, need: TrimReason) -> Result<(), Fatal<TypeConfig>> {
        let raft = self.app.raft();
        let applied = index(&raft.metrics().borrow_watched().last_applied);
        if !self.app.upkeep().snapshots.make(applied, SNAPSHOT_MAX).await? {
            tracing::warn!("no snapshot within {SNAPSHOT_MAX:?}, so the log stays");
            return Ok(());
        }
        let upto = match need {
            TrimReason::Log { is_far_too_long: true, .. } => index(&raft.metrics().borrow_watched().snapshot),
            TrimReason::Disk | TrimReason::Log { .. } => purge_to(&raft.metrics().borrow_watched()),
        };
        let upto = self.held(upto);
        tracing::info!(upto, "purging the log");
        raft.trigger().purge_log(upto).await
    }
}

/// How far a log may be purged of which an archive has so much.
fn held_by_archive(upto: u64, archived: u64, gives_up: bool) -> u64 {
    if gives_up { upto } else { upto.min(archived) }
}

/// Whether the log holds enough that a snapshot would make superfluous.
fn is_worth_it(metrics: &Metrics) -> bool {
    index(&metrics.last_applied).saturating_sub(index(&metrics.purged)) >= WORTH_ENTRIES
}

/// As far as the snapshot goes, but not beyond what a follower that is there lacks: a snapshot would fill its disk, too.
fn purge_to(metrics: &Metrics) -> u64 {
    let heard_lately = |id: &NodeId| {
        let heard = metrics.heartbeat.as_ref().and_then(|heard| heard.get(id)).and_then(Option::as_ref);
        heard.is_some_and(|at| at.elapsed() < SILENCE_MAX)
    };
    let followers = metrics.replication.iter().flatten().filter(|(id, _)| **id != metrics.id && heard_lately(id));
    followers.map(|(_, matched)| index(matched)).fold(index(&metrics.snapshot), u64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: TrimReason = TrimReason::Log { bytes: 2, is_far_too_long: false };

    #[test]
    fn a_log_waits_for_its_archive_until_it_is_too_much() {
        assert_eq!(held_by_archive(90, 50, false), 50);
        assert_eq!(held_by_archive(90, 95, false), 90);
        assert_eq!(held_by_archive(90, 50, true), 90);
    }

    #[test]
    fn a_log_that_was_let_go_and_is_long_again_is_let_go_at_once() {
        let last = Try { at: Instant::now(), purged: 1000 };
        assert!(!last.is_too_fresh(LONG, 1000 + WORTH_ENTRIES));
    }

    #[test]
    fn a_try_that_gave_little_is_not_repeated_at_once_and_neither_is_one_on_a_full_disk() {
        let last = Try { at: Instant::now(), purged: 1000 };
        assert!(last.is_too_fresh(LONG, 1000 + WORTH_ENTRIES - 1));
        assert!(last.is_too_fresh(TrimReason::Disk, 1000 + WORTH_ENTRIES));
    }
}
