//! API clients that ask everything there is to ask, over a handful of names, beside whatever else goes on.
//!
//! Owns sending, what is learnt of answers, and the judgement that holds whatever happens to the cluster: no answer is `internal`, a
//! repeat under one request id gets the outcome of the first, all pages of a find show one moment, and nobody sees the key of a lock.
//! What they do is in no history, and their names are nobody else's. That nodes contained no fault and agree is seen to by
//! whoever runs the cluster.

mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::task::JoinSet;

use self::requests::{ApiRequest, PINNED, PREFIX, Scope, draw, remember};
pub use self::requests::{Known, request_of};
use super::client::Nodes;
use crate::http::{Answer, Connection, Request};

/// How long an answer may take before its API client goes on. It is no fault: nodes may be gone.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How long a stream is listened to.
const LISTEN: Duration = Duration::from_millis(60);
/// One of so many requests is sent again under its request id.
const AGAIN_IN: u32 = 6;
/// One of so many turns is a find by pages.
const PAGES_IN: u32 = 25;
/// Shortest key of a lock that cannot be the revision of something else.
const SECRET_DIGITS_MIN: usize = 18;

/// Whether a key is theirs: what becomes of it is in no history.
pub fn is_of_api_clients(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// What all API clients of a run know and met.
#[derive(Debug, Clone, Default)]
pub struct ApiClients {
    shared: Arc<Mutex<Shared>>,
    scope: Scope,
}

#[derive(Debug, Default)]
struct Shared {
    known: Known,
    met: BTreeMap<(&'static str, &'static str), BTreeMap<u16, u64>>,
    /// What was wrong with the first request of each route that was not well formed.
    malformed: BTreeMap<(&'static str, &'static str), String>,
    wrong: Vec<String>,
    replays: u64,
    pages: u64,
    is_over: bool,
}

impl ApiClients {
    /// Clients that also move the leadership.
    pub fn leading() -> Self {
        Self { scope: Scope { may_lead: true, ..Scope::default() }, ..Self::default() }
    }

    /// Clients of a simulated cluster: a seed has to come to the same each time.
    pub fn repeatable() -> Self {
        Self { scope: Scope { is_repeatable: true, ..Scope::default() }, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends so many of them to work.
    pub fn start(&self, count: usize, nodes: &Nodes, dice: &mut StdRng, think: Duration) -> JoinSet<()> {
        let mut all = JoinSet::new();
        for first in 0..count {
            let api_client =
                ApiClient { all: self.clone(), nodes: nodes.clone(), next: first, connections: BTreeMap::new() };
            all.spawn(api_client.work(StdRng::seed_from_u64(dice.random()), think));
        }
        all
    }

    /// Lets each of them end what it is at.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    /// What must not be, in words.
    pub fn wrong(&self) -> Vec<String> {
        self.lock().wrong.clone()
    }

    /// How often something was repeated under its request id, and a find read page by page.
    pub fn looked(&self) -> (u64, u64) {
        let shared = self.lock();
        (shared.replays, shared.pages)
    }

    /// Which statuses each route was answered with, and how often.
    pub fn met(&self) -> BTreeMap<(&'static str, &'static str), BTreeMap<u16, u64>> {
        self.lock().met.clone()
    }

    /// The same as a table.
    pub fn table(&self) -> String {
        let mut table = String::new();
        for ((method, path), statuses) in self.met() {
            let statuses: Vec<_> = statuses.iter().map(|(status, count)| format!("{status} × {count}")).collect();
            let malformed = self.lock().malformed.get(&(method, path)).cloned().unwrap_or_default();
            let line = writeln!(table, "{method:6} {path:44} {}  {malformed}", statuses.join(", "));
            line.expect("a string takes everything");
        }
        table
    }
}

struct ApiClient {
    all: ApiClients,
    nodes: Nodes,
    /// The place of the node that is asked next.
    next: usize,
    connections: BTreeMap<u64, Connection>,
}

impl ApiClient {
    async fn work(mut self, mut dice: StdRng, think: Duration) {
        while !self.all.lock().is_over {
            self.next += usize::from(dice.random_ratio(1, 4));
            if dice.random_ratio(1, PAGES_IN) {
                self.read_pages(&mut dice).await;
            } else {
                let ask = draw(&self.all.lock().known, &mut dice, self.all.scope);
                self.perform(&ask, &mut dice).await;
            }
            tokio::time::sleep(think.mul_f64(0.5 + dice.random::<f64>())).await;
        }
    }

    async fn perform(&mut self, ask: &ApiRequest, dice: &mut StdRng) {
        if is_stream(ask.route.1) {
            if let Some(status) = self.listen(&ask.request).await {
                self.note(ask, status);
            }
            return;
        }
        let Some(answer) = self.send(&ask.request).await else { return };
        self.note(ask, answer.status);
        if answer.status == 400 {
            let problem: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let detail = problem["detail"].as_str().unwrap_or_default().to_owned();
            self.all.lock().malformed.entry(ask.route).or_insert(detail);
        }
        self.judge(ask, &answer);
        learn(&mut self.all.lock().known, ask, &answer);
        if id_of(&ask.request).is_some() && dice.random_ratio(1, AGAIN_IN) {
            self.next += 1;
            if let Some(again) = self.send(&ask.request).await {
                self.judge(ask, &again);
                self.compare(ask, &answer, &again);
            }
        }
    }

    fn note(&self, ask: &ApiRequest, status: u16) {
        *self.all.lock().met.entry(ask.route).or_default().entry(status).or_default() += 1;
    }

    fn accuse(&self, words: String) {
        let mut shared = self.all.lock();
        if shared.wrong.len() < 20 {
            shared.wrong.push(words);
        }
    }

    fn judge(&self, ask: &ApiRequest, answer: &Answer) {
        if answer.status == 500 || answer.text().contains("\"code\":\"internal\"") {
            self.accuse(format!("{} is answered {} {}", shown(&ask.request), answer.status, answer.text()));
        }
        // Who locks is told the key, and whoever repeats that request.
        let tells = ["/v1/ops", "/v1/bulk", "/v1/txn", "/v1/claim", "/v1/requests/{id}"].contains(&ask.route.1);
        if !tells {
            let text = answer.text();
            let secrets = self.all.lock().known.secrets.clone();
            // Who says it may be told that it is not the one.
            let (said, shows) = (shown(&ask.request), |secret: &&String| text.contains(secret.as_str()));
            if let Some(secret) = secrets.iter().filter(shows).find(|secret| !said.contains(secret.as_str())) {
                self.accuse(format!("{} shows the key {secret} of a lock: {text}", shown(&ask.request)));
            }
        }
    }

    /// Compares what a request came to with what its repeat did.
    fn compare(&self, ask: &ApiRequest, first: &Answer, again: &Answer) {
        self.all.lock().replays += 1;
        let (Some(one), Some(other)) = (decided(first), decided(again)) else { return };
        // A dry run leaves nothing behind that could be repeated, and the secret of a token or an invitation is shown once.
        let shows_a_secret = ["/v1/access/tokens", "/v1/cluster/invitations"].contains(&ask.route.1);
        if is_dry_run(&ask.request) || shows_a_secret {
            return;
        }
        // What is told of a session by a repeat is that it lives, and by then it may have ended.
        if ask.route == ("post", "/v1/sessions") && other.0 == "session_expired" {
            return;
        }
        // A claim that found nothing leaves nothing behind; what waits may find something at another time.
        let may_differ =
            ask.route.1.ends_with("/claim") || ask.route.1.ends_with("/campaign") || ask.route.1.ends_with("/acquire");
        if one != other && !(may_differ || ask.route.1.contains("/barriers/")) {
            let (request, first, again) = (shown(&ask.request), first.text(), again.text());
            self.accuse(format!("{request} came to {first}, and under the same request id to {again}"));
        }
    }

    /// Finds pinned keys page by page, and all in one page after the same first one: both show the same moment.
    async fn read_pages(&mut self, dice: &mut StdRng) {
        // Whether an entry is locked changes without a new version of it, and was something else before all the same.
        let conditions = ["[]", r#"[{"field":"$locked","op":"eq","value":false}]"#];
        let conditions = conditions.choose(dice).expect("there are some");
        let find = |limit: usize, after: Option<&str>| {
            let cursor = after.map(|after| format!(r#","cursor":"{after}""#)).unwrap_or_default();
            Request::post(
                "/v1/find",
                format!(r#"{{"prefix":"{PINNED}","where":{conditions},"limit":{limit}{cursor}}}"#),
            )
        };
        let Some(first) = self.send(&find(1, None)).await.and_then(|answer| found(&answer)) else { return };
        // A cursor holds the moment of the first page, its clock as well.
        let Some(begin) = first.cursor else { return };
        let Some(rest) = self.send(&find(100, Some(&begin))).await.and_then(|answer| found(&answer)) else { return };
        let (mut paged, mut cursor) = (Vec::new(), Some(begin));
        while let Some(after) = cursor {
            // Others lock and write meanwhile.
            tokio::time::sleep(Duration::from_millis(15)).await;
            let Some(next) = self.send(&find(1, Some(&after))).await.and_then(|answer| found(&answer)) else { return };
            paged.extend(next.entries);
            cursor = next.cursor;
        }
        self.all.lock().pages += 1;
        if paged != rest.entries {
            let (at, first, rest) = (first.revision, first.entries, rest.entries);
            self.accuse(format!(
                "under {conditions} at revision {at}, after {first:?} pages show {paged:?}, and one page {rest:?}"
            ));
        }
    }

    /// Sends a request to the next node; `None` where no answer came in time.
    async fn send(&mut self, request: &Request) -> Option<Answer> {
        let (node, address) = self.nodes.at(self.next);
        let open = self.connections.remove(&node);
        let Some((answer, kept)) = self.nodes.exchange(address, open, request, ANSWER_MAX).await else {
            self.next += 1;
            return None;
        };
        self.connections.extend(kept.map(|connection| (node, connection)));
        Some(answer)
    }

    /// Begins a stream and listens for a while; its status.
    async fn listen(&mut self, request: &Request) -> Option<u16> {
        let (_, address) = self.nodes.at(self.next);
        let nodes = self.nodes.clone();
        let begin = async {
            let mut connection = nodes.connect(address).await?;
            connection.send(&request.to_bytes()).await?;
            let status = connection.head().await?.status;
            std::io::Result::Ok((connection, status))
        };
        let (mut connection, status) = tokio::time::timeout(ANSWER_MAX, begin).await.ok()?.ok()?;
        let chunks = async { while connection.chunk().await.is_ok_and(|chunk| !chunk.is_empty()) {} };
        let _ends_or_not = tokio::time::timeout(LISTEN, chunks).await;
        Some(status)
    }
}

fn is_stream(path: &str) -> bool {
    ["/v1/watch", "/v1/elections/{name}/observe", "/v1/cluster/backup"].contains(&path)
}

fn is_dry_run(request: &Request) -> bool {
    let body = request.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    request.target.contains("dry_run=true") || body.contains("\"dry_run\":true")
}

fn id_of(request: &Request) -> Option<&str> {
    request.headers.iter().find(|(name, _)| name == "Idempotency-Key").map(|(_, id)| id.as_str())
}

/// A request as one line.
fn shown(request: &Request) -> String {
    let headers: Vec<_> = request.headers.iter().map(|(name, value)| format!("-H '{name}: {value}'")).collect();
    let body = request.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    format!("{} {} {} -d '{body}'", request.method, request.target, headers.join(" "))
}

/// What the log decided: code of a refusal and index. `None` where that is not known, or nothing went through the log.
fn decided(answer: &Answer) -> Option<(String, u64)> {
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    let index = body["index"].as_u64()?;
    if answer.status >= 500 {
        return None;
    }
    Some((body["code"].as_str().unwrap_or_default().to_owned(), index))
}

/// A revision or a token.
fn number(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

struct Found {
    revision: u64,
    /// Keys and revisions of their versions.
    entries: Vec<(String, u64)>,
    cursor: Option<String>,
}

fn found(answer: &Answer) -> Option<Found> {
    let body: Value = serde_json::from_slice(&answer.body).ok().filter(|_| answer.is_success())?;
    let entry = |entry: &Value| Some((entry["key"].as_str()?.to_owned(), number(&entry["mod_revision"])?));
    let entries = body["entries"].as_array()?.iter().map(entry).collect::<Option<_>>()?;
    Some(Found { revision: number(&body["revision"])?, entries, cursor: body["cursor"].as_str().map(str::to_owned) })
}

/// Takes from an answer what later requests may use.
fn learn(known: &mut Known, ask: &ApiRequest, answer: &Answer) {
    if !answer.is_success() {
        return;
    }
    if let Some(id) = id_of(&ask.request) {
        remember(&mut known.requests, id.to_owned());
    }
    let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else { return };
    if is_dry_run(&ask.request) {
        return;
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match ask.route {
        ("post", "/v1/sessions") => known.sessions.extend(text(&body["session"])),
        ("post", "/v1/access/tokens") => known.access.extend(text(&body["id"])),
        ("post", "/v1/cluster/invitations") => known.invitations.extend(text(&body["id"])),
        ("post", "/v1/tasks/{queue}") => known.ids.extend(text(&body["id"])),
        ("post", "/v1/tasks/{queue}/claim") => {
            for task in body["tasks"].as_array().into_iter().flatten() {
                if let (Some(id), Some(token)) = (text(&task["id"]), number(&task["token"])) {
                    remember(&mut known.tasks, (id, token));
                }
            }
        }
        ("post", path) if path.ends_with("/acquire") || path.ends_with("/campaign") => {
            let token = number(&body["token"]).or(number(&body["term"]));
            let lock = ask.request.target.rsplit_once('/').map(|(lock, _)| lock.to_owned());
            known.tokens.extend(lock.zip(token));
        }
        _ => {}
    }
    entries_of(&body, &mut |key, cas| {
        known.cas.insert(key.to_owned(), cas.to_owned());
        if cas.len() >= SECRET_DIGITS_MIN && !known.secrets.iter().any(|secret| secret == cas) {
            remember(&mut known.secrets, cas.to_owned());
        }
    });
    let lists = [&mut known.sessions, &mut known.access, &mut known.invitations, &mut known.ids];
    lists.into_iter().for_each(|list| drop(list.drain(..list.len().saturating_sub(8))));
}

/// Every `key` with its `cas` anywhere in an answer.
fn entries_of(value: &Value, tell: &mut impl FnMut(&str, &str)) {
    match value {
        Value::Object(fields) => {
            if let (Some(key), Some(cas)) =
                (fields.get("key").and_then(Value::as_str), fields.get("cas").and_then(Value::as_str))
            {
                tell(key, cas);
            }
            fields.values().for_each(|value| entries_of(value, tell));
        }
        Value::Array(items) => items.iter().for_each(|value| entries_of(value, tell)),
        _ => {}
    }
}

/// What an OpenAPI document declares: the statuses of each route, by method in lower case and path.
pub fn declared(document: &Value) -> BTreeMap<(String, String), BTreeSet<u16>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let routes = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        let methods = methods.filter(|(_, operation)| operation.get("responses").is_some());
        methods.map(move |(method, operation)| {
            let statuses = operation["responses"].as_object().into_iter().flat_map(|all| all.keys());
            ((method.clone(), path.clone()), statuses.filter_map(|status| status.parse().ok()).collect())
        })
    });
    routes.collect()
}
