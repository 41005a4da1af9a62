//! Removals of entries.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! {
    one, ranges, tells_the_entries_before, nothing, refuses_no_key, everything, with_leases, again_and_again, names_longer_than_keys,
}

async fn delete(case: &mut Case, request: Value) {
    case.call("KV/DeleteRange", request).await;
}

async fn fill(case: &mut Case) {
    for (key, value) in [("c", "3"), ("a", "1"), ("b", "2"), ("d", "4"), ("a", "5")] {
        case.put(key, value).await;
    }
}

async fn rest(case: &mut Case) {
    case.call("KV/Range", json!({ "key": "\0", "range_end": "\0", "keys_only": true })).await;
}

async fn one(case: &mut Case) {
    fill(case).await;
    delete(case, json!({ "key": "a" })).await;
    rest(case).await;
    delete(case, json!({ "key": "b", "range_end": "b\0" })).await;
    rest(case).await;
}

async fn ranges(case: &mut Case) {
    for end in ["c", "\0", "z", "a\0", "b"] {
        fill(case).await;
        delete(case, json!({ "key": "a", "range_end": end })).await;
        rest(case).await;
    }
}

async fn tells_the_entries_before(case: &mut Case) {
    let lease = case.grant(60).await;
    fill(case).await;
    case.call("KV/Put", json!({ "key": "b", "value": "leased", "lease": lease })).await;
    delete(case, json!({ "key": "d", "prev_kv": true })).await;
    delete(case, json!({ "key": "a", "range_end": "\0", "prev_kv": true })).await;
    delete(case, json!({ "key": "a", "range_end": "\0", "prev_kv": true })).await;
}

/// Where nothing is removed, there is no new revision.
async fn nothing(case: &mut Case) {
    fill(case).await;
    for (key, end) in [("x", ""), ("x", "z"), ("c", "a"), ("c", "c"), ("e", "\0"), ("\0", "")] {
        delete(case, json!({ "key": key, "range_end": end, "prev_kv": true })).await;
    }
    rest(case).await;
    case.put("a", "next").await;
}

async fn refuses_no_key(case: &mut Case) {
    fill(case).await;
    for end in ["", "\0", "b"] {
        delete(case, json!({ "range_end": end })).await;
    }
    rest(case).await;
}

async fn everything(case: &mut Case) {
    fill(case).await;
    delete(case, json!({ "key": "\0", "range_end": "\0" })).await;
    rest(case).await;
}

async fn with_leases(case: &mut Case) {
    let lease = case.grant(60).await;
    for key in ["a", "b"] {
        case.call("KV/Put", json!({ "key": key, "lease": lease })).await;
    }
    delete(case, json!({ "key": "a", "prev_kv": true })).await;
    case.call("Lease/LeaseTimeToLive", json!({ "ID": lease, "keys": true })).await;
    case.put("a", "without").await;
    case.call("Lease/LeaseRevoke", json!({ "ID": lease })).await;
    rest(case).await;
}

async fn again_and_again(case: &mut Case) {
    for _ in 0..2 {
        case.put("a", "1").await;
        case.put("a", "2").await;
        delete(case, json!({ "key": "a", "prev_kv": true })).await;
        delete(case, json!({ "key": "a", "prev_kv": true })).await;
    }
}

/// What is named by more bytes than a key has here. Its length stands for it.
async fn names_longer_than_keys(case: &mut Case) {
    fill(case).await;
    for length in [4_096, 4_097, 4_098, 100_000] {
        let name = "b".repeat(length);
        for (what, request) in [
            ("alone", json!({ "key": name })),
            ("with what it was", json!({ "key": name, "prev_kv": true })),
            ("up to itself", json!({ "key": name, "range_end": name })),
            ("from it on, a bit", json!({ "key": name, "range_end": "bc" })),
            ("up to it", json!({ "key": "bb", "range_end": name })),
        ] {
            let answer = case.quietly("KV/DeleteRange", request).await;
            case.note("KV/DeleteRange", Some(json!(format!("{what}, with {length} bytes"))), Some(answer));
        }
    }
    rest(case).await;
    let answer = case.quietly("KV/DeleteRange", json!({ "key": "b".repeat(5_000), "range_end": "\0" })).await;
    case.note("KV/DeleteRange", Some(json!("from it on, with 5000 bytes")), Some(answer));
    rest(case).await;
}
