//! Members.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! { lists_members, refuses_members_that_are_not_there, refuses_addresses, adds_and_removes_a_learner }

async fn lists_members(case: &mut Case) {
    case.call("Cluster/MemberList", json!({ "linearizable": true })).await;
    case.call("Cluster/MemberList", json!({})).await;
    let listed = case.quietly("Cluster/MemberList", json!({})).await;
    let ids: Vec<_> =
        listed["members"].as_array().into_iter().flatten().filter_map(|member| member["ID"].as_str()).collect();
    let answering = listed.pointer("/header/member_id").and_then(Value::as_str).unwrap_or("none");
    let sorted = ids.is_sorted_by_key(|id| id.parse::<u64>().ok());
    case.note(
        "Cluster/MemberList",
        None,
        Some(json!({ "who answers is one of them": ids.contains(&answering), "sorted": sorted })),
    );
}

async fn refuses_members_that_are_not_there(case: &mut Case) {
    for id in [12_345, 0] {
        case.call("Cluster/MemberRemove", json!({ "ID": id })).await;
        case.call("Cluster/MemberPromote", json!({ "ID": id })).await;
        case.call("Cluster/MemberUpdate", json!({ "ID": id, "peerURLs": ["http://127.0.0.1:9"] })).await;
    }
    // A voter is one already.
    let listed = case.quietly("Cluster/MemberList", json!({})).await;
    let id = listed.pointer("/members/0/ID").cloned().unwrap_or(json!("1"));
    case.call("Cluster/MemberPromote", json!({ "ID": id })).await;
}

async fn refuses_addresses(case: &mut Case) {
    let listed = case.quietly("Cluster/MemberList", json!({})).await;
    let taken = listed.pointer("/members/0/peerURLs/0").cloned().unwrap_or(json!("http://127.0.0.1:9"));
    for urls in [json!([]), json!(["not a url"]), json!(["127.0.0.1:9"]), json!(["http://127.0.0.1"]), json!([taken])] {
        let answer = case.quietly("Cluster/MemberAdd", json!({ "peerURLs": urls, "isLearner": true })).await;
        // What is given may be an address of this run.
        case.note("Cluster/MemberAdd", None, Some(answer));
    }
}

async fn adds_and_removes_a_learner(case: &mut Case) {
    let added = case.call("Cluster/MemberAdd", json!({ "peerURLs": ["http://127.0.0.1:9"], "isLearner": true })).await;
    let Some(id) = added.pointer("/member/ID").cloned() else { return };
    case.call("Cluster/MemberList", json!({ "linearizable": true })).await;
    case.call("Cluster/MemberAdd", json!({ "peerURLs": ["http://127.0.0.1:9"], "isLearner": true })).await;
    case.call("Cluster/MemberAdd", json!({ "peerURLs": ["http://127.0.0.1:10"], "isLearner": true })).await;
    case.call("Cluster/MemberPromote", json!({ "ID": id })).await;
    case.call("Cluster/MemberUpdate", json!({ "ID": id, "peerURLs": ["http://127.0.0.1:11"] })).await;
    for _ in 0..2 {
        case.call("Cluster/MemberRemove", json!({ "ID": id })).await;
    }
    case.call("Cluster/MemberList", json!({ "linearizable": true })).await;
}
