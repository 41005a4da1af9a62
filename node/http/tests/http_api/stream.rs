//! Operation streams: many lines in one request.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::channel::mpsc;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use quorate_api::{AnswerLine, Applied, ErrorCode, Op, OpKind, OpLine, Problem};
use quorate_machine::types::{ContentKind, Value};
use quorate_node_core::gateway::api::ApiSettings;
use quorate_node_port::ServeSettings;
use serde_json::json;
use tokio::net::TcpStream;

use crate::raw::{PATIENCE, Raw, Response, Server, api_settings, serve_settings, until};

const SHORT: Duration = Duration::from_millis(200);
const NDJSON: (&str, &str) = ("Content-Type", "application/x-ndjson");

/// A stream over HTTP/1.1.
struct Lines {
    raw: Raw,
    head: Response,
    text: Vec<u8>,
    has_ended: bool,
}

impl Lines {
    async fn open(server: &Server, headers: &[(&str, &str)]) -> Self {
        let mut raw = server.connect().await;
        let headers = [headers, &[NDJSON, ("Transfer-Encoding", "chunked")]].concat();
        let head = raw.ask("POST", "/v1/ops", &headers, b"").await;
        assert_eq!(head.status, 200, "{head:?}");
        Self { raw, head, text: Vec::new(), has_ended: false }
    }

    /// Sends a piece, whatever is in it.
    async fn send(&mut self, piece: &str) {
        self.raw.send(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).await;
    }

    async fn end(&mut self) {
        self.raw.send(b"0\r\n\r\n").await;
    }

    /// The next answer; `None` at the clean end.
    async fn next(&mut self) -> Option<AnswerLine> {
        loop {
            if let Some(at) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.text.drain(..=at).collect();
                let text = String::from_utf8_lossy(&line);
                return Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")));
            }
            assert!(!self.has_ended, "half a line at the end: {:?}", self.text.escape_ascii());
            let chunk = self.raw.chunk().await;
            if chunk.is_empty() {
                self.has_ended = true;
                assert_eq!(self.text, b"");
                return None;
            }
            self.text.extend_from_slice(&chunk);
        }
    }

    async fn answer(&mut self) -> AnswerLine {
        self.next().await.expect("the stream ended without an answer")
    }
}

async fn server_with(change: impl FnOnce(&mut ApiSettings, &mut ServeSettings)) -> Server {
    let (mut api, mut serve) = (api_settings(), serve_settings());
    change(&mut api, &mut serve);
    Server::start_with(api, serve).await
}

fn upsert(n: u64, key: &str) -> String {
    let op = Op {
        op: OpKind::Upsert,
        key: key.into(),
        value: None,
        value_base64: Some("AAH/".into()),
        patch: None,
        cas: None,
        condition: None,
        lock_ms: None,
        wait_ms: None,
        session: None,
        guard: None,
        ttl_ms: None,
        ttl: None,
        prev: false,
        dry_run: false,
        request_id: None,
    };
    serde_json::to_string(&OpLine { n, timeout_ms: None, op }).expect("JSON") + "\n"
}

fn get(n: u64, key: &str) -> String {
    json!({"n": n, "op": {"op": "get", "key": key}}).to_string() + "\n"
}

fn problem(line: &AnswerLine) -> Problem {
    let problem: Problem =
        serde_json::from_str(line.answer.0.get()).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    assert_eq!((problem.status, problem.code.status()), (line.status, line.status));
    assert!(!problem.request_id.is_empty(), "{line:?}");
    problem
}

#[tokio::test]
async fn lines_are_answered_as_they_are_done_and_the_head_before_the_first() {
    let server = Server::start().await;
    server.backend.hold("slow");
    let mut lines = Lines::open(&server, &[]).await;
    lines.head.carries_the_common_headers();
    assert_eq!(lines.head.header("content-type"), Some("application/x-ndjson"));
    lines.send(&(upsert(1, "slow") + &upsert(2, "quick"))).await;
    let second = lines.answer().await;
    assert_eq!((second.n, second.status, second.term, second.leader), (Some(2), 201, 7, Some(2)));
    lines.send(&get(3, "quick")).await;
    assert_eq!(lines.answer().await.n, Some(3));
    server.backend.release("slow");
    assert_eq!(lines.answer().await.n, Some(1));
    lines.end().await;
    assert_eq!(lines.next().await, None);
    // The connection is as good as before.
    assert_eq!(lines.raw.ask("GET", "/livez", &[], b"").await.status, 200);
}

