//! Reading and writing entries: what a request becomes, and bodies and headers that are no text. Transcripts show the rest.

use std::time::{Duration, Instant};

use quorate_machine::document::{Json, Patch};
use quorate_machine::types::{Change, ContentKind, Expect, Expiry, Value};
use quorate_node_core::backend::{AppError, Consistency, Operations};

use crate::raw::Server;

fn patch(text: &str) -> Change {
    let json = Json::parse(text.as_bytes()).expect("JSON");
    Change::Patch(Patch::read(&json, "").expect("a patch"))
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[tokio::test]
async fn what_curl_sends_unasked_is_taken_if_it_is_json() {
    let server = Server::start().await;
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(server.ask("PUT", "/v1/kv/k", &form, br#"{"a":1}"#).await.status / 100, 2);
    assert_eq!(server.get("/v1/kv/k").await.json()["value"]["a"], 1);
    assert_eq!(server.ask("PATCH", "/v1/kv/k", &form, br#"{"a":2}"#).await.status, 200);
    assert_eq!(server.ask("POST", "/v1/ops", &form, br#"{"op":"remove","key":"k"}"#).await.status / 100, 2);
}

#[tokio::test]
async fn bytes_come_back_raw_with_their_metadata_in_headers() {
    let server = Server::start().await;
    let bytes = [("Content-Type", "application/octet-stream")];
    server.ask("PUT", "/v1/kv/b?ttl_ms=500", &bytes, b"\x00\xff\r\n").await;
    let accept = [("Accept", "application/octet-stream")];
    for response in [server.get("/v1/kv/b?raw").await, server.ask("GET", "/v1/kv/b", &accept, b"").await] {
        assert_eq!(response.body, b"\x00\xff\r\n");
        assert_eq!(response.header("content-type"), Some("application/octet-stream"));
        assert_eq!(response.header("etag"), Some("\"2\""));
        assert_eq!(response.header("quorate-create-revision"), Some("2"));
        assert_eq!(response.header("quorate-mod-revision"), Some("2"));
        assert_eq!(response.header("quorate-version"), Some("1"));
        assert_eq!(response.header("quorate-ttl-ms"), Some("500"));
        assert_eq!(response.header("quorate-index"), Some("102"));
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
    }
    let envelope = server.get("/v1/kv/b").await.json();
    assert_eq!(envelope["value_base64"], "AP8NCg==");
    assert_eq!(envelope["content_type"], "bytes");
    server.put_json("/v1/kv/j", "{}").await;
    assert_eq!(server.get("/v1/kv/j?raw").await.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let server = Server::start().await;
    server.put_json("/v1/kv/k?ttl_ms=500", "[1,2,3]").await;
    server.ask("PUT", "/v1/kv/b", &[("Content-Type", "application/octet-stream")], b"\x00\xff").await;
    // All on one connection, so that bytes of a body would be taken for the next answer.
    let mut raw = server.connect().await;
    let bytes = ("Accept", "application/octet-stream");
    for (path, header, status) in [
        ("/v1/kv/k", None, 200),
        ("/v1/kv/k?raw", None, 200),
        ("/v1/kv/b", Some(bytes), 200),
        ("/v1/kv/k?consistency=local&raw", None, 200),
        ("/v1/kv/k?revision=2", None, 200),
        ("/v1/kv/k", Some(("If-Match", "\"2\"")), 200),
        ("/v1/kv/k", Some(("If-None-Match", "\"2\"")), 304),
        ("/v1/kv/k?raw", Some(("If-None-Match", "*")), 304),
        ("/v1/kv/k", Some(("If-Match", "\"3\"")), 412),
        ("/v1/kv/k", Some(("If-Match", "3")), 400),
        ("/v1/kv/missing", None, 404),
        ("/v1/kv/missing?if_none_match=0", None, 304),
        ("/v1/kv/k?revision=9", None, 400),
        ("/v1/kv?prefix=k", None, 200),
        ("/v1/requests/none", None, 404),
        ("/nowhere", None, 404),
        ("/version", None, 200),
        ("/openapi.json", None, 200),
    ] {
        let mut headers = vec![("X-Request-Id", "one-for-both")];
        headers.extend(header);
        let mut answers = Vec::new();
        for method in ["GET", "HEAD"] {
            raw.send_request(method, path, &headers, b"").await;
            let mut answer = raw.response(method == "HEAD").await;
            // The one thing that time alone may change.
            answer.headers.retain(|(name, _)| name != "date");
            answer.headers.sort();
            answers.push(answer);
        }
        let [get, head] = &answers[..] else { panic!("two methods were asked for") };
        assert_eq!((get.status, head.status), (status, status), "{path} {header:?}");
        assert_eq!(get.headers, head.headers, "{path} {header:?}");
        assert_eq!(get.header("content-length").is_some(), status != 304, "{path} {header:?}");
    }
}

#[tokio::test]
async fn headers_and_parameters_become_the_right_command() {
    let server = Server::start().await;
    let value = || Value { kind: ContentKind::Json, data: b"1".to_vec() };
    let (never, usual) = (Expiry::Never, Expiry::Usual);
    let rows = [
        ("PUT", "/v1/kv/k", None, Change::Put(value()), Expect::ANY, usual),
        ("PUT", "/v1/kv/k?ttl_ms=9", None, Change::Put(value()), Expect::ANY, Expiry::After(9)),
        ("PUT", "/v1/kv/k?ttl_ms=0", None, Change::Put(value()), Expect::ANY, never),
        ("PUT", "/v1/kv/k?ttl=keep", None, Change::Put(value()), Expect::ANY, Expiry::Keep),
        ("PUT", "/v1/kv/k", Some(("If-None-Match", "*")), Change::Put(value()), Expect::ABSENT, usual),
        ("PUT", "/v1/kv/k", Some(("If-Match", "*")), Change::Put(value()), Expect::PRESENT, usual),
        ("PUT", "/v1/kv/k", Some(("If-Match", "\"7\"")), Change::Put(value()), Expect::cas(7).and_present(), usual),
        (
            "PUT",
            "/v1/kv/k",
            Some(("If-Match", "\"7\", \"8\"")),
            Change::Put(value()),
            Expect::any_of(vec![7, 8]).and_present(),
            usual,
        ),
        ("PUT", "/v1/kv/k", Some(("If-None-Match", "\"7\"")), Change::Put(value()), Expect::none_of(vec![7]), usual),
        ("PATCH", "/v1/kv/k", None, patch("{\"a\":1}"), Expect::ANY, Expiry::Keep),
        ("PATCH", "/v1/kv/k?ttl_ms=0", Some(("If-Match", "*")), patch("{\"a\":1}"), Expect::PRESENT, never),
        ("DELETE", "/v1/kv/k", None, Change::Remove, Expect::ANY, Expiry::Keep),
        (
            "DELETE",
            "/v1/kv/k",
            Some(("If-None-Match", "\"7\", W/\"8\"")),
            Change::Remove,
            Expect::none_of(vec![7, 8]),
            Expiry::Keep,
        ),
        (
            "DELETE",
            "/v1/kv/k?prev",
            Some(("If-Match", "\"7\"")),
            Change::Remove,
            Expect::cas(7).and_present(),
            Expiry::Keep,
        ),
    ];
    for (method, path, condition, change, expect, expiry) in rows {
        let mut headers: Vec<_> = condition.into_iter().collect();
        let body: &[u8] = match method {
            "PUT" => b"1",
            "PATCH" => b"{\"a\":1}",
            _ => b"",
        };
        if !body.is_empty() {
            headers.push(JSON);
        }
        server.ask(method, path, &headers, body).await;
        let op = server.backend.last_op();
        assert_eq!((op.change, op.expect, op.expiry), (change, expect, expiry), "{method} {path} {condition:?}");
        assert_eq!(op.return_previous, path.contains("prev"), "{method} {path}");
    }
}

#[tokio::test]
async fn ops_become_the_right_command() {
    let server = Server::start().await;
    let json = |text: &str| Value { kind: ContentKind::Json, data: text.as_bytes().to_vec() };
    let bytes = Value { kind: ContentKind::Bytes, data: b"hi".to_vec() };
    let rows = [
        (r#"{"op":"insert","key":"k","value":null}"#, Change::Put(json("null")), Expect::ABSENT, Expiry::Usual),
        (r#"{"op":"upsert","key":"k","value_base64":"aGk="}"#, Change::Put(bytes), Expect::ANY, Expiry::Usual),
        (
            r#"{"op":"replace","key":"k","value":{ "a" : 1 },"cas":"7","ttl_ms":5}"#,
            Change::Put(json(r#"{ "a" : 1 }"#)),
            Expect::cas(7).and_present(),
            Expiry::After(5),
        ),
        (r#"{"op":"update","key":"k","patch":{"a":2}}"#, patch(r#"{"a":2}"#), Expect::ANY, Expiry::Keep),
        (r#"{"op":"touch","key":"k","ttl_ms":0}"#, Change::Touch, Expect::ANY, Expiry::Never),
        (r#"{"op":"remove","key":"k","cas":"7"}"#, Change::Remove, Expect::cas(7), Expiry::Keep),
    ];
    for (body, change, expect, expiry) in rows {
        server.ask("POST", "/v1/ops", &[JSON], body.as_bytes()).await;
        let op = server.backend.last_op();
        assert_eq!((op.change, op.expect, op.expiry), (change, expect, expiry), "{body}");
    }
    server.put_json("/v1/kv/a\u{2f}b", "5").await;
    let got = server.ask("POST", "/v1/ops", &[JSON], br#"{"op":"get","key":"a/b"}"#).await;
    assert_eq!(got.json()["value"], 5);
}

#[tokio::test]
async fn a_write_without_an_id_gets_one_and_shows_it() {
    let server = Server::start().await;
    let response = server.put_json("/v1/kv/k", "1").await;
    let command = server.backend.commands().pop().expect("a write");
    let id = command.request_id.expect("each write has an id").0;
    assert_eq!(response.header("x-request-id"), Some(id.as_str()));
    let named = server.ask("DELETE", "/v1/kv/k", &[("Idempotency-Key", "delete-1")], b"").await;
    assert_eq!(named.header("x-request-id"), Some("delete-1"));
    let traced = server.ask("GET", "/v1/kv/k", &[("X-Request-Id", "trace-7")], b"").await;
    assert_eq!(traced.header("x-request-id"), Some("trace-7"));
    let hostile = server.ask("GET", "/v1/kv/k", &[("X-Request-Id", "a\tb")], b"").await;
    assert_eq!(hostile.header("x-request-id").map(str::len), Some(16), "replaced by one of our own");
}

#[tokio::test]
async fn a_request_timeout_becomes_the_deadline_within_its_bound() {
    let server = Server::start().await;
    for (header, seconds) in [(None, 10), (Some("2000"), 2), (Some("999999999999"), 60)] {
        let headers: Vec<_> = header.map(|value| ("Request-Timeout", value)).into_iter().collect();
        let before = Instant::now();
        server.ask("DELETE", "/v1/kv/k", &headers, b"").await;
        let allowed = server.backend.deadlines().pop().expect("a command came") - before;
        assert!(allowed >= Duration::from_secs(seconds), "{header:?} gave {allowed:?}");
        assert!(allowed < Duration::from_secs(seconds + 8), "{header:?} gave {allowed:?}");
    }
}

#[tokio::test]
async fn consistency_is_what_was_asked_for() {
    let server = Server::start().await;
    server.put_json("/v1/kv/k", "1").await;
    let local = server.get("/v1/kv/k?consistency=local").await;
    assert_eq!(local.header("quorate-staleness-ms"), Some("15"));
    server.get("/v1/kv/k?min_revision=2").await;
    server.get("/v1/kv?consistency=linearizable").await;
    server.get("/v1/kv/k").await;
    let fresh = Consistency::Linearizable;
    let expected = [Consistency::Local, Consistency::AtLeast(2), fresh, fresh];
    assert_eq!(server.backend.barriers(), expected);
    assert_eq!(server.get("/v1/kv/k?consistency=linearizable&min_revision=2").await.status, 400);
}

#[tokio::test]
async fn a_long_poll_ends_with_the_change_or_with_304() {
    let server = Server::start().await;
    let quiet = server.get("/v1/kv/k?if_none_match=0&wait_ms=30").await;
    assert_eq!(quiet.status, 304);
    let mut waiting = server.connect().await;
    waiting.send_request("GET", "/v1/kv/k?if_none_match=0&wait_ms=20000", &[], b"").await;
    // Whether the change comes before the wait or during it, it must be seen.
    server.put_json("/v1/kv/k", "1").await;
    let seen = waiting.response(false).await;
    assert_eq!((seen.status, &seen.json()["value"]), (200, &1.into()));
    waiting.send_request("GET", "/v1/kv/k?if_none_match=2&wait_ms=20000", &[], b"").await;
    server.ask("DELETE", "/v1/kv/k", &[], b"").await;
    assert_eq!(waiting.response(false).await.status, 404);
}

#[tokio::test]
async fn an_entry_is_there_for_as_long_as_it_was_to_be() {
    let server = Server::start().await;
    server.put_json("/v1/kv/k?ttl_ms=500", "1").await;
    server.backend.advance(Duration::from_millis(499));
    assert_eq!(server.get("/v1/kv/k").await.json()["ttl_ms"], 1);
    let mut waiting = server.connect().await;
    waiting.send_request("GET", "/v1/kv/k?if_none_match=2&wait_ms=20000", &[], b"").await;
    server.backend.advance(Duration::from_millis(1));
    assert_eq!(waiting.response(false).await.status, 404);
    assert_eq!(server.put_json("/v1/kv/k", "2").await.status, 201);
}

#[tokio::test]
async fn health_tells_of_the_process_and_of_the_cluster() {
    let server = Server::start().await;
    assert_eq!(server.get("/livez").await.status, 200);
    assert_eq!(server.get("/readyz").await.status, 200);
    server.backend.fail_reads(Some(AppError::NoLeader));
    assert_eq!(server.get("/livez").await.status, 200, "the process is well");
    assert_eq!(server.get("/readyz").await.problem().status, 503);
    server.backend.fail_reads(Some(AppError::Quarantined("digests differ".into())));
    assert_eq!(
        server.get("/livez").await.status,
        200,
        "its vote counts: who restarted it would take it from the others"
    );
    assert!(server.get("/readyz").await.problem().detail.contains("digests differ"));
    server.backend.fail_reads(None);
    server.backend.be_unready("stopping");
    assert_eq!(server.get("/readyz").await.problem().detail, "stopping");
    let moved = server.ask("POST", "/v1/cluster/leader", &[JSON], br#"{"to":3}"#).await;
    assert_eq!(moved.json()["leader_id"], 3);
    assert_eq!(server.ask("POST", "/v1/cluster/leader", &[], b"").await.json()["leader_id"], 2);
    assert_eq!(server.get("/v1/cluster/status").await.json()["term"], "7");
    server.put_json("/v1/kv/k", "1").await;
    let digest = server.backend.digest().digest;
    assert_eq!(server.get("/v1/cluster/digest").await.json()["digest"], format!("{digest:032x}"));
}
