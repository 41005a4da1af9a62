//! Requests about sessions, locks and the like, asked as a careful client does.
//!
//! Owns going on at another node where one does not answer. Never repeats a request in another form or under another id.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use quorate_client::api::{SessionAnswer, SessionRequest};
use serde_json::Value;

use crate::http::{Answer, Request};

/// How long one exchange may take, the longest poll included.
const EXCHANGE_MAX: Duration = Duration::from_secs(20);

/// Somebody who asks any of some nodes.
#[derive(Debug, Clone)]
pub struct Caller {
    nodes: Vec<SocketAddr>,
    next: usize,
    patience: Duration,
}

impl Caller {
    /// Asks these nodes, the first one first.
    pub fn new(nodes: Vec<SocketAddr>, patience: Duration) -> Self {
        Self { nodes, next: 0, patience }
    }

    /// Posts a body until it is decided: goes on at the next node where one is gone, stands still or has no leader.
    pub async fn post(&mut self, route: &str, body: &Value) -> Answer {
        self.insist(&Request::post(route, body.to_string())).await
    }

    /// The same with any request that may be repeated.
    pub async fn insist(&mut self, request: &Request) -> Answer {
        let begun = Instant::now();
        loop {
            let to = self.nodes[self.next % self.nodes.len()];
            let outcome = request.send_within(to, EXCHANGE_MAX).await;
            match outcome {
                Ok(answer) if !matches!(answer.status, 429 | 503 | 504) => return answer,
                _ if begun.elapsed() > self.patience => panic!("nobody decides {request:?}: {outcome:?}"),
                _ => self.next += 1,
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Creates a session.
    pub async fn session(&mut self, ttl_ms: u64, owner: &str) -> String {
        let request_id = Some(format!("session-of-{owner}"));
        let wanted = SessionRequest { ttl_ms: Some(ttl_ms), owner: Some(owner.into()), labels: None, request_id };
        let wanted = serde_json::to_value(&wanted).expect("a wire type is JSON");
        self.post("/v1/sessions", &wanted).await.expect_success().json::<SessionAnswer>().session
    }
}
