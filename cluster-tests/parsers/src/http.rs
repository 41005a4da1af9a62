//! Target `http`: whatever comes over a connection of the client port.
//!
//! A whole server answers, with a node behind it that lives in memory. It never panics, never answers 500, tells each fault as a problem
//! document that says what is wrong, and does not keep a connection whose other side has ended. What it says by HTTP/2 is whole
//! frames of known kinds; what stands in them is not read here.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quorate_machine::types::{Command, Rejection};
use quorate_node_core::connection::door::Door;
use quorate_node_core::gateway::admission::AdmissionLimits;
use quorate_node_core::gateway::admission::accounts::AccountLimits;
use quorate_node_core::gateway::admission::classes::ClassLimits;
use quorate_node_core::gateway::api::{Api, ApiSettings};
use quorate_node_core::gateway::auth::authenticator::AuthSettings;
use quorate_node_core::gateway::hosts::AllowedHosts;
use quorate_node_core::gateway::versions::EtcdVersion;
use quorate_node_core::metrics::Metrics;
use quorate_node_port::{ServeSettings, route_templates, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::http_2::{DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame};
use super::memory_node::MemoryNode;
use super::{panics, requests};

/// A server remembers what it was asked, so another takes its place now and then.
const REQUESTS_MAX: usize = 2_000;
/// Longest body of requests that nobody wrote.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Whatever was not answered by then waits for something.
const PROMPT: Duration = Duration::from_millis(4);
/// By then a connection is closed whose other side has ended.
const PATIENCE: Duration = Duration::from_secs(4);

/// Before each frame of HTTP/2: three bytes of length, kind, flags, four of the stream.
const FRAME_HEAD_BYTES: usize = 9;
/// CONTINUATION, the last kind of RFC 9113.
const FRAME_KIND_MAX: u8 = 9;

struct Served {
    runtime: Runtime,
    backend: MemoryNode,
    addr: SocketAddr,
    requests: usize,
}

thread_local! {
    static SERVED: RefCell<Option<Served>> = const { RefCell::new(None) };
}

/// See the head of this file.
pub fn check(data: &[u8]) {
    let answer = SERVED.with_borrow_mut(|served| {
        if served.as_ref().is_none_or(|served| served.requests >= REQUESTS_MAX) {
            *served = Some(Served::start());
        }
        served.as_mut().expect("it was just started").ask(data)
    });
    let noted = panics::so_far();
    assert!(noted.is_empty(), "the server panicked: {}", noted.join("\n"));
    if data.starts_with(PREFACE) {
        frames(&answer).for_each(drop);
    } else if let Some(head) = answer.windows(4).position(|end| end == b"\r\n\r\n") {
        check_answer(&answer[..head], &answer[head + 4..]);
    } else {
        assert!(answer.is_empty(), "half an answer: {}", answer.escape_ascii());
    }
}

/// Kind and payload of each frame of HTTP/2 in what was answered.
fn frames(mut answer: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        if answer.is_empty() {
            return None;
        }
        let (head, rest) = answer.split_first_chunk::<FRAME_HEAD_BYTES>().expect("the head of a frame is whole");
        let (length, kind) = (u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize, head[3]);
        assert!(kind <= FRAME_KIND_MAX, "a frame of kind {kind}: {}", answer.escape_ascii());
        let payload = rest.get(..length).unwrap_or_else(|| panic!("half a frame: {}", answer.escape_ascii()));
        answer = &rest[length..];
        Some((kind, payload))
    })
}

