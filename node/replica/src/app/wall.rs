//! The cluster's wall clock, of which the leader stamps each batch, and how far the members' clocks are apart.
//!
//! Owns what this node knows of the other members' wall clocks, the questions for it, and where the stamps of a leadership go on from. The rule is
//! in [`mod@agreed`]. Never trusts a single clock, its own neither, and never reads one in apply: a stamp is data.

mod agreed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures::future::join_all;
use openraft::async_runtime::WatchReceiver;
use parking_lot::Mutex;
use quorate_machine::mutants::Mutant;
use quorate_machine::types::WallMillis;
use quorate_node_core::millis::{millis, wall_now};
use quorate_store::raft::{CommittedLeaderId, NodeId};
use quorate_threads::uptime::Uptime;
use tokio::sync::{Notify, watch};

use super::Raft;
use super::peers::Peers;
use crate::peer::message::{PeerRequest, PeerResponse};

use agreed::{Reading, agreed, begun, is_decided};

/// How often a node asks the others what their clocks show: a clock that jumps is noticed so soon.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// For one question.
const ASK: Duration = Duration::from_millis(500);
/// After so long without an answer nothing is known of a clock. Less would have the cluster forget the clocks of who restarts.
const KNOWN_FOR: Duration = Duration::from_secs(10);
/// How long a new leader waits until it knows what time it is, before it goes on from the last stamp without.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Clocks that are certainly further apart than this are told of. Time services keep machines within a tenth of it.
const APART_MS: i64 = 1_000;
/// Only clocks that were read since the move was due set a stamp further than this from the last one plus the time since, and the log says
/// so. A reading may be older than a second: two clocks that were wrong one after the other would else stand for two that are wrong at once.
const MOVED_MS: u64 = 1_000;

/// What the answers of a member say of its clock.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// As of the last answer.
    reading: Reading,
    /// When the question for it was asked.
    asked: Uptime,
    answered: Uptime,
}

impl Known {
    /// By one answer: the clock was looked at between the question and the answer.
    fn by(wall: WallMillis, asked: Uptime, answered: Uptime) -> Self {
        // What it shows is rounded down, and so is how long it took.
        let took = millis(answered.since(asked)) + 2;
        Self { reading: Reading { earliest: wall, latest: wall.saturating_add(took) }, asked, answered }
    }

    /// With a newer answer: both hold, unless the clock was moved in between.
    fn and(self, newer: Self) -> Self {
        let before = self.at(newer.answered);
        let reading = before.common(newer.reading).unwrap_or(newer.reading);
        Self { reading, ..newer }
    }

    /// What that clock shows now, unless it was moved since.
    fn at(&self, now: Uptime) -> Reading {
        let since = millis(now.since(self.answered));
        let Reading { earliest, latest } = self.reading;
        Reading { earliest: earliest.saturating_add(since), latest: latest.saturating_add(since + 1) }
    }
}

/// Where the stamps of one leadership go on from.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    leadership: CommittedLeaderId,
    wall: WallMillis,
    at: Uptime,
    /// Since when all readings together would move it far.
    doubted: Option<Uptime>,
}

impl Anchor {
    fn expected(&self, now: Uptime) -> WallMillis {
        self.wall.saturating_add(millis(now.since(self.at)))
    }
}

/// A member whose clock is not where the others' are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Apart {
    /// The member.
    pub node: NodeId,
    /// By so many milliseconds it is ahead; negative where it is behind.
    pub ahead_ms: i64,
    /// Of this member's clock, which is the one in the middle.
    pub of: NodeId,
}

impl std::fmt::Display for Apart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { node, ahead_ms, of } = self;
        let seconds = ahead_ms.unsigned_abs() as f64 / 1_000.0;
        let side = if *ahead_ms < 0 { "behind" } else { "ahead of" };
        write!(f, "the wall clock of node {node} is {seconds:.1} s {side} that of node {of}")
    }
}

