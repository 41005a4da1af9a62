//! Watches.
//!
//! A progress is asked for after a read of the same server, which has heard of the writes then. One watch stays where others are cancelled, so
//! that what comes next shows that nothing came for them.

use serde_json::{Value, json};

use super::cases;
use crate::case::{Case, revision};
use crate::stream::Stream;

cases! {
    a_key_and_a_range, ids, starts_now, starts_in_the_future, filters, fragments, ranges, many_watches_of_one_key,
    a_client_that_sends_nothing_more,
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

async fn fill(case: &mut Case) -> Vec<i64> {
    let mut revisions = Vec::new();
    for (key, value) in [("a", "1"), ("b", "1"), ("a", "2")] {
        revisions.push(case.put(key, value).await);
    }
    revisions.push(case.delete("a").await);
    revisions.push(case.put("a", "3").await);
    revisions
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
