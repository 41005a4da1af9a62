//! Target `http`: whatever comes over a connection of the client port.
//!
//! A whole server answers, with a node behind it that lives in memory. It never panics, never answers 500, tells each fault as a problem
//! document that says what is wrong, and does not keep a connection whose other side has ended.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use quorate_node::http::{AccountLimits, Api, ApiSettings, DoorSettings, LaneBounds, ServeSettings, serve};
use quorate_node::metrics::Metrics;
use quorate_store::types::Command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::fake::Fake;
use super::{panics, samples};

/// A server remembers what it was asked, so another takes its place now and then.
const REQUESTS_MAX: usize = 2_000;
/// Whatever was not answered by then waits for something.
const PROMPT: Duration = Duration::from_millis(4);
/// By then a connection is closed whose other side has ended.
const PATIENCE: Duration = Duration::from_secs(4);

struct Served {
    runtime: Runtime,
    backend: Fake,
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
    if let Some(head) = answer.windows(4).position(|end| end == b"\r\n\r\n") {
        check_answer(&answer[..head], &answer[head + 4..]);
    } else {
        assert!(answer.is_empty(), "half an answer: {}", answer.escape_ascii());
    }
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
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let backend = Fake::new();
        backend.answer_unscripted();
        let api = Api::new(backend.clone(), api_settings(), Metrics::new());
        let addr = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let addr = listener.local_addr().expect("bound");
            tokio::spawn(serve(listener, api, serve_settings(), CancellationToken::new()));
            addr
        });
        Self { runtime, backend, addr, requests: 0 }
    }

    /// Sends the bytes; what came back until it was told whole, or the connection closed.
    fn ask(&mut self, data: &[u8]) -> Vec<u8> {
        self.requests += 1;
        let answer = self.runtime.block_on(async {
            let mut stream = connect(self.addr).await;
            let mut answer = Vec::new();
            // A server that has answered may have closed before it read everything.
            if stream.write_all(data).await.is_ok() && timeout(PROMPT, read(&mut stream, &mut answer)).await.is_err() {
                let _closed = stream.shutdown().await;
                let ended = timeout(PATIENCE, read(&mut stream, &mut answer)).await;
                assert!(ended.is_ok(), "the connection was kept though its other side has ended");
            }
            answer
        });
        self.backend.forget_commands();
        answer
    }
}

/// A connection that leaves nothing behind when it is dropped.
async fn connect(addr: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("an option of every system");
    socket.connect(addr).await.expect("the server listens")
}

/// Until the first answer is whole, or its head where nobody knows how long it gets.
async fn read(stream: &mut TcpStream, answer: &mut Vec<u8>) {
    while !is_whole(answer) {
        match stream.read_buf(answer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|end| end == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    length.is_none_or(|length| answer.len() >= head + 4 + length)
}

fn api_settings() -> ApiSettings {
    ApiSettings {
        node_id: 1,
        request_timeout: Duration::from_millis(500),
        request_timeout_max: Duration::from_secs(60),
        body_bytes_max: 64 * 1024,
        bodies_bytes_max: 1024 * 1024,
        body_timeout: Duration::from_secs(10),
        body_rate_min: 16 * 1024,
        answers_bytes_max: 64 * 1024 * 1024,
        lanes: LaneBounds { coordination: 100, point: 100, scan: 100, waiting: 100 },
        accounts: AccountLimits::default(),
        slow_request: Duration::from_secs(10),
        traces: None,
        door: DoorSettings::Open,
        audit: None,
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
    }
}

/// The commands that these requests become, one server for all of them.
pub fn commands_of(requests: &[Vec<u8>]) -> Vec<Command> {
    let mut served = Served::start();
    let mut commands = Vec::new();
    for request in requests {
        let backend: Fake = served.backend.clone();
        served.requests += 1;
        let addr = served.addr;
        served.runtime.block_on(async {
            let mut stream = connect(addr).await;
            stream.write_all(request).await.expect("the server takes it");
            let _waits = timeout(Duration::from_millis(300), read(&mut stream, &mut Vec::new())).await;
        });
        commands.extend(backend.commands());
        backend.forget_commands();
    }
    commands
}

/// Most of the requests: some room is for what was found.
pub fn samples() -> Vec<Vec<u8>> {
    samples::requests().into_iter().take(28).collect()
}
