//! The plan of a change, by table and for all small clusters.

use super::*;

fn set(ids: &[NodeId]) -> Nodes {
    ids.iter().copied().collect()
}

/// Node 1 leads; all are heard of and level but for `silent`.
fn membership(voters: &[NodeId], learners: &[NodeId], silent: &[NodeId]) -> MembershipState {
    let all = voters.iter().chain(learners);
    let health = all.map(|id| (*id, Health { is_heard: !silent.contains(id), lag: 0, is_trusted: true })).collect();
    MembershipState { leader: 1, configs: vec![set(voters)], health }
}

fn refusal(membership: &MembershipState, change: Change) -> String {
    plan(membership, change, true).expect_err("must be refused, forced or not")
}

#[test]
fn what_costs_quorum_is_refused_with_its_reason() {
    type List = &'static [NodeId];
    let rows: &[(List, List, List, Change, &str)] = &[
        (&[1], &[], &[], Change::Remove(1), "last voter"),
        (&[1], &[], &[], Change::Demote(1), "last voter"),
        (&[1, 2, 3], &[], &[3], Change::Remove(2), "quorum would be lost"),
        (&[1, 2, 3], &[], &[2, 3], Change::Remove(3), "nothing can be decided"),
        (&[1, 2, 3, 4, 5], &[], &[5], Change::Remove(4), "replace or remove node 5 first"),
        (&[1, 2, 3], &[4], &[3], Change::Promote(4), "replace or remove node 3 first"),
        (&[1, 2, 3], &[4], &[4], Change::Promote(4), "not heard of"),
        (&[1, 2, 3], &[], &[], Change::Promote(4), "no member"),
        (&[1, 2, 3], &[], &[], Change::Demote(4), "no member"),
        (&[1, 2, 3], &[], &[3], Change::Replace { old: 3, new: 4 }, "node 4 is no member"),
        (&[1, 2, 3], &[4], &[3, 4], Change::Replace { old: 3, new: 4 }, "not heard of"),
        (&[1, 2, 3], &[], &[], Change::Replace { old: 3, new: 2 }, "votes already"),
        (&[1, 2, 3], &[], &[], Change::Replace { old: 3, new: 3 }, "by itself"),
        (&[1, 2, 3], &[4, 5], &[], Change::Replace { old: 5, new: 4 }, "remove node 5 instead"),
        (&[1, 2, 3], &[4], &[], Change::Replace { old: 9, new: 4 }, "node 9 is no member"),
        (&[1], &[4], &[], Change::Replace { old: 1, new: 4 }, "make another one vote first"),
    ];
    for (voters, learners, silent, change, words) in rows {
        let said = refusal(&membership(voters, learners, silent), *change);
        assert!(said.contains(words), "{change:?} of {voters:?}, silent {silent:?}: `{words}` is not in `{said}`");
    }
}

#[test]
fn a_learner_that_is_behind_gets_no_vote() {
    let mut behind = membership(&[1, 2, 3], &[4], &[]);
    behind.health.insert(4, Health { is_heard: true, lag: BEHIND_MAX + 1, is_trusted: true });
    for change in [Change::Promote(4), Change::Replace { old: 3, new: 4 }] {
        assert!(refusal(&behind, change).contains("201 entries behind"));
    }
}

/// With some of them in quarantine.
fn distrusting(mut membership: MembershipState, ids: &[NodeId]) -> MembershipState {
    for id in ids {
        membership.health.entry(*id).and_modify(|health| health.is_trusted = false);
    }
    membership
}

