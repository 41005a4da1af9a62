//! What an operator expects of real nodes: logs that say more on demand, a port of their own, roles that are not all-powerful, tokens of
//! a provider, and a file for who is to help.

use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cluster_harness::ports::free_addresses;
use cluster_harness::{Cluster, Connection, PATIENCE, Request, Settings, eventually};
use quorate_client::api::{
    ErrorCode, Grant, NodeCaller, NodeCallersAnswer, NodeLogAnswer, NodeLogLinesAnswer, NodeResourceKind, Permission,
};
use quorate_client::{Client, Value};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::json;
use tempfile::TempDir;

use super::auth::code;
use super::backups::endpoints;
use super::guide::{built, command};

const ROOT: &str = "77aa0d3c0b6a6f4a0cb7a2f5e1c9d8b7a65f0d3c0b6a6f4a";

/// Nodes with authentication, and what they are started with besides.
struct Guarded {
    cluster: Cluster,
    dir: TempDir,
}

impl Guarded {
    async fn start(more: impl FnOnce(Settings, &Path) -> Settings) -> Self {
        Self::start_with(more, |_| {}).await
    }

    async fn start_with(more: impl FnOnce(Settings, &Path) -> Settings, prepare: impl FnOnce(&mut Cluster)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut cluster = Cluster::new(more(Settings::default().guarded(ROOT), dir.path()));
        prepare(&mut cluster);
        Self::begin(cluster, dir).await
    }

    /// For what one node decides.
    async fn start_one() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        Self::begin(Cluster::new(Settings::with_ids([1]).guarded(ROOT)), dir).await
    }

    async fn begin(mut cluster: Cluster, dir: TempDir) -> Self {
        cluster.start_all();
        cluster.wait_all_ready().await;
        Self { cluster, dir }
    }

    fn endpoints(&self) -> String {
        endpoints(&self.cluster)
    }

    fn client(&self, token: &str) -> Client {
        Client::builder().endpoints(self.endpoints()).timeout(PATIENCE).token(token).build().expect("a client")
    }

    /// A user with one grant, and a token for it.
    async fn user(&self, name: &str, permission: Permission, prefix: &str) -> String {
        let access = self.client(ROOT);
        let access = access.access();
        access.set_role(name, [Grant { permission, prefix: prefix.into() }]).await.expect("a role");
        access.set_user(name, [name]).await.expect("a user");
        access.create_token(name).await.expect("a token").token.0
    }

    async fn ask(&self, to: SocketAddr, token: &str, request: Request) -> (u16, String) {
        let request = match token {
            "" => request,
            token => request.header("Authorization", format!("Bearer {token}")),
        };
        let answer = request.send(to).await.expect("an answer");
        (answer.status, answer.text())
    }
}

fn value(text: &str) -> Value {
    Value::json(&json!({"n": text})).expect("JSON")
}

