//! How the members stand, as their leader knows from openraft's metrics.
//!
//! Owns when a member counts as heard of. Decides nothing, and knows nothing on a node that does not lead.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use openraft::async_runtime::WatchReceiver;
use openraft::{Instant as _, RaftMetrics};
use quorate_node_core::backend::members::{MemberSeen, MembersSeen};
use quorate_store::raft::{LogId, Member, NodeId, TypeConfig};

use super::super::App;
use super::plan::{self, Health, MembershipState, Nodes};

/// A member that answered nothing for so long is not heard of. Dozens of heartbeats, and longer than a disk stalls.
const HEARD_WITHIN: Duration = Duration::from_secs(2);
/// How long members have to answer before a change: two dozen heartbeats.
const SETTLE_MAX: Duration = Duration::from_millis(1_500);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What the leader sees.
#[derive(Debug, Clone)]
pub struct ClusterView {
    /// For judging.
    pub membership: MembershipState,
    /// How to reach each member.
    pub nodes: BTreeMap<NodeId, Member>,
    /// The log entry that all this is by.
    pub membership_at: Option<LogId>,
    /// How long ago each member answered last; `None` for never since this node leads.
    pub contacts: BTreeMap<NodeId, Option<Duration>>,
}

impl ClusterView {
    /// What this node sees; `None` where it does not lead.
    pub fn of(app: &App) -> Option<Self> {
        if !app.members().is_leader() {
            return None;
        }
        let metrics = app.raft().metrics().borrow_watched().clone();
        Self::from_metrics(&metrics, &app.integrity().distrusted(app.node_id()))
    }

    /// The view for a change of members, in which only members that answer from now on count as reachable. A voter that died a moment
    /// ago must not be counted on.
    pub async fn settled(app: &App) -> Option<Self> {
        let begin = Instant::now();
        loop {
            let mut view = Self::of(app)?;
            let asked = begin.elapsed();
            let silent = view.silent_for_more_than(asked);
            if silent.is_empty() {
                return Some(view);
            }
            if asked >= SETTLE_MAX {
                for id in silent {
                    view.membership.health.entry(id).and_modify(|health| health.is_heard = false);
                }
                return Some(view);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn silent_for_more_than(&self, time: Duration) -> Nodes {
        let answered = |contact: &Option<Duration>| contact.is_some_and(|silence| silence <= time);
        self.contacts.iter().filter(|(_, contact)| !answered(contact)).map(|(id, _)| *id).collect()
    }

    /// Waits until a member is heard of and hardly behind. False: not before the deadline.
    pub async fn wait_caught_up(app: &App, id: NodeId, deadline: Instant) -> Option<bool> {
        loop {
            if Self::of(app)?.membership.is_caught_up(id) {
                return Some(true);
            }
            if Instant::now() >= deadline {
                return Some(false);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn from_metrics(metrics: &RaftMetrics<TypeConfig>, distrusted: &Nodes) -> Option<Self> {
        let (heartbeat, replication) = (metrics.heartbeat.as_ref()?, metrics.replication.as_ref()?);
        let membership = metrics.membership_config.membership();
        let last = metrics.last_log_index.unwrap_or(0);
        let nodes: BTreeMap<NodeId, Member> = membership.nodes().map(|(id, member)| (*id, member.clone())).collect();
        let (mut health, mut contacts) = (BTreeMap::new(), BTreeMap::new());
        for id in nodes.keys() {
            let is_self = *id == metrics.id;
            let heard = heartbeat.get(id).and_then(Option::as_ref).map(|at| at.elapsed());
            let contact = if is_self { Some(Duration::ZERO) } else { heard };
            let matched = replication.get(id).and_then(Option::as_ref).map(|log_id| log_id.index);
            // Who has nothing is not near, however short the log is.
            let lag = if is_self { 0 } else { matched.map_or(u64::MAX, |matched| last.saturating_sub(matched)) };
            let is_heard = contact.is_some_and(|silence| silence < HEARD_WITHIN);
            health.insert(*id, Health { is_heard, lag, is_trusted: !distrusted.contains(id) });
            contacts.insert(*id, contact);
        }
        let configs: Vec<Nodes> = membership.get_joint_config().clone();
        let membership = (!configs.is_empty()).then_some(MembershipState { leader: metrics.id, configs, health })?;
        let membership_at = *metrics.membership_config.log_id();
        Some(Self { membership, nodes, membership_at, contacts })
    }

    /// Who has no vote.
    pub fn learners(&self) -> Vec<NodeId> {
        self.nodes.keys().copied().filter(|id| !self.membership.voters().contains(id)).collect()
    }

    /// As it is told to those who ask.
    pub fn shown(&self) -> MembersSeen {
        let voters = self.membership.voters();
        let member = |(id, member): (&NodeId, &Member)| MemberSeen {
            id: *id,
            peer_addr: member.peer_addr.clone(),
            client_addr: member.client_addr.clone(),
            votes: voters.contains(id),
            is_heard: self.membership.is_heard(*id),
            lag: self.membership.health.get(id).map_or(u64::MAX, |health| health.lag),
            last_contact_ms: self.contacts.get(id).copied().flatten().map(quorate_node_core::millis::millis),
        };
        MembersSeen {
            leader: self.membership.leader,
            changing: self.membership.is_joint(),
            majority: plan::majority(voters) as u64,
            prospect: plan::prospect(&self.membership, voters),
            members: self.nodes.iter().map(member).collect(),
        }
    }
}
