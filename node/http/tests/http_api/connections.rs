//! Connections that do not behave: silent, slow, too many, smuggling; and the end of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use quorate_api::{Applied, ErrorCode, Problem};
use quorate_node_port::ServeSettings;
use quorate_node_port::threads::{self, ClientThreads};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http_2::{END_HEADERS, END_STREAM, HEADERS, PREFACE, RST_STREAM, SETTINGS, frame};
use crate::raw::{PATIENCE, Server, api_settings, serve_settings, until};

const SHORT: Duration = Duration::from_millis(200);

async fn impatient() -> Server {
    let mut api = api_settings();
    api.body_timeout = SHORT;
    let mut serve = serve_settings();
    serve.header_timeout = SHORT;
    Server::start_with(api, serve).await
}

/// Sends the bytes and waits for the server to close the connection.
async fn closes(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let started = Instant::now();
    let mut raw = server.connect().await;
    raw.send(bytes).await;
    let answer = raw.closed().await;
    assert!(started.elapsed() >= SHORT, "closed too early: {:?}", started.elapsed());
    assert!(started.elapsed() < PATIENCE, "not closed at the deadline");
    answer
}

#[tokio::test]
async fn silent_and_half_sent_heads_are_closed_at_the_deadline() {
    let server = impatient().await;
    // Nothing, half a preface, one byte, half a head.
    let heads = [&b""[..], b"PRI * HT", b"G", b"PUT /v1/kv/k HTTP/1.1\r\nHost: t\r\nContent-Le"];
    let answers = futures::future::join_all(heads.map(|head| closes(&server, head))).await;
    for (head, answer) in heads.iter().zip(answers) {
        assert_eq!(answer, b"", "{}", String::from_utf8_lossy(head));
    }
}

#[tokio::test]
async fn half_a_preface_of_somebody_who_went_is_not_waited_for() {
    let server = Server::start().await;
    for begun in [&b"P"[..], b"PRI * HTTP/2.0\r\n\r\nSM"] {
        let started = Instant::now();
        let mut stream = TcpStream::connect(server.addr).await.expect("the server listens");
        stream.write_all(begun).await.expect("it takes them");
        stream.shutdown().await.expect("our half can end");
        let mut rest = Vec::new();
        // Closed or reset: what was sent nobody took.
        let _closed = stream.read_to_end(&mut rest).await;
        let took = started.elapsed();
        assert!(rest.is_empty() && took < serve_settings().header_timeout / 2, "{took:?}: {rest:?}");
    }
}

#[tokio::test]
async fn a_second_head_that_comes_half_is_closed_and_an_idle_connection_is_not() {
    let server = impatient().await;
    let mut raw = server.connect().await;
    assert_eq!(raw.ask("GET", "/livez", &[], b"").await.status, 200);
    // Well beyond the header timeout: only bytes of a head start its clock.
    tokio::time::sleep(SHORT * 2).await;
    assert_eq!(raw.ask("GET", "/livez", &[], b"").await.status, 200, "an idle connection stays open");
    raw.send(b"GET /li").await;
    assert_eq!(raw.closed().await, b"");
}

#[tokio::test]
async fn half_a_body_is_answered_and_closed_at_the_deadline() {
    let server = impatient().await;
    let started = Instant::now();
    let mut raw = server.connect().await;
    raw.send_request("PUT", "/v1/kv/k", &[("Content-Type", "application/json"), ("Content-Length", "100")], b"{\"a\"")
        .await;
    let problem = raw.response(false).await.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::Timeout, Applied::No));
    assert!(started.elapsed() >= SHORT);
    assert_eq!(raw.closed().await, b"");
    assert_eq!(server.backend.commands(), []);
}

