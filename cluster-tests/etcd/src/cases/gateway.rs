//! The JSON gateway: the same calls over HTTP, with bodies as they go over the wire.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! {
    entries, numbers_as_text_and_as_numbers, numbers_that_are_none, enumerations_by_name_and_by_number, base64_in_every_form, base64_that_is_none,
    fields_that_are_not_known, names_in_either_form, nulls, bodies_that_are_empty, bodies_that_are_no_object, bodies_with_more_behind, kinds_that_are_wrong,
    one_of_many, other_methods, other_paths, transactions, errors_of_every_code, compaction, leases, keeps_alive, watches, watches_many_at_once,
    watches_what_is_refused, members_and_status, users_while_it_is_off, locks, elections, version, trailing_slashes_and_queries,
    names_longer_than_keys,
}

/// `foo`
const KEY: &str = "Zm9v";
/// `bar`
const VALUE: &str = "YmFy";

async fn entries(case: &mut Case) {
    case.post("/v3/kv/put", json!({ "key": KEY, "value": VALUE })).await;
    case.post("/v3/kv/put", json!({ "key": KEY, "value": "", "prev_kv": true })).await;
    case.post("/v3/kv/range", json!({ "key": KEY })).await;
    case.post("/v3/kv/range", json!({ "key": "AA==", "range_end": "AA==", "count_only": true })).await;
    case.post("/v3/kv/range", json!({ "key": "AA==", "range_end": "AA==", "keys_only": true, "limit": 1 })).await;
    case.post("/v3/kv/deleterange", json!({ "key": KEY, "prev_kv": true })).await;
    case.post("/v3/kv/deleterange", json!({ "key": KEY })).await;
    case.post("/v3/kv/range", json!({ "key": KEY })).await;
}

async fn ranges(case: &mut Case, bodies: &[&str]) {
    case.post("/v3/kv/put", json!({ "key": KEY, "value": VALUE })).await;
    for body in bodies {
        case.post("/v3/kv/range", json!(body)).await;
    }
}

async fn numbers_as_text_and_as_numbers(case: &mut Case) {
    ranges(
        case,
        &[
            r#"{"key":"Zm9v","limit":1}"#,
            r#"{"key":"Zm9v","limit":"1"}"#,
            r#"{"key":"Zm9v","limit":1.0}"#,
            r#"{"key":"Zm9v","limit":"1.0"}"#,
            r#"{"key":"Zm9v","limit":1e2}"#,
            r#"{"key":"Zm9v","limit":"1e2"}"#,
            r#"{"key":"Zm9v","limit":-0}"#,
            r#"{"key":"Zm9v","limit":"-5"}"#,
            r#"{"key":"Zm9v","limit":9223372036854775807}"#,
        ],
    )
    .await;
}

async fn numbers_that_are_none(case: &mut Case) {
    ranges(
        case,
        &[
            r#"{"key":"Zm9v","limit":"one"}"#,
            r#"{"key":"Zm9v","limit":""}"#,
            r#"{"key":"Zm9v","limit":" 1"}"#,
            r#"{"key":"Zm9v","limit":"+1"}"#,
            r#"{"key":"Zm9v","limit":1.5}"#,
            r#"{"key":"Zm9v","limit":true}"#,
            r#"{"key":"Zm9v","limit":[1]}"#,
            r#"{"key":"Zm9v","limit":9223372036854775808}"#,
            r#"{"key":"Zm9v","limit":01}"#,
        ],
    )
    .await;
}

async fn enumerations_by_name_and_by_number(case: &mut Case) {
    ranges(
        case,
        &[
            r#"{"key":"Zm9v","sort_order":"DESCEND","sort_target":"MOD"}"#,
            r#"{"key":"Zm9v","sort_order":2,"sort_target":3}"#,
            r#"{"key":"Zm9v","sort_order":"2"}"#,
            r#"{"key":"Zm9v","sort_order":"descend"}"#,
            r#"{"key":"Zm9v","sort_order":"NOWHERE"}"#,
            r#"{"key":"Zm9v","sort_order":7}"#,
            r#"{"key":"Zm9v","sort_order":1.0}"#,
            r#"{"key":"Zm9v","sort_order":1.5}"#,
            r#"{"key":"Zm9v","sort_order":true}"#,
            r#"{"key":"Zm9v","sort_order":null}"#,
        ],
    )
    .await;
}

/// `f>?` and `f>` need all that differs between the alphabets and paddings.
async fn base64_in_every_form(case: &mut Case) {
    case.put("f>?", "1").await;
    case.put("f>", "2").await;
    for key in ["Zj4/", "Zj4_", "Zj4=", "Zj4", "Zj5=", "Zj5"] {
        case.post("/v3/kv/range", json!({ "key": key })).await;
    }
}

