//! Finds show one moment, the same on every node.

use cluster_harness::load::Load;
use cluster_harness::{Cluster, Request};
use quorate_client::api::{EntryView, FindAnswer, Operator};
use serde_json::json;

const ENTRIES: u64 = 60;

/// All pages of a query, from one node.
async fn pages(cluster: &Cluster, id: u64, mut body: serde_json::Value) -> Vec<EntryView> {
    let mut items = Vec::new();
    loop {
        let request = Request::post("/v1/find", body.to_string());
        let page: FindAnswer = request.send(cluster.client_address(id)).await.unwrap().expect_success().json();
        assert_eq!(page.revision.to_string(), body["revision"]);
        items.extend(page.entries);
        match page.cursor {
            Some(cursor) => body["cursor"] = json!(cursor),
            None => return items,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_give_the_same_pages_of_a_revision_while_writes_go_on() {
    let mut cluster = Cluster::start().await;
    let client = cluster.client_without(None);
    let put = async |n: u64, round: u64| {
        let value = json!({"n": n, "group": n % 7, "round": round});
        client.put(format!("found/{n:03}"), quorate_client::Value::json(&value).unwrap()).await.unwrap();
    };
    for n in 0..ENTRIES {
        put(n, 0).await;
    }
    let load = Load::start(&cluster, 4, "find");
    for round in 1..=5 {
        // Half of them are of this round, so a page of another moment would show.
        for n in (round % 2..ENTRIES).step_by(2) {
            put(n, round).await;
        }
        let fresh = client.find("found/").filter("round", Operator::Eq, round);
        assert_eq!(fresh.count().await.unwrap().count, ENTRIES / 2);
        let revision = fresh.page().await.unwrap().revision;
        let body = json!({
            "prefix": "found/", "where": [{"field": "n", "op": "gte", "value": 10}], "order_by": ["-group", "round"],
            "limit": 7, "revision": revision.to_string(),
        });
        let nodes = async {
            let mut of_all = Vec::new();
            for id in cluster.ids() {
                of_all.push(pages(&cluster, id, body.clone()).await);
            }
            of_all
        };
        let overwrite = async {
            for n in 0..ENTRIES {
                put(n, 100 + round).await;
            }
        };
        let (of_all, ()) = tokio::join!(nodes, overwrite);
        assert_eq!(of_all[0].len() as u64, ENTRIES - 10);
        for others in &of_all[1..] {
            assert_eq!(*others, of_all[0], "round {round}, revision {revision}");
        }
        let newest = of_all[0].iter().filter(|entry| entry.json::<serde_json::Value>().unwrap()["round"] == round);
        assert_eq!(newest.count() as u64, (ENTRIES - 10) / 2);
        let of_client = client.find("found/").revision(revision).limit(9).keys_only();
        let (mut page, mut count) = (of_client.page().await.unwrap(), 0);
        while let Some(cursor) = page.cursor {
            count += page.entries.len() as u64;
            page = of_client.page_after(&cursor).await.unwrap();
        }
        assert_eq!(count + page.entries.len() as u64, ENTRIES);
    }
    load.finish().await;
    cluster.assert_agreement().await;
}
