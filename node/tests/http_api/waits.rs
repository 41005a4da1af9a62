//! Requests that wait: for a lock, to lead, for a barrier and a latch; and who observes an election.

use std::time::{Duration, Instant};

use quorate_api::{
    AcquireAnswer, Applied, BarrierAnswer, BarrierState, CampaignAnswer, CampaignState, ErrorCode, LatchAnswer,
    LockState, RequestAnswer, RequestState, Retry, WriteAnswer,
};
use quorate_machine::keyspace::lock_queue::{HolderRow, WaiterRow};
use quorate_machine::query::{BarrierRead, Party};
use quorate_machine::types::{
    Action, BarrierRow, ContentKind, Elected, LatchRow, LockName, LockOp, LockReply, Outcome, Question, SessionId,
    Value,
};
use quorate_node_core::app::AppError;
use serde_json::json;

use crate::coordination::{election, holder, lock, post, read};
use crate::fake::WALL;
use crate::raw::{PATIENCE, Server};

/// The clock of the fake node.
const CLOCK: u64 = 1_000;
/// Far longer than any test takes.
const LONG_MS: u64 = 50_000;

/// Session 42 is at a place of a lock, for so long, behind one other.
fn waits_at(server: &Server, of: &LockName, wait_ms: u64) {
    server.backend.come_to(Outcome::Lock(LockReply::Waiting { place: 51, asked: 9 }));
    let row = |session| WaiterRow { party: holder(session, None), until: CLOCK + wait_ms, asked: 9, hung_up: false };
    server.backend.coordinate(|told| {
        let waiting = |place, session| (of.clone(), SessionId(session), Party::Waiting { place, row: row(session) });
        told.parties = vec![waiting(48, 41), waiting(51, 42)];
    });
}

/// Session 42 is this to the lock from now on.
fn becomes(server: &Server, of: &LockName, party: Party) {
    server.backend.coordinate(|told| told.parties = vec![(of.clone(), SessionId(42), party)]);
}

#[tokio::test]
async fn who_waits_for_a_lock_is_told_when_it_has_it() {
    let server = Server::start().await;
    waits_at(&server, &lock("l"), LONG_MS);
    let ask = post(&server, "/v1/locks/l/acquire", json!({"session": "42", "wait_ms": LONG_MS}));
    let grant = async {
        server.until_asked(1).await;
        becomes(&server, &lock("l"), Party::Holding { token: 60, row: holder(42, None) });
    };
    let (response, ()) = tokio::join!(ask, grant);
    let answer: AcquireAnswer = read(&response);
    assert_eq!((response.status, answer.state, answer.token, answer.place), (200, LockState::Held, Some(60), None));
    assert_eq!(server.backend.commands().len(), 1);
}

#[tokio::test]
async fn who_was_waiting_is_told_when_the_session_or_the_place_is_gone() {
    let server = Server::start().await;
    for (party, code) in [(Party::Expired, ErrorCode::SessionExpired), (Party::Nothing, ErrorCode::Locked)] {
        waits_at(&server, &election("e"), LONG_MS);
        let asked = server.backend.commands().len() + 1;
        let ask = post(&server, "/v1/elections/e/campaign", json!({"session": "42", "wait_ms": LONG_MS}));
        let end = async {
            server.until_asked(asked).await;
            becomes(&server, &election("e"), party);
        };
        let (response, ()) = tokio::join!(ask, end);
        assert_eq!(response.problem().code, code);
    }
}

