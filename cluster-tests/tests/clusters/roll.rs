//! A rolling restart, as `scripts/cluster roll` does it, while clients write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cluster_harness::stats::DEBUG_BUILD;
use cluster_harness::{Cluster, Settings};
use quorate_client::{Client, Value};

const WRITERS: usize = 8;
/// Little is written during a roll, so this is one of the few longest waits; a slow machine may elect meanwhile.
const P999_MAX: Duration = Duration::from_secs(2);

/// Writes until told to stop. Returns how long each write took; one that fails ends the test.
async fn write(client: Client, number: usize, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let key = format!("roll/{number}/{}", took.len() % 100);
        let value = Value::json(&took.len()).expect("a number is JSON");
        client.put(&key, value).await.unwrap_or_else(|error| panic!("a write failed during the roll: {error}"));
        took.push(begin.elapsed());
    }
    took
}

pub async fn a_rolling_restart_under_load_fails_no_write() {
    let mut cluster = Cluster::start_with(Settings::default().alone()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> =
        (0..WRITERS).map(|number| tokio::spawn(write(cluster.client_without(None), number, stop.clone()))).collect();
    for id in cluster.ids() {
        if cluster.leader().await == id {
            cluster.client_without(None).transfer_leader(None).await.expect("the others are up to date");
        }
        cluster.stop(id).await;
        cluster.bring_up(id).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    for writer in writers {
        took.extend(writer.await.expect("no write failed"));
    }
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    let build = if DEBUG_BUILD { " (debug build)" } else { "" };
    println!(
        "a rolling restart{build}: {} writes, none failed; p50 {:?}, p99 {:?}, p99.9 {:?}, longest {:?}",
        took.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    assert!(at(0.999) < P999_MAX, "p99.9 is {:?}", at(0.999));
    cluster.assert_agreement().await;
}
