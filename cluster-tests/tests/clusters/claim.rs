//! Claims: a job is one worker's, however many ask through whichever node.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cluster_harness::fill::fill;
use cluster_harness::{Cluster, Connection, Request};
use quorate_client::api::{ClaimAnswer, CollectionAnswer, EntryView, ErrorCode, IndexState};
use serde_json::{Value, json};

const JOBS: u64 = 1_000;
const WORKERS: u64 = 32;
const EACH: u64 = 10;

async fn put_rules(cluster: &Cluster, name: &str, rules: Value) -> CollectionAnswer {
    let request = Request::new("PUT", format!("/v1/collections/{name}")).json(rules.to_string());
    request.send(cluster.client_address(1)).await.expect("the node answers").expect_success().json()
}

/// They ask all nodes at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_on_all_nodes_claim_every_due_job_and_none_twice() {
    let mut cluster = Cluster::start().await;
    let declared = put_rules(&cluster, "jobs", json!({"indexes": [["state", "due"]]})).await;
    assert_eq!(declared.indexes[0].state, IndexState::Ready, "an index of nothing is there at once");
    // Half of them are due, in another order than that of their keys.
    let job = |n: u64| json!({"state": "waiting", "due": if n.is_multiple_of(2) { 2 * JOBS - n } else { 9_000_000_000_000_000 }});
    fill(&cluster.client_without(None), 2 * JOBS, |n| format!("jobs/{n:05}"), job).await;

    let begin = Instant::now();
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let to = cluster.client_address(1 + worker % 3);
        workers.spawn(async move {
            let mut connection = Connection::open(to).await.expect("a node takes connections");
            let (mut mine, mut longest) = (Vec::new(), Duration::ZERO);
            for turn in 0.. {
                let body = json!({"prefix": "jobs/", "order_by": ["due"], "limit": EACH, "lock_ms": 30_000,
                    "where": [{"field": "state", "op": "eq", "value": "waiting"}, {"field": "due", "op": "lte", "value": {"now": true}}],
                    "patch": {"state": "running", "worker": worker}, "request_id": format!("worker-{worker}-{turn}")});
                let asked = Instant::now();
                let request = Request::post("/v1/claim", body.to_string());
                let answer: ClaimAnswer = connection.exchange(&request).await.expect("an answer").expect_success().json();
                longest = longest.max(asked.elapsed());
                assert_eq!(answer.index_used.as_deref(), Some(&["state".to_owned(), "due".to_owned()][..]));
                assert!(answer.examined <= EACH, "the index leads to what is due: {answer:?}");
                if answer.entries.is_empty() {
                    return (mine, longest);
                }
                let due = |entry: &EntryView| entry.json::<Value>().expect("a job")["due"].as_u64().expect("a number");
                assert!(answer.entries.is_sorted_by_key(due), "{answer:?}");
                assert!(answer.entries.iter().all(|entry| entry.locked && entry.mod_revision == answer.revision));
                mine.extend(answer.entries.into_iter().map(|entry| (entry.key.to_string(), entry.cas.expect("the key to the lock"))));
            }
            unreachable!("a worker ends when nothing is left")
        });
    }
    let (mut owners, mut longest, mut busy) = (BTreeMap::new(), Duration::ZERO, 0);
    while let Some(done) = workers.join_next().await {
        let (mine, took) = done.expect("a worker gave up");
        busy += u64::from(!mine.is_empty());
        longest = longest.max(took);
        for (key, cas) in mine {
            assert_eq!(owners.insert(key.clone(), cas), None, "{key} was claimed twice");
        }
    }
    let took = begin.elapsed();
    println!("{JOBS} jobs claimed by {busy} of {WORKERS} workers in {took:?}; the longest claim took {longest:?}");
    assert_eq!(owners.len() as u64, JOBS);
    assert!(owners.keys().all(|key| key[5..].parse::<u64>().expect("a number") % 2 == 0), "only what is due");

    // Only who has the key may write it.
    let (key, cas) = owners.pop_first().expect("some");
    let done = |tag: &str| Request::put(&key, r#"{"state":"done"}"#).header("If-Match", format!("\"{tag}\""));
    let shown = Request::get(format!("/v1/kv/{key}")).send(cluster.client_address(3)).await.expect("an answer");
    let shown: EntryView = shown.expect_success().json();
    assert_eq!((shown.locked, shown.cas), (true, None));
    for public in [1, shown.create_revision, shown.mod_revision, shown.mod_revision + 1] {
        let refused = done(&public.to_string()).send(cluster.client_address(1)).await.expect("an answer").problem();
        assert_eq!(refused.code, ErrorCode::CasMismatch, "{public} opens the lock");
    }
    done(&cas.to_string()).send(cluster.client_address(2)).await.expect("an answer").expect_success();
    cluster.assert_agreement().await;
}
