//! Writers that go on whatever happens to the cluster, and know what they were told.
//!
//! Owns tasks that write through the real client, each to its own keys, and the times they waited. Never forgives: a
//! client that gives up fails the test.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_client::api::EntryView;
use quorate_client::{Client, Value};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::cluster::{Cluster, PATIENCE};
use crate::eventually::eventually;
use crate::http::{Connection, Request};
use crate::written::Writes;

/// Keys of each writer. Each is written again and again, so that a lost write of any age shows.
const KEYS_EACH: u64 = 16;
/// What makes each value about 256 bytes.
const PADDING: &str = "................................................................................................................\
    ................................................................................................................";

/// Writers at work.
#[derive(Debug)]
pub struct Load {
    stop: watch::Sender<bool>,
    writers: Vec<Writer>,
    progress: Arc<Progress>,
}

/// A task and what it has done so far; readable also after the task was aborted.
#[derive(Debug)]
struct Writer {
    task: JoinHandle<()>,
    history: Arc<Mutex<Writes>>,
}

/// What all writers did together.
#[derive(Debug, Default)]
struct Progress {
    acknowledged: AtomicU64,
    longest_micros: AtomicU64,
}

/// What a load did.
#[derive(Debug)]
pub struct LoadReport {
    /// Every write.
    pub history: Writes,
    /// The longest that a write took since the last [`Load::reset_longest`].
    pub longest: Duration,
}

impl Load {
    /// Starts writers on keys of their own under `name`. Each of them knows all nodes but one.
    pub fn start(cluster: &Cluster, writers: usize, name: &str) -> Self {
        let (stop, stopped) = watch::channel(false);
        let progress = Arc::new(Progress::default());
        let ids = cluster.ids();
        let start = |number: usize| {
            let client = cluster.client_without(Some(ids[number % ids.len()]));
            let history = Arc::new(Mutex::new(Writes::default()));
            let prefix = format!("load/{name}/{number}");
            let task = write_until(stopped.clone(), client, prefix, history.clone(), progress.clone());
            Writer { task: tokio::spawn(task), history }
        };
        let writers = (0..writers).map(start).collect();
        Self { stop, writers, progress }
    }

    /// Writes acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.progress.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits until this many more writes are acknowledged.
    pub async fn wait_for_more(&self, writes: u64) {
        self.wait_for_more_within(writes, PATIENCE).await;
    }

    /// Waits until this many more writes are acknowledged.
    pub async fn wait_for_more_within(&self, writes: u64, within: Duration) {
        let goal = self.acknowledged() + writes;
        eventually(&format!("{writes} more writes"), within, async || {
            self.assert_nobody_gave_up();
            let now = self.acknowledged();
            if now >= goal { Ok(()) } else { Err(format!("{} are missing", goal - now)) }
        })
        .await;
    }

    /// The longest that a write took since the last reset.
    pub fn longest(&self) -> Duration {
        Duration::from_micros(self.progress.longest_micros.load(Ordering::Relaxed))
    }

    /// Forgets how long writes took.
    pub fn reset_longest(&self) {
        self.progress.longest_micros.store(0, Ordering::Relaxed);
    }

    fn assert_nobody_gave_up(&self) {
        let given_up = self.writers.iter().filter(|writer| writer.task.is_finished()).count();
        assert_eq!(given_up, 0, "writers that gave up; each said why above");
    }

    /// Lets each writer end its write, and returns what was done.
    pub async fn finish(self) -> LoadReport {
        self.stop.send_replace(true);
        let mut history = Writes::default();
        for writer in self.writers {
            writer.task.await.expect("a client gave up");
            history.merge(take(&writer.history));
        }
        let longest = Duration::from_micros(self.progress.longest_micros.load(Ordering::Relaxed));
        LoadReport { history, longest }
    }

    /// What was done so far.
    pub fn so_far(&self) -> Writes {
        let mut history = Writes::default();
        for writer in &self.writers {
            history.merge(writer.history.lock().unwrap_or_else(PoisonError::into_inner).clone());
        }
        history
    }

    /// Ends the writers, also those that gave up since the machines lost their power. Of what they did, only what was
    /// acknowledged `before` counts as acknowledged.
    pub async fn lose_power(self, before: &Writes) -> Writes {
        let mut history = Writes::default();
        for writer in self.writers {
            writer.task.abort();
            // However it ended: from the power loss on nothing that a node said counts.
            let _ = writer.task.await;
            history.merge(take(&writer.history));
        }
        history.acknowledged_by(before)
    }

    /// Ends the writers where they are: what they are sending is sent no more. Returns what was done.
    pub async fn abandon(self) -> Writes {
        let mut history = Writes::default();
        for writer in self.writers {
            writer.task.abort();
            if let Err(error) = writer.task.await
                && error.is_panic()
            {
                panic!("a client gave up: {error}");
            }
            history.merge(take(&writer.history));
        }
        history
    }
}

fn take(history: &Mutex<Writes>) -> Writes {
    std::mem::take(&mut *history.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn write_until(
    stopped: watch::Receiver<bool>,
    client: Client,
    prefix: String,
    history: Arc<Mutex<Writes>>,
    progress: Arc<Progress>,
) {
    let note =
        |change: &mut dyn FnMut(&mut Writes)| change(&mut history.lock().unwrap_or_else(PoisonError::into_inner));
    for turn in 0.. {
        if *stopped.borrow() {
            return;
        }
        let key = format!("{prefix}/{}", turn % KEYS_EACH);
        let mut number = 0;
        note(&mut |history| number = history.begin(&key));
        let begin = Instant::now();
        if let Err(error) = client.put(&key, value(number)).await {
            panic!("the writer of {key} gave up after {:?}: {error}", begin.elapsed());
        }
        note(&mut |history| history.acknowledge(&key, number));
        progress.acknowledged.fetch_add(1, Ordering::Relaxed);
        progress.longest_micros.fetch_max(begin.elapsed().as_micros() as u64, Ordering::Relaxed);
    }
}

fn value(number: u64) -> Value {
    Value::json(&serde_json::json!({ "n": number, "padding": PADDING }))
        .expect("an object of a number and a text is JSON")
}

/// Reads every key of a history through one node, linearizably, and panics where an acknowledged write is missing or
/// one is there that nobody sent.
pub async fn assert_durable(cluster: &Cluster, through: u64, history: &Writes) {
    let mut connection =
        Connection::open(cluster.client_address(through)).await.expect("a live node takes connections");
    let mut found = BTreeMap::new();
    for (key, _) in history.keys() {
        let read = connection.exchange(&Request::get(format!("/v1/kv/{key}"))).await;
        let answer = read.unwrap_or_else(|error| panic!("reading {key} through node {through}: {error}"));
        if answer.status == 404 {
            continue;
        }
        let entry: EntryView = answer.expect_success().json();
        let value: serde_json::Value = serde_json::from_str(entry.value.expect("JSON is shown").0.get()).expect("JSON");
        found.insert(key.to_owned(), value["n"].as_u64().expect("a number was written"));
    }
    let faults = history.faults(&found);
    assert!(faults.is_empty(), "through node {through}:\n{}", faults.join("\n"));
}