#[tokio::test]
async fn a_body_that_comes_slowly_but_fast_enough_is_taken() {
    let server = impatient().await;
    let mut raw = server.connect().await;
    let head =
        "PUT /v1/kv/k HTTP/1.1\r\nHost: t\r\nContent-Type: application/octet-stream\r\nContent-Length: 40960\r\n\r\n";
    raw.send(head.as_bytes()).await;
    for _ in 0..10 {
        // 4 KiB each 50 ms is 80 KiB a second: longer in all than the timeout, but above the minimum rate.
        raw.send(&[1u8; 4_096]).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(raw.response(false).await.status, 201);
}

#[tokio::test]
async fn an_idle_connection_is_closed_at_its_own_deadline() {
    let mut settings = serve_settings();
    settings.idle_timeout = SHORT;
    let server = Server::start_with(api_settings(), settings).await;
    let mut raw = server.connect().await;
    assert_eq!(raw.ask("GET", "/livez", &[], b"").await.status, 200);
    assert_eq!(raw.closed().await, b"");
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_cut() {
    let mut settings = serve_settings();
    settings.write_stall_timeout = SHORT;
    let server = Server::start_with(api_settings(), settings).await;
    let value = vec![7u8; 1_536 * 1024];
    server.ask("PUT", "/v1/kv/big", &[("Content-Type", "application/octet-stream")], &value).await;
    let mut raw = server.connect().await;
    // More answers than the socket buffers of both sides hold.
    for _ in 0..40 {
        raw.send_request("GET", "/v1/kv/big?raw", &[], b"").await;
    }
    let is_cut = async || server.get("/metrics").await.text().contains("reason=\"stalled\"} 1");
    until("the stalled connection was not cut", is_cut).await;
}

/// A request for this path without a body, over HTTP/2.
fn get_over_http2(stream: u32, path: &str) -> Vec<u8> {
    // GET, http, the authority and the path as they are.
    let length = u8::try_from(path.len()).expect("a short path");
    let head = [b"\x82\x86\x41\x01t\x04".as_slice(), &[length], path.as_bytes()].concat();
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &head)
}

#[tokio::test]
async fn a_page_that_gets_no_window_is_cut_although_its_connection_is_used() {
    let mut settings = serve_settings();
    settings.write_stall_timeout = SHORT;
    let server = Server::start_with(api_settings(), settings).await;
    // A long answer, which has two thirds of a second besides: the time for its bytes at the least rate.
    server.ask("PUT", "/v1/kv/big", &[("Content-Type", "application/octet-stream")], &[7; 40_000]).await;
    let mut stream = TcpStream::connect(server.addr).await.expect("the server listens");
    // Windows of no byte at all.
    let settings = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let begin = [PREFACE, &settings, &get_over_http2(1, "/v1/kv/big?raw")].concat();
    stream.write_all(&begin).await.expect("it is taken");
    let (until, mut id, mut heads) = (Instant::now() + PATIENCE, 3, vec![0; 65_536]);
    loop {
        assert!(Instant::now() < until, "the connection was not cut");
        let alive = stream.write_all(&get_over_http2(id, "/livez")).await.is_ok();
        // Slowly: a connection may have 256 streams, and none of these comes to its end.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let read = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut heads)).await;
        if !alive || matches!(read, Ok(Ok(0) | Err(_))) {
            break;
        }
        id += 2;
    }
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("reason=\"stalled\"} 1"), "{metrics}");
    assert!(metrics.contains("quorate_http_answers_bytes 0.0\n"), "it holds memory no more: {metrics}");
}

#[tokio::test]
async fn a_body_declared_too_long_is_refused_before_it_comes() {
    let server = Server::start().await;
    for length in ["3145728", "9223372036854775807"] {
        let mut raw = server.connect().await;
        raw.send_request("PUT", "/v1/kv/k", &[("Content-Type", "application/json"), ("Content-Length", length)], b"")
            .await;
        assert_eq!(raw.response(false).await.problem().code, ErrorCode::TooLarge, "{length}");
        assert_eq!(raw.closed().await, b"");
    }
    // Without a declared length the limit counts while reading.
    let mut raw = server.connect().await;
    raw.send(
        b"PUT /v1/kv/k HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    )
    .await;
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    for _ in 0..25 {
        raw.send(&chunk).await;
    }
    assert_eq!(raw.response(false).await.problem().code, ErrorCode::TooLarge);
    assert_eq!(server.backend.commands(), []);
}

#[tokio::test]
async fn bodies_that_take_too_much_memory_together_are_refused_and_room_is_made_again() {
    const OCTETS: (&str, &str) = ("Content-Type", "application/octet-stream");
    let mut api = api_settings();
    api.bounds.bodies_bytes_max = 100_000;
    let server = Server::start_with(api, serve_settings()).await;
    let mut slow = server.connect().await;
    slow.send_request("PUT", "/v1/kv/slow", &[OCTETS, ("Content-Length", "60000")], &[1; 59_999]).await;
    let do_count = async || server.get("/metrics").await.text().contains("quorate_http_request_bodies_bytes 59999");
    until("the bytes that came do not count", do_count).await;
    let refused = server.ask("PUT", "/v1/kv/other", &[OCTETS], &[2; 60_000]).await;
    let problem = refused.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::TooManyRequests, Applied::No));
    assert_eq!((refused.header("retry-after"), refused.header("connection")), (Some("1"), Some("close")));
    slow.send(&[1]).await;
    assert_eq!(slow.response(false).await.status, 201, "what was let in goes on");
    assert_eq!(server.ask("PUT", "/v1/kv/other", &[OCTETS], &[2; 60_000]).await.status / 100, 2);
    assert!(server.get("/metrics").await.text().contains("quorate_http_request_bodies_bytes 0"));
}

