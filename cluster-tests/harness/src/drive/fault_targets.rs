//! Which nodes a fault may meet.
//!
//! Owns the choice. Never knows a fault.

use rand::RngExt;
use rand::rngs::StdRng;

use crate::Cluster;

/// Who is where when a fault begins.
#[derive(Debug)]
pub struct FaultTargets {
    /// The leader.
    pub leader: u64,
    /// Some other node.
    pub follower: u64,
    /// All nodes.
    pub all: Vec<u64>,
}

impl FaultTargets {
    /// As the cluster is now.
    pub async fn choose(cluster: &Cluster, dice: &mut StdRng) -> Self {
        let leader = cluster.leader().await;
        let others = cluster.live_but(leader);
        Self { leader, follower: others[dice.random_range(0..others.len())], all: cluster.live() }
    }

    /// All nodes but one.
    pub fn but(&self, one: u64) -> impl Iterator<Item = u64> {
        self.all.iter().copied().filter(move |other| *other != one)
    }
}
