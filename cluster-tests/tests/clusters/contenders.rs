//! Ten contenders for one lock, and ten for one leadership, while nodes are killed, stopped and started again at random.
//!
//! Owns what must hold whatever happens: no write of a holder is accepted after one of a later holder, holders follow one
//! another in the order of their places, and it goes on after each fault. `QUORATE_CONTEND_SECONDS` makes it longer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cluster_harness::seed::seeded;
use cluster_harness::{Cluster, eventually};
use quorate_client::api::{ErrorCode, Guard};
use quorate_client::{Client, Error, Leadership, LockGuard, Session, Value};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::json;

/// For each prize.
const CONTENDERS: u64 = 10;
/// Shorter than a majority is stopped, longer than an election takes.
const TTL: Duration = Duration::from_secs(2);
/// After a fault is over there is an election, the sessions of the lost run out, and then somebody writes.
const HEALED_WITHIN: Duration = Duration::from_secs(15);
const NAME: &str = "contended";

/// What is fought for.
#[derive(Debug, Clone, Copy, Default)]
enum Prize {
    #[default]
    Lock,
    Election,
}

/// A prize that was got.
enum Won {
    Lock(LockGuard),
    Election(Leadership),
}

impl Prize {
    /// The entry that its holder writes.
    const fn key(self) -> &'static str {
        match self {
            Self::Lock => "ledger/lock",
            Self::Election => "ledger/election",
        }
    }

    async fn win(self, session: &Session) -> Result<Won, Error> {
        match self {
            Self::Lock => session.lock(NAME).acquire().await.map(Won::Lock),
            Self::Election => session.elect(NAME).campaign().await.map(Won::Election),
        }
    }

    /// Who waits where by session, and who holds.
    async fn look(self, client: &Client) -> Result<Vec<(String, u64)>, Error> {
        let queue = match self {
            Self::Lock => client.lock(NAME).get().await?.queue,
            Self::Election => client.election(NAME).get().await?.candidates,
        };
        Ok(queue.into_iter().map(|waiter| (waiter.session, waiter.place)).collect())
    }
}

impl Won {
    fn guard(&self) -> Guard {
        match self {
            Self::Lock(guard) => guard.guard(),
            Self::Election(leadership) => leadership.guard(),
        }
    }

    async fn give_up(self) -> Result<(), Error> {
        match self {
            Self::Lock(guard) => guard.release().await,
            Self::Election(leadership) => leadership.resign().await,
        }
    }
}

/// What the contenders for a prize and its observer saw.
#[derive(Debug, Default)]
struct Record {
    prize: Prize,
    /// Revision and token of each write that was acknowledged.
    accepted: Mutex<Vec<(u64, u64)>>,
    /// Session and token of each prize.
    won: Mutex<Vec<(String, u64)>>,
    /// Session of each place seen in the queue.
    places: Mutex<BTreeMap<u64, String>>,
    writes: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
    over: AtomicBool,
}

