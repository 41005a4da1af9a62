//! The client, and the way of every call from first attempt to final answer.
//!
//! Owns the loops over attempts, for answers and for streams. Their common part is in `way`, and its decisions are pure:
//! `endpoints` chooses a node, `retry` says whether to try again. A write carries one request id over all its attempts, so it is
//! applied at most once. Settings are `builder`'s; `discovery` reads what nodes say of themselves.

pub(crate) mod builder;
mod discovery;
pub(crate) mod lease;
pub(crate) mod pages;
pub(crate) mod pending;
pub(crate) mod registry;
pub(crate) mod retry;
mod spans;
mod way;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, StatusCode};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tracing::Instrument;

use crate::api::{Applied, Problem, WATCH_CONTENT_TYPE};
use crate::call::endpoints::{Endpoints, Preference, Reads, socket_of};
use crate::call::error::{Error, Failure, FailureKind, GaveUp, is_missing};
use crate::call::moment::Moment;
use crate::call::request::{Call, Intent};
use crate::call::request_id::WRITE_PATIENCE_MAX;
use crate::call::subject;
use crate::transport::{Answer, EventStream, OpenBody, Opened, Transport};
use builder::ClientBuilder;
use registry::Renewals;
use retry::{Attempts, Next, is_final};
use way::Way;

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
    /// Its settings.
    builder: ClientBuilder,
    renewals: Renewals,
}

impl Client {
    /// A client with the settings of this one, of another node: by TLS if any of its own is.
    pub(crate) fn of_node_at(&self, address: &str) -> Result<Self, Error> {
        let scheme = match socket_of(address) {
            Some(_) => "",
            None if self.inner.transport.is_tls() => "https://",
            None => "http://",
        };
        self.inner.builder.clone().endpoints(format!("{scheme}{address}")).discover_members(false).build()
    }

    /// The nodes, `host:port`, in the order given; without members that were discovered.
    pub fn endpoints(&self) -> impl ExactSizeIterator<Item = &str> {
        self.inner.given.iter().map(String::as_str)
    }

    /// All nodes that calls may go to, `host:port`: those given, and members that were discovered.
    pub fn known_endpoints(&self) -> Vec<String> {
        (0..self.inner.transport.len()).map(|node| self.inner.transport.address(node).to_string()).collect()
    }

    /// The preferred node of a linearizable read.
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

    /// [`Self::fetch`] of a call that may make no sense: what builders of calls become once they are awaited.
    pub(crate) fn ask<'a, T: DeserializeOwned + 'a>(
        &'a self,
        call: Result<Call, Error>,
    ) -> BoxFuture<'a, Result<T, Error>> {
        Box::pin(async move { self.fetch(call?).await })
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

    /// One attempt at one node, also at one that did not answer lately.
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

    /// Judges an answer for its call, and learns from its headers.
    fn judge(&self, node: usize, call: &Call, answer: Answer) -> Judged {
        let Answer { status, hint, body } = answer;
        if let Err(foreign) = self.check_cluster(node, hint.cluster) {
            return Judged::Failed(foreign);
        }
        // An answer to HEAD has no problem document: only the header of a node shows that there is no entry.
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
    /// The node that gave it.
    pub address: Arc<str>,
    /// 2xx or 304; for HEAD also 404.
    pub status: StatusCode,
    /// All of it.
    pub body: Bytes,
}

/// The meaning of an answer.
enum Judged {
    Good { status: StatusCode, body: Bytes },
    Refused(Box<Problem>),
    Failed(FailureKind),
    Nonsense { detail: String, applied: Applied },
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
}
