//! A state out of an archive, at a point: the newest base before it, and the entries up to it.
//!
//! Owns the way from a point to a state, and what is said of a point that cannot be reached. All that is read is checked: each object
//! against its checksum, the entries against one another, and the state against the digests that the node noted which archived it. An
//! object that is damaged, missing or locked is passed over where another way reaches the point, and this is told.
//! Blocks; used by verbs of the program, and by a node that tries whether a restore can be had.

use std::fs;
use std::mem;
use std::path::Path;

use quorate_archive::{
    Archive, ArchiveError, BaseManifest, BaseName, Catalogue, Keys, Plan, Position, Segment, SegmentName, Target,
    Unreachable, WallMillis,
};
use quorate_store::durable;
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
    #[error("{object}: {source}")]
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
        self.is_of_an_object() || matches!(self, Self::Unreachable(_) | Self::Differs { .. })
    }

    /// Whether an object cannot be had as it was written. Another may do in its place.
    fn is_of_an_object(&self) -> bool {
        match self {
            Self::Archive(error) => error.is_of_an_object(),
            Self::Broken { source, .. } => !matches!(source, ReplayError::Offline(_)),
            Self::Unreachable(_) | Self::Differs { .. } | Self::Offline(_) | Self::GivenUp(_) => false,
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
    /// Pieces of the log are applied, with so many bytes of entries, and so many pieces there are.
    fn on_segment(&mut self, done: usize, of: usize, bytes: u64) -> Result<(), String>;
    /// Something cannot be had, and it is done without. It begins anew.
    fn on_passed_over(&mut self, _fault: &str) {}
}

/// Which base to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// The newest before the point, which takes least.
    Newest,
    /// The one of this entry.
    At(u64),
    /// One before the newest of all where pieces lead from it to that, so that the way between bases is gone, too.
    BeforeNewest,
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
    /// A base on the way whose state is compared with the one that is made.
    pub checkpoint: Option<BaseManifest>,
    /// What was passed over, and why: sentences for people.
    pub passed_over: Vec<String>,
}

/// Something that is needed.
enum Object {
    Base(BaseName),
    Segment(SegmentName),
}

/// A state was not made, and what could not be had for it.
struct Failed {
    object: Option<Object>,
    error: RebuildError,
}

impl Failed {
    fn on(object: Object, error: RebuildError) -> Box<Self> {
        Box::new(Self { object: Some(object), error })
    }
}

impl From<RebuildError> for Box<Failed> {
    fn from(error: RebuildError) -> Self {
        Self::new(Failed { object: None, error })
    }
}

impl Source {
    /// Looks what is needed for a point. Changes nothing.
    ///
    /// # Errors
    /// It cannot be reached, or the archive cannot be read.
    pub fn want(&self, target: Target, begin: Begin) -> Result<Wanted, RebuildError> {
        let mut catalogue = self.handle.block_on(self.archive.catalogue())?;
        let mut checkpoint = None;
        match begin {
            Begin::Newest => {}
            Begin::At(entry) => {
                let there: Vec<_> = catalogue.bases.iter().map(|base| base.index.to_string()).collect();
                catalogue.bases.retain(|base| base.index == entry);
                if catalogue.bases.is_empty() {
                    let what = format!("{} has no base of entry {entry}; it has {}", self.archive, there.join(", "));
                    return Err(RebuildError::Unreachable(what));
                }
            }
            Begin::BeforeNewest => {
                if let Some(newest) = catalogue.bases.last().copied() {
                    let before = catalogue.clone().without_base(&newest);
                    let leads_there = before.survey().reaches.last().is_some_and(|reach| reach.index >= newest.index);
                    if leads_there {
                        checkpoint = Some(self.handle.block_on(self.archive.manifest(&newest))?);
                        catalogue = before;
                    }
                }
            }
        }
        Ok(Wanted { checkpoint, ..self.want_of(catalogue, target, Vec::new())? })
    }

    /// What is needed of these. A base whose manifest cannot be had is passed over.
    fn want_of(
        &self,
        mut catalogue: Catalogue,
        target: Target,
        mut passed_over: Vec<String>,
    ) -> Result<Wanted, RebuildError> {
        loop {
            let plan = catalogue.plan(target).map_err(|why| self.unreachable(why, &passed_over))?;
            let error = match self.handle.block_on(self.archive.manifest(&plan.base)) {
                Ok(manifest) => return Ok(Wanted { catalogue, plan, manifest, target, checkpoint: None, passed_over }),
                Err(error) => RebuildError::from(error),
            };
            passed_over.push(told(&error));
            catalogue = catalogue.without_base(&plan.base);
            // What is wrong with the last one says more than that there is none.
            if !error.is_of_an_object() || catalogue.bases.is_empty() {
                return Err(error);
            }
        }
    }

    fn unreachable(&self, why: Unreachable, passed_over: &[String]) -> RebuildError {
        let why = unreachable_text(&self.archive, why);
        RebuildError::Unreachable(match passed_over {
            [] => why,
            faults => format!("{}. Without that: {why}", faults.join(". ")),
        })
    }

