//! What an archive has and gives back, beside what the cluster was.
//!
//! Owns the rules: what was archived goes on without an untold gap, what is to be kept is there, a base has its state, and each point is
//! restored as it was, or refused for a reason where objects are hurt; without the key of an archive that is encrypted, none is. What can
//! be reached is worked out here once more, in the plainest way, from names alone. Reads the objects as they are, past all that the store
//! does to nodes, and never changes one.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use quorate_archive::{Archive, ArchiveError, BaseName, Form, Keys, Location, Target, Verified};
use quorate_machine::types::Key;
use quorate_node_replica::rebuild::{Begin, RebuildError, Scratch, Source, Unwatched};
use quorate_store::offline::{Replay, Replayed};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use tokio::runtime::{Builder, Runtime};

use super::super::Found;
use super::stock::{Reached, Stock};
use super::{Jumps, base_of, piece_of};
use crate::facts::Point;
use crate::objects::{self, DAMAGED, Hurt, LOST, NOTE};
use crate::world::World;

/// Points of each kind that are restored in one look, in the end and before.
const AT_THE_END: usize = 5;
const ON_THE_WAY: usize = 2;
/// Bases from each of which all is restored in the end.
const BASES: usize = 4;
/// A revision that no cluster of a story comes to.
const NEVER: u64 = 1 << 40;

/// A point that was restored, and is what the cluster was there.
const COMPARED: &str = "a restored point was compared";
/// The same, out of an archive that is encrypted.
const OPENED: &str = "a restored point was compared, of an encrypted archive";
const SHUT: &str = "an encrypted archive was refused without its key";
const UNSEEN: &str = "a point was restored at which nobody had looked";
const WITHIN: &str = "a point within an entry was restored";
const PASSED_OVER: &str = "a restore passed over a hurt object";
const NOT_REACHED: &str = "a point was refused, which is not reached";
const HURT: &str = "a point was refused, whose objects are hurt";

/// What came of all looks so far.
#[derive(Default)]
pub(super) struct Judged {
    met: BTreeMap<&'static str, u64>,
    /// Entries at which the state could be restored once.
    covered: BTreeSet<u64>,
    /// The last entry that was archived at the last look.
    end: Option<u64>,
}

impl Judged {
    /// What was met, and how often.
    pub(super) fn met(&self) -> &BTreeMap<&'static str, u64> {
        &self.met
    }

    /// Points that were restored and compared.
    pub(super) fn compared(&self) -> u64 {
        self.met.get(COMPARED).copied().unwrap_or(0)
    }

    /// Points that were refused.
    pub(super) fn refused(&self) -> u64 {
        [NOT_REACHED, HURT].iter().filter_map(|what| self.met.get(what)).sum()
    }

    fn meet(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }
}

/// What a restore came to: a state and what was passed over for it, or why there is none.
type Rebuilt = Result<(Replay, Vec<String>), RebuildError>;

/// What a restore has to come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The state at the point, to which entries lead that go on up to this one.
    State(u64),
    Refusal,
    /// Either: names of objects that nobody had a reason to read yet say more than is there.
    Either,
}

/// One look.
pub(super) struct Judge<'a> {
    world: &'a World,
    keep_ms: u64,
    jumps: Jumps,
    /// How often nodes told that entries are missing.
    gaps: u64,
    /// What opens it; none where it is not encrypted.
    keys: Keys,
    all: BTreeMap<String, Bytes>,
    hurt: Hurt,
    runtime: Runtime,
}

impl<'a> Judge<'a> {
    /// Of what is there now.
    pub(super) fn of(world: &'a World, keep_ms: u64, jumps: Jumps, gaps: u64, keys: Keys) -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without I/O can be made");
        let (all, hurt) = (world.objects.all(), world.objects.hurt());
        Self { world, keep_ms, jumps, gaps, keys, all, hurt, runtime }
    }

    /// The newest base that is sound, and the last entry that can be had.
    pub(super) fn reach(&self) -> Result<(Option<u64>, Option<u64>), String> {
        let sound = self.sound()?;
        Ok((sound.bases.iter().map(|base| base.index).max(), sound.end()))
    }

