//! Wall clocks that are wrong in turn, from before the cluster is founded: at every moment those of a majority are right, and so is the
//! cluster's.
//!
//! Owns whose clock jumps when, and how far the log's may be off meanwhile. Never looks at what a node knows of the others' clocks.

use std::ops::Range;

use rand::RngExt;

use super::{ANSWER_MAX, Found, Stage, UP_MAX};
use crate::address::HostId;
use crate::clock;
use crate::world::World;

/// How often a follower's clock jumps, and the leader's as that is set right.
const TURNS: usize = 2;
/// How far a clock jumps, nanoseconds.
const JUMP: Range<i64> = 60_000_000_000..3_600_000_000_000;
/// How long the follower's is wrong, milliseconds: the leader asks for it once a second, and here at another moment in each turn.
const WRONG_FOR: Range<u64> = 1_300..2_400;
/// How long the leader's is wrong, milliseconds, before the next turn: longer than it takes to ask the others again.
const LEADER_WRONG_FOR: u64 = 1_300;
/// The pause between two writes, milliseconds: many fit in the time in which the leader has not asked again.
const REST: Range<u64> = 5..40;
/// How far the log's wall clock may be off, milliseconds: a write takes its time. A clock that jumps goes much further.
const OFF_MAX: u64 = 3_000;

impl Stage {
    pub(super) fn clocks_in_turn(&mut self) -> Found {
        self.world.keep_clocks_of_a_majority();
        self.found_with_a_wrong_clock()?;
        for _ in 0..TURNS {
            let (leader, follower) = self.leader_and_another()?;
            // Both to the same side: the one that is right would be in the middle else.
            let side = if self.dice.random() { 1 } else { -1 };
            self.jump_by(follower, side);
            let wrong_for = self.dice.random_range(WRONG_FOR);
            self.write_for(wrong_for)?;
            match self.leader()? {
                still if still == leader => self.jump_by(leader, side),
                other => return Err(format!("node {other} leads, and nobody hurt node {leader}")),
            }
            self.meet("the leader's clock jumped as another was set right");
            self.write_for(LEADER_WRONG_FOR)?;
        }
        self.until(UP_MAX, "the nodes do not agree", World::agrees)
    }

    /// Founds a cluster while one clock is wrong: its first stamps have no earlier one to go on from.
    fn found_with_a_wrong_clock(&mut self) -> Found {
        let wrong = self.dice.random_range(1..=3);
        let side = if self.dice.random() { 1 } else { -1 };
        self.jump_by(wrong, side);
        self.world.start_all();
        self.until(UP_MAX, "nobody leads", |world| world.is_up() && world.leader().is_some())?;
        if self.leader()? == wrong {
            self.meet("the first leader's clock was wrong");
        }
        self.write_for(LEADER_WRONG_FOR)
    }

    fn jump_by(&mut self, id: HostId, side: i64) {
        let nanos = side * self.dice.random_range(JUMP);
        self.say(&format!("the clock of node {id} jumps by {} s", nanos / 1_000_000_000));
        self.world.jump_wall(id, nanos);
    }

    /// Writes for so many milliseconds, and looks at the log's wall clock after each write.
    fn write_for(&mut self, millis: u64) -> Found {
        let until = self.world.now + millis;
        while self.world.now < until {
            let leader = self.leader()?;
            self.write(leader, &format!("at-{}", self.world.now), ANSWER_MAX)?;
            self.operations += 1;
            self.is_on_time()?;
            let rest = self.dice.random_range(REST);
            self.steps(rest)?;
        }
        Ok(())
    }

    fn is_on_time(&self) -> Found {
        let right = clock::right_wall(self.world.now);
        match self.world.facts.points().last_key_value() {
            Some((index, point)) if point.wall.abs_diff(right) > OFF_MAX => Err(format!(
                "the cluster's wall clock is wrong at index {index}, by {} ms, and all clocks but one are right",
                i128::from(point.wall) - i128::from(right)
            )),
            _ => Ok(()),
        }
    }
}
