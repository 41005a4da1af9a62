//! The members: what is asked of the cluster, how its answer is shown, and every fault of input.

use quorate_api::{ErrorCode, MemberRole, MembersAnswer, MembersChanged};
use serde_json::json;

use crate::raw::{Response, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const ROUTE: &str = "/v1/cluster/members";

async fn post(server: &Server, route: &str, body: serde_json::Value) -> Response {
    server.ask("POST", route, &[JSON], body.to_string().as_bytes()).await
}

fn read<T: serde::de::DeserializeOwned>(response: &Response) -> T {
    assert_eq!(response.status, 200, "{response:?}");
    response.carries_the_common_headers();
    serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

#[tokio::test]
async fn the_members_are_shown_as_the_leader_knows_them() {
    let server = Server::start().await;
    let answer: MembersAnswer = read(&server.get(ROUTE).await);
    assert_eq!((answer.leader_id, answer.needed, answer.changing), (2, 2, false));
    let shown: Vec<_> = answer.members.iter().map(|member| (member.role, member.leader, member.healthy)).collect();
    let (voter, learner) = (MemberRole::Voter, MemberRole::Learner);
    assert_eq!(shown, [(voter, false, true), (voter, true, true), (voter, false, false), (learner, false, true)]);
    assert_eq!((answer.members[2].lag, answer.members[2].last_contact_ms), (None, None), "nothing is known of it");
}

#[tokio::test]
async fn each_change_is_asked_of_the_cluster_as_it_was_said() {
    let server = Server::start().await;
    let asked = [
        (
            post(&server, ROUTE, json!({"id": 4, "peer_addr": "h:1"})).await,
            "Add { id: 4, peer_addr: \"h:1\", promote: false }",
        ),
        (
            post(&server, ROUTE, json!({"id": 4, "peer_addr": "[::1]:7200", "promote": true})).await,
            "Add { id: 4, peer_addr: \"[::1]:7200\", promote: true }",
        ),
        (server.ask("POST", &format!("{ROUTE}/4/promote"), &[], b"").await, "Promote { id: 4 }"),
        (post(&server, &format!("{ROUTE}/4/demote"), json!({})).await, "Demote { id: 4 }"),
        (server.ask("DELETE", &format!("{ROUTE}/4"), &[], b"").await, "Remove { id: 4 }"),
        (post(&server, &format!("{ROUTE}/3/replace"), json!({"with": 4})).await, "Replace { old: 3, new: 4 }"),
    ];
    for (response, wanted) in asked {
        let answer: MembersChanged = read(&response);
        assert_eq!((answer.explanation, answer.changed, answer.dry_run), (vec![wanted.to_owned()], true, false));
        assert_eq!((answer.voters, answer.learners), (vec![1, 2], vec![4]));
    }
    let dry = server.ask("DELETE", &format!("{ROUTE}/4?dry_run&force=true"), &[], b"").await;
    let dry: MembersChanged = read(&dry);
    assert!(dry.dry_run && !dry.changed);
}

#[tokio::test]
async fn a_refusal_of_the_leader_says_why_and_that_nothing_was_done() {
    let server = Server::start().await;
    let problem = server.ask("DELETE", &format!("{ROUTE}/9"), &[], b"").await.problem();
    assert_eq!((problem.status, problem.code), (409, ErrorCode::ChangeRefused));
    assert_eq!(problem.detail, "it is the last voter");
    assert_eq!(serde_json::to_value(problem.applied).unwrap(), "no");
}

#[tokio::test]
async fn every_fault_of_a_change_is_told_with_its_place() {
    let server = Server::start().await;
    let (bad, unknown) = (ErrorCode::InvalidArgument, ErrorCode::UnknownField);
    let rows = [
        ("POST", "", "{}", bad, vec!["/id"]),
        ("POST", "", r#"{"id":0,"peer_addr":"h","promote":1}"#, bad, vec!["/promote"]),
        ("POST", "", r#"{"id":0,"peer_addr":"h"}"#, bad, vec!["/id"]),
        ("POST", "", r#"{"id":4,"peer_addr":":1"}"#, bad, vec!["/peer_addr"]),
        ("POST", "", r#"{"id":4,"peer_addr":"h:0"}"#, bad, vec!["/peer_addr"]),
        ("POST", "", r#"{"id":4,"peer_addr":"h:1","voter":true}"#, unknown, vec!["/voter"]),
        ("POST", "", "[]", bad, vec![""]),
        ("POST", "", r#"[4,"h:1"]"#, bad, vec![""]),
        ("POST", "/x/promote", "{}", bad, vec!["path:id"]),
        ("POST", "/0/demote", "{}", bad, vec!["path:id"]),
        ("POST", "/4/promote", r#"{"now":true}"#, unknown, vec!["/now"]),
        ("POST", "/4/replace", "{}", bad, vec!["/with"]),
        ("POST", "/4/replace", r#"{"with":"5"}"#, bad, vec!["/with"]),
        ("POST", "/4/promote?dry_run=maybe", "{}", bad, vec!["query:dry_run"]),
        ("POST", "/4/promote?now", "{}", unknown, vec!["query:now"]),
        ("DELETE", "/-1", "", bad, vec!["path:id"]),
    ];
    for (method, rest, body, code, places) in rows {
        let headers = if body.is_empty() { vec![] } else { vec![JSON] };
        let problem = server.ask(method, &format!("{ROUTE}{rest}"), &headers, body.as_bytes()).await.problem();
        let found: Vec<_> = problem.errors.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!((problem.code, found), (code, places), "{method} {rest} {body}: {}", problem.detail);
    }
    assert_eq!(server.get(&format!("{ROUTE}/4")).await.status, 405);
    assert_eq!(server.ask("POST", &format!("{ROUTE}/4/eject"), &[JSON], b"{}").await.status, 404);
}
