//! The operation stream: answers in any order, streams that break, end, fall silent or are refused.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_client::api::{Applied, ErrorCode, Problem};
use quorate_client::{Client, Error, RetryPolicy, Value};
use serde_json::json;

use crate::SOON;
use crate::fake::{Act, Fake, entry};

fn one() -> Value {
    Value::json(&1).expect("has JSON")
}

fn named(key: &str) -> Act {
    Act::Answer(200, entry(key, &json!(1), "1").to_string())
}

/// Makes one attempt and no more.
fn once(fake: &Fake) -> Client {
    Client::builder().endpoints(&fake.address).retry(RetryPolicy::never()).build().expect("an endpoint")
}

#[tokio::test]
async fn answers_find_their_callers_in_whatever_order_they_come() {
    let (fake, client) = Fake::with_client().await;
    fake.script([Act::Slow(Duration::from_millis(200)), named("second")]);
    let (first, second) = tokio::join!(client.get("first").into_future(), async {
        let answer = client.get("second").await;
        (answer, Instant::now())
    });
    let first_at = Instant::now();
    assert_eq!(first.expect("works").expect("there is one").key, "k");
    assert_eq!(second.0.expect("works").expect("there is one").key, "second");
    assert!(second.1 < first_at, "it did not wait for the slow one");
    assert_eq!(fake.streams(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_callers_share_one_stream_and_each_gets_its_own_answer() {
    let (fake, client) = Fake::with_client().await;
    let client = Arc::new(client);
    let calls = (0..2_000).map(|number| {
        let client = client.clone();
        tokio::spawn(async move { client.put(format!("k{number}"), one()).await })
    });
    for call in futures::future::join_all(calls).await {
        call.expect("no panic").expect("works");
    }
    assert_eq!((fake.seen().len(), fake.streams()), (2_000, 1));
}

#[tokio::test]
async fn a_stream_cut_between_line_and_answer_leaves_the_fate_open() {
    for cut in [Act::Reset, Act::End] {
        let fake = Fake::start().await;
        let client = once(&fake);
        fake.script([cut.clone()]);
        let error = client.put("k", one()).await.expect_err("no answer");
        assert!(matches!(error, Error::Unknown(_)), "{cut:?}: {error:?}");
        assert_eq!(error.request_id(), fake.seen()[0].id.as_deref());
        client.put("k", one()).await.expect("the next call dials anew");
        assert_eq!(fake.streams(), 2, "{cut:?}");
    }
}

#[tokio::test]
async fn a_cut_stream_fails_all_calls_on_it_and_each_is_repeated_under_its_id() {
    let (fake, client) = Fake::with_client().await;
    client.get("warm").await.expect("works");
    let slow = Act::Slow(Duration::from_secs(9));
    fake.script([slow.clone(), slow, Act::Reset]);
    let calls = (0..3).map(|_| client.put("k", one()).into_future());
    assert!(futures::future::join_all(calls).await.iter().all(Result::is_ok));
    let mut ids: Vec<_> = fake.seen()[1..].iter().map(|seen| seen.id.clone().expect("a write has an id")).collect();
    assert_eq!(ids.len(), 6);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn the_late_answer_to_a_call_that_timed_out_reaches_no_other() {
    let (fake, client) = Fake::with_client().await;
    client.get("warm").await.expect("works");
    // The answer comes while others are waited for.
    fake.script([Act::Slow(2 * SOON)]);
    let error = client.get("late").timeout(SOON).await.expect_err("no answer");
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    for _ in 0..40 {
        fake.script([Act::Slow(Duration::from_millis(10)), named("own")]);
        assert_eq!(client.get("k").await.expect("works").expect("there is one").key, "k");
        assert_eq!(client.get("own").await.expect("works").expect("there is one").key, "own");
    }
    assert_eq!(fake.streams(), 1, "a slow answer is no reason to leave a stream");
}

#[tokio::test]
async fn a_stream_on_which_nothing_comes_is_left_for_a_new_one() {
    let fake = Fake::start().await;
    let client = once(&fake);
    fake.script([Act::Slow(Duration::from_secs(60))]);
    let error = client.put("k", one()).timeout(Duration::from_millis(1_200)).await.expect_err("no answer");
    assert_eq!(error.applied(), Applied::Unknown);
    client.put("k", one()).await.expect("works");
    assert_eq!(fake.streams(), 2);
}

#[tokio::test]
async fn one_call_of_little_patience_does_not_cost_others_their_answer() {
    let fake = Fake::start().await;
    let client = once(&fake);
    fake.script([Act::Slow(Duration::from_secs(60)), Act::Slow(Duration::from_millis(1_500))]);
    let hasty = client.put("k", one()).timeout(Duration::from_millis(1_200)).into_future();
    let (hasty, patient) = tokio::join!(hasty, client.put("k", one()).into_future());
    assert!(hasty.is_err());
    patient.expect("is answered on the stream that was left");
}

#[tokio::test]
async fn a_node_that_takes_no_streams_is_asked_over_http1_and_not_again_for_a_stream() {
    let not_found = serde_json::to_string(&Problem::new(ErrorCode::NotFound, Applied::No, "no such path"));
    for refusal in [(404, not_found.expect("has JSON")), (415, "<html>what</html>".into()), (200, "{}".into())] {
        let (fake, client) = Fake::with_client().await;
        fake.refuse_streams(Some(refusal));
        for _ in 0..3 {
            client.put("k", one()).await.expect("works all the same");
        }
        assert_eq!((fake.streams(), fake.seen().len()), (1, 3));
    }
}

#[tokio::test]
async fn a_node_that_cannot_take_a_stream_now_is_asked_again() {
    let (fake, client) = Fake::with_client().await;
    let problem = Problem::new(ErrorCode::NotReady, Applied::No, "starting");
    fake.refuse_streams(Some((503, serde_json::to_string(&problem).expect("has JSON"))));
    let error = client.put("k", one()).timeout(Duration::from_millis(100)).await.expect_err("it is not ready");
    assert_eq!(error.applied(), Applied::No, "{error}");
    assert!(fake.seen().is_empty(), "nothing was sent that might be applied");
    fake.refuse_streams(None);
    client.put("k", one()).await.expect("works");
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn a_node_that_takes_a_connection_and_says_nothing_has_applied_nothing() {
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = mute.local_addr().expect("has one").to_string();
    let client = Client::builder().endpoints(&address).retry(RetryPolicy::never()).build().expect("an endpoint");
    let error = client.put("k", one()).timeout(Duration::from_millis(100)).await.expect_err("nobody answers");
    assert_eq!(error.applied(), Applied::No, "{error}");
}

#[tokio::test]
async fn long_operations_and_text_with_lines_of_its_own_go_by_themselves() {
    let (fake, client) = Fake::with_client().await;
    let pretty = "{\n  \"n\": 1\n}";
    client.put("k", Value::json_text(pretty)).await.expect("works");
    client.put("k", Value::bytes(vec![0; 100_000])).await.expect("works");
    assert_eq!((fake.streams(), fake.seen().len()), (0, 2));
    let value = fake.seen()[0].op.clone().and_then(|op| op.value).expect("a value");
    assert_eq!(value.0.get(), pretty, "it is stored as it was given");
}

#[test]
fn a_client_outlives_the_runtime_of_its_first_call() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let nodes = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let (fake, client) = nodes.block_on(Fake::with_client());
    runtime().block_on(async { client.put("k", one()).await.expect("works") });
    runtime().block_on(async { client.put("k", one()).await.expect("works in another runtime") });
    assert_eq!(fake.streams(), 2);
}
