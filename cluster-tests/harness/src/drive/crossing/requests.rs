//! Requests of every route over a handful of names, so that each meets every state its target can be in.
//!
//! Owns what is asked. What was learnt of earlier answers, such as sessions, tokens and cas, is in [`Known`]; most requests use it, some
//! on purpose do not. Never sends anything.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};
use serde_json::{Value, json};

use crate::http::Request;

/// Keys, some of them in a collection. Those of `PINNED` never live for a while or with a session.
pub const KEYS: [&str; 8] = ["x/a", "x/b", "x/c/1", "x/c/2", "x/c/3", "x/p/1", "x/p/2", "x/p/3"];
/// How all their keys begin.
pub const PREFIX: &str = "x/";
/// How the keys begin that only requests and no clock changes.
pub const PINNED: &str = "x/p/";
const NAMES: [&str; 3] = ["x-1", "x-2", "x-3"];
const QUEUE: &str = "x-q";
const COLLECTION: &str = "x~c";
/// No node has it.
const NO_NODE: u64 = 99;

/// What answers said.
#[derive(Debug, Default)]
pub struct Known {
    /// The last few sessions.
    pub sessions: Vec<String>,
    /// The cas of each key, as whoever wrote or locked it last was told.
    pub cas: BTreeMap<String, String>,
    /// Keys of locks on entries: whoever was told may use them, and nobody else is to see them.
    pub secrets: Vec<String>,
    /// Fencing tokens and terms by the path of their lock.
    pub tokens: BTreeMap<String, u64>,
    /// Claimed tasks and their tokens.
    pub tasks: Vec<(String, u64)>,
    /// Ids of tasks that were scheduled.
    pub ids: Vec<String>,
    /// Tokens of users.
    pub access: Vec<String>,
    /// Invitations of newcomers.
    pub invitations: Vec<String>,
    /// Request ids.
    pub requests: Vec<String>,
}

/// A request, and the route of the OpenAPI document that it is for.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    /// Method in lower case, and path.
    pub route: (&'static str, &'static str),
    /// What is sent.
    pub request: Request,
}

/// Keeps the last few.
pub fn remember<T>(list: &mut Vec<T>, item: T) {
    list.push(item);
    if list.len() > 8 {
        list.remove(0);
    }
}

