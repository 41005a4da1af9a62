//! Stories about time that chance tells too seldom: repairs, full disks and removals at the worst moment, what openraft once got wrong,
//! what nodes apply in different groupings, dear searches, clocks that are wrong in turn, and what an archive gives back.
//!
//! Owns what happens in each, and what must be so at its end. The seed decides the rest: delays, elections, who is hit. Clients are
//! single requests here; whether histories are right is judged where chance rules (`run`).

pub mod archive;
mod clocks;
mod consensus;
mod groupings;
mod searches;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use cluster_harness::{Answer, Request};
use openraft::async_runtime::WatchReceiver;
use quorate_client::api::{Applied, ErrorCode};
use quorate_machine::machine::Bounds;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::address::HostId;
use crate::clock;
use crate::lowered;
use crate::outcome::Outcome;
use crate::world::{Sizes, World};

/// A story.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// A voter is repaired for longer than a dead one is waited for: it is not replaced.
    RepairedForLong,
    /// The third node dies while a voter is repaired: the repair gives way, and writes go on.
    QuorumEndsRepair,
    /// The leader dies while it repairs a voter: the others go on at once.
    LeaderEndsRepair,
    /// The disk of the leader is full: it makes no snapshot for a repair.
    NoRoomForRepair,
    /// Followers run out of room before the leader does: what grows is refused while there is a quorum yet.
    FullFollowers,
    /// The leader dies while it removes a voter: that goes whole, or nothing happened.
    RemovalInterrupted,
    /// The leader dies while it lets a standby vote in place of a voter: they change places, or nothing happened.
    ReplacementInterrupted,
    /// Five voters come forward in disorder, the leader last of them: only what a majority has is committed.
    AcknowledgedInDisorder,
    /// A former leader whose change of the members came to nothing is given a snapshot: it goes by the members of that.
    MembersOfASnapshot,
    /// A member dies without a word and is removed: no write waits for it.
    RemovedWithoutAWord,
    /// Leadership is handed to a node that stands still, while others read all the time: another one takes it.
    HandedToNobody,
    /// The leader cannot read what a follower lacks: it ends, and the follower's log is right.
    UnreadableForAFollower,
    /// Nodes apply the same log in different groupings: large values, quotas, ranges beyond every bound, changes of many entries.
    Groupings,
    /// Searches that are dear go through all nodes, beside small writes, a lock for which few may wait, and a quota: each is as a model has it.
    DearSearches,
    /// A wall clock is set right as the leader's jumps: a majority is right at every moment, and so is the cluster's clock.
    ClocksInTurn,
    /// Nodes archive to a store that refuses, delays, repeats, does not answer, loses and damages: every point that is promised is restored.
    Archive,
    /// Nodes archive while the clock of their leader is a day off: no piece is merged before its time, and every point is restored.
    ArchiveApart,
}

/// How long a cluster may take to come up, milliseconds.
const UP_MAX: u64 = 20_000;
/// How long an answer may take that has nothing to wait for.
const ANSWER_MAX: u64 = 10_000;
/// How long a cluster may take to go on after one of its nodes died.
const GO_ON_MAX: u64 = 6_000;
/// Entries that fill the state, and bytes of each.
const ENTRIES: usize = 30;
const ENTRY_BYTES: usize = 12_000;
/// Bytes a second at which a snapshot of them takes a little less than its receiver waits for something new.
const SLOWLY: u64 = 45_000;
/// How long that is at least, milliseconds.
const SLOW_MIN: u64 = 5_000;
/// After so long a dead voter is replaced: with the time until it counts as silent, less than the transfer takes.
const REPLACE_AFTER: Duration = Duration::from_millis(1_500);
/// Free bytes that writes need, and a disk that has less.
const FREE_MIN: u64 = 100 << 20;
const TOO_LITTLE: u64 = 10 << 20;
/// Within so many milliseconds after a change of the members began its leader dies: that is how long the longest takes.
const DIES_WITHIN: u64 = 12;
/// As long as the next leader may need to see that nobody is at work on a change, and to finish it, milliseconds.
const FINISH_MAX: u64 = 4_000;

