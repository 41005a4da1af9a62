//! What a change of the members would come to, and whether it may be made.
//!
//! Owns that judgement and its sentences. Pure: no clock, no I/O; who is heard of and how far each is, it is told. Whatever it
//! lets pass leaves a majority of healthy voters at each step, that of the joint configuration included.

use std::collections::{BTreeMap, BTreeSet};

use quorate_store::raft::NodeId;

/// Entries that a node may be behind to get a vote: the vote must not make writes wait for it.
pub const BEHIND_MAX: u64 = 200;

/// Entries that the next leader may be behind at the moment of choosing; the leader sends it the rest before it gives up its place.
pub const SUCCESSOR_BEHIND_MAX: u64 = 2_000;

/// A set of node ids.
pub type Nodes = BTreeSet<NodeId>;

/// The members as their leader knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembershipState {
    /// Who knows it.
    pub leader: NodeId,
    /// Voter sets: one, or two while a change is under way.
    pub configs: Vec<Nodes>,
    /// All members, voters or not.
    pub health: BTreeMap<NodeId, Health>,
}

/// What the leader knows of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Whether it answered lately.
    pub is_heard: bool,
    /// Log entries that it is behind.
    pub lag: u64,
    /// Whether its state is trusted. Where it is not its vote and its log are as good as any, but it serves nobody and is not to
    /// lead.
    pub is_trusted: bool,
}

/// What is wanted. Taking in a new member is none of it: that concerns no quorum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A learner is to vote.
    Promote(NodeId),
    /// A voter is to be a learner.
    Demote(NodeId),
    /// A member is to go.
    Remove(NodeId),
    /// A voter is to go and a learner to vote in its place, in one step.
    Replace {
        /// Who goes.
        old: NodeId,
        /// Who votes instead.
        new: NodeId,
    },
}

/// A change that may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Who votes afterwards.
    pub voters: Nodes,
    /// Who is no member any more once it does not vote.
    pub dropped: Option<NodeId>,
    /// Whether there is anything to do.
    pub changes: bool,
    /// What it means, sentences for people.
    pub explanation: Vec<String>,
}

/// How a plan gets into the log. A leader may die after each entry, and whoever leads next must see what was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Somebody without a vote goes: one entry.
    Drop(NodeId),
    /// A voter goes: one entry, in which it is neither a voter nor a member any more. Voter sets that differ by one node have no
    /// majorities apart.
    VoteAndDrop(NodeId),
    /// One is to vote, or not to vote, and is a member before and after: jointly.
    Votes,
    /// One votes in place of another, which goes: jointly, and the entry that ends it lets that one go.
    Exchange,
}

impl Plan {
    /// How it gets into the log.
    pub fn way(&self, membership: &MembershipState) -> Way {
        let now = membership.voters();
        match self.dropped {
            None => Way::Votes,
            Some(id) if self.voters == *now => Way::Drop(id),
            Some(id) if self.voters.is_subset(now) => Way::VoteAndDrop(id),
            Some(_) => Way::Exchange,
        }
    }
}

impl MembershipState {
    /// Whether the change under way is an [exchange](Way::Exchange): nothing else both gives and takes a vote.
    pub fn is_exchange(&self) -> bool {
        let before: Nodes =
            self.configs.split_last().into_iter().flat_map(|(_, before)| before.iter().flatten()).copied().collect();
        self.is_joint() && !before.is_subset(self.voters()) && !self.voters().is_subset(&before)
    }

    /// Who votes, or will once the change under way is over.
    pub fn voters(&self) -> &Nodes {
        self.configs.last().expect("a group has a configuration")
    }

    /// Whether a change is under way.
    pub fn is_joint(&self) -> bool {
        self.configs.len() > 1
    }

    /// Whether a member answered lately.
    pub fn is_heard(&self, id: NodeId) -> bool {
        self.health.get(&id).is_some_and(|health| health.is_heard)
    }

    /// Whether a member answered lately and is hardly behind.
    pub fn is_caught_up(&self, id: NodeId) -> bool {
        self.health.get(&id).is_some_and(|health| health.is_heard && health.lag <= BEHIND_MAX)
    }

    /// How many of them answered lately.
    pub fn heard(&self, set: &Nodes) -> usize {
        set.iter().filter(|id| self.is_heard(**id)).count()
    }

    /// How many of them answered lately and have a state that can be trusted.
    fn sound(&self, set: &Nodes) -> usize {
        set.iter().filter(|id| self.is_heard(**id) && !self.is_distrusted(**id)).count()
    }

    /// Whether a member is known to have a state that cannot be trusted.
    pub fn is_distrusted(&self, id: NodeId) -> bool {
        self.health.get(&id).is_some_and(|health| !health.is_trusted)
    }

    /// Those that did not answer lately.
    fn silent(&self, set: &Nodes) -> Nodes {
        set.iter().copied().filter(|id| !self.is_heard(*id)).collect()
    }

    /// How many more of them may fail; `None` where they are no majority now.
    pub fn tolerates(&self, set: &Nodes) -> Option<usize> {
        self.heard(set).checked_sub(majority(set))
    }

