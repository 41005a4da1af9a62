//! Trying on a schedule whether what is promised can be had: the base before the newest and all that follows it are made into a state, in
//! a directory that is removed again, whose digest is compared with that of the newest base on the way. Other bases and pieces are read in
//! turn, each within [`ROUNDS`] tries.
//!
//! Owns when, the pace, and what is noted. The leader does it, on its own disk, and gives way to the room and the time that the cluster
//! needs. What it finds stands in the archive, so that the next leader knows, until it is mended. What is locked by a key of before is no
//! fault where the newest base and all that follows it can be had: it is told, and whoever keeps that key can have it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use quorate_archive::{Archive, ArchiveError, Catalogue, Gap, Listed, SegmentName, Verified, WallMillis};
use quorate_node_core::millis::{millis, wall_now};
use quorate_threads::background;

use super::{ArchiveLedger, ArchiveSettings, place};
use crate::app::App;
use crate::app::pace::Pace;
use crate::rebuild::{End, RebuildError, Scratch, Source, Watcher};

/// How often it is looked whether a try is due.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// What has to stay free beyond what writes need.
const SPARE_BYTES: u64 = 256 << 20;
/// After so many tries all that is kept was read.
const ROUNDS: u64 = 7;
/// So often one is begun anew where objects went meanwhile.
const TRIES: usize = 3;
/// Most faults that a trial reports: its note has to stay small enough to be read, and so has the status of nodes.
const FAULTS_MAX: usize = 20;
/// Most damaged objects that are noted, to be read first by the next trial. Others are met again in turn.
const DAMAGED_MAX: usize = 1_000;
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
            Ok(Some(Verified { fault: None, index, revision, locked, .. })) => {
                tracing::info!(index, revision, "tried a restore of the archive: it is to be had");
                if let Some(locked) = locked {
                    tracing::warn!(
                        locked,
                        "points before the newest base can be restored with another key alone: keep that"
                    );
                }
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
    let Some(cluster) = app.members().cluster_id() else { return Ok(None) };
    // Whoever archives finds the place, makes it where it has to be made, and tells where another one is there.
    if ledger.location().is_none() {
        return Ok(None);
    }
    let (location, macs) = (settings.location.clone(), settings.macs.clone());
    // A store is opened with all that its certificates need.
    let opened = background::patiently(move || {
        let archive = Archive::of(location.open_existing()?, cluster).with_macs(macs);
        let is_there = place::check(&archive).is_ok();
        Ok::<_, ArchiveError>(is_there.then_some(archive))
    });
    let opened = opened.await.map_err(|error| RebuildError::GivenUp(error.to_string()))?;
    let Some(archive) = opened? else { return Ok(None) };
    let last = known(archive.verified().await)?;
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

/// The note of the last trial, if it is valid. A damaged one, or one without a MAC by the nodes' secrets, counts as none; the next trial writes
/// another, and nothing is removed until then.
fn known(noted: Result<Option<Verified>, ArchiveError>) -> Result<Option<Verified>, ArchiveError> {
    match noted {
        Err(error) if error.is_of_an_object() => {
            tracing::warn!(%error, "what the last try of a restore noted is not taken; the next one writes it anew");
            Ok(None)
        }
        noted => noted,
    }
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
        let list = || self.source.handle.block_on(self.source.archive.catalogue());
        let mut catalogue = list()?;
        for _ in 0..TRIES {
            if catalogue.bases.is_empty() {
                return Ok(None);
            }
            let verified = self.make_once(app, &catalogue)?;
            if verified.fault.is_none() {
                return Ok(Some(verified));
            }
            // What is removed while it is tried is missed, and nothing is wrong with that.
            let now = list()?;
            if !has_less(&now, &catalogue) {
                return Ok(Some(verified));
            }
            catalogue = now;
        }
        Err(RebuildError::GivenUp("objects were removed from the archive during each try".into()))
    }

    fn make_once(&self, app: &App, catalogue: &Catalogue) -> Result<Verified, RebuildError> {
        let mut pace = Pace::begin(app.state().clone());
        let mut verified = Verified { at: wall_now(), node: app.node_id(), ..Verified::default() };
        let mut faults = Vec::new();
        match self.restore(app, &mut pace, &mut verified) {
            Ok(passed_over) => faults.extend(passed_over),
            Err(error) if error.is_of_the_archive() => faults.push(error.to_string()),
            Err(error) => return Err(error),
        }
        let gone = self.read_in_turn(app, &mut pace, catalogue, &mut verified, &mut faults)?;
        // Others are merged or pruned while these are read: what is still named, or missing between others, is lost.
        let later = match gone.is_empty() {
            true => None,
            false => Some(self.source.handle.block_on(self.source.archive.catalogue())?),
        };
        let now = later.as_ref().unwrap_or(catalogue);
        faults.extend(gone.iter().filter(|name| now.segments.contains(name)).map(|name| format!("{name} is lost")));
        verified.gaps = gaps(now, app.wall_now().saturating_sub(self.keep_ms));
        verified.fault = joined(faults);
        Ok(verified)
    }

    /// Makes the state at the end of the archive; what could not be had for it, though there was another way.
    fn restore(&self, app: &App, pace: &mut Pace, verified: &mut Verified) -> Result<Vec<String>, RebuildError> {
        let state_dir = app.state().state_dir();
        let dir = state_dir.parent().unwrap_or(state_dir).join(SCRATCH);
        let scratch =
            Scratch::make(dir, |why| tracing::warn!(why, "what a restore was tried in stays until the next one"))?;
        let mut watcher = Modest { app, pace, base: 0, log: 0 };
        let End { replay, passed_over, locked } = self.source.rebuild_end(scratch.path(), &mut watcher)?;
        let at = replay.at();
        (verified.index, verified.revision, verified.wall) = (at.log_id.index, at.revision, at.wall);
        verified.locked = locked;
        Ok(passed_over)
    }

    /// Reads what was damaged, the next part of all that is kept, and the newest base, which the restore did not begin with. Gives those objects
    /// of the log that are not there any more.
    fn read_in_turn(
        &self,
        app: &App,
        pace: &mut Pace,
        catalogue: &Catalogue,
        verified: &mut Verified,
        faults: &mut Vec<String>,
    ) -> Result<Vec<SegmentName>, RebuildError> {
        let (archive, handle, from) = (&self.source.archive, &self.source.handle, self.last.read_to);
        // How many bytes were read of an object.
        let mut note = |name: String, read: Result<u64, Vec<ArchiveError>>| {
            let mut errors = match read {
                Ok(bytes) => return Ok(bytes),
                Err(errors) => errors,
            };
            // Without a MAC: of before there was a key for that, or nothing that a restore would take.
            errors.retain(|error| !matches!(error, ArchiveError::Locked { .. }));
            if errors.is_empty() {
                return Ok(0);
            }
            for error in errors {
                if !error.is_of_an_object() {
                    return Err(error);
                }
                faults.push(quorate_archive::with_causes(&error));
            }
            verified.damaged.push(name);
            Ok(0)
        };
        let was_damaged = |name: &str| self.last.damaged.iter().any(|damaged| damaged == name);
        let mut segments = handle.block_on(archive.segments())?;
        segments.sort_unstable();
        let turn = turn(&segments, from);
        // Those of the entries that are read, so that bases and pieces have the same rounds.
        let entries = |place: usize| segments.get(place).map_or(u64::MAX, |(segment, _)| segment.first);
        let stretch = if turn.start == 0 { 0 } else { entries(turn.start) }..entries(turn.end);
        let newest = catalogue.bases.last();
        for base in &catalogue.bases {
            if Some(base) != newest && !stretch.contains(&base.index) && !was_damaged(&base.to_string()) {
                continue;
            }
            go_on(app).map_err(RebuildError::GivenUp)?;
            let (bytes, wrong) = archive.prove_base(handle, base);
            note(base.to_string(), if wrong.is_empty() { Ok(bytes) } else { Err(wrong) })?;
            passed(pace, bytes);
        }
        let mut gone = Vec::new();
        for (place, (segment, _)) in segments.iter().enumerate() {
            if !turn.contains(&place) && !was_damaged(&segment.to_string()) {
                continue;
            }
            go_on(app).map_err(RebuildError::GivenUp)?;
            match handle.block_on(archive.prove_segment(segment)) {
                Err(errors) if errors.iter().all(ArchiveError::is_not_found) => gone.push(segment.clone()),
                read => passed(pace, note(segment.to_string(), read)?),
            }
        }
        verified.damaged.truncate(DAMAGED_MAX);
        verified.read_to = if turn.end == segments.len() { 0 } else { entries(turn.end) };
        Ok(gone)
    }
}

