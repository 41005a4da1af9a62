//! Requests that wait: for a lock, to lead, for a barrier and a latch; and who observes an election.

use std::time::{Duration, Instant};

use quorate_api::{
    AcquireAnswer, Applied, BarrierAnswer, BarrierState, CampaignAnswer, CampaignState, ErrorCode, LatchAnswer,
    LockState, RequestAnswer, RequestState, Retry, WriteAnswer,
};
use quorate_machine::query::{Party, Queries};
use quorate_machine::types::{
    Action, BarrierOp, Command, ContentKind, LockName, LockOp, LockReply, Outcome, Question, SessionId, Value,
};
use quorate_node_core::backend::AppError;
use serde_json::json;

use crate::coordination::{lock, name, session};
use crate::raw::{PATIENCE, Server, pass, post, read};

/// Far longer than any test takes.
const LONG_MS: u64 = 50_000;
/// As long as any session here lives.
const TTL_MS: u64 = 1_000_000;

/// A server on which one session holds the lock `l`.
struct Held {
    server: Server,
    /// Its token.
    token: u64,
    /// Another session, in a body and as it is.
    id: String,
    session: SessionId,
}

async fn held() -> Held {
    let server = Server::start().await;
    let (first, id) = (session(&server, TTL_MS).await, session(&server, TTL_MS).await);
    let answer: AcquireAnswer = read(&post(&server, "/v1/locks/l/acquire", json!({"session": first})).await);
    server.backend.forget_commands();
    let session = SessionId(id.parse().expect("a number"));
    Held { server, token: answer.token.expect("it holds it"), id, session }
}

impl Held {
    /// Asks for the lock, for so long.
    async fn acquire(&self, wait_ms: u64) -> crate::raw::Response {
        post(&self.server, "/v1/locks/l/acquire", json!({"session": self.id, "wait_ms": wait_ms})).await
    }

    /// Does something about the lock that no client of this server asked for.
    fn act(&self, op: impl FnOnce(LockName, SessionId) -> LockOp) {
        self.server.backend.act(Action::Lock(op(lock("l"), self.session)));
    }

    /// The holder gives it up.
    fn release(&self) {
        self.act(|lock, _| LockOp::Release { lock, token: self.token });
    }

    /// The number of the question of the session that waits.
    fn asked(&self) -> u64 {
        match self.server.backend.party(&lock("l"), self.session).expect("no fault").found {
            Party::Waiting { row, .. } => row.asked,
            other => panic!("it does not wait: {other:?}"),
        }
    }

    /// A later question of the session is hung up on.
    fn hang_up(&self) {
        self.act(|lock, session| LockOp::Listen { lock, session });
        let question = Question::Numbered(self.asked());
        self.act(|lock, session| LockOp::HangUp { lock, session, question });
    }
}

#[tokio::test]
async fn who_waits_for_a_lock_is_told_when_it_has_it() {
    let held = held().await;
    let grant = async {
        held.server.until_asked(1).await;
        held.release();
    };
    let (response, ()) = tokio::join!(held.acquire(LONG_MS), grant);
    let answer: AcquireAnswer = read(&response);
    assert_eq!((response.status, answer.state, answer.place), (200, LockState::Held, None));
    assert!(answer.token > Some(held.token), "{answer:?}");
    assert_eq!(held.server.backend.asked(), 1);
}

#[tokio::test]
async fn who_was_waiting_is_told_when_the_session_or_the_place_is_gone() {
    let held = held().await;
    let leaves = async {
        held.server.until_asked(1).await;
        held.act(|lock, session| LockOp::Leave { lock, session, asked: None, release: true });
    };
    let (response, ()) = tokio::join!(held.acquire(LONG_MS), leaves);
    assert_eq!(response.problem().code, ErrorCode::Locked);
    let ends = async {
        held.server.until_asked(2).await;
        assert_eq!(held.server.ask("DELETE", &format!("/v1/sessions/{}", held.id), &[], b"").await.status, 200);
    };
    let (response, ()) = tokio::join!(held.acquire(LONG_MS), ends);
    assert_eq!(response.problem().code, ErrorCode::SessionExpired);
}

