//! Sessions, locks, elections, barriers and latches: what only the log shows. Transcripts show the rest, but how requests wait, which is
//! in `waits`.

use quorate_api::{ErrorCode, RenewAnswer, SessionAnswer};
use quorate_machine::limits::LOCK_WAITERS_MAX;
use quorate_machine::types::{Action, Bounded, Guard, LockName, LockSpace, Name, Rejection, SessionId, SessionOp};
use serde_json::json;

use crate::raw::{Server, post, read};

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

#[tokio::test]
async fn what_is_no_session_is_not_put_through_the_log() {
    let server = Server::start().await;
    let id = session(&server, 10_000).await;
    for sessions in [json!([id, "7"]), json!(["7", id, "7"])] {
        let _: RenewAnswer = read(&post(&server, "/v1/sessions/renew", json!({"sessions": sessions})).await);
        assert_eq!(server.last_action(), Action::Session(SessionOp::Renew(vec![SessionId(2)])));
    }
    server.backend.forget_commands();
    let gone = server.ask("POST", "/v1/sessions/7/renew", &[], b"").await.problem();
    assert_eq!((gone.code, server.backend.commands()), (ErrorCode::SessionExpired, vec![]));
}

#[tokio::test]
async fn every_refusal_has_its_code() {
    let server = Server::start().await;
    let guard = Box::new(Guard { lock: lock("l"), token: 5 });
    let rows = [
        (Rejection::SessionExpired(SessionId(4)), 409, ErrorCode::SessionExpired),
        (Rejection::GuardFailed { guard, holder: Some(7) }, 412, ErrorCode::GuardFailed),
        (Rejection::Held { holders: 1, waiters: 2, delay_ms: 30 }, 423, ErrorCode::Locked),
        (Rejection::QueueLong { holders: 1, waiters: 2, most: 1, delay_ms: 30 }, 423, ErrorCode::Locked),
        (Rejection::NotHolder, 409, ErrorCode::NotLockHolder),
        (Rejection::AnotherPlace { is_holder: false, at: 6 }, 409, ErrorCode::AlreadyQueued),
        (Rejection::OtherNumber(3), 409, ErrorCode::DifferentSettings),
        (Rejection::BarrierOpen, 423, ErrorCode::Locked),
        (Rejection::TooMany { what: Bounded::Attached, limit: 9 }, 413, ErrorCode::TooLarge),
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
    for (delay_ms, left) in [(0, None), (30, Some(30))] {
        let queue_long = Rejection::QueueLong { holders: 1, waiters: 2, most: 1, delay_ms };
        for rejection in [Rejection::Held { holders: 1, waiters: 2, delay_ms }, queue_long] {
            server.backend.reject_writes(rejection);
            let problem = post(&server, "/v1/locks/l/acquire", json!({"session": "4"})).await.problem();
            assert_eq!((problem.holders, problem.waiters, problem.retry_after_ms), (Some(1), Some(2), left));
        }
    }
    for (most, why) in [(7, "; `max_waiters` of the request is 7"), (LOCK_WAITERS_MAX, "; a queue has no more places")]
    {
        server.backend.reject_writes(Rejection::QueueLong { holders: 1, waiters: most, most, delay_ms: 0 });
        let problem = post(&server, "/v1/locks/l/acquire", json!({"session": "4"})).await.problem();
        assert!(problem.detail.ends_with(why), "{}", problem.detail);
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
    let Action::Bulk(ops) = server.last_action() else { panic!("no bulk") };
    assert_eq!((ops[0].session, &ops[0].guard), (Some(SessionId(7)), &guard(lock("l"))));
    post(&server, "/v1/claim", json!({"prefix": "", "guard": {"lock": "l", "token": 43}})).await;
    let Action::Claim(op) = server.last_action() else { panic!("no claim") };
    assert_eq!(op.guard, guard(lock("l")));
    post(&server, "/v1/delete_where", json!({"prefix": "", "where": [], "guard": {"lock": "l", "token": 43}})).await;
    let Action::Where(op) = server.last_action() else { panic!("no change of all that matches") };
    assert_eq!(op.guard, guard(lock("l")));
}
