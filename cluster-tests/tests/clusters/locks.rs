//! Locks: first come first served over the loss of nodes, and what becomes of a place whose session hangs up.

use std::time::Duration;

use cluster_harness::{Caller, Cluster, Connection, PATIENCE, Request, eventually};
use quorate_client::api::{AcquireAnswer, LockAnswer, LockState, ReleaseAnswer};
use serde_json::{Value, json};
use tokio::sync::mpsc;

const WAITERS: usize = 6;
/// For how long a place is kept for who hung up, and some time for what follows.
const HUNG_UP: Duration = Duration::from_secs(12);

async fn show(caller: &mut Caller, lock: &str) -> LockAnswer {
    caller.insist(&Request::get(format!("/v1/locks/{lock}"))).await.expect_success().json()
}

/// Acquires without waiting.
async fn take(caller: &mut Caller, lock: &str, session: &str, more: Value) -> AcquireAnswer {
    let mut body = json!({"session": session});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    caller.post(&format!("/v1/locks/{lock}/acquire"), &body).await.expect_success().json()
}

async fn release(caller: &mut Caller, lock: &str, token: u64) -> ReleaseAnswer {
    let body = json!({"token": token, "request_id": format!("release-{lock}-{token}")});
    caller.post(&format!("/v1/locks/{lock}/release"), &body).await.expect_success().json()
}

/// Asks until the lock is held, with the same session at whichever node answers. Gives the token.
async fn wait_for(caller: &mut Caller, lock: &str, session: &str) -> u64 {
    loop {
        let body = json!({"session": session, "wait_ms": 60_000, "poll_ms": 5_000});
        let answer = caller.post(&format!("/v1/locks/{lock}/acquire"), &body).await.expect_success();
        if let Some(token) = answer.json::<AcquireAnswer>().token {
            return token;
        }
    }
}

/// Fault: each node is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queue_keeps_its_order_over_the_loss_of_any_node() {
    let mut cluster = Cluster::start().await;
    let mut first = cluster.caller(1);
    let holder = first.session(120_000, "holder").await;
    let token = take(&mut first, "q", &holder, json!({})).await.token.expect("held");
    let (got, mut order) = mpsc::unbounded_channel();
    let mut waiters = tokio::task::JoinSet::new();
    for n in 0..WAITERS {
        let mut caller = cluster.caller(1 + n as u64 % 3);
        let session = caller.session(120_000, &format!("w{n}")).await;
        let got = got.clone();
        waiters.spawn(async move {
            let token = wait_for(&mut caller, "q", &session).await;
            got.send((n, token)).expect("the test listens");
            release(&mut caller, "q", token).await;
        });
        eventually("it waits", PATIENCE, async || {
            let shown = show(&mut first, "q").await;
            if shown.waiter_count == n as u64 + 1 { Ok(()) } else { Err(format!("{} wait", shown.waiter_count)) }
        })
        .await;
    }
    let before = show(&mut first, "q").await;
    // One after the other, so the leader is among them and each waiter loses the node that it asked.
    for id in cluster.ids() {
        cluster.kill(id).await;
        cluster.leader().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        cluster.bring_up(id).await;
    }
    let after = show(&mut first, "q").await;
    let places = |shown: &LockAnswer| {
        shown.queue.iter().map(|waiter| (waiter.place, waiter.session.clone())).collect::<Vec<_>>()
    };
    assert_eq!(places(&after), places(&before), "each has kept its place");
    assert_eq!((after.holder_count, after.holders[0].token), (1, token));
    assert!(order.try_recv().is_err(), "somebody got a lock that is held");

    release(&mut first, "q", token).await;
    let (mut last, leader) = (token, cluster.leader().await);
    for n in 0..WAITERS {
        if n == WAITERS / 2 {
            cluster.kill(leader).await;
        }
        let next = tokio::time::timeout(PATIENCE, order.recv()).await.expect("the next one has it").expect("it lives");
        assert_eq!(next.0, n, "out of turn");
        assert!(next.1 > last, "token {} after {last}", next.1);
        last = next.1;
    }
    while let Some(done) = waiters.join_next().await {
        done.expect("a waiter gave up");
    }
    cluster.bring_up(leader).await;
    let idle = show(&mut first, "q").await;
    assert_eq!((idle.holder_count, idle.waiter_count), (0, 0));
    cluster.assert_agreement().await;
}

/// Posts on a connection of its own, and reads no answer.
async fn begin(cluster: &Cluster, node: u64, route: &str, body: &Value) -> Connection {
    let mut wire = Connection::open(cluster.client_address(node)).await.expect("it takes connections");
    wire.send(&Request::post(route, body.to_string()).to_bytes()).await.expect("it is sent");
    wire
}

