//! A web page whose name leads to a node: where nobody has to say who they are, it gets nothing.

use quorate_api::ErrorCode;
use quorate_machine::types::{ContentKind, Value};
use quorate_node_core::gateway::api::ApiSettings;
use quorate_node_core::gateway::hosts::AllowedHosts;

use crate::raw::{Response, Server, api_settings, serve_settings};

async fn server() -> Server {
    let hosts = AllowedHosts::of(["node-1.example.org".into()]);
    let server = Server::start_with(ApiSettings { hosts, ..api_settings() }, serve_settings()).await;
    server.backend.seed("k", Value { kind: ContentKind::Json, data: b"1".to_vec() });
    server
}

/// As a browser asks that took `host` for the name of this node.
async fn ask(server: &Server, host: &str, method: &str, path: &str, body: &str) -> Response {
    let mut raw = server.connect().await;
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n");
    raw.send(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes()).await;
    raw.response(method == "HEAD").await
}

#[tokio::test]
async fn a_name_that_was_bound_anew_reads_and_writes_nothing() {
    let server = server().await;
    let rebound = format!("evil.example:{}", server.addr.port());
    for (method, path, body) in [
        ("GET", "/v1/kv/k", ""),
        ("PUT", "/v1/kv/k", "2"),
        ("GET", "/v1/kv?prefix=", ""),
        ("GET", "/v1/watch?prefix=", ""),
        ("GET", "/v1/cluster/status", ""),
        ("POST", "/v3/kv/range", r#"{"key":"aw=="}"#),
    ] {
        let refused = ask(&server, &rebound, method, path, body).await;
        assert_eq!(refused.status, 403, "{method} {path}");
        if path.starts_with("/v1") {
            let problem = refused.problem();
            assert_eq!(problem.code, ErrorCode::PermissionDenied);
            let detail = problem.detail;
            assert!(detail.contains("`evil.example:") && detail.contains("--allowed-hosts"), "{detail}");
        }
    }
    assert_eq!(server.backend.asked(), 0, "nothing was written");
}

#[tokio::test]
async fn the_names_of_a_node_and_what_tells_nothing_are_answered() {
    let server = server().await;
    for host in [server.addr.to_string(), "localhost".into(), "node-1.example.org:7100".into(), "[::1]:7100".into()] {
        assert_eq!(ask(&server, &host, "GET", "/v1/kv/k", "").await.status, 200, "{host}");
    }
    // As load balancers ask.
    assert_eq!(ask(&server, "quorate.example.net", "GET", "/livez", "").await.status, 200);
    let mut raw = server.connect().await;
    raw.send(b"GET /v1/kv/k HTTP/1.0\r\n\r\n").await;
    assert_eq!(raw.response(false).await.status, 200, "who names no host is no browser");
}
