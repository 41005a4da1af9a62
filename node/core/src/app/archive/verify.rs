//! Trying on a schedule whether what is promised can be had: the base before the newest and all that follows it are made into a state, in
//! a directory that is removed again, whose digest is compared with that of the newest base on the way. Other bases and pieces are read in
//! turn, each within [`ROUNDS`] tries.
//!
//! Owns when, the pace, and what is noted. The leader does it, on its own disk, and gives way to the room and the time that the cluster
//! needs. What it finds stands in the archive, so that the next leader knows, until it is mended.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_archive::{Archive, ArchiveError, Catalogue, Gap, Target, Verified, WallMillis};
use quorate_store::offline::OfflineError;
use quorate_store::{background, durable};

use super::{ArchiveLedger, ArchiveSettings};
use crate::app::pace::Pace;
use crate::app::{App, wall_now};
use crate::millis::millis;
use crate::rebuild::{Begin, RebuildError, Source, Watcher};

/// How often it is looked whether a try is due.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// What has to stay free beyond what writes need.
const SPARE_BYTES: u64 = 256 << 20;
/// After so many tries all that is kept was read.
const ROUNDS: usize = 7;
/// Where it is tried, beside the state.
const SCRATCH: &str = "archive-trial";

/// Tries until it is dropped.
pub async fn run(app: App, settings: ArchiveSettings, ledger: Arc<ArchiveLedger>) {
    let Some(every) = settings.verify_every.filter(|_| settings.can_read()) else { return };
    let look_every = LOOK_EVERY.min(every);
    loop {
        tokio::time::sleep(look_every).await;
        if app.unready_reason().is_some() || app.leader_hint().leader_id != Some(app.node_id()) {
            continue;
        }
        match try_where_due(&app, &settings, &ledger, every).await {
            Ok(None) => {}
            Ok(Some(Verified { fault: None, index, revision, .. })) => {
                tracing::info!(index, revision, "tried a restore of the archive: it is to be had");
            }
            Ok(Some(Verified { fault: Some(fault), .. })) => {
                tracing::error!(fault, "tried a restore of the archive: it is not to be had");
            }
            Err(error) => {
                tracing::warn!(%error, "a restore of the archive could not be tried; it is tried again");
                tokio::time::sleep(4 * look_every).await;
            }
        }
    }
}

async fn try_where_due(
    app: &App,
    settings: &ArchiveSettings,
    ledger: &ArchiveLedger,
    every: Duration,
) -> Result<Option<Verified>, RebuildError> {
    let Some(cluster) = app.inner.identity.load().cluster_id else { return Ok(None) };
    let location = settings.location.clone();
    // A store is opened with all that its certificates need.
    let place = background::patiently(move || location.open()).await;
    let place = place.map_err(|error| RebuildError::GivenUp(error.to_string()))??;
    let archive = Archive::of(place, cluster);
    let last = archive.verified().await?;
    if let Some(last) = &last {
        ledger.note_verified(last);
        // A fault may have been mended, and until then nothing is removed: look again sooner.
        let pause = if last.fault.is_some() { millis(every) / 8 } else { millis(every) };
        if wall_now().saturating_sub(last.at) < pause && last.at <= wall_now() {
            return Ok(None);
        }
    }
    let (trier, keys, handle) = (app.clone(), settings.keys.clone(), background::patient_handle());
    let source = Source { archive: archive.clone(), keys, handle };
    let trial = Trial { source, last: last.unwrap_or_default(), keep_ms: settings.retention.keep_ms };
    let tried = background::patiently(move || trial.make(&trier)).await;
    let tried = tried.unwrap_or_else(|error| Err(RebuildError::GivenUp(error.to_string())));
    let Some(verified) = tried? else { return Ok(None) };
    archive.note_verified(&verified).await?;
    ledger.note_verified(&verified);
    Ok(Some(verified))
}

/// One try.
struct Trial {
    source: Source,
    /// What the one before came to.
    last: Verified,
    /// Every point of the last so many milliseconds is promised.
    keep_ms: WallMillis,
}

impl Trial {
    /// What it comes to; `None` where nothing is archived yet.
    fn make(self, app: &App) -> Result<Option<Verified>, RebuildError> {
        let catalogue = self.source.handle.block_on(self.source.archive.catalogue())?;
        if catalogue.bases.is_empty() {
            return Ok(None);
        }
        let mut pace = Pace::begin(app.state().clone());
        let mut verified = Verified { at: wall_now(), node: app.node_id(), ..Verified::default() };
        let mut faults = Vec::new();
        match self.restore(app, &mut pace, &mut verified) {
            Ok(passed_over) => faults.extend(passed_over),
            Err(error) if error.is_of_the_archive() => faults.push(error.to_string()),
            Err(error) => return Err(error),
        }
        verified.gaps = gaps(&catalogue, app.wall_now().saturating_sub(self.keep_ms));
        self.read_in_turn(app, &mut pace, &catalogue, &mut verified, &mut faults)?;
        faults.dedup();
        verified.fault = (!faults.is_empty()).then(|| faults.join("; "));
        Ok(Some(verified))
    }

