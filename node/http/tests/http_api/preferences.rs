//! `Prefer`: how much of a write is answered.

use quorate_api::EntryView;
use quorate_node_core::backend::AppError;

use crate::raw::{JSON, Response, Server};

const MINIMAL: (&str, &str) = ("Prefer", "return=minimal");
const ENTRY: (&str, &str) = ("Prefer", "return=representation");

/// The entry in an answer that says that it is one.
fn entry(answer: &Response) -> EntryView {
    assert!(matches!(answer.status, 200 | 201), "{answer:?}");
    assert_eq!(answer.header("preference-applied"), Some("return=representation"), "{answer:?}");
    let entry: EntryView = serde_json::from_slice(&answer.body).expect("an EntryView");
    let tag = format!("\"{}\"", entry.cas.expect("a token"));
    assert_eq!(answer.header("etag"), Some(tag.as_str()));
    assert_eq!(
        answer.header("quorate-revision").map(str::to_owned),
        entry.revision.map(|revision| revision.to_string())
    );
    entry
}

fn value(entry: &EntryView) -> &str {
    entry.value.as_ref().expect("JSON").0.get()
}

/// Asserts that the preference was passed over: the answer is the usual one.
fn usual(answer: &Response) -> serde_json::Value {
    assert!(matches!(answer.status, 200 | 201), "{answer:?}");
    assert_eq!(answer.header("preference-applied"), None, "{answer:?}");
    let json = answer.json();
    assert!(json.get("value").is_none() && json["revision"].is_string(), "{json}");
    json
}

#[tokio::test]
async fn the_entry_is_shown_as_the_write_left_it() {
    let server = Server::start().await;
    let put = server.ask("PUT", "/v1/kv/a%2Fb?ttl_ms=500", &[JSON, ENTRY], b" {\"a\":1.0}").await;
    let shown = entry(&put);
    assert_eq!((shown.key.text(), value(&shown), shown.ttl_ms), (Some("a/b"), "{\"a\":1.0}", Some(500)));
    assert_eq!((shown.version, shown.revision, shown.index), (1, Some(2), Some(102)));
    let bytes = [("Content-Type", "application/octet-stream"), ENTRY];
    assert_eq!(entry(&server.ask("PUT", "/v1/kv/bytes", &bytes, b"hi").await).value_base64.as_deref(), Some("aGk="));
    let patched = entry(&server.ask("PATCH", "/v1/kv/a%2Fb", &[JSON, ENTRY], b"{}").await);
    assert_eq!((patched.version, patched.revision), (2, Some(4)));
    let touched = server.ask("POST", "/v1/ops", &[JSON, ENTRY], br#"{"op":"touch","key":"a/b","ttl_ms":0}"#).await;
    let touched = entry(&touched);
    assert_eq!((value(&touched), touched.version, touched.ttl_ms), ("{\"a\":1.0}", 3, None));
}

#[tokio::test]
async fn a_retry_shows_what_its_write_left_and_not_a_later_one() {
    let server = Server::start().await;
    let once = [JSON, ENTRY, ("Idempotency-Key", "put-1")];
    let first = server.ask("PUT", "/v1/kv/k", &once, b"1").await;
    assert_eq!(first.header("quorate-replayed"), None);
    server.put_json("/v1/kv/k", "2").await;
    let again = server.ask("PUT", "/v1/kv/k", &once, b"1").await;
    assert_eq!(again.header("quorate-replayed"), Some("true"));
    assert_eq!((entry(&again), value(&entry(&again))), (entry(&first), "1"));
    server.backend.compact_to(3);
    let later = server.ask("PUT", "/v1/kv/k", &once, b"1").await;
    assert_eq!(usual(&later)["replayed"], true, "what is compacted cannot be shown");
    let minimal = server.ask("PUT", "/v1/kv/k", &[JSON, MINIMAL, once[2]], b"1").await;
    assert_eq!((minimal.status, minimal.header("quorate-replayed")), (201, Some("true")));
}

#[tokio::test]
async fn a_minimal_answer_has_no_body_and_says_the_rest_in_headers() {
    let server = Server::start().await;
    let mut raw = server.connect().await;
    for (method, path, body, status, tag) in [
        ("PUT", "/v1/kv/k", &b"{}"[..], 201, Some("\"2\"")),
        ("PATCH", "/v1/kv/k", b"{}", 204, Some("\"3\"")),
        ("POST", "/v1/ops", br#"{"op":"upsert","key":"k","value":1}"#, 204, Some("\"4\"")),
        ("DELETE", "/v1/kv/k", b"", 204, None),
    ] {
        let headers = if body.is_empty() { vec![MINIMAL] } else { vec![JSON, MINIMAL] };
        raw.send_request(method, path, &headers, body).await;
        let answer = raw.response(false).await;
        assert_eq!((answer.status, answer.header("etag")), (status, tag), "{method}");
        assert_eq!(answer.header("preference-applied"), Some("return=minimal"), "{method}");
        assert_eq!((answer.header("content-type"), answer.body.len()), (None, 0), "{method}");
        assert!(answer.header("quorate-index").is_some(), "{method}");
        answer.carries_the_common_headers();
    }
}

#[tokio::test]
async fn a_preference_that_cannot_be_granted_is_passed_over() {
    let server = Server::start().await;
    server.put_json("/v1/kv/k", "{}").await;
    for preference in [ENTRY, MINIMAL] {
        let prev = server.ask("PUT", "/v1/kv/k?prev", &[JSON, preference], b"{}").await;
        assert!(usual(&prev)["prev"].is_object());
        assert_eq!(usual(&server.ask("PUT", "/v1/kv/k?dry_run", &[JSON, preference], b"1").await)["dry_run"], true);
        let tried = br#"{"op":"remove","key":"k","dry_run":true}"#;
        assert_eq!(usual(&server.ask("POST", "/v1/ops", &[JSON, preference], tried).await)["dry_run"], true);
        let got = server.ask("POST", "/v1/ops", &[JSON, preference], br#"{"op":"get","key":"k"}"#).await;
        assert_eq!((got.status, got.header("preference-applied")), (200, None), "get is no write");
        assert_eq!(server.ask("GET", "/v1/kv/k", &[preference], b"").await.status, 200);
        let refused = server.ask("PUT", "/v1/kv/k", &[JSON, preference, ("If-Match", "\"1\"")], b"1").await;
        assert_eq!(refused.problem().status, 412);
    }
    for nonsense in ["return", "return=all", "\"", "return=\"representation"] {
        usual(&server.ask("PUT", "/v1/kv/k", &[JSON, ("Prefer", nonsense)], b"{}").await);
    }
    // The write took effect although the node cannot read.
    server.backend.fail_reads(Some(AppError::NoLeader));
    usual(&server.ask("PUT", "/v1/kv/k", &[JSON, ENTRY], b"{}").await);
    server.backend.fail_reads(None);
    usual(&server.ask("DELETE", "/v1/kv/k", &[ENTRY], b"").await);
}
