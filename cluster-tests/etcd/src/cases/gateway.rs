//! The JSON gateway: the same calls over HTTP, with bodies as they go over the wire.

use serde_json::json;

use super::cases;
use crate::case::Case;

cases! {
    errors_of_every_code, compaction, leases, keeps_alive, watches, watches_many_at_once, watches_what_is_refused,
    locks, elections,
}

/// `foo`
const KEY: &str = "Zm9v";
/// `bar`
const VALUE: &str = "YmFy";

async fn errors_of_every_code(case: &mut Case) {
    for (path, body) in [
        ("/v3/kv/range", json!({})),
        ("/v3/kv/range", json!({ "key": KEY, "revision": 1_i64 << 50 })),
        ("/v3/kv/put", json!({ "key": KEY, "lease": 12_345 })),
        ("/v3/kv/put", json!({ "key": KEY, "ignore_value": true })),
        ("/v3/kv/txn", json!({ "success": [{ "request_put": { "key": KEY } }, { "request_put": { "key": KEY } }] })),
        ("/v3/kv/lease/revoke", json!({ "ID": 12_345 })),
        ("/v3/auth/enable", json!({})),
        ("/v3/auth/authenticate", json!({ "name": "nobody", "password": "pw" })),
        ("/v3/cluster/member/remove", json!({ "ID": 12_345 })),
        ("/v3/maintenance/transfer-leadership", json!({ "targetID": 12_345 })),
    ] {
        case.post(path, body).await;
    }
}

async fn compaction(case: &mut Case) {
    case.put("a", "1").await;
    let revision = case.put("a", "2").await;
    case.post("/v3/kv/compaction", json!({ "revision": revision })).await;
    case.post("/v3/kv/compaction", json!({ "revision": revision.to_string(), "physical": true })).await;
    case.post("/v3/kv/compaction", json!({ "revision": revision + 1_000 })).await;
    case.post("/v3/kv/range", json!({ "key": "YQ==", "revision": revision - 1 })).await;
}

async fn leases(case: &mut Case) {
    let granted = case.post("/v3/lease/grant", json!({ "TTL": 60 })).await;
    let id = granted["ID"].clone();
    case.post("/v3/kv/put", json!({ "key": KEY, "value": VALUE, "lease": id })).await;
    case.post("/v3/kv/range", json!({ "key": KEY })).await;
    for path in ["/v3/lease/timetolive", "/v3/kv/lease/timetolive"] {
        case.post(path, json!({ "ID": id, "keys": true })).await;
        case.post(path, json!({ "ID": 12_345 })).await;
    }
    for path in ["/v3/lease/leases", "/v3/kv/lease/leases"] {
        case.post(path, json!({})).await;
    }
    case.post("/v3/lease/revoke", json!({ "ID": id })).await;
    for path in ["/v3/lease/revoke", "/v3/kv/lease/revoke"] {
        case.post(path, json!({ "ID": id })).await;
    }
    case.post("/v3/lease/grant", json!({ "TTL": "60", "ID": "0" })).await;
    case.post("/v3/lease/grant", json!({ "ttl": 60 })).await;
    case.post("/v3/lease/grant", json!({ "TTL": 9_000_000_001_i64 })).await;
}

/// A stream of requests is objects behind each other; the answers are lines.
async fn keeps_alive(case: &mut Case) {
    let granted = case.post("/v3/lease/grant", json!({ "TTL": 60 })).await;
    let id = granted["ID"].as_str().unwrap_or("0").to_owned();
    // As text, so that its id is not in the transcript.
    for (what, body) in [
        ("one", format!("{{\"ID\":\"{id}\"}}")),
        ("two", format!("{{\"ID\":\"{id}\"}}\n{{\"ID\":{id}}}")),
        ("none", String::new()),
        ("unknown", "{\"ID\":7}".to_owned()),
        ("bad", "{\"ID\":\"seven\"}".to_owned()),
        ("bad after good", format!("{{\"ID\":\"{id}\"}}[]")),
    ] {
        let mut lines = case.post_and_read_as("/v3/lease/keepalive", json!(what), body).await;
        for _ in 0..3 {
            if lines.read(case).await == "end" {
                break;
            }
        }
    }
}

async fn watches(case: &mut Case) {
    let first = case.put("a", "1").await;
    let body = json!({ "create_request": { "key": "YQ==", "start_revision": first, "prev_kv": true } });
    let mut lines = case.post_and_read("/v3/watch", body).await;
    lines.read(case).await;
    lines.read_events(case, 1).await;
    case.put("a", "2").await;
    lines.read_events(case, 1).await;
    case.delete("a").await;
    lines.read_events(case, 1).await;
}

async fn watches_many_at_once(case: &mut Case) {
    let create = |id: i64| json!({ "create_request": { "key": "YQ==", "watch_id": id } });
    let mut lines = case.post_and_read("/v3/watch", json!(format!("{}{}", create(3), create(4)))).await;
    lines.read(case).await;
    lines.read(case).await;
    case.put("a", "1").await;
    lines.read_events(case, 2).await;
}

/// Of a body that is no request there is nothing: etcd never answers it.
async fn watches_what_is_refused(case: &mut Case) {
    for body in [
        json!({ "create_request": { "key": "Yg==", "range_end": "YQ==" } }),
        json!({ "create_request": { "key": "YQ==", "start_revision": -1 } }),
    ] {
        let mut lines = case.post_and_read("/v3/watch", body).await;
        lines.read(case).await;
    }
}

async fn locks(case: &mut Case) {
    let id = case.grant(60).await.to_string();
    let locked = case.post("/v3/lock/lock", json!({ "name": KEY, "lease": id })).await;
    case.post("/v3/lock/unlock", json!({ "key": locked["key"] })).await;
    case.post("/v3/lock/lock", json!({ "name": KEY, "lease": 12_345 })).await;
    case.post("/v3/lock/unlock", json!({})).await;
}

async fn elections(case: &mut Case) {
    let id = case.grant(60).await.to_string();
    case.post("/v3/election/leader", json!({ "name": KEY })).await;
    let won = case.post("/v3/election/campaign", json!({ "name": KEY, "lease": id, "value": VALUE })).await;
    case.post("/v3/election/leader", json!({ "name": KEY })).await;
    let mut lines = case.post_and_read("/v3/election/observe", json!({ "name": KEY })).await;
    if won.get("leader").is_some() {
        lines.read(case).await;
    }
    case.post("/v3/election/proclaim", json!({ "leader": won["leader"], "value": "eA==" })).await;
    case.post("/v3/election/resign", json!({ "leader": won["leader"] })).await;
    case.post("/v3/election/proclaim", json!({ "value": "eA==" })).await;
}
