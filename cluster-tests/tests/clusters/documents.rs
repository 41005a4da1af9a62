//! The time to live of documents that change, and their locks, on every node of a real cluster.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cluster_harness::{Answer, Cluster, Request};
use quorate_client::Updated;
use serde_json::{Value, json};

async fn op(to: SocketAddr, op: Value) -> Answer {
    let body = op.to_string().into_bytes();
    let request = Request::new("POST", "/v1/ops").header("Content-Type", "application/json").body(body);
    request.send(to).await.expect("the node answers")
}

fn body(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).expect("JSON")
}

/// Each update that gives the time back that it took itself keeps an entry alive for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_expires_in_its_time_however_often_it_is_changed() {
    const TTL: Duration = Duration::from_millis(1_500);
    let cluster = Cluster::start().await;
    let client = cluster.client_without(None);
    client.put_json("hits/1", &json!(0)).ttl(TTL).await.expect("it is written");
    let begun = Instant::now();
    let mut updates = 0;
    loop {
        let slow = |hits: Option<u64>| {
            std::thread::sleep(Duration::from_millis(100));
            hits.map(|hits| hits + 1)
        };
        match client.update("hits/1", slow).await.expect("nobody else writes it") {
            Updated::Written { .. } => updates += 1,
            Updated::Unchanged => break,
        }
        assert!(begun.elapsed() < 4 * TTL, "it lives on, after {updates} updates");
    }
    assert!(updates > 3 && begun.elapsed() >= TTL, "{updates} updates in {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_document_takes_only_writes_with_the_key() {
    let mut cluster = Cluster::start().await;
    for id in [1, 2, 3] {
        let (to, key) = (cluster.client_address(id), format!("doc/{id}"));
        let ask = |kind: &str, rest: Value| {
            let mut wanted = json!({"op": kind, "key": key});
            wanted.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
            op(to, wanted)
        };
        let created = body(&ask("insert", json!({"value": {"n": 1}})).await);
        let locked = body(&ask("lock", json!({"lock_ms": 0, "prev": true})).await);
        let key_to_it = locked["cas"].clone();
        assert_ne!(key_to_it, created["cas"]);
        assert_eq!(locked["prev"]["value"], json!({"n": 1}));
        assert!((14_000..=15_000).contains(&locked["lock_ms"].as_u64().expect("a time")), "{locked}");

        let got = body(&ask("get", json!({})).await);
        assert_eq!((&got["cas"], &got["locked"], &got["value"]["n"]), (&Value::Null, &json!(true), &json!(1)));
        for (kind, rest, status, code) in [
            ("lock", json!({}), 423, "locked"),
            ("unlock", json!({"cas": created["cas"]}), 423, "locked"),
            ("extend", json!({"cas": created["cas"]}), 423, "locked"),
            ("upsert", json!({"value": 2}), 412, "cas_mismatch"),
            ("update", json!({"patch": {}, "cas": created["cas"]}), 412, "cas_mismatch"),
            ("remove", json!({}), 412, "cas_mismatch"),
            ("unlock", json!({}), 400, "invalid_argument"),
            ("lock", json!({"lock_ms": -1}), 400, "invalid_argument"),
            ("get", json!({"lock_ms": 5}), 400, "invalid_argument"),
        ] {
            let answer = ask(kind, rest.clone()).await;
            let problem = body(&answer);
            assert_eq!((answer.status, &problem["code"]), (status, &json!(code)), "{kind} {rest}");
            let text = problem.to_string();
            assert!(
                !text.contains(&format!("\"cas\":\"{}\"", key_to_it.as_str().expect("a string"))),
                "the key is shown: {text}"
            );
        }
        // On the other nodes too, and by the routes of entries.
        let other = cluster.client_address(id % 3 + 1);
        let put =
            Request::new("PUT", format!("/v1/kv/{key}")).header("Content-Type", "application/json").body(b"2".to_vec());
        assert_eq!(put.send(other).await.expect("an answer").status, 412);
        assert_eq!(ask("extend", json!({"cas": key_to_it, "lock_ms": 20_000})).await.status, 200);
        let etag = format!("\"{}\"", key_to_it.as_str().expect("a string"));
        assert_eq!(put.header("If-Match", &etag).send(other).await.expect("an answer").status, 200);
        assert_eq!(body(&ask("unlock", json!({"cas": key_to_it})).await)["code"], "not_lock_holder");
        assert!(body(&ask("get", json!({})).await)["cas"].is_string());
        assert_eq!(body(&ask("lock", json!({})).await)["version"], 2);
        let fresh = format!("doc/{id}/fresh");
        op(to, json!({"op": "insert", "key": fresh, "value": {"n": 1}})).await;
        let taken = body(&op(to, json!({"op": "get_and_lock", "key": fresh, "lock_ms": 30_001})).await);
        assert_eq!(
            (&taken["value"], &taken["locked"], &taken["lock_ms"]),
            (&json!({"n": 1}), &json!(true), &json!(15_000))
        );
        assert_eq!(op(to, json!({"op": "get_and_lock", "key": fresh})).await.status, 423);
        let write = json!({"op": "replace", "key": fresh, "value": {"n": 2}, "cas": taken["cas"]});
        assert_eq!(op(to, write).await.status, 200);
        let touched = body(&op(to, json!({"op": "get_and_touch", "key": format!("doc/{id}/none"), "ttl_ms": 5})).await);
        assert_eq!(touched["code"], "not_found");
    }
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_outlives_the_leader_and_ends_neither_early_nor_never() {
    const LOCK: Duration = Duration::from_secs(4);
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let survivor = cluster.client_address(if leader == 1 { 2 } else { 1 });
    assert_eq!(op(survivor, json!({"op": "insert", "key": "doc", "value": 1})).await.status, 201);
    // Before the lock began: it cannot have begun earlier.
    let asked = Instant::now();
    assert_eq!(op(survivor, json!({"op": "lock", "key": "doc", "lock_ms": LOCK.as_millis() as u64})).await.status, 200);
    cluster.kill(leader).await;
    let mut refused = 0;
    loop {
        let answer = op(survivor, json!({"op": "upsert", "key": "doc", "value": 2})).await;
        match answer.status {
            200 => break,
            412 => refused += 1,
            // No leader yet.
            503 | 504 => {}
            other => panic!("{other}: {}", answer.text()),
        }
        assert!(asked.elapsed() < LOCK + Duration::from_secs(10), "the lock never ends");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(asked.elapsed() >= LOCK, "the lock ended after {:?}", asked.elapsed());
    assert!(refused > 0, "the lock was never seen after the leader was killed");
    cluster.start_node(leader);
    cluster.assert_agreement().await;
}
