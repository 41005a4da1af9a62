//! What hurts a cluster while clients are at work.
//!
//! Owns choosing a fault, causing it, ending it and recording it, and the faults of processes. After each fault the cluster is
//! whole again. Whatever else can hurt implements [`Nemesis`].

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::network_faults::NetworkFault;
use crate::cluster::Cluster;
use crate::history::Recorder;
use crate::history::record::Fault;

/// Something that hurts.
pub trait Nemesis {
    /// Causes one fault and waits until it is over.
    fn strike(&mut self, cluster: &mut Cluster, recorder: &Recorder, dice: &mut StdRng) -> impl Future<Output = ()>;
}

/// What can be done to processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessFault {
    /// `kill -9` of the leader; it comes back a while later.
    KillLeader,
    /// The same of a follower.
    KillFollower,
    /// The same of all nodes at once.
    KillAll,
    /// `SIGSTOP` of the leader for longer or shorter than an election takes, then `SIGCONT`.
    PauseLeader,
    /// The same of a follower.
    PauseFollower,
    /// The leader is told to hand over.
    HandOver,
}

/// What can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// To a process.
    Process(ProcessFault),
    /// To links. Needs a cluster with a network of its own: [`crate::Settings::proxied`].
    Network(NetworkFault),
}

/// One fault after the other, by chance.
#[derive(Debug, Clone)]
pub struct Faults {
    /// Those to choose from.
    pub choices: Vec<Kind>,
    /// The time between two, in milliseconds.
    pub rest_ms: std::ops::Range<u64>,
    /// How long one of links takes, in milliseconds.
    pub lasts_ms: std::ops::Range<u64>,
}

impl Nemesis for Faults {
    async fn strike(&mut self, cluster: &mut Cluster, recorder: &Recorder, dice: &mut StdRng) {
        tokio::time::sleep(Duration::from_millis(dice.random_range(self.rest_ms.clone()))).await;
        let place = Place::choose(cluster, dice).await;
        let begin = recorder.now();
        let (kind, node) = match self.choices[dice.random_range(0..self.choices.len())] {
            Kind::Process(fault) => (format!("{fault:?}"), fault.cause(cluster, &place, dice).await),
            Kind::Network(fault) => {
                let lasts = Duration::from_millis(dice.random_range(self.lasts_ms.clone()));
                (format!("{fault:?}"), fault.cause(cluster, &place, lasts, dice).await)
            }
        };
        recorder.fault(Fault { kind, node, begin, end: recorder.now() });
    }
}

/// Who is where when a fault begins.
#[derive(Debug)]
pub struct Place {
    /// The leader.
    pub leader: u64,
    /// Some other node.
    pub follower: u64,
    /// All nodes.
    pub all: Vec<u64>,
}

impl Place {
    async fn choose(cluster: &Cluster, dice: &mut StdRng) -> Self {
        let leader = cluster.leader().await;
        let others = cluster.live_but(leader);
        Self { leader, follower: others[dice.random_range(0..others.len())], all: cluster.live() }
    }

    /// All nodes but one.
    pub fn but(&self, one: u64) -> impl Iterator<Item = u64> {
        self.all.iter().copied().filter(move |other| *other != one)
    }
}

impl ProcessFault {
    /// From its cause to its end. Gives the node that it hurt.
    async fn cause(self, cluster: &mut Cluster, place: &Place, dice: &mut StdRng) -> u64 {
        let node = match self {
            Self::KillFollower | Self::PauseFollower | Self::HandOver => place.follower,
            Self::KillLeader | Self::KillAll | Self::PauseLeader => place.leader,
        };
        match self {
            Self::KillLeader | Self::KillFollower => {
                cluster.kill(node).await;
                tokio::time::sleep(Duration::from_millis(dice.random_range(0..1_200))).await;
                cluster.bring_up(node).await;
            }
            Self::KillAll => {
                cluster.kill_all().await;
                cluster.start_all();
                cluster.wait_all_ready().await;
            }
            Self::PauseLeader | Self::PauseFollower => {
                cluster.pause(node);
                // An election takes 250 to 400 ms.
                tokio::time::sleep(Duration::from_millis(dice.random_range(30..1_500))).await;
                cluster.resume(node);
                cluster.wait_ready(node).await;
            }
            Self::HandOver => cluster.hand_leadership_to(node).await,
        }
        node
    }
}
