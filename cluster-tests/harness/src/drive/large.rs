//! Clients with large values, quotas and ranges: a batch has the same result whatever is applied together with it.
//!
//! Owns their requests (values up to the largest, quotas that are set, counted and dropped, ranges and changes beyond every bound) and the list
//! of results that a run has to show. No history records them, and no other client uses their keys. The owner of the cluster checks that nodes
//! agree and contained no fault.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;

use super::client::Nodes;
use crate::http::{Answer, Connection, Request};

/// How long an answer may take before a client goes on. It is no fault: nodes may be gone.
const ANSWER_MAX: Duration = Duration::from_secs(4);
/// How often what there is to begin with is tried.
const TRIES_MAX: usize = 4;
/// How much of a refusal is kept: its type.
const REFUSAL_CHARS: usize = 40;
/// Connections over which a client writes what there is to begin with.
const FILL_LANES: usize = 6;
/// How long a client rests between two bursts, milliseconds: others need the machine, too.
const REST_MS: std::ops::Range<u64> = 20..120;
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
/// A quota of bytes that middle and large entries exceed, each kind by itself.
const LITTLE: u64 = 15_000_000;
/// Tasks of one queue, and the bytes of their payloads: a claim stops at some of those that are due.
const TASKS: u64 = 12;
const TASK_BYTES: usize = 700_000;
/// The shortest lease that is accepted, milliseconds.
pub(super) const LEASE_MS: u64 = 1_000;
/// Tasks that are scheduled right before a claim.
const SCHEDULED: u64 = 6;
/// Prefixes with a quota now and then.
const PREFIXES: [&str; 4] = ["b%2F", "c%2F", "w%2F", "q%2F"];

/// Results that each run has to show.
pub const TO_BE_MET: [&str; 3] = [TOO_LARGE, GOES_ON, QUOTA_SET];

pub(super) const TOO_LARGE: &str = "a range or a transaction was too large";
pub(super) const GOES_ON: &str = "a change of many entries went on later";
const WHOLE: &str = "a change of many entries was whole";
const QUOTA_SET: &str = "a quota was set";
pub(super) const QUOTA_EXCEEDED: &str = "a quota was exceeded";
pub(super) const CLAIMED: &str = "tasks of many bytes were claimed";

/// All that write much in one run, and what they met.
#[derive(Debug, Clone, Default)]
pub struct LargeClients {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    met: BTreeMap<&'static str, u64>,
    /// Refusals by status and first characters.
    refused: BTreeMap<String, u64>,
    wrong: Vec<String>,
    is_over: bool,
}

impl LargeClients {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts so many of them. Together they write the first entries.
    pub fn start(&self, count: usize, nodes: &Nodes, dice: &mut StdRng) -> JoinSet<()> {
        let mut first = vec![Vec::new(); count];
        if count > 0 {
            to_begin_with(dice).into_iter().enumerate().for_each(|(number, put)| first[number % count].push(put));
        }
        let mut all = JoinSet::new();
        for (place, first) in first.into_iter().enumerate() {
            let client = LargeClient { all: self.clone(), nodes: nodes.clone(), next: place, connection: None };
            all.spawn(client.work(first, StdRng::seed_from_u64(dice.random())));
        }
        all
    }

    /// Lets each of them end what it is at.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    /// Wrong answers and missing results, for people.
    pub fn wrong(&self) -> Vec<String> {
        let shared = self.lock();
        let missing = TO_BE_MET.iter().filter(|name| !shared.met.contains_key(*name));
        let missing =
            missing.map(|name| format!("not met: {name}; met: {:?}, refused: {:?}", shared.met, shared.refused));
        shared.wrong.iter().cloned().chain(missing).collect()
    }
}

struct LargeClient {
    all: LargeClients,
    nodes: Nodes,
    /// The place of the node that is asked next.
    next: usize,
    connection: Option<Connection>,
}

impl LargeClient {
    async fn work(mut self, first: Vec<Request>, mut dice: StdRng) {
        self.fill(first).await;
        while !self.all.lock().is_over {
            for request in draw(&mut dice) {
                self.perform(&request).await;
            }
            tokio::time::sleep(Duration::from_millis(dice.random_range(REST_MS))).await;
        }
    }

    /// Writes what there is to begin with, over some connections at once: until it is there no range is too large.
    async fn fill(&mut self, first: Vec<Request>) {
        let mut lanes = vec![Vec::new(); FILL_LANES];
        first.into_iter().enumerate().for_each(|(number, put)| lanes[number % FILL_LANES].push(put));
        let lanes = lanes.into_iter().map(|lane| {
            let (all, nodes, next) = (self.all.clone(), self.nodes.clone(), self.next);
            let mut client = LargeClient { all, nodes, next, connection: None };
            async move {
                for put in lane {
                    // Nodes may be gone, and a quota may be in the way.
                    let mut tries = 0;
                    while tries < TRIES_MAX && !client.perform(&put).await {
                        tries += 1;
                    }
                }
            }
        });
        futures::future::join_all(lanes).await;
    }

