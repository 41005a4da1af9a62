//! What the Rust client does beside calls: mirrors, members that it finds, nodes for tests.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster_harness::{Cluster, PATIENCE, eventually};
use quorate_client::testing::TestCluster;
use quorate_client::{Client, Mirror, Op};
use serde_json::{Value, json};

use crate::guide::built;

/// What a mirror shows and what a listing of the cluster does, by key.
async fn both(client: &Client, mirror: &Mirror) -> [BTreeMap<String, u64>; 2] {
    let page = client.list(mirror.prefix()).limit(1_000).page().await.expect("a page");
    let listed = page.entries.into_iter().map(|entry| (entry.key.to_string(), entry.mod_revision)).collect();
    let shown = mirror.list("").iter().map(|entry| (entry.key.to_string(), entry.mod_revision)).collect();
    [shown, listed]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mirror_is_as_fresh_as_a_linearizable_read_over_the_loss_of_a_leader() {
    let mut cluster = Cluster::start().await;
    let client = cluster.client_without(None);
    for n in 0..20 {
        client.put_json(format!("m/{n}"), &json!({"n": n % 3})).await.expect("written");
    }
    let mirror = client.mirror("m/").index_by("n").start().await.expect("filled");
    assert_eq!((mirror.len(), mirror.find_by("n", &json!(2)).len()), (20, 6));
    for round in 0..3_u64 {
        let written = client.put_json("m/round", &json!({"n": 100 + round})).await.expect("written");
        client.put_json("elsewhere", &round).await.expect("written");
        assert!(mirror.sync().await.expect("in time") > written.revision, "of all that was written before");
        assert_eq!(mirror.find_by("n", &json!(100 + round)).len(), 1);
        let txn = client
            .txn()
            .then(Op::put_json("m/a", &round))
            .then(Op::put_json("m/b", &round))
            .then(Op::remove("m/round"));
        let done = txn.await.expect("it is taken");
        mirror.wait_for(done.revision).await.expect("in time");
        assert!(mirror.get("m/round").is_none());
        let leader = cluster.leader().await;
        cluster.kill(leader).await;
        client.put_json(format!("m/after/{round}"), &json!({"n": round})).await.expect("another one leads");
        mirror.sync().await.expect("another node tells");
        let [shown, listed] = both(&client, &mirror).await;
        assert_eq!(shown, listed, "round {round}");
        cluster.bring_up(leader).await;
    }
    assert!(mirror.staleness() < PATIENCE && mirror.trouble().is_none());
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_one_node_finds_the_others_and_outlives_it() {
    let mut cluster = Cluster::start().await;
    let given = cluster.ids()[0];
    let client = Client::new(cluster.client_address(given).to_string()).expect("an endpoint");
    let stays = Client::builder().endpoints(cluster.client_address(given).to_string()).discover_members(false);
    let stays = stays.timeout(Duration::from_secs(2)).build().expect("an endpoint");
    eventually("the members are discovered", PATIENCE, async || {
        client.put_json("k", &1).await.map_err(|error| error.to_string())?;
        let known = client.known_endpoints().len();
        if known == 3 { Ok(()) } else { Err(format!("{known} nodes")) }
    })
    .await;
    assert_eq!(client.endpoints().len(), 1, "what was given stays what it is");
    stays.put_json("k", &1).await.expect("written");
    cluster.kill(given).await;
    client.put_json("k", &2).await.expect("the others take it");
    assert_eq!(client.get_json::<u64>("k").await.expect("read").expect("is there").content, 2);
    stays.get("k").await.expect_err("it knows nobody else");
    cluster.bring_up(given).await;
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_for_tests_starts_loses_a_node_and_is_gone_when_dropped() {
    let program = built("quorate-node");
    let mut cluster = TestCluster::start_program(&program, 3).await.expect("it starts");
    let client = cluster.client();
    client.put_json("k", &json!({"n": 1})).await.expect("written");
    cluster.kill(0);
    client.update("k", |_: Option<Value>| Some(json!({"n": 2}))).await.expect("two are enough");
    cluster.restart(0).await.expect("it comes back");
    drop(cluster);
    let gone =
        Client::builder().endpoints(client.endpoints().collect::<Vec<_>>().join(",")).timeout(Duration::from_secs(1));
    gone.build().expect("endpoints").get("k").await.expect_err("nobody is there");

    let alone = TestCluster::start_program(&program, 1).await.expect("it starts");
    alone.client().put_json("k", &1).await.expect("written");
    let missing = TestCluster::start_program("/no/such/node".as_ref(), 1).await.expect_err("there is no program");
    assert!(missing.to_string().contains("QUORATE_NODE"), "{missing}");
}