#[tokio::test]
async fn a_line_is_answered_with_what_the_single_operation_is() {
    let server = Server::start().await;
    server.backend.seed("json", Value { kind: ContentKind::Json, data: b"{\"a\": 1}".to_vec() });
    let mut lines = Lines::open(&server, &[]).await;
    for op in [
        json!({"op": "get", "key": "json"}),
        json!({"op": "get", "key": "none"}),
        json!({"op": "insert", "key": "json", "value": 1, "request_id": "r"}),
        json!({"op": "upsert", "key": "json", "value": 1, "dry_run": true, "prev": true, "request_id": "r"}),
        json!({"op": "upsert", "key": "json", "cas": "999", "value": 1, "request_id": "r2"}),
    ] {
        let body = op.to_string();
        let single = server.ask("POST", "/v1/ops", &[("Content-Type", "application/json")], body.as_bytes()).await;
        lines.send(&format!("{{\"n\":5,\"op\":{body}}}\n")).await;
        let line = lines.answer().await;
        assert_eq!((line.n, line.status), (Some(5), single.status), "{op}");
        let mut answers = [line.answer.0.get().to_owned(), single.text()].map(|text| {
            serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
        });
        for answer in &mut answers {
            // Of a read it is only there to find it again.
            if op["op"] == "get" && answer["request_id"].is_string() {
                answer["request_id"] = "".into();
            }
            // The same request came twice.
            answer.as_object_mut().expect("an object").remove("replayed");
        }
        assert_eq!(answers[0], answers[1], "{op}");
    }
}

