//! A node that does as told: answers from a script, remembers what it was asked.
//!
//! Owns nothing of Quorate's behaviour: a request that no script speaks of gets a plausible success. An operation is the same
//! to it whether it came by itself or as the line of a stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use quorate_client::Client;
use quorate_client::api::{
    AnswerLine, Applied, BulkRequest, ErrorCode, JsonText, Op, OpKind, OpLine, Problem, STREAM_CONTENT_TYPE,
};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, mpsc};

type Answer = Response<UnsyncBoxBody<Bytes, &'static str>>;

/// The cluster of nodes that are told nothing else.
pub const CLUSTER: &str = "0000000000000000000000000000c0de";

/// What to do with a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// Answer with this status and body.
    Answer(u16, String),
    /// Read the request, close the connection without an answer.
    Reset,
    /// Wait before doing as usual.
    Slow(Duration),
    /// End the stream without an answer, as a node that stops might.
    End,
    /// Answer with a stream of these events, and then be silent.
    Silence(String),
}

impl Act {
    /// Answer with a problem document.
    pub fn problem(code: ErrorCode, applied: Applied) -> Self {
        Self::refuse(Problem::new(code, applied, "as the script says"))
    }

    /// Answer with this problem document. An unknown outcome always asks for the same request id, as nodes do.
    pub fn refuse(mut problem: Problem) -> Self {
        if problem.applied == Applied::Unknown {
            problem.retry = quorate_client::api::Retry::SameRequestId;
        }
        Self::Answer(problem.status, serde_json::to_string(&problem).expect("problems have JSON"))
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: Method,
    pub target: String,
    pub id: Option<String>,
    pub timeout_ms: u64,
    pub body: String,
    pub op: Option<Op>,
    /// Empty for a line of a stream.
    pub headers: HeaderMap,
}

impl Seen {
    /// The condition of an operation.
    pub fn cas(&self) -> Option<&str> {
        self.op.as_ref()?.cas.as_deref()
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("ASCII"))
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

/// What a line of a stream leads to.
enum Outcome {
    Line(Bytes),
    Reset,
    End,
}

#[derive(Debug)]
struct Inner {
    node_id: u64,
    cluster: Mutex<&'static str>,
    hint: Mutex<(u64, Option<u64>)>,
    script: Mutex<VecDeque<Act>>,
    seen: Mutex<Vec<Seen>>,
    /// What is done with all requests to paths that end so, whatever the script says.
    always: Mutex<Vec<(String, Act)>>,
    /// The answer to a stream as a whole, where it is refused.
    refusal: Mutex<Option<(u16, String)>>,
    /// Streams asked for, refused ones too.
    streams: Mutex<usize>,
    hang_up: broadcast::Sender<()>,
}

/// The node. Goes on until its runtime ends.
#[derive(Debug, Clone)]
pub struct Fake {
    /// `host:port`
    pub address: String,
    inner: Arc<Inner>,
}

impl Fake {
    /// Starts node 1 without a leader.
    pub async fn start() -> Self {
        Self::start_as(1).await
    }

    /// Starts a node on a free port.
    pub async fn start_as(node_id: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("is bound").to_string();
        let inner = Arc::new(Inner {
            node_id,
            cluster: Mutex::new(CLUSTER),
            hint: Mutex::new((1, None)),
            script: Mutex::default(),
            seen: Mutex::default(),
            always: Mutex::default(),
            refusal: Mutex::default(),
            streams: Mutex::default(),
            hang_up: broadcast::Sender::new(1),
        });
        let fake = Self { address, inner };
        tokio::spawn(fake.clone().accept(listener));
        fake
    }

    /// Starts it and makes a client of it alone.
    pub async fn with_client() -> (Self, Client) {
        let fake = Self::start().await;
        let client = Client::new(&fake.address).expect("an endpoint");
        (fake, client)
    }

    /// What to do with the next requests, status requests excepted.
    pub fn script(&self, acts: impl IntoIterator<Item = Act>) {
        self.inner.script.lock().extend(acts);
    }

    /// What to do from now on with all requests to paths that end so; the script is for the others.
    pub fn always(&self, path_end: &str, act: Act) {
        self.inner.always.lock().insert(0, (path_end.to_owned(), act));
    }

