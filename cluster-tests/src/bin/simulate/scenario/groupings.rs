//! The same log in different groupings: what a node applies together depends on when it heard of it, and nothing may depend on that.
//!
//! Owns what is asked: values up to the largest, quotas that are set, counted and dropped, ranges beyond what a transaction may change, changes
//! of more entries than one batch takes. And who falls behind meanwhile: nodes that stand still, nodes that die and apply again what
//! they had not flushed. The comparison of states at each index stands in `facts`.

use std::time::Duration;

use cluster_tests::{Answer, Connection, Request};
use rand::RngExt;
use rand::rngs::StdRng;
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

/// Entries of middle size that a range goes over, and their bytes: more than a transaction may change, so that it stops among them.
const MIDDLE: u64 = 700;
const MIDDLE_BYTES: std::ops::Range<usize> = 20_000..40_000;
/// The largest entries, and the bytes of most of them.
const LARGE: u64 = 14;
const LARGE_BYTES: usize = 1_200_000;
/// Bytes of a value of the greatest length, quotes and all.
const LARGEST_BYTES: usize = 1_536 * 1_024;
/// Documents, and bytes of the text in each: more than one batch changes.
const DOCUMENTS: u64 = 900;
const DOCUMENT_BYTES: std::ops::Range<usize> = 2_000..5_000;
/// Reads of large entries in a transaction: about as many as it may read.
const READS: std::ops::RangeInclusive<u64> = 11..=14;
/// Prefixes with a quota now and then.
const PREFIXES: [&str; 4] = ["b%2F", "c%2F", "w%2F", "q%2F"];

impl Stage {
    pub(super) fn groupings(&mut self) -> Found {
        self.begin()?;
        self.fill_for_groupings()?;
        for _ in 0..ROUNDS {
            self.round_of_groupings()?;
        }
        Ok(())
    }

