//! How a call gets to one node and its answer back.
//!
//! Owns the connections. Makes exactly one attempt, and says of a failed one whether the request went out. Never retries,
//! but for a kept connection that turns out closed before anything was sent on it.
//!
//! Operations share streams (`stream`): an exchange of its own for each costs more than the operation. Everything else, and
//! what is too long for a stream, has an HTTP/1.1 connection to itself for as long as it takes (`http1`), and so has an answer that
//! is taken as it comes (`body`), a stream of events (`events`) for one.

mod body;
pub(crate) mod credentials;
mod events;
mod http1;
pub(crate) mod messages;
mod stream;
pub(crate) mod stream_end;
pub(crate) mod tls;
pub(crate) mod token;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::RwLock;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};

pub(crate) use body::{OpenBody, Opened};
pub(crate) use events::EventStream;

use crate::call::endpoints::{ClusterId, Endpoint, LeaderHint, socket_of};
use crate::call::error::{Error, Failure, FailureKind};
use crate::call::reason::Reason;
use crate::call::request::Call;
use credentials::Credentials;
use tls::{Plain, Wire};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REQUEST_TIMEOUT: HeaderName = HeaderName::from_static("request-timeout");
const PREFER: HeaderName = HeaderName::from_static("prefer");
const TERM: HeaderName = HeaderName::from_static("quorate-term");
const LEADER: HeaderName = HeaderName::from_static("quorate-leader");
const CLUSTER: HeaderName = HeaderName::from_static("quorate-cluster");
const REVISION: HeaderName = HeaderName::from_static("quorate-revision");

/// Longest time for a connection to come about; a node that is further away is not worth waiting for.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The node is told to answer at most this much earlier than we stop waiting, so that its own word on a timeout arrives.
const GRACE_MAX: Duration = Duration::from_millis(250);
/// Largest answer taken: many times the largest page of a listing. Protects the memory of the caller.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How operations go to the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// As lines of a stream that all operations to a node share. Least CPU, fewest sockets.
    #[default]
    Stream,
    /// Each as an HTTP/1.1 exchange of its own, on a kept connection. Least to set up for a single operation.
    Http1,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: StatusCode,
    pub hint: LeaderHint,
    pub body: Bytes,
}

/// How far an attempt got.
enum Broken {
    /// Nothing was sent.
    Before(FailureKind),
    /// The request may have reached the node.
    After(Reason),
}

/// The way to all nodes. A node keeps its place: others only come behind it.
#[derive(Debug)]
pub(crate) struct Transport {
    lines: RwLock<Vec<Arc<Line>>>,
    protocol: Protocol,
    credentials: Arc<Credentials>,
}

/// The way to a node that is not added.
pub(crate) struct NewNode(Arc<Line>);

/// The way to one node.
struct Line {
    /// `host:port`, or `unix:/path`.
    address: Arc<str>,
    host: HeaderValue,
    credentials: Arc<Credentials>,
    /// Whom the certificate has to name. `None`: plain.
    secure: Option<ServerName<'static>>,
    http1: http1::Pool,
    stream: stream::Shared,
}

impl Transport {
    /// Connects to nothing yet.
    pub fn new(endpoints: &[Endpoint], protocol: Protocol, credentials: Credentials) -> Result<Self, Error> {
        let credentials = Arc::new(credentials);
        let line = |endpoint| Line::new(endpoint, &credentials).map(Arc::new);
        let lines = endpoints.iter().map(line).collect::<Result<_, _>>()?;
        Ok(Self { lines: RwLock::new(lines), protocol, credentials })
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.lines.read().len()
    }

    /// Whether members that no endpoint names are reached by TLS: as any of those named is. Sockets of this machine say nothing of the
    /// others; where there is nothing else, naming a CA does.
    pub fn is_tls(&self) -> bool {
        let lines = self.lines.read();
        let mut on_network = lines.iter().filter(|line| socket_of(&line.address).is_none()).peekable();
        match on_network.peek() {
            Some(_) => on_network.any(|line| line.secure.is_some()),
            None => self.credentials.shown().connector.is_some(),
        }
    }

    /// The node's `host:port`.
    pub fn address(&self, node: usize) -> Arc<str> {
        self.line(node).address.clone()
    }

    /// What this client shows and believes.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// A way to one more node, to be tried before it is added.
    pub fn prepare(&self, endpoint: &Endpoint) -> Result<NewNode, Error> {
        Line::new(endpoint, &self.credentials).map(|line| NewNode(Arc::new(line)))
    }

