//! What keeps a cluster in order.
//!
//! The action of an alarm is never one that there is not: that ends the process of an etcd.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! {
    status, an_alarm_of_space, hashes_entries_alike_on_all_members, sends_a_snapshot, refuses_to_move_the_leader,
    downgrades, moves_the_leader,
}

async fn status(case: &mut Case) {
    case.call("Maintenance/Status", json!({})).await;
    let leaders = async |case: &mut Case| {
        let mut leaders = Vec::new();
        for node in case.nodes().to_vec() {
            case.go_to(node).await;
            leaders.push(case.quietly("Maintenance/Status", json!({})).await["leader"].clone());
        }
        leaders
    };
    let leaders = leaders(case).await;
    let alike = leaders.iter().all(|leader| *leader == leaders[0]);
    case.note("Maintenance/Status", None, Some(json!({ "all name the same leader": alike })));
}

/// While it is on, nothing is written; reads and removals go on.
async fn an_alarm_of_space(case: &mut Case) {
    let status = case.quietly("Maintenance/Status", json!({})).await;
    let member = status.pointer("/header/member_id").cloned().unwrap_or(json!("1"));
    case.put("a", "1").await;
    let raised =
        case.call("Maintenance/Alarm", json!({ "action": "ACTIVATE", "memberID": member, "alarm": "NOSPACE" })).await;
    if raised.get("error").is_some() {
        return;
    }
    case.call("Maintenance/Alarm", json!({ "action": "GET" })).await;
    case.put("a", "2").await;
    case.call("KV/Txn", json!({ "success": [{ "request_put": { "key": "a", "value": "3" } }] })).await;
    case.call("KV/Txn", json!({ "success": [{ "request_range": { "key": "a" } }] })).await;
    case.grant(60).await;
    case.get("a").await;
    case.delete("a").await;
    let answer = case.quietly("Maintenance/Status", json!({})).await;
    let errors = answer["errors"].to_string().replace(member.as_str().unwrap_or("none"), "#");
    case.note("Maintenance/Status", None, Some(json!({ "errors": errors })));
    case.call("Maintenance/Alarm", json!({ "action": "DEACTIVATE", "memberID": member, "alarm": "NOSPACE" })).await;
    case.call("Maintenance/Alarm", json!({ "action": "GET" })).await;
    case.put("a", "4").await;
}

async fn hashes_entries_alike_on_all_members(case: &mut Case) {
    case.put("a", "1").await;
    let revision = case.put("b", "2").await;
    let mut hashes = Vec::new();
    for node in case.nodes().to_vec() {
        case.go_to(node).await;
        // It has heard of the writes then.
        case.quietly("KV/Range", json!({ "key": "a" })).await;
        hashes.push(case.quietly("Maintenance/HashKV", json!({ "revision": revision })).await["hash"].clone());
    }
    let alike = !hashes[0].is_null() && hashes.iter().all(|hash| *hash == hashes[0]);
    case.note("Maintenance/HashKV", None, Some(json!({ "alike": alike })));
}

/// What is in it is each server's own; that it comes in pieces which count down is not.
async fn sends_a_snapshot(case: &mut Case) {
    case.put("a", "1").await;
    let mut stream = case.open("Maintenance/Snapshot").await;
    stream.send(case, json!({}));
    stream.close();
    let (mut pieces, mut remaining, mut counts_down) = (0, u64::MAX, true);
    loop {
        let answer = stream.next_quietly().await;
        if answer.get("error").is_some() || !answer.is_object() {
            case.note("Maintenance/Snapshot", None, Some(answer));
            break;
        }
        let number = answer.get("remaining_bytes").and_then(Value::as_str).map_or(0, |text| text.parse().unwrap_or(0));
        counts_down &= number <= remaining;
        (remaining, pieces) = (number, pieces + 1);
    }
    case.note(
        "Maintenance/Snapshot",
        None,
        Some(json!({ "pieces": pieces > 0, "count down": counts_down, "remaining": remaining == 0 })),
    );
}

async fn refuses_to_move_the_leader(case: &mut Case) {
    let (leader, follower) = case.leader_and_follower().await;
    for node in [leader, follower] {
        case.go_to(node).await;
        for id in [12_345_u64, 0] {
            case.call("Maintenance/MoveLeader", json!({ "targetID": id })).await;
        }
    }
    case.go_to(follower).await;
    let member = case.quietly("Maintenance/Status", json!({})).await.pointer("/header/member_id").cloned();
    case.call("Maintenance/MoveLeader", json!({ "targetID": member })).await;
}

async fn downgrades(case: &mut Case) {
    for action in ["VALIDATE", "ENABLE", "CANCEL"] {
        for version in ["", "not a version", "3.4.0", "9.0.0"] {
            case.call("Maintenance/Downgrade", json!({ "action": action, "version": version })).await;
        }
    }
    case.call("Maintenance/Downgrade", json!({ "action": 7, "version": "3.5.0" })).await;
}

async fn moves_the_leader(case: &mut Case) {
    let (leader, follower) = case.leader_and_follower().await;
    case.go_to(follower).await;
    let member = case.quietly("Maintenance/Status", json!({})).await.pointer("/header/member_id").cloned();
    case.go_to(leader).await;
    case.call("Maintenance/MoveLeader", json!({ "targetID": member })).await;
    case.go_to(follower).await;
    let leads = case.quietly("Maintenance/Status", json!({})).await["leader"].clone();
    case.note("Maintenance/Status", None, Some(json!({ "it leads": Some(leads) == member })));
    case.put("a", "1").await;
}
