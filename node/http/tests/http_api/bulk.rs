//! Many operations in one request: the parts that a bulk becomes, what is told of them, and changes of all that matches.

use quorate_api::{Applied, BulkAnswer, BulkOutcome, ErrorCode, Retry, WhereAnswer};
use quorate_machine::types::{Action, Outcome, RequestId, WhereChange, WhereReply};
use quorate_node_core::backend::{AppError, Consistency};
use serde_json::json;

use crate::raw::{JSON, Response, Server, post, read};

pub const LINES: (&str, &str) = ("Content-Type", "application/x-ndjson");
pub const ID: (&str, &str) = ("Idempotency-Key", "load-7");

pub fn inserts(count: usize) -> String {
    (0..count).map(|n| format!("{{\"op\":\"insert\",\"key\":\"k/{n}\",\"value\":{n}}}\n")).collect()
}

fn answer(response: &Response) -> BulkAnswer {
    assert_eq!(response.status, 200, "{response:?}");
    response.carries_the_common_headers();
    serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{error}: {response:?}"))
}

/// Operations in each part, and the id of the part.
fn parts(server: &Server) -> Vec<(usize, RequestId)> {
    let of = |command: quorate_machine::types::Command| match command.action {
        Action::Bulk(ops) => (ops.len(), command.request_id.expect("each part has one")),
        other => panic!("not a bulk: {other:?}"),
    };
    server.backend.commands().into_iter().map(of).collect()
}

async fn answer_of_lines(server: &Server, headers: &[(&str, &str)], lines: &str) -> BulkAnswer {
    let mut all = vec![LINES];
    all.extend(headers);
    answer(&server.ask("POST", "/v1/bulk", &all, lines.as_bytes()).await)
}

#[tokio::test]
async fn many_lines_go_in_parts_with_ids_of_their_own() {
    let server = Server::start().await;
    let answer = answer_of_lines(&server, &[ID], &inserts(2_500)).await;
    assert_eq!((answer.applied, answer.results.len()), (2_500, 2_500));
    assert!(answer.results.iter().enumerate().all(|(n, item)| item.n == n as u64 && item.key == format!("k/{n}")));
    let id = RequestId("load-7".into());
    assert_eq!(parts(&server), [(1_024, id.clone()), (1_024, id.of_part(1_024)), (452, id.of_part(2_048))]);
    let again = answer_of_lines(&server, &[ID], &inserts(2_500)).await;
    assert_eq!(again, BulkAnswer { replayed: true, ..answer });
}

#[tokio::test]
async fn what_is_left_undecided_begins_the_next_part() {
    const ALL: usize = 8;
    let server = Server::start().await;
    let value = format!("\"{}\"", "x".repeat(1 << 20));
    for n in 0..ALL {
        assert_eq!(server.put_json(&format!("/v1/kv/k%2F{n}"), &value).await.status, 201);
    }
    server.backend.forget_commands();
    // Each reads and writes all of its value: one entry of the log does not hold all of them.
    let touch = |n| format!("{{\"op\":\"touch\",\"key\":\"k/{n}\",\"ttl_ms\":900000}}\n");
    let answer = answer_of_lines(&server, &[ID], &(0..ALL).map(touch).collect::<String>()).await;
    assert_eq!((answer.applied, answer.failed), (8, 0));
    let (parts, id) = (parts(&server), RequestId("load-7".into()));
    assert!((2..ALL).contains(&parts.len()) && parts[0].0 == ALL, "{parts:?}");
    assert!(parts.is_sorted_by(|one, next| one.0 > next.0), "{parts:?}");
    assert!(parts.iter().all(|(left, part)| *part == id.of_part(ALL - left)), "{parts:?}");
}

#[tokio::test]
async fn a_bulk_that_stops_between_two_parts_says_so_and_goes_on_with_the_same_id() {
    let server = Server::start().await;
    for (error, code) in [
        (AppError::TimeoutNotProposed, ErrorCode::Timeout),
        (AppError::NoLeader, ErrorCode::NoLeader),
        (AppError::Overloaded, ErrorCode::TooManyRequests),
    ] {
        server.backend.fail_writes_from(server.backend.asked() + 1, Some(error));
        let problem = server.ask("POST", "/v1/bulk", &[LINES, ID], inserts(1_030).as_bytes()).await.problem();
        assert_eq!((problem.code, problem.applied, problem.retry), (code, Applied::Unknown, Retry::SameRequestId));
        assert!(problem.detail.contains("1024 of the 1030 operations"), "{}", problem.detail);
    }
    server.backend.fail_writes_from(0, None);
    let answer = answer_of_lines(&server, &[ID], &inserts(1_030)).await;
    assert_eq!((answer.applied, answer.replayed), (1_030, false), "the second part was decided only now");
}

#[tokio::test]
async fn a_bulk_that_stops_before_anything_was_applied_says_that_too() {
    let server = Server::start().await;
    server.backend.fail_writes(AppError::TimeoutNotProposed);
    let problem = server.ask("POST", "/v1/bulk", &[LINES], inserts(3).as_bytes()).await.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::Timeout, Applied::No));
    server.backend.fail_writes_from(0, None);
    server.backend.reject_writes(quorate_machine::types::Rejection::RequestIdReused);
    let problem = server.ask("POST", "/v1/bulk", &[LINES, ID], inserts(3).as_bytes()).await.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::RequestIdReused, Applied::No));
}

