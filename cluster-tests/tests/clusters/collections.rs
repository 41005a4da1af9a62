//! Collections: indexes built beside the traffic, rules and numbers over changes of the leader.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use cluster_harness::fill::fill;
use cluster_harness::load::Load;
use cluster_harness::{Answer, Cluster, Request, Settings, eventually};
use quorate_client::api::{
    ClaimAnswer, CollectionAnswer, EntryView, ErrorCode, IndexState, SequenceAnswer, SequenceNext,
};
use serde_json::{Value, json};

/// No write may wait this long for an index that is being built. In a release build it is a tenth of that.
const STALL_MAX: Duration = Duration::from_secs(1);

/// One node of a cluster, asked over plain HTTP.
struct NodeClient<'a> {
    cluster: &'a Cluster,
    id: u64,
}

impl NodeClient<'_> {
    async fn send(&self, request: Request) -> Answer {
        request.send(self.cluster.client_address(self.id)).await.expect("the node answers")
    }

    async fn put_rules(&self, name: &str, rules: &Value) -> CollectionAnswer {
        let request = Request::new("PUT", format!("/v1/collections/{name}")).json(rules.to_string());
        self.send(request).await.expect_success().json()
    }

    async fn collection(&self, name: &str) -> CollectionAnswer {
        self.send(Request::get(format!("/v1/collections/{name}"))).await.expect_success().json()
    }

    async fn document(&self, key: &str) -> Value {
        let entry: EntryView = self.send(Request::get(format!("/v1/kv/{key}"))).await.expect_success().json();
        entry.json().expect("a document")
    }
}

fn order_rules() -> Value {
    json!({
        "fields": {
            "total": {"type": "long"}, "paid": {"type": "boolean"}, "rate": {"type": "double"}, "due": {"type": "datetime"},
            "status": {"type": "varchar", "max": 8, "default": "new"}, "number": {"type": "long", "sequence": "orders"},
            "updated": {"type": "datetime", "auto_update": true},
        },
        "required": ["total"],
    })
}

fn is_building(shown: &CollectionAnswer) -> bool {
    shown.indexes.iter().any(|index| index.state == IndexState::Building)
}

async fn wait_until_built(cluster: &Cluster, name: &str, within: Duration) -> CollectionAnswer {
    eventually("all indexes are built", within, async || {
        let shown = NodeClient { cluster, id: 1 }.collection(name).await;
        if is_building(&shown) { Err(format!("{:?}", shown.indexes)) } else { Ok(shown) }
    })
    .await
}

pub async fn an_index_over_10000_documents_is_built_while_writes_go_on() {
    const DOCUMENTS: u64 = 10_000;
    let mut cluster = Cluster::start_with(Settings::default().alone()).await;
    let document = |n: u64| json!({"group": n % 100, "n": n, "email": if n == 9_000 { 8_000 } else { n }});
    fill(&cluster.client_without(None), DOCUMENTS, |n| format!("many/{n:05}"), document).await;
    let load = Load::start(&cluster, 4, "beside");
    load.wait_for_more(50).await;
    load.reset_longest();
    load.wait_for_more(200).await;
    let quiet = load.longest();

    load.reset_longest();
    let begin = Instant::now();
    let rules = json!({"indexes": [["group", "n"], {"fields": ["email"], "unique": true}]});
    let via = |id| NodeClient { cluster: &cluster, id };
    let declared = via(2).put_rules("many", &rules).await;
    assert!(declared.indexes.iter().all(|index| index.state == IndexState::Building), "{:?}", declared.indexes);
    let client = cluster.client_without(None);
    let (mut written, mut longest) = (0_u64, Duration::ZERO);
    while is_building(&via(3).collection("many").await) {
        // Into the collection itself, before and behind the place where the building is.
        let key = format!("many/{:05}", written * 7_919 % DOCUMENTS);
        let put = Instant::now();
        let value = quorate_client::Value::json(&json!({"group": 100, "n": written})).expect("JSON");
        client.put(key, value).await.expect("a put");
        longest = longest.max(put.elapsed());
        written += 1;
        assert!(begin.elapsed() < Duration::from_secs(60), "it is not built after a minute");
    }
    let took = begin.elapsed();
    let beside = load.longest();
    println!("{DOCUMENTS} documents into two indexes in {took:?}; {written} writes into the collection meanwhile");
    println!(
        "longest write: {quiet:?} before, {beside:?} beside and {longest:?} within the collection while it was built"
    );
    assert!(beside.max(longest) < STALL_MAX, "a write waited {:?}", beside.max(longest));
    load.finish().await;

    let built = wait_until_built(&cluster, "many", Duration::from_secs(60)).await;
    assert_eq!(built.indexes[0].state, IndexState::Ready);
    // Two have the same email, unless a write has taken it from one of them meanwhile.
    let twins = [8_000, 9_000].map(|n| format!("many/{n:05}"));
    let via = via(1);
    let both = via.document(&twins[0]).await["email"] == via.document(&twins[1]).await["email"];
    let unique = &built.indexes[1];
    let expected = if both { IndexState::Failed } else { IndexState::Ready };
    assert_eq!(unique.state, expected, "{unique:?}");
    if both {
        assert!(
            twins.iter().all(|key| unique.detail.as_ref().is_some_and(|detail| detail.contains(key))),
            "{unique:?}"
        );
    }
    let body = json!({"prefix": "many/", "limit": 100, "where": [{"field": "group", "op": "eq", "value": 100}]});
    let claimed: ClaimAnswer = via.send(Request::post("/v1/claim", body.to_string())).await.expect_success().json();
    assert_eq!(claimed.index_used.as_deref(), Some(&["group".to_owned(), "n".to_owned()][..]));
    assert_eq!(
        claimed.count, claimed.examined,
        "the index holds what was written while it was built, and nothing else"
    );
    assert_eq!(claimed.count, written.min(100));
    cluster.assert_agreement().await;
}

