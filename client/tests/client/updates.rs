//! The optimistic update loop.

use std::time::Duration;

use quorate_client::api::{Applied, ErrorCode, Guard, OpKind, Problem, TtlRule};
use quorate_client::{Error, Updated};
use serde_json::json;

use crate::fake::{Act, Fake, entry};

fn lost(code: ErrorCode, current: Option<(u64, &str)>) -> Act {
    let mut problem = Problem::new(code, Applied::No, "somebody was faster");
    problem.current =
        current.map(|(n, cas)| serde_json::from_value(entry("k", &json!({"n": n}), cas)).expect("an entry"));
    problem.index = Some(10);
    Act::refuse(problem)
}

fn bump(current: Option<serde_json::Value>) -> Option<serde_json::Value> {
    let n = current.map_or(0, |document| document["n"].as_u64().expect("a number"));
    Some(json!({"n": n + 1}))
}

#[tokio::test]
async fn a_lost_race_is_run_again_on_the_entry_that_the_refusal_brought() {
    let (fake, client) = Fake::with_client().await;
    let read = Act::Answer(200, entry("k", &json!({"n": 1}), "7").to_string());
    fake.script([read, lost(ErrorCode::CasMismatch, Some((5, "9"))), lost(ErrorCode::CasMismatch, Some((6, "10")))]);
    let updated = client.update("k", bump).await.expect("the third try wins");
    let Updated::Written { value, tries, .. } = updated else { panic!("{updated:?}") };
    assert_eq!((value, tries), (json!({"n": 7}), 3));
    let writes = &fake.seen()[1..];
    let matches: Vec<_> = writes.iter().map(|seen| seen.cas().expect("always on a cas")).collect();
    assert_eq!(matches, ["7", "9", "10"]);
    assert_ne!(writes[0].id, writes[1].id, "another body is another request");
}

#[tokio::test]
async fn an_entry_that_is_not_there_is_created_and_a_rival_creation_is_seen() {
    let (fake, client) = Fake::with_client().await;
    let missing = Act::problem(ErrorCode::NotFound, Applied::No);
    fake.script([missing, lost(ErrorCode::AlreadyExists, Some((3, "4")))]);
    let updated = client.update("k", bump).await.expect("the second try wins");
    assert_eq!(updated.written(), Some(json!({"n": 4})));
    assert_eq!(fake.seen()[1].op.as_ref().expect("an operation").op, OpKind::Insert);
}

#[tokio::test]
async fn an_entry_removed_meanwhile_is_read_again() {
    let (fake, client) = Fake::with_client().await;
    let read = Act::Answer(200, entry("k", &json!({"n": 1}), "7").to_string());
    fake.script([read, lost(ErrorCode::NotFound, None), Act::problem(ErrorCode::NotFound, Applied::No)]);
    let updated = client.update("k", bump).await.expect("created anew");
    assert_eq!(updated.written(), Some(json!({"n": 1})));
}

#[tokio::test]
async fn an_update_gives_up_after_its_tries_and_says_how_many() {
    let (fake, client) = Fake::with_client().await;
    fake.script([Act::Answer(200, entry("k", &json!({"n": 1}), "7").to_string())]);
    fake.script(vec![lost(ErrorCode::CasMismatch, Some((2, "9"))); 3]);
    let error = client.update("k", bump).tries(3).await.expect_err("always lost");
    assert!(matches!(error, Error::Contended { tries: 3, .. }), "{error:?}");
    assert!(error.to_string().contains("3 tries"), "{error}");
    assert_eq!((error.applied(), fake.seen().len()), (Applied::No, 4));
}

#[tokio::test]
async fn an_update_may_decide_to_leave_things_as_they_are() {
    let (fake, client) = Fake::with_client().await;
    let updated = client.update("k", |_: Option<serde_json::Value>| None).await.expect("nothing to do");
    assert_eq!((updated, fake.seen().len()), (Updated::Unchanged, 1));
}

