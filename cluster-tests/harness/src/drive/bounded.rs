//! Requests to a cluster whose bounds are lowered: a batch has the same result whatever is applied together with it.
//!
//! Owns what is asked in one round: small values, so that many entries of the log go into one group, and in each sequence something that one entry
//! leaves behind and the next one must not find. Names what a run has to show, so that no sequence stops short of that unnoticed.
//! The same for a node's own bounds stands in `large`.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::large::{
    self, CLAIMED, GOES_ON, LEASE_MS, QUOTA_EXCEEDED, TOO_LARGE, middle_key, quota_of, range_in_transaction,
    range_of_all, remove, text, update_where, with_bytes,
};
use crate::http::{Answer, Request};

/// Entries that ranges and quotas go over, and their bytes: each lowered bound of a transaction, and of a page, ends among them.
const MIDDLE: u64 = 60;
const MIDDLE_BYTES: std::ops::Range<usize> = 200..700;
/// Documents, and bytes of the text in each: each lowered bound of a batch ends among them.
const DOCUMENTS: u64 = 100;
const DOCUMENT_BYTES: std::ops::Range<usize> = 200..600;
/// Prefixes with a quota: of entries, and the last of a queue.
const PREFIXES: [&str; 4] = ["b%2F", "v%2F", "w%2F", QUEUE];
const QUEUE: &str = "t";
/// Ids of tasks, the bytes of their payloads, and how many are scheduled right before a claim.
const TASKS: u64 = 200;
const TASK_BYTES: std::ops::Range<usize> = 2_000..6_000;
const SCHEDULED: u64 = 10;
/// A quota that nothing exceeds, and one that everything does.
const MUCH: u64 = 1_000_000_000;
const HARDLY: u64 = 10;
/// Time to live of what ends within the round, milliseconds: the shortest of a session.
const SHORT_MS: u64 = 100;
/// For how long an entry is locked, milliseconds.
const LOCK_MS: u64 = 200;
/// Keys of entries that are locked, end, or are written twice by one request.
const KEYS: u64 = 1_000;

/// Results that each run has to show.
pub const TO_BE_MET: [&str; 8] =
    [TOO_LARGE, GOES_ON, QUOTA_EXCEEDED, CLAIMED, REFUSED_BY_RULES, ANSWERED_AGAIN, LOCKED, SESSION];

const REFUSED_BY_RULES: &str = "a document was refused by rules";
const ANSWERED_AGAIN: &str = "a request that came twice was answered again";
const LOCKED: &str = "an entry was locked";
const SESSION: &str = "a session began";

/// The result that an answer shows.
pub fn met(answer: &Answer) -> Option<&'static str> {
    let said = answer.text();
    match answer.is_success() {
        false if said.contains("invalid_document") => Some(REFUSED_BY_RULES),
        true if said.contains("\"replayed\":true") => Some(ANSWERED_AGAIN),
        true if said.contains("\"renew_in_ms\"") => Some(SESSION),
        true if said.contains("\"lock_ms\"") => Some(LOCKED),
        _ => large::met(answer),
    }
}

/// The first entries, documents and quotas.
pub fn to_begin_with(dice: &mut StdRng) -> Vec<Request> {
    let mut puts: Vec<Request> = (0..MIDDLE).map(|number| put_middle(number, dice)).collect();
    puts.extend((0..DOCUMENTS).map(|number| put_document(number, dice)));
    puts.extend(PREFIXES.map(|prefix| with_bytes(&quota_of(prefix), MUCH)));
    puts
}

/// The sequences of one round, in disorder but for the last. The requests of each are to be made in order.
pub fn round(dice: &mut StdRng) -> Vec<Vec<Request>> {
    let mut all = vec![
        range_after_a_removal(dice),
        a_write_and_a_change_of_many(dice),
        a_write_and_a_change_of_many(dice),
        the_same_change_twice(dice),
        tasks_and_a_claim(dice),
        rules_that_change(dice),
        a_quota_that_changes(dice),
        what_ends(dice),
        locks(dice),
        a_request_that_comes_twice(dice),
        (0..4).map(|_| put_middle(dice.random_range(0..MIDDLE), dice)).collect(),
    ];
    all.shuffle(dice);
    // Pages are counted a while later: nothing stands between them and the removals.
    all.push(counted_anew(dice));
    all
}

fn put_middle(number: u64, dice: &mut StdRng) -> Request {
    Request::put(&middle_key(number), text(dice.random_range(MIDDLE_BYTES)))
}