#[tokio::test]
async fn the_end_of_a_poll_leaves_the_place() {
    let server = Server::start().await;
    let (leader, before, id) =
        (session(&server, TTL_MS).await, session(&server, TTL_MS).await, session(&server, TTL_MS).await);
    let campaign = async |id: &str, poll_ms: u64| {
        let body = json!({"session": id, "wait_ms": LONG_MS, "poll_ms": poll_ms});
        post(&server, "/v1/elections/e/campaign", body).await
    };
    assert_eq!((campaign(&leader, 0).await.status, campaign(&before, 0).await.status), (200, 202));
    server.backend.forget_commands();
    let begun = Instant::now();
    let response = campaign(&id, 30).await;
    assert!(begun.elapsed() >= Duration::from_millis(30));
    let answer: CampaignAnswer = read(&response);
    assert_eq!((response.status, answer.state, answer.term), (202, CampaignState::Candidate, None));
    assert!(answer.place.is_some() && answer.ahead == Some(1), "{answer:?}");
    assert_eq!(server.backend.asked(), 1, "nothing was said about leaving");
    // A node that is behind tells what the reply said.
    server.backend.fall_behind();
    let passes = async {
        server.until_asked(2).await;
        // The longest wait of a node for what was decided to be applied.
        pass(Duration::from_secs(1)).await;
    };
    let (again, ()) = tokio::join!(campaign(&id, 20), passes);
    let again: CampaignAnswer = read(&again);
    assert_eq!((again.state, again.place, again.ahead), (CampaignState::Candidate, answer.place, None));
}

#[tokio::test]
async fn a_node_that_stops_lets_who_waits_go_on_elsewhere() {
    let held = held().await;
    let begun = Instant::now();
    let stop = async {
        held.server.until_asked(1).await;
        held.server.stop.cancel();
    };
    let (response, ()) = tokio::join!(held.acquire(LONG_MS), stop);
    let answer: AcquireAnswer = read(&response);
    assert_eq!((response.status, answer.place.is_some()), (202, true));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(held.server.backend.asked(), 1, "the place stays");
}

#[tokio::test]
async fn the_end_of_the_wait_gives_the_place_up_and_says_what_came_of_it() {
    let held = held().await;
    let server = &held.server;
    let body = json!({"session": held.id, "wait_ms": 20, "request_id": "l-1"});
    let problem = post(server, "/v1/locks/l/acquire", body.clone()).await.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::Locked, Applied::No));
    let [acquired, left] = &server.backend.commands()[..] else { panic!("not two commands") };
    let id = |command: &Command| command.request_id.clone().expect("an id");
    assert_eq!(id(left), id(acquired).of_part(1), "a retry is told the same");
    let leaves = matches!(&left.action, Action::Lock(LockOp::Leave { asked: Some(_), release: false, .. }));
    assert!(leaves, "{left:?}");
    let fate: RequestAnswer = read(&server.get("/v1/requests/l-1").await);
    assert_eq!((fate.state, fate.code), (RequestState::Rejected, Some(ErrorCode::Locked)), "as it was answered");
    // The retry finds what was decided, and that nothing is left of it.
    let again = post(server, "/v1/locks/l/acquire", body).await.problem();
    assert_eq!((again.code, again.applied), (ErrorCode::Locked, Applied::No));

    // An entry that only the log has seen.
    for (done, status) in [(LockReply::Held { token: 60 }, 200), (LockReply::Waiting { place: 51, asked: 12 }, 202)] {
        let asked = server.backend.asked();
        let between = async {
            server.until_asked(asked + 1).await;
            server.backend.come_to(Outcome::Lock(done));
        };
        let (response, ()) = tokio::join!(held.acquire(300), between);
        assert_eq!(response.status, status, "{response:?}");
    }
    // Whether it was given up is not known: the request id tells.
    server.backend.fail_writes_from(server.backend.asked() + 1, Some(AppError::NoLeader));
    let problem = held.acquire(20).await.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::NoLeader, Applied::Unknown));
    assert_eq!(problem.retry, Retry::SameRequestId);
}

