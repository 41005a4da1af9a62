//! A state out of an archive, at a point: the newest base before it, and the entries up to it.
//!
//! Owns the way from a point to a state, and what is said of a point that cannot be reached. All that is read is checked: each object
//! against its checksum, the entries against one another, and the state against the digests that the node noted which archived it. An
//! object that is damaged, missing or locked is passed over where another way reaches the point, and this is told. A bundle is as good as the
//! pieces it holds: it is read from its begin to the last of them that the point needs.
//! Blocks; used by verbs of the program, and by a node that tries whether a restore can be had.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::{fs, io, mem};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::FuturesOrdered;
use futures::{FutureExt, StreamExt};
use quorate_archive::{
    Archive, ArchiveError, BaseManifest, BaseName, Bundle, Catalogue, Keys, Plan, Position, Segment, SegmentName,
    Target, Unreachable, WallMillis,
};
use quorate_machine::codec::RECORDS;
use quorate_store::durable;
use quorate_store::offline::{OfflineError, Replay, ReplayError, Until};
use quorate_store::raft::wire::LogIdRecord;
use tokio::runtime::Handle;

/// So many pieces are fetched ahead of the one that is applied: a store answers in some 30 ms, and there may be thousands.
const AHEAD: usize = 8;

/// Form of the entries that this build archives.
pub const ENTRY_FORMAT: u32 = RECORDS.writes();

/// Why there is no such state. A sentence for people.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// An object cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The point cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// The point cannot be reached without what other keys open.
    #[error("{0}")]
    Locked(String),
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
        self.is_of_an_object() || matches!(self, Self::Unreachable(_) | Self::Locked(_) | Self::Differs { .. })
    }

    /// Whether it takes other keys than those that were given, and nothing else is known to be wrong.
    fn is_locked(&self) -> bool {
        matches!(self, Self::Locked(_) | Self::Archive(ArchiveError::Locked { .. }))
    }

    /// Whether an object cannot be had as it was written. Another may do in its place.
    fn is_of_an_object(&self) -> bool {
        match self {
            Self::Archive(error) => error.is_of_an_object(),
            Self::Broken { source, .. } => !matches!(source, ReplayError::Offline(_)),
            Self::Unreachable(_) | Self::Locked(_) | Self::Differs { .. } | Self::Offline(_) | Self::GivenUp(_) => {
                false
            }
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

/// Watches nothing, and wants it in any case.
pub struct Unwatched;

impl Watcher for Unwatched {
    fn on_base(&mut self, _bytes: u64) -> Result<(), String> {
        Ok(())
    }

    fn on_segment(&mut self, _done: usize, _of: usize, _bytes: u64) -> Result<(), String> {
        Ok(())
    }
}

/// A directory to make a state in, private to its owner, which goes when it is dropped.
pub struct Scratch {
    dir: PathBuf,
    tell: fn(&str),
}

impl Scratch {
    /// Makes it anew, whatever a process left there that ended. `tell` hears of it where it cannot be removed in the end.
    ///
    /// # Errors
    /// It cannot be made, or what is there not be removed.
    pub fn make(dir: PathBuf, tell: fn(&str)) -> Result<Self, RebuildError> {
        let failed = |source| OfflineError::Io { path: dir.clone(), source };
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(failed)?;
        }
        durable::create_dir(&dir).map_err(failed)?;
        Ok(Self { dir, tell })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            (self.tell)(&format!("{} could not be removed: {error}", self.dir.display()));
        }
    }
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
    /// All that there is, with the pieces of those bundles that are needed in their place.
    pub catalogue: Catalogue,
    /// What is needed of it: no bundle, but pieces.
    pub plan: Plan,
    /// The objects in which pieces of bundles are; the last is read.
    places: Places,
    /// The manifest of its base.
    pub manifest: BaseManifest,
    /// The point.
    pub target: Target,
    /// The last entry that is reached by names alone, whatever can be had of it.
    end: u64,
    /// A base on the way whose state is compared with the one that is made.
    pub checkpoint: Option<BaseManifest>,
    /// The objects that were passed over, and why: sentences for people.
    pub passed_over: Vec<String>,
    /// Those of them about what other keys open.
    pub locked: Vec<String>,
}

/// The state at the end of an archive, and what could not be had on the way.
pub struct End {
    /// The state.
    pub replay: Replay,
    /// The objects that were passed over, and why: sentences for people.
    pub passed_over: Vec<String>,
    /// The objects that only other keys open, if the newest base leads to the end without them.
    pub locked: Option<String>,
}

