//! Users of a cluster under attack.
//!
//! Owns their rights. Never decides which client is which user.

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::http::Request;

/// Creates a user that may write and lock everything, and gives its token.
pub async fn create_user(cluster: &Cluster, name: &str) -> String {
    let to = cluster.client_address(1);
    let put = async |target: String, body: Value| {
        let request = cluster.by_root(Request::new("PUT", target).json(body.to_string()));
        request.send(to).await.expect("an answer").expect_success();
    };
    let grants = json!([{"permission": "write", "prefix": ""}, {"permission": "lock", "prefix": ""}]);
    put(format!("/v1/access/roles/{name}"), json!({ "grants": grants })).await;
    put(format!("/v1/access/users/{name}"), json!({ "roles": [name] })).await;
    let create = cluster.by_root(Request::post("/v1/access/tokens", json!({ "user": name }).to_string()));
    let created: Value = create.send(to).await.expect("an answer").expect_success().json();
    created["token"].as_str().expect("a token").to_owned()
}
