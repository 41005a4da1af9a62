//! Readers that take nothing of their answers, or too little: what they make a node hold, and when they are cut.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use quorate_node_core::backend::Node;
use quorate_node_core::gateway::api::ApiSettings;
use quorate_node_port::ServeSettings;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use crate::http_2::{END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame};
use crate::raw::{JSON, PATIENCE, Raw, Server, api_settings, serve_settings, until};

const OCTETS: (&str, &str) = ("Content-Type", "application/octet-stream");

/// What the system buffers of each side of a connection: as little as it does, so that what is not read stays in the server.
const SYSTEM_BYTES: u32 = 4 * 1024;

/// Who reads as they should, and who do not.
const HONEST: Ipv4Addr = Ipv4Addr::LOCALHOST;
const GREEDY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);

/// A server whose sockets buffer little.
fn server(api: ApiSettings, settings: ServeSettings) -> Server {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_send_buffer_size(SYSTEM_BYTES).expect("a size");
    socket.bind((HONEST, 0).into()).expect("a free port");
    Server::start_on(socket.listen(1_024).expect("it listens"), api, settings)
}

/// A client whose socket buffers little.
async fn connect(server: &Server, from: Ipv4Addr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(SYSTEM_BYTES).expect("a size");
    socket.bind((from, 0).into()).expect("an address of loopback");
    socket.connect(server.addr).await.expect("the server listens")
}

async fn begin(server: &Server, from: Ipv4Addr, path: &str) -> Raw {
    let mut raw = Raw::on(connect(server, from).await);
    raw.send_request("GET", path, &[], b"").await;
    raw
}

/// The sum of all metrics whose names begin so.
async fn metric(server: &Server, name: &str) -> f64 {
    let text = server.get("/metrics").await.text();
    let found: Vec<f64> =
        text.lines().filter_map(|line| line.strip_prefix(name)?.split(' ').nth(1)?.parse().ok()).collect();
    assert!(!found.is_empty(), "{name} is missing in\n{text}");
    found.iter().sum()
}

const ANSWERS_BYTES: usize = 8 * 1024 * 1024;
/// Of one address.
const SHARE_BYTES: usize = ANSWERS_BYTES / 4;
const WATCHES: usize = 300;
/// An event of this length is no long answer.
const VALUE_BYTES: usize = 20_000;
const CHANGES: usize = 30;

async fn watched() -> Server {
    let (mut api, mut settings) = (api_settings(), serve_settings());
    api.bounds.answers_bytes_max = ANSWERS_BYTES;
    settings.connections_max = 2 * WATCHES;
    settings.write_stall_timeout = 10 * PATIENCE;
    // Connections are looked at four times in that.
    settings.header_timeout = Duration::from_secs(2);
    server(api, settings)
}

/// Changes a value that many watch who read nothing: they have the server hold no more than one address may, and others are served.
async fn unread_watches_are_bounded(server: &Server) {
    until("not all watches are open", async || server.backend.feed().watches() >= WATCHES).await;
    let mut honest = begin(server, HONEST, "/v1/watch?prefix=w").await;
    assert_eq!(honest.response(true).await.status, 200);
    let most = SHARE_BYTES as f64 + 8.0 * VALUE_BYTES as f64;
    for change in 0..CHANGES {
        let began = Instant::now();
        assert_eq!(server.ask("PUT", "/v1/kv/w", &[OCTETS], &[7; VALUE_BYTES]).await.status / 100, 2);
        honest.until(format!("\nid: {}.0\n", change + 2).as_bytes()).await;
        assert!(began.elapsed() < PATIENCE / 4, "others wait: {:?}", began.elapsed());
        let held = metric(server, "quorate_http_answers_bytes").await;
        assert!(held <= most, "{held} bytes are held, {SHARE_BYTES} are one address's part");
    }
    until("what waits for its reader is not counted", async || {
        metric(server, "quorate_http_answers_bytes").await >= SHARE_BYTES as f64
    })
    .await;
    // Each of them had events made as long as the system took them, and then there was no room.
    let made = metric(server, "quorate_watch_events_total").await;
    assert!(made < (4 * WATCHES) as f64, "{made} events were made of {WATCHES} times {CHANGES}");
    assert_eq!(server.get("/v1/kv/w").await.status, 200);
}