/// The objects that a restore does without.
#[derive(Default)]
struct Without {
    /// Sentences for people.
    all: Vec<String>,
    /// Those of them about what other keys open.
    locked: Vec<String>,
}

impl Without {
    fn add(&mut self, error: &RebuildError) {
        if error.is_locked() {
            self.locked.push(told(error));
        }
        self.all.push(told(error));
    }

    /// The error that a point cannot be reached without these: for want of a key, or for another reason.
    fn unreachable(&self, what: String) -> RebuildError {
        match !self.all.is_empty() && self.locked.len() == self.all.len() {
            true => RebuildError::Locked(what),
            false => RebuildError::Unreachable(what),
        }
    }
}

/// The objects that a piece is in: bundles, or one of its own. A piece that is not here is one of its own.
type Places = BTreeMap<SegmentName, Vec<SegmentName>>;

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
        let end = catalogue.survey().reaches.last().map_or(0, |reach| reach.index);
        Ok(Wanted { checkpoint, ..self.want_of(catalogue, Places::new(), (target, end), Without::default())? })
    }

    /// What is needed of these. A base whose manifest cannot be had is passed over, and so is a bundle without its index. The end of an
    /// archive is that of its names: one that is reached without what stood there is another point.
    fn want_of(
        &self,
        mut catalogue: Catalogue,
        mut places: Places,
        (target, end): (Target, u64),
        mut without: Without,
    ) -> Result<Wanted, RebuildError> {
        loop {
            let plan = catalogue.plan(target).map_err(|why| self.unreachable(why, &without))?;
            if target == Target::Latest && plan.end() < end {
                let reached = catalogue.survey().reaches.last().map_or(plan.base.revision, |reach| reach.revision);
                return Err(without.unreachable(format!(
                    "{}. Without that the log of {} ends at entry {}, and it goes on to entry {end}: what was written in between cannot be \
                     had; what was before can, up to revision {reached} (--revision {reached})",
                    without.all.join(". "),
                    self.archive,
                    plan.end(),
                )));
            }
            let bundles: BTreeSet<_> = plan.segments.iter().filter(|segment| segment.is_bundle()).cloned().collect();
            if !bundles.is_empty() {
                let mut instead = Vec::new();
                for bundle in &bundles {
                    instead.extend(self.instead_of(bundle, &catalogue, &mut places, &mut without)?);
                }
                catalogue.replace(&bundles, instead);
                continue;
            }
            let error = match self.handle.block_on(self.archive.manifest(&plan.base)) {
                Ok(manifest) => {
                    let (checkpoint, Without { all: passed_over, locked }) = (None, without);
                    return Ok(Wanted {
                        catalogue,
                        plan,
                        places,
                        manifest,
                        target,
                        end,
                        checkpoint,
                        passed_over,
                        locked,
                    });
                }
                Err(error) => RebuildError::from(error),
            };
            without.add(&error);
            catalogue = catalogue.without_base(&plan.base);
            // What is wrong with the last one says more than that there is none.
            if !error.is_of_an_object() || catalogue.bases.is_empty() {
                return Err(error);
            }
        }
    }

    /// What there is instead of a bundle: its pieces, or a larger one that it was merged into. Nothing where it cannot be had.
    fn instead_of(
        &self,
        bundle: &SegmentName,
        catalogue: &Catalogue,
        places: &mut Places,
        without: &mut Without,
    ) -> Result<Vec<SegmentName>, RebuildError> {
        let opened = match self.handle.block_on(self.archive.open_bundle(bundle)) {
            Ok(opened) => opened,
            Err(error) if error.is_of_an_object() => {
                let is_larger = |name: &SegmentName| error.is_not_found() && name.holds(bundle);
                let listed = self.handle.block_on(self.archive.segments())?.into_iter().map(|(name, _)| name);
                let larger: Vec<_> = listed.filter(is_larger).collect();
                if larger.is_empty() {
                    without.add(&RebuildError::from(error));
                }
                return Ok(larger);
            }
            Err(error) => return Err(error.into()),
        };
        for piece in opened.pieces() {
            let its_own = catalogue.segments.binary_search(piece).is_ok().then(|| piece.clone());
            places.entry(piece.clone()).or_insert_with(|| its_own.into_iter().collect()).push(bundle.clone());
        }
        Ok(opened.pieces().cloned().collect())
    }

    fn unreachable(&self, why: Unreachable, without: &Without) -> RebuildError {
        let why = unreachable_text(&self.archive, why);
        without.unreachable(match &without.all[..] {
            [] => why,
            faults => format!("{}. Without that: {why}", faults.join(". ")),
        })
    }

    /// Makes the state at the end of the archive in `dir`, which is there and empty. It begins with the base before the newest, so that the log
    /// between the two is tried, too. If that needs other keys, as during a change of keys, it begins with the newest base.
    ///
    /// # Errors
    /// It cannot be made in either way. The files in `dir` are of no use then.
    pub fn rebuild_end(&self, dir: &Path, watcher: &mut dyn Watcher) -> Result<End, RebuildError> {
        match self.rebuild_from(Begin::BeforeNewest, dir, watcher) {
            Ok((replay, Wanted { mut passed_over, locked, .. })) => {
                // It stands beside the way, and the newest base and all that follows it are on that.
                passed_over.retain(|what| !locked.contains(what));
                let locked = (!locked.is_empty()).then(|| locked.join("; "));
                Ok(End { replay, passed_over, locked })
            }
            Err(error) if error.is_locked() => {
                empty(dir)?;
                let (replay, wanted) = self.rebuild_from(Begin::Newest, dir, watcher)?;
                let newest = self.handle.block_on(self.archive.catalogue())?.bases.last().copied();
                let Wanted { mut passed_over, locked, plan, .. } = wanted;
                // Beside the way from the newest base, too.
                if newest == Some(plan.base) {
                    passed_over.retain(|what| !locked.contains(what));
                }
                Ok(End { replay, passed_over, locked: Some(told(&error)) })
            }
            Err(error) => Err(error),
        }
    }

    fn rebuild_from(
        &self,
        begin: Begin,
        dir: &Path,
        watcher: &mut dyn Watcher,
    ) -> Result<(Replay, Wanted), RebuildError> {
        let mut wanted = self.want(Target::Latest, begin)?;
        let replay = self.rebuild(&mut wanted, dir, watcher)?;
        Ok((replay, wanted))
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
            let (all, locked) = (mem::take(&mut wanted.passed_over), mem::take(&mut wanted.locked));
            let mut without = Without { all, locked };
            without.add(&error);
            let (mut catalogue, mut places) = (mem::take(&mut wanted.catalogue), mem::take(&mut wanted.places));
            match &object {
                Object::Base(name) => catalogue = catalogue.without_base(name),
                Object::Segment(name) => {
                    let others = places.get_mut(name);
                    let is_elsewhere = others.is_some_and(|others| others.pop().is_some() && !others.is_empty());
                    if !is_elsewhere {
                        catalogue = catalogue.without_segment(name);
                    }
                }
            }
            let checkpoint = wanted.checkpoint.take();
            *wanted = Wanted { checkpoint, ..self.want_of(catalogue, places, (wanted.target, wanted.end), without)? };
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
        let mut pieces = Pieces::of(self, wanted);
        for (done, name) in segments.iter().enumerate() {
            watcher.on_segment(done, count, bytes).map_err(RebuildError::GivenUp)?;
            let until = until(wanted.target, &segments[done + 1..]);
            let read = pieces.next(name).map_err(RebuildError::from);
            let applied = read.and_then(|read| apply(&mut replay, name, read, until, wanted.checkpoint.as_ref()));
            bytes += applied.map_err(|error| Failed::on(Object::Segment(name.clone()), error))?;
        }
        watcher.on_segment(count, count, bytes).map_err(RebuildError::GivenUp)?;
        Ok(replay)
    }
}