/// Plays a story with this seed in a directory.
pub fn play(scenario: Scenario, seed: u64, dir: &Path, tell: bool) -> Outcome {
    clock::simulate(seed);
    quorate_threads::background::simulate_on_this_thread();
    let mut dice = StdRng::seed_from_u64(seed);
    let world = World::new(dir.to_owned(), scenario.nodes(), scenario.sizes(seed), &mut dice);
    let (met, counted) = Default::default();
    let mut stage = Stage { world, dice, tell, operations: 0, met, counted };
    let played = match scenario {
        Scenario::RepairedForLong => stage.repaired_for_long(),
        Scenario::QuorumEndsRepair => stage.quorum_ends_repair(),
        Scenario::LeaderEndsRepair => stage.leader_ends_repair(),
        Scenario::NoRoomForRepair => stage.no_room_for_repair(),
        Scenario::FullFollowers => stage.full_followers(),
        Scenario::RemovalInterrupted => stage.removal_interrupted(),
        Scenario::ReplacementInterrupted => stage.replacement_interrupted(),
        Scenario::AcknowledgedInDisorder => stage.acknowledged_in_disorder(),
        Scenario::MembersOfASnapshot => stage.members_of_a_snapshot(),
        Scenario::RemovedWithoutAWord => stage.removed_without_a_word(),
        Scenario::HandedToNobody => stage.handed_to_nobody(),
        Scenario::UnreadableForAFollower => stage.unreadable_for_a_follower(),
        Scenario::Groupings => stage.groupings(lowered::is_lowered_for_groupings(seed)),
        Scenario::DearSearches => stage.dear_searches(),
        Scenario::ClocksInTurn => stage.clocks_in_turn(),
        Scenario::Archive => stage.archive(seed),
        Scenario::ArchiveApart => stage.archive_apart(),
    };
    let broken = played.err().map(|found| format!("{scenario:?}: {found}"));
    let all = || stage.met.iter().chain(&stage.counted);
    all().for_each(|(what, times)| stage.say(&format!("{times} times {what}")));
    Outcome {
        seed,
        millis: stage.world.now,
        trace: stage.world.net.trace() ^ stage.world.facts.trace.rotate_left(32) ^ stage.world.net.bytes(),
        operations: stage.operations,
        faults: stage.met.values().sum(),
        kinds: all().map(|(what, _)| (*what).to_owned()).collect(),
        broken: broken.into_iter().collect(),
        ..Outcome::default()
    }
}

impl Scenario {
    fn nodes(self) -> u8 {
        match self {
            // Who loses its leader and a voter at once needs two more.
            Self::RemovalInterrupted | Self::ReplacementInterrupted => 4,
            Self::AcknowledgedInDisorder | Self::MembersOfASnapshot | Self::RemovedWithoutAWord => 5,
            _ => 3,
        }
    }

    fn sizes(self, seed: u64) -> Sizes {
        let usual = Sizes { snapshot_every: 1_000, keep_log: 1_000, bounds: Bounds::default() };
        match self {
            Self::MembersOfASnapshot => Sizes { snapshot_every: 20, keep_log: 0, ..usual },
            Self::Groupings => Sizes { bounds: lowered::for_groupings(seed), ..usual },
            _ => usual,
        }
    }
}

struct Stage {
    world: World,
    dice: StdRng,
    tell: bool,
    /// Requests that were answered, where the story counts them.
    operations: u64,
    /// What the story met, and how often.
    met: BTreeMap<&'static str, u64>,
    /// What it counted beside, and is no harm.
    counted: BTreeMap<&'static str, u64>,
}

/// Why a story did not go as it has to.
type Found = Result<(), String>;

/// An answer that is awaited.
type Asked = tokio::task::JoinHandle<std::io::Result<Answer>>;

