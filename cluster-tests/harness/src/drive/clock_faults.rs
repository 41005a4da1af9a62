//! Faults of wall clocks: one that is wrong, and such as jump about.
//!
//! Owns the jumps. Needs a cluster that was started with [`crate::Settings::hosted`]. Tasks are due by the wall clock of a
//! majority, so no workload of tasks belongs beside clocks that all jump.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::time::Instant;

use super::fault_targets::FaultTargets;
use crate::cluster::Cluster;

/// Farthest jump, in seconds.
const JUMP_MAX: i64 = 3_600;
/// The time between two jumps of a clock that jumps about.
const BETWEEN: Duration = Duration::from_millis(50);

/// What can be done to wall clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockFault {
    /// The leader's is wrong by up to an hour.
    LeaderJumps,
    /// A follower's is.
    FollowerJumps,
    /// Those of all nodes jump all the time.
    AllStrobe,
}

impl ClockFault {
    /// From its cause until it is undone. Gives the node that it hurts most.
    pub(super) async fn cause(
        self,
        cluster: &Cluster,
        targets: &FaultTargets,
        lasts: Duration,
        dice: &mut StdRng,
    ) -> u64 {
        let node = if self == Self::FollowerJumps { targets.follower } else { targets.leader };
        let mut jump = |node: u64| cluster.host(node).shift_wall_clock(dice.random_range(-JUMP_MAX..=JUMP_MAX));
        if self == Self::AllStrobe {
            let until = Instant::now() + lasts;
            while Instant::now() < until {
                targets.all.iter().copied().for_each(&mut jump);
                tokio::time::sleep(BETWEEN).await;
            }
        } else {
            jump(node);
            tokio::time::sleep(lasts).await;
        }
        targets.all.iter().for_each(|node| cluster.host(*node).shift_wall_clock(0));
        node
    }
}
