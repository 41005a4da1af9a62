//! Faults of disks: slow, failing, full, and such as take only parts of writes.
//!
//! Owns what each does to the hosts of nodes, and what has to become of a node then. Needs a cluster that was started with
//! [`crate::Settings::hosted`].

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::nemesis::Place;
use crate::cluster::{Cluster, PATIENCE};
use crate::host::Failures;
use crate::node_process::describe;

/// Exit code of a node that cannot believe its disk any more.
pub const EXIT_STORAGE: i32 = 3;
/// Room that is less than a node keeps free by its defaults, and enough to go on with.
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
    /// From its cause to its end. Gives the node that it hurts most.
    pub(super) async fn cause(self, cluster: &mut Cluster, place: &Place, lasts: Duration, dice: &mut StdRng) -> u64 {
        let node = match self {
            Self::SlowFollower | Self::SyncFails | Self::NoRoom => place.follower,
            _ => place.leader,
        };
        let hurt = match self {
            Self::SlowAll | Self::Full | Self::ShortWrites => place.all.clone(),
            _ => vec![node],
        };
        for id in &hurt {
            self.begin(cluster, *id, dice);
        }
        match self {
            Self::SyncFails | Self::WriteFails => until_it_ends(cluster, node, PATIENCE).await,
            Self::SyncFailsOnce => until_it_ends(cluster, node, TOLERATED).await,
            _ => tokio::time::sleep(lasts).await,
        }
        for id in hurt {
            cluster.host(id).heal_disk();
            self.come_back(cluster, id).await;
        }
        node
    }

    fn begin(self, cluster: &Cluster, node: u64, dice: &mut StdRng) {
        let host = cluster.host(node);
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
    }

    /// A node that ended is started again. Only by a disk that fails or has no room at all may it end, and by the code for that.
    async fn come_back(self, cluster: &mut Cluster, node: u64) {
        if let Some((end, log)) = cluster.try_end(node) {
            let may_end = matches!(self, Self::SyncFailsOnce | Self::SyncFails | Self::WriteFails | Self::NoRoom);
            assert!(
                may_end && end.code() == Some(EXIT_STORAGE),
                "{self:?}: node {node} ended with {}:\n{log}",
                describe(end)
            );
            cluster.start_node(node);
        }
        cluster.wait_ready(node).await;
    }
}

/// Waits until the node has ended, for no longer than this. Whoever has to end and does not is found out by its exit code.
async fn until_it_ends(cluster: &mut Cluster, node: u64, within: Duration) {
    let until = tokio::time::Instant::now() + within;
    while !cluster.has_ended(node) && tokio::time::Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
