//! What the leader archives, and what the others learn of it.
//!
//! Owns the order: entries go on while a base is being written, and a base begins wherever entries are missing. Two nodes that both
//! believe to lead write the same entries twice, which does no harm. What fails is tried again, for ever, and told.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quorate_archive::{
    After, Archive, ArchiveError, BaseManifest, BaseName, Catalogue, SEGMENT_BYTES, SegmentHead, SegmentName,
};
use quorate_store::background;
use quorate_store::backup::BackupHeader;
use quorate_store::log::LogReader;
use quorate_store::machine::is_of_before;
use quorate_store::raft::LogEntry;
use quorate_store::raft::wire::{LogIdRecord, encode_entry};
use quorate_store::state::{AppliedState, wall_after};
use quorate_store::types::WallMillis;
use tokio::task::JoinHandle;

use super::ledger::MARK_EVERY;
use super::{ArchiveLedger, ArchiveSettings};
use crate::app::backup::BackupFor;
use crate::app::proposer::ProposerParts;
use crate::app::{App, wall_now};
use crate::millis::millis;
use crate::rebuild::{ENTRY_FORMAT, position};

/// How often a node looks whether it is of a cluster yet.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often a node that does not lead looks how far the archive is.
const FOLLOW_EVERY: Duration = Duration::from_secs(10);
/// The longest pause after failures.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long after a failed base the next one is tried.
const BASE_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// How often it is looked what is not needed any more.
const PRUNE_EVERY: Duration = Duration::from_secs(600);

/// Why something was not archived. A sentence for people.
#[derive(Debug, thiserror::Error)]
enum NotArchived {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("the log cannot be read: {0}")]
    Log(#[from] io::Error),
}

/// Archives until it is dropped.
pub async fn run(
    app: App,
    parts: Arc<ProposerParts>,
    log: LogReader,
    settings: ArchiveSettings,
    ledger: Arc<ArchiveLedger>,
) {
    let archive = loop {
        match open(&app, &settings) {
            Some(Ok(archive)) => break archive,
            Some(Err(error)) => {
                if ledger.note_trouble(error.to_string()) {
                    tracing::warn!(%error, "the archive cannot be opened; it is tried again");
                }
                tokio::time::sleep(PAUSE_MAX).await;
            }
            None => tokio::time::sleep(LOOK_EVERY).await,
        }
    };
    let mut archiver = Archiver {
        app,
        parts,
        log,
        archive,
        ledger,
        known: None,
        led: false,
        written: Instant::now(),
        listed: None,
        pruned: None,
        base: None,
        base_failed: None,
        pruning: None,
        settings,
    };
    let mut failures = 0;
    loop {
        let pause = archiver.settings.interval.saturating_mul(1 << failures.min(4));
        tokio::time::sleep(if failures == 0 { pause } else { pause.min(PAUSE_MAX) }).await;
        failures = match archiver.tick().await {
            Ok(()) => 0,
            Err(error) => {
                // What is known may be wrong; but what was begun anew is not in any listing before its base is.
                archiver.known.take_if(|known| known.base.is_some());
                if archiver.ledger.note_trouble(error.to_string()) {
                    tracing::warn!(%error, archive = %archiver.archive, "not archived; it is tried again, and the log waits for it");
                }
                failures + 1
            }
        };
    }
}

/// The archive of this node's cluster, once there is one.
fn open(app: &App, settings: &ArchiveSettings) -> Option<Result<Archive, ArchiveError>> {
    let cluster = app.inner.identity.load().cluster_id?;
    Some(settings.location.open().map(|place| Archive::of(place, cluster)))
}

/// How far the archive is.
struct Known {
    /// A base at this entry or behind it leads to what follows.
    from: u64,
    /// The last entry that is in it without a gap.
    index: u64,
    /// Wall clock of the log there.
    wall: WallMillis,
    /// The piece that ends there, if it is one.
    last: Option<SegmentName>,
    /// The newest base.
    base: Option<BaseName>,
}

impl Known {
    /// What a listing says; `None` where there is no base to begin with.
    fn of(catalogue: &Catalogue) -> Option<Self> {
        let reach = *catalogue.reaches().last()?;
        let (chain, _) = catalogue.chain(reach.from);
        let base = catalogue.bases.last().copied();
        Some(Self { from: reach.from.index, index: reach.index, wall: reach.wall, last: chain.last().cloned(), base })
    }
}