#[tokio::test]
async fn the_end_of_a_poll_leaves_the_place() {
    let server = Server::start().await;
    waits_at(&server, &election("e"), LONG_MS);
    let begun = Instant::now();
    let body = json!({"session": "42", "wait_ms": LONG_MS, "poll_ms": 30});
    let response = post(&server, "/v1/elections/e/campaign", body).await;
    assert!(begun.elapsed() >= Duration::from_millis(30));
    let answer: CampaignAnswer = read(&response);
    assert_eq!((response.status, answer.state, answer.term), (202, CampaignState::Candidate, None));
    assert_eq!((answer.place, answer.ahead), (Some(51), Some(1)));
    assert_eq!(server.backend.commands().len(), 1, "nothing was said about leaving");
    // A node that is behind tells what the reply said.
    waits_at(&server, &lock("l"), LONG_MS);
    server.backend.coordinate(|told| told.not_applied = Some(0));
    let response = post(&server, "/v1/locks/l/acquire", json!({"session": "42", "wait_ms": 9, "poll_ms": 20})).await;
    let answer: AcquireAnswer = read(&response);
    assert_eq!((response.status, answer.place, answer.ahead), (202, Some(51), None));
}

#[tokio::test]
async fn a_node_that_stops_lets_who_waits_go_on_elsewhere() {
    let server = Server::start().await;
    waits_at(&server, &lock("l"), LONG_MS);
    let begun = Instant::now();
    let ask = post(&server, "/v1/locks/l/acquire", json!({"session": "42", "wait_ms": LONG_MS}));
    let stop = async {
        server.until_asked(1).await;
        server.stop.cancel();
    };
    let (response, ()) = tokio::join!(ask, stop);
    let answer: AcquireAnswer = read(&response);
    assert_eq!((response.status, answer.place), (202, Some(51)));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(server.backend.commands().len(), 1, "the place stays");
}

#[tokio::test]
async fn the_end_of_the_wait_gives_the_place_up_and_says_what_came_of_it() {
    let server = Server::start().await;
    let body = json!({"session": "42", "wait_ms": 20, "request_id": "l-1"});
    waits_at(&server, &lock("l"), 20);
    server.backend.come_to(Outcome::Lock(LockReply::Gone(true)));
    let problem = post(&server, "/v1/locks/l/acquire", body.clone()).await.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::Locked, Applied::No));
    let [acquired, left] = &server.backend.commands()[..] else { panic!("not two commands") };
    let id = |command: &quorate_machine::types::Command| command.request_id.clone().expect("an id");
    assert_eq!(id(left), id(acquired).of_part(1), "a retry is told the same");
    let leave = LockOp::Leave { lock: lock("l"), session: SessionId(42), asked: Some(9), release: false };
    assert_eq!(left.action, Action::Lock(leave));
    let fate: RequestAnswer = read(&server.get("/v1/requests/l-1").await);
    assert_eq!((fate.state, fate.code), (RequestState::Rejected, Some(ErrorCode::Locked)), "as it was answered");
    // The retry finds what was decided, and that nothing is left of it.
    server.backend.come_to(Outcome::Lock(LockReply::Gone(false)));
    let again = post(&server, "/v1/locks/l/acquire", body).await.problem();
    assert_eq!((again.code, again.applied), (ErrorCode::Locked, Applied::No));

    for (done, status) in [(LockReply::Held { token: 60 }, 200), (LockReply::Waiting { place: 51, asked: 12 }, 202)] {
        waits_at(&server, &lock("l"), 20);
        server.backend.come_to(Outcome::Lock(done));
        let response = post(&server, "/v1/locks/l/acquire", json!({"session": "42", "wait_ms": 20})).await;
        assert_eq!(response.status, status, "{response:?}");
    }
    // Whether it was given up is not known: the request id tells.
    waits_at(&server, &lock("l"), 20);
    server.backend.fail_writes_from(server.backend.commands().len() + 1, Some(AppError::NoLeader));
    let problem = post(&server, "/v1/locks/l/acquire", json!({"session": "42", "wait_ms": 20})).await.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::NoLeader, Applied::Unknown));
    assert_eq!(problem.retry, Retry::SameRequestId);
}