#[tokio::test]
async fn watches_that_nobody_reads_hold_what_one_address_may_together() {
    let server = watched().await;
    let mut unread = Vec::new();
    for _ in 0..WATCHES {
        unread.push(begin(&server, GREEDY, "/v1/watch?prefix=w").await);
    }
    unread_watches_are_bounded(&server).await;
    drop(unread);
    until("they hold memory although they are gone", async || {
        metric(&server, "quorate_http_answers_bytes").await == 0.0
    })
    .await;
}

#[tokio::test]
async fn watches_of_few_connections_that_nobody_reads_hold_no_more() {
    const CONNECTIONS: usize = 2;
    const WINDOW_UPDATE: u8 = 8;
    // As large as windows may be: nothing but the server bounds what it makes.
    let windows = [
        frame(SETTINGS, 0, 0, &[&4u16.to_be_bytes()[..], &0x7fff_ffffu32.to_be_bytes()].concat()),
        frame(WINDOW_UPDATE, 0, 0, &0x7fff_0000u32.to_be_bytes()),
    ];
    // GET, http, the authority and the path as they are.
    let path = b"/v1/watch?prefix=w";
    let head = [b"\x82\x86\x41\x01t\x04".as_slice(), &[path.len() as u8], path].concat();
    let server = watched().await;
    let mut unread = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = connect(&server, GREEDY).await;
        stream.write_all(&[PREFACE, &windows.concat()].concat()).await.expect("it takes them");
        for number in 0..(WATCHES / CONNECTIONS) as u32 {
            let get = frame(HEADERS, END_STREAM | END_HEADERS, 2 * number + 1, &head);
            stream.write_all(&get).await.expect("it takes them");
        }
        unread.push(stream);
    }
    unread_watches_are_bounded(&server).await;
    drop(unread);
    until("they hold memory although they are gone", async || {
        metric(&server, "quorate_http_answers_bytes").await == 0.0
    })
    .await;
}

/// Longer than what the system takes of an answer.
const BIG: usize = 200_000;
const GRPC: (&str, &str) = ("Content-Type", "application/grpc");
/// For writes of one entry that show nothing else.
const PREFER: (&str, &str) = ("Prefer", "return=representation");

/// Requests of an address, each on a connection of its own, whose answers nobody reads.
async fn ask_unread(server: &Server, from: Ipv4Addr, path: &str, body: &str, count: usize) -> Vec<Raw> {
    let mut unread = Vec::new();
    let kind = if path.contains("pb.") { GRPC } else { JSON };
    for _ in 0..count {
        let mut raw = Raw::on(connect(server, from).await);
        raw.send_request("POST", path, &[kind, PREFER], body.as_bytes()).await;
        unread.push(raw);
    }
    unread
}

async fn with_a_big_entry() -> Server {
    let server = watched().await;
    assert_eq!(server.ask("PUT", "/v1/kv/big", &[OCTETS], &[7; BIG]).await.status / 100, 2);
    server
}

