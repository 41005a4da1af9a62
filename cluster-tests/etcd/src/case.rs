//! A case while it runs.
//!
//! Owns how a case makes calls: each is a step of its transcript, whatever comes of it. Nothing ends a case early, so that a server which
//! refuses one call still shows what it does with the others.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tonic::Status;

use crate::client::{Etcd, HttpAnswer, HttpRequest, http};
use crate::forms::Form;
use crate::normal::normal;
use crate::transcript::Step;

/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A case while it runs.
pub struct Case {
    nodes: Vec<SocketAddr>,
    /// Where its calls go.
    pub node: SocketAddr,
    /// The client that its calls go through.
    pub etcd: Etcd,
    steps: Vec<Step>,
}

/// A refusal, as it is noted.
pub fn failed(status: &Status) -> Value {
    json!({ "error": { "code": format!("{:?}", status.code()), "message": status.message() } })
}

/// The revision in the header of an answer, 0 if it has none.
pub fn revision(answer: &Value) -> i64 {
    answer.pointer("/header/revision").and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(0)
}

impl Case {
    /// On a server without keys, leases, users and roles.
    pub async fn start(nodes: Vec<SocketAddr>, node: SocketAddr) -> Self {
        let mut case = Self { nodes, node, etcd: Etcd::of(node).await, steps: Vec::new() };
        case.clear().await;
        case
    }

    /// What was asked and answered.
    pub async fn end(mut self) -> Vec<Step> {
        self.etcd = Etcd::of(self.node).await;
        let steps = std::mem::take(&mut self.steps);
        self.clear().await;
        normal(steps)
    }

    /// Removes all leases, keys, users and roles.
    async fn clear(&mut self) {
        let leases = self.quietly("Lease/LeaseLeases", json!({})).await;
        for lease in leases.get("leases").and_then(Value::as_array).into_iter().flatten() {
            self.quietly("Lease/LeaseRevoke", lease.clone()).await;
        }
        let users = self.quietly("Auth/UserList", json!({})).await;
        for user in users["users"].as_array().into_iter().flatten() {
            self.quietly("Auth/UserDelete", json!({ "name": user })).await;
        }
        let roles = self.quietly("Auth/RoleList", json!({})).await;
        for role in roles["roles"].as_array().into_iter().flatten() {
            self.quietly("Auth/RoleDelete", json!({ "role": role })).await;
        }
        let cleared = self.quietly("KV/DeleteRange", json!({ "key": "\0", "range_end": "\0" })).await;
        assert!(cleared.get("error").is_none(), "the server does not let us begin with nothing: {cleared}");
    }

    /// All servers of the cluster.
    pub fn nodes(&self) -> &[SocketAddr] {
        &self.nodes
    }

    /// The server that leads, and one that follows; the same where there is but one.
    pub async fn leader_and_follower(&mut self) -> (SocketAddr, SocketAddr) {
        let (mut leader, mut follower) = (self.node, self.node);
        for node in self.nodes.clone() {
            let status = call(&mut Etcd::of(node).await, "Maintenance/Status", json!({})).await.1;
            let leads = status.get("leader") == status.pointer("/header/member_id");
            *if leads { &mut leader } else { &mut follower } = node;
        }
        (leader, follower)
    }

    /// Goes on with another server.
    pub async fn go_to(&mut self, node: SocketAddr) {
        self.node = node;
        self.etcd = Etcd::of(node).await;
    }

    /// What was asked and answered so far.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Notes a step.
    pub fn note(&mut self, call: &str, asked: Option<Value>, answered: Option<Value>) {
        self.steps.push(Step { call: call.to_owned(), asked, answered });
    }

    /// Makes a call. The answer is as it came, for what the next calls need of it.
    pub async fn call(&mut self, name: &str, request: Value) -> Value {
        let (asked, answered) = call(&mut self.etcd, name, request).await;
        self.note(name, Some(asked), Some(answered.clone()));
        answered
    }

    /// Makes a call that is no step.
    pub async fn quietly(&mut self, name: &'static str, request: Value) -> Value {
        call(&mut self.etcd, name, request).await.1
    }

    /// Begins a call over a connection of its own.
    pub async fn begin(&mut self, name: &'static str, request: Value) -> Begun {
        let mut etcd = Etcd::of(self.node).await;
        etcd.token.clone_from(&self.etcd.token);
        Begun { name, done: tokio::spawn(async move { call(&mut etcd, name, request).await }) }
    }

    /// Waits for the answer to a call that was begun.
    pub async fn finish(&mut self, begun: Begun) -> Value {
        let (asked, answered) = begun.done.await.expect("a call does not panic");
        self.note(begun.name, Some(asked), Some(answered.clone()));
        answered
    }

    /// Writes an entry. The answer is its revision.
    pub async fn put(&mut self, key: &str, value: &str) -> i64 {
        revision(&self.call("KV/Put", json!({ "key": key, "value": value })).await)
    }

    /// Reads an entry.
    pub async fn get(&mut self, key: &str) -> Value {
        self.call("KV/Range", json!({ "key": key })).await
    }

