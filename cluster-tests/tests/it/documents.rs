//! Conditions on fields, patches of all kinds, and document locks, on every node of a real cluster.

use std::net::SocketAddr;

use cluster_tests::{Answer, Cluster, Request};
use serde_json::{Value, json};

async fn op(to: SocketAddr, op: Value) -> Answer {
    let body = op.to_string().into_bytes();
    let request = Request::new("POST", "/v1/ops").header("Content-Type", "application/json").body(body);
    request.send(to).await.expect("the node answers")
}

fn body(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_and_patches_mean_the_same_on_every_node() {
    let mut cluster = Cluster::start().await;
    let ids = [1, 2, 3];
    for id in ids {
        let (to, key) = (cluster.client_address(id), format!("orders/o{id}"));
        let change = |patch: Value, condition: Value| {
            op(to, json!({"op": "update", "key": key, "patch": patch, "if": condition}))
        };
        let order = json!({"op": "insert", "key": key, "value": {"status": "pending", "stock": 9_007_199_254_740_993_u64, "lines": [{"n": 2}]}});
        assert_eq!(op(to, order).await.status, 200);

        // A transition of a state machine, once.
        let pay = || change(json!({"status": "paid"}), json!([{"field": "status", "op": "eq", "value": "pending"}]));
        assert_eq!(pay().await.status, 200);
        let refused = pay().await;
        assert_eq!(refused.status, 412);
        let problem = body(&refused);
        assert_eq!((&problem["code"], &problem["applied"]), (&json!("condition_not_met"), &json!("no")));
        assert_eq!(
            problem["failed"],
            json!([{"pointer": "/if/0", "detail": problem["failed"][0]["detail"], "actual": "paid"}])
        );
        assert_eq!(problem["current"]["value"]["status"], "paid");

        // Update operators keep integers whole; JSON Patch tests before it changes.
        let counted = change(
            json!([{"op": "inc", "path": "stock", "value": -1}, {"op": "append", "path": "lines", "value": 7}]),
            json!([]),
        )
        .await;
        assert_eq!(counted.status, 200);
        let tested = change(
            json!([{"op": "test", "path": "/stock", "value": 5}, {"op": "remove", "path": "/stock"}]),
            json!([]),
        )
        .await;
        assert_eq!(tested.status, 412);
        let failed = &body(&tested)["failed"][0];
        assert_eq!((&failed["pointer"], &failed["path"]), (&json!("/patch/0"), &json!("/stock")));
        assert_eq!(failed["actual"], 9_007_199_254_740_992_u64);

        // Metadata, and a condition of a removal.
        let remove = |version: u64| {
            op(to, json!({"op": "remove", "key": key, "if": [{"field": "$version", "op": "eq", "value": version}]}))
        };
        assert_eq!(remove(1).await.status, 412);
        assert_eq!(remove(3).await.status, 200);
        let create = |n: u64| {
            op(
                to,
                json!({"op": "upsert", "key": key, "value": {"n": n}, "if": [{"not": {"field": "$exists", "op": "eq", "value": true}}]}),
            )
        };
        assert_eq!((create(1).await.status, create(2).await.status), (200, 412));
    }
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_conditions_and_patches_are_refused_with_every_fault_in_its_place() {
    let mut cluster = Cluster::start().await;
    let to = cluster.client_address(2);
    op(to, json!({"op": "upsert", "key": "k", "value": {"a": 1}})).await;
    let update =
        |patch: Value, condition: Value| op(to, json!({"op": "update", "key": "k", "patch": patch, "if": condition}));
    for (patch, condition, pointer) in [
        (json!({}), json!({"field": "a"}), "/if"),
        (json!({}), json!([{"field": "a", "op": "equals", "value": 1}]), "/if/0/op"),
        (json!({}), json!([{"field": "a", "op": "exists", "value": 1}]), "/if/0/value"),
        (json!({}), json!([{"field": "$nothing", "op": "exists"}]), "/if/0/field"),
        (json!({}), json!([{"field": "a", "op": "like", "value": 5}]), "/if/0/value"),
        (json!({}), json!([{"field": "a", "op": "exists", "color": "red"}]), "/if/0/color"),
        (json!({}), json!([{"any": [{"not": {"field": "", "op": "exists"}}]}]), "/if/0/any/0/not/field"),
        (json!(5), json!([]), "/patch"),
        (json!([{"op": "inc", "path": "a", "value": "1"}]), json!([]), "/patch/0"),
        (json!([{"op": "replace", "path": "a", "value": 1}]), json!([]), "/patch/0/path"),
        (json!([{"op": "set", "path": "a", "value": 1}, {"op": "frob", "path": "a"}]), json!([]), "/patch/1/op"),
    ] {
        let answer = update(patch.clone(), condition.clone()).await;
        let problem = body(&answer);
        assert_eq!(answer.status, 400, "{patch} {condition}: {problem}");
        let pointers: Vec<_> =
            problem["errors"].as_array().expect("faults").iter().map(|fault| &fault["pointer"]).collect();
        assert!(pointers.iter().any(|found| *found == pointer), "{patch} {condition}: {pointers:?}, not {pointer}");
    }
    let insert = op(to, json!({"op": "insert", "key": "new", "value": 1, "if": []})).await;
    assert_eq!(body(&insert)["errors"][0]["pointer"], "/if");
    // A path into a scalar, and an overflow, are told by the document as it is.
    for (patch, path) in [
        (json!([{"op": "set", "path": "a.b", "value": 1}]), "/a"),
        (json!([{"op": "inc", "path": "a", "value": 18_446_744_073_709_551_615_u64}]), "/a"),
    ] {
        let answer = update(patch.clone(), json!([])).await;
        assert_eq!((answer.status, &body(&answer)["failed"][0]["path"]), (412, &json!(path)), "{patch}");
    }
    assert_eq!(body(&op(to, json!({"op": "get", "key": "k"})).await)["version"], 1, "nothing was written");
    cluster.assert_agreement().await;
}
