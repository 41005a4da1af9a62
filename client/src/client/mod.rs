//! The client: its settings, and the way of every call from first attempt to final answer.
//!
//! Owns the loops over attempts, for answers and for streams. What both have in common is in `way`, what that decides with is pure:
//! `endpoints` (which node), `retry` (whether again). A write carries one request id over all its attempts, so whatever happens it is applied at most once.

pub(crate) mod lease;
pub(crate) mod pages;
pub(crate) mod pending;
pub(crate) mod registry;
pub(crate) mod retry;
mod spans;
mod way;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, StatusCode};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tracing::Instrument;

use crate::api::{Applied, MemberView, Problem, StatusAnswer, WATCH_CONTENT_TYPE};
use crate::call::endpoints::{
    ClusterId, Endpoint, Endpoints, Foreign, INTRODUCTION_PAUSE, LeaderHint, Preference, Reads, socket_of,
};
use crate::call::error::{Error, Failure, FailureKind, GaveUp, is_missing};
use crate::call::moment::Moment;
use crate::call::request::{Call, Intent};
use crate::call::request_id::WRITE_PATIENCE_MAX;
use crate::call::subject;
use crate::transport::credentials::Credentials;
use crate::transport::tls::{CA_ENV, CERT_ENV, KEY_ENV, Pem, TlsSources};
use crate::transport::token::{TOKEN_ENV, TOKEN_FILE_ENV, TokenSource};
use crate::transport::{Answer, EventStream, OpenBody, Opened, Protocol, Transport};
use registry::Renewals;
use retry::{Attempts, Next, RetryPolicy, is_final};
use way::Way;

/// The nodes of the local cluster that `scripts/cluster up` starts.
pub const DEFAULT_ENDPOINTS: &str = "127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103";
/// The environment variable that names the endpoints.
pub const ENDPOINTS_ENV: &str = "QUORATE_ENDPOINTS";

/// Deadline of a call that sets none.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// How long one node may take before another is asked: some elections, but a good part of the deadline is left.
const ATTEMPT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(3);
/// How long a node may take to say who it is.
const INTRODUCTION_TIMEOUT: Duration = Duration::from_secs(1);

/// A client of one cluster. Cheap to clone; clones share connections and what they know of the nodes.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), quorate_client::Error> {
/// use quorate_client::Client;
///
/// let client = Client::new("10.0.0.1:7100,10.0.0.2:7100,10.0.0.3:7100")?;
/// // Each task has a clone; all of them share the connections.
/// let writer = client.clone();
/// let writing = tokio::spawn(async move { writer.put_json("greeting", "hello").await });
/// writing.await.expect("the task ends")?;
/// assert!(client.exists("greeting").await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    transport: Transport,
    endpoints: Mutex<Endpoints>,
    /// The nodes that were given, `host:port`.
    given: Vec<String>,
    /// As it was built.
    builder: ClientBuilder,
    renewals: Renewals,
}

#[derive(Debug, Clone)]
struct Settings {
    timeout: Duration,
    attempt_timeout: Duration,
    retry: RetryPolicy,
    reads: Reads,
}

/// Settings of a [`Client`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use quorate_client::{Client, RetryPolicy};
///
/// // Nothing is sent yet: nodes are asked when the first call is made.
/// let client = Client::builder()
///     .endpoints("10.0.0.1:7100,10.0.0.2:7100,10.0.0.3:7100")
///     .timeout(Duration::from_secs(5))
///     .attempt_timeout(Duration::from_secs(1))
///     .retry(RetryPolicy::default().attempts_max(10))
///     .build()?;
/// assert_eq!(client.endpoints().len(), 3);
///
/// // An endpoint that is none is found here, not by the first call.
/// assert!(Client::builder().endpoints("10.0.0.1").build().is_err());
/// # Ok::<(), quorate_client::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    endpoints: String,
    protocol: Protocol,
    tls: TlsSources,
    token: TokenSource,
    discovers: bool,
    settings: Settings,
}

impl ClientBuilder {
    /// The nodes: `host:port`, separated by commas; one is enough, all of them are better. `unix:/path` is the socket of a node on
    /// this machine (its `--client-socket`), which is plain in any case. `https://` may stand before each of the others, or
    /// `http://`; without either it is TLS where a CA is named, else plain.
    pub fn endpoints(mut self, endpoints: impl Into<String>) -> Self {
        self.endpoints = endpoints.into();
        self
    }

