//! Clusters that ask who asks: what was taken away is gone on every node, and no secret stays anywhere.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cluster_harness::{Cluster, PATIENCE, Request, Settings, eventually};
use quorate_client::api::{ErrorCode, Grant, Permission};
use quorate_client::{Client, Error, Value};
use tempfile::TempDir;

use crate::backups::endpoints;
use crate::guide::built;

const ROOT: &str = "5f0d3c0b6a6f4a0cb7a2f5e1c9d8b7a65f0d3c0b6a6f4a0c";

/// Nodes with authentication, a user `app` that has `orders/`, and its token.
struct Guarded {
    cluster: Cluster,
    dir: TempDir,
    app: String,
}

fn grants(prefix: &str) -> Vec<Grant> {
    [Permission::Write, Permission::Lock].map(|permission| Grant { permission, prefix: prefix.into() }).into()
}

impl Guarded {
    async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    /// For what one node decides.
    async fn start_one() -> Self {
        Self::start_with(Settings::with_ids([1])).await
    }

    async fn start_with(nodes: Settings) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut cluster = Cluster::new(nodes.guarded(ROOT).flag("--log", "info,quorate_node=debug"));
        for id in cluster.ids() {
            cluster.set_flag(id, "--audit-log", dir.path().join(format!("audit-{id}")).display());
            cluster.set_flag(id, "--client-socket", dir.path().join(format!("clients-{id}")).display());
        }
        cluster.start_all();
        cluster.wait_all_ready().await;
        let mut guarded = Self { cluster, dir, app: String::new() };
        let root = guarded.client(ROOT);
        root.access().set_role("app", grants("orders/")).await.expect("a role");
        root.access().set_user("app", ["app"]).await.expect("a user");
        guarded.app = root.access().create_token("app").await.expect("a token").token.0;
        guarded
    }

    fn endpoints(&self) -> String {
        endpoints(&self.cluster)
    }

    fn client(&self, token: &str) -> Client {
        Client::builder().endpoints(self.endpoints()).token(token).build().expect("a client")
    }

    fn client_of(&self, node: u64, token: &str) -> Client {
        let endpoint = self.cluster.client_address(node).to_string();
        Client::builder().endpoints(endpoint).timeout(PATIENCE).token(token).build().expect("a client")
    }

    async fn ask(&self, node: u64, token: &str, request: Request) -> u16 {
        let request = request.header("Authorization", format!("Bearer {token}"));
        request.send(self.cluster.client_address(node)).await.expect("an answer").status
    }

    fn audit(&self, node: u64) -> PathBuf {
        self.dir.path().join(format!("audit-{node}"))
    }
}

fn value(value: &impl serde::Serialize) -> Value {
    Value::json(value).expect("JSON")
}

/// The code of a refusal.
pub fn code(error: &Error) -> Option<ErrorCode> {
    match error {
        Error::Rejected(problem) => Some(problem.code),
        _ => None,
    }
}

async fn until_taken_for(client: &Client, name: &str) {
    eventually("the nodes know who asks", PATIENCE, async || match client.access().who_am_i().await {
        Ok(answer) if answer.user.as_deref() == Some(name) => Ok(()),
        other => Err(format!("{other:?}, not {name}")),
    })
    .await;
}

/// The token of a lock is shown to everybody who may read it, so that alone must not end what somebody else holds.
#[tokio::test]
async fn a_lock_is_released_by_its_holder_or_who_administers_its_name() {
    let guarded = Guarded::start_one().await;
    let root = guarded.client(ROOT);
    let mut tokens = Vec::new();
    for (name, permission) in [("other", Permission::Lock), ("chief", Permission::Admin)] {
        root.access().set_role(name, [Grant { permission, prefix: "orders/".into() }]).await.expect("a role");
        root.access().set_user(name, [name]).await.expect("a user");
        tokens.push(root.access().create_token(name).await.expect("a token").token.0);
    }
    let send = async |token: &str, request: Request| {
        let request = request.header("Authorization", format!("Bearer {token}"));
        let answer = request.send(guarded.cluster.client_address(1)).await.expect("an answer");
        (answer.status, serde_json::from_slice::<serde_json::Value>(&answer.body).expect("JSON"))
    };
    let post = |path: &str, body: serde_json::Value| Request::post(path, body.to_string());
    let (_, session) = send(&guarded.app, post("/v1/sessions", serde_json::json!({"ttl_ms": 60_000}))).await;
    let acquire = async || {
        let request = post("/v1/locks/orders%2Fl/acquire", serde_json::json!({"session": session["session"]}));
        let (status, held) = send(&guarded.app, request).await;
        assert_eq!(status, 200, "{held}");
        held["token"].clone()
    };
    let release = |token: &serde_json::Value| post("/v1/locks/orders%2Fl/release", serde_json::json!({"token": token}));
    let held = acquire().await;
    // They see it.
    let (_, seen) = send(&tokens[0], Request::get("/v1/locks/orders%2Fl")).await;
    assert_eq!(seen["holders"][0]["token"], held, "{seen}");
    let (status, refused) = send(&tokens[0], release(&held)).await;
    assert_eq!((status, refused["code"].as_str()), (403, Some("permission_denied")), "{refused}");
    let (_, still) = send(&tokens[0], Request::get("/v1/locks/orders%2Fl")).await;
    assert_eq!(still["holder_count"], 1, "{still}");
    assert_eq!(send(&guarded.app, release(&held)).await.0, 200, "its holder may");
    let held = acquire().await;
    assert_eq!(send(&tokens[1], release(&held)).await.0, 200, "who administers the name may");
}

