//! The service that keeps locks.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! {
    takes_turns, is_taken_again_by_who_has_it, lets_go_with_its_lease, refuses_a_lease_that_is_not_there,
    begins_a_lease_of_its_own, is_an_entry_as_any_other, gives_up_waiting_with_its_lease,
}

async fn lock(case: &mut Case, name: &str, lease: i64) -> Value {
    case.call("Lock/Lock", json!({ "name": name, "lease": lease })).await
}

async fn unlock(case: &mut Case, answer: &Value) {
    case.call("Lock/Unlock", json!({ "key": answer.get("key").and_then(Value::as_str).unwrap_or("none") })).await;
}

/// Waits until so many stand in the queue of a lock.
async fn queued(case: &mut Case, prefix: &str, count: i64) {
    let end = format!("{prefix}0");
    for _ in 0..200 {
        let read = case
            .quietly("KV/Range", json!({ "key": format!("{prefix}/"), "range_end": end, "count_only": true }))
            .await;
        if read.get("count").and_then(Value::as_str) == Some(&count.to_string()) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn takes_turns(case: &mut Case) {
    let (one, two, three) = (case.grant(60).await, case.grant(60).await, case.grant(60).await);
    let first = lock(case, "l", one).await;
    if first.get("error").is_some() {
        return;
    }
    let second = case.begin("Lock/Lock", json!({ "name": "l", "lease": two })).await;
    queued(case, "l", 2).await;
    let third = case.begin("Lock/Lock", json!({ "name": "l", "lease": three })).await;
    queued(case, "l", 3).await;
    case.all().await;
    unlock(case, &first).await;
    let second = case.finish(second).await;
    case.all().await;
    unlock(case, &second).await;
    let third = case.finish(third).await;
    unlock(case, &third).await;
    case.all().await;
}

async fn is_taken_again_by_who_has_it(case: &mut Case) {
    let lease = case.grant(60).await;
    let first = lock(case, "l", lease).await;
    lock(case, "l", lease).await;
    case.all().await;
    unlock(case, &first).await;
    case.all().await;
    lock(case, "l", lease).await;
}

async fn lets_go_with_its_lease(case: &mut Case) {
    let (one, two) = (case.grant(60).await, case.grant(60).await);
    if lock(case, "l", one).await.get("error").is_some() {
        return;
    }
    let second = case.begin("Lock/Lock", json!({ "name": "l", "lease": two })).await;
    queued(case, "l", 2).await;
    case.call("Lease/LeaseRevoke", json!({ "ID": one })).await;
    case.finish(second).await;
    case.all().await;
}

async fn refuses_a_lease_that_is_not_there(case: &mut Case) {
    for lease in [12_345, -1] {
        lock(case, "l", lease).await;
    }
    case.all().await;
}

async fn begins_a_lease_of_its_own(case: &mut Case) {
    let locked = case.quietly("Lock/Lock", json!({ "name": "l" })).await;
    let key = locked.get("key").and_then(Value::as_str).unwrap_or("none").to_owned();
    case.note(
        "Lock/Lock",
        Some(json!({ "name": "l" })),
        Some(json!({ "error": locked.get("error"), "key": key.starts_with("l/") })),
    );
    let mut entry = case.quietly("KV/Range", json!({ "key": key })).await;
    let lease = entry.pointer("/kvs/0/lease").and_then(Value::as_str).unwrap_or("0").to_owned();
    let named = i64::from_str_radix(key.trim_start_matches("l/"), 16).is_ok_and(|id| id.to_string() == lease);
    case.note("KV/Range", None, Some(json!({ "count": entry["count"].take(), "its key ends with its lease": named })));
    case.call("Lease/LeaseTimeToLive", json!({ "ID": lease })).await;
    case.call("Lock/Unlock", json!({ "key": key })).await;
    case.call("Lease/LeaseTimeToLive", json!({ "ID": lease })).await;
}

/// Who removes the entry has unlocked it.
async fn is_an_entry_as_any_other(case: &mut Case) {
    let (one, two) = (case.grant(60).await, case.grant(60).await);
    let first = lock(case, "l", one).await;
    if first.get("error").is_some() {
        return;
    }
    let second = case.begin("Lock/Lock", json!({ "name": "l", "lease": two })).await;
    queued(case, "l", 2).await;
    case.delete(first["key"].as_str().unwrap_or("none")).await;
    case.finish(second).await;
}

async fn gives_up_waiting_with_its_lease(case: &mut Case) {
    let (one, two) = (case.grant(60).await, case.grant(60).await);
    let first = lock(case, "l", one).await;
    if first.get("error").is_some() {
        return;
    }
    let second = case.begin("Lock/Lock", json!({ "name": "l", "lease": two })).await;
    queued(case, "l", 2).await;
    case.call("Lease/LeaseRevoke", json!({ "ID": two })).await;
    case.all().await;
    unlock(case, &first).await;
    case.finish(second).await;
}