/// All routes, each as often as it is to be asked in comparison.
const ROUTES: [(&str, &str, u32); 112] = [
    ("get", "/errors/{code}", 1),
    ("get", "/", 1),
    ("get", "/console", 1),
    ("get", "/console/{path}", 1),
    ("get", "/livez", 1),
    ("get", "/readyz", 1),
    ("get", "/metrics", 1),
    ("get", "/openapi.json", 1),
    ("get", "/version", 1),
    ("get", "/v1/limits", 1),
    ("get", "/v1/access/check", 1),
    ("get", "/v1/access/roles", 1),
    ("get", "/v1/access/roles/{name}", 1),
    ("put", "/v1/access/roles/{name}", 2),
    ("delete", "/v1/access/roles/{name}", 1),
    ("get", "/v1/access/self", 1),
    ("get", "/v1/access/tokens", 1),
    ("post", "/v1/access/tokens", 2),
    ("delete", "/v1/access/tokens/{id}", 1),
    ("get", "/v1/access/users", 1),
    ("get", "/v1/access/users/{name}", 1),
    ("put", "/v1/access/users/{name}", 3),
    ("delete", "/v1/access/users/{name}", 1),
    ("get", "/v1/audit", 3),
    ("get", "/v1/barriers/{name}", 1),
    ("post", "/v1/barriers/{name}/enter", 4),
    ("post", "/v1/barriers/{name}/leave", 3),
    ("post", "/v1/bulk", 12),
    ("post", "/v1/claim", 12),
    ("get", "/v1/cluster/backup", 1),
    ("get", "/v1/cluster/digest", 1),
    ("get", "/v1/cluster/faults", 1),
    ("post", "/v1/cluster/faults", 1),
    ("get", "/v1/cluster/invitations", 1),
    ("post", "/v1/cluster/invitations", 2),
    ("delete", "/v1/cluster/invitations/{id}", 1),
    ("post", "/v1/cluster/leader", 1),
    ("get", "/v1/cluster/members", 1),
    ("post", "/v1/cluster/members", 1),
    ("delete", "/v1/cluster/members/{id}", 1),
    ("post", "/v1/cluster/members/{id}/demote", 1),
    ("post", "/v1/cluster/members/{id}/promote", 1),
    ("post", "/v1/cluster/members/{id}/repair", 1),
    ("post", "/v1/cluster/members/{id}/replace", 1),
    ("get", "/v1/cluster/status", 1),
    ("get", "/v1/collections", 1),
    ("get", "/v1/collections/{name}", 1),
    ("put", "/v1/collections/{name}", 6),
    ("delete", "/v1/collections/{name}", 2),
    ("post", "/v1/count", 3),
    ("post", "/v1/delete_where", 3),
    ("get", "/v1/elections", 1),
    ("get", "/v1/elections/{name}", 1),
    ("post", "/v1/elections/{name}/campaign", 6),
    ("get", "/v1/elections/{name}/observe", 1),
    ("post", "/v1/elections/{name}/proclaim", 4),
    ("post", "/v1/elections/{name}/resign", 3),
    ("post", "/v1/find", 6),
    ("get", "/v1/kv", 3),
    ("get", "/v1/kv/{key}", 6),
    ("put", "/v1/kv/{key}", 20),
    ("patch", "/v1/kv/{key}", 10),
    ("delete", "/v1/kv/{key}", 6),
    ("get", "/v1/latches/{name}", 1),
    ("put", "/v1/latches/{name}", 2),
    ("post", "/v1/latches/{name}/count_down", 3),
    ("delete", "/v1/latches/{name}", 1),
    ("get", "/v1/locks", 1),
    ("get", "/v1/locks/{name}", 1),
    ("post", "/v1/locks/{name}/acquire", 8),
    ("get", "/v1/locks/{name}/check", 6),
    ("post", "/v1/locks/{name}/release", 5),
    ("post", "/v1/ops", 40),
    ("get", "/v1/node/callers", 1),
    ("get", "/v1/node/config", 1),
    ("get", "/v1/node/log", 1),
    ("get", "/v1/node/log/lines", 1),
    ("put", "/v1/node/log", 1),
    ("get", "/v1/quotas/default", 1),
    ("put", "/v1/quotas/default", 1),
    ("delete", "/v1/quotas/default", 1),
    ("get", "/v1/quotas/prefixes", 1),
    ("get", "/v1/quotas/prefixes/{prefix}", 1),
    ("put", "/v1/quotas/prefixes/{prefix}", 2),
    ("delete", "/v1/quotas/prefixes/{prefix}", 2),
    ("get", "/v1/quotas/principals", 1),
    ("get", "/v1/quotas/principals/{name}", 1),
    ("put", "/v1/quotas/principals/{name}", 1),
    ("delete", "/v1/quotas/principals/{name}", 1),
    ("get", "/v1/requests/{id}", 2),
    ("get", "/v1/sequences/{name}", 1),
    ("post", "/v1/sequences/{name}", 2),
    ("get", "/v1/sessions", 1),
    ("post", "/v1/sessions", 8),
    ("post", "/v1/sessions/renew", 4),
    ("get", "/v1/sessions/{session}", 1),
    ("post", "/v1/sessions/{session}/renew", 3),
    ("delete", "/v1/sessions/{session}", 3),
    ("get", "/v1/tasks", 1),
    ("get", "/v1/tasks/{queue}", 2),
    ("post", "/v1/tasks/{queue}", 8),
    ("post", "/v1/tasks/{queue}/cancel", 2),
    ("post", "/v1/tasks/{queue}/claim", 6),
    ("post", "/v1/tasks/{queue}/complete", 4),
    ("post", "/v1/tasks/{queue}/extend", 2),
    ("post", "/v1/tasks/{queue}/fail", 3),
    ("post", "/v1/tasks/{queue}/requeue", 2),
    ("get", "/v1/tasks/{queue}/stats", 1),
    ("get", "/v1/tasks/{queue}/task/{id}", 1),
    ("get", "/v1/watch", 2),
    ("post", "/v1/txn", 12),
    ("post", "/v1/update_where", 8),
];