    /// Looks at all of it. In the end all keys that were written have to be there.
    pub(super) fn judge(&self, judged: &mut Judged, dice: &mut StdRng, written: Option<&[String]>) -> Found {
        self.has_states()?;
        self.is_encrypted_throughout()?;
        let whole: BTreeMap<String, Bytes> =
            self.all.iter().chain(&self.hurt.lost).map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
        let whole = self.stock(&whole)?;
        self.keeps(&whole, judged)?;
        self.look_at_trials()?;
        let (named, sound) = (self.stock(&self.all)?, self.sound()?);
        let points = self.points(&named, dice, written.is_some());
        for (target, begin) in points {
            let expected = self.expected(&named, &sound, target, begin);
            let written = written.filter(|_| (target, begin) == (Target::Latest, Begin::Newest));
            if written.is_some() && !matches!(expected, Expected::State(_)) {
                return Err(format!("all is well and archived, and of the latest point {expected:?} is expected"));
            }
            let end = (target == Target::Latest).then(|| named.end_from(begin)).flatten();
            self.restore((target, begin), (expected, end), written, judged)
                .map_err(|found| format!("{target:?} from {begin:?}: {found}"))?;
        }
        if written.is_some() && !self.keys.is_none() { self.is_shut(judged) } else { Ok(()) }
    }

    // --- what is there ------------------------------------------------------------------------------------------------------

    fn archive(&self, objects: &BTreeMap<String, Bytes>) -> Result<Archive, String> {
        let cluster = objects.keys().find_map(|path| path.split('/').next()?.strip_prefix("quorate-"));
        let cluster = cluster.and_then(|hex| u128::from_str_radix(hex, 16).ok()).unwrap_or_default();
        let place = Location::given(objects::memory(objects), "what is there").open_existing();
        Ok(Archive::of(place.map_err(|error: ArchiveError| error.to_string())?, cluster))
    }

    fn stock(&self, objects: &BTreeMap<String, Bytes>) -> Result<Stock, String> {
        let archive = self.archive(objects)?;
        let all = self.runtime.block_on(archive.catalogue()).map_err(|error| error.to_string())?;
        Ok(Stock::new(all.bases, all.segments))
    }

    /// What is as it was written.
    fn sound(&self) -> Result<Stock, String> {
        let is_sound = |(path, _): &(&String, &Bytes)| !self.hurt.damaged.contains(*path);
        let sound: BTreeMap<String, Bytes> =
            self.all.iter().filter(is_sound).map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
        let has_state = |manifest: &str| sound.contains_key(&self.state_of(manifest));
        let whole: BTreeMap<String, Bytes> = sound
            .iter()
            .filter(|(path, _)| base_of(path).is_none() || has_state(path))
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect();
        self.stock(&whole)
    }

    /// A base is there once its state is, and no longer.
    fn has_states(&self) -> Found {
        for manifest in self.all.keys().filter(|path| base_of(path).is_some()) {
            let state = self.state_of(manifest);
            if !self.all.contains_key(&state) && !self.hurt.lost.contains_key(&state) {
                return Err(format!("{manifest} has no state, and nobody lost it"));
            }
        }
        Ok(())
    }

    /// Pieces are encrypted, or none is. The name of a bundle does not say it; what is in one was a piece.
    fn is_encrypted_throughout(&self) -> Found {
        let wrong = if self.keys.is_none() { Form::Encrypted } else { Form::Plain };
        match self.all.keys().find(|path| piece_of(path).is_some_and(|piece| piece.form == wrong)) {
            None => Ok(()),
            Some(path) => Err(format!("{path} is {wrong:?}")),
        }
    }

    /// The object with the state of the base that this is the manifest of.
    fn state_of(&self, manifest: &str) -> String {
        let (dir, _) = manifest.rsplit_once('/').unwrap_or_default();
        format!("{dir}/state{}", if self.keys.is_none() { "" } else { ".age" })
    }