impl Stage {
    fn repaired_for_long(&mut self) -> Found {
        self.configure(|config| config.replace_dead_after = Some(REPLACE_AFTER));
        self.begin()?;
        let standby = self.world.bring_standby();
        self.until(UP_MAX, "the standby is no learner that has caught up", |world| {
            let applied = world.parts(standby).map(|parts| parts.app.state().position().index);
            applied.is_some_and(|applied| applied > ENTRIES as u64)
        })?;
        let (leader, voter) = self.distrusted()?;
        let begun = self.world.now;
        let repair = self.begin_repair(leader, voter)?;
        let answer = self.answer(repair, 60_000)?;
        let took = self.world.now - begun;
        expect(&answer, 200)?;
        self.say(&format!("node {voter} was repaired in {took} ms"));
        if took < SLOW_MIN {
            return Err(format!("the repair took only {took} ms: that proves nothing"));
        }
        self.steps(2_000)?;
        let voters = self.voters(leader);
        if voters != [1, 2, 3] {
            return Err(format!("the voters are {voters:?}, and nobody was dead"));
        }
        self.write(leader, "after", GO_ON_MAX)
    }

    fn quorum_ends_repair(&mut self) -> Found {
        self.begin()?;
        let (leader, voter) = self.distrusted()?;
        let repair = self.begin_repair(leader, voter)?;
        let third = third(leader, voter);
        self.steps(1_000)?;
        self.say(&format!("node {third} dies"));
        self.world.crash(third, true);
        self.write(leader, "without the third", GO_ON_MAX)?;
        let answer = self.answer(repair, ANSWER_MAX)?;
        expect(&answer, 503)?;
        if !answer.text().contains("bring another one back first") {
            return Err(format!("it does not say why: {}", answer.text()));
        }
        if !self.is_quarantined(voter) {
            return Err(format!("node {voter} trusts a state that was not replaced"));
        }
        // Once the third is back the same may be asked again.
        self.world.heal(crate::cure::Cure::Start(third));
        self.until(UP_MAX, "the third does not come back", World::is_up)?;
        self.repair_at_last(voter)
    }

    fn leader_ends_repair(&mut self) -> Found {
        self.begin()?;
        let (leader, voter) = self.distrusted()?;
        let _unanswered = self.begin_repair(leader, voter)?;
        self.steps(1_000)?;
        self.say(&format!("the leader, node {leader}, dies"));
        self.world.crash(leader, true);
        let third = third(leader, voter);
        self.write(third, "without the leader", GO_ON_MAX)?;
        if !self.is_quarantined(voter) {
            return Err(format!("node {voter} trusts a state that was not replaced"));
        }
        self.world.heal(crate::cure::Cure::Start(leader));
        self.until(UP_MAX, "the former leader does not come back", World::is_up)?;
        self.repair_at_last(voter)
    }

    fn no_room_for_repair(&mut self) -> Found {
        self.begin()?;
        let (leader, voter) = self.distrusted()?;
        self.world.set_free(leader, 1 << 20);
        self.steps(500)?;
        let repair = self.world.request(leader, repair_of(voter));
        let answer = self.answer(repair, ANSWER_MAX)?;
        expect(&answer, 503)?;
        if !answer.text().contains("no room for a snapshot") {
            return Err(format!("it does not say why: {}", answer.text()));
        }
        self.world.set_free(leader, 1 << 40);
        self.steps(500)?;
        self.repair_at_last(voter)
    }

    fn full_followers(&mut self) -> Found {
        self.configure(|config| config.min_free_bytes = FREE_MIN);
        self.begin()?;
        let leader = self.leader()?;
        let followers: Vec<HostId> = (1..=3).filter(|id| *id != leader).collect();
        let first = *followers.choose(&mut self.dice).expect("there are two");
        let second = third(leader, first);
        self.world.set_free(first, TOO_LITTLE);
        self.steps(3_000)?;
        self.write(leader, "one has no room", ANSWER_MAX)?;
        self.world.set_free(second, TOO_LITTLE);
        self.steps(3_000)?;
        for id in [first, second] {
            self.expect_refused(leader, &format!("node {id} has {TOO_LITTLE} bytes free"))?;
        }
        let delete = self.world.request(leader, Request::new("DELETE", "/v1/kv/fill-0"));
        let deleted = self.answer(delete, ANSWER_MAX)?;
        if !deleted.is_success() {
            return Err(format!("deletes do not go on: {}", deleted.text()));
        }
        self.world.set_free(second, 1 << 40);
        self.steps(3_000)?;
        self.write(leader, "there is room again", ANSWER_MAX)?;
        // One that is gone counts as one that is full: the other would be the end.
        self.world.crash(second, true);
        self.steps(4_000)?;
        self.expect_refused(leader, &format!("node {first} has"))?;
        self.world.set_free(first, 1 << 40);
        self.steps(3_000)?;
        self.write(leader, "two with room are enough", ANSWER_MAX)
    }

