//! `/livez`, `/readyz`, `/metrics`, `/version`: for those who watch over the node rather than use it.

use std::time::{Duration, Instant};

use http::HeaderValue;
use quorate_api::{Applied, ErrorCode, VersionAnswer};
use quorate_store::background;
use utoipa_axum::routes;

use crate::app::{AppError, Consistency};
use crate::http::context::Context;
use crate::http::described::Common;
use crate::http::input::headers;
use crate::http::output::response::{Outcome, ok, ok_json};
use crate::http::problem::{Effect, Failure};
use crate::http::routes::{Guard, Policy, Routes};
use crate::limits;

/// The routes for those who watch over the node.
pub fn routes() -> Routes {
    const OPEN: Policy = Policy::node(Guard::None);
    Routes::new()
        .add(OPEN, routes!(livez))
        .add(OPEN, routes!(readyz))
        .add(OPEN, routes!(version))
        .add(Policy::node(Guard::Known), routes!(metrics))
}

/// Whether the process works and trusts its own state. Says nothing of the cluster.
#[utoipa::path(get, path = "/livez", tag = "node", operation_id = "livez",
    responses(
        (status = 200, description = "It does.", body = String, content_type = "text/plain", example = json!("ok")),
        Common,
    ))]
pub async fn livez(context: Context) -> Outcome {
    // That reads do not see yet what was answered last is no reason to wait; only that the node does not trust itself counts.
    match context.api.backend.read_barrier(Consistency::Local, Instant::now()).await {
        Err(error @ (AppError::Quarantined(_) | AppError::Fault(_))) => Err(Failure::from_app(error, Effect::Read)),
        _ => Ok(ok(headers::TEXT, "ok\n")),
    }
}

/// Whether this node answers a linearizable read within a second: it is one.
///
/// If not, `detail` says why.
#[utoipa::path(get, path = "/readyz", tag = "node", operation_id = "readyz",
    responses(
        (status = 200, description = "It does.", body = String, content_type = "text/plain", example = json!("ok")),
        Common,
    ))]
pub async fn readyz(context: Context) -> Outcome {
    let backend = &context.api.backend;
    if let Some(reason) = backend.unready_reason() {
        return Err(Failure::new(ErrorCode::NotReady, Applied::No, reason));
    }
    let allowed = Duration::from_millis(limits::READY_TIMEOUT_MS);
    let read = backend.read_barrier(Consistency::Linearizable, Instant::now() + allowed);
    match tokio::time::timeout(allowed, read).await {
        Ok(Ok(())) => Ok(ok(headers::TEXT, "ok\n")),
        Ok(Err(error)) => Err(Failure::from_app(error, Effect::Read)),
        Err(_) => Err(Failure::from_app(AppError::TimeoutNotProposed, Effect::Read)),
    }
}

/// Everything that can be counted, as OpenMetrics text.
#[utoipa::path(get, path = "/metrics", tag = "node", operation_id = "metrics",
    responses((status = 200, description = "The metrics.", body = String, content_type = "application/openmetrics-text"), Common))]
pub async fn metrics(context: Context) -> Outcome {
    let api = &context.api;
    let (metrics, status, load) = (api.metrics.clone(), api.backend.status(), api.load());
    // Never refused: a scrape that finds others at work waits for its turn.
    let _turn = api.scrapes.acquire().await.expect("the semaphore is never closed");
    let text = background::blocking(move || metrics.encode(&status, load)).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a scrape of the metrics did not end");
        Err(std::fmt::Error)
    });
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    match text {
        Ok(text) => Ok(ok(kind, text)),
        Err(error) => Err(Failure::new(ErrorCode::Internal, Applied::No, format!("the metrics have no text: {error}"))),
    }
}

/// What this node runs.
#[utoipa::path(get, path = "/version", tag = "node", operation_id = "version",
    responses((status = 200, description = "The versions.", body = VersionAnswer, example = json!({"version": "0.1.0", "api": "v1"})), Common))]
pub async fn version(_: Context) -> Outcome {
    ok_json(&VersionAnswer { version: env!("CARGO_PKG_VERSION").to_owned(), api: "v1".to_owned() })
}
