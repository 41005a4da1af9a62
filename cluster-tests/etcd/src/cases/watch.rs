//! Watches.

use serde_json::{Value, json};

use super::cases;
use crate::case::{Case, revision};
use crate::stream::Stream;

cases! {
    a_key_and_a_range, ids, ids_that_are_taken, starts_in_the_past, starts_now, starts_in_the_future, starts_before_everything,
    starts_at_a_revision_without_events, tells_the_entries_before, tells_the_entries_before_of_the_past, filters, unknown_filters, fragments,
    progress_of_all, progress_with_nothing_watched, progress_before_the_start, asks_for_progress_by_itself, cancels, ranges, ranges_that_are_none, removed_ranges,
    transactions_in_one_piece, expired_leases_in_one_piece, revoked_leases, many_watches_of_one_key, a_client_that_sends_nothing_more,
    a_request_that_is_none, keeps_the_order_of_requests,
}

async fn create(case: &mut Case, watch: &mut Stream, request: Value) {
    watch.send(case, json!({ "create_request": request }));
    watch.receive(case).await;
}

/// Nothing came before the answer to this.
async fn barrier(case: &mut Case, watch: &mut Stream) {
    watch.send(case, json!({ "progress_request": {} }));
    watch.receive(case).await;
}

async fn a_key_and_a_range(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a" })).await;
    for (key, value) in [("a", "1"), ("b", "1"), ("a", "2")] {
        case.put(key, value).await;
    }
    case.delete("a").await;
    case.delete("a").await;
    case.put("a", "again").await;
    watch.receive_events(case, 4).await;
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a", "range_end": "c" })).await;
    for (key, value) in [("a", "1"), ("c", "1"), ("b", "2")] {
        case.put(key, value).await;
    }
    watch.receive_events(case, 2).await;
}

async fn ids(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    for id in [0, 5, 0, 3, -7, 0, 1_i64 << 40] {
        create(case, &mut watch, json!({ "key": "a", "watch_id": id })).await;
    }
    case.put("a", "1").await;
    watch.receive_by_watch(case, 7).await;
}

async fn ids_that_are_taken(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    for id in [5, 5, 1, 0, 0, 0, 1] {
        create(case, &mut watch, json!({ "key": "a", "watch_id": id })).await;
    }
    watch.send(case, json!({ "cancel_request": { "watch_id": 5 } }));
    watch.receive(case).await;
    create(case, &mut watch, json!({ "key": "a", "watch_id": 5 })).await;
}

async fn fill(case: &mut Case) -> Vec<i64> {
    let mut revisions = Vec::new();
    for (key, value) in [("a", "1"), ("b", "1"), ("a", "2")] {
        revisions.push(case.put(key, value).await);
    }
    revisions.push(case.delete("a").await);
    revisions.push(case.put("a", "3").await);
    revisions
}

async fn starts_in_the_past(case: &mut Case) {
    let revisions = fill(case).await;
    let mut watch = case.open("Watch/Watch").await;
    for (n, start) in revisions.iter().enumerate() {
        create(case, &mut watch, json!({ "key": "a", "range_end": "z", "start_revision": start })).await;
        watch.receive_events(case, 5 - n).await;
    }
    create(case, &mut watch, json!({ "key": "b", "start_revision": revisions[0] })).await;
    watch.receive_events(case, 1).await;
    barrier(case, &mut watch).await;
}

async fn starts_now(case: &mut Case) {
    let revisions = fill(case).await;
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a", "start_revision": revisions[4] + 1 })).await;
    case.put("a", "4").await;
    watch.receive_events(case, 1).await;
    barrier(case, &mut watch).await;
}

async fn starts_in_the_future(case: &mut Case) {
    let now = case.put("a", "1").await;
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a", "start_revision": now + 3 })).await;
    // Each of them takes a revision of its own, so the third is the first that is told.
    for value in ["2", "3", "4", "5"] {
        case.put("a", value).await;
    }
    watch.receive_events(case, 2).await;
    create(case, &mut watch, json!({ "key": "a", "start_revision": i64::MAX })).await;
    case.put("a", "6").await;
    watch.receive_events(case, 1).await;
}

async fn starts_before_everything(case: &mut Case) {
    case.put("a", "1").await;
    let mut watch = case.open("Watch/Watch").await;
    for start in [-1, i64::MIN] {
        create(case, &mut watch, json!({ "key": "a", "start_revision": start })).await;
    }
    create(case, &mut watch, json!({ "key": "a" })).await;
}

async fn starts_at_a_revision_without_events(case: &mut Case) {
    case.put("a", "1").await;
    let start = case.put("b", "1").await;
    case.put("a", "2").await;
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a", "start_revision": start })).await;
    watch.receive_events(case, 1).await;
}

