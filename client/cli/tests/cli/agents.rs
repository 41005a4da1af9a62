//! `quorate mcp`: what agents are offered, and who is let in.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use quorate_client::api::{Applied, ErrorCode, OpKind};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::PATIENCE;
use crate::agent::Agent;
use crate::commands::run;
use crate::fake::{Act, Fake};

const QUORATE: &str = env!("CARGO_BIN_EXE_quorate");

async fn agent(fake: &Fake, arguments: &[&str]) -> Agent {
    Agent::start(Path::new(QUORATE), &fake.address, arguments).await
}

#[tokio::test]
async fn an_agent_is_told_what_there_is_and_its_session_ends_with_it() {
    let fake = Fake::start().await;
    let mut agent = agent(&fake, &["--name", "ann", "--ttl", "20s", "--prefix", "shop/"]).await;
    assert_eq!(agent.introduced["serverInfo"]["name"], "quorate");
    assert!(agent.introduced["instructions"].as_str().is_some_and(|text| text.contains("`shop/`")));
    let listed = agent.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().expect("a list");
    let acquire = tools.iter().find(|tool| tool["name"] == "lock_acquire").expect("is there");
    let annotations =
        json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false});
    assert_eq!(acquire["annotations"], annotations);
    assert_eq!(acquire["inputSchema"]["required"], json!(["name"]));
    assert!(fake.seen_at("/v1/sessions").is_empty(), "no session before it is needed");
    let held = agent.done("lock_acquire", json!({"name": "shop/till"})).await;
    assert_eq!(held, json!({"lock": "shop/till", "held": true, "token": "18"}));
    let session = fake.seen_at("/v1/sessions")[0].json();
    assert_eq!((&session["ttl_ms"], &session["owner"]), (&json!(20_000), &json!("ann")));
    agent.done("entry_put", json!({"key": "shop/open", "value": null, "guard_lock": "shop/till"})).await;
    let write = fake.seen().into_iter().find_map(|seen| seen.op).expect("a write");
    assert_eq!(write.guard, Some(quorate_client::api::Guard::lock("shop/till", 18)));
    assert!(write.op == OpKind::Upsert && write.request_id.is_some(), "{write:?}");
    assert!(agent.leave().await.success());
    assert_eq!(fake.seen_at("/sessions/17").len(), 1, "the session was ended: {:?}", fake.seen());
}

#[tokio::test]
async fn a_refusal_is_an_answer_that_says_what_to_do() {
    let fake = Fake::start().await;
    let mut agent = agent(&fake, &["--prefix", "shop/"]).await;
    agent.refused("outside_prefix", "entry_get", json!({"key": "other"})).await;
    agent.refused("outside_prefix", "watch_wait", json!({"prefix": ""})).await;
    agent.refused("invalid_argument", "entry_put", json!({"key": "shop/a", "value": 1, "guard": "shop/till"})).await;
    agent.refused("invalid_argument", "entry_put", json!({"key": "shop/a"})).await;
    agent
        .refused("not_lock_holder", "entry_put", json!({"key": "shop/a", "value": 1, "guard_lock": "shop/till"}))
        .await;
    assert_eq!(fake.seen().len(), 0, "nothing of that was sent");
    fake.script([Act::problem(ErrorCode::GuardFailed, Applied::No)]);
    let old = json!({"key": "shop/a", "value": 1, "guard_lock": "shop/till", "guard_token": "5"});
    let refusal = agent.refused("guard_failed", "entry_put", old).await;
    assert!(refusal["applied"] == "no" && refusal["next"].is_string(), "{refusal}");
    let unknown = agent.request("tools/call", json!({"name": "entry_drop", "arguments": {}})).await;
    assert_eq!(unknown["error"]["code"], -32_602, "a tool that is not there is an error of the protocol: {unknown}");
}

#[tokio::test]
async fn who_lost_its_session_is_told_before_anything_is_written() {
    let fake = Fake::start().await;
    let mut agent = agent(&fake, &["--ttl", "1s"]).await;
    agent.done("lock_acquire", json!({"name": "till"})).await;
    fake.always(
        "/renew",
        Act::Answer(
            200,
            json!({
                "sessions": [{"session": "17", "expired": true}], "revision": "20", "index": 21,
            })
            .to_string(),
        ),
    );
    let mut told = json!({});
    while told["lost"].is_null() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        told = agent.done("entry_get", json!({"key": "a"})).await;
    }
    assert_eq!(told["lost"], json!(["lock till"]));
    let refusal = agent.refused("session_lost", "entry_put", json!({"key": "a", "value": 1})).await;
    assert!(refusal["lost"] == json!(["lock till"]) && refusal["applied"] == "no", "{refusal}");
    assert!(
        fake.seen().iter().all(|seen| seen.op.as_ref().is_none_or(|op| op.op == OpKind::Get)),
        "nothing was written"
    );
    agent.done("entry_put", json!({"key": "a", "value": 1})).await;
    agent.refused("not_lock_holder", "lock_release", json!({"name": "till"})).await;
}