/// Runs the command line as root; what it printed.
async fn quorate(guarded: &Guarded, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = command(built("quorate"));
    command.args(arguments).env("QUORATE_ENDPOINTS", guarded.endpoints()).env("QUORATE_TOKEN", ROOT);
    let done = tokio::task::spawn_blocking(move || command.output()).await.expect("the task ends");
    let done = done.expect("the program runs");
    (done.status.code(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
}

/// Roles as an operator gives them, tried by client, command line and HTTP.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_and_monitoring_have_roles_that_allow_nothing_else() {
    let guarded = Guarded::start_one().await;
    let root = guarded.client(ROOT);
    root.put("a/k", value("kept")).await.expect("written");
    let keeper = guarded.user("keeper", Permission::Backup, "").await;
    let watcher = guarded.user("watcher", Permission::Monitor, "").await;
    let at = guarded.cluster.client_address(1);
    let file = guarded.dir.path().join("all.backup");
    let saved = guarded.client(&keeper).backup(&file).save().await.expect("it may take backups");
    assert!(saved.rows > 0 && saved.bytes > 100);
    let refused = guarded.client(&watcher).backup(guarded.dir.path().join("none.backup")).save().await;
    assert!(refused.is_err(), "who watches takes no backups");
    for (token, path, expected) in [
        (&keeper, "/v1/kv/a/k", 403),
        (&keeper, "/v1/kv?prefix=", 403),
        (&keeper, "/v1/cluster/members", 403),
        (&keeper, "/v1/access/users", 403),
        (&keeper, "/v1/node/config", 403),
        (&keeper, "/v1/node/callers", 403),
        (&watcher, "/v1/cluster/members", 200),
        (&watcher, "/v1/cluster/status", 200),
        (&watcher, "/v1/cluster/digest", 200),
        (&watcher, "/metrics", 200),
        (&watcher, "/v1/kv/a/k", 403),
        (&watcher, "/v1/kv?prefix=", 403),
        (&watcher, "/v1/watch?prefix=", 403),
        (&watcher, "/v1/locks", 403),
        (&watcher, "/v1/cluster/faults", 403),
        (&watcher, "/v1/node/log", 403),
        (&watcher, "/v1/node/callers", 403),
        (&watcher, "/v1/access/roles", 403),
    ] {
        let (status, text) = guarded.ask(at, token, Request::get(path)).await;
        assert_eq!(status, expected, "{path}: {text}");
    }
    let may = async |user: &str, permission, name: &str| {
        root.access().may(Some(user), permission, name).await.expect("an answer").allowed
    };
    assert!(may("keeper", Permission::Backup, "").await && !may("keeper", Permission::Read, "a/k").await);
    assert!(!may("watcher", Permission::Read, "a/k").await && !may("watcher", Permission::Backup, "").await);
    // About oneself everybody may ask; about others who administers everything.
    let own = guarded.client(&watcher);
    assert!(own.access().may(None, Permission::Monitor, "").await.expect("an answer").allowed);
    let other = own.access().may(Some("keeper"), Permission::Backup, "").await.expect_err("it is nobody's business");
    assert_eq!(code(&other), Some(ErrorCode::PermissionDenied));
    let (code_of_no, text) = quorate(&guarded, &["user", "may", "read", "a/k", "--user", "watcher"]).await;
    assert!(code_of_no == Some(3) && text.contains("watcher may not read `a/k`"), "{code_of_no:?} {text}");
    // On a prefix such a permission would be good for nothing.
    let in_vain = Grant { permission: Permission::Backup, prefix: "a/".into() };
    let refused = root.access().set_role("odd", [in_vain]).await.expect_err("it is refused");
    assert!(refused.to_string().contains("leave the prefix empty"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_node_logs_more_for_a_while_and_the_others_do_not() {
    let guarded = Guarded::start(|settings, _| settings.flag("--log", "info")).await;
    let log_of = |id: u64| guarded.cluster.log_text(id);
    let has_debug = |id: u64| log_of(id).contains("DEBUG quorate_node_http::service");
    let at = |id: u64| guarded.cluster.client_address(id);
    let put =
        async |id: u64, body: &str| guarded.ask(at(id), ROOT, Request::new("PUT", "/v1/node/log").json(body)).await;
    let (status, text) = put(2, r#"{"filter":"quorate_node=debug,info"}"#).await;
    let told: NodeLogAnswer = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!((status, told.node_id, told.configured.as_str()), (200, 2, "info"));
    eventually("node 2 logs its requests", PATIENCE, async || {
        guarded.ask(at(2), ROOT, Request::get("/v1/kv/some-key")).await;
        if has_debug(2) { Ok(()) } else { Err("not yet".to_owned()) }
    })
    .await;
    guarded.ask(at(1), ROOT, Request::get("/v1/kv/some-key")).await;
    assert!(!has_debug(1) && !has_debug(3), "the others were not asked");
    let (_, text) = guarded.ask(at(2), ROOT, Request::get("/v1/node/log/lines?limit=500")).await;
    let lines: NodeLogLinesAnswer = serde_json::from_str(&text).expect("lines");
    assert!(lines.lines.iter().any(|line| line.contains("DEBUG quorate_node_http::service")), "{text}");
    assert!(!text.contains("some-key"), "{text}");
    // For a while only.
    assert_eq!(put(2, r#"{"filter":"debug","for_ms":200}"#).await.0, 200);
    let filter = async |id: u64| {
        let (_, text) = guarded.ask(at(id), ROOT, Request::get("/v1/node/log")).await;
        serde_json::from_str::<NodeLogAnswer>(&text).unwrap_or_else(|error| panic!("{error}: {text}")).filter
    };
    let as_configured = async || match filter(2).await {
        filter if filter == "info" => Ok(()),
        other => Err(other),
    };
    eventually("it is as configured again", PATIENCE, as_configured).await;
    // SIGHUP goes back, too, and ends nothing.
    assert_eq!(put(2, r#"{"filter":"warn"}"#).await.0, 200);
    assert_eq!(filter(2).await, "warn");
    // SAFETY: takes no pointers; the process is this test's.
    assert_eq!(unsafe { libc::kill(guarded.cluster.process_id(2) as libc::pid_t, libc::SIGHUP) }, 0);
    eventually("it is as configured again", PATIENCE, as_configured).await;
    for bad in [r#"{"filter":"quorate_node=loud"}"#, r#"{"filter":"info","for_ms":0}"#, r#"{"level":"info"}"#] {
        let (status, text) = put(2, bad).await;
        assert_eq!(status, 400, "{bad}: {text}");
    }
    let (done, text) = quorate(&guarded, &["node", "log", "debug", "--node", "3", "--for", "1h"]).await;
    assert!(done == Some(0) && text.contains("node 3 logs debug, configured is info"), "{text}");
    let (done, text) = quorate(&guarded, &["node", "log", "--reset"]).await;
    assert!(done == Some(0) && text.lines().count() == 3 && text.contains("node 3 logs info"), "{text}");
    let (done, text) = quorate(&guarded, &["node", "config", "--node", "1"]).await;
    assert!(done == Some(0) && text.contains("auth = required") && !text.contains(ROOT), "{text}");
}

/// Each node has callers of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_who_holds_what_of_a_node() {
    let guarded = Guarded::start(|settings, _| settings).await;
    let user = guarded.user("watcher", Permission::Read, "w/").await;
    let watcher =
        Client::builder().endpoints(guarded.cluster.client_address(2).to_string()).token(user).discover_members(false);
    let _watch = watcher.build().expect("a client").watch("w/").start().await.expect("it may watch");
    let (done, text) = quorate(&guarded, &["node", "callers", "--node", "2"]).await;
    let row = text.lines().find(|line| line.starts_with("watches ")).unwrap_or_else(|| panic!("{text}"));
    assert!(done == Some(0) && text.starts_with("node 2\n") && row.contains("user watcher"), "{text}");
    let (done, json) = quorate(&guarded, &["node", "callers", "--node", "2", "--output", "json"]).await;
    let answer: NodeCallersAnswer = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let watches = answer.resources.iter().find(|resource| resource.resource == NodeResourceKind::Watches);
    let callers = &watches.expect("watches are there").callers;
    let named = |caller: &&NodeCaller| caller.name.as_deref() == Some("watcher");
    assert_eq!((done, answer.node_id, callers.iter().find(named).map(|caller| caller.held)), (Some(0), 2, Some(1)));
    let (done, json) = quorate(&guarded, &["node", "callers", "--output", "json"]).await;
    assert_eq!((done, json.lines().count()), (Some(0), 3), "an answer of each node: {json}");
}

/// Two ports of each process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_for_administration_takes_it_away_from_the_port_of_clients() {
    let admin = free_addresses(3);
    let prepare = |cluster: &mut Cluster| {
        for (id, address) in (1..).zip(admin.iter()) {
            cluster.set_flag(id, "--admin-listen", address);
            cluster.set_environment(id, "QUORATE_ADMIN_ONLY", "true");
            cluster.set_environment(id, "QUORATE_ADMIN_OPEN_METRICS", "true");
        }
    };
    let guarded = Guarded::start_with(|settings, _| settings, prepare).await;
    let (clients, admin) = (guarded.cluster.client_address(1), admin[0]);
    for (path, at_clients, at_admin) in [
        ("/livez", 200, 200),
        ("/v1/cluster/status", 200, 200),
        ("/v1/kv/k", 404, 403),
        ("/metrics", 403, 200),
        ("/v1/cluster/members", 403, 200),
        ("/v1/access/users", 403, 200),
        ("/v1/node/log", 403, 200),
        ("/v1/node/callers", 403, 200),
    ] {
        let (status, text) = guarded.ask(clients, ROOT, Request::get(path)).await;
        assert_eq!(status, at_clients, "{path}: {text}");
        if at_clients == 403 {
            assert!(text.contains(&admin.to_string()), "it says where to ask: {text}");
        }
        let (status, text) = guarded.ask(admin, ROOT, Request::get(path)).await;
        assert_eq!(status, at_admin, "{path}: {text}");
    }
    let (_, text) = guarded.ask(admin, ROOT, Request::get("/v1/kv/k")).await;
    assert!(text.contains("--client-listen"), "{text}");
    // Operators' calls of etcd's protocol are at their port too, also those that work on data.
    for (path, body, at_clients, at_admin) in [
        ("/v3/maintenance/hash", "{}", 403, 200),
        ("/v3/maintenance/hashkv", "{}", 403, 200),
        ("/v3/maintenance/defragment", "{}", 403, 200),
        // The revision is of the future; only a call that was let in is refused for that.
        ("/v3/kv/compaction", r#"{"revision":"9000000"}"#, 403, 400),
        ("/v3/kv/range", r#"{"key":"aw=="}"#, 200, 403),
    ] {
        let (status, text) = guarded.ask(clients, ROOT, Request::post(path, body)).await;
        assert_eq!(status, at_clients, "{path}: {text}");
        let (status, text) = guarded.ask(admin, ROOT, Request::post(path, body)).await;
        assert_eq!(status, at_admin, "{path}: {text}");
    }
    // Only the metrics are told whoever asks.
    assert_eq!(guarded.ask(admin, "", Request::get("/metrics")).await.0, 200);
    assert_eq!(guarded.ask(admin, "", Request::get("/v1/cluster/members")).await.0, 401);
    assert_eq!(guarded.ask(admin, "", Request::get("/v1/cluster/status")).await.0, 401);
    let operator =
        Client::builder().endpoints(admin.to_string()).token(ROOT).discover_members(false).build().expect("a client");
    assert_eq!(operator.members().list().await.expect("the members").members.len(), 3);
}

/// Somebody who signs tokens.
struct Issuer(Ed25519KeyPair);

impl Issuer {
    fn new() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self(Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key"))
    }

    fn keys(&self, id: &str) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": id, "x": x}]}).to_string()
    }

    fn token(&self, id: &str, user: &str, roles: &[&str], lives: u64) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
        let header = json!({"alg": "EdDSA", "kid": id});
        let claims =
            json!({"iss": "https://id.test", "aud": ["quorate"], "sub": user, "roles": roles, "exp": now + lives});
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims.to_string()));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(self.0.sign(signed.as_bytes())))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_brings_a_token_of_the_provider_has_what_the_cluster_gives_its_roles() {
    let (issuer, next) = (Issuer::new(), Issuer::new());
    let guarded = Guarded::start(|settings, dir| {
        let keys = dir.join("jwks.json");
        std::fs::write(&keys, issuer.keys("k1")).expect("written");
        settings
            .flag("--jwt-issuer", "https://id.test")
            .flag("--jwt-audience", "quorate")
            .flag("--jwt-jwks", keys.display())
            .flag("--jwt-roles-claim", "roles")
            .flag("--jwt-user-prefix", "oidc:")
    })
    .await;
    let root = guarded.client(ROOT);
    root.access()
        .set_role("clerk", [Grant { permission: Permission::Write, prefix: "a/".into() }])
        .await
        .expect("a role");
    let token = issuer.token("k1", "ann", &["clerk", "of-others"], 300);
    let ann = guarded.client(&token);
    eventually("the token is believed", PATIENCE, async || {
        ann.put("a/k", value("ann")).await.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
    assert_eq!(ann.access().who_am_i().await.expect("an answer").user.as_deref(), Some("oidc:ann"));
    let refused = ann.put("b/k", value("ann")).await.expect_err("no role gives that");
    assert_eq!(code(&refused), Some(ErrorCode::PermissionDenied));
    let trail = root.access().audit("a/k", None, None).await.expect("a trail");
    assert!(trail.lines.iter().all(|line| line.principal.as_deref() == Some("oidc:ann")), "{trail:?}");
    // What a role allows holds at once; a token without a role of the cluster is nobody's, as is a forged one.
    root.access()
        .set_role("clerk", [Grant { permission: Permission::Read, prefix: "a/".into() }])
        .await
        .expect("a role");
    let refused = ann.put("a/k", value("again")).await.expect_err("the role allows it no more");
    assert_eq!(code(&refused), Some(ErrorCode::PermissionDenied));
    for (bad, why) in [
        (issuer.token("k1", "bob", &["none"], 300), "no role of the cluster"),
        (next.token("k1", "ann", &["clerk"], 300), "another's signature"),
        (next.token("k2", "ann", &["clerk"], 300), "a key that is not known"),
    ] {
        let refused = guarded.client(&bad).get("a/k").await.expect_err(why);
        assert_eq!(code(&refused), Some(ErrorCode::Unauthenticated), "{why}: {refused}");
    }
    let mut watch = Connection::open(guarded.cluster.client_address(1)).await.expect("a connection");
    let request = Request::get("/v1/watch?prefix=a/").header("Authorization", format!("Bearer {token}"));
    watch.send(&request.to_bytes()).await.expect("sent");
    assert_eq!(watch.head().await.expect("a head").status, 200);
    // The provider turns to another key.
    std::fs::write(guarded.dir.path().join("jwks.json"), next.keys("k2")).expect("written");
    eventually("the new key counts on all nodes and the old one on none", PATIENCE, async || {
        for id in guarded.cluster.ids() {
            let at = guarded.cluster.client_address(id);
            let (new, _) = guarded.ask(at, &next.token("k2", "ann", &["clerk"], 300), Request::get("/v1/kv/a/k")).await;
            let (old, _) = guarded.ask(at, &token, Request::get("/v1/kv/a/k")).await;
            if (new, old) != (200, 401) && (new, old) != (200, 429) {
                return Err(format!("node {id}: {new} and {old}"));
            }
        }
        Ok(())
    })
    .await;
    // A stream ends with the key that signed its token, not with the token's time.
    let ending = async {
        let mut told = Vec::new();
        while let Some(chunk) = watch.chunk().await.ok().filter(|chunk| !chunk.is_empty()) {
            told.extend(chunk);
        }
        String::from_utf8_lossy(&told).into_owned()
    };
    let told = tokio::time::timeout(PATIENCE, ending).await.expect("the watch ends");
    assert!(told.contains("event: end") && told.contains("\"code\":\"unauthenticated\""), "{told}");
}

/// The bundle has what each node tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_support_bundle_has_what_helps_and_nothing_that_is_secret() {
    let guarded = Guarded::start(|settings, dir| {
        let keys = dir.join("jwks.json");
        std::fs::write(&keys, Issuer::new().keys("k1")).expect("written");
        settings
            .flag("--slow-request-ms", 1)
            .flag("--otlp-endpoint", "http://127.0.0.1:9/sec-otlp")
            .flag("--jwt-issuer", "https://id.test")
            .flag("--jwt-audience", "quorate")
            .flag("--jwt-jwks", keys.display())
    })
    .await;
    let (root, at) = (guarded.client(ROOT), guarded.cluster.client_address(1));
    let token = guarded.user("sec-user", Permission::Write, "sec-key/").await;
    let user = guarded.client(&token);
    for number in 0..20 {
        user.put(format!("sec-key/{number}"), value("sec-value")).await.expect("written");
    }
    let _refused = user.insert("sec-key/1", value("sec-value")).await;
    let session = json!({"ttl_ms": 60_000, "owner": "sec-owner", "labels": {"place": "sec-label"}});
    for (path, body) in [
        ("/v1/sessions", session),
        ("/v1/tasks/sec-queue", json!({"payload": "sec-payload"})),
        ("/v1/ops", json!({"op": "get", "key": "sec-key/5"})),
    ] {
        let (status, text) = guarded.ask(at, ROOT, Request::post(path, body.to_string())).await;
        assert!((200..300).contains(&status), "{path}: {text}");
    }
    let rules = json!({"fields": {"status": {"type": "varchar", "default": "sec-default"}}, "indexes": [["status"]]});
    let put = Request::new("PUT", "/v1/collections/shop").json(rules.to_string());
    assert_eq!(guarded.ask(at, ROOT, put).await.0 / 100, 2);
    // In HTTP's own form, where a path names the key.
    let large = json!("sec-value".repeat(100_000)).to_string();
    eventually("a slow request was logged", PATIENCE, async || {
        let (status, text) = guarded.ask(at, &token, Request::put("sec-key/slow", large.clone())).await;
        assert_eq!(status / 100, 2, "{text}");
        let slow = guarded.cluster.ids().iter().any(|id| guarded.cluster.log_text(*id).contains("sec-key"));
        if slow { Ok(()) } else { Err("no line names a key".to_owned()) }
    })
    .await;
    root.node(&at.to_string()).expect("a node").set_log(Some("debug"), None).await.expect("it logs more");
    user.get("sec-key/1").await.expect("read");

    let file = guarded.dir.path().join("support.tar.gz");
    let (done, text) = quorate(&guarded, &["support-bundle", &file.display().to_string()]).await;
    assert_eq!(done, Some(0), "{text}");
    assert!(text.contains("3 nodes") && !text.contains("not in it"), "{text}");
    let bundle = read(&file);
    let names: Vec<_> = bundle.iter().map(|(name, _)| name.trim_start_matches("quorate-support/")).collect();
    for expected in ["README", "bundle.json", "cluster/status.json", "cluster/members.json", "cluster/rules.json"] {
        assert!(names.contains(&expected), "{expected} is missing in {names:?}");
    }
    for id in 1..=3 {
        for part in ["metrics.txt", "config.json", "log.json"] {
            assert!(names.contains(&format!("nodes/{id}/{part}").as_str()), "{part} of {id} is missing in {names:?}");
        }
    }
    let has =
        |name: &str, words: &str| bundle.iter().any(|(known, text)| known.ends_with(name) && text.contains(words));
    assert!(has("nodes/1/log.json", "slow request") && has("nodes/1/log.json", "(left out)"));
    assert!(has("nodes/2/metrics.txt", "quorate_build_info") && has("nodes/1/config.json", "\"auth\": \"required\""));
    assert!(has("cluster/rules.json", "\"shop\"") && has("cluster/status.json", "\"cluster_id\""));
    let secrets =
        ["sec-key", "sec-value", "sec-owner", "sec-label", "sec-queue", "sec-payload", "sec-default", "sec-user", ROOT];
    for (name, text) in &bundle {
        for secret in secrets.iter().chain([&token.as_str(), &token.rsplit('_').next().expect("a secret")]) {
            assert!(!text.contains(*secret), "{name} has {secret}");
        }
    }
    // Nobody else makes one, and none that is there is written over.
    let (done, text) = quorate(&guarded, &["support-bundle", &file.display().to_string()]).await;
    assert!(done == Some(1) && text.contains("cannot write"), "{text}");
    let refused = user.node(&at.to_string()).expect("a node").log_lines(10).await.expect_err("it is no operator");
    assert_eq!(code(&refused), Some(ErrorCode::PermissionDenied));
}

/// The files of an archive, as text.
fn read(file: &Path) -> Vec<(String, String)> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(std::fs::File::open(file).expect("it is there")));
    let entries = archive.entries().expect("an archive");
    let text = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.expect("a whole entry");
        let name = entry.path().expect("a path").display().to_string();
        let mut text = Vec::new();
        entry.read_to_end(&mut text).expect("it can be read");
        (name, String::from_utf8_lossy(&text).into_owned())
    };
    entries.map(text).collect()
}