#[tokio::test]
async fn a_bad_line_is_answered_with_its_faults_and_the_stream_goes_on() {
    let server = Server::start().await;
    let mut lines = Lines::open(&server, &[]).await;
    let cases = [
        ("nonsense", None, ErrorCode::InvalidArgument, ""),
        ("[1]", None, ErrorCode::InvalidArgument, ""),
        (r#"{"n":1,"op":{"op":"get","key":"k"}} {}"#, None, ErrorCode::InvalidArgument, ""),
        (r#"{"op":{"op":"get","key":"k"}}"#, None, ErrorCode::InvalidArgument, "/n"),
        (r#"{"n":"1","op":{"op":"get","key":"k"}}"#, None, ErrorCode::InvalidArgument, "/n"),
        (r#"{"n":-1,"op":{"op":"get","key":"k"}}"#, None, ErrorCode::InvalidArgument, "/n"),
        (r#"{"n":18446744073709551616,"op":{"op":"get","key":"k"}}"#, None, ErrorCode::InvalidArgument, "/n"),
        (r#"{"n":1,"n":2,"op":{"op":"get","key":"k"}}"#, None, ErrorCode::InvalidArgument, "/n"),
        (r#"{"n":2}"#, Some(2), ErrorCode::InvalidArgument, "/op"),
        (r#"{"n":2,"op":7}"#, Some(2), ErrorCode::InvalidArgument, "/op"),
        (r#"{"n":3,"op":{"op":"get","key":"k"},"color":1}"#, Some(3), ErrorCode::UnknownField, "/color"),
        (r#"{"n":3,"timeout_ms":0,"op":{"op":"get","key":"k"}}"#, Some(3), ErrorCode::InvalidArgument, "/timeout_ms"),
        (r#"{"n":4,"op":{"op":"get","key":""}}"#, Some(4), ErrorCode::InvalidArgument, "/op/key"),
        (r#"{"n":4,"op":{"op":"get","key":"k","color":1}}"#, Some(4), ErrorCode::UnknownField, "/op/color"),
        (
            r#"{"n":5,"op":{"op":"upsert","key":"k","value":{"a":1,"a":2}}}"#,
            Some(5),
            ErrorCode::InvalidArgument,
            "/op/value/a",
        ),
        (r#"{"n":6,"op":{"op":"lock","key":"k","wait_ms":5}}"#, Some(6), ErrorCode::InvalidArgument, "/op/wait_ms"),
    ];
    for (text, n, code, pointer) in cases {
        lines.send(&format!("{text}\n\n \r\n")).await;
        let line = lines.answer().await;
        let problem = problem(&line);
        assert_eq!((line.n, problem.code, problem.applied), (n, code, Applied::No), "{text}");
        assert_eq!(problem.errors[0].pointer, pointer, "{text}");
        let place = if pointer.is_empty() { "body" } else { pointer };
        assert!(problem.detail.contains(place), "{text}: {}", problem.detail);
    }
    assert_eq!((server.backend.commands(), server.backend.barriers()), (vec![], vec![]));
    lines.send(&get(6, "k").replace('\n', "\r\n")).await;
    assert_eq!(lines.answer().await.n, Some(6));
    // A last line needs no end.
    lines.send(get(7, "k").trim_end()).await;
    lines.end().await;
    assert_eq!(lines.answer().await.n, Some(7));
    assert_eq!(lines.next().await, None);
}

#[tokio::test]
async fn a_value_that_was_written_over_several_lines_is_answered_in_one() {
    let server = Server::start().await;
    server.backend.seed("k", Value { kind: ContentKind::Json, data: b"{\n  \"a\":\r\n1}".to_vec() });
    let mut lines = Lines::open(&server, &[]).await;
    lines.send(&get(1, "k")).await;
    let answer: serde_json::Value = serde_json::from_str(lines.answer().await.answer.0.get()).expect("an entry");
    assert_eq!(answer["value"], json!({"a": 1}));
}

#[tokio::test]
async fn each_line_has_its_own_deadline() {
    let server = Server::start().await;
    let started = Instant::now();
    let mut lines = Lines::open(&server, &[("Request-Timeout", "30000")]).await;
    for timeout in ["", "\"timeout_ms\":5000,", "\"timeout_ms\":900000,"] {
        lines.send(&upsert(1, "k").replacen("{", &format!("{{{timeout}"), 1)).await;
        assert_eq!(lines.answer().await.status / 100, 2, "{timeout}");
    }
    for (deadline, seconds) in server.backend.deadlines().into_iter().zip([30, 5, 60]) {
        let wanted = started + Duration::from_secs(seconds);
        assert!(deadline >= wanted && deadline < wanted + PATIENCE, "{:?} is not {seconds} s", deadline - started);
    }
}

#[tokio::test]
async fn half_a_line_is_told_at_its_deadline_and_ends_the_stream() {
    let server = server_with(|api, _| api.body_timeout = SHORT).await;
    let mut lines = Lines::open(&server, &[]).await;
    // Nothing at all is no half line.
    tokio::time::sleep(2 * SHORT).await;
    let started = Instant::now();
    lines.send(&(get(1, "k") + "{\"n\":2,")).await;
    assert_eq!(lines.answer().await.n, Some(1));
    let line = lines.answer().await;
    assert_eq!((line.n, problem(&line).code, problem(&line).applied), (None, ErrorCode::Timeout, Applied::No));
    assert!(started.elapsed() >= SHORT, "{:?}", started.elapsed());
    assert_eq!(lines.next().await, None);
    assert_eq!(lines.raw.closed().await, b"");
}

#[tokio::test]
async fn an_endless_line_ends_the_stream_once_what_is_under_way_is_answered() {
    let server = server_with(|api, _| api.bounds.body_bytes_max = 10_000).await;
    server.backend.hold("slow");
    let mut lines = Lines::open(&server, &[]).await;
    lines.send(&upsert(1, "slow")).await;
    lines.send(&" ".repeat(9_000)).await;
    lines.send(&" ".repeat(9_000)).await;
    let line = lines.answer().await;
    assert_eq!((line.n, problem(&line).code), (None, ErrorCode::TooLarge));
    server.backend.release("slow");
    assert_eq!(lines.answer().await.n, Some(1));
    assert_eq!(lines.next().await, None);
    assert_eq!(lines.raw.closed().await, b"");
}

#[tokio::test]
async fn a_stream_without_a_line_ends_when_it_is_idle_and_not_before() {
    let server = server_with(|_, serve| serve.idle_timeout = SHORT).await;
    server.backend.hold("slow");
    let mut lines = Lines::open(&server, &[]).await;
    lines.send(&upsert(1, "slow")).await;
    tokio::time::sleep(3 * SHORT).await;
    server.backend.release("slow");
    assert_eq!(lines.answer().await.n, Some(1), "a stream with an operation under way is not idle");
    let answered = Instant::now();
    assert_eq!(lines.next().await, None);
    assert!(answered.elapsed() >= SHORT / 2, "{:?}", answered.elapsed());
    assert_eq!(lines.raw.closed().await, b"");
}

#[tokio::test]
async fn stopping_answers_what_is_under_way_and_reads_no_more() {
    let server = server_with(|_, serve| serve.drain_timeout = 10 * PATIENCE).await;
    server.backend.hold("slow");
    let mut lines = Lines::open(&server, &[]).await;
    let idle = Lines::open(&server, &[]).await;
    lines.send(&upsert(1, "slow")).await;
    until("the line did not come", async || server.backend.asked() == 1).await;
    server.stop.cancel();
    assert_eq!(idle.raw.closed().await, b"0\r\n\r\n", "an idle stream ends cleanly at once");
    lines.send(&upsert(2, "late")).await;
    server.backend.release("slow");
    assert_eq!(lines.answer().await.n, Some(1));
    assert_eq!(lines.next().await, None);
    drop(lines);
    tokio::time::timeout(PATIENCE, server.task).await.expect("the server ends").expect("without a panic");
    assert_eq!(server.backend.asked(), 1, "a line that came after the stop was executed");
}

#[tokio::test]
async fn no_more_lines_are_read_than_may_be_under_way() {
    const UNDER_WAY: usize = 1_024;
    let server = server_with(|api, _| api.bounds.classes.point = 10_000).await;
    server.backend.hold("first");
    server.backend.hold("rest");
    let mut lines = Lines::open(&server, &[]).await;
    let mut text = upsert(0, "first");
    for n in 1..UNDER_WAY as u64 + 1 {
        text += &upsert(n, "rest");
    }
    lines.send(&text).await;
    until("the lines did not come", async || server.backend.asked() == UNDER_WAY).await;
    // Nothing shows that a line is never read but that it is not read for a while.
    tokio::time::sleep(SHORT).await;
    assert_eq!(server.backend.asked(), UNDER_WAY);
    server.backend.release("first");
    assert_eq!(lines.answer().await.n, Some(0));
    until("no line took the free place", async || server.backend.asked() == UNDER_WAY + 1).await;
    server.backend.release("rest");
    for _ in 0..UNDER_WAY {
        assert_eq!(lines.answer().await.status / 100, 2);
    }
}

#[tokio::test]
async fn answers_that_nobody_reads_stop_the_reading_and_are_cut() {
    let server = server_with(|_, serve| serve.write_stall_timeout = SHORT).await;
    server.backend.seed("big", Value { kind: ContentKind::Bytes, data: vec![7; 1_000_000] });
    let mut lines = Lines::open(&server, &[]).await;
    let text: String = (0..500).map(|n| get(n, "big")).collect();
    lines.send(&text).await;
    until("the stalled stream was not cut", async || {
        server.get("/metrics").await.text().contains("reason=\"stalled\"} 1")
    })
    .await;
    // Few of the answers were taken from the operations, so few were made: the rest never took memory.
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("quorate_http_requests_in_flight 1.0\n"), "{metrics}");
    assert!(metrics.contains("quorate_http_request_bodies_bytes 0.0\n"), "{metrics}");
    let count = metrics
        .lines()
        .find_map(|line| line.strip_prefix("quorate_http_requests_total{route=\"/v1/ops\",code=\"2xx\"} "));
    let count: u64 = count.expect("the lines are counted").parse().expect("a number");
    assert!(count < 100, "{count} answers of a megabyte were made for a peer that reads none");
}

#[tokio::test]
async fn an_http2_stream_that_gets_no_window_is_cut_too() {
    let server = server_with(|_, serve| serve.write_stall_timeout = SHORT).await;
    // One answer is longer than the window. Its bytes have time, too, at the least rate.
    server.backend.seed("big", Value { kind: ContentKind::Bytes, data: vec![7; 60_000] });
    let stream = TcpStream::connect(server.addr).await.expect("the server listens");
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(65_535);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let (lines, body) = mpsc::unbounded::<Result<Frame<Bytes>, Infallible>>();
    let request = http::Request::post("http://t/v1/ops").header("content-type", "application/x-ndjson");
    let request = request.body(StreamBody::new(body)).expect("a request");
    let response = sender.send_request(request).await.expect("the head comes before the first line");
    // The connection is read all the time; of this answer nothing is taken.
    let text: String = (0..500).map(|n| get(n, "big")).collect();
    lines.unbounded_send(Ok(Frame::data(Bytes::from(text)))).expect("the stream is open");
    let ended = tokio::time::timeout(PATIENCE, connection).await.expect("the connection is cut");
    ended.expect("no panic").expect_err("in the middle of an answer");
    drop(response);
    until("what was cut still counts", async || {
        let metrics = server.get("/metrics").await.text();
        metrics.contains("reason=\"stalled\"} 1") && metrics.contains("quorate_http_requests_in_flight 1.0\n")
    })
    .await;
}

#[tokio::test]
async fn a_request_that_breaks_off_leaves_its_operations_to_their_end() {
    let server = Server::start().await;
    server.backend.hold("slow");
    let mut lines = Lines::open(&server, &[]).await;
    lines.send(&(upsert(1, "slow") + "{\"n\":2,")).await;
    until("the line did not come", async || server.backend.asked() == 1).await;
    // Not how a chunk begins.
    lines.raw.send(b"zz\r\n").await;
    // The half line is given up then, and the bytes of the other one still count.
    let counted = format!("quorate_http_request_bodies_bytes {}.0\n", upsert(1, "slow").trim_end().len());
    until("the break was not seen", async || server.get("/metrics").await.text().contains(&counted)).await;
    server.backend.release("slow");
    assert_eq!(lines.raw.closed().await, b"");
    assert_eq!(server.get("/v1/kv/slow").await.status, 200, "the write did not run to its end");
    until("what broke off still counts", async || {
        let metrics = server.get("/metrics").await.text();
        metrics.contains("quorate_http_requests_in_flight 1.0\n")
            && metrics.contains("quorate_http_request_bodies_bytes 0.0\n")
    })
    .await;
}

#[tokio::test]
async fn a_line_too_many_for_the_node_is_told_429_and_the_stream_goes_on() {
    let server = server_with(|api, _| api.bounds.classes.point = 2).await;
    server.backend.hold("slow");
    let mut idle = Lines::open(&server, &[]).await;
    let mut lines = Lines::open(&server, &[]).await;
    lines.send(&(upsert(1, "slow") + &upsert(2, "slow") + &upsert(3, "slow"))).await;
    let line = lines.answer().await;
    assert_eq!((line.n, problem(&line).code), (Some(3), ErrorCode::TooManyRequests));
    let refused = server.get("/v1/kv/k").await;
    assert_eq!(refused.problem().code, ErrorCode::TooManyRequests, "lines count among the requests of the node");
    server.backend.release("slow");
    for _ in 0..2 {
        assert_eq!(lines.answer().await.status / 100, 2);
    }
    // Two open streams without a line are no requests in flight.
    idle.send(&get(4, "slow")).await;
    assert_eq!(idle.answer().await.status / 100, 2);
}

#[tokio::test]
async fn lines_take_their_place_among_the_bodies() {
    let server = server_with(|api, _| api.bounds.bodies_bytes_max = 3_000).await;
    server.backend.hold("slow");
    let mut lines = Lines::open(&server, &[]).await;
    let long = |n| upsert(n, "slow").replace("AAH/", &"AAH/".repeat(300));
    lines.send(&long(1)).await;
    lines.send(&long(2)).await;
    until("the lines did not come", async || server.backend.asked() == 2).await;
    lines.send(&long(3)).await;
    let line = lines.answer().await;
    assert_eq!((line.n, problem(&line).code), (Some(3), ErrorCode::TooManyRequests));
    server.backend.release("slow");
    for _ in 0..2 {
        assert_eq!(lines.answer().await.status / 100, 2);
    }
    lines.send(&long(4)).await;
    assert_eq!(lines.answer().await.status / 100, 2);
}

#[tokio::test]
async fn a_stream_of_known_length_may_be_longer_than_a_body() {
    let server = server_with(|api, _| api.bounds.body_bytes_max = 100).await;
    let text: String = (0..50).map(|n| get(n, "k")).collect();
    let mut raw = server.connect().await;
    let head = raw.ask("POST", "/v1/ops", &[NDJSON], text.as_bytes()).await;
    let mut lines = Lines { raw, head, text: Vec::new(), has_ended: false };
    let mut count = 0;
    while let Some(line) = lines.next().await {
        assert_eq!(line.status, 404);
        count += 1;
    }
    assert_eq!(count, 50);
}

#[tokio::test]
async fn who_waits_to_be_told_to_continue_is_told() {
    let server = Server::start().await;
    let mut raw = server.connect().await;
    let headers = [NDJSON, ("Transfer-Encoding", "chunked"), ("Expect", "100-continue")];
    raw.send_request("POST", "/v1/ops", &headers, b"").await;
    assert_eq!(raw.response(true).await.status, 100);
    let head = raw.response(false).await;
    assert_eq!(head.status, 200);
    let mut lines = Lines { raw, head, text: Vec::new(), has_ended: false };
    lines.send(&get(1, "k")).await;
    assert_eq!(lines.answer().await.n, Some(1));
}

#[tokio::test]
async fn each_line_is_counted_as_a_request() {
    let server = Server::start().await;
    let mut lines = Lines::open(&server, &[]).await;
    lines.send(&(upsert(1, "k") + &get(2, "k") + &get(3, "none") + "nonsense\n")).await;
    for _ in 0..4 {
        lines.answer().await;
    }
    let metrics = server.get("/metrics").await.text();
    // Two operations and the stream itself.
    assert!(metrics.contains("quorate_http_requests_total{route=\"/v1/ops\",code=\"2xx\"} 3\n"), "{metrics}");
    assert!(metrics.contains("quorate_http_requests_total{route=\"/v1/ops\",code=\"4xx\"} 2\n"), "{metrics}");
}

#[tokio::test]
async fn streams_work_over_http2() {
    let server = Server::start().await;
    server.backend.hold("slow");
    let stream = TcpStream::connect(server.addr).await.expect("the server listens");
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2 by prior knowledge");
    tokio::spawn(connection);
    let (lines, body) = mpsc::unbounded::<Result<Frame<Bytes>, Infallible>>();
    let send = |text: String| lines.unbounded_send(Ok(Frame::data(Bytes::from(text)))).expect("the stream is open");
    let request = http::Request::post("http://t/v1/ops").header("content-type", "application/x-ndjson");
    let request = request.body(StreamBody::new(body)).expect("a request");
    let response = sender.send_request(request).await.expect("the head comes before the first line");
    assert_eq!(response.status(), 200);
    let mut answers = response.into_body();
    let mut next = async || {
        let frame = tokio::time::timeout(PATIENCE, answers.frame()).await.expect("an answer in time")?;
        let data = frame.expect("no error").into_data().expect("no trailers");
        Some(serde_json::from_slice::<AnswerLine>(&data).expect("one line").n)
    };
    send(upsert(1, "slow") + &get(2, "k"));
    assert_eq!(next().await, Some(Some(2)));
    // Stopping is heard by a stream that has a task of its own too.
    server.stop.cancel();
    server.backend.release("slow");
    assert_eq!(next().await, Some(Some(1)));
    assert_eq!(next().await, None);
}
