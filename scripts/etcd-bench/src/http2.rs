//! As much of HTTP/2 as gRPC needs of a client that only makes calls with one message each way.
//!
//! Owns frames, the heads of calls, credit both ways and pings. Never reads the head of an answer: it asks the server to keep no table
//! for them, and an answer that ends without a message was a refusal. A library for all of gRPC would take more of the machine than the
//! servers that are measured.

use std::collections::{HashMap, VecDeque};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Failure;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD_BYTES: usize = 9;
/// What a frame may hold as long as the other side has not said that it takes more.
const FRAME_BYTES_MAX: usize = 16 * 1024;
/// Flag and length before each message of gRPC.
const PREFIX_BYTES: usize = 5;
/// Credit of a connection and of its streams, before anything is said of it.
const CREDIT: i64 = 65_535;
/// The most there can be.
const CREDIT_MAX: u32 = i32::MAX as u32;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

const SETTING_TABLE_BYTES: u16 = 1;
const SETTING_PUSH: u16 = 2;
const SETTING_CREDIT: u16 = 4;

/// A call that was answered.
pub struct Answer {
    /// As [`Connection::call`] gave it.
    pub stream: u32,
    /// Its message.
    pub message: Bytes,
}

/// A connection with calls in flight.
pub struct Connection {
    endpoint: String,
    socket: TcpStream,
    incoming: BytesMut,
    outgoing: Vec<u8>,
    heads: HeadTable,
    next_stream: u32,
    /// Bytes of messages that may be sent: on the connection, and on a new stream.
    credit: i64,
    stream_credit: i64,
    /// Messages that wait for credit.
    waiting: VecDeque<(u32, Vec<u8>)>,
    /// Messages that have come in part.
    partial: HashMap<u32, BytesMut>,
    /// Bytes that came since the server was last given credit.
    received: u32,
}

impl Connection {
    /// Connects.
    pub async fn open(endpoint: &str) -> Result<Self, Failure> {
        let socket = TcpStream::connect(endpoint).await?;
        socket.set_nodelay(true)?;
        let mut outgoing = PREFACE.to_vec();
        let settings = [(SETTING_TABLE_BYTES, 0), (SETTING_PUSH, 0), (SETTING_CREDIT, CREDIT_MAX)];
        put_frame_head(&mut outgoing, 6 * settings.len(), SETTINGS, 0, 0);
        for (setting, value) in settings {
            outgoing.put_u16(setting);
            outgoing.put_u32(value);
        }
        put_credit(&mut outgoing, CREDIT_MAX - CREDIT as u32);
        Ok(Self {
            endpoint: endpoint.to_owned(),
            socket,
            incoming: BytesMut::with_capacity(FRAME_BYTES_MAX),
            outgoing,
            heads: HeadTable::default(),
            next_stream: 1,
            credit: CREDIT,
            stream_credit: CREDIT,
            waiting: VecDeque::new(),
            partial: HashMap::new(),
            received: 0,
        })
    }

    /// Begins a call; it goes out with the next [`Self::flush`].
    pub fn call(&mut self, path: &'static str, message: &[u8]) -> Result<u32, Failure> {
        let stream = self.next_stream;
        self.next_stream += 2;
        let head = self.heads.head(&self.endpoint, path);
        put_frame_head(&mut self.outgoing, head.len(), HEADERS, END_HEADERS, stream);
        self.outgoing.extend_from_slice(&head);
        let mut framed = Vec::with_capacity(PREFIX_BYTES + message.len());
        framed.put_u8(0);
        framed.put_u32(message.len() as u32);
        framed.extend_from_slice(message);
        if framed.len() as i64 > self.stream_credit {
            return Err(
                format!("{} takes messages of up to {} bytes at once", self.endpoint, self.stream_credit).into()
            );
        }
        self.waiting.push_back((stream, framed));
        self.send_waiting();
        Ok(stream)
    }

    /// Sends as many messages as there is credit for.
    fn send_waiting(&mut self) {
        while self.waiting.front().is_some_and(|(_, message)| message.len() as i64 <= self.credit) {
            let Some((stream, message)) = self.waiting.pop_front() else { return };
            self.credit -= message.len() as i64;
            let parts = message.chunks(FRAME_BYTES_MAX);
            let last = parts.len() - 1;
            for (at, part) in parts.enumerate() {
                let flags = if at == last { END_STREAM } else { 0 };
                put_frame_head(&mut self.outgoing, part.len(), DATA, flags, stream);
                self.outgoing.extend_from_slice(part);
            }
        }
    }

    /// Sends what was said since the last time.
    pub async fn flush(&mut self) -> Result<(), Failure> {
        self.socket.write_all(&self.outgoing).await?;
        self.outgoing.clear();
        Ok(())
    }

    /// Waits for answers; gives all that are there, at least one.
    pub async fn answers(&mut self, into: &mut Vec<Answer>) -> Result<(), Failure> {
        while into.is_empty() {
            if self.socket.read_buf(&mut self.incoming).await? == 0 {
                return Err(format!("{} closed the connection", self.endpoint).into());
            }
            while let Some(frame) = self.next_frame() {
                self.take(frame, into)?;
            }
            // Credit may have come for what waits.
            self.flush().await?;
        }
        Ok(())
    }