    /// Adds a node; its place.
    pub fn add(&self, node: NewNode) -> usize {
        let mut lines = self.lines.write();
        lines.push(node.0);
        lines.len() - 1
    }

    /// Closes the kept connections to the node on which it did not say that it is of this cluster, once nobody waits on them: a new one may
    /// lead to another node behind the same address.
    pub fn leave(&self, node: usize, ours: ClusterId) {
        let line = self.line(node);
        line.http1.leave(ours);
        line.stream.leave(ours);
    }

    fn line(&self, node: usize) -> Arc<Line> {
        self.lines.read()[node].clone()
    }

    /// One attempt at one node, over within `budget`.
    pub async fn send(&self, node: usize, call: &Call, budget: Duration) -> Result<Answer, Failure> {
        self.send_on(&self.line(node), call, budget).await
    }

    /// [`Self::send`] to a node that is not added yet.
    pub async fn send_new(&self, node: &NewNode, call: &Call, budget: Duration) -> Result<Answer, Failure> {
        self.send_on(&node.0, call, budget).await
    }

    async fn send_on(&self, line: &Line, call: &Call, budget: Duration) -> Result<Answer, Failure> {
        let sent = AtomicBool::new(false);
        let kind = match tokio::time::timeout(budget, self.attempt(line, call, budget, &sent)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(Broken::Before(kind))) => kind,
            Ok(Err(Broken::After(reason))) => FailureKind::Broken(reason),
            Err(_) if !sent.load(Relaxed) => {
                FailureKind::NotSent(format!("no connection came about within {} ms", budget.as_millis()).into())
            }
            Err(_) => {
                line.stream.leave_silent();
                FailureKind::TimedOut(budget)
            }
        };
        Err(Failure { address: line.address.to_string(), kind })
    }

    /// Sets `sent` before it hands the request to a connection: until then a call that is given up has done nothing.
    async fn attempt(&self, line: &Line, call: &Call, budget: Duration, sent: &AtomicBool) -> Result<Answer, Broken> {
        if self.protocol == Protocol::Stream
            && call.is_line
            && let Some(outcome) = stream::send(line, call, told(budget), sent).await
        {
            return outcome;
        }
        // In a box, since it is large and would make every operation's future as large.
        Box::pin(http1::send(line, call, budget, sent)).await
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure.is_some() { "https" } else { "plain" };
        write!(out, "Line({scheme} {}, {:?}, {:?})", self.address, self.http1, self.stream)
    }
}

impl Line {
    fn new(endpoint: &Endpoint, credentials: &Arc<Credentials>) -> Result<Self, Error> {
        let address = endpoint.address.as_str();
        let bad = |why: &str| Error::Invalid(format!("`{address}` is not an endpoint: {why}"));
        if endpoint.socket().is_some() {
            let (http1, stream) = Default::default();
            let (host, credentials) = (HeaderValue::from_static("localhost"), credentials.clone());
            return Ok(Self { address: address.into(), host, credentials, secure: None, http1, stream });
        }
        let authority: Authority = address.parse().map_err(|_| bad("expected host:port"))?;
        if authority.port_u16().is_none() || authority.as_str().contains('@') {
            return Err(bad("expected host:port"));
        }
        let host = HeaderValue::from_str(address).map_err(|_| bad("the host is not ASCII"))?;
        let secure = match (endpoint.is_tls, credentials.shown().connector.is_some()) {
            (false, _) => None,
            (true, false) => {
                return Err(Error::Invalid(format!(
                    "https://{address}: no CA is named, and only certificates of CAs that are named are believed; say --ca FILE \
                     (QUORATE_CA)"
                )));
            }
            (true, true) => {
                let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
                Some(ServerName::try_from(host).map_err(|_| bad("no certificate can have this host's name"))?)
            }
        };
        let (http1, stream) = Default::default();
        Ok(Self { address: address.into(), host, credentials: credentials.clone(), secure, http1, stream })
    }