#[tokio::test]
async fn whatever_shows_long_values_and_is_not_read_holds_what_one_address_may() {
    // All of them together have twice as much as there is for everybody.
    const REQUESTS: usize = 2 * ANSWERS_BYTES / BIG;
    for (path, body) in [
        ("/v1/ops", r#"{"op":"get","key":"big"}"#),
        ("/v1/ops", r#"{"op":"get_and_touch","key":"big","ttl_ms":60000}"#),
        ("/v1/ops", r#"{"op":"touch","key":"big","ttl_ms":60000}"#),
        ("/v1/ops", r#"{"op":"touch","key":"big","ttl_ms":60000,"prev":true,"dry_run":true}"#),
        ("/v1/ops", r#"{"op":"insert","key":"big","value":1}"#),
        ("/v1/bulk", r#"{"ops":[{"op":"touch","key":"big","ttl_ms":60000,"prev":true}]}"#),
        ("/v1/bulk", r#"{"ops":[{"op":"insert","key":"big","value":1}]}"#),
        ("/v1/txn", r#"{"then":[{"op":"get","key":"big"}]}"#),
        ("/v3/kv/range", r#"{"key":"Ymln"}"#),
        // The same message in the frame of gRPC: field 1, three bytes long.
        ("/etcdserverpb.KV/Range", "\0\0\0\0\u{5}\n\u{3}big"),
    ] {
        let server = with_a_big_entry().await;
        let unread = ask_unread(&server, GREEDY, path, body, REQUESTS).await;
        until(&format!("{path} {body}: what is not read is not counted"), async || {
            metric(&server, "quorate_http_answers_bytes").await >= SHARE_BYTES as f64
        })
        .await;
        // That of the metrics is one of them.
        until(&format!("{path} {body} is not all answered"), async || {
            metric(&server, "quorate_http_requests_in_flight").await <= 1.0
        })
        .await;
        let held = metric(&server, "quorate_http_answers_bytes").await;
        // The share, and the answers that were under way before it was full.
        assert!(held <= (SHARE_BYTES + 8 * BIG) as f64, "{path} {body}: {held} bytes are held");
        assert_eq!(server.get("/v1/kv?prefix=none").await.status, 200, "{path} {body}: a list of somebody else");
        assert_eq!(server.get("/v1/kv/big").await.status, 200, "{path} {body}: a long answer to somebody else");
        drop(unread);
    }
}

/// Entries that refusals of lines show came unasked, and stay here as long as their stream is not read.
#[tokio::test]
async fn refused_lines_of_a_stream_that_is_not_read_keep_few_long_entries() {
    const LINES: usize = 400;
    // Room for entries of refusals, then for values; the system's buffers take some meanwhile.
    const SHOWN_MOST: usize = 2 * 128 + 60;
    let mut api = api_settings();
    api.bounds.classes.point = 10_000;
    let server = Server::start_with(api, serve_settings()).await;
    assert_eq!(server.ask("PUT", "/v1/kv/big", &[OCTETS], &[7; BIG]).await.status / 100, 2);
    let before = server.backend.asked();
    server.backend.hold("big");
    let lines: String = (0..LINES)
        .map(|n| format!("{{\"n\":{n},\"op\":{{\"op\":\"insert\",\"key\":\"big\",\"value\":1}}}}\n"))
        .collect();
    let mut raw = server.connect().await;
    raw.send_request("POST", "/v1/ops", &[("Content-Type", "application/x-ndjson")], lines.as_bytes()).await;
    until("the lines did not come", async || server.backend.asked() == before + LINES).await;
    server.backend.release("big");
    // Long enough for all that are looked after without a reader.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(raw.response(true).await.status, 200);
    let mut text = Vec::new();
    loop {
        let chunk = raw.chunk().await;
        if chunk.is_empty() {
            break;
        }
        text.extend(chunk);
    }
    let text = String::from_utf8(text).expect("text");
    let count = |status: u16| text.lines().filter(|line| line.contains(&format!("\"status\":{status},"))).count();
    let (shown, refused) = (count(409), count(429));
    assert!(shown + refused == LINES && shown <= SHOWN_MOST, "{shown} lines show the entry, {refused} do not");
    assert!(shown > 0, "what has room is shown");
    assert_eq!(server.get("/v1/kv?prefix=none").await.status, 200);
}

/// The OpenAPI document is longer than most answers, and strangers may ask for it.
#[tokio::test]
async fn what_is_in_memory_anyway_is_not_counted_while_nobody_reads_it() {
    const CONNECTIONS: usize = 2;
    const STREAMS: usize = 100;
    const ANSWERED: &str = "quorate_http_requests_total{route=\"/openapi.json\"";
    let server = with_a_big_entry().await;
    let length = server.get("/openapi.json").await.body.len();
    assert!(CONNECTIONS * STREAMS * length > 2 * ANSWERS_BYTES, "{length} bytes are little");
    // GET, http, the authority and the path as they are.
    let path = b"/openapi.json";
    let head = [b"\x82\x86\x41\x01t\x04".as_slice(), &[path.len() as u8], path].concat();
    let mut unread = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = connect(&server, GREEDY).await;
        // Windows of no byte at all.
        let mut bytes = [PREFACE, &frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])].concat();
        for number in 0..STREAMS as u32 {
            bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, 2 * number + 1, &head));
        }
        stream.write_all(&bytes).await.expect("it takes them");
        unread.push(stream);
    }
    until("not all are answered", async || metric(&server, ANSWERED).await > (CONNECTIONS * STREAMS) as f64).await;
    assert_eq!(metric(&server, "quorate_http_answers_bytes").await, 0.0);
    for path in ["/v1/kv?prefix=none", "/v1/kv/big", "/openapi.json"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    let find = server.ask("POST", "/v1/find", &[JSON], br#"{"prefix":"none"}"#).await;
    assert_eq!(find.status, 200, "{}", find.text());
    drop(unread);
}

#[tokio::test]
async fn who_holds_most_makes_room_once_all_of_it_is_held() {
    let server = with_a_big_entry().await;
    let mut unread = Vec::new();
    // Each has its part, and there are more of them than parts.
    for last in 9..14 {
        let from = Ipv4Addr::new(127, 0, 0, last);
        let get = r#"{"op":"get","key":"big"}"#;
        unread.push(ask_unread(&server, from, "/v1/ops", get, SHARE_BYTES / BIG + 1).await);
    }
    until("all of it was never held, or nobody made room", async || {
        metric(&server, "quorate_http_connections_ended_total{reason=\"stalled\"}").await > 0.0
    })
    .await;
    until("a list is refused for what others do not read", async || {
        server.get("/v1/kv?prefix=none").await.status == 200
    })
    .await;
    drop(unread);
}

/// A server that waits for so long for a reader that takes nothing.
fn impatient(stall: Duration) -> Server {
    let mut settings = serve_settings();
    settings.write_stall_timeout = stall;
    server(api_settings(), settings)
}

const STALL: Duration = Duration::from_millis(500);

/// Takes so many bytes each 100 ms, until there are no more; how many there were.
async fn take_slowly(raw: &mut Raw, bytes: usize) -> usize {
    let mut taken = 0;
    let until = Instant::now() + PATIENCE;
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    while Instant::now() < until {
        pace.tick().await;
        let mut left = bytes;
        while left > 0 {
            match raw.take(left).await {
                0 => return taken,
                count => (left, taken) = (left - count, taken + count),
            }
        }
    }
    panic!("it was not ended: {taken} bytes came in {PATIENCE:?}");
}

/// Takes so many bytes each 100 ms until the server ends the connection as stalled; how many, and how long that took. What the system has
/// by then it goes on sending.
async fn take_drops(server: &Server, raw: &mut Raw, bytes: usize) -> (usize, Duration) {
    let (mut taken, began) = (0, Instant::now());
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    let stalled = "quorate_http_connections_ended_total{reason=\"stalled\"}";
    while metric(server, stalled).await == 0.0 {
        assert!(began.elapsed() < PATIENCE, "it was not cut: {taken} bytes came");
        pace.tick().await;
        taken += raw.take(bytes).await;
    }
    assert_eq!(metric(server, "quorate_http_answers_bytes").await, 0.0, "it holds memory no more");
    (taken, began.elapsed())
}

#[tokio::test]
async fn an_answer_that_is_read_by_drops_is_cut() {
    const LENGTH: usize = 140_000;
    // Where the socket takes something now and then, an answer has half a second, and two for its length at the least rate. By
    // smaller drops the socket takes nothing for longer than that half second.
    let cut = [(2_000, Duration::from_secs(2)), (16, STALL)].map(|(drop, least)| async move {
        let server = impatient(STALL);
        assert_eq!(server.ask("PUT", "/v1/kv/big", &[OCTETS], &[7; LENGTH]).await.status / 100, 2);
        let mut raw = begin(&server, GREEDY, "/v1/kv/big?raw").await;
        let (taken, took) = take_drops(&server, &mut raw, drop).await;
        assert!(took >= least && taken < LENGTH, "{drop}: {taken} bytes in {took:?}");
    });
    futures::future::join_all(cut).await;
}

#[tokio::test]
async fn events_that_are_read_by_drops_are_cut() {
    let server = impatient(STALL);
    let mut raw = begin(&server, GREEDY, "/v1/watch?prefix=w").await;
    assert_eq!(raw.response(true).await.status, 200);
    // So few that all are on their way, and nobody waits for the next one to be asked for.
    for _ in 0..3 {
        assert_eq!(server.ask("PUT", "/v1/kv/w", &[OCTETS], &[7; VALUE_BYTES]).await.status / 100, 2);
    }
    let (taken, took) = take_drops(&server, &mut raw, 1_000).await;
    assert!(took > STALL && taken < 3 * VALUE_BYTES, "{taken} bytes in {took:?}");
}

#[tokio::test]
async fn an_answer_that_is_read_slowly_but_fast_enough_comes_whole() {
    const LENGTH: usize = 180_000;
    let server = impatient(STALL);
    assert_eq!(server.ask("PUT", "/v1/kv/big", &[OCTETS], &[7; LENGTH]).await.status / 100, 2);
    let began = Instant::now();
    let headers = [("Connection", "close")];
    let mut raw = Raw::on(connect(&server, GREEDY).await);
    raw.send_request("GET", "/v1/kv/big?raw", &headers, b"").await;
    // 120 KB a second.
    let taken = take_slowly(&mut raw, 12_000).await;
    assert!(taken > LENGTH, "{taken}: with its head");
    assert!(began.elapsed() > 2 * STALL, "it was read at once: {:?}", began.elapsed());
}