    /// What it was asked at paths that end so.
    pub fn seen_at(&self, path_end: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.target.ends_with(path_end)).collect()
    }

    /// Waits until it was asked so often at paths that end so, and gives all of that.
    pub async fn asked(&self, path_end: &str, times: usize) -> Vec<Seen> {
        let look = async {
            loop {
                let seen = self.seen_at(path_end);
                if seen.len() >= times {
                    return seen;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), look).await;
        waited.unwrap_or_else(|_| panic!("not {times} requests to {path_end}: {:?}", self.seen()))
    }

    /// Answers streams like this from now on, `None`: takes them.
    pub fn refuse_streams(&self, refusal: Option<(u16, String)>) {
        *self.inner.refusal.lock() = refusal;
    }

    /// How many streams were asked for.
    pub fn streams(&self) -> usize {
        *self.inner.streams.lock()
    }

    /// What to say of the leader from now on.
    pub fn name_leader(&self, term: u64, leader_id: u64) {
        *self.inner.hint.lock() = (term, Some(leader_id));
    }

    /// Is of this cluster from now on, as a node is that was founded anew: connections are closed.
    pub async fn join(&self, cluster: &'static str) {
        *self.inner.cluster.lock() = cluster;
        self.hang_up().await;
    }

    /// What it was asked, status requests excepted.
    pub fn seen(&self) -> Vec<Seen> {
        self.inner.seen.lock().clone()
    }

    /// Closes all connections; returns once they are closed.
    pub async fn hang_up(&self) {
        let _ = self.inner.hang_up.send(());
        while self.inner.hang_up.receiver_count() > 0 {
            tokio::task::yield_now().await;
        }
    }

    async fn accept(self, listener: TcpListener) {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            tokio::spawn(self.clone().serve(stream));
        }
    }

    async fn serve(self, stream: TcpStream) {
        let mut hang_up = self.inner.hang_up.subscribe();
        let service = service_fn(move |request| self.clone().handle(request));
        let builder = auto::Builder::new(TokioExecutor::new());
        tokio::select! {
            // An error here is a reset from the script, or a client that went.
            _ = builder.serve_connection(TokioIo::new(stream), service) => {}
            _ = hang_up.recv() => {}
        }
    }

    async fn handle(self, request: Request<Incoming>) -> Result<Answer, &'static str> {
        let path = request.uri().path();
        let is_told = self.inner.always.lock().iter().any(|(end, _)| path.ends_with(end));
        if path == "/v1/cluster/status" && !is_told {
            return Ok(self.answer(200, self.status().to_string()));
        }
        if request.headers().get("content-type").is_some_and(|kind| kind == STREAM_CONTENT_TYPE) {
            *self.inner.streams.lock() += 1;
            let refusal = self.inner.refusal.lock().clone();
            return Ok(match refusal {
                Some((status, body)) => self.answer(status, body),
                None => self.stream(request.into_body()),
            });
        }
        let seen = self.note(request).await;
        if seen.target.starts_with("/v1/watch") {
            return self.watch(&seen).await;
        }
        match self.act(&seen).await {
            Ok((status, body)) => Ok(self.answer(status, body)),
            Err(_) => Err("as the script says"),
        }
    }

    /// Follows the script: status and body.
    async fn act(&self, seen: &Seen) -> Result<(u16, String), Outcome> {
        let always =
            self.inner.always.lock().iter().find(|(end, _)| seen.target.ends_with(end)).map(|(_, act)| act.clone());
        let act = always.or_else(|| self.inner.script.lock().pop_front());
        match act {
            Some(Act::Answer(status, body)) => return Ok((status, body)),
            Some(Act::Reset) => return Err(Outcome::Reset),
            Some(Act::End) => return Err(Outcome::End),
            Some(Act::Slow(pause)) => tokio::time::sleep(pause).await,
            Some(Act::Silence(_)) => panic!("only a watch may be silent"),
            None => {}
        }
        Ok((200, usual(seen).to_string()))
    }

