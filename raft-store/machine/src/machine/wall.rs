//! How the replicated wall clock follows the stamps of batches.
//!
//! Owns the rule. The leader stamps what a majority of the members' clocks show, so a stamp that is far behind the clock says that the clock was
//! wrong: a majority was wrong for a while, or the only node was. It is walked back then, since what it would cost to wait is all timed
//! work until the wrong time has come.

use crate::types::WallMillis;

/// A stamp that is behind by no more than this leaves the clock where it is until the stamps have caught up: batches overtake each
/// other on their way into the log, leaders change, and clocks are set right by a little all the time. Nobody sees time go back for that; timed work is late by
/// no more. Whatever is further ahead than this is ahead since the clock was walked back.
pub const WALL_BACK_MAX_MS: WallMillis = 5_000;

/// The wall clock after a batch with this stamp.
pub fn wall_after(before: WallMillis, stamped: WallMillis) -> WallMillis {
    let behind = before.saturating_sub(stamped);
    if behind > 0 && behind <= WALL_BACK_MAX_MS { before } else { stamped }
}

/// Whether a moment is so far ahead that it can only be of before the clock was walked back.
pub fn is_of_before(moment: WallMillis, wall: WallMillis) -> bool {
    moment > wall.saturating_add(WALL_BACK_MAX_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: WallMillis = 86_400_000;

    #[test]
    fn it_goes_on_stands_still_for_a_little_and_is_walked_back_for_much() {
        let cases = [
            (1_000, 1_000, 1_000),
            (1_000, 9_000, 9_000),
            (0, 2 * DAY, 2 * DAY),
            (10_000, 9_999, 10_000),
            (10_000, 5_000, 10_000),
            (10_000, 4_999, 4_999),
            (2 * DAY, DAY, DAY),
            (u64::MAX, 0, 0),
        ];
        for (before, stamped, after) in cases {
            assert_eq!(wall_after(before, stamped), after, "{before} {stamped}");
        }
        assert!(!is_of_before(6_000, 1_000) && is_of_before(6_001, 1_000) && !is_of_before(0, u64::MAX));
    }

    /// Stamps of a true time, of which some are a little late: it never goes back, and is never further off than they are.
    #[test]
    fn stamps_that_overtake_each_other_never_turn_it_back() {
        let mut wall = 0;
        for step in 0..10_000_u64 {
            let truth = 1_000_000 + step * 7;
            let stamped = truth - step.wrapping_mul(2_654_435_761) % WALL_BACK_MAX_MS.min(truth);
            let next = wall_after(wall, stamped);
            assert!(next >= wall && next <= truth, "{wall} {next} {truth}");
            wall = next;
        }
    }
}
