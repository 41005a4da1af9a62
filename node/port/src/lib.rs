//! From a listening socket to served connections, with every deadline that `axum::serve` lacks.
//!
//! Owns the accept loop, the choice between HTTP/1.1 and HTTP/2, TLS, and the end of connections: silent, slow, idle,
//! stalled, too many, drained. Connections that have shown nothing are evicted first ([`EvictingLimit`]). Deadlines of bodies
//! and requests are the gateway's.

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A server says things through its log.
#![warn(clippy::print_stdout)]

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::handler::Handler;
use axum::response::Response;
use futures::future::BoxFuture;
use http::{Method, Request, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use quorate_node_core::connection::door::Door;
use quorate_node_core::connection::gather::Gathering;
use quorate_node_core::connection::handshake::Handshake;
use quorate_node_core::connection::handshake_queue::HandshakeQueue;
use quorate_node_core::connection::mismatch;
use quorate_node_core::connection::monitor::{Busy, ConnectionMonitor, Patience, Verdict, Watched};
use quorate_node_core::connection::origin::{Neighbour, Origin};
use quorate_node_core::evicting_limit::{EvictingLimit, EvictingPermit, Full, Standing};
use quorate_node_core::gateway::admission::paced::{Paced, PacedExecutor};
use quorate_node_core::gateway::admission::turns::ConnectionAccount;
use quorate_node_core::gateway::api::Api;
use quorate_node_core::gateway::arrival::Arrival;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::limits;
use quorate_node_core::metrics::ConnectionEnd;
use quorate_node_core::net::{Listener, PeerAddress, Stream};
use quorate_node_core::tls::{self, PortTls};
use quorate_node_core::unix_socket::UnixSocket;
use quorate_node_etcd as etcd;
use quorate_node_http as node_http;
use quorate_threads::watchdog;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub mod threads;
mod windows;

use threads::{Homes, Resident};
use windows::WINDOWS;

/// How the accept loop treats connections.
#[derive(Clone)]
pub struct ServeSettings {
    /// Most connections at a time. One more evicts one that has shown nothing; if there is none it is answered with 429 and closed.
    pub connections_max: usize,
    /// How long a connection may be silent at first, and how long a request head may take.
    pub header_timeout: Duration,
    /// How long a connection may stand without a request.
    pub idle_timeout: Duration,
    /// How long a peer may take nothing of an answer.
    pub write_stall_timeout: Duration,
    /// How long requests may take to end after `stop`.
    pub drain_timeout: Duration,
    /// Without it the port is plain; with it, it is not.
    pub tls: Option<Arc<PortTls>>,
    /// Which kind of port it is.
    pub door: Door,
    /// Runtimes that serve connections, too: see [`threads`].
    pub beside: Vec<Handle>,
}

/// One in this many places of a port is for addresses that have none.
const PLACES_FOR_ONE_NEWCOMER: usize = 20;

/// Room for connections: for all, and for those of one address.
fn places(all: usize, of_one: Option<usize>) -> EvictingLimit<Neighbour> {
    let of_one = of_one.map_or(all, |most| most.min(all));
    EvictingLimit::new(of_one, all).keeping(all / PLACES_FOR_ONE_NEWCOMER)
}

/// What is served, over either protocol.
fn router() -> Router {
    static ROUTER: LazyLock<Router> = LazyLock::new(|| {
        let nothing = node_http::nothing();
        let at_no_path = move |request: Request<Body>| {
            let nothing = nothing.clone();
            async move {
                match etcd::unknown(&request) {
                    Some(answer) => answer,
                    None => Handler::call(nothing, request, ()).await,
                }
            }
        };
        node_http::router().merge(etcd::router()).fallback(at_no_path)
    });
    ROUTER.clone()
}

/// The routes of all that is served, as metrics count them.
pub fn route_templates() -> Vec<&'static str> {
    [node_http::route_templates(), etcd::route_templates()].concat()
}