/// What this node knows of wall clocks.
#[derive(Debug)]
pub struct WallClocks {
    self_id: NodeId,
    known: Mutex<BTreeMap<NodeId, Known>>,
    /// Counts the answers, for who waits for some.
    heard: watch::Sender<u64>,
    /// Somebody waits for some.
    wanted: Notify,
    anchor: Mutex<Option<Anchor>>,
    /// When this node, as the leader, last waited to learn the time.
    waited: Mutex<Option<Uptime>>,
    apart: ArcSwap<Vec<Apart>>,
    /// By how much this node's clock is ahead, milliseconds.
    own_ahead: AtomicI64,
}

impl WallClocks {
    /// Of a node that has asked nobody yet.
    pub fn new(self_id: NodeId) -> Self {
        let (known, anchor, waited) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (apart, own_ahead) = (ArcSwap::default(), AtomicI64::new(0));
        let (heard, _) = watch::channel(0);
        Self { self_id, known, heard, wanted: Notify::new(), anchor, waited, apart, own_ahead }
    }

    /// The stamp of a batch of this leadership. Where it has stamped nothing yet it goes on from the replicated clock, 0 where there
    /// never was one.
    pub fn stamp(
        &self,
        voters: &BTreeSet<NodeId>,
        leadership: CommittedLeaderId,
        replicated: impl FnOnce() -> WallMillis,
    ) -> WallMillis {
        let (own, now) = (wall_now(), Uptime::now());
        let mut anchor = self.anchor.lock();
        let current = anchor.filter(|anchor| anchor.leadership == leadership);
        let expected = match current {
            Some(anchor) => anchor.expected(now),
            None => self.begun(voters, own, now, replicated()),
        };
        let by = |since| agreed(voters.len(), &self.readings(voters, own, now, since), expected);
        let (mut wall, mut doubted) = (by(None), None);
        if wall.abs_diff(expected) > MOVED_MS {
            let since = current.and_then(|anchor| anchor.doubted).unwrap_or(now);
            wall = by(Some(since));
            doubted = (wall.abs_diff(expected) <= MOVED_MS).then_some(since);
        }
        match current {
            Some(current) if wall == expected => *anchor = Some(Anchor { doubted, ..current }),
            _ => *anchor = Some(Anchor { leadership, wall, at: now, doubted }),
        }
        drop(anchor);
        // Once: where nobody answers, it is asked as often as always.
        if doubted == Some(now) {
            self.wanted.notify_one();
        }
        if wall.abs_diff(expected) > MOVED_MS {
            tracing::warn!(
                from = expected,
                to = wall,
                "the cluster's wall clock is moved to where a majority of the members' clocks is"
            );
        }
        wall
    }

    /// What a node takes for the cluster's wall clock that may not lead: what it would begin with as the leader. So its own clock alone
    /// moves nothing, with another one away neither.
    pub fn now(&self, voters: &BTreeSet<NodeId>, replicated: WallMillis) -> WallMillis {
        let own = wall_now();
        begun(voters.len(), &self.readings(voters, own, Uptime::now(), None), own, replicated)
    }

    /// The first stamp of a leadership, near the replicated clock as a rule. A stamp further away goes by the clocks that were read since the
    /// leader waited for them.
    fn begun(&self, voters: &BTreeSet<NodeId>, own: WallMillis, now: Uptime, replicated: WallMillis) -> WallMillis {
        let by = |since| begun(voters.len(), &self.readings(voters, own, now, since), own, replicated);
        let wall = by(None);
        if wall.abs_diff(replicated) <= MOVED_MS { wall } else { by(*self.waited.lock()) }
    }

