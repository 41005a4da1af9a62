//! A cluster that has run for long: an archive of many pieces, sessions that stay, entries that end while it is at work.
//!
//! Owns how a young one is made old while its nodes are away, and what is demanded of it then: nobody but time has done anything to it, so
//! the leader stays, and nobody waits long. Whether a step kept a thread for too long the nodes say themselves.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_archive::{BaseName, Form, SegmentName};
use quorate_client::Value;
use quorate_threads::watchdog::WATCH_STEPS;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::driver::Run;
use crate::cluster::{Cluster, PATIENCE, Settings};
use crate::eventually::eventually;
use crate::http::{Connection, Request};

/// Pieces of the log: those of twelve days, as the defaults archive them. A development build takes several times as long for each, so that a
/// step over all of them is too long with a quarter, too.
const PIECES: u64 = if cfg!(debug_assertions) { 50_000 } else { 200_000 };
/// Entries of the log that they are of. Each is there in 200 pieces, as after leaders that did not know of each other.
const ENTRIES: u64 = PIECES / 200;
/// Sessions that stay. A development build takes many times as long for each.
const SESSIONS: u64 = if cfg!(debug_assertions) { 2_000 } else { 50_000 };
/// Entries that end one after the other.
const ENDING: u64 = if cfg!(debug_assertions) { 4_000 } else { 100_000 };
/// When the first and the last of them do, in milliseconds.
const ENDS_MS: std::ops::Range<u64> = 2_000..60_000;
/// Clients at once that make all of it.
const HANDS: u64 = 64;
/// How long that may take.
const MADE_WITHIN: Duration = Duration::from_secs(180);
/// How long a read or a write may take, while followers come and go.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Where an old cluster keeps its archive.
pub struct Age {
    archive: TempDir,
}

/// Who led an old cluster when it began to be looked at.
pub struct Leadership {
    leader: u64,
    term: u64,
    /// For as long as the cluster is there.
    _age: Age,
}

impl Age {
    /// A place for an archive.
    pub fn new() -> Self {
        let archive = tempfile::Builder::new().prefix("quorate-aged-").tempdir();
        Self { archive: archive.expect("a temporary directory") }
    }

    /// The same settings, with an archive. No restore is tried: names alone are no archive.
    pub fn settings(&self, settings: Settings) -> Settings {
        let archive = self.archive.path().join("archive");
        settings
            .flag("--archive", archive.display())
            .flag("--archive-interval-ms", 200)
            .flag("--archive-verify-every-ms", 0)
            .alone()
    }

    /// Makes a cluster old and starts it again. It is looked at from the first moment on at which all know a leader.
    pub async fn make_old(self, cluster: &mut Cluster) -> Leadership {
        let part = self.part_of(cluster).await;
        let base = first_base(&part).await;
        write_entries(cluster, base.index + ENTRIES).await;
        make_sessions(cluster).await;
        for id in cluster.live() {
            cluster.stop(id).await;
        }
        let names = tokio::task::spawn_blocking(move || add_pieces(&part.join("log"), base));
        names.await.expect("it does not panic").expect("an archive can be written");
        // From its start on: all that is there is found then.
        for id in cluster.ids() {
            cluster.set_environment(id, WATCH_STEPS, "1");
        }
        cluster.start_all();
        cluster.wait_all_ready().await;
        let leader = cluster.leader().await;
        let term = cluster.status(leader).await.expect("it leads").term;
        make_ending(cluster).await;
        Leadership { leader, term, _age: self }
    }

    /// The directory of the cluster's part.
    async fn part_of(&self, cluster: &Cluster) -> PathBuf {
        let leader = cluster.leader().await;
        let id = cluster.status(leader).await.expect("it leads").cluster_id;
        self.archive.path().join("archive").join(format!("quorate-{id}"))
    }
}

impl Default for Age {
    fn default() -> Self {
        Self::new()
    }
}

