//! A served node in memory, and an HTTP/1.1 client that sends exactly the bytes it is given.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_api::{ErrorCode, Problem};
use quorate_machine::types::Action;
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
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::memory_node::MemoryNode;

/// How long a test waits for what must happen.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The header of a body that is JSON.
pub const JSON: (&str, &str) = ("Content-Type", "application/json");

pub struct Server {
    pub addr: SocketAddr,
    pub backend: MemoryNode,
    pub api: Arc<Api>,
    pub metrics: Arc<Metrics>,
    pub stop: CancellationToken,
    pub task: JoinHandle<()>,
}

pub fn api_settings() -> ApiSettings {
    ApiSettings {
        node_id: 1,
        request_timeout: Duration::from_secs(10),
        request_timeout_max: Duration::from_secs(60),
        bounds: AdmissionLimits {
            classes: ClassLimits { coordination: 200, point: 100, scan: 200, waiting: 100, arriving: 400 },
            accounts: AccountLimits::default(),
            watches_max: 10_000,
            bodies_bytes_max: 16 * 1024 * 1024,
            body_bytes_max: 2 * 1024 * 1024 + 64 * 1024,
            answers_bytes_max: 64 * 1024 * 1024,
        },
        body_timeout: Duration::from_secs(10),
        body_rate_min: 16 * 1024,
        slow_request: Duration::from_millis(500),
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

pub fn serve_settings() -> ServeSettings {
    ServeSettings {
        connections_max: 200,
        header_timeout: Duration::from_secs(10),
        idle_timeout: Duration::from_secs(30),
        write_stall_timeout: Duration::from_secs(30),
        drain_timeout: Duration::from_secs(5),
        tls: None,
        door: Door::Clients,
        beside: Vec::new(),
    }
}

impl Server {
    pub async fn start() -> Self {
        Self::start_with(api_settings(), serve_settings()).await
    }

    pub async fn start_with(api: ApiSettings, settings: ServeSettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Self::start_on(listener, api, settings)
    }

    pub fn start_on(listener: TcpListener, api: ApiSettings, settings: ServeSettings) -> Self {
        let backend = MemoryNode::new();
        let addr = listener.local_addr().expect("bound");
        let stop = CancellationToken::new();
        let metrics = Metrics::new(&route_templates());
        let api = Api::new(backend.clone(), api, metrics.clone());
        let task = tokio::spawn(serve(listener, None, Arc::clone(&api), settings, stop.clone()));
        Self { addr, backend, api, metrics, stop, task }
    }

    pub async fn connect(&self) -> Raw {
        Raw::on(TcpStream::connect(self.addr).await.expect("the server listens"))
    }

    /// Connects from another address of this machine, 127.0.0.`last`.
    pub async fn connect_from(&self, last: u8) -> Raw {
        Raw::connect_from(last, self.addr).await
    }

    /// One request on a connection of its own.
    pub async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        self.connect().await.ask(method, path, headers, body).await
    }

    pub async fn get(&self, path: &str) -> Response {
        self.ask("GET", path, &[], b"").await
    }

    pub async fn put_json(&self, path: &str, body: &str) -> Response {
        self.ask("PUT", path, &[JSON], body.as_bytes()).await
    }

    /// What the last command does.
    pub fn last_action(&self) -> Action {
        self.backend.commands().pop().expect("a command came").action
    }

    /// Waits until so many commands have come, since the start of the server or since they were forgotten.
    pub async fn until_asked(&self, commands: usize) {
        while self.backend.asked() < commands {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

pub struct Raw {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Raw {
    pub fn on(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Connects from 127.0.0.`last`.
    pub async fn connect_from(last: u8, to: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, last], 0).into()).expect("an address of loopback");
        Self::on(socket.connect(to).await.expect("the server listens"))
    }

    /// Takes so many bytes at most; 0 where there will be no more.
    pub async fn take(&mut self, most: usize) -> usize {
        let mut bytes = vec![0; most];
        let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut bytes)).await.expect("the server went silent");
        read.unwrap_or(0)
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the connection takes it");
    }

    /// Sends until the server closes, if it does.
    pub async fn send_bytes_until_refused(&mut self, bytes: &[u8]) {
        let _refused = self.stream.write_all(bytes).await;
    }

    pub async fn send_request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        let declared = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if !body.is_empty() && !declared {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        let mut bytes = (text + "\r\n").into_bytes();
        bytes.extend_from_slice(body);
        // A server that has answered may have closed before it read everything.
        let _answered = self.stream.write_all(&bytes).await;
    }

    /// Everything up to and with this mark.
    pub async fn until(&mut self, mark: &[u8]) -> Vec<u8> {
        // What was looked at is not looked at again once more comes.
        let mut from = 0;
        loop {
            if let Some(at) = self.buffer[from..].windows(mark.len()).position(|window| window == mark) {
                return self.take_first(from + at + mark.len());
            }
            from = self.buffer.len().saturating_sub(mark.len() - 1);
            assert!(self.fill().await, "closed before {:?} in {:?}", mark.escape_ascii(), self.buffer.escape_ascii());
        }
    }

    /// The next chunk of a body; empty at its end.
    pub async fn chunk(&mut self) -> Vec<u8> {
        let size = String::from_utf8(self.until(b"\r\n").await).expect("a chunk size");
        let size = usize::from_str_radix(size.trim_end(), 16).unwrap_or_else(|error| panic!("{error}: {size:?}"));
        while self.buffer.len() < size + 2 {
            assert!(self.fill().await, "the chunk was cut");
        }
        let chunk = self.take_first(size);
        assert_eq!(self.take_first(2), b"\r\n");
        chunk
    }

    /// The next chunk of a body, empty at its end; `None` where the connection ends before it is whole.
    pub async fn try_chunk(&mut self) -> Option<Vec<u8>> {
        let whole = loop {
            let line = self.buffer.windows(2).position(|window| window == b"\r\n");
            let size = line.map(|at| (at + 2, str::from_utf8(&self.buffer[..at]).expect("a chunk size")));
            let size = size.map(|(from, size)| (from, usize::from_str_radix(size, 16).expect("a chunk size")));
            match size {
                Some((from, size)) if self.buffer.len() >= from + size + 2 => break from..from + size,
                _ if !self.fill().await => return None,
                _ => {}
            }
        };
        let chunk = self.buffer[whole.clone()].to_vec();
        self.buffer.drain(..whole.end + 2);
        Some(chunk)
    }

    /// Ends as a machine does that forgot the connection: no end comes, but a refusal.
    pub fn reset(self) {
        self.stream.set_zero_linger().expect("an option of every system");
    }

    /// Sends no more.
    pub async fn end_sending(&mut self) {
        // A server that has closed before knows it.
        let _closed = self.stream.shutdown().await;
    }

    /// So many bytes of what came, copied at once: byte by byte, long answers would take this build seconds.
    fn take_first(&mut self, count: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(count);
        std::mem::replace(&mut self.buffer, rest)
    }

    async fn fill(&mut self) -> bool {
        let mut chunk = [0u8; 16 * 1024];
        let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut chunk)).await.expect("the server went silent");
        let count = read.unwrap_or(0);
        self.buffer.extend_from_slice(&chunk[..count]);
        count > 0
    }

    /// Sends a request; gives its answer.
    pub async fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        self.send_request(method, path, headers, body).await;
        self.response(method == "HEAD").await
    }

    pub async fn response(&mut self, head_only: bool) -> Response {
        self.try_response(head_only).await.expect("the connection was closed without an answer")
    }

    pub async fn try_response(&mut self, head_only: bool) -> Option<Response> {
        let end = loop {
            match self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None if !self.fill().await => return None,
                None => {}
            }
        };
        let text = String::from_utf8(self.take_first(end)).expect("heads are ASCII");
        let mut lines = text.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().expect("a status");
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut response = Response { status, headers, body: Vec::new() };
        let length = response.header("content-length").map_or(0, |text| text.parse().expect("a length"));
        if head_only || status == 304 {
            return Some(response);
        }
        while self.buffer.len() < length {
            assert!(self.fill().await, "the body was cut");
        }
        response.body = self.take_first(length);
        Some(response)
    }

    /// Waits until the server closes the connection; gives what came before.
    pub async fn closed(mut self) -> Vec<u8> {
        while self.fill().await {}
        self.buffer
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The problem document, with what every one of them must hold.
    pub fn problem(&self) -> Problem {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem: Problem = serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!(problem.status, self.status);
        // 412 where it was a header that asked for what is not so.
        let is_precondition =
            self.status == 412 && matches!(problem.code, ErrorCode::NotFound | ErrorCode::AlreadyExists);
        assert!(is_precondition || problem.status == problem.code.status(), "{self:?}");
        assert!(problem.type_uri.starts_with("/errors/"));
        assert!(!problem.request_id.is_empty(), "{self:?}");
        self.carries_the_common_headers();
        problem
    }

    pub fn carries_the_common_headers(&self) {
        for name in ["quorate-revision", "quorate-term", "quorate-leader", "quorate-cluster", "x-request-id"] {
            assert!(self.header(name).is_some(), "{name} is missing in {self:?}");
        }
    }
}

/// Has the clock of the server go on by so much. Not that of the machine, by which deadlines of requests go.
pub async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
    // Tasks that were due have had their turn once another one has.
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Waits until this holds; fails with these words where it never does.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let (end, mut pause) = (Instant::now() + PATIENCE, Duration::from_millis(2));
    while !holds().await {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(pause).await;
        // A look at the metrics takes milliseconds: waits that last must not keep a processor busy by looking.
        pause = (2 * pause).min(Duration::from_millis(40));
    }
}

/// Sends JSON.
pub async fn post(server: &Server, route: &str, body: serde_json::Value) -> Response {
    server.ask("POST", route, &[JSON], body.to_string().as_bytes()).await
}

/// What an answer of success says. What was made has a path.
pub fn read<T: serde::de::DeserializeOwned>(response: &Response) -> T {
    assert!(matches!(response.status, 200..=202), "{response:?}");
    assert_eq!(response.status == 201, response.header("location").is_some(), "{response:?}");
    response.carries_the_common_headers();
    serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}