#[tokio::test]
async fn nothing_can_be_smuggled_behind_a_body() {
    let server = Server::start().await;
    let second = "DELETE /v1/kv/smuggled HTTP/1.1\r\nHost: t\r\n\r\n";
    let head = "PUT /v1/kv/k HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n";
    let attacks = [
        // One reader goes by the length, the other by the chunks: answered, and the connection ends there.
        format!("{head}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n{second}"),
        format!("{head}Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n1\r\n1\r\n0\r\n\r\n{second}"),
        format!("{head}Content-Length: 1\r\nContent-Length: 2\r\n\r\n1{second}"),
        format!("{head}Content-Length: +1\r\n\r\n1{second}"),
        format!("{head}Transfer-Encoding: chunked, identity\r\n\r\n1\r\n1\r\n0\r\n\r\n{second}"),
        format!("{head}Transfer-Encoding : chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n{second}"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n1\r\n0\r\n\r\n{second}"),
        format!("{head}Content-Length: 1\r\n folded: x\r\n\r\n1{second}"),
    ];
    for attack in attacks {
        let mut raw = server.connect().await;
        raw.send(attack.as_bytes()).await;
        let answer = String::from_utf8_lossy(&raw.closed().await).into_owned();
        assert!(answer.matches("HTTP/1.1 ").count() <= 1, "{attack}\n→ {answer}");
        for command in server.backend.commands() {
            assert!(!format!("{command:?}").contains("smuggled"), "{attack}");
        }
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start().await;
    let mut raw = server.connect().await;
    for path in ["/livez", "/v1/kv/none", "/version"] {
        raw.send_request("GET", path, &[], b"").await;
    }
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(raw.response(false).await.status);
    }
    assert_eq!(statuses, [200, 404, 200]);
}

#[tokio::test]
async fn one_connection_too_many_is_told_and_closed_and_room_is_made_again() {
    let mut settings = serve_settings();
    settings.connections_max = 2;
    let server = Server::start_with(api_settings(), settings).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut raw = server.connect().await;
        assert_eq!(raw.ask("GET", "/livez", &[], b"").await.status, 200);
        open.push(raw);
    }
    let refused = server.connect().await.response(false).await;
    assert_eq!((refused.status, refused.header("connection")), (429, Some("close")));
    assert_eq!(refused.header("retry-after"), Some("1"));
    let told: Problem = serde_json::from_slice(&refused.body).expect("a problem document");
    assert_eq!(told, Problem::new(ErrorCode::TooManyRequests, Applied::No, told.detail.clone()));
    open.clear();
    let until = Instant::now() + PATIENCE;
    loop {
        let mut raw = server.connect().await;
        raw.send_request("GET", "/livez", &[], b"").await;
        if raw.try_response(false).await.is_some_and(|response| response.status == 200) {
            break;
        }
        assert!(Instant::now() < until, "closed connections still count");
    }
}

