//! `GET /health`, as etcd answers it: whether this node answers a linearizable read in time.

use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use quorate_node_core::backend::Consistency;
use quorate_node_core::gateway::arrival::Arrival;
use quorate_node_core::limits;
use serde::Serialize;

#[derive(Serialize)]
struct Health {
    /// A text, not a truth value.
    health: &'static str,
    reason: String,
}

/// Answers.
pub async fn health(request: Request) -> Response {
    let Some(Arrival { api, .. }) = request.extensions().get() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let allowed = Duration::from_millis(limits::READY_TIMEOUT_MS);
    let reason = match api.node.unready_reason() {
        Some(reason) => Some(reason),
        None => match api.node.read_barrier(Consistency::Linearizable, Instant::now() + allowed).await {
            Ok(()) => None,
            Err(error) => Some(error.to_string()),
        },
    };
    let (status, health) = match reason {
        None => (StatusCode::OK, Health { health: "true", reason: String::new() }),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, Health { health: "false", reason }),
    };
    let Ok(body) = serde_json::to_vec(&health) else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}
