//! A state out of an archive, at a point: the newest base before it, and the entries up to it.
//!
//! Owns the way from a point to a state, and what is said of a point that cannot be reached. All that is read is checked: each object
//! against its checksum, the entries against one another, and the state against the digests that the node noted which archived it.
//! Blocks; used by verbs of the program, and by a node that tries whether a restore can be had.

use std::path::Path;

use quorate_archive::{
    Archive, ArchiveError, BaseManifest, Catalogue, Keys, Plan, Position, Segment, SegmentName, Target, Unreachable,
    WallMillis,
};
use quorate_store::offline::{OfflineError, Replay, ReplayError, Until};
use quorate_store::raft::wire::LogIdRecord;
use tokio::runtime::Handle;

/// Form of the entries that this build reads.
pub const ENTRY_FORMAT: u32 = quorate_store::codec::FORMAT_VERSION as u32;

/// Why there is no such state. A sentence for people.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// An object cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The point cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// What is read does not fit together.
    #[error("{object}: {source}. Restore a point before it, or begin with a later base")]
    Broken {
        /// The object.
        object: String,
        /// What is wrong.
        source: ReplayError,
    },
    /// The state is not the one that was archived.
    #[error(
        "after {object} the state is at revision {revision} with digest {digest}, and the node that archived it noted {noted}: \
         the archive and this build do not give the same state; keep the archive as it is, and report this"
    )]
    Differs {
        /// The object.
        object: String,
        /// The revision reached.
        revision: u64,
        /// The digest reached.
        digest: String,
        /// What was noted.
        noted: String,
    },
    /// The directory that it is made in.
    #[error(transparent)]
    Offline(#[from] OfflineError),
    /// Whoever wanted it gave it up.
    #[error("{0}")]
    GivenUp(String),
}

impl RebuildError {
    /// Whether something is wrong with what the archive holds, rather than with reading it just now.
    pub fn is_of_the_archive(&self) -> bool {
        match self {
            Self::Archive(error) => {
                matches!(
                    error,
                    ArchiveError::Damaged { .. } | ArchiveError::Locked { .. } | ArchiveError::UnknownFormat { .. }
                ) || error.is_not_found()
            }
            Self::Unreachable(_) | Self::Differs { .. } => true,
            Self::Broken { source, .. } => !matches!(source, ReplayError::Offline(_)),
            Self::Offline(_) | Self::GivenUp(_) => false,
        }
    }
}

/// An archive, and what it takes to read it.
pub struct Source {
    /// The archive.
    pub archive: Archive,
    /// Keys, where it is encrypted.
    pub keys: Keys,
    /// Runs what reads it.
    pub handle: Handle,
}

/// What is about to be done, for whoever watches. An error gives it up.
pub trait Watcher {
    /// So many bytes of the base's rows are taken in.
    fn on_base(&mut self, bytes: u64) -> Result<(), String>;
    /// Pieces of the log are applied, and so many there are.
    fn on_segment(&mut self, done: usize, of: usize) -> Result<(), String>;
}

/// What is needed for a point.
pub struct Wanted {
    /// All that there is.
    pub catalogue: Catalogue,
    /// What is needed of it.
    pub plan: Plan,
    /// The manifest of its base.
    pub manifest: BaseManifest,
    /// The point.
    pub target: Target,
}

impl Source {
    /// Looks what is needed for a point. Changes nothing.
    ///
    /// # Errors
    /// It cannot be reached, or the archive cannot be read.
    pub fn want(&self, target: Target) -> Result<Wanted, RebuildError> {
        let catalogue = self.handle.block_on(self.archive.catalogue())?;
        let plan = catalogue.plan(target);
        let plan = plan.map_err(|why| RebuildError::Unreachable(unreachable_text(&self.archive, why)))?;
        let manifest = self.handle.block_on(self.archive.manifest(&plan.base))?;
        Ok(Wanted { catalogue, plan, manifest, target })
    }

    /// Makes the state in `dir`, which is there and empty.
    ///
    /// # Errors
    /// Something of what is needed is missing, damaged, locked, or does not fit together. What is in `dir` is of no use then.
    pub fn rebuild(&self, wanted: &Wanted, dir: &Path, watcher: &mut dyn Watcher) -> Result<Replay, RebuildError> {
        let base = format!("base {}", wanted.plan.base);
        let mut given_up = None;
        let replay = self.archive.base(&self.handle, &wanted.manifest, &self.keys, |state| {
            let state = GivingUp { state, given_up: &mut given_up, watcher: &mut *watcher, bytes: 0 };
            let begun = Replay::begin(dir, state, |_| {});
            begun.map_err(|source| RebuildError::Broken { object: base.clone(), source })
        });
        if let Some(reason) = given_up {
            return Err(RebuildError::GivenUp(reason));
        }
        let mut replay = replay?;
        let noted = (wanted.manifest.revision, wanted.manifest.digest.as_str());
        check_noted(&base, &replay, noted)?;
        let segments = &wanted.plan.segments;
        let count = segments.len();
        for (done, name) in segments.iter().enumerate() {
            watcher.on_segment(done, count).map_err(RebuildError::GivenUp)?;
            self.apply(&mut replay, name, until(wanted.target, &segments[done + 1..]))?;
        }
        watcher.on_segment(count, count).map_err(RebuildError::GivenUp)?;
        Ok(replay)
    }

