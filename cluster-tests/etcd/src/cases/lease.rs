//! Leases.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! {
    grants_an_id_of_its_own, grants_an_id_twice, grants_ids_at_the_ends, revokes_what_is_not_there, keeps_alive,
    keeps_alive_what_is_not_there, keeps_alive_over_one_stream, tells_how_long, tells_of_what_is_not_there, expires,
    does_not_expire_while_it_is_kept_alive, takes_a_revision_for_what_it_removes,
}

async fn grant(case: &mut Case, ttl: i64, id: i64) -> Value {
    case.call("Lease/LeaseGrant", json!({ "TTL": ttl, "ID": id })).await
}

async fn revoke(case: &mut Case, id: i64) {
    case.call("Lease/LeaseRevoke", json!({ "ID": id })).await;
}

async fn time_to_live(case: &mut Case, id: i64, keys: bool) -> Value {
    case.call("Lease/LeaseTimeToLive", json!({ "ID": id, "keys": keys })).await
}

async fn list(case: &mut Case) {
    case.call("Lease/LeaseLeases", json!({})).await;
}

/// Asks by a stream of its own, as clients do that ask once.
async fn keep_alive(case: &mut Case, id: i64) {
    let mut stream = case.open("Lease/LeaseKeepAlive").await;
    stream.send(case, json!({ "ID": id }));
    stream.receive(case).await;
    stream.close();
    stream.receive(case).await;
}

async fn put(case: &mut Case, key: &str, lease: i64) {
    case.call("KV/Put", json!({ "key": key, "value": "1", "lease": lease })).await;
}

async fn grants_an_id_of_its_own(case: &mut Case) {
    let granted = grant(case, 60, 0x7001).await;
    if granted.get("error").is_some() {
        return;
    }
    put(case, "a", 0x7001).await;
    time_to_live(case, 0x7001, true).await;
    case.get("a").await;
    revoke(case, 0x7001).await;
    case.all().await;
    grant(case, 60, 0x7001).await;
    time_to_live(case, 0x7001, true).await;
}

async fn grants_an_id_twice(case: &mut Case) {
    grant(case, 60, 0x7002).await;
    grant(case, 60, 0x7002).await;
    grant(case, 90, 0x7002).await;
    time_to_live(case, 0x7002, false).await;
    let given = case.grant(60).await;
    grant(case, 60, given).await;
}

async fn grants_ids_at_the_ends(case: &mut Case) {
    for id in [-1, i64::MIN, i64::MAX, 1] {
        grant(case, 60, id).await;
        time_to_live(case, id, false).await;
        put(case, "a", id).await;
        case.get("a").await;
        revoke(case, id).await;
    }
}

async fn revokes_what_is_not_there(case: &mut Case) {
    for id in [12_345, 0, -1] {
        revoke(case, id).await;
    }
}

async fn keeps_alive(case: &mut Case) {
    let id = case.grant(60).await;
    keep_alive(case, id).await;
    keep_alive(case, id).await;
    revoke(case, id).await;
    keep_alive(case, id).await;
}

async fn keeps_alive_what_is_not_there(case: &mut Case) {
    for id in [12_345, 0, -1] {
        keep_alive(case, id).await;
    }
}

async fn keeps_alive_over_one_stream(case: &mut Case) {
    let (one, other) = (case.grant(60).await, case.grant(90).await);
    let mut stream = case.open("Lease/LeaseKeepAlive").await;
    for id in [one, 12_345, other, one, 0, one] {
        stream.send(case, json!({ "ID": id }));
        stream.receive(case).await;
    }
    // Any number at once.
    for id in [other, one, 12_345] {
        stream.send(case, json!({ "ID": id }));
    }
    for _ in 0..3 {
        stream.receive(case).await;
    }
    stream.close();
    stream.receive(case).await;
}

async fn tells_how_long(case: &mut Case) {
    let id = case.grant(60).await;
    time_to_live(case, id, false).await;
    time_to_live(case, id, true).await;
    for key in ["b", "c", "a"] {
        put(case, key, id).await;
    }
    time_to_live(case, id, false).await;
    // The order of the keys is chance.
    let mut answer = case.quietly("Lease/LeaseTimeToLive", json!({ "ID": id, "keys": true })).await;
    if let Some(Value::Array(keys)) = answer.get_mut("keys") {
        keys.sort_by_key(Value::to_string);
    }
    case.note("Lease/LeaseTimeToLive", None, Some(answer));
}

async fn tells_of_what_is_not_there(case: &mut Case) {
    for id in [12_345, 0, -1] {
        time_to_live(case, id, true).await;
    }
    let id = case.grant(60).await;
    revoke(case, id).await;
    time_to_live(case, id, false).await;
}

/// Waits for the removal by a watch, so that nothing depends on how long it takes.
async fn expires(case: &mut Case) {
    let id = case.grant(2).await;
    put(case, "a", id).await;
    put(case, "b", id).await;
    let mut watch = case.open("Watch/Watch").await;
    watch.send(case, json!({ "create_request": { "key": "a", "range_end": "z" } }));
    watch.receive(case).await;
    watch.receive_events(case, 2).await;
    case.all().await;
    time_to_live(case, id, true).await;
    revoke(case, id).await;
    keep_alive(case, id).await;
    put(case, "a", id).await;
    list(case).await;
}

/// A lease that begins later and ends is the clock by which the other one is measured.
async fn does_not_expire_while_it_is_kept_alive(case: &mut Case) {
    let kept = case.grant(2).await;
    put(case, "kept", kept).await;
    let mut watch = case.open("Watch/Watch").await;
    watch.send(case, json!({ "create_request": { "key": "a", "range_end": "z" } }));
    watch.receive(case).await;
    let mut stream = case.open("Lease/LeaseKeepAlive").await;
    let clock = case.grant(3).await;
    put(case, "clock", clock).await;
    watch.receive_events(case, 1).await;
    for _ in 0..40 {
        if case.quietly("KV/Range", json!({ "key": "clock", "count_only": true })).await.get("count").is_none() {
            break;
        }
        stream.send_quietly(json!({ "ID": kept }));
        stream.next_quietly().await;
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    watch.receive_events(case, 1).await;
    case.get("kept").await;
}

async fn takes_a_revision_for_what_it_removes(case: &mut Case) {
    let first = case.put("d", "0").await;
    let id = case.grant(60).await;
    for key in ["a", "b", "c"] {
        put(case, key, id).await;
    }
    revoke(case, id).await;
    case.put("d", "after").await;
    let mut watch = case.open("Watch/Watch").await;
    watch.send(case, json!({ "create_request": { "key": "a", "range_end": "z", "start_revision": first } }));
    watch.receive(case).await;
    watch.receive_events(case, 8).await;
}