#[tokio::test]
async fn a_dry_run_of_a_bulk_is_a_read() {
    let server = Server::start().await;
    let object = format!(r#"{{"dry_run":true,"ops":[{}]}}"#, inserts(3).trim_end().replace('\n', ","));
    for (path, headers, body) in [("/v1/bulk?dry_run", [LINES, ID], inserts(3)), ("/v1/bulk", [JSON, ID], object)] {
        let answer = answer(&server.ask("POST", path, &headers, body.as_bytes()).await);
        assert_eq!((answer.applied, answer.dry_run, answer.replayed), (3, true, false));
        let made_nothing = answer.results.iter().all(|item| item.revision == 1 && item.cas.is_none());
        assert!(made_nothing && answer.revision == 1, "{answer:?}");
    }
    assert_eq!(server.backend.commands(), []);
    assert_eq!(server.backend.barriers(), [Consistency::Linearizable; 2]);
    assert_eq!(server.get("/v1/kv/k%2F0").await.status, 404);
}

#[tokio::test]
async fn a_dry_run_of_several_parts_says_what_a_real_run_does() {
    let server = Server::start().await;
    // The last ones depend on what parts before them do.
    let lines = inserts(2_100)
        + r#"{"op":"insert","key":"k/0","value":{}}
{"op":"touch","key":"k/1","ttl_ms":900}
{"op":"remove","key":"k/2000"}
{"op":"remove","key":"k/2000"}
"#;
    let tried = answer(&server.ask("POST", "/v1/bulk?dry_run", &[LINES], lines.as_bytes()).await);
    assert_eq!(server.backend.commands(), [], "a dry run writes nothing");
    let done = answer_of_lines(&server, &[], &lines).await;
    assert_eq!((done.applied, done.skipped, done.failed), (2_102, 1, 1));
    let told = |answer: &BulkAnswer| {
        answer.results.iter().map(|item| (item.outcome, item.code, item.version)).collect::<Vec<_>>()
    };
    assert_eq!(told(&tried), told(&done));
    assert!(tried.dry_run && !done.dry_run);
}

#[tokio::test]
async fn a_bulk_of_the_largest_size_is_read_and_its_bytes_are_counted() {
    let server = Server::start().await;
    let value = "x".repeat(1_600);
    let lines: String =
        (0..9_900).map(|n| format!("{{\"op\":\"upsert\",\"key\":\"{n}\",\"value\":\"{value}\"}}\n")).collect();
    assert!(lines.len() > 15 << 20 && lines.len() < 16 << 20, "{} bytes", lines.len());
    let answer = answer_of_lines(&server, &[], &lines).await;
    assert_eq!(answer.applied, 9_900);
    assert!(parts(&server).iter().all(|(count, _)| (1..=163).contains(count)), "{:?}", parts(&server));
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("route=\"/v1/bulk\""), "{metrics}");
}

#[tokio::test]
async fn a_change_of_all_that_matches_says_that_results_are_left_out_and_writes_nothing_when_it_is_tried() {
    let server = Server::start().await;
    let tried = json!({"prefix": "", "where": [], "patch": {"a": 1}, "dry_run": true});
    assert!(read::<WhereAnswer>(&post(&server, "/v1/update_where", tried).await).dry_run);
    assert_eq!(server.backend.commands(), [], "a dry run is no command");
    assert_eq!(server.backend.barriers(), [Consistency::Linearizable]);
    let reply = WhereReply { matched: 1, failed: 1, left_out: true, ..WhereReply::default() };
    server.backend.come_to(Outcome::Where(reply));
    let retried: WhereAnswer = read(&post(&server, "/v1/delete_where", json!({"prefix": "", "where": []})).await);
    assert_eq!((retried.failed, retried.results.len(), retried.left_out), (1, 0, true), "there were some");
    let Action::Where(op) = server.last_action() else { panic!("not a change of all that matches") };
    assert_eq!((op.change, op.limit), (WhereChange::Remove, 1_000));
}

#[tokio::test]
async fn all_pages_of_a_change_apply_once_each_though_all_are_sent_twice() {
    const DOCUMENTS: u64 = 250;
    let server = Server::start().await;
    let insert =
        |n: u64| json!({"op": "insert", "key": format!("docs/{n:03}"), "value": {"n": 0, "even": n.is_multiple_of(2)}});
    let inserts: Vec<_> = (0..DOCUMENTS).map(insert).collect();
    assert_eq!(post(&server, "/v1/bulk", json!({ "ops": inserts })).await.json()["applied"], DOCUMENTS);
    let mut body = json!({"prefix": "docs/", "where": [], "if": [{"field": "even", "op": "eq", "value": true}],
        "patch": [{"op": "inc", "path": "n", "value": 1}], "limit": 40});
    let (mut matched, mut applied, mut skipped, mut pages) = (0, 0, 0, 0);
    loop {
        body["request_id"] = json!(format!("page-{pages}"));
        let first: WhereAnswer = read(&post(&server, "/v1/update_where", body.clone()).await);
        let again: WhereAnswer = read(&post(&server, "/v1/update_where", body.clone()).await);
        assert_eq!(again, WhereAnswer { replayed: true, ..first.clone() }, "page {pages}");
        assert!(first.results.iter().all(|item| item.outcome == BulkOutcome::Skipped && item.code.is_some()));
        (matched, applied, skipped) = (matched + first.matched, applied + first.applied, skipped + first.skipped);
        pages += 1;
        match first.cursor {
            Some(cursor) => body["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert_eq!((matched, applied, skipped, pages), (DOCUMENTS, DOCUMENTS / 2, DOCUMENTS / 2, 4));
    for (even, n) in [(true, 1), (false, 0)] {
        let criteria = json!([{"field": "even", "op": "eq", "value": even}, {"field": "n", "op": "eq", "value": n}]);
        let counted = post(&server, "/v1/count", json!({"prefix": "docs/", "where": criteria})).await.json();
        assert_eq!(counted["count"], DOCUMENTS / 2, "{criteria}");
    }
}
