//! Users of a cluster under attack.
//!
//! Owns their rights. Never decides which client is which user.

use serde_json::{Value, json};

use cluster_harness::cluster::Cluster;
use cluster_harness::http::Request;

/// Creates a user that may write and lock everything, and gives its token.
pub async fn create_user(cluster: &Cluster, name: &str) -> String {
    create_tenant(cluster, name, "").await
}

/// Creates a user that may write and lock what begins so, and gives its token.
pub async fn create_tenant(cluster: &Cluster, name: &str, prefix: &str) -> String {
    let grants = json!([{"permission": "write", "prefix": prefix}, {"permission": "lock", "prefix": prefix}]);
    put(cluster, &format!("/v1/access/roles/{name}"), &json!({ "grants": grants })).await;
    put(cluster, &format!("/v1/access/users/{name}"), &json!({ "roles": [name] })).await;
    token_of(cluster, name).await
}

/// Creates a user without any right, and gives its token.
pub async fn create_powerless(cluster: &Cluster, name: &str) -> String {
    put(cluster, &format!("/v1/access/users/{name}"), &json!({ "roles": [] })).await;
    token_of(cluster, name).await
}

async fn put(cluster: &Cluster, target: &str, body: &Value) {
    let request = cluster.by_root(Request::new("PUT", target).json(body.to_string()));
    request.send(cluster.client_address(1)).await.expect("an answer").expect_success();
}

async fn token_of(cluster: &Cluster, name: &str) -> String {
    let create = cluster.by_root(Request::post("/v1/access/tokens", json!({ "user": name }).to_string()));
    let created: Value = create.send(cluster.client_address(1)).await.expect("an answer").expect_success().json();
    created["token"].as_str().expect("a token").to_owned()
}