    async fn connect(&self) -> Result<TokioIo<Wire>, Broken> {
        let failed = |error| Broken::Before(FailureKind::Connect(error));
        if let Some(path) = socket_of(&self.address) {
            let stream = UnixStream::connect(path).await.map_err(failed)?;
            return Ok(TokioIo::new(Wire::Left(Plain::Right(stream))));
        }
        let stream = match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(&*self.address)).await {
            Ok(connected) => connected.map_err(failed)?,
            Err(_) => return Err(failed(std::io::ErrorKind::TimedOut.into())),
        };
        stream.set_nodelay(true).map_err(failed)?;
        let Some(name) = &self.secure else { return Ok(TokioIo::new(Wire::Left(Plain::Left(stream)))) };
        let shown = self.credentials.shown();
        let connector = shown.connector.as_ref().expect("an endpoint with TLS is refused where no CA is named");
        // In a box: its state is large, and most calls find a connection that is kept.
        let handshake = Box::pin(connector.connect(name.clone(), stream));
        match tokio::time::timeout(CONNECT_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => Ok(TokioIo::new(Wire::Right(Box::new(stream)))),
            Ok(Err(error)) => Err(Broken::Before(tls::failed(error))),
            Err(_) => Err(failed(std::io::ErrorKind::TimedOut.into())),
        }
    }

    /// Says where a request goes and who asks.
    fn introduce(&self, headers: &mut HeaderMap) {
        headers.insert(HOST, self.host.clone());
        if let Some(authorization) = &self.credentials.shown().authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
    }

    /// The request as it goes out over HTTP/1.1.
    fn request(&self, call: &Call, budget: Duration) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = Uri::from(call.target.clone());
        let headers = request.headers_mut();
        headers.reserve(8);
        self.introduce(headers);
        headers.insert(REQUEST_TIMEOUT, HeaderValue::from(told(budget)));
        if let Some(id) = call.request_id() {
            headers.insert(IDEMPOTENCY_KEY, id.header());
        }
        if let Some(content_type) = &call.content_type {
            headers.insert(CONTENT_TYPE, content_type.clone());
        }
        if let Some((name, value)) = &call.condition {
            headers.insert(name.clone(), value.clone());
        }
        if let Some(prefer) = &call.prefer {
            headers.insert(PREFER, prefer.clone());
        }
        request
    }
}

/// Milliseconds that the node is told it has.
fn told(budget: Duration) -> u64 {
    let told = budget - GRACE_MAX.min(budget / 10);
    u64::try_from(told.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Moves a connection along until the exchange on it is over. `None`: it ended first.
async fn alongside<T>(
    mut connection: Pin<&mut (impl Future + ?Sized)>,
    exchange: impl Future<Output = T>,
) -> Option<T> {
    let mut exchange = pin!(exchange);
    let mut ended = false;
    poll_fn(|cx| {
        if let Poll::Ready(outcome) = exchange.as_mut().poll(cx) {
            return Poll::Ready(Some(outcome));
        }
        if ended {
            return Poll::Ready(None);
        }
        // Errors of the connection also reach the exchange, which knows what they mean for the request.
        ended = connection.as_mut().poll(cx).is_ready();
        match exchange.as_mut().poll(cx) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => {
                if ended {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    })
    .await
}

/// Reads an answer to its end.
async fn receive(response: Response<Incoming>) -> Result<Answer, Broken> {
    let (head, body) = response.into_parts();
    let body = match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Err(Broken::After(format!("in the middle of the answer: {error}").into())),
    };
    Ok(Answer { status: head.status, hint: hint(&head.headers), body })
}

/// What the headers say of the cluster. Headers that make no sense say nothing.
fn hint(headers: &HeaderMap) -> LeaderHint {
    let number = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()?.parse().ok());
    let cluster = headers.get(CLUSTER).and_then(|value| ClusterId::parse(value.to_str().ok()?));
    LeaderHint { cluster, term: number(TERM).unwrap_or(0), leader_id: number(LEADER) }
}

fn not_sent(error: hyper::Error) -> Broken {
    Broken::Before(match tls::refusal(&error) {
        Some(words) => FailureKind::Tls(Reason::explained(words, error)),
        None => FailureKind::NotSent(Reason::of(error)),
    })
}

/// The request went out, at least in part.
fn broken(error: hyper::Error) -> Broken {
    match tls::refusal(&error) {
        Some(words) => Broken::Before(FailureKind::Tls(Reason::explained(words, error))),
        None => Broken::After(Reason::of(error)),
    }
}

/// Whether a kept connection is too old to be trusted with another request: servers close idle ones.
fn is_stale(since: Instant, now: Instant) -> bool {
    const KEPT_MAX: Duration = Duration::from_secs(30);
    now.duration_since(since) > KEPT_MAX
}
