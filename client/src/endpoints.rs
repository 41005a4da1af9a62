//! Which node to ask next.
//!
//! Owns what is known of the nodes: who leads, who failed lately. Pure: time comes in as an argument, nothing is sent.

use std::time::{Duration, Instant};

/// How long a node is left alone after its first failure; doubles with each further one.
const AVOID_MIN: Duration = Duration::from_millis(100);
/// At most this long, so that a node that came back is soon used again.
const AVOID_MAX: Duration = Duration::from_secs(3);
/// Pause between two rounds of asking the nodes who they are.
const INTRODUCTION_PAUSE: Duration = Duration::from_secs(1);

/// One of the nodes that a client was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// `host:port`
    pub address: String,
    /// Whether it is reached by TLS.
    pub is_tls: bool,
}

/// Where linearizable reads go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Reads {
    /// To all nodes in turn. A follower asks its leader once for each *batch* of reads, so this costs little and uses
    /// the processors of all nodes.
    #[default]
    Spread,
    /// To the leader, as long as it is well. Saves the batch's extra hop: lowest latency for few clients.
    Leader,
}

/// What a request would like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preference {
    /// The leader, which saves forwarding.
    Leader,
    /// Any node, in turn.
    Any,
}

/// What every answer says about the cluster, in its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LeaderHint {
    /// Raft term of the node that answered.
    pub term: u64,
    /// The leader it knows.
    pub leader_id: Option<u64>,
}

#[derive(Debug)]
struct Node {
    id: Option<u64>,
    failures: u32,
    avoid_until: Option<Instant>,
}

/// The nodes, by their place in the list of endpoints.
#[derive(Debug)]
pub(crate) struct Endpoints {
    nodes: Vec<Node>,
    /// Highest term seen; what older terms say of the leader is ignored.
    term: u64,
    leader_id: Option<u64>,
    /// The leader's place, where it is in the list. Invariant: less than `nodes.len()`.
    leader: Option<usize>,
    next: usize,
    introduced_at: Option<Instant>,
}

impl Endpoints {
    /// `count` nodes of which nothing is known. `start` is where the turn begins, so that clients spread.
    pub fn new(count: usize, start: usize) -> Self {
        assert!(count > 0, "a client has at least one endpoint, not {count}");
        let nodes = (0..count).map(|_| Node { id: None, failures: 0, avoid_until: None }).collect();
        Self { nodes, term: 0, leader_id: None, leader: None, next: start % count, introduced_at: None }
    }

    /// The node to ask now. `not` has just failed this very request: it comes last.
    pub fn pick(&mut self, preference: Preference, not: Option<usize>, now: Instant) -> usize {
        if preference == Preference::Leader
            && let Some(leader) = self.leader
            && Some(leader) != not
            && self.is_well(leader, now)
        {
            return leader;
        }
        let count = self.nodes.len();
        let turn = (0..count).map(|step| (self.next + step) % count);
        let well = turn.clone().find(|&node| Some(node) != not && self.is_well(node, now));
        let others = turn.filter(|&node| Some(node) != not || count == 1);
        let pick = well.or_else(|| others.min_by_key(|&node| self.nodes[node].avoid_until));
        let pick = pick.expect("either one node is well, or the others than `not` are not empty");
        self.next = (pick + 1) % count;
        pick
    }

    /// A node answered.
    pub fn on_answer(&mut self, node: usize, hint: LeaderHint) {
        let entry = &mut self.nodes[node];
        if entry.failures != 0 {
            entry.failures = 0;
            entry.avoid_until = None;
        }
        self.hear(hint);
    }

    /// A node could not be reached, broke off, or cannot serve.
    pub fn on_failure(&mut self, node: usize, now: Instant) {
        let entry = &mut self.nodes[node];
        let avoid = AVOID_MIN.saturating_mul(1 << entry.failures.min(8)).min(AVOID_MAX);
        entry.failures = entry.failures.saturating_add(1);
        entry.avoid_until = Some(now + avoid);
        if self.leader == Some(node) {
            self.leader = None;
            self.leader_id = None;
        }
    }

    /// A node said who it is.
    pub fn introduce(&mut self, node: usize, id: u64, hint: LeaderHint) {
        self.nodes[node].id = Some(id);
        self.on_answer(node, hint);
        self.find_leader();
    }

    /// Whether the nodes should be asked for their ids now: a leader is known by an id that belongs to none of them. Says
    /// yes at most once a second, since the leader may well not be among the endpoints.
    pub fn begin_introduction(&mut self, now: Instant) -> bool {
        let stranger = self.leader_id.is_some() && self.leader.is_none();
        let rested = self.introduced_at.is_none_or(|at| now.duration_since(at) >= INTRODUCTION_PAUSE);
        if stranger && rested && self.nodes.len() > 1 {
            self.introduced_at = Some(now);
            return true;
        }
        false
    }

