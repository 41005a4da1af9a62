//! Conditional requests: what `If-Match` and `If-None-Match` lead to, on reads and on writes.

use std::time::Duration;

use quorate_api::{Applied, Cas, ErrorCode};

use crate::raw::{JSON, Response, Server};

/// A server with the entry `k` at cas 3, which was 2 before.
async fn server() -> Server {
    server_with("1", "2").await
}

/// The same, where `k` is a document.
async fn server_with_document() -> Server {
    server_with("{}", "{}").await
}

async fn server_with(first: &str, second: &str) -> Server {
    let server = Server::start().await;
    assert_eq!(server.put_json("/v1/kv/k", first).await.status, 201);
    assert_eq!(server.put_json("/v1/kv/k", second).await.status, 200);
    server
}

/// Asks with these lines of headers.
async fn ask(server: &Server, method: &str, path: &str, lines: &[(&str, &str)]) -> Response {
    let mut headers = lines.to_vec();
    let body: &[u8] = match method {
        "PUT" | "PATCH" => b"{\"a\":1}",
        _ => b"",
    };
    if !body.is_empty() {
        headers.push(JSON);
    }
    server.ask(method, path, &headers, body).await
}

#[tokio::test]
async fn reads_are_judged_in_the_order_of_the_standard() {
    let server = server().await;
    let is = |tags| ("If-Match", tags);
    let no = |tags| ("If-None-Match", tags);
    for (lines, there, missing) in [
        (vec![is("*")], 200, 404),
        (vec![is("\"3\"")], 200, 404),
        (vec![is("\"2\", \"3\"")], 200, 404),
        (vec![is("\"2\""), is("\"3\"")], 200, 404),
        (vec![is("\"2\" ,, \"3\",")], 200, 404),
        (vec![is("\"2\"")], 412, 404),
        (vec![is("\"2\", \"4\"")], 412, 404),
        (vec![no("*")], 304, 404),
        (vec![no("\"3\"")], 304, 404),
        (vec![no("\"2\",,\"3\" ,")], 304, 404),
        (vec![no("\"2\""), no("\"3\"")], 304, 404),
        (vec![no("W/\"3\"")], 304, 404),
        (vec![no("\"2\", \"4\"")], 200, 404),
        (vec![no("\"0\", \"4\"")], 200, 304),
        // What no entry can have matches none.
        (vec![is("W/\"3\"")], 412, 404),
        (vec![is("\"3-gzip\"")], 412, 404),
        (vec![is("\"abc\", \"3\"")], 200, 404),
        (vec![is("W/\"3\", \"3\"")], 200, 404),
        (vec![is("\"an,unknown\\one\"")], 412, 404),
        (vec![is("\"\"")], 412, 404),
        (vec![no("\"3-gzip\"")], 200, 404),
        (vec![no("\"3-gzip\", \"unknown\"")], 200, 404),
        (vec![no("W/\"abc\", W/\"3\"")], 304, 404),
        // If-Match comes first: 412, whatever the other says.
        (vec![no("\"3\""), is("\"2\"")], 412, 404),
        (vec![is("\"3\""), no("\"2\", \"3\"")], 304, 404),
        (vec![is("\"3\""), no("\"2\"")], 200, 404),
        (vec![is("*"), no("\"3\"")], 304, 404),
        (vec![is("*"), no("*")], 304, 404),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = ask(&server, method, "/v1/kv/k", &lines).await;
            assert_eq!(answer.status, there, "{method} {lines:?}");
            answer.carries_the_common_headers();
            match (there, method) {
                (412, "GET") => {
                    let problem = answer.problem();
                    assert_eq!((problem.code, problem.applied), (ErrorCode::CasMismatch, Applied::No));
                    let current = problem.current.expect("the entry as it is");
                    assert_eq!((current.cas, problem.revision), (Some(Cas::new(3)), Some(3)));
                }
                (412, _) => {}
                _ => assert_eq!(answer.header("etag"), Some("\"3\""), "{method} {lines:?}"),
            }
            let answer = ask(&server, method, "/v1/kv/none", &lines).await;
            assert_eq!(answer.status, missing, "{method} {lines:?} without an entry");
        }
    }
    let past = ask(&server, "GET", "/v1/kv/k?revision=2", &[is("\"2\"")]).await;
    assert_eq!((past.status, past.header("etag")), (200, Some("\"2\"")), "judged by the entry as it was then");
}

