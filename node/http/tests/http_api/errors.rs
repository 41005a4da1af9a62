//! Each way the node can fail, as the caller is told: status, code, and above all `applied`.

use quorate_api::{Applied, Cas, ErrorCode, Retry, code_name};
use quorate_machine::document::TooDear;
use quorate_machine::types::{ContentKind, Entry, EntryMeta, Rejection, Shown, TxnRefusal, Value};
use quorate_node_core::backend::AppError;
use quorate_node_http::error_catalogue;

use crate::raw::Server;

fn entry() -> Entry {
    let meta = EntryMeta {
        create_revision: 2,
        mod_revision: 3,
        version: 2,
        cas: 3,
        expires_at: Some(1_250),
        locked_until: None,
        session: None,
    };
    Entry { meta, value: Value { kind: ContentKind::Json, data: b"{\"n\":1}".to_vec() } }
}

#[tokio::test]
async fn every_error_of_the_node_says_whether_the_write_was_applied() {
    use Applied::{No, Unknown};
    let rows = [
        (AppError::NoLeader, ErrorCode::NoLeader, No, true),
        (AppError::NotReady("starting".into()), ErrorCode::NotReady, No, true),
        (AppError::Quarantined("digest".into()), ErrorCode::Quarantined, No, true),
        (AppError::Overloaded, ErrorCode::TooManyRequests, No, true),
        (AppError::NoSpace("full".into()), ErrorCode::QuotaExceeded, No, false),
        (AppError::TimeoutNotProposed, ErrorCode::Timeout, No, false),
        (AppError::Unknown, ErrorCode::Timeout, Unknown, false),
        (AppError::TooLarge { actual: 9, limit: 8 }, ErrorCode::TooLarge, No, false),
        (AppError::Fault("disk".into()), ErrorCode::Internal, Unknown, false),
    ];
    let server = Server::start().await;
    for (error, code, applied, retry_after) in rows {
        server.backend.fail_writes(error.clone());
        let response = server.ask("DELETE", "/v1/kv/k", &[("Idempotency-Key", "r-1")], b"").await;
        let problem = response.problem();
        assert_eq!((problem.code, problem.applied), (code, applied), "{error:?}");
        assert_eq!(response.header("retry-after").is_some(), retry_after, "{error:?}");
        assert_eq!(problem.request_id, "r-1");
        if applied == Unknown {
            assert_eq!(problem.retry, Retry::SameRequestId, "{error:?}");
        }
        // A read changes nothing, however it ends.
        server.backend.fail_reads(Some(error.clone()));
        let problem = server.get("/v1/kv/k").await.problem();
        assert_eq!((problem.code, problem.applied), (code, No), "{error:?}");
        server.backend.fail_reads(None);
    }
}

#[tokio::test]
async fn every_rejection_has_its_code_and_shows_the_entry_as_it_is() {
    let current = || Shown::Whole(entry());
    let bare = || current().to_bare();
    let rows = [
        (Rejection::AlreadyExists { current: current() }, ErrorCode::AlreadyExists, true),
        // The kept answer to a retry, where the value was compacted since.
        (Rejection::AlreadyExists { current: bare() }, ErrorCode::AlreadyExists, false),
        (Rejection::CasMismatch { expected: Some(2), current: Some(bare()) }, ErrorCode::CasMismatch, false),
        (Rejection::NotFound, ErrorCode::NotFound, false),
        (Rejection::CasMismatch { expected: Some(2), current: Some(current()) }, ErrorCode::CasMismatch, true),
        (Rejection::CasMismatch { expected: Some(2), current: None }, ErrorCode::CasMismatch, false),
        (Rejection::CasMismatch { expected: None, current: Some(current()) }, ErrorCode::CasMismatch, true),
        (Rejection::CasListed { current: current() }, ErrorCode::ConditionNotMet, true),
        (Rejection::Locked { current: current() }, ErrorCode::Locked, true),
        (Rejection::NotLocked { current: current() }, ErrorCode::NotLockHolder, true),
        (Rejection::ConditionNotMet { unmet: Box::default(), current: None }, ErrorCode::ConditionNotMet, false),
        (Rejection::NotADocument { current: current() }, ErrorCode::ConditionNotMet, true),
        (Rejection::TooLarge { limit: 1, actual: 2 }, ErrorCode::TooLarge, false),
        (Rejection::TooMuch { limit: 1 }, ErrorCode::TooLarge, false),
        (Rejection::TooDear(TooDear { limit: 1, actual: 2 }), ErrorCode::TooDear, false),
        (Rejection::RequestIdReused, ErrorCode::RequestIdReused, false),
        (Rejection::Unsupported("new".into()), ErrorCode::Internal, false),
        (Rejection::TooManyToOrder(10_000), ErrorCode::TooLarge, false),
        (Rejection::UsedUp, ErrorCode::TooLarge, false),
        (Rejection::Txn(TxnRefusal::KeyTwice), ErrorCode::InvalidArgument, false),
        (Rejection::Txn(TxnRefusal::Compacted), ErrorCode::Compacted, false),
    ];
    let server = Server::start().await;
    for (rejection, code, shows_current) in rows {
        server.backend.reject_writes(rejection.clone());
        let response = server.ask("DELETE", "/v1/kv/a%2Fb", &[], b"").await;
        let problem = response.problem();
        assert_eq!((problem.code, problem.applied), (code, Applied::No), "{rejection:?}");
        assert_eq!(problem.current.is_some(), shows_current, "{rejection:?}");
        assert_eq!((problem.revision, problem.index), (Some(1), Some(101)), "{rejection:?}");
        if let Some(current) = problem.current {
            assert_eq!(current.key, "a/b");
            assert_eq!(current.cas, Some(Cas::new(3)));
            assert_eq!(current.ttl_ms, Some(250), "counted from where the command was evaluated");
            assert_eq!(current.value.expect("shown").0.get(), "{\"n\":1}");
        }
    }
}

#[tokio::test]
async fn the_type_of_an_error_is_a_page_that_the_node_serves() {
    let server = Server::start().await;
    let problem = server.get("/v1/kv/none").await.problem();
    assert_eq!(problem.type_uri, "/errors/not_found");
    for code in ErrorCode::ALL {
        let page = server.get(&format!("/errors/{}", code_name(code))).await;
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
        assert!(page.text().contains(code.title()), "{}", page.text());
    }
    let unknown = server.get("/errors/none").await.problem();
    assert_eq!((unknown.code, &*unknown.errors[0].pointer), (ErrorCode::NotFound, "path:code"));
}

#[test]
fn the_documentation_has_a_section_for_each_error() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
    let wanted = error_catalogue();
    if std::env::var_os("QUORATE_WRITE_DOCS").is_some() {
        std::fs::write(path, &wanted).expect("written");
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(there, wanted, "docs/errors.md is not what the code says; write it anew with QUORATE_WRITE_DOCS=1");
    let names: std::collections::BTreeSet<_> = ErrorCode::ALL.map(code_name).into();
    assert_eq!(names.len(), ErrorCode::ALL.len(), "each once");
}
