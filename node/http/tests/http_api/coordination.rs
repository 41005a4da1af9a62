//! Sessions, locks, elections, barriers and latches: what is asked of the cluster, how its reply is shown, and every fault of
//! input. How requests wait is in `waits`.

use std::time::Duration;

use quorate_api::{
    AcquireAnswer, BarrierAnswer, BarrierState, CampaignAnswer, CampaignState, CheckAnswer, ElectionAnswer,
    ElectionList, ErrorCode, LatchAnswer, LatchRemoved, LockAnswer, LockList, LockMode, LockState, ProclaimAnswer,
    ReleaseAnswer, RenewAnswer, Renewal, RenewedAnswer, ResignAnswer, SessionAnswer, SessionEnded, SessionList,
    SessionView, TaskClaimAnswer,
};
use quorate_machine::types::{
    Acquire, Action, BarrierOp, Bounded, ContentKind, Guard, LatchOp, LockName, LockOp, LockSpace, Name, Rejection,
    SessionId, SessionOp, Value,
};
use serde_json::json;

use crate::raw::{Response, Server, tells_all_or_the_first};

const JSON: (&str, &str) = ("Content-Type", "application/json");

pub async fn post(server: &Server, route: &str, body: serde_json::Value) -> Response {
    server.ask("POST", route, &[JSON], body.to_string().as_bytes()).await
}

