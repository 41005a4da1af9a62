//! The work of one hostile connection.
//!
//! Owns each shape over HTTP/1.1 and over HTTP/2. Ends when it is cut or done; its caller starts it again.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::combination::{Combination, Shape};
use super::large;
use super::notes::Notes;
use crate::abuse::asker::Asker;
use crate::abuse::attacks::{connect, stay};
use crate::abuse::frames;
use cluster_harness::http::Request;

/// Requests at once over a connection of HTTP/1.1 or of a client that reads.
const AT_ONCE: usize = 10;
/// Streams of a connection of HTTP/2.
const STREAMS: u32 = 8;
/// Bytes of a drop.
const DROP: usize = 64;
/// How long a client reads an answer that goes on.
const LISTEN: Duration = Duration::from_millis(200);
/// The window of a stream where nothing else was agreed upon.
const WINDOW: u32 = 65_535;

/// How much is sent, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Connections of a wave, if there are more than its combinations need.
    pub connections: usize,
    /// Bytes that the largest requests have more than others.
    pub largest: usize,
    /// Bytes of bodies that do not come whole.
    pub short: usize,
    /// The time from one drop to the next.
    pub drop_every: Duration,
    /// How long a moment between waves is in which honest clients are looked at. With zero there is no rate to compare with.
    pub quiet: Duration,
    /// How long a wave lasts.
    pub hold: Duration,
    /// How long it lasts where nodes have not met all of it before.
    pub hold_max: Duration,
    /// How much nicer its threads are than nodes.
    pub niceness: u8,
}

/// A hostile client, and where it is at.
pub struct Hostile {
    /// The attack that it carries out.
    pub combination: Combination,
    /// Its address.
    pub from: Ipv4Addr,
    /// Its node.
    pub to: SocketAddr,
    /// The token that it shows, if it has one.
    pub token: Option<String>,
    /// How large and how slow.
    pub size: Size,
    /// The notes that it adds to.
    pub notes: Arc<Notes>,
    /// The flag that it has noted its combination as met.
    pub is_noted: AtomicBool,
}

impl Hostile {
    /// One connection, from its beginning to its end.
    pub async fn once(&self) -> io::Result<()> {
        let Combination { operation, shape, .. } = &self.combination;
        match shape {
            Shape::Largest => self.ask(large::grown(operation, self.size.largest), 1).await,
            Shape::Repeated => self.ask(operation.request.clone(), 1).await,
            Shape::Dear => self.ask(operation.dear.clone(), if operation.lasts { 1 } else { AT_ONCE }).await,
            Shape::HeadOnly | Shape::ByteShort | Shape::BodyByDrops => {
                self.send(&self.shown(large::with_body(operation, self.size.short))).await
            }
            Shape::AnswerUnread | Shape::AnswerByDrops => self.send(&self.shown(operation.request.clone())).await,
        }
    }

    fn shown(&self, request: Request) -> Request {
        self.combination.operation.way.by(request, self.token.as_deref())
    }

    fn meet(&self) {
        if !self.is_noted.swap(true, Ordering::Relaxed) {
            self.notes.meet(&self.combination);
        }
    }

    /// Asks again and again, and reads the answers.
    async fn ask(&self, request: Request, at_once: usize) -> io::Result<()> {
        let Combination { operation, shape, .. } = &self.combination;
        let request = self.shown(request);
        // One first, which shows that it is met: where an account has had more than its share, many at once are answered one after the other.
        let mut count = 1;
        loop {
            let mut asker = Asker::open(operation.way, self.from, self.to).await?;
            loop {
                let asking = asker.ask_at_once(&request, count);
                let answered = match operation.lasts {
                    true => tokio::time::timeout(LISTEN, asking).await,
                    false => Ok(asking.await),
                };
                // An answer that goes on is left, and asked for anew.
                let Ok(answered) = answered else { break };
                let is_largest = *shape == Shape::Largest;
                if is_largest && answered.is_err() {
                    // The node need not read all of it.
                    self.meet();
                }
                // A message that cannot be read is a fault of the server over gRPC, as etcd says it, too.
                let answered = answered?;
                for told in answered.iter().filter(|told| !is_largest && told.is_internal()) {
                    self.notes.accuse(&self.combination, told);
                }
                self.meet();
                count = at_once;
            }
            self.meet();
        }
    }