    /// Reads all entries.
    pub async fn all(&mut self) -> Value {
        self.call("KV/Range", json!({ "key": "\0", "range_end": "\0" })).await
    }

    /// Removes an entry. The answer is the revision after it.
    pub async fn delete(&mut self, key: &str) -> i64 {
        revision(&self.call("KV/DeleteRange", json!({ "key": key })).await)
    }

    /// Begins a lease. The answer is its id.
    pub async fn grant(&mut self, ttl: i64) -> i64 {
        let granted = self.call("Lease/LeaseGrant", json!({ "TTL": ttl })).await;
        granted.get("ID").and_then(Value::as_str).and_then(|id| id.parse().ok()).unwrap_or(0)
    }

    /// Sends a request to the gateway.
    pub async fn post(&mut self, path: &str, body: Value) -> Value {
        self.http("POST", path, body).await
    }

    /// The same with any method.
    pub async fn http(&mut self, method: &str, path: &str, body: Value) -> Value {
        let answered = match tokio::time::timeout(PATIENCE, self.answer_of(method, path, text_of(&body))).await {
            Ok(Ok(answer)) => {
                let (status, content_type) = (answer.status, answer.content_type.clone());
                let text =
                    tokio::time::timeout(PATIENCE, answer.text()).await.unwrap_or_else(|_| "it has no end".to_owned());
                let body = serde_json::from_str(&text).unwrap_or(Value::from(text));
                json!({ "status": status, "type": content_type, "body": body })
            }
            Ok(Err(error)) => json!({ "no answer": error }),
            Err(_) => json!("nothing"),
        };
        self.note(&format!("{method} {path}"), Some(body), Some(answered.clone()));
        answered.get("body").cloned().unwrap_or_default()
    }

    /// Sends a request to the gateway whose answer has no end, and reads how it begins.
    pub async fn post_and_read(&mut self, path: &str, body: Value) -> Lines {
        let sent = text_of(&body);
        self.post_and_read_as(path, body, sent).await
    }

    /// The same, where what is noted is not what is sent.
    pub async fn post_and_read_as(&mut self, path: &str, noted: Value, body: String) -> Lines {
        let answer = tokio::time::timeout(PATIENCE, self.answer_of("POST", path, body)).await;
        let answered = match &answer {
            Ok(Ok(answer)) => json!({ "status": answer.status, "type": answer.content_type }),
            Ok(Err(error)) => json!({ "no answer": error }),
            Err(_) => json!("nothing"),
        };
        self.note(&format!("POST {path}"), Some(noted), Some(answered));
        Lines { call: format!("POST {path}"), answer: answer.ok().and_then(Result::ok) }
    }

    async fn answer_of(&self, method: &str, path: &str, body: String) -> Result<HttpAnswer, String> {
        let mut headers = Vec::new();
        if let Some(token) = &self.etcd.token {
            headers.push(("authorization", token.clone()));
        }
        http(self.node, HttpRequest { method, path, headers, body }).await
    }
}

/// A body that is text goes as it is.
fn text_of(body: &Value) -> String {
    body.as_str().map_or_else(|| body.to_string(), str::to_owned)
}

async fn call(etcd: &mut Etcd, name: &str, request: Value) -> (Value, Value) {
    let form = Form::of(name);
    let (bytes, asked) = form.encode(request);
    let answered = match tokio::time::timeout(PATIENCE, etcd.call_raw(form.path, bytes)).await {
        Ok(Ok(answer)) => form.decode(answer),
        Ok(Err(status)) => failed(&status),
        Err(_) => json!("nothing"),
    };
    (asked, answered)
}

/// A call that was begun.
pub struct Begun {
    name: &'static str,
    done: JoinHandle<(Value, Value)>,
}

/// The lines of an answer of the gateway.
pub struct Lines {
    call: String,
    answer: Option<HttpAnswer>,
}

impl Lines {
    /// Reads one.
    pub async fn read(&mut self, case: &mut Case) -> Value {
        let body = self.next().await;
        case.note(&self.call, None, Some(json!({ "body": body })));
        body
    }

    /// Reads lines until they have brought so many events: how many came at once is chance.
    pub async fn read_events(&mut self, case: &mut Case, count: usize) {
        let mut events = Vec::new();
        while events.len() < count {
            let mut body = self.next().await;
            match body.pointer_mut("/result/events").map(Value::take) {
                Some(Value::Array(new)) => events.extend(new),
                _ => {
                    case.note(&self.call, None, Some(json!({ "instead of events": body })));
                    return;
                }
            }
        }
        case.note(&self.call, None, Some(json!({ "body": { "events": events } })));
    }

    async fn next(&mut self) -> Value {
        let line = match &mut self.answer {
            Some(answer) => tokio::time::timeout(PATIENCE, answer.line()).await.unwrap_or(Some("nothing".to_owned())),
            None => None,
        };
        line.map_or(json!("end"), |line| serde_json::from_str(&line).unwrap_or(Value::from(line)))
    }
}
