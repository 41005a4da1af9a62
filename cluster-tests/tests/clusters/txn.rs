//! Transactions: all of a branch or nothing of it, at one revision, on every node.

use std::net::SocketAddr;

use cluster_harness::{Answer, Cluster, Request, seed};
use quorate_client::api::{EntryView, ErrorCode, TxnAnswer, TxnResult};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

async fn send(to: SocketAddr, body: &Value) -> Answer {
    Request::post("/v1/txn", body.to_string()).send(to).await.expect("the node answers")
}

async fn txn(to: SocketAddr, body: &Value) -> TxnAnswer {
    send(to, body).await.expect_success().json()
}

async fn get(to: SocketAddr, key: &str) -> Option<EntryView> {
    let answer = Request::get(format!("/v1/kv/{key}")).send(to).await.expect("the node answers");
    (answer.status != 404).then(|| answer.expect_success().json())
}

fn shown(result: &TxnResult) -> Option<Value> {
    let TxnResult::Read(read) = result else { panic!("not a read: {result:?}") };
    let entry = read.entry.as_ref()?;
    Some(serde_json::from_str(entry.value.as_ref().expect("JSON").0.get()).expect("JSON"))
}

/// Faults: another node is asked again, and the leader is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_shows_what_was_read_the_first_time() {
    let mut cluster = Cluster::start().await;
    let to = cluster.client_address(1);
    Request::put("read", "{\"n\":1}").send(to).await.expect("an answer").expect_success();
    let body = json!({
        "if": [{"key": "read", "if": [{"field": "n", "op": "eq", "value": 1}]}],
        "then": [{"op": "get", "key": "read"}, {"op": "upsert", "key": "written", "value": 1}],
        "request_id": "txn-1",
    });
    let first = txn(to, &body).await;
    assert!(first.succeeded && !first.replayed);
    Request::put("read", "{\"n\":2}").send(to).await.expect("an answer").expect_success();
    Request::new("DELETE", "/v1/kv/written").send(to).await.expect("an answer").expect_success();
    let kept = TxnAnswer { replayed: true, ..first };
    for id in cluster.ids() {
        assert_eq!(txn(cluster.client_address(id), &body).await, kept, "through node {id}");
    }
    let leader = cluster.leader().await;
    cluster.kill(leader).await;
    cluster.leader().await;
    for id in cluster.live() {
        assert_eq!(txn(cluster.client_address(id), &body).await, kept, "through node {id} after a failover");
        assert_eq!(get(cluster.client_address(id), "written").await, None, "nothing was done again");
    }
    let mut other = body.clone();
    other["then"] = json!([{"op": "remove", "key": "read"}]);
    let survivor = cluster.client_address(cluster.live()[0]);
    assert_eq!(send(survivor, &other).await.problem().code, ErrorCode::RequestIdReused);
    cluster.bring_up(leader).await;
    cluster.assert_agreement().await;
}

const CLIENTS: u64 = 8;
const TRANSFERS_EACH: u64 = 60;
const ACCOUNTS: u64 = 6;
const START: i64 = 100;

/// Transfers between two accounts of an amount that the first may not have.
async fn transfer(to: SocketAddr, random: &mut StdRng) -> bool {
    let from = random.random_range(0..ACCOUNTS);
    let onto = (from + random.random_range(1..ACCOUNTS)) % ACCOUNTS;
    let amount = random.random_range(1..80_i64);
    let (from, onto) = (format!("bank/{from}"), format!("bank/{onto}"));
    let inc = |key: &str, by: i64| json!({"op": "update", "key": key, "patch": [{"op": "inc", "path": "balance", "value": by}]});
    let body = json!({
        "if": [{"key": from, "if": [{"field": "balance", "op": "gte", "value": amount}]}],
        "then": [inc(&from, -amount), inc(&onto, amount)],
    });
    txn(to, &body).await.succeeded
}

/// All accounts at one moment.
async fn balances(to: SocketAddr) -> Vec<i64> {
    let steps: Vec<_> = (0..ACCOUNTS).map(|n| json!({"op": "get", "key": format!("bank/{n}")})).collect();
    let read = txn(to, &json!({"then": steps})).await;
    read.results.iter().map(|result| shown(result).expect("there")["balance"].as_i64().expect("a number")).collect()
}

/// Clients at all nodes contend for the same accounts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_of_eight_clients_at_once_keep_the_sum() {
    let mut random = seed::seeded();
    let mut cluster = Cluster::start().await;
    let ids = cluster.ids();
    let open: Vec<_> = (0..ACCOUNTS)
        .map(|n| json!({"op": "insert", "key": format!("bank/{n}"), "value": {"balance": START}}))
        .collect();
    assert!(txn(cluster.client_address(1), &json!({"then": open})).await.succeeded);
    let clients = (0..CLIENTS).map(|number| {
        let to = cluster.client_address(ids[number as usize % ids.len()]);
        let mut random = StdRng::seed_from_u64(random.random());
        tokio::spawn(async move {
            let mut done = 0;
            for n in 0..TRANSFERS_EACH {
                done += u64::from(transfer(to, &mut random).await);
                if n % 10 == 0 {
                    let seen = balances(to).await;
                    assert_eq!(seen.iter().sum::<i64>(), START * ACCOUNTS as i64, "{seen:?}");
                    assert!(seen.iter().all(|balance| *balance >= 0), "{seen:?}");
                }
            }
            done
        })
    });
    let mut done = 0;
    for client in clients.collect::<Vec<_>>() {
        done += client.await.expect("a client saw what cannot be");
    }
    assert!(done > 0, "not one of {} transfers was possible", CLIENTS * TRANSFERS_EACH);
    for id in ids {
        let seen = balances(cluster.client_address(id)).await;
        assert_eq!(seen.iter().sum::<i64>(), START * ACCOUNTS as i64, "through node {id}: {seen:?}");
    }
    cluster.assert_agreement().await;
}
