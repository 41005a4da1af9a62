//! What an archive keeps: all that is needed for the points that are promised, and nothing else.
//!
//! Owns that judgement, by names alone. The newest base always stays, and the newest that is known to be good.

use std::collections::BTreeSet;

use crate::{BaseName, Catalogue, SegmentName, WallMillis};

/// A base that was begun so long ago is not under way any more. One of a leader that was replaced may be, however many newer ones are there.
const UNDER_WAY_MS: WallMillis = 24 * 60 * 60 * 1_000;

/// What is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Every point of the last so many milliseconds can be reached.
    pub keep_ms: u64,
    /// So many bases are kept, however old.
    pub bases_min: usize,
}

/// What nobody needs any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Superfluous {
    /// Bases, and what is left of some that were never whole.
    pub bases: Vec<BaseName>,
    /// Pieces of the log and bundles of them.
    pub segments: Vec<SegmentName>,
}

impl Retention {
    /// What goes at `now`. `good` is the last entry of the last restore that was tried and succeeded: the newest base before it stays. At
    /// most `most` bases go, and what only they need: whatever clocks say, an archive that was right loses no more at a time.
    pub fn superfluous(&self, catalogue: &Catalogue, now: WallMillis, good: Option<u64>, most: usize) -> Superfluous {
        let bases = &catalogue.bases;
        // The first base that stays.
        let by_time = self.first_promised(catalogue, now);
        let by_count = bases.len().saturating_sub(self.bases_min.max(1));
        let by_good = good.and_then(|good| bases.iter().rposition(|base| base.index <= good)).unwrap_or(usize::MAX);
        let Some(first) = bases.get(by_time.min(by_count).min(by_good).min(most)) else {
            return Superfluous::default();
        };
        let mut gone: Vec<_> = bases.iter().filter(|base| base.index < first.index).copied().collect();
        let is_left = |begun: &&BaseName| begun.index < first.index && now.saturating_sub(begun.wall) >= UNDER_WAY_MS;
        gone.extend(catalogue.unfinished.iter().filter(is_left));
        let segments = catalogue.segments.iter().filter(|segment| segment.last <= first.index);
        Superfluous { bases: gone, segments: segments.cloned().collect() }
    }

    /// The base from which on all that is promised can be reached.
    fn first_promised(&self, catalogue: &Catalogue, now: WallMillis) -> usize {
        let bases = &catalogue.bases;
        // What one clock says alone removes nothing: one that is a year ahead would leave nearly nothing.
        let now = catalogue.survey().reaches.last().map_or(now, |newest| now.min(newest.wall));
        let since = now.saturating_sub(self.keep_ms);
        let by_clock = bases.iter().rposition(|base| base.wall <= since).unwrap_or(0);
        // A base that was made while the log's clock was behind is newer than it says: those before it may be promised.
        let within = bases.iter().position(|base| base.wall > since && base.wall <= now);
        within.map_or(by_clock, |within| by_clock.min(within.saturating_sub(1)))
    }
}

