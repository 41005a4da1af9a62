//! Clusters that speak TLS on both ports: certificates of a CA that `quorate-node pki` made, and of wrong ones.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cluster_harness::{Cluster, PATIENCE, Request, Settings, eventually, write_secret};
use quorate_client::{Client, ClientBuilder, Value};
use tempfile::TempDir;

use crate::guide::{built, command};

/// A directory with a CA.
pub struct Pki {
    home: TempDir,
}

impl Pki {
    fn new() -> Self {
        let pki = Self { home: tempfile::tempdir().expect("a temporary directory") };
        pki.run(&["init"], &[]);
        pki
    }

    fn run(&self, verb: &[&str], arguments: &[&str]) {
        let mut command = Command::new(built("quorate-node"));
        let done = command.arg("pki").args(verb).arg(self.home.path()).args(arguments).output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn path(&self, file: &str) -> PathBuf {
        self.home.path().join(file)
    }

    /// A node's certificate; at the same place as one before, if there was one.
    pub fn issue(&self, id: u64) {
        for file in [format!("node-{id}.crt"), format!("node-{id}.key")] {
            drop(std::fs::remove_file(self.path(&file)));
        }
        self.run(&["node"], &["--id", &id.to_string(), "--host", "localhost,127.0.0.1"]);
    }
}

/// Where a node reads its certificates: through a link that is exchanged, as Kubernetes does it with secrets.
pub fn place(dir: &Path, id: u64, file: &str) -> PathBuf {
    dir.join(format!("node-{id}")).join(file)
}

/// Puts the certificate of a node where the node reads it, all files in one step.
pub fn install(dir: &Path, id: u64, from: &Pki, authorities: &[&Pki]) {
    install_as(dir, &format!("node-{id}"), from, authorities);
}

/// The same of a node or a client.
fn install_as(dir: &Path, name: &str, from: &Pki, authorities: &[&Pki]) {
    let version = std::fs::read_dir(dir).expect("it is there").count();
    let new = dir.join(format!("{name}-{version}"));
    std::fs::create_dir(&new).expect("it can be made");
    let read = |path: PathBuf| std::fs::read(path).expect("it can be read");
    let put = |file: &str, content: Vec<u8>| write_secret(new.join(file), content);
    put("ca", authorities.iter().flat_map(|pki| read(pki.path("ca.crt"))).collect());
    put("cert", read(from.path(&format!("{name}.crt"))));
    put("key", read(from.path(&format!("{name}.key"))));
    let link = dir.join("link");
    std::os::unix::fs::symlink(&new, &link).expect("a link");
    std::fs::rename(link, dir.join(name)).expect("it can be renamed");
}

/// Three nodes with certificates below `dir`.
fn cluster(dir: &Path) -> Cluster {
    let mut cluster = Cluster::new(Settings::default());
    for id in cluster.ids() {
        for (flag, file) in [
            ("--tls-cert", "cert"),
            ("--tls-key", "key"),
            ("--tls-client-ca", "ca"),
            ("--peer-tls-cert", "cert"),
            ("--peer-tls-key", "key"),
            ("--peer-tls-ca", "ca"),
        ] {
            cluster.set_flag(id, flag, place(dir, id, file).display());
        }
        cluster.set_flag(id, "--client-socket", socket(dir, id).display());
    }
    cluster
}

fn socket(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("clients-{id}"))
}

/// Three nodes that speak TLS with each other and plainly with clients, and are ready. The directory is where their certificates
/// are.
pub async fn with_tls_between_nodes() -> (Cluster, TempDir, Pki) {
    let (pki, dir) = (Pki::new(), tempfile::tempdir().expect("a directory"));
    let mut cluster = Cluster::new(Settings::default());
    for id in cluster.ids() {
        pki.issue(id);
        install(dir.path(), id, &pki, &[&pki]);
        for (flag, file) in [("--peer-tls-cert", "cert"), ("--peer-tls-key", "key"), ("--peer-tls-ca", "ca")] {
            cluster.set_flag(id, flag, place(dir.path(), id, file).display());
        }
    }
    cluster.start_all();
    cluster.wait_all_ready().await;
    (cluster, dir, pki)
}

