//! Agents over HTTP: the streamable transport of the protocol.
//!
//! Owns who may connect: callers with the token, since other users of this machine reach its own addresses too; no page of a browser, unless
//! its origin is named. Each session of the protocol is an agent of its own.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use subtle::ConstantTimeEq;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agent::Agent;
use crate::server::{Server, Toolbox};
use crate::settings::{ServeError, Settings};

/// Connections at a time: each agent has one or two.
const CONNECTIONS_MAX: usize = 256;
/// How long the head of a request may take.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long the end of all sessions may take.
const ENDINGS_WITHIN: Duration = Duration::from_secs(6);
/// A call may wait this long in itself.
const IDLE_MIN: Duration = Duration::from_secs(60);
/// Shortest token that is not just guessed.
const TOKEN_BYTES_MIN: usize = 16;
/// Bits that the mode of its file must not have: others may not read it, nor a group change it, as with the keys of a node.
const OPEN: u32 = 0o027;

/// Where agents connect, and which.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Where to listen.
    pub address: SocketAddr,
    /// The file of the token that agents send as `Authorization: Bearer`.
    pub token_file: PathBuf,
    /// Names in `Host` besides the address and those of this machine, each with or without a port.
    pub hosts: Vec<String>,
    /// Origins of web pages that may connect, `https://example.com:*`; none without them.
    pub origins: Vec<String>,
    /// After how long without a message an agent counts as gone.
    pub idle: Duration,
}

type Service = StreamableHttpService<Server, LocalSessionManager>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Serves agents until `stop` is there. `ready` is told the address once they can connect.
pub async fn serve_http(
    settings: Settings,
    http: HttpSettings,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let token = token(&http)?;
    let listen = |source| ServeError::Listen { address: http.address, source };
    let listener = TcpListener::bind(http.address).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let (endings, stopping) = (TaskTracker::new(), CancellationToken::new());
    let service = Arc::new(Door { service: service(settings, &http, address, &endings, &stopping), token });
    ready(address);
    tokio::select! {
        () = accept(&listener, &service, &stopping) => {}
        () = stop => {}
    }
    drop(listener);
    stopping.cancel();
    drop(service);
    endings.close();
    // What takes longer is left to the time of its session.
    let _ = tokio::time::timeout(ENDINGS_WITHIN, endings.wait()).await;
    Ok(())
}

/// The token that is asked for.
fn token(http: &HttpSettings) -> Result<String, ServeError> {
    if http.idle < IDLE_MIN {
        return Err(ServeError::Settings(format!(
            "an agent is idle for {} s at least before it counts as gone",
            IDLE_MIN.as_secs()
        )));
    }
    read_token(&http.token_file)
}

fn read_token(path: &Path) -> Result<String, ServeError> {
    let unreadable = |source| ServeError::File { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let found = std::fs::metadata(path).map_err(unreadable)?;
    let mode = found.permissions().mode() & 0o777;
    if found.is_file() && mode & OPEN != 0 {
        return Err(ServeError::Settings(format!(
            "{} has the mode {mode:03o}, so others on this machine may read or change the token: chmod it to 600, and make a new one if \
             somebody else may have read it",
            path.display()
        )));
    }
    let token = text.trim_end_matches(['\r', '\n']);
    if token.len() < TOKEN_BYTES_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let path = path.display();
        return Err(ServeError::Settings(format!(
            "{path}: a token is one line of printable ASCII, {TOKEN_BYTES_MIN} characters or more"
        )));
    }
    Ok(token.to_owned())
}

fn service(
    settings: Settings,
    http: &HttpSettings,
    address: SocketAddr,
    endings: &TaskTracker,
    stopping: &CancellationToken,
) -> Service {
    let mut sessions = SessionConfig::default();
    sessions.keep_alive = Some(http.idle);
    let mut manager = LocalSessionManager::default();
    manager.session_config = sessions;
    let named = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let hosts = named.into_iter().chain([address.ip().to_string()]).chain(http.hosts.iter().cloned());
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(http.origins.iter().cloned())
        .enforce_origin_validation()
        .with_cancellation_token(stopping.clone());
    // Later versions of the protocol have no sessions over HTTP, and an agent without one could hold nothing.
    let versions = ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25);
    let toolbox = Arc::new(Toolbox::new(settings.read_only, &settings.prefix, versions));
    let endings = endings.clone();
    let server = move || Ok(Server::new(Arc::new(Agent::new(settings.clone(), &endings)), &toolbox));
    StreamableHttpService::new(server, Arc::new(manager), config)
}

/// The service, and what has to be shown before it.
struct Door {
    service: Service,
    token: String,
}

impl Door {
    fn admits(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
        let Some((scheme, secret)) = given.split_at_checked("Bearer ".len()) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(secret.ct_eq(self.token.as_bytes()))
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Answer, Infallible> {
        if !self.admits(request.headers()) {
            let text = http_body_util::Full::new(Bytes::from_static(b"a token is needed")).boxed();
            let mut refused = Response::new(text);
            *refused.status_mut() = StatusCode::UNAUTHORIZED;
            refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Ok(refused);
        }
        Ok(self.service.handle(request).await)
    }
}

/// Takes connections, as many as there is room for.
async fn accept(listener: &TcpListener, door: &Arc<Door>, stopping: &CancellationToken) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let permit = room.clone().acquire_owned().await.expect("nobody closes it");
        let stream = next(listener).await;
        let (door, stopping) = (door.clone(), stopping.clone());
        tokio::spawn(async move {
            // What breaks a connection is the business of its other end.
            let _ = stopping.run_until_cancelled(serve(stream, door)).await;
            drop(permit);
        });
    }
}

async fn next(listener: &TcpListener) -> TcpStream {
    const PAUSE: Duration = Duration::from_millis(100);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // Of a connection that is gone already, or there are no descriptors left: that passes.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn serve(stream: TcpStream, door: Arc<Door>) -> io::Result<()> {
    let service = service_fn(move |request| {
        let door = door.clone();
        async move { door.answer(request).await }
    });
    let mut connection = http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    connection.serve_connection(TokioIo::new(stream), service).await.map_err(io::Error::other)
}