    /// PEM file with the CAs whose certificates of nodes are believed; there are no others. A certificate has to be for the host
    /// of the endpoint. When the file changes it is read again, within a second, and new connections go by what it says then; the same
    /// holds for [`Self::identity_files`] and [`Self::token_file`]. What cannot be read changes nothing.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls.ca = Some(Pem::File(path.into()));
        self
    }

    /// [`Self::ca_file`] as PEM text.
    pub fn ca_pem(mut self, text: impl AsRef<[u8]>) -> Self {
        self.tls.ca = Some(Pem::Given(text.as_ref().into()));
        self
    }

    /// PEM files with the certificate that nodes are shown, and its private key: the client is then who the certificate says.
    pub fn identity_files(mut self, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls.identity = Some((Pem::File(cert.into()), Pem::File(key.into())));
        self
    }

    /// [`Self::identity_files`] as PEM text.
    pub fn identity_pem(mut self, cert: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        self.tls.identity = Some((Pem::Given(cert.as_ref().into()), Pem::Given(key.as_ref().into())));
        self
    }

    /// The token that says who asks, where nodes want to know. Over a plain connection everybody on the way can read it.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = TokenSource::Given(token.into());
        self
    }

    /// File with that token, in one line. Read again when it changes.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token = TokenSource::File(path.into());
        self
    }

    /// Deadline of each call, retries included. Default 10 s. A write is tried for 5 minutes at most, whatever this says: nodes
    /// remember its request id for 15.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// How long one node may take before another is asked, within the deadline. Default 3 s.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.settings.attempt_timeout = timeout;
        self
    }

    /// When to try again.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.settings.retry = retry;
        self
    }

    /// Where reads go.
    pub fn reads(mut self, reads: Reads) -> Self {
        self.settings.reads = reads;
        self
    }

    /// How operations go to the nodes.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Whether members that no endpoint names are found out and asked while an endpoint does not answer, so that a client outlives
    /// the nodes that it was given. Default true. The endpoints stay in any case. A member is used once it has answered at the address
    /// that it advertises and has said that it is this member of this cluster; so an address that only the cluster's own network knows
    /// does no harm. A token is never sent in clear to an address that was not given.
    pub fn discover_members(mut self, discovers: bool) -> Self {
        self.discovers = discovers;
        self
    }

    /// Checks the endpoints, and reads the files of TLS and of the token. Connects to nothing yet.
    pub fn build(self) -> Result<Client, Error> {
        let addresses = parse_endpoints(&self.endpoints, self.tls.ca.is_some())?;
        let transport = Transport::new(&addresses, self.protocol, Credentials::read(&self.tls, &self.token)?)?;
        let mut endpoints = Endpoints::new(addresses.len(), rand::random::<u16>().into());
        // What goes to a socket of this machine is seen by nobody; members found through it alone are asked in clear unless a CA is named.
        let goes_out_in_clear = |endpoint: &Endpoint| !endpoint.is_tls && endpoint.socket().is_none();
        let is_clear = !transport.is_tls() || addresses.iter().any(goes_out_in_clear);
        if self.discovers && !(is_clear && transport.credentials().has_token()) {
            endpoints.discover(Instant::now());
        }
        let given = addresses.into_iter().map(|endpoint| endpoint.address).collect();
        let (endpoints, renewals, builder) = (Mutex::new(endpoints), Renewals::default(), self);
        Ok(Client { inner: Arc::new(Inner { transport, endpoints, given, builder, renewals }) })
    }
}

/// Splits the list. `prefers_tls` is for those that do not say.
fn parse_endpoints(list: &str, prefers_tls: bool) -> Result<Vec<Endpoint>, Error> {
    let mut addresses: Vec<Endpoint> = Vec::new();
    for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let endpoint = parse_endpoint(item, prefers_tls);
        if !addresses.iter().any(|known| known.address == endpoint.address) {
            addresses.push(endpoint);
        }
    }
    if addresses.is_empty() {
        return Err(Error::Invalid("no endpoint is given; expected host:port,host:port,…".into()));
    }
    Ok(addresses)
}

fn parse_endpoint(item: &str, prefers_tls: bool) -> Endpoint {
    if let Some(path) = item.strip_prefix("unix://").or_else(|| item.strip_prefix("unix:"))
        && path.starts_with('/')
    {
        return Endpoint { address: format!("unix:{path}"), is_tls: false };
    }
    let (is_tls, rest) = match (item.strip_prefix("https://"), item.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => (prefers_tls, item),
    };
    Endpoint { address: rest.trim_end_matches('/').to_owned(), is_tls }
}

