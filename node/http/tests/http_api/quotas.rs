//! `/v1/quotas`: what is proposed, what is shown, and how a refusal names the quota.

use quorate_api::{ErrorCode, QuotaAnswer, QuotaList, QuotaRemoved, QuotaState};
use quorate_machine::types::{
    Action, BeyondQuota, Counted, Maintenance, Outcome, QuotaBounds, QuotaOp, QuotaSubject, Rejection, SessionOp,
};
use serde_json::json;

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

#[tokio::test]
async fn a_quota_is_set_shown_and_removed() {
    let server = Server::start().await;
    let bounds = QuotaBounds { entries: Some(1), bytes: Some(1_000), ..QuotaBounds::default() };
    let response = server.put_json("/v1/quotas/prefixes/t/%61cme/", r#"{"entries":1,"bytes":1000}"#).await;
    let set: QuotaAnswer = read(&response);
    assert_eq!((response.status, response.header("location")), (201, Some("/v1/quotas/prefixes/t/acme/")));
    assert_eq!((set.prefix, set.bounds.entries, set.set_revision), (Some("t/acme/".into()), Some(1), Some(2)));
    let subject = QuotaSubject::Prefix(b"t/acme/".to_vec());
    assert_eq!(last_op(&server), QuotaOp::Set { subject: subject.clone(), bounds });

    let counting: QuotaAnswer = read(&server.get("/v1/quotas/prefixes/t/acme/").await);
    assert_eq!(counting.state, Some(QuotaState::Counting), "nobody has looked at what is there");
    server.backend.maintain(Maintenance::Count);
    assert_eq!(server.put_json("/v1/kv/t/acme/1", "1").await.status, 201);
    assert_eq!(server.ask("POST", "/v1/tasks/t%2Facme%2Fq", &[JSON], b"{}").await.status, 201);
    let shown: QuotaAnswer = read(&server.get("/v1/quotas/prefixes/t/acme/").await);
    assert_eq!(shown.state, Some(QuotaState::Enforced));
    let used = shown.used.expect("what is used");
    assert_eq!((used.entries, used.tasks), (Some(1), Some(1)));
    let full = server.put_json("/v1/kv/t/acme/2", "1").await.problem();
    assert_eq!((full.status, full.code), (507, ErrorCode::QuotaExceeded));
    assert_eq!(full.quota.and_then(|quota| quota.prefix), Some("t/acme/".into()));
    assert_eq!(server.get("/v1/quotas/prefixes/t/").await.problem().code, ErrorCode::NotFound);

    let session = SessionOp::Create { ttl_ms: 10_000, owner: String::new(), labels: Vec::new() };
    server.backend.act_as("ann", Action::Session(session));
    let list: QuotaList = read(&server.get("/v1/quotas/principals?limit=1").await);
    let [of_ann] = &list.quotas[..] else { panic!("{list:?}") };
    assert_eq!(
        (of_ann.principal.as_deref(), of_ann.is_default, of_ann.bounds.sessions),
        (Some("ann"), true, Some(50_000))
    );
    let usual: QuotaAnswer = read(&server.get("/v1/quotas/default").await);
    assert_eq!((usual.bounds.sessions, usual.principal, usual.set_revision), (Some(50_000), None, None));

    let gone: QuotaRemoved = read(&server.ask("DELETE", "/v1/quotas/prefixes/t/acme/", &[], b"").await);
    assert_eq!((gone.prefix, last_op(&server)), (Some("t/acme/".into()), QuotaOp::Remove(subject)));
    assert_eq!(server.put_json("/v1/kv/t/acme/2", "1").await.status, 201);
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
    assert!(
        refused.detail.contains("the user `ann` has 9 of 10 sessions, and this would take it beyond"),
        "{}",
        refused.detail
    );
    let quota = refused.quota.expect("which quota");
    assert_eq!((quota.principal.as_deref(), &*quota.counts, quota.bound, quota.used), (Some("ann"), "sessions", 10, 9));
    server.backend.come_to(beyond(QuotaSubject::Prefix(b"a/".to_vec()), true, Counted::Tasks));
    let body = br#"{"payload":1,"delay_ms":1}"#;
    let refused = server.ask("POST", "/v1/tasks/a%2Fq", &[JSON], body).await.problem();
    assert_eq!(refused.quota.and_then(|quota| quota.prefix), Some("a/".into()));
}