fn check_answer(head: &[u8], body: &[u8]) {
    let head = std::str::from_utf8(head).expect("heads are ASCII");
    let status: u16 = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status line");
    assert!((100..600).contains(&status) && status != 500, "{head}\n\n{}", body.escape_ascii());
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    };
    if status < 400 || body.is_empty() {
        // What hyper refuses by itself, and answers to HEAD, have no body.
        return;
    }
    assert_eq!(header("content-type"), Some("application/problem+json"), "{head}");
    let length: usize = header("content-length").and_then(|text| text.parse().ok()).expect("problems have a length");
    let problem: serde_json::Value = serde_json::from_slice(&body[..length.min(body.len())])
        .unwrap_or_else(|error| panic!("{error}: {}", body.escape_ascii()));
    assert_eq!(problem["status"], status, "{problem}");
    let has_words = |name: &str| problem[name].as_str().is_some_and(|text| !text.is_empty());
    assert!(has_words("code") && has_words("title"), "{problem}");
    if problem["code"] == "invalid_argument" {
        let errors = problem["errors"].as_array().map_or(&[][..], Vec::as_slice);
        assert!(has_words("detail") || !errors.is_empty(), "nothing says what is wrong: {problem}");
        assert!(errors.iter().all(|error| error["pointer"].is_string() && error["detail"].is_string()), "{problem}");
    }
}

impl Served {
    fn start() -> Self {
        Self::over(MemoryNode::new(), BODY_BYTES_MAX)
    }

    /// A server that takes bodies up to `body_bytes_max` and refuses every command. Commands thus depend on one request alone.
    fn refusing(body_bytes_max: usize) -> Self {
        let backend = MemoryNode::new();
        backend.reject_writes(Rejection::NotFound);
        Self::over(backend, body_bytes_max)
    }

    fn over(backend: MemoryNode, body_bytes_max: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let api = Api::new(backend.clone(), api_settings(body_bytes_max), Metrics::new(&route_templates()));
        let addr = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let addr = listener.local_addr().expect("bound");
            tokio::spawn(serve(listener, None, api, serve_settings(), CancellationToken::new()));
            addr
        });
        Self { runtime, backend, addr, requests: 0 }
    }

    /// Sends the bytes; what came back until it was told whole (by HTTP/2 never), or the connection closed.
    fn ask(&mut self, data: &[u8]) -> Vec<u8> {
        self.requests += 1;
        let is_whole = if data.starts_with(PREFACE) { |_: &[u8]| false } else { is_whole };
        let answer = self.runtime.block_on(async {
            let mut stream = connect(self.addr).await;
            let mut answer = Vec::new();
            // A server that has answered may have closed before it read everything.
            let is_sent = stream.write_all(data).await.is_ok();
            if is_sent && timeout(PROMPT, read(&mut stream, &mut answer, is_whole)).await.is_err() {
                let _closed = stream.shutdown().await;
                let ended = timeout(PATIENCE, read(&mut stream, &mut answer, is_whole)).await;
                assert!(ended.is_ok(), "the connection was kept though its other side has ended");
            }
            answer
        });
        self.backend.forget_commands();
        answer
    }

    /// The commands that a request becomes within this time.
    fn commands_of(&mut self, request: &[u8], within: Duration) -> Vec<Command> {
        self.requests += 1;
        self.runtime.block_on(async {
            let mut stream = connect(self.addr).await;
            // A server that has answered may have closed before it read everything.
            let is_sent = stream.write_all(request).await.is_ok();
            if is_sent {
                let _waits = timeout(within, read(&mut stream, &mut Vec::new(), is_whole)).await;
            }
        });
        let commands = self.backend.commands();
        self.backend.forget_commands();
        commands
    }
}

/// A connection that leaves nothing behind when it is dropped.
async fn connect(addr: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("an option of every system");
    socket.connect(addr).await.expect("the server listens")
}