impl Client {
    /// A client with default settings.
    pub fn new(endpoints: impl Into<String>) -> Result<Self, Error> {
        Self::builder().endpoints(endpoints).build()
    }

    /// A client of the nodes in `QUORATE_ENDPOINTS`, else of the local cluster; over TLS where `QUORATE_CA` names a CA, with the
    /// certificate in `QUORATE_CERT` and its key in `QUORATE_KEY` where they are there.
    pub fn from_env() -> Result<Self, Error> {
        let endpoints = std::env::var(ENDPOINTS_ENV).unwrap_or_else(|_| DEFAULT_ENDPOINTS.to_owned());
        let mut builder = Self::builder().endpoints(endpoints);
        if let Some(ca) = std::env::var_os(CA_ENV) {
            builder = builder.ca_file(ca);
        }
        if let Some(file) = std::env::var_os(TOKEN_FILE_ENV) {
            builder = builder.token_file(file);
        } else if let Ok(token) = std::env::var(TOKEN_ENV) {
            builder = builder.token(token);
        }
        match (std::env::var_os(CERT_ENV), std::env::var_os(KEY_ENV)) {
            (None, None) => {}
            (Some(cert), Some(key)) => builder = builder.identity_files(cert, key),
            _ => return Err(Error::Invalid(format!("{CERT_ENV} and {KEY_ENV} belong together; give both or none"))),
        }
        builder.build()
    }

    /// A client with the settings of this one, of another node: by TLS if any of its own is.
    pub(crate) fn of_node_at(&self, address: &str) -> Result<Self, Error> {
        let scheme = match socket_of(address) {
            Some(_) => "",
            None if self.inner.transport.is_tls() => "https://",
            None => "http://",
        };
        self.inner.builder.clone().endpoints(format!("{scheme}{address}")).discover_members(false).build()
    }

    /// Settings to change before building. Without endpoints: the local cluster.
    pub fn builder() -> ClientBuilder {
        let settings = Settings {
            timeout: TIMEOUT_DEFAULT,
            attempt_timeout: ATTEMPT_TIMEOUT_DEFAULT,
            retry: RetryPolicy::default(),
            reads: Reads::default(),
        };
        let (endpoints, protocol) = (DEFAULT_ENDPOINTS.into(), Protocol::default());
        let (tls, token) = (TlsSources::default(), TokenSource::default());
        ClientBuilder { endpoints, protocol, tls, token, discovers: true, settings }
    }

    /// The nodes, `host:port`, in the order given; without members that were discovered.
    pub fn endpoints(&self) -> impl ExactSizeIterator<Item = &str> {
        self.inner.given.iter().map(String::as_str)
    }

    /// All nodes that calls may go to, `host:port`: those given, and members that were discovered.
    pub fn known_endpoints(&self) -> Vec<String> {
        (0..self.inner.transport.len()).map(|node| self.inner.transport.address(node).to_string()).collect()
    }

    /// Where a linearizable read goes.
    pub(crate) fn read_preference(&self) -> Preference {
        match self.inner.builder.settings.reads {
            Reads::Leader => Preference::Leader,
            Reads::Spread => Preference::Any,
        }
    }

    /// The sessions that are renewed in the background.
    pub(crate) fn renewals(&self) -> &Renewals {
        &self.inner.renewals
    }