/// The sessions that hold a lock or lead an election, and those that wait, in order.
async fn parties(caller: &mut Caller, what: &str) -> (Vec<String>, Vec<String>) {
    let shown: Value = caller.insist(&Request::get(what)).await.expect_success().json();
    let sessions = |list: &Value| {
        let one = |party: &Value| party["session"].as_str().expect("a session").to_owned();
        list.as_array().map(|list| list.iter().map(one).collect::<Vec<_>>())
    };
    let led = shown["leader"]["session"].as_str().map(str::to_owned).into_iter().collect();
    (
        sessions(&shown["holders"]).unwrap_or(led),
        sessions(&shown["queue"]).or(sessions(&shown["candidates"])).expect("a queue"),
    )
}

async fn until_parties(caller: &mut Caller, what: &str, holders: &[&str], waiters: &[&str]) {
    eventually(&format!("{what} is held by {holders:?}, {waiters:?} wait"), PATIENCE, async || {
        let found = parties(caller, what).await;
        if found.0 == holders && found.1 == waiters { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

/// Side by side on one cluster, under names of their own: each waits until the place of somebody who hung up is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_hangs_up_gets_nothing_and_holds_up_nobody_unless_it_asks_again() {
    let mut cluster = Cluster::start().await;
    let undecided = hang_up_before_it_is_decided(&mut cluster).await;
    tokio::join!(
        undecided.gets_nothing(),
        who_hangs_up_while_waiting_holds_up_nobody(&cluster),
        who_asks_again_elsewhere_keeps_the_place(&cluster),
        of_two_that_wait_for_a_session_one_may_hang_up(&cluster),
    );
    cluster.assert_agreement().await;
}

async fn who_hangs_up_while_waiting_holds_up_nobody(cluster: &Cluster) {
    let mut caller = cluster.caller(2);
    let (slots, shared) = (json!({"slots": 2}), json!({"mode": "shared"}));
    let none = json!({});
    // Where, how it is asked for, who holds it, who hangs up, who comes behind.
    let rows = [
        ("/v1/locks/plain", "acquire", vec![&none], &none, &none),
        ("/v1/locks/slots", "acquire", vec![&slots, &slots], &slots, &slots),
        ("/v1/locks/alone", "acquire", vec![&shared], &none, &shared),
        ("/v1/locks/shared", "acquire", vec![&none], &shared, &none),
        ("/v1/elections/led", "campaign", vec![&none], &none, &none),
    ];
    let mut expected = Vec::new();
    for (number, (what, verb, holders, gone, behind)) in rows.into_iter().enumerate() {
        let route = format!("{what}/{verb}");
        let with = |more: &Value, session: &str, fields: Value| {
            let mut body = more.clone();
            let body_fields = body.as_object_mut().expect("an object");
            body_fields.insert("session".into(), json!(session));
            body_fields.extend(fields.as_object().expect("an object").clone());
            body
        };
        let mut held = Vec::new();
        for (at, more) in holders.into_iter().enumerate() {
            let session = caller.session(120_000, &format!("holder{number}-{at}")).await;
            caller.post(&route, &with(more, &session, json!({}))).await.expect_success();
            held.push(session);
        }
        let lost = caller.session(120_000, &format!("gone{number}")).await;
        let next = caller.session(120_000, &format!("next{number}")).await;
        let wire = begin(cluster, 1, &route, &with(gone, &lost, json!({"wait_ms": 60_000}))).await;
        let before: Vec<_> = held.iter().map(String::as_str).collect();
        until_parties(&mut caller, what, &before, &[&lost]).await;
        caller.post(&route, &with(behind, &next, json!({"wait_ms": 60_000, "poll_ms": 0}))).await.expect_success();
        drop(wire);
        // At once: it is given to the one that is gone, and then taken from it.
        let give_up = if verb == "campaign" { "resign" } else { "release" };
        caller.post(&format!("{what}/{give_up}"), &json!({"session": held[0]})).await.expect_success();
        held.remove(0);
        held.push(next);
        expected.push((what, held));
    }
    for (what, held) in expected {
        let held: Vec<_> = held.iter().map(String::as_str).collect();
        until_parties(&mut caller, what, &held, &[]).await;
    }
}

async fn who_asks_again_elsewhere_keeps_the_place(cluster: &Cluster) {
    let mut caller = cluster.caller(2);
    let holder = caller.session(120_000, "holder").await;
    let (first, second) = (caller.session(120_000, "first").await, caller.session(120_000, "second").await);
    let token = take(&mut caller, "q", &holder, json!({})).await.token.expect("held");
    let asks = json!({"session": first, "wait_ms": 60_000, "poll_ms": 30_000, "request_id": "once"});
    let wire = begin(cluster, 1, "/v1/locks/q/acquire", &asks).await;
    until_parties(&mut caller, "/v1/locks/q", &[&holder], &[&first]).await;
    take(&mut caller, "q", &second, json!({"wait_ms": 60_000, "poll_ms": 0})).await;
    drop(wire);
    // Under the same request id, as a client does that cannot know what became of it.
    let mut wire = begin(cluster, 3, "/v1/locks/q/acquire", &asks).await;

    // Another is granted while nobody listens, and fetched in time.
    take(&mut caller, "p", &holder, json!({})).await;
    let fetches = json!({"session": first, "wait_ms": 60_000, "request_id": "twice"});
    let gone = begin(cluster, 1, "/v1/locks/p/acquire", &fetches).await;
    until_parties(&mut caller, "/v1/locks/p", &[&holder], &[&first]).await;
    drop(gone);
    caller.post("/v1/locks/p/release", &json!({"session": holder})).await.expect_success();
    let fetched: AcquireAnswer = caller.post("/v1/locks/p/acquire", &fetches).await.expect_success().json();
    assert_eq!(fetched.state, LockState::Held);

    tokio::time::sleep(HUNG_UP).await;
    assert_eq!(parties(&mut caller, "/v1/locks/p").await, (vec![first.clone()], vec![]));
    assert_eq!(parties(&mut caller, "/v1/locks/q").await, (vec![holder], vec![first, second]));
    release(&mut caller, "q", token).await;
    let told = tokio::time::timeout(PATIENCE, wire.answer(false)).await.expect("in time").expect("an answer");
    let held: AcquireAnswer = told.expect_success().json();
    assert_eq!((held.state, held.replayed), (LockState::Held, true));
}

/// Somebody who asked for a lock that is free and one that `other` holds, and did not wait to be told.
struct Undecided {
    caller: Caller,
    other: String,
}

async fn hang_up_before_it_is_decided(cluster: &mut Cluster) -> Undecided {
    let leader = cluster.leader().await;
    let mut caller = cluster.caller(leader);
    let (first, second) = (caller.session(120_000, "hasty").await, caller.session(120_000, "other").await);
    take(&mut caller, "held", &second, json!({})).await;
    // Nobody confirms what the leader writes, for less than anybody takes to become the leader.
    let others = cluster.live_but(leader);
    others.iter().for_each(|id| cluster.pause(*id));
    let before = cluster.status(leader).await.expect("it tells").last_log_index;
    let mut gone = Vec::new();
    for lock in ["free", "held"] {
        let asks = json!({"session": first, "wait_ms": 60_000});
        gone.push(begin(cluster, leader, &format!("/v1/locks/{lock}/acquire"), &asks).await);
    }
    eventually("both are in the log", PATIENCE, async || {
        let now = cluster.status(leader).await?.last_log_index;
        if now > before { Ok(()) } else { Err(format!("{now}")) }
    })
    .await;
    drop(gone);
    others.iter().for_each(|id| cluster.resume(*id));
    until_parties(&mut caller, "/v1/locks/free", &[&first], &[]).await;
    until_parties(&mut caller, "/v1/locks/held", &[&second], &[&first]).await;
    Undecided { caller, other: second }
}

impl Undecided {
    /// Its lock, granted in vain, is taken away again.
    async fn gets_nothing(mut self) {
        until_parties(&mut self.caller, "/v1/locks/free", &[], &[]).await;
        until_parties(&mut self.caller, "/v1/locks/held", &[&self.other], &[]).await;
    }
}

async fn of_two_that_wait_for_a_session_one_may_hang_up(cluster: &Cluster) {
    let mut caller = cluster.caller(1);
    let (holder, session) = (caller.session(120_000, "holder-of-l").await, caller.session(120_000, "two").await);
    let token = take(&mut caller, "l", &holder, json!({})).await.token.expect("held");
    let asks = |id: &str| json!({"session": session, "wait_ms": 60_000, "poll_ms": 50_000, "request_id": id});
    let mut stays = begin(cluster, 2, "/v1/locks/l/acquire", &asks("first")).await;
    until_parties(&mut caller, "/v1/locks/l", &[&holder], &[&session]).await;
    let last = begin(cluster, 3, "/v1/locks/l/acquire", &asks("last")).await;
    eventually("it has asked twice", PATIENCE, async || {
        let fate = caller.insist(&Request::get("/v1/requests/last")).await;
        if fate.status == 200 { Ok(()) } else { Err(fate.status.to_string()) }
    })
    .await;
    drop(last);
    tokio::time::sleep(HUNG_UP).await;
    assert_eq!(parties(&mut caller, "/v1/locks/l").await, (vec![holder], vec![session]));
    release(&mut caller, "l", token).await;
    let told = tokio::time::timeout(PATIENCE, stays.answer(false)).await.expect("in time").expect("an answer");
    assert_eq!(told.expect_success().json::<AcquireAnswer>().state, LockState::Held);
}
