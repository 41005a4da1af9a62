//! Which points an archive reaches, and what is needed for one of them.
//!
//! Owns that judgement, by names alone. Never does I/O, and never believes a name further than to look at what it names.

use std::collections::BTreeSet;
use std::fmt;
use std::iter::Peekable;
use std::slice;

use crate::{BaseName, SegmentName, WallMillis};

/// All that an archive of a cluster holds, by its names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue {
    /// Whole bases, in order of entries.
    pub bases: Vec<BaseName>,
    /// Bases without a manifest: begun, or begun to be removed.
    pub unfinished: Vec<BaseName>,
    /// Pieces of the log and bundles of them, in order of their first entries.
    pub segments: Vec<SegmentName>,
    /// Bytes of these.
    pub bytes: u64,
}

/// The point that a restore shall go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// As far as the archive goes.
    Latest,
    /// All up to the last entry at which the wall clock of the log is not beyond this, Unix milliseconds. The clock may be walked back,
    /// so entries before that one may be beyond it.
    Time(WallMillis),
    /// All changes up to this revision.
    Revision(u64),
}

/// What is needed for a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The base to begin with.
    pub base: BaseName,
    /// The pieces and bundles to apply to it, in this order. They may overlap.
    pub segments: Vec<SegmentName>,
}

impl Plan {
    /// The last entry of what it needs.
    pub fn end(&self) -> u64 {
        self.segments.last().map_or(self.base.index, |segment| segment.last)
    }
}

/// A stretch of points that can all be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// The base at which it begins.
    pub from: BaseName,
    /// The last entry.
    pub index: u64,
    /// The highest revision that is known to be reached.
    pub revision: u64,
    /// Wall clock of the log at its end.
    pub wall: WallMillis,
    /// Pieces of the log.
    pub segments: usize,
}

/// What an archive reaches: all that one walk along its names tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey<'a> {
    /// The stretches of points that can be reached, oldest first. Between two of them there is a gap.
    pub reaches: Vec<Reach>,
    /// The piece at the end of the last one, where it is not a base.
    pub last: Option<&'a SegmentName>,
    /// The first entry of those that are there behind a gap, and that no base leads to.
    pub stray: Option<u64>,
}

/// Entries that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The first of them.
    pub from: u64,
    /// The last one.
    pub to: u64,
    /// The base from which on points can be reached again, if there is one.
    pub after: Option<BaseName>,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entries {} to {} of the log are missing", self.from, self.to)
    }
}

impl Survey<'_> {
    /// What is missing between the points that can be reached, and behind them, oldest first.
    pub fn gaps(&self) -> Vec<Gap> {
        let between =
            |pair: &[Reach]| Gap { from: pair[0].index + 1, to: pair[1].from.index, after: Some(pair[1].from) };
        let behind = |stray: u64| Some(Gap { from: self.reaches.last()?.index + 1, to: stray - 1, after: None });
        self.reaches.windows(2).map(between).chain(self.stray.and_then(behind)).collect()
    }
}

/// Goes along the pieces once, however many stretches they make: a piece is looked at when the entries before it are reached, and of those
/// that were looked at only the one that goes furthest can go on from anywhere behind.
struct Walk<'a> {
    rest: Peekable<slice::Iter<'a, SegmentName>>,
    furthest: Option<&'a SegmentName>,
}

impl<'a> Walk<'a> {
    /// Of the pieces that go on from this entry, the one that goes furthest. Entries only grow from call to call.
    fn after(&mut self, index: u64) -> Option<&'a SegmentName> {
        while let Some(segment) = self.rest.next_if(|segment| segment.first <= index + 1) {
            if self.furthest.is_none_or(|furthest| furthest.last <= segment.last) {
                self.furthest = Some(segment);
            }
        }
        self.furthest.filter(|segment| segment.last > index)
    }

    /// Follows a base as far as pieces go on without a gap.
    fn follow(&mut self, base: BaseName, mut visit: impl FnMut(&'a SegmentName)) -> Reach {
        let mut reach = Reach { from: base, index: base.index, revision: base.revision, wall: base.wall, segments: 0 };
        while let Some(next) = self.after(reach.index) {
            reach.index = next.last;
            reach.revision = reach.revision.max(next.revision.unwrap_or(0));
            reach.wall = next.wall;
            reach.segments += 1;
            visit(next);
        }
        reach
    }
}