#[tokio::test]
async fn one_connection_too_many_takes_the_place_of_the_oldest_silent_one_of_the_largest_crowd() {
    let mut settings = serve_settings();
    settings.connections_max = 6;
    let server = Server::start_with(api_settings(), settings).await;
    let mut served = server.connect().await;
    assert_eq!(served.ask("GET", "/livez", &[], b"").await.status, 200);
    let alone = server.connect_from(2).await;
    let mut crowd = std::collections::VecDeque::new();
    for _ in 0..4 {
        crowd.push_back(server.connect_from(3).await);
    }
    let mut newcomers = Vec::new();
    for last in [4, 5] {
        let mut newcomer = server.connect_from(last).await;
        assert_eq!(newcomer.ask("GET", "/livez", &[], b"").await.status, 200);
        newcomers.push(newcomer);
        assert_eq!(crowd.pop_front().expect("there are more").closed().await, b"", "it is not told, it said nothing");
    }
    for mut open in crowd.into_iter().chain([served, alone]) {
        assert_eq!(open.ask("GET", "/livez", &[], b"").await.status, 200);
    }
    // A moment after they were closed.
    let (counted, until) =
        ("quorate_http_connections_ended_total{reason=\"pushed_out\"} 2\n", Instant::now() + PATIENCE);
    loop {
        let metrics = newcomers[0].ask("GET", "/metrics", &[], b"").await.text();
        if metrics.contains(counted) {
            break;
        }
        assert!(Instant::now() < until, "{metrics}");
    }
}

#[tokio::test]
async fn http2_is_served_on_the_same_port() {
    let server = Server::start().await;
    server.put_json("/v1/kv/k", "1").await;
    let stream = TcpStream::connect(server.addr).await.expect("the server listens");
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2 by prior knowledge");
    tokio::spawn(connection);
    for (method, path, status) in [("GET", "/v1/kv/k", 200), ("HEAD", "/v1/kv/k", 200), ("GET", "/v1/kv/none", 404)] {
        let request = http::Request::builder().method(method).uri(format!("http://t{path}"));
        let request = request.body(Empty::<bytes::Bytes>::new()).expect("a request");
        let response = sender.send_request(request).await.expect("an answer");
        assert_eq!(response.status(), status);
        assert!(response.headers().contains_key("quorate-term"));
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        assert_eq!(body.is_empty(), method == "HEAD");
    }
}

#[tokio::test]
async fn stopping_lets_open_requests_end_and_closes_idle_connections() {
    let mut settings = serve_settings();
    // Longer than the test waits: nothing here ends because it was cut.
    settings.drain_timeout = 10 * PATIENCE;
    let server = Server::start_with(api_settings(), settings).await;
    let mut idle = server.connect().await;
    assert_eq!(idle.ask("GET", "/livez", &[], b"").await.status, 200);
    let mut busy = server.connect().await;
    busy.send_request("GET", "/v1/kv/k?if_none_match=0&wait_ms=300", &[], b"").await;
    // /livez asks for none.
    until("the long poll did not begin", async || !server.backend.barriers().is_empty()).await;
    server.stop.cancel();
    assert_eq!(idle.closed().await, b"");
    assert_eq!(busy.response(false).await.status, 304, "a request in the works is answered");
    tokio::time::timeout(PATIENCE, server.task).await.expect("the server ends").expect("without a panic");
    assert!(TcpStream::connect(server.addr).await.is_err(), "the port is free");
}

#[tokio::test]
async fn draining_does_not_wait_longer_than_it_may() {
    let mut settings = serve_settings();
    settings.drain_timeout = SHORT;
    let server = Server::start_with(api_settings(), settings).await;
    let mut busy = server.connect().await;
    busy.send_request("GET", "/v1/kv/k?if_none_match=0&wait_ms=60000", &[], b"").await;
    until("the long poll did not begin", async || !server.backend.barriers().is_empty()).await;
    server.stop.cancel();
    tokio::time::timeout(PATIENCE, server.task).await.expect("the server ends").expect("without a panic");
    assert_eq!(busy.closed().await, b"");
}

