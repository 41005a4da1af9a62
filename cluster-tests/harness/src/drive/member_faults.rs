//! Faults of the membership: nodes that come, go and take another's place, and backups meanwhile.
//!
//! Owns the changes, each from what an operator asks for until it is done. There are as many voters after each as before. The first
//! node always stays, so that clients which know only the first nodes still find one.

use std::time::Duration;

use quorate_client::Client;
use quorate_client::api::MemberRole;
use quorate_node::EXIT_REMOVED;
use rand::RngExt;
use rand::rngs::StdRng;

use super::fault_targets::FaultTargets;
use crate::cluster::{Cluster, PATIENCE};
use crate::eventually::eventually;
use crate::node_process::{describe, run_to_end};

/// What can be done to the membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberFault {
    /// A standby takes the place of a follower.
    ReplaceFollower,
    /// The same of the leader.
    ReplaceLeader,
    /// The same of a follower that is dead and has lost its disk.
    ReplaceDead,
    /// The same of a follower, and the leader is killed meanwhile.
    ReplaceAndKill,
    /// A node comes and gets a vote, then another one is removed.
    GrowAndShrink,
    /// A backup is taken and verified; nobody comes or goes.
    Backup,
}

impl MemberFault {
    /// From its cause until what was asked for is done. Gives the node that it hurts most.
    pub(super) async fn cause(self, cluster: &mut Cluster, targets: &FaultTargets, dice: &mut StdRng) -> u64 {
        let first = cluster.ids()[0];
        let mut old = targets.follower;
        if self == Self::Backup {
            back_up(cluster).await;
            return targets.leader;
        }
        if self == Self::ReplaceLeader {
            if targets.leader == first {
                cluster.hand_leadership_to(old).await;
            } else {
                old = targets.leader;
            }
        } else if old == first {
            old = targets.but(targets.leader).find(|node| *node != first).expect("there are three nodes");
        }
        let new = cluster.new_id();
        if self == Self::GrowAndShrink {
            cluster.add_node(new);
            cluster.bring_up(new).await;
            wait_for(&client(cluster), new, MemberRole::Voter).await;
            remove(&client(cluster), old).await;
        } else {
            if self == Self::ReplaceDead {
                cluster.kill(old).await;
                cluster.wipe(old);
            }
            cluster.add_standby(new);
            cluster.bring_up(new).await;
            wait_for(&client(cluster), new, MemberRole::Learner).await;
            self.replace(cluster, targets, old, new, dice).await;
        }
        say_goodbye(cluster, old, self != Self::ReplaceDead).await;
        old
    }

    async fn replace(self, cluster: &mut Cluster, targets: &FaultTargets, old: u64, new: u64, dice: &mut StdRng) {
        let asking = replaced(client(cluster), old, new);
        let killing = async {
            if self == Self::ReplaceAndKill {
                tokio::time::sleep(Duration::from_millis(dice.random_range(0..100))).await;
                cluster.kill(targets.leader).await;
                cluster.bring_up(targets.leader).await;
            }
        };
        tokio::join!(asking, killing);
    }
}

fn client(cluster: &Cluster) -> Client {
    cluster.client_without(None)
}

async fn wait_for(client: &Client, node: u64, role: MemberRole) {
    eventually(&format!("node {node} is a {role:?} that keeps up"), PATIENCE, async || {
        let answer = client.members().list().await.map_err(|error| error.to_string())?;
        let mut found = answer.members.iter().filter(|member| member.id == node && member.role == role);
        if found.any(|member| member.healthy) { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
}

async fn replaced(client: Client, old: u64, new: u64) {
    eventually(&format!("node {new} has the targets of node {old}"), PATIENCE, async || {
        let done = client.members().replace(old, new).await.map_err(|error| error.to_string())?;
        let is_so = done.voters.contains(&new) && !done.voters.contains(&old);
        if is_so { Ok(()) } else { Err(format!("{done:?}")) }
    })
    .await;
}

async fn remove(client: &Client, node: u64) {
    eventually(&format!("node {node} is removed"), PATIENCE, async || {
        let done = client.members().remove(node).await.map_err(|error| error.to_string())?;
        if done.voters.contains(&node) { Err(format!("{done:?}")) } else { Ok(()) }
    })
    .await;
}

/// A node that was removed ends by itself.
async fn say_goodbye(cluster: &mut Cluster, node: u64, is_alive: bool) {
    if is_alive {
        let (end, log) = cluster.wait_end(node, PATIENCE).await;
        assert_eq!(end.code(), Some(EXIT_REMOVED), "removed node {node} ended with {}:\n{log}", describe(end));
    }
    cluster.forget(node);
}

/// Takes a backup while all goes on, and has the server program verify it.
async fn back_up(cluster: &Cluster) {
    let home = tempfile::Builder::new().prefix("quorate-backup-").tempdir().expect("a temporary directory");
    let client = client(cluster);
    let mut tries = 0;
    let path = eventually("a backup", PATIENCE, async || {
        tries += 1;
        let path = home.path().join(format!("{tries}.backup"));
        client.backup(&path).save().await.map(|_| path).map_err(|error| error.to_string())
    })
    .await;
    let verify = ["backup".into(), "verify".into(), path.display().to_string()];
    let output = tokio::task::spawn_blocking(move || run_to_end(&verify)).await.expect("it ends");
    assert!(output.status.success(), "a backup is not sound: {}", String::from_utf8_lossy(&output.stderr));
}
