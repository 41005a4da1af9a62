//! What time it is for the cluster: where a majority of the members' wall clocks is.
//!
//! Owns the rule. Pure: readings in, a time out.
//!
//! # The rule
//!
//! The cluster's wall clock goes by itself, by the monotonic clock of the leader, from the last time that was stamped. It is moved only
//! as far as a majority of the voters' clocks demands: forwards to the latest moment at or before which no majority stands, backwards to the
//! earliest moment that a majority has not left behind. So it goes where a majority is, and where no majority is on one side of it, it just
//! goes on: no minority moves it, whatever its clocks show, nor do clocks that nobody can look at. Of three clocks that are known it is the one
//! in the middle; of two of three it is moved by neither alone; a cluster of one node has that node's clock.

use quorate_machine::types::WallMillis;

/// Bounds that are no further apart say what time it is: clocks are asked for half a second at most.
const DECIDED_MS: u64 = 1_000;

/// What is known of a clock: it shows something in between now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// At least this.
    pub earliest: WallMillis,
    /// At most this.
    pub latest: WallMillis,
}

impl Reading {
    /// Of a clock that is looked at now.
    pub fn exact(wall: WallMillis) -> Self {
        Self { earliest: wall, latest: wall }
    }

    /// By how many milliseconds it is certainly ahead of another one; negative where it is behind.
    pub fn ahead_of(self, other: Self) -> i64 {
        if self.earliest > other.latest {
            difference(self.earliest, other.latest)
        } else if self.latest < other.earliest {
            -difference(other.earliest, self.latest)
        } else {
            0
        }
    }

    /// What is certain by both, unless they contradict each other.
    pub fn common(self, other: Self) -> Option<Self> {
        let both = Self { earliest: self.earliest.max(other.earliest), latest: self.latest.min(other.latest) };
        (both.earliest <= both.latest).then_some(both)
    }

    /// In the middle of what is known.
    pub fn likely(self) -> Self {
        Self::exact(self.earliest + (self.latest - self.earliest) / 2)
    }
}

fn difference(greater: WallMillis, less: WallMillis) -> i64 {
    i64::try_from(greater - less).unwrap_or(i64::MAX)
}

/// The time of a cluster with so many voters, of which the clocks of some are known, where it would be `expected` if it just went on.
///
/// Invariant: with the clocks of a majority right, known or not, what was right stays right, and with those of a majority known and right, it
/// becomes right whatever it was.
pub fn agreed(voters: usize, readings: &[Reading], expected: WallMillis) -> WallMillis {
    let (at_least, at_most) = bounds(voters, readings);
    expected.clamp(at_least, at_most)
}

/// Whether what is known says what time it is, to a second: more readings would not change it, or there are no more.
pub fn is_decided(voters: usize, readings: &[Reading]) -> bool {
    let (at_least, at_most) = bounds(voters, readings);
    readings.len() >= voters || at_most - at_least <= DECIDED_MS
}

/// Between which moments a majority is, as far as is known.
fn bounds(voters: usize, readings: &[Reading]) -> (WallMillis, WallMillis) {
    let needed = voters / 2 + 1;
    let mut earliest: Vec<WallMillis> = readings.iter().map(|reading| reading.earliest).collect();
    let mut latest: Vec<WallMillis> = readings.iter().map(|reading| reading.latest).collect();
    earliest.sort_unstable_by(|one, other| other.cmp(one));
    latest.sort_unstable();
    // A majority shows this or later, and a majority shows that or earlier. Both have a node in common, so they are in this order.
    let at_least = earliest.get(needed - 1).copied().unwrap_or(WallMillis::MIN);
    let at_most = latest.get(needed - 1).copied().unwrap_or(WallMillis::MAX);
    (at_least, at_most)
}

/// Where the stamps of a leadership begin: how long nobody led is not known for certain. At the leader's own clock, where a majority may show
/// the same by all that is known: every other moment in between is a worse guess. Otherwise as a majority has it, by the likeliest of each,
/// going on from the replicated clock and the time since this node came to know it, or from the leader's own clock where `replicated` is 0:
/// there never was one.
pub fn begun(voters: usize, readings: &[Reading], own: WallMillis, replicated: WallMillis) -> WallMillis {
    let may_show = |reading: &&Reading| (reading.earliest..=reading.latest).contains(&own);
    if readings.iter().filter(may_show).count() > voters / 2 {
        return own;
    }
    let expected = if replicated == 0 { own } else { replicated };
    agreed(voters, &readings.iter().map(|reading| reading.likely()).collect::<Vec<_>>(), expected)
}