#[tokio::test]
async fn no_condition_of_a_read_tells_the_cas_of_a_locked_entry() {
    let server = server().await;
    let locked = server.ask("POST", "/v1/ops", &[JSON], br#"{"op":"lock","key":"k"}"#).await.json();
    let key = locked["cas"].as_str().expect("the key of the lock");
    let tag = format!("\"{key}\"");
    for (lines, status) in [
        (vec![("If-Match", "\"3\"")], 412),
        // The revision of the lock is the cas for nobody.
        (vec![("If-Match", "\"4\"")], 412),
        (vec![("If-Match", tag.as_str())], 412),
        (vec![("If-None-Match", tag.as_str())], 200),
        (vec![("If-None-Match", "*")], 304),
        (vec![("If-None-Match", "\"3\"")], 200),
        (vec![("If-None-Match", "\"2\", W/\"3\"")], 200),
        (vec![("If-Match", "*")], 200),
        (vec![("If-Match", "*"), ("If-None-Match", "\"3\"")], 200),
        (vec![("If-Match", "*"), ("If-None-Match", "*")], 304),
        (vec![("If-Match", "\"3\""), ("If-None-Match", "\"2\"")], 412),
        (vec![], 200),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = ask(&server, method, "/v1/kv/k", &lines).await;
            assert_eq!(answer.status, status, "{method} {lines:?}");
            assert_eq!(answer.header("etag"), None, "{method} {lines:?}");
            let all = format!("{answer:?}") + &answer.text();
            assert!(!all.contains(key), "{method} {lines:?} tells the cas: {all}");
        }
    }
    server.backend.advance(Duration::from_secs(15));
    let freed = server.get("/v1/kv/k").await;
    let known = [("If-None-Match", freed.header("etag").expect("the lock is over"))];
    assert_eq!(ask(&server, "GET", "/v1/kv/k", &known).await.status, 304);
}

/// What a write comes to: done with this status, or refused with it and this code.
type Verdict = Result<u16, (u16, ErrorCode)>;