impl Leadership {
    /// Panics where another node led meanwhile, or somebody waited for longer than `slack` allows.
    pub async fn assert_kept(&self, cluster: &Cluster, run: &Run, slack: Duration) {
        let leader = cluster.leader().await;
        let term = cluster.status(leader).await.expect("it leads").term;
        assert_eq!((leader, term), (self.leader, self.term), "leader and term now, and at the beginning");
        let is_quick = |kind: &str| matches!(kind, "get" | "put" | "cas");
        let quick = run.history.records.iter().filter(|record| is_quick(record.operation.kind()));
        let slowest = quick.max_by_key(|record| record.end - record.call).expect("somebody read and wrote");
        let took = Duration::from_micros(slowest.end - slowest.call);
        println!("the slowest read or write of an old cluster took {took:?}");
        assert!(took <= ANSWER_MAX + slack, "it took {took:?}: {slowest}");
    }
}

/// Writes until the log is so long. Each write is an entry of it.
async fn write_entries(cluster: &Cluster, last: u64) {
    let client = cluster.client_without(None);
    let leader = cluster.leader().await;
    while cluster.status(leader).await.expect("nothing is wrong, yet").last_log_index < last {
        for number in 0..100 {
            let key = format!("aged/entry/{number}");
            client.put(&key, Value::bytes("x")).await.expect("nothing is wrong, yet");
        }
    }
}

/// The first base of the archive.
async fn first_base(part: &Path) -> BaseName {
    eventually("a base is archived", PATIENCE, async || {
        let whole = fs::read_dir(part.join("base")).map_err(|error| error.to_string())?.filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_whole = path.join("manifest.json").exists();
            path.file_name().filter(|_| is_whole)?.to_str()?.parse::<BaseName>().ok()
        });
        whole.min().ok_or_else(|| "there is no whole base".to_owned())
    })
    .await
}

/// Adds the names of pieces that follow one another from a base on. There is nothing in them.
fn add_pieces(dir: &Path, base: BaseName) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    for number in 0..PIECES {
        let index = base.index + 1 + number % ENTRIES;
        let wall = base.wall + number % ENTRIES;
        let (first, last, checksum) = (index, index, number);
        let name = SegmentName { first, last, revision: None, wall_min: wall, wall, checksum, form: Form::Plain };
        File::create_new(dir.join(name.to_string()))?;
    }
    Ok(())
}

async fn make_sessions(cluster: &Cluster) {
    by_hands(cluster, SESSIONS, |_| Request::post("/v1/sessions", r#"{"ttl_ms":86400000}"#)).await;
}

async fn make_ending(cluster: &Cluster) {
    let span = ENDS_MS.end - ENDS_MS.start;
    by_hands(cluster, ENDING, move |number| {
        let ttl = ENDS_MS.start + span * number / ENDING;
        Request::put(&format!("aged/ending/{number:06}?ttl_ms={ttl}"), "{}")
    })
    .await;
}

/// Has many clients send all of these requests, spread over the nodes.
async fn by_hands(cluster: &Cluster, count: u64, request: impl Fn(u64) -> Request + Clone + Send + Sync + 'static) {
    let addresses: Vec<_> = cluster.live().into_iter().map(|id| cluster.client_address(id)).collect();
    let mut hands = JoinSet::new();
    for hand in 0..HANDS {
        let (to, request) = (addresses[hand as usize % addresses.len()], request.clone());
        hands.spawn(async move {
            let mut connection = Connection::open(to).await.expect("a node takes connections");
            for number in (hand..count).step_by(HANDS as usize) {
                let answer = connection.exchange(&request(number)).await.expect("a node answers");
                assert!(answer.is_success(), "request {number}: {} {}", answer.status, answer.text());
            }
        });
    }
    let made = tokio::time::timeout(MADE_WITHIN, hands.join_all()).await;
    made.unwrap_or_else(|_| panic!("{count} requests are not done after {MADE_WITHIN:?}"));
}
