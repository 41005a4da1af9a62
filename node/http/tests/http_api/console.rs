//! The console: its files, where paths lead, and what a browser lets it do.

use quorate_api::ErrorCode;
use quorate_node_core::gateway::api::ApiSettings;

use crate::raw::{Server, api_settings, serve_settings};

#[tokio::test]
async fn browsers_find_the_console_and_may_run_nothing_else() {
    let server = Server::start().await;
    let page = server.ask("GET", "/console/entry/a%2Fb?theme=dark&revision=7", &[], b"").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(page.header("cache-control"), Some("no-cache"), "or a new node would show an old page");
    let policy = page.header("content-security-policy").expect("a policy");
    for part in ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{part} in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let text = String::from_utf8(page.body.clone()).expect("a page is text");
    let script = text.split("src=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a script");
    let script = server.ask("GET", script, &[("Accept-Encoding", "gzip")], b"").await;
    assert_eq!((script.status, script.header("content-type")), (200, Some("text/javascript; charset=utf-8")));
    assert_eq!(script.header("content-encoding"), Some("gzip"));
    assert!(script.header("cache-control").is_some_and(|kept| kept.contains("immutable")));
    let licences = server.ask("GET", "/console/licences.txt", &[], b"").await;
    assert_eq!((licences.status, licences.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    let tag = page.header("etag").expect("a tag");
    assert_eq!(server.ask("GET", "/console/", &[("If-None-Match", tag)], b"").await.status, 304);
}

#[tokio::test]
async fn paths_lead_to_the_console_unless_it_is_off() {
    let server = Server::start().await;
    for (path, status) in [("/", 307), ("/console", 308)] {
        let led = server.ask("GET", path, &[], b"").await;
        assert_eq!((led.status, led.header("location")), (status, Some("/console/")));
    }
    let gone = server.ask("GET", "/console/assets/of-an-older-node.js", &[], b"").await;
    assert_eq!((gone.status, gone.problem().code), (404, ErrorCode::NotFound));
    let off = Server::start_with(ApiSettings { console: false, ..api_settings() }, serve_settings()).await;
    for path in ["/", "/console", "/console/", "/console/keys"] {
        let refused = off.ask("GET", path, &[], b"").await;
        assert_eq!(refused.status, 404, "{path}");
        assert!(refused.problem().detail.contains("--no-console"));
    }
}
