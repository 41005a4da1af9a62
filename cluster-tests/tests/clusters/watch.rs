//! Watches on real nodes: over killed leaders, restarts, compaction and readers that do not read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cluster_harness::cluster::PATIENCE;
use cluster_harness::feed::{Acknowledged, Feed};
use cluster_harness::seed::seeded;
use cluster_harness::{Cluster, Connection, Request, Settings, eventually};
use futures::TryStreamExt;
use quorate_client::api::{ErrorCode, ListAnswer, WriteAnswer};
use quorate_client::{Client, Error, Op, Value, Watch, Watched};
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::task::JoinHandle;

const WRITERS: usize = 4;
const WATCHES: usize = 3;

fn client_of(cluster: &Cluster, without: Option<u64>) -> Client {
    cluster.client_without(without)
}

/// Writes, removes and transactions until told to stop; gives what it was told of those that put something.
async fn write_until(stop: Arc<AtomicBool>, client: Client, writer: usize, mut rng: StdRng) -> Vec<Acknowledged> {
    let mut told = Vec::new();
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
            let done = txn.await.unwrap_or_else(|error| panic!("writer {writer} gave up: {error}"));
            told.push(Acknowledged { revision: done.revision, keys, value });
        } else if rng.random_range(0..5) == 0 {
            match client.remove(&keys[0]).await {
                Ok(_) => {}
                Err(Error::Rejected(problem)) if problem.code == ErrorCode::NotFound => {}
                Err(error) => panic!("writer {writer} gave up: {error}"),
            }
        } else {
            let written: WriteAnswer = client
                .put(&keys[0], Value::json_text(value.clone()))
                .await
                .unwrap_or_else(|error| panic!("writer {writer} gave up: {error}"));
            told.push(Acknowledged { revision: written.revision, keys, value });
        }
    }
    told
}

/// Follows a watch until it has seen revision `last`.
fn follow(mut watch: Watch, last: Arc<AtomicU64>) -> JoinHandle<Feed> {
    tokio::spawn(async move {
        let mut feed = Feed::default();
        while watch.revision().is_none_or(|revision| revision < last.load(Ordering::Relaxed))
            || !feed_is_up(&feed, &watch)
        {
            match tokio::time::timeout(Duration::from_millis(200), watch.next()).await {
                Err(_nothing_new) => {}
                Ok(Ok(Watched::Event(event))) => feed.push(*event),
                Ok(Ok(other)) => panic!("unexpected: {other:?}"),
                Ok(Err(error)) => panic!("a watch gave up: {error}"),
            }
        }
        feed
    })
}

/// Whether all that came whole was taken.
fn feed_is_up(feed: &Feed, watch: &Watch) -> bool {
    feed.events().last().is_some_and(|event| Some(event.revision) == watch.revision())
}