/// Serves `api` on `listener`, and on a Unix socket where there is one, until `stop` is cancelled and the open requests have ended, or
/// the drain timeout has passed.
pub async fn serve(
    listener: impl Into<Listener>,
    socket: Option<UnixSocket>,
    api: Arc<Api>,
    settings: ServeSettings,
    stop: CancellationToken,
) {
    // What is said on a Unix socket does not leave the machine: it is plain, and whoever may open it is known by its mode.
    let local = Arc::new(ServeSettings { tls: None, ..settings.clone() });
    let settings = Arc::new(settings);
    let places = places(settings.connections_max, api.admission.accounts.connections_max());
    // That of administration has few, and filling it keeps nobody from data.
    let is_of_clients = settings.door == Door::Clients;
    if is_of_clients {
        api.admission.connections.are_in(places.clone());
    }
    let port = Port {
        places,
        api,
        queue: HandshakeQueue::default(),
        homes: Homes::new(&settings.beside),
        tasks: TaskTracker::new(),
        stop,
        abort: CancellationToken::new(),
    };
    let drain_timeout = settings.drain_timeout;
    // One port is enough to see how busy the threads are.
    let watch = async {
        if is_of_clients {
            let pace = &port.api.admission.turns.pace;
            for runtime in &settings.beside {
                watchdog::spawn_on(runtime, Arc::clone(pace).feel(port.stop.clone()));
            }
            Arc::clone(pace).watch(port.homes.threads(), port.stop.clone()).await;
        }
    };
    let on_socket = async {
        if let Some(socket) = socket {
            port.accept(Listener::Unix(socket), local).await;
        }
    };
    tokio::join!(port.accept(listener.into(), Arc::clone(&settings)), on_socket, watch);
    port.drain(drain_timeout).await;
}

/// What all listeners of a node share.
struct Port {
    api: Arc<Api>,
    /// Room for connections. Each port of a node has its own: clients that fill theirs keep no operator, and no probe, from the other.
    places: EvictingLimit<Neighbour>,
    /// For handshakes.
    queue: HandshakeQueue,
    homes: Homes,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Cancelled when draining takes too long; the connections then end at once.
    abort: CancellationToken,
}

impl Port {
    /// Takes connections until the port stops.
    async fn accept(&self, mut listener: Listener, settings: Arc<ServeSettings>) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.begin(stream, peer, &settings),
                Err(error) => on_accept_error(&error).await,
            }
        }
    }

    /// Serves a connection, if there is room for it or can be made.
    fn begin(&self, stream: Stream, peer: PeerAddress, settings: &Arc<ServeSettings>) {
        // Children, so that connections do not contend for one lock.
        let (stop, abort) = (self.stop.child_token(), self.abort.child_token());
        let place = match self.places.take(peer.into(), abort.clone()) {
            Ok(place) => Arc::new(place),
            Err(full) => {
                self.api.metrics.on_connection_end(ConnectionEnd::Refused);
                if settings.door == Door::Clients {
                    self.api.admission.connections.refused(full);
                }
                refuse(&stream, settings, self.why(full));
                return;
            }
        };
        let (api, settings) = (Arc::clone(&self.api), Arc::clone(settings));
        let (metrics, port_abort) = (Arc::clone(&api.metrics), self.abort.clone());
        let counted = (settings.door == Door::Clients).then(|| Arc::clone(&api.admission.connections));
        let queue = self.queue.clone();
        let (runtime, resident) = self.homes.settle();
        let room = Room { place, _resident: resident };
        let served = async move {
            tokio::select! {
                () = abort.cancelled() => if !port_abort.is_cancelled() {
                    quorate_node_core::debug!(%peer, "a client connection had to make room for another one");
                    metrics.on_connection_end(ConnectionEnd::PushedOut);
                    if let Some(connections) = counted {
                        connections.pushed_out();
                    }
                },
                () = connection(stream, peer, api, &settings, queue, stop, room) => {}
            }
        };
        watchdog::spawn_tracked_on(&self.tasks, served, runtime);
    }

    /// The refusal of one connection too many.
    fn why(&self, full: Full) -> Failure {
        match full {
            Full::OfOne if self.api.admission.accounts.connections_max().is_some() => {
                self.api.admission.accounts.too_many_connections()
            }
            Full::OfOne | Full::OfAll => Failure::too_many("this node has as many connections as it may"),
        }
    }

    async fn drain(self, most: Duration) {
        self.tasks.close();
        if timeout(most, self.tasks.wait()).await.is_err() {
            tracing::warn!(open = self.tasks.len(), "connections did not drain in time and are cut");
            self.abort.cancel();
            self.tasks.wait().await;
        }
    }
}