/// Which requests API clients may send.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scope {
    /// Those that move the leadership.
    pub may_lead: bool,
    /// Only those whose answers follow from the state and the time of the cluster, and not from the machine below it: a backup is
    /// read by a thread of its own, and metrics tell how long things took.
    pub is_repeatable: bool,
}

impl Scope {
    fn weight_of(self, path: &str, weight: u32) -> u32 {
        if self.is_repeatable && ["/metrics", "/v1/cluster/backup"].contains(&path) { 0 } else { weight }
    }
}

/// Draws a request within this scope.
pub fn draw(known: &Known, dice: &mut StdRng, scope: Scope) -> ApiRequest {
    let drawn = ROUTES.choose_weighted(dice, |(_, path, weight)| scope.weight_of(path, *weight));
    let (method, path, _) = *drawn.expect("there are routes, and each has a weight");
    let route = (method, path);
    ApiRequest { route, request: Draft { known, dice, may_lead: scope.may_lead }.for_route(route) }
}

/// A request for this route that does not move the leadership; `None` where there is none for it.
pub fn request_of(method: &str, path: &str, known: &Known, dice: &mut StdRng) -> Option<Request> {
    let (method, path, _) = *ROUTES.iter().find(|route| (route.0, route.1) == (method, path))?;
    Some(Draft { known, dice, may_lead: false }.for_route((method, path)))
}

struct Draft<'a> {
    known: &'a Known,
    dice: &'a mut StdRng,
    may_lead: bool,
}

