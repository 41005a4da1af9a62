//! One call: which failures are retried, under which id, and what the caller is told in the end.

use std::time::{Duration, Instant};

use futures::TryStreamExt;
use quorate_client::api::{Applied, ErrorCode, Name, Problem};
use quorate_client::{Cas, Change, Client, Error, Protocol, RetryPolicy, Value};
use serde_json::json;

use crate::SOON;
use crate::fake::{Act, Fake, entry, nobody};

fn one() -> Value {
    Value::json(&1).expect("has JSON")
}

fn replayed() -> Act {
    let body = json!({"key": "k", "revision": "8", "index": 10, "cas": "8", "replayed": true});
    Act::Answer(200, body.to_string())
}

/// The ids of all requests seen; asserts that each had one.
fn ids(fake: &Fake) -> Vec<String> {
    fake.seen().into_iter().map(|seen| seen.id.expect("a write is never sent without an id")).collect()
}

#[tokio::test]
async fn a_write_keeps_its_id_over_resets_refusals_and_unknown_fates() {
    let (fake, client) = Fake::with_client().await;
    fake.script([
        Act::Reset,
        Act::problem(ErrorCode::NoLeader, Applied::No),
        Act::problem(ErrorCode::Timeout, Applied::Unknown),
        Act::Answer(502, "<html>bad gateway</html>".into()),
        replayed(),
    ]);
    let answer = client.put("k", one()).await.expect("the last try succeeds");
    assert!(answer.replayed);
    let ids = ids(&fake);
    assert_eq!(ids.len(), 5);
    assert!(ids.iter().all(|id| *id == ids[0] && id.len() == 20), "{ids:?}");
}

#[tokio::test]
async fn a_write_without_answer_by_its_deadline_is_of_unknown_fate_and_says_its_id() {
    let (fake, client) = Fake::with_client().await;
    fake.script([Act::Slow(Duration::from_secs(20))]);
    let started = Instant::now();
    let error = client.put("k", one()).timeout(Duration::from_secs(2)).await.expect_err("no answer");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    assert!(matches!(error, Error::Unknown(_)), "{error:?}");
    assert_eq!((error.applied(), error.request_id()), (Applied::Unknown, Some(&*ids(&fake)[0])));
    assert!((1_000..=2_000).contains(&fake.seen()[0].timeout_ms), "the node knows the deadline: {:?}", fake.seen());
}

#[tokio::test]
async fn a_read_without_answer_is_just_unavailable() {
    let (fake, client) = Fake::with_client().await;
    fake.script([Act::Slow(Duration::from_secs(5))]);
    let error = client.get("k").timeout(Duration::from_millis(200)).await.expect_err("no answer");
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert_eq!((error.applied(), error.is_retryable()), (Applied::No, true));
}

#[tokio::test]
async fn a_slow_node_is_left_for_another_within_the_deadline() {
    let (slow, quick) = (Fake::start().await, Fake::start().await);
    slow.script(vec![Act::Slow(Duration::from_secs(9)); 2]);
    let endpoints = format!("{},{}", slow.address, quick.address);
    let builder = Client::builder().endpoints(endpoints).attempt_timeout(SOON);
    let client = builder.build().expect("endpoints");
    for _ in 0..2 {
        client.put("k", one()).await.expect("one node is quick");
    }
    assert!(ids(&quick).starts_with(&ids(&slow)) || ids(&quick).ends_with(&ids(&slow)), "{slow:?} {quick:?}");
}

#[tokio::test]
async fn a_write_that_reached_no_node_is_not_applied() {
    let client = Client::new(nobody()).expect("an endpoint");
    let error = client.put("k", one()).timeout(Duration::from_secs(1)).await.expect_err("nobody is there");
    let Error::Unavailable(gave_up) = &error else { panic!("{error:?}") };
    assert!(gave_up.attempts > 1, "{gave_up:?}");
    assert_eq!(error.applied(), Applied::No);
}

