//! Whose state is wrong, where nodes hold different digests at one log index.
//!
//! Owns the judgement. Pure. Never guesses: only a majority of the voters says who is right.

use std::collections::{BTreeMap, BTreeSet};

use quorate_store::raft::NodeId;

/// Digests by log index, of one node.
pub type Digests = BTreeMap<u64, u128>;

/// What a comparison comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is no index at which a majority of the voters could be compared.
    Unknown,
    /// A majority holds what this node holds at this index, the greatest there is; these nodes hold something else.
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
    /// Nodes differ, and there is no majority for anything.
    Split {
        /// Log index.
        index: u64,
    },
}

/// Compares the digests of this node with those of the others that answered.
pub fn judge(self_id: NodeId, voters: &BTreeSet<NodeId>, own: &Digests, others: &BTreeMap<NodeId, Digests>) -> Verdict {
    let needed = voters.len() / 2 + 1;
    let mut split = None;
    for (index, digest) in own.iter().rev() {
        let held = holders(self_id, (*index, *digest), others);
        let votes = |nodes: &BTreeSet<NodeId>| nodes.intersection(voters).count();
        match held.iter().find(|(_, nodes)| votes(nodes) >= needed) {
            Some((theirs, majority)) if theirs != digest => {
                let (index, own, theirs, majority) = (*index, *digest, *theirs, majority.clone());
                return Verdict::Diverged { index, own, theirs, majority };
            }
            Some((_, majority)) => {
                let diverged = held.values().flatten().filter(|node| !majority.contains(node)).copied().collect();
                return Verdict::Agrees { index: *index, diverged };
            }
            None if held.len() > 1 => split = split.or(Some(*index)),
            None => {}
        }
    }
    split.map_or(Verdict::Unknown, |index| Verdict::Split { index })
}

/// The nodes that hold each digest at an index.
fn holders(
    self_id: NodeId,
    (index, own): (u64, u128),
    others: &BTreeMap<NodeId, Digests>,
) -> BTreeMap<u128, BTreeSet<NodeId>> {
    let mut held = BTreeMap::from([(own, BTreeSet::from([self_id]))]);
    for (node, digests) in others {
        if let Some(digest) = digests.get(&index) {
            held.entry(*digest).or_default().insert(*node);
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(points: &[(u64, u128)]) -> Digests {
        points.iter().copied().collect()
    }

    fn judged(own: &[(u64, u128)], others: &[(NodeId, &[(u64, u128)])]) -> Verdict {
        let others = others.iter().map(|(node, points)| (*node, at(points))).collect();
        judge(1, &BTreeSet::from([1, 2, 3]), &at(own), &others)
    }

    #[test]
    fn a_majority_decides_at_the_greatest_index_that_it_has() {
        let agrees =
            |index, diverged: &[NodeId]| Verdict::Agrees { index, diverged: diverged.iter().copied().collect() };
        assert_eq!(judged(&[(5, 1), (9, 2)], &[(2, &[(5, 1)]), (3, &[(5, 1), (8, 8)])]), agrees(5, &[]));
        assert_eq!(judged(&[(5, 1), (9, 2)], &[(2, &[(5, 1), (9, 2)])]), agrees(9, &[]));
        assert_eq!(judged(&[(5, 1)], &[(2, &[(5, 1)]), (3, &[(5, 7)])]), agrees(5, &[3]));
        let majority = BTreeSet::from([2, 3]);
        let diverged = Verdict::Diverged { index: 5, own: 7, theirs: 1, majority };
        assert_eq!(judged(&[(5, 7), (6, 9)], &[(2, &[(5, 1)]), (3, &[(5, 1)])]), diverged);
    }

    #[test]
    fn without_a_majority_nobody_is_wrong() {
        assert_eq!(judged(&[(5, 1)], &[]), Verdict::Unknown);
        assert_eq!(judged(&[(5, 1)], &[(2, &[(6, 1)])]), Verdict::Unknown);
        assert_eq!(judged(&[(5, 1)], &[(2, &[(5, 2)])]), Verdict::Split { index: 5 });
        assert_eq!(judged(&[(5, 1)], &[(2, &[(5, 2)]), (3, &[(5, 3)])]), Verdict::Split { index: 5 });
        // One that has no vote makes no majority, but is told by one.
        let learner = |own| {
            let others = BTreeMap::from([(1, at(&[(5, 1)])), (2, at(&[(5, 1)]))]);
            judge(9, &BTreeSet::from([1, 2, 3]), &at(&[(5, own)]), &others)
        };
        assert!(matches!(learner(2), Verdict::Diverged { index: 5, .. }));
        assert_eq!(learner(1), Verdict::Agrees { index: 5, diverged: BTreeSet::new() });
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
                let verdict = judge(1, &voters, &at(&[(4, digest(1))]), &others.collect());
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
}
