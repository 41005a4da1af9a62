//! `POST /v1/txn`: what it becomes, and how each of its ends is told.

use quorate_api::{Applied, Cas, ErrorCode, TxnAnswer, TxnResult};
use quorate_machine::types::{Action, Expect, Outcome, Rejection, RequestId, StepRejected};
use quorate_node_core::backend::Consistency;
use serde_json::json;

use crate::raw::Server;

const JSON: (&str, &str) = ("Content-Type", "application/json");
const ID: (&str, &str) = ("Idempotency-Key", "t-1");

const BODY: &[u8] =
    br#"{"if":[{"key":"a","exists":true},{"key":"b","cas":"3","if":[{"field":"n","op":"gt","value":1}]}],
    "then":[{"op":"update","key":"a","patch":{"n":2}},{"op":"get","key":"b"}],
    "else":[{"op":"txn","then":[{"op":"remove","key":"a","if":[{"field":"n","op":"exists"}]}]}]}"#;

/// A server with the entries `a`, at cas 2, and `b`, at cas 3.
async fn server(a: &str, b: &str) -> Server {
    let server = Server::start().await;
    for (path, value) in [("/v1/kv/a", a), ("/v1/kv/b", b)] {
        assert_eq!(server.put_json(path, value).await.status, 201);
    }
    server
}

#[tokio::test]
async fn the_branch_that_was_taken_is_told_step_by_step() {
    let server = server("{}", r#"{"n":2}"#).await;
    for replayed in [false, true] {
        let response = server.ask("POST", "/v1/txn", &[JSON, ID], BODY).await;
        response.carries_the_common_headers();
        let answer: TxnAnswer = serde_json::from_slice(&response.body).expect("a TxnAnswer");
        assert!(answer.succeeded && answer.failed.is_empty() && !answer.dry_run);
        let [TxnResult::Written(first), TxnResult::Read(second)] = &answer.results[..] else { panic!("{answer:?}") };
        assert_eq!((first.key.text(), first.cas, answer.replayed), (Some("a"), Some(Cas::new(4)), replayed));
        assert_eq!(second.entry.as_ref().expect("there").value.as_ref().expect("JSON").0.get(), "{\"n\":2}");
    }
    assert_eq!(server.get("/v1/kv/a").await.json()["value"], json!({"n": 2}));

    let command = server.backend.commands().pop().expect("it writes");
    assert_eq!(command.request_id, Some(RequestId("t-1".into())));
    let Action::Txn(txn) = command.action else { panic!("{command:?}") };
    let expected: Vec<_> = txn.checks.iter().map(|check| check.expect.clone()).collect();
    assert_eq!(expected, [Expect::PRESENT, Expect::cas(3)]);
}

#[tokio::test]
async fn a_refused_step_is_a_problem_that_names_it() {
    let server = server("{}", r#"{"n":1}"#).await;
    let problem = server.ask("POST", "/v1/txn", &[JSON], BODY).await.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::ConditionNotMet, Applied::No));
    assert_eq!(problem.failed[0].pointer, "/else/0/then/0/if/0");
    assert!(problem.detail.starts_with("/else/0/then/0: `a` "), "{}", problem.detail);
    assert_eq!(problem.current.expect("as it is").key, "a");

    let why = Rejection::TooMuch { limit: 16 };
    server.backend.come_to(Outcome::TxnRejected(Box::new(StepRejected { pointer: String::new(), key: None, why })));
    let problem = server.ask("POST", "/v1/txn", &[JSON], BODY).await.problem();
    assert_eq!(problem.code, ErrorCode::TooLarge);
    assert!(problem.detail.contains("more than the 16 bytes"), "{}", problem.detail);
}