    /// Makes the call, decodes the answer.
    pub(crate) async fn fetch<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        let Reply { address, status, body } = self.send(&call).await?;
        decode(&call, &address, status, &body)
    }

    /// [`Self::fetch`], with `None` where there is no such thing.
    pub(crate) async fn fetch_if_there<T: DeserializeOwned>(&self, call: Call) -> Result<Option<T>, Error> {
        match self.fetch(call).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads what is at a path, linearizably.
    pub(crate) async fn read<T: DeserializeOwned>(&self, target: String) -> Result<T, Error> {
        self.fetch(self.read_call(target)?).await
    }

    /// [`Self::read`], with `None` where there is no such thing.
    pub(crate) async fn read_if_there<T: DeserializeOwned>(&self, target: String) -> Result<Option<T>, Error> {
        self.fetch_if_there(self.read_call(target)?).await
    }

    /// A linearizable read of what is at a path.
    pub(crate) fn read_call(&self, target: String) -> Result<Call, Error> {
        Call::new(Method::GET, target, Intent::Read, self.read_preference())
    }

    /// Makes the call: attempts it until it is decided or its time is up.
    pub(crate) async fn send(&self, call: &Call) -> Result<Reply, Error> {
        self.attempt_all(call).instrument(spans::call(call)).await
    }

    async fn attempt_all(&self, call: &Call) -> Result<Reply, Error> {
        let inner = &*self.inner;
        let begun = Moment::now();
        let started = begun.monotonic;
        let timeout = self.patience(call) + call.hold;
        let time_left = || {
            let left = timeout.saturating_sub(started.elapsed());
            match call.intent {
                // While a machine sleeps its monotonic clock may stand still; nodes forget meanwhile.
                Intent::Write(_) => {
                    left.min((WRITE_PATIENCE_MAX + call.hold).saturating_sub(Moment::now().since(begun)))
                }
                Intent::Read | Intent::Once => left,
            }
        };
        let whole = call.attempt.unwrap_or(inner.builder.settings.attempt_timeout) + call.hold;
        let (mut way, mut said) = (self.way(call), None);
        loop {
            let attempt = way.attempt();
            let node = attempt.node;
            let budget = time_left().min(whole);
            let sent = inner.transport.send(node, call, budget).instrument(attempt.span.clone()).await;
            let failure = match sent {
                Ok(answer) => match self.judge(node, call, answer) {
                    Judged::Good { status, body } => {
                        return Ok(Reply { address: inner.transport.address(node), status, body });
                    }
                    Judged::Refused(problem) if way.shows_newer_credentials(&attempt, &problem) => continue,
                    Judged::Refused(problem) if way.attempts().settled_by(&problem) => {
                        return Err(Error::Rejected(problem));
                    }
                    Judged::Refused(problem) => {
                        let last = self.failure(node, FailureKind::Problem(problem));
                        return Err(gave_up(call, way.attempts().failures() + 1, started, true, last));
                    }
                    Judged::Nonsense { detail, applied } => {
                        return Err(self.protocol_error(node, call, detail, applied, way.attempts()));
                    }
                    Judged::Failed(kind) => self.failure(node, kind),
                },
                Err(failure) => failure,
            };
            self.look_around();
            let pause = match way.on_failure(&attempt, &failure) {
                Next::Again(pause) if pause < time_left() => pause,
                _ => {
                    let attempts = way.attempts();
                    // A word of a node says more than a try that was cut short.
                    let said = said.filter(|said: &Failure| budget < whole || said.is_of_stranger());
                    let last = if failure.is_said() { failure } else { self.unless_in_doubt(said.unwrap_or(failure)) };
                    return Err(gave_up(call, attempts.failures(), started, attempts.fate_open(), last));
                }
            };
            if failure.is_said() {
                said = Some(failure);
            }
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    fn way<'a>(&'a self, call: &'a Call) -> Way<'a> {
        let inner = &*self.inner;
        Way::new(call, &inner.transport, &inner.endpoints, &inner.builder.settings.retry)
    }

    /// How long a call is tried.
    fn patience(&self, call: &Call) -> Duration {
        let wanted = call.timeout.unwrap_or(self.inner.builder.settings.timeout);
        match call.intent {
            Intent::Write(_) => wanted.min(WRITE_PATIENCE_MAX),
            Intent::Read | Intent::Once => wanted,
        }
    }

    /// Deadline of a call that sets none.
    pub(crate) fn call_timeout(&self) -> Duration {
        self.inner.builder.settings.timeout
    }

    /// A node that was well is not any more.
    pub(crate) fn node_failed(&self, node: usize) {
        self.inner.endpoints.lock().on_failure(node, Instant::now());
    }

    /// An error about what a node sent.
    pub(crate) fn strange_answer(&self, node: usize, detail: String) -> Error {
        let address = self.inner.transport.address(node).to_string();
        Error::Protocol { address, detail, applied: Applied::No, request_id: None, source: None }
    }

    /// Opens a stream of events, see [`Self::open_body`].
    pub(crate) async fn open_stream(&self, call: &Call, until: Option<Instant>) -> Result<(usize, EventStream), Error> {
        let (node, body) = self.open_body(call, WATCH_CONTENT_TYPE, until).await?;
        Ok((node, EventStream::of(body)))
    }

    /// Opens an answer of this content type that is taken as it comes: tries one node after the other until one has it,
    /// refuses for good, or the time is up.
    pub(crate) async fn open_body(
        &self,
        call: &Call,
        kind: &str,
        until: Option<Instant>,
    ) -> Result<(usize, OpenBody), Error> {
        self.open_at_some(call, kind, until).instrument(spans::call(call)).await
    }

    async fn open_at_some(&self, call: &Call, kind: &str, until: Option<Instant>) -> Result<(usize, OpenBody), Error> {
        let inner = &*self.inner;
        let started = Instant::now();
        let mut way = self.way(call);
        loop {
            let attempt = way.attempt();
            let node = attempt.node;
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            let budget = left.min(inner.builder.settings.attempt_timeout);
            let opened = inner.transport.open(node, call, kind, budget).instrument(attempt.span.clone()).await;
            let failure = match opened {
                Ok(Opened::Body(body)) => match self.check_cluster(node, body.hint.cluster) {
                    Ok(()) => {
                        self.learn(node, body.hint);
                        return Ok((node, body));
                    }
                    Err(foreign) => self.failure(node, foreign),
                },
                Ok(Opened::Answer(answer)) => match self.judge(node, call, answer) {
                    Judged::Refused(problem) if way.shows_newer_credentials(&attempt, &problem) => continue,
                    Judged::Refused(problem) => return Err(Error::Rejected(problem)),
                    Judged::Good { status, .. } => return Err(self.strange_answer(node, not_a_stream(status, kind))),
                    Judged::Nonsense { detail, .. } => return Err(self.strange_answer(node, detail)),
                    Judged::Failed(kind) => self.failure(node, kind),
                },
                Err(failure) => failure,
            };
            self.look_around();
            let pause = match way.on_failure(&attempt, &failure) {
                Next::Again(pause) => Some(pause),
                // Tries are bounded for calls. A watch goes on as long as its time does.
                Next::GiveUp if until.is_none() => Some(inner.builder.settings.retry.backoff_max),
                Next::GiveUp => None,
            };
            let pause = pause.filter(|pause| until.is_none_or(|until| Instant::now() + *pause < until));
            let Some(pause) = pause else {
                let last = if failure.is_said() { failure } else { self.unless_in_doubt(failure) };
                return Err(gave_up(call, way.attempts().failures(), started, false, last));
            };
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// One attempt at one node, for an answer that is text.
    pub(crate) async fn text_from(&self, node: usize, call: &Call, budget: Duration) -> Result<String, Error> {
        let answer = self.body_from(node, call, budget).await?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// One attempt at one node, whatever is known of it.
    pub(crate) async fn fetch_from<T: DeserializeOwned>(
        &self,
        node: usize,
        call: &Call,
        budget: Duration,
    ) -> Result<T, Error> {
        let answer = self.body_from(node, call, budget).await?;
        decode(call, &self.inner.transport.address(node), answer.status, &answer.body)
    }

    /// A successful answer to one attempt.
    async fn body_from(&self, node: usize, call: &Call, budget: Duration) -> Result<Answer, Error> {
        let started = Instant::now();
        let answer = match self.inner.transport.send(node, call, budget).await {
            Ok(answer) => answer,
            Err(last) => {
                let open = last.leaves_fate_open() && !matches!(call.intent, Intent::Read);
                return Err(gave_up(call, 1, started, open, last));
            }
        };
        let (status, body) = (answer.status, answer.body.clone());
        if status.is_success() {
            return Ok(answer);
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Err(Error::Rejected(Box::new(problem))),
            Err(_) => Err(self.protocol_error(node, call, strange(status), Applied::No, &Attempts::none())),
        }
    }

    /// What an answer means for the call; learns from its headers on the way.
    fn judge(&self, node: usize, call: &Call, answer: Answer) -> Judged {
        let Answer { status, hint, body } = answer;
        if let Err(foreign) = self.check_cluster(node, hint.cluster) {
            return Judged::Failed(foreign);
        }
        // What HEAD is answered has no problem document, so only a node may say that there is no entry.
        let is_missing = call.method == Method::HEAD && status == StatusCode::NOT_FOUND && hint.term > 0;
        if status.is_success() || status == StatusCode::NOT_MODIFIED || is_missing {
            self.learn(node, hint);
            return Judged::Good { status, body };
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) if is_final(&problem) => {
                self.learn(node, hint);
                Judged::Refused(Box::new(problem))
            }
            Ok(problem) => Judged::Failed(FailureKind::Problem(Box::new(problem))),
            Err(_) if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Judged::Failed(FailureKind::Strange(strange(status)))
            }
            Err(_) => Judged::Nonsense { detail: strange(status), applied: Applied::No },
        }
    }

    /// Hears of which cluster a node says it is; an error where that is not ours.
    pub(crate) fn check_cluster(&self, node: usize, cluster: Option<ClusterId>) -> Result<(), FailureKind> {
        let Some(cluster) = cluster else { return Ok(()) };
        let Err(Foreign { theirs, ours, is_news }) =
            self.inner.endpoints.lock().on_cluster(node, cluster, Instant::now())
        else {
            return Ok(());
        };
        self.inner.transport.leave(node, ours);
        if is_news {
            let endpoint = &*self.inner.transport.address(node);
            tracing::warn!(endpoint, %theirs, %ours, "a node of another cluster is among the endpoints; it is not believed");
        }
        Err(other_cluster(Foreign { theirs, ours, is_news }))
    }

    fn learn(&self, node: usize, hint: LeaderHint) {
        let introduce = {
            let (mut endpoints, now) = (self.inner.endpoints.lock(), Instant::now());
            endpoints.on_answer(node, hint);
            let is_stranger = endpoints.begin_introduction(now);
            endpoints.begin_discovery(now) || is_stranger
        };
        if introduce {
            tokio::spawn(self.clone().introduce_all());
        }
    }

    /// An attempt failed: where a node of another cluster is known, all say who they are now and then.
    fn look_around(&self) {
        if self.inner.endpoints.lock().begin_introduction(Instant::now()) {
            tokio::spawn(self.clone().introduce_all());
        }
    }

    /// The failure that a call ends with: while in doubt, that a given node is of another cluster.
    fn unless_in_doubt(&self, failure: Failure) -> Failure {
        let doubted = self.inner.endpoints.lock().doubted();
        doubted.map_or(failure, |(node, foreign)| self.failure(node, other_cluster(foreign)))
    }

    /// Something came from a node that is no answer to a call, as on a stream that goes on for days.
    pub(crate) fn on_sign_of_life(&self, node: usize) {
        self.learn(node, LeaderHint::default());
    }

    /// Asks every node who it is. While others than ours answer it goes on, so that their words come without gaps until the doubt is over.
    async fn introduce_all(self) {
        while !self.introduce_each().await && self.inner.endpoints.lock().is_in_doubt(Instant::now()) {
            tokio::time::sleep(INTRODUCTION_PAUSE).await;
            // Another round has begun meanwhile, and goes on in place of this.
            if !self.inner.endpoints.lock().begin_introduction(Instant::now()) {
                return;
            }
        }
    }

    /// Asks every node who it is, and from what they say finds members that are not among them. One that does not answer stays unknown
    /// until the next round. Whether any of ours answered.
    async fn introduce_each(&self) -> bool {
        let asked = (0..self.inner.transport.len()).map(|node| self.introduce(node));
        let statuses = futures::future::join_all(asked).await;
        let (ours, discovers) = {
            let endpoints = self.inner.endpoints.lock();
            (endpoints.cluster(), endpoints.discovers())
        };
        let is_ours = |status: &StatusAnswer| ClusterId::parse(&status.cluster_id) == ours;
        let latest = statuses.into_iter().flatten().filter(is_ours).max_by_key(|status| status.applied_index);
        let is_heard = latest.is_some();
        if let Some(latest) = latest.filter(|status| discovers && !status.cluster_id.is_empty()) {
            self.discover(latest).await;
        }
        is_heard
    }

    async fn introduce(&self, node: usize) -> Option<StatusAnswer> {
        let call = crate::call::request::status_call().ok()?;
        let answer = self.inner.transport.send(node, &call, INTRODUCTION_TIMEOUT).await.ok()?;
        // A refusal names the cluster, too.
        self.check_cluster(node, answer.hint.cluster).ok()?;
        let status: StatusAnswer = serde_json::from_slice(&answer.body).ok()?;
        let cluster = ClusterId::parse(&status.cluster_id);
        let hint = LeaderHint { cluster, term: status.term, leader_id: status.leader_id };
        self.check_cluster(node, cluster).ok()?;
        self.inner.endpoints.lock().introduce(node, status.node_id, hint);
        Some(status)
    }

    /// Asks the members that are not known for who they are, and adds those that answer as they should.
    async fn discover(&self, view: StatusAnswer) {
        let ids: Vec<u64> = view.members.iter().map(|member| member.id).collect();
        let unknown: Vec<_> = {
            let mut endpoints = self.inner.endpoints.lock();
            endpoints.retain(&ids);
            view.members.iter().filter(|member| !endpoints.is_known(member.id)).collect()
        };
        let asked = unknown.into_iter().filter(|member| is_reachable(&member.client_addr, &self.inner.given));
        let asked = asked.map(|member| self.make_acquaintance(member, &view.cluster_id));
        futures::future::join_all(asked).await;
    }

    /// Adds the member, if it is there and is who the others say.
    async fn make_acquaintance(&self, member: &MemberView, cluster_id: &str) {
        let transport = &self.inner.transport;
        let endpoint = Endpoint { address: member.client_addr.clone(), is_tls: transport.is_tls() };
        let (Ok(node), Ok(call)) = (transport.prepare(&endpoint), crate::call::request::status_call()) else { return };
        let Ok(answer) = transport.send_new(&node, &call, INTRODUCTION_TIMEOUT).await else { return };
        let Ok(status) = serde_json::from_slice::<StatusAnswer>(&answer.body) else { return };
        if status.node_id != member.id || status.cluster_id != cluster_id {
            return;
        }
        let cluster = ClusterId::parse(&status.cluster_id);
        let mut endpoints = self.inner.endpoints.lock();
        // Another round may have been faster, and the client may have gone over since.
        if !endpoints.is_known(member.id) && cluster == endpoints.cluster() {
            let place = transport.add(node);
            endpoints.add(member.id);
            if let Some(cluster) = cluster {
                endpoints.on_cluster(place, cluster, Instant::now()).expect("it is that of the client");
            }
            tracing::debug!(node_id = member.id, endpoint = member.client_addr.as_str(), "a member was discovered");
        }
    }

    fn failure(&self, node: usize, kind: FailureKind) -> Failure {
        Failure { address: self.inner.transport.address(node).to_string(), kind }
    }

    fn protocol_error(&self, node: usize, call: &Call, detail: String, applied: Applied, attempts: &Attempts) -> Error {
        let applied = if attempts.fate_open() { Applied::Unknown } else { applied };
        let address = self.inner.transport.address(node).to_string();
        Error::Protocol { address, detail, applied, request_id: call.request_id().cloned(), source: None }
    }
}

/// A successful answer.
pub(crate) struct Reply {
    /// Who gave it.
    pub address: Arc<str>,
    /// 2xx or 304; for HEAD also 404.
    pub status: StatusCode,
    /// All of it.
    pub body: Bytes,
}

/// What an answer means.
enum Judged {
    Good { status: StatusCode, body: Bytes },
    Refused(Box<Problem>),
    Failed(FailureKind),
    Nonsense { detail: String, applied: Applied },
}

/// Whether an address that a member advertises can mean the same to us. One of the node's own machine does not, unless ours is that.
fn is_reachable(address: &str, given: &[String]) -> bool {
    let host = |address: &str| address.rsplit_once(':').map_or_else(String::new, |(host, _)| host.to_owned());
    let ip = |host: &str| host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().ok();
    let is_local = |host: &str| host == "localhost" || ip(host).is_some_and(|ip| ip.is_loopback());
    let advertised = host(address);
    if advertised.is_empty() || ip(&advertised).is_some_and(|ip| ip.is_unspecified()) {
        return false;
    }
    let is_ours = |given: &String| socket_of(given).is_some() || is_local(&host(given));
    !is_local(&advertised) || given.iter().any(is_ours)
}

fn other_cluster(Foreign { theirs, ours, .. }: Foreign) -> FailureKind {
    FailureKind::OtherCluster { theirs: theirs.to_string(), ours: ours.to_string() }
}

fn not_a_stream(status: StatusCode, kind: &str) -> String {
    format!("status {status} without {kind}; is this a Quorate node?")
}

fn strange(status: StatusCode) -> String {
    format!("status {status} without a problem document; is this a Quorate node?")
}

/// The body of a successful answer as `T`.
pub(crate) fn decode<T: DeserializeOwned>(
    call: &Call,
    address: &str,
    status: StatusCode,
    body: &[u8],
) -> Result<T, Error> {
    let wrong = |detail, source| Error::Protocol {
        address: address.to_owned(),
        detail,
        // The status says it worked, the body does not say what.
        applied: if matches!(call.intent, Intent::Read) { Applied::No } else { Applied::Unknown },
        request_id: call.request_id().cloned(),
        source,
    };
    let answer = serde_json::from_slice(body).map_err(|error| {
        let (method, target) = (&call.method, &call.target);
        wrong(format!("the body of status {status} is not what {method} {target} answers: {error}"), Some(error))
    })?;
    match subject::strayed(call.target.as_str(), body) {
        Some(strayed) => Err(wrong(strayed.to_string(), None)),
        None => Ok(answer),
    }
}

fn gave_up(call: &Call, attempts: u32, started: Instant, fate_open: bool, last: Failure) -> Error {
    let request_id = call.request_id().cloned();
    let gave_up = Box::new(GaveUp { request_id, attempts, elapsed: started.elapsed(), last });
    if fate_open { Error::Unknown(gave_up) } else { Error::Unavailable(gave_up) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::request::RequestId;

    #[test]
    fn a_write_is_not_repeated_for_as_long_as_nodes_remember_it() {
        let hours = Duration::from_secs(7_200);
        let client = Client::builder().endpoints("127.0.0.1:1").timeout(hours).build().expect("it is valid");
        let call = |intent, timeout| {
            let call = Call::post("/v1/ops", Bytes::new(), intent, Preference::Leader);
            client.patience(&Call { timeout, ..call })
        };
        let write = || Intent::Write(RequestId::random());
        assert_eq!(call(write(), None), WRITE_PATIENCE_MAX);
        assert_eq!(call(write(), Some(hours)), WRITE_PATIENCE_MAX);
        assert_eq!(call(write(), Some(Duration::from_secs(3))), Duration::from_secs(3));
        assert_eq!((call(Intent::Read, None), call(Intent::Once, None)), (hours, hours));
    }

    #[test]
    fn an_address_of_the_nodes_own_machine_is_ours_only_where_we_are_on_it() {
        let given = |address: &str| vec![address.to_owned()];
        for (address, endpoint, reachable) in [
            ("10.0.0.4:7100", "db.example.org:7100", true),
            ("127.0.0.1:7104", "127.0.0.1:7101", true),
            ("[::1]:7104", "localhost:7101", true),
            ("127.0.0.1:7104", "unix:/run/quorate/clients", true),
            ("127.0.0.1:7100", "db.example.org:7100", false),
            ("localhost:7100", "10.0.0.1:7100", false),
            ("0.0.0.0:7100", "127.0.0.1:7101", false),
            ("", "127.0.0.1:7101", false),
        ] {
            assert_eq!(is_reachable(address, &given(endpoint)), reachable, "{address} from {endpoint}");
        }
    }

    #[test]
    fn endpoints_are_split_trimmed_and_deduplicated() {
        for prefers_tls in [false, true] {
            let parsed = parse_endpoints(" a:1, http://b:2/ ,,a:1,https://c:3", prefers_tls).expect("valid");
            let parsed: Vec<_> = parsed.iter().map(|endpoint| (endpoint.address.as_str(), endpoint.is_tls)).collect();
            assert_eq!(parsed, [("a:1", prefers_tls), ("b:2", false), ("c:3", true)]);
        }
    }

    #[test]
    fn a_unix_socket_is_plain_and_needs_a_path_from_the_root() {
        let parsed = parse_endpoints("unix:/run/q,unix:///run/q,unix:7100", true).expect("valid");
        let parsed: Vec<_> = parsed.iter().map(|endpoint| (endpoint.address.as_str(), endpoint.is_tls)).collect();
        assert_eq!(parsed, [("unix:/run/q", false), ("unix:7100", true)]);
        assert!(Client::new("unix:run/q").is_err());
    }

    #[test]
    fn members_found_through_a_socket_are_not_asked_in_clear_with_a_token() {
        let client =
            |endpoints: &str, token| Client::builder().endpoints(endpoints).token(token).build().expect("valid");
        let discovers = |client: Client| client.inner.endpoints.lock().discovers();
        assert!(!discovers(client("unix:/run/q", "secret")));
        assert!(discovers(Client::new("unix:/run/q").expect("valid")));
    }

    #[test]
    fn endpoints_without_port_or_with_tls_but_no_ca_are_refused() {
        for bad in ["", " , ", "localhost", "https://a:1", "a:1,b", "user@a:1", "a b:1"] {
            assert!(Client::new(bad).is_err(), "{bad:?}");
        }
        let error = Client::new("https://a:1").expect_err("no CA").to_string();
        assert!(error.contains("--ca FILE"), "{error}");
        let error = Client::builder().ca_file("/no/such/ca.pem").build().expect_err("no file").to_string();
        assert!(error.contains("/no/such/ca.pem"), "{error}");
        let error = Client::builder().identity_files("c", "k").build().expect_err("no CA").to_string();
        assert!(error.contains("--ca"), "{error}");
    }

    #[test]
    fn a_client_shows_no_token() {
        let client = Client::builder().endpoints("10.0.0.1:7100").token("qt_0123456789abcdef_example").build();
        let shown = format!("{:?}", client.expect("a client"));
        assert!(shown.contains("10.0.0.1:7100") && !shown.contains("qt_"), "{shown}");
    }
}