    /// Whether the readings decide the time for a cluster whose clock would be `replicated` if it just went on.
    fn is_known(&self, voters: &BTreeSet<NodeId>, since: Uptime, replicated: WallMillis) -> bool {
        let (own, now) = (wall_now(), Uptime::now());
        let readings = self.readings(voters, own, now, None);
        let is_near = || begun(voters.len(), &readings, own, replicated).abs_diff(replicated) <= MOVED_MS;
        is_decided(voters.len(), &readings) && is_near()
            || is_decided(voters.len(), &self.readings(voters, own, now, Some(since)))
    }

    /// Waits until the clocks that are known say what time it is, but not for long: of a majority that differ too much, one may hold the
    /// cluster's behind until another is known, and what was planned meanwhile comes early then.
    pub async fn wait_for_majority(&self, voters: &BTreeSet<NodeId>, replicated: WallMillis) {
        let since = Uptime::now();
        *self.waited.lock() = Some(since);
        let mut heard = self.heard.subscribe();
        let known = async {
            while !self.is_known(voters, since, replicated) {
                self.wanted.notify_one();
                if heard.changed().await.is_err() {
                    return;
                }
            }
        };
        if tokio::time::timeout(WAIT_MAX, known).await.is_err() {
            tracing::warn!(
                "the wall clocks that are known say no time together: the cluster's goes on from the last stamp"
            );
        }
    }

    /// By how much this node's clock is ahead of the one in the middle, seconds; 0 where it is not certain.
    pub fn own_ahead_seconds(&self) -> f64 {
        self.own_ahead.load(Ordering::Relaxed) as f64 / 1_000.0
    }

    /// Sentences for people on clocks that are apart.
    pub fn warnings(&self) -> Vec<String> {
        let apart = self.apart.load();
        let said =
            |apart: &Apart| format!("{apart}: the cluster's time is that of a majority, so set that clock right");
        apart.iter().map(said).collect()
    }

    /// Readings of the clocks of these nodes, from questions that were asked since then.
    fn readings(&self, of: &BTreeSet<NodeId>, own: WallMillis, now: Uptime, since: Option<Uptime>) -> Vec<Reading> {
        let since = since.filter(|_| !Mutant::OldAnswersMoveTheClock.acts());
        let known = self.known.lock();
        let reading = |id: &NodeId| match *id == self.self_id {
            true => Some(Reading::exact(own)),
            false => {
                known.get(id).filter(|known| since.is_none_or(|since| known.asked >= since)).map(|known| known.at(now))
            }
        };
        of.iter().filter_map(reading).collect()
    }

    fn note(&self, from: NodeId, answer: Known) {
        self.known.lock().entry(from).and_modify(|known| *known = known.and(answer)).or_insert(answer);
        self.heard.send_modify(|count| *count += 1);
    }

    /// Compares all that is known of, and forgets what is too old or of nobody.
    fn compare(&self, members: &BTreeSet<NodeId>) {
        let (own, now) = (wall_now(), Uptime::now());
        let known: Vec<NodeId> = {
            let mut known = self.known.lock();
            let is_fresh = |known: &Known| now.since(known.answered) <= KNOWN_FOR;
            known.retain(|id, known| members.contains(id) && is_fresh(known));
            members.iter().copied().filter(|id| *id == self.self_id || known.contains_key(id)).collect()
        };
        let readings = self.readings(&known.iter().copied().collect(), own, now, None);
        let found = apart(&known, &readings);
        let of_own = |(id, reading): (&NodeId, &Reading)| {
            let middle = agreed::middle(&readings).map(|place| readings[place]);
            (*id == self.self_id).then(|| middle.map_or(0, |middle| reading.ahead_of(middle)))
        };
        let ahead = known.iter().zip(&readings).find_map(of_own).unwrap_or(0);
        self.own_ahead.store(ahead, Ordering::Relaxed);
        let before = self.apart.load();
        let nodes = |apart: &[Apart]| apart.iter().map(|apart| apart.node).collect::<Vec<_>>();
        if nodes(&found) != nodes(&before) {
            found.iter().for_each(|apart| tracing::warn!(ahead_ms = apart.ahead_ms, "{apart}"));
            if found.is_empty() {
                tracing::info!("the members' wall clocks are where a majority is again");
            }
        }
        self.apart.store(found.into());
    }
}

