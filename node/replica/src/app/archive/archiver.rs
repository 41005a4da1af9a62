//! What the leader archives, and what the others learn of it.
//!
//! Owns the order: entries go on while a base is being written, and a base begins wherever entries are missing that no voter has any
//! more. A base counts once the archived entries lead to it. Two nodes that both believe to lead write the same entries twice, which does
//! no harm. Failures are told, and tried again for ever. Work that grows with the archive or the log (listing, planning, encoding, sealing,
//! pruning) is done by [`background::patient_task`], never on the threads of requests and Raft.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quorate_archive::{
    After, Archive, ArchiveError, BaseManifest, BaseName, Catalogue, Reach, Recipients, SEGMENT_BYTES, SegmentHead,
    SegmentName, Survey,
};
use quorate_machine::machine::is_of_before;
use quorate_machine::types::WallMillis;
use quorate_node_core::millis::{millis, wall_now};
use quorate_store::backup::BackupHeader;
use quorate_store::log::LogReader;
use quorate_store::raft::LogEntry;
use quorate_store::raft::wire::{LogIdRecord, encode_entry};
use quorate_store::state::{AppliedState, wall_after};
use quorate_threads::{background, watchdog};
use tokio::task::JoinHandle;

use super::ledger::MARK_EVERY;
use super::merge::Merger;
use super::others::{self, Missing};
use super::place::{self, PlaceError};
use super::{ArchiveLedger, ArchiveSettings};
use crate::app::App;
use crate::app::backup::BackupFor;
use crate::app::proposer::ProposerParts;
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
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("the log cannot be read: {0}")]
    Log(#[from] io::Error),
}

impl NotArchived {
    /// What is wrong with the place, where another one is there than before.
    fn away(&self) -> Option<String> {
        matches!(self, Self::Place(PlaceError::Away { .. })).then(|| self.to_string())
    }
}