/// The pieces of a plan in their order.
struct Pieces<'a> {
    source: &'a Source,
    wanted: &'a Wanted,
    /// The bundle that is being read.
    bundle: Option<Bundle>,
    /// Pieces of their own that are on their way.
    ahead: VecDeque<&'a SegmentName>,
    /// Their bytes, in the same order. They come while one of them is waited for.
    coming: FuturesOrdered<BoxFuture<'static, Result<Bytes, ArchiveError>>>,
    /// How many pieces of the plan were looked at for that.
    looked: usize,
    /// The bundles in which pieces are that were merged meanwhile.
    moved: BTreeMap<SegmentName, SegmentName>,
}

impl<'a> Pieces<'a> {
    fn of(source: &'a Source, wanted: &'a Wanted) -> Self {
        Self {
            source,
            wanted,
            bundle: None,
            ahead: VecDeque::new(),
            coming: FuturesOrdered::new(),
            looked: 0,
            moved: BTreeMap::new(),
        }
    }

    /// The bundle in which a piece is; `None` for one of its own.
    fn bundle_of(&self, piece: &SegmentName) -> Option<&SegmentName> {
        let planned = || self.wanted.places.get(piece).and_then(|places| places.last());
        self.moved.get(piece).or_else(planned).filter(|place| place.is_bundle())
    }