/// Those that are certainly too far from the clock in the middle.
fn apart(nodes: &[NodeId], readings: &[Reading]) -> Vec<Apart> {
    let Some(middle) = agreed::middle(readings) else { return Vec::new() };
    let of_node = |(node, reading): (&NodeId, &Reading)| {
        let ahead_ms = reading.ahead_of(readings[middle]);
        (ahead_ms.abs() > APART_MS).then_some(Apart { node: *node, ahead_ms, of: nodes[middle] })
    };
    nodes.iter().zip(readings).filter_map(of_node).collect()
}

/// The voters of a cluster; of both memberships while it changes from one to another.
pub fn voters(raft: &Raft) -> BTreeSet<NodeId> {
    raft.metrics().borrow_watched().membership_config.voter_ids().collect()
}

/// Asks the other members than this node, `node_id`, until it is aborted.
pub async fn run(node_id: NodeId, peers: Arc<Peers>, clocks: Arc<WallClocks>) {
    loop {
        let members: BTreeSet<NodeId> = peers.members().keys().copied().collect();
        let others = members.iter().copied().filter(|id| *id != node_id);
        join_all(others.map(|id| ask(&peers, &clocks, id))).await;
        clocks.compare(&members);
        // A wait that ends early is as good.
        let _ = tokio::time::timeout(ASK_EVERY, clocks.wanted.notified()).await;
    }
}

/// Silence is no answer.
async fn ask(peers: &Peers, clocks: &WallClocks, id: NodeId) {
    let asked = Uptime::now();
    match peers.ask(id, PeerRequest::Wall, Instant::now() + ASK).await {
        Ok(PeerResponse::Wall { wall }) => {
            clocks.note(id, Known::by(wall, asked, Uptime::now()));
        }
        Ok(other) => quorate_node_core::debug!(node = id, ?other, "does not say what its wall clock shows"),
        Err(error) => quorate_node_core::debug!(node = id, %error, "does not say what its wall clock shows"),
    }
}

#[cfg(test)]
mod tests {
    use openraft::vote::RaftLeaderId;

    use super::*;

    const DAY: WallMillis = 86_400_000;

    fn voters_of(ids: &[NodeId]) -> BTreeSet<NodeId> {
        ids.iter().copied().collect()
    }

    fn first() -> CommittedLeaderId {
        CommittedLeaderId::new(1, 1)
    }

    /// What node 1 knows if the clocks of these others are so far from its own, milliseconds.
    fn knowing(others: &[(NodeId, i64)]) -> WallClocks {
        let clocks = WallClocks::new(1);
        let (own, now) = (wall_now(), Uptime::now());
        for (id, offset) in others {
            clocks.note(*id, Known::by(own.saturating_add_signed(*offset), now, now));
        }
        clocks
    }

    #[test]
    fn an_answer_is_as_good_as_it_was_quick() {
        let began = Uptime::now();
        let at = |ms| began.after(Duration::from_millis(ms));
        let known = Known::by(1_000, at(0), at(40));
        assert_eq!(known.at(at(140)), Reading { earliest: 1_100, latest: 1_143 });
        // A slow one that says no other takes nothing away, a quick one makes it better.
        let slow = known.and(Known::by(1_050, at(80), at(540)));
        assert_eq!(slow.at(at(540)), Reading { earliest: 1_500, latest: 1_513 });
        let quick = slow.and(Known::by(1_995, at(1_030), at(1_031)));
        assert_eq!(quick.at(at(1_031)), Reading { earliest: 1_995, latest: 1_999 });
        // A clock that was moved is where it says now.
        let moved = quick.and(Known::by(90_000, at(2_000), at(2_100)));
        assert_eq!(moved.at(at(2_100)), Reading { earliest: 90_000, latest: 90_103 });
    }

