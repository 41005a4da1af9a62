//! The same log in different groupings: what a node applies together depends on when it heard of it, and nothing may depend on that.
//!
//! Owns who falls behind while much is asked: nodes that stand still, nodes that die and apply again what they had not flushed. What is asked
//! stands in `cluster_harness::drive::large`, the comparison of states at each index in `facts`.

use std::time::Duration;

use cluster_harness::drive::large;
use cluster_harness::{Answer, Connection, Request};
use rand::RngExt;
use rand::seq::IndexedRandom;

use super::{Found, Stage, UP_MAX};
use crate::address::HostId;
use crate::cure::Cure;
use crate::world::World;

/// Rounds of a story; each ends with nodes that agree.
const ROUNDS: usize = 14;
/// Requests of a round.
const BURST: std::ops::Range<usize> = 3..14;
/// How long a node stands still in a round, milliseconds.
const STANDS_STILL: std::ops::Range<u64> = 100..1_200;
/// How long each answer is awaited, and all of a round, milliseconds.
const PATIENCE: Duration = Duration::from_secs(4);
const ROUND_MAX: u64 = 60_000;
/// Connections over which much is written at once.
const LANES: usize = 8;

impl Stage {
    pub(super) fn groupings(&mut self) -> Found {
        self.begin()?;
        self.fill_for_groupings()?;
        for _ in 0..ROUNDS {
            self.round_of_groupings()?;
        }
        Ok(())
    }

    fn fill_for_groupings(&mut self) -> Found {
        let puts = large::to_begin_with(&mut self.dice);
        let leader = self.leader()?;
        let (wanted, lanes) = (puts.len(), in_lanes(puts));
        let written = self.ask_in_lanes(leader, lanes)?;
        match written.iter().filter(|answer| answer.is_success()).count() {
            all if all == wanted => {}
            some => return Err(format!("only {some} of {wanted} entries were written to begin with")),
        }
        self.until(UP_MAX, "the nodes do not agree", World::agrees)?;
        self.say("there are large values, many entries and documents");
        Ok(())
    }

    fn round_of_groupings(&mut self) -> Found {
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
        let count = self.dice.random_range(BURST);
        let burst: Vec<Request> = (0..count).flat_map(|_| large::draw(&mut self.dice)).collect();
        let at_once = self.dice.random_ratio(1, 3);
        let lanes = if at_once { in_lanes(burst) } else { vec![burst] };
        for answer in self.ask_in_lanes(leader, lanes)? {
            if let Some(met) = large::met(&answer) {
                self.meet(met);
            }
        }
        let dies: &[HostId] = match self.dice.random_range(0..4) {
            0 => &[one],
            1 => &followers,
            2 => &[leader],
            _ => &[],
        };
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
