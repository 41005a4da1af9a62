//! Making fewer and larger objects of an archive's log: the pieces of an hour that is over become one, and those of a day.
//!
//! Owns when, the pace, and the order: a bundle is written and read again, and what it holds goes some minutes later: a listing that came past
//! the place of the bundle before it was there still finds the pieces. The leader does it, at low priority, without a key. Where it ends in
//! between, both are there, which does no harm, and the next round goes on; two leaders at once make the same objects. Never changes which
//! points can be had, and never holds up what is to be archived.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use quorate_archive::{Archive, ArchiveError, Merging, NotMerged, SegmentName};
use quorate_machine::types::WallMillis;
use quorate_node_core::limits;
use quorate_threads::{background, watchdog};
use tokio::task::JoinHandle;

use super::{ArchiveLedger, ArchiveSettings};
use crate::app::App;

/// How often it is looked what is over.
const LOOK_EVERY: Duration = Duration::from_secs(600);
/// A round begins nothing new after so many bytes.
const ROUND_BYTES: u64 = 256 << 20;
/// And after so many objects: each takes a request.
const ROUND_OBJECTS: usize = 20_000;
/// For so long it is remembered what was found.
const REMEMBERED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// What earlier rounds found.
#[derive(Debug, Clone, Default)]
struct Memory {
    /// Objects that are damaged: they stay as they are.
    apart: BTreeSet<SegmentName>,
    /// Bundles beside which there is what they hold, and since when they are known to be there.
    seen: BTreeMap<SegmentName, Instant>,
}

/// What a round came to.
#[derive(Debug)]
struct Round {
    /// Bundles that are there now.
    bundles: u64,
    /// Objects that are in such, and gone.
    merged: u64,
    /// What is to be remembered.
    memory: Memory,
    /// Whether more is to be done.
    goes_on: bool,
}

/// Merges, a round at a time.
pub(super) struct Merger {
    /// When it was looked last what is to be done.
    looked: Option<Instant>,
    round: Option<JoinHandle<io::Result<Result<Round, ArchiveError>>>>,
    memory: Memory,
    /// Since when that is remembered.
    since: Instant,
}

impl Merger {
    pub fn new() -> Self {
        Self { looked: None, round: None, memory: Memory::default(), since: Instant::now() }
    }

    /// Takes what a round came to, and begins the next one where it is due.
    pub async fn look(&mut self, app: &App, archive: &Archive, settings: &ArchiveSettings, ledger: &ArchiveLedger) {
        let Some(merging) = settings.merging else { return };
        if let Some(round) = self.round.take_if(|round| round.is_finished()) {
            let done = round.await.map_err(io::Error::other).and_then(|done| done);
            match done.and_then(|done| done.map_err(io::Error::other)) {
                Ok(round) => self.take(round, ledger),
                Err(error) => tracing::warn!(%error, "pieces of the archive are not merged; it is tried again"),
            }
        }
        let every = LOOK_EVERY.min(Duration::from_millis(merging.settled_after_ms()));
        if self.round.is_some() || self.looked.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.looked = Some(Instant::now());
        // Which pieces belong together follows from the cluster's clock.
        if !app.wall_clocks().warnings().is_empty() {
            return;
        }
        if self.since.elapsed() >= REMEMBERED_FOR {
            (self.memory, self.since) = (Memory::default(), Instant::now());
        }
        let round = round(archive.clone(), merging, app.wall_now(), self.memory.clone());
        self.round = Some(watchdog::spawn(background::patient_task(round)));
    }

    fn take(&mut self, round: Round, ledger: &ArchiveLedger) {
        let Round { bundles, merged, memory, goes_on } = round;
        ledger.merged.fetch_add(merged, Relaxed);
        self.memory = memory;
        if goes_on {
            self.looked = None;
        }
        if bundles > 0 {
            tracing::info!(objects = merged, bundles, "merged objects of the archive's log");
        }
    }
}

/// Merges what is due, oldest first, up to a bound.
async fn round(archive: Archive, merging: Merging, now: WallMillis, mut memory: Memory) -> Result<Round, ArchiveError> {
    let settled_after = Duration::from_millis(merging.settled_after_ms());
    let (mut bundles, mut merged, mut goes_on) = (0, 0, false);
    let (mut bytes, mut objects) = (0, 0);
    for group in merging.due(archive.segments().await?, now, &memory.apart) {
        if bytes >= ROUND_BYTES || objects >= ROUND_OBJECTS {
            goes_on = true;
            break;
        }
        let is_new = |name: &SegmentName| memory.seen.get(name).is_some_and(|at| at.elapsed() < settled_after);
        if group.iter().any(|(name, _)| is_new(name)) {
            continue;
        }
        bytes += group.iter().map(|(_, bytes)| bytes).sum::<u64>();
        objects += group.len();
        let bundle = match archive.merge(&group, limits::BACKUP_BYTES_PER_SECOND_BUSY).await {
            Ok(bundle) => bundle,
            // Another leader was faster, or it was pruned: the next listing shows what is left.
            Err(NotMerged::Object(_, error)) if error.is_not_found() => break,
            Err(NotMerged::Object(object, error)) => {
                tracing::warn!(%error, "an object of the archive is not merged with others");
                memory.apart.insert(*object);
                goes_on = true;
                continue;
            }
            Err(NotMerged::Archive(error)) => return Err(error),
        };
        bundles += 1;
        if memory.seen.insert(bundle.clone(), Instant::now()).is_none() {
            // What it holds goes in a later round.
            continue;
        }
        let gone: Vec<_> = group.into_iter().map(|(name, _)| name).filter(|name| *name != bundle).collect();
        archive.remove_segments(&gone).await?;
        merged += gone.len() as u64;
    }
    Ok(Round { bundles, merged, memory, goes_on })
}