async fn base64_that_is_none(case: &mut Case) {
    for key in ["not base64!", "a", "Zm9v=", "Zm9v==", "Zm9v\n", " Zm9v", "Zm-/", "===="] {
        case.post("/v3/kv/range", json!({ "key": key })).await;
    }
    case.post("/v3/kv/range", json!({ "key": 7 })).await;
    case.post("/v3/kv/range", json!({ "key": ["Zm9v"] })).await;
}

async fn fields_that_are_not_known(case: &mut Case) {
    ranges(
        case,
        &[
            r#"{"key":"Zm9v","unknown":1}"#,
            r#"{"key":"Zm9v","unknown":{"deep":[{}]}}"#,
            r#"{"key":"Zm9v","KEY":"YQ=="}"#,
            r#"{"key":"Zm9v","key":"YQ=="}"#,
            r#"{"key":"Zm9v","limit":1,"limit":2}"#,
        ],
    )
    .await;
}

async fn names_in_either_form(case: &mut Case) {
    ranges(
        case,
        &[
            r#"{"key":"Zm9v","rangeEnd":"AA==","countOnly":true}"#,
            r#"{"key":"Zm9v","range_end":"AA==","count_only":true}"#,
            r#"{"key":"Zm9v","range_end":"AA==","rangeEnd":"AA=="}"#,
            r#"{"key":"Zm9v","sortOrder":"ASCEND","maxModRevision":"1"}"#,
        ],
    )
    .await;
    case.post("/v3/kv/put", json!({ "key": KEY, "prevKv": true })).await;
    case.post("/v3/lease/timetolive", json!({ "id": "7" })).await;
}

