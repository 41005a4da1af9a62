//! What hurts a cluster while clients are at work.
//!
//! Owns choosing a fault, causing it, ending it and recording it. After each fault the cluster is whole again. Other kinds of
//! faults implement [`Nemesis`]; those of processes are here.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

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

/// Faults of processes, one of these after the other by chance.
#[derive(Debug, Clone)]
pub struct ProcessFaults {
    /// Those to choose from.
    pub choices: Vec<ProcessFault>,
    /// The time between two, in milliseconds.
    pub rest_ms: std::ops::Range<u64>,
}

impl Nemesis for ProcessFaults {
    async fn strike(&mut self, cluster: &mut Cluster, recorder: &Recorder, dice: &mut StdRng) {
        tokio::time::sleep(Duration::from_millis(dice.random_range(self.rest_ms.clone()))).await;
        let fault = self.choices[dice.random_range(0..self.choices.len())];
        let leader = cluster.leader().await;
        let node = match fault {
            ProcessFault::KillFollower | ProcessFault::PauseFollower | ProcessFault::HandOver => {
                let others = cluster.live_but(leader);
                others[dice.random_range(0..others.len())]
            }
            _ => leader,
        };
        let begin = recorder.now();
        fault.cause(cluster, node, dice).await;
        recorder.fault(Fault { kind: format!("{fault:?}"), node, begin, end: recorder.now() });
    }
}

impl ProcessFault {
    /// From its cause to its end.
    async fn cause(self, cluster: &mut Cluster, node: u64, dice: &mut StdRng) {
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
    }
}