#[test]
fn many_connections_are_served_by_other_threads_too_and_end_with_the_port() {
    let (own, beside) = (threads::runtime(1).expect("a runtime"), ClientThreads::start(2).expect("more of them"));
    let handles = beside.handles();
    own.block_on(async {
        let settings = ServeSettings { beside: handles.clone(), ..serve_settings() };
        let server = Server::start_with(api_settings(), settings).await;
        let mut open = Vec::new();
        for _ in 0..20 {
            let mut raw = server.connect().await;
            assert_eq!(raw.ask("GET", "/livez", &[], b"").await.status, 200);
            open.push(raw);
        }
        for handle in &handles {
            // One more feels whether the thread is late.
            assert!(handle.metrics().num_alive_tasks() > 4, "{}", handle.metrics().num_alive_tasks());
        }
        let mut busy = server.connect().await;
        busy.send_request("GET", "/v1/kv/k?if_none_match=0&wait_ms=300", &[], b"").await;
        until("the long poll did not begin", async || !server.backend.barriers().is_empty()).await;
        server.stop.cancel();
        assert_eq!(busy.response(false).await.status, 304, "a request in the works is answered");
        for raw in open {
            assert_eq!(raw.closed().await, b"");
        }
        tokio::time::timeout(PATIENCE, server.task).await.expect("the server ends").expect("without a panic");
    });
}

/// More tasks than a thread's own queue holds, all of them ready again at once.
#[test]
fn of_a_thousand_tasks_that_are_always_ready_none_gets_a_fraction_of_the_turns() {
    const TURNS: usize = 100_000;
    let (runtime, all) = (threads::runtime(1).expect("a runtime"), Arc::new(AtomicUsize::new(0)));
    let mut turns: Vec<usize> = runtime.block_on(async {
        let tasks = (0..1_000).map(|_| {
            let (all, mut mine) = (Arc::clone(&all), 0);
            tokio::spawn(std::future::poll_fn(move |cx| {
                mine += 1;
                if all.fetch_add(1, Ordering::Relaxed) >= TURNS {
                    return Poll::Ready(mine);
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            }))
        });
        futures::future::try_join_all(tasks.collect::<Vec<_>>()).await.expect("none panics")
    });
    turns.sort_unstable();
    let (least, median) = (turns[0], turns[turns.len() / 2]);
    assert!(3 * least >= median, "{least} turns, where most had {median}");
}

#[tokio::test]
async fn streams_that_are_opened_and_reset_by_the_thousand_end_their_connection_and_no_other() {
    const STREAMS: u32 = 5_000;
    let server = Server::start().await;
    let mut other = server.connect().await;
    assert_eq!(other.ask("GET", "/livez", &[], b"").await.status, 200);
    // `GET /` of the host `t`, as HPACK has it.
    let head = [0x82, 0x86, 0x84, 0x41, 0x01, b't'];
    let mut attack = [PREFACE, &frame(SETTINGS, 0, 0, b"")].concat();
    for number in 0..STREAMS {
        let stream = 2 * number + 1;
        attack.extend(frame(HEADERS, END_STREAM | END_HEADERS, stream, &head));
        attack.extend(frame(RST_STREAM, 0, stream, &8u32.to_be_bytes()));
    }
    let mut raw = server.connect().await;
    raw.send_bytes_until_refused(&attack).await;
    let said = raw.closed().await;
    // GOAWAY with ENHANCE_YOUR_CALM.
    let calm = 0xbu32.to_be_bytes();
    assert!(said.windows(calm.len()).any(|bytes| bytes == calm), "{:?}", said.escape_ascii().to_string());
    assert_eq!(other.ask("GET", "/livez", &[], b"").await.status, 200);
}

#[tokio::test]
async fn heads_that_are_too_long_are_refused_and_take_no_memory() {
    let server = Server::start().await;
    let long = "h".repeat(40 * 1024);
    let many: String = (0..200).map(|n| format!("X-{n}: v\r\n")).collect();
    for head in [
        format!("GET /v1/kv/k HTTP/1.1\r\nHost: t\r\nX-Long: {long}\r\n\r\n"),
        format!("GET /v1/kv/{long} HTTP/1.1\r\nHost: t\r\n\r\n"),
        format!("GET /v1/kv/k HTTP/1.1\r\nHost: t\r\n{many}\r\n"),
    ] {
        let mut raw = server.connect().await;
        raw.send_bytes_until_refused(head.as_bytes()).await;
        let said = String::from_utf8_lossy(&raw.closed().await).into_owned();
        assert!(said.starts_with("HTTP/1.1 4"), "{:.60}: {said}", head);
    }
    assert_eq!(server.backend.barriers(), []);
}