    fn apply(&self, replay: &mut Replay, name: &SegmentName, until: Until) -> Result<(), RebuildError> {
        let Segment { head, entries } = self.handle.block_on(self.archive.segment(name, &self.keys))?;
        if head.entry_format != ENTRY_FORMAT {
            let (found, known) = (head.entry_format, ENTRY_FORMAT);
            return Err(ArchiveError::UnknownFormat { object: name.to_string(), found, known }.into());
        }
        let applied = replay.apply(head.before.map(log_id), &entries, until);
        applied.map_err(|source| RebuildError::Broken { object: name.to_string(), source })?;
        if replay.at().log_id != log_id(head.last) || replay.at().is_reached {
            return Ok(());
        }
        if matches!(until, Until::Index(_) | Until::Wall(_)) {
            check_clock(name, replay)?;
        }
        head.after.map_or(Ok(()), |after| check_noted(&name.to_string(), replay, (after.revision, &after.digest)))
    }
}

/// How far to go in a piece of a plan that has these behind it.
fn until(target: Target, behind: &[SegmentName]) -> Until {
    match (target, behind.last()) {
        (Target::Latest, _) => Until::End,
        (Target::Revision(revision), _) => Until::Revision(revision),
        // The last one holds a moment up to the time: all before it is needed, wherever the clock was meanwhile. Of what is in both,
        // only the last one shows whether it is.
        (Target::Time(_), Some(last)) => Until::Index(last.first.saturating_sub(1)),
        (Target::Time(wall), None) => Until::Wall(wall),
    }
}

/// By the clocks in their names pieces were chosen for a time: where one is wrong, the time may not be reached.
fn check_clock(name: &SegmentName, replay: &Replay) -> Result<(), RebuildError> {
    let wall = replay.at().wall;
    if wall == name.wall {
        return Ok(());
    }
    let (noted, found) = (time(name.wall), time(wall));
    let what = format!("by its name the clock of the log is at {noted} behind it, and it is at {found}");
    Err(RebuildError::Broken { object: name.to_string(), source: ReplayError::Broken(what) })
}

/// Reads the rows of a base for as long as whoever watches wants it.
struct GivingUp<'a> {
    state: &'a mut dyn std::io::Read,
    given_up: &'a mut Option<String>,
    watcher: &'a mut dyn Watcher,
    bytes: u64,
}

impl std::io::Read for GivingUp<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.state.read(into)?;
        self.bytes += count as u64;
        if let Err(reason) = self.watcher.on_base(self.bytes) {
            *self.given_up = Some(reason.clone());
            return Err(std::io::Error::other(reason));
        }
        Ok(count)
    }
}

fn check_noted(object: &str, replay: &Replay, noted: (u64, &str)) -> Result<(), RebuildError> {
    let at = replay.at();
    let digest = format!("{:032x}", at.digest);
    if (at.revision, digest.as_str()) == noted {
        return Ok(());
    }
    let noted = format!("revision {} with digest {}", noted.0, noted.1);
    Err(RebuildError::Differs { object: object.to_owned(), revision: at.revision, digest, noted })
}

/// The place of an entry as the log has it.
pub fn log_id(position: Position) -> LogIdRecord {
    LogIdRecord { term: position.term, node: position.node, index: position.index }
}

/// The place of an entry as an archive has it.
pub fn position(id: LogIdRecord) -> Position {
    Position { term: id.term, node: id.node, index: id.index }
}

/// Why a point cannot be reached, and which can.
fn unreachable_text(archive: &Archive, why: Unreachable) -> String {
    match why {
        Unreachable::NoBase => format!(
            "{archive} holds no whole base, so nothing can be restored from it: a node writes one when it begins to archive"
        ),
        Unreachable::TooOld(base) => format!(
            "{archive} begins at {}, revision {}: ask for a point from there on",
            time(base.wall),
            base.revision
        ),
        Unreachable::TooNew(reach) => format!(
            "{archive} ends at {}, revision {}: ask for a point up to that, or for the latest by --latest",
            time(reach.wall),
            reach.revision
        ),
        Unreachable::Gap { before, to, after } => {
            let on = after.map(|after| format!(", or from {}, revision {}, on", time(after.wall), after.revision));
            format!(
                "{archive} has a gap: entries {} to {to} of the log are missing. Ask for a point up to {}, revision {}, by --at or \
                 --revision{}",
                before.index + 1,
                time(before.wall),
                before.revision,
                on.unwrap_or_default()
            )
        }
    }
}

/// A time of a wall clock, for people.
pub fn time(millis: WallMillis) -> String {
    let known = i64::try_from(millis).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    known.map_or_else(|| format!("{millis} ms"), |time| time.to_string())
}