/// A connection that died before it was accepted concerns nobody. Anything else (no more file descriptors, mostly) passes
/// only with time, so that accepting again at once would be a busy loop.
async fn on_accept_error(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        return;
    }
    tracing::error!(%error, "a client connection could not be accepted");
    sleep(Duration::from_millis(100)).await;
}

/// Tells a surplus connection why, as far as the socket takes it at once, and closes it. Where it would have to speak TLS first
/// the close has to do.
fn refuse(stream: &Stream, settings: &ServeSettings, mut why: Failure) {
    if settings.tls.is_some() {
        return;
    }
    let body = String::from_utf8_lossy(&why.document("")).into_owned();
    let head = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\nconnection: close";
    let text = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    // A peer that cannot take a few hundred bytes gets none: this is a courtesy, the close is the message.
    let _courtesy = stream.try_write(text.as_bytes());
}

/// What a connection takes of its port.
struct Room {
    place: Arc<EvictingPermit<Neighbour>>,
    _resident: Resident,
}

async fn connection(
    stream: Stream,
    peer: PeerAddress,
    api: Arc<Api>,
    settings: &ServeSettings,
    queue: HandshakeQueue,
    stop: CancellationToken,
    room: Room,
) {
    let _open = api.metrics.connection_opened();
    let begun = stream.moved_here().and_then(|stream| stream.set_nodelay().map(|()| stream));
    let mut stream = match begun {
        Ok(stream) => stream,
        Err(error) => {
            quorate_node_core::debug!(%peer, %error, "a connection was gone before it began");
            return;
        }
    };
    let deadline = Instant::now() + settings.header_timeout;
    let first = tokio::select! {
        () = stop.cancelled() => return,
        first = detect(&mut stream, deadline, settings.tls.is_some()) => first,
    };
    let metrics = Arc::clone(&api.metrics);
    let origin = Origin { address: peer, certificate: None, door: settings.door };
    let monitor = ConnectionMonitor::new(stop.clone(), settings.idle_timeout, Arc::downgrade(&room.place));
    // In boxes of their own size: side by side they would make every connection as large as the largest.
    let end = match (first, &settings.tls) {
        (First::Silent, _) => ConnectionEnd::SlowHead,
        (First::Gone, _) => ConnectionEnd::Closed,
        (First::Http1, None) => {
            let stream = Watched::new(stream, Arc::clone(&monitor));
            Box::pin(serve_http1(stream, monitor, origin, api, settings, &stop)).await
        }
        (First::Http2, None) => {
            let stream = Watched::new(stream, Arc::clone(&monitor));
            Box::pin(serve_http2(stream, monitor, origin, api, settings, &stop)).await
        }
        (First::Tls, Some(tls)) => {
            let stream = Watched::new(stream, Arc::clone(&monitor));
            let handshake = Handshake { tls: Arc::clone(tls), queue, deadline, origin };
            Box::pin(serve_tls(stream, monitor, handshake, api, settings, &stop)).await
        }
        (First::Tls, None) => {
            quorate_node_core::debug!(%peer, "a client speaks TLS to this plain port; it should say http://, or this node --tls-cert");
            ConnectionEnd::Handshake
        }
        (First::Http1 | First::Http2, Some(_)) => {
            mismatch::say_https(stream, deadline).await;
            ConnectionEnd::Handshake
        }
    };
    quorate_node_core::debug!(%peer, ?end, "a client connection ended");
    metrics.on_connection_end(end);
}