    fn removal_interrupted(&mut self) -> Found {
        self.begin()?;
        let (leader, goes) = self.leader_and_another()?;
        let removal = Request::new("DELETE", format!("/v1/cluster/members/{goes}"));
        self.interrupt(leader, goes, &removal)?;
        self.is_whole_or_not_at_all(goes, &removal)
    }

    fn replacement_interrupted(&mut self) -> Found {
        self.begin()?;
        let standby = self.world.bring_standby();
        let (leader, goes) = self.leader_and_another()?;
        self.until(UP_MAX, "the standby does not come", |world| seat(world, leader, standby) == Some(Seat::Learner))?;
        self.steps(1_000)?;
        let replacement =
            Request::post(format!("/v1/cluster/members/{goes}/replace"), format!("{{\"with\":{standby}}}"));
        self.interrupt(leader, goes, &replacement)?;
        self.is_whole_or_not_at_all(goes, &replacement)?;
        match seat(&self.world, self.leader()?, standby) {
            Some(Seat::Voter) => Ok(()),
            other => Err(format!("node {standby} took the place of node {goes} and is {other:?}")),
        }
    }

    // --- what they have in common -----------------------------------------------------------------------------------------

    fn meet(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }

    fn say(&self, what: &str) {
        if self.tell {
            eprintln!("{:>7} ms  {what}", self.world.now);
        }
    }

    fn configure(&mut self, change: impl Fn(&mut quorate_node::config::Config)) {
        self.world.founders().to_vec().into_iter().for_each(|id| self.world.configure(id, &change));
    }

    /// Three nodes that are up and have something to keep.
    fn begin(&mut self) -> Found {
        self.world.start_all();
        self.until(UP_MAX, "nobody leads", |world| world.is_up() && world.leader().is_some())?;
        for number in 0..ENTRIES {
            // Hardly to be compressed.
            let text: String =
                (0..ENTRY_BYTES).map(|_| self.dice.random_range('0'..='z')).filter(|c| *c != '\\').collect();
            let value = format!("\"{text}\"");
            let leader = self.leader()?;
            self.write_value(leader, &format!("fill-{number}"), value, UP_MAX)?;
        }
        self.until(UP_MAX, "the nodes do not agree", World::agrees)?;
        self.say("there is something to keep");
        Ok(())
    }

    fn leader(&self) -> Result<HostId, String> {
        self.world.leader().ok_or_else(|| "nobody leads".into())
    }

    /// The leader, and another voter that does not trust its state and is heard again.
    fn distrusted(&mut self) -> Result<(HostId, HostId), String> {
        let leader = self.leader()?;
        let others: Vec<HostId> = (1..=3).filter(|id| *id != leader).collect();
        let voter = *others.choose(&mut self.dice).expect("there are two");
        self.world.distrust(voter);
        self.say(&format!("node {voter} does not trust its state"));
        self.until(UP_MAX, "it does not come back", World::is_up)?;
        self.steps(3_000)?;
        match self.leader()? {
            still if still == leader => Ok((leader, voter)),
            other => Err(format!("node {other} leads now and not node {leader}: the story goes another way")),
        }
    }