fn put_document(number: u64, dice: &mut StdRng) -> Request {
    let text = text(dice.random_range(DOCUMENT_BYTES));
    Request::put(&format!("w%2F{number:05}"), format!("{{\"n\":0,\"text\":{text}}}"))
}

/// A quota whose prefix is counted again, page by page, behind removals of what is in those pages.
fn counted_anew(dice: &mut StdRng) -> Vec<Request> {
    let target = quota_of("b%2F");
    let mut all = vec![Request::new("DELETE", target.clone())];
    all.extend((0..3).map(|_| remove(&middle_key(dice.random_range(0..MIDDLE)))));
    all.push(with_bytes(&target, MUCH));
    all
}

/// Ranges beyond the bound of a transaction, behind a removal in the pages of them that are read.
fn range_after_a_removal(dice: &mut StdRng) -> Vec<Request> {
    vec![remove(&middle_key(dice.random_range(0..MIDDLE))), range_of_all(), range_in_transaction()]
}

/// A change of many entries that begins with the entry whose quotas were looked for last.
fn a_write_and_a_change_of_many(dice: &mut StdRng) -> Vec<Request> {
    vec![put_document(0, dice), update_where(dice)]
}

/// A change of many entries that writes the rows that the one before has written, and ends at the bound of a batch as that does.
fn the_same_change_twice(dice: &mut StdRng) -> Vec<Request> {
    vec![update_where(dice), update_where(dice)]
}

/// New tasks, and a claim of all that are due: more than a batch takes. Their leases end while others claim.
fn tasks_and_a_claim(dice: &mut StdRng) -> Vec<Request> {
    let first = dice.random_range(0..TASKS);
    let mut all: Vec<Request> = (0..SCHEDULED)
        .map(|number| {
            let (id, payload) = ((first + number) % TASKS, text(dice.random_range(TASK_BYTES)));
            Request::post(format!("/v1/tasks/{QUEUE}"), format!("{{\"id\":\"t{id}\",\"payload\":{payload}}}"))
        })
        .collect();
    let claim = format!("{{\"limit\":16,\"lease_ms\":{LEASE_MS}}}");
    all.push(Request::post(format!("/v1/tasks/{QUEUE}/claim"), claim));
    all
}

/// A document that rules let in, and one more after they changed, which they do not.
fn rules_that_change(dice: &mut StdRng) -> Vec<Request> {
    let rules = |rules: &str| Request::new("PUT", "/v1/collections/d").json(rules);
    let mut put = || Request::put("d%2F1", format!("{{\"n\":\"text {}\"}}", dice.random_range(0..KEYS)));
    vec![rules("{}"), put(), rules(r#"{"fields":{"n":{"type":"long"}}}"#), put()]
}

/// A write that a quota has room for, and one of the same entry after that has changed, for which there is none.
fn a_quota_that_changes(dice: &mut StdRng) -> Vec<Request> {
    let target = quota_of("v%2F");
    let (short, long) = (text(20), text(dice.random_range(40..400)));
    vec![
        with_bytes(&target, MUCH),
        Request::put("v%2Fa", short),
        with_bytes(&target, HARDLY),
        Request::put("v%2Fa", long),
        with_bytes(&target, MUCH),
    ]
}

/// A session and an entry that end by themselves, some requests later.
fn what_ends(dice: &mut StdRng) -> Vec<Request> {
    let key = dice.random_range(0..KEYS);
    vec![
        Request::post("/v1/sessions", format!("{{\"ttl_ms\":{SHORT_MS},\"owner\":\"bounded\"}}")),
        Request::new("PUT", format!("/v1/kv/e%2F{key}?ttl_ms={SHORT_MS}")).json("1"),
    ]
}

/// Entries that are locked, each by a key of its own that follows from the randomness of an entry of the log.
fn locks(dice: &mut StdRng) -> Vec<Request> {
    (0..2)
        .flat_map(|_| {
            let key = dice.random_range(0..KEYS);
            let lock = format!("{{\"op\":\"lock\",\"key\":\"k/{key}\",\"lock_ms\":{LOCK_MS}}}");
            [Request::put(&format!("k%2F{key}"), "1"), Request::post("/v1/ops", lock)]
        })
        .collect()
}

/// A request whose client heard no answer, and asks again.
fn a_request_that_comes_twice(dice: &mut StdRng) -> Vec<Request> {
    let (key, id): (u64, u64) = (dice.random_range(0..KEYS), dice.random());
    let put = Request::put(&format!("r%2F{key}"), id.to_string()).request_id(&format!("again-{id:016x}"));
    vec![put.clone(), put]
}
