//! The same log in different groupings: what a node applies together depends on when it heard of it, and nothing may depend on that.
//!
//! Owns who falls behind while much is asked: nodes that stand still, nodes that die and apply again what they had not flushed. What is asked
//! stands in `cluster_harness::drive`: in `large` for a cluster within the bounds of a node, in `bounded` for one within lower ones, which
//! `lowered` draws. The comparison of states at each index stands in `facts`.

use std::time::Duration;

use cluster_harness::drive::{bounded, large};
use cluster_harness::{Answer, Connection, Request};
use rand::RngExt;
use rand::seq::IndexedRandom;

use super::{Found, Stage, UP_MAX};
use crate::address::HostId;
use crate::cure::Cure;
use crate::world::World;

/// Rounds of a story within the bounds of a node, and within lower ones; each ends with nodes that agree.
const ROUNDS: usize = 14;
const BOUNDED_ROUNDS: u64 = 6;
/// Requests of a round.
const BURST: std::ops::Range<usize> = 3..14;
/// How long a node stands still in a round, milliseconds.
const STANDS_STILL: std::ops::Range<u64> = 100..1_200;
/// Within so many milliseconds prefixes are counted, since the leader looks every two seconds; and what is short ends by itself.
const COUNTED_WITHIN: u64 = 2_600;
const ENDED_WITHIN: u64 = 300;
/// How long each answer is awaited, and all of a round, milliseconds.
const PATIENCE: Duration = Duration::from_secs(4);
const ROUND_MAX: u64 = 60_000;
/// Connections over which much is written at once.
const LANES: usize = 8;

/// The nodes of a round.
struct Cast {
    leader: HostId,
    followers: Vec<HostId>,
    /// The follower that may stand still.
    one: HostId,
}

impl Stage {
    /// The story, within the bounds of a node or within lower ones.
    pub(super) fn groupings(&mut self, is_lowered: bool) -> Found {
        self.begin()?;
        if !is_lowered {
            let puts = large::to_begin_with(&mut self.dice);
            self.fill_for_groupings(puts)?;
            return (0..ROUNDS).try_for_each(|_| self.large_round());
        }
        let puts = bounded::to_begin_with(&mut self.dice);
        self.fill_for_groupings(puts)?;
        // Until a prefix is counted its quota refuses nothing.
        self.until_counted()?;
        (0..BOUNDED_ROUNDS).try_for_each(|number| self.bounded_round(number))?;
        match bounded::TO_BE_MET.iter().find(|name| !self.met.contains_key(*name)) {
            Some(name) => Err(format!("never met: {name}; met: {:?}", self.met)),
            None => Ok(()),
        }
    }

    fn fill_for_groupings(&mut self, puts: Vec<Request>) -> Found {
        let leader = self.leader()?;
        let (wanted, lanes) = (puts.len(), in_lanes(puts));
        let written = self.ask_in_lanes(leader, lanes)?;
        match written.iter().filter(|answer| answer.is_success()).count() {
            all if all == wanted => {}
            some => return Err(format!("only {some} of {wanted} entries were written to begin with")),
        }
        self.until(UP_MAX, "the nodes do not agree", World::agrees)?;
        self.say("there are many values, entries and documents");
        Ok(())
    }

    /// A round with values up to the largest.
    fn large_round(&mut self) -> Found {
        let Cast { leader, followers, one } = self.begin_round()?;
        let count = self.dice.random_range(BURST);
        let burst: Vec<Request> = (0..count).flat_map(|_| large::draw(&mut self.dice)).collect();
        let at_once = self.dice.random_ratio(1, 3);
        let lanes = if at_once { in_lanes(burst) } else { vec![burst] };
        self.ask_for(leader, lanes, large::met)?;
        let dies: &[HostId] = match self.dice.random_range(0..4) {
            0 => &[one],
            1 => &followers,
            2 => &[leader],
            _ => &[],
        };
        self.let_die(leader, dies)
    }