pub fn read<T: serde::de::DeserializeOwned>(response: &Response) -> T {
    assert!(matches!(response.status, 200..=202), "{response:?}");
    response.carries_the_common_headers();
    serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

pub fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

pub fn lock(text: &str) -> LockName {
    LockName { space: LockSpace::Lock, name: name(text) }
}

pub fn election(text: &str) -> LockName {
    LockName { space: LockSpace::Election, name: name(text) }
}

/// Begins a session that lives for so long; gives its id.
pub async fn session(server: &Server, ttl_ms: u64) -> String {
    let body = json!({"ttl_ms": ttl_ms, "owner": "w"});
    read::<SessionAnswer>(&post(server, "/v1/sessions", body).await).session
}

fn last_action(server: &Server) -> Action {
    server.backend.commands().pop().expect("a command came").action
}

#[tokio::test]
async fn faults_are_told_all_at_once_and_nothing_is_asked_of_the_cluster() {
    let server = Server::start().await;
    let long = "n".repeat(257);
    let labels: serde_json::Map<_, _> = (0..17).map(|n| (format!("l{n}"), json!("v"))).collect();
    let rows: Vec<(&str, String, String, &[&str])> = vec![
        (
            "POST",
            "/v1/sessions".into(),
            json!({"ttl_ms": 99, "owner": long, "labels": {"a": 1, "b": "v".repeat(257)}, "request_id": "ä", "x": 1})
                .to_string(),
            &["/ttl_ms", "/owner", "/labels/a", "/labels/b", "/request_id", "/x"],
        ),
        ("POST", "/v1/sessions".into(), json!({"ttl_ms": 86_400_001, "labels": labels}).to_string(), &[
            "/ttl_ms", "/labels",
        ]),
        ("POST", "/v1/sessions".into(), r#"{"labels":[]}"#.into(), &["/labels"]),
        ("POST", "/v1/sessions/renew".into(), r#"{"sessions":[]}"#.into(), &["/sessions"]),
        ("POST", "/v1/sessions/renew".into(), r#"{"sessions":["1",2,"x"],"y":0}"#.into(), &[
            "/sessions/1",
            "/sessions/2",
            "/y",
        ]),
        ("POST", "/v1/sessions/renew".into(), json!({"sessions": vec!["1"; 1_025]}).to_string(), &["/sessions"]),
        ("POST", "/v1/sessions/x/renew".into(), String::new(), &["path:session"]),
        ("POST", "/v1/sessions/1/renew".into(), r#"{"ttl_ms":1}"#.into(), &["/ttl_ms"]),
        ("GET", "/v1/sessions/-1".into(), String::new(), &["path:session"]),
        ("DELETE", "/v1/sessions/%31%ff".into(), String::new(), &["path:session"]),
        ("GET", "/v1/sessions?limit=0&cursor=a&x".into(), String::new(), &["query:limit", "query:cursor", "query:x"]),
        (
            "POST",
            "/v1/locks/l/acquire".into(),
            r#"{"session":7,"wait_ms":86400001,"poll_ms":60001,"mode":"both","slots":0,"delay_ms":-1,"request_id":"","x":1}"#
                .into(),
            &["/session", "/wait_ms", "/poll_ms", "/mode", "/slots", "/delay_ms", "/request_id", "/x"],
        ),
        ("POST", "/v1/locks/l/acquire".into(), r#"{"mode":"shared","slots":2}"#.into(), &["/session", "/slots"]),
        ("POST", format!("/v1/locks/{long}/acquire"), r#"{"session":"7"}"#.into(), &["path:name"]),
        ("POST", "/v1/locks/%ff/release".into(), "{}".into(), &["path:name"]),
        ("POST", "/v1/locks/l/release".into(), "{}".into(), &[""]),
        ("POST", "/v1/locks/l/release".into(), r#"{"token":1,"session":"2"}"#.into(), &[""]),
        ("POST", "/v1/locks/l/release".into(), r#"{"token":"x","request_id":7}"#.into(), &["/token", "/request_id"]),
        ("GET", "/v1/locks/l/check".into(), String::new(), &["query:token"]),
        ("GET", "/v1/locks/l/check?token=x&y=1".into(), String::new(), &["query:token", "query:y"]),
        ("GET", format!("/v1/locks?cursor={long}"), String::new(), &["query:cursor"]),
        (
            "POST",
            "/v1/elections/e/campaign".into(),
            json!({"value": "v".repeat(65_536), "wait_ms": "1", "poll_ms": 1.5, "delay_ms": 60_001, "slots": 1}).to_string(),
            &["/session", "/value", "/wait_ms", "/poll_ms", "/delay_ms", "/slots"],
        ),
        ("POST", "/v1/elections/e/proclaim".into(), "{}".into(), &["/term", "/value"]),
        ("POST", "/v1/elections/e/resign".into(), r#"{"token":5}"#.into(), &["", "/token"]),
        ("GET", "/v1/elections/e/observe?heartbeat_ms=1&from=2".into(), String::new(), &[
            "query:heartbeat_ms",
            "query:from",
        ]),
        ("POST", "/v1/barriers/b/enter".into(), r#"{"parties":10001,"wait_ms":60001}"#.into(), &[
            "/session", "/parties", "/wait_ms",
        ]),
        ("POST", "/v1/barriers/b/enter".into(), r#"{"session":"1"}"#.into(), &["/parties"]),
        ("POST", "/v1/barriers/b/leave".into(), r#"{"session":null,"parties":3}"#.into(), &["/session", "/parties"]),
        ("PUT", "/v1/latches/l".into(), r#"{"count":0,"by":1}"#.into(), &["/count", "/by"]),
        ("POST", "/v1/latches/l/count_down".into(), r#"{"by":1000000001}"#.into(), &["/by"]),
        ("GET", "/v1/latches/l?wait_ms=60001".into(), String::new(), &["query:wait_ms"]),
        ("GET", "/v1/latches/".into(), String::new(), &["path:name"]),
        ("PUT", "/v1/kv/k?session=x&guard_lock=l&guard_election=e".into(), "1".into(), &[
            "query:session",
            "query:guard_election",
        ]),
        ("PUT", "/v1/kv/k?guard_lock=&guard_token=-1".into(), "1".into(), &["query:guard_lock", "query:guard_token"]),
        ("PUT", "/v1/kv/k?guard_lock=l".into(), "1".into(), &["query:guard_token"]),
        ("DELETE", "/v1/kv/k?session=1&guard_token=1".into(), String::new(), &["query:session", "query:guard_token"]),
        (
            "POST",
            "/v1/ops".into(),
            r#"{"op":"remove","key":"k","session":"1","guard":{"lock":"l","election":"e","token":1}}"#.into(),
            &["/session", "/guard"],
        ),
        ("POST", "/v1/ops".into(), r#"{"op":"get","key":"k","session":"1","guard":{"token":1}}"#.into(), &["/session", "/guard"]),
        (
            "POST",
            "/v1/txn".into(),
            r#"{"then":[{"op":"upsert","key":"k","value":1,"guard":{"lock":"","token":-1,"x":0}}]}"#.into(),
            &["/then/0/guard/lock", "/then/0/guard/token", "/then/0/guard/x"],
        ),
        ("POST", "/v1/claim".into(), r#"{"prefix":"","guard":{"election":"e"}}"#.into(), &["/guard/token"]),
        ("POST", "/v1/delete_where".into(), r#"{"prefix":"","where":[],"guard":7}"#.into(), &["/guard"]),
    ];
    for (method, path, body, pointers) in rows {
        let headers: &[_] = if body.is_empty() { &[] } else { &[JSON] };
        let problem = server.ask(method, &path, headers, body.as_bytes()).await.problem();
        assert_eq!(problem.status, 400, "{method} {path} {body}: {problem:?}");
        let found: Vec<_> = problem.errors.iter().map(|fault| fault.pointer.as_str()).collect();
        assert!(
            tells_all_or_the_first(&found, pointers),
            "{pointers:?} or one of them: {found:?} of {method} {path} {body}"
        );
    }
    let path = "/v1/locks/a/b/acquire";
    assert_eq!(
        post(&server, path, json!({"session": "1"})).await.problem().code,
        ErrorCode::NotFound,
        "encode slashes"
    );
    assert_eq!(server.backend.commands(), []);
}

#[tokio::test]
async fn sessions_are_created_renewed_shown_and_ended() {
    let server = Server::start().await;
    let body = json!({"ttl_ms": 3_000, "owner": "w", "labels": {"z": "1", "a": "2"}, "request_id": "s-1"});
    let made: SessionAnswer = read(&post(&server, "/v1/sessions", body.clone()).await);
    assert_eq!((&*made.session, made.ttl_ms, made.expires_in_ms, made.renew_in_ms), ("2", 3_000, 3_000, 1_000));
    assert!(!made.replayed);
    let command = server.backend.commands().pop().expect("a command came");
    assert_eq!(command.request_id.map(|id| id.0).as_deref(), Some("s-1"));
    let labels = vec![("a".to_owned(), "2".to_owned()), ("z".to_owned(), "1".to_owned())];
    let wanted = SessionOp::Create { ttl_ms: 3_000, owner: "w".into(), labels };
    assert_eq!(command.action, Action::Session(wanted), "labels in order");

    // A retry is told what is true now: the session is renewed, or over.
    server.backend.advance(Duration::from_millis(2_900));
    let again: SessionAnswer = read(&post(&server, "/v1/sessions", body.clone()).await);
    assert_eq!((again.replayed, &*again.session, again.expires_in_ms), (true, "2", 3_000));
    assert_eq!(last_action(&server), Action::Session(SessionOp::Renew(vec![SessionId(2)])));

    let plain: SessionAnswer = read(&server.ask("POST", "/v1/sessions", &[], b"").await);
    assert_eq!((&*plain.session, plain.ttl_ms, &*plain.owner), ("3", 10_000, ""));
    let third = session(&server, 20_000).await;

    server.backend.advance(Duration::from_millis(500));
    let both: RenewAnswer = read(&post(&server, "/v1/sessions/renew", json!({"sessions": ["2", "7"]})).await);
    let [Renewal::Renewed(lives), Renewal::Expired(gone)] = &both.sessions[..] else { panic!("{both:?}") };
    assert_eq!((&*lives.session, lives.expires_in_ms, lives.renew_in_ms), ("2", 3_000, 1_000));
    assert_eq!((&*gone.session, gone.expired), ("7", true));
    // What is no session is not put through the log.
    assert_eq!(last_action(&server), Action::Session(SessionOp::Renew(vec![SessionId(2)])));
    let both: RenewAnswer = read(&post(&server, "/v1/sessions/renew", json!({"sessions": ["7", "3", "7"]})).await);
    let [Renewal::Expired(_), Renewal::Renewed(lives), Renewal::Expired(_)] = &both.sessions[..] else {
        panic!("{both:?}")
    };
    assert_eq!((&*lives.session, lives.expires_in_ms), ("3", 10_000));
    assert_eq!(last_action(&server), Action::Session(SessionOp::Renew(vec![SessionId(3)])));
    let one: RenewedAnswer = read(&server.ask("POST", "/v1/sessions/2/renew", &[], b"").await);
    assert_eq!((&*one.session, one.ttl_ms, one.expires_in_ms), ("2", 3_000, 3_000));
    server.backend.forget_commands();
    let gone = server.ask("POST", "/v1/sessions/7/renew", &[], b"").await.problem();
    assert_eq!((gone.code, server.backend.commands()), (ErrorCode::SessionExpired, vec![]));

    let page: SessionList = read(&server.get("/v1/sessions?limit=2").await);
    assert_eq!((page.sessions.len(), page.cursor.as_deref()), (2, Some("3")));
    assert_eq!((&page.sessions[0].holds, page.sessions[0].revision), (&None, None));
    let rest: SessionList = read(&server.get("/v1/sessions?limit=2&cursor=3").await);
    assert_eq!((rest.sessions.len(), &*rest.sessions[0].session, rest.cursor), (1, &*third, None));

    server.backend.advance(Duration::from_millis(2_999));
    assert_eq!(server.get("/v1/sessions/2").await.status, 200);
    server.backend.advance(Duration::from_millis(1));
    assert_eq!(server.get("/v1/sessions/2").await.problem().code, ErrorCode::NotFound);
    assert_eq!(post(&server, "/v1/sessions", body).await.problem().code, ErrorCode::SessionExpired);
}

#[tokio::test]
async fn a_session_shows_what_hangs_on_it_and_takes_it_away() {
    let server = Server::start().await;
    let (id, other) = (session(&server, 3_000).await, session(&server, 20_000).await);
    let held: AcquireAnswer = read(&post(&server, "/v1/locks/a/acquire", json!({"session": id})).await);
    let _: AcquireAnswer = read(&post(&server, "/v1/locks/b/acquire", json!({"session": other})).await);
    let body = json!({"session": id, "wait_ms": 60_000, "poll_ms": 0});
    let waits: AcquireAnswer = read(&post(&server, "/v1/locks/b/acquire", body).await);
    let led: CampaignAnswer = read(&post(&server, "/v1/elections/e/campaign", json!({"session": id})).await);
    let _: BarrierAnswer = read(&post(&server, "/v1/barriers/bar/enter", json!({"session": id, "parties": 2})).await);
    assert_eq!(server.put_json(&format!("/v1/kv/svc/1?session={id}"), "1").await.status, 201);
    assert_eq!(post(&server, "/v1/tasks/mail", json!({"id": "t1"})).await.status, 201);
    let claimed: TaskClaimAnswer = read(&post(&server, "/v1/tasks/mail/claim", json!({"session": id})).await);
    assert_eq!(claimed.count, 1);

    server.backend.advance(Duration::from_millis(600));
    let view: SessionView = read(&server.get(&format!("/v1/sessions/{id}")).await);
    assert_eq!((view.expires_in_ms, view.age_ms, &*view.created), (2_400, 600, "2023-11-14T22:13:20.000Z"));
    let holds = view.holds.expect("what it holds");
    assert_eq!(
        (holds.count, &holds.keys[..], &holds.barriers[..]),
        (6, &["svc/1".to_owned()][..], &["bar".to_owned()][..])
    );
    assert_eq!(holds.tasks, ["mail/t1"]);
    assert_eq!((holds.locks[0].state, holds.locks[0].token), (LockState::Held, held.token));
    assert_eq!((holds.locks[1].state, holds.locks[1].place), (LockState::Waiting, waits.place));
    assert_eq!((&*holds.elections[0].name, holds.elections[0].token), ("e", led.term));

    let ended: SessionEnded = read(&server.ask("DELETE", &format!("/v1/sessions/{id}"), &[], b"").await);
    assert_eq!((&ended.session, ended.ended, ended.count), (&id, true, 6));
    assert_eq!(last_action(&server), Action::Session(SessionOp::End(SessionId(2))));
    assert_eq!(server.get("/v1/kv/svc/1").await.status, 404);
    let free: AcquireAnswer = read(&post(&server, "/v1/locks/a/acquire", json!({"session": other})).await);
    assert!(free.token > held.token, "{free:?}");
    let gone = server.ask("DELETE", &format!("/v1/sessions/{id}"), &[], b"").await.problem();
    assert_eq!(gone.code, ErrorCode::SessionExpired);
}

#[tokio::test]
async fn locks_are_acquired_and_released() {
    let server = Server::start().await;
    let id = session(&server, 10_000).await;
    let body = json!({"session": id, "wait_ms": 9, "slots": 3, "delay_ms": 70, "max_waiters": 5, "request_id": "l-1"});
    let response = post(&server, "/v1/locks/a%2Fb/acquire", body).await;
    let answer: AcquireAnswer = read(&response);
    assert_eq!((response.status, answer.state, answer.token), (200, LockState::Held, Some(3)));
    assert_eq!((&*answer.lock, &*answer.session, answer.mode), ("a/b", "2", LockMode::Exclusive));
    let (slots, max_waiters) = (Some(3), Some(5));
    let usual = Acquire::of(lock("a/b"), SessionId(2));
    let wanted = Acquire { slots, wait_ms: 9, delay_ms: 70, max_waiters, ..usual };
    assert_eq!(last_action(&server), Action::Lock(LockOp::Acquire(wanted)));

    let given: ReleaseAnswer = read(&post(&server, "/v1/locks/a%2Fb/release", json!({"token": "3"})).await);
    assert!(given.released);
    assert_eq!(last_action(&server), Action::Lock(LockOp::Release { lock: lock("a/b"), token: 3 }), "in a string, too");
    let late = post(&server, "/v1/locks/a%2Fb/release", json!({"token": 3})).await.problem();
    assert_eq!((late.status, late.code), (409, ErrorCode::NotLockHolder));
    let given: ReleaseAnswer = read(&post(&server, "/v1/locks/l/release", json!({"session": "2"})).await);
    assert!(!given.released);
    let leave = LockOp::Leave { lock: lock("l"), session: SessionId(2), asked: None, release: true };
    assert_eq!(last_action(&server), Action::Lock(leave));
}

#[tokio::test]
async fn locks_are_shown_with_their_holders_and_their_queue() {
    let server = Server::start().await;
    let (first, brief, second) =
        (session(&server, 10_000).await, session(&server, 1_000).await, session(&server, 10_000).await);
    let held: AcquireAnswer = read(&post(&server, "/v1/locks/a/acquire", json!({"session": first, "slots": 2})).await);
    let body = json!({"session": brief, "delay_ms": 1_000});
    assert_eq!(post(&server, "/v1/locks/a/acquire", body).await.status, 200);
    let body = json!({"session": second, "wait_ms": 20_000, "poll_ms": 0});
    let waits: AcquireAnswer = read(&post(&server, "/v1/locks/a/acquire", body).await);
    assert_eq!((waits.state, waits.holders.len()), (LockState::Waiting, 0), "nobody asked");
    let body = json!({"session": second, "wait_ms": 0, "with_holders": true});
    let again: AcquireAnswer = read(&post(&server, "/v1/locks/a/acquire", body).await);
    assert_eq!((again.state, again.place, again.holders.len()), (LockState::Waiting, waits.place, 2));
    let shown = &again.holders[0];
    assert_eq!((Some(shown.token), &*shown.owner), (held.token, "w"), "who has to be waited for");
    assert_eq!(post(&server, "/v1/locks/b/acquire", json!({"session": first})).await.status, 200);
    assert_eq!(post(&server, "/v1/elections/e/campaign", json!({"session": first})).await.status, 200);

    // One holder is lost, and its place is kept from others for a while.
    server.backend.advance(Duration::from_millis(1_000));
    server.backend.advance(Duration::from_millis(700));
    let shown: LockAnswer = read(&server.get("/v1/locks/a").await);
    assert_eq!((shown.slots, shown.mode, shown.holder_count, shown.waiter_count), (2, Some(LockMode::Exclusive), 1, 1));
    let holder = &shown.holders[0];
    assert_eq!((Some(holder.token), &*holder.owner, holder.age_ms), (held.token, "w", 1_700));
    let waiter = &shown.queue[0];
    assert_eq!((Some(waiter.place), &waiter.session, waiter.wait_left_ms), (waits.place, &second, 18_300));
    assert_eq!(shown.delay_left_ms, 300);
    let idle: LockAnswer = read(&server.get("/v1/locks/nobody").await);
    assert_eq!((idle.slots, idle.mode, idle.holders.len(), idle.holder_count), (1, None, 0, 0));
    let page: LockList = read(&server.get("/v1/locks?limit=1").await);
    assert_eq!((page.locks.len(), &*page.locks[0].lock, page.cursor.as_deref()), (1, "a", Some("a")));
    let rest: LockList = read(&server.get("/v1/locks?cursor=a").await);
    assert_eq!((rest.locks.len(), rest.cursor), (1, None), "no election among the locks");
    let token = held.token.expect("it holds");
    let check: CheckAnswer = read(&server.get(&format!("/v1/locks/a/check?token={token}")).await);
    assert_eq!((check.held, &check.session), (true, &first));
    let other = server.get("/v1/locks/a/check?token=999").await.problem();
    assert_eq!((other.code, other.status), (ErrorCode::GuardFailed, 412));
    let elections: ElectionList = read(&server.get("/v1/elections").await);
    assert_eq!((elections.elections.len(), elections.elections[0].has_leader), (1, true));

    server.backend.advance(Duration::from_millis(300));
    let shown: LockAnswer = read(&server.get("/v1/locks/a").await);
    assert_eq!((shown.holder_count, shown.waiter_count, shown.delay_left_ms), (2, 0, 0));
}

#[tokio::test]
async fn leaders_are_elected_speak_and_resign() {
    let server = Server::start().await;
    let id = session(&server, 10_000).await;
    let nobody: ElectionAnswer = read(&server.get("/v1/elections/e").await);
    assert_eq!((nobody.leader, nobody.candidate_count), (None, 0));
    let body = json!({"session": id, "value": {"a": 1}});
    let won: CampaignAnswer = read(&post(&server, "/v1/elections/e/campaign", body).await);
    assert_eq!((won.state, won.term, &*won.session), (CampaignState::Leader, Some(3), "2"));
    let Action::Lock(LockOp::Acquire(request)) = last_action(&server) else { panic!("no campaign") };
    assert_eq!((request.lock, request.slots, request.wait_ms), (election("e"), None, 0));
    assert_eq!(request.value.map(|value| value.data).as_deref(), Some(&br#"{"a":1}"#[..]));
    server.backend.advance(Duration::from_millis(700));
    let shown: ElectionAnswer = read(&server.get("/v1/elections/e").await);
    let leader = shown.leader.expect("a leader");
    assert_eq!((leader.term, &*leader.session, leader.age_ms), (3, "2", 700));
    assert_eq!(leader.value.map(|value| value.0.get().to_owned()).as_deref(), Some(r#"{"a":1}"#));

    let said: ProclaimAnswer =
        read(&post(&server, "/v1/elections/e/proclaim", json!({"term": 3, "value": null})).await);
    assert_eq!(said.term, 3);
    let value = Value { kind: ContentKind::Json, data: b"null".to_vec() };
    assert_eq!(last_action(&server), Action::Lock(LockOp::Proclaim { lock: election("e"), token: 3, value }));
    let given: ResignAnswer = read(&post(&server, "/v1/elections/e/resign", json!({"term": 3})).await);
    assert!(given.resigned);
    assert_eq!(last_action(&server), Action::Lock(LockOp::Release { lock: election("e"), token: 3 }));
    let late = post(&server, "/v1/elections/e/proclaim", json!({"term": 3, "value": 1})).await.problem();
    assert_eq!(late.code, ErrorCode::NotLockHolder);
    let nobody: ElectionAnswer = read(&server.get("/v1/elections/e").await);
    assert_eq!((nobody.leader, nobody.candidate_count), (None, 0));
}

#[tokio::test]
async fn barriers_and_latches_are_shown_as_they_are() {
    let server = Server::start().await;
    let (one, two) = (session(&server, 10_000).await, session(&server, 10_000).await);
    let empty: BarrierAnswer = read(&server.get("/v1/barriers/b").await);
    assert_eq!((empty.state, empty.entered), (BarrierState::Empty, 0));
    let enter = async |id: &str| post(&server, "/v1/barriers/b/enter", json!({"session": id, "parties": 2})).await;
    assert_eq!(enter(&one).await.status, 202);
    let op = BarrierOp::Enter { name: name("b"), session: SessionId(2), parties: 2 };
    assert_eq!(last_action(&server), Action::Barrier(op));
    let waiting: BarrierAnswer = read(&server.get("/v1/barriers/b").await);
    assert_eq!((waiting.state, waiting.entered, waiting.parties), (BarrierState::Waiting, 1, Some(2)));
    let entered: BarrierAnswer = read(&enter(&two).await);
    assert_eq!((entered.state, entered.entered, entered.opened_revision), (BarrierState::Open, 2, Some(5)));
    let leave = async |id: &str| post(&server, "/v1/barriers/b/leave", json!({"session": id})).await;
    assert_eq!(leave(&one).await.status, 202, "the other has not left");
    assert_eq!(last_action(&server), Action::Barrier(BarrierOp::Leave { name: name("b"), session: SessionId(2) }));
    let response = leave(&two).await;
    let left: BarrierAnswer = read(&response);
    assert_eq!((response.status, left.state, left.parties), (200, BarrierState::Empty, None));

    let made: LatchAnswer = read(&server.put_json("/v1/latches/l", r#"{"count":3}"#).await);
    assert_eq!((made.count, made.left, made.open), (3, 3, false));
    assert_eq!(last_action(&server), Action::Latch(LatchOp::Create { name: name("l"), count: 3 }));
    let down: LatchAnswer = read(&server.ask("POST", "/v1/latches/l/count_down", &[], b"").await);
    assert_eq!((down.left, down.open, down.opened_revision), (2, false, None));
    assert_eq!(last_action(&server), Action::Latch(LatchOp::CountDown { name: name("l"), by: 1 }));
    let down: LatchAnswer = read(&post(&server, "/v1/latches/l/count_down", json!({"by": 2})).await);
    assert_eq!((down.left, down.open, down.opened_revision), (0, true, Some(10)));
    let problem = server.get("/v1/latches/none").await.problem();
    assert_eq!(problem.code, ErrorCode::NotFound);
    let removed: LatchRemoved = read(&server.ask("DELETE", "/v1/latches/l", &[], b"").await);
    assert_eq!(removed.latch, "l");
    let problem = server.ask("DELETE", "/v1/latches/l", &[], b"").await.problem();
    assert_eq!(problem.detail, "there is no latch `l`");
}

#[tokio::test]
async fn every_refusal_has_its_code() {
    let server = Server::start().await;
    let guard = Box::new(Guard { lock: lock("l"), token: 5 });
    let rows = [
        (Rejection::SessionExpired(SessionId(4)), 409, ErrorCode::SessionExpired),
        (Rejection::GuardFailed { guard, holder: Some(7) }, 412, ErrorCode::GuardFailed),
        (Rejection::Held { holders: 1, waiters: 2, delay_ms: 30 }, 423, ErrorCode::Locked),
        (Rejection::QueueLong { holders: 1, waiters: 2, most: 1 }, 423, ErrorCode::Locked),
        (Rejection::NotHolder, 409, ErrorCode::NotLockHolder),
        (Rejection::AnotherPlace { is_holder: false, at: 6 }, 409, ErrorCode::AlreadyQueued),
        (Rejection::OtherNumber(3), 409, ErrorCode::DifferentSettings),
        (Rejection::BarrierOpen, 423, ErrorCode::Locked),
        (Rejection::TooMany { what: Bounded::Waiters, limit: 9 }, 413, ErrorCode::TooLarge),
    ];
    for (rejection, status, code) in rows {
        server.backend.reject_writes(rejection.clone());
        for (route, body) in [
            ("/v1/sessions", json!({})),
            ("/v1/locks/l/acquire", json!({"session": "4"})),
            ("/v1/locks/l/release", json!({"token": 4})),
            ("/v1/elections/l/campaign", json!({"session": "4"})),
            ("/v1/elections/l/proclaim", json!({"term": 4, "value": 1})),
            ("/v1/elections/l/resign", json!({"session": "4"})),
            ("/v1/barriers/l/enter", json!({"session": "4", "parties": 2})),
            ("/v1/barriers/l/leave", json!({"session": "4"})),
            ("/v1/latches/l/count_down", json!({})),
            ("/v1/ops", json!({"op": "remove", "key": "l"})),
        ] {
            let problem = post(&server, route, body).await.problem();
            assert_eq!((problem.status, problem.code), (status, code), "{rejection:?} of {route}");
        }
    }
    let queue_long = Rejection::QueueLong { holders: 1, waiters: 2, most: 1 };
    for rejection in [Rejection::Held { holders: 1, waiters: 2, delay_ms: 0 }, queue_long] {
        server.backend.reject_writes(rejection);
        let problem = post(&server, "/v1/locks/l/acquire", json!({"session": "4"})).await.problem();
        assert_eq!((problem.holders, problem.waiters, problem.retry_after_ms), (Some(1), Some(2), None));
    }
}

#[tokio::test]
async fn a_write_carries_its_session_and_its_guard() {
    let server = Server::start().await;
    let guard = |lock| Some(Box::new(Guard { lock, token: 43 }));
    server.put_json("/v1/kv/k?session=42&guard_lock=a%2Fb&guard_token=43", "1").await;
    let op = server.backend.last_op();
    assert_eq!((op.session, op.guard), (Some(SessionId(42)), guard(lock("a/b"))));
    server.ask("DELETE", "/v1/kv/k?guard_election=e&guard_token=43", &[], b"").await;
    assert_eq!(server.backend.last_op().guard, guard(election("e")));
    let body =
        json!({"op": "upsert", "key": "k", "value": 1, "session": "42", "guard": {"election": "e", "token": "43"}});
    post(&server, "/v1/ops", body).await;
    let op = server.backend.last_op();
    assert_eq!((op.session, op.guard), (Some(SessionId(42)), guard(election("e"))));
    let body =
        json!({"ops": [{"op": "touch", "key": "k", "ttl_ms": 1, "session": "7", "guard": {"lock": "l", "token": 43}}]});
    post(&server, "/v1/bulk", body).await;
    let Action::Bulk(ops) = last_action(&server) else { panic!("no bulk") };
    assert_eq!((ops[0].session, &ops[0].guard), (Some(SessionId(7)), &guard(lock("l"))));
    post(&server, "/v1/claim", json!({"prefix": "", "guard": {"lock": "l", "token": 43}})).await;
    let Action::Claim(op) = last_action(&server) else { panic!("no claim") };
    assert_eq!(op.guard, guard(lock("l")));
    post(&server, "/v1/delete_where", json!({"prefix": "", "where": [], "guard": {"lock": "l", "token": 43}})).await;
    let Action::Where(op) = last_action(&server) else { panic!("no change of all that matches") };
    assert_eq!(op.guard, guard(lock("l")));
}