#[tokio::test]
async fn who_hangs_up_while_waiting_loses_the_place_after_a_while() {
    let held = held().await;
    let server = &held.server;
    let mut raw = server.connect().await;
    let body = json!({"session": held.id, "wait_ms": LONG_MS}).to_string();
    let json = [("Content-Type", "application/json")];
    raw.send_request("POST", "/v1/locks/l/acquire", &json, body.as_bytes()).await;
    tokio::time::timeout(PATIENCE, server.until_asked(1)).await.expect("it asks");
    let asked = held.asked();
    drop(raw);
    tokio::time::timeout(PATIENCE, server.until_asked(2)).await.expect("the log is told");
    // The clock of the server goes on by ten seconds; two of them leave time for what happened since.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(8)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.backend.asked(), 2, "nobody could have asked again");
    tokio::time::advance(Duration::from_secs(2)).await;
    tokio::time::resume();
    tokio::time::timeout(PATIENCE, server.until_asked(3)).await.expect("the place is given up");
    // Also where it holds it by then: only who has not asked since.
    let hang_up = LockOp::HangUp { lock: lock("l"), session: held.session, question: Question::Numbered(asked) };
    let [_, told, left] = &server.backend.commands()[..] else { panic!("not three commands") };
    assert_eq!(told.action, Action::Lock(hang_up));
    let leaves = matches!(&left.action, Action::Lock(LockOp::Leave { asked: Some(_), release: true, .. }));
    assert!(leaves, "{left:?}");
    // Deadlines go by the clock of the machine, which that of the server is ahead of now.
    let shown = server.ask("GET", "/v1/locks/l", &[("Request-Timeout", "30000")], b"").await;
    assert_eq!(shown.json()["waiter_count"], 0);
}

/// The end of its connection has come when it is granted the lock, and nobody has looked at it yet.
#[tokio::test]
async fn who_hung_up_before_the_grant_was_not_told_of_it() {
    let held = held().await;
    let server = &held.server;
    let mut raw = server.connect().await;
    let body = json!({"session": held.id, "wait_ms": LONG_MS}).to_string();
    raw.send_request("POST", "/v1/locks/l/acquire", &[("Content-Type", "application/json")], body.as_bytes()).await;
    tokio::time::timeout(PATIENCE, server.until_asked(1)).await.expect("it asks");
    let asked = held.asked();
    drop(raw);
    held.release();
    tokio::time::timeout(PATIENCE, server.until_asked(2)).await.expect("the log is told");
    let hang_up = LockOp::HangUp { lock: lock("l"), session: held.session, question: Question::Numbered(asked) };
    assert_eq!(server.backend.commands()[1].action, Action::Lock(hang_up));
}

#[tokio::test]
async fn another_question_of_the_session_listens_where_the_last_one_was_left() {
    let held = held().await;
    let other = async {
        held.server.until_asked(1).await;
        held.hang_up();
        held.server.until_asked(2).await;
        held.release();
    };
    let (response, ()) = tokio::join!(held.acquire(LONG_MS), other);
    assert!(read::<AcquireAnswer>(&response).token > Some(held.token));
    let listen = Action::Lock(LockOp::Listen { lock: lock("l"), session: held.session });
    assert_eq!(held.server.backend.commands()[1].action, listen);
}

#[tokio::test]
async fn a_question_outlives_any_number_of_others_that_are_hung_up_on() {
    const OTHERS: usize = 5_000;
    let held = held().await;
    let others = async {
        held.server.until_asked(1).await;
        for _ in 0..OTHERS {
            held.server.backend.come_to(Outcome::Lock(LockReply::Waiting { place: 51, asked: 13 }));
        }
        held.server.backend.come_to(Outcome::Lock(LockReply::Held { token: 60 }));
        held.hang_up();
    };
    let (response, ()) = tokio::join!(held.acquire(LONG_MS), others);
    assert_eq!(read::<AcquireAnswer>(&response).token, Some(60));
    assert_eq!(held.server.backend.asked(), 1 + OTHERS + 1);
}

#[tokio::test]
async fn what_was_granted_to_another_question_is_told_once_the_log_knows() {
    let held = held().await;
    let grant = async {
        held.server.until_asked(1).await;
        held.act(|lock, session| LockOp::Listen { lock, session });
        held.release();
    };
    let (response, ()) = tokio::join!(held.acquire(LONG_MS), grant);
    assert!(read::<AcquireAnswer>(&response).token > Some(held.token));
    // The caller may hang up at that moment. The node then gives up the lock, because nobody knows that it was granted.
    let listen = LockOp::Listen { lock: lock("l"), session: held.session };
    assert_eq!(held.server.backend.commands()[1].action, Action::Lock(listen));
}

