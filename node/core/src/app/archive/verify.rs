//! Trying on a schedule whether a restore can be had: the newest base and all that follows it, into a directory that is removed again.
//!
//! Owns when, the pace, and what is noted. The leader does it, on its own disk, and gives way to the room and the time that the cluster
//! needs. What it finds stands in the archive, so that the next leader knows.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_archive::{Archive, Target, Verified};
use quorate_store::offline::OfflineError;
use quorate_store::{background, durable};

use super::{ArchiveLedger, ArchiveSettings};
use crate::app::pace::Pace;
use crate::app::{App, wall_now};
use crate::millis::millis;
use crate::rebuild::{RebuildError, Source, Watcher};

/// How often it is looked whether a try is due.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// What has to stay free beyond what writes need.
const SPARE_BYTES: u64 = 256 << 20;
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
    let archive = Archive::of(settings.location.open()?, cluster);
    if let Some(last) = archive.verified().await? {
        ledger.note_verified(&last);
        // A fault may have been mended, and until then nothing is removed: look again sooner.
        let pause = if last.fault.is_some() { millis(every) / 8 } else { millis(every) };
        if wall_now().saturating_sub(last.at) < pause && last.at <= wall_now() {
            return Ok(None);
        }
    }
    if archive.catalogue().await?.bases.is_empty() {
        return Ok(None);
    }
    let (trier, keys, handle) = (app.clone(), settings.keys.clone(), tokio::runtime::Handle::current());
    let source = Source { archive: archive.clone(), keys, handle };
    let tried = background::blocking(move || try_once(&trier, &source)).await;
    let tried = tried.unwrap_or_else(|error| Err(RebuildError::GivenUp(error.to_string())));
    let verified = match tried {
        Ok(verified) => verified,
        Err(error) if error.is_of_the_archive() => {
            let fault = Some(error.to_string());
            Verified { at: wall_now(), node: app.node_id(), index: 0, revision: 0, wall: 0, fault }
        }
        Err(error) => return Err(error),
    };
    archive.note_verified(&verified).await?;
    ledger.note_verified(&verified);
    Ok(Some(verified))
}

fn try_once(app: &App, source: &Source) -> Result<Verified, RebuildError> {
    let scratch = Scratch::make(app.state().state_dir())?;
    let wanted = source.want(Target::Latest)?;
    let mut watcher = Modest { app, pace: Pace::begin(app.state().clone()), seen: 0 };
    let replay = source.rebuild(&wanted, &scratch.0, &mut watcher)?;
    let at = replay.at();
    Ok(Verified {
        at: wall_now(),
        node: app.node_id(),
        index: at.log_id.index,
        revision: at.revision,
        wall: at.wall,
        fault: None,
    })
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
    pace: Pace,
    seen: u64,
}

impl Modest<'_> {
    fn go_on(&self) -> Result<(), String> {
        if self.app.is_stopping() {
            return Err("the node is stopping".into());
        }
        match self.app.has_room_beside(SPARE_BYTES) {
            true => Ok(()),
            false => Err("the data disk has no room to try a restore; writes of the cluster come first".into()),
        }
    }
}

impl Watcher for Modest<'_> {
    fn on_base(&mut self, bytes: u64) -> Result<(), String> {
        self.go_on()?;
        self.pace.count(usize::try_from(bytes - self.seen).unwrap_or(usize::MAX));
        self.seen = bytes;
        self.pace.keep();
        Ok(())
    }

    fn on_segment(&mut self, _done: usize, _of: usize) -> Result<(), String> {
        self.go_on()
    }
}
