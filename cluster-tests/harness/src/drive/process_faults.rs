//! Faults of processes: killed, paused, and leaders that are told to hand over.
//!
//! Owns what is done to them and how long they are away. Each was started again when its fault is undone.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::fault_targets::FaultTargets;
use crate::cluster::Cluster;

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

impl ProcessFault {
    /// From its cause until it is undone. Gives the node that it hurt.
    pub(super) async fn cause(self, cluster: &mut Cluster, targets: &FaultTargets, dice: &mut StdRng) -> u64 {
        let node = match self {
            Self::KillFollower | Self::PauseFollower | Self::HandOver => targets.follower,
            Self::KillLeader | Self::KillAll | Self::PauseLeader => targets.leader,
        };
        match self {
            Self::KillLeader | Self::KillFollower => {
                cluster.kill(node).await;
                tokio::time::sleep(Duration::from_millis(dice.random_range(0..1_200))).await;
                cluster.start_node(node);
            }
            Self::KillAll => {
                cluster.kill_all().await;
                cluster.start_all();
                // Without a majority nothing goes on, and how long a start takes depends on the machine.
                cluster.wait_all_ready().await;
            }
            Self::PauseLeader | Self::PauseFollower => {
                cluster.pause(node);
                // An election takes 250 to 400 ms.
                tokio::time::sleep(Duration::from_millis(dice.random_range(30..1_500))).await;
                cluster.resume(node);
            }
            Self::HandOver => cluster.hand_leadership_to(node).await,
        }
        node
    }
}