    /// Makes the state in `dir`, which is there and empty. What cannot be had is passed over as long as there is another way; `wanted`
    /// says then which one was gone.
    ///
    /// # Errors
    /// There is no other way, or what is read does not give the state that was archived. What is in `dir` is of no use then.
    pub fn rebuild(&self, wanted: &mut Wanted, dir: &Path, watcher: &mut dyn Watcher) -> Result<Replay, RebuildError> {
        loop {
            let Failed { object, error } = *match self.rebuild_once(wanted, dir, watcher) {
                Ok(replay) => return Ok(replay),
                Err(failed) => failed,
            };
            let Some(object) = object.filter(|_| error.is_of_an_object()) else { return Err(error) };
            let is_last = matches!(object, Object::Base(_)) && wanted.catalogue.bases.len() == 1;
            if is_last {
                return Err(error);
            }
            watcher.on_passed_over(&told(&error));
            let mut passed_over = mem::take(&mut wanted.passed_over);
            passed_over.push(told(&error));
            let catalogue = match &object {
                Object::Base(name) => mem::take(&mut wanted.catalogue).without_base(name),
                Object::Segment(name) => mem::take(&mut wanted.catalogue).without_segment(name),
            };
            let checkpoint = wanted.checkpoint.take();
            *wanted = Wanted { checkpoint, ..self.want_of(catalogue, wanted.target, passed_over)? };
            empty(dir)?;
        }
    }

    fn rebuild_once(&self, wanted: &Wanted, dir: &Path, watcher: &mut dyn Watcher) -> Result<Replay, Box<Failed>> {
        let base = format!("base {}", wanted.plan.base);
        let mut given_up = None;
        let replay = self.archive.base(&self.handle, &wanted.manifest, &self.keys, |state| {
            let state = GivingUp { state, given_up: &mut given_up, watcher: &mut *watcher, bytes: 0 };
            let begun = Replay::begin(dir, state, |_| {});
            begun.map_err(|source| RebuildError::Broken { object: base.clone(), source })
        });
        if let Some(reason) = given_up {
            return Err(RebuildError::GivenUp(reason).into());
        }
        let of_base = |error| Failed::on(Object::Base(wanted.plan.base), error);
        let mut replay = replay.map_err(of_base)?;
        let (at, noted) = (replay.at(), &wanted.manifest);
        let digest = format!("{:032x}", at.digest);
        if (at.revision, &digest) != (noted.revision, &noted.digest) {
            // Its bytes are those that were written, and its rows fit together: what is noted of them does not. Another base may do.
            let what = format!(
                "its manifest says revision {} with digest {}, and its state has revision {} with digest {digest}",
                noted.revision, noted.digest, at.revision
            );
            return Err(of_base(RebuildError::Broken { object: base, source: ReplayError::Broken(what) }));
        }
        let segments = &wanted.plan.segments;
        let (count, mut bytes) = (segments.len(), 0);
        for (done, name) in segments.iter().enumerate() {
            watcher.on_segment(done, count, bytes).map_err(RebuildError::GivenUp)?;
            let until = until(wanted.target, &segments[done + 1..]);
            let applied = self.apply(&mut replay, name, until, wanted.checkpoint.as_ref());
            bytes += applied.map_err(|error| Failed::on(Object::Segment(name.clone()), error))?;
        }
        watcher.on_segment(count, count, bytes).map_err(RebuildError::GivenUp)?;
        Ok(replay)
    }

    /// Applies a piece; the bytes of its entries.
    fn apply(
        &self,
        replay: &mut Replay,
        name: &SegmentName,
        until: Until,
        checkpoint: Option<&BaseManifest>,
    ) -> Result<u64, RebuildError> {
        let Segment { head, entries } = self.handle.block_on(self.archive.segment(name, &self.keys))?;
        if head.entry_format != ENTRY_FORMAT {
            let (found, known) = (head.entry_format, ENTRY_FORMAT);
            return Err(ArchiveError::UnknownFormat { object: name.to_string(), found, known }.into());
        }
        let bytes = entries.iter().map(|entry| entry.len() as u64).sum();
        let apply = |replay: &mut Replay, until| {
            let applied = replay.apply(head.before.map(log_id), &entries, until);
            applied.map_err(|source| RebuildError::Broken { object: name.to_string(), source })
        };
        let within = |base: &&BaseManifest| (name.first..=name.last).contains(&base.position.index);
        if let Some(base) = checkpoint.filter(within).filter(|base| replay.at().log_id.index < base.position.index) {
            apply(replay, Until::Index(base.position.index))?;
            if replay.at().log_id == log_id(base.position) {
                check_noted(&format!("the way to base {}", base.name()), replay, (base.revision, &base.digest))?;
            }
        }
        apply(replay, until)?;
        if replay.at().log_id != log_id(head.last) || replay.at().is_reached {
            return Ok(bytes);
        }
        if matches!(until, Until::Index(_) | Until::Wall(_)) {
            check_clock(name, replay)?;
        }
        if let Some(after) = &head.after {
            check_noted(&name.to_string(), replay, (after.revision, &after.digest))?;
        }
        Ok(bytes)
    }
}

/// An error as it is told of what was passed over.
fn told(error: &RebuildError) -> String {
    quorate_archive::with_causes(error)
}

/// Takes away what a try has left.
fn empty(dir: &Path) -> Result<(), RebuildError> {
    let emptied = fs::remove_dir_all(dir).and_then(|()| durable::create_dir(dir));
    emptied.map_err(|source| OfflineError::Io { path: dir.to_owned(), source }.into())
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