    /// What could be restored once, and what came since the last look, can be restored, as long as it is to be kept: unless the store lost
    /// something, and what came, unless nodes told of a gap.
    fn keeps(&self, whole: &Stock, judged: &mut Judged) -> Found {
        let (points, stretches) = (self.world.facts.points(), whole.stretches());
        let is_covered = |index: u64| stretches.iter().any(|(from, to)| (*from..=*to).contains(&index));
        // Pieces that no base leads to yet are of a leader that found no base, and began with one of its own.
        let end = whole.end().filter(|end| !whole.goes_on_behind(*end));
        let before = if end.is_some() { std::mem::replace(&mut judged.end, end) } else { None };
        let goes_back = before.zip(end).is_some_and(|(before, end)| end < before);
        let is_new =
            |index: u64| self.gaps == 0 && before.zip(end).is_some_and(|(from, to)| from < index && index <= to);
        let now = points.last_key_value().map_or(0, |(_, point)| point.wall);
        let is_kept = |wall: u64| wall > now.saturating_sub(self.keep_ms) && wall <= now;
        let is_promised = |index: u64| judged.covered.contains(&index) || is_new(index);
        let is_missing = |index: u64, point: &Point| is_kept(point.wall) && is_promised(index) && !is_covered(index);
        let missing = points.iter().find(|(index, point)| is_missing(**index, point));
        // Where the cluster's clock was ahead for a while, what is older by that was let go; and what only a lost base led to.
        match missing.filter(|_| !self.jumps.are_many() && !self.was_lost()) {
            Some((index, point)) => Err(format!(
                "entry {index}, {point:?}, is of the last {} ms, and nobody told that it is missing; these can be restored: {stretches:?}",
                self.keep_ms
            )),
            None if goes_back && !self.was_lost() => {
                Err(format!("it went up to entry {before:?}, and goes up to {end:?}"))
            }
            None => {
                judged.covered.extend(points.keys().copied().filter(|index| is_covered(*index)));
                Ok(())
            }
        }
    }

    fn was_lost(&self) -> bool {
        self.world.objects.met().contains_key(LOST)
    }

    /// A trial finds no fault where there is none.
    fn look_at_trials(&self) -> Found {
        let is_sound_note = |path: &String| path.ends_with(NOTE) && !self.hurt.damaged.contains(path);
        let Some((_, note)) = self.all.iter().find(|(path, _)| is_sound_note(path)) else { return Ok(()) };
        let note: Verified = serde_json::from_slice(note).map_err(|error| format!("what a trial noted: {error}"))?;
        let was_hurt = self.was_lost() || self.world.objects.met().contains_key(DAMAGED);
        match note.fault.filter(|_| !was_hurt && self.gaps == 0) {
            None => Ok(()),
            Some(fault) => Err(format!("nothing was hurt, and a trial found: {fault}")),
        }
    }

    // --- restores -----------------------------------------------------------------------------------------------------------

    /// What is restored in this look.
    fn points(&self, named: &Stock, dice: &mut StdRng, is_end: bool) -> Vec<(Target, Begin)> {
        let seen: Vec<Point> = self.world.facts.points().range(1..).map(|(_, point)| *point).collect();
        let count = if is_end { AT_THE_END } else { ON_THE_WAY };
        let mut points = vec![(Target::Latest, Begin::Newest), (Target::Latest, Begin::BeforeNewest)];
        for _ in 0..count {
            let Some(point) = seen.choose(dice) else { break };
            points.push((Target::Revision(point.revision), Begin::Newest));
        }
        for _ in 0..count {
            let Some(point) = seen.choose(dice) else { break };
            points.push((Target::Time(point.wall + dice.random_range(0..5)), Begin::Newest));
        }
        points.push((Target::Revision(NEVER), Begin::Newest));
        if is_end {
            let bases = named.bases.sample(dice, BASES).copied().collect::<Vec<_>>();
            points.extend(bases.iter().map(|base| (Target::Revision(base.revision), Begin::Newest)));
            points.extend(bases.iter().map(|base| (Target::Latest, Begin::At(base.index))));
        }
        points
    }

