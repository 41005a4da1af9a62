//! Changes of everything that matches: each entry once, whatever is sent twice.

use cluster_harness::fill::fill;
use cluster_harness::{Cluster, Request};
use quorate_client::api::{BulkOutcome, CountAnswer, DigestAnswer, EntryView, WhereAnswer};
use serde_json::{Value, json};

const DOCUMENTS: u64 = 2_500;

async fn post<T: serde::de::DeserializeOwned>(cluster: &Cluster, id: u64, route: &str, body: &Value) -> T {
    let request = Request::post(route, body.to_string());
    request.send(cluster.client_address(id)).await.expect("the node answers").expect_success().json()
}

async fn count(cluster: &Cluster, criteria: Value) -> u64 {
    let body = json!({"prefix": "docs/", "where": criteria});
    post::<CountAnswer>(cluster, 1, "/v1/count", &body).await.count
}

async fn filled() -> Cluster {
    let cluster = Cluster::start().await;
    let document = |n: u64| json!({"n": 0, "even": n.is_multiple_of(2), "text": if n % 500 == 7 { json!([]) } else { json!("x") }});
    fill(&cluster.client_without(None), DOCUMENTS, |n| format!("docs/{n:05}"), document).await;
    cluster
}

/// Fault: the leader is killed between a page and its repeat, which comes to another node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_pages_of_an_update_apply_once_each_though_all_are_sent_twice() {
    let mut cluster = filled().await;
    let mut body = json!({"prefix": "docs/", "where": [], "if": [{"field": "even", "op": "eq", "value": true}],
        "patch": [{"op": "inc", "path": "n", "value": 1}], "limit": 400});
    let (mut matched, mut applied, mut skipped, mut pages) = (0, 0, 0, 0);
    loop {
        body["request_id"] = json!(format!("page-{pages}"));
        let first: WhereAnswer = post(&cluster, 1 + pages % 3, "/v1/update_where", &body).await;
        if pages == 1 {
            let leader = cluster.leader().await;
            cluster.kill(leader).await;
            cluster.bring_up(leader).await;
        }
        let again: WhereAnswer = post(&cluster, 1 + (pages + 1) % 3, "/v1/update_where", &body).await;
        assert_eq!(again, WhereAnswer { replayed: true, ..first.clone() }, "page {pages}");
        assert!(first.applied <= 400 && first.results.len() <= 100, "{first:?}");
        assert!(first.results.iter().all(|item| item.outcome == BulkOutcome::Skipped && item.code.is_some()));
        (matched, applied, skipped) = (matched + first.matched, applied + first.applied, skipped + first.skipped);
        pages += 1;
        match first.cursor {
            Some(cursor) => body["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert_eq!((matched, applied, skipped, pages), (DOCUMENTS, DOCUMENTS / 2, DOCUMENTS / 2, 4));
    let even = |even: bool, n: u64| json!([{"field": "even", "op": "eq", "value": even}, {"field": "n", "op": "eq", "value": n}]);
    assert_eq!(count(&cluster, even(true, 1)).await, DOCUMENTS / 2);
    assert_eq!(count(&cluster, even(false, 0)).await, DOCUMENTS / 2);
    cluster.assert_agreement().await;
}

/// Without what says where it stands in the log, when it was, and that it was a dry run.
fn bare(mut answer: WhereAnswer) -> WhereAnswer {
    (answer.revision, answer.index, answer.dry_run) = (0, 0, false);
    for item in &mut answer.results {
        item.revision = 0;
        if let Some(entry) = &mut item.current {
            entry.lock_ms = None;
        }
    }
    answer
}

/// The digest of a node that has applied all that was answered: writes are answered a moment before any state shows them.
async fn digest_after_all(cluster: &Cluster) -> DigestAnswer {
    Request::get("/v1/kv/docs/00003").send(cluster.client_address(2)).await.expect("an answer").expect_success();
    cluster.digest(2).await.expect("a digest")
}

/// The node that is asked judges a dry run, and the log a real one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_tells_what_the_real_run_does_and_leaves_no_trace() {
    let mut cluster = filled().await;
    let lock = json!({"op": "lock", "key": "docs/00003", "lock_ms": 30_000});
    post::<Value>(&cluster, 1, "/v1/ops", &lock).await;
    // Some fail: an `append` takes no text. One is locked.
    let update = json!({"prefix": "docs/", "where": [{"field": "$key", "op": "lt", "value": "docs/01000"}],
        "patch": [{"op": "append", "path": "text", "value": 1}]});
    let delete = json!({"prefix": "docs/", "where": [{"field": "even", "op": "eq", "value": false}], "limit": 700});
    for (number, (route, body)) in [("/v1/update_where", update), ("/v1/delete_where", delete)].into_iter().enumerate()
    {
        let before = digest_after_all(&cluster).await;
        let mut dry = body.clone();
        dry["dry_run"] = json!(true);
        let told: WhereAnswer = post(&cluster, 1 + number as u64, route, &dry).await;
        assert!(told.dry_run);
        let after = digest_after_all(&cluster).await;
        assert_eq!(told.revision, before.revision, "it names no revision that is yet to come");
        // The clock of a pending lock is committed now and then; nothing else moves.
        assert_eq!(before.revision, after.revision, "a dry run takes no revision");
        let done: WhereAnswer = post(&cluster, 3, route, &body).await;
        assert_eq!(bare(told), bare(done.clone()), "{route}");
        match number {
            0 => assert_eq!((done.matched, done.applied, done.failed, done.results.len()), (1_000, 2, 998, 100)),
            _ => assert_eq!((done.applied, done.failed, done.cursor.is_some()), (700, 1, true)),
        }
        let locked = done.results.iter().find(|item| item.key == "docs/00003").expect("it is among the first");
        assert!(locked.current.as_ref().is_some_and(|entry: &EntryView| entry.locked), "{locked:?}");
    }
    // Every key only where it is asked for.
    let missing = Request::post("/v1/delete_where", r#"{"where":[]}"#).send(cluster.client_address(1)).await;
    assert_eq!(missing.expect("an answer").problem().errors[0].pointer, "/prefix");
    cluster.assert_agreement().await;
}
