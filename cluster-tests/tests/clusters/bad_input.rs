//! Careless and hostile requests: refused with the place of the fault, and nothing else happens.

use std::net::SocketAddr;
use std::time::Duration;

use cluster_tests::{Cluster, Connection, Request, Settings};
use quorate_client::api::{Applied, Problem};
use tokio::time::Instant;

/// Largest value that the store takes, bytes.
const VALUE_BYTES_MAX: usize = 1_536 * 1_024;
/// Largest key, bytes.
const KEY_BYTES_MAX: usize = 4_096;

/// A request, the status it must get, and the pointer that the answer must give.
type Case = (&'static str, Request, u16, &'static str);

fn cases() -> Vec<Case> {
    let put = |key: &str| Request::put(key, "1");
    let ops = |body: &str| Request::post("/v1/ops", body);
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    vec![
        ("empty key in the path", put(""), 400, "path:key"),
        ("empty key in the body", ops(r#"{"op":"get","key":""}"#), 400, "/key"),
        ("key of one byte too much", put(&"k".repeat(KEY_BYTES_MAX + 1)), 413, "path:key"),
        ("key with half an escape", put("a%2"), 400, "path:key"),
        ("value of one byte too much", Request::put("big", json_of(VALUE_BYTES_MAX + 1)), 413, ""),
        ("no content type", Request::new("PUT", "/v1/kv/a").body(b"1".into()), 415, "header:Content-Type"),
        ("content type text", put("a").content_type("text/plain"), 415, "header:Content-Type"),
        (
            "JSON in another charset",
            put("a").content_type("application/json; charset=utf-16"),
            415,
            "header:Content-Type",
        ),
        ("compressed body", put("a").header("Content-Encoding", "gzip"), 415, "header:Content-Type"),
        ("value that is no JSON", Request::put("a", "{"), 400, ""),
        ("JSON with a duplicate key", Request::put("a", r#"{"a":1,"a":2}"#), 400, "/a"),
        ("JSON of 300 levels", Request::put("a", nested(300)), 400, ""),
        ("JSON of 100,000 levels", Request::put("a", nested(100_000)), 400, ""),
        ("unknown field", ops(r#"{"op":"get","key":"a","colour":"red"}"#), 400, "/colour"),
        ("unknown operation", ops(r#"{"op":"explode","key":"a"}"#), 400, "/op"),
        ("operation without a key", ops(r#"{"op":"get"}"#), 400, "/key"),
        ("cas that is no number", ops(r#"{"op":"remove","key":"a","cas":"x"}"#), 400, "/cas"),
        ("cas that is negative", ops(r#"{"op":"remove","key":"a","cas":"-1"}"#), 400, "/cas"),
        ("tag without quotes", put("a").header("If-Match", "1"), 400, "header:If-Match"),
        ("unknown parameter", Request::new("PUT", "/v1/kv/a?colour=red").json("1"), 400, "query:colour"),
        ("time to live that is no number", Request::new("PUT", "/v1/kv/a?ttl_ms=soon").json("1"), 400, "query:ttl_ms"),
        (
            "time to live of for ever and a day",
            Request::new("PUT", "/v1/kv/a?ttl_ms=9223372036854775808").json("1"),
            400,
            "query:ttl_ms",
        ),
        ("request id with a space", put("a").request_id("a b"), 400, "header:Idempotency-Key"),
        ("request id too long", put("a").request_id(&"i".repeat(129)), 400, "header:Idempotency-Key"),
        ("patch of a list", Request::new("PATCH", "/v1/kv/a").json("[1]"), 400, ""),
        ("two values in one body", Request::put("a", "1 2"), 400, ""),
        ("method that the path does not take", Request::new("DELETE", "/v1/ops"), 405, ""),
        ("path that does not exist", Request::get("/v1/no-such-thing"), 404, ""),
        ("path that climbs", Request::get("/v1/../../etc/passwd"), 404, ""),
    ]
}

/// A JSON string of this many bytes.
fn json_of(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

trait WithContentType {
    fn content_type(self, value: &str) -> Self;
}

impl WithContentType for Request {
    fn content_type(mut self, value: &str) -> Self {
        self.headers.retain(|(name, _)| name != "Content-Type");
        self.header("Content-Type", value)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_requests_are_refused_with_the_place_of_the_fault_and_nothing_is_written() {
    let mut cluster = Cluster::start().await;
    cluster.assert_agreement().await;
    let before = cluster.digest(1).await.unwrap();
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    for (name, request, status, pointer) in cases() {
        for id in [leader, follower] {
            let answer =
                request.send(cluster.client_address(id)).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(answer.status, status, "{name}, node {id}: {}", answer.text());
            let problem = answer.problem();
            assert_eq!(problem.applied, Applied::No, "{name}, node {id}: {}", answer.text());
            assert_points_to(&problem, pointer, name);
        }
    }
    cluster.wait_all_ready().await;
    cluster.assert_agreement().await;
    for id in cluster.ids() {
        let after = cluster.digest(id).await.unwrap();
        assert_eq!((after.revision, after.digest), (before.revision, before.digest.clone()), "node {id} has changed");
    }
}

fn assert_points_to(problem: &Problem, pointer: &str, name: &str) {
    let found = problem.errors.iter().any(|fault| fault.pointer.starts_with(pointer) && !fault.detail.is_empty());
    assert!(pointer.is_empty() || found, "{name}: no fault at {pointer} in {problem:?}");
    assert!(!problem.detail.is_empty(), "{name}: no word on what is wrong");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_and_values_of_exactly_the_largest_size_and_of_odd_characters_are_kept() {
    let mut cluster = Cluster::start().await;
    let through = cluster.client_address(cluster.follower().await);
    let longest = "k".repeat(KEY_BYTES_MAX);
    let odd = [
        "a%00b",
        "%0d%0aSet-Cookie:%20x",
        "..",
        "../../etc/passwd",
        "%2e%2e%2f",
        "a//b",
        "%E2%80%AEright",
        longest.as_str(),
    ];
    for (number, key) in odd.into_iter().enumerate() {
        Request::put(key, number.to_string()).send(through).await.unwrap().expect_success();
        let read =
            Request::get(format!("/v1/kv/{key}?raw")).send(cluster.client_address(1)).await.unwrap().expect_success();
        assert_eq!(read.text(), number.to_string(), "key {key:.40}");
        assert_eq!(read.header("set-cookie"), None, "a key got into the headers");
    }
    let largest = json_of(VALUE_BYTES_MAX);
    Request::put("largest", largest.clone()).send(through).await.unwrap().expect_success();
    let read = Request::get("/v1/kv/largest?raw").send(cluster.client_address(1)).await.unwrap().expect_success();
    assert!(read.body == largest.as_bytes(), "the largest value came back with {} bytes", read.body.len());
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_and_silent_connections_are_closed_at_the_deadline() {
    const DEADLINE_MS: u64 = 400;
    let settings =
        Settings::with_ids([1]).flag("--header-timeout-ms", DEADLINE_MS).flag("--body-timeout-ms", DEADLINE_MS);
    let mut cluster = Cluster::start_with(settings).await;
    let at = cluster.client_address(1);
    let half_body =
        b"PUT /v1/kv/half HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{\"a\"";
    let (silent, header, body) = tokio::join!(
        closed_after(at, b""),
        closed_after(at, b"PUT /v1/kv/half HTTP/1.1\r\nHos"),
        closed_after(at, half_body),
    );
    println!("closed: silent {silent:?}, half a header {header:?}, half a body {body:?}");
    let deadline = Duration::from_millis(DEADLINE_MS);
    assert!(silent.min(header).min(body) >= deadline, "closed before the deadline: for something else");
    let gone = Request::get("/v1/kv/half").send(at).await.unwrap();
    assert_eq!(gone.status, 404, "half a body was taken for a value: {}", gone.text());
    cluster.assert_agreement().await;
}

/// Sends these bytes and nothing more; returns after what time the node closes. Says 2xx to none of them.
async fn closed_after(at: SocketAddr, bytes: &[u8]) -> Duration {
    let begin = Instant::now();
    let mut connection = Connection::open(at).await.unwrap();
    connection.send(bytes).await.unwrap();
    let closed = tokio::time::timeout(Duration::from_secs(5), connection.until_closed()).await;
    let said = closed.unwrap_or_else(|_| panic!("still open after 5 s: {}", String::from_utf8_lossy(bytes))).unwrap();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 4") || said.starts_with("HTTP/1.1 5"), "{said}");
    begin.elapsed()
}
