//! Finds and counts: pages that hang together, freshness, and bounds. Transcripts show what is found.

use quorate_api::{CountAnswer, ErrorCode, FindAnswer};
use quorate_machine::types::{ContentKind, Value};
use quorate_node_core::backend::Consistency;
use serde_json::{Value as Json, json};

use crate::memory_node::WALL;
use crate::raw::{Server, post};

async fn find(server: &Server, body: Json) -> FindAnswer {
    let response = post(server, "/v1/find", body.clone()).await;
    assert_eq!(response.status, 200, "{body}: {response:?}");
    let answer: FindAnswer = serde_json::from_slice(&response.body).expect("a FindAnswer");
    assert_eq!(response.header("quorate-revision"), Some(answer.revision.to_string().as_str()));
    answer
}

async fn count(server: &Server, body: Json) -> CountAnswer {
    let response = post(server, "/v1/count", body.clone()).await;
    assert_eq!(response.status, 200, "{body}: {response:?}");
    serde_json::from_slice(&response.body).expect("a CountAnswer")
}

fn keys(answer: &FindAnswer) -> Vec<&str> {
    answer.entries.iter().map(|entry| entry.key.text().expect("a text")).collect()
}

fn next(mut body: Json, answer: &FindAnswer) -> Json {
    body["cursor"] = json!(answer.cursor.as_ref().expect("more to come"));
    body
}

async fn filled() -> Server {
    let server = Server::start().await;
    for (key, value) in [
        ("j/1", json!({"status": "due", "at": WALL - 1, "rank": 2, "who": {"name": "a", "age": 1}})),
        ("j/2", json!({"status": "due", "at": WALL, "rank": 10})),
        ("j/3", json!({"status": "done", "at": WALL + 1})),
        ("j/4", json!({"status": "due", "at": WALL + 1, "rank": "x"})),
        ("k/1", json!({"status": "due"})),
    ] {
        server.backend.seed(key, Value { kind: ContentKind::Json, data: value.to_string().into_bytes() });
    }
    server.backend.seed("j/5", Value { kind: ContentKind::Bytes, data: b"status".to_vec() });
    server
}