    /// Sends a request as it should not be sent, or does not read its answer as it should be read.
    async fn send(&self, request: &Request) -> io::Result<()> {
        let stream = connect(self.from, self.to).await?;
        stream.set_nodelay(true)?;
        match self.combination.operation.way.is_framed() {
            true => self.send_framed(stream, request).await,
            false => self.send_plain(stream, request).await,
        }
    }

    async fn send_plain(&self, mut stream: TcpStream, request: &Request) -> io::Result<()> {
        let bytes = request.to_bytes();
        let body = request.body.as_deref().unwrap_or_default();
        stream.write_all(&bytes[..bytes.len() - body.len()]).await?;
        self.meet();
        match self.combination.shape {
            Shape::ByteShort => stream.write_all(&body[..body.len().saturating_sub(1)]).await?,
            Shape::BodyByDrops => {
                for drop in body.chunks(DROP) {
                    tokio::time::sleep(self.size.drop_every).await;
                    stream.write_all(drop).await?;
                }
            }
            Shape::AnswerUnread | Shape::AnswerByDrops => {
                stream.write_all(body).await?;
                // Behind one that waits others would have the node see later that its client hung up, up to eight seconds for a watch.
                if !self.combination.operation.lasts {
                    stream.write_all(&bytes.repeat(AT_ONCE - 1)).await?;
                }
            }
            _ => {}
        }
        if self.combination.shape == Shape::AnswerByDrops {
            let mut drop = [0; DROP];
            while stream.read(&mut drop).await? > 0 {
                tokio::time::sleep(self.size.drop_every).await;
            }
        }
        stay(&stream).await
    }

    async fn send_framed(&self, mut stream: TcpStream, request: &Request) -> io::Result<()> {
        let shape = self.combination.shape;
        let reads_nothing = matches!(shape, Shape::AnswerUnread | Shape::AnswerByDrops);
        stream.write_all(&frames::begin(if reads_nothing { 0 } else { WINDOW })).await?;
        // The windows of the node hold from when its settings were seen on.
        let mut settings = [0; 4_096];
        if stream.read(&mut settings).await? == 0 {
            return Ok(());
        }
        let body = request.body.as_deref().unwrap_or_default();
        stream.write_all(&frames::acknowledge()).await?;
        stream.write_all(&on_each(|stream| frames::head_of(stream, request))).await?;
        self.meet();
        match shape {
            Shape::ByteShort => {
                let short = &body[..body.len().saturating_sub(1)];
                stream.write_all(&on_each(|stream| frames::data(stream, short))).await?;
            }
            Shape::BodyByDrops => {
                for drop in body.chunks(DROP) {
                    tokio::time::sleep(self.size.drop_every).await;
                    stream.write_all(&on_each(|stream| frames::data(stream, drop))).await?;
                }
            }
            Shape::AnswerUnread | Shape::AnswerByDrops => {
                stream.write_all(&on_each(|stream| frames::data(stream, body))).await?;
                if !self.combination.operation.goes_on {
                    stream.write_all(&on_each(frames::end)).await?;
                }
            }
            _ => {}
        }
        if shape == Shape::AnswerByDrops {
            let mut rest = [0; 4_096];
            loop {
                stream.write_all(&on_each(|stream| frames::open_window_of(stream, DROP as u32))).await?;
                tokio::time::sleep(self.size.drop_every).await;
                // Reads what there is: a stream that has no window any more has none.
                if let Ok(read) = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut rest)).await
                    && read? == 0
                {
                    return Ok(());
                }
            }
        }
        stay(&stream).await
    }
}

/// This frame on each stream of a connection.
fn on_each(frame: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    (0..STREAMS).map(|number| 2 * number + 1).flat_map(frame).collect()
}