/// Once a change of rights is acknowledged, no node applies anything by the rights before it.
#[tokio::test]
async fn nothing_is_applied_by_rights_that_were_taken_away() {
    let guarded = Arc::new(Guarded::start().await);
    let root = guarded.client(ROOT);
    for round in 0..8 {
        let written = Arc::new(AtomicU64::new(0));
        let writers = guarded.cluster.ids().into_iter().map(|node| {
            let (app, written) = (guarded.client_of(node, &guarded.app), Arc::clone(&written));
            tokio::spawn(async move {
                let put = async || match app.put(format!("orders/{node}"), value(&node)).await {
                    Ok(_) => true,
                    Err(error) if code(&error) == Some(ErrorCode::PermissionDenied) => false,
                    Err(error) => panic!("node {node}: {error}"),
                };
                while put().await {
                    written.fetch_add(1, Ordering::Relaxed);
                }
                for _ in 0..3 {
                    assert!(!put().await, "node {node}: refused once, and then not");
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        // While all of them are at it.
        eventually("they write", PATIENCE, async || match written.load(Ordering::Relaxed) {
            0..10 => Err("too few yet".to_owned()),
            _ => Ok(()),
        })
        .await;
        let taken = root.access().set_role("app", grants("elsewhere/")).await.expect("acknowledged");
        for writer in writers {
            writer.await.expect("it ends");
        }
        for node in guarded.cluster.ids() {
            let entry = root.get(format!("orders/{node}")).await.expect("read");
            let last = entry.map_or(0, |entry| entry.mod_revision);
            let taken = taken.set_revision;
            assert!(last < taken, "round {round}: written at {last}, the right was taken at {taken}");
        }
        root.access().set_role("app", grants("orders/")).await.expect("acknowledged");
        // At once, at every node: one that is behind asks before it says no.
        for node in guarded.cluster.ids() {
            guarded
                .client_of(node, &guarded.app)
                .put(format!("orders/{node}"), value(&round))
                .await
                .expect("given back");
        }
    }
}

/// Each node has to hear that the token has ended.
#[tokio::test]
async fn a_token_ends_everywhere_with_all_that_it_opened() {
    let guarded = Guarded::start().await;
    let root = guarded.client(ROOT);
    let app = guarded.client(&guarded.app);
    let mut watch = app.watch("orders/").start().await.expect("a watch");
    app.put("orders/a", value(&1)).await.expect("their own");
    assert!(watch.next().await.expect("it goes on").event().is_some());
    let short = root.access().create_token("app").expires_in(Duration::from_secs(3)).await.expect("a token").token.0;
    let short = guarded.client(&short);
    short.put("orders/b", value(&1)).await.expect("in time");
    let id = guarded.app.split('_').nth(1).expect("an id").to_owned();
    root.access().remove_token(&id).await.expect("removed");
    for node in guarded.cluster.ids() {
        let gone = guarded.client_of(node, &guarded.app).put("orders/c", value(&1)).await.expect_err("refused");
        assert_eq!(code(&gone), Some(ErrorCode::Unauthenticated), "{gone}");
    }
    let gone = app.put("orders/c", value(&1)).await.expect_err("the stream is closed to it");
    assert_eq!(code(&gone), Some(ErrorCode::Unauthenticated), "{gone}");
    // The watch sees nothing of what comes later.
    root.put("orders/hidden", value(&1)).await.expect("root may");
    let ended = tokio::time::timeout(PATIENCE, async {
        loop {
            match watch.next().await {
                Err(error) => break error,
                Ok(seen) => assert!(!format!("{seen:?}").contains("hidden"), "{seen:?}"),
            }
        }
    });
    let ended = ended.await.expect("it ends");
    assert_eq!(code(&ended), Some(ErrorCode::Unauthenticated), "{ended}");
    eventually("the time of the other token is over", PATIENCE, async || {
        match short.put("orders/b", value(&2)).await {
            Err(error) if code(&error) == Some(ErrorCode::Unauthenticated) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// Any node, one that forwards included, could write a secret into its log, metrics or audit log.
#[tokio::test]
async fn the_command_line_takes_a_token_and_nobody_finds_it_anywhere() {
    let guarded = Guarded::start().await;
    let run = |token: Option<&str>, arguments: &[&str]| {
        let mut command = Command::new(built("quorate"));
        command.args(arguments).env("QUORATE_ENDPOINTS", guarded.endpoints()).env_remove("QUORATE_TOKEN");
        if let Some(token) = token {
            command.env("QUORATE_TOKEN", token);
        }
        let done = command.output().expect("it runs");
        let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        (done.status.success(), text)
    };
    let file = guarded.dir.path().join("app-token");
    std::fs::write(&file, format!("{}\n", guarded.app)).expect("it can be written");
    let by_file = file.display().to_string();
    let put = ["--token-file", &by_file, "put", "orders/cli", "1"];
    let (done, text) = run(None, &put);
    assert!(done, "{text}");
    let (done, text) = run(Some(&guarded.app), &["put", "other/cli", "1"]);
    assert!(!done && text.contains("it needs write on `other/cli`"), "{text}");
    let (done, text) = run(None, &["get", "orders/cli"]);
    assert!(!done && text.contains("Authorization"), "{text}");
    let (done, text) = run(Some(&guarded.app), &["bench", "--keys", "10", "--duration", "1s", "--prefix", "orders/"]);
    assert!(done, "{text}");
    let (done, text) = run(Some(ROOT), &["whoami"]);
    assert!(done && text.contains("root"), "{text}");

    // Who changed it, at any node, back to the first change; and who tried.
    let cas = ["cas", "orders/cli", "1", "2"];
    assert!(!run(Some(&guarded.app), &cas).0);
    assert!(run(Some(ROOT), &["put", "orders/cli", "3"]).0);
    let (done, text) = run(Some(&guarded.app), &["audit", "orders/cli"]);
    let who: Vec<_> = text.lines().map(|line| line.split("  ").skip(2).take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        (done, who),
        (
            true,
            vec![
                "app upsert changed".to_owned(),
                "app replace refused cas_mismatch".into(),
                "root upsert changed".into()
            ]
        ),
        "{text}"
    );
    let (done, text) = run(Some(&guarded.app), &["audit", "other/cli"]);
    assert!(!done && text.contains("it needs read on `other/cli`"), "{text}");

    // Wrong ones are slowed down, good ones from the same address are not.
    let wrong = "0123456789abcdef0123456789abcdef";
    let mut last = 0;
    for _ in 0..12 {
        last = guarded.ask(1, wrong, Request::get("/v1/kv/orders/cli")).await;
    }
    assert_eq!(last, 429);
    assert_eq!(guarded.ask(1, &guarded.app, Request::get("/v1/kv/orders/cli")).await, 200);

    let metrics = Request::get("/metrics").header("Authorization", format!("Bearer {ROOT}"));
    let secret = guarded.app.splitn(3, '_').nth(2).expect("a secret");
    for node in guarded.cluster.ids() {
        let metrics = metrics.send(guarded.cluster.client_address(node)).await.expect("an answer").text();
        let audit = std::fs::read_to_string(guarded.audit(node)).expect("there");
        for (what, text) in [("log", guarded.cluster.log_text(node)), ("metrics", metrics), ("audit log", audit)] {
            for hidden in [secret, ROOT, wrong] {
                assert!(!text.contains(hidden), "the {what} of node {node} has a secret");
            }
        }
    }
    let told: String = guarded
        .cluster
        .ids()
        .iter()
        .map(|node| std::fs::read_to_string(guarded.audit(*node)).expect("there"))
        .collect();
    for part in [r#""principal":"app""#, r#""principal":"root""#, "Write orders/cli", r#""outcome":"refused""#] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert!(!told.contains(r#""status":429"#), "who guesses must not fill the file: {told}");
}

/// A socket's mode says who may connect, and not who may do what.
#[tokio::test]
async fn who_comes_by_the_socket_of_the_machine_has_to_prove_who_asks_too() {
    let guarded = Guarded::start_one().await;
    let endpoint = format!("unix:{}", guarded.dir.path().join("clients-1").display());
    let client = |token: &str| Client::builder().endpoints(&endpoint).token(token).build().expect("a client");
    let nobody = Client::new(&endpoint).expect("a client");
    let refused = nobody.put("orders/1", value(&1)).await.expect_err("nobody is known");
    assert_eq!(code(&refused), Some(ErrorCode::Unauthenticated));
    client(&guarded.app).put("orders/1", value(&1)).await.expect("it may");
    let refused = client(&guarded.app).put("other/1", value(&1)).await.expect_err("it may not");
    assert_eq!(code(&refused), Some(ErrorCode::PermissionDenied));
    let from = format!(r#""from":"unix:uid={}""#, std::fs::metadata(guarded.dir.path()).expect("there").uid());
    eventually("the audit log tells where it came from", PATIENCE, async || {
        let told = std::fs::read_to_string(guarded.audit(1)).map_err(|error| error.to_string())?;
        let is_told = told.lines().any(|line| line.contains(&from) && line.contains("Write orders/1"));
        if is_told { Ok(()) } else { Err(told) }
    })
    .await;
}

/// Who shows a certificate is the user that it names, and `root` is nobody but who has one with that name.
#[tokio::test]
async fn a_certificate_says_who_asks() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let pki = |arguments: &[&str]| {
        let done = Command::new(built("quorate-node")).arg("pki").args(arguments).output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let home = dir.path().display().to_string();
    pki(&["init", &home]);
    pki(&["node", &home, "--id", "1", "--host", "localhost,127.0.0.1"]);
    pki(&["client", &home, "--name", "root", "--root"]);
    for name in ["app", "stranger"] {
        pki(&["client", &home, "--name", name]);
    }
    let file = |name: &str| dir.path().join(name);
    let settings = Settings::with_ids([1])
        .flag("--auth", "required")
        .flag("--tls-cert", file("node-1.crt").display())
        .flag("--tls-key", file("node-1.key").display())
        .flag("--tls-client-ca", file("ca.crt").display());
    let mut cluster = Cluster::new(settings);
    cluster.start_all();
    let endpoints: Vec<_> = cluster.ids().iter().map(|id| format!("https://{}", cluster.client_address(*id))).collect();
    let builder = || Client::builder().endpoints(endpoints.join(",")).ca_file(file("ca.crt"));
    let client = |name: &str| {
        let (cert, key) = (file(&format!("client-{name}.crt")), file(&format!("client-{name}.key")));
        builder().identity_files(cert, key).build().expect("a client")
    };
    let root = client("root");
    until_taken_for(&root, "root").await;
    root.access().set_role("app", grants("orders/")).await.expect("a role");
    root.access().set_user("app", ["app"]).await.expect("a user");
    let app = client("app");
    app.put("orders/k", value(&1)).await.expect("their own");
    let refused = app.put("other/k", value(&1)).await.expect_err("refused");
    assert_eq!(code(&refused), Some(ErrorCode::PermissionDenied), "{refused}");
    for (who, client) in [("stranger", client("stranger")), ("nobody", builder().build().expect("a client"))] {
        let refused = client.put("orders/k", value(&1)).await.expect_err("refused");
        assert_eq!(code(&refused), Some(ErrorCode::Unauthenticated), "{who}: {refused}");
    }
    // Who runs on is who its files say now. They are written one after the other, and half of them says nothing.
    let [cert, key] = ["mine.crt", "mine.key"].map(file);
    let exchange = |name: &str| {
        for (from, to) in [(format!("client-{name}.crt"), &cert), (format!("client-{name}.key"), &key)] {
            std::fs::copy(file(&from), to).expect("it can be copied");
        }
    };
    exchange("app");
    let mine = builder().identity_files(&cert, &key).build().expect("a client");
    until_taken_for(&mine, "app").await;
    mine.put("orders/k", value(&1)).await.expect("their own");
    exchange("root");
    until_taken_for(&mine, "root").await;
    mine.put("other/k", value(&1)).await.expect("root may");
    // A token counts before the certificate.
    root.access().set_user("reader", Vec::<String>::new()).await.expect("a user");
    let token = root.access().create_token("reader").await.expect("a token").token.0;
    let both = builder().identity_files(file("client-root.crt"), file("client-root.key")).token(token);
    let both = both.build().expect("a client");
    assert_eq!(both.access().who_am_i().await.expect("known").user.as_deref(), Some("reader"));
    root.access().remove_user("app").await.expect("removed");
    let refused = app.put("orders/k", value(&2)).await.expect_err("refused");
    assert_eq!(code(&refused), Some(ErrorCode::Unauthenticated), "{refused}");
}