#[tokio::test]
async fn a_refusal_at_the_door_does_not_settle_an_earlier_try() {
    let (fake, client) = Fake::with_client().await;
    fake.script([Act::Reset, Act::problem(ErrorCode::QuotaExceeded, Applied::No)]);
    let error = client.put("k", one()).await.expect_err("refused");
    assert_eq!(error.applied(), Applied::Unknown, "the first try may have been applied: {error:?}");
    fake.script([Act::problem(ErrorCode::QuotaExceeded, Applied::No)]);
    let error = client.put("k", one()).await.expect_err("refused");
    assert_eq!(error.applied(), Applied::No);
}

#[tokio::test]
async fn with_retries_off_there_is_one_try() {
    let fake = Fake::start().await;
    let client = Client::builder().endpoints(&fake.address).retry(RetryPolicy::never()).build().expect("an endpoint");
    fake.script([Act::problem(ErrorCode::NoLeader, Applied::No)]);
    let error = client.put("k", one()).await.expect_err("no second try");
    assert_eq!((error.applied(), fake.seen().len()), (Applied::No, 1));
}

#[tokio::test]
async fn what_has_no_id_is_not_repeated_once_it_may_have_happened() {
    let (fake, client) = Fake::with_client().await;
    fake.script([Act::problem(ErrorCode::NotReady, Applied::No), Act::Reset]);
    let error = client.transfer_leader(Some(2)).await.expect_err("reset");
    assert_eq!((error.applied(), fake.seen().len()), (Applied::Unknown, 2));
    assert_eq!(fake.seen()[1].body, r#"{"to":2}"#);
}

#[tokio::test]
async fn nonsense_is_a_protocol_error_and_never_a_panic() {
    let (fake, client) = Fake::with_client().await;
    let html = "<html>hello</html>";
    for (status, applied) in [(200, Applied::Unknown), (404, Applied::No), (301, Applied::No)] {
        fake.script([Act::Answer(status, html.into())]);
        let error = client.put("k", one()).await.expect_err("nonsense");
        assert!(matches!(error, Error::Protocol { .. }), "{status}: {error:?}");
        assert_eq!(error.applied(), applied, "{status}");
    }
    fake.script([Act::Answer(200, "{}".into())]);
    assert!(matches!(client.get("k").await, Err(Error::Protocol { applied: Applied::No, .. })));
}

#[tokio::test]
async fn a_missing_entry_is_none_but_a_missing_path_is_an_error() {
    let (fake, client) = Fake::with_client().await;
    fake.script([Act::problem(ErrorCode::NotFound, Applied::No)]);
    assert_eq!(client.get("k").await.expect("a definite answer"), None);
    let mut no_path = Problem::new(ErrorCode::NotFound, Applied::No, "no such path");
    no_path.errors.push(quorate_client::api::InputFault { pointer: "path:".into(), detail: "none".into() });
    fake.script([Act::refuse(no_path)]);
    assert!(client.get("k").await.is_err());
}

#[tokio::test]
async fn kept_connections_that_the_node_closed_cost_nothing() {
    let (fake, client) = Fake::with_client().await;
    let crowd = |count| futures::future::join_all((0..count).map(|_| client.put("k", one()).into_future()));
    assert!(crowd(4).await.iter().all(Result::is_ok));
    fake.hang_up().await;
    assert!(crowd(4).await.iter().all(Result::is_ok));
    let mut ids = ids(&fake);
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), fake.seen().len()), (8, 8), "no write was sent twice");
}

