//! The plan of a change, by table and for all small clusters.

use super::*;

fn set(ids: &[NodeId]) -> Nodes {
    ids.iter().copied().collect()
}

/// Node 1 leads; all are heard of and level but for `silent`.
fn standing(voters: &[NodeId], learners: &[NodeId], silent: &[NodeId]) -> Standing {
    let all = voters.iter().chain(learners);
    let health = all.map(|id| (*id, Health { is_heard: !silent.contains(id), lag: 0, is_trusted: true })).collect();
    Standing { leader: 1, configs: vec![set(voters)], health }
}

fn refusal(standing: &Standing, wish: Wish) -> String {
    plan(standing, wish, true).expect_err("must be refused, forced or not")
}

#[test]
fn what_costs_quorum_is_refused_with_its_reason() {
    type List = &'static [NodeId];
    let rows: &[(List, List, List, Wish, &str)] = &[
        (&[1], &[], &[], Wish::Remove(1), "last voter"),
        (&[1], &[], &[], Wish::Demote(1), "last voter"),
        (&[1, 2, 3], &[], &[3], Wish::Remove(2), "quorum would be lost"),
        (&[1, 2, 3], &[], &[2, 3], Wish::Remove(3), "nothing can be decided"),
        (&[1, 2, 3, 4, 5], &[], &[5], Wish::Remove(4), "replace or remove node 5 first"),
        (&[1, 2, 3], &[4], &[3], Wish::Promote(4), "replace or remove node 3 first"),
        (&[1, 2, 3], &[4], &[4], Wish::Promote(4), "not heard of"),
        (&[1, 2, 3], &[], &[], Wish::Promote(4), "no member"),
        (&[1, 2, 3], &[], &[], Wish::Demote(4), "no member"),
        (&[1, 2, 3], &[], &[3], Wish::Replace { old: 3, new: 4 }, "node 4 is no member"),
        (&[1, 2, 3], &[4], &[3, 4], Wish::Replace { old: 3, new: 4 }, "not heard of"),
        (&[1, 2, 3], &[], &[], Wish::Replace { old: 3, new: 2 }, "votes already"),
        (&[1, 2, 3], &[], &[], Wish::Replace { old: 3, new: 3 }, "by itself"),
        (&[1, 2, 3], &[4, 5], &[], Wish::Replace { old: 5, new: 4 }, "remove node 5 instead"),
        (&[1, 2, 3], &[4], &[], Wish::Replace { old: 9, new: 4 }, "node 9 is no member"),
        (&[1], &[4], &[], Wish::Replace { old: 1, new: 4 }, "make another one vote first"),
    ];
    for (voters, learners, silent, wish, words) in rows {
        let said = refusal(&standing(voters, learners, silent), *wish);
        assert!(said.contains(words), "{wish:?} of {voters:?}, silent {silent:?}: `{words}` is not in `{said}`");
    }
}

#[test]
fn a_learner_that_is_behind_gets_no_vote() {
    let mut behind = standing(&[1, 2, 3], &[4], &[]);
    behind.health.insert(4, Health { is_heard: true, lag: BEHIND_MAX + 1, is_trusted: true });
    for wish in [Wish::Promote(4), Wish::Replace { old: 3, new: 4 }] {
        assert!(refusal(&behind, wish).contains("201 entries behind"));
    }
}

/// With some of them in quarantine.
fn distrusting(mut standing: Standing, ids: &[NodeId]) -> Standing {
    for id in ids {
        standing.health.entry(*id).and_modify(|health| health.is_trusted = false);
    }
    standing
}

#[test]
fn a_node_in_quarantine_gets_no_vote_does_not_lead_and_is_not_left_alone() {
    let one_wrong = distrusting(standing(&[1, 2, 3], &[4], &[]), &[3, 4]);
    for wish in [Wish::Promote(4), Wish::Replace { old: 3, new: 4 }] {
        assert!(refusal(&one_wrong, wish).contains("member repair 4"), "{wish:?}");
    }
    // Only node 3 could lead instead of node 1.
    let pair = distrusting(standing(&[1, 3], &[], &[]), &[3]);
    assert_eq!(
        refusal(&pair, Wish::Remove(1)),
        "that would leave no voter whose state can be trusted; repair node 3 first"
    );
    assert_eq!(one_wrong.successor(&set(&[1, 3])), None);
    assert_eq!(one_wrong.successor(&set(&[1, 2, 3])), Some(2));
    // It goes, of course; that is better than before.
    assert!(plan(&pair, Wish::Remove(3), true).is_ok());
    // A sound one goes only if that is meant.
    let five = distrusting(standing(&[1, 2, 3, 4, 5], &[], &[]), &[4, 5]);
    let said = plan(&five, Wish::Remove(2), false).expect_err("two sound ones of four cannot tell who is right");
    assert!(said.contains("2 of 4 voters whose state can be trusted") && said.contains("repair nodes 4, 5"), "{said}");
    assert!(plan(&five, Wish::Remove(2), true).is_ok());
    assert!(plan(&five, Wish::Remove(4), false).is_ok());
}