    /// Asks for a repair that takes long, and waits until the voter takes no more entries.
    fn begin_repair(&mut self, leader: HostId, voter: HostId) -> Result<Asked, String> {
        let parts = self.world.parts(leader).ok_or("the leader does not run")?;
        parts.app.peers().limit_snapshots(SLOWLY);
        let asked = self.world.request(leader, repair_of(voter).header("Request-Timeout", "60000"));
        self.until(ANSWER_MAX, "the repair does not begin", |world| {
            world.parts(leader).is_some_and(|parts| parts.app.integrity().under_repair().is_some())
        })?;
        self.say(&format!("node {leader} repairs node {voter}"));
        Ok(asked)
    }

    /// Asks whoever leads for it until it is done.
    fn repair_at_last(&mut self, voter: HostId) -> Found {
        for _ in 0..20 {
            self.steps(1_000)?;
            let leader = self.leader()?;
            if let Some(parts) = self.world.parts(leader) {
                parts.app.peers().limit_snapshots(0);
            }
            let asked = self.world.request(leader, repair_of(voter));
            if self.answer(asked, 60_000).is_ok_and(|answer| answer.is_success()) {
                self.steps(500)?;
                return match self.is_quarantined(voter) {
                    true => Err(format!("node {voter} was repaired and does not trust its state")),
                    false => self.until(UP_MAX, "the nodes do not agree", World::agrees),
                };
            }
        }
        Err(format!("node {voter} is not repaired in the end"))
    }

    fn leader_and_another(&mut self) -> Result<(HostId, HostId), String> {
        let leader = self.leader()?;
        let others: Vec<HostId> = self.world.founders().iter().copied().filter(|id| *id != leader).collect();
        Ok((leader, *others.choose(&mut self.dice).expect("there are three")))
    }

    /// Asks the leader for a change by which a voter goes, and kills it once it has begun.
    fn interrupt(&mut self, leader: HostId, goes: HostId, request: &Request) -> Found {
        self.world.expect_gone(goes);
        let _unanswered = self.world.request(leader, request.clone());
        self.until(ANSWER_MAX, "the change does not begin", |world| {
            let metrics = world.parts(leader).map(|parts| parts.app.raft().server_metrics().borrow_watched().clone());
            let configs = metrics.map(|metrics| metrics.membership_config.membership().get_joint_config().clone());
            configs.is_some_and(|configs| configs.last().is_some_and(|voters| !voters.contains(&u64::from(goes))))
        })?;
        let later = self.dice.random_range(0..=DIES_WITHIN);
        self.steps(later)?;
        self.say(&format!("the leader, node {leader}, dies {later} ms after it began to let node {goes} go"));
        self.world.crash(leader, true);
        let another = self.world.founders().iter().copied().find(|id| *id != leader && *id != goes);
        self.write(another.expect("there are two"), "without the leader", GO_ON_MAX)?;
        self.steps(FINISH_MAX)
    }

    /// Whoever is not removed keeps its vote, and whoever has lost it never comes back.
    fn is_whole_or_not_at_all(&mut self, goes: HostId, request: &Request) -> Found {
        let leader = self.leader()?;
        let is_gone = match seat(&self.world, leader, goes) {
            Some(Seat::Voter) => false,
            None => true,
            Some(Seat::Learner) => {
                self.come_again(goes)?;
                let then = seat(&self.world, self.leader()?, goes);
                return Err(format!("node {goes} lost its vote and is still a member; started again it is {then:?}"));
            }
        };
        self.say(if is_gone { "it went" } else { "nothing happened" });
        if !is_gone {
            self.come_again(goes)?;
            self.until_done(request)?;
        }
        self.come_again(goes)?;
        match seat(&self.world, self.leader()?, goes) {
            None => self.until(UP_MAX, "those who are left do not agree", World::agrees),
            Some(seat) => Err(format!("node {goes} was removed and is {seat:?}")),
        }
    }

    /// A node is started again, with all others, and has the time to ask for what it wants.
    fn come_again(&mut self, id: HostId) -> Found {
        self.world.crash(id, false);
        for all in self.world.founders().to_vec() {
            self.world.heal(crate::cure::Cure::Start(all));
        }
        self.until(UP_MAX, "not all come back", World::is_up)?;
        self.steps(FINISH_MAX)
    }

