//! Writes of entries.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! {
    new_and_again, tells_the_entry_before, empty_values_and_keys, with_leases, with_a_lease_that_is_not_there, keeps_the_value,
    keeps_the_lease, keeps_both, keeps_what_is_not_there, refuses_what_is_kept_and_given, too_much,
}

async fn put(case: &mut Case, key: &str, options: Value) {
    let mut request = json!({ "key": key });
    for (name, value) in options.as_object().expect("options") {
        request[name] = value.clone();
    }
    case.call("KV/Put", request).await;
}

async fn new_and_again(case: &mut Case) {
    for value in ["1", "2", "2"] {
        case.put("a", value).await;
        case.get("a").await;
    }
}

async fn tells_the_entry_before(case: &mut Case) {
    let lease = case.grant(60).await;
    for options in [
        json!({ "value": "1" }),
        json!({ "value": "2", "lease": lease }),
        json!({ "value": "" }),
        json!({ "value": "3" }),
    ] {
        let mut options = options;
        options["prev_kv"] = json!(true);
        put(case, "a", options).await;
    }
    case.delete("a").await;
    put(case, "a", json!({ "value": "4", "prev_kv": true })).await;
}

async fn empty_values_and_keys(case: &mut Case) {
    put(case, "a", json!({})).await;
    case.get("a").await;
    put(case, "", json!({ "value": "1" })).await;
    put(case, "", json!({ "ignore_value": true })).await;
    put(case, "\0", json!({ "value": "zero" })).await;
    case.call("KV/Range", json!({ "key": "\0", "range_end": "\0" })).await;
}

async fn with_leases(case: &mut Case) {
    let (one, other) = (case.grant(60).await, case.grant(60).await);
    for lease in [one, other, 0, one] {
        put(case, "a", json!({ "value": "1", "lease": lease })).await;
        case.get("a").await;
        for lease in [one, other] {
            case.call("Lease/LeaseTimeToLive", json!({ "ID": lease, "keys": true })).await;
        }
    }
    put(case, "b", json!({ "lease": other })).await;
    case.call("Lease/LeaseRevoke", json!({ "ID": one })).await;
    case.call("KV/Range", json!({ "key": "a", "range_end": "\0" })).await;
}

async fn with_a_lease_that_is_not_there(case: &mut Case) {
    for lease in [12_345, -1, i64::MAX, i64::MIN] {
        put(case, "a", json!({ "value": "1", "lease": lease })).await;
    }
    let lease = case.grant(60).await;
    case.call("Lease/LeaseRevoke", json!({ "ID": lease })).await;
    put(case, "a", json!({ "value": "1", "lease": lease })).await;
    case.get("a").await;
}

async fn keeps_the_value(case: &mut Case) {
    let lease = case.grant(60).await;
    case.put("a", "1").await;
    put(case, "a", json!({ "ignore_value": true })).await;
    put(case, "a", json!({ "ignore_value": true, "lease": lease, "prev_kv": true })).await;
    case.get("a").await;
    put(case, "a", json!({ "ignore_value": true, "prev_kv": true })).await;
    case.get("a").await;
}

async fn keeps_the_lease(case: &mut Case) {
    let lease = case.grant(60).await;
    put(case, "a", json!({ "value": "1", "lease": lease })).await;
    put(case, "a", json!({ "value": "2", "ignore_lease": true, "prev_kv": true })).await;
    case.get("a").await;
    case.call("Lease/LeaseTimeToLive", json!({ "ID": lease, "keys": true })).await;
    case.put("b", "1").await;
    put(case, "b", json!({ "value": "2", "ignore_lease": true })).await;
    case.get("b").await;
}

async fn keeps_both(case: &mut Case) {
    let lease = case.grant(60).await;
    put(case, "a", json!({ "value": "1", "lease": lease })).await;
    put(case, "a", json!({ "ignore_value": true, "ignore_lease": true, "prev_kv": true })).await;
    case.get("a").await;
}

async fn keeps_what_is_not_there(case: &mut Case) {
    for options in [
        json!({ "ignore_value": true }),
        json!({ "value": "1", "ignore_lease": true }),
        json!({ "ignore_value": true, "ignore_lease": true }),
    ] {
        put(case, "a", options).await;
    }
    case.put("a", "1").await;
    case.delete("a").await;
    put(case, "a", json!({ "ignore_value": true })).await;
    case.get("a").await;
}

async fn refuses_what_is_kept_and_given(case: &mut Case) {
    let lease = case.grant(60).await;
    case.put("a", "1").await;
    put(case, "a", json!({ "value": "2", "ignore_value": true })).await;
    put(case, "a", json!({ "value": "2", "lease": lease, "ignore_lease": true })).await;
    put(case, "a", json!({ "value": "2", "lease": lease, "ignore_lease": true, "ignore_value": true })).await;
    put(case, "", json!({ "value": "2", "ignore_value": true })).await;
    put(case, "b", json!({ "value": "2", "ignore_value": true })).await;
    case.get("a").await;
}

/// etcd takes one and a half mebibytes.
async fn too_much(case: &mut Case) {
    for size in [1_500_000, 1_800_000, 2_097_000, 2_097_200, 2_163_000] {
        let answer = case.quietly("KV/Put", json!({ "key": "a", "value": "v".repeat(size) })).await;
        case.note("KV/Put", Some(json!(format!("{size} bytes"))), Some(answer));
    }
    case.call("KV/Range", json!({ "key": "a", "keys_only": true })).await;
}