    #[test]
    fn a_leader_with_a_wrong_clock_stamps_the_time_of_the_others() {
        let day = i64::try_from(DAY).unwrap();
        for wrong in [-day, day] {
            // The leader's own is the wrong one.
            let clocks = knowing(&[(2, wrong), (3, wrong)]);
            let right = wall_now().saturating_add_signed(wrong);
            let stamp = clocks.stamp(&voters_of(&[1, 2, 3]), first(), || right);
            assert!(stamp.abs_diff(right) < 1_000, "{stamp} for {right}");
            // Knowing only one of them it goes on from where the cluster was.
            let clocks = knowing(&[(2, wrong)]);
            let stamp = clocks.stamp(&voters_of(&[1, 2, 3]), first(), || right);
            assert!(stamp.abs_diff(right) < 1_000, "{stamp} for {right}");
        }
    }

    #[test]
    fn clocks_that_are_wrong_one_after_the_other_move_nothing() {
        let day = i64::try_from(DAY).unwrap();
        for wrong in [-day, day] {
            let clocks = knowing(&[(2, wrong), (3, 0)]);
            let (voters, own) = (voters_of(&[1, 2, 3]), wall_now());
            let stamp = || clocks.stamp(&voters, first(), || own);
            let answer = |id, offset: i64| {
                let now = Uptime::now();
                clocks.note(id, Known::by(wall_now().saturating_add_signed(offset), now, now));
            };
            assert!(stamp().abs_diff(own) < 1_000);
            // The second one was set right since, and nobody has asked it again.
            answer(3, wrong);
            assert!(stamp().abs_diff(own) < 1_000, "by what one showed before");
            answer(3, wrong);
            assert!(stamp().abs_diff(own) < 1_000, "by one that was asked since");
            answer(2, 0);
            assert!(stamp().abs_diff(own) < 1_000, "by one");
            answer(2, wrong);
            assert!(stamp().abs_diff(own) < 1_000, "it was to move since now");
            answer(2, wrong);
            answer(3, wrong);
            assert!(stamp().abs_diff(own.saturating_add_signed(wrong)) < 1_000, "they are a majority");
        }
    }

    #[test]
    fn a_leadership_begins_far_from_the_log_only_by_clocks_that_were_asked_for_it() {
        let day = i64::try_from(DAY).unwrap();
        let voters = voters_of(&[1, 2, 3]);
        let clocks = knowing(&[(2, day), (3, day)]);
        let own = wall_now();
        *clocks.waited.lock() = Some(Uptime::now());
        assert!(clocks.stamp(&voters, first(), || own).abs_diff(own) < 1_000, "by what was known before");
        let now = Uptime::now();
        for id in [2, 3] {
            clocks.note(id, Known::by(own.saturating_add_signed(day), now, now));
        }
        let second = CommittedLeaderId::new(3, 1);
        assert!(clocks.stamp(&voters, second, || own).abs_diff(own + DAY) < 1_000);
    }

    #[test]
    fn stamps_go_on_from_the_last_one_while_nothing_is_known() {
        let clocks = WallClocks::new(1);
        let voters = voters_of(&[1, 2, 3]);
        assert_eq!(clocks.stamp(&voters, first(), || 7_000), 7_000);
        std::thread::sleep(Duration::from_millis(30));
        for _ in 0..1_000 {
            // Whole milliseconds are not lost, however often one is stamped.
            clocks.stamp(&voters, first(), || panic!("it was read"));
        }
        let stamp = clocks.stamp(&voters, first(), || panic!("it was read"));
        assert!((7_030..17_000).contains(&stamp), "{stamp}");
        let second = CommittedLeaderId::new(3, 1);
        assert_eq!(clocks.stamp(&voters, second, || 50_000), 50_000, "another leadership begins at what is replicated");
    }