async fn revision(cluster: &Cluster) -> u64 {
    let node = cluster.leader().await;
    let answer = Request::get("/v1/kv?limit=1&prefix=none").send(cluster.client_address(node)).await;
    answer.expect("a live node answers").expect_success().json::<ListAnswer>().revision
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_see_each_revision_once_and_in_order_whatever_happens_to_nodes() {
    let mut cluster = Cluster::start().await;
    let mut rng = seeded();
    let start = revision(&cluster).await;
    let last = Arc::new(AtomicU64::new(u64::MAX));
    let mut watches = Vec::new();
    for number in 0..WATCHES {
        let client = client_of(&cluster, Some(cluster.ids()[number % 3]));
        let setup = client.watch("").from(start + 1).heartbeat(Duration::from_millis(500));
        watches.push(follow(setup.start().await.expect("it begins"), Arc::clone(&last)));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let client = client_of(&cluster, Some(cluster.ids()[writer % 3]));
            let rng = rand::SeedableRng::seed_from_u64(rng.random());
            tokio::spawn(write_until(Arc::clone(&stop), client, writer, rng))
        })
        .collect();
    for round in 0..3 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        let leader = cluster.leader().await;
        cluster.kill(leader).await;
        cluster.leader().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        cluster.bring_up(leader).await;
        let node = cluster.ids()[round % 3];
        cluster.stop(node).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        cluster.bring_up(node).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut told = Vec::new();
    for writer in writers {
        told.extend(writer.await.expect("a writer ends"));
    }
    // What takes the watches to their end.
    let client = client_of(&cluster, None);
    last.store(client.put("w/end", Value::json_text("1")).await.expect("all is well").revision, Ordering::Relaxed);
    let last = last.load(Ordering::Relaxed);
    for watch in watches {
        let feed = tokio::time::timeout(PATIENCE, watch).await.expect("it gets there").expect("it does not panic");
        let faults = [feed.faults(start, last), feed.faults_beside(&told)].concat();
        assert!(faults.is_empty(), "{} faults in {} events:\n{}", faults.len(), feed.events().len(), faults.join("\n"));
        println!("{} events of {} revisions, {} writes acknowledged", feed.events().len(), last - start, told.len());
    }
    cluster.assert_agreement().await;
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
        let mut feed = Feed::default();
        let synced = loop {
            match watch.next().await.expect("nothing breaks here") {
                Watched::Event(event) => {
                    assert!(event.initial);
                    feed.push(*event);
                }
                Watched::Synced(revision) => break revision,
                other => panic!("nothing breaks here, but: {other:?}"),
            }
        };
        let listed = client.list("w/").limit(1_000).revision(synced).page().await.expect("it is not compacted");
        let listed: BTreeMap<_, _> =
            listed.entries.into_iter().map(|entry| (entry.key.to_string(), entry.version)).collect();
        assert_eq!(feed.outcome(), listed, "at revision {synced}");
        watches.push((watch, feed));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("a writer ends");
    }
    let end = client.put("w/end", Value::json_text("1")).await.expect("all is well").revision;
    let listed = client.list("w/").limit(1_000).revision(end).page().await.expect("it is not compacted");
    let listed: BTreeMap<_, _> =
        listed.entries.into_iter().map(|entry| (entry.key.to_string(), entry.version)).collect();
    for (mut watch, mut feed) in watches {
        while feed.events().last().is_none_or(|event| event.key != "w/end") {
            let watched =
                tokio::time::timeout(PATIENCE, watch.next()).await.expect("in time").expect("nothing breaks here");
            feed.push(watched.event().expect("it is synced"));
        }
        assert_eq!(feed.outcome(), listed);
    }
    cluster.assert_agreement().await;
}

/// The keys of events until revision `last` was shown, each as often as it was.
async fn keys_until(mut watch: Watch, last: u64) -> Vec<String> {
    let mut keys = Vec::new();
    let until = Instant::now() + PATIENCE;
    while watch.revision().is_none_or(|revision| revision < last) || watch.has_more() {
        assert!(Instant::now() < until, "{watch:?} does not reach revision {last}");
        // A sign of life moves the revision, and is no event.
        if let Ok(watched) = tokio::time::timeout(Duration::from_millis(50), watch.next()).await {
            keys.extend(watched.expect("nothing breaks").event().map(|event| event.key.to_string()));
        }
    }
    keys
}