#[tokio::test]
async fn what_cannot_write_is_a_read_and_what_is_only_tried_is_too() {
    let server = Server::start().await;
    let reads = br#"{"if":[{"key":"a","exists":false}],"then":[{"op":"get","key":"a"}]}"#;
    let answer = server.ask("POST", "/v1/txn", &[JSON, ID], reads).await.json();
    assert_eq!(
        (&answer["results"][0]["entry"], &answer["dry_run"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    assert_eq!(server.backend.commands(), []);
    server.put_json("/v1/kv/a", "{}").await;
    for (path, body) in [
        ("/v1/txn?dry_run", &br#"{"then":[{"op":"remove","key":"a"}]}"#[..]),
        ("/v1/txn", br#"{"then":[{"op":"remove","key":"a"}],"dry_run":true}"#),
    ] {
        assert_eq!(server.ask("POST", path, &[JSON, ID], body).await.json()["dry_run"], true);
    }
    assert_eq!(server.backend.asked(), 1, "that was the entry");
    assert_eq!(server.backend.barriers(), [Consistency::Linearizable; 3]);
}

#[tokio::test]
async fn get_and_touch_answers_with_the_entry_as_it_is_now() {
    let server = Server::start().await;
    server.put_json("/v1/kv/k?ttl_ms=100", "{\"a\": 1.0}").await;
    let touch = |more: &str| format!(r#"{{"op":"get_and_touch","key":"k","ttl_ms":900{more}}}"#).into_bytes();
    let tried = server.ask("POST", "/v1/ops", &[JSON], &touch(r#","dry_run":true"#)).await;
    assert_eq!((tried.json()["ttl_ms"].as_u64(), tried.header("etag")), (Some(900), None));
    let at = ["cas", "mod_revision", "revision"].map(|field| tried.json()[field].clone());
    assert_eq!(at, [json!("2"), json!("2"), json!("2")], "it made no revision");
    for replayed in [false, true] {
        let response = server.ask("POST", "/v1/ops", &[JSON, ID, ("Prefer", "return=minimal")], &touch("")).await;
        let entry: quorate_api::EntryView = serde_json::from_slice(&response.body).expect("an EntryView");
        assert_eq!(entry.value.expect("JSON").0.get(), "{\"a\": 1.0}");
        assert_eq!((entry.ttl_ms, entry.version, entry.cas), (Some(900), 2, Some(Cas::new(3))));
        assert_eq!((entry.revision, entry.index, entry.replayed), (Some(3), Some(103), replayed));
        assert_eq!(response.header("etag"), Some("\"3\""));
    }
}

#[tokio::test]
async fn get_and_lock_answers_with_the_entry_and_the_key_to_its_lock() {
    let server = Server::start().await;
    server.put_json("/v1/kv/k", "{\"a\": 1.0}").await;
    let lock = |more: &str| format!(r#"{{"op":"get_and_lock","key":"k","lock_ms":30001{more}}}"#).into_bytes();
    let tried = server.ask("POST", "/v1/ops", &[JSON], &lock(r#","dry_run":true"#)).await;
    let shown = tried.json();
    assert_eq!((&shown["cas"], &shown["locked"], &shown["value"]["a"]), (&json!(null), &json!(true), &json!(1.0)));
    assert_eq!(tried.header("etag"), None, "nothing is locked");
    let mut keys = Vec::new();
    for replayed in [false, true] {
        let response = server.ask("POST", "/v1/ops", &[JSON, ID, ("Prefer", "return=minimal")], &lock("")).await;
        let entry: quorate_api::EntryView = serde_json::from_slice(&response.body).expect("an EntryView");
        assert_eq!(entry.value.expect("JSON").0.get(), "{\"a\": 1.0}");
        assert_eq!((entry.locked, entry.lock_ms), (true, Some(15_000)));
        assert_eq!((entry.version, entry.mod_revision, entry.replayed), (1, 2, replayed));
        let key = entry.cas.expect("the key of the lock");
        assert_eq!(response.header("etag"), Some(format!("\"{key}\"").as_str()));
        keys.push(key);
    }
    assert_eq!(keys[0], keys[1]);
    let lock = |more: &str| format!(r#"{{"op":"get_and_lock","key":"k"{more}}}"#).into_bytes();
    for (more, pointer) in
        [(r#","ttl_ms":5"#, "/ttl_ms"), (r#","session":"3""#, "/session"), (r#","value":1"#, "/value")]
    {
        let problem = server.ask("POST", "/v1/ops", &[JSON], &lock(more)).await.problem();
        assert_eq!(problem.errors[0].pointer, pointer);
    }
}