#[tokio::test]
async fn an_update_of_unknown_fate_is_not_run_again() {
    let (fake, client) = Fake::with_client().await;
    fake.script([Act::Answer(200, entry("k", &json!({"n": 1}), "7").to_string())]);
    fake.script([Act::Reset, Act::problem(ErrorCode::QuotaExceeded, Applied::No)]);
    let mut calls = 0;
    let outcome = client
        .update("k", |document| {
            calls += 1;
            bump(document)
        })
        .await;
    assert!(matches!(outcome, Err(Error::Unknown(_))), "{outcome:?}");
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn an_update_keeps_the_session_and_the_time_to_live_of_the_entry() {
    let (fake, client) = Fake::with_client().await;
    let mut lives = entry("k", &json!({"n": 1}), "7");
    lives["ttl_ms"] = json!(4_000);
    lives["session"] = json!("17");
    fake.script([Act::Answer(200, lives.to_string())]);
    client.update("k", bump).await.expect("it is written");
    let op = fake.seen().pop().and_then(|seen| seen.op).expect("an operation");
    let kept = Some(TtlRule::Keep);
    assert_eq!((op.ttl, op.ttl_ms, op.session.as_deref()), (kept, None, Some("17")), "no time is given back: {op:?}");

    fake.script([Act::Answer(200, entry("k", &json!({"n": 1}), "7").to_string())]);
    client.update("k", bump).await.expect("it is written");
    let op = fake.seen().pop().and_then(|seen| seen.op).expect("an operation");
    assert_eq!((op.ttl, op.ttl_ms, op.session), (kept, None, None), "it gets none from its collection");
}

#[tokio::test]
async fn an_update_leaves_bytes_as_they_are() {
    let (fake, client) = Fake::with_client().await;
    let mut bytes = entry("k", &json!(null), "7");
    let fields = bytes.as_object_mut().expect("an object");
    fields.remove("value");
    fields.insert("value_base64".into(), json!("AAEC"));
    fields.insert("content_type".into(), json!("bytes"));
    fake.script([Act::Answer(200, bytes.to_string())]);
    let error = client.update("k", |_: Option<serde_json::Value>| Some(json!({"n": 1}))).await;
    let error = error.expect_err("bytes are no JSON");
    assert!(matches!(error, Error::Value(_)), "{error:?}");
    assert_eq!(fake.seen().len(), 1, "nothing was written");
}

#[tokio::test]
async fn an_update_takes_a_guard_a_session_and_a_time_of_its_own() {
    let (fake, client) = Fake::with_client().await;
    fake.script([Act::Answer(200, entry("k", &json!({"n": 1}), "7").to_string())]);
    let update = client.update("k", bump).guarded_by(Guard::lock("l", 9)).session("3").ttl(Duration::from_secs(2));
    update.await.expect("it is written");
    let op = fake.seen().pop().and_then(|seen| seen.op).expect("an operation");
    assert_eq!(op.ttl, None, "{op:?}");
    assert_eq!((op.ttl_ms, op.session.as_deref(), op.guard), (Some(2_000), Some("3"), Some(Guard::lock("l", 9))));
}

#[tokio::test]
async fn a_locked_entry_is_said_to_be_locked_and_may_be_updated_later() {
    let (fake, client) = Fake::with_client().await;
    let mut locked = entry("k", &json!({"n": 1}), "7");
    (locked["cas"], locked["locked"], locked["lock_ms"]) = (json!(null), json!(true), json!(900));
    fake.script([Act::Answer(200, locked.to_string())]);
    let read = client.update("k", bump).await.expect_err("locked when it was read");
    fake.script([Act::Answer(200, entry("k", &json!({"n": 1}), "7").to_string()), lost(ErrorCode::Locked, None)]);
    let written = client.update("k", bump).await.expect_err("locked when it was written");
    for error in [&read, &written] {
        assert!(matches!(error, Error::Locked { key, .. } if key == "k"), "{error:?}");
        assert_eq!((error.code(), error.applied()), (Some(ErrorCode::Locked), Applied::No));
        assert!(error.is_retryable() && error.to_string().contains("is locked by somebody else"), "{error}");
    }
    assert!(matches!(read, Error::Locked { lock_left: Some(left), .. } if left == Duration::from_millis(900)));
    assert_eq!(fake.seen().len(), 3);
}
