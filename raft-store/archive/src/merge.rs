//! Which objects of the log become one: those of an hour once it is over, and those of a day.
//!
//! Owns that judgement, by names and sizes alone. What became one is not touched again before the longer span is over: each piece is written
//! three times in all. Two neighbours of one span are larger than [`BUNDLE_BYTES`] together, or they would be one.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::{SegmentName, WallMillis};

/// Bytes of a bundle at most, but for copies of the same entries by several leaders.
const BUNDLE_BYTES: u64 = 64 << 20;
/// A long span has so many short ones.
const SHORT_IN_LONG: u64 = 24;
/// What is not older than so much of a short span stays, since those who follow the end of an archive look for pieces there; and for so long
/// what a bundle holds stays beside it, since a listing takes its time.
const SETTLED_AFTER: u64 = 6;

/// How long the spans are whose pieces become one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merging {
    /// The short one; the long one is a day where this is an hour.
    pub span_ms: u64,
}

/// An object of the log and its bytes, as a listing gives it.
pub type Listed = (SegmentName, u64);

/// Those that become one.
struct Group {
    objects: Vec<Listed>,
    last: u64,
    bytes: u64,
    window: Window,
}

/// A span that is over: its length and its number.
type Window = (u64, u64);

impl Merging {
    /// How long it takes after a span until its pieces are settled, and after a bundle until what it holds may go.
    pub fn settled_after_ms(self) -> u64 {
        self.span_ms / SETTLED_AFTER
    }

    /// The longest span that is over at `now` and in which an object of this clock is.
    fn window(self, wall: WallMillis, now: WallMillis) -> Option<Window> {
        let spans = [self.span_ms.saturating_mul(SHORT_IN_LONG), self.span_ms];
        spans.into_iter().find_map(|span| {
            let number = wall / span;
            let end = (number + 1).saturating_mul(span).saturating_add(self.settled_after_ms());
            (end <= now).then_some((span, number))
        })
    }