    /// Makes the state at the end of the archive; what could not be had for it, though there was another way.
    fn restore(&self, app: &App, pace: &mut Pace, verified: &mut Verified) -> Result<Vec<String>, RebuildError> {
        let scratch = Scratch::make(app.state().state_dir())?;
        let mut wanted = self.source.want(Target::Latest, Begin::BeforeNewest)?;
        let mut watcher = Modest { app, pace, base: 0, log: 0 };
        let replay = self.source.rebuild(&mut wanted, &scratch.0, &mut watcher)?;
        let at = replay.at();
        (verified.index, verified.revision, verified.wall) = (at.log_id.index, at.revision, at.wall);
        Ok(wanted.passed_over)
    }

    /// Reads what was damaged, the next part of all that is kept, and the newest base, which the restore did not begin with.
    fn read_in_turn(
        &self,
        app: &App,
        pace: &mut Pace,
        catalogue: &Catalogue,
        verified: &mut Verified,
        faults: &mut Vec<String>,
    ) -> Result<(), RebuildError> {
        let (archive, handle, from) = (&self.source.archive, &self.source.handle, self.last.read_to);
        let mut note = |name: String, read: Result<(), ArchiveError>| match read {
            Ok(()) => Ok(()),
            Err(error) if error.is_of_an_object() => {
                faults.push(quorate_archive::with_causes(&error));
                verified.damaged.push(name);
                Ok(())
            }
            Err(error) => Err(error),
        };
        let was_damaged = |name: &str| self.last.damaged.iter().any(|damaged| damaged == name);
        let share = catalogue.segments.len() / ROUNDS + 1;
        let begin = catalogue.segments.partition_point(|segment| segment.first < from);
        let begin = if begin == catalogue.segments.len() { 0 } else { begin };
        let end = (begin + share).min(catalogue.segments.len());
        // Those of the entries that are read, so that bases and pieces have the same rounds.
        let entries = |place: usize| catalogue.segments.get(place).map_or(u64::MAX, |segment| segment.first);
        let stretch = if begin == 0 { 0 } else { entries(begin) }..entries(end);
        let newest = catalogue.bases.last();
        for base in &catalogue.bases {
            if Some(base) != newest && !stretch.contains(&base.index) && !was_damaged(&base.to_string()) {
                continue;
            }
            go_on(app).map_err(RebuildError::GivenUp)?;
            let manifest = handle.block_on(archive.manifest(base));
            let read = manifest.and_then(|manifest| {
                archive.check_base(handle, &manifest)?;
                pace.count(usize::try_from(manifest.bytes).unwrap_or(usize::MAX));
                Ok(())
            });
            note(base.to_string(), read)?;
            pace.keep();
        }
        for (place, segment) in catalogue.segments.iter().enumerate() {
            if !(begin..end).contains(&place) && !was_damaged(&segment.to_string()) {
                continue;
            }
            go_on(app).map_err(RebuildError::GivenUp)?;
            note(segment.to_string(), handle.block_on(archive.check_segment(segment)))?;
            pace.count(usize::try_from(catalogue.bytes).unwrap_or(usize::MAX) / catalogue.segments.len());
            pace.keep();
        }
        verified.read_to = if end == catalogue.segments.len() { 0 } else { entries(end) };
        Ok(())
    }
}

/// Gaps between points of which those behind are newer than `since`.
fn gaps(catalogue: &Catalogue, since: WallMillis) -> Vec<String> {
    let is_kept = |gap: &Gap| gap.after.is_none_or(|after| after.wall > since);
    catalogue.survey().gaps().iter().filter(|gap| is_kept(gap)).map(Gap::to_string).collect()
}

/// Whether there is room and reason to go on.
fn go_on(app: &App) -> Result<(), String> {
    if app.is_stopping() {
        return Err("the node is stopping".into());
    }
    match app.has_room_beside(SPARE_BYTES) {
        true => Ok(()),
        false => Err("the data disk has no room to try a restore; writes of the cluster come first".into()),
    }
}

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn make(state_dir: &Path) -> Result<Self, RebuildError> {
        let dir = state_dir.parent().unwrap_or(state_dir).join(SCRATCH);
        let failed = |source| OfflineError::Io { path: dir.clone(), source };
        if dir.exists() {
            // Of a node that ended meanwhile.
            fs::remove_dir_all(&dir).map_err(failed)?;
        }
        durable::create_dir(&dir).map_err(failed)?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, "what a restore was tried in could not be removed; the next one does it");
        }
    }
}

/// Keeps to the pace of backups, and gives up before it takes the room that writes need.
struct Modest<'a> {
    app: &'a App,
    pace: &'a mut Pace,
    /// Bytes of the base and of the log so far.
    base: u64,
    log: u64,
}

impl Modest<'_> {
    fn pass(&mut self, more: u64) -> Result<(), String> {
        go_on(self.app)?;
        self.pace.count(usize::try_from(more).unwrap_or(usize::MAX));
        self.pace.keep();
        Ok(())
    }
}

impl Watcher for Modest<'_> {
    fn on_base(&mut self, bytes: u64) -> Result<(), String> {
        // It begins anew with another base.
        let more = bytes.checked_sub(self.base).unwrap_or(bytes);
        self.base = bytes;
        self.pass(more)
    }

    fn on_segment(&mut self, _done: usize, _of: usize, bytes: u64) -> Result<(), String> {
        let more = bytes.checked_sub(self.log).unwrap_or(bytes);
        self.log = bytes;
        self.pass(more)
    }
}
