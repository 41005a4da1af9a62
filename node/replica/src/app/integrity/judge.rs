//! Whose state is wrong, where nodes hold different digests at one log index.
//!
//! Owns the judgement. Pure. Never guesses: only a majority of the voters says who is right.
//!
//! # The rule
//!
//! A node is *contradicted* where a majority of the voters holds something else than it holds, at the newest index at which it can be
//! compared with a majority. It is wrong, and nothing that it holds says anything about others.
//!
//! Where two nodes that are not contradicted hold different digests at an index that is newer than any at which a majority agrees
//! with the one that asks, that is a *split*: one of them is wrong, and nobody can say which. An older agreement says nothing about it. Until a
//! majority does, the leader's state counts: what was answered to clients was decided on it. So the leader goes on, whoever is seen to hold
//! what the leader holds at that index or a newer one goes on, and everybody else in the split stops serving, see [`Side`]. Whoever
//! stopped for a split is no judge of itself but goes on being a witness: as soon as a majority agrees with it, at that index or a newer
//! one, it was right and serves again, and those it differed from are contradicted, a leader too. That holds for what may happen meanwhile:
//!
//! - Another leader: those that stopped neither serve nor lead, whoever leads; the next leader is one that had not stopped, if there is one.
//! - Two nodes of three are left and differ: the leader goes on, the other stops. The third decides when it comes back.
//! - All differ: the leader goes on alone.
//! - A leader that does not trust its own state, or none at all: nobody knows what counts, and all that are in the split wait for one.
//! - Only nodes without a vote differ from a voter: it goes on, and they wait until a majority says who is right.
//! - A node that is repaired has no digests of what it held before, so it is compared by what it was given.

use std::collections::{BTreeMap, BTreeSet};

use quorate_store::raft::NodeId;

/// Digests by log index, of one node.
pub type Digests = BTreeMap<u64, u128>;

/// What a comparison comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is no index at which a majority of the voters could be compared, and nobody who can be compared differs.
    Unknown,
    /// A majority holds what this node holds at this index, the greatest there is; these nodes are contradicted, and nobody else
    /// differs at a newer one.
    Agrees {
        /// Log index.
        index: u64,
        /// Those that differ.
        diverged: BTreeSet<NodeId>,
    },
    /// A majority of the voters holds something else than this node.
    Diverged {
        /// Log index.
        index: u64,
        /// What this node holds.
        own: u128,
        /// What the majority holds.
        theirs: u128,
        /// The majority.
        majority: BTreeSet<NodeId>,
    },
    /// Nodes differ from this one, and no majority says who is right.
    Split {
        /// The newest log index at which they do.
        index: u64,
        /// Those that differ from this node there.
        others: BTreeSet<NodeId>,
        /// Whether this node goes on.
        side: Side,
    },
}

/// On which side of a split a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It leads, is seen to hold what the leader holds, or has a vote where nobody else in the split does: it goes on.
    Leader,
    /// The leader holds something else, or what it holds there is not seen: it does not serve until a majority agrees with it.
    Other,
    /// No leader is known that trusts its state: it does not serve until one is.
    Unclear,
}

/// Compares the digests of this node with those of the others that answered and are not known to be contradicted. The leader is one
/// that trusts its state; it may be this node.
pub fn judge(
    self_id: NodeId,
    leader: Option<NodeId>,
    voters: &BTreeSet<NodeId>,
    own: &Digests,
    others: &BTreeMap<NodeId, Digests>,
) -> Verdict {
    let mut all: BTreeMap<NodeId, &Digests> = others.iter().map(|(node, digests)| (*node, digests)).collect();
    all.insert(self_id, own);
    let compared = Compared { voters, all };
    let agreed = match compared.with_majority(self_id) {
        Some(Majority { index, own, theirs, nodes }) if own != theirs => {
            return Verdict::Diverged { index, own, theirs, majority: nodes };
        }
        agreed => agreed,
    };
    let diverged: BTreeSet<NodeId> = others.keys().copied().filter(|node| compared.is_contradicted(*node)).collect();
    let newer = agreed.as_ref().map_or(0, |agreed| agreed.index + 1)..;
    for (index, digest) in own.range(newer).rev() {
        let differs = |(node, digests): (&NodeId, &Digests)| {
            let differs = !diverged.contains(node) && digests.get(index).is_some_and(|other| other != digest);
            differs.then_some(*node)
        };
        let those: BTreeSet<NodeId> = others.iter().filter_map(differs).collect();
        if !those.is_empty() {
            let side = match leader {
                None => Side::Unclear,
                Some(leader) if leader == self_id => Side::Leader,
                Some(leader) if !diverged.contains(&leader) && compared.hold_the_same(self_id, leader, *index) => {
                    Side::Leader
                }
                // Anybody may add a learner, and one that is wrong takes no voter away.
                Some(_) if voters.contains(&self_id) && those.is_disjoint(voters) => Side::Leader,
                Some(_) => Side::Other,
            };
            return Verdict::Split { index: *index, others: those, side };
        }
    }
    agreed.map_or(Verdict::Unknown, |Majority { index, .. }| Verdict::Agrees { index, diverged })
}