    /// Groups of objects each of which is to become one, oldest first. `apart` stay as they are.
    pub fn due(self, mut objects: Vec<Listed>, now: WallMillis, apart: &BTreeSet<SegmentName>) -> Vec<Vec<Listed>> {
        // Of those with the same begin the longest first: it covers what a merge left that broke off.
        objects.sort_unstable_by_key(|(name, _)| (name.first, Reverse(name.last)));
        let (mut groups, mut group) = (Vec::new(), None::<Group>);
        for (name, bytes) in objects.into_iter().filter(|(name, _)| !apart.contains(name)) {
            let window = self.window(name.wall, now);
            let joins = group.as_ref().is_some_and(|group| {
                let goes_on = name.first <= group.last.saturating_add(1) && Some(group.window) == window;
                name.last <= group.last || (goes_on && group.bytes + bytes <= BUNDLE_BYTES)
            });
            match &mut group {
                Some(group) if joins => {
                    // What is covered is in there already, as a rule.
                    group.bytes += if name.last > group.last { bytes } else { 0 };
                    group.last = group.last.max(name.last);
                    group.objects.push((name, bytes));
                }
                _ => {
                    let last = name.last;
                    let next = window.map(|window| Group { objects: vec![(name, bytes)], last, bytes, window });
                    groups.extend(std::mem::replace(&mut group, next));
                }
            }
        }
        groups.extend(group);
        groups.into_iter().map(|group| group.objects).filter(|objects| objects.len() > 1).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;
    use crate::bundle::{Index, Part};
    use crate::plan::tests::{base, segment};
    use crate::{BaseName, Catalogue, Form, Plan, Target, Unreachable};

    const HOUR: WallMillis = 3_600_000;
    const DAY: WallMillis = 24 * HOUR;
    const HOURLY: Merging = Merging { span_ms: HOUR };

    /// A piece of one entry.
    fn at(entry: u64, wall: WallMillis) -> SegmentName {
        SegmentName { wall_min: wall, wall, ..segment(entry, entry) }
    }

    fn entries(groups: &[Vec<Listed>]) -> Vec<Vec<u64>> {
        groups.iter().map(|group| group.iter().map(|(name, _)| name.first).collect()).collect()
    }

    fn due(objects: &[Listed], now: WallMillis) -> Vec<Vec<Listed>> {
        HOURLY.due(objects.to_vec(), now, &BTreeSet::new())
    }

    #[test]
    fn pieces_of_an_hour_that_is_over_become_one_and_bundles_of_a_day() {
        let settled = HOURLY.settled_after_ms();
        let objects: Vec<Listed> = (1..=8).map(|n| (at(n, n * HOUR / 3), 100)).collect();
        assert_eq!(entries(&due(&objects, HOUR + settled - 1)), [[0; 0]; 0]);
        assert_eq!(entries(&due(&objects, HOUR + settled)), [[1, 2]]);
        assert_eq!(entries(&due(&objects, 3 * HOUR)), [vec![1, 2], vec![3, 4, 5]]);
        assert_eq!(entries(&due(&objects, DAY + settled)), [[1, 2, 3, 4, 5, 6, 7, 8]]);
        // One alone is as it should be.
        assert_eq!(entries(&due(&objects[..1], DAY + settled)), [[0; 0]; 0]);
    }

    #[test]
    fn pieces_of_a_clock_that_was_a_day_off_are_merged_among_themselves_and_once_their_span_is_over() {
        let settled = HOURLY.settled_after_ms();
        // On the second day the clock is off for pieces 4 and 5, and right again behind them.
        let objects = |wall: &dyn Fn(u64) -> WallMillis| -> Vec<Listed> {
            let off = |n: u64| if n == 4 || n == 5 { wall(n * HOUR / 3) } else { DAY + n * HOUR / 3 };
            (1..=8).map(|n| (at(n, off(n)), 100)).collect()
        };
        let ahead = objects(&|within| 2 * DAY + within);
        assert_eq!(entries(&due(&ahead, DAY + HOUR + settled)), [[1, 2]]);
        assert_eq!(entries(&due(&ahead, DAY + 3 * HOUR + settled)), [vec![1, 2], vec![6, 7, 8]]);
        assert_eq!(entries(&due(&ahead, 2 * DAY + settled)), [[1, 2, 3], [6, 7, 8]]);
        assert_eq!(entries(&due(&ahead, 2 * DAY + 2 * HOUR + settled)), [vec![1, 2, 3], vec![4, 5], vec![6, 7, 8]]);
        // What says that it is of the day before is of a day that is over, but for who has that clock itself.
        let behind = objects(&|within| within);
        assert_eq!(entries(&due(&behind, 5 * HOUR / 3)), [[0; 0]; 0]);
        assert_eq!(entries(&due(&behind, DAY + HOUR + settled)), [[1, 2], [4, 5]]);
        assert_eq!(entries(&due(&behind, 2 * DAY + settled)), [vec![1, 2, 3], vec![4, 5], vec![6, 7, 8]]);
    }

    #[test]
    fn a_gap_a_damaged_object_and_too_many_bytes_end_a_bundle() {
        let mut objects: Vec<Listed> = [1, 2, 4, 5, 6, 7, 8].map(|n| (at(n, n), 100)).to_vec();
        let apart = BTreeSet::from([at(6, 6)]);
        assert_eq!(entries(&HOURLY.due(objects.clone(), 2 * DAY, &apart)), [[1, 2], [4, 5], [7, 8]]);
        objects[4].1 = BUNDLE_BYTES - 200;
        assert_eq!(entries(&due(&objects, 2 * DAY)), [vec![1, 2], vec![4, 5, 6], vec![7, 8]]);
    }

    #[test]
    fn what_a_merge_left_that_broke_off_goes_with_its_bundle() {
        let bundle = SegmentName { first: 1, form: Form::Bundle, ..at(9, 9) };
        let mut objects: Vec<Listed> = (1..=9).map(|n| (at(n, n), 100)).collect();
        objects.push((bundle, BUNDLE_BYTES));
        objects.push((at(10, 10), 100));
        assert_eq!(entries(&due(&objects, 2 * DAY)), [[1, 1, 2, 3, 4, 5, 6, 7, 8, 9]]);
    }

    /// An archive by its names, with what its bundles hold.
    #[derive(Debug, Clone, Default)]
    struct Names {
        objects: Vec<SegmentName>,
        held: BTreeMap<SegmentName, Vec<SegmentName>>,
    }

    impl Names {
        fn pieces(&self, object: &SegmentName) -> Vec<SegmentName> {
            self.held.get(object).cloned().unwrap_or_else(|| vec![object.clone()])
        }

        /// Merges a group, and removes as many of what it was made of before the process ends.
        fn merge(&mut self, group: &[Listed], removed: usize) {
            let pieces: BTreeSet<_> = group.iter().flat_map(|(object, _)| self.pieces(object)).collect();
            let parts = pieces.iter().map(|name| Part { name: name.clone(), bytes: 1 }).collect();
            let bundle = Index::of(parts).expect("they follow one another").name();
            let gone: BTreeSet<_> =
                group.iter().map(|(name, _)| name).filter(|name| **name != bundle).take(removed).collect();
            self.objects.retain(|object| !gone.contains(object) && *object != bundle);
            self.objects.push(bundle.clone());
            self.objects.sort();
            self.held.insert(bundle, pieces.into_iter().collect());
        }

        /// The plan as a restore makes it: the base, and pieces alone.
        fn plan(&self, bases: &[BaseName], target: Target) -> Result<(u64, Vec<SegmentName>), Unreachable> {
            let (bases, segments) = (bases.to_vec(), self.objects.clone());
            let mut catalogue = Catalogue { bases, segments, ..Catalogue::default() };
            loop {
                let Plan { base, segments } = catalogue.plan(target)?;
                match segments.iter().find(|segment| segment.is_bundle()) {
                    Some(bundle) => catalogue.replace(&BTreeSet::from([bundle.clone()]), self.pieces(bundle)),
                    None => return Ok((base.index, segments)),
                }
            }
        }
    }

    /// A log whose entries have the revision ten times their index, and the clock that it shows after each.
    struct Log(Vec<WallMillis>);

    impl Log {
        fn piece(&self, first: u64, last: u64, is_known: bool) -> SegmentName {
            let walls = &self.0[first as usize..=last as usize];
            let (wall_min, wall) = (*walls.iter().min().unwrap(), walls[walls.len() - 1]);
            let revision = is_known.then_some(10 * last);
            SegmentName { revision, wall_min, wall, ..segment(first, last) }
        }

        /// The last entry that a restore by this plan applies.
        fn restored(&self, (base, pieces): (u64, Vec<SegmentName>), target: Target) -> u64 {
            let (mut at, mut covered) = (base, base);
            for (place, piece) in pieces.iter().enumerate() {
                assert!(piece.first <= covered + 1, "{piece} does not follow entry {covered}");
                covered = covered.max(piece.last);
                let to = match (target, &pieces[place + 1..]) {
                    (Target::Latest, _) => piece.last,
                    (Target::Revision(revision), _) => piece.last.min(revision / 10),
                    (Target::Time(_), [.., last]) => piece.last.min(last.first - 1),
                    (Target::Time(wall), []) => {
                        let is_before = |entry: &u64| self.0[*entry as usize] <= wall;
                        (at..=piece.last).rev().find(is_before).expect("what is there already is before it")
                    }
                };
                at = at.max(to);
            }
            at
        }
    }

    /// Without how many objects it took, and what revision they tell: bundles have that of pieces beside the way, too.
    fn reason(refused: Unreachable) -> String {
        match refused {
            Unreachable::TooNew(reach) => format!("{:?}", (reach.from, reach.index, reach.wall)),
            Unreachable::Gap { before, to, after } => format!("{:?}", (before.from, before.index, to, after)),
            other => format!("{other:?}"),
        }
    }

    proptest! {
        /// Pieces overlap, are missing, and have a clock that goes back; merges break off anywhere, and others follow.
        #[test]
        fn plans_with_bundles_reach_what_those_over_their_pieces_reach(
            shapes in prop::collection::vec((0u64..4, 0u64..40, any::<bool>()), 1..40),
            rounds in prop::collection::vec((0u64..8, 0usize..20), 1..6),
            bases in prop::collection::btree_set(0usize..45, 1..4),
            wanted in prop::collection::vec(0u64..60, 1..8),
        ) {
            let clock = (1u64..).zip(&shapes).map(|(entry, &(_, ahead, _))| 1_000 * (entry + ahead / 8));
            let log = Log([0].into_iter().chain(clock).collect());
            let mut names = Names::default();
            // No two end at the same entry, so that it says which one is meant. Some are missing.
            for (last, (back, _, is_known)) in (1u64..).zip(&shapes).filter(|(_, shape)| shape.0 < 3) {
                names.objects.push(log.piece(last.saturating_sub(*back).max(1), last, *is_known));
            }
            names.objects.sort();
            let pieces = names.clone();
            let of = |index: &usize| log.0.get(*index).map(|wall| BaseName { wall: *wall, ..base(*index as u64) });
            let bases: Vec<_> = bases.iter().filter_map(of).collect();
            let merging = Merging { span_ms: 6_000 };
            for (now, removed) in rounds {
                let listed = names.objects.iter().map(|name| (name.clone(), 1)).collect();
                for group in merging.due(listed, 10_000 * now, &BTreeSet::new()) {
                    names.merge(&group, removed);
                }
                let targets = wanted.iter().flat_map(|&n| [Target::Time(1_000 * n), Target::Revision(10 * n + n % 2)]);
                for target in targets.chain([Target::Latest]) {
                    let reached = |names: &Names| {
                        names.plan(&bases, target).map(|plan| log.restored(plan, target)).map_err(reason)
                    };
                    prop_assert_eq!(reached(&names), reached(&pieces), "{:?} of {:?}", target, names);
                }
            }
        }

        /// What was merged is not merged again until more is over.
        #[test]
        fn a_merge_comes_to_an_end(sizes in prop::collection::vec(1u64..BUNDLE_BYTES, 1..60), now in 0u64..20) {
            let merging = Merging { span_ms: 6_000 };
            let mut objects: Vec<Listed> = (1u64..).zip(sizes).map(|(n, bytes)| (at(n, 1_000 * n), bytes)).collect();
            let groups = merging.due(objects.clone(), 10_000 * now, &BTreeSet::new());
            for group in groups {
                let (first, last) = (&group[0].0, &group[group.len() - 1].0);
                let bundle = SegmentName { first: first.first, form: Form::Bundle, ..last.clone() };
                let bytes: u64 = group.iter().map(|(_, bytes)| bytes).sum();
                prop_assert!(bytes <= BUNDLE_BYTES);
                objects.retain(|object| !group.contains(object));
                objects.push((bundle, bytes));
            }
            prop_assert_eq!(entries(&merging.due(objects, 10_000 * now, &BTreeSet::new())), Vec::<Vec<u64>>::new());
        }
    }

    #[test]
    fn a_year_at_five_seconds_has_few_objects_and_is_planned_at_once() {
        const PIECES_A_DAY: u64 = DAY / 5_000;
        // A cluster that writes a gigabyte a day.
        const BYTES: u64 = (1 << 30) / PIECES_A_DAY;
        const DAYS: u64 = 365;
        let mut objects = Vec::new();
        let mut last_hour = Vec::new();
        for hour in 0..24 * DAYS {
            let pieces = hour * PIECES_A_DAY / 24..(hour + 1) * PIECES_A_DAY / 24;
            last_hour = pieces.map(|n| (at(n + 1, 5_000 * (n + 1) - 1), BYTES)).collect();
            objects.extend(last_hour.iter().cloned());
            let now = (hour + 1) * HOUR + HOURLY.settled_after_ms();
            // What is older is as it was an hour ago.
            let lately = objects.len().saturating_sub(1_500);
            for group in due(&objects[lately..], now) {
                let ends = (&group[0].0, &group[group.len() - 1].0);
                let bundle = SegmentName {
                    wall_min: ends.0.wall_min,
                    form: Form::Bundle,
                    first: ends.0.first,
                    ..ends.1.clone()
                };
                let from = objects.partition_point(|(name, _)| name.first < bundle.first);
                let bytes: u64 = group.iter().map(|(_, bytes)| bytes).sum();
                drop(objects.splice(from..from + group.len(), [(bundle, bytes)]));
            }
        }
        // The hours and days that are over are bundles; what is being written comes on top.
        objects.extend(last_hour.iter().map(|(name, bytes)| {
            let (entry, wall) = (name.first + last_hour.len() as u64, name.wall + HOUR);
            (at(entry, wall), *bytes)
        }));
        let count = objects.len();
        assert!(count < 10_000, "{count} objects, of {} pieces", PIECES_A_DAY * DAYS);
        let listed: Vec<String> = objects.iter().map(|(name, _)| name.to_string()).collect();
        #[expect(clippy::disallowed_methods, reason = "how long it takes changes nothing")]
        let begun = Instant::now();
        let bases = (0..DAYS).map(|day| {
            let index = day * PIECES_A_DAY;
            BaseName { wall: DAY * day, ..base(index) }
        });
        let segments: Vec<SegmentName> = listed.iter().map(|name| name.parse().unwrap()).collect();
        let all = Catalogue { bases: bases.collect(), segments, ..Catalogue::default() };
        let survey = all.survey();
        assert_eq!((survey.reaches.len(), survey.gaps()), (1, vec![]));
        for second in [DAY / 2 + 1_000, 100 * DAY + 86_399_000, DAYS * DAY - 1] {
            let plan = all.plan(Target::Time(second)).expect("can be reached");
            assert!(plan.segments.len() <= 25, "{} objects for a day of a gigabyte", plan.segments.len());
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}
