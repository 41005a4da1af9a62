//! The service that holds elections.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! {
    takes_turns, proclaims, proclaims_what_it_does_not_lead, observes, resigns_what_it_does_not_lead,
    refuses_a_lease_that_is_not_there, follows_the_lease, begins_a_lease_of_its_own,
}

async fn campaign(case: &mut Case, lease: i64, value: &str) -> Value {
    let won = case.call("Election/Campaign", json!({ "name": "e", "lease": lease, "value": value })).await;
    won.get("leader").cloned().unwrap_or(json!({ "name": "e", "key": "none", "rev": "1", "lease": "12345" }))
}

async fn leader(case: &mut Case) -> Value {
    case.call("Election/Leader", json!({ "name": "e" })).await
}

/// Waits until so many stand for it; false where the service is not there.
async fn standing(case: &mut Case, count: i64) -> bool {
    for _ in 0..200 {
        let read = case.quietly("KV/Range", json!({ "key": "e/", "range_end": "e0", "count_only": true })).await;
        if read.get("count").and_then(Value::as_str) == Some(&count.to_string()) {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    false
}

async fn takes_turns(case: &mut Case) {
    let (one, two, three) = (case.grant(60).await, case.grant(60).await, case.grant(60).await);
    let first = case.call("Election/Campaign", json!({ "name": "e", "lease": one, "value": "one" })).await;
    if first.get("error").is_some() {
        return;
    }
    leader(case).await;
    let second = case.begin("Election/Campaign", json!({ "name": "e", "lease": two, "value": "two" })).await;
    standing(case, 2).await;
    let third = case.begin("Election/Campaign", json!({ "name": "e", "lease": three, "value": "three" })).await;
    standing(case, 3).await;
    case.all().await;
    leader(case).await;
    case.call("Election/Resign", json!({ "leader": first["leader"] })).await;
    let second = case.finish(second).await;
    leader(case).await;
    case.call("Election/Resign", json!({ "leader": second["leader"] })).await;
    let third = case.finish(third).await;
    leader(case).await;
    case.call("Election/Resign", json!({ "leader": third["leader"] })).await;
    leader(case).await;
    case.all().await;
}

async fn proclaims(case: &mut Case) {
    let lease = case.grant(60).await;
    let leads = campaign(case, lease, "one").await;
    for value in ["two", "", "three"] {
        case.call("Election/Proclaim", json!({ "leader": leads, "value": value })).await;
        leader(case).await;
    }
}

async fn proclaims_what_it_does_not_lead(case: &mut Case) {
    let lease = case.grant(60).await;
    let leads = campaign(case, lease, "one").await;
    case.call("Election/Resign", json!({ "leader": leads })).await;
    case.call("Election/Proclaim", json!({ "leader": leads, "value": "two" })).await;
    let mut other = campaign(case, lease, "three").await;
    other["rev"] = json!("1");
    case.call("Election/Proclaim", json!({ "leader": other, "value": "four" })).await;
    leader(case).await;
}

async fn observes(case: &mut Case) {
    let (one, two) = (case.grant(60).await, case.grant(60).await);
    let first = case.call("Election/Campaign", json!({ "name": "e", "lease": one, "value": "one" })).await;
    if first.get("error").is_some() {
        return;
    }
    let mut observed = case.open("Election/Observe").await;
    observed.send(case, json!({ "name": "e" }));
    observed.close();
    observed.receive(case).await;
    case.call("Election/Proclaim", json!({ "leader": first["leader"], "value": "more" })).await;
    observed.receive(case).await;
    let second = case.begin("Election/Campaign", json!({ "name": "e", "lease": two, "value": "two" })).await;
    standing(case, 2).await;
    case.call("Election/Resign", json!({ "leader": first["leader"] })).await;
    observed.receive(case).await;
    case.finish(second).await;
}

async fn resigns_what_it_does_not_lead(case: &mut Case) {
    let lease = case.grant(60).await;
    let leads = campaign(case, lease, "one").await;
    let mut stale = leads.clone();
    stale["rev"] = json!("1");
    case.call("Election/Resign", json!({ "leader": stale })).await;
    leader(case).await;
    for _ in 0..2 {
        case.call("Election/Resign", json!({ "leader": leads })).await;
    }
    case.call("Election/Resign", json!({ "leader": { "name": "e", "key": "none", "rev": "5", "lease": lease } })).await;
}

async fn refuses_a_lease_that_is_not_there(case: &mut Case) {
    for lease in [12_345, -1] {
        campaign(case, lease, "one").await;
    }
    case.all().await;
}

async fn follows_the_lease(case: &mut Case) {
    let (one, two) = (case.grant(60).await, case.grant(60).await);
    let first = case.call("Election/Campaign", json!({ "name": "e", "lease": one, "value": "one" })).await;
    if first.get("error").is_some() {
        return;
    }
    let second = case.begin("Election/Campaign", json!({ "name": "e", "lease": two, "value": "two" })).await;
    standing(case, 2).await;
    case.call("Lease/LeaseRevoke", json!({ "ID": one })).await;
    case.finish(second).await;
    leader(case).await;
    case.call("Election/Resign", json!({ "leader": first["leader"] })).await;
    leader(case).await;
}

async fn begins_a_lease_of_its_own(case: &mut Case) {
    let won = case.quietly("Election/Campaign", json!({ "name": "e", "value": "one" })).await;
    let lease = won.pointer("/leader/lease").and_then(Value::as_str).unwrap_or("0").to_owned();
    case.note(
        "Election/Campaign",
        Some(json!({ "name": "e", "value": "one" })),
        Some(json!({ "error": won.get("error"), "lease": lease })),
    );
    leader(case).await;
    case.call("Lease/LeaseTimeToLive", json!({ "ID": lease })).await;
}