#[cfg(test)]
pub(super) mod tests {
    use bytes::Bytes;
    use quorate_archive::{Place, Position, Recipients, SegmentHead};

    use super::*;

    const MERGING: Merging = Merging { span_ms: 100_000 };

    /// Writes pieces of one entry each, ten in a span.
    async fn put(archive: &Archive, entries: std::ops::RangeInclusive<u64>) {
        for index in entries {
            let position = |index| Position { term: 1, node: 1, index };
            let head = SegmentHead {
                cluster: String::new(),
                before: Some(position(index - 1)),
                first: index,
                last: position(index),
                wall_min: 10_000 * index,
                wall: 10_000 * index,
                entry_format: 1,
                node: 1,
                after: None,
                bytes: 0,
            };
            let entries = vec![Bytes::from(index.to_string())];
            archive.put_segment(head, entries, &Recipients::default()).await.unwrap();
        }
    }

    async fn stretches(archive: &Archive) -> Vec<(u64, u64)> {
        let catalogue = archive.catalogue().await.unwrap();
        catalogue.segments.iter().map(|name| (name.first, name.last)).collect()
    }

    /// Rounds until nothing changes any more; how many objects are gone.
    pub(in super::super) async fn merge_all(archive: &Archive, merging: Merging, now: WallMillis) -> u64 {
        merge_by(archive, merging, now).await.0
    }

    async fn merge(archive: &Archive, now: WallMillis) -> (u64, Memory) {
        merge_by(archive, MERGING, now).await
    }

    async fn merge_by(archive: &Archive, merging: Merging, now: WallMillis) -> (u64, Memory) {
        let (mut merged, mut memory) = (0, Memory::default());
        loop {
            let before = stretches(archive).await;
            let done = round(archive.clone(), merging, now, memory).await.unwrap();
            merged += done.merged;
            memory = done.memory;
            if !done.goes_on && done.bundles == 0 && before == stretches(archive).await {
                return (merged, memory);
            }
            // Each of them takes minutes.
            memory.seen.values_mut().for_each(|at| *at -= Duration::from_secs(100));
        }
    }

    #[tokio::test]
    async fn rounds_leave_a_bundle_for_each_span_that_is_over_and_then_one_for_the_long_span() {
        let archive = Archive::of(Place::in_memory(), 7);
        put(&archive, 1..=35).await;
        assert_eq!(merge(&archive, 350_000).await.0, 29);
        let left = [(1, 9), (10, 19), (20, 29)].into_iter().chain((30..=35).map(|n| (n, n))).collect::<Vec<_>>();
        assert_eq!(stretches(&archive).await, left);
        assert_eq!(merge(&archive, 350_000).await.0, 0);
        assert_eq!(merge(&archive, 3_000_000).await.0, 9);
        assert_eq!(stretches(&archive).await, [(1, 35)]);
    }

    #[tokio::test]
    async fn what_a_bundle_holds_goes_some_time_after_it_was_written() {
        let archive = Archive::of(Place::in_memory(), 7);
        put(&archive, 1..=9).await;
        let first = round(archive.clone(), MERGING, 200_000, Memory::default()).await.unwrap();
        assert_eq!((first.bundles, first.merged, stretches(&archive).await.len()), (1, 0, 10));
        // Another leader does not know since when it is there.
        let other = round(archive.clone(), MERGING, 200_000, Memory::default()).await.unwrap();
        let again = round(archive.clone(), MERGING, 200_000, first.memory.clone()).await.unwrap();
        assert_eq!((other.merged, again.merged, stretches(&archive).await.len()), (0, 0, 10));
        let mut memory = first.memory;
        memory.seen.values_mut().for_each(|at| *at -= Duration::from_secs(100));
        let last = round(archive.clone(), MERGING, 200_000, memory).await.unwrap();
        assert_eq!((last.merged, stretches(&archive).await), (9, vec![(1, 9)]));
    }

    #[tokio::test]
    async fn what_a_round_that_broke_off_left_is_gone_after_the_next_ones() {
        let archive = Archive::of(Place::in_memory(), 7);
        put(&archive, 1..=9).await;
        let pieces = archive.segments().await.unwrap();
        let bundle = archive.merge(&pieces, u64::MAX).await.unwrap();
        archive.remove_segments(&[pieces[3].0.clone()]).await.unwrap();
        assert_eq!(merge(&archive, 200_000).await.0, 8);
        let left = archive.segments().await.unwrap();
        assert_eq!(left.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), [bundle]);
    }

    #[tokio::test]
    async fn a_damaged_piece_stays_and_what_is_before_and_behind_it_is_merged() {
        let dir = tempfile::tempdir().unwrap();
        let location: quorate_archive::Location = dir.path().to_str().unwrap().parse().unwrap();
        let archive = Archive::of(location.open().unwrap(), 7);
        put(&archive, 1..=9).await;
        let fifth = archive.catalogue().await.unwrap().segments[4].to_string();
        let path = dir.path().join(format!("quorate-{:032x}/log/{fifth}", 7));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let (_, memory) = merge(&archive, 200_000).await;
        assert_eq!(memory.apart.iter().map(ToString::to_string).collect::<Vec<_>>(), [fifth]);
        assert_eq!(stretches(&archive).await, [(1, 4), (5, 5), (6, 9)]);
    }
}
