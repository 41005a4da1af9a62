//! `/livez`, `/readyz`, `/metrics`, `/version`, `/v1/limits`: for those who watch over the node rather than use it.

use std::time::{Duration, Instant};

use http::HeaderValue;
use quorate_api::{Applied, BULK_OPS_MAX, ErrorCode, LimitsAnswer, VersionAnswer};
use quorate_machine::limits::{
    KEY_BYTES_MAX, LOCK_MS_MAX, SESSION_TTL_MS_MAX, TTL_MS_MAX, TXN_STEPS_MAX, VALUE_BYTES_MAX,
};
use quorate_node_core::backend::{AppError, Consistency};
use quorate_node_core::gateway::admission::paced::hold_awake;
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::failure::{Effect, Failure};
use quorate_node_core::limits;
use quorate_threads::background;
use utoipa_axum::routes;

use crate::context::Context;
use crate::described::Common;
use crate::headers;
use crate::output::response::{Outcome, ok, ok_json};
use crate::routes::{Policy, Routes};

/// The routes for those who watch over the node.
pub fn routes() -> Routes {
    const OPEN: Policy = Policy::node(Guard::None);
    Routes::new()
        .add(OPEN, routes!(livez))
        .add(OPEN, routes!(readyz))
        // Patroni asks for it with a body.
        .add(OPEN.passing_over_body(), routes!(version))
        .add(OPEN, routes!(limits))
        .add(Policy::node(Guard::Known), routes!(metrics))
}

/// Whether the process still answers: whoever gets no answer may restart it.
///
/// Says nothing of the cluster, nor whether the node serves: one that is in quarantine, hears no leader or applies its log after a
/// start is alive, and its vote may be the one that the others need.
#[utoipa::path(get, path = "/livez", tag = "node", operation_id = "livez",
    responses(
        (status = 200, description = "It does.", body = String, content_type = "text/plain", example = json!("ok")),
        Common,
    ))]
pub async fn livez(_context: Context) -> Outcome {
    // Storage that failed and Raft that stopped end the process by themselves, and no restart mends a state that is wrong: so
    // nothing is left to look at but that there is somebody to answer.
    Ok(ok(headers::TEXT, "ok\n"))
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
    let backend = &context.api.node;
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
    let (metrics, status, load) = (api.metrics.clone(), api.node.status(), api.admission.load());
    // Never refused: a scrape that finds others at work waits for its turn.
    let _awake = hold_awake();
    let _turn = api.admission.scrapes.acquire().await.expect("the semaphore is never closed");
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
    responses((status = 200, description = "The versions.", body = VersionAnswer, example = json!({"version": "0.1.0", "api": "v1", "etcdserver": "3.6.5", "etcdcluster": "3.6.0"})), Common))]
pub async fn version(context: Context) -> Outcome {
    let etcd = &context.api.settings.etcd_version;
    ok_json(&VersionAnswer {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        api: "v1".to_owned(),
        etcdserver: etcd.server.clone(),
        etcdcluster: etcd.cluster.clone(),
    })
}

/// What this node takes at most. The same on all nodes of one version, but for `body_bytes`.
#[utoipa::path(get, path = "/v1/limits", tag = "node", operation_id = "limits",
    responses((status = 200, description = "The limits.", body = LimitsAnswer, example = json!({"key_bytes": 4096, "value_bytes": 1572864, "body_bytes": 2162688, "bulk_body_bytes": 16777216, "bulk_operations": 10000, "txn_steps": 1024, "list_entries": 1000, "find_entries": 10000, "lock_ms": 30000, "session_ttl_ms": 86400000, "ttl_ms": 3153600000000u64})), Common))]
pub async fn limits(context: Context) -> Outcome {
    ok_json(&LimitsAnswer {
        key_bytes: KEY_BYTES_MAX as u64,
        value_bytes: VALUE_BYTES_MAX as u64,
        body_bytes: context.api.settings.bounds.body_bytes_max as u64,
        bulk_body_bytes: limits::BULK_BODY_BYTES_MAX as u64,
        bulk_operations: BULK_OPS_MAX as u64,
        txn_steps: TXN_STEPS_MAX as u64,
        list_entries: limits::LIST_ENTRIES_MAX as u64,
        find_entries: limits::FIND_ENTRIES_MAX,
        lock_ms: LOCK_MS_MAX,
        session_ttl_ms: SESSION_TTL_MS_MAX,
        ttl_ms: TTL_MS_MAX,
    })
}