    /// The voter that leads best if the leader is not to: of these, one that [can](Self::can_succeed) and is furthest ahead.
    pub fn successor(&self, among: &Nodes) -> Option<NodeId> {
        let fit = among.iter().filter(|id| self.can_succeed(**id));
        fit.min_by_key(|id| self.health.get(id).map_or(u64::MAX, |health| health.lag)).copied()
    }

    /// Whether a node can lead next: another voter, heard of, with a state that is trusted, and near enough to be sent the rest.
    pub fn can_succeed(&self, id: NodeId) -> bool {
        let fit = |health: &Health| health.is_heard && health.is_trusted && health.lag <= SUCCESSOR_BEHIND_MAX;
        id != self.leader && self.voters().contains(&id) && self.health.get(&id).is_some_and(fit)
    }
}

/// How many of them are a majority.
pub fn majority(set: &Nodes) -> usize {
    set.len() / 2 + 1
}

/// Judges a request. `force` lets pass what is only unwise. The refusal is a sentence for people.
pub fn plan(membership: &MembershipState, change: Change, force: bool) -> Result<Plan, String> {
    let now = membership.voters().clone();
    let Goal { voters, dropped, already } = goal(membership, change)?;
    if let Some(said) = already {
        return Ok(Plan { voters: now, dropped: None, changes: false, explanation: vec![said] });
    }
    check_now(membership)?;
    if voters != now {
        check_goal(membership, &now, &voters)?;
        check_tolerance(membership, &now, &voters, force)?;
    }
    let explanation = explain(membership, change, &now, &voters);
    Ok(Plan { voters, dropped, changes: true, explanation })
}

/// Where a request leads, or that it is there.
struct Goal {
    voters: Nodes,
    dropped: Option<NodeId>,
    already: Option<String>,
}

fn goal(membership: &MembershipState, change: Change) -> Result<Goal, String> {
    let mut voters = membership.voters().clone();
    let is_member = |id| membership.health.contains_key(&id);
    let already = |said: String| Ok(Goal { voters: Nodes::new(), dropped: None, already: Some(said) });
    let mut dropped = None;
    match change {
        Change::Promote(id) if voters.contains(&id) => return already(format!("node {id} votes already")),
        Change::Demote(id) if is_member(id) && !voters.contains(&id) => {
            return already(format!("node {id} has no vote already"));
        }
        Change::Remove(id) if !is_member(id) => return already(format!("node {id} is no member")),
        Change::Promote(id) => {
            check_candidate(membership, id)?;
            voters.insert(id);
        }
        Change::Demote(id) if !is_member(id) => return Err(format!("node {id} is no member")),
        Change::Demote(id) => {
            voters.remove(&id);
        }
        Change::Remove(id) => {
            voters.remove(&id);
            dropped = Some(id);
        }
        Change::Replace { old, new } => match replace(membership, old, new)? {
            Replacement::Done => return already(format!("node {new} votes, and node {old} is no member")),
            Replacement::OnlyDrop => dropped = Some(old),
            Replacement::Whole => {
                voters.remove(&old);
                voters.insert(new);
                dropped = Some(old);
            }
        },
    }
    Ok(Goal { voters, dropped, already: None })
}

/// What is left to do of a replacement that may have been begun before.
enum Replacement {
    Done,
    OnlyDrop,
    Whole,
}

fn replace(membership: &MembershipState, old: NodeId, new: NodeId) -> Result<Replacement, String> {
    let votes = |id| membership.voters().contains(&id);
    let is_member = |id| membership.health.contains_key(&id);
    if old == new {
        return Err(format!("node {old} cannot be replaced by itself: a new disk needs a new node id"));
    }
    match (votes(old), votes(new)) {
        (false, true) if !is_member(old) => Ok(Replacement::Done),
        // The other half of a replacement that was interrupted.
        (false, true) => Ok(Replacement::OnlyDrop),
        (true, true) => Err(format!("node {new} votes already, so it takes nobody's place; remove node {old} instead")),
        (false, false) if !is_member(old) => Err(format!("node {old} is no member")),
        (false, false) => Err(format!("node {old} has no vote that node {new} could take; remove node {old} instead")),
        (true, false) => check_candidate(membership, new).map(|()| Replacement::Whole),
    }
}

/// Whether a node can be given a vote.
fn check_candidate(membership: &MembershipState, id: NodeId) -> Result<(), String> {
    let Some(health) = membership.health.get(&id) else {
        return Err(format!("node {id} is no member: start it with the join list of this cluster, or add it first"));
    };
    if !health.is_heard {
        return Err(format!("node {id} is not heard of, so it cannot vote; see that it runs and can be reached"));
    }
    if !health.is_trusted {
        return Err(format!(
            "node {id} is in quarantine, so it gets no vote; rebuild its state first: member repair {id}"
        ));
    }
    if health.lag > BEHIND_MAX {
        let lag = health.lag;
        return Err(format!(
            "node {id} is {lag} entries behind, at most {BEHIND_MAX} are allowed for a vote; wait until it caught up"
        ));
    }
    Ok(())
}

