//! Data that a release writes for every later build to read: what is put into a cluster, and what has to be found in it again.
//!
//! Owns the content, its manifest, and the addresses that the three nodes have for ever. `keep-data` writes it (see
//! `tests/fixtures/README.md`), a test of every later build opens it. Never compares anything that time changes.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use cluster_harness::cluster::Settings;
use cluster_harness::http::{Answer, Request};

/// The nodes of every kept cluster.
pub const NODES: [u64; 3] = [1, 2, 3];
/// Where they write what has come of it, beside the archives.
pub const MANIFEST: &str = "manifest.json";
/// The backup in the archive.
pub const BACKUP: &str = "kept.backup";

/// Kept entries begin so.
const PREFIX: &str = "kept/";
/// The request whose outcome is kept.
const REQUEST: &str = "kept-request";
/// Longest times to live: they go on where they stood when the nodes stopped.
const LONG_MS: u64 = 12 * 3_600_000;
/// Names of members whose values say when something was asked, and in lines of an audit when something was done: entries say that, too.
const VOLATILE: [&str; 11] = [
    "age_ms",
    "cluster_clock_ms",
    "delay_left_ms",
    "expires_in_ms",
    "index",
    "kept_ms",
    "lag",
    "left_ms",
    "remaining_ms",
    "revision",
    "ttl_ms",
];

/// What must be found again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version that wrote it.
    pub version: String,
    /// The feature level that the cluster had reached.
    pub level: u32,
    /// Answers by what was asked, without what time changes.
    pub contents: BTreeMap<String, Value>,
    /// What `quorate-node check` says of each node's directory as it was kept.
    pub checks: BTreeMap<u64, Vec<String>>,
    /// What `quorate-node backup verify` says of the backup.
    pub backup: Vec<String>,
    /// Writes by key of the load that was under way when the nodes were killed: the last acknowledged one and the last one sent.
    pub load: BTreeMap<String, (u64, u64)>,
    /// The session that holds things.
    pub session: String,
}

/// Where a node of a kept cluster is: its peers know it by this address, and nothing else of the machine has one like it.
pub fn address(id: u64, port: u16) -> SocketAddr {
    let host = u8::try_from(id).expect("there are three nodes");
    SocketAddr::from(([127, 71, 0, host], port))
}

/// The settings of a kept cluster.
pub fn settings() -> Settings {
    let settings = Settings::with_ids(NODES).flag("--snapshot-every-entries", 200).flag("--keep-log-entries", 50);
    NODES.iter().fold(settings, |settings, id| settings.at(*id, address(*id, 7_100), address(*id, 7_200)))
}

/// Keeps other programs of this machine from these addresses until it is dropped.
pub struct Claim(#[expect(dead_code, reason = "held")] File);

impl Claim {
    /// Waits until nobody else has them.
    pub fn wait() -> Self {
        let path = std::env::temp_dir().join("quorate-kept-data.lock");
        let file = File::options().write(true).create(true).truncate(false).open(&path).expect("a file can be made");
        // SAFETY: the call reads nothing but its two numbers, and the descriptor is open.
        assert_eq!(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) }, 0, "{} can be locked", path.display());
        Self(file)
    }
}

async fn asked(at: SocketAddr, request: Request) -> Answer {
    let answer = request.send(at).await.unwrap_or_else(|error| panic!("{request:?}: {error}"));
    assert!(answer.status < 400, "{} {}: {} {}", request.method, request.target, answer.status, answer.text());
    answer
}

async fn posted(at: SocketAddr, target: &str, body: Value) -> Value {
    asked(at, Request::post(target, body.to_string())).await.json()
}

async fn put(at: SocketAddr, target: &str, body: Value) {
    asked(at, Request::new("PUT", target).json(body.to_string())).await;
}

