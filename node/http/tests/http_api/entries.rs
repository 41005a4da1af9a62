//! Reading and writing entries: waits, deadlines and freshness, and bodies and headers that are no text. Transcripts show the rest.

use std::time::{Duration, Instant};

use quorate_node_core::backend::{AppError, Consistency, Operations};

use crate::raw::{JSON, Server};

#[tokio::test]
async fn bytes_that_are_no_text_come_back_as_they_were() {
    let server = Server::start().await;
    let bytes = [("Content-Type", "application/octet-stream")];
    server.ask("PUT", "/v1/kv/b", &bytes, b"\x00\xff\r\n").await;
    assert_eq!(server.get("/v1/kv/b?raw").await.body, b"\x00\xff\r\n");
    assert_eq!(server.get("/v1/kv/b").await.json()["value_base64"], "AP8NCg==");
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

#[tokio::test]
async fn a_write_that_took_effect_is_answered_shortly_where_its_entry_cannot_be_read() {
    let server = Server::start().await;
    server.backend.fail_reads(Some(AppError::NoLeader));
    let entry = ("Prefer", "return=representation");
    let written = server.ask("PUT", "/v1/kv/k", &[JSON, entry], b"{}").await;
    assert_eq!((written.status, written.header("preference-applied")), (201, None));
    assert!(written.json().get("value").is_none(), "{}", written.text());
}