async fn change(case: &mut Case) {
    let lease = case.grant(60).await;
    case.put("a", "1").await;
    case.call("KV/Put", json!({ "key": "a", "value": "2", "lease": lease })).await;
    case.delete("a").await;
    case.put("a", "3").await;
    let ops = json!([{ "request_delete_range": { "key": "a" } }, { "request_put": { "key": "b", "value": "4" } }]);
    case.call("KV/Txn", json!({ "success": ops })).await;
}

async fn tells_the_entries_before(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a", "range_end": "z", "prev_kv": true })).await;
    change(case).await;
    watch.receive_events(case, 6).await;
}

async fn tells_the_entries_before_of_the_past(case: &mut Case) {
    let first = case.put("a", "0").await;
    change(case).await;
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a", "range_end": "z", "prev_kv": true, "start_revision": first })).await;
    watch.receive_events(case, 7).await;
}

async fn filters(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    for (id, filters) in [
        (1, json!(["NOPUT"])),
        (2, json!(["NODELETE"])),
        (3, json!(["NOPUT", "NODELETE"])),
        (4, json!(["NOPUT", "NOPUT"])),
    ] {
        create(case, &mut watch, json!({ "key": "a", "watch_id": id, "filters": filters })).await;
    }
    case.put("a", "1").await;
    watch.receive(case).await;
    case.delete("a").await;
    watch.receive_by_watch(case, 2).await;
    barrier(case, &mut watch).await;
}

async fn unknown_filters(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a", "filters": [2] })).await;
    create(case, &mut watch, json!({ "key": "a", "filters": [-1, 0] })).await;
    case.put("a", "1").await;
    watch.receive_events(case, 1).await;
}

/// Six large values in three revisions come in pieces, where they may and where they may not: how many there are is all that is of interest.
async fn fragments(case: &mut Case) {
    let value = "v".repeat(600_000);
    let mut first = None;
    for keys in [["a", "b"], ["c", "d"], ["e", "f"]] {
        let ops = keys.map(|key| json!({ "request_put": { "key": key, "value": value } }));
        let done = case.quietly("KV/Txn", json!({ "success": ops })).await;
        case.note("KV/Txn", Some(json!("two values of 600,000 bytes")), Some(json!({ "error": done.get("error") })));
        first.get_or_insert(revision(&done));
    }
    for fragment in [true, false] {
        let mut watch = case.open("Watch/Watch").await;
        create(
            case,
            &mut watch,
            json!({ "key": "a", "range_end": "z", "fragment": fragment, "start_revision": first }),
        )
        .await;
        let mut seen = Vec::new();
        while seen.len() < 6 {
            let answer = watch.next_quietly().await;
            let Some(Value::Array(events)) = answer.get("events") else {
                case.note("Watch/Watch", None, Some(answer));
                return;
            };
            seen.extend(events.iter().map(|event| event.pointer("/kv/key").cloned()));
        }
        case.note("Watch/Watch", None, Some(json!({ "events": seen })));
    }
}

/// Each after a read of the same server, which has heard of the write then: as Kubernetes asks for it.
async fn progress_of_all(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a" })).await;
    create(case, &mut watch, json!({ "key": "b" })).await;
    barrier(case, &mut watch).await;
    for value in ["1", "2"] {
        case.put("c", value).await;
        case.get("c").await;
        barrier(case, &mut watch).await;
    }
    case.put("a", "1").await;
    watch.receive_events(case, 1).await;
    barrier(case, &mut watch).await;
}

async fn progress_with_nothing_watched(case: &mut Case) {
    case.put("a", "1").await;
    let mut watch = case.open("Watch/Watch").await;
    watch.send(case, json!({ "progress_request": {} }));
    watch.receive_nothing(case).await;
    create(case, &mut watch, json!({ "key": "a" })).await;
    watch.send(case, json!({ "cancel_request": { "watch_id": 0 } }));
    watch.receive(case).await;
    watch.send(case, json!({ "progress_request": {} }));
    watch.receive_nothing(case).await;
}

/// A watch that begins with the next revision has nothing behind it.
async fn progress_before_the_start(case: &mut Case) {
    let now = case.put("a", "1").await;
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a", "start_revision": now + 1 })).await;
    watch.send(case, json!({ "progress_request": {} }));
    watch.receive_nothing(case).await;
}

/// It comes after minutes, so all that is seen is that the flag does no harm.
async fn asks_for_progress_by_itself(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a", "progress_notify": true })).await;
    case.put("a", "1").await;
    watch.receive_events(case, 1).await;
}