/// Puts something of every kind into a cluster. Gives the session that holds some of it.
pub async fn fill(at: SocketAddr) -> String {
    put(
        at,
        "/v1/collections/kept~docs",
        json!({"fields": {"n": {"type": "long"}, "at": {"type": "datetime"}}, "indexes": [["n"], {"fields": ["u"], "unique": true}]}),
    )
    .await;
    for round in 0..3 {
        for number in 0..20 {
            let document = json!({"n": number % 7 + round, "u": number, "at": "2026-01-01T00:00:00Z", "text": "kept"});
            put(at, &format!("/v1/kv/kept/docs/{number:02}"), document).await;
        }
    }
    for number in [3, 7] {
        asked(at, Request::new("DELETE", format!("/v1/kv/kept/docs/{number:02}"))).await;
    }
    let bytes = Request::new("PUT", "/v1/kv/kept/bytes").header("Content-Type", "application/octet-stream");
    asked(at, bytes.body((0..=255).collect())).await;
    put(at, &format!("/v1/kv/kept/for-a-while?ttl_ms={LONG_MS}"), json!(1)).await;
    asked(at, Request::put("kept/asked-once", "1").request_id(REQUEST)).await;
    // Nobody asks for it: such a lock is too short to be found again.
    put(at, "/v1/kv/locked", json!({"is": "locked"})).await;
    posted(at, "/v1/ops", json!({"op": "lock", "key": "locked", "lock_ms": 600_000})).await;
    posted(
        at,
        "/v1/txn",
        json!({"then": [{"op": "upsert", "key": "kept/txn/a", "value": 1}, {"op": "upsert", "key": "kept/txn/b", "value": 2}]}),
    )
    .await;
    let session = fill_coordination(at).await;
    fill_tasks(at).await;
    fill_access(at).await;
    session
}

async fn fill_coordination(at: SocketAddr) -> String {
    let made = posted(at, "/v1/sessions", json!({"ttl_ms": LONG_MS, "owner": "kept"})).await;
    let session = made["session"].as_str().expect("a session has an id").to_owned();
    put(at, &format!("/v1/kv/kept/held?session={session}"), json!("while the session lives")).await;
    let holds = json!({"session": session, "mode": "shared", "wait_ms": 0});
    posted(at, "/v1/locks/kept-lock/acquire", holds).await;
    posted(at, "/v1/elections/kept-election/campaign", json!({"session": session, "value": {"a": 1}, "wait_ms": 0}))
        .await;
    let entered = json!({"session": session, "parties": 3, "wait_ms": 0});
    // It waits for two more, and says so.
    let enter = Request::post("/v1/barriers/kept-barrier/enter", entered.to_string());
    enter.send(at).await.expect("an answer");
    put(at, "/v1/latches/kept-latch", json!({"count": 3})).await;
    asked(at, Request::new("POST", "/v1/latches/kept-latch/count_down")).await;
    posted(at, "/v1/sequences/kept-sequence", json!({"count": 3})).await;
    session
}

async fn fill_tasks(at: SocketAddr) {
    let schedule = async |task: Value| drop(posted(at, "/v1/tasks/kept-queue", task).await);
    let claim = async || posted(at, "/v1/tasks/kept-queue/claim", json!({"limit": 1, "lease_ms": 60_000})).await;
    let ticket = |claimed: &Value| json!({"id": claimed["tasks"][0]["id"], "token": claimed["tasks"][0]["token"]});
    schedule(json!({"id": "done", "payload": {"n": 1}, "delay_ms": 0, "max_attempts": 2})).await;
    posted(at, "/v1/tasks/kept-queue/complete", ticket(&claim().await)).await;
    schedule(json!({"id": "dead", "payload": {"n": 2}, "delay_ms": 0, "max_attempts": 1})).await;
    let mut failed = ticket(&claim().await);
    failed["error"] = json!("it cannot be done");
    posted(at, "/v1/tasks/kept-queue/fail", failed).await;
    schedule(json!({"id": "later", "payload": {"n": 3}, "execute_at": "2199-01-01T00:00:00Z"})).await;
    schedule(
        json!({"id": "each-year", "payload": {"n": 4}, "execute_at": "2199-01-01T00:00:00Z", "every_ms": 31_536_000_000_u64}),
    )
    .await;
}

async fn fill_access(at: SocketAddr) {
    put(at, "/v1/access/roles/kept-role", json!({"grants": [{"permission": "read", "prefix": PREFIX}]})).await;
    put(at, "/v1/access/users/kept-user", json!({"roles": ["kept-role"]})).await;
    posted(at, "/v1/access/tokens", json!({"user": "kept-user", "note": "kept"})).await;
    posted(at, "/v1/cluster/invitations", json!({"node_id": 7, "for_ms": LONG_MS})).await;
    put(at, "/v1/quotas/principals/kept-user", json!({"sessions": 3, "locks": 2})).await;
    put(at, "/v1/quotas/prefixes/kept%2Fdocs%2F", json!({"entries": 1_000})).await;
}

