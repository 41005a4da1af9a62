//! `/v1/quotas`: what is proposed, what is shown, and how a refusal names the quota.

use quorate_api::{ErrorCode, QuotaAnswer, QuotaList, QuotaRemoved, QuotaState};
use quorate_machine::query::{QuotaRead, QuotaUse};
use quorate_machine::types::{
    Action, BeyondQuota, Counted, Outcome, PrefixUse, PrincipalUse, QuotaBounds, QuotaOp, QuotaRow, QuotaSubject,
    Rejection,
};
use serde_json::json;

use crate::fake::WALL;
use crate::raw::{Response, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn read<T: serde::de::DeserializeOwned>(response: &Response) -> T {
    assert!(matches!(response.status, 200 | 201), "{response:?}");
    response.carries_the_common_headers();
    serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

fn last_op(server: &Server) -> QuotaOp {
    match server.backend.commands().pop().expect("a command came").action {
        Action::Quota(op) => op,
        other => panic!("not about a quota: {other:?}"),
    }
}

fn row(bounds: QuotaBounds) -> QuotaRow {
    QuotaRow { bounds, parent: None, created: WALL - 60_000, revision: 12 }
}

#[tokio::test]
async fn a_quota_is_set_shown_and_removed() {
    let server = Server::start().await;
    let bounds = QuotaBounds { entries: Some(10), bytes: Some(1_000), ..QuotaBounds::default() };
    server.backend.come_to(Outcome::Quota(Some(Box::new(row(bounds)))));
    let response = server.put_json("/v1/quotas/prefixes/t/%61cme/", r#"{"entries":10,"bytes":1000}"#).await;
    let set: QuotaAnswer = read(&response);
    assert_eq!((response.status, response.header("location")), (201, Some("/v1/quotas/prefixes/t/%61cme/")));
    assert_eq!((set.prefix, set.bounds.entries, set.set_revision), (Some("t/acme/".into()), Some(10), Some(12)));
    let subject = QuotaSubject::Prefix(b"t/acme/".to_vec());
    assert_eq!(last_op(&server), QuotaOp::Set { subject: subject.clone(), bounds });

    let used = PrefixUse { entries: 3, bytes: 40, tasks: 2, from: Some(vec![0x10]) };
    let read_of = |used, row: Option<QuotaRow>, is_counting| QuotaRead {
        bounds: row.as_ref().map_or(QuotaBounds::USUAL, |row| row.bounds),
        row,
        used,
        is_counting,
    };
    let ann = QuotaSubject::Principal("ann".into());
    server.backend.admit(|told| {
        told.quotas.insert(subject.clone(), read_of(QuotaUse::Prefix(used), Some(row(bounds)), true));
        let used = PrincipalUse { sessions: 5, locks: 1 };
        told.quotas.insert(ann.clone(), read_of(QuotaUse::Principal(used), None, false));
    });
    let shown: QuotaAnswer = read(&server.get("/v1/quotas/prefixes/t/acme/").await);
    assert_eq!((shown.used.and_then(|used| used.tasks), shown.state), (Some(2), Some(QuotaState::Counting)));
    assert_eq!(server.get("/v1/quotas/prefixes/t/").await.problem().code, ErrorCode::NotFound);
    let list: QuotaList = read(&server.get("/v1/quotas/principals?limit=1").await);
    let [of_ann] = &list.quotas[..] else { panic!("{list:?}") };
    assert_eq!(
        (of_ann.principal.as_deref(), of_ann.is_default, of_ann.bounds.sessions),
        (Some("ann"), true, Some(50_000))
    );
    let usual: QuotaAnswer = read(&server.get("/v1/quotas/default").await);
    assert_eq!((usual.bounds.sessions, usual.principal, usual.set_revision), (Some(50_000), None, None));

    server.backend.come_to(Outcome::Quota(None));
    let gone: QuotaRemoved = read(&server.ask("DELETE", "/v1/quotas/prefixes/t/acme/", &[], b"").await);
    assert_eq!((gone.prefix, last_op(&server)), (Some("t/acme/".into()), QuotaOp::Remove(subject)));
    server.backend.come_to(Outcome::Rejected(Rejection::NotFound));
    let missing = server.ask("DELETE", "/v1/quotas/principals/bob", &[], b"").await.problem();
    assert_eq!(missing.code, ErrorCode::NotFound);
    assert!(missing.detail.contains("the principal `bob`"), "{}", missing.detail);
}

#[tokio::test]
async fn bounds_of_what_is_not_counted_are_refused_before_anything_is_proposed() {
    let server = Server::start().await;
    for (path, body, pointer) in [
        ("/v1/quotas/prefixes/a", json!({"sessions": 1}), "/sessions"),
        ("/v1/quotas/principals/ann", json!({"bytes": 1}), "/bytes"),
        ("/v1/quotas/default", json!({"tasks": 1}), "/tasks"),
        ("/v1/quotas/default", json!({"sessions": -1}), "/sessions"),
    ] {
        let problem = server.put_json(path, &body.to_string()).await.problem();
        let pointers: Vec<_> = problem.errors.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!((problem.code, &pointers[..]), (ErrorCode::InvalidArgument, &[pointer][..]), "{path} {body}");
    }
    let unknown = server.put_json("/v1/quotas/default", r#"{"sessons":1}"#).await.problem();
    assert_eq!((unknown.code, &*unknown.errors[0].pointer), (ErrorCode::UnknownField, "/sessons"));
    assert_eq!(server.backend.commands(), []);
}

#[tokio::test]
async fn a_refusal_names_the_quota_its_bound_and_its_use() {
    let server = Server::start().await;
    let beyond = |subject, is_own, what| {
        let beyond = BeyondQuota { subject, is_own, what, bound: 10, used: 9 };
        Outcome::Rejected(Rejection::BeyondQuota(Box::new(beyond)))
    };
    server.backend.come_to(beyond(QuotaSubject::Principal("ann".into()), false, Counted::Sessions));
    let refused = server.ask("POST", "/v1/sessions", &[], b"").await.problem();
    assert_eq!((refused.status, refused.code), (507, ErrorCode::QuotaExceeded));
    assert!(refused.detail.contains("the user `ann` has 9 sessions, and its quota is 10"), "{}", refused.detail);
    let quota = refused.quota.expect("which quota");
    assert_eq!((quota.principal.as_deref(), &*quota.counts, quota.bound, quota.used), (Some("ann"), "sessions", 10, 9));
    server.backend.come_to(beyond(QuotaSubject::Prefix(b"a/".to_vec()), true, Counted::Tasks));
    let body = br#"{"payload":1,"delay_ms":1}"#;
    let refused = server.ask("POST", "/v1/tasks/a%2Fq", &[JSON], body).await.problem();
    assert_eq!(refused.quota.and_then(|quota| quota.prefix), Some("a/".into()));
}
