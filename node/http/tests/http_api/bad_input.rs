//! What a careless or hostile client sends: each is refused with a code and the place of each fault, and nothing is written.
//!
//! `bad_input/*.txt` are such requests, each with its answer below it. One file goes to one fresh node:
//!
//! ```text
//! METHOD PATH (NAME: VALUE) BODY     any number of headers; without a Content-Type a body is JSON, and `-` is none
//!   STATUS CODE PLACE PLACE          the place of each fault, `body` for all of it; before them when to try again, if ever
//! ```
//!
//! In requests `<TEXT*COUNT>` is the text as many times, `\n` ends a line, and `\u{feff}` is the byte order mark.
//! `QUORATE_BLESS=1` writes the actual answers into the pages.

use std::fmt::Write as _;

use quorate_api::{Applied, Retry, code_name};

use crate::raw::{JSON, Server};
use crate::transcripts::each_page;

/// What the line of an answer begins with.
const ANSWER: &str = "  ";

#[tokio::test]
async fn bad_input_is_told_by_field_and_nothing_is_written() {
    each_page("bad_input", run).await;
}

/// The page with the answers as they are.
async fn run(page: &str) -> String {
    let server = Server::start().await;
    let mut out = String::new();
    for line in page.lines().filter(|line| !line.starts_with(ANSWER)) {
        writeln!(out, "{line}").expect("memory");
        if !line.is_empty() && !line.starts_with('#') {
            let answer = refusal(&server, line).await;
            writeln!(out, "{ANSWER}{answer}").expect("memory");
        }
    }
    assert_eq!(server.get("/livez").await.status, 200, "the node is still up");
    out
}

/// What a request is refused with.
async fn refusal(server: &Server, line: &str) -> String {
    let (method, rest) = line.split_once(' ').expect("METHOD PATH");
    let (path, mut rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let mut headers = Vec::new();
    while let Some((header, after)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        let (name, value) = header.split_once(": ").unwrap_or_else(|| panic!("NAME: VALUE, not {header:?}"));
        headers.push((name, expanded(value)));
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    let body = expanded(rest);
    if !body.is_empty() && !headers.iter().any(|(name, _)| *name == JSON.0) {
        headers.push((JSON.0, JSON.1.to_owned()));
    }
    headers.retain(|(_, value)| value != "-");
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = server.ask(method, &expanded(path), &headers, body.as_bytes()).await;
    assert!((400..500).contains(&answer.status), "{line}: {answer:?}");
    let problem = answer.problem();
    assert_eq!(problem.applied, Applied::No, "{line}");
    assert!(problem.errors.iter().all(|fault| fault.detail.len() < 400), "{line}: {problem:?}");
    assert_eq!(server.backend.commands(), [], "{line}");
    let again = match problem.retry {
        Retry::Never => "",
        Retry::AfterReading => " after_reading",
        Retry::SameRequestId => " same_request_id",
    };
    let mut shown = format!("{} {}{again}", problem.status, code_name(problem.code));
    for fault in &problem.errors {
        let place = if fault.pointer.is_empty() { "body" } else { fault.pointer.as_str() };
        write!(shown, " {place}").expect("memory");
    }
    shown
}

/// The text of a page as it is meant.
fn expanded(text: &str) -> String {
    let text = text.replace("\\n", "\n").replace("\\u{feff}", "\u{feff}");
    let mut parts = text.split('<');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let repeated = part.split_once('>').and_then(|(inner, after)| {
            let (text, count) = inner.rsplit_once('*')?;
            Some((text.repeat(count.parse().ok()?), after))
        });
        match repeated {
            Some((text, after)) => out.extend([text.as_str(), after]),
            None => out.extend(["<", part]),
        }
    }
    out
}

#[tokio::test]
async fn the_largest_key_and_the_largest_values_are_taken() {
    let server = Server::start().await;
    // Each byte percent-encoded: the longest path there can be.
    let path = format!("/v1/kv/{}", "%6b".repeat(4_096));
    let bytes = [("Content-Type", "application/octet-stream")];
    let value = vec![7u8; 1_536 * 1024];
    assert_eq!(server.ask("PUT", &path, &bytes, &value).await.status / 100, 2);
    assert_eq!(server.ask("GET", &format!("{path}?raw"), &[], b"").await.body, value);
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(&value);
    let op = format!(r#"{{"op":"upsert","key":"{}","value_base64":"{text}"}}"#, "k".repeat(4_096));
    assert_eq!(server.ask("POST", "/v1/ops", &[JSON], op.as_bytes()).await.status / 100, 2);
}

#[tokio::test]
async fn strange_keys_come_back_as_they_were_and_reach_no_header() {
    let server = Server::start().await;
    for path in
        ["a%00b", "a%0d%0aX-Evil:%201", "..", "../..%2Fetc%2Fpasswd", "a//b", "%E2%80%AE", "a%22b", "with?", "%"]
    {
        let path = path.replace('?', "%3F").replace("%\u{0}", "%25");
        let path = if path == "%" { "%25".to_owned() } else { path };
        let written = server.put_json(&format!("/v1/kv/{path}"), "1").await;
        assert_eq!(written.status / 100, 2, "{path}: {written:?}");
        assert_eq!(written.header("x-evil"), None);
        let read = server.get(&format!("/v1/kv/{path}")).await;
        let decoded = percent_encoding::percent_decode_str(&path).decode_utf8().expect("UTF-8").into_owned();
        assert_eq!(read.json()["key"], decoded.as_str());
        assert_eq!(server.backend.last_op().key.as_bytes(), decoded.as_bytes());
    }
    let missing = server.get("/v1/kv/none%0d%0aX-Evil:%201").await;
    assert_eq!(missing.status, 404);
    assert!(missing.problem().detail.contains(r"\r\n"), "{missing:?}");
}