/// What the first bytes of a connection say.
enum First {
    Http1,
    Http2,
    Tls,
    /// Nothing, or not enough to tell, came in time.
    Silent,
    Gone,
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Looks at the first bytes without taking them. Everything that is neither TLS nor HTTP/2's preface is HTTP/1's to judge. Where
/// TLS is expected, one byte is enough.
async fn detect(stream: &mut Stream, deadline: Instant, expects_tls: bool) -> First {
    let mut first = [0u8; PREFACE.len()];
    loop {
        match timeout_at(deadline, stream.peek(&mut first)).await {
            Err(_) => return First::Silent,
            Ok(Err(_) | Ok(0)) => return First::Gone,
            Ok(Ok(_)) if tls::may_be_tls(&first[..1]) => return First::Tls,
            Ok(Ok(count)) if expects_tls || first[..count] != PREFACE[..count] => return First::Http1,
            Ok(Ok(count)) if count == PREFACE.len() => return First::Http2,
            // Nothing more comes, and looking shows the same bytes for ever.
            Ok(Ok(_)) if stream.has_ended().await => return First::Gone,
            Ok(Ok(_)) => {}
        }
        if Instant::now() >= deadline {
            return First::Silent;
        }
        // A preface cut in pieces is so rare that looking again now and then will do.
        sleep(Duration::from_millis(10)).await;
    }
}

/// The monitor is that of the socket below TLS: it sees what the peer really sends and takes.
async fn serve_tls(
    stream: Watched,
    monitor: Arc<ConnectionMonitor>,
    mut handshake: Handshake,
    api: Arc<Api>,
    settings: &ServeSettings,
    stop: &CancellationToken,
) -> ConnectionEnd {
    let shaken = tokio::select! {
        () = stop.cancelled() => return ConnectionEnd::Closed,
        shaken = handshake.shake(stream) => shaken,
    };
    let (stream, shown) = match shaken {
        Ok(shaken) => shaken,
        Err(end) => return end,
    };
    let origin = handshake.origin;
    let serving = async {
        // Who says nothing of protocols speaks HTTP/1.1.
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            Box::pin(serve_http2(stream, monitor, origin, api, settings, stop)).await
        } else {
            Box::pin(serve_http1(stream, monitor, origin, api, settings, stop)).await
        }
    };
    // Held for as long as the connection: who shows a certificate that is revoked later is cut off in the middle of a word.
    match &shown {
        None => serving.await,
        Some(shown) => tokio::select! {
            end = serving => end,
            () = shown.revoked().cancelled() => ConnectionEnd::Closed,
        },
    }
}

/// What the router answered. It gives an answer without a body the length 0, which is not that of what has not changed.
async fn answered(
    answer: impl Future<Output = Result<Response, Infallible>>,
    of: Option<Arc<ConnectionMonitor>>,
) -> Result<Response, Infallible> {
    let mut answer = answer.await?;
    show_served(of);
    if answer.status() == StatusCode::NOT_MODIFIED {
        answer.headers_mut().remove(header::CONTENT_LENGTH);
    }
    Ok(answer)
}

/// A call over gRPC, past the router: clients of etcd make many, and it would take as long as they do.
fn straight(
    served: etcd::Served,
    request: Request<Incoming>,
    of: Option<Arc<ConnectionMonitor>>,
) -> BoxFuture<'static, Result<Response, Infallible>> {
    Box::pin(async move {
        let answer = etcd::grpc(served, request.map(Body::new)).await;
        show_served(of);
        Ok(answer)
    })
}

/// Notes that a request of this connection was answered, with authentication off and until the first answer only: with authentication an
/// answer shows nothing, since strangers get some, too.
fn show_served(of: Option<Arc<ConnectionMonitor>>) {
    if let Some(monitor) = of {
        monitor.prove(Standing::Served);
    }
}

/// One handler for each connection: the router, and a mark that a request is in the works.
macro_rules! handler {
    ($api:expr, $origin:expr, $monitor:expr, $account:expr) => {{
        let (api, origin, monitor, account) = ($api, Arc::new($origin), Arc::clone(&$monitor), Arc::clone(&$account));
        let router = TowerToHyperService::new(router());
        // Boxed, so that a connection that streams or idles does not keep the room of a request.
        service_fn(move |mut request: Request<Incoming>| {
            let busy = Arc::new(Mutex::new(Some(Busy::new(Arc::clone(&monitor)))));
            let connection_account = Arc::clone(&account);
            let arrival = Arrival { api: Arc::clone(&api), origin: Arc::clone(&origin), connection_account, busy };
            request.extensions_mut().insert(arrival);
            // The first answer shows it: later requests pay for a look and no more.
            let is_to_show = api.auth.is_open() && !monitor.has_shown(Standing::Served);
            let of = is_to_show.then(|| Arc::clone(&monitor));
            // Calls over gRPC are POST: no other request pays for the look.
            let is_post = request.method() == Method::POST;
            match is_post.then(|| etcd::served_at(request.uri().path())).flatten() {
                Some(served) => straight(served, request, of),
                None => Box::pin(answered(router.call(request), of)),
            }
        })
    }};
}