struct Archiver {
    app: App,
    parts: Arc<ProposerParts>,
    log: LogReader,
    settings: ArchiveSettings,
    archive: Archive,
    ledger: Arc<ArchiveLedger>,
    known: Option<Known>,
    /// Whether this node led at the last look.
    led: bool,
    /// When entries were archived last.
    written: Instant,
    /// When a node that does not lead looked last.
    listed: Option<Instant>,
    pruned: Option<Instant>,
    /// The base that is being written.
    base: Option<JoinHandle<io::Result<Result<BaseManifest, ArchiveError>>>>,
    base_failed: Option<Instant>,
    pruning: Option<JoinHandle<Result<u64, ArchiveError>>>,
}

impl Archiver {
    async fn tick(&mut self) -> Result<(), NotArchived> {
        self.reap().await?;
        let leads = self.parts.view.now().leader == Some(self.parts.self_id) && self.app.unready_reason().is_none();
        if std::mem::replace(&mut self.led, leads) != leads {
            // Another may have gone on with it.
            self.known = None;
        }
        match leads {
            true => self.lead().await,
            false => self.follow().await,
        }
    }

    /// Learns how far the archive is, so that this node's log may go.
    async fn follow(&mut self) -> Result<(), NotArchived> {
        if self.listed.is_some_and(|at| at.elapsed() < FOLLOW_EVERY) {
            return Ok(());
        }
        self.listed = Some(Instant::now());
        let known = match self.known.take() {
            Some(Known { from, index, wall, last: Some(last), base }) => {
                let mut known = Known { from, index, wall, last: Some(last.clone()), base };
                for next in self.archive.segments_after(&last).await? {
                    if next.first > known.index + 1 {
                        // Missing, or after a new base: only all of it tells.
                        self.known = None;
                        return self.learn().await.map(drop);
                    }
                    if next.last > known.index {
                        (known.index, known.wall) = (next.last, next.wall);
                        known.last = Some(next);
                    }
                }
                known
            }
            _ => return self.learn().await.map(drop),
        };
        self.ledger.note_archived(known.index, known.wall);
        self.ledger.note_good();
        self.known = Some(known);
        Ok(())
    }

    /// Lists all of it.
    async fn learn(&mut self) -> Result<Catalogue, NotArchived> {
        let catalogue = self.archive.catalogue().await?;
        self.known = Known::of(&catalogue);
        if let Some(known) = &self.known {
            self.ledger.note_archived(known.index, known.wall);
        }
        self.note_catalogue(&catalogue);
        self.ledger.note_good();
        Ok(catalogue)
    }

    fn note_catalogue(&self, catalogue: &Catalogue) {
        self.ledger.bases_there.store(catalogue.bases.len() as u64, Relaxed);
        let from = catalogue.reaches().last().map_or(0, |reach| reach.from.wall);
        self.ledger.reaches_from.store(from, Relaxed);
    }

    async fn lead(&mut self) -> Result<(), NotArchived> {
        let begun = wall_now();
        let applied = self.app.state().applied();
        if self.known.is_none() {
            let catalogue = self.learn().await?;
            if self.known.is_none() {
                tracing::info!(archive = %self.archive, "no base is archived yet; beginning with one");
                self.begin_anew(&applied);
                self.go_on_with(&catalogue, applied.at.index);
            }
        }
        let is_whole = self.append(&applied).await?;
        if !is_whole {
            self.ledger.gaps.fetch_add(1, Relaxed);
            let from = self.known.as_ref().map_or(0, |known| known.index + 1);
            tracing::warn!(
                from,
                to = applied.at.index,
                "entries were gone before they were archived; a new base begins after them"
            );
            self.begin_anew(&applied);
        }
        if let Some(known) = self.known.as_ref().filter(|known| known.index >= applied.at.index) {
            // A base that is missing yet makes entries alone of no use.
            let is_of_use = known.base.is_some();
            self.ledger.note_archived(known.index, if is_of_use { begun } else { 0 });
        }
        self.ledger.note_good();
        self.base_where_due(&applied);
        self.prune_where_due();
        if self.written.elapsed() >= MARK_EVERY {
            self.written = Instant::now();
            // An entry that says what time it is. Not proposed or unknown: the next one does it.
            if let Err(outcome) = self.parts.write_batch(Vec::new()).await {
                crate::debug!(?outcome, "no mark in the log");
            }
        }
        Ok(())
    }

    /// From here on, behind a base that is to be made: what comes before is missing.
    fn begin_anew(&mut self, applied: &AppliedState) {
        let index = applied.at.index;
        self.known = Some(Known { from: index, index, wall: applied.wall, last: None, base: None });
        self.base_failed = None;
    }