#[tokio::test]
async fn a_claim_is_kept_until_its_time_is_over_and_then_it_is_told() {
    let fake = Fake::start().await;
    let entry = json!({
        "key": "work/1", "value": {"n": 1}, "content_type": "json", "cas": "99", "create_revision": "7",
        "mod_revision": "7", "version": 1, "locked": true, "lock_ms": 1_000,
    });
    let claimed = json!({"entries": [entry], "count": 1, "examined": 1, "more": false, "revision": "8", "index": 10});
    fake.always("/v1/claim", Act::Answer(200, claimed.to_string()));
    let mut agent = agent(&fake, &["--ttl", "3s"]).await;
    let claimed = agent.done("claim_next", json!({"prefix": "work/", "for_s": 3})).await;
    let shown = json!({"key": "work/1", "value": {"n": 1}, "version": 1, "mod_revision": "7"});
    assert_eq!(claimed, json!({"claimed": shown, "for_s": 3}), "the key to the lock is not shown");
    assert_eq!(fake.seen_at("/v1/claim")[0].json()["lock_ms"], 3_000);
    let mut told = json!({});
    while told["lost"].is_null() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        told = agent.done("entry_list", json!({})).await;
    }
    assert_eq!(told["lost"], json!(["claim work/1"]));
    let ops: Vec<_> = fake.seen().into_iter().filter_map(|seen| seen.op).collect();
    let extended = ops.iter().filter(|op| op.op == OpKind::Extend && op.cas.as_deref() == Some("99")).count();
    assert!(extended >= 1, "each second: {ops:?}");
    agent.refused("claim_lost", "claim_complete", json!({"key": "work/1", "patch": {"done": true}})).await;
    agent.refused("not_lock_holder", "claim_complete", json!({"key": "work/1", "patch": {"done": true}})).await;
    let has = |kind| fake.seen().iter().any(|seen| seen.op.as_ref().is_some_and(|op| op.op == kind));
    let given_back = async {
        while !has(OpKind::Unlock) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, given_back).await.expect("it is given back");
    assert!(!has(OpKind::Update), "nothing was written");
}

#[tokio::test]
async fn who_may_only_read_has_no_tool_that_writes_and_opens_no_session() {
    let fake = Fake::start().await;
    let mut agent = agent(&fake, &["--read-only"]).await;
    let listed = agent.request("tools/list", json!({})).await;
    for tool in listed["result"]["tools"].as_array().expect("a list") {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
    }
    assert_eq!(agent.done("entry_get", json!({"key": "k"})).await["value"], json!({"n": 1}));
    let put = agent.request("tools/call", json!({"name": "entry_put", "arguments": {"key": "k", "value": 1}})).await;
    assert_eq!(put["error"]["code"], -32_602, "{put}");
    assert!(agent.leave().await.success());
    assert!(fake.seen_at("/v1/sessions").is_empty());
}

#[tokio::test]
async fn a_signal_ends_it_as_the_agent_does() {
    let fake = Fake::start().await;
    let mut agent = agent(&fake, &[]).await;
    agent.done("lock_acquire", json!({"name": "till"})).await;
    assert_eq!(fake.seen_at("/v1/sessions")[0].json()["owner"], format!("scripted (process {})", agent.process_id()));
    let sent = std::process::Command::new("kill").arg(agent.process_id().to_string()).status().expect("kill runs");
    assert!(sent.success());
    assert_eq!(fake.asked("/sessions/17", 1).await.len(), 1, "its session was ended");
    assert!(agent.leave().await.success());
}

/// A server for agents over HTTP.
struct Served {
    child: Child,
    address: String,
    _home: TempDir,
}

/// Sent by agents unless a test says otherwise.
const TOKEN: &str = "Bearer 0123456789abcdef";

/// A file with its token and this mode.
fn token_file(mode: u32) -> (TempDir, String) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("token");
    std::fs::write(&file, "0123456789abcdef\n").expect("can be written");
    std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("it is ours");
    let file = file.to_str().expect("UTF-8").to_owned();
    (home, file)
}

async fn served(fake: &Fake, arguments: &[&str]) -> Served {
    let (home, file) = token_file(0o600);
    let mut command = Command::new(QUORATE);
    command.args(["--endpoints", &fake.address, "mcp", "--http", "127.0.0.1:0", "--http-token-file", &file]);
    command.args(arguments).kill_on_drop(true);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("in time");
    let line = line.expect("can be read").expect("it says where");
    let address = line.strip_prefix("serving agents on http://").and_then(|rest| rest.strip_suffix('/'));
    Served { child, address: address.expect("an address").to_owned(), _home: home }
}

/// Status, session and message of an answer.
struct Answer {
    status: u16,
    session: Option<String>,
    message: Value,
}