/// Archives until it is dropped.
pub async fn run(
    app: App,
    parts: Arc<ProposerParts>,
    log: LogReader,
    settings: ArchiveSettings,
    ledger: Arc<ArchiveLedger>,
) {
    let mut failures = 0;
    let archive = loop {
        match open(&app, &settings).await {
            Some(Ok(archive)) => break archive,
            Some(Err(error)) => {
                ledger.note_away(error.away());
                if ledger.note_trouble(error.to_string()) {
                    tracing::warn!(%error, "the archive cannot be opened; it is tried again");
                }
                failures += 1;
                tokio::time::sleep(pause_after(failures, settings.interval)).await;
            }
            None => tokio::time::sleep(LOOK_EVERY).await,
        }
    };
    ledger.note_location(settings.location.to_string());
    let mut archiver = Archiver {
        app,
        parts,
        log,
        archive,
        ledger,
        known: None,
        led: false,
        missing: None,
        written: Instant::now(),
        listed: None,
        pruned: None,
        uploaded: None,
        base: None,
        base_failed: None,
        pruning: None,
        since: Instant::now(),
        thinned: Thinned::default(),
        merger: Merger::new(),
        settings,
    };
    failures = 0;
    loop {
        tokio::time::sleep(pause_after(failures, archiver.settings.interval)).await;
        failures = match archiver.tick().await {
            Ok(()) => {
                archiver.ledger.note_away(None);
                0
            }
            Err(error) => {
                archiver.ledger.note_away(error.away());
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

/// How long to wait before the next try, after so many that failed.
fn pause_after(failures: u32, interval: Duration) -> Duration {
    let pause = interval.saturating_mul(1 << failures.min(4));
    if failures == 0 { pause } else { pause.min(PAUSE_MAX) }
}

/// The archive of this node's cluster, once it is a member of one.
async fn open(app: &App, settings: &ArchiveSettings) -> Option<Result<Archive, NotArchived>> {
    let cluster = app.members().cluster_id()?;
    let is_known = others::is_known_to_others(app, &settings.location).await?;
    let (location, macs) = (settings.location.clone(), settings.macs.clone());
    let state_dir = app.state().state_dir().to_path_buf();
    let opened = background::patiently(move || {
        let data_dir = state_dir.parent().unwrap_or(&state_dir);
        let (archive, warning) = place::open(data_dir, &location, cluster, is_known)?;
        if let Some(warning) = warning {
            tracing::warn!("{warning}");
        }
        Ok::<_, PlaceError>(archive.with_macs(macs))
    });
    Some(opened.await.map_err(NotArchived::from).and_then(|opened| Ok(opened?)))
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
    /// The last archived entry when the newest base, or the last piece, was found outdated (see [`is_outdated`]). A base at or after it ends
    /// that.
    outdated_to: Option<u64>,
}

impl Known {
    /// Notes a base that is there by now. One that was begun before another node led may stand before their base, or before pieces of theirs.
    fn note_base(&mut self, base: BaseName) {
        let is_newest = self.base.is_none_or(|newest| newest.index <= base.index);
        // Behind a gap it leads to nothing that follows: then another one is due.
        if is_newest && base.index >= self.from {
            self.base = Some(base);
        }
        self.outdated_to = self.outdated_to.filter(|to| base.index < *to);
    }
}

/// What one listing says.
struct Listing {
    /// How far the archive is; `None` where there is no base to begin with.
    known: Option<Known>,
    /// Whole bases.
    bases: u64,
    /// From when on every point can be reached; 0 for none.
    reaches_from: WallMillis,
    /// The pieces at the end that follow one another: the entry before the first, and the piece that goes furthest.
    last_run: Option<(u64, SegmentName)>,
}

impl Listing {
    /// Lists all of an archive and looks at each name once.
    async fn of(archive: Archive) -> Result<Self, NotArchived> {
        let seen = background::patient_task(async move { archive.catalogue().await.map(|all| Self::by(&all)) });
        Ok(seen.await??)
    }

    fn by(catalogue: &Catalogue) -> Self {
        let Survey { reaches, last, .. } = catalogue.survey();
        let (reach, base) = (reaches.last(), catalogue.bases.last().copied());
        let known = |reach: &Reach| {
            let (from, index, wall) = (reach.from.index, reach.index, reach.wall);
            Known { from, index, wall, last: last.cloned(), base, outdated_to: None }
        };
        Self {
            known: reach.map(known),
            bases: catalogue.bases.len() as u64,
            reaches_from: reach.map_or(0, |reach| reach.from.wall),
            last_run: catalogue.last_run().map(|(from, last)| (from, last.clone())),
        }
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
    /// The entry that was to be archived last, and that its log had no more.
    missing: Option<Missing>,
    /// When entries were archived last.
    written: Instant,
    /// When a node that does not lead looked last.
    listed: Option<Instant>,
    pruned: Option<Instant>,
    /// The base whose state is there, and which is to be one once entries lead to it.
    uploaded: Option<BaseManifest>,
    /// The base that is being written.
    base: Option<JoinHandle<io::Result<Result<BaseManifest, ArchiveError>>>>,
    base_failed: Option<Instant>,
    pruning: Option<JoinHandle<io::Result<Result<Pruned, ArchiveError>>>>,
    /// Since when this node archives.
    since: Instant,
    thinned: Thinned,
    merger: Merger,
}

/// How many bases this node has removed.
#[derive(Debug, Default)]
struct Thinned {
    bases: usize,
}

impl Thinned {
    /// How many more may go, after so long: in all as many as came about meanwhile, and one. So whatever clocks say, an archive that was
    /// right loses its history no faster than it grows.
    fn may_go(&self, base_every: Duration, since: Duration) -> usize {
        let came = since.as_millis() / base_every.as_millis().max(1);
        usize::try_from(came).unwrap_or(usize::MAX - 1).saturating_add(1).saturating_sub(self.bases)
    }
}

/// What a prune came to.
struct Pruned {
    /// Objects that are gone.
    removed: u64,
    /// Bases among them.
    bases: usize,
    /// What is left.
    listing: Listing,
}

impl Archiver {
    async fn tick(&mut self) -> Result<(), NotArchived> {
        let archive = self.archive.clone();
        background::patiently(move || place::check(&archive)).await??;
        self.reap().await?;
        let leads = self.parts.view.now().leader == Some(self.parts.self_id) && self.app.unready_reason().is_none();
        if std::mem::replace(&mut self.led, leads) != leads {
            // Another may have gone on with it, and removes what was begun and not finished.
            self.known = None;
            self.uploaded = None;
            if let Some(missing) = &mut self.missing {
                missing.begin_anew();
            }
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
            Some(Known { from, index, wall, last: Some(last), base, outdated_to }) => {
                let mut known = Known { from, index, wall, last: Some(last.clone()), base, outdated_to };
                let archive = self.archive.clone();
                let after = background::patient_task(async move { archive.segments_after(&last).await });
                for next in after.await?? {
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

    /// Lists all of it; the pieces at its end that follow one another.
    async fn learn(&mut self) -> Result<Option<(u64, SegmentName)>, NotArchived> {
        let mut listing = Listing::of(self.archive.clone()).await?;
        self.known = listing.known.take();
        if let Some(known) = &self.known {
            self.ledger.note_archived(known.index, known.wall);
        }
        if let Some(known) = &mut self.known
            && let Some(base) = known.base
        {
            let looked = is_outdated(&self.archive, base, known.last.clone(), &self.settings.recipients).await;
            known.outdated_to = looked?.then_some(known.index);
        }
        self.note_listing(&listing);
        self.ledger.note_good();
        Ok(listing.last_run)
    }

    fn note_listing(&self, listing: &Listing) {
        self.ledger.bases_there.store(listing.bases, Relaxed);
        self.ledger.reaches_from.store(listing.reaches_from, Relaxed);
    }

    async fn lead(&mut self) -> Result<(), NotArchived> {
        let begun = wall_now();
        let applied = self.app.state().applied();
        if self.known.is_none() {
            let last_run = self.learn().await?;
            if self.known.is_none() {
                tracing::info!(archive = %self.archive, "no base is archived yet; beginning with one");
                self.begin_anew(&applied);
                self.go_on_with(last_run, applied.at.index);
            }
        }
        let is_whole = self.append(&applied).await?;
        if !is_whole && self.leaves_it_to_another().await {
            self.ledger.note_good();
            return Ok(());
        }
        if !is_whole && self.goes_further_by_now().await? {
            // The next look learns it.
            self.known = None;
            return Ok(());
        }
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
        self.finish_base().await?;
        self.ledger.note_good();
        self.base_where_due(&applied);
        self.prune_where_due();
        self.merger.look(&self.app, &self.archive, &self.settings, &self.ledger).await;
        if self.written.elapsed() >= MARK_EVERY {
            self.written = Instant::now();
            // An entry that says what time it is. Not proposed or unknown: the next one does it.
            if let Err(outcome) = self.parts.write_batch(Vec::new()).await {
                quorate_node_core::debug!(?outcome, "no mark in the log");
            }
        }
        Ok(())
    }

    /// Whether another voter has, or may have, the entries that are gone from this node's log: then nothing is missing yet.
    async fn leaves_it_to_another(&mut self) -> bool {
        let Some(first) = self.known.as_ref().map(|known| known.index + 1) else { return false };
        let missing = match self.missing.take().filter(|missing| missing.is(first)) {
            Some(missing) => missing,
            None => Missing::from(first),
        };
        self.missing.insert(missing).hand_over(&self.app).await
    }

    /// Whether the archive goes further than is known here: who led before may have written since what this node's log has no more.
    async fn goes_further_by_now(&self) -> Result<bool, NotArchived> {
        let listing = Listing::of(self.archive.clone()).await?;
        let index_of = |known: &Known| known.index;
        Ok(listing.known.as_ref().map(index_of) > self.known.as_ref().map(index_of))
    }

    /// From here on, behind a base that is to be made: what comes before is missing.
    fn begin_anew(&mut self, applied: &AppliedState) {
        let index = applied.at.index;
        self.known = Some(Known { from: index, index, wall: applied.wall, last: None, base: None, outdated_to: None });
        self.base_failed = None;
    }

    /// Entries that another leader archived, which had no time for a base: one that it may still write leads to them.
    fn go_on_with(&mut self, last_run: Option<(u64, SegmentName)>, applied: u64) {
        if let Some((from, last)) = last_run.filter(|(_, last)| last.last <= applied) {
            let (index, wall) = (last.last, last.wall);
            self.known = Some(Known { from, index, wall, last: Some(last), base: None, outdated_to: None });
        }
    }

    /// Archives all entries up to what is applied. False: some of them are gone.
    async fn append(&mut self, applied: &AppliedState) -> Result<bool, NotArchived> {
        while let Some(known) = self.known.as_ref().filter(|known| known.index < applied.at.index) {
            let (first, wall) = (known.index + 1, known.wall);
            let Some((before, entries)) = self.read(first, applied.at.index).await? else { return Ok(false) };
            let Some(last) = entries.last().map(|entry| LogIdRecord::from(&entry.log_id)) else { return Ok(false) };
            let is_all = Some(last) == applied.log_id;
            let after =
                is_all.then(|| After { revision: applied.at.revision, digest: format!("{:032x}", applied.digest) });
            let (archive, settings, node) = (self.archive.clone(), self.settings.clone(), self.parts.self_id);
            let put = background::patient_task(async move {
                let (wall_min, wall) = walls(wall, &entries);
                let head = SegmentHead {
                    cluster: String::new(),
                    before: before.map(position),
                    first,
                    last: position(last),
                    wall_min,
                    wall,
                    entry_format: ENTRY_FORMAT,
                    node,
                    after,
                    bytes: 0,
                };
                archive.put_segment(head, encoded(&entries), &settings.recipients).await
            });
            let (name, bytes) = put.await??;
            let wall = name.wall;
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

    /// Finishes a base once the entries up to it are archived. Before, it would stand behind a gap, and who leads next would go on behind that:
    /// no base leads to what was written in between.
    async fn finish_base(&mut self) -> Result<(), NotArchived> {
        let Some(known) = &mut self.known else { return Ok(()) };
        let is_led_to = |uploaded: &mut BaseManifest| uploaded.position.index <= known.index;
        let Some(manifest) = self.uploaded.take_if(is_led_to) else { return Ok(()) };
        let (archive, finished) = (self.archive.clone(), manifest.clone());
        let put = background::patient_task(async move { archive.finish_base(&finished).await }).await;
        if let Err(error) = put.map_err(NotArchived::from).and_then(|put| Ok(put?)) {
            self.uploaded = Some(manifest);
            return Err(error);
        }
        tracing::info!(base = %manifest.name(), bytes = manifest.bytes, "archived a base");
        self.ledger.bases.fetch_add(1, Relaxed);
        self.ledger.bytes.fetch_add(manifest.bytes, Relaxed);
        self.app.backups().ledger().note_completed(BackupFor::Archive);
        known.note_base(manifest.name());
        // What it makes needless may go.
        self.pruned = None;
        Ok(())
    }

    fn base_where_due(&mut self, applied: &AppliedState) {
        let Some(known) = &self.known else { return };
        let every = millis(self.settings.base_every);
        // By the cluster's clock, which a base is of. One that was made while that was ahead would put the next one off for as long.
        let now = self.app.wall_now();
        let is_outdated = known.outdated_to.is_some();
        let is_old =
            |base: BaseName| is_outdated || is_of_before(base.wall, now) || now.saturating_sub(base.wall) >= every;
        // A base of the same entry would have the same name, and what is archived never changes.
        let is_due = known.base.is_none_or(|base| base.index < applied.at.index && is_old(base));
        let failed_lately = self.base_failed.is_some_and(|at| at.elapsed() < BASE_AGAIN_AFTER);
        if !is_due || failed_lately || self.base.is_some() || self.uploaded.is_some() {
            return;
        }
        let (app, archive, settings) = (self.app.clone(), self.archive.clone(), self.settings.clone());
        let handle = background::patient_handle();
        let write = move || app.archive_base(&archive, &handle, &settings);
        self.base = Some(watchdog::spawn(background::blocking(write)));
    }

    fn prune_where_due(&mut self) {
        if self.pruning.is_some() || self.pruned.is_some_and(|at| at.elapsed() < PRUNE_EVERY) {
            return;
        }
        self.pruned = Some(Instant::now());
        if let Some(apart) = self.app.wall_clocks().warnings().first() {
            tracing::warn!(%apart, "nothing is removed from the archive while clocks are apart");
            return;
        }
        // By the cluster's clock, and whatever that says, no faster than bases come about.
        let now = self.app.wall_now();
        let most = self.thinned.may_go(self.settings.base_every, self.since.elapsed());
        let pruned = prune(self.archive.clone(), self.settings.clone(), now, most);
        self.pruning = Some(watchdog::spawn(background::patient_task(pruned)));
    }

    /// Takes what was done beside.
    async fn reap(&mut self) -> Result<(), NotArchived> {
        if let Some(base) = self.base.take_if(|base| base.is_finished()) {
            let done = base.await.map_err(io::Error::other).and_then(|done| done);
            match done.map_err(NotArchived::from).and_then(|done| Ok(done?)) {
                Ok(manifest) => self.uploaded = Some(manifest),
                Err(error) => {
                    self.base_failed = Some(Instant::now());
                    self.app.backups().ledger().note_failed(BackupFor::Archive);
                    self.ledger.note_trouble(format!("no base: {error}"));
                    tracing::warn!(%error, "no base was archived; it is tried again");
                }
            }
        }
        if let Some(pruning) = self.pruning.take_if(|pruning| pruning.is_finished()) {
            let Pruned { removed, bases, listing } = pruning.await.map_err(io::Error::other)???;
            self.ledger.removed.fetch_add(removed, Relaxed);
            self.thinned.bases += bases;
            self.note_listing(&listing);
        }
        Ok(())
    }
}

/// Tells whether another base is due because this one, or the last piece after it, was written in another way than this node writes.
///
/// A base is outdated if it is encrypted for other keys, if it has a MAC and this node writes none, if its MAC is missing or by another secret,
/// or if an older build wrote its entries in another form. Without a new base, the new keys alone could restore nothing, and a later build would
/// have to read both forms. A last piece with no MAC, or one by another secret, comes from another leader that ended before its own base.
async fn is_outdated(
    archive: &Archive,
    base: BaseName,
    last: Option<SegmentName>,
    recipients: &Recipients,
) -> Result<bool, NotArchived> {
    let of = archive.with_first_mac();
    let looked = background::patient_task(async move {
        let proven = match last {
            Some(last) if of.has_macs() => of.prove_segment(&last).await.map(|_bytes| ()),
            _ => Ok(()),
        };
        (proven, of.manifest(&base).await)
    });
    let (proven, manifest) = looked.await?;
    let is_unproven = |error: &ArchiveError| matches!(error, ArchiveError::Locked { .. } | ArchiveError::Forged { .. });
    if proven.is_err_and(|errors| errors.iter().any(is_unproven)) {
        return Ok(true);
    }
    match manifest {
        Ok(manifest) => {
            let (theirs, ours): (BTreeSet<_>, BTreeSet<_>) =
                (manifest.recipients.into_iter().collect(), recipients.names().collect());
            let is_as_ours = theirs == ours && manifest.mac.is_some() == archive.has_macs();
            Ok(!is_as_ours || manifest.entry_format < ENTRY_FORMAT)
        }
        // It has no MAC, or one by another key than what follows it.
        Err(ArchiveError::Locked { .. } | ArchiveError::Forged { .. }) => Ok(true),
        // Trials tell of it.
        Err(error) if error.is_of_an_object() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes what nobody needs any more. Removes nothing while the last trial of a restore failed or its note is not valid, since that may still be
/// needed. If no trials are made, a note that is not valid counts as none.
async fn prune(
    archive: Archive,
    settings: ArchiveSettings,
    now: WallMillis,
    most: usize,
) -> Result<Pruned, ArchiveError> {
    let noted = archive.verified().await;
    let mut catalogue = archive.catalogue().await?;
    let verified = match noted {
        Err(error) if error.is_of_an_object() && settings.tries_restores() => {
            tracing::warn!(%error, "nothing is removed from the archive until a restore was tried anew");
            return Ok(Pruned { removed: 0, bases: 0, listing: Listing::by(&catalogue) });
        }
        Err(error) if error.is_of_an_object() => {
            tracing::warn!(%error, "what the last try of a restore noted is not taken");
            None
        }
        noted => noted?,
    };
    if let Some(fault) = verified.as_ref().and_then(|verified| verified.fault.as_ref()) {
        tracing::warn!(fault, "nothing is removed from the archive, since a restore was tried and is not to be had");
        return Ok(Pruned { removed: 0, bases: 0, listing: Listing::by(&catalogue) });
    }
    let good = verified.map(|verified| verified.index);
    let gone = settings.retention.superfluous(&catalogue, now, good, most);
    // Bases first: what is left without its entries would be half of something.
    for base in &gone.bases {
        archive.remove_base(base).await?;
    }
    archive.remove_segments(&gone.segments).await?;
    let (bases, removed) = (gone.bases.len(), (gone.bases.len() + gone.segments.len()) as u64);
    catalogue.remove(&gone);
    Ok(Pruned { removed, bases, listing: Listing::by(&catalogue) })
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
        let taken = self.backups().take_whole(BackupFor::Archive, |header, whole| {
            archive.upload_base(handle, &manifest(header), &settings.recipients, |sink| {
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
        entry_format: ENTRY_FORMAT,
        written_at: header.taken_at,
        bytes: 0,
        sha256: String::new(),
        recipients: Vec::new(),
        mac: None,
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