    /// Sends a request, once. Whether it succeeded.
    async fn perform(&mut self, request: &Request) -> bool {
        let Some(answer) = self.send(request).await else { return false };
        let mut shared = self.all.lock();
        if answer.status == 500 {
            let (method, target) = (request.method, &request.target);
            shared.wrong.push(format!("{method} {target} is answered {} {}", answer.status, answer.text()));
        }
        if !answer.is_success() {
            let begin: String = answer.text().chars().take(REFUSAL_CHARS).collect();
            *shared.refused.entry(format!("{} {begin}", answer.status)).or_default() += 1;
        }
        if let Some(met) = met(&answer) {
            *shared.met.entry(met).or_default() += 1;
        }
        answer.is_success()
    }

    /// Sends over the connection that is open; to the next node where that did not answer in time.
    async fn send(&mut self, request: &Request) -> Option<Answer> {
        let (open, (_, address)) = (self.connection.take(), self.nodes.at(self.next));
        let Some((answer, kept)) = self.nodes.exchange(address, open, request, ANSWER_MAX).await else {
            self.next += 1;
            return None;
        };
        self.connection = kept;
        Some(answer)
    }
}

/// The result that an answer shows.
pub fn met(answer: &Answer) -> Option<&'static str> {
    let said = answer.text();
    let is_of_many = said.contains("\"matched\"");
    match () {
        () if said.contains("too_large") || said.contains("too large") => Some(TOO_LARGE),
        () if is_of_many && said.contains("\"cursor\"") => Some(GOES_ON),
        () if is_of_many => Some(WHOLE),
        () if said.contains("\"bytes\"") && answer.is_success() => Some(QUOTA_SET),
        () if said.contains("quota_exceeded") => Some(QUOTA_EXCEEDED),
        () if said.starts_with("{\"tasks\":[{") => Some(CLAIMED),
        () => (!answer.is_success()).then_some("something else was refused"),
    }
}

/// The first entries: middle entries below `b/`, large ones below `b/` and `c/`, documents below `w/`, quotas.
pub fn to_begin_with(dice: &mut StdRng) -> Vec<Request> {
    let mut puts: Vec<Request> = (0..MIDDLE).map(|number| put_middle(number, dice)).collect();
    puts.extend((0..LARGE).map(|number| put_large(number, LARGE_BYTES)));
    puts.extend((1..4).map(|number| Request::put(&format!("b%2F{number}00-large"), text(LARGE_BYTES))));
    puts.extend((0..DOCUMENTS).map(|number| put_document(number, dice)));
    puts.extend(PREFIXES.map(|prefix| with_bytes(&quota_of(prefix), 1_000_000_000)));
    puts
}

/// The next requests; more than one where nothing may come between.
pub fn draw(dice: &mut StdRng) -> Vec<Request> {
    let middle = |dice: &mut StdRng| dice.random_range(0..MIDDLE);
    match dice.random_range(0..15) {
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
            let again = with_bytes(&target, *[LITTLE, 1_000_000_000].choose(dice).expect("not empty"));
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
        13 => tasks_and_a_claim(dice),
        _ => {
            let reads = reads_in_transaction(dice);
            vec![Request::put("q%2Fa", text(dice.random_range(1..2_000))), reads.clone(), reads]
        }
    }
}

/// JSON of this length, bytes.
pub(super) fn text(bytes: usize) -> String {
    format!("\"{}\"", "t".repeat(bytes.saturating_sub(2)))
}

pub(super) fn quota_of(prefix: &str) -> String {
    format!("/v1/quotas/prefixes/{prefix}")
}

pub(super) fn middle_key(number: u64) -> String {
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

pub(super) fn remove(key: &str) -> Request {
    Request::new("DELETE", format!("/v1/kv/{key}"))
}

pub(super) fn with_bytes(target: &str, bytes: u64) -> Request {
    Request::new("PUT", target).json(format!("{{\"bytes\":{bytes}}}"))
}

pub(super) fn update_where(dice: &mut StdRng) -> Request {
    let number: u32 = dice.random();
    let body = format!("{{\"prefix\":\"w/\",\"where\":[],\"patch\":{{\"n\":{number}}},\"limit\":1000}}");
    Request::post("/v1/update_where", body)
}

/// All entries below `b/`, in the base64 of etcd's gateway.
const ALL: &str = r#"{"key":"Yi8=","range_end":"YjA="}"#;

/// A removal of a range as a client of etcd sends it: of more than a transaction may change, so that it is refused.
pub(super) fn range_of_all() -> Request {
    Request::post("/v3/kv/deleterange", ALL)
}

/// The same behind a put of `q/t`, which must not be made either.
pub(super) fn range_in_transaction() -> Request {
    let put = r#"{"requestPut":{"key":"cS90","value":"MQ=="}}"#;
    Request::post("/v3/kv/txn", format!("{{\"success\":[{put},{{\"requestDeleteRange\":{ALL}}}]}}"))
}

/// New tasks, and a claim of all that are due.
fn tasks_and_a_claim(dice: &mut StdRng) -> Vec<Request> {
    let first = dice.random_range(0..TASKS);
    let payload = text(TASK_BYTES);
    let schedule = |number: u64| {
        let id = (first + number) % TASKS;
        Request::post("/v1/tasks/large", format!("{{\"id\":\"t{id}\",\"payload\":{payload}}}"))
    };
    let claim = Request::post("/v1/tasks/large/claim", format!("{{\"limit\":16,\"lease_ms\":{LEASE_MS}}}"));
    (0..SCHEDULED).map(schedule).chain([claim]).collect()
}

/// A transaction that reads about as much as it may, under a request id, so that its refusal is kept and answers a retry.
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