async fn nulls(case: &mut Case) {
    ranges(case, &[r#"{"key":"Zm9v","limit":null,"range_end":null,"serializable":null}"#, r#"{"key":null}"#]).await;
    case.post("/v3/kv/txn", json!({ "compare": null, "success": null })).await;
    case.post("/v3/kv/txn", json!({ "success": [null] })).await;
}

async fn bodies_that_are_empty(case: &mut Case) {
    for path in [
        "/v3/kv/range",
        "/v3/kv/put",
        "/v3/kv/txn",
        "/v3/lease/leases",
        "/v3/maintenance/status",
        "/v3/cluster/member/list",
    ] {
        for body in ["", " ", "{}"] {
            case.post(path, json!(body)).await;
        }
    }
}

async fn bodies_that_are_no_object(case: &mut Case) {
    for body in [
        "null",
        "[]",
        "1",
        "\"text\"",
        "{",
        "}",
        "{\"key\"",
        "{key:\"Zm9v\"}",
        "{'key':'Zm9v'}",
        "{\"key\":\"Zm9v\",}",
        "\u{feff}{}",
    ] {
        case.post("/v3/kv/range", json!(body)).await;
    }
}

async fn bodies_with_more_behind(case: &mut Case) {
    ranges(case, &["{\"key\":\"Zm9v\"}\n", "{\"key\":\"Zm9v\"}{\"key\":\"YQ==\"}", "{\"key\":\"Zm9v\"} more"]).await;
}

async fn kinds_that_are_wrong(case: &mut Case) {
    ranges(
        case,
        &[r#"{"key":"Zm9v","serializable":"true"}"#, r#"{"key":"Zm9v","serializable":1}"#, r#"{"key":{"a":1}}"#],
    )
    .await;
    case.post("/v3/kv/txn", json!({ "success": {} })).await;
    case.post("/v3/kv/txn", json!({ "compare": [7] })).await;
    case.post("/v3/kv/txn", json!({ "success": [{ "request_put": [] }] })).await;
}

/// Of what excludes each other.
async fn one_of_many(case: &mut Case) {
    case.post("/v3/kv/txn", json!({ "compare": [{ "key": KEY, "version": 0, "mod_revision": 0 }] })).await;
    case.post("/v3/kv/txn", json!({ "success": [{ "request_range": { "key": KEY }, "request_put": { "key": KEY } }] }))
        .await;
    case.post("/v3/kv/txn", json!({ "success": [{ "request_range": { "key": KEY }, "request_put": null }] })).await;
    case.post("/v3/kv/txn", json!({ "success": [{ "requestRange": { "key": KEY } }] })).await;
}

async fn other_methods(case: &mut Case) {
    for method in ["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"] {
        case.http(method, "/v3/kv/range", json!({ "key": KEY })).await;
    }
}

async fn other_paths(case: &mut Case) {
    for path in [
        "/v3/kv/nothing",
        "/v3",
        "/v3/",
        "/v3/kv",
        "/v3alpha/kv/range",
        "/v3beta/kv/range",
        "/v3/KV/range",
        "/v3/kv/rangestream",
    ] {
        case.post(path, json!({ "key": KEY })).await;
    }
}

async fn trailing_slashes_and_queries(case: &mut Case) {
    case.post("/v3/kv/range/", json!({ "key": KEY })).await;
    case.post("/v3/kv/range?limit=1", json!({ "key": KEY })).await;
    case.post("/v3//kv/range", json!({ "key": KEY })).await;
}

async fn transactions(case: &mut Case) {
    let txn = json!({
        "compare": [{ "key": KEY, "target": "CREATE", "create_revision": 0 }],
        "success": [{ "request_put": { "key": KEY, "value": VALUE } }],
        "failure": [{ "request_txn": {
            "compare": [{ "target": "VALUE", "key": KEY, "value": VALUE, "result": "EQUAL" }],
            "success": [{ "request_range": { "key": KEY } }, { "request_delete_range": { "key": KEY, "prev_kv": true } }],
        } }],
    });
    for _ in 0..2 {
        case.post("/v3/kv/txn", txn.clone()).await;
    }
    case.post("/v3/kv/txn", json!({})).await;
    for compare in
        [json!({ "target": 2, "result": 3, "key": KEY, "mod_revision": "0" }), json!({ "target": "WRONG", "key": KEY })]
    {
        case.post("/v3/kv/txn", json!({ "compare": [compare] })).await;
    }
    let bad = json!({ "request_put": { "key": "not base64!" } });
    case.post("/v3/kv/txn", json!({ "success": [bad] })).await;
}

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

async fn members_and_status(case: &mut Case) {
    case.post("/v3/cluster/member/list", json!({})).await;
    case.post("/v3/cluster/member/list", json!({ "linearizable": true })).await;
    case.post("/v3/maintenance/status", json!({})).await;
    case.post("/v3/maintenance/alarm", json!({})).await;
    case.post("/v3/maintenance/alarm", json!({ "action": "GET", "alarm": "NOSPACE" })).await;
    case.post("/v3/maintenance/defragment", json!({})).await;
    case.post("/v3/maintenance/hash", json!({})).await;
    case.post("/v3/maintenance/downgrade", json!({ "action": "VALIDATE", "version": "none" })).await;
}

async fn users_while_it_is_off(case: &mut Case) {
    for (path, body) in [
        ("/v3/auth/status", json!({})),
        ("/v3/auth/enable", json!({})),
        ("/v3/auth/disable", json!({})),
        ("/v3/auth/authenticate", json!({ "name": "root", "password": "pw" })),
        ("/v3/auth/user/add", json!({ "name": "alice", "password": "pw" })),
        ("/v3/auth/user/add", json!({ "name": "alice", "password": "pw" })),
        ("/v3/auth/user/add", json!({ "name": "", "password": "pw" })),
        ("/v3/auth/role/add", json!({ "name": "app" })),
        ("/v3/auth/role/add", json!({ "name": "app" })),
        (
            "/v3/auth/role/grant",
            json!({ "name": "app", "perm": { "permType": "READWRITE", "key": KEY, "range_end": "AA==" } }),
        ),
        ("/v3/auth/role/get", json!({ "role": "app" })),
        ("/v3/auth/user/grant", json!({ "user": "alice", "role": "app" })),
        ("/v3/auth/user/get", json!({ "name": "alice" })),
        ("/v3/auth/user/list", json!({})),
        ("/v3/auth/role/list", json!({})),
        ("/v3/auth/user/changepw", json!({ "name": "alice", "password": "new" })),
        ("/v3/auth/user/revoke", json!({ "name": "alice", "role": "app" })),
        ("/v3/auth/role/revoke", json!({ "role": "app", "key": KEY, "range_end": "AA==" })),
        ("/v3/auth/role/delete", json!({ "role": "app" })),
        ("/v3/auth/user/delete", json!({ "name": "alice" })),
        ("/v3/auth/user/delete", json!({ "name": "alice" })),
    ] {
        case.post(path, body).await;
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

async fn version(case: &mut Case) {
    for method in ["GET", "POST"] {
        case.http(method, "/version", Value::from("")).await;
    }
    for path in ["/health", "/health?serializable=true"] {
        case.http("GET", path, Value::from("")).await;
    }
    case.http("POST", "/health", Value::from("")).await;
}

/// One byte longer than a key is here.
async fn names_longer_than_keys(case: &mut Case) {
    let name = format!("{}a2s=", "a2tr".repeat(1_365));
    let put = json!({ "request_put": { "key": KEY, "value": VALUE } });
    let compare = json!([{ "key": name, "target": "VERSION", "version": 0 }]);
    case.post("/v3/kv/deleterange", json!({ "key": name })).await;
    case.post("/v3/kv/txn", json!({ "compare": compare, "success": [put] })).await;
    case.post("/v3/kv/txn", json!({ "success": [put, { "request_delete_range": { "key": name } }] })).await;
    case.post("/v3/kv/txn", json!({ "success": [{ "request_range": { "key": name } }] })).await;
}