    fn expected(&self, named: &Stock, sound: &Stock, target: Target, begin: Begin) -> Expected {
        let is_of_it = |base: &&BaseName| match begin {
            Begin::At(entry) => base.index == entry,
            Begin::Newest | Begin::BeforeNewest => true,
        };
        let bases: Vec<&BaseName> = sound.bases.iter().filter(is_of_it).collect();
        let newest = |is_before: &dyn Fn(&BaseName) -> bool| bases.iter().copied().rfind(|base| is_before(base));
        let state = |reached: Option<Reached>, is_far_enough: &dyn Fn(&Reached) -> bool| match reached {
            Some(reached) if is_far_enough(&reached) => Expected::State(reached.index),
            _ => Expected::Refusal,
        };
        // A trial does without the newest base, and is refused where that alone reaches the point.
        if begin == Begin::BeforeNewest && self.is_hurt() {
            return Expected::Either;
        }
        match target {
            Target::Latest => match bases.iter().map(|base| sound.follow(base).index).max() {
                Some(end) if named.end_from(begin) > Some(end) => Expected::Either,
                Some(end) if !named.goes_on_behind(end) => Expected::State(end),
                Some(end) if !sound.goes_on_behind(end) => Expected::Either,
                _ => Expected::Refusal,
            },
            Target::Revision(wanted) => {
                let base = newest(&|base: &BaseName| base.revision <= wanted);
                state(base.map(|base| sound.follow(base)), &|reached: &Reached| reached.revision >= wanted)
            }
            // A base that is hurt may be of a time to which the clock came back.
            Target::Time(_) if self.jumps != Jumps::Nobody && self.is_hurt() => Expected::Either,
            Target::Time(wanted) => {
                let base = newest(&|base: &BaseName| base.wall <= wanted);
                state(base.map(|base| sound.follow(base)), &|reached: &Reached| reached.wall >= wanted)
            }
        }
    }

    fn is_hurt(&self) -> bool {
        !self.hurt.damaged.is_empty() || !self.hurt.lost.is_empty()
    }

    fn restore(
        &self,
        (target, begin): (Target, Begin),
        (expected, end_by_names): (Expected, Option<u64>),
        written: Option<&[String]>,
        judged: &mut Judged,
    ) -> Found {
        let dir = self.scratch()?;
        match (expected, self.rebuild(target, begin, self.keys.clone(), &dir)?) {
            (Expected::State(_) | Expected::Either, Ok((replay, passed_over))) => {
                if !passed_over.is_empty() {
                    judged.meet(PASSED_OVER);
                }
                let at = replay.at();
                self.is_as_it_was(target, &at, judged)?;
                // What was written behind it cannot be had, and who asked for the end would not know.
                if end_by_names.is_some_and(|end| at.log_id.index < end) {
                    return Err(format!(
                        "it ends at entry {}, and its names go on to {end_by_names:?}",
                        at.log_id.index
                    ));
                }
                if let Expected::State(end) = expected {
                    self.is_the_last(target, &at, end)?;
                }
                written.map_or(Ok(()), |keys| has_all(&replay, keys))
            }
            (Expected::Refusal | Expected::Either, Err(RebuildError::Unreachable(_))) => {
                judged.meet(NOT_REACHED);
                Ok(())
            }
            (Expected::Refusal | Expected::Either, Err(RebuildError::Archive(_) | RebuildError::Broken { .. }))
                if self.is_hurt() =>
            {
                judged.meet(HURT);
                Ok(())
            }
            (_, Err(error)) => Err(format!("{expected:?} is expected, and it says: {error}")),
            // What was hurt may be what nobody needs, as who wrote a base.
            (_, Ok((replay, _))) if self.is_hurt() => self.is_as_it_was(target, &replay.at(), judged),
            (_, Ok((replay, passed_over))) => {
                let at = replay.at();
                Err(format!("nothing leads there, and it gives {at:?}, after it passed over {passed_over:?}"))
            }
        }
    }