#[test]
fn a_node_in_quarantine_gets_no_vote_does_not_lead_and_is_not_left_alone() {
    let one_wrong = distrusting(membership(&[1, 2, 3], &[4], &[]), &[3, 4]);
    for change in [Change::Promote(4), Change::Replace { old: 3, new: 4 }] {
        assert!(refusal(&one_wrong, change).contains("member repair 4"), "{change:?}");
    }
    // Only node 3 could lead instead of node 1.
    let pair = distrusting(membership(&[1, 3], &[], &[]), &[3]);
    assert_eq!(
        refusal(&pair, Change::Remove(1)),
        "that would leave no voter whose state can be trusted; repair node 3 first"
    );
    assert_eq!(one_wrong.successor(&set(&[1, 3])), None);
    assert_eq!(one_wrong.successor(&set(&[1, 2, 3])), Some(2));
    // It goes, of course; that is better than before.
    assert!(plan(&pair, Change::Remove(3), true).is_ok());
    // A sound one goes only if that is meant.
    let five = distrusting(membership(&[1, 2, 3, 4, 5], &[], &[]), &[4, 5]);
    let said = plan(&five, Change::Remove(2), false).expect_err("two sound ones of four cannot tell who is right");
    assert!(said.contains("2 of 4 voters whose state can be trusted") && said.contains("repair nodes 4, 5"), "{said}");
    assert!(plan(&five, Change::Remove(2), true).is_ok());
    assert!(plan(&five, Change::Remove(4), false).is_ok());
}

#[test]
fn giving_up_all_tolerance_has_to_be_meant() {
    let three = membership(&[1, 2, 3], &[], &[]);
    let said = plan(&three, Change::Remove(2), false).expect_err("it leaves no tolerance");
    assert_eq!(
        said,
        "that would leave 2 of 2 voters (1, 3) heard of, 2 needed, one failure from loss; add a voter first, or force it"
    );
    let forced = plan(&three, Change::Remove(2), true).expect("quorum stays");
    assert_eq!((forced.voters, forced.dropped), (set(&[1, 3]), Some(2)));
    // Nothing is given up where there is nothing: the dead voter goes without force.
    let plan = plan(&membership(&[1, 2, 3], &[], &[3]), Change::Remove(3), false).expect("it only gets better");
    assert!(plan.explanation.contains(&"then: 2 of 2 voters (1, 2) heard of, 2 needed: one failure from loss".into()));
}

#[test]
fn what_is_so_already_is_done() {
    let three = membership(&[1, 2, 3], &[4], &[]);
    for (change, words) in [
        (Change::Promote(2), "votes already"),
        (Change::Demote(4), "no vote already"),
        (Change::Remove(9), "no member"),
        (Change::Replace { old: 9, new: 3 }, "node 9 is no member"),
    ] {
        let plan = plan(&three, change, false).expect("it is so");
        assert!(!plan.changes && plan.explanation[0].contains(words), "{change:?}: {plan:?}");
    }
}

#[test]
fn a_replacement_is_one_step_and_its_other_half_can_follow() {
    let three = membership(&[1, 2, 3], &[4], &[3]);
    let whole = plan(&three, Change::Replace { old: 3, new: 4 }, false).expect("better than before");
    assert_eq!((whole.voters, whole.dropped), (set(&[1, 2, 4]), Some(3)));
    let halved = membership(&[1, 2, 4], &[3], &[3]);
    let rest = plan(&halved, Change::Replace { old: 3, new: 4 }, false).expect("only the rest is left");
    assert_eq!((rest.voters, rest.dropped), (set(&[1, 2, 4]), Some(3)));
}

#[test]
fn a_leader_goes_only_where_another_can_lead() {
    let three = membership(&[1, 2, 3], &[4], &[]);
    let plan = plan(&three, Change::Replace { old: 1, new: 4 }, false).expect("2 or 3 can lead");
    assert!(plan.explanation.iter().any(|said| said.contains("hands leadership over first")));
}

/// Every subset of these.
fn subsets(of: &[NodeId]) -> Vec<Vec<NodeId>> {
    (0..1_u32 << of.len())
        .map(|bits| of.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, id)| *id).collect())
        .collect()
}

/// All clusters of up to five voters and two learners, whoever of them is silent, with all requests.
#[test]
fn after_each_plan_the_healthy_voters_are_a_majority_at_every_step() {
    let mut accepted = 0;
    for count in 1..=5 {
        let voters: Vec<NodeId> = (1..=count).collect();
        for learners in [vec![], vec![6], vec![6, 7]] {
            let others: Vec<NodeId> = voters.iter().skip(1).chain(&learners).copied().collect();
            for silent in subsets(&others) {
                accepted += try_all_options(&membership(&voters, &learners, &silent));
            }
        }
    }
    assert!(accepted > 1_000, "only {accepted} plans were accepted");
}

