//! Conditional requests: what `If-Match` and `If-None-Match` lead to, on reads and on writes.
//!
//! `conditions/*.txt` are lists of conditions, each with what it leads to: on the entry `k` with cas 3, which was 2 before, where there is no
//! entry, and on `k` while it is locked.
//!
//! ```text
//! NAME: VALUE & NAME: VALUE                            lines of headers, or `-` for none; `<key>` is the key of the lock
//!   METHOD STATUS CODE | STATUS CODE | STATUS CODE     HEAD is as GET
//! ```
//!
//! `QUORATE_BLESS=1` writes the actual answers into the pages.

use std::fmt::Write as _;
use std::time::Duration;

use quorate_api::{Applied, code_name};
use serde_json::json;

use crate::raw::{JSON, Raw, Response, Server, post};
use crate::transcripts::each_page;

/// What a line of answers begins with.
const ANSWER: &str = "  ";
const WRITTEN: &str = "{\"a\":1}";

/// A server with the entry `k`, a document, at cas 3.
async fn server() -> Server {
    let server = Server::start().await;
    for status in [201, 200] {
        assert_eq!(server.put_json("/v1/kv/k", "{}").await.status, status);
    }
    server
}

/// The same, where `k` is locked; with the key of the lock.
async fn locked() -> (Server, String) {
    let server = server().await;
    let locked = post(&server, "/v1/ops", json!({"op": "lock", "key": "k"})).await.json();
    (server, locked["cas"].as_str().expect("the key of the lock").to_owned())
}

/// Asks with these lines of headers.
async fn ask(server: &Server, method: &str, path: &str, lines: &[(&str, &str)]) -> Response {
    let mut headers = lines.to_vec();
    let body = if matches!(method, "PUT" | "PATCH") { WRITTEN } else { "" };
    if !body.is_empty() {
        headers.push(JSON);
    }
    server.ask(method, path, &headers, body.as_bytes()).await
}

/// The value at a path, if there is an entry.
async fn value(raw: &mut Raw, path: &str) -> Option<String> {
    let answer = raw.ask("GET", &format!("{path}?raw"), &[], b"").await;
    (answer.status == 200).then(|| answer.text())
}

#[tokio::test]
async fn conditions_are_judged_as_the_standard_says() {
    each_page("conditions", run).await;
}

/// The page with the answers as they are.
async fn run(page: &str) -> String {
    let (mut free, mut held) = (server().await, locked().await);
    let mut out = String::new();
    for line in page.lines().filter(|line| !line.starts_with(ANSWER)) {
        writeln!(out, "{line}").expect("memory");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        for method in ["GET", "PUT", "PATCH", "DELETE"] {
            let keyed = line.replace("<key>", &held.1);
            let lines: Vec<_> = keyed.split(" & ").filter_map(|line| line.split_once(": ")).collect();
            let none = came_to(&free, method, "/v1/kv/none", &lines, None).await;
            let there = came_to(&free, method, "/v1/kv/k", &lines, None).await;
            let while_locked = came_to(&held.0, method, "/v1/kv/k", &lines, Some(&held.1)).await;
            writeln!(out, "{ANSWER}{method} {there} | {none} | {while_locked}").expect("memory");
            // Another entry where something was written.
            let is_written = |came: &str| method != "GET" && came.starts_with('2');
            if is_written(&there) || is_written(&none) {
                free = server().await;
            }
            if is_written(&while_locked) {
                held = locked().await;
            }
        }
    }
    out
}

/// What a request comes to, which shows and leaves what it should, and tells nobody the key of a lock.
async fn came_to(server: &Server, method: &str, path: &str, lines: &[(&str, &str)], key: Option<&str>) -> String {
    // Reads to compare with have a connection of their own, and the request in question has a new one.
    let mut raw = server.connect().await;
    let (entry, was) = (raw.ask("GET", path, &[], b"").await, value(&mut raw, path).await);
    let answer = ask(server, method, path, lines).await;
    let told = format!("{answer:?} {}", answer.text());
    let what = format!("{method} {path} {lines:?}: {told}");
    answer.carries_the_common_headers();
    assert!(key.is_none_or(|key| !told.contains(key)), "{what}");
    if method == "GET" {
        let head = ask(server, "HEAD", path, lines).await;
        assert_eq!((head.status, head.header("etag")), (answer.status, answer.header("etag")), "HEAD of {what}");
    }
    // Refused is not applied, and done is.
    let left = match (method, answer.status) {
        ("DELETE", 200) => None,
        ("PUT" | "PATCH", 200 | 201) => Some(WRITTEN.to_owned()),
        _ => was,
    };
    assert_eq!(value(&mut raw, path).await, left, "{what}");
    assert_eq!(answer.header("location"), (answer.status == 201).then_some(path), "{what}");
    if answer.status < 400 {
        match method {
            "GET" => assert_eq!(answer.header("etag"), entry.header("etag"), "{what}"),
            _ => assert_eq!(answer.header("etag").is_some(), method != "DELETE", "{what}"),
        }
        return answer.status.to_string();
    }
    assert_eq!(answer.header("etag"), None, "{what}");
    let problem = answer.problem();
    let current = problem.current.map(|current| (current.cas.map(|cas| format!("\"{cas}\"")), current.locked));
    let known = (entry.status == 200).then(|| (entry.header("etag").map(str::to_owned), key.is_some()));
    assert_eq!((problem.applied, current), (Applied::No, known), "{what}");
    format!("{} {}", answer.status, code_name(problem.code))
}

#[tokio::test]
async fn an_entry_whose_lock_is_over_has_a_tag_again() {
    let (server, _) = locked().await;
    assert_eq!(server.get("/v1/kv/k").await.header("etag"), None);
    server.backend.advance(Duration::from_secs(15));
    let freed = server.get("/v1/kv/k").await;
    let known = [("If-None-Match", freed.header("etag").expect("the lock is over"))];
    assert_eq!(ask(&server, "GET", "/v1/kv/k", &known).await.status, 304);
}

#[tokio::test]
async fn a_long_poll_waits_until_the_entry_is_none_of_those_known() {
    let server = server().await;
    let mut waiting = server.connect().await;
    let known = [("If-None-Match", "\"2\", \"3\"")];
    waiting.send_request("GET", "/v1/kv/k?wait_ms=20000", &known, b"").await;
    server.put_json("/v1/kv/k", "3").await;
    let seen = waiting.response(false).await;
    assert_eq!((seen.status, &seen.json()["value"]), (200, &3.into()));
    // A reader that wants what is not there any more does not wait.
    let wanted = [("If-None-Match", "\"4\""), ("If-Match", "\"2\"")];
    assert_eq!(ask(&server, "GET", "/v1/kv/k?wait_ms=20000", &wanted).await.status, 412);
}