/// No change can be decided where a configuration in force has no majority.
fn check_now(membership: &MembershipState) -> Result<(), String> {
    for config in &membership.configs {
        if membership.tolerates(config).is_none() {
            return Err(format!(
                "{}, so nothing can be decided: bring {} back first",
                state(membership, config),
                nodes(&membership.silent(config))
            ));
        }
    }
    Ok(())
}

fn check_goal(membership: &MembershipState, now: &Nodes, goal: &Nodes) -> Result<(), String> {
    if goal.is_empty() {
        return Err(format!("{} is the last voter: without it there is no cluster", nodes(now)));
    }
    let silent = membership.silent(goal);
    let Some(spare) = membership.tolerates(goal) else {
        return Err(format!(
            "that would leave {}: quorum would be lost; bring {} back or remove it first",
            state(membership, goal),
            nodes(&silent)
        ));
    };
    if membership.sound(goal) == 0 && membership.sound(now) > 0 {
        return Err(format!(
            "that would leave no voter whose state can be trusted; {}",
            repair_first(membership, goal)
        ));
    }
    let removes_silent = now.difference(goal).any(|id| !membership.is_heard(*id));
    if spare == 0 && !silent.is_empty() && !removes_silent {
        return Err(format!(
            "that would leave {}: each of those heard of would be needed while {} is gone; replace or remove {} first",
            state(membership, goal),
            nodes(&silent),
            nodes(&silent)
        ));
    }
    if !goal.contains(&membership.leader) && membership.successor(goal).is_none() {
        return Err(format!(
            "node {} leads, and no other voter that stays is up to date to lead instead; make another one vote first",
            membership.leader
        ));
    }
    Ok(())
}

/// A change that gives up all tolerance has to be meant.
fn check_tolerance(membership: &MembershipState, now: &Nodes, goal: &Nodes, force: bool) -> Result<(), String> {
    let is_lost = membership.tolerates(goal) == Some(0) && membership.tolerates(now).is_some_and(|spare| spare > 0);
    if is_lost && !force {
        let state = state(membership, goal);
        return Err(format!("that would leave {state}, one failure from loss; add a voter first, or force it"));
    }
    let judges = |set: &Nodes| membership.sound(set) >= majority(set);
    if judges(now) && !judges(goal) && !force {
        let (sound, all) = (membership.sound(goal), goal.len());
        return Err(format!(
            "that would leave {sound} of {all} voters whose state can be trusted, no majority to tell who is right; {}, or force it",
            repair_first(membership, goal)
        ));
    }
    Ok(())
}

fn explain(membership: &MembershipState, change: Change, now: &Nodes, goal: &Nodes) -> Vec<String> {
    let mut said = vec![match change {
        Change::Promote(id) => format!("node {id} gets a vote"),
        Change::Demote(id) => {
            format!(
                "node {id} loses its vote and stays as a learner; start it with --standby from now on, or it asks for its vote again"
            )
        }
        Change::Remove(id) => {
            format!("node {id} is no member any more and ends; its id and its disk are not used again")
        }
        Change::Replace { old, new } => format!("node {new} votes in place of node {old}, which is no member any more"),
    }];
    if now == goal {
        said.push(format!("votes stay as they are: {}", prospect(membership, now)));
        return said;
    }
    if !goal.contains(&membership.leader) {
        said.push(format!("node {} leads now and hands leadership over first", membership.leader));
    }
    said.push(format!("now: {}", prospect(membership, now)));
    said.push(format!("then: {}", prospect(membership, goal)));
    if goal.len().is_multiple_of(2) {
        said.push("an even number of voters tolerates no more failures than one voter less would".into());
    }
    said
}

/// How it stands, and how many failures that is from loss.
pub fn prospect(membership: &MembershipState, set: &Nodes) -> String {
    let state = state(membership, set);
    match membership.tolerates(set) {
        None => format!("{state}: quorum is lost"),
        Some(0) => format!("{state}: one failure from loss"),
        Some(1) => format!("{state}: one failure is tolerated"),
        Some(more) => format!("{state}: {more} failures are tolerated"),
    }
}

fn state(membership: &MembershipState, set: &Nodes) -> String {
    let (heard, all) = (membership.heard(set), set.len());
    format!("{heard} of {all} voters ({}) heard of, {} needed", ids(set), majority(set))
}

fn ids(set: &Nodes) -> String {
    set.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", ")
}

/// What to do about those in quarantine.
fn repair_first(membership: &MembershipState, set: &Nodes) -> String {
    let distrusted: Nodes = set.iter().copied().filter(|id| membership.is_distrusted(*id)).collect();
    format!("repair {} first", nodes(&distrusted))
}

/// "node 1", "nodes 1, 2".
fn nodes(set: &Nodes) -> String {
    let plural = if set.len() == 1 { "" } else { "s" };
    format!("node{plural} {}", ids(set))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
