//! A node that only its own log makes a member.
//!
//! Owns that judgement, by what is in the log and what is committed. Never asks another node.

use openraft::async_runtime::WatchReceiver;
use quorate_store::raft::{Membership, NodeId};

use super::super::Raft;

/// Index of the entry that founds a cluster.
const FOUNDING: u64 = 0;

/// Whether the log of this node, `node_id`, makes it a member by a change that it never saw committed. The next leader may undo that: then the node
/// is no member, and never was. Nobody undoes the founding, which is the first entry.
pub fn is_unsettled(node_id: NodeId, raft: &Raft) -> bool {
    let metrics = raft.server_metrics();
    let metrics = metrics.borrow_watched();
    let [in_log, committed] = [&metrics.membership_config, &metrics.committed_membership_config];
    let index = in_log.log_id().map(|at| at.index());
    is_only_in_log(node_id, (index, in_log.membership()), committed.membership())
}

fn is_only_in_log(id: NodeId, (index, in_log): (Option<u64>, &Membership), committed: &Membership) -> bool {
    index != Some(FOUNDING) && in_log.get_node(&id).is_some() && committed.get_node(&id).is_none()
}

#[cfg(test)]
mod tests {
    use quorate_store::raft::wire::{MemberRecord, MembershipRecord};

    use super::*;

    fn members(ids: &[NodeId]) -> Membership {
        let member = |id: &NodeId| {
            (*id, MemberRecord { peer_addr: format!("peer:{id}"), client_addr: String::new(), incarnation: 7 })
        };
        let nodes = ids.iter().map(member).collect();
        MembershipRecord { configs: vec![[1, 2, 3].into()], nodes }.try_into().expect("a membership")
    }

    #[test]
    fn a_node_whose_addition_was_never_committed_is_no_removed_one() {
        let (without, with) = (members(&[1, 2, 3]), members(&[1, 2, 3, 4]));
        let later = |membership| (Some(50), membership);
        assert!(is_only_in_log(4, later(&with), &without), "the next leader may undo it");
        assert!(
            !is_only_in_log(4, later(&with), &with) && !is_only_in_log(4, later(&without), &with),
            "it was a member"
        );
        assert!(!is_only_in_log(1, later(&with), &without), "it is one of the first");
    }

    #[test]
    fn a_founder_that_saw_nothing_committed_is_a_member_all_the_same() {
        let founding = members(&[1, 2, 3]);
        let nothing = Membership::default();
        assert!(!is_only_in_log(3, (Some(FOUNDING), &founding), &nothing));
        assert!(is_only_in_log(3, (Some(50), &founding), &nothing));
    }
}