/// Drives a connection until it ends by itself, is told to stop, or the watchdog ends it.
macro_rules! drive {
    ($connection:expr, $account:expr, $monitor:expr, $patience:expr, $stop:expr) => {{
        let mut connection = std::pin::pin!(Paced::new($connection, &$account));
        let tick = watch_interval(&$patience);
        let mut stopping = false;
        let mut check = std::pin::pin!(sleep(tick));
        loop {
            tokio::select! {
                biased;
                // Errors here are the peer's: cut connections, malformed heads that hyper has answered.
                _ended = connection.as_mut() => break ConnectionEnd::Closed,
                () = $stop.cancelled(), if !stopping => {
                    stopping = true;
                    connection.as_mut().connection().graceful_shutdown();
                }
                () = check.as_mut() => {
                    check.as_mut().reset(Instant::now() + $monitor.next_look(tick, &$patience));
                    match $monitor.verdict(&$patience) {
                        Verdict::Fine => {}
                        Verdict::Idle => break ConnectionEnd::Idle,
                        Verdict::SlowHead => break ConnectionEnd::SlowHead,
                        Verdict::Stalled => break ConnectionEnd::Stalled,
                        Verdict::Lingered | Verdict::HungUp => break ConnectionEnd::Closed,
                    }
                }
            }
        }
    }};
}

/// How often the watchdog looks: deadlines are kept to a quarter, at a cost of at most one timer a connection and tick.
fn watch_interval(patience: &Patience) -> Duration {
    let shortest = patience.head.unwrap_or(patience.idle).min(patience.idle).min(patience.stall);
    (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1))
}

async fn serve_http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    monitor: Arc<ConnectionMonitor>,
    origin: Origin,
    api: Arc<Api>,
    settings: &ServeSettings,
    stop: &CancellationToken,
) -> ConnectionEnd {
    let patience = Patience {
        head: Some(settings.header_timeout),
        idle: settings.idle_timeout,
        stall: settings.write_stall_timeout,
    };
    let io = TokioIo::new(stream);
    let mut builder = http1::Builder::new();
    // hyper's default of 100 headers stands: another number would cost an allocation a request.
    builder.header_read_timeout(None).max_header_size(limits::HEAD_BYTES_MAX).max_buf_size(limits::H1_BUFFER_BYTES);
    builder.timer(TokioTimer::new());
    let account = ConnectionAccount::new(&api.admission.turns, origin.neighbour(), origin.door == Door::Clients);
    drive!(builder.serve_connection(io, handler!(api, origin, monitor, account)), account, monitor, patience, stop)
}

async fn serve_http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    monitor: Arc<ConnectionMonitor>,
    origin: Origin,
    api: Arc<Api>,
    settings: &ServeSettings,
    stop: &CancellationToken,
) -> ConnectionEnd {
    let patience = Patience { head: None, idle: settings.idle_timeout, stall: settings.write_stall_timeout };
    // Many answers share this connection.
    let io = TokioIo::new(Gathering::new(stream));
    let ping = Duration::from_secs(limits::H2_PING_SECONDS);
    // hyper sets it once, before anybody is known.
    let window = WINDOWS.take();
    let account = ConnectionAccount::new(&api.admission.turns, origin.neighbour(), origin.door == Door::Clients);
    let mut builder = http2::Builder::new(PacedExecutor(Arc::clone(&account)));
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::H2_STREAMS_MAX)
        .max_pending_accept_reset_streams(limits::H2_RESETS_PENDING_MAX)
        .max_local_error_reset_streams(limits::H2_LOCAL_RESETS_MAX)
        .max_header_list_size(limits::HEAD_BYTES_MAX as u32)
        .initial_stream_window_size(window.stream_bytes())
        .initial_connection_window_size(window.bytes())
        .max_send_buf_size(limits::H2_SEND_BUFFER_BYTES)
        .keep_alive_interval(ping)
        .keep_alive_timeout(ping);
    drive!(builder.serve_connection(io, handler!(api, origin, monitor, account)), account, monitor, patience, stop)
}
