//! Removals of entries.

use serde_json::json;

use super::cases;
use crate::case::Case;

cases! { names_longer_than_keys }

async fn fill(case: &mut Case) {
    for (key, value) in [("c", "3"), ("a", "1"), ("b", "2"), ("d", "4"), ("a", "5")] {
        case.put(key, value).await;
    }
}

async fn rest(case: &mut Case) {
    case.call("KV/Range", json!({ "key": "\0", "range_end": "\0", "keys_only": true })).await;
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