/// What a majority holds where a node can be compared with it.
struct Majority {
    index: u64,
    own: u128,
    theirs: u128,
    nodes: BTreeSet<NodeId>,
}

/// All digests at hand.
struct Compared<'a> {
    voters: &'a BTreeSet<NodeId>,
    all: BTreeMap<NodeId, &'a Digests>,
}

impl Compared<'_> {
    /// The newest index at which a majority holds one digest and this node holds any.
    fn with_majority(&self, node: NodeId) -> Option<Majority> {
        self.all.get(&node)?.iter().rev().find_map(|(index, own)| {
            let (theirs, nodes) = self.majority_at(*index)?;
            Some(Majority { index: *index, own: *own, theirs, nodes })
        })
    }

    /// The digest that a majority of the voters holds at an index, and who holds it, those without a vote too.
    fn majority_at(&self, index: u64) -> Option<(u128, BTreeSet<NodeId>)> {
        let mut held: BTreeMap<u128, BTreeSet<NodeId>> = BTreeMap::new();
        for (node, digests) in &self.all {
            if let Some(digest) = digests.get(&index) {
                held.entry(*digest).or_default().insert(*node);
            }
        }
        held.into_iter().find(|(_, nodes)| nodes.intersection(self.voters).count() > self.voters.len() / 2)
    }

    fn is_contradicted(&self, node: NodeId) -> bool {
        self.with_majority(node).is_some_and(|majority| majority.own != majority.theirs)
    }

    /// Whether two nodes hold the same at the newest index at which both hold anything, where that is this one or a newer one.
    fn hold_the_same(&self, one: NodeId, other: NodeId, index: u64) -> bool {
        let (Some(one), Some(other)) = (self.all.get(&one), self.all.get(&other)) else { return false };
        let both = one.range(index..).rev().find_map(|(index, digest)| Some((digest, other.get(index)?)));
        both.is_some_and(|(one, other)| one == other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOTERS: [NodeId; 3] = [1, 2, 3];

    fn at(points: &[(u64, u128)]) -> Digests {
        points.iter().copied().collect()
    }

    fn judged_under(leader: Option<NodeId>, own: &[(u64, u128)], others: &[(NodeId, &[(u64, u128)])]) -> Verdict {
        let others = others.iter().map(|(node, points)| (*node, at(points))).collect();
        judge(1, leader, &BTreeSet::from(VOTERS), &at(own), &others)
    }

    fn judged(own: &[(u64, u128)], others: &[(NodeId, &[(u64, u128)])]) -> Verdict {
        judged_under(Some(1), own, others)
    }

    fn split(index: u64, others: &[NodeId], side: Side) -> Verdict {
        Verdict::Split { index, others: others.iter().copied().collect(), side }
    }

    #[test]
    fn a_majority_decides_at_the_greatest_index_that_it_has() {
        let agrees =
            |index, diverged: &[NodeId]| Verdict::Agrees { index, diverged: diverged.iter().copied().collect() };
        assert_eq!(judged(&[(5, 1), (9, 2)], &[(2, &[(5, 1)]), (3, &[(5, 1), (8, 8)])]), agrees(5, &[]));
        assert_eq!(judged(&[(5, 1), (9, 2)], &[(2, &[(5, 1), (9, 2)])]), agrees(9, &[]));
        assert_eq!(judged(&[(5, 1)], &[(2, &[(5, 1)]), (3, &[(5, 7)])]), agrees(5, &[3]));
        // One that a majority contradicts is no witness against those that it agrees with.
        assert_eq!(judged(&[(5, 1), (9, 2)], &[(2, &[(5, 1)]), (3, &[(5, 7), (9, 8)])]), agrees(5, &[3]));
        let majority = BTreeSet::from([2, 3]);
        let diverged = Verdict::Diverged { index: 5, own: 7, theirs: 1, majority };
        assert_eq!(judged(&[(5, 7), (6, 9)], &[(2, &[(5, 1)]), (3, &[(5, 1)])]), diverged);
    }

    #[test]
    fn without_a_majority_the_leader_s_state_counts() {
        let sides = [(Some(1), Side::Leader), (Some(2), Side::Other), (Some(3), Side::Other), (None, Side::Unclear)];
        for (leader, side) in sides {
            assert_eq!(judged_under(leader, &[(5, 1)], &[(2, &[(5, 2)])]), split(5, &[2], side), "{leader:?}");
            let all_differ = judged_under(leader, &[(5, 1)], &[(2, &[(5, 2)]), (3, &[(5, 3)])]);
            assert_eq!(all_differ, split(5, &[2, 3], side), "{leader:?}");
        }
        assert_eq!(judged(&[(5, 1)], &[]), Verdict::Unknown);
        assert_eq!(judged(&[(5, 1)], &[(2, &[(6, 1)])]), Verdict::Unknown);
    }

    #[test]
    fn an_older_agreement_hides_no_split() {
        let older = &[(4, 9), (5, 1)];
        let others: &[(NodeId, &[(u64, u128)])] = &[(2, &[(4, 9), (5, 2)]), (3, &[(4, 9)])];
        assert_eq!(judged_under(Some(1), older, others), split(5, &[2], Side::Leader));
        assert_eq!(judged_under(Some(2), older, others), split(5, &[2], Side::Other));
        assert_eq!(judged_under(Some(3), older, others), split(5, &[2], Side::Other), "what it holds is not seen");
        // A newer one does: whoever differed is found at that one, or agrees by then.
        let newer: &[(NodeId, &[(u64, u128)])] = &[(2, &[(5, 2), (6, 3)]), (3, &[(6, 3)])];
        assert!(matches!(judged(&[(5, 1), (6, 3)], newer), Verdict::Agrees { index: 6, .. }));
    }

    #[test]
    fn whoever_holds_what_the_leader_holds_goes_on() {
        let voters = BTreeSet::from([1, 2, 3, 4, 5]);
        let side = |leader_holds: &[(u64, u128)]| {
            let others = BTreeMap::from([(2, at(leader_holds)), (3, at(&[(5, 7)]))]);
            match judge(1, Some(2), &voters, &at(&[(4, 9), (5, 1), (6, 2)]), &others) {
                Verdict::Split { index: 5, side, .. } => side,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(side(&[(5, 1)]), Side::Leader);
        assert_eq!(side(&[(6, 2)]), Side::Leader, "newer is as good");
        assert_eq!(side(&[(4, 9)]), Side::Other, "older is not");
        assert_eq!(side(&[]), Side::Other);
        assert_eq!(side(&[(5, 7)]), Side::Other, "it is one of the others");
    }

    #[test]
    fn whoever_has_no_vote_makes_no_majority_but_is_told_by_one() {
        let learner = |own| {
            let others = BTreeMap::from([(1, at(&[(5, 1)])), (2, at(&[(5, 1)]))]);
            judge(9, Some(1), &BTreeSet::from(VOTERS), &at(&[(5, own)]), &others)
        };
        assert!(matches!(learner(2), Verdict::Diverged { index: 5, .. }));
        assert_eq!(learner(1), Verdict::Agrees { index: 5, diverged: BTreeSet::new() });
        assert_eq!(judged(&[(5, 1)], &[(9, &[(5, 1)])]), Verdict::Unknown);
        assert_eq!(judged(&[(5, 1)], &[(9, &[(5, 2)])]), split(5, &[9], Side::Leader));
        // A voter goes on whose leader is not at this index yet, a learner does not, nor does a voter that differs from another one, too.
        let learner_differs = judged_under(Some(2), &[(5, 1)], &[(2, &[(4, 1)]), (9, &[(5, 2)])]);
        assert_eq!(learner_differs, split(5, &[9], Side::Leader));
        let others = BTreeMap::from([(2, at(&[(4, 1)])), (3, at(&[(5, 1)]))]);
        let of_learner = judge(9, Some(2), &BTreeSet::from(VOTERS), &at(&[(5, 2)]), &others);
        assert_eq!(of_learner, split(5, &[3], Side::Other));
        let both_differ = judged_under(Some(2), &[(5, 1)], &[(3, &[(5, 3)]), (9, &[(5, 2)])]);
        assert_eq!(both_differ, split(5, &[3, 9], Side::Other));
    }

    /// Of all ways in which three or five nodes can hold one of three digests: nobody is called diverged who holds what a
    /// majority holds, and whoever a majority differs from is.
    #[test]
    fn no_majority_is_ever_called_diverged() {
        for count in [3u32, 5] {
            let voters: BTreeSet<NodeId> = (1..=u64::from(count)).collect();
            for ways in 0..3u32.pow(count) {
                let digest = |node: NodeId| u128::from(ways / 3u32.pow(node as u32 - 1) % 3);
                let others = voters.iter().filter(|node| **node != 1).map(|node| (*node, at(&[(4, digest(*node))])));
                let verdict = judge(1, Some(2), &voters, &at(&[(4, digest(1))]), &others.collect());
                let with_me = voters.iter().filter(|node| digest(**node) == digest(1)).count();
                let most = (0..3).map(|value| voters.iter().filter(|node| digest(**node) == value).count()).max();
                let needed = voters.len() / 2 + 1;
                match verdict {
                    Verdict::Agrees { .. } => assert!(with_me >= needed, "{ways}"),
                    Verdict::Diverged { .. } => assert!(with_me < needed && most >= Some(needed), "{ways}"),
                    Verdict::Split { .. } => assert!(most < Some(needed), "{ways}"),
                    Verdict::Unknown => panic!("all were compared: {ways}"),
                }
            }
        }
    }

    fn serves(verdict: &Verdict) -> bool {
        match verdict {
            Verdict::Unknown | Verdict::Agrees { .. } | Verdict::Split { side: Side::Leader, .. } => true,
            Verdict::Diverged { .. } | Verdict::Split { side: Side::Other | Side::Unclear, .. } => false,
        }
    }

    /// The newest index at which both hold something, and whether it is the same.
    fn newest_common(one: &Digests, other: &Digests) -> Option<(u64, bool)> {
        one.iter().rev().find_map(|(index, digest)| Some((*index, other.get(index)? == digest)))
    }

    /// Of all ways in which three nodes can hold one of two digests or nothing at each of three indexes, under each leader and none:
    /// no two nodes serve of which one differs from the other at the newest index at which they can be compared, unless a newer
    /// majority has confirmed one of them; and a difference that no newer majority decided is told by both.
    #[test]
    fn nobody_serves_on_the_wrong_side_and_no_difference_goes_untold() {
        const CELLS: u32 = 9;
        let voters = BTreeSet::from(VOTERS);
        let mut splits = 0;
        for ways in 0..3u32.pow(CELLS) {
            let cell = move |node: u64, index: u64| ways / 3u32.pow((3 * (node - 1) + index - 1) as u32) % 3;
            let of_node =
                |node| (1..=3).filter_map(move |index| Some((index, cell(node, index).checked_sub(1)?.into())));
            let all: BTreeMap<NodeId, Digests> = VOTERS.map(|node| (node, of_node(node).collect())).into();
            for leader in [None, Some(1), Some(2), Some(3)] {
                let verdicts: BTreeMap<NodeId, Verdict> = VOTERS
                    .map(|node| {
                        let mut others = all.clone();
                        let own = others.remove(&node).unwrap();
                        (node, judge(node, leader, &voters, &own, &others))
                    })
                    .into();
                let compared =
                    Compared { voters: &voters, all: all.iter().map(|(node, held)| (*node, held)).collect() };
                let confirmed = |node| match compared.with_majority(node) {
                    Some(Majority { index, own, theirs, .. }) if own == theirs => index,
                    _ => 0,
                };
                for (one, other) in [(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2)] {
                    let Some((index, false)) = newest_common(&all[&one], &all[&other]) else { continue };
                    if confirmed(one).max(confirmed(other)) > index {
                        continue;
                    }
                    let said = format!("{one} and {other} at {index} of {all:?} under {leader:?}: {verdicts:?}");
                    assert!(!serves(&verdicts[&one]) || !serves(&verdicts[&other]), "both serve: {said}");
                    match &verdicts[&one] {
                        Verdict::Unknown => panic!("nothing is told: {said}"),
                        Verdict::Agrees { diverged, .. } => assert!(diverged.contains(&other), "{said}"),
                        Verdict::Split { index: at, side, .. } => {
                            assert!(*at >= index || compared.is_contradicted(other), "{said}");
                            assert_eq!(*side == Side::Unclear, leader.is_none(), "{said}");
                            splits += 1;
                        }
                        Verdict::Diverged { .. } => {}
                    }
                }
                // Where there is a leader somebody goes on, unless a majority contradicts it.
                if let Some(leader) = leader {
                    let goes_on = serves(&verdicts[&leader]);
                    assert!(goes_on || matches!(verdicts[&leader], Verdict::Diverged { .. }), "{verdicts:?}");
                }
            }
        }
        assert!(splits > 1_000, "{splits}");
    }
}
