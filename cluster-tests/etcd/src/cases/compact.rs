//! Compactions, and what is left of the past after one.

use serde_json::json;

use super::cases;
use crate::case::Case;

cases! { leaves_nothing_before, refuses_what_is_compacted, refuses_what_is_not_yet, stops_watches_of_the_past }

async fn compact(case: &mut Case, revision: i64) {
    case.call("KV/Compact", json!({ "revision": revision })).await;
}

async fn fill(case: &mut Case) -> Vec<i64> {
    let mut revisions = Vec::new();
    for (key, value) in [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("a", "5")] {
        revisions.push(case.put(key, value).await);
    }
    revisions
}

async fn read_all(case: &mut Case, revisions: &[i64]) {
    for revision in revisions {
        case.call("KV/Range", json!({ "key": "a", "range_end": "\0", "revision": revision })).await;
    }
    case.call("KV/Range", json!({ "key": "a", "range_end": "\0" })).await;
}

async fn leaves_nothing_before(case: &mut Case) {
    let revisions = fill(case).await;
    compact(case, revisions[2]).await;
    read_all(case, &revisions).await;
    compact(case, revisions[4]).await;
    read_all(case, &revisions).await;
    case.call("KV/Range", json!({ "key": "a", "revision": revisions[1], "count_only": true })).await;
    case.call("KV/Range", json!({ "key": "a", "revision": revisions[1], "serializable": true })).await;
    case.call("KV/Range", json!({ "key": "a", "revision": 1 })).await;
}

async fn refuses_what_is_compacted(case: &mut Case) {
    let revisions = fill(case).await;
    compact(case, revisions[3]).await;
    for revision in [revisions[3], revisions[2], 1, 0, -1, i64::MIN] {
        compact(case, revision).await;
    }
    read_all(case, &revisions[2..]).await;
}

async fn refuses_what_is_not_yet(case: &mut Case) {
    let revisions = fill(case).await;
    for revision in [revisions[4] + 1, revisions[4] + 1_000, i64::MAX] {
        compact(case, revision).await;
    }
    read_all(case, &revisions).await;
}

async fn stops_watches_of_the_past(case: &mut Case) {
    let revisions = fill(case).await;
    compact(case, revisions[3]).await;
    let mut watch = case.open("Watch/Watch").await;
    for start in [1, revisions[0], revisions[2]] {
        watch.send(case, json!({ "create_request": { "key": "a", "start_revision": start } }));
        let created = watch.receive(case).await;
        if created.get("canceled").is_none() {
            watch.receive(case).await;
        }
    }
    // The revision itself is still there.
    watch.send(case, json!({ "create_request": { "key": "a", "range_end": "\0", "start_revision": revisions[3] } }));
    watch.receive(case).await;
    watch.receive_events(case, 2).await;
    case.put("a", "6").await;
    watch.receive_events(case, 1).await;
}
