//! Web pages of other origins: no protocol lets them write or read, and what anybody may know stays open.

use quorate_api::ErrorCode;
use quorate_machine::types::{ContentKind, Value};
use quorate_node_core::gateway::api::ApiSettings;
use quorate_node_core::gateway::hosts::AllowedHosts;

use crate::raw::{JSON, Response, Server, api_settings, serve_settings};

/// A header.
type Line = (&'static str, &'static str);

const EVIL: Line = ("Origin", "https://evil.example");
const APP: Line = ("Origin", "https://app.example.org");
/// Every request of these tests asks by this name.
const OWN: Line = ("Origin", "http://test");
const GRPC: Line = ("Content-Type", "application/grpc");

/// What a browser says of a page of another origin; those that know no `Sec-Fetch-Site` say the origin alone.
const PAGES: [&[Line]; 4] = [
    &[EVIL],
    &[EVIL, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")],
    &[("Origin", "null"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")],
    &[("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "no-cors")],
];
/// What a form can send, and what a page sends that was given leave.
const KINDS: [&[Line]; 6] = [
    &[],
    &[("Content-Type", "text/plain;charset=UTF-8")],
    &[("Content-Type", "application/x-www-form-urlencoded")],
    &[("Content-Type", "multipart/form-data; boundary=x")],
    &[JSON],
    &[GRPC],
];

/// A message as gRPC frames it.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("short").to_be_bytes();
    [&[0][..], &length, message].concat()
}

/// A message with these fields of bytes, in the order of their numbers.
fn message(fields: &[&str]) -> Vec<u8> {
    let field = |(number, text): (u8, &&str)| {
        let length = u8::try_from(text.len()).expect("short");
        [&[(number << 3) | 2, length][..], text.as_bytes()].concat()
    };
    framed(&(1u8..).zip(fields).map(field).collect::<Vec<_>>().concat())
}

/// Requests that change something, by every way in.
fn writes() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    vec![
        ("POST", "/v1/ops", br#"{"op":"remove","key":"precious"}"#.to_vec()),
        ("POST", "/v1/bulk", br#"{"ops":[{"op":"remove","key":"precious"}]}"#.to_vec()),
        ("POST", "/v1/sessions", b"{}".to_vec()),
        ("POST", "/v1/cluster/leader", Vec::new()),
        ("PUT", "/v1/kv/precious", b"2".to_vec()),
        ("PATCH", "/v1/kv/precious", b"{}".to_vec()),
        ("DELETE", "/v1/kv/precious", Vec::new()),
        ("POST", "/v3/kv/put", br#"{"key":"cHJlY2lvdXM=","value":"Mg=="}"#.to_vec()),
        ("POST", "/v3/kv/deleterange", br#"{"key":"AA==","range_end":"AA=="}"#.to_vec()),
        ("POST", "/v3/lease/keepalive", br#"{"ID":7}"#.to_vec()),
        ("POST", "/etcdserverpb.KV/Put", message(&["precious", "2"])),
        ("POST", "/etcdserverpb.KV/DeleteRange", message(&["\0", "\0"])),
        ("POST", "/etcdserverpb.Cluster/MemberRemove", framed(&[1 << 3, 3])),
        ("POST", "/etcdserverpb.Auth/RoleAdd", message(&["intruder"])),
        ("POST", "/etcdserverpb.Lease/LeaseKeepAlive", framed(&[1 << 3, 7])),
        ("POST", "/v3lockpb.Lock/Lock", message(&["lock"])),
    ]
}

/// Whether it was refused as its protocol says it, for want of a right.
fn is_denied(path: &str, answer: &Response) -> bool {
    if path.starts_with("/v1/") {
        return answer.status == 403 && answer.problem().code == ErrorCode::PermissionDenied;
    }
    if path.starts_with("/v3/") {
        return answer.status == 403 && answer.json()["code"] == 7;
    }
    let says_why = answer.header("grpc-message").is_some_and(|text| text.starts_with("quorate:"));
    (answer.status, answer.header("grpc-status")) == (200, Some("7")) && says_why
}

async fn server(settings: ApiSettings) -> Server {
    let server = Server::start_with(settings, serve_settings()).await;
    server.backend.seed("precious", Value { kind: ContentKind::Json, data: b"1".to_vec() });
    server
}

#[tokio::test]
async fn a_page_of_another_origin_writes_nothing_by_any_protocol() {
    let server = server(api_settings()).await;
    for (method, path, body) in writes() {
        for page in PAGES {
            for kind in KINDS {
                let answer = server.ask(method, path, &[page, kind].concat(), &body).await;
                assert!(is_denied(path, &answer), "{method} {path} {page:?} {kind:?}: {answer:?}");
                assert_eq!(answer.header("access-control-allow-origin"), None, "{method} {path} {page:?}");
            }
        }
    }
    assert_eq!(server.backend.commands(), []);
    assert_eq!(server.get("/v1/kv/precious").await.json()["value"], 1);
    // A program that says the same writes.
    for (path, kind) in [("/v3/kv/put", JSON), ("/v3/kv/put", KINDS[2][0]), ("/etcdserverpb.KV/Put", GRPC)] {
        let (method, _, body) = writes().into_iter().find(|(_, at, _)| *at == path).expect("it is in the list");
        server.backend.forget_commands();
        let answer = server.ask(method, path, &[kind], &body).await;
        assert_eq!((answer.status, server.backend.asked()), (200, 1), "{path} {kind:?}: {answer:?}");
    }
}

#[tokio::test]
async fn what_is_no_call_over_grpc_is_not_taken_for_one() {
    let server = server(api_settings()).await;
    for (method, path, body) in writes().into_iter().filter(|(_, path, _)| path.contains("pb.")) {
        for kind in KINDS.iter().filter(|kind| kind.first() != Some(&GRPC)) {
            let answer = server.ask(method, path, kind, &body).await;
            assert!(is_denied(path, &answer), "{path} {kind:?}: {answer:?}");
        }
    }
    assert_eq!(server.backend.commands(), []);
}

#[tokio::test]
async fn a_page_is_refused_before_anything_but_its_head_is_read() {
    let server = server(api_settings()).await;
    for path in ["/v1/ops", "/v3/kv/put", "/etcdserverpb.KV/Put", "/v3lockpb.Lock/Lock"] {
        for page in PAGES {
            let unsent = [page, &[("Content-Length", "1000000")]].concat();
            let answer = server.ask("POST", path, &unsent, b"").await;
            assert!(is_denied(path, &answer), "{path} {page:?}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_page_of_another_origin_reads_what_anybody_may_know_and_no_more() {
    let server = server(api_settings()).await;
    let reads = [
        ("GET", "/v1/kv/precious", Vec::new()),
        ("HEAD", "/v1/kv/precious", Vec::new()),
        ("GET", "/v1/kv?prefix=", Vec::new()),
        ("GET", "/v1/watch?prefix=", Vec::new()),
        ("GET", "/v1/cluster/status", Vec::new()),
        ("GET", "/metrics", Vec::new()),
        ("POST", "/v1/find", br#"{"prefix":""}"#.to_vec()),
        ("POST", "/v3/kv/range", br#"{"key":"cHJlY2lvdXM="}"#.to_vec()),
        ("POST", "/etcdserverpb.KV/Range", message(&["precious"])),
    ];
    for (method, path, body) in &reads {
        for page in PAGES {
            let answer = server.ask(method, path, &[page, &[JSON]].concat(), body).await;
            let is_refused = answer.status == 403 || answer.header("grpc-status") == Some("7");
            assert!(is_refused, "{method} {path} {page:?}: {answer:?}");
        }
    }
    let open =
        ["/livez", "/readyz", "/health", "/version", "/v1/limits", "/openapi.json", "/errors/timeout", "/console/"];
    for path in open {
        for page in PAGES {
            let answer = server.ask("GET", path, page, b"").await;
            assert_eq!(answer.status, 200, "{path} {page:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None, "{path} {page:?}");
        }
    }
}

#[tokio::test]
async fn pages_of_this_node_and_those_that_are_let_in_use_the_api_and_send_no_forms() {
    let cors_origins = vec![APP.1.to_owned()];
    let server = server(ApiSettings { cors_origins, ..api_settings() }).await;
    let body = br#"{"op":"upsert","key":"k","value":1}"#;
    for page in [APP, OWN] {
        for kind in &KINDS[..4] {
            let refused = server.ask("POST", "/v1/ops", &[&[page][..], *kind].concat(), body).await;
            assert_eq!(refused.problem().code, ErrorCode::UnsupportedMediaType, "{page:?} {kind:?}");
            assert!(refused.header("accept-post").is_some_and(|list| list.contains(JSON.1)), "{refused:?}");
        }
        assert_eq!(server.ask("POST", "/v1/cluster/leader", &[page], b"").await.status, 415, "{page:?}");
        assert_eq!(server.backend.commands(), []);
        assert_eq!(server.ask("POST", "/v1/ops", &[page, JSON], body).await.status / 100, 2, "{page:?}");
        server.backend.forget_commands();
        for (method, path, body) in writes().into_iter().filter(|(_, path, _)| !path.starts_with("/v1/")) {
            let refused = server.ask(method, path, &[page, GRPC], &body).await;
            assert!(is_denied(path, &refused), "{path} {page:?}: {refused:?}");
        }
        assert_eq!(server.backend.commands(), []);
    }
    let proxied = [EVIL, ("Sec-Fetch-Site", "same-origin"), JSON];
    assert_eq!(server.ask("POST", "/v1/ops", &proxied, body).await.status / 100, 2, "a proxy changed `Host`");
}

#[tokio::test]
async fn leave_is_given_by_the_names_of_this_node_alone() {
    let settings = || ApiSettings { cors_origins: vec![APP.1.to_owned()], ..api_settings() };
    let asks = [APP, ("Access-Control-Request-Method", "PUT")];
    let named = server(settings()).await;
    assert_eq!(named.ask("OPTIONS", "/v1/kv/k", &asks, b"").await.status, 204);
    let nameless = server(ApiSettings { hosts: AllowedHosts::of([]), ..settings() }).await;
    let refused = nameless.ask("OPTIONS", "/v1/kv/k", &asks, b"").await;
    assert_eq!((refused.status, refused.header("access-control-allow-methods")), (405, None));
}
