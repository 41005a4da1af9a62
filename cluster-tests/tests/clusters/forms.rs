//! Every form of a write, each under a request id, and that a retry is told the first outcome.

use cluster_harness::{Cluster, Request};
use serde_json::{Value, json};

/// Requests that were decided, with their answers.
pub struct Forms(Vec<(Request, Value)>);

impl Forms {
    /// Sends one of each through the leader. What they write is `once`, and below `forms/`.
    pub async fn decide(cluster: &Cluster) -> Self {
        let leader = cluster.leader().await;
        let mut decided = Vec::new();
        for (n, request) in requests().into_iter().enumerate() {
            let request = request.request_id(&format!("form-{n}"));
            let answer = answer(cluster, leader, &request).await;
            assert_eq!(answer.get("replayed"), None, "the first try is no replay: {answer}");
            decided.push((request, answer));
        }
        Self(decided)
    }

    /// Sends all of them again through one node.
    pub async fn assert_replayed(&self, cluster: &Cluster, id: u64) {
        for (request, first) in &self.0 {
            let mut again = answer(cluster, id, request).await;
            let replayed = again.as_object_mut().and_then(|answer| answer.remove("replayed"));
            assert_eq!(replayed, Some(json!(true)), "through node {id}: {again}");
            assert_eq!(again, *first, "the first outcome, through node {id}");
        }
    }
}

async fn answer(cluster: &Cluster, id: u64, request: &Request) -> Value {
    let response = request.send(cluster.client_address(id)).await.expect("the node answers");
    serde_json::from_str(&response.text()).expect("JSON")
}

fn requests() -> Vec<Request> {
    let post = |path: &str, body: Value| Request::post(path, body.to_string());
    let inc = |by: i64| json!([{"op": "inc", "path": "n", "value": by}]);
    let job = |n: u64| json!({"op": "insert", "key": format!("forms/j{n}"), "value": {"n": n, "state": "ready"}});
    vec![
        Request::put("once", "7"),
        Request::new("PUT", "/v1/collections/forms").json(
            json!({"fields": {"id": {"type": "long", "sequence": "forms"}}, "indexes": [["state", "n"]]}).to_string(),
        ),
        post("/v1/bulk", json!({"ops": [job(1), job(2), job(3), job(2), {"op": "remove", "key": "forms/none"}]})),
        post("/v1/sequences/forms", json!({"count": 5})),
        post(
            "/v1/txn",
            json!({
                "if": [{"key": "forms/j1", "if": [{"field": "n", "op": "eq", "value": 1}]}],
                "then": [{"op": "update", "key": "forms/j1", "patch": inc(9), "prev": true}, {"op": "get", "key": "forms/j1"}],
            }),
        ),
        post(
            "/v1/txn",
            json!({"then": [{"op": "update", "key": "forms/j1", "patch": inc(1)}, {"op": "insert", "key": "forms/j2", "value": {}}]}),
        ),
        post(
            "/v1/claim",
            json!({"prefix": "forms/", "where": [{"field": "state", "op": "eq", "value": "ready"}], "order_by": ["-n"], "limit": 2, "patch": {"state": "busy"}}),
        ),
        post(
            "/v1/update_where",
            json!({"prefix": "forms/", "where": [], "if": [{"field": "state", "op": "eq", "value": "ready"}], "patch": inc(100)}),
        ),
        post(
            "/v1/ops",
            json!({"op": "update", "key": "forms/j2", "patch": {"x": 1}, "if": [{"field": "n", "op": "lt", "value": 0}]}),
        ),
        post("/v1/ops", json!({"op": "get_and_touch", "key": "forms/j2", "ttl_ms": 600_000})),
        post("/v1/delete_where", json!({"prefix": "forms/", "where": [{"field": "n", "op": "gt", "value": 100}]})),
    ]
}
