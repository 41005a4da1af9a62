//! Replacing a voter that is dead for long by a standby, without an operator.
//!
//! Owns the decision, which is pure, and for how long each voter has been silent. The number of voters stays: none goes but
//! for one that is there and caught up. Off unless it is configured.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use quorate_store::raft::NodeId;

use super::cluster_view::ClusterView;
use super::plan::{Change, MembershipState, plan};

/// How long each voter has been silent, as far as this leader knows.
#[derive(Debug, Default)]
pub struct Silences(BTreeMap<NodeId, Instant>);

impl Silences {
    /// A look at the members. A voter that never answered this leader is silent since the leader first looked for it. One that
    /// this leader repairs is silent since it was told to be.
    pub fn note(&mut self, view: &ClusterView, under_repair: Option<NodeId>, now: Instant) {
        let voters = view.membership.voters();
        self.0.retain(|id, _| voters.contains(id));
        for id in voters {
            if view.membership.is_heard(*id) || under_repair == Some(*id) {
                self.0.remove(id);
            } else {
                self.0.entry(*id).or_insert(now);
            }
        }
    }

    /// All of that is over: another node leads.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// For how long.
    pub fn at(&self, now: Instant) -> BTreeMap<NodeId, Duration> {
        self.0.iter().map(|(id, since)| (*id, now.saturating_duration_since(*since))).collect()
    }
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The dead voter.
    pub old: NodeId,
    /// The standby.
    pub new: NodeId,
    /// Why, for the log.
    pub reason: String,
}

/// Whether a voter is to be replaced: the one silent longest, for at least `after`, by the standby that is least behind.
pub fn decide(
    membership: &MembershipState,
    silent: &BTreeMap<NodeId, Duration>,
    after: Duration,
) -> Option<Replacement> {
    if membership.is_joint() {
        return None;
    }
    let dead = silent.iter().filter(|(id, silence)| **silence >= after && membership.voters().contains(id));
    let (old, silence) = dead.max_by_key(|(_, silence)| **silence)?;
    let standbys = membership.health.iter().filter(|(id, _)| !membership.voters().contains(id));
    let fit = standbys.filter(|(id, health)| membership.is_caught_up(**id) && health.is_trusted);
    let (new, _) = fit.min_by_key(|(_, health)| health.lag)?;
    // What an operator would be refused is not done here either.
    plan(membership, Change::Replace { old: *old, new: *new }, false).ok()?;
    let reason = format!("voter {old} was not heard of for {} s, and standby {new} is up to date", silence.as_secs());
    Some(Replacement { old: *old, new: *new, reason })
}

#[cfg(test)]
mod tests {
    use super::super::plan::Health;
    use super::*;

    const AFTER: Duration = Duration::from_secs(60);

    /// Voters 1 to 3, node 1 leads; standbys with their lag, `None` for silent ones.
    fn membership(silent: &[NodeId], standbys: &[(NodeId, Option<u64>)]) -> MembershipState {
        let voter = |id: NodeId| (id, Health { is_heard: !silent.contains(&id), lag: 0, is_trusted: true });
        let standby = |(id, lag): &(NodeId, Option<u64>)| {
            (*id, Health { is_heard: lag.is_some(), lag: lag.unwrap_or(u64::MAX), is_trusted: true })
        };
        let health = (1..=3).map(voter).chain(standbys.iter().map(standby)).collect();
        MembershipState { leader: 1, configs: vec![(1..=3).collect()], health }
    }

    fn silent(list: &[(NodeId, u64)]) -> BTreeMap<NodeId, Duration> {
        list.iter().map(|(id, seconds)| (*id, Duration::from_secs(*seconds))).collect()
    }

    fn pair(membership: &MembershipState, list: &[(NodeId, u64)]) -> Option<(NodeId, NodeId)> {
        decide(membership, &silent(list), AFTER).map(|replacement| (replacement.old, replacement.new))
    }

    #[test]
    fn a_voter_dead_for_long_is_replaced_by_the_standby_that_is_least_behind() {
        let both = membership(&[3], &[(4, Some(9)), (5, Some(2))]);
        assert_eq!(pair(&both, &[(3, 60)]), Some((3, 5)));
        assert_eq!(pair(&both, &[(3, 59)]), None, "not yet");
        assert_eq!(pair(&both, &[]), None, "nobody is dead");
    }

    #[test]
    fn nothing_is_done_without_a_standby_that_is_there_and_caught_up() {
        for standbys in [&[][..], &[(4, None)], &[(4, Some(1_000))]] {
            assert_eq!(pair(&membership(&[3], standbys), &[(3, 600)]), None, "{standbys:?}");
        }
    }

    #[test]
    fn nothing_is_done_where_quorum_is_lost_or_a_change_is_under_way() {
        assert_eq!(pair(&membership(&[2, 3], &[(4, Some(0))]), &[(2, 600), (3, 600)]), None);
        let mut joint = membership(&[3], &[(4, Some(0))]);
        joint.configs.insert(0, [1, 2].into());
        assert_eq!(pair(&joint, &[(3, 600)]), None);
    }

    #[test]
    fn one_at_a_time_and_the_one_dead_longest_first() {
        let mut five = membership(&[3, 5], &[(6, Some(0)), (7, Some(0))]);
        five.configs = vec![[1, 2, 3, 4, 5].into()];
        five.health.insert(4, Health { is_heard: true, lag: 0, is_trusted: true });
        five.health.insert(5, Health { is_heard: false, lag: 0, is_trusted: true });
        assert_eq!(pair(&five, &[(3, 70), (5, 90)]), Some((5, 6)));
    }

    #[test]
    fn a_silence_is_over_with_the_first_answer() {
        let (mut silences, begin) = (Silences::default(), Instant::now());
        let view = |membership| ClusterView {
            membership,
            nodes: BTreeMap::new(),
            membership_at: None,
            contacts: BTreeMap::new(),
        };
        silences.note(&view(membership(&[3], &[])), None, begin);
        assert_eq!(silences.at(begin + AFTER), silent(&[(3, 60)]));
        silences.note(&view(membership(&[3], &[])), None, begin + AFTER);
        assert_eq!(silences.at(begin + AFTER), silent(&[(3, 60)]), "it goes on");
        silences.note(&view(membership(&[], &[])), None, begin + AFTER);
        assert!(silences.at(begin + AFTER).is_empty());
        silences.note(&view(membership(&[3], &[])), None, begin);
        silences.note(&view(membership(&[3], &[])), Some(3), begin + AFTER);
        assert!(silences.at(begin + AFTER).is_empty(), "who is repaired is not dead");
    }
}