    /// Entries that another leader archived, which had no time for a base: one that it may still write leads to them.
    fn go_on_with(&mut self, catalogue: &Catalogue, applied: u64) {
        if let Some((from, last)) = catalogue.last_run().filter(|(_, last)| last.last <= applied) {
            self.known = Some(Known { from, index: last.last, wall: last.wall, last: Some(last.clone()), base: None });
        }
    }

    /// Archives all entries up to what is applied. False: some of them are gone.
    async fn append(&mut self, applied: &AppliedState) -> Result<bool, NotArchived> {
        while let Some(known) = self.known.as_ref().filter(|known| known.index < applied.at.index) {
            let (first, wall) = (known.index + 1, known.wall);
            let Some((before, entries)) = self.read(first, applied.at.index).await? else { return Ok(false) };
            let Some(last) = entries.last().map(|entry| LogIdRecord::from(&entry.log_id)) else { return Ok(false) };
            let (wall_min, wall) = walls(wall, &entries);
            let is_all = Some(last) == applied.log_id;
            let after =
                is_all.then(|| After { revision: applied.at.revision, digest: format!("{:032x}", applied.digest) });
            let head = SegmentHead {
                cluster: String::new(),
                before: before.map(position),
                first,
                last: position(last),
                wall_min,
                wall,
                entry_format: ENTRY_FORMAT,
                node: self.parts.self_id,
                after,
                bytes: 0,
            };
            let put = self.archive.put_segment(head, encoded(&entries), &self.settings.recipients);
            let (name, bytes) = put.await?;
            self.written = Instant::now();
            self.ledger.segments.fetch_add(1, Relaxed);
            self.ledger.bytes.fetch_add(bytes, Relaxed);
            self.ledger.note_archived(last.index, 0);
            if let Some(known) = &mut self.known {
                (known.index, known.wall, known.last) = (last.index, wall, Some(name));
            }
        }
        Ok(true)
    }

    /// Entries for one piece, and the one before them.
    async fn read(&self, first: u64, last: u64) -> io::Result<Option<(Option<LogIdRecord>, Vec<LogEntry>)>> {
        let Some(stretch) = self.log.stretch(first, last, SEGMENT_BYTES).await? else { return Ok(None) };
        let (before, mut entries) = (stretch.before, stretch.entries);
        let size = |entries: &[LogEntry]| entries.iter().map(entry_bytes).sum::<usize>();
        let mut bytes = size(&entries);
        while bytes < SEGMENT_BYTES
            && let Some(at) = entries.last().map(|entry| entry.log_id.index).filter(|at| *at < last)
        {
            let Some(more) = self.log.stretch(at + 1, last, SEGMENT_BYTES - bytes).await? else { break };
            bytes += size(&more.entries);
            entries.extend(more.entries);
        }
        Ok(Some((before, entries)))
    }

    fn base_where_due(&mut self, applied: &AppliedState) {
        let Some(known) = &self.known else { return };
        let every = millis(self.settings.base_every);
        // By the cluster's clock, which a base is of. One that was made while that was ahead would put the next one off for as long.
        let now = self.app.wall_now();
        let is_old = |base: BaseName| is_of_before(base.wall, now) || now.saturating_sub(base.wall) >= every;
        // A base of the same entry would have the same name, and what is archived never changes.
        let is_due = known.base.is_none_or(|base| base.index < applied.at.index && is_old(base));
        let failed_lately = self.base_failed.is_some_and(|at| at.elapsed() < BASE_AGAIN_AFTER);
        if !is_due || failed_lately || self.base.is_some() {
            return;
        }
        let (app, archive, settings) = (self.app.clone(), self.archive.clone(), self.settings.clone());
        let handle = tokio::runtime::Handle::current();
        let write = move || app.archive_base(&archive, &handle, &settings);
        self.base = Some(tokio::spawn(background::blocking(write)));
    }

    fn prune_where_due(&mut self) {
        if self.pruning.is_some() || self.pruned.is_some_and(|at| at.elapsed() < PRUNE_EVERY) {
            return;
        }
        self.pruned = Some(Instant::now());
        self.pruning = Some(tokio::spawn(prune(self.archive.clone(), self.settings.clone())));
    }