#[tokio::test]
async fn all_pages_show_the_moment_of_the_first_in_any_order() {
    for (order, expected) in [
        (json!(["-rank"]), ["j/4", "j/2", "j/1", "j/5", "j/3"]),
        (json!(["status", "-at"]), ["j/5", "j/3", "j/4", "j/2", "j/1"]),
        (json!(["-$key"]), ["j/5", "j/4", "j/3", "j/2", "j/1"]),
        (json!([]), ["j/1", "j/2", "j/3", "j/4", "j/5"]),
    ] {
        let server = filled().await;
        let body = json!({"prefix": "j/", "order_by": order, "limit": 2});
        let first = find(&server, body.clone()).await;
        server.ask("DELETE", &format!("/v1/kv/{}", expected[2]), &[], b"").await;
        server.put_json("/v1/kv/j/0", r#"{"rank":5,"status":"due"}"#).await;
        let second = find(&server, next(body.clone(), &first)).await;
        server.put_json(&format!("/v1/kv/{}", expected[4]), "{}").await;
        let third = find(&server, next(body.clone(), &second)).await;
        let all: Vec<_> = [&first, &second, &third].into_iter().flat_map(keys).collect();
        assert_eq!(all, expected, "{body}");
        assert_eq!((second.revision, third.revision, third.cursor), (first.revision, first.revision, None));
    }
}

#[tokio::test]
async fn freshness_and_revision_are_those_of_listings() {
    let server = filled().await;
    find(&server, json!({})).await;
    find(&server, json!({"consistency": "local"})).await;
    count(&server, json!({"min_revision": 3})).await;
    let barriers = server.backend.barriers();
    assert_eq!(barriers, [Consistency::Linearizable, Consistency::Local, Consistency::AtLeast(3)]);

    let body = json!({"limit": 1});
    let first = find(&server, body.clone()).await;
    let again = next(body, &first);
    server.put_json("/v1/kv/x", "1").await;
    server.backend.compact_to(first.revision + 1);
    for (route, body) in
        [("/v1/find", again), ("/v1/find", json!({"revision": 3})), ("/v1/count", json!({"revision": 3}))]
    {
        let problem = post(&server, route, body.clone()).await.problem();
        assert_eq!((problem.code, problem.oldest_revision), (ErrorCode::Compacted, Some(first.revision + 1)), "{body}");
    }
}

#[tokio::test]
async fn a_cursor_fits_the_query_that_it_came_from() {
    let server = filled().await;
    let body = json!({"prefix": "j/", "where": [{"field": "status", "op": "exists"}], "order_by": ["at"], "limit": 1});
    let again = next(body.clone(), &find(&server, body).await);
    let with = |name: &str, value: Json| {
        let mut changed = again.clone();
        changed[name] = value;
        changed
    };
    // What does not decide which entries there are may differ.
    let fine = find(&server, with("limit", json!(5))).await;
    assert_eq!(find(&server, with("keys_only", json!(true))).await.revision, fine.revision);
    find(&server, with("revision", json!(fine.revision))).await;
    for changed in [
        with("prefix", json!("j")),
        with("where", json!([])),
        with("order_by", json!(["-at"])),
        with("cursor", json!("AAAA")),
        with("revision", json!(2)),
    ] {
        let problem = post(&server, "/v1/find", changed.clone()).await.problem();
        assert_eq!((problem.code, problem.errors.len()), (ErrorCode::InvalidArgument, 1), "{changed}");
    }
    let listing = server.get("/v1/kv?limit=1").await.json()["cursor"].clone();
    assert_eq!(post(&server, "/v1/find", with("cursor", listing)).await.status, 400);
    let cursor = again["cursor"].as_str().expect("text");
    assert_eq!(server.get(&format!("/v1/kv?cursor={cursor}")).await.status, 400);
    let count = json!({"prefix": "j/", "where": again["where"], "cursor": cursor});
    assert_eq!(post(&server, "/v1/count", count).await.status, 400);
}

#[tokio::test]
async fn a_scan_ends_at_its_bound_and_goes_on_with_the_cursor_or_refuses_to_order() {
    const MANY: u64 = 10_001;
    let server = Server::start().await;
    for n in 0..MANY {
        server.backend.seed(&format!("n/{n:05}"), Value { kind: ContentKind::Json, data: n.to_string().into_bytes() });
    }
    let body = json!({"prefix": "n/", "where": [{"field": "$key", "op": "eq", "value": "n/10000"}]});
    let first = find(&server, body.clone()).await;
    assert_eq!((first.entries.len(), first.examined, first.cursor.is_some()), (0, MANY - 1, true));
    let last = find(&server, next(body.clone(), &first)).await;
    assert_eq!((keys(&last), last.examined, last.cursor.is_some()), (vec!["n/10000"], 1, false));
    let part = count(&server, json!({"prefix": "n/"})).await;
    assert_eq!((part.count, part.cursor.is_some()), (MANY - 1, true));
    let rest = count(&server, json!({"prefix": "n/", "cursor": part.cursor})).await;
    assert_eq!((rest.count, rest.cursor), (1, None));

    let ordered = json!({"prefix": "n/", "order_by": ["a"]});
    let problem = post(&server, "/v1/find", ordered).await.problem();
    assert_eq!((problem.code, problem.errors[0].pointer.as_str()), (ErrorCode::TooLarge, "/order_by"));
    assert!(problem.detail.contains("10000 entries") && problem.detail.contains("narrow the prefix"), "{problem:?}");
    let narrower = find(&server, json!({"prefix": "n/0", "order_by": ["a"], "limit": 1})).await;
    assert_eq!((keys(&narrower), narrower.examined), (vec!["n/00000"], MANY - 1));
}