#[tokio::test]
async fn writes_are_judged_by_their_headers_and_refused_with_412() {
    use ErrorCode::{AlreadyExists, CasMismatch, ConditionNotMet, NotFound};

    let is = |tags| ("If-Match", tags);
    let no = |tags| ("If-None-Match", tags);
    let gone: Verdict = Err((412, NotFound));
    let missing: Verdict = Err((404, NotFound));
    let mismatch: Verdict = Err((412, CasMismatch));
    let listed: Verdict = Err((412, ConditionNotMet));
    let exists: Verdict = Err((412, AlreadyExists));
    let done: Verdict = Ok(200);
    // The lines; of an entry with cas 3: any of the methods; of none: PUT, the others.
    for (lines, there, put, others) in [
        (vec![], done, Ok(201), missing),
        (vec![is("*")], done, gone, gone),
        (vec![is("\"3\"")], done, gone, gone),
        (vec![is("\"2\", \"3\"")], done, gone, gone),
        (vec![is("\"3\""), is("\"4\"")], done, gone, gone),
        (vec![is("\"2\" ,, \"3\",")], done, gone, gone),
        (vec![is("\"2\", \"4\"")], mismatch, gone, gone),
        // What no entry can have matches none.
        (vec![is("W/\"3\"")], mismatch, gone, gone),
        (vec![is("\"3-gzip\"")], mismatch, gone, gone),
        (vec![is("\"abc\"")], mismatch, gone, gone),
        (vec![is("\"abc\", \"3\"")], done, gone, gone),
        (vec![is("W/\"3\", \"3\"")], done, gone, gone),
        (vec![is("\"an,unknown\\one\"")], mismatch, gone, gone),
        (vec![is("\"\"")], mismatch, gone, gone),
        (vec![is("\"0\"")], mismatch, gone, gone),
        (vec![no("*")], exists, Ok(201), missing),
        (vec![no("\"3\"")], listed, Ok(201), missing),
        (vec![no("W/\"3\"")], listed, Ok(201), missing),
        (vec![no("\"2\", W/\"3\"")], listed, Ok(201), missing),
        (vec![no("\"2\""), no("\"3\"")], listed, Ok(201), missing),
        (vec![no("\"2\", \"4\"")], done, Ok(201), missing),
        (vec![no("\"3-gzip\"")], done, Ok(201), missing),
        (vec![no("\"3-gzip\", \"unknown\"")], done, Ok(201), missing),
        // Both have to hold.
        (vec![is("*"), no("*")], mismatch, gone, gone),
        (vec![is("*"), no("\"3\"")], listed, gone, gone),
        (vec![is("*"), no("\"2\"")], done, gone, gone),
        (vec![is("\"3\""), no("\"2\"")], done, gone, gone),
        (vec![is("\"3\""), no("\"3\"")], mismatch, gone, gone),
        (vec![is("\"2\""), no("\"4\"")], mismatch, gone, gone),
    ] {
        for method in ["PUT", "PATCH", "DELETE"] {
            let server = server_with_document().await;
            let none = if method == "PUT" { put } else { others };
            for (path, expected) in [("/v1/kv/none", none), ("/v1/kv/k", there)] {
                let answer = ask(&server, method, path, &lines).await;
                let shown = format!("{method} {path} {lines:?}: {}", answer.text());
                let (Ok(status) | Err((status, _))) = expected;
                assert_eq!(answer.status, status, "{shown}");
                let location = (status == 201).then_some(path);
                assert_eq!(answer.header("location"), location, "{shown}");
                assert_eq!(answer.header("etag").is_some(), expected.is_ok() && method != "DELETE", "{shown}");
                // Refused is not applied, and done is.
                let wanted = match (expected, path) {
                    (Err(_), "/v1/kv/k") => Some("{}"),
                    (Err(_), _) => None,
                    (Ok(_), _) if method == "DELETE" => None,
                    (Ok(_), _) => Some("{\"a\":1}"),
                };
                let left = server.get(&format!("{path}?raw")).await;
                assert_eq!((left.status == 200).then(|| left.text()).as_deref(), wanted, "{shown}");
                let Err((_, code)) = expected else { continue };
                let problem = answer.problem();
                assert_eq!((problem.status, problem.code, problem.applied), (status, code, Applied::No), "{shown}");
                let current = problem.current.and_then(|current| current.cas);
                assert_eq!(current, (path == "/v1/kv/k").then_some(Cas::new(3)), "{shown}");
            }
        }
    }
}

#[tokio::test]
async fn no_condition_lets_a_write_past_a_lock() {
    let is = |tags| ("If-Match", tags);
    let no = |tags| ("If-None-Match", tags);
    let server = server_with_document().await;
    assert_eq!(server.ask("POST", "/v1/ops", &[JSON], br#"{"op":"lock","key":"k"}"#).await.status, 200);
    for lines in [
        vec![],
        vec![is("*")],
        vec![is("\"3\"")],
        vec![is("\"2\", \"3\"")],
        vec![is("W/\"3\"")],
        vec![is("\"3-gzip\"")],
        vec![no("*")],
        vec![no("\"3\"")],
        vec![no("\"2\"")],
        vec![is("\"3\""), no("\"2\"")],
        vec![is("\"3\""), no("\"3\"")],
        vec![is("*"), no("*")],
    ] {
        for method in ["PUT", "PATCH", "DELETE"] {
            let problem = ask(&server, method, "/v1/kv/k", &lines).await.problem();
            assert_eq!((problem.status, problem.applied), (412, Applied::No), "{method} {lines:?}: {problem:?}");
            let current = problem.current.expect("the entry as it is");
            assert_eq!((current.cas, current.locked), (None, true), "{method} {lines:?}");
        }
    }
    assert_eq!(server.get("/v1/kv/k?raw").await.text(), "{}");
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