#[tokio::test]
async fn who_hangs_up_while_waiting_loses_the_place_after_a_while() {
    let server = Server::start().await;
    waits_at(&server, &lock("l"), LONG_MS);
    let mut raw = server.connect().await;
    let body = json!({"session": "42", "wait_ms": LONG_MS}).to_string();
    let json = [("Content-Type", "application/json")];
    raw.send_request("POST", "/v1/locks/l/acquire", &json, body.as_bytes()).await;
    tokio::time::timeout(PATIENCE, server.until_asked(1)).await.expect("it asks");
    let begun = Instant::now();
    server.backend.come_to(Outcome::Lock(LockReply::HungUp(12)));
    server.backend.come_to(Outcome::Lock(LockReply::Gone(true)));
    drop(raw);
    tokio::time::timeout(PATIENCE, server.until_asked(3)).await.expect("the place is given up");
    assert!(begun.elapsed() >= Duration::from_secs(10), "{:?}: nobody could have asked again", begun.elapsed());
    // Also where it holds it by then: only who has not asked since.
    let hang_up = LockOp::HangUp { lock: lock("l"), session: SessionId(42), question: Question::Numbered(9) };
    let leave = LockOp::Leave { lock: lock("l"), session: SessionId(42), asked: Some(12), release: true };
    let [_, told, left] = &server.backend.commands()[..] else { panic!("not three commands") };
    assert_eq!((&told.action, &left.action), (&Action::Lock(hang_up), &Action::Lock(leave)));
}

#[tokio::test]
async fn another_question_of_the_session_listens_where_the_last_one_was_left() {
    let server = Server::start().await;
    waits_at(&server, &lock("l"), LONG_MS);
    let ask = post(&server, "/v1/locks/l/acquire", json!({"session": "42", "wait_ms": LONG_MS}));
    let other = async {
        server.until_asked(1).await;
        // It is granted meanwhile.
        server.backend.come_to(Outcome::Lock(LockReply::Held { token: 60 }));
        let row = WaiterRow { party: holder(42, None), until: CLOCK + LONG_MS, asked: 12, hung_up: true };
        becomes(&server, &lock("l"), Party::Waiting { place: 51, row });
    };
    let (response, ()) = tokio::join!(ask, other);
    assert_eq!(read::<AcquireAnswer>(&response).token, Some(60));
    let listen = Action::Lock(LockOp::Listen { lock: lock("l"), session: SessionId(42) });
    assert_eq!(server.backend.commands()[1].action, listen);
}

#[tokio::test]
async fn a_question_outlives_any_number_of_others_that_are_hung_up_on() {
    const OTHERS: usize = 5_000;
    let server = Server::start().await;
    waits_at(&server, &lock("l"), LONG_MS);
    for _ in 0..OTHERS {
        server.backend.come_to(Outcome::Lock(LockReply::Waiting { place: 51, asked: 13 }));
    }
    server.backend.come_to(Outcome::Lock(LockReply::Held { token: 60 }));
    let row = WaiterRow { party: holder(42, None), until: CLOCK + LONG_MS, asked: 12, hung_up: true };
    becomes(&server, &lock("l"), Party::Waiting { place: 51, row });
    let response = post(&server, "/v1/locks/l/acquire", json!({"session": "42", "wait_ms": LONG_MS})).await;
    assert_eq!(read::<AcquireAnswer>(&response).token, Some(60));
    assert_eq!(server.backend.commands().len(), 1 + OTHERS + 1);
}

#[tokio::test]
async fn what_was_granted_to_another_question_is_told_once_the_log_knows() {
    let server = Server::start().await;
    waits_at(&server, &lock("l"), LONG_MS);
    let ask = post(&server, "/v1/locks/l/acquire", json!({"session": "42", "wait_ms": LONG_MS}));
    let grant = async {
        server.until_asked(1).await;
        server.backend.come_to(Outcome::Lock(LockReply::Held { token: 60 }));
        let row = HolderRow { unheard: Some(12), ..holder(42, None) };
        becomes(&server, &lock("l"), Party::Holding { token: 60, row });
    };
    let (response, ()) = tokio::join!(ask, grant);
    assert_eq!(read::<AcquireAnswer>(&response).token, Some(60));
    // Whoever asked then may hang up, and the node that sees it gives up what was told to nobody.
    let listen = LockOp::Listen { lock: lock("l"), session: SessionId(42) };
    assert_eq!(server.backend.commands()[1].action, Action::Lock(listen));
}

