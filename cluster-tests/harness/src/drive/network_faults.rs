//! Faults of the network: partitions, whole, partial and in one direction only, slow links, broken connections, lost answers.
//!
//! Owns which links each fault hurts. Needs a cluster that was started with [`crate::Settings::proxied`].

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::fault_targets::FaultTargets;
use crate::cluster::Cluster;
use crate::network::{CLIENTS, Network, Rule};

/// How long connections are closed whose answers were held back.
const CLOSING: Duration = Duration::from_millis(50);

/// What can be done to links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkFault {
    /// The leader and the other nodes do not reach each other; clients reach all.
    IsolateLeader,
    /// The same of a follower.
    IsolateFollower,
    /// Two nodes do not reach each other; both reach the third.
    Bridge,
    /// One node does not reach another one, but is reached by it.
    OneWay,
    /// The leader reaches nobody, but is reached.
    LeaderUnheard,
    /// All links are slow.
    Slow,
    /// The links of one node are slow.
    SlowNode,
    /// All connections between two nodes are closed, again and again.
    Resets,
    /// Clients reach a node, but none of its answers arrives, and in the end their connections are closed.
    AnswersLost,
    /// Clients do not reach a node at all.
    ClientsCut,
}

impl NetworkFault {
    /// From its cause until it is undone. Gives the node that it hurts most.
    pub(super) async fn cause(
        self,
        cluster: &Cluster,
        targets: &FaultTargets,
        lasts: Duration,
        dice: &mut StdRng,
    ) -> u64 {
        let network = cluster.network();
        self.begin(network, targets, dice);
        tokio::time::sleep(lasts).await;
        if self == Self::AnswersLost {
            network.rule(targets.leader, CLIENTS, Rule::Reset);
            tokio::time::sleep(CLOSING).await;
        }
        network.heal();
        match self {
            Self::IsolateFollower | Self::OneWay | Self::ClientsCut => targets.follower,
            _ => targets.leader,
        }
    }

    /// Makes the rules of the fault.
    fn begin(self, network: &Network, targets: &FaultTargets, dice: &mut StdRng) {
        let (leader, follower) = (targets.leader, targets.follower);
        let mut delay = |range: std::ops::Range<u64>| Rule::Delay(Duration::from_millis(dice.random_range(range)));
        match self {
            Self::IsolateLeader => targets.but(leader).for_each(|other| network.rule_both(leader, other, Rule::Stall)),
            Self::IsolateFollower => {
                targets.but(follower).for_each(|other| network.rule_both(follower, other, Rule::Stall));
            }
            Self::Bridge => network.rule_both(leader, follower, Rule::Stall),
            Self::OneWay => network.rule(follower, leader, Rule::Stall),
            Self::LeaderUnheard => targets.but(leader).for_each(|other| network.rule(leader, other, Rule::Stall)),
            Self::Slow => {
                for one in &targets.all {
                    targets.but(*one).for_each(|other| network.rule(*one, other, delay(5..80)));
                }
            }
            Self::SlowNode => targets.but(leader).for_each(|other| network.rule_both(leader, other, delay(20..200))),
            Self::Resets => network.rule_both(leader, follower, Rule::Reset),
            Self::AnswersLost => network.rule(leader, CLIENTS, Rule::Stall),
            Self::ClientsCut => network.rule_both(follower, CLIENTS, Rule::Stall),
        }
    }
}