    /// Takes what was done beside.
    async fn reap(&mut self) -> Result<(), NotArchived> {
        if let Some(base) = self.base.take_if(|base| base.is_finished()) {
            let done = base.await.map_err(io::Error::other).and_then(|done| done);
            match done.map_err(NotArchived::from).and_then(|done| Ok(done?)) {
                Ok(manifest) => {
                    tracing::info!(base = %manifest.name(), bytes = manifest.bytes, "archived a base");
                    self.ledger.bases.fetch_add(1, Relaxed);
                    self.ledger.bytes.fetch_add(manifest.bytes, Relaxed);
                    self.app.backups().note_completed(BackupFor::Archive);
                    // Behind a gap it leads to nothing that follows: then another one is due.
                    if let Some(known) = self.known.as_mut().filter(|known| manifest.position.index >= known.from) {
                        known.base = Some(manifest.name());
                    }
                    // What it makes needless may go.
                    self.pruned = None;
                }
                Err(error) => {
                    self.base_failed = Some(Instant::now());
                    self.app.backups().note_failed(BackupFor::Archive);
                    self.ledger.note_trouble(format!("no base: {error}"));
                    tracing::warn!(%error, "no base was archived; it is tried again");
                }
            }
        }
        if let Some(pruning) = self.pruning.take_if(|pruning| pruning.is_finished()) {
            let removed = pruning.await.map_err(io::Error::other)??;
            self.ledger.removed.fetch_add(removed, Relaxed);
            let catalogue = self.archive.catalogue().await?;
            self.note_catalogue(&catalogue);
        }
        Ok(())
    }
}

/// Removes what nobody needs any more. Nothing, while the last try of a restore failed: what would be removed may be needed yet.
async fn prune(archive: Archive, settings: ArchiveSettings) -> Result<u64, ArchiveError> {
    let verified = archive.verified().await?;
    if let Some(fault) = verified.as_ref().and_then(|verified| verified.fault.as_ref()) {
        tracing::warn!(fault, "nothing is removed from the archive, since a restore was tried and is not to be had");
        return Ok(0);
    }
    let catalogue = archive.catalogue().await?;
    let good = verified.map(|verified| verified.index);
    let gone = settings.retention.superfluous(&catalogue, wall_now(), good);
    // Bases first: what is left without its entries would be half of something.
    for base in &gone.bases {
        archive.remove_base(base).await?;
    }
    for segment in &gone.segments {
        archive.remove_segment(segment).await?;
    }
    Ok((gone.bases.len() + gone.segments.len()) as u64)
}

/// The least that the wall clock of the log shows after any of these entries, and what it shows after the last.
fn walls(before: WallMillis, entries: &[LogEntry]) -> (WallMillis, WallMillis) {
    let mut wall = before;
    let shown = entries.iter().map(|entry| {
        // One that cannot be read stops the node when it is applied, and these are.
        wall = wall_after(wall, entry).unwrap_or(wall);
        wall
    });
    let least = shown.min().unwrap_or(before);
    (least, wall)
}

fn encoded(entries: &[LogEntry]) -> Vec<Bytes> {
    let encode = |entry: &LogEntry| {
        let mut bytes = BytesMut::new();
        encode_entry(entry, &mut bytes);
        bytes.freeze()
    };
    entries.iter().map(encode).collect()
}

fn entry_bytes(entry: &LogEntry) -> usize {
    quorate_store::raft::wire::encoded_entry_len(entry)
}

impl App {
    /// Writes a base of the state as of now. Blocks.
    fn archive_base(
        &self,
        archive: &Archive,
        handle: &tokio::runtime::Handle,
        settings: &ArchiveSettings,
    ) -> Result<BaseManifest, ArchiveError> {
        let taken = self.take_whole(BackupFor::Archive, |header, whole| {
            archive.put_base(handle, &manifest(header), &settings.recipients, |sink| {
                whole(&mut Stopping { sink, app: self })
            })
        });
        taken.map_err(|fault| ArchiveError::Refused(fault.to_string()))?
    }
}

fn manifest(header: &BackupHeader) -> BaseManifest {
    // A cluster that archives has a membership, which is an entry.
    let log_id = header.log_id.unwrap_or(LogIdRecord { term: 0, node: header.node_id, index: 0 });
    BaseManifest {
        format: 0,
        cluster: String::new(),
        position: position(log_id),
        revision: header.vars.revision,
        wall: header.vars.wall,
        digest: format!("{:032x}", header.vars.digest()),
        node: header.node_id,
        node_version: header.node_version.clone(),
        written_at: header.taken_at,
        bytes: 0,
        sha256: String::new(),
        recipients: Vec::new(),
    }
}

/// Ends with the node, which must not wait for a base.
struct Stopping<'a, W> {
    sink: W,
    app: &'a App,
}

impl<W: Write> Write for Stopping<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.app.is_stopping() {
            return Err(io::Error::other("the node is stopping"));
        }
        self.sink.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

#[cfg(test)]
mod tests;