fn endpoints(cluster: &Cluster, ids: &[u64]) -> String {
    let urls: Vec<_> = ids.iter().map(|id| format!("https://{}", cluster.client_address(*id))).collect();
    urls.join(",")
}

fn builder(cluster: &Cluster, ca: &Path) -> ClientBuilder {
    Client::builder().endpoints(endpoints(cluster, &cluster.ids())).ca_file(ca)
}

async fn all_ready(client: &Client) -> Result<(), String> {
    for node in client.status_of_all().await.map_err(|error| error.to_string())? {
        let status = node.status.map_err(|error| error.to_string())?;
        if !status.ready {
            return Err(format!("node {}: {:?}", status.node_id, status.warnings));
        }
    }
    Ok(())
}

async fn wait_ready(client: &Client) {
    eventually("all nodes are ready", PATIENCE, async || all_ready(client).await).await;
}

/// Runs the command line with these arguments and no environment of its own.
async fn quorate(arguments: &[&str]) -> Output {
    let mut command = command(built("quorate"));
    command.args(arguments);
    tokio::task::spawn_blocking(move || command.output()).await.expect("no panic").expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_serves_the_command_line_and_clients_over_tls_and_nobody_else() {
    let (pki, foreign, dir) = (Pki::new(), Pki::new(), tempfile::tempdir().expect("a directory"));
    let mut cluster = cluster(dir.path());
    for id in cluster.ids() {
        pki.issue(id);
        install(dir.path(), id, &pki, &[&pki]);
    }
    pki.run(&["client"], &["--name", "app"]);
    foreign.run(&["client"], &["--name", "app"]);
    cluster.start_all();
    let client = builder(&cluster, &pki.path("ca.crt")).build().expect("good files");
    wait_ready(&client).await;
    // By stream, by an answer that goes on, and with a certificate.
    client.put("tls/a", Value::json("one").expect("JSON")).await.expect("a write");
    let read = client.get("tls/a").await.expect("a read").expect("it is there");
    assert_eq!(read.json::<String>().expect("a text"), "one");
    let known =
        builder(&cluster, &pki.path("ca.crt")).identity_files(pki.path("client-app.crt"), pki.path("client-app.key"));
    let known = known.build().expect("good files");
    known.put("tls/b", Value::json("two").expect("JSON")).await.expect("a write with a certificate");
    let strange = builder(&cluster, &pki.path("ca.crt"))
        .identity_files(foreign.path("client-app.crt"), foreign.path("client-app.key"));
    let refused = strange.build().expect("good files").put("tls/c", Value::json("three").expect("JSON")).await;
    let error = refused.expect_err("a certificate of another CA");
    assert_eq!(error.applied(), quorate_client::api::Applied::No, "nothing was read: {error}");
    assert!(error.to_string().contains("does not know the CA of this client's certificate"), "{error}");

    let (one, ca) = (endpoints(&cluster, &[2]), pki.path("ca.crt").display().to_string());
    let shown = quorate(&["--endpoints", &one, "--ca", &ca, "status"]).await;
    let rows = text(&shown.stdout);
    assert!(shown.status.success() && rows.contains("3 of 3 voters answer"), "{rows}{}", text(&shown.stderr));
    let (cert, key) = (pki.path("client-app.crt"), pki.path("client-app.key"));
    let identity = ["--cert", &cert.display().to_string(), "--key", &key.display().to_string()].map(str::to_owned);
    let got = [&["--endpoints", &one, "--ca", &ca][..], &identity.each_ref().map(String::as_str), &["get", "tls/b"]];
    let got = quorate(&got.concat()).await;
    assert!(got.status.success() && text(&got.stdout).contains("two"), "{}", text(&got.stderr));

    let address = cluster.client_address(2);
    let wrong_ca = foreign.path("ca.crt").display().to_string();
    let by_name = format!("https://localhost:{}", address.port());
    for (arguments, sentence) in [
        (vec!["--endpoints", &one, "--ca", &wrong_ca, "get", "k"], "not of the CA that is believed here"),
        (vec!["--endpoints", &one, "get", "k"], "no CA is named"),
        (vec!["--endpoints", &format!("http://{address}"), "get", "k"], "say https://"),
        (
            vec![
                "--endpoints",
                &format!("https://127.0.0.2:{}", address.port()),
                "--ca",
                &ca,
                "--timeout",
                "1s",
                "get",
                "k",
            ],
            "cannot connect",
        ),
    ] {
        let done = quorate(&arguments).await;
        let said = text(&done.stderr);
        assert!(!done.status.success() && said.contains(sentence), "{arguments:?} should say `{sentence}`: {said}");
    }
    assert!(
        quorate(&["--endpoints", &by_name, "--ca", &ca, "get", "tls/a"]).await.status.success(),
        "another of its names"
    );
    let plain = Request::get("/v1/kv/k").send(address).await.expect("an answer");
    assert!(plain.status == 400 && plain.text().contains("say https://"), "{}", plain.text());

    // Who asks without TLS, on the node's machine, is told how others have to.
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--data", "{}", "--unix-socket"]).arg(socket(dir.path(), 1));
    let listed = curl.arg("http://localhost/v3/cluster/member/list").output().expect("curl is there");
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    for member in listed["members"].as_array().expect("members") {
        for urls in ["clientURLs", "peerURLs"] {
            assert!(member[urls][0].as_str().is_some_and(|url| url.starts_with("https://")), "{member}");
        }
    }

    // Answers that go on.
    let [lines, file] = ["lines", "backup"].map(|name| dir.path().join(name).display().to_string());
    for arguments in [&["export", &lines][..], &["backup", &file]] {
        let done = quorate(&[&["--endpoints", &one, "--ca", &ca][..], arguments].concat()).await;
        assert!(done.status.success(), "{arguments:?}: {}", text(&done.stderr));
    }
    let mut watch = client.watch("tls/").initial().start().await.expect("a watch");
    watch.next().await.expect("an entry that is there");

    // The numbers that an operator watches.
    for node in client.metrics_of_all().await.expect("metrics") {
        let scrape = node.scrape.expect("metrics");
        let left = scrape.value("quorate_tls_certificate_left_seconds").expect("it is told");
        assert!(left > 0.0, "{left}");
        assert_eq!(scrape.value("quorate_tls_reload_failures_total"), Some(0.0));
    }
}

/// Writes until told to stop; one write that fails ends the test.
async fn write(client: Client, number: usize, stop: Arc<AtomicBool>, written: Arc<AtomicU64>) {
    while !stop.load(Ordering::Relaxed) {
        let count = written.fetch_add(1, Ordering::Relaxed);
        let value = Value::json(&count).expect("a number is JSON");
        let key = format!("rotation/{number}/{}", count % 50);
        client.put(&key, value).await.unwrap_or_else(|error| panic!("a write failed during the rotation: {error}"));
    }
}

/// The certificates of clients, as `pki` and `install_as` name them.
const CLIENT: &str = "client-app";

/// A step of a rotation: whose certificates are there from then on, and which CAs are believed.
enum Rotated<'a> {
    Nodes(&'a Pki, &'a [&'a Pki]),
    Clients(&'a Pki, &'a [&'a Pki]),
}

/// Exchanges the certificates of all nodes and waits until they have taken them.
async fn rotate_nodes(cluster: &Cluster, dir: &Path, from: &Pki, authorities: &[&Pki]) {
    let taken = |id| cluster.log_text(id).matches("new TLS certificates are in use").count();
    let before: Vec<_> = cluster.ids().into_iter().map(taken).collect();
    for id in cluster.ids() {
        install(dir, id, from, authorities);
    }
    eventually("all nodes have taken the certificates on both ports", PATIENCE, async || {
        for (id, before) in cluster.ids().into_iter().zip(&before) {
            if taken(id) < before + 2 {
                return Err(format!("node {id}: {}", cluster.log_text(id).lines().last().unwrap_or("")));
            }
        }
        Ok(())
    })
    .await;
}

/// The whole way of an operator: the new CA beside the old, new certificates, the old CA away, at nodes and at clients that run on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_ca_and_new_certificates_are_taken_under_load_without_a_failed_write() {
    let (old, new, dir) = (Pki::new(), Pki::new(), tempfile::tempdir().expect("a directory"));
    let mut cluster = cluster(dir.path());
    for pki in [&old, &new] {
        cluster.ids().into_iter().for_each(|id| pki.issue(id));
        pki.run(&["client"], &["--name", "app"]);
    }
    for id in cluster.ids() {
        install(dir.path(), id, &old, &[&old]);
    }
    install_as(dir.path(), CLIENT, &old, &[&old]);
    let files = ["ca", "cert", "key"].map(|file| dir.path().join(CLIENT).join(file));
    let [ca, cert, key] = files;
    let build = || builder(&cluster, &ca).identity_files(&cert, &key).build().expect("good files");
    let (client, clients) = (build(), [build(), build(), build(), build()]);
    cluster.start_all();
    wait_ready(&client).await;
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let start = |(number, client)| tokio::spawn(write(client, number, stop.clone(), written.clone()));
    let writers: Vec<_> = clients.into_iter().enumerate().map(start).collect();
    let go_on = async || {
        let reached = written.load(Ordering::Relaxed) + 100;
        eventually("writes go on", PATIENCE, async || match written.load(Ordering::Relaxed) {
            now if now >= reached => Ok(()),
            now => Err(format!("{now} of {reached}")),
        })
        .await;
    };
    for step in [
        Rotated::Nodes(&old, &[&old, &new]),
        Rotated::Clients(&new, &[&old, &new]),
        Rotated::Nodes(&new, &[&old, &new]),
        Rotated::Clients(&new, &[&new]),
        Rotated::Nodes(&new, &[&new]),
    ] {
        match step {
            Rotated::Nodes(from, authorities) => rotate_nodes(&cluster, dir.path(), from, authorities).await,
            Rotated::Clients(from, authorities) => install_as(dir.path(), CLIENT, from, authorities),
        }
        go_on().await;
    }
    // New connections are made with what is there now: of peers as of clients.
    for id in cluster.ids() {
        cluster.stop(id).await;
        cluster.start_node(id);
        wait_ready(&client).await;
        go_on().await;
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("no write failed");
    }
    // What was good in the beginning is so no more, on either side.
    let (old_ca, new_ca) = (old.path("ca.crt"), new.path("ca.crt"));
    let forgotten = builder(&cluster, &old_ca).build().expect("good files");
    let error = forgotten.get("rotation/0/0").await.expect_err("the nodes have certificates of the new CA");
    assert!(error.to_string().contains("not of the CA that is believed here"), "{error}");
    let former =
        builder(&cluster, &new_ca).identity_files(old.path("client-app.crt"), old.path("client-app.key")).build();
    let error = former.expect("good files").get("rotation/0/0").await.expect_err("a certificate of the old CA");
    assert!(error.to_string().contains("does not know the CA of this client's certificate"), "{error}");
    println!("{} writes while the CA was exchanged, none failed", written.load(Ordering::Relaxed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_certificates_of_another_ca_stays_out_until_it_has_good_ones() {
    let (ours, theirs, dir) = (Pki::new(), Pki::new(), tempfile::tempdir().expect("a directory"));
    let mut cluster = cluster(dir.path());
    for id in cluster.ids() {
        ours.issue(id);
        install(dir.path(), id, &ours, &[&ours]);
    }
    cluster.start_all();
    let client = builder(&cluster, &ours.path("ca.crt")).build().expect("good files");
    wait_ready(&client).await;
    cluster.stop(3).await;
    theirs.issue(3);
    install(dir.path(), 3, &theirs, &[&theirs]);
    cluster.start_node(3);
    eventually("both sides say why", PATIENCE, async || {
        let (stranger, others) = (cluster.log_text(3), cluster.log_text(1) + &cluster.log_text(2));
        if !stranger.contains("no secure connection to a peer") || !stranger.contains("CA that is not known here") {
            return Err(format!("node 3 does not: {stranger}"));
        }
        if others.contains("TLS handshake failed") { Ok(()) } else { Err(format!("the others do not: {others}")) }
    })
    .await;
    client.put("tls/k", Value::json("v").expect("JSON")).await.expect("the other two go on");
    // Half of the files is worse than none: they are not taken.
    std::fs::copy(ours.path("node-3.key"), place(dir.path(), 3, "key")).expect("a file");
    eventually("the node keeps what it has", PATIENCE, async || match cluster.log_text(3) {
        log if log.contains("new TLS files were not taken") => Ok(()),
        log => Err(log),
    })
    .await;
    install(dir.path(), 3, &ours, &[&ours]);
    wait_ready(&client).await;
}