    /// Middle entries below `b/`, large ones below `b/` and `c/`, documents below `w/`.
    fn fill_for_groupings(&mut self) -> Found {
        let mut puts: Vec<Request> = (0..MIDDLE).map(|number| put_middle(number, &mut self.dice)).collect();
        puts.extend((0..LARGE).map(|number| put_large(number, LARGE_BYTES)));
        puts.extend((1..4).map(|number| Request::put(&format!("b%2F{number}00-large"), text(LARGE_BYTES))));
        puts.extend((0..DOCUMENTS).map(|number| put_document(number, &mut self.dice)));
        puts.extend(PREFIXES.map(|prefix| with_bytes(&quota_of(prefix), 1_000_000_000)));
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
        let burst: Vec<Request> = (0..count).flat_map(|_| draw(&mut self.dice)).collect();
        let at_once = self.dice.random_ratio(1, 3);
        let lanes = if at_once { in_lanes(burst) } else { vec![burst] };
        for answer in self.ask_in_lanes(leader, lanes)? {
            self.note_answer(&answer);
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

    fn note_answer(&mut self, answer: &Answer) {
        let said = answer.text();
        if said.contains("too_large") || said.contains("too large") {
            self.meet("a range or a transaction was too large");
        } else if said.contains("\"matched\"") && said.contains("\"cursor\"") {
            self.meet("a change of many entries went on later");
        } else if said.contains("\"matched\"") {
            self.meet("a change of many entries was whole");
        } else if said.contains("\"bytes\"") && answer.is_success() {
            self.meet("a quota was set");
        } else if said.contains("quota_exceeded") {
            self.meet("a quota was exceeded");
        } else if !answer.is_success() {
            self.meet("something else was refused");
        }
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

/// What is asked next; more than one where it counts that nothing comes between.
fn draw(dice: &mut StdRng) -> Vec<Request> {
    let middle = |dice: &mut StdRng| dice.random_range(0..MIDDLE);
    match dice.random_range(0..14) {
        0 | 1 => vec![remove(&middle_key(middle(dice)))],
        2 => vec![remove(&middle_key(middle(dice))), range_of_all()],
        3 => vec![put_middle(middle(dice), dice)],
        4 => vec![Request::put(&middle_key(middle(dice)), text(20)), range_of_all()],
        5 => vec![put_large(dice.random_range(0..LARGE), LARGE_BYTES)],
        6 => {
            vec![put_large(dice.random_range(0..LARGE), LARGEST_BYTES), remove(&large_key(dice.random_range(0..LARGE)))]
        }
        7 => vec![range_of_all()],
        8 => vec![range_in_transaction()],
        9 | 10 => {
            let target = quota_of(PREFIXES.choose(dice).expect("not empty"));
            let again = with_bytes(&target, *[40_000_000, 1_000_000_000].choose(dice).expect("not empty"));
            // Counted anew, while something goes.
            vec![
                Request::new("DELETE", target),
                remove(&middle_key(middle(dice))),
                remove(&middle_key(middle(dice))),
                again,
            ]
        }
        11 => vec![put_document(dice.random_range(0..3), dice), update_where(dice)],
        12 => vec![put_document(dice.random_range(0..DOCUMENTS), dice), update_where(dice)],
        _ => vec![Request::put("q%2Fa", text(dice.random_range(1..2_000))), reads_in_transaction(dice)],
    }
}

/// So many bytes of JSON.
fn text(bytes: usize) -> String {
    format!("\"{}\"", "t".repeat(bytes.saturating_sub(2)))
}

fn quota_of(prefix: &str) -> String {
    format!("/v1/quotas/prefixes/{prefix}")
}

fn middle_key(number: u64) -> String {
    format!("b%2F{number:04}")
}

fn large_key(number: u64) -> String {
    format!("c%2F{number:02}")
}

fn put_middle(number: u64, dice: &mut StdRng) -> Request {
    Request::put(&middle_key(number), text(dice.random_range(MIDDLE_BYTES)))
}

fn put_large(number: u64, bytes: usize) -> Request {
    Request::put(&large_key(number), text(bytes))
}

fn put_document(number: u64, dice: &mut StdRng) -> Request {
    let text = text(dice.random_range(DOCUMENT_BYTES));
    Request::put(&format!("w%2F{number:05}"), format!("{{\"n\":0,\"text\":{text}}}"))
}

fn remove(key: &str) -> Request {
    Request::new("DELETE", format!("/v1/kv/{key}"))
}

fn with_bytes(target: &str, bytes: u64) -> Request {
    Request::new("PUT", target).json(format!("{{\"bytes\":{bytes}}}"))
}

fn update_where(dice: &mut StdRng) -> Request {
    let number: u32 = dice.random();
    let body = format!("{{\"prefix\":\"w/\",\"where\":[],\"patch\":{{\"n\":{number}}},\"limit\":1000}}");
    Request::post("/v1/update_where", body)
}

/// All entries below `b/`, in the base64 of etcd's gateway.
const ALL: &str = r#"{"key":"Yi8=","range_end":"YjA="}"#;

/// A removal of a range as a client of etcd sends it: of more than a transaction may change, so that it is refused.
fn range_of_all() -> Request {
    Request::post("/v3/kv/deleterange", ALL)
}

/// The same behind a put of `q/t`, which must not be made either.
fn range_in_transaction() -> Request {
    let put = r#"{"requestPut":{"key":"cS90","value":"MQ=="}}"#;
    Request::post("/v3/kv/txn", format!("{{\"success\":[{put},{{\"requestDeleteRange\":{ALL}}}]}}"))
}

/// A transaction that reads about as much as it may, under a request id, so that its refusal is kept.
fn reads_in_transaction(dice: &mut StdRng) -> Request {
    let reads: Vec<String> = (0..dice.random_range(READS))
        .map(|number| format!("{{\"op\":\"get\",\"key\":\"c/{:02}\"}}", number % LARGE))
        .collect();
    let id: u64 = dice.random();
    let body = format!(
        "{{\"then\":[{{\"op\":\"upsert\",\"key\":\"q/a\",\"value\":{}}},{}],\"request_id\":\"reads-{id}\"}}",
        dice.random_range(0..1_000_000),
        reads.join(",")
    );
    Request::post("/v1/txn", body)
}