#[tokio::test]
async fn a_request_that_is_repeated_is_listened_to_anew() {
    let server = Server::start().await;
    let body = json!({"session": "42", "wait_ms": LONG_MS, "poll_ms": 0, "request_id": "l-1"});
    waits_at(&server, &lock("l"), 7_000);
    assert_eq!(post(&server, "/v1/locks/l/acquire", body.clone()).await.status, 202);
    let fate: RequestAnswer = read(&server.get("/v1/requests/l-1").await);
    assert_eq!((fate.state, fate.code), (RequestState::Applied, None), "it waits");
    server.backend.come_to(Outcome::Lock(LockReply::Waiting { place: 51, asked: 12 }));
    let again = post(&server, "/v1/locks/l/acquire", body.clone()).await;
    let answer: AcquireAnswer = read(&again);
    assert_eq!((again.status, answer.place, answer.replayed), (202, Some(51), true));
    server.backend.come_to(Outcome::Lock(LockReply::Held { token: 60 }));
    becomes(&server, &lock("l"), Party::Holding { token: 60, row: holder(42, None) });
    let held: AcquireAnswer = read(&post(&server, "/v1/locks/l/acquire", body.clone()).await);
    assert_eq!((held.token, held.replayed), (Some(60), true));
    // One that comes late, when the session has left, gets nothing.
    server.backend.come_to(Outcome::Lock(LockReply::Gone(false)));
    let late = post(&server, "/v1/locks/l/acquire", body).await.problem();
    assert_eq!((late.code, late.applied), (ErrorCode::Locked, Applied::No));

    let [first, _, again, _, held, ..] = &server.backend.commands()[..] else { panic!("not five commands") };
    let listen = Action::Lock(LockOp::Listen { lock: lock("l"), session: SessionId(42) });
    assert_eq!((&again.action, &held.action), (&listen, &listen), "a repeat takes nothing, and waits no longer");
    assert!(
        again.request_id != first.request_id && held.request_id != again.request_id,
        "each is a question of its own"
    );
}