#[tokio::test]
async fn a_request_that_is_repeated_is_listened_to_anew() {
    let held = held().await;
    let server = &held.server;
    let body = json!({"session": held.id, "wait_ms": LONG_MS, "poll_ms": 0, "request_id": "l-1"});
    let waits = post(server, "/v1/locks/l/acquire", body.clone()).await;
    let place = read::<AcquireAnswer>(&waits).place;
    assert_eq!((waits.status, place.is_some()), (202, true));
    let fate: RequestAnswer = read(&server.get("/v1/requests/l-1").await);
    assert_eq!((fate.state, fate.code), (RequestState::Applied, None), "it waits");
    let again = post(server, "/v1/locks/l/acquire", body.clone()).await;
    let answer: AcquireAnswer = read(&again);
    assert_eq!((again.status, answer.place, answer.replayed), (202, place, true));
    held.release();
    let holds: AcquireAnswer = read(&post(server, "/v1/locks/l/acquire", body.clone()).await);
    assert!(holds.token > Some(held.token) && holds.replayed, "{holds:?}");
    // One that comes late, when the session has left, gets nothing.
    held.act(|lock, session| LockOp::Leave { lock, session, asked: None, release: true });
    let late = post(server, "/v1/locks/l/acquire", body).await.problem();
    assert_eq!((late.code, late.applied), (ErrorCode::Locked, Applied::No));

    let [first, _, again, _, holds, ..] = &server.backend.commands()[..] else { panic!("not five commands") };
    let listen = Action::Lock(LockOp::Listen { lock: lock("l"), session: held.session });
    assert_eq!((&again.action, &holds.action), (&listen, &listen), "a repeat takes nothing, and waits no longer");
    assert!(
        again.request_id != first.request_id && holds.request_id != again.request_id,
        "each is a question of its own"
    );
}

/// Sessions that do something about the barrier `b`, of two parties, as if asked elsewhere.
fn at_the_barrier(server: &Server, enters: bool, ids: &[&str]) {
    for id in ids {
        let session = SessionId(id.parse().expect("a number"));
        server.backend.act(Action::Barrier(match enters {
            true => BarrierOp::Enter { name: name("b"), session, parties: 2 },
            false => BarrierOp::Leave { name: name("b"), session },
        }));
    }
}

#[tokio::test]
async fn barriers_are_waited_for() {
    let server = Server::start().await;
    let (one, two, third) =
        (session(&server, TTL_MS).await, session(&server, TTL_MS).await, session(&server, TTL_MS).await);
    server.backend.forget_commands();
    let enter = async |wait_ms: u64| {
        post(&server, "/v1/barriers/b/enter", json!({"session": one, "parties": 2, "wait_ms": wait_ms})).await
    };
    let leave =
        async |wait_ms: u64| post(&server, "/v1/barriers/b/leave", json!({"session": one, "wait_ms": wait_ms})).await;
    let opens = async {
        server.until_asked(1).await;
        at_the_barrier(&server, true, &[&two]);
    };
    let (response, ()) = tokio::join!(enter(LONG_MS), opens);
    let answer: BarrierAnswer = read(&response);
    assert_eq!((response.status, answer.state, answer.entered), (200, BarrierState::Open, 2));

    assert_eq!(leave(10).await.status, 202, "the other is still there");
    at_the_barrier(&server, false, &[&two]);
    assert_eq!(enter(20).await.status, 202);
    at_the_barrier(&server, true, &[&two]);
    // Another opening says that all had left.
    let asked = server.backend.asked();
    let others = async {
        server.until_asked(asked + 1).await;
        at_the_barrier(&server, false, &[&two]);
        at_the_barrier(&server, true, &[&two, &third]);
    };
    let (response, ()) = tokio::join!(leave(LONG_MS), others);
    let answer: BarrierAnswer = read(&response);
    assert_eq!((response.status, answer.state), (200, BarrierState::Empty));

    at_the_barrier(&server, false, &[&two, &third]);
    let asked = server.backend.asked();
    let ends = async {
        server.until_asked(asked + 1).await;
        assert_eq!(server.ask("DELETE", &format!("/v1/sessions/{one}"), &[], b"").await.status, 200);
    };
    let (response, ()) = tokio::join!(enter(LONG_MS), ends);
    assert_eq!(response.problem().code, ErrorCode::SessionExpired);
}

