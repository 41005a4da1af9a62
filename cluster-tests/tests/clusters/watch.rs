//! Watches on real nodes: beside writers, and over restarts and compaction. `histories` kill leaders beside them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cluster_harness::cluster::PATIENCE;
use cluster_harness::seed::seeded;
use cluster_harness::{Cluster, Settings, eventually};
use quorate_client::api::{ErrorCode, WatchEvent};
use quorate_client::{Client, Error, Op, Value, Watched};
use rand::RngExt;
use rand::rngs::StdRng;

const WRITERS: usize = 4;

fn client_of(cluster: &Cluster, without: Option<u64>) -> Client {
    cluster.client_without(without)
}

/// Writes, removes and transactions until told to stop.
async fn write_until(stop: Arc<AtomicBool>, client: Client, writer: usize, mut rng: StdRng) {
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let keys: Vec<_> = match rng.random_range(0..4) {
            0 => (0..rng.random_range(2..6)).map(|step| format!("w/{writer}/{step}")).collect(),
            _ => vec![format!("w/{writer}/{}", rng.random_range(0..6))],
        };
        let value = format!("\"{writer}.{turn}\"");
        if keys.len() > 1 {
            let txn =
                keys.iter().fold(client.txn(), |txn, key| txn.then(Op::put(key, Value::json_text(value.clone()))));
            txn.await.unwrap_or_else(|error| panic!("writer {writer} gave up: {error}"));
        } else if rng.random_range(0..5) == 0 {
            match client.remove(&keys[0]).await {
                Ok(_) => {}
                Err(Error::Rejected(problem)) if problem.code == ErrorCode::NotFound => {}
                Err(error) => panic!("writer {writer} gave up: {error}"),
            }
        } else {
            let put = client.put(&keys[0], Value::json_text(value));
            put.await.unwrap_or_else(|error| panic!("writer {writer} gave up: {error}"));
        }
    }
}

/// Takes a change into what is there: the version of each key.
fn take(there: &mut BTreeMap<String, u64>, event: WatchEvent) {
    let key = event.key.to_string();
    match event.entry {
        Some(entry) => there.insert(key, entry.version),
        None => there.remove(&key),
    };
}

/// What a listing of a revision shows, in the same form.
async fn listed(client: &Client, revision: u64) -> BTreeMap<String, u64> {
    let page = client.list("w/").limit(1_000).revision(revision).page().await.expect("it is not compacted");
    page.entries.into_iter().map(|entry| (entry.key.to_string(), entry.version)).collect()
}

/// Watches begin at any node while writers go on at all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn initial_entries_and_what_follows_are_all_there_is() {
    let mut cluster = Cluster::start().await;
    let mut rng = seeded();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let rng = rand::SeedableRng::seed_from_u64(rng.random());
            tokio::spawn(write_until(Arc::clone(&stop), client_of(&cluster, None), writer, rng))
        })
        .collect();
    let client = client_of(&cluster, None);
    let mut watches = Vec::new();
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut watch = client.watch("w/").initial().start().await.expect("it begins");
        let mut there = BTreeMap::new();
        let synced = loop {
            match watch.next().await.expect("nothing breaks here") {
                Watched::Event(event) => {
                    assert!(event.initial);
                    take(&mut there, *event);
                }
                Watched::Synced(revision) => break revision,
                other => panic!("nothing breaks here, but: {other:?}"),
            }
        };
        assert_eq!(there, listed(&client, synced).await, "at revision {synced}");
        watches.push((watch, there));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("a writer ends");
    }
    let end = client.put("w/end", Value::json_text("1")).await.expect("all is well").revision;
    let listed = listed(&client, end).await;
    for (mut watch, mut there) in watches {
        while !there.contains_key("w/end") {
            let watched =
                tokio::time::timeout(PATIENCE, watch.next()).await.expect("in time").expect("nothing breaks here");
            take(&mut there, watched.event().expect("it is synced"));
        }
        assert_eq!(there, listed);
    }
    cluster.assert_agreement().await;
}

/// Fault: each node is restarted while the watch is idle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_of_what_is_compacted_is_told_so_and_an_idle_one_goes_on() {
    /// Several times the revisions that are kept.
    const BUSY: u64 = 50;
    let settings = Settings::default().flag("--history-keep-ms", 500).flag("--history-keep-revisions", 10);
    let mut cluster = Cluster::start_with(settings).await;
    let client = client_of(&cluster, None);
    let heartbeat = Duration::from_millis(500);
    let mut idle = client.watch("idle/").heartbeat(heartbeat).start().await.expect("it begins");
    let begun = idle.revision().expect("it begins somewhere");
    for n in 0..BUSY {
        client.put(format!("busy/{}", n % 7), Value::json_text(n.to_string())).await.expect("all is well");
    }
    eventually("history is compacted", PATIENCE, async || {
        // Age counts cluster time, which stands still while nothing is written and nothing is due.
        client.put("busy/0", Value::json_text("0")).await.expect("all is well");
        match client.watch("").from(begun + 1).start().await {
            Err(Error::Rejected(problem)) if problem.code == ErrorCode::Compacted => {
                assert!(problem.oldest_revision > Some(begun), "{problem:?}");
                Ok(())
            }
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    // The idle one got news of how far it is, so it goes on at another node as if nothing had happened.
    let told = tokio::time::timeout(heartbeat * 4, idle.next()).await;
    assert!(told.is_err(), "{told:?}");
    assert!(idle.revision() >= Some(begun + BUSY), "{:?} after {begun}", idle.revision());
    for id in cluster.ids() {
        cluster.stop(id).await;
        cluster.bring_up(id).await;
        let put = client.put(format!("idle/{id}"), Value::json_text("1")).await.expect("all is well");
        let event = tokio::time::timeout(PATIENCE, idle.next()).await.expect("in time").expect("it goes on");
        assert_eq!(
            event.event().map(|event| (event.key, event.revision)),
            Some((format!("idle/{id}").into(), put.revision))
        );
    }
    cluster.assert_agreement().await;
}
