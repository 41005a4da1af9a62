//! Writes of entries.

use serde_json::json;

use super::cases;
use crate::case::Case;

cases! { with_a_lease_that_is_not_there, too_much }

async fn with_a_lease_that_is_not_there(case: &mut Case) {
    for lease in [12_345, -1, i64::MAX, i64::MIN] {
        case.call("KV/Put", json!({ "key": "a", "value": "1", "lease": lease })).await;
    }
    let lease = case.grant(60).await;
    case.call("Lease/LeaseRevoke", json!({ "ID": lease })).await;
    case.call("KV/Put", json!({ "key": "a", "value": "1", "lease": lease })).await;
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