#[tokio::test]
async fn barriers_and_latches_are_waited_for() {
    let server = Server::start().await;
    let row = |entered, opened| BarrierRow { parties: 2, entered, opened };
    let is = |row, is_in, lives| {
        move |told: &mut crate::fake::Coordinated| told.barrier = Some(BarrierRead { row, is_in, lives })
    };
    let enter =
        |wait_ms| post(&server, "/v1/barriers/b/enter", json!({"session": "4", "parties": 2, "wait_ms": wait_ms}));
    let enters = |asked| {
        server.backend.coordinate(is(Some(row(1, None)), true, true));
        server.backend.come_to(Outcome::Barrier(Some(row(1, None))));
        server.until_asked(asked)
    };
    let opens = async {
        enters(1).await;
        server.backend.coordinate(is(Some(row(2, Some(60))), true, true));
    };
    let ((), response) = tokio::join!(opens, enter(LONG_MS));
    let answer: BarrierAnswer = read(&response);
    assert_eq!((response.status, answer.state, answer.entered), (200, BarrierState::Open, 2));
    enters(0).await;
    assert_eq!(enter(20).await.status, 202);
    let ends = async {
        enters(3).await;
        server.backend.coordinate(is(Some(row(1, None)), false, false));
    };
    let ((), response) = tokio::join!(ends, enter(LONG_MS));
    assert_eq!(response.problem().code, ErrorCode::SessionExpired);

    // Another opening says that all had left.
    server.backend.come_to(Outcome::Barrier(Some(row(1, Some(60)))));
    server.backend.coordinate(is(Some(row(1, Some(60))), false, true));
    let leave = post(&server, "/v1/barriers/b/leave", json!({"session": "4", "wait_ms": LONG_MS}));
    let others = async {
        server.until_asked(4).await;
        server.backend.coordinate(is(Some(row(2, Some(70))), false, true));
    };
    let (response, ()) = tokio::join!(leave, others);
    let answer: BarrierAnswer = read(&response);
    assert_eq!((response.status, answer.state), (200, BarrierState::Empty));
    server.backend.come_to(Outcome::Barrier(Some(row(1, Some(70)))));
    assert_eq!(post(&server, "/v1/barriers/b/leave", json!({"session": "4", "wait_ms": 10})).await.status, 202);

    let latch = |left: u64| {
        let opened = (left == 0).then_some(80);
        move |told: &mut crate::fake::Coordinated| told.latch = Some(LatchRow { count: 2, left, opened })
    };
    server.backend.coordinate(latch(1));
    let shut: LatchAnswer = read(&server.get("/v1/latches/l?wait_ms=10").await);
    assert!(!shut.open);
    let path = format!("/v1/latches/l?wait_ms={LONG_MS}");
    let open = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        server.backend.coordinate(latch(0));
    };
    let (response, ()) = tokio::join!(server.get(&path), open);
    assert!(read::<LatchAnswer>(&response).open);
    server.backend.coordinate(latch(1));
    let remove = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        server.backend.coordinate(|told| told.latch = None);
    };
    let (response, ()) = tokio::join!(server.get(&path), remove);
    assert_eq!(response.problem().code, ErrorCode::NotFound);
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
    let elected = |token, value: &str| Elected {
        token,
        session: SessionId(42),
        owner: "w".into(),
        value: Some(Value { kind: ContentKind::Json, data: value.into() }),
        since: WALL,
    };
    let mut raw = server.connect().await;
    raw.send_request("GET", "/v1/elections/e/observe?heartbeat_ms=500", &[], b"").await;
    raw.until(b"\r\n\r\n").await;
    let (name, id, data) = event(&mut raw).await;
    assert_eq!((&*name, id, data), ("vacant", Some(1), json!({"election": "e", "revision": "1"})));
    for _ in 0..9 {
        server.backend.seed("k", Value { kind: ContentKind::Json, data: b"1".to_vec() });
    }
    server.backend.coordinate(|told| {
        told.elected = vec![(7, Some(elected(7, "1"))), (8, Some(elected(7, "2"))), (9, None)];
    });
    let (name, id, data) = event(&mut raw).await;
    assert_eq!((&*name, id, &data["term"], &data["value"]), ("leader", Some(7), &json!("7"), &json!(1)));
    let (name, id, data) = event(&mut raw).await;
    assert_eq!((&*name, id, &data["term"], &data["value"]), ("leader", Some(8), &json!("7"), &json!(2)));
    let (name, id, _) = event(&mut raw).await;
    assert_eq!((&*name, id), ("vacant", Some(9)));
    let (name, id, data) = event(&mut raw).await;
    assert_eq!(
        (&*name, id, data),
        ("progress", Some(10), json!({"revision": "10"})),
        "in silence it says how far it is"
    );

    // Who goes on sees only what came after.
    let mut later = server.connect().await;
    later.send_request("GET", "/v1/elections/e/observe", &[("Last-Event-ID", "8")], b"").await;
    later.until(b"\r\n\r\n").await;
    let (name, id, _) = event(&mut later).await;
    assert_eq!((&*name, id), ("vacant", Some(9)));
    let ahead = server.ask("GET", "/v1/elections/e/observe", &[("Last-Event-ID", "11")], b"").await.problem();
    assert_eq!((ahead.code, &*ahead.errors[0].pointer), (ErrorCode::InvalidArgument, "header:Last-Event-ID"));
    server.backend.compact_to(9);
    let gone = server.ask("GET", "/v1/elections/e/observe", &[("Last-Event-ID", "8")], b"").await.problem();
    assert_eq!((gone.code, gone.oldest_revision), (ErrorCode::Compacted, Some(9)));
    // To a browser any status but 200 is the end for ever: it begins anew.
    for (id, code) in [("8", "compacted"), ("11", "invalid_argument")] {
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

/// Waits to lock the entry `k`, which is locked with 7 as its key.
async fn lock_entry(server: &Server, wait_ms: u64) -> crate::raw::Response {
    post(server, "/v1/ops", json!({"op": "lock", "key": "k", "wait_ms": wait_ms, "request_id": "e-1"})).await
}

async fn locked_entry() -> Server {
    let server = Server::start().await;
    server.put_json("/v1/kv/k", "1").await;
    server.backend.lock_entry("k", 7);
    server
}

async fn until_read(server: &Server) {
    while server.backend.barriers().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_waits_to_lock_an_entry_has_it_once_it_is_free() {
    let server = locked_entry().await;
    let free = async {
        until_read(&server).await;
        assert_eq!(server.backend.commands().len(), 1, "nothing is proposed before its turn");
        let headers = [("Content-Type", "application/json"), ("If-Match", "\"7\"")];
        assert_eq!(server.ask("PUT", "/v1/kv/k", &headers, b"2").await.status, 200);
    };
    let (response, ()) = tokio::join!(lock_entry(&server, LONG_MS), free);
    let answer: WriteAnswer = read(&response);
    assert_eq!((answer.lock_ms, answer.replayed), (Some(15_000), false));
    // A retry does not wait for what it has.
    let again: WriteAnswer = read(&lock_entry(&server, LONG_MS).await);
    assert_eq!((again.cas, again.replayed), (answer.cas, true));
}

#[tokio::test]
async fn the_end_of_the_wait_for_an_entry_is_told_as_without_one() {
    let server = locked_entry().await;
    let begun = Instant::now();
    let problem = lock_entry(&server, 30).await.problem();
    assert!(begun.elapsed() >= Duration::from_millis(30));
    assert_eq!((problem.status, problem.code, problem.applied), (423, ErrorCode::Locked, Applied::No));
    assert!(problem.current.is_some_and(|current| current.locked));
    // A retry does not wait anew, though the entry is free by now: one request id is told one thing.
    let headers = [("Content-Type", "application/json"), ("If-Match", "\"7\"")];
    assert_eq!(server.ask("PUT", "/v1/kv/k", &headers, b"2").await.status, 200);
    let again = lock_entry(&server, LONG_MS).await.problem();
    assert_eq!((again.code, again.applied, again.replayed), (ErrorCode::Locked, Applied::No, true));
}

#[tokio::test]
async fn a_node_that_stops_does_not_keep_who_waits_for_an_entry() {
    let server = locked_entry().await;
    let stop = async {
        until_read(&server).await;
        server.stop.cancel();
    };
    let (response, ()) = tokio::join!(lock_entry(&server, LONG_MS), stop);
    let problem = response.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::NotReady, Applied::No));
    assert_eq!(server.backend.commands().len(), 1);
}

#[tokio::test]
async fn only_a_lock_that_stands_alone_is_waited_for() {
    let server = locked_entry().await;
    for (path, body, pointer) in [
        ("/v1/ops", json!({"op": "get", "key": "k", "wait_ms": 5}), "/wait_ms"),
        ("/v1/ops", json!({"op": "extend", "key": "k", "cas": "7", "wait_ms": 5}), "/wait_ms"),
        ("/v1/ops", json!({"op": "lock", "key": "k", "wait_ms": 60_001}), "/wait_ms"),
        ("/v1/ops", json!({"op": "lock", "key": "k", "wait_ms": 5, "dry_run": true}), "/wait_ms"),
        ("/v1/bulk", json!({"ops": [{"op": "lock", "key": "k", "wait_ms": 5}]}), "/ops/0/wait_ms"),
        ("/v1/txn", json!({"then": [{"op": "lock", "key": "k", "wait_ms": 5}]}), "/then/0/wait_ms"),
    ] {
        let problem = post(&server, path, body.clone()).await.problem();
        assert_eq!(problem.errors[0].pointer, pointer, "{body}");
    }
}