/// Faults: the leader is killed, and then all nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_have_no_gaps_and_rules_survive_the_leader_and_a_restart_of_all() {
    const EACH: u64 = 25;
    let mut cluster = Cluster::start().await;
    NodeClient { cluster: &cluster, id: 1 }.put_rules("orders", &order_rules()).await;
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..8_u64 {
        let to = cluster.client_address(1 + client % 3);
        clients.spawn(async move {
            for n in 0..EACH {
                let key = format!("orders/{client}-{n}");
                // One in five is refused, and draws no number.
                if n % 5 == 0 {
                    let refused = Request::put(&key, r#"{"total":"x"}"#).send(to).await.expect("an answer");
                    assert_eq!(refused.problem().code, ErrorCode::InvalidDocument);
                }
                Request::put(&key, r#"{"total":1}"#).send(to).await.expect("an answer").expect_success();
            }
        });
    }
    clients.join_all().await;
    let mut numbers = BTreeSet::new();
    for client in 0..8 {
        for n in 0..EACH {
            let number =
                NodeClient { cluster: &cluster, id: 2 }.document(&format!("orders/{client}-{n}")).await["number"]
                    .clone();
            assert!(numbers.insert(number.as_u64().expect("a number")), "{number} was given twice");
        }
    }
    assert_eq!((numbers.first(), numbers.last(), numbers.len() as u64), (Some(&1), Some(&(8 * EACH)), 8 * EACH));

    let draw = Request::post("/v1/sequences/orders", r#"{"count":10,"request_id":"draw-1"}"#);
    let drawn: SequenceNext = NodeClient { cluster: &cluster, id: 3 }.send(draw.clone()).await.expect_success().json();
    assert_eq!((drawn.first, drawn.last), (8 * EACH + 1, 8 * EACH + 10));
    let before = NodeClient { cluster: &cluster, id: 1 }.collection("orders").await;
    for restart in ["the leader", "all"] {
        if restart == "all" {
            cluster.kill_all().await;
            cluster.start_all();
            cluster.wait_all_ready().await;
        } else {
            let leader = cluster.leader().await;
            cluster.kill(leader).await;
            cluster.leader().await;
            cluster.bring_up(leader).await;
        }
        for id in cluster.live() {
            let via = NodeClient { cluster: &cluster, id };
            let refused = via.send(Request::put("orders/after", r#"{"total":"x"}"#)).await.problem();
            assert_eq!(refused.code, ErrorCode::InvalidDocument, "node {id} after {restart}");
            let again: SequenceNext = via.send(draw.clone()).await.expect_success().json();
            assert_eq!(again, SequenceNext { replayed: true, ..drawn.clone() });
            let shown = via.collection("orders").await;
            assert_eq!((&shown.rules, &shown.cas), (&before.rules, &before.cas));
            let last: SequenceAnswer = via.send(Request::get("/v1/sequences/orders")).await.expect_success().json();
            assert_eq!(last.value, drawn.last, "nothing was drawn meanwhile");
        }
    }
    cluster.assert_agreement().await;
}
