//! A browser's `EventSource` over outages and restores: it goes on, or is told in the stream what is missing.
//!
//! Owns the rules by which a browser reads a stream, as the standard has them: any status but 200 ends it for ever.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster_tests::{Cluster, PATIENCE, Request, Settings, eventually};
use quorate_client::{Client, Value};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::backups::{endpoints, restored, succeed};

/// A stream ends some seconds after its node heard no leader, the one after it when its request is not answered in time.
const OUTAGE: Duration = Duration::from_secs(60);

/// All that a page was told, by the names of events.
#[derive(Debug, Default)]
struct Seen {
    events: Vec<(String, serde_json::Value)>,
    last_id: Option<String>,
    retry: Duration,
    /// The status that ended it for ever.
    closed: Option<u16>,
}

/// `new EventSource(url)`, until it is dropped.
struct EventSource {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Drop for EventSource {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl EventSource {
    fn open(to: SocketAddr, target: &str) -> Self {
        Self::after(to, target, None)
    }

    /// One that was open before, and has seen this id last.
    fn after(to: SocketAddr, target: &str, last_id: Option<String>) -> Self {
        let seen = Arc::new(Mutex::new(Seen { last_id, retry: Duration::from_secs(3), ..Seen::default() }));
        let (target, told) = (target.to_owned(), Arc::clone(&seen));
        let task = tokio::spawn(async move {
            loop {
                // However the connection ended, it comes again.
                let _ended = read(to, &target, &told).await;
                let (closed, retry) =
                    told.lock().map(|seen| (seen.closed, seen.retry)).expect("nobody panics holding it");
                if closed.is_some() {
                    return;
                }
                tokio::time::sleep(retry).await;
            }
        });
        Self { seen, task }
    }

    /// Whether an event of this name with this in its data came after the first `from`; gives how many there are.
    async fn until(&self, from: usize, name: &str, what: &str, within: Duration) -> usize {
        eventually(&format!("`{name}` with {what}"), within, async || {
            let seen = self.seen.lock().expect("nobody panics holding it");
            assert_eq!(seen.closed, None, "ended for ever, after {:?}", seen.events);
            let is_it = |(of, data): &(String, serde_json::Value)| of == name && data.to_string().contains(what);
            match seen.events.iter().skip(from).any(is_it) {
                true => Ok(seen.events.len()),
                false => Err(format!("{:?}", seen.events)),
            }
        })
        .await
    }

    fn names(&self) -> Vec<String> {
        let seen = self.seen.lock().expect("nobody panics holding it");
        seen.events.iter().map(|(name, _)| name.clone()).filter(|name| name != "progress").collect()
    }
}

/// Reads one answer to its end.
async fn read(to: SocketAddr, target: &str, seen: &Mutex<Seen>) -> std::io::Result<()> {
    let held = || seen.lock().expect("nobody panics holding it");
    let resume = held().last_id.as_ref().map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    let head = format!(
        "GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n{resume}\r\n"
    );
    let mut stream = TcpStream::connect(to).await?;
    stream.write_all(head.as_bytes()).await?;
    let mut lines = BufReader::new(stream).lines();
    let status = lines.next_line().await?.and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let Some(status) = status else { return Ok(()) };
    if status != 200 {
        held().closed = Some(status);
        return Ok(());
    }
    let (mut name, mut data, mut id) = (String::new(), String::new(), None);
    while let Some(line) = lines.next_line().await? {
        if let Some(millis) = line.strip_prefix("retry: ") {
            held().retry = Duration::from_millis(millis.parse().expect("milliseconds"));
        } else if let Some(text) = line.strip_prefix("event: ") {
            name = text.to_owned();
        } else if let Some(text) = line.strip_prefix("data: ") {
            data = text.to_owned();
        } else if let Some(text) = line.strip_prefix("id: ") {
            id = Some(text.to_owned());
        } else if line.is_empty() && !data.is_empty() {
            let mut seen = held();
            seen.last_id = id.take().or(seen.last_id.take());
            let data = serde_json::from_str(&std::mem::take(&mut data)).expect("each event is one line of JSON");
            seen.events.push((std::mem::take(&mut name), data));
        }
    }
    Ok(())
}

async fn put(client: &Client, key: &str, value: u64) -> u64 {
    client.put(key, Value::json_text(value.to_string())).await.expect("all is well").revision
}

/// Fault: a majority is gone for longer than a stream waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_goes_on_after_an_outage() {
    // Without a leader, a page is answered after this time.
    let mut cluster = Cluster::start_with(Settings::default().flag("--request-timeout-ms", 4_000)).await;
    let client = cluster.client_without(None);
    put(&client, "web/a", 1).await;
    let at = cluster.client_address(1);
    let watch = EventSource::open(at, "/v1/watch?prefix=web/&initial=true&heartbeat_ms=500");
    let observed = EventSource::open(at, "/v1/elections/e/observe?heartbeat_ms=500");
    watch.until(0, "put", "web/a", PATIENCE).await;
    observed.until(0, "vacant", "e", PATIENCE).await;
    cluster.kill(2).await;
    cluster.kill(3).await;
    // Once in the stream that it had, and once where no other begins.
    for page in [&watch, &observed] {
        let first = page.until(0, "end", "no_leader", OUTAGE).await;
        page.until(first, "end", "code", OUTAGE).await;
    }
    cluster.bring_up(2).await;
    cluster.bring_up(3).await;
    put(&client, "web/b", 2).await;
    let session: serde_json::Value =
        Request::post("/v1/sessions", r#"{"ttl_ms":60000}"#).send(at).await.expect("an answer").expect_success().json();
    let stands = json!({"session": session["session"], "value": "here"}).to_string();
    Request::post("/v1/elections/e/campaign", stands).send(at).await.expect("an answer").expect_success();
    watch.until(0, "put", "web/b", OUTAGE).await;
    observed.until(0, "leader", "here", OUTAGE).await;
    // Nothing was lost, so nothing began anew.
    assert_eq!(
        watch.names().iter().filter(|name| *name == "reset" || *name == "synced").count(),
        2,
        "{:?}",
        watch.names()
    );
    cluster.assert_agreement().await;
}

/// Fault: the cluster is replaced by one that was restored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_goes_on_in_the_cluster_that_a_backup_became() {
    let home = tempfile::tempdir().expect("a directory");
    let old = Cluster::start_with(Settings::with_ids([1])).await;
    let seen = put(&old.client_without(None), "web/a", 1).await;
    let path = home.path().join("one.backup");
    succeed("quorate", &["--endpoints", &endpoints(&old), "backup", path.to_str().expect("text")]).await;
    let mut new = restored(&path).await;
    let at = new.client_address(1);
    let targets =
        ["/v1/watch?prefix=web/&initial=true".to_owned(), format!("/v1/watch?prefix=web/&min_revision={seen}")];
    let pages = targets.map(|target| EventSource::after(at, &target, Some(format!("{seen}.0"))));
    for page in &pages {
        page.until(0, "reset", "compacted", PATIENCE).await;
    }
    pages[0].until(0, "put", "web/a", PATIENCE).await;
    let value = put(&new.client_without(None), "web/b", 2).await;
    for page in &pages {
        page.until(0, "put", &value.to_string(), PATIENCE).await;
    }
    new.assert_agreement().await;
}