#[tokio::test]
async fn latches_are_waited_for() {
    let server = Server::start().await;
    let path = format!("/v1/latches/l?wait_ms={LONG_MS}");
    for is_removed in [false, true] {
        server.put_json("/v1/latches/l", r#"{"count":1}"#).await;
        let shut: LatchAnswer = read(&server.get("/v1/latches/l?wait_ms=10").await);
        assert!(!shut.open);
        let other = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let (method, path) = match is_removed {
                false => ("POST", "/v1/latches/l/count_down"),
                true => ("DELETE", "/v1/latches/l"),
            };
            assert_eq!(server.ask(method, path, &[], b"").await.status, 200);
        };
        let (response, ()) = tokio::join!(server.get(&path), other);
        if is_removed {
            assert_eq!(response.problem().code, ErrorCode::NotFound);
        } else {
            assert!(read::<LatchAnswer>(&response).open);
            server.ask("DELETE", "/v1/latches/l", &[], b"").await;
        }
    }
}

/// The next event of a stream: name, id, data.
async fn event(raw: &mut crate::raw::Raw) -> (String, Option<u64>, serde_json::Value) {
    let mut text = String::from_utf8(raw.until(b"\n\n").await).expect("text");
    if text.contains("retry: ") {
        text = String::from_utf8(raw.until(b"\n\n").await).expect("text");
    }
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let event = field("event: ").unwrap_or_else(|| panic!("no event: {text:?}")).to_owned();
    let data = serde_json::from_str(field("data: ").expect("data")).expect("JSON");
    (event, field("id: ").map(|id| id.parse().expect("a revision")), data)
}

#[tokio::test]
async fn an_observer_sees_the_present_state_and_then_each_change() {
    let server = Server::start().await;
    let mut raw = server.connect().await;
    raw.send_request("GET", "/v1/elections/e/observe?heartbeat_ms=500", &[], b"").await;
    raw.until(b"\r\n\r\n").await;
    let (name, id, data) = event(&mut raw).await;
    assert_eq!((&*name, id, data), ("vacant", Some(1), json!({"election": "e", "revision": "1"})));
    let id = session(&server, TTL_MS).await;
    for (step, body) in [
        ("campaign", json!({"session": id, "value": 1})),
        ("proclaim", json!({"term": 3, "value": 2})),
        ("resign", json!({"term": 3})),
    ] {
        assert_eq!(post(&server, &format!("/v1/elections/e/{step}"), body).await.status, 200, "{step}");
    }
    for _ in 5..10 {
        server.backend.seed("k", Value { kind: ContentKind::Json, data: b"1".to_vec() });
    }
    let (name, id, data) = event(&mut raw).await;
    assert_eq!((&*name, id, &data["term"], &data["value"]), ("leader", Some(3), &json!("3"), &json!(1)));
    let (name, id, data) = event(&mut raw).await;
    assert_eq!((&*name, id, &data["term"], &data["value"]), ("leader", Some(4), &json!("3"), &json!(2)));
    let (name, id, _) = event(&mut raw).await;
    assert_eq!((&*name, id), ("vacant", Some(5)));
    let (name, id, data) = event(&mut raw).await;
    assert_eq!(
        (&*name, id, data),
        ("progress", Some(10), json!({"revision": "10"})),
        "in silence it says how far it is"
    );

    // A reader that goes on sees only later changes.
    let mut later = server.connect().await;
    later.send_request("GET", "/v1/elections/e/observe", &[("Last-Event-ID", "4")], b"").await;
    later.until(b"\r\n\r\n").await;
    let (name, id, _) = event(&mut later).await;
    assert_eq!((&*name, id), ("vacant", Some(5)));
    let ahead = server.ask("GET", "/v1/elections/e/observe", &[("Last-Event-ID", "11")], b"").await.problem();
    assert_eq!((ahead.code, &*ahead.errors[0].pointer), (ErrorCode::InvalidArgument, "header:Last-Event-ID"));
    server.backend.compact_to(5);
    let gone = server.ask("GET", "/v1/elections/e/observe", &[("Last-Event-ID", "4")], b"").await.problem();
    assert_eq!((gone.code, gone.oldest_revision), (ErrorCode::Compacted, Some(5)));
    // To a browser any status but 200 is the end for ever: it begins anew.
    for (id, code) in [("4", "compacted"), ("11", "invalid_argument")] {
        let mut anew = server.connect().await;
        let headers = [("Accept", "text/event-stream"), ("Last-Event-ID", id)];
        anew.send_request("GET", "/v1/elections/e/observe", &headers, b"").await;
        anew.until(b"\r\n\r\n").await;
        let (name, reset_id, data) = event(&mut anew).await;
        assert_eq!((&*name, reset_id, &data["code"], &data["revision"]), ("reset", None, &json!(code), &json!("10")));
        let (name, id, _) = event(&mut anew).await;
        assert_eq!((&*name, id), ("vacant", Some(10)), "the state as it is");
    }
    server.stop.cancel();
    let (name, _, data) = event(&mut raw).await;
    assert_eq!((&*name, &data["code"], &data["revision"]), ("end", &json!("stopping"), &json!("10")));
}