    fn is_well(&self, node: usize, now: Instant) -> bool {
        self.nodes[node].avoid_until.is_none_or(|until| until <= now)
    }

    fn hear(&mut self, hint: LeaderHint) {
        let news = hint.leader_id.is_some() && hint.leader_id != self.leader_id;
        if hint.term < self.term || (hint.term == self.term && !news) {
            return;
        }
        self.term = hint.term;
        self.leader_id = hint.leader_id;
        self.find_leader();
    }

    fn find_leader(&mut self) {
        let id = self.leader_id;
        self.leader = self.nodes.iter().position(|node| id.is_some() && node.id == id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduced(leader_id: u64) -> Endpoints {
        let mut endpoints = Endpoints::new(3, 0);
        for node in 0..3 {
            endpoints.introduce(node, node as u64 + 1, LeaderHint { term: 4, leader_id: Some(leader_id) });
        }
        endpoints
    }

    #[test]
    fn reads_take_turns_and_writes_stay_with_the_leader() {
        let (mut endpoints, now) = (introduced(3), Instant::now());
        let reads: Vec<_> = (0..4).map(|_| endpoints.pick(Preference::Any, None, now)).collect();
        assert_eq!(reads, [0, 1, 2, 0]);
        assert_eq!(endpoints.pick(Preference::Leader, None, now), 2);
        assert_eq!(endpoints.pick(Preference::Leader, None, now), 2);
    }

    #[test]
    fn a_failed_leader_is_forgotten_until_a_newer_term_names_one() {
        let (mut endpoints, now) = (introduced(3), Instant::now());
        endpoints.on_failure(2, now);
        assert_ne!(endpoints.pick(Preference::Leader, Some(2), now), 2);
        endpoints.on_answer(0, LeaderHint { term: 5, leader_id: Some(2) });
        assert_eq!(endpoints.pick(Preference::Leader, None, now), 1);
    }

    #[test]
    fn an_older_term_does_not_move_the_leader() {
        let (mut endpoints, now) = (introduced(3), Instant::now());
        endpoints.on_answer(0, LeaderHint { term: 3, leader_id: Some(1) });
        assert_eq!(endpoints.pick(Preference::Leader, None, now), 2);
        endpoints.on_answer(0, LeaderHint { term: 4, leader_id: None });
        assert_eq!(endpoints.pick(Preference::Leader, None, now), 2, "a follower that knows none says nothing new");
    }

    #[test]
    fn failing_nodes_rest_longer_each_time_and_come_back_after_an_answer() {
        let (mut endpoints, now) = (Endpoints::new(2, 0), Instant::now());
        endpoints.on_failure(0, now);
        endpoints.on_failure(0, now);
        assert_eq!(endpoints.pick(Preference::Any, None, now + AVOID_MIN), 1);
        assert_eq!(endpoints.pick(Preference::Any, None, now + AVOID_MIN * 2), 0);
        endpoints.on_failure(0, now);
        endpoints.on_answer(0, LeaderHint::default());
        assert_eq!(endpoints.pick(Preference::Any, Some(1), now), 0);
    }

    #[test]
    fn with_all_nodes_down_the_one_that_rests_least_is_tried() {
        let (mut endpoints, now) = (Endpoints::new(3, 0), Instant::now());
        for node in [0, 0, 1, 2, 2] {
            endpoints.on_failure(node, now);
        }
        assert_eq!(endpoints.pick(Preference::Any, None, now), 1);
        assert_ne!(endpoints.pick(Preference::Any, Some(1), now), 1);
        let mut single = Endpoints::new(1, 0);
        single.on_failure(0, now);
        assert_eq!(single.pick(Preference::Leader, Some(0), now), 0);
    }

    #[test]
    fn nodes_are_asked_for_their_ids_when_the_leader_is_a_stranger() {
        let (mut endpoints, now) = (Endpoints::new(3, 1), Instant::now());
        assert!(!endpoints.begin_introduction(now), "no leader is known");
        endpoints.on_answer(1, LeaderHint { term: 2, leader_id: Some(9) });
        assert!(endpoints.begin_introduction(now));
        assert!(!endpoints.begin_introduction(now), "once a second is enough");
        assert!(endpoints.begin_introduction(now + INTRODUCTION_PAUSE));
        endpoints.introduce(0, 9, LeaderHint { term: 2, leader_id: Some(9) });
        assert!(!endpoints.begin_introduction(now + INTRODUCTION_PAUSE * 2));
    }
}