#[test]
fn giving_up_all_tolerance_has_to_be_meant() {
    let three = standing(&[1, 2, 3], &[], &[]);
    let said = plan(&three, Wish::Remove(2), false).expect_err("it leaves no tolerance");
    assert_eq!(
        said,
        "that would leave 2 of 2 voters (1, 3) heard of, 2 needed, one failure from loss; add a voter first, or force it"
    );
    let forced = plan(&three, Wish::Remove(2), true).expect("quorum stays");
    assert_eq!((forced.voters, forced.dropped), (set(&[1, 3]), Some(2)));
    // Nothing is given up where there is nothing: the dead voter goes without force.
    let plan = plan(&standing(&[1, 2, 3], &[], &[3]), Wish::Remove(3), false).expect("it only gets better");
    assert!(plan.explanation.contains(&"then: 2 of 2 voters (1, 2) heard of, 2 needed: one failure from loss".into()));
}

#[test]
fn what_is_so_already_is_done() {
    let three = standing(&[1, 2, 3], &[4], &[]);
    for (wish, words) in [
        (Wish::Promote(2), "votes already"),
        (Wish::Demote(4), "no vote already"),
        (Wish::Remove(9), "no member"),
        (Wish::Replace { old: 9, new: 3 }, "node 9 is no member"),
    ] {
        let plan = plan(&three, wish, false).expect("it is so");
        assert!(!plan.changes && plan.explanation[0].contains(words), "{wish:?}: {plan:?}");
    }
}

#[test]
fn a_replacement_is_one_step_and_its_other_half_can_follow() {
    let three = standing(&[1, 2, 3], &[4], &[3]);
    let whole = plan(&three, Wish::Replace { old: 3, new: 4 }, false).expect("better than before");
    assert_eq!((whole.voters, whole.dropped), (set(&[1, 2, 4]), Some(3)));
    let halved = standing(&[1, 2, 4], &[3], &[3]);
    let rest = plan(&halved, Wish::Replace { old: 3, new: 4 }, false).expect("only the rest is left");
    assert_eq!((rest.voters, rest.dropped), (set(&[1, 2, 4]), Some(3)));
}

#[test]
fn a_leader_goes_only_where_another_can_lead() {
    let three = standing(&[1, 2, 3], &[4], &[]);
    let plan = plan(&three, Wish::Replace { old: 1, new: 4 }, false).expect("2 or 3 can lead");
    assert!(plan.explanation.iter().any(|said| said.contains("hands leadership over first")));
}

/// Every subset of these.
fn subsets(of: &[NodeId]) -> Vec<Vec<NodeId>> {
    (0..1_u32 << of.len())
        .map(|bits| of.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, id)| *id).collect())
        .collect()
}

/// All clusters of up to five voters and two learners, whoever of them is silent, with all wishes.
#[test]
fn after_each_plan_the_healthy_voters_are_a_majority_at_every_step() {
    let mut accepted = 0;
    for count in 1..=5 {
        let voters: Vec<NodeId> = (1..=count).collect();
        for learners in [vec![], vec![6], vec![6, 7]] {
            let others: Vec<NodeId> = voters.iter().skip(1).chain(&learners).copied().collect();
            for silent in subsets(&others) {
                accepted += try_all_wishes(&standing(&voters, &learners, &silent));
            }
        }
    }
    assert!(accepted > 1_000, "only {accepted} plans were accepted");
}

fn try_all_wishes(standing: &Standing) -> usize {
    let ids: Vec<NodeId> = standing.health.keys().copied().chain([9]).collect();
    let single = ids.iter().flat_map(|id| [Wish::Promote(*id), Wish::Demote(*id), Wish::Remove(*id)]);
    let pairs = ids.iter().flat_map(|old| ids.iter().map(|new| Wish::Replace { old: *old, new: *new }));
    let mut accepted = 0;
    for wish in single.chain(pairs) {
        for force in [false, true] {
            let Ok(plan) = plan(standing, wish, force) else { continue };
            if !plan.changes {
                continue;
            }
            accepted += 1;
            let now = standing.voters();
            // The joint configuration needs a majority of both.
            for config in [now, &plan.voters] {
                assert!(standing.heard(config) >= majority(config), "{wish:?} of {standing:?} came to {plan:?}");
            }
            assert!(plan.dropped.is_none_or(|id| !plan.voters.contains(&id)), "{wish:?}: {plan:?}");
            let leads_on = plan.voters.contains(&standing.leader) || standing.successor(&plan.voters).is_some();
            assert!(leads_on, "{wish:?} of {standing:?} leaves nobody to lead: {plan:?}");
            let gives_up = standing.tolerates(&plan.voters) < standing.tolerates(now);
            let left = standing.tolerates(&plan.voters) > Some(0);
            assert!(force || !gives_up || left, "{wish:?} of {standing:?} was not forced: {plan:?}");
        }
    }
    accepted
}

#[test]
fn where_all_are_well_nothing_but_tolerance_is_in_the_way() {
    for count in 2..=5 {
        let voters: Vec<NodeId> = (1..=count).collect();
        let all_well = standing(&voters, &[6], &[]);
        for id in &voters {
            assert!(plan(&all_well, Wish::Remove(*id), true).is_ok());
            assert!(plan(&all_well, Wish::Replace { old: *id, new: 6 }, false).is_ok());
        }
        assert!(plan(&all_well, Wish::Promote(6), false).is_ok());
        assert!(plan(&all_well, Wish::Remove(6), false).is_ok());
    }
}