/// Until the answer is whole, or the connection closed.
async fn read(stream: &mut TcpStream, answer: &mut Vec<u8>, is_whole: fn(&[u8]) -> bool) {
    while !is_whole(answer) {
        match stream.read_buf(answer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// Whether the first answer is there, or its head where nobody knows how long it gets.
fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|end| end == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    length.is_none_or(|length| answer.len() >= head + 4 + length)
}

fn api_settings(body_bytes_max: usize) -> ApiSettings {
    ApiSettings {
        node_id: 1,
        request_timeout: Duration::from_millis(500),
        request_timeout_max: Duration::from_secs(60),
        bounds: AdmissionLimits {
            classes: ClassLimits { coordination: 200, point: 200, scan: 200, waiting: 100, arriving: 400 },
            accounts: AccountLimits::default(),
            watches_max: 10_000,
            bodies_bytes_max: 16 * body_bytes_max,
            body_bytes_max,
            answers_bytes_max: 64 * 1024 * 1024,
        },
        body_timeout: Duration::from_secs(10),
        body_rate_min: 16 * 1024,
        slow_request: Duration::from_secs(10),
        traces: None,
        console: true,
        cors_origins: Vec::new(),
        hosts: AllowedHosts::ALL,
        etcd_version: EtcdVersion::default(),
        auth: AuthSettings::Open,
        audit: None,
        log: None,
        given: Arc::default(),
        admin: None,
        clients_use_tls: false,
        peers_use_tls: false,
    }
}

fn serve_settings() -> ServeSettings {
    ServeSettings {
        connections_max: 100,
        header_timeout: Duration::from_secs(10),
        idle_timeout: Duration::from_secs(30),
        write_stall_timeout: Duration::from_secs(30),
        drain_timeout: Duration::from_secs(5),
        tls: None,
        door: Door::Clients,
        beside: Vec::new(),
    }
}

/// The commands that these requests become, one server for all of them.
pub fn commands_of(requests: &[Vec<u8>]) -> Vec<Command> {
    let mut served = Served::refusing(BODY_BYTES_MAX);
    requests.iter().flat_map(|request| served.commands_of(request, Duration::from_millis(300))).collect()
}

/// What the API makes of requests, one server for many of them.
pub struct Doorkeeper(Served);

impl Doorkeeper {
    /// Takes bodies as long as a node does as it comes.
    pub fn new() -> Self {
        Self(Served::refusing(2 * 1024 * 1024))
    }

    /// The commands that a request becomes within this time, as a node would propose them: none where it is refused.
    pub fn commands_of(&mut self, request: &[u8], within: Duration) -> Vec<Command> {
        if self.0.requests >= REQUESTS_MAX {
            *self = Self::new();
        }
        self.0.commands_of(request, within)
    }
}

/// Most of the requests, and two by HTTP/2: some room is for what was found.
pub fn samples() -> Vec<Vec<u8>> {
    let mut samples: Vec<_> = requests::all().into_iter().take(25).collect();
    samples.push(by_http_2("GET", "/v1/kv/a", b""));
    samples.push(by_http_2("PUT", "/v1/kv/a", b"{\"n\":1}"));
    samples
}

/// One request on a connection of HTTP/2, its headers as literals.
fn by_http_2(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    // Names by their places in the static table of RFC 7541, `:scheme: http` whole.
    let literal = |place: u8, value: &str| [&[place, value.len() as u8], value.as_bytes()].concat();
    let headers = [literal(1, "t"), literal(2, method), literal(4, path), vec![0x86]].concat();
    let settings = frame(SETTINGS, 0, 0, b"");
    let (headers, data) = if body.is_empty() {
        (frame(HEADERS, END_HEADERS | END_STREAM, 1, &headers), Vec::new())
    } else {
        (frame(HEADERS, END_HEADERS, 1, &headers), frame(DATA, END_STREAM, 1, body))
    };
    [PREFACE, &settings, &headers, &data].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_by_http_2_is_answered_with_headers_and_a_body() {
        for request in [by_http_2("GET", "/version", b""), by_http_2("PUT", "/v1/kv/a", b"{\"n\":1}")] {
            let answer = Served::start().ask(&request);
            let kinds: Vec<u8> = frames(&answer).map(|(kind, _)| kind).collect();
            assert!(kinds.contains(&HEADERS) && kinds.contains(&DATA), "kinds {kinds:?}");
        }
    }

    #[test]
    #[should_panic(expected = "half a frame")]
    fn half_a_frame_is_noticed() {
        frames(&[0, 0, 2, 0, 0, 0, 0, 0, 1, 7]).for_each(drop);
    }
}