    /// A round with small values. Somebody dies in each: what it has not flushed it applies again in few groups, whose entries were applied in
    /// others before.
    fn bounded_round(&mut self, number: u64) -> Found {
        let Cast { leader, followers, one } = self.begin_round()?;
        let sequences = bounded::round(&mut self.dice);
        // Beside each other they get into the same entries of the log, one after the other into entries of their own.
        let at_once = self.dice.random_ratio(1, 3);
        let lanes = if at_once { sequences } else { vec![sequences.concat()] };
        // A follower forwards what it is asked.
        let another = followers.iter().copied().find(|id| *id != one).expect("there are two");
        let asked = if self.dice.random_ratio(1, 4) { another } else { leader };
        self.ask_for(asked, lanes, bounded::met)?;
        // In the other rounds nothing is counted yet, or not all, as somebody dies.
        if number.is_multiple_of(2) {
            self.until_counted()?;
        }
        self.steps(ENDED_WITHIN)?;
        let dies: &[HostId] = match self.dice.random_range(0..3) {
            0 => &[one],
            1 => &followers,
            _ => &[leader],
        };
        self.let_die(leader, dies)
    }

    /// Waits for a leader, and has a follower stand still in every other round.
    fn begin_round(&mut self) -> Result<Cast, String> {
        self.until(UP_MAX, "nobody leads", |world| world.is_up() && world.leader().is_some())?;
        let leader = self.leader()?;
        let followers: Vec<HostId> = self.world.founders().iter().copied().filter(|id| *id != leader).collect();
        let one = *followers.choose(&mut self.dice).expect("there are two");
        if self.dice.random_ratio(1, 2) {
            let millis = self.dice.random_range(STANDS_STILL);
            self.say(&format!("node {one} stands still for {millis} ms"));
            self.world.pause(one, millis);
            self.meet("a follower stood still");
        }
        Ok(Cast { leader, followers, one })
    }

    /// Waits until the leader has counted what quotas are set on, and no longer: what is flushed by then nobody applies again.
    fn until_counted(&mut self) -> Found {
        for _ in 0..COUNTED_WITHIN {
            let leader = self.world.leader().and_then(|leader| self.world.parts(leader));
            if leader.is_some_and(|parts| matches!(parts.app.state().has_counting_work(), Ok(false))) {
                break;
            }
            self.world.step()?;
        }
        Ok(())
    }

    /// Asks in lanes, and notes what the answers show.
    fn ask_for(&mut self, to: HostId, lanes: Vec<Vec<Request>>, met: fn(&Answer) -> Option<&'static str>) -> Found {
        for answer in self.ask_in_lanes(to, lanes)? {
            if let Some(met) = met(&answer) {
                self.meet(met);
            }
        }
        Ok(())
    }

    /// These die, come back at once, and come to agree with the others.
    fn let_die(&mut self, leader: HostId, dies: &[HostId]) -> Found {
        for id in dies {
            self.say(&format!("node {id} dies"));
            self.world.crash(*id, self.dice.random());
            self.meet(if *id == leader { "the leader died" } else { "a follower died" });
            self.world.heal(Cure::Start(*id));
        }
        self.until(UP_MAX, "not all come back", World::is_up)?;
        self.until(UP_MAX, "the nodes do not agree", World::agrees)
    }

    /// Asks over a connection for each lane, in turn on each. Answers that do not come are left out.
    fn ask_in_lanes(&mut self, to: HostId, lanes: Vec<Vec<Request>>) -> Result<Vec<Answer>, String> {
        let asked: Vec<_> = lanes
            .into_iter()
            .map(|requests| {
                let connecting = self.world.connect(to);
                self.world.spawn(async move {
                    let mut answers = Vec::new();
                    let Ok(mut connection) = connecting.await else { return answers };
                    for request in requests {
                        let Ok(answer) = in_time(&mut connection, &request).await else { return answers };
                        answers.push(answer);
                    }
                    answers
                })
            })
            .collect();
        self.until(ROUND_MAX, "no answers", |_| asked.iter().all(tokio::task::JoinHandle::is_finished))?;
        let mut answers = Vec::new();
        for lane in asked {
            answers.extend(self.world.clients.at_once(lane).map_err(|panic| panic.to_string())?);
        }
        self.operations += answers.len() as u64;
        Ok(answers)
    }
}

async fn in_time(connection: &mut Connection, request: &Request) -> std::io::Result<Answer> {
    tokio::time::timeout(PATIENCE, connection.exchange(request)).await?
}

fn in_lanes(requests: Vec<Request>) -> Vec<Vec<Request>> {
    let mut lanes = vec![Vec::new(); LANES];
    for (number, request) in requests.into_iter().enumerate() {
        lanes[number % LANES].push(request);
    }
    lanes
}
