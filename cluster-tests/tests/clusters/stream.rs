//! Operation streams through real nodes.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use cluster_harness::{Cluster, Request};
use quorate_client::api::{AnswerLine, EntryView, WriteAnswer};
use serde_json::json;

const KEYS: u64 = 200;

/// Sends all operations in one stream, in which each is named by its place; gives the answers by it.
async fn stream(to: SocketAddr, ops: impl IntoIterator<Item = serde_json::Value>) -> BTreeMap<u64, AnswerLine> {
    let lines = ops.into_iter().zip(0u64..).map(|(op, n)| format!("{}\n", json!({"n": n, "op": op})));
    let body = lines.collect::<String>().into_bytes();
    let request = Request::new("POST", "/v1/ops").header("Content-Type", "application/x-ndjson").body(body);
    let answer = request.send(to).await.expect("the node answers").expect_success();
    let lines = answer.text();
    let answers =
        lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    answers.map(|line: AnswerLine| (line.n.expect("each line has its number"), line)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_same_inserts_streamed_to_all_nodes_one_each_wins() {
    let mut cluster = Cluster::start().await;
    let insert = |by: u64, n: u64| json!({"op": "insert", "key": format!("stream/{n}"), "value": {"by": by}, "request_id": format!("by-{by}-{n}")});
    let at = |id: u64| cluster.client_address(id);
    let inserts = |by: u64| stream(at(by), (0..KEYS).map(move |n| insert(by, n)));
    let (one, two, three) = tokio::join!(inserts(1), inserts(2), inserts(3));
    let of_all = [(1, one), (2, two), (3, three)];
    let follower = cluster.follower().await;
    let read = stream(at(follower), (0..KEYS).map(|n| json!({"op": "get", "key": format!("stream/{n}")}))).await;
    for n in 0..KEYS {
        let winners: Vec<_> =
            of_all.iter().filter(|(_, answers)| answers[&n].status == 201).map(|(by, _)| *by).collect();
        assert!(of_all.iter().all(|(_, answers)| [201, 409].contains(&answers[&n].status)), "{n}: {of_all:?}");
        assert_eq!(winners.len(), 1, "key {n} was created by {winners:?}");
        let entry: EntryView = serde_json::from_str(read[&n].answer.0.get()).expect("an entry");
        assert_eq!(entry.value.expect("JSON").0.get(), format!("{{\"by\":{}}}", winners[0]), "key {n}");
    }
    // The same lines again, elsewhere: the kept answers come back.
    let (by, first) = &of_all[0];
    let again = stream(at(follower), (0..KEYS).map(|n| insert(*by, n))).await;
    for n in (0..KEYS).filter(|n| first[n].status == 201) {
        let replayed: WriteAnswer = serde_json::from_str(again[&n].answer.0.get()).expect("an answer to a write");
        let written: WriteAnswer = serde_json::from_str(first[&n].answer.0.get()).expect("an answer to a write");
        assert_eq!(replayed, WriteAnswer { replayed: true, ..written }, "key {n}");
    }
    cluster.assert_agreement().await;
}