impl Catalogue {
    /// Removes these from the catalogue.
    pub fn remove(&mut self, gone: &Superfluous) {
        let (bases, segments): (BTreeSet<_>, BTreeSet<_>) =
            (gone.bases.iter().collect(), gone.segments.iter().collect());
        self.bases.retain(|base| !bases.contains(base));
        self.unfinished.retain(|base| !bases.contains(base));
        self.segments.retain(|segment| !segments.contains(segment));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Form;
    use crate::plan::tests::{base, catalogue, segment};

    fn gone(catalogue: &Catalogue, keep_ms: u64, bases_min: usize, now: u64, good: Option<u64>) -> (Vec<u64>, usize) {
        let gone = Retention { keep_ms, bases_min }.superfluous(catalogue, now, good, usize::MAX);
        let Superfluous { bases, segments } = gone;
        (bases.iter().map(|base| base.index).collect(), segments.len())
    }

    #[test]
    fn every_promised_point_can_still_be_reached() {
        let all = catalogue(&[0, 10, 20, 30], &[(1, 5), (6, 12), (13, 20), (21, 30), (31, 40)]);
        // From second 25 on: base 20, and what follows it.
        assert_eq!(gone(&all, 15_000, 1, 40_000, None), (vec![0, 10], 3));
        assert_eq!(gone(&all, 15_000, 3, 40_000, None), (vec![0], 1), "so many bases are kept");
        assert_eq!(gone(&all, 40_000, 1, 40_000, None), (vec![], 0));
        for keep_ms in 0..45_000 {
            let mut left = all.clone();
            let gone = Retention { keep_ms, bases_min: 1 }.superfluous(&all, 40_000, None, usize::MAX);
            let Superfluous { bases, segments } = gone;
            left.bases.retain(|base| !bases.contains(base));
            left.segments.retain(|segment| !segments.contains(segment));
            let oldest = 40_000_u64.saturating_sub(keep_ms);
            assert_eq!(left.plan(crate::Target::Time(oldest)).map(|plan| plan.base.wall <= oldest), Ok(true));
            assert_eq!(left.plan(crate::Target::Latest), all.plan(crate::Target::Latest));
        }
    }

    #[test]
    fn a_clock_that_is_wrong_removes_nothing_that_is_promised() {
        let pieces = [(1, 10), (11, 20), (21, 30), (31, 40)];
        let all = catalogue(&[0, 10, 20, 30], &pieces);
        assert_eq!(gone(&all, 15_000, 1, u64::MAX, None), (vec![0, 10], 2), "that of who removes, which is ahead");
        let mut behind = catalogue(&[10, 20, 30], &pieces);
        behind.bases[2].wall = 1_000;
        assert_eq!(gone(&behind, 25_000, 1, 40_000, None), (vec![], 1), "that of the log, when the last base was made");
        let mut ahead = catalogue(&[0, 10, 20, 30], &pieces);
        ahead.bases[2].wall = 9_000_000;
        assert_eq!(gone(&ahead, 15_000, 1, 40_000, None), (vec![0], 1));
        assert_eq!(gone(&ahead, 5_000, 1, 40_000, None), (vec![0, 10, 20], 3), "it does not stay for so long");
    }

    #[test]
    fn no_more_bases_go_at_a_time_than_were_allowed_and_what_they_need_stays_with_those_that_stay() {
        let all = catalogue(&[0, 10, 20, 30], &[(1, 10), (11, 20), (21, 30), (31, 40)]);
        for (most, left) in [(0, (vec![], 0)), (1, (vec![0], 1)), (2, (vec![0, 10], 2)), (9, (vec![0, 10, 20], 3))] {
            let Superfluous { bases, segments } =
                Retention { keep_ms: 0, bases_min: 1 }.superfluous(&all, 40_000, None, most);
            assert_eq!((bases.iter().map(|base| base.index).collect(), segments.len()), left, "{most}");
        }
    }

    #[test]
    fn the_newest_and_the_last_good_base_stay_however_old() {
        let all = catalogue(&[10, 20], &[(11, 20), (21, 22)]);
        assert_eq!(gone(&all, 0, 0, u64::MAX, None), (vec![10], 1));
        assert_eq!(gone(&all, 0, 0, u64::MAX, Some(15)), (vec![], 0));
        assert_eq!(gone(&Catalogue::default(), 0, 0, 1, None), (vec![], 0));
        let only = Catalogue { segments: vec![segment(1, 2)], ..Catalogue::default() };
        assert_eq!(gone(&only, 0, 0, u64::MAX, None), (vec![], 0), "without a base nothing is known to be needless");
    }

    #[test]
    fn a_bundle_goes_when_all_of_it_is_superfluous() {
        let mut all = catalogue(&[0, 10, 20, 30], &[(1, 12), (13, 25), (26, 40)]);
        all.segments[0].form = Form::Bundle;
        all.segments[1].form = Form::Bundle;
        for (keep, left) in [(30_000, (vec![0], 0)), (20_000, (vec![0, 10], 1)), (10_000, (vec![0, 10, 20], 2))] {
            assert_eq!(gone(&all, keep, 1, 40_000, None), left, "{keep}");
        }
    }

    #[test]
    fn what_was_begun_and_left_goes_but_not_what_may_be_under_way() {
        let all = Catalogue { unfinished: vec![base(5), base(25)], ..catalogue(&[10, 20], &[]) };
        assert_eq!(gone(&all, 0, 1, u64::MAX, None), (vec![10, 5], 0));
        assert_eq!(gone(&all, 0, 1, 5_000 + UNDER_WAY_MS, None), (vec![10, 5], 0));
        // Its state would go from under a manifest that comes yet.
        assert_eq!(gone(&all, 0, 1, 4_999 + UNDER_WAY_MS, None), (vec![10], 0));
    }
}
