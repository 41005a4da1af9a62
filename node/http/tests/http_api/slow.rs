//! What counts as a slow request, and what does not.

use std::time::Duration;

use quorate_node_core::gateway::api::ApiSettings;

use crate::raw::{Server, api_settings, serve_settings};

/// From when on a request is slow here.
const SLOW: Duration = Duration::from_millis(500);

async fn slow_requests(server: &Server) -> u64 {
    let text = server.get("/metrics").await.text();
    let line = text.lines().find_map(|line| line.strip_prefix("quorate_http_slow_requests_total "));
    line.expect("the metric is there").parse().expect("a number")
}

#[tokio::test]
async fn a_wait_that_was_asked_for_is_not_slow_and_one_that_was_not_is() {
    let settings = ApiSettings { slow_request: SLOW, ..api_settings() };
    let server = Server::start_with(settings, serve_settings()).await;
    server.put_json("/v1/kv/quick", "1").await;
    let poll = server.get("/v1/kv/nothing?wait_ms=600&if_none_match=0").await;
    assert_eq!(poll.status, 304, "it waited in vain: {}", poll.text());
    assert_eq!(slow_requests(&server).await, 0);
    server.backend.hold("slow");
    let release = async {
        server.until_asked(2).await;
        tokio::time::sleep(SLOW + SLOW / 10).await;
        server.backend.release("slow");
    };
    let (answer, ()) = tokio::join!(server.put_json("/v1/kv/slow", "1"), release);
    assert_eq!(answer.status, 201);
    assert_eq!(slow_requests(&server).await, 1);
}

#[tokio::test]
async fn nothing_is_slow_where_the_threshold_is_zero() {
    let settings = ApiSettings { slow_request: Duration::ZERO, ..api_settings() };
    let server = Server::start_with(settings, serve_settings()).await;
    server.put_json("/v1/kv/quick", "1").await;
    assert_eq!(slow_requests(&server).await, 0);
}
