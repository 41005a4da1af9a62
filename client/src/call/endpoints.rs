//! Which node to ask next.
//!
//! Owns what is known of the nodes: who leads, who failed lately, which of them are of another cluster. Pure: time comes in as an
//! argument, nothing is sent.
//!
//! Ours is the cluster that the first answer names, until the client goes over to another one: at once when more than half of the given
//! nodes, where there are several, said last that they are of it; else after a *doubt* of ten seconds. Doubt begins when a given node names
//! another cluster. It goes on while given nodes repeat that at least every five seconds, and ends when any node names ours, a discovered
//! member included. Silence changes nothing: an idle client never goes over, and nodes that are gone lock nobody out.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a node is left alone after its first failure; doubles with each further one.
const AVOID_MIN: Duration = Duration::from_millis(100);
/// At most this long, so that a node that came back is soon used again.
const AVOID_MAX: Duration = Duration::from_secs(3);
/// Pause between two rounds of asking the nodes who they are.
pub(crate) const INTRODUCTION_PAUSE: Duration = Duration::from_secs(1);
/// Pause between two looks at who the members are: members change rarely, and a client that was given several nodes outlives more
/// than one change.
const DISCOVERY_PAUSE: Duration = Duration::from_secs(30);
/// Pause between two looks at a node of another cluster, which may have been put right.
const FOREIGN_PAUSE: Duration = Duration::from_secs(30);
/// The client goes over to another cluster after this much doubt. After most faults its own has a leader sooner, and a restore takes longer.
const DOUBT_MIN: Duration = Duration::from_secs(10);
/// Foreign words further apart begin a doubt anew: nobody can tell what was there between them.
const DOUBT_GAP: Duration = Duration::from_secs(5);
/// The first look comes once a client has lived a little; what is over by then needs none.
const DISCOVERY_FIRST: Duration = Duration::from_secs(1);

/// One of the nodes that a client was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// `host:port`, or `unix:/path` for a socket on this machine.
    pub address: String,
    /// Whether it is reached by TLS.
    pub is_tls: bool,
}

impl Endpoint {
    /// The path of its socket, where it is one of this machine.
    pub fn socket(&self) -> Option<&Path> {
        socket_of(&self.address)
    }
}

