//! Keys that are no text, written by etcd's protocol: requests about many entries keep them apart. One node decides that.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster_harness::{Cluster, PATIENCE, Request, Settings, eventually};
use serde_json::{Value, json};

/// Four keys that look alike to whoever makes texts of them as best they can; one of them is what the others would become.
const KEYS: [&[u8]; 4] = [b"e/\xef\xbf\xbd", b"e/\xfd", b"e/\xfe", b"e/\xff"];

async fn post(cluster: &Cluster, route: &str, body: Value) -> Value {
    let request = Request::post(route, body.to_string());
    request.send(cluster.client_address(1)).await.expect("the node answers").expect_success().json()
}

fn shown(key: &[u8]) -> Value {
    match std::str::from_utf8(key) {
        Ok(text) => json!({"key": text}),
        Err(_) => json!({"key_base64": STANDARD.encode(key)}),
    }
}

/// The keys of entries as they are shown.
fn keys(entries: &Value) -> Vec<Value> {
    let of = |entry: &Value| {
        let fields = entry.as_object().expect("an entry").iter().filter(|(name, _)| name.starts_with("key"));
        fields.map(|(name, key)| json!({name: key})).collect::<Vec<_>>()
    };
    entries.as_array().expect("a list").iter().flat_map(of).collect()
}

async fn filled() -> Cluster {
    let cluster = Cluster::start_with(Settings::with_ids([1])).await;
    for key in KEYS {
        let put = json!({"key": STANDARD.encode(key), "value": STANDARD.encode(br#"{"a":1}"#)});
        post(&cluster, "/v3/kv/put", put).await;
    }
    cluster
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_many_takes_each_key_for_itself() {
    let mut cluster = filled().await;
    let quota = Request::new("PUT", "/v1/quotas/prefixes/e%2F%FE").json(r#"{"entries":1}"#);
    quota.send(cluster.client_address(1)).await.expect("the node answers").expect_success();
    eventually("the quota is about the one entry below its bytes", PATIENCE, async || {
        let asked = Request::get("/v1/quotas/prefixes/e%2F%FE").send(cluster.client_address(1)).await;
        let quota: Value = asked.expect("the node answers").expect_success().json();
        if quota["used"]["entries"] == 1 && quota["prefix_base64"] == "ZS/+" { Ok(()) } else { Err(quota.to_string()) }
    })
    .await;

    let updated = json!({"prefix": "e/", "where": [], "patch": {"seen": true}, "limit": 10});
    let updated = post(&cluster, "/v1/update_where", updated).await;
    assert_eq!((&updated["matched"], &updated["applied"]), (&json!(4), &json!(4)), "{updated}");

    let criteria = json!([{"field": "$key", "op": "eq", "value": {"base64": STANDARD.encode(KEYS[2])}}]);
    let removed = post(&cluster, "/v1/delete_where", json!({"prefix": "e/", "where": criteria})).await;
    assert_eq!((&removed["matched"], &removed["applied"]), (&json!(1), &json!(1)), "{removed}");

    let left: Vec<_> = [KEYS[0], KEYS[1], KEYS[3]].map(shown).into();
    let claim = json!({"prefix": "e/", "order_by": ["a"], "limit": 10, "lock_ms": 60_000});
    let claimed = post(&cluster, "/v1/claim", claim.clone()).await;
    assert_eq!(keys(&claimed["entries"]), left, "{claimed}");
    let again = post(&cluster, "/v1/claim", claim).await;
    assert_eq!(again["entries"], json!([]), "each is locked: {again}");
    let found = post(&cluster, "/v1/find", json!({"prefix": "e/", "limit": 10})).await;
    assert_eq!(keys(&found["entries"]), left, "{found}");
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_is_about_the_keys_that_it_names() {
    let cluster = filled().await;
    let of = |key: &[u8]| STANDARD.encode(key);
    let mut txn = json!({
        "if": [{"key_base64": of(KEYS[2]), "exists": true}],
        "then": [{"op": "get", "key_base64": of(KEYS[2])}, {"op": "remove", "key_base64": of(KEYS[3])}],
    });
    let done = post(&cluster, "/v1/txn", txn.clone()).await;
    assert_eq!(done["results"][0]["entry"]["key_base64"], json!(of(KEYS[2])), "{done}");
    assert_eq!(done["results"][1]["key_base64"], json!(of(KEYS[3])), "{done}");
    txn["if"][0]["exists"] = false.into();
    txn["then"] = json!([]);
    let unmet = post(&cluster, "/v1/txn", txn).await;
    assert_eq!(
        (&unmet["succeeded"], &unmet["failed"][0]["key_base64"]),
        (&json!(false), &json!(of(KEYS[2]))),
        "{unmet}"
    );
    let left = post(&cluster, "/v1/find", json!({"prefix": "e/", "limit": 10})).await;
    assert_eq!(keys(&left["entries"]), [KEYS[0], KEYS[1], KEYS[2]].map(shown), "{left}");
}