    /// Asks whoever leads until it is done.
    fn until_done(&mut self, request: &Request) -> Found {
        let mut last = String::new();
        for _ in 0..20 {
            let leader = self.leader()?;
            let asked = self.world.request(leader, request.clone());
            match self.answer(asked, ANSWER_MAX) {
                Ok(answer) if answer.is_success() => return Ok(()),
                Ok(answer) => last = answer.text(),
                Err(error) => last = error,
            }
            self.steps(500)?;
        }
        Err(format!("it is not done in the end: {last}"))
    }

    fn is_quarantined(&self, id: HostId) -> bool {
        self.world.parts(id).is_some_and(|parts| parts.app.quarantine().is_some())
    }

    fn voters(&self, at: HostId) -> Vec<u64> {
        let of = |parts: &crate::host::Parts| {
            let metrics = parts.app.raft().server_metrics();
            let metrics = metrics.borrow_watched();
            metrics.membership_config.voter_ids().collect()
        };
        self.world.parts(at).map_or(Vec::new(), of)
    }

    fn write(&mut self, to: HostId, key: &str, within: u64) -> Found {
        self.write_value(to, &key.replace(' ', "-"), "1".into(), within)
    }

    /// Writes at a node, again and again until it succeeds.
    fn write_value(&mut self, to: HostId, key: &str, value: String, within: u64) -> Found {
        let until = self.world.now + within;
        let mut last = String::from("no answer");
        while self.world.now < until {
            let put = Request::put(key, value.clone()).request_id(key).header("Request-Timeout", "2000");
            let asked = self.world.request(to, put);
            match self.answer(asked, until - self.world.now) {
                Ok(answer) if answer.is_success() => return Ok(()),
                Ok(answer) => last = answer.text(),
                Err(error) => last = error,
            }
            self.steps(20)?;
        }
        Err(format!("`{key}` was not written within {within} ms: {last}"))
    }

    fn expect_refused(&mut self, at: HostId, words: &str) -> Found {
        let asked = self.world.request(at, Request::put("more", "1"));
        let answer = self.answer(asked, ANSWER_MAX)?;
        expect(&answer, 507)?;
        let problem = answer.problem();
        if (problem.code, problem.applied) != (ErrorCode::QuotaExceeded, Applied::No) || !problem.detail.contains(words)
        {
            return Err(format!("no `{words}` in {}", answer.text()));
        }
        Ok(())
    }

    fn answer(&mut self, asked: Asked, within: u64) -> Result<Answer, String> {
        self.until(within, "no answer", |_| asked.is_finished())?;
        let answer = self.world.clients.at_once(asked).map_err(|panic| panic.to_string())?;
        answer.map_err(|error| format!("no answer: {error}"))
    }

    fn steps(&mut self, count: u64) -> Found {
        (0..count).try_for_each(|_| self.world.step())
    }

    fn until(&mut self, max: u64, what: &str, is_so: impl Fn(&World) -> bool) -> Found {
        self.world.until(max, what, is_so)
    }
}

/// What a node is to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seat {
    Voter,
    Learner,
}

/// What a node is by what another one has seen committed; `None` where it is nobody.
fn seat(world: &World, by: HostId, of: HostId) -> Option<Seat> {
    let metrics = world.parts(by)?.app.raft().server_metrics().borrow_watched().clone();
    let membership = metrics.committed_membership_config.membership();
    membership.get_node(&u64::from(of))?;
    Some(if membership.voter_ids().any(|id| id == u64::from(of)) { Seat::Voter } else { Seat::Learner })
}

fn third(one: HostId, other: HostId) -> HostId {
    (1..=3).find(|id| *id != one && *id != other).expect("there are three")
}

fn repair_of(voter: HostId) -> Request {
    Request::new("POST", format!("/v1/cluster/members/{voter}/repair"))
}

fn expect(answer: &Answer, status: u16) -> Found {
    match answer.status {
        found if found == status => Ok(()),
        found => Err(format!("status {found} where {status} is due: {}", answer.text())),
    }
}