/// One stays, so that what comes next shows that nothing came for the others.
async fn cancels(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    for (key, id) in [("a", 0), ("b", 9), ("c", 10)] {
        create(case, &mut watch, json!({ "key": key, "watch_id": id })).await;
    }
    for (id, there) in [(7, false), (-1, false), (9, true), (9, false), (0, true), (0, false)] {
        watch.send(case, json!({ "cancel_request": { "watch_id": id } }));
        if there {
            watch.receive(case).await;
        }
        barrier(case, &mut watch).await;
    }
    for key in ["a", "b", "c"] {
        case.put(key, "1").await;
    }
    watch.receive_events(case, 1).await;
}

async fn ranges(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    for (id, (key, end)) in
        [("a", ""), ("a", "b"), ("b", "\0"), ("\0", "\0"), ("a", "a\0"), ("", "\0"), ("", "b")].iter().enumerate()
    {
        create(case, &mut watch, json!({ "key": key, "range_end": end, "watch_id": id + 1 })).await;
    }
    case.put("a", "1").await;
    watch.receive_by_watch(case, 6).await;
    case.put("b", "1").await;
    watch.receive_by_watch(case, 3).await;
    barrier(case, &mut watch).await;
}

async fn ranges_that_are_none(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    for (key, end) in [("b", "a"), ("a", "a"), ("", ""), ("b\0", "b")] {
        create(case, &mut watch, json!({ "key": key, "range_end": end, "watch_id": 4 })).await;
    }
    // What is wrong with the revision is said first.
    create(case, &mut watch, json!({ "key": "b", "range_end": "a", "start_revision": -1 })).await;
    create(case, &mut watch, json!({ "key": "a", "watch_id": 4 })).await;
    create(case, &mut watch, json!({ "key": "a" })).await;
}

async fn removed_ranges(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    for key in ["c", "a", "b"] {
        case.put(key, "1").await;
    }
    create(case, &mut watch, json!({ "key": "a", "range_end": "z", "prev_kv": true })).await;
    case.call("KV/DeleteRange", json!({ "key": "a", "range_end": "z" })).await;
    watch.receive(case).await;
}

async fn transactions_in_one_piece(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    case.put("b", "0").await;
    create(case, &mut watch, json!({ "key": "a", "range_end": "z" })).await;
    let put = |key: &str| json!({ "request_put": { "key": key, "value": "1" } });
    let delete = json!({ "request_delete_range": { "key": "b" } });
    let nested = json!({ "request_txn": { "success": [put("y"), put("d")] } });
    case.call("KV/Txn", json!({ "success": [put("z"), put("c"), delete, nested, put("a")] })).await;
    watch.receive(case).await;
}

async fn expired_leases_in_one_piece(case: &mut Case) {
    let lease = case.grant(2).await;
    for key in ["b", "a", "c"] {
        case.call("KV/Put", json!({ "key": key, "value": "1", "lease": lease })).await;
    }
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a", "range_end": "z", "prev_kv": true })).await;
    watch.receive(case).await;
    case.call("Lease/LeaseTimeToLive", json!({ "ID": lease, "keys": true })).await;
    case.call("KV/Range", json!({ "key": "a", "range_end": "z" })).await;
}

async fn revoked_leases(case: &mut Case) {
    let lease = case.grant(60).await;
    for key in ["b", "a"] {
        case.call("KV/Put", json!({ "key": key, "value": "1", "lease": lease })).await;
    }
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a", "range_end": "z" })).await;
    case.call("Lease/LeaseRevoke", json!({ "ID": lease })).await;
    watch.receive(case).await;
}

async fn many_watches_of_one_key(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    let first = case.put("a", "1").await;
    for id in 0..8 {
        create(case, &mut watch, json!({ "key": "a", "prev_kv": id % 2 == 0, "filters": if id < 4 { json!([]) } else { json!(["NODELETE"]) } })).await;
    }
    case.put("a", "2").await;
    watch.receive_by_watch(case, 8).await;
    case.delete("a").await;
    watch.receive_by_watch(case, 4).await;
    create(case, &mut watch, json!({ "key": "a", "start_revision": first })).await;
    watch.receive_events(case, 3).await;
}

async fn a_client_that_sends_nothing_more(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    create(case, &mut watch, json!({ "key": "a" })).await;
    watch.close();
    case.put("a", "1").await;
    watch.receive_events(case, 1).await;
}

async fn a_request_that_is_none(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    watch.send(case, json!({}));
    create(case, &mut watch, json!({ "key": "a" })).await;
    watch.send(case, json!({}));
    barrier(case, &mut watch).await;
}

async fn keeps_the_order_of_requests(case: &mut Case) {
    let mut watch = case.open("Watch/Watch").await;
    for id in [4, 2, 4, 8, 6] {
        watch.send(case, json!({ "create_request": { "key": "a", "watch_id": id } }));
    }
    for _ in 0..5 {
        watch.receive(case).await;
    }
}