    fn scratch(&self) -> Result<Scratch, String> {
        let dir = self.world.data_dir(0).with_file_name("restored");
        Scratch::make(dir, |why| panic!("{why}")).map_err(|error| error.to_string())
    }

    /// Restores a point as the program does, and says what was passed over.
    fn rebuild(&self, target: Target, begin: Begin, keys: Keys, dir: &Scratch) -> Result<Rebuilt, String> {
        let (archive, handle) = (self.archive(&self.all)?, self.runtime.handle().clone());
        let source = Source { archive, keys, handle };
        let _runtime = self.runtime.enter();
        let mut wanted = match source.want(target, begin) {
            Ok(wanted) => wanted,
            Err(error) => return Ok(Err(error)),
        };
        let rebuilt = source.rebuild(&mut wanted, dir.path(), &mut Unwatched);
        Ok(rebuilt.map(|replay| (replay, wanted.passed_over)))
    }

    /// Without the key nothing is restored.
    fn is_shut(&self, judged: &mut Judged) -> Found {
        let dir = self.scratch()?;
        match self.rebuild(Target::Latest, Begin::Newest, Keys::default(), &dir)? {
            Err(error) if error.is_of_the_archive() => {
                judged.meet(SHUT);
                Ok(())
            }
            Err(error) => Err(format!("without its key it says: {error}")),
            Ok((replay, _)) => Err(format!("without its key it gives {:?}", replay.at())),
        }
    }

    /// What was restored is what the cluster was there, and there is where it was asked for.
    fn is_as_it_was(&self, target: Target, at: &Replayed, judged: &mut Judged) -> Found {
        let index = at.log_id.index;
        let restored = Point { revision: at.revision, wall: at.wall, digest: at.digest };
        match self.world.facts.points().get(&index) {
            None => judged.meet(UNSEEN),
            Some(point) if *point == restored => {
                judged.meet(COMPARED);
                if !self.keys.is_none() {
                    judged.meet(OPENED);
                }
            }
            Some(point) if matches!(target, Target::Revision(_)) && at.revision < point.revision => judged.meet(WITHIN),
            Some(point) => {
                return Err(format!("after entry {index} it is {restored:?}, and the cluster was {point:?}"));
            }
        }
        let is_there = match target {
            Target::Latest => true,
            Target::Revision(wanted) => at.revision == wanted,
            Target::Time(wanted) => at.wall <= wanted,
        };
        if is_there { Ok(()) } else { Err(format!("it is {restored:?}")) }
    }

    /// Of entries up to this one, none that follow are of the point, too.
    fn is_the_last(&self, target: Target, at: &Replayed, end: u64) -> Found {
        let index = at.log_id.index;
        let is_of_it = |wall: u64| match target {
            Target::Latest => true,
            Target::Revision(_) => false,
            // What is hurt may be what follows.
            Target::Time(wanted) => wall <= wanted && !self.is_hurt(),
        };
        // A base that is hurt where it does not matter may lead further.
        if target == Target::Latest && (index < end || index > end && !self.is_hurt()) {
            return Err(format!("it ends at entry {index}, and {end} is the last"));
        }
        let mut behind =
            self.world.facts.points().range(index.saturating_add(1)..).take_while(|(later, _)| **later <= end);
        match behind.find(|(_, point)| is_of_it(point.wall)) {
            None => Ok(()),
            Some((later, point)) => {
                Err(format!("it ends at entry {index}, and entry {later} is of it, too: {point:?}"))
            }
        }
    }
}

/// All keys that were written are there.
fn has_all(replay: &Replay, keys: &[String]) -> Found {
    let reader = replay.reader();
    for key in keys {
        let read = Key::new(key.as_bytes()).map_err(|error| error.to_string()).and_then(|key| {
            let read = reader.get(&key);
            read.map_err(|fault| fault.to_string())
        });
        if read?.entry.is_none() {
            return Err(format!("`{key}` was written and is not there"));
        }
    }
    Ok(())
}
