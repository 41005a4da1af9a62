//! As much of HTTP/1.1 as a client needs that waits for each answer before it asks again.
//!
//! Owns heads, lengths and chunks. Never looks into a body, and never connects again: a server that closes a connection spoils the
//! measurement.

use std::io::Write;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Failure;

const INCOMING_BYTES: usize = 8 * 1024;
/// What of an answer an error shows.
const SHOWN_BYTES: usize = 600;

/// What is sent.
#[derive(Default)]
pub struct Request {
    pub method: &'static str,
    pub path: String,
    /// Lines of the head, each with its end.
    pub fields: String,
    pub body: Bytes,
}

/// What came back.
pub struct Answer<'a> {
    pub status: u16,
    /// The entity tag, where it is a number.
    pub tag: Option<u64>,
    pub body: &'a [u8],
}

impl Answer<'_> {
    /// What an error says of an answer that was not expected.
    pub fn unexpected(&self) -> Failure {
        let shown = String::from_utf8_lossy(&self.body[..self.body.len().min(SHOWN_BYTES)]);
        format!("an answer that was not expected, {}: {shown}", self.status).into()
    }
}

/// A connection with at most one request in flight.
pub struct Connection {
    endpoint: String,
    socket: TcpStream,
    outgoing: Vec<u8>,
    incoming: BytesMut,
}

impl Connection {
    /// Connects.
    pub async fn open(endpoint: &str) -> Result<Self, Failure> {
        let socket = TcpStream::connect(endpoint).await.map_err(|error| format!("{endpoint}: {error}"))?;
        socket.set_nodelay(true)?;
        let incoming = BytesMut::with_capacity(INCOMING_BYTES);
        Ok(Self { endpoint: endpoint.to_owned(), socket, outgoing: Vec::new(), incoming })
    }

    /// Asks, and waits for the answer.
    pub async fn call(&mut self, request: &Request) -> Result<Answer<'_>, Failure> {
        let Request { method, path, fields, body } = request;
        self.outgoing.clear();
        write!(self.outgoing, "{method} {path} HTTP/1.1\r\nHost: {}\r\n{fields}", self.endpoint)?;
        if !body.is_empty() {
            write!(self.outgoing, "Content-Length: {}\r\n", body.len())?;
        }
        self.outgoing.extend_from_slice(b"\r\n");
        self.outgoing.extend_from_slice(body);
        self.socket.write_all(&self.outgoing).await?;
        self.incoming.clear();
        let (start, head) = self.head().await?;
        let (end, taken) = match head.length {
            Some(length) => {
                self.read_up_to(start + length).await?;
                (start + length, start + length)
            }
            None => self.join_chunks(start).await?,
        };
        if self.incoming.len() > taken {
            return Err(format!("{} sent more than one answer to `{method} {path}`", self.endpoint).into());
        }
        Ok(Answer { status: head.status, tag: head.tag, body: &self.incoming[start..end] })
    }

    /// The head, and where it ends.
    async fn head(&mut self) -> Result<(usize, Head), Failure> {
        let end = self.find(0, b"\r\n\r\n").await?;
        let text = std::str::from_utf8(&self.incoming[..end])?;
        let head = Head::read(text).ok_or_else(|| format!("{} sent no head of HTTP/1.1: {text}", self.endpoint))?;
        Ok((end + 4, head))
    }

    /// Puts the chunks that begin here together; says where the body ends then, and where what came ends.
    async fn join_chunks(&mut self, start: usize) -> Result<(usize, usize), Failure> {
        let (mut from, mut to) = (start, start);
        loop {
            let line_end = self.find(from, b"\r\n").await?;
            let line = std::str::from_utf8(&self.incoming[from..line_end])?;
            let length = line.split(';').next().and_then(|length| usize::from_str_radix(length.trim(), 16).ok());
            let length = length.ok_or_else(|| format!("{} sent a chunk of length `{line}`", self.endpoint))?;
            let chunk = line_end + 2;
            from = chunk + length + 2;
            self.read_up_to(from).await?;
            if &self.incoming[from - 2..from] != b"\r\n" {
                return Err(format!("{} sent a chunk that is longer than it said, or a trailer", self.endpoint).into());
            }
            if length == 0 {
                return Ok((to, from));
            }
            self.incoming.copy_within(chunk..chunk + length, to);
            to += length;
        }
    }

    /// Where these bytes are, at or after a place, once they are there.
    async fn find(&mut self, from: usize, bytes: &[u8]) -> Result<usize, Failure> {
        loop {
            let rest = self.incoming.get(from..).unwrap_or_default();
            if let Some(at) = rest.windows(bytes.len()).position(|window| window == bytes) {
                return Ok(from + at);
            }
            self.read().await?;
        }
    }

    /// Waits until so many bytes have come.
    async fn read_up_to(&mut self, end: usize) -> Result<(), Failure> {
        self.incoming.reserve(end.saturating_sub(self.incoming.len()));
        while self.incoming.len() < end {
            self.read().await?;
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<(), Failure> {
        match self.socket.read_buf(&mut self.incoming).await? {
            0 => Err(format!("{} closed the connection", self.endpoint).into()),
            _ => Ok(()),
        }
    }
}

/// What of a head is looked at.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    tag: Option<u64>,
    /// The bytes of the body; none where it comes in chunks.
    length: Option<usize>,
}

impl Head {
    fn read(text: &str) -> Option<Self> {
        let mut lines = text.split("\r\n");
        let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
        let (mut tag, mut length, mut is_chunked) = (None, None, false);
        for line in lines {
            let (name, value) = line.split_once(':')?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.parse().ok()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                is_chunked = value.eq_ignore_ascii_case("chunked");
            } else if name.eq_ignore_ascii_case("etag") {
                tag = value.trim_matches('"').parse().ok();
            }
        }
        if status == 204 {
            length = Some(0);
        }
        (is_chunked || length.is_some()).then_some(Self { status, tag, length: length.filter(|_| !is_chunked) })
    }
}