    /// Reads the next piece, which is this one.
    fn next(&mut self, piece: &SegmentName) -> Result<Segment, ArchiveError> {
        self.fetch_ahead();
        let read = match self.ahead.front().is_some_and(|name| *name == piece) {
            true => self.fetched(piece),
            false => self.in_bundle(piece),
        };
        match read {
            // Fetched before it was known where it is now.
            Err(gone) if gone.is_not_found() && self.moved.contains_key(piece) => {
                self.in_bundle(piece).or_else(|gone| self.merged(piece, gone))
            }
            Err(gone) if gone.is_not_found() => self.merged(piece, gone),
            read => read,
        }
    }

    fn fetched(&mut self, piece: &SegmentName) -> Result<Segment, ArchiveError> {
        let Source { archive, keys, handle } = self.source;
        self.ahead.pop_front();
        let fetched = handle.block_on(self.coming.next()).expect("one comes for each that is ahead");
        archive.open_segment(piece, &fetched?, keys)
    }

    fn in_bundle(&mut self, piece: &SegmentName) -> Result<Segment, ArchiveError> {
        let Source { archive, keys, handle } = self.source;
        let name = self.bundle_of(piece).expect("one of its own is fetched").clone();
        let goes_on = self.bundle.take_if(|bundle| *bundle.name() == name && bundle.is_ahead(piece));
        let bundle = match goes_on {
            Some(bundle) => bundle,
            None => handle.block_on(archive.open_bundle(&name))?,
        };
        handle.block_on(self.bundle.insert(bundle).segment(piece, keys))
    }

    /// Reads a piece that is not where it was, out of a bundle that it has become part of.
    fn merged(&mut self, piece: &SegmentName, gone: ArchiveError) -> Result<Segment, ArchiveError> {
        let Source { archive, keys, handle } = self.source;
        for (name, _) in handle.block_on(archive.segments())?.into_iter().filter(|(name, _)| name.holds(piece)) {
            match handle.block_on(archive.open_bundle(&name)) {
                Ok(mut bundle) if bundle.is_ahead(piece) => {
                    self.moved.extend(bundle.pieces().map(|piece| (piece.clone(), name.clone())));
                    let read = handle.block_on(bundle.segment(piece, keys));
                    self.bundle = Some(bundle);
                    return read;
                }
                Err(error) if !error.is_of_an_object() => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Err(gone)
    }

    /// Begins to fetch pieces of their own, up to so many at a time.
    fn fetch_ahead(&mut self) {
        let wanted = self.wanted;
        while let Some(piece) = wanted.plan.segments.get(self.looked).filter(|_| self.ahead.len() < AHEAD) {
            self.looked += 1;
            if self.bundle_of(piece).is_none() {
                let (archive, name) = (self.source.archive.clone(), piece.clone());
                self.ahead.push_back(piece);
                self.coming.push_back(async move { archive.segment_bytes(&name).await }.boxed());
            }
        }
    }
}

/// Applies a piece; the bytes of its entries.
fn apply(
    replay: &mut Replay,
    name: &SegmentName,
    Segment { head, entries }: Segment,
    until: Until,
    checkpoint: Option<&BaseManifest>,
) -> Result<u64, RebuildError> {
    ArchiveError::check_format(&name.to_string(), head.entry_format, RECORDS)?;
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
    state: &'a mut dyn io::Read,
    given_up: &'a mut Option<String>,
    watcher: &'a mut dyn Watcher,
    bytes: u64,
}

impl io::Read for GivingUp<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.state.read(into)?;
        self.bytes += count as u64;
        if let Err(reason) = self.watcher.on_base(self.bytes) {
            *self.given_up = Some(reason.clone());
            return Err(io::Error::other(reason));
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_scratch_directory_is_private_begins_empty_and_goes() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("scratch");
        fs::create_dir(&dir).expect("made");
        fs::write(dir.join("left"), "of before").expect("written");
        let scratch = Scratch::make(dir.clone(), |why| panic!("{why}")).expect("it is made anew");
        assert_eq!(fs::read_dir(scratch.path()).expect("it is there").count(), 0);
        assert_eq!(fs::metadata(&dir).expect("it is there").permissions().mode() & 0o777, 0o700);
        drop(scratch);
        assert!(!dir.exists());
    }
}