/// Waits to lock the entry `k`.
async fn lock_entry(server: &Server, wait_ms: u64) -> crate::raw::Response {
    post(server, "/v1/ops", json!({"op": "lock", "key": "k", "wait_ms": wait_ms, "request_id": "e-1"})).await
}

/// A server whose entry `k` is locked, and the key to that.
async fn locked_entry() -> (Server, String) {
    let server = Server::start().await;
    server.put_json("/v1/kv/k", "1").await;
    let locked = post(&server, "/v1/ops", json!({"op": "lock", "key": "k"})).await.json();
    server.backend.forget_commands();
    (server, locked["cas"].as_str().expect("the key of the lock").to_owned())
}

/// Ends the lock by a write.
async fn write_with(server: &Server, key: &str) {
    let tag = format!("\"{key}\"");
    let headers = [("Content-Type", "application/json"), ("If-Match", tag.as_str())];
    assert_eq!(server.ask("PUT", "/v1/kv/k", &headers, b"2").await.status, 200);
}

async fn until_read(server: &Server) {
    while server.backend.barriers().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn who_waits_to_lock_an_entry_has_it_once_it_is_free() {
    let (server, key) = locked_entry().await;
    let free = async {
        until_read(&server).await;
        assert_eq!(server.backend.commands(), [], "nothing is proposed before its turn");
        write_with(&server, &key).await;
    };
    let (response, ()) = tokio::join!(lock_entry(&server, LONG_MS), free);
    let answer: WriteAnswer = read(&response);
    assert_eq!((answer.lock_ms, answer.replayed), (Some(15_000), false));
    // A retry does not wait for what it has.
    let again: WriteAnswer = read(&lock_entry(&server, LONG_MS).await);
    assert_eq!((again.cas, again.replayed), (answer.cas, true));
}

#[tokio::test]
async fn who_waits_to_lock_an_entry_has_it_once_the_lock_ends_by_itself() {
    let (server, _) = locked_entry().await;
    let ends = async {
        until_read(&server).await;
        server.backend.advance(Duration::from_millis(15_000));
    };
    let (response, ()) = tokio::join!(lock_entry(&server, LONG_MS), ends);
    assert_eq!(read::<WriteAnswer>(&response).lock_ms, Some(15_000));
}

#[tokio::test]
async fn the_end_of_the_wait_for_an_entry_is_told_as_without_one() {
    let (server, key) = locked_entry().await;
    let begun = Instant::now();
    let problem = lock_entry(&server, 30).await.problem();
    assert!(begun.elapsed() >= Duration::from_millis(30));
    assert_eq!((problem.status, problem.code, problem.applied), (423, ErrorCode::Locked, Applied::No));
    assert!(problem.current.is_some_and(|current| current.locked));
    // A retry is answered as the first request was, and does not wait, although the entry is free by now.
    write_with(&server, &key).await;
    let again = lock_entry(&server, LONG_MS).await.problem();
    assert_eq!((again.code, again.applied, again.replayed), (ErrorCode::Locked, Applied::No, true));
}

#[tokio::test]
async fn a_node_that_stops_does_not_keep_who_waits_for_an_entry() {
    let (server, _) = locked_entry().await;
    let stop = async {
        until_read(&server).await;
        server.stop.cancel();
    };
    let (response, ()) = tokio::join!(lock_entry(&server, LONG_MS), stop);
    let problem = response.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::NotReady, Applied::No));
    assert_eq!(server.backend.commands(), []);
}
