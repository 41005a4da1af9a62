//! Whether the members have room for more.
//!
//! Owns what the leader knows of the data disks of the others, and the judgement over it. A follower cannot refuse what the leader
//! has decided: it takes entries until its disk is full, and ends then. So the leader refuses what grows the state as soon as those
//! that have room are no quorum any more, while deletes can still make some; and what frees nothing once those are none that have
//! more than [the last of it](super::last_room). Never counts a disk as full that nobody spoke of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use futures::future::join_all;
use quorate_store::raft::NodeId;

use super::App;
use super::members::cluster_view::ClusterView;
use super::members::plan::{MembershipState, majority};
use crate::peer::message::{DiskRoom, Lack, PeerRequest, PeerResponse};

/// How often the leader asks.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// For one question.
const ASK: Duration = Duration::from_millis(1_000);

/// Disks by member.
type Disks = BTreeMap<NodeId, DiskRoom>;

/// What the leader concluded last; nothing on the others.
#[derive(Debug, Default)]
pub struct Room {
    full: ArcSwapOption<Lacking>,
    at_last: ArcSwapOption<Lacking>,
}

/// Members without whose disks there is no quorum.
type Lacking = Vec<(NodeId, DiskRoom)>;

impl Room {
    /// Why nothing may grow, if so; a few nanoseconds.
    pub fn lack(&self) -> Option<Lack> {
        let full = self.full.load();
        full.as_ref().map(|full| Lack::Members { full: full.to_vec() })
    }

    /// Why nothing is taken that frees nothing, if so.
    pub fn lack_of_last(&self) -> Option<Lack> {
        let at_last = self.at_last.load();
        at_last.as_ref().map(|full| Lack::Members { full: full.to_vec() })
    }

    /// What an operator should know.
    pub fn warning(&self) -> Option<String> {
        self.full.load().as_ref().map(|full| said(full))
    }

    fn note(&self, full: Lacking, at_last: Lacking) {
        let was_full = self.full.load().is_some();
        if !full.is_empty() && !was_full {
            tracing::error!(?full, "the others have no room for more: what grows the state is refused");
        }
        if full.is_empty() && was_full {
            tracing::warn!("there is room for more again");
        }
        self.full.store((!full.is_empty()).then(|| Arc::new(full)));
        self.at_last.store((!at_last.is_empty()).then(|| Arc::new(at_last)));
    }
}

/// The sentence for people.
pub fn said(full: &[(NodeId, DiskRoom)]) -> String {
    let of = |(id, disk): &(NodeId, DiskRoom)| {
        format!("that of node {id} has {} bytes free, writes need {}", disk.free, disk.needed)
    };
    let disks = full.iter().map(of).collect::<Vec<_>>().join("; ");
    format!(
        "data disks are nearly full, and without those nodes there is no quorum: {disks}. Free some space there or remove keys"
    )
}

/// Asks the others as long as this node leads, until it is aborted.
pub async fn run(app: App) {
    let mut disks = Disks::new();
    loop {
        tokio::time::sleep(ASK_EVERY).await;
        let Some(view) = ClusterView::of(&app) else {
            disks.clear();
            app.space().others().note(Lacking::new(), Lacking::new());
            continue;
        };
        let others = view.membership.health.keys().copied().filter(|id| *id != app.node_id());
        let node = &app;
        let asked = others.map(|id| async move { disk_of(node, id).await.map(|disk| (id, disk)) });
        // Of a node that is silent the last word counts: it may have ended since its disk is full.
        disks.extend(join_all(asked).await.into_iter().flatten());
        disks.retain(|id, _| view.membership.health.contains_key(id));
        let low = |disk: DiskRoom| disk.is_low().then_some(disk);
        let full = without_room(&view.membership, &disks, low);
        app.space().others().note(full, without_room(&view.membership, &disks, DiskRoom::at_its_last));
    }
}

/// Silence is no answer, and a build that knows no such question says nothing of its disk.
async fn disk_of(app: &App, id: NodeId) -> Option<DiskRoom> {
    match app.peers().ask(id, PeerRequest::Room, Instant::now() + ASK).await {
        Ok(PeerResponse::Room(disk)) => Some(disk),
        Ok(other) => {
            tracing::warn!(node = id, ?other, "an answer to Room that is none");
            None
        }
        Err(error) => {
            quorate_node_core::debug!(node = id, %error, "does not say how much room it has");
            None
        }
    }
}

