//! Commands that are not about one entry: what is asked of the cluster, how its reply is shown, and every fault of input.

use quorate_api::{
    BulkOutcome, Cas, ClaimAnswer, CollectionAnswer, CollectionList, CollectionRemoved, ErrorCode, IndexState,
    SequenceAnswer, SequenceNext, WhereAnswer,
};
use quorate_machine::document::path::Path;
use quorate_machine::document::{Json, Unmet};
use quorate_machine::rules::{CollectionName, Rules};
use quorate_machine::types::{
    Action, ClaimReply, CollectionRow, ContentKind, Entry, EntryMeta, Expect, Expiry, IndexFailure, IndexStage,
    IndexState as Stored, Key, NumbersOp, Outcome, Rejection, RulesChange, RulesOp, Shown, Value, WhereChange,
    WhereItem, WhereReply,
};
use quorate_node_core::backend::Consistency;
use serde_json::json;

use crate::raw::{Response, Server, tells_all_or_the_first};

const JSON: (&str, &str) = ("Content-Type", "application/json");

async fn post(server: &Server, route: &str, body: serde_json::Value) -> Response {
    server.ask("POST", route, &[JSON], body.to_string().as_bytes()).await
}

fn read<T: serde::de::DeserializeOwned>(response: &Response) -> T {
    assert!(matches!(response.status, 200 | 201), "{response:?}");
    assert_eq!(response.status == 201, response.header("location").is_some(), "{response:?}");
    response.carries_the_common_headers();
    serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

fn key(text: &str) -> Key {
    Key::new(text).expect("a key")
}

fn locked_entry(data: &[u8]) -> Entry {
    let meta = EntryMeta {
        create_revision: 5,
        mod_revision: 7,
        version: 2,
        cas: 9,
        expires_at: None,
        locked_until: Some(16_000),
        session: None,
    };
    Entry { meta, value: Value { kind: ContentKind::Json, data: data.to_vec() } }
}

fn rules(text: &str) -> Rules {
    Rules::read(&Json::parse(text.as_bytes()).expect("JSON"), "").expect("rules")
}

fn collection(text: &str, stages: Vec<IndexStage>) -> CollectionRow {
    let stages = stages.into_iter().enumerate();
    let indexes = stages.map(|(at, stage)| Stored { id: at as u64, stage }).collect();
    CollectionRow { create_revision: 3, mod_revision: 8, version: 2, rules: rules(text), indexes }
}

fn last_action(server: &Server) -> Action {
    server.backend.commands().pop().expect("a command came").action
}

#[tokio::test]
async fn faults_are_told_all_at_once_and_nothing_is_asked_of_the_cluster() {
    let server = Server::start().await;
    let bad = r#"[{"field":"a..b","op":"is","value":1}]"#;
    let rows: [(&str, &str, String, &[&str]); 14] = [
        ("POST", "/v1/update_where", "{}".into(), &["/prefix", "/where", "/patch"]),
        (
            "POST",
            "/v1/update_where",
            format!(
                r#"{{"prefix":1,"where":{bad},"if":{bad},"patch":7,"ttl_ms":-1,"limit":1001,"cursor":3,"dry_run":1,"request_id":"a b","order":1}}"#
            ),
            &[
                "/prefix",
                "/where/0/field",
                "/where/0/op",
                "/if/0/field",
                "/if/0/op",
                "/patch",
                "/ttl_ms",
                "/limit",
                "/cursor",
                "/dry_run",
                "/request_id",
                "/order",
            ],
        ),
        ("POST", "/v1/update_where", r#"{"prefix":"","where":[],"patch":{},"cursor":"x"}"#.into(), &["/cursor"]),
        (
            "POST",
            "/v1/delete_where",
            r#"{"prefix":"","where":[],"patch":{},"ttl_ms":5,"limit":0}"#.into(),
            &["/patch", "/ttl_ms", "/limit"],
        ),
        ("POST", "/v1/delete_where", "[]".into(), &[""]),
        ("POST", "/v1/claim", "{}".into(), &["/prefix"]),
        (
            "POST",
            "/v1/claim",
            format!(
                r#"{{"prefix":"{}","where":{bad},"order_by":["a","-$cas"],"limit":101,"lock_ms":-1,"patch":[{{"op":"add"}}],"dry_run":0,"request_id":"","x":1}}"#,
                "p".repeat(4_097)
            ),
            &[
                "/prefix",
                "/where/0/field",
                "/where/0/op",
                "/order_by/1",
                "/limit",
                "/lock_ms",
                "/dry_run",
                "/request_id",
                "/x",
            ],
        ),
        ("POST", "/v1/claim?dry_run", r#"{"prefix":""}"#.into(), &["query:dry_run"]),
        (
            "PUT",
            "/v1/collections/c",
            r#"{"fields":{"a":{"type":"int"},"b":{"max":5}},"required":"a","indexes":[[]],"ttl_ms":0,"x":1}"#.into(),
            &["/fields/a/type", "/fields/b/max", "/required", "/indexes/0", "/ttl_ms", "/x"],
        ),
        ("PUT", "/v1/collections/a//b", "{}".into(), &["path:name"]),
        ("PUT", "/v1/collections/", "{}".into(), &["path:name"]),
        ("GET", "/v1/collections?limit=0&cursor=/&x", String::new(), &["query:limit", "query:cursor", "query:x"]),
        (
            "POST",
            "/v1/sequences/s",
            r#"{"count":0,"request_id":"ä","step":2}"#.into(),
            &["/count", "/request_id", "/step"],
        ),
        ("GET", "/v1/sequences/%ff", String::new(), &["path:name"]),
    ];
    for (method, path, body, pointers) in rows {
        let headers: &[_] = if body.is_empty() { &[] } else { &[JSON] };
        let problem = server.ask(method, path, headers, body.as_bytes()).await.problem();
        assert_eq!(problem.status, 400, "{method} {path} {body}: {problem:?}");
        let found: Vec<_> = problem.errors.iter().map(|fault| fault.pointer.as_str()).collect();
        assert!(
            tells_all_or_the_first(&found, pointers),
            "{pointers:?} or one of them: {found:?} of {method} {path} {body}"
        );
    }
    let unknown = post(&server, "/v1/claim", json!({"prefix": "", "color": 1})).await.problem();
    assert_eq!(unknown.code, ErrorCode::UnknownField);
    let twice = [JSON, ("Idempotency-Key", "one")];
    let body = br#"{"prefix":"","request_id":"two"}"#;
    let problem = server.ask("POST", "/v1/claim", &twice, body).await.problem();
    assert_eq!(problem.errors[0].pointer, "/request_id");
    assert_eq!(server.backend.commands(), []);
}

#[tokio::test]
async fn a_change_of_all_that_matches_is_one_command_and_goes_on_by_its_cursor() {
    let server = Server::start().await;
    let unmet = Unmet { pointer: "/if/0".into(), actual: None };
    let why = Rejection::ConditionNotMet { unmet: [unmet].into(), current: Some(Shown::Whole(locked_entry(b"{}"))) };
    let items = vec![
        WhereItem { n: 1, key: key("o/2"), why },
        WhereItem { n: 4, key: key("o/5"), why: Rejection::TooLarge { limit: 1, actual: 2 } },
    ];
    let counts = WhereReply { matched: 5, applied: 3, skipped: 1, failed: 1, examined: 9, ..WhereReply::default() };
    let done = WhereReply { items, after: Some(key("o/7")), ..counts.clone() };
    server.backend.come_to(Outcome::Where(done));
    let mut body = json!({"prefix": "o/", "where": [{"field": "a", "op": "eq", "value": 1}], "patch": {"b": 2}, "ttl_ms": 0,
        "limit": 3, "request_id": "page-1"});
    let answer: WhereAnswer = read(&post(&server, "/v1/update_where", body.clone()).await);
    assert_eq!((answer.matched, answer.applied, answer.skipped, answer.failed, answer.examined), (5, 3, 1, 1, 9));
    let [skipped, failed] = &answer.results[..] else { panic!("{answer:?}") };
    assert_eq!((skipped.n, skipped.key.text(), skipped.outcome), (1, Some("o/2"), BulkOutcome::Skipped));
    assert_eq!((skipped.status, skipped.code), (Some(412), Some(ErrorCode::ConditionNotMet)));
    assert_eq!(skipped.failed[0].pointer, "/if/0");
    assert_eq!(skipped.current.as_ref().map(|entry| (entry.cas, entry.locked)), Some((None, true)));
    assert_eq!((failed.outcome, failed.code), (BulkOutcome::Failed, Some(ErrorCode::TooLarge)));
    let command = server.backend.commands().pop().expect("a command came");
    assert_eq!(command.request_id.map(|id| id.0).as_deref(), Some("page-1"));
    let Action::Where(op) = command.action else { panic!("{:?}", command.action) };
    assert_eq!((&op.prefix[..], op.limit, op.after, op.criteria.count()), (&b"o/"[..], 3, None, 1));
    assert!(matches!(op.change, WhereChange::Patch { expiry: Expiry::Never, .. }), "{:?}", op.change);

    body["cursor"] = json!(answer.cursor.expect("more to come"));
    body["request_id"] = json!("page-2");
    body["dry_run"] = json!(true);
    let answer: WhereAnswer = read(&post(&server, "/v1/update_where", body.clone()).await);
    assert_eq!((answer.cursor, answer.dry_run), (None, true));
    assert_eq!(server.backend.asked(), 1, "a dry run is no command");
    assert_eq!(server.backend.barriers(), [Consistency::Linearizable]);
    body["dry_run"] = json!(false);
    post(&server, "/v1/update_where", body).await;
    let Action::Where(op) = last_action(&server) else { panic!("not a change of all that matches") };
    assert_eq!(op.after, Some(key("o/7")));

    server.backend.come_to(Outcome::Where(WhereReply { left_out: true, ..counts }));
    let retried: WhereAnswer = read(&post(&server, "/v1/delete_where", json!({"prefix": "", "where": []})).await);
    assert_eq!((retried.failed, retried.results.len(), retried.left_out), (1, 0, true), "there were some");
    assert!(!answer.left_out);
    let Action::Where(op) = last_action(&server) else { panic!("not a change of all that matches") };
    assert_eq!((op.change, op.limit), (WhereChange::Remove, 1_000));
}

/// Of documents that are there.
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

#[tokio::test]
async fn a_claim_shows_the_keys_to_its_locks() {
    let server = Server::start().await;
    let bare = Shown::Whole(locked_entry(b"{\"a\":1}")).to_bare();
    let entries = vec![(key("j/1"), Shown::Whole(locked_entry(b"{\"a\":1}"))), (key("j/2"), bare)];
    let index = Some(vec![Path::parse("due").expect("a path"), Path::parse("a.b").expect("a path")]);
    let refused = vec![WhereItem { n: 0, key: key("j/0"), why: Rejection::PreconditionRequired }];
    server.backend.come_to(Outcome::Claimed(ClaimReply {
        entries,
        refused,
        left_out: false,
        examined: 7,
        more: true,
        index,
    }));
    let body = json!({"prefix": "j/", "order_by": ["-due"], "limit": 2, "lock_ms": 30_001, "patch": {"x": 1}});
    let answer: ClaimAnswer = read(&post(&server, "/v1/claim", body).await);
    assert_eq!((answer.count, answer.examined, answer.more), (2, 7, true));
    assert_eq!(
        (answer.failed.len(), answer.failed[0].key.text(), answer.failed[0].status),
        (1, Some("j/0"), Some(428))
    );
    assert_eq!(answer.index_used, Some(vec!["due".to_owned(), "a.b".to_owned()]));
    for entry in &answer.entries {
        assert_eq!((entry.cas, entry.locked, entry.lock_ms), (Some(Cas::new(9)), true, Some(15_000)));
    }
    assert_eq!(answer.entries[0].value.as_ref().map(|value| value.0.get()), Some("{\"a\":1}"));
    assert_eq!((&answer.entries[1].value, &answer.entries[1].value_base64), (&None, &None));
    let Action::Claim(op) = last_action(&server) else { panic!("not a claim") };
    assert_eq!((op.limit, op.lock_ms, op.order.by_key()), (2, 15_000, None));
    for (asked, lock_ms) in [(json!(0), 15_000), (json!(30_000), 30_000), (json!(1), 1)] {
        let answer: ClaimAnswer = read(&post(&server, "/v1/claim", json!({"prefix": "", "lock_ms": asked})).await);
        assert_eq!((answer.count, answer.index_used), (0, None), "nothing found is no failure");
        let Action::Claim(op) = last_action(&server) else { panic!("not a claim") };
        assert_eq!((op.limit, op.lock_ms, op.order.by_key()), (1, lock_ms, Some(false)));
    }
    server.backend.come_to(Outcome::Rejected(Rejection::TooManyToOrder(10_000)));
    assert_eq!(post(&server, "/v1/claim", json!({"prefix": ""})).await.problem().code, ErrorCode::TooLarge);
}

#[tokio::test]
async fn rules_are_set_and_removed_under_conditions_and_shown_with_their_indexes() {
    let server = Server::start().await;
    let text = r#"{"fields":{"n":{"type":"long"}},"indexes":[["n"],{"fields":["a","b"],"unique":true},["t"]]}"#;
    let stages = vec![
        IndexStage::Building(None),
        IndexStage::Failed(IndexFailure::NotUnique(key("c/1"), key("c/2"))),
        IndexStage::Failed(IndexFailure::TooLong(key("c/3"))),
    ];
    let row = collection(text, stages);
    for (header, expect) in [
        (None, Expect::ANY),
        (Some(("If-None-Match", "*")), Expect::ABSENT),
        (Some(("If-Match", "*")), Expect::PRESENT),
        (Some(("If-Match", "\"8\"")), Expect::cas(8).and_present()),
        (Some(("If-Match", "\"8\", \"9\"")), Expect::any_of(vec![8, 9]).and_present()),
        (Some(("If-None-Match", "\"8\"")), Expect::none_of(vec![8])),
    ] {
        server.backend.come_to(Outcome::RulesSet(Some(Box::new(row.clone()))));
        let headers: Vec<_> = [JSON].into_iter().chain(header).collect();
        let response = server.ask("PUT", "/v1/collections/a%2Fb", &headers, text.as_bytes()).await;
        assert_eq!(response.header("etag"), Some("\"8\""), "{header:?}");
        let answer: CollectionAnswer = read(&response);
        assert_eq!((&*answer.name, answer.cas, answer.version, answer.mod_revision), ("a/b", Cas::new(8), 2, 8));
        assert_eq!(serde_json::to_string(&answer.rules).expect("JSON"), text);
        assert!(answer.revision.is_some() && answer.index.is_some());
        let states: Vec<_> = answer.indexes.iter().map(|index| (index.unique, index.state)).collect();
        let expected = [(false, IndexState::Building), (true, IndexState::Failed), (false, IndexState::Failed)];
        assert_eq!(states, expected);
        let detail = |at: usize| answer.indexes[at].detail.clone().unwrap_or_default();
        assert!(detail(1).contains("`c/1` and `c/2`") && detail(2).contains("`c/3`"), "{answer:?}");
        let name = CollectionName::new("a/b").expect("a name");
        let change = RulesChange::Set(rules(text));
        assert_eq!(last_action(&server), Action::Rules(RulesOp { name, expect, change }));
    }
    let missing = server.get("/v1/collections/a/b").await.problem();
    assert_eq!((missing.code, missing.detail.contains("`a/b`")), (ErrorCode::NotFound, true));
    for name in ["a%2Fb", "c", "d"] {
        assert_eq!(server.put_json(&format!("/v1/collections/{name}"), text).await.status / 100, 2);
    }
    let response = server.get("/v1/collections/a/b").await;
    assert_eq!(response.header("etag"), Some("\"2\""));
    assert_eq!(read::<CollectionAnswer>(&response).indexes.len(), 3);
    let page: CollectionList = read(&server.get("/v1/collections?limit=2").await);
    assert_eq!(page.collections.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["a/b", "c"]);
    assert!(page.collections.iter().all(|one| one.revision.is_none() && one.index.is_none()));
    let next = format!("/v1/collections?limit=2&cursor={}", page.cursor.expect("more").replace('/', "%2F"));
    let page: CollectionList = read(&server.get(&next).await);
    assert_eq!((page.collections.len(), &*page.collections[0].name, page.cursor), (1, "d", None));

    let removed: CollectionRemoved =
        read(&server.ask("DELETE", "/v1/collections/a/b", &[("If-Match", "\"2\"")], b"").await);
    assert_eq!(&*removed.name, "a/b");
    let Action::Rules(op) = last_action(&server) else { panic!("not about rules") };
    assert_eq!((op.expect, op.change), (Expect::cas(2).and_present(), RulesChange::Remove));
    let problem = server.ask("DELETE", "/v1/collections/a/b", &[], b"").await.problem();
    assert_eq!((problem.code, &*problem.detail), (ErrorCode::NotFound, "the collection `a/b` is not declared"));
    let ask = async |method: &str, headers: &[(&str, &str)], body: &[u8]| {
        let problem = server.ask(method, "/v1/collections/a/b", headers, body).await.problem();
        (problem.status, problem.code)
    };
    assert_eq!(ask("DELETE", &[("If-Match", "*")], b"").await, (412, ErrorCode::NotFound));
    assert_eq!(ask("DELETE", &[("If-None-Match", "*")], b"").await, (404, ErrorCode::NotFound));
    assert_eq!(ask("PUT", &[JSON, ("If-Match", "*")], b"{}").await, (412, ErrorCode::NotFound));
    let both = [JSON, ("If-Match", "*"), ("If-None-Match", "\"8\"")];
    let problem = server.ask("PUT", "/v1/collections/a/b", &both, b"{}").await.problem();
    assert_eq!((problem.status, &*problem.errors[0].pointer), (400, "header:If-Match"));
    assert_eq!(server.put_json("/v1/collections/a", "{}").await.status / 100, 2);
    let problem = server.put_json("/v1/collections/a/b", "{}").await.problem();
    assert_eq!(problem.code, ErrorCode::AlreadyExists, "one is within the other");
}

#[tokio::test]
async fn numbers_are_drawn_and_shown() {
    let server = Server::start().await;
    let shown: SequenceAnswer = read(&server.get("/v1/sequences/or%2Fders").await);
    assert_eq!((&*shown.name, shown.value), ("or/ders", 0));
    let mut last = 0;
    for (headers, body, count) in
        [(&[][..], "", 1), (&[JSON], "{}", 1), (&[JSON], r#"{"count":1000000,"request_id":"n"}"#, 1_000_000)]
    {
        let answer: SequenceNext = read(&server.ask("POST", "/v1/sequences/s", headers, body.as_bytes()).await);
        assert_eq!((answer.first, answer.last, answer.replayed), (last + 1, last + u64::from(count), false));
        last = answer.last;
        let Action::Numbers(NumbersOp { name, count: asked }) = last_action(&server) else { panic!("not a draw") };
        assert_eq!((name.as_str(), asked), ("s", count));
    }
    let again = br#"{"count":1000000,"request_id":"n"}"#;
    let answer: SequenceNext = read(&server.ask("POST", "/v1/sequences/s", &[JSON], again).await);
    assert_eq!((answer.last, answer.replayed), (last, true));
    assert_eq!(read::<SequenceAnswer>(&server.get("/v1/sequences/s").await).value, last);
    server.backend.come_to(Outcome::Rejected(Rejection::UsedUp));
    assert_eq!(post(&server, "/v1/sequences/s", json!({})).await.problem().code, ErrorCode::TooLarge);
}