/// The path in the address of a Unix socket. A host of this name has a port behind it, and no path.
pub(crate) fn socket_of(address: &str) -> Option<&Path> {
    address.strip_prefix("unix:").filter(|path| path.starts_with('/')).map(Path::new)
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

/// The id of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClusterId(u128);

impl ClusterId {
    /// The id that a node writes so; `None` for what is none, as a node without a cluster says.
    pub fn parse(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

/// What a node said that is of another cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Foreign {
    /// Its cluster.
    pub theirs: ClusterId,
    /// The client's.
    pub ours: ClusterId,
    /// Whether it was not known of this node.
    pub is_news: bool,
}

/// What every answer says about the cluster, in its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LeaderHint {
    /// The cluster of the node that answered; `None` where something before it took the header away.
    pub cluster: Option<ClusterId>,
    /// Raft term of the node that answered.
    pub term: u64,
    /// The leader it knows.
    pub leader_id: Option<u64>,
}

#[derive(Debug)]
struct Node {
    id: Option<u64>,
    /// What it said last.
    cluster: Option<ClusterId>,
    failures: u32,
    avoid_until: Option<Instant>,
    /// No member any more. Never of a node that was given.
    is_gone: bool,
}

impl Node {
    fn unknown() -> Self {
        Self { id: None, cluster: None, failures: 0, avoid_until: None, is_gone: false }
    }
}

/// A foreign word that given nodes say again and again, since nobody of our cluster said anything.
#[derive(Debug)]
struct Doubt {
    theirs: ClusterId,
    since: Instant,
    last: Instant,
}

/// The nodes, by their place in the list of endpoints: those that were given, then members that were discovered. Discovered ones
/// are asked only while not every given one is well, so that a client of one node stays with it.
#[derive(Debug)]
pub(crate) struct Endpoints {
    nodes: Vec<Node>,
    /// How many were given.
    given: usize,
    /// Ours.
    cluster: Option<ClusterId>,
    /// The clusters that given nodes named since ours was last heard; none while there is no doubt.
    doubts: Vec<Doubt>,
    /// Highest term seen; what older terms say of the leader is ignored.
    term: u64,
    leader_id: Option<u64>,
    /// The leader's place, where it is in the list. Invariant: less than `nodes.len()`.
    leader: Option<usize>,
    next: usize,
    introduced_at: Option<Instant>,
    /// When to look for members; `None`: never.
    discover_at: Option<Instant>,
}

impl Endpoints {
    /// `count` nodes of which nothing is known. `start` is where the turn begins, so that clients spread.
    pub fn new(count: usize, start: usize) -> Self {
        assert!(count > 0, "a client has at least one endpoint, not {count}");
        let nodes = (0..count).map(|_| Node::unknown()).collect();
        let (next, introduced_at, discover_at) = (start % count, None, None);
        let (cluster, leader_id, leader) = (None, None, None);
        Self {
            nodes,
            given: count,
            cluster,
            doubts: Vec::new(),
            term: 0,
            leader_id,
            leader,
            next,
            introduced_at,
            discover_at,
        }
    }

    /// Members are discovered from now on.
    pub fn discover(&mut self, now: Instant) {
        self.discover_at = Some(now + DISCOVERY_FIRST);
    }

    /// The cluster that the nodes are believed to be of.
    pub fn cluster(&self) -> Option<ClusterId> {
        self.cluster
    }

    /// A node said of which cluster it is. An error: not of ours, and nothing else that it says counts. It is not asked for anything
    /// until it says otherwise when it is introduced.
    pub fn on_cluster(&mut self, node: usize, theirs: ClusterId, now: Instant) -> Result<(), Foreign> {
        let was_foreign = self.is_foreign(node);
        self.nodes[node].cluster = Some(theirs);
        let Some(ours) = self.cluster else {
            self.go_over(theirs);
            return Ok(());
        };
        if ours == theirs {
            self.doubts.clear();
            return Ok(());
        }
        if node < self.given && (self.doubt(theirs, now) >= DOUBT_MIN || self.has_majority(theirs)) {
            self.go_over(theirs);
            return Ok(());
        }
        self.nodes[node].id = None;
        self.find_leader();
        Err(Foreign { theirs, ours, is_news: !was_foreign })
    }

    /// A given node named another cluster than ours: for how long that goes on.
    fn doubt(&mut self, theirs: ClusterId, now: Instant) -> Duration {
        self.doubts.retain(|doubt| now.duration_since(doubt.last) <= DOUBT_GAP);
        let place = self.doubts.iter().position(|doubt| doubt.theirs == theirs).unwrap_or_else(|| {
            self.doubts.push(Doubt { theirs, since: now, last: now });
            self.doubts.len() - 1
        });
        let doubt = &mut self.doubts[place];
        doubt.last = now;
        now.duration_since(doubt.since)
    }

    /// Whether more than half of the given nodes said this one last. A single node is no majority.
    fn has_majority(&self, told: ClusterId) -> bool {
        let votes = self.nodes[..self.given].iter().filter(|node| node.cluster == Some(told)).count();
        self.given > 1 && votes * 2 > self.given
    }

    /// Another cluster is ours from now on: terms, leaders and ids of the former say nothing any more.
    fn go_over(&mut self, theirs: ClusterId) {
        self.cluster = Some(theirs);
        self.doubts.clear();
        (self.term, self.leader_id) = (0, None);
        for node in self.nodes.iter_mut().filter(|node| node.cluster.is_some_and(|said| said != theirs)) {
            node.id = None;
        }
        self.find_leader();
    }

    /// While in doubt: a given node that says it is of another cluster.
    pub fn doubted(&self) -> Option<(usize, Foreign)> {
        let theirs = self.doubts.last()?.theirs;
        let node = self.nodes[..self.given].iter().position(|node| node.cluster == Some(theirs))?;
        Some((node, Foreign { theirs, ours: self.cluster?, is_news: false }))
    }

    /// Whether the doubt goes on: another word now would be one without a gap.
    pub fn is_in_doubt(&self, now: Instant) -> bool {
        self.doubts.iter().any(|doubt| now.duration_since(doubt.last) <= DOUBT_GAP)
    }

    fn is_foreign(&self, node: usize) -> bool {
        let theirs = self.nodes[node].cluster;
        self.cluster.is_some() && theirs.is_some() && theirs != self.cluster
    }

    /// The node to ask now. `not` has just failed this very request: it comes last. One of another cluster is not asked, unless it is the
    /// only one that was given, and no other is well.
    pub fn pick(&mut self, preference: Preference, not: Option<usize>, now: Instant) -> usize {
        if preference == Preference::Leader
            && let Some(leader) = self.leader
            && leader < self.reach(now)
            && Some(leader) != not
            && self.is_well(leader, now)
        {
            return leader;
        }
        let reach = self.reach(now);
        // The only one that was given may be an address of several.
        let is_only = |node: usize| self.given == 1 && node == 0;
        let is_asked = |node: &usize| !self.nodes[*node].is_gone && (is_only(*node) || !self.is_foreign(*node));
        let turn = (0..reach).map(|step| (self.next + step) % reach).filter(is_asked);
        let well = turn.clone().find(|&node| Some(node) != not && self.is_well(node, now));
        let others = turn.clone().filter(|&node| Some(node) != not);
        let rested = well.or_else(|| others.min_by_key(|&node| self.nodes[node].avoid_until));
        // All given nodes are of other clusters: ask one of them again.
        let strangers = (0..self.given).min_by_key(|&node| self.nodes[node].avoid_until);
        let pick = rested.or(not.filter(is_asked)).or(strangers).expect("a client has at least one endpoint");
        self.next = (pick + 1) % reach;
        pick
    }

    /// How many nodes, from the first, may be asked.
    fn reach(&self, now: Instant) -> usize {
        let all_well = (0..self.given).all(|node| self.is_well(node, now));
        if all_well { self.given } else { self.nodes.len() }
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
        // It may have been replaced.
        self.discover_at = self.discover_at.map(|at| at.min(now + DISCOVERY_FIRST));
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

    /// Whether the nodes should be asked who they are now: a leader is known by an id that belongs to none of them, or a node was of
    /// another cluster. Says yes at most once a second, since the leader may well not be among the endpoints, and for a node of another
    /// cluster now and then while ours is heard.
    pub fn begin_introduction(&mut self, now: Instant) -> bool {
        let stranger = self.leader_id.is_some() && self.leader.is_none() && self.nodes.len() > 1;
        let has_foreign = (0..self.nodes.len()).any(|node| self.is_foreign(node) && !self.nodes[node].is_gone);
        let is_urgent = stranger || !self.doubts.is_empty();
        let pause = if is_urgent { INTRODUCTION_PAUSE } else { FOREIGN_PAUSE };
        let rested = self.introduced_at.is_none_or(|at| now.duration_since(at) >= pause);
        let begins = (stranger || has_foreign) && rested;
        if begins {
            self.introduced_at = Some(now);
        }
        begins
    }

    /// Whether to look now who the members are.
    pub fn begin_discovery(&mut self, now: Instant) -> bool {
        let is_due = self.discover_at.is_some_and(|at| at <= now);
        if is_due {
            self.discover_at = Some(now + DISCOVERY_PAUSE);
        }
        is_due
    }

    /// Whether members are discovered.
    pub fn discovers(&self) -> bool {
        self.discover_at.is_some()
    }

    /// Whether one of the nodes is known to be this member. If it was gone, it is back.
    pub fn is_known(&mut self, id: u64) -> bool {
        let known = self.nodes.iter_mut().find(|node| node.id == Some(id));
        known.map(|node| node.is_gone = false).is_some()
    }

    /// A member was discovered, and has the next place.
    pub fn add(&mut self, id: u64) {
        self.nodes.push(Node { id: Some(id), ..Node::unknown() });
        self.find_leader();
    }

    /// These are all members: discovered ones that are none any more are gone.
    pub fn retain(&mut self, members: &[u64]) {
        for node in &mut self.nodes[self.given..] {
            node.is_gone = node.id.is_none_or(|id| !members.contains(&id));
        }
        self.find_leader();
    }

    fn is_well(&self, node: usize, now: Instant) -> bool {
        self.nodes[node].avoid_until.is_none_or(|until| until <= now) && !self.is_foreign(node)
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
        self.leader = self.nodes.iter().position(|node| id.is_some() && node.id == id && !node.is_gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduced(leader_id: u64) -> Endpoints {
        let mut endpoints = Endpoints::new(3, 0);
        for node in 0..3 {
            endpoints.introduce(
                node,
                node as u64 + 1,
                LeaderHint { term: 4, leader_id: Some(leader_id), ..LeaderHint::default() },
            );
        }
        endpoints
    }

    fn cluster(id: u128) -> ClusterId {
        ClusterId(id)
    }

    #[test]
    fn a_node_of_another_cluster_is_not_asked_until_it_says_otherwise() {
        let (mut endpoints, now) = (introduced(3), Instant::now());
        for node in 0..2 {
            endpoints.on_cluster(node, cluster(7), now).expect("ours");
        }
        let foreign = |is_news| Err(Foreign { theirs: cluster(9), ours: cluster(7), is_news });
        assert_eq!(endpoints.on_cluster(2, cluster(9), now), foreign(true));
        assert_eq!(endpoints.on_cluster(2, cluster(9), now), foreign(false), "it is said once");
        for failed in [None, Some(0), Some(1)] {
            for preference in [Preference::Leader, Preference::Any, Preference::Any] {
                assert_ne!(endpoints.pick(preference, failed, now), 2);
            }
        }
        assert!(endpoints.begin_introduction(now), "it may have been put right");
        endpoints.on_cluster(0, cluster(7), now).expect("ours");
        assert!(!endpoints.begin_introduction(now + FOREIGN_PAUSE - INTRODUCTION_PAUSE));
        assert!(endpoints.begin_introduction(now + FOREIGN_PAUSE));
        endpoints.on_cluster(2, cluster(7), now).expect("put right");
        endpoints.introduce(2, 3, LeaderHint { term: 5, leader_id: Some(3), ..LeaderHint::default() });
        assert_eq!(endpoints.pick(Preference::Leader, None, now), 2);
    }

    const OURS: ClusterId = ClusterId(7);
    const THEIRS: ClusterId = ClusterId(9);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Endpoints whose given nodes said at the start that they are of ours.
    fn known(given: usize, now: Instant) -> Endpoints {
        let mut endpoints = Endpoints::new(given, 0);
        for node in 0..given {
            endpoints.on_cluster(node, OURS, now).expect("ours");
        }
        endpoints
    }

    #[test]
    fn a_majority_of_the_given_nodes_takes_the_client_over_at_once() {
        let (mut endpoints, now) = (Endpoints::new(3, 0), Instant::now());
        endpoints.on_cluster(2, THEIRS, now).expect("nobody says otherwise");
        endpoints.introduce(2, 1, LeaderHint { term: 80, leader_id: Some(1), ..LeaderHint::default() });
        assert!(endpoints.on_cluster(0, OURS, now).is_err(), "one against one");
        endpoints.on_cluster(1, OURS, now).expect("two of three");
        assert!(endpoints.on_cluster(2, THEIRS, now).is_err());
        endpoints.on_cluster(0, OURS, now).expect("ours");
        let left = (endpoints.cluster(), endpoints.term, endpoints.nodes[2].id);
        assert_eq!(left, (Some(OURS), 0, None), "terms and ids of another cluster are none of ours");
        let mut four = known(4, now);
        assert!((0..2).all(|node| four.on_cluster(node, THEIRS, now).is_err()), "half is not most");
        four.on_cluster(2, THEIRS, now).expect("three of four");
    }

    #[test]
    fn members_that_were_discovered_keep_a_client_of_one_node_with_its_cluster() {
        let start = Instant::now();
        let mut endpoints = known(1, start);
        for (place, id) in [(1, 2), (2, 3)] {
            endpoints.add(id);
            endpoints.on_cluster(place, OURS, start).expect("ours");
        }
        // The given node lost its disk, and was founded anew. The others are asked in its place, and nothing else is said for an hour.
        let mut now = start + seconds(3_600);
        assert!(endpoints.on_cluster(0, THEIRS, now).is_err(), "silence is no word");
        for _ in 0..60 {
            now += seconds(1);
            let member = endpoints.pick(Preference::Any, None, now);
            assert_ne!(member, 0, "there are others");
            endpoints.on_cluster(member, OURS, now).expect("ours");
            assert!(endpoints.on_cluster(0, THEIRS, now).is_err());
        }
        assert_eq!(endpoints.cluster(), Some(OURS));
    }

    #[test]
    fn one_address_of_several_nodes_does_not_move_a_client_that_calls_now_and_then() {
        let mut now = Instant::now();
        let mut endpoints = known(1, now);
        for _ in 0..20 {
            now += seconds(30);
            assert!(endpoints.on_cluster(0, THEIRS, now).is_err(), "one of the nodes behind it was founded anew");
            assert_eq!(endpoints.pick(Preference::Any, Some(0), now), 0, "the next connection may reach another one");
            endpoints.on_cluster(0, OURS, now + seconds(1)).expect("ours");
        }
    }

    #[test]
    fn nodes_that_are_gone_lock_nobody_out() {
        // The given node that is left is of a restored cluster: one of three, and one of two.
        for given in [3, 2] {
            let start = Instant::now();
            let mut endpoints = known(given, start);
            let last = given - 1;
            let mut now = start + seconds(100);
            assert!(endpoints.on_cluster(last, THEIRS, now).is_err());
            assert!(endpoints.doubted().is_some_and(|(node, said)| node == last && said.theirs == THEIRS));
            for _ in 0..9 {
                now += seconds(1);
                endpoints.on_failure(0, now);
                assert_ne!(endpoints.pick(Preference::Any, Some(0), now), last, "it is only asked who it is");
                assert!(endpoints.begin_introduction(now), "and that each second");
                assert!(endpoints.on_cluster(last, THEIRS, now).is_err());
            }
            endpoints.on_cluster(last, THEIRS, now + seconds(1)).expect("ten seconds of doubt");
            assert_eq!((endpoints.cluster(), endpoints.doubted()), (Some(THEIRS), None));
            assert_eq!(endpoints.pick(Preference::Any, None, now + seconds(1)), last);
        }
    }

    #[test]
    fn a_gap_begins_the_doubt_anew() {
        let start = Instant::now();
        let mut endpoints = known(1, start);
        let mut say = |at, told| endpoints.on_cluster(0, told, start + seconds(at)).is_ok();
        let said = [(0, THEIRS), (5, THEIRS), (9, THEIRS), (15, THEIRS), (20, THEIRS), (24, THEIRS)]
            .map(|(at, told)| say(at, told));
        assert_eq!(said, [false; 6], "there was a gap of six seconds");
        assert!(say(24, OURS) && !say(25, THEIRS), "a word of ours ends it");
        assert_eq!([30, 34, 35].map(|at| say(at, THEIRS)), [false, false, true]);
        assert!(!say(36, OURS), "which is not believed any more");
    }

    #[test]
    fn doubts_of_two_clusters_do_not_end_each_other() {
        let start = Instant::now();
        let mut endpoints = known(1, start);
        for at in 0..10 {
            let told = if at % 2 == 0 { THEIRS } else { cluster(11) };
            assert!(endpoints.on_cluster(0, told, start + seconds(at)).is_err());
        }
        endpoints.on_cluster(0, THEIRS, start + seconds(10)).expect("the one of which it was told for longest");
        let mut all = Endpoints::new(2, 0);
        all.on_cluster(0, OURS, start).expect("the first word");
        assert!(all.on_cluster(0, THEIRS, start).is_err() && all.on_cluster(1, cluster(11), start).is_err());
        assert!(all.pick(Preference::Any, Some(0), start) < 2, "all are strangers, and one is asked");
    }

    #[test]
    fn a_client_of_one_node_asks_who_it_is_while_in_doubt() {
        let now = Instant::now();
        let mut endpoints = known(1, now);
        assert!(!endpoints.begin_introduction(now));
        assert!(endpoints.on_cluster(0, THEIRS, now).is_err());
        assert!(endpoints.begin_introduction(now) && !endpoints.begin_introduction(now));
        assert!(endpoints.is_in_doubt(now + DOUBT_GAP) && !endpoints.is_in_doubt(now + DOUBT_GAP + seconds(1)));
        assert!(endpoints.begin_introduction(now + INTRODUCTION_PAUSE));
        endpoints.on_cluster(0, OURS, now).expect("put right");
        assert!(!endpoints.begin_introduction(now + FOREIGN_PAUSE * 2), "nobody is a stranger");
    }

    /// Numbers that look random, the same ones each time.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }

        fn place(&mut self, end: usize) -> usize {
            usize::try_from(self.below(end as u64)).expect("it is small")
        }
    }

    #[test]
    fn whatever_is_said_the_client_goes_over_when_it_must_and_never_before() {
        for seed in 0..2_000 {
            let (mut dice, mut now) = (Dice(seed), Instant::now());
            let (given, discovered) = (1 + dice.place(4), dice.place(3));
            let mut endpoints = known(given, now);
            (0..discovered).for_each(|member| endpoints.add(member as u64 + 90));
            let (mut said, mut heard) = (vec![OURS; given], now);
            let longest = [1_000, 6_000, 20_000][dice.place(3)];
            for _ in 0..100 {
                now += Duration::from_millis(dice.below(longest));
                let node = dice.place(given + discovered);
                // Ours is rare in some runs, and common in others.
                let told = cluster(7 + u128::from(dice.below(2 + seed % 3)));
                let before = endpoints.cluster().expect("all said so");
                let is_believed = endpoints.on_cluster(node, told, now).is_ok();
                let after = endpoints.cluster().expect("still");
                assert_eq!(is_believed, told == after, "seed {seed}");
                if node < given {
                    said[node] = told;
                }
                if after != before {
                    let votes = said.iter().filter(|&&said| said == told).count();
                    let is_most = given > 1 && votes * 2 > given;
                    assert!(node < given && after == told, "seed {seed}: only given nodes take it over, to theirs");
                    assert!(
                        is_most || now - heard >= DOUBT_MIN,
                        "seed {seed}: {before} was heard {:?} ago",
                        now - heard
                    );
                }
                if told == after {
                    heard = now;
                }
                let pick = endpoints.pick(Preference::Any, Some(node), now);
                let is_choice = given == 1 || said.contains(&after);
                assert!(!is_choice || !endpoints.is_foreign(pick) || (pick == 0 && given == 1), "seed {seed}");
            }
            // Only one given node is left, and says the same each few seconds.
            let (node, told, start) = (dice.place(given), cluster(99), now);
            while endpoints.on_cluster(node, told, now).is_err() {
                assert!(now - start < DOUBT_MIN, "seed {seed}: {:?} of doubt", now - start);
                now += Duration::from_millis(dice.below(5_001));
            }
            assert!(now - start >= DOUBT_MIN, "seed {seed}: {:?} of doubt", now - start);
        }
    }

    #[test]
    fn a_node_that_says_nothing_of_its_cluster_is_taken_at_its_word() {
        assert_eq!(["", "none", "-1"].map(ClusterId::parse), [None, None, None]);
        let id = "5f0c6b7e9d1a4c2f8e3b7a6d5c4b3a29";
        assert_eq!(ClusterId::parse(id).map(|id| id.to_string()).as_deref(), Some(id));
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
        endpoints.on_answer(0, LeaderHint { term: 5, leader_id: Some(2), ..LeaderHint::default() });
        assert_eq!(endpoints.pick(Preference::Leader, None, now), 1);
    }

    #[test]
    fn an_older_term_does_not_move_the_leader() {
        let (mut endpoints, now) = (introduced(3), Instant::now());
        endpoints.on_answer(0, LeaderHint { term: 3, leader_id: Some(1), ..LeaderHint::default() });
        assert_eq!(endpoints.pick(Preference::Leader, None, now), 2);
        endpoints.on_answer(0, LeaderHint { term: 4, leader_id: None, ..LeaderHint::default() });
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
        endpoints.on_answer(1, LeaderHint { term: 2, leader_id: Some(9), ..LeaderHint::default() });
        assert!(endpoints.begin_introduction(now));
        assert!(!endpoints.begin_introduction(now), "once a second is enough");
        assert!(endpoints.begin_introduction(now + INTRODUCTION_PAUSE));
        endpoints.introduce(0, 9, LeaderHint { term: 2, leader_id: Some(9), ..LeaderHint::default() });
        assert!(!endpoints.begin_introduction(now + INTRODUCTION_PAUSE * 2));
    }

    #[test]
    fn discovered_members_are_asked_only_while_a_given_node_is_not_well() {
        let (mut endpoints, now) = (introduced(4), Instant::now());
        endpoints.add(4);
        assert_ne!(endpoints.pick(Preference::Leader, None, now), 3, "given nodes forward to the leader");
        for _ in 0..3 {
            assert!(endpoints.pick(Preference::Any, None, now) < 3);
        }
        endpoints.on_failure(0, now);
        assert_eq!(endpoints.pick(Preference::Leader, None, now), 3);
        let asked: Vec<_> = (0..3).map(|_| endpoints.pick(Preference::Any, None, now)).collect();
        assert!(asked.contains(&3) && !asked.contains(&0), "{asked:?}");
        endpoints.on_answer(0, LeaderHint::default());
        assert!(endpoints.pick(Preference::Any, None, now) < 3);
    }

    #[test]
    fn when_all_given_nodes_are_replaced_the_discovered_ones_are_left() {
        let (mut endpoints, now) = (Endpoints::new(1, 0), Instant::now());
        endpoints.add(4);
        endpoints.add(5);
        endpoints.on_failure(0, now);
        let asked: Vec<_> = (0..4).map(|_| endpoints.pick(Preference::Any, Some(0), now)).collect();
        assert!(asked.iter().all(|node| *node > 0), "{asked:?}");
        endpoints.retain(&[5, 6]);
        assert_eq!(endpoints.pick(Preference::Any, Some(0), now), 2, "node 4 is a member no more");
        assert!(endpoints.is_known(4), "and may come back");
        endpoints.on_failure(1, now);
        endpoints.on_failure(2, now);
        endpoints.on_failure(2, now);
        assert_eq!(endpoints.pick(Preference::Any, Some(1), now), 0, "it rests least");
    }

    #[test]
    fn members_are_looked_for_soon_after_the_start_and_after_a_failure() {
        let (mut endpoints, now) = (Endpoints::new(2, 0), Instant::now());
        assert!(!endpoints.begin_discovery(now + DISCOVERY_PAUSE), "nobody asked for it");
        endpoints.discover(now);
        assert!(!endpoints.begin_discovery(now));
        let first = now + DISCOVERY_FIRST;
        assert!(endpoints.begin_discovery(first) && !endpoints.begin_discovery(first));
        assert!(endpoints.begin_discovery(first + DISCOVERY_PAUSE));
        endpoints.on_failure(0, first + DISCOVERY_PAUSE);
        assert!(endpoints.begin_discovery(first + DISCOVERY_PAUSE + DISCOVERY_FIRST));
    }
}