impl Record {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Fights until it is over.
async fn contend(number: u64, client: Client, late: Client, record: Arc<Record>) {
    while !record.is_over() {
        let session = match client.session().ttl(TTL).owner(format!("contender {number}")).await {
            Ok(session) => session,
            Err(error) => {
                assert!(error.is_retryable() || matches!(error, Error::Session { .. }), "a session: {error:?}");
                continue;
            }
        };
        while !record.is_over() && session.loss().is_none() {
            match record.prize.win(&session).await {
                Ok(won) => hold(number, &client, &late, &session, won, &record).await,
                Err(Error::Session { .. }) => break,
                Err(error) => panic!("contender {number}: {error:?}"),
            }
        }
        record.lost.fetch_add(u64::from(!record.is_over()), Ordering::Relaxed);
    }
}

/// Writes while it holds, and tries again when it does not any more.
async fn hold(number: u64, client: &Client, late: &Client, session: &Session, won: Won, record: &Record) {
    let guard = won.guard();
    record.won.lock().unwrap().push((session.id().to_owned(), guard.token));
    for count in 0..3 {
        write(number, count, client, &guard, record).await;
    }
    let released = won.give_up().await;
    let late_write = write(number, 99, late, &guard, record).await;
    assert!(released.is_err() || !late_write, "token {} was accepted after it was given up", guard.token);
}

/// A write under the guard. Tells whether it was accepted.
async fn write(number: u64, count: u64, client: &Client, guard: &Guard, record: &Record) -> bool {
    let value = Value::json(&json!({"token": guard.token, "count": count, "by": number})).expect("has JSON");
    match client.put(record.prize.key(), value).guarded_by(guard.clone()).timeout(Duration::from_secs(3)).await {
        Ok(answer) => {
            record.accepted.lock().unwrap().push((answer.revision, guard.token));
            record.writes.fetch_add(1, Ordering::Relaxed);
            true
        }
        Err(Error::Unavailable(_) | Error::Unknown(_)) => false,
        Err(error) => {
            assert_eq!(error.code(), Some(ErrorCode::GuardFailed), "contender {number}: {error:?}");
            record.refused.fetch_add(1, Ordering::Relaxed);
            false
        }
    }
}

/// Notes who has which place.
async fn observe(client: Client, record: Arc<Record>) {
    while !record.is_over() {
        if let Ok(queue) = record.prize.look(&client).await {
            record.places.lock().unwrap().extend(queue.into_iter().map(|(session, place)| (place, session)));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// One fault, from its begin to its end. Returns what it was.
async fn hurt(cluster: &mut Cluster, random: &mut StdRng) -> String {
    let ids = cluster.ids();
    let leader = cluster.leader().await;
    let any = ids[random.random_range(0..ids.len())];
    let pause = Duration::from_millis(random.random_range(300..1_500));
    let (kind, victims) = match random.random_range(0..5) {
        0 => ("killed", vec![leader]),
        1 => ("killed", vec![any]),
        2 => ("stopped", vec![leader]),
        3 => ("stopped", vec![any]),
        _ => ("stopped", ids.iter().copied().filter(|id| *id != any).collect()),
    };
    // Stopped for longer than sessions live.
    let pause = if kind == "stopped" { TTL + pause } else { pause };
    for id in &victims {
        if kind == "killed" { cluster.kill(*id).await } else { cluster.pause(*id) }
    }
    tokio::time::sleep(pause).await;
    for id in &victims {
        if kind == "killed" { cluster.start_node(*id) } else { cluster.resume(*id) }
    }
    cluster.wait_all_ready().await;
    format!("nodes {victims:?} {kind} for {pause:?}")
}

/// Some know all nodes, some two, some one only: those are lost with it.
fn client_of(cluster: &Cluster, number: u64) -> Client {
    match number % 4 {
        0 => Client::builder()
            .endpoints(cluster.client_address(1 + number / 4 % 3).to_string())
            .discover_members(false)
            .build()
            .expect("an endpoint"),
        1 => cluster.client_without(Some(1 + number / 4 % 3)),
        _ => cluster.client_without(None),
    }
}

async fn fight(seconds: u64) {
    let mut random = seeded();
    let mut cluster = Cluster::start().await;
    let records = [Prize::Lock, Prize::Election].map(|prize| Arc::new(Record { prize, ..Record::default() }));
    let mut tasks = tokio::task::JoinSet::new();
    for record in &records {
        for number in 0..CONTENDERS {
            let (client, late) = (client_of(&cluster, number), cluster.client_without(None));
            tasks.spawn(contend(number, client, late, Arc::clone(record)));
        }
        tasks.spawn(observe(cluster.client_without(None), Arc::clone(record)));
    }

    let end = Instant::now() + Duration::from_secs(seconds);
    let mut slowest = Duration::ZERO;
    while Instant::now() < end {
        let what = hurt(&mut cluster, &mut random).await;
        let written = || records.each_ref().map(|record| record.writes.load(Ordering::Relaxed));
        let (healed, before) = (Instant::now(), written());
        eventually(&format!("holders of both write after {what}"), HEALED_WITHIN, async || {
            // A contender that gave up has the reason.
            let now = written();
            let write_on = now.iter().zip(before).all(|(now, before)| *now > before + CONTENDERS);
            if write_on { Ok(()) } else { Err(format!("{before:?} writes before, {now:?} now")) }
        })
        .await;
        slowest = slowest.max(healed.elapsed());
        println!("{what}; {before:?} writes before, {:?} after {:?}", written(), healed.elapsed());
    }
    records.iter().for_each(|record| record.over.store(true, Ordering::Relaxed));
    while let Some(done) = tasks.join_next().await {
        done.expect("a contender or an observer gave up");
    }
    for record in &records {
        let (writes, refused) = (record.writes.load(Ordering::Relaxed), record.refused.load(Ordering::Relaxed));
        let (won, lost) = (record.won.lock().unwrap().len(), record.lost.load(Ordering::Relaxed));
        println!(
            "{:?}: won {won} times, {lost} sessions lost, {writes} writes accepted, {refused} refused; slowest after a fault {slowest:?}",
            record.prize
        );
        assert_order_of_writes(&cluster, record).await;
        assert_order_of_places(record);
    }
    cluster.assert_agreement().await;
}

/// Revisions and tokens rise together: in what was acknowledged, and in all versions that there are.
async fn assert_order_of_writes(cluster: &Cluster, record: &Record) {
    let mut accepted = record.accepted.lock().unwrap().clone();
    accepted.sort_unstable();
    assert!(accepted.is_sorted_by_key(|(_, token)| *token), "an earlier holder wrote after a later one: {accepted:?}");
    let client = cluster.client_without(None);
    let key = record.prize.key();
    let mut entry = client.get(key).await.expect("an answer").expect("somebody wrote");
    let mut versions = BTreeMap::new();
    loop {
        let value: serde_json::Value = entry.json().expect("JSON");
        versions.insert(entry.mod_revision, value["token"].as_u64().expect("a number"));
        if entry.version == 1 {
            break;
        }
        let before = client.get(key).revision(entry.mod_revision - 1).await;
        entry = before.expect("an answer").expect("there is an earlier version");
    }
    assert!(versions.values().is_sorted(), "an earlier holder wrote after a later one: {versions:?}");
    for (revision, token) in accepted {
        assert_eq!(versions.get(&revision), Some(&token), "an acknowledged write is there");
    }
}

/// Of those that got what they waited for, who had the better place had it first.
fn assert_order_of_places(record: &Record) {
    let (won, places) = (record.won.lock().unwrap(), record.places.lock().unwrap());
    let mut tokens: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (session, token) in won.iter() {
        tokens.entry(session).or_default().push(*token);
    }
    let mut granted: BTreeMap<u64, (u64, &str)> = BTreeMap::new();
    for (place, session) in places.iter() {
        let after = tokens.get(session.as_str()).and_then(|all| all.iter().filter(|token| *token > place).min());
        granted.extend(after.map(|token| (*place, (*token, session.as_str()))));
    }
    println!("{} places seen, {} of them granted", places.len(), granted.len());
    assert!(granted.len() > 10, "hardly anybody was seen waiting");
    assert!(
        granted.values().is_sorted_by(|a, b| a.0 < b.0),
        "granted out of order; place: (token, session): {granted:?}"
    );
}

fn seconds(default: u64) -> u64 {
    match std::env::var("QUORATE_CONTEND_SECONDS") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("QUORATE_CONTEND_SECONDS is `{text}`; give a number")),
        Err(_) => default,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contenders_for_a_lock_or_a_leadership_never_hold_it_together_whatever_happens_to_the_nodes() {
    fight(seconds(9)).await;
}