/// Why a point cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    /// There is no base.
    NoBase,
    /// It is before the oldest base.
    TooOld(BaseName),
    /// The archive does not go so far.
    TooNew(Reach),
    /// Something between is missing.
    Gap {
        /// What can be reached before it.
        before: Reach,
        /// The last entry that is missing.
        to: u64,
        /// The base from which on points can be reached again, if there is one.
        after: Option<BaseName>,
    },
}

/// For people, with times as Unix milliseconds: whoever shows it knows better forms.
impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBase => f.write_str("no base is there"),
            Self::TooOld(base) => write!(f, "it is before the oldest base, which is of revision {}", base.revision),
            Self::TooNew(reach) => write!(f, "the archive ends at revision {}", reach.revision),
            Self::Gap { before, to, .. } => write!(f, "entries {} to {to} are missing", before.index + 1),
        }
    }
}

impl Catalogue {
    fn walk(&self) -> Walk<'_> {
        Walk { rest: self.segments.iter().peekable(), furthest: None }
    }

    /// The pieces that follow a base without a gap, and how far that goes.
    pub fn chain(&self, base: BaseName) -> (Vec<SegmentName>, Reach) {
        let mut chain = Vec::new();
        let reach = self.walk().follow(base, |segment| chain.push(segment.clone()));
        (chain, reach)
    }

    /// What can be reached. Its cost is one look at each name.
    pub fn survey(&self) -> Survey<'_> {
        let (mut walk, mut reaches, mut last) = (self.walk(), Vec::<Reach>::new(), None);
        for base in &self.bases {
            if reaches.last().is_none_or(|reach| reach.index < base.index) {
                last = None;
                reaches.push(walk.follow(*base, |segment| last = Some(segment)));
            }
        }
        let end = reaches.last().map_or(0, |reach| reach.index);
        let beyond = self.segments.partition_point(|segment| segment.first <= end + 1);
        Survey { reaches, last, stray: self.segments.get(beyond).map(|segment| segment.first) }
    }

    /// All but this base, which is there by its name alone.
    #[must_use]
    pub fn without_base(mut self, name: &BaseName) -> Self {
        self.bases.retain(|base| base != name);
        self
    }

    /// All but this piece, which is there by its name alone.
    #[must_use]
    pub fn without_segment(mut self, name: &SegmentName) -> Self {
        self.segments.retain(|segment| segment != name);
        self
    }

    /// Has other names in the place of these bundles: those of the pieces they hold.
    pub fn replace(&mut self, bundles: &BTreeSet<SegmentName>, instead: impl IntoIterator<Item = SegmentName>) {
        self.segments.retain(|segment| !bundles.contains(segment));
        self.segments.extend(instead);
        self.segments.sort_unstable();
        // What a merge left is there by itself, too.
        self.segments.dedup();
    }

    /// The pieces at the end that follow one another: the entry before the first, and the piece that goes furthest.
    pub fn last_run(&self) -> Option<(u64, &SegmentName)> {
        let mut run: Option<(u64, &SegmentName)> = None;
        for segment in &self.segments {
            run = match run {
                Some((from, last)) if segment.first <= last.last + 1 => {
                    Some((from, if segment.last > last.last { segment } else { last }))
                }
                _ => Some((segment.first.saturating_sub(1), segment)),
            };
        }
        run
    }

    /// What is needed for a point.
    ///
    /// # Errors
    /// Why it cannot be reached.
    pub fn plan(&self, target: Target) -> Result<Plan, Unreachable> {
        let Survey { reaches, stray, .. } = self.survey();
        let last = *reaches.last().ok_or(Unreachable::NoBase)?;
        let is_before = |base: &&BaseName| match target {
            Target::Latest => base.index <= last.index,
            Target::Time(wall) => base.wall <= wall,
            Target::Revision(revision) => base.revision <= revision,
        };
        let base = *self.bases.iter().rfind(is_before).ok_or(Unreachable::TooOld(self.bases[0]))?;
        let (mut chain, reach) = self.chain(base);
        let is_reached = |wall: WallMillis, revision: u64| match target {
            Target::Latest => false,
            Target::Time(wanted) => wanted <= wall,
            Target::Revision(wanted) => wanted <= revision,
        };
        if target != Target::Latest && !is_reached(reach.wall, reach.revision) {
            let after = self.bases.iter().find(|later| later.index > reach.index);
            return Err(match (after.copied(), stray) {
                (Some(after), _) => Unreachable::Gap { before: reach, to: after.index, after: Some(after) },
                (None, Some(stray)) => Unreachable::Gap { before: reach, to: stray - 1, after: None },
                (None, None) => Unreachable::TooNew(reach),
            });
        }
        if let (Target::Latest, Some(stray)) = (target, stray) {
            return Err(Unreachable::Gap { before: reach, to: stray - 1, after: None });
        }
        let last_needed = match target {
            Target::Latest => chain.len().checked_sub(1),
            // The clock may have been beyond it for a while, so that one that is beyond it says nothing of those behind.
            Target::Time(wanted) => chain.iter().rposition(|segment| segment.wall_min <= wanted),
            Target::Revision(wanted) if wanted == base.revision => None,
            Target::Revision(wanted) => {
                let goes_there = |segment: &SegmentName| segment.revision.is_some_and(|revision| wanted <= revision);
                chain.iter().position(goes_there).or(chain.len().checked_sub(1))
            }
        };
        chain.truncate(last_needed.map_or(0, |place| place + 1));
        Ok(Plan { base, segments: chain })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Form;

    pub(crate) fn base(index: u64) -> BaseName {
        BaseName { index, term: 1, revision: 10 * index, wall: 1_000 * index, node: 1 }
    }

    pub(crate) fn segment(first: u64, last: u64) -> SegmentName {
        let (revision, wall_min, wall) = (Some(10 * last), 1_000 * first, 1_000 * last);
        SegmentName { first, last, revision, wall_min, wall, checksum: last, form: Form::Plain }
    }

    pub(crate) fn catalogue(bases: &[u64], segments: &[(u64, u64)]) -> Catalogue {
        let mut segments: Vec<_> = segments.iter().map(|(first, last)| segment(*first, *last)).collect();
        segments.sort();
        let bases = bases.iter().map(|index| base(*index)).collect();
        Catalogue { bases, segments, ..Catalogue::default() }
    }

    fn needs(catalogue: &Catalogue, target: Target) -> Result<(u64, Vec<(u64, u64)>), Unreachable> {
        let Plan { base, segments } = catalogue.plan(target)?;
        Ok((base.index, segments.iter().map(|segment| (segment.first, segment.last)).collect()))
    }

    #[test]
    fn a_point_needs_the_newest_base_before_it_and_what_lies_between() {
        let all = catalogue(&[5, 20], &[(6, 9), (10, 15), (16, 30), (31, 32)]);
        assert_eq!(needs(&all, Target::Latest), Ok((20, vec![(16, 30), (31, 32)])));
        assert_eq!(needs(&all, Target::Revision(50)), Ok((5, vec![])));
        assert_eq!(needs(&all, Target::Revision(51)), Ok((5, vec![(6, 9)])));
        assert_eq!(needs(&all, Target::Revision(199)), Ok((5, vec![(6, 9), (10, 15), (16, 30)])));
        assert_eq!(needs(&all, Target::Time(9_999)), Ok((5, vec![(6, 9)])));
        assert_eq!(needs(&all, Target::Time(10_000)), Ok((5, vec![(6, 9), (10, 15)])));
        assert_eq!(needs(&all, Target::Time(20_000)), Ok((20, vec![(16, 30)])));
        let mut goes_on = all;
        goes_on.segments[1].wall_min = 9_000;
        assert_eq!(needs(&goes_on, Target::Time(9_000)), Ok((5, vec![(6, 9), (10, 15)])), "more of that millisecond");
    }

    const DAY: WallMillis = 86_400_000;

    /// Pieces of five entries, one a second, of a log whose clock is a day ahead from entry 13 to entry 22.
    fn jumped(bases: &[u64]) -> Catalogue {
        let mut all = catalogue(bases, &[(1, 5), (6, 10), (11, 15), (16, 20), (21, 25), (26, 30)]);
        all.segments[2].wall += DAY;
        all.segments[3].wall_min += DAY;
        all.segments[3].wall += DAY;
        all.segments[4].wall_min = 23_000;
        for base in all.bases.iter_mut().filter(|base| (13..=22).contains(&base.index)) {
            base.wall += DAY;
        }
        all
    }

    #[test]
    fn a_time_after_the_clock_came_back_needs_what_was_written_while_it_was_ahead() {
        // Also where a base was made meanwhile.
        for all in [jumped(&[0]), jumped(&[0, 18])] {
            let up_to = |last: usize| {
                let pieces = [(1, 5), (6, 10), (11, 15), (16, 20), (21, 25), (26, 30)];
                Ok((0, pieces[..last].to_vec()))
            };
            assert_eq!(needs(&all, Target::Time(10_500)), up_to(2));
            assert_eq!(
                needs(&all, Target::Time(17_000)),
                up_to(3),
                "what was written then says that it was a day later"
            );
            assert_eq!(needs(&all, Target::Time(23_000)), up_to(5));
            assert_eq!(needs(&all, Target::Time(30_000)), up_to(6));
        }
        let all = jumped(&[0, 27]);
        assert_eq!(needs(&all, Target::Time(29_000)), Ok((27, vec![(26, 30)])));
        assert_eq!(needs(&all, Target::Time(12_000)), Ok((0, vec![(1, 5), (6, 10), (11, 15)])));
    }

    #[test]
    fn a_piece_that_is_back_only_within_is_not_cut_off() {
        // Ahead at its beginning, back for two entries, and ahead again.
        let mut all = catalogue(&[0], &[(1, 5), (6, 10), (11, 15)]);
        all.segments[0].wall = 5_000 + DAY;
        all.segments[1].wall = 10_000 + DAY;
        all.segments[2].wall_min += DAY;
        all.segments[2].wall += DAY;
        assert_eq!(needs(&all, Target::Time(9_000)), Ok((0, vec![(1, 5), (6, 10)])));
    }

    #[test]
    fn a_time_that_only_a_clock_that_was_ahead_has_shown_is_too_new() {
        let all = jumped(&[0]);
        let reach = all.survey().reaches[0];
        assert_eq!((reach.index, reach.wall), (30, 30_000));
        for wanted in [30_001, DAY, DAY + 15_000] {
            assert_eq!(needs(&all, Target::Time(wanted)), Err(Unreachable::TooNew(reach)));
        }
    }

    #[test]
    fn of_pieces_that_overlap_as_after_a_failover_those_that_go_furthest_are_taken() {
        let all = catalogue(&[0], &[(1, 4), (3, 9), (5, 6), (7, 8), (9, 12), (10, 11)]);
        assert_eq!(needs(&all, Target::Latest), Ok((0, vec![(1, 4), (3, 9), (9, 12)])));
    }

    #[test]
    fn what_cannot_be_reached_is_told_with_what_can() {
        let all = catalogue(&[5, 20], &[(6, 9), (12, 15), (21, 25)]);
        let first = Reach { from: base(5), index: 9, revision: 90, wall: 9_000, segments: 1 };
        let second = Reach { from: base(20), index: 25, revision: 250, wall: 25_000, segments: 1 };
        assert_eq!(all.survey().reaches, [first, second]);
        let gap = Err(Unreachable::Gap { before: first, to: 20, after: Some(base(20)) });
        assert_eq!(needs(&all, Target::Revision(120)), gap);
        assert_eq!(needs(&all, Target::Time(12_000)), gap);
        assert_eq!(needs(&all, Target::Revision(40)), Err(Unreachable::TooOld(base(5))));
        assert_eq!(needs(&all, Target::Time(4_999)), Err(Unreachable::TooOld(base(5))));
        assert_eq!(needs(&all, Target::Time(25_001)), Err(Unreachable::TooNew(second)));
        assert_eq!(needs(&all, Target::Latest), Ok((20, vec![(21, 25)])));
        assert_eq!(needs(&Catalogue::default(), Target::Latest), Err(Unreachable::NoBase));
        assert_eq!(needs(&catalogue(&[], &[(0, 5)]), Target::Latest), Err(Unreachable::NoBase));
    }

    #[test]
    fn what_stands_behind_a_gap_is_not_passed_over_in_silence() {
        let all = catalogue(&[5], &[(6, 9), (12, 15), (16, 20)]);
        let before = all.survey().reaches[0];
        assert_eq!((before.index, all.survey().stray), (9, Some(12)));
        let gap = Err(Unreachable::Gap { before, to: 11, after: None });
        assert_eq!(needs(&all, Target::Latest), gap);
        assert_eq!(needs(&all, Target::Revision(130)), gap);
        assert_eq!(needs(&all, Target::Revision(90)), Ok((5, vec![(6, 9)])));
        assert_eq!(catalogue(&[5], &[(6, 9)]).survey().stray, None);
        assert_eq!(all.last_run().map(|(from, last)| (from, last.last)), Some((11, 20)));
        assert_eq!(catalogue(&[], &[]).last_run(), None);
    }

    #[test]
    fn the_cost_of_a_plan_follows_the_number_of_pieces() {
        // Two weeks at five seconds, with a base a day and a gap a day. Where each step looks at all of them, this test takes minutes.
        let (pieces, day) = (240_000, 17_280);
        let segments: Vec<_> = (0..pieces).filter(|n| n % day != 9).map(|n| (10 * n + 1, 10 * n + 10)).collect();
        let bases: Vec<u64> = (0..pieces / day).map(|n| 10 * day * n).collect();
        let all = catalogue(&bases, &segments);
        let survey = all.survey();
        assert_eq!(
            (survey.reaches.len(), survey.last.map(|last| last.last), survey.stray),
            (13, Some(2_073_690), Some(2_073_701))
        );
        for target in [Target::Revision(10), Target::Revision(20_736_900)] {
            all.plan(target).expect("can be reached");
        }
    }

    #[test]
    fn one_walk_says_the_same_as_one_for_each_base() {
        // All ways in which five pieces of eight entries can lie, with two bases.
        for n in 0..8_u64.pow(5) {
            let at = |place: u32| n / 8_u64.pow(place) % 8;
            let pieces: Vec<(u64, u64)> =
                (0..4).map(|place| (at(place) + 1, (at(place) + 1 + at(place + 1) % 3).min(8))).collect();
            let all = catalogue(&[0, at(4)], &pieces);
            let mut reaches: Vec<Reach> = Vec::new();
            for base in &all.bases {
                if reaches.last().is_none_or(|last| last.index < base.index) {
                    reaches.push(all.chain(*base).1);
                }
            }
            let end = reaches.last().expect("a base").index;
            let survey = all.survey();
            assert_eq!(
                survey.stray,
                all.segments.iter().map(|segment| segment.first).filter(|first| *first > end + 1).min()
            );
            assert_eq!(survey.last.map_or(survey.reaches.last().expect("one").from.index, |last| last.last), end);
            assert_eq!(survey.reaches, reaches, "{all:?}");
        }
    }

    #[test]
    fn a_base_within_a_piece_goes_on_with_it() {
        let all = catalogue(&[3, 7], &[(4, 9), (10, 12)]);
        assert_eq!(needs(&all, Target::Latest), Ok((7, vec![(4, 9), (10, 12)])));
        assert_eq!(all.survey().reaches.len(), 1);
    }
}