    /// A stream of events, which ends behind those of the script, or goes on in silence.
    async fn watch(self, seen: &Seen) -> Result<Answer, &'static str> {
        let silence = match self.inner.script.lock().front() {
            Some(Act::Silence(events)) => Some(events.clone()),
            _ => None,
        };
        let (status, events) = match silence.clone() {
            Some(events) => {
                self.inner.script.lock().pop_front();
                (200, events)
            }
            None => self.act(seen).await.map_err(|_| "as the script says")?,
        };
        let mut answer = self.answer(status, events.clone());
        if status == 200 {
            answer.headers_mut().insert("content-type", "text/event-stream".parse().expect("a header value"));
            answer.headers_mut().insert("quorate-revision", 7.into());
        }
        if silence.is_some() {
            let first = futures::stream::iter([Ok(Frame::data(Bytes::from(events)))]);
            let frames = futures::StreamExt::chain(first, futures::stream::pending());
            return Ok(answer.map(|_| StreamBody::new(frames).boxed_unsync()));
        }
        Ok(answer)
    }

    /// Takes a stream: the answer begins at once.
    fn stream(self, body: Incoming) -> Answer {
        let (outcomes, mut received) = mpsc::unbounded_channel();
        let mut answer = self.answer(200, String::new());
        answer.headers_mut().insert("content-type", STREAM_CONTENT_TYPE.parse().expect("a header value"));
        tokio::spawn(self.read_lines(body, outcomes));
        let frames = futures::stream::poll_fn(move |cx| {
            received.poll_recv(cx).map(|outcome| match outcome {
                Some(Outcome::Line(line)) => Some(Ok(Frame::data(line))),
                Some(Outcome::Reset) => Some(Err("as the script says")),
                Some(Outcome::End) | None => None,
            })
        });
        answer.map(|_| StreamBody::new(frames).boxed_unsync())
    }

    async fn read_lines(self, mut body: Incoming, outcomes: mpsc::UnboundedSender<Outcome>) {
        let mut text = BytesMut::new();
        while let Some(Ok(frame)) = body.frame().await {
            text.extend_from_slice(frame.data_ref().expect("no trailers"));
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: OpLine = serde_json::from_slice(&text.split_to(end + 1)).expect("a line of the API");
                // In the order in which they came, before anything is awaited.
                let (fake, outcomes, seen) = (self.clone(), outcomes.clone(), self.note_line(&line));
                tokio::spawn(async move {
                    let outcome = match fake.act(&seen).await {
                        Ok((status, body)) => fake.answer_line(line.n, status, body),
                        Err(outcome) => outcome,
                    };
                    // The stream may be over.
                    let _ = outcomes.send(outcome);
                });
            }
        }
    }

    fn answer_line(&self, n: u64, status: u16, body: String) -> Outcome {
        let (term, leader) = *self.inner.hint.lock();
        // What is no JSON stands there as a string.
        let answer = serde_json::from_str(&body).unwrap_or(Value::String(body));
        let answer = JsonText(to_raw_value(&answer).expect("has JSON"));
        let line = AnswerLine { n: Some(n), status, term, leader, answer };
        Outcome::Line((serde_json::to_string(&line).expect("has JSON") + "\n").into())
    }

    fn note_line(&self, line: &OpLine) -> Seen {
        let body = serde_json::to_string(&line.op).expect("has JSON");
        let (method, target, id) = (Method::POST, "/v1/ops".to_owned(), line.op.request_id.clone());
        let timeout_ms = line.timeout_ms.expect("always sent");
        let (op, headers) = (Some(line.op.clone()), HeaderMap::new());
        self.remember(Seen { method, target, id, timeout_ms, body, op, headers })
    }

    async fn note(&self, request: Request<Incoming>) -> Seen {
        let header = |name| request.headers().get(name).map(|value| value.to_str().expect("ASCII").to_owned());
        let id = header("idempotency-key");
        let timeout_ms = header("request-timeout").expect("always sent").parse().expect("a number");
        let method = request.method().clone();
        let target = request.uri().path_and_query().expect("has a path").to_string();
        let headers = request.headers().clone();
        let body = request.into_body().collect().await.expect("a whole body").to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        let op = (target == "/v1/ops").then(|| serde_json::from_str(&body).expect("an operation of the API"));
        self.remember(Seen { method, target, id, timeout_ms, body, op, headers })
    }

    fn remember(&self, seen: Seen) -> Seen {
        self.inner.seen.lock().push(seen.clone());
        seen
    }

    fn answer(&self, status: u16, body: String) -> Answer {
        let (term, leader) = *self.inner.hint.lock();
        let leader = leader.map_or("none".to_owned(), |id| id.to_string());
        Response::builder()
            .status(StatusCode::from_u16(status).expect("a status"))
            .header("quorate-term", term)
            .header("quorate-leader", leader)
            .header("quorate-cluster", *self.inner.cluster.lock())
            .body(Full::from(body).map_err(|never| match never {}).boxed_unsync())
            .expect("a response")
    }

    fn status(&self) -> Value {
        let (term, leader_id) = *self.inner.hint.lock();
        json!({
            "cluster_id": *self.inner.cluster.lock(), "node_id": self.inner.node_id, "incarnation": "", "version": "0", "role": "follower",
            "ready": true, "leader_id": leader_id, "term": term, "members": [], "last_log_index": 9, "committed_index": 9,
            "applied_index": 9, "snapshot_index": 0, "purged_index": 0, "revision": "7", "oldest_revision": "1",
            "cluster_clock_ms": 0, "digest": "0123456789abcdef0123456789abcdef",
        })
    }
}