fn try_all_options(membership: &MembershipState) -> usize {
    let ids: Vec<NodeId> = membership.health.keys().copied().chain([9]).collect();
    let single = ids.iter().flat_map(|id| [Change::Promote(*id), Change::Demote(*id), Change::Remove(*id)]);
    let pairs = ids.iter().flat_map(|old| ids.iter().map(|new| Change::Replace { old: *old, new: *new }));
    let mut accepted = 0;
    for change in single.chain(pairs) {
        for force in [false, true] {
            let Ok(plan) = plan(membership, change, force) else { continue };
            if !plan.changes {
                continue;
            }
            accepted += 1;
            let now = membership.voters();
            // The joint configuration needs a majority of both.
            for config in [now, &plan.voters] {
                assert!(membership.heard(config) >= majority(config), "{change:?} of {membership:?} came to {plan:?}");
            }
            assert!(plan.dropped.is_none_or(|id| !plan.voters.contains(&id)), "{change:?}: {plan:?}");
            let leads_on = plan.voters.contains(&membership.leader) || membership.successor(&plan.voters).is_some();
            assert!(leads_on, "{change:?} of {membership:?} leaves nobody to lead: {plan:?}");
            let gives_up = membership.tolerates(&plan.voters) < membership.tolerates(now);
            let left = membership.tolerates(&plan.voters) > Some(0);
            assert!(force || !gives_up || left, "{change:?} of {membership:?} was not forced: {plan:?}");
        }
    }
    accepted
}

#[test]
fn where_all_are_well_nothing_but_tolerance_is_in_the_way() {
    for count in 2..=5 {
        let voters: Vec<NodeId> = (1..=count).collect();
        let all_well = membership(&voters, &[6], &[]);
        for id in &voters {
            assert!(plan(&all_well, Change::Remove(*id), true).is_ok());
            assert!(plan(&all_well, Change::Replace { old: *id, new: 6 }, false).is_ok());
        }
        assert!(plan(&all_well, Change::Promote(6), false).is_ok());
        assert!(plan(&all_well, Change::Remove(6), false).is_ok());
    }
}

#[test]
fn nobody_that_leaves_is_a_member_without_a_vote_in_between() {
    let three = membership(&[1, 2, 3], &[4], &[]);
    let rows = [
        (Change::Remove(3), Way::VoteAndDrop(3)),
        (Change::Remove(4), Way::Drop(4)),
        (Change::Replace { old: 3, new: 4 }, Way::Exchange),
        (Change::Promote(4), Way::Votes),
        (Change::Demote(3), Way::Votes),
    ];
    for (change, way) in rows {
        let plan = plan(&three, change, true).expect("it can be done");
        assert_eq!(plan.way(&three), way, "{change:?}");
    }
    // What an earlier build left half done.
    let half = membership(&[1, 2, 4], &[3], &[]);
    let rest = plan(&half, Change::Replace { old: 3, new: 4 }, false).expect("it can be done");
    assert_eq!(rest.way(&half), Way::Drop(3));
}

#[test]
fn a_change_that_is_under_way_tells_whether_somebody_goes() {
    let joint = |from: &[NodeId], to: &[NodeId]| {
        let mut joint = membership(&[1, 2, 3], &[4], &[]);
        joint.configs = vec![set(from), set(to)];
        joint.is_exchange()
    };
    assert!(joint(&[1, 2, 3], &[1, 2, 4]), "node 4 for node 3");
    assert!(!joint(&[1, 2, 3], &[1, 2]), "node 3 loses its vote and stays");
    assert!(!joint(&[1, 2, 3], &[1, 2, 3, 4]), "node 4 gets a vote");
    assert!(!membership(&[1, 2, 3], &[4], &[]).is_exchange(), "nothing is under way");
}