    fn next_frame(&mut self) -> Option<Frame> {
        let head: [u8; FRAME_HEAD_BYTES] = self.incoming.get(..FRAME_HEAD_BYTES)?.try_into().ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        if self.incoming.len() < FRAME_HEAD_BYTES + length {
            return None;
        }
        self.incoming.advance(FRAME_HEAD_BYTES);
        let payload = self.incoming.split_to(length);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & CREDIT_MAX;
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    fn take(&mut self, frame: Frame, into: &mut Vec<Answer>) -> Result<(), Failure> {
        let Frame { kind, flags, stream, mut payload } = frame;
        match kind {
            DATA if flags & PADDED != 0 => return Err("padding, which no server is known to send".into()),
            DATA => {
                self.give_credit(payload.len() as u32);
                let part = self.partial.entry(stream).or_default();
                if part.is_empty() { *part = payload } else { part.extend_from_slice(&payload) }
            }
            SETTINGS if flags & ACK == 0 => {
                while payload.len() >= 6 {
                    let (setting, value) = (payload.get_u16(), payload.get_u32());
                    if setting == SETTING_CREDIT {
                        self.stream_credit = i64::from(value);
                    }
                }
                put_frame_head(&mut self.outgoing, 0, SETTINGS, ACK, 0);
            }
            PING if flags & ACK == 0 => {
                put_frame_head(&mut self.outgoing, payload.len(), PING, ACK, 0);
                self.outgoing.extend_from_slice(&payload);
            }
            WINDOW_UPDATE if stream == 0 => {
                self.credit += i64::from(payload.get_u32() & CREDIT_MAX);
                self.send_waiting();
            }
            RST_STREAM | GOAWAY => return Err(format!("{} ended calls by itself", self.endpoint).into()),
            _ => {}
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            into.push(Answer { stream, message: self.message_of(stream)? });
        }
        Ok(())
    }

    /// The message of a stream that has ended.
    fn message_of(&mut self, stream: u32) -> Result<Bytes, Failure> {
        let mut framed = self.partial.remove(&stream).unwrap_or_default();
        let head = framed.get(..PREFIX_BYTES).map(|head| u32::from_be_bytes([head[1], head[2], head[3], head[4]]));
        if head.is_none_or(|length| length as usize != framed.len() - PREFIX_BYTES) {
            return Err(format!("{} refused a call; its log may say why", self.endpoint).into());
        }
        framed.advance(PREFIX_BYTES);
        Ok(framed.freeze())
    }

    fn give_credit(&mut self, bytes: u32) {
        self.received += bytes;
        if self.received > CREDIT_MAX / 2 {
            put_credit(&mut self.outgoing, self.received);
            self.received = 0;
        }
    }
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: BytesMut,
}

fn put_frame_head(into: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    into.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
    into.extend_from_slice(&[kind, flags]);
    into.put_u32(stream);
}

/// Lets the server send so much more on the connection.
fn put_credit(into: &mut Vec<u8>, bytes: u32) {
    put_frame_head(into, 4, WINDOW_UPDATE, 0, 0);
    into.put_u32(bytes);
}

/// What the server remembers of the heads of earlier calls, the newest first: what it has seen is named by its place (RFC 7541).
#[derive(Default)]
struct HeadTable(VecDeque<(Name, String)>);

/// The name of a field of a head.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    /// By its place in the table that everybody has.
    Known(u8),
    Said(&'static str),
}

impl HeadTable {
    /// Places after those that everybody has.
    const FIRST: usize = 62;

    /// The head of a call.
    fn head(&mut self, authority: &str, path: &str) -> Vec<u8> {
        // `:method: POST` and `:scheme: http` as a whole; then by their names `:authority`, `:path` and `content-type`.
        let mut head = vec![0x83, 0x86];
        self.put(&mut head, Name::Known(1), authority);
        self.put(&mut head, Name::Known(4), path);
        self.put(&mut head, Name::Known(31), "application/grpc");
        self.put(&mut head, Name::Said("te"), "trailers");
        self.put(&mut head, Name::Known(58), "etcd-bench");
        head
    }

    fn put(&mut self, head: &mut Vec<u8>, name: Name, value: &str) {
        if let Some(at) = self.0.iter().position(|(known, of)| *known == name && of == value) {
            head.push(0x80 | (Self::FIRST + at) as u8);
            return;
        }
        match name {
            Name::Known(place) => head.push(0x40 | place),
            Name::Said(name) => {
                head.push(0x40);
                put_text(head, name);
            }
        }
        put_text(head, value);
        self.0.push_front((name, value.to_owned()));
    }
}

/// Short, and as it is.
fn put_text(head: &mut Vec<u8>, text: &str) {
    head.push(text.len() as u8);
    head.extend_from_slice(text.as_bytes());
}