impl Draft<'_> {
    fn for_route(&mut self, (method, path): (&'static str, &'static str)) -> Request {
        let key = path.contains("{key}").then(|| self.key());
        self.request(method, path, key.as_deref())
    }

    fn chance(&mut self, of: u32) -> bool {
        self.dice.random_ratio(1, of)
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all.choose(self.dice).expect("not empty").clone()
    }

    fn key(&mut self) -> String {
        self.pick(&KEYS).into()
    }

    fn name(&mut self) -> &'static str {
        self.pick(&NAMES)
    }

    fn session(&mut self) -> String {
        match self.known.sessions.is_empty() || self.chance(12) {
            true => "1".into(),
            false => self.pick(&self.known.sessions),
        }
    }

    /// The cas of a key, or one that is wrong.
    fn cas(&mut self, key: &str) -> String {
        match self.known.cas.get(key) {
            Some(cas) if !self.chance(8) => cas.clone(),
            _ => "7".into(),
        }
    }

    fn token(&mut self, path: &str) -> u64 {
        if self.chance(8) { 3 } else { self.known.tokens.get(path).copied().unwrap_or(3) }
    }

    fn number(&mut self) -> Value {
        // Beyond the greatest double, which some that read numbers round down and others do not.
        let beyond = ["1.79769313486231581e308", "-1.79769313486231581e308"];
        let usual =
            ["0", "1", "-1", "2.5", "9007199254740993", "9223372036854775807", "18446744073709551615", "5e-324"];
        let number = if self.chance(40) { self.pick(&beyond) } else { self.pick(&usual) };
        // Digit by digit as it stands here: a number of this program's would be another one.
        Value::String(format!("#{number}"))
    }

    fn document(&mut self) -> Value {
        let at = self.pick(&["2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "soon"]);
        let text = self.pick(&["", "a", "\u{0}", "x%_\\", "zzzzzzzzzzzzzzzzzzzzzzzzzzzz"]);
        match self.dice.random_range(0..8) {
            0 => self.number(),
            1 => json!(null),
            2 => json!([self.number(), {"n": self.number()}]),
            _ => {
                json!({"n": self.number(), "v": self.number(), "at": at, "t": text, "e": [1, null], "u": self.dice.random_range(0..3)})
            }
        }
    }

    fn patch(&mut self) -> Value {
        match self.dice.random_range(0..4) {
            0 => json!({"n": self.number(), "m": null}),
            1 => json!([{"op": "inc", "path": "n", "value": 1}, {"op": "now", "path": "w"}]),
            2 => json!([{"op": "add", "path": "/e/-", "value": self.number()}]),
            _ => json!({"by": "w", "u": self.dice.random_range(0..3)}),
        }
    }

    fn criteria(&mut self) -> Value {
        let one = match self.dice.random_range(0..6) {
            0 => json!({"field": "n", "op": "gt", "value": self.number()}),
            1 => json!({"field": "$version", "op": "lt", "value": 50}),
            2 => json!({"not": {"field": "t", "op": "like", "value": "a%"}}),
            3 => json!({"field": "u", "op": "in", "value": [0, 1, 2]}),
            4 => self.pick(&[
                json!({"field": "$expires_at", "op": "exists"}),
                json!({"not": {"field": "$expires_at", "op": "lt", "value": "2100-01-01T00:00:00+01:00"}}),
                json!({"field": "$expires_at", "op": "between", "value": [{"now": true}, 4_000_000_000_000_u64]}),
            ]),
            _ => {
                json!({"any": [{"field": "at", "op": "lte", "value": {"now": true}}, {"field": "v", "op": "neq", "value": self.number()}]})
            }
        };
        if self.chance(3) { json!([]) } else { json!([one]) }
    }

    /// What a write of a key goes with: nothing, a session, or a time to live. Pinned keys live for ever.
    fn life(&mut self, key: &str) -> Vec<(&'static str, Value)> {
        if key.starts_with(PINNED) {
            return Vec::new();
        }
        match self.dice.random_range(0..6) {
            0 | 1 => vec![("session", json!(self.session()))],
            2 => vec![("ttl_ms", json!(self.dice.random_range(1..2_000)))],
            _ => Vec::new(),
        }
    }

    fn guard(&mut self) -> Option<Value> {
        if !self.chance(6) {
            return None;
        }
        let name = self.name();
        Some(match self.chance(2) {
            true => json!({"lock": name, "token": self.token(&format!("/v1/locks/{name}"))}),
            false => json!({"election": name, "token": self.token(&format!("/v1/elections/{name}"))}),
        })
    }

    /// An operation on a key, of a bulk or a transaction too.
    fn op(&mut self, key: &str) -> Value {
        let verb = self.pick(&[
            "insert",
            "upsert",
            "upsert",
            "upsert",
            "replace",
            "update",
            "update",
            "remove",
            "touch",
            "get_and_touch",
            "lock",
            "lock",
            "get_and_lock",
            "extend",
            "unlock",
        ]);
        let mut op = json!({"op": verb, "key": key});
        let has_value = matches!(verb, "insert" | "upsert" | "replace");
        if has_value {
            if self.chance(8) { op["value_base64"] = json!("AP8=") } else { op["value"] = self.document() }
        }
        if verb == "update" {
            op["patch"] = self.patch();
        }
        let locks = matches!(verb, "lock" | "get_and_lock");
        if locks || verb == "extend" {
            op["lock_ms"] = json!(self.pick(&[1, 50, 1_000, 30_000]));
        }
        if matches!(verb, "extend" | "unlock") || (verb != "insert" && !locks && self.chance(2)) {
            op["cas"] = json!(self.cas(key));
        }
        if has_value {
            for (name, value) in self.life(key) {
                op[name] = value;
            }
            if let Some(guard) = self.guard() {
                op["guard"] = guard;
            }
        }
        if matches!(verb, "touch" | "get_and_touch") {
            op["ttl_ms"] = json!(if key.starts_with(PINNED) { 0 } else { 500 });
        }
        op
    }

    /// Operations on keys that differ: a transaction writes each once.
    fn ops(&mut self) -> Vec<Value> {
        let count = self.dice.random_range(1..4);
        let keys: Vec<_> = KEYS.sample(self.dice, count).collect();
        keys.into_iter().map(|key| self.op(key)).collect()
    }

    fn request_id(&mut self) -> String {
        format!("x{:016x}", self.dice.next_u64())
    }

    fn post(&mut self, target: String, body: Value) -> Request {
        let id = self.request_id();
        Request::post(target, text(&body)).request_id(&id)
    }

    fn request(&mut self, method: &'static str, path: &'static str, key: Option<&str>) -> Request {
        let name = self.name();
        let filled = path.replace("{name}", if path.contains("collections") { COLLECTION } else { name });
        let filled =
            filled.replace("{queue}", QUEUE).replace("{key}", key.unwrap_or_default()).replace("{prefix}", PREFIX);
        match (method, path) {
            ("get", "/v1/watch") => {
                let part = "/v1/watch?prefix=x/&initial=true&part=1&of=3";
                Request::get(self.pick(&["/v1/watch?prefix=x/&initial=true", "/v1/watch?prefix=x/", part]))
            }
            ("get", "/v1/audit") => Request::get(format!("/v1/audit?key={}&limit=20", self.key())),
            ("get", "/v1/access/check") => {
                Request::get(self.pick(&[
                    "/v1/access/check?permission=write&name=x/a",
                    "/v1/access/check?permission=monitor&prefix=",
                ]))
            }
            ("get", "/v1/node/log/lines") => Request::get("/v1/node/log/lines?limit=3".to_owned()),
            ("put", "/v1/node/log") => Request::new("PUT", filled).json(text(&json!({}))),
            ("get", "/v1/kv") => {
                let part = "/v1/kv?prefix=x/&part=0&of=2";
                Request::get(self.pick(&["/v1/kv?prefix=x/&limit=100", "/v1/kv?prefix=x/p/&keys_only=true", part]))
            }
            ("get", "/v1/locks/{name}/check") => {
                Request::get(format!("{filled}?token={}", self.token(&format!("/v1/locks/{name}"))))
            }
            ("get", "/console/{path}") => {
                Request::get(self.pick(&["/console/", "/console/keys?prefix=a", "/console/assets/none.js"]))
            }
            ("get", "/errors/{code}") => Request::get(self.pick(&["/errors/locked", "/errors/none"])),
            ("get", "/v1/requests/{id}") => {
                let id = if self.known.requests.is_empty() { "none".into() } else { self.pick(&self.known.requests) };
                Request::get(format!("/v1/requests/{id}"))
            }
            ("get", "/v1/sessions/{session}") => Request::get(format!("/v1/sessions/{}", self.session())),
            ("get", "/v1/tasks/{queue}/task/{id}") => {
                let id = self.id();
                Request::get(filled.replace("{id}", &id))
            }
            ("get", "/v1/kv/{key}") if self.chance(4) => {
                let cas = self.cas(key.unwrap_or_default());
                Request::get(filled).header("If-Match", format!("\"{cas}\""))
            }
            ("get", _) => Request::get(filled),
            ("put" | "patch" | "delete", "/v1/kv/{key}") => self.on_key(method, filled, key.unwrap_or_default()),
            ("delete", "/v1/cluster/members/{id}") => Request::new("DELETE", format!("/v1/cluster/members/{NO_NODE}")),
            ("delete", "/v1/cluster/invitations/{id}") => {
                let id = if self.known.invitations.is_empty() {
                    "00000000000000aa".into()
                } else {
                    self.pick(&self.known.invitations)
                };
                Request::new("DELETE", format!("/v1/cluster/invitations/{id}"))
            }
            ("delete", "/v1/access/tokens/{id}") => {
                let id = if self.known.access.is_empty() {
                    "AAAAAAAAAAAAAAAA".into()
                } else {
                    self.pick(&self.known.access)
                };
                Request::new("DELETE", format!("/v1/access/tokens/{id}"))
            }
            ("delete", "/v1/sessions/{session}") => Request::new("DELETE", format!("/v1/sessions/{}", self.session())),
            ("delete", _) => Request::new("DELETE", filled),
            ("put", "/v1/access/roles/{name}") => {
                Request::new("PUT", filled).json(text(&json!({"grants": [{"permission": "read", "prefix": "x/"}]})))
            }
            ("put", "/v1/access/users/{name}") => {
                let roles = if self.chance(3) { vec![name] } else { Vec::new() };
                Request::new("PUT", filled).json(text(&json!({"roles": roles})))
            }
            ("put", "/v1/quotas/default" | "/v1/quotas/principals/{name}") => {
                let sessions = 1_000 + self.dice.random_range(0..3);
                Request::new("PUT", filled).json(text(&json!({"sessions": sessions})))
            }
            ("put", "/v1/quotas/prefixes/{prefix}") => {
                // So many that nothing is refused: what would be is not what the model expects.
                let entries = 10_000 + self.dice.random_range(0..3);
                Request::new("PUT", filled).json(text(&json!({"entries": entries, "bytes": 100_000_000})))
            }
            ("put", "/v1/collections/{name}") => {
                let rules = self.rules();
                Request::new("PUT", filled).json(text(&rules))
            }
            ("put", _) => {
                let count = self.dice.random_range(1..4);
                Request::new("PUT", filled).json(text(&json!({"count": count})))
            }
            _ => self.posted(path, filled, name),
        }
    }

    fn on_key(&mut self, method: &'static str, path: String, key: &str) -> Request {
        let mut query = Vec::new();
        if method == "put" {
            query.extend(self.life(key).into_iter().map(|(name, value)| format!("{name}={}", plain(&value))));
        }
        if self.chance(10) {
            query.push("dry_run=true".into());
        }
        if self.chance(6) {
            query.push("prev=true".into());
        }
        let target = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
        let method = match method {
            "put" => "PUT",
            "patch" => "PATCH",
            _ => "DELETE",
        };
        let mut request = Request::new(method, target);
        if method == "PUT" {
            request = request.json(text(&self.document()));
        }
        if method == "PATCH" {
            let patch = self.patch();
            let kind = if patch.is_array() { "application/json-patch+json" } else { "application/merge-patch+json" };
            request = request.header("Content-Type", kind).body(text(&patch).into_bytes());
        }
        if self.chance(2) {
            request = request.header("If-Match", format!("\"{}\"", self.cas(key)));
        }
        let id = self.request_id();
        request.request_id(&id)
    }

    fn rules(&mut self) -> Value {
        self.pick(&[
            json!({}),
            json!({"indexes": [["n"]]}),
            json!({"indexes": [{"fields": ["u"], "unique": true}, ["v", "-t"]]}),
            json!({"fields": {"u": {"type": "long"}, "at": {"type": "datetime"}}}),
            json!({"ttl_ms": 900}),
            json!({"fields": {"d": {"type": "double", "default": 1}}, "indexes": [["d"], ["at"]]}),
        ])
    }

    fn id(&mut self) -> String {
        if self.known.ids.is_empty() { "none".into() } else { self.pick(&self.known.ids) }
    }

    fn ticket(&mut self) -> Value {
        let (id, token) = match self.known.tasks.is_empty() {
            true => (self.id(), 3),
            false => self.pick(&self.known.tasks),
        };
        json!({"id": id, "token": token})
    }

    fn posted(&mut self, path: &'static str, target: String, name: &str) -> Request {
        let session = self.session();
        let body = match path {
            "/v1/access/tokens" => json!({"user": name, "expires_in_ms": 60_000}),
            "/v1/barriers/{name}/enter" => {
                json!({"session": session, "parties": self.dice.random_range(1..4), "wait_ms": 0})
            }
            "/v1/barriers/{name}/leave" => json!({"session": session, "wait_ms": 0}),
            "/v1/bulk" => json!({"ops": self.ops()}),
            "/v1/claim" => {
                let mut claim =
                    json!({"prefix": self.pick(&["x/", "x/c/", PINNED]), "where": self.criteria(), "limit": 2});
                claim["lock_ms"] = json!(self.pick(&[1, 300, 5_000]));
                if self.chance(2) {
                    claim["patch"] = self.patch();
                }
                claim
            }
            "/v1/cluster/faults" => json!({"verb": "forget"}),
            "/v1/cluster/invitations" => json!({"node_id": 99, "for_ms": 60_000}),
            "/v1/cluster/leader" => {
                let to = if self.may_lead { self.dice.random_range(1..4) } else { NO_NODE };
                return Request::post(target, text(&json!({"to": to})));
            }
            "/v1/cluster/members" => return Request::post(target, r#"{"id": 0, "peer_addr": "nowhere"}"#),
            "/v1/cluster/members/{id}/replace" => {
                return Request::post(format!("/v1/cluster/members/{NO_NODE}/replace"), r#"{"with": 98}"#);
            }
            "/v1/cluster/members/{id}/demote"
            | "/v1/cluster/members/{id}/promote"
            | "/v1/cluster/members/{id}/repair" => {
                return Request::new("POST", target.replace("{id}", "99"));
            }
            "/v1/count" => return Request::post(target, text(&json!({"prefix": "x/", "where": self.criteria()}))),
            "/v1/find" => {
                let order = self.pick(&[json!([]), json!(["-n"]), json!(["u", "$key"])]);
                return Request::post(
                    target,
                    text(&json!({"prefix": "x/", "where": self.criteria(), "order_by": order})),
                );
            }
            "/v1/delete_where" => json!({"prefix": "x/c/", "where": self.criteria(), "limit": 2}),
            "/v1/update_where" => {
                json!({"prefix": self.pick(&["x/", "x/c/"]), "where": self.criteria(), "patch": self.patch(), "limit": 3})
            }
            "/v1/elections/{name}/campaign" => {
                json!({"session": session, "value": self.document(), "wait_ms": self.pick(&[0, 300])})
            }
            "/v1/elections/{name}/proclaim" => {
                json!({"term": self.token(&format!("/v1/elections/{name}")), "value": self.document()})
            }
            "/v1/elections/{name}/resign" if self.chance(2) => json!({"session": session}),
            "/v1/elections/{name}/resign" => json!({"term": self.token(&format!("/v1/elections/{name}"))}),
            "/v1/latches/{name}/count_down" | "/v1/sessions/{session}/renew" => {
                return Request::new("POST", target.replace("{session}", &session));
            }
            "/v1/locks/{name}/acquire" => {
                let mode = self.pick(&["exclusive", "exclusive", "shared"]);
                json!({"session": session, "mode": mode, "wait_ms": self.pick(&[0, 300]), "delay_ms": self.pick(&[0, 50])})
            }
            "/v1/locks/{name}/release" if self.chance(2) => json!({"session": session}),
            "/v1/locks/{name}/release" => json!({"token": self.token(&format!("/v1/locks/{name}"))}),
            "/v1/ops" => {
                let key = self.key();
                let mut op = self.op(&key);
                if self.chance(10) {
                    op["dry_run"] = json!(true);
                } else if matches!(op["op"].as_str(), Some("lock" | "get_and_lock")) && self.chance(2) {
                    op["wait_ms"] = json!(self.pick(&[1, 100, 400]));
                }
                op
            }
            "/v1/sequences/{name}" => json!({"count": 3}),
            "/v1/sessions" => json!({"ttl_ms": self.pick(&[1_000, 1_000, 5_000, 20_000]), "owner": name}),
            "/v1/sessions/renew" => return Request::post(target, text(&json!({"sessions": [session]}))),
            "/v1/tasks/{queue}" => {
                let mut task =
                    json!({"payload": self.document(), "delay_ms": self.pick(&[0, 0, 200]), "max_attempts": 2});
                if self.chance(2) {
                    task["id"] = json!(format!("t{}", self.dice.random_range(0..6)));
                }
                if self.chance(6) {
                    // Due long ago.
                    task["execute_at"] = self.pick(&[json!(1_700_000_000_000_u64), json!("2023-11-14T22:13:20Z")]);
                    task.as_object_mut().expect("an object").remove("delay_ms");
                }
                if self.chance(4) {
                    task["every_ms"] = json!(200);
                } else if self.chance(6) {
                    task["cron"] = json!("* * * * * *");
                }
                task
            }
            "/v1/tasks/{queue}/cancel" => json!({"id": self.id()}),
            "/v1/tasks/{queue}/claim" => {
                let mut claim = json!({"limit": 2, "lease_ms": self.pick(&[1_000, 20_000])});
                if self.chance(2) {
                    claim["session"] = json!(session);
                }
                claim
            }
            "/v1/tasks/{queue}/complete" | "/v1/tasks/{queue}/extend" => self.ticket(),
            "/v1/tasks/{queue}/fail" => {
                let mut ticket = self.ticket();
                ticket["error"] = json!("no");
                ticket
            }
            "/v1/tasks/{queue}/requeue" => match self.chance(2) {
                true => json!({"id": self.id()}),
                false => json!({"limit": 5}),
            },
            "/v1/txn" => {
                let (then, otherwise) = (self.ops(), self.ops());
                json!({"if": [{"key": self.key(), "if": self.criteria()}], "then": then, "else": otherwise})
            }
            other => unreachable!("no body for {other}"),
        };
        self.post(target, body)
    }
}

/// The JSON of a value, its numbers digit by digit.
fn text(value: &Value) -> String {
    let text = value.to_string();
    let mut parts = text.split("\"#");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |done, part| done + &part.replacen('"', "", 1))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