/// The voters whose disks are full, by what is said of each, where those that are there and have room are no majority.
fn without_room(
    membership: &MembershipState,
    disks: &Disks,
    is_full: impl Fn(DiskRoom) -> Option<DiskRoom>,
) -> Lacking {
    let full = |id: &NodeId| disks.get(id).copied().and_then(&is_full).map(|disk| (*id, disk));
    let mut lacking = Disks::new();
    for config in &membership.configs {
        let fine = config.iter().filter(|id| membership.is_heard(**id) && full(id).is_none()).count();
        if fine < majority(config) {
            lacking.extend(config.iter().filter_map(full));
        }
    }
    lacking.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::members::plan::Health;
    use super::*;

    const FINE: DiskRoom = DiskRoom { free: 10, needed: 10 };
    const LOW: DiskRoom = DiskRoom { free: 9, needed: 10 };

    /// Voters 1 to `voters`; node 1 leads.
    fn membership(voters: u64, silent: &[NodeId]) -> MembershipState {
        let health = |id: NodeId| (id, Health { is_heard: !silent.contains(&id), lag: 0, is_trusted: true });
        MembershipState {
            leader: 1,
            configs: vec![(1..=voters).collect()],
            health: (1..=voters + 1).map(health).collect(),
        }
    }

    fn low(disk: DiskRoom) -> Option<DiskRoom> {
        disk.is_low().then_some(disk)
    }

    fn lacking(membership: &MembershipState, full: &[NodeId]) -> Vec<NodeId> {
        let disk = |id: &NodeId| (*id, if full.contains(id) { LOW } else { FINE });
        let disks = membership.health.keys().map(disk).collect();
        without_room(membership, &disks, low).into_iter().map(|(id, _)| id).collect()
    }

    #[test]
    fn what_frees_nothing_ends_later_than_growth() {
        const MIB: u64 = 1 << 20;
        let three = membership(3, &[]);
        let disks = |free| (1..=3).map(|id| (id, DiskRoom { free, needed: 256 * MIB })).collect();
        assert_eq!(without_room(&three, &disks(64 * MIB), low).len(), 3);
        assert_eq!(without_room(&three, &disks(64 * MIB), DiskRoom::at_its_last), []);
        let last = DiskRoom { free: 63 * MIB, needed: 64 * MIB };
        let lacking = without_room(&three, &disks(63 * MIB), DiskRoom::at_its_last);
        assert_eq!(lacking, [(1, last), (2, last), (3, last)]);
    }

    #[test]
    fn growth_ends_where_those_with_room_are_no_quorum() {
        let three = membership(3, &[]);
        assert_eq!(lacking(&three, &[]), [0; 0]);
        assert_eq!(lacking(&three, &[3]), [0; 0], "two go on without it");
        assert_eq!(lacking(&three, &[2, 3]), [2, 3]);
        assert_eq!(lacking(&three, &[4]), [0; 0], "one without a vote is no part of a quorum");
        // One is gone: the other must not go as well.
        assert_eq!(lacking(&membership(3, &[2]), &[3]), [3]);
        // Its last word was that it is full.
        assert_eq!(lacking(&membership(3, &[2]), &[2]), [0; 0]);
        assert_eq!(lacking(&membership(3, &[2]), &[2, 3]), [2, 3]);
        assert_eq!(lacking(&membership(5, &[]), &[4, 5]), [0; 0]);
        assert_eq!(lacking(&membership(5, &[]), &[3, 4, 5]), [3, 4, 5]);
    }

    #[test]
    fn silence_alone_is_no_lack_of_room() {
        assert_eq!(without_room(&membership(3, &[2, 3]), &Disks::new(), low), []);
    }

    #[test]
    fn each_configuration_of_a_change_needs_its_quorum() {
        let mut joint = membership(5, &[]);
        joint.configs = vec![[1, 2, 3].into(), [1, 4, 5].into()];
        assert_eq!(lacking(&joint, &[4, 5]), [4, 5]);
        assert_eq!(lacking(&joint, &[3, 4]), [0; 0]);
    }

    #[test]
    fn the_sentence_names_each_of_them() {
        let words = said(&[(2, LOW), (3, LOW)]);
        assert!(words.contains("node 2 has 9 bytes free") && words.contains("node 3"), "{words}");
    }
}
