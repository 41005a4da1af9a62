//! Faults of the network: partitions, whole, partial and in one direction only, slow links, broken connections, lost answers.
//!
//! Owns which links each fault hurts. Needs a cluster that was started with [`crate::Settings::proxied`].

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::nemesis::Nemesis;
use crate::cluster::Cluster;
use crate::history::Recorder;
use crate::history::record::Fault;
use crate::network::{CLIENTS, Network, Rule};

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

/// Faults of links, one of these after the other by chance.
#[derive(Debug, Clone)]
pub struct NetworkFaults {
    /// Those to choose from.
    pub choices: Vec<NetworkFault>,
    /// The time between two, in milliseconds.
    pub rest_ms: std::ops::Range<u64>,
    /// How long one takes, in milliseconds.
    pub lasts_ms: std::ops::Range<u64>,
}

impl Nemesis for NetworkFaults {
    async fn strike(&mut self, cluster: &mut Cluster, recorder: &Recorder, dice: &mut StdRng) {
        tokio::time::sleep(Duration::from_millis(dice.random_range(self.rest_ms.clone()))).await;
        let fault = self.choices[dice.random_range(0..self.choices.len())];
        let leader = cluster.leader().await;
        let others = cluster.live_but(leader);
        let place = Place { leader, node: others[dice.random_range(0..others.len())], all: cluster.live() };
        let begin = recorder.now();
        let network = cluster.network();
        let node = fault.begin(network, &place, dice);
        tokio::time::sleep(Duration::from_millis(dice.random_range(self.lasts_ms.clone()))).await;
        if fault == NetworkFault::AnswersLost {
            network.rule(node, CLIENTS, Rule::Reset);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        network.heal();
        cluster.leader().await;
        recorder.fault(Fault { kind: format!("{fault:?}"), node, begin, end: recorder.now() });
    }
}

/// Who is where when a fault begins.
struct Place {
    leader: u64,
    /// Some follower.
    node: u64,
    all: Vec<u64>,
}

impl NetworkFault {
    /// Makes the rules of the fault. Gives the node that it hurts most.
    fn begin(self, network: &Network, place: &Place, dice: &mut StdRng) -> u64 {
        let Place { leader, node, ref all } = *place;
        let but = |one: u64| all.iter().copied().filter(move |other| *other != one);
        let mut milliseconds =
            |range: std::ops::Range<u64>| Rule::Delay(Duration::from_millis(dice.random_range(range)));
        match self {
            Self::IsolateLeader => but(leader).for_each(|other| network.rule_both(leader, other, Rule::Stall)),
            Self::IsolateFollower => but(node).for_each(|other| network.rule_both(node, other, Rule::Stall)),
            Self::Bridge => network.rule_both(leader, node, Rule::Stall),
            Self::OneWay => network.rule(node, leader, Rule::Stall),
            Self::LeaderUnheard => but(leader).for_each(|other| network.rule(leader, other, Rule::Stall)),
            Self::Slow => {
                for one in all {
                    but(*one).for_each(|other| network.rule(*one, other, milliseconds(5..80)));
                }
            }
            Self::SlowNode => but(leader).for_each(|other| network.rule_both(leader, other, milliseconds(20..200))),
            Self::Resets => network.rule_both(leader, node, Rule::Reset),
            Self::AnswersLost => network.rule(leader, CLIENTS, Rule::Stall),
            Self::ClientsCut => network.rule_both(node, CLIENTS, Rule::Stall),
        }
        match self {
            Self::IsolateFollower | Self::OneWay | Self::ClientsCut => node,
            _ => leader,
        }
    }
}
