//! Web pages, caches and intermediaries: CORS, and the headers that are for those between a node and its caller.

use quorate_api::ErrorCode;
use quorate_machine::types::{ContentKind, Value};
use quorate_node_core::gateway::api::ApiSettings;

use crate::raw::{JSON, Response, Server, api_settings, serve_settings};

const PAGE: &str = "https://app.example.org";

async fn server(origins: &[&str]) -> Server {
    let cors_origins = origins.iter().map(ToString::to_string).collect();
    let server = Server::start_with(ApiSettings { cors_origins, ..api_settings() }, serve_settings()).await;
    server.backend.seed("k", Value { kind: ContentKind::Json, data: b"1".to_vec() });
    server
}

async fn preflight(server: &Server, origin: &str, path: &str) -> Response {
    let lines =
        [("Origin", origin), ("Access-Control-Request-Method", "PUT"), ("Access-Control-Request-Headers", "if-match")];
    server.ask("OPTIONS", path, &lines, b"").await
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_may_ask_and_see() {
    let server = server(&["http://localhost:3000", PAGE]).await;
    for origin in [PAGE, "http://localhost:3000"] {
        let granted = preflight(&server, origin, "/v1/kv/k").await;
        assert_eq!((granted.status, granted.body.len()), (204, 0));
        assert_eq!(granted.header("access-control-allow-origin"), Some(origin));
        assert_eq!(granted.header("access-control-allow-methods"), Some("GET, HEAD, PUT, PATCH, DELETE"));
        let headers = granted.header("access-control-allow-headers").expect("which headers");
        for name in ["authorization", "content-type", "if-match", "if-none-match", "idempotency-key"] {
            assert!(headers.contains(name), "{name} in {headers}");
        }
        assert_eq!(granted.header("vary"), Some("origin"), "the answer to another page is another one");
        let seen = server.ask("GET", "/v1/kv/k", &[("Origin", origin)], b"").await;
        assert_eq!((seen.status, seen.header("access-control-allow-origin")), (200, Some(origin)));
        let exposed = seen.header("access-control-expose-headers").expect("what it may see");
        for name in ["etag", "location", "quorate-revision", "x-request-id", "retry-after"] {
            assert!(exposed.contains(name), "{name} in {exposed}");
        }
    }
    let refused = server.ask("GET", "/v1/kv/none", &[("Origin", PAGE)], b"").await;
    assert_eq!(
        (refused.status, refused.header("access-control-allow-origin")),
        (404, Some(PAGE)),
        "errors are seen too"
    );
}

#[tokio::test]
async fn no_other_page_may_and_none_unless_it_is_configured() {
    for (origins, page) in
        [(vec![], PAGE), (vec!["https://app.example"], PAGE), (vec![PAGE], "https://app.example.org:1")]
    {
        let server = server(&origins).await;
        let refused = preflight(&server, page, "/v1/kv/k").await;
        assert_eq!((refused.status, refused.problem().code), (405, ErrorCode::MethodNotAllowed));
        let seen = server.ask("GET", "/v1/kv/k", &[("Origin", page)], b"").await;
        assert_eq!((seen.status, seen.problem().code), (403, ErrorCode::PermissionDenied));
        for answer in [refused, seen] {
            assert_eq!(answer.header("access-control-allow-origin"), None, "{origins:?} {page}");
            assert_eq!(answer.header("access-control-expose-headers"), None, "{origins:?} {page}");
        }
    }
    let open = server(&["*"]).await;
    let granted = preflight(&open, PAGE, "/v1/find").await;
    assert_eq!((granted.status, granted.header("access-control-allow-origin")), (204, Some("*")));
    assert_eq!(granted.header("access-control-allow-credentials"), None, "no page gets what a browser keeps");
    assert_eq!(preflight(&open, PAGE, "/nowhere").await.status, 404);
    let bare = open.ask("OPTIONS", "/v1/find", &[("Origin", PAGE)], b"").await;
    assert_eq!(bare.status, 405, "nobody asks whether something may be sent");
}

#[tokio::test]
async fn a_cache_asks_again_and_tells_forms_apart() {
    let server = server(&[]).await;
    for (path, status, vary) in [
        ("/v1/kv/k", 200, Some("accept")),
        ("/v1/kv/none", 404, Some("accept")),
        ("/v1/kv?prefix=", 200, None),
        ("/v1/limits", 200, None),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = server.ask(method, path, &[], b"").await;
            assert_eq!((answer.status, answer.header("cache-control")), (status, Some("no-cache")), "{method} {path}");
            assert_eq!(answer.header("vary"), vary, "{method} {path}");
        }
    }
    let same = server.ask("GET", "/v1/kv/k", &[("If-None-Match", "*")], b"").await;
    assert_eq!(
        (same.status, same.header("cache-control"), same.header("vary")),
        (304, Some("no-cache"), Some("accept"))
    );
    let written = server.put_json("/v1/kv/k", "2").await;
    assert_eq!(written.header("cache-control"), None);
    let bytes = server.ask("GET", "/v1/kv/k", &[("Accept", "application/octet-stream, */*;q=0.5")], b"").await;
    assert_eq!((bytes.status, &bytes.body[..]), (200, &b"2"[..]));
}

#[tokio::test]
async fn a_content_type_that_is_not_taken_is_answered_with_those_that_are() {
    let server = server(&[]).await;
    for (method, path, name, types) in [
        ("PATCH", "/v1/kv/k", "accept-patch", "application/json-patch+json"),
        ("PATCH", "/v1/kv/k", "accept-patch", "application/merge-patch+json"),
        ("PUT", "/v1/kv/k", "accept", "application/octet-stream"),
        ("POST", "/v1/ops", "accept-post", "application/x-ndjson"),
        ("POST", "/v1/find", "accept-post", "application/json"),
    ] {
        let answer = server.ask(method, path, &[("Content-Type", "text/plain")], b"x").await;
        assert_eq!(answer.status, 415, "{method} {path}");
        assert!(answer.header(name).is_some_and(|list| list.contains(types)), "{method} {path}: {answer:?}");
    }
    let coded = server.ask("PUT", "/v1/kv/k", &[JSON, ("Content-Encoding", "gzip")], b"x").await;
    assert_eq!((coded.status, coded.header("accept-encoding")), (415, Some("identity")));
}