/// The first faults in one sentence, each once: an object that the restore did without was also read in turn. After a secret was removed from the
/// nodes, each object written with it is a fault.
fn joined(mut faults: Vec<String>) -> Option<String> {
    let mut told = BTreeSet::new();
    faults.retain(|fault| told.insert(fault.clone()));
    if let Some(more) = faults.len().checked_sub(FAULTS_MAX).filter(|more| *more > 0) {
        faults.truncate(FAULTS_MAX);
        faults.push(format!("and {more} more; `quorate-node archive verify` names all"));
    }
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// The places of the objects that are read next, from the one of this entry on: so many that all bytes are read in [`ROUNDS`] tries.
fn turn(segments: &[Listed], from: u64) -> Range<usize> {
    let share = segments.iter().map(|(_, bytes)| bytes).sum::<u64>() / ROUNDS;
    let begin = segments.partition_point(|(segment, _)| segment.first < from);
    let begin = if begin == segments.len() { 0 } else { begin };
    let mut read = 0;
    let is_enough = |(_, bytes): &Listed| {
        read += bytes;
        read > share
    };
    let end = segments[begin..].iter().position(is_enough).map_or(segments.len(), |place| begin + place + 1);
    begin..end
}

/// Waits as long as so many bytes should have taken.
fn passed(pace: &mut Pace, bytes: u64) {
    pace.count(usize::try_from(bytes).unwrap_or(usize::MAX));
    pace.keep();
}

/// Whether something is gone since an earlier listing.
fn has_less(now: &Catalogue, before: &Catalogue) -> bool {
    before.bases.iter().any(|base| now.bases.binary_search(base).is_err())
        || before.segments.iter().any(|segment| now.segments.binary_search(segment).is_err())
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
    match app.space().has_room_beside(SPARE_BYTES) {
        true => Ok(()),
        false => Err("the data disk has no room to try a restore; writes of the cluster come first".into()),
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
        passed(self.pace, more);
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

#[cfg(test)]
mod tests {
    use quorate_archive::{BaseName, Form};

    use super::*;

    #[test]
    fn all_bytes_are_read_in_turn_however_large_the_objects_are() {
        let object = |n: u64| {
            let name = format!("{n:020}-{n:020}-x-1-1-{n:016x}.log").parse().expect("a name");
            // Bundles of days, and pieces of the last hours.
            (name, if n < 9 { 64 << 20 } else { 600 })
        };
        let segments: Vec<Listed> = (1..1_000).map(object).collect();
        let (mut from, mut read) = (0, Vec::new());
        for round in 1..=ROUNDS {
            let turn = turn(&segments, from);
            let bytes: u64 = segments[turn.clone()].iter().map(|(_, bytes)| bytes).sum();
            assert!(bytes <= 128 << 20, "{bytes} bytes in round {round}");
            from = segments.get(turn.end).map_or(0, |(segment, _)| segment.first);
            read.extend(turn);
        }
        read.sort_unstable();
        read.dedup();
        assert_eq!(read.len(), segments.len());
        assert_eq!(turn(&[], 7), 0..0);
    }

    #[test]
    fn a_damaged_object_is_told_once_however_many_are_told_between() {
        let faults = ["a is damaged", "b is damaged", "a is damaged", "b is damaged"].map(str::to_owned);
        assert_eq!(joined(faults.to_vec()).as_deref(), Some("a is damaged; b is damaged"));
        assert_eq!(joined(Vec::new()), None);
    }

    #[test]
    fn of_many_faults_the_first_are_told_and_how_many_more_there_are() {
        let faults = |count: usize| (0..count).map(|n| format!("object {n} is not authentic")).collect::<Vec<_>>();
        let told = joined(faults(100_000)).expect("there are some");
        assert!(told.len() < 1_000 && told.starts_with("object 0 is not authentic; object 1 is"), "{told}");
        assert!(told.contains("; and 99980 more; "), "{told}");
        assert_eq!(joined(faults(FAULTS_MAX)), Some(faults(FAULTS_MAX).join("; ")));
    }

    #[test]
    fn what_was_removed_since_is_seen_and_what_came_is_not() {
        let base = |index| BaseName { index, term: 1, revision: index, wall: index, node: 1 };
        let segment = |first| SegmentName {
            first,
            last: first + 9,
            revision: None,
            wall_min: 0,
            wall: 0,
            checksum: 0,
            form: Form::Plain,
        };
        let all = |bases: &[u64], segments: &[u64]| Catalogue {
            bases: bases.iter().copied().map(base).collect(),
            segments: segments.iter().copied().map(segment).collect(),
            ..Catalogue::default()
        };
        let before = all(&[10, 20], &[1, 11]);
        assert!(!has_less(&before, &before) && !has_less(&all(&[10, 20, 30], &[1, 11, 21]), &before));
        assert!(has_less(&all(&[20, 30], &[1, 11]), &before) && has_less(&all(&[10, 20], &[11, 21]), &before));
    }

    #[test]
    fn a_note_that_is_damaged_is_written_anew_and_one_that_cannot_be_read_now_is_read_again() {
        let object = || "verified.json".to_owned();
        let damaged = ArchiveError::Damaged { object: object(), what: "a byte is another".into() };
        let without_mac = ArchiveError::Locked { object: object(), what: "has no MAC".into() };
        for error in [damaged, without_mac, ArchiveError::Forged { object: object() }] {
            assert_eq!(known(Err(error)).expect("the next try goes on"), None);
        }
        assert_eq!(known(Ok(None)).expect("nothing is noted"), None);
        assert!(known(Err(ArchiveError::Refused("no route".into()))).is_err());
    }
}