    #[test]
    fn a_wrong_clock_moves_nothing_while_another_is_away() {
        let day = i64::try_from(DAY).unwrap();
        let voters = voters_of(&[1, 2, 3]);
        for wrong in [-day, day] {
            // The one that looks is the wrong one, the second is right, and nobody knows the third.
            let clocks = knowing(&[(2, wrong)]);
            let right = wall_now().saturating_add_signed(wrong);
            assert!(clocks.now(&voters, right).abs_diff(right) < 5_000, "it goes on from the log's");
            // Neither does it just after the start, when it knows nobody.
            assert!(WallClocks::new(1).now(&voters, right).abs_diff(right) < 5_000);
        }
        assert!(WallClocks::new(1).now(&voters_of(&[1]), 7).abs_diff(wall_now()) < 5_000, "alone it is a majority");
    }

    #[test]
    fn a_cluster_that_never_had_a_clock_begins_with_the_leader_s() {
        let clocks = WallClocks::new(1);
        let before = wall_now();
        assert!(clocks.stamp(&voters_of(&[1, 2, 3]), first(), || 0) >= before);
    }

    #[test]
    fn a_cluster_that_never_had_a_clock_begins_where_a_majority_is() {
        let day = i64::try_from(DAY).unwrap();
        let voters = voters_of(&[1, 2, 3]);
        for wrong in [-day, day] {
            let clocks = knowing(&[(2, wrong), (3, wrong)]);
            let right = wall_now().saturating_add_signed(wrong);
            *clocks.waited.lock() = Some(Uptime::now());
            let now = Uptime::now();
            for id in [2, 3] {
                clocks.note(id, Known::by(right, now, now));
            }
            let stamp = clocks.stamp(&voters, first(), || 0);
            assert!(stamp.abs_diff(right) < 1_000, "{stamp} for {right}");
            assert!(clocks.now(&voters, 0).abs_diff(right) < 1_000, "nobody leads yet");
        }
    }

    #[test]
    fn clocks_that_are_apart_are_told_by_all_and_by_how_much() {
        let members = voters_of(&[1, 2, 3]);
        let clocks = knowing(&[(2, 5), (3, 90_000)]);
        clocks.compare(&members);
        let warnings = clocks.warnings();
        assert!(
            warnings.len() == 1 && warnings[0].contains("node 3 is 90.0 s ahead of that of node 2"),
            "{warnings:?}"
        );
        assert!(clocks.own_ahead_seconds().abs() < 1.0);
        let clocks = knowing(&[(2, 3_600_000), (3, 3_600_000)]);
        clocks.compare(&members);
        let warnings = clocks.warnings();
        assert!(warnings.len() == 1 && warnings[0].contains("node 1 is 3600.0 s behind"), "{warnings:?}");
        assert!((clocks.own_ahead_seconds() + 3_600.0).abs() < 1.0);
        let clocks = knowing(&[(2, 400), (3, -400)]);
        clocks.compare(&members);
        assert_eq!(clocks.warnings(), Vec::<String>::new());
        // Who is no member any more is nobody's measure.
        let clocks = knowing(&[(2, 90_000), (3, 90_000)]);
        clocks.compare(&voters_of(&[1]));
        assert_eq!(clocks.warnings(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_majority_is_told_of_the_first_answer_that_makes_one() {
        let clocks = WallClocks::new(1);
        let voters = voters_of(&[1, 2, 3]);
        let (own, now) = (wall_now(), Uptime::now());
        let waits = clocks.wait_for_majority(&voters, own);
        let answers = async {
            clocks.wanted.notified().await;
            clocks.note(2, Known::by(own, now, now));
        };
        let begun = tokio::time::Instant::now();
        tokio::join!(waits, answers);
        assert_eq!(begun.elapsed(), Duration::ZERO);
        // One that nobody answers waits for a moment only.
        let alone = WallClocks::new(1);
        alone.wait_for_majority(&voters, own).await;
        assert_eq!(begun.elapsed(), WAIT_MAX);
    }
}
