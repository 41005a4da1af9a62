//! `/v1/quotas`: who has none of its own, and how a refusal names the quota. Transcripts show the rest.

use quorate_api::{ErrorCode, QuotaList};
use quorate_machine::types::{Action, BeyondQuota, Counted, Outcome, QuotaSubject, Rejection, SessionOp};

use crate::raw::{JSON, Server, read};

#[tokio::test]
async fn who_uses_something_without_a_quota_of_its_own_has_that_of_all() {
    let server = Server::start().await;
    let session = SessionOp::Create { ttl_ms: 10_000, owner: String::new(), labels: Vec::new() };
    server.backend.act_as("ann", Action::Session(session));
    let list: QuotaList = read(&server.get("/v1/quotas/principals?limit=1").await);
    let [of_ann] = &list.quotas[..] else { panic!("{list:?}") };
    assert_eq!(
        (of_ann.principal.as_deref(), of_ann.is_default, of_ann.bounds.sessions),
        (Some("ann"), true, Some(50_000))
    );
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