/// What a healthy node might say.
fn usual(seen: &Seen) -> Value {
    let reads = seen.method == Method::GET || seen.op.as_ref().is_some_and(|op| op.op == OpKind::Get);
    if seen.target.starts_with("/v1/kv?") {
        json!({"entries": [entry("k", &json!(1), "7")], "count": 1, "revision": "7", "index": 9})
    } else if let Some(answer) = coordination(seen) {
        answer
    } else if seen.target == "/v1/bulk" {
        let bulk: BulkRequest = serde_json::from_str(&seen.body).expect("a bulk of the API");
        json!({"applied": bulk.ops.len(), "skipped": 0, "failed": 0, "results": [], "revision": "8", "index": 10})
    } else if reads {
        entry("k", &json!({"n": 1}), "7")
    } else {
        json!({"key": "k", "revision": "8", "index": 10, "cas": "8", "create_revision": "7", "version": 2})
    }
}

/// The same about sessions and what hangs on them: everything is granted at once.
fn coordination(seen: &Seen) -> Option<Value> {
    let body = if seen.body.is_empty() { Value::Null } else { seen.json() };
    let session =
        |id: Value, ttl: u64| json!({"session": id, "ttl_ms": ttl, "expires_in_ms": ttl, "renew_in_ms": ttl / 3});
    let mut parts = seen.target.rsplit('/');
    let verb = parts.next().expect("split gives at least one part");
    // The name stands before the verb.
    let name = parts.next().unwrap_or_default().replace("%2F", "/");
    let mut answer = match verb {
        "sessions" => {
            let mut answer = session("17".into(), body["ttl_ms"].as_u64().unwrap_or(10_000));
            (answer["owner"], answer["labels"]) = (json!(""), json!({}));
            answer
        }
        "renew" => {
            let ids = body["sessions"].as_array().expect("a list").iter();
            json!({"sessions": ids.map(|id| session(id.clone(), 1_000)).collect::<Vec<_>>()})
        }
        "17" => json!({"session": "17", "ended": true, "count": 0}),
        "acquire" => json!({"lock": name, "state": "held", "token": "18", "session": "17", "mode": "exclusive"}),
        "campaign" => json!({"election": name, "state": "leader", "term": "18", "session": "17"}),
        "release" => json!({"lock": name, "released": true}),
        "resign" => json!({"election": name, "resigned": true}),
        "enter" => json!({"barrier": name, "state": "open", "parties": 2, "entered": 2}),
        "leave" => json!({"barrier": name, "state": "empty", "entered": 0}),
        _ => return None,
    };
    (answer["revision"], answer["index"]) = (json!("18"), json!(19));
    Some(answer)
}

/// An entry as answers show it.
pub fn entry(key: &str, value: &Value, cas: &str) -> Value {
    json!({
        "key": key, "value": value, "content_type": "json", "cas": cas, "create_revision": "1", "mod_revision": "7", "version": 2,
    })
}

/// An address where nobody listens. One that was free a moment ago another program may have had, for an outgoing connection, too.
pub fn nobody() -> String {
    "127.0.0.1:1".into()
}