/// Everything that was put in, as a node tells it.
pub async fn contents(at: SocketAddr, session: &str) -> BTreeMap<String, Value> {
    let questions = [
        Request::get(format!("/v1/kv?prefix={PREFIX}&limit=1000")),
        Request::get("/v1/kv/kept/bytes"),
        Request::get("/v1/audit?key=kept/docs/05&limit=100"),
        Request::post(
            "/v1/find",
            json!({"prefix": "kept/docs/", "where": [{"field": "n", "op": "gte", "value": 4}], "order_by": ["-n", "u"]}).to_string(),
        ),
        Request::get("/v1/collections/kept~docs"),
        Request::get(format!("/v1/requests/{REQUEST}")),
        Request::get(format!("/v1/sessions/{session}")),
        Request::get("/v1/locks/kept-lock"),
        Request::get("/v1/elections/kept-election"),
        Request::get("/v1/barriers/kept-barrier"),
        Request::get("/v1/latches/kept-latch"),
        Request::get("/v1/sequences/kept-sequence"),
        Request::get("/v1/tasks/kept-queue/stats"),
        Request::get("/v1/tasks/kept-queue/task/done"),
        Request::get("/v1/tasks/kept-queue/task/dead"),
        Request::get("/v1/tasks/kept-queue/task/later"),
        Request::get("/v1/tasks/kept-queue/task/each-year"),
        Request::get("/v1/access/roles/kept-role"),
        Request::get("/v1/access/users/kept-user"),
        Request::get("/v1/cluster/invitations"),
        Request::get("/v1/quotas/principals/kept-user"),
        Request::get("/v1/quotas/prefixes/kept%2Fdocs%2F"),
    ];
    let mut contents = BTreeMap::new();
    for question in questions {
        let name = format!("{} {}", question.method, question.target);
        let answer = asked(at, question).await;
        let said = serde_json::from_slice(&answer.body).unwrap_or_else(|_| json!(answer.body));
        contents.insert(name, without_time(said));
    }
    contents
}

/// A part of an answer without what depends on when it was asked for.
fn without_time(said: Value) -> Value {
    match said {
        Value::Object(members) => {
            let lasting = members.into_iter().filter(|(name, _)| !VOLATILE.contains(&name.as_str()));
            Value::Object(lasting.map(|(name, value)| (name, without_time(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_time).collect()),
        other => other,
    }
}

/// Where and how what was said is not so any more. Later builds may say more.
pub fn difference(found: &Value, said: &Value) -> Option<String> {
    let within = |name: String, found: Option<&Value>, said: &Value| match found {
        Some(found) => difference(found, said).map(|rest| format!("/{name}{rest}")),
        None => Some(format!("/{name} is not there, it was {said}")),
    };
    match (found, said) {
        (Value::Object(found), Value::Object(said)) => {
            said.iter().find_map(|(name, said)| within(name.clone(), found.get(name), said))
        }
        (Value::Array(found), Value::Array(said)) if found.len() == said.len() => {
            said.iter().enumerate().find_map(|(place, said)| within(place.to_string(), found.get(place), said))
        }
        _ => (found != said).then(|| format!(" is {found}, it was {said}")),
    }
}

/// Packs directories that no node uses into an archive, holes as holes: most of a log is zeros.
pub fn pack(home: &Path, archive: &Path) {
    let status = Command::new("tar")
        .args(["--sparse", "--exclude=ballast", "--exclude=LOG*", "--exclude=LOCK", "-cJf"])
        .arg(archive)
        .arg("-C")
        .arg(home)
        .arg(".")
        // The three nodes have the same rows, and snapshots share files with the state: what repeats is megabytes apart.
        .env("XZ_OPT", "-9")
        .status();
    assert!(status.expect("tar can be run").success(), "{} cannot be packed", home.display());
}

/// The reverse.
pub fn unpack(archive: &Path, home: &Path) {
    std::fs::create_dir_all(home).expect("a directory can be made");
    let status = Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(home).status();
    assert!(status.expect("tar can be run").success(), "{} cannot be unpacked", archive.display());
}

/// Lines of a program's output that say what is in a directory, without the paths of this machine.
pub fn lines(said: &str, home: &Path) -> Vec<String> {
    let home = home.display().to_string();
    said.lines().map(|line| line.replace(&home, "…")).collect()
}