/// The clock that others are compared with, by its place: the one in the middle, or the earlier of two.
pub fn middle(readings: &[Reading]) -> Option<usize> {
    let mut places: Vec<usize> = (0..readings.len()).collect();
    places.sort_by_key(|place| readings[*place].likely().earliest);
    places.get(places.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const DAY: WallMillis = 86_400_000;
    const NOW: WallMillis = 1_800_000_000_000;

    fn of(voters: usize, clocks: &[WallMillis], expected: WallMillis) -> WallMillis {
        agreed(voters, &clocks.iter().copied().map(Reading::exact).collect::<Vec<_>>(), expected)
    }

    #[test]
    fn one_wrong_clock_of_three_moves_nothing() {
        for wrong in [0, NOW - DAY, NOW + DAY, NOW + 3_650 * DAY, WallMillis::MAX] {
            for place in 0..3 {
                let mut clocks = [NOW; 3];
                clocks[place] = wrong;
                assert_eq!(of(3, &clocks, NOW), NOW);
                assert_eq!(of(3, &clocks, NOW + DAY), NOW, "what it was moved to is walked back");
                assert_eq!(of(3, &clocks, 0), NOW, "a cluster that was off for long");
            }
            assert_eq!(of(3, &[NOW, wrong], NOW), NOW, "the third is not known");
        }
    }

    #[test]
    fn what_time_it_is_is_decided_by_a_majority_that_agrees_or_by_all() {
        let decided = |voters, clocks: &[WallMillis]| {
            is_decided(voters, &clocks.iter().copied().map(Reading::exact).collect::<Vec<_>>())
        };
        assert!(!decided(3, &[]) && !decided(3, &[NOW]));
        assert!(decided(3, &[NOW, NOW + 200]));
        // One of the two is wrong, and may hold the cluster where it is: the third says which.
        assert!(!decided(3, &[NOW, NOW - DAY]) && !decided(3, &[NOW, NOW + DAY]));
        assert!(decided(3, &[NOW, NOW - DAY, NOW]));
        assert!(!decided(5, &[NOW, NOW, NOW - DAY]) && decided(5, &[NOW, NOW, NOW - DAY, NOW]));
        assert!(decided(2, &[NOW, NOW + DAY]) && decided(1, &[NOW]));
    }

    #[test]
    fn clocks_that_nobody_knows_move_nothing() {
        assert_eq!(of(3, &[], NOW), NOW);
        assert_eq!(of(3, &[NOW + DAY], NOW), NOW);
        assert_eq!(of(5, &[NOW + DAY, NOW + DAY], NOW), NOW);
        assert_eq!(of(5, &[NOW + DAY; 3], NOW), NOW + DAY, "a majority does");
    }

    #[test]
    fn a_lone_node_has_its_own_clock() {
        assert_eq!(of(1, &[NOW + DAY], NOW), NOW + DAY);
        assert_eq!(of(1, &[NOW], NOW + DAY), NOW);
    }

    #[test]
    fn of_two_voters_neither_moves_it_alone() {
        assert_eq!(of(2, &[NOW, NOW + DAY], NOW + 5), NOW + 5);
        assert_eq!(of(2, &[NOW + DAY, NOW + DAY + 7], NOW), NOW + DAY);
    }

    #[test]
    fn what_is_uncertain_about_a_clock_moves_nothing() {
        let about = |wall| Reading { earliest: wall - 300, latest: wall + 300 };
        assert_eq!(agreed(3, &[about(NOW), about(NOW + 100), Reading::exact(NOW)], NOW + 200), NOW + 200);
        assert_eq!(agreed(3, &[about(NOW), about(NOW + 100), Reading::exact(NOW)], NOW + 2_000), NOW + 300);
        assert_eq!(about(NOW).ahead_of(about(NOW + 500)), 0);
        assert_eq!(about(NOW + 1_000).ahead_of(about(NOW)), 400);
        assert_eq!(about(NOW).ahead_of(about(NOW + 1_000)), -400);
    }

    #[test]
    fn others_are_compared_with_the_clock_in_the_middle() {
        let middle_of = |clocks: &[WallMillis]| middle(&clocks.iter().copied().map(Reading::exact).collect::<Vec<_>>());
        assert_eq!(middle_of(&[]), None);
        assert_eq!(middle_of(&[NOW + DAY]), Some(0));
        assert_eq!(middle_of(&[NOW + DAY, NOW]), Some(1));
        assert_eq!(middle_of(&[NOW + DAY, NOW - 3, NOW]), Some(2));
    }

    #[test]
    fn a_leadership_begins_at_its_own_clock_only_where_a_majority_may_show_that() {
        let about = |wall| Reading { earliest: wall - 300, latest: wall + 100 };
        let begins =
            |own, others: &[Reading], replicated| begun(3, &[&[Reading::exact(own)], others].concat(), own, replicated);
        assert_eq!(begins(NOW + 7, &[about(NOW), about(NOW)], NOW - DAY), NOW + 7);
        assert_eq!(begins(NOW + 7, &[about(NOW)], NOW - DAY), NOW + 7);
        assert_eq!(begins(NOW + DAY, &[about(NOW), about(NOW)], NOW - DAY), NOW - 100);
        assert_eq!(begins(NOW + DAY, &[about(NOW)], NOW - 5), NOW - 5);
        assert_eq!(begins(NOW + DAY, &[], NOW - 5), NOW - 5);
        assert_eq!(begins(NOW, &[], 0), NOW);
        assert_eq!(begins(NOW + DAY, &[about(NOW)], 0), NOW + DAY, "which of the two is wrong is not known");
        assert_eq!(begins(NOW + DAY, &[about(NOW), about(NOW)], 0), NOW - 100, "a majority is elsewhere");
        assert_eq!(begun(1, &[Reading::exact(NOW)], NOW, NOW + DAY), NOW);
    }

    /// How far a right clock is from the truth at most.
    const SKEW: WallMillis = 50;

    /// A right clock, as another node knows it.
    fn right() -> impl Strategy<Value = Reading> {
        (0..=2 * SKEW, 0..400_u64, 0..400_u64).prop_map(|(skew, early, late)| {
            let wall = NOW - SKEW + skew;
            Reading { earliest: wall - early, latest: wall + late }
        })
    }

    fn wrong() -> impl Strategy<Value = Reading> {
        let wall = prop_oneof![any::<WallMillis>(), NOW - 2 * DAY..NOW + 2 * DAY, NOW - 1_000..NOW + 1_000];
        (wall, 0..400_u64).prop_map(|(wall, width)| Reading { earliest: wall, latest: wall.saturating_add(width) })
    }

    proptest! {
        /// A majority of the clocks is right. Some of them are known, and so are some of the others, which show anything.
        #[test]
        fn no_minority_moves_what_is_right(
            voters in 1..8_usize,
            rights in vec(right(), 8),
            wrongs in vec(wrong(), 8),
            [known, known_wrong] in any::<[usize; 2]>(),
            expected in NOW - SKEW..=NOW + SKEW,
        ) {
            let needed = voters / 2 + 1;
            let readings = [&rights[..known % (needed + 1)], &wrongs[..known_wrong % (voters - needed + 1)]].concat();
            let wall = agreed(voters, &readings, expected);
            // A reading may be off by how long its answer took, and no more.
            prop_assert!(wall.abs_diff(NOW) <= SKEW, "{wall}, {} off, of {readings:?}", wall.abs_diff(NOW));
        }

        /// With a majority of clocks known that are right it becomes right, whatever it was and whatever the others show.
        #[test]
        fn a_majority_that_is_right_makes_it_right(
            voters in 1..8_usize,
            rights in vec(right(), 8),
            wrongs in vec(wrong(), 8),
            known_wrong in any::<usize>(),
            expected in prop_oneof![any::<WallMillis>(), NOW - 2 * DAY..NOW + 2 * DAY],
        ) {
            let needed = voters / 2 + 1;
            let readings = [&rights[..needed], &wrongs[..known_wrong % (voters - needed + 1)]].concat();
            let wall = agreed(voters, &readings, expected);
            prop_assert!(wall.abs_diff(NOW) <= SKEW + 400, "{wall}, {} off, of {readings:?}", wall.abs_diff(NOW));
        }

        /// It does not matter in which order clocks are known, and it moves no further than it has to.
        #[test]
        fn it_stays_where_it_is_unless_a_majority_is_elsewhere(
            voters in 1..8_usize,
            readings in vec(wrong(), 0..8),
            expected in NOW - 2 * DAY..NOW + 2 * DAY,
        ) {
            let readings = &readings[..readings.len().min(voters)];
            let wall = agreed(voters, readings, expected);
            let ahead = readings.iter().filter(|reading| reading.earliest > expected).count();
            let behind = readings.iter().filter(|reading| reading.latest < expected).count();
            let needed = voters / 2 + 1;
            prop_assert_eq!(wall > expected, ahead >= needed);
            prop_assert_eq!(wall < expected, behind >= needed);
            prop_assert_eq!(agreed(voters, readings, wall), wall);
            let mut other = readings.to_vec();
            other.reverse();
            prop_assert_eq!(agreed(voters, &other, expected), wall);
        }
    }
}
