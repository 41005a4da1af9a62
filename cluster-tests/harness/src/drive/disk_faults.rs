//! Faults of disks: slow, failing, full, and such as take only parts of writes.
//!
//! Owns what each does to the hosts of nodes, and what has to become of a node then. A fault that nobody felt does not count: each is
//! waited for until its node met it. Needs a cluster that was started with [`crate::Settings::hosted`].

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::fault_targets::FaultTargets;
use crate::cluster::{Cluster, PATIENCE};
use crate::eventually::{eventually, sooner_than};
use crate::host::{Counts, Failures};
use crate::node_process::describe;

/// Exit code of a node that cannot believe its disk any more.
pub const EXIT_STORAGE: i32 = quorate_node::EXIT_STORAGE;
/// Exit code of a node whose disk is full.
pub const EXIT_NO_ROOM: i32 = quorate_node::EXIT_NO_ROOM;
/// What a node keeps free by its defaults.
const KEPT_FREE: u64 = 256 << 20;
/// Room that is less than that, and enough to go on with.
const LITTLE_ROOM: u64 = 160 << 20;
/// How long a node may go on whose disk failed once: what failed may be something that it can do without.
const TOLERATED: Duration = Duration::from_secs(2);

/// What can be done to disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// Each sync and write of the leader takes long.
    SlowLeader,
    /// The same of a follower.
    SlowFollower,
    /// The same of all nodes, a little shorter.
    SlowAll,
    /// One sync of the leader fails.
    SyncFailsOnce,
    /// All syncs of a follower fail.
    SyncFails,
    /// All writes of the leader fail.
    WriteFails,
    /// All nodes have less room than they keep free.
    Full,
    /// A follower has no room at all.
    NoRoom,
    /// Many writes of all nodes take only their first half.
    ShortWrites,
}

impl DiskFault {
    /// From its cause until it is undone. Gives the node that it hurts most.
    pub(super) async fn cause(
        self,
        cluster: &mut Cluster,
        targets: &FaultTargets,
        lasts: Duration,
        dice: &mut StdRng,
    ) -> u64 {
        let node = match self {
            Self::SlowFollower | Self::SyncFails | Self::NoRoom => targets.follower,
            _ => targets.leader,
        };
        let hurt = match self {
            Self::SlowAll | Self::Full | Self::ShortWrites => targets.all.clone(),
            _ => vec![node],
        };
        let begun: Vec<_> = hurt.into_iter().map(|id| (id, self.begin(cluster, id, dice))).collect();
        for (id, before) in &begun {
            self.until_felt(cluster, *id, *before).await;
        }
        match self {
            Self::SyncFails | Self::WriteFails => {
                let has_ended = ends_within(cluster, node, PATIENCE).await;
                assert!(has_ended, "{self:?}: node {node} goes on, {PATIENCE:?} after its disk failed");
            }
            Self::SyncFailsOnce => {
                ends_within(cluster, node, TOLERATED).await;
            }
            _ => tokio::time::sleep(lasts).await,
        }
        for (id, _) in begun {
            cluster.host(id).heal_disk();
            if self == Self::NoRoom {
                // RocksDB tries a flush that found no room again after a second, and only then tells of it.
                ends_within(cluster, id, TOLERATED).await;
            }
            self.come_back(cluster, id);
        }
        node
    }

    /// Gives what was counted before.
    fn begin(self, cluster: &Cluster, node: u64, dice: &mut StdRng) -> Counts {
        let host = cluster.host(node);
        let before = host.counts();
        let mut millis = |range: std::ops::Range<u64>| Duration::from_millis(dice.random_range(range));
        match self {
            Self::SlowLeader | Self::SlowFollower => host.slow_disk(millis(20..400), millis(1..300), millis(1..30)),
            Self::SlowAll => host.slow_disk(millis(5..60), millis(1..100), millis(1..5)),
            Self::SyncFailsOnce => host.fail_syncs(Failures::Next(1)),
            Self::SyncFails => host.fail_syncs(Failures::All),
            Self::WriteFails => host.fail_writes(Failures::All),
            Self::Full => host.limit_room(LITTLE_ROOM),
            Self::NoRoom => host.limit_room(0),
            Self::ShortWrites => host.shorten_writes(dice.random_range(2..6)),
        }
        // Only a fault counts up the others, but each sync this one: it must be one that came later.
        Counts { syncs: host.counts().syncs, ..before }
    }

    /// Waits until the node has met it: by what the host counts, or where that counts nothing by what the node says of its room.
    /// Clients write all the time, so it is soon. Whether one that ended may do so is seen when it comes back.
    async fn until_felt(self, cluster: &mut Cluster, node: u64, before: Counts) {
        eventually(&format!("{self:?} is felt by node {node}"), PATIENCE, async || {
            if cluster.has_ended(node) {
                return Ok(());
            }
            let now = cluster.host(node).counts();
            let is_felt = match self {
                Self::SlowLeader | Self::SlowFollower | Self::SlowAll => now.syncs > before.syncs,
                Self::SyncFailsOnce | Self::SyncFails | Self::WriteFails => now.failed > before.failed,
                Self::ShortWrites => now.shortened > before.shortened,
                // It refuses what grows from the moment on at which it sees this.
                Self::Full | Self::NoRoom => {
                    cluster.status(node).await?.disk_free_bytes.is_some_and(|free| free < KEPT_FREE)
                }
            };
            if is_felt { Ok(()) } else { Err(format!("before {before:?}, now {now:?}")) }
        })
        .await;
    }

    /// A node that ended is started again. Only by a disk that fails or has no room at all may it end, and by the code for that.
    fn come_back(self, cluster: &mut Cluster, node: u64) {
        if let Some((end, log)) = cluster.try_end(node) {
            let may_end = matches!(self, Self::SyncFailsOnce | Self::SyncFails | Self::WriteFails | Self::NoRoom);
            let code = if self == Self::NoRoom { EXIT_NO_ROOM } else { EXIT_STORAGE };
            assert!(may_end && end.code() == Some(code), "{self:?}: node {node} ended with {}:\n{log}", describe(end));
            cluster.start_node(node);
        }
    }
}

/// Waits until the node has ended, for no longer than this. Gives whether it has.
async fn ends_within(cluster: &mut Cluster, node: u64, within: Duration) -> bool {
    let looked =
        sooner_than(within, async || if cluster.has_ended(node) { Ok(()) } else { Err("it goes on".to_owned()) });
    looked.await.is_ok()
}