/// Every node has the same parts, also one that has just started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_share_a_prefix_watch_and_list_each_its_part() {
    const PARTS: u32 = 3;
    let mut cluster = Cluster::start().await;
    let client = client_of(&cluster, None);
    let key_of = |number: usize| format!("p/{number}");
    let put = async |number| client.put(key_of(number), Value::json_text("1")).await.expect("it is written").revision;
    let first = put(0).await;
    for number in 1..30 {
        put(number).await;
    }
    let setup = |client: &Client, part| client.watch("p/").part(part, PARTS).heartbeat(Duration::from_millis(500));
    let mut watches = Vec::new();
    for part in 0..PARTS {
        watches.push(setup(&client, part).initial().start().await.expect("it begins"));
    }
    // One transaction over all parts, and removals.
    let txn = (0..30).fold(client.txn(), |txn, number| txn.then(Op::put(key_of(number), Value::json_text("2"))));
    txn.await.expect("it is carried out");
    for number in 0..10 {
        client.remove(key_of(number)).await.expect("it is removed");
    }
    let last = put(29).await;

    let mut shown: BTreeMap<String, (u32, usize)> = BTreeMap::new();
    for (part, watch) in (0..).zip(watches) {
        for key in keys_until(watch, last).await {
            let (of, count) = shown.entry(key).or_insert((part, 0));
            assert_eq!(*of, part, "a key is in one part");
            *count += 1;
        }
    }
    let counts: BTreeMap<_, _> = shown.iter().map(|(key, (_, count))| (key.clone(), *count)).collect();
    let expected = |number: usize| 2 + usize::from(number < 10) + usize::from(number == 29);
    assert_eq!(counts, (0..30).map(|number| (key_of(number), expected(number))).collect());
    let parts: std::collections::BTreeSet<_> = shown.values().map(|(part, _)| *part).collect();
    assert_eq!(parts.len(), PARTS as usize);

    // A node that has just started reads what is past from its disk, and lists agree on the parts.
    cluster.kill(1).await;
    cluster.bring_up(1).await;
    let started = client_of(&cluster, None);
    for part in 0..PARTS {
        let watch = setup(&started, part).from(first).start().await.expect("it begins");
        let mut seen = BTreeMap::new();
        for key in keys_until(watch, last).await {
            *seen.entry(key).or_insert(0) += 1;
        }
        let of_part = shown.iter().filter(|(_, (of, _))| *of == part);
        assert_eq!(seen, of_part.map(|(key, (_, count))| (key.clone(), *count)).collect());
        let pages: Vec<ListAnswer> =
            started.list("p/").part(part, PARTS).limit(4).pages().try_collect().await.expect("it is listed");
        let listed: Vec<_> = pages.into_iter().flat_map(|page| page.entries).map(|entry| entry.key).collect();
        let left = shown.iter().filter(|(key, (of, _))| *of == part && !(0..10).any(|gone| **key == key_of(gone)));
        assert_eq!(listed, left.map(|(key, _)| key.clone()).collect::<Vec<_>>());
    }
    for query in ["part=3&of=3", "part=0", "of=2", "count_only&part=0&of=2"] {
        let refused = Request::get(format!("/v1/kv?prefix=p/&{query}")).send(cluster.client_address(1)).await;
        assert_eq!(refused.expect("an answer").status, 400, "{query}");
    }
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

/// Fault: a reader at a follower takes nothing for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_does_not_read_gets_all_of_it_later() {
    let mut cluster = Cluster::start().await;
    let client = client_of(&cluster, None);
    let start = revision(&cluster).await;
    let node = cluster.follower().await;
    let mut slow = Connection::open(cluster.client_address(node)).await.expect("it takes connections");
    slow.send(&Request::get(format!("/v1/watch?prefix=&from={}", start + 1)).to_bytes()).await.expect("it is sent");
    let value = format!("\"{}\"", "x".repeat(200_000));
    for n in 0..150 {
        client.put(format!("k/{}", n % 5), Value::json_text(value.clone())).await.expect("all is well");
    }
    // More than sockets and the node's memory for it hold, so it is read from disk now.
    cluster.wait_all_ready().await;
    let stopping = tokio::spawn(async move {
        let answer = slow.answer(false).await;
        (slow, answer)
    });
    eventually("all of it was sent", PATIENCE, async || {
        let text = Request::get("/metrics")
            .send(cluster.client_address(node))
            .await
            .map_err(|error| error.to_string())?
            .text();
        let count = |source: &str| {
            let name = format!("quorate_watch_events_total{{source=\"{source}\"}} ");
            text.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok()).expect("it is counted")
        };
        if count("disk") + count("memory") >= 150 { Ok(()) } else { Err("not yet".into()) }
    })
    .await;
    // The node ends the stream where it stops, so that there is a whole answer.
    cluster.stop(node).await;
    let (_, answer) = stopping.await.expect("it does not panic");
    let text = answer.expect("a whole answer").text();
    let revisions: Vec<u64> =
        text.lines().filter_map(|line| line.strip_prefix("id: ")?.strip_suffix(".0")?.parse().ok()).collect();
    assert_eq!(revisions, (start + 1..=start + 150).collect::<Vec<_>>());
    assert!(text.contains("\"code\":\"stopping\""), "{}", &text[text.len() - 500..]);
    cluster.bring_up(node).await;
    cluster.assert_agreement().await;
}
