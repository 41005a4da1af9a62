//! A client that has the cluster tell the time in each way it does, while one wall clock of its nodes is wrong at a time.
//!
//! Owns the questions (the operation `now`, the trail of a key, when a cron is due) and the comparison with this machine's clock, which no fault
//! of a node moves. No history records them, and no other client uses its keys and queues.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quorate_machine::document::time;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::Nodes;
use crate::http::{Answer, Connection, Request};

/// How long an answer may take before the client goes on. It is no fault: nodes may be gone.
const ANSWER_MAX: Duration = Duration::from_secs(4);
/// How long it rests after each turn, milliseconds.
const REST_MS: std::ops::Range<u64> = 50..250;
/// The most by which a time may be off, milliseconds. The next leader goes on from the last stamp at first, which is a while ago; a wrong clock is
/// nearly always further off.
const OFF_MAX: i64 = 10_000;
/// An occurrence of a cron may have waited for so long, milliseconds: for a leader, and for this client.
const WAITED_MAX: i64 = 60_000;
/// A client goes on for so long at most after its end, where a way to tell the time was not met before: nothing is wrong by then.
const LONGER_MAX: Duration = Duration::from_secs(20);
/// Most wrong times that are told of: one clock may be wrong for long.
const WRONG_MAX: usize = 20;
/// It is due in each second.
const CRON: &str = "* * * * * *";
const NANOS_PER_MS: i128 = 1_000_000;

const NOW: &str = "the operation now";
const TRAIL: &str = "the trail of a key";
const DUE: &str = "when a cron is due";
const ALL: [&str; 3] = [NOW, TRAIL, DUE];

/// All such clients of one run, and what they were told.
#[derive(Debug, Clone, Default)]
pub struct TimeClients {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    told: BTreeMap<&'static str, u64>,
    wrong: Vec<String>,
    ended: Option<Instant>,
}

impl TimeClients {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts so many of them.
    pub fn start(&self, count: usize, nodes: &Nodes, dice: &mut StdRng) -> JoinSet<()> {
        let mut all = JoinSet::new();
        for place in 0..count {
            let client = TimeClient { all: self.clone(), nodes: nodes.clone(), place, next: place, connection: None };
            all.spawn(client.work(StdRng::seed_from_u64(dice.random())));
        }
        all
    }

    /// Lets each of them end what it is at, once each way to tell the time was met.
    pub fn end(&self) {
        self.lock().ended = Some(Instant::now());
    }

    fn goes_on(&self) -> bool {
        let shared = self.lock();
        let is_missing = || ALL.iter().any(|way| !shared.told.contains_key(way));
        shared.ended.is_none_or(|ended| ended.elapsed() < LONGER_MAX && is_missing())
    }

    /// Wrong times, and ways to tell the time that were never met, for people.
    pub fn wrong(&self) -> Vec<String> {
        let shared = self.lock();
        let missing = ALL.iter().filter(|way| !shared.told.contains_key(*way));
        let missing = missing.map(|way| format!("no time was told by {way}; told: {:?}", shared.told));
        shared.wrong.iter().cloned().chain(missing).collect()
    }

    /// Compares a time with those between which it has to be, all in Unix milliseconds.
    fn judge(&self, way: &'static str, told: i64, (earliest, latest): (i64, i64)) {
        let mut shared = self.lock();
        *shared.told.entry(way).or_default() += 1;
        if !(earliest..=latest).contains(&told) && shared.wrong.len() < WRONG_MAX {
            shared.wrong.push(format!("{way} tells {told}, and it was between {earliest} and {latest}"));
        }
    }
}

struct TimeClient {
    all: TimeClients,
    nodes: Nodes,
    place: usize,
    /// The place of the node that is asked next.
    next: usize,
    connection: Option<Connection>,
}

impl TimeClient {
    async fn work(mut self, mut dice: StdRng) {
        let mut number = 0_u64;
        while self.all.goes_on() {
            number += 1;
            // The next turn asks again for what was not answered, of another key.
            let _answered = self.ask_of_a_key(number).await;
            let _answered = self.ask_of_a_cron().await;
            tokio::time::sleep(Duration::from_millis(dice.random_range(REST_MS))).await;
        }
    }

    /// Writes an entry with the time in it, and looks at both: each key once, so that no earlier try is seen.
    async fn ask_of_a_key(&mut self, number: u64) -> Option<()> {
        let name = format!("{}-{number}", self.place);
        let target = format!("/v1/kv/times%2F{name}");
        let begun = wall_ms();
        self.send(&Request::new("PUT", target.as_str()).json("{}")).await?;
        let patch = json!([{"op": "now", "path": "at", "form": "unix_ms"}]);
        let update = json!({"op": "update", "key": format!("times/{name}"), "patch": patch});
        self.send(&Request::post("/v1/ops", update.to_string())).await?;
        let between = (begun - OFF_MAX, wall_ms() + OFF_MAX);
        let entry = self.ask(&Request::get(format!("{target}?raw"))).await?;
        self.all.judge(NOW, entry["at"].as_i64()?, between);
        let trail = self.ask(&Request::get(format!("/v1/audit?key=times%2F{name}&limit=1000"))).await?;
        for line in trail["lines"].as_array()? {
            self.all.judge(TRAIL, unix_ms(&line["time"])?, between);
        }
        Some(())
    }

    /// Takes the occurrence of a cron that is due, and lets the next one come.
    async fn ask_of_a_cron(&mut self) -> Option<()> {
        let queue = format!("/v1/tasks/times-{}", self.place);
        self.send(&Request::post(queue.as_str(), json!({"id": "beat", "cron": CRON}).to_string())).await?;
        let claim = json!({"limit": 1, "lease_ms": 5_000}).to_string();
        let claimed = self.ask(&Request::post(format!("{queue}/claim"), claim)).await?;
        let now = wall_ms();
        let task = claimed["tasks"].as_array()?.first()?;
        self.all.judge(DUE, unix_ms(&task["execute_at"])?, (now - WAITED_MAX, now + OFF_MAX));
        let token: u64 = task["token"].as_str()?.parse().ok()?;
        let complete = json!({"id": "beat", "token": token}).to_string();
        self.send(&Request::post(format!("{queue}/complete"), complete)).await.map(drop)
    }

    /// The JSON in the answer to a request that succeeded.
    async fn ask(&mut self, request: &Request) -> Option<Value> {
        serde_json::from_slice(&self.send(request).await?.body).ok()
    }

    /// Sends over the connection that is open; to the next node where that did not answer in time, or refused.
    async fn send(&mut self, request: &Request) -> Option<Answer> {
        let (open, (_, address)) = (self.connection.take(), self.nodes.at(self.next));
        let answered = self.nodes.exchange(address, open, request, ANSWER_MAX).await;
        let Some((answer, kept)) = answered.filter(|(answer, _)| answer.is_success()) else {
            self.next += 1;
            return None;
        };
        self.connection = kept;
        Some(answer)
    }
}

/// Reads this machine's wall clock, Unix milliseconds.
fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("a time")
}

/// Unix milliseconds of a time in RFC 3339.
fn unix_ms(shown: &Value) -> Option<i64> {
    i64::try_from(time::parse(shown.as_str()?)? / NANOS_PER_MS).ok()
}
