//! A bare HTTP/1.1 client over TCP: one try, one node, any bytes.
//!
//! Owns requests that the real client would never send, and those where a test must know that nothing was retried.
//! Never retries, never follows, never validates: the node has to.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use quorate_client::api::Problem;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};

/// Longest body that a test could want.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long one exchange may take where the test does not say.
pub const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(15);

/// What to send. Nothing is escaped or checked.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: &'static str,
    /// Path and query as they go over the wire.
    pub target: String,
    /// Headers beside `Host` and `Content-Length`.
    pub headers: Vec<(String, String)>,
    /// The body; with one, `Content-Length` is sent.
    pub body: Option<Vec<u8>>,
}

impl Request {
    /// A request without body and headers.
    pub fn new(method: &'static str, target: impl Into<String>) -> Self {
        Self { method, target: target.into(), headers: Vec::new(), body: None }
    }

    /// `GET`.
    pub fn get(target: impl Into<String>) -> Self {
        Self::new("GET", target)
    }

    /// `PUT /v1/kv/{key}` of a JSON value; `key` as it goes over the wire.
    pub fn put(key: &str, value: impl Into<String>) -> Self {
        Self::new("PUT", format!("/v1/kv/{key}")).json(value)
    }

    /// `POST` of a JSON body.
    pub fn post(target: impl Into<String>, body: impl Into<String>) -> Self {
        Self::new("POST", target).json(body)
    }

    /// With this body, said to be JSON.
    pub fn json(self, body: impl Into<String>) -> Self {
        self.header("Content-Type", "application/json").body(body.into().into_bytes())
    }

    /// With this body.
    pub fn body(mut self, body: Vec<u8>) -> Self {
        self.body = Some(body);
        self
    }

    /// With this header too.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With a request id.
    pub fn request_id(self, id: &str) -> Self {
        self.header("Idempotency-Key", id)
    }

    /// The bytes on the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }

    /// Sends it over a connection of its own.
    pub async fn send(&self, to: SocketAddr) -> io::Result<Answer> {
        self.send_within(to, EXCHANGE_TIMEOUT).await
    }

    /// Sends it over a connection of its own, and gives up after `within`.
    pub async fn send_within(&self, to: SocketAddr, within: Duration) -> io::Result<Answer> {
        tokio::time::timeout(within, async { Connection::open(to).await?.exchange(self).await })
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {within:?}")))?
    }
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The first header of this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as the type that the contract promises; panics with the body otherwise.
    pub fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in the answer with status {}: {}", self.status, self.text()))
    }

    /// The body as a problem document; panics where it is none, or where it contradicts the status line.
    pub fn problem(&self) -> Problem {
        let content_type = self.header("content-type").unwrap_or("nothing");
        assert!(
            content_type.starts_with("application/problem+json"),
            "an error must be application/problem+json, not {content_type}: status {}, {}",
            self.status,
            self.text()
        );
        let problem: Problem = self.json();
        assert_eq!(problem.status, self.status, "status of the document and of the answer: {}", self.text());
        problem
    }

    /// Itself if it is 2xx; panics with the body otherwise.
    pub fn expect_success(self) -> Self {
        assert!(self.is_success(), "expected success, got status {}: {}", self.status, self.text());
        self
    }
}

/// What a connection goes over.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A kept-alive connection.
pub struct Connection {
    stream: BufReader<Box<dyn Wire>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects.
    pub async fn open(to: SocketAddr) -> io::Result<Self> {
        Self::over_tcp(TcpStream::connect(to).await?)
    }

    /// Connects from another address of this machine, as another machine would; all of 127.0.0.0/8 are.
    pub async fn open_from(from: Ipv4Addr, to: SocketAddr) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        Self::over_tcp(socket.connect(to).await?)
    }

    fn over_tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self::over(stream))
    }

    /// Over what is connected already.
    pub fn over(wire: impl Wire + 'static) -> Self {
        Self { stream: BufReader::new(Box::new(wire)) }
    }

    /// Sends a request and reads its answer.
    pub async fn exchange(&mut self, request: &Request) -> io::Result<Answer> {
        let sent = self.send(&request.to_bytes()).await;
        let answer = self.answer(request.method == "HEAD").await;
        // A node may refuse a body that it has not read: then the answer counts, not that the rest could not be sent.
        if answer.is_err() { sent.and(answer) } else { answer }
    }

    /// Sends bytes as they are.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes).await
    }

    /// Reads an answer; one to `HEAD` has no body whatever its headers say.
    pub async fn answer(&mut self, to_head: bool) -> io::Result<Answer> {
        let mut answer = self.head().await?;
        if !to_head && answer.status != 204 && answer.status != 304 {
            answer.body = self.body(&answer).await?;
        }
        Ok(answer)
    }

    /// Reads the head of an answer, which is followed by its body.
    pub async fn head(&mut self) -> io::Result<Answer> {
        let status = parse_status(&self.line().await?)?;
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| malformed(&line))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Answer { status, headers, body: Vec::new() })
    }

    /// Reads until the node closes the connection; returns what it sent before.
    pub async fn until_closed(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest).await {
            // A reset is a way to close, too: the node need not read what a hostile client still sends.
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
            _ => Ok(rest),
        }
    }

    async fn body(&mut self, answer: &Answer) -> io::Result<Vec<u8>> {
        if answer.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            return self.chunks().await;
        }
        let Some(length) = answer.header("content-length") else {
            return self.until_closed().await;
        };
        self.exactly(length.parse().map_err(|_| malformed(length))?).await
    }

    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let chunk = self.chunk().await?;
            if chunk.is_empty() {
                return Ok(body);
            }
            body.extend(chunk);
        }
    }

    /// Reads the next chunk of a body that comes in chunks; the last is empty.
    pub async fn chunk(&mut self) -> io::Result<Vec<u8>> {
        let line = self.line().await?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(|_| malformed(&line))?;
        let chunk = self.exactly(length).await?;
        self.line().await?;
        Ok(chunk)
    }

    async fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        assert!(length <= BODY_BYTES_MAX, "an answer of {length} bytes");
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await?;
        Ok(bytes)
    }

    /// The next line without its end.
    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed instead of an answer"));
        }
        line.truncate(line.trim_end_matches(['\r', '\n']).len());
        Ok(line)
    }
}

fn parse_status(line: &str) -> io::Result<u16> {
    line.strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| malformed(line))
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("`{what}` is not HTTP"))
}