#[tokio::test]
async fn http1_behaves_the_same() {
    let fake = Fake::start().await;
    let client = Client::builder().endpoints(&fake.address).protocol(Protocol::Http1).build().expect("an endpoint");
    fake.script([Act::Reset, Act::Answer(502, "<html>bad gateway</html>".into()), replayed()]);
    assert!(client.put("k", one()).await.expect("the third try succeeds").replayed);
    let ids = ids(&fake);
    assert!(ids.len() == 3 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    fake.hang_up().await;
    client.put("k", one()).await.expect("connects again");
    assert_eq!(fake.streams(), 0);
}

#[tokio::test]
async fn pages_follow_the_cursor_to_its_end() {
    let (fake, client) = Fake::with_client().await;
    let page = |cursor: Option<&str>| json!({"entries": [], "count": 0, "cursor": cursor, "revision": "7", "index": 9});
    fake.script([Some("a+b="), Some("c"), None].map(|cursor| Act::Answer(200, page(cursor).to_string())));
    let pages: Vec<_> = client.list("a/").limit(5).pages().try_collect().await.expect("three pages");
    assert_eq!(pages.len(), 3);
    let targets: Vec<_> = fake.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(
        targets,
        ["/v1/kv?prefix=a/&limit=5", "/v1/kv?cursor=a%2Bb%3D&limit=5", "/v1/kv?cursor=c&limit=5"].map(str::to_owned)
    );
}

#[tokio::test]
async fn waiting_tells_a_change_from_none_and_from_removal() {
    let (fake, client) = Fake::with_client().await;
    let wait = Duration::from_millis(50);
    fake.script([Act::Answer(304, String::new()), Act::problem(ErrorCode::NotFound, Applied::No)]);
    assert_eq!(
        client.wait_for_change("k", Some("7".parse().expect("a token")), wait).await.expect("an answer"),
        Change::None
    );
    assert_eq!(
        client.wait_for_change("k", Some("7".parse().expect("a token")), wait).await.expect("an answer"),
        Change::Gone
    );
    assert!(matches!(client.wait_for_change("k", None, wait).await, Ok(Change::Entry(_))));
    assert_eq!(fake.seen()[0].target, "/v1/kv/k?wait_ms=50");
}

#[tokio::test]
async fn whether_an_entry_exists_is_asked_without_its_value() {
    let (fake, client) = Fake::with_client().await;
    fake.script([
        Act::Answer(200, String::new()),
        Act::Answer(503, String::new()),
        Act::Answer(404, String::new()),
        Act::Answer(400, String::new()),
    ]);
    assert!(client.exists("a b").await.expect("an answer"));
    assert!(!client.exists("k").await.expect("asked again after the 503"));
    assert!(matches!(client.exists("k").await, Err(Error::Protocol { .. })));
    let seen = fake.seen();
    assert!(seen.iter().all(|seen| seen.method == "HEAD"), "{seen:?}");
    assert_eq!((seen.len(), seen[0].target.as_str()), (4, "/v1/kv/a%20b"));
}

#[tokio::test]
async fn what_no_node_answered_has_the_code_of_a_lapse_of_time() {
    let client = Client::builder().endpoints(nobody()).timeout(Duration::from_millis(50)).build().expect("valid");
    let error = client.get("k").await.expect_err("nobody is there");
    assert_eq!((error.code(), error.applied()), (Some(ErrorCode::Timeout), Applied::No), "{error:?}");
    let fake = Fake::start().await;
    fake.always("/v1/ops", Act::Slow(Duration::from_secs(60)));
    let client = Client::builder().endpoints(&fake.address).timeout(SOON).build().expect("valid");
    let error = client.put("k", one()).await.expect_err("nobody answers");
    assert_eq!((error.code(), error.applied()), (Some(ErrorCode::Timeout), Applied::Unknown), "{error:?}");
    // What a node said says more than the try after it, which the deadline cuts short.
    let fake = Fake::start().await;
    fake.script([Act::problem(ErrorCode::NoLeader, Applied::No), Act::Slow(Duration::from_secs(60))]);
    let client = Client::builder().endpoints(&fake.address).timeout(SOON).build().expect("valid");
    let error = client.get("k").await.expect_err("nobody leads");
    assert_eq!((error.code(), error.applied()), (Some(ErrorCode::NoLeader), Applied::No), "{error:?}");
}

/// A proxy that cleans paths asks for `b` where `a/../b` was meant.
#[tokio::test]
async fn an_answer_about_something_else_is_no_answer() {
    let (fake, client) = Fake::with_client().await;
    let told = |error: &Error, applied| {
        assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
        assert!(error.to_string().contains("about `b`, not `a/../b`"), "{error}");
        assert_eq!(error.applied(), applied, "{error:?}");
    };
    let name = "a/../b";
    let say = |mut answer: serde_json::Value| {
        (answer["revision"], answer["index"]) = (json!("7"), json!(8));
        fake.script([Act::Answer(200, answer.to_string())]);
    };
    say(entry("b", &json!(1), "7"));
    told(&client.wait_for_change(name, None, Duration::from_millis(50)).await.expect_err("another entry"), Applied::No);
    say(json!({"name": "b", "value": 9}));
    told(&client.sequence(name).get().await.expect_err("another sequence"), Applied::No);
    say(json!({"name": "b", "first": 8, "last": 9}));
    told(&client.sequence(name).next(2).await.expect_err("another sequence"), Applied::Unknown);
    say(json!({"name": "b"}));
    told(&client.collection(name).delete().await.expect_err("another collection"), Applied::Unknown);
    say(json!({"latch": "b", "count": 2, "left": 2, "open": false}));
    told(&client.latch(name).get().await.expect_err("another latch"), Applied::No);
}

/// A key that is not safe in a path stands in a query: as the bounds of a range that has no other key.
#[tokio::test]
async fn a_key_that_proxies_change_is_in_no_path() {
    for key in ["a//b", "a/../b", "/", "."] {
        let (fake, client) = Fake::with_client().await;
        let page = |entries: serde_json::Value| {
            Act::Answer(200, json!({"entries": entries, "count": 1, "revision": "7", "index": 9}).to_string())
        };
        fake.script([page(json!([entry(key, &json!(1), "5")])), page(json!([]))]);
        let found = client.get(key).local().await.expect("an answer").expect("it is there");
        assert_eq!((found.key, found.revision, found.index), (Name::from(key), Some(7), Some(9)));
        assert_eq!(client.get(key).revision(3).await.expect("an answer"), None);
        fake.script([Act::problem(ErrorCode::NotFound, Applied::No)]);
        assert!(!client.exists(key).await.expect("an answer"));
        let asked = fake.seen();
        assert!(asked.iter().all(|seen| seen.target.starts_with("/v1/kv?start=") || seen.op.is_some()), "{asked:?}");
        // The missing key may be another one.
        let there = Act::Answer(200, entry(key, &json!(1), "9").to_string());
        fake.script([Act::problem(ErrorCode::NotFound, Applied::No), there]);
        let change = client.wait_for_change(key, Some(Cas::new(5)), Duration::from_millis(50)).await;
        assert!(matches!(change, Ok(Change::Entry(_))), "{change:?}");
        fake.script([Act::problem(ErrorCode::NotFound, Applied::No), Act::problem(ErrorCode::NotFound, Applied::No)]);
        let change = client.wait_for_change(key, Some(Cas::new(5)), Duration::from_millis(50)).await;
        assert!(matches!(change, Ok(Change::Gone)), "{change:?}");
    }
}

/// The answer for the path is about another entry, which is missing, or as it was known.
#[tokio::test]
async fn a_wait_for_a_key_that_proxies_change_ends_with_its_change() {
    let there = |cas| Act::Answer(200, entry("a//b", &json!(1), cas).to_string());
    let missing = || Act::problem(ErrorCode::NotFound, Applied::No);
    for is_missing in [false, true] {
        let (fake, client) = Fake::with_client().await;
        let elsewhere = || if is_missing { missing() } else { Act::Answer(304, String::new()) };
        let wait = async |known, millis| {
            client.wait_for_change("a//b", known, Duration::from_millis(millis)).await.expect("an answer")
        };
        let known = Some(Cas::new(5));
        fake.script([elsewhere(), there("5"), there("9")]);
        let Change::Entry(found) = wait(known, 30_000).await else { panic!("it changed") };
        assert_eq!((found.cas, fake.seen().len()), (Some(Cas::new(9)), 3));
        fake.script([elsewhere(), there("5")]);
        assert_eq!(wait(known, 0).await, Change::None);
        fake.script([elsewhere(), missing()]);
        assert_eq!(wait(known, 0).await, Change::Gone);
        fake.script([elsewhere(), missing()]);
        assert_eq!(wait(None, 0).await, Change::None);
    }
}
