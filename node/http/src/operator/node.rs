//! `/v1/node`: this node's log and settings, and who holds what of it. Never passed on to another node.
//!
//! Owns what may be asked of them. What is written into the log and what of it is kept, `logging` owns.

use std::time::Duration;

use quorate_api::{
    Applied, ErrorCode, NodeCallersAnswer, NodeConfigAnswer, NodeLogAnswer, NodeLogLinesAnswer, NodeLogRequest,
};
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::logging::LogControl;
use tracing_subscriber::filter::Targets;
use utoipa_axum::routes;

use crate::context::Context;
use crate::described::Common;
use crate::input::extract::{Faults, Query};
use crate::input::json_body::Json;
use crate::output::response::{Outcome, ok_json};
use crate::routes::{Policy, Routes};

/// Longest filter. One names a dozen modules.
const FILTER_BYTES_MAX: usize = 1_024;
/// Longest time that a filter may be asked for.
const FOR_MS_MAX: u64 = 24 * 3_600 * 1_000;
/// Lines in an answer, at most and where nobody says how many.
const LINES_MAX: u64 = 10_000;
const LINES_DEFAULT: u64 = 1_000;

pub fn routes() -> Routes {
    const ADMIN: Policy = Policy::node(Guard::Admin).without_command();
    Routes::new().all(ADMIN, [routes!(log), routes!(set_log), routes!(lines), routes!(config), routes!(callers)])
}

/// What this node logs.
#[utoipa::path(get, path = "/v1/node/log", tag = "node", operation_id = "node_log",
    responses((status = 200, description = "The filter.", body = NodeLogAnswer, example = json!({"node_id": 1, "filter": "info", "configured": "info"})), Common))]
pub async fn log(context: Context) -> Outcome {
    shown(&context, control(&context)?)
}

/// Has this node log something else from now on, until it starts again or for as long as `for_ms` says.
///
/// Lines of the level `debug` are Quorate's own; those of openraft exist in debug builds only.
#[utoipa::path(put, path = "/v1/node/log", tag = "node", operation_id = "set_node_log",
    request_body(content = NodeLogRequest, content_type = "application/json", example = json!({"filter": "quorate_node=debug,info", "for_ms": 600_000})),
    responses((status = 200, description = "It does.", body = NodeLogAnswer, example = json!({"node_id": 1, "filter": "quorate_node=debug,info", "configured": "info"})), Common))]
pub async fn set_log(context: Context, Json(request): Json<NodeLogRequest>) -> Outcome {
    let mut faults = Faults::default();
    let filter = request.filter.map(|text| filter(&text, &mut faults));
    let time = faults.within("/for_ms", request.for_ms, 1..=FOR_MS_MAX);
    faults.check()?;
    let control = control(&context)?;
    let (before, name) = (control.filters().current, context.caller().who.name().to_owned());
    let filter = filter.unwrap_or_else(|| control.configured());
    match time {
        Some(millis) => control.set_for(filter, Duration::from_millis(millis)),
        None => _ = control.set(filter),
    }
    let (after, by) = (control.filters().current, if name.is_empty() { "anybody" } else { &name });
    tracing::info!(before, after, by, "the log was told what to log");
    shown(&context, control)
}

/// The last lines of this node's log, oldest first. Names and values of entries are left out of them.
#[utoipa::path(get, path = "/v1/node/log/lines", tag = "node", operation_id = "node_log_lines",
    params(
        ("limit" = Option<u64>, Query, description = "How many, 1 to 10000; 1000 without it.", example = 100),
    ),
    responses((status = 200, description = "The lines.", body = NodeLogLinesAnswer, example = json!({"node_id": 1, "lines": ["2026-11-22T01:06:00.123Z INFO  quorate_node::server: started"]})), Common))]
pub async fn lines(context: Context) -> Outcome {
    let mut query = Query::parse(context.head.uri.query());
    let limit = query.number("limit").unwrap_or(LINES_DEFAULT);
    if !(1..=LINES_MAX).contains(&limit) {
        query.faults.add("query:limit", format!("out of range; give 1 to {LINES_MAX}"));
    }
    query.finish()?;
    // Bounded a few lines above.
    let lines = control(&context)?.recent().last(limit as usize);
    ok_json(&NodeLogLinesAnswer { node_id: context.api.settings.node_id, lines })
}

/// How this node is configured: every setting that was given. Of files of secrets the path, never what is in them.
#[utoipa::path(get, path = "/v1/node/config", tag = "node", operation_id = "node_config",
    responses((status = 200, description = "The settings.", body = NodeConfigAnswer, example = json!({"node_id": 1, "version": "0.1.0", "settings": {"node_id": "1", "data_dir": "/var/lib/quorate"}})), Common))]
pub async fn config(context: Context) -> Outcome {
    let settings = &context.api.settings;
    ok_json(&NodeConfigAnswer {
        node_id: settings.node_id,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: (*settings.given).clone(),
    })
}

/// Lists the limited resources of this node: how much there is of each, how much is taken, how often more was refused, and the twenty
/// accounts that hold most of it.
#[utoipa::path(get, path = "/v1/node/callers", tag = "node", operation_id = "node_callers",
    responses((status = 200, description = "The resources.", body = NodeCallersAnswer, example = json!({"node_id": 1, "resources": [{"resource": "bodies", "bound": 268_435_456, "share": 67_108_864, "taken": 1_048_576, "refused": 0, "share_refused": 0, "callers": [{"kind": "user", "name": "shop", "held": 1_048_576}]}]})), Common))]
pub async fn callers(context: Context) -> Outcome {
    ok_json(&NodeCallersAnswer { node_id: context.api.settings.node_id, resources: context.api.admission.callers() })
}

fn control(context: &Context) -> Result<&LogControl, Failure> {
    let control = context.api.settings.log.as_ref();
    control.ok_or_else(|| Failure::new(ErrorCode::NotReady, Applied::No, "this process keeps no log of its own"))
}

fn shown(context: &Context, control: &LogControl) -> Outcome {
    let (filters, node_id) = (control.filters(), context.api.settings.node_id);
    ok_json(&NodeLogAnswer { node_id, filter: filters.current, configured: filters.configured })
}

/// Reads a filter; an empty one if there is a fault.
fn filter(text: &str, faults: &mut Faults) -> Targets {
    const FORM: &str = "write it like debug or quorate_node=debug,info";
    if text.len() > FILTER_BYTES_MAX {
        faults.add("/filter", format!("longer than {FILTER_BYTES_MAX} bytes"));
    }
    text.parse().unwrap_or_else(|error| {
        faults.add("/filter", format!("not a filter ({error}); {FORM}"));
        Targets::new()
    })
}