impl Served {
    async fn send(&self, method: &str, headers: &[(&str, &str)], message: &Value) -> Answer {
        let stream = tokio::net::TcpStream::connect(&self.address).await.expect("it listens");
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        let mut request = http::Request::builder().method(method).uri("/");
        let usual = [
            ("host", self.address.as_str()),
            ("authorization", TOKEN),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let usual = usual.iter().filter(|(name, _)| headers.iter().all(|(given, _)| given != name));
        // One that is empty is left out.
        for (name, value) in usual.chain(headers).filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        let body = if message.is_null() { String::new() } else { message.to_string() };
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        let answer = sender.send_request(request).await.expect("an answer");
        let (status, session) = (answer.status().as_u16(), answer.headers().get("mcp-session-id"));
        let session = session.map(|id| id.to_str().expect("ASCII").to_owned());
        let body = answer.into_body().collect().await.expect("a whole answer").to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        let data = text.lines().filter_map(|line| line.strip_prefix("data:")).find(|data| data.contains("jsonrpc"));
        let message = data.map_or(Value::Null, |data| serde_json::from_str(data).expect("JSON"));
        Answer { status, session, message }
    }

    async fn open(&self, headers: &[(&str, &str)]) -> Answer {
        let program = json!({"name": "scripted", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": program});
        self.send("POST", headers, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})).await
    }

    async fn call(&self, session: &str, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        let answer = self.send("POST", &[("mcp-session-id", session)], &message).await;
        assert_eq!(answer.status, 200, "{}", answer.message);
        answer.message["result"]["structuredContent"].clone()
    }
}

#[tokio::test]
async fn each_session_over_http_is_an_agent_of_its_own() {
    let fake = Fake::start().await;
    let mut served = served(&fake, &[]).await;
    let (first, second) = (served.open(&[]).await, served.open(&[]).await);
    let (first, second) = (first.session.expect("a session"), second.session.expect("a session"));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for session in [&first, &second] {
        assert_eq!(served.send("POST", &[("mcp-session-id", session)], &initialized).await.status, 202);
    }
    assert_eq!(served.call(&first, "lock_acquire", json!({"name": "till"})).await["held"], true);
    let others = served.call(&second, "session_show", json!({})).await;
    assert_eq!((&others["locks"], &others["session"]), (&json!({}), &Value::Null), "the lock is not its own");
    served.send("DELETE", &[("mcp-session-id", &first)], &Value::Null).await;
    assert_eq!(fake.asked("/sessions/17", 1).await.len(), 1, "its session was ended with it");
    served.call(&second, "lock_acquire", json!({"name": "till"})).await;
    let id = served.child.id().expect("it runs").to_string();
    assert!(std::process::Command::new("kill").arg(id).status().expect("kill runs").success());
    let ended = tokio::time::timeout(PATIENCE, served.child.wait()).await.expect("in time");
    assert!(ended.expect("it ran").success());
    assert_eq!(fake.seen_at("/sessions/17").len(), 2, "and so was that of the other, with the server");
}

#[tokio::test]
async fn no_web_page_and_nobody_without_the_token_is_let_in() {
    let fake = Fake::start().await;
    let open = served(&fake, &["--allow-origin", "https://good.example:*"]).await;
    assert_eq!(open.open(&[]).await.status, 200);
    assert_eq!(open.open(&[("host", "evil.example")]).await.status, 403, "a name that was pointed at us");
    assert_eq!(open.open(&[("origin", "https://evil.example")]).await.status, 403);
    assert_eq!(open.open(&[("origin", "https://good.example")]).await.status, 200);
    let closed = served(&fake, &["--allow-host", "mcp.example"]).await;
    assert_eq!(closed.open(&[("authorization", "")]).await.status, 401, "also on this machine");
    assert_eq!(closed.open(&[("authorization", "Bearer 0123456789abcdee")]).await.status, 401);
    assert_eq!(closed.open(&[]).await.status, 200);
    assert_eq!(closed.open(&[("host", "mcp.example")]).await.status, 200);
    assert_eq!(closed.open(&[("host", "evil.example")]).await.status, 403);
    assert_eq!(closed.open(&[("origin", "https://good.example")]).await.status, 403, "none is named");
}

#[tokio::test]
async fn an_address_takes_a_token_that_nobody_else_may_read() {
    let fake = Fake::start().await;
    for address in ["127.0.0.1:0", "0.0.0.0:0"] {
        let bare = run(&fake.address, &["mcp", "--http", address]).await;
        assert_eq!(bare.code, 2, "{}", bare.err);
        assert!(bare.err.contains("--http-token-file"), "{}", bare.err);
    }
    for mode in [0o644, 0o660, 0o602] {
        let (_home, file) = token_file(mode);
        let open = run(&fake.address, &["mcp", "--http", "127.0.0.1:0", "--http-token-file", &file]).await;
        let why = format!("has the mode {mode:o}");
        assert!(open.code == 2 && open.err.contains(&why) && open.err.contains("to 600"), "{}", open.err);
    }
    let (_home, file) = token_file(0o600);
    std::fs::write(&file, "short\n").expect("can be written");
    let short = run(&fake.address, &["mcp", "--http", "0.0.0.0:0", "--http-token-file", &file]).await;
    assert!(short.code == 2 && short.err.contains("16 characters"), "{}", short.err);
}
