//! `/v1/latches`: something that happens once, after so many counts.
//!
//! Owns the reading of their bodies and their answers, and how a request waits for a latch. When it opens is decided where commands
//! are applied.

use std::time::{Duration, Instant};

use quorate_api::{CountDownRequest, LatchAnswer, LatchRemoved, LatchRequest, Problem, path};
use quorate_machine::limits::LATCH_COUNT_MAX;
use quorate_machine::query::Observed;
use quorate_machine::types::{Action, LatchOp, LatchRow, Name, Outcome as Decided, Rejection, Reply, Revision, Waker};
use quorate_node_core::backend::SharedNode;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::text::quoted;
use quorate_node_core::gateway::{propose, wait};
use utoipa_axum::routes;

use crate::command;
use crate::context::Context;
use crate::coordinate;
use crate::described::{Changing, Common, NamePath, Reused};
use crate::input::consistency;
use crate::input::extract::{Faults, Query};
use crate::input::json_body::JsonOrNone;
use crate::output::response::{Outcome, created};
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const COORDINATION: Policy = Policy::data(RequestClass::Coordination);
    Routes::new().all(COORDINATION, [routes!(put), routes!(count_down), routes!(get), routes!(delete)])
}

/// Makes a latch that opens after `count` counts. The same again changes nothing and shows the latch as it is.
#[utoipa::path(put, path = "/v1/latches/{name}", tag = "coordination", operation_id = "put_latch",
    params(NamePath),
    request_body(content = LatchRequest, content_type = "application/json", example = json!({"count": 3})),
    responses(
        (status = 200, description = "The latch.", body = LatchAnswer, example = json!({"latch": "loaded", "count": 3, "left": 3, "open": false, "revision": "50", "index": 71})),
        (status = 201, description = "The same, and it was not there before: `Location` is its path.", body = LatchAnswer, example = json!({"latch": "loaded", "count": 3, "left": 3, "open": false, "revision": "50", "index": 71})),
        (status = 409, description = "`different_settings`: it is there with another count. `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        Changing, Common,
    ))]
pub async fn put(context: Context, JsonOrNone(request): JsonOrNone<LatchRequest>) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    let mut faults = Faults::default();
    let count = faults.within("/count", Some(request.count.unwrap_or(1)), 1..=LATCH_COUNT_MAX);
    let count = context.with_request_id(request.request_id, faults.complete(count))?;
    let is_new = command::is_absent(&context, |backend| backend.latch(&name)).await?;
    let reply = decide(&context, Action::Latch(LatchOp::Create { name: name.clone(), count }), false).await?;
    let shown = after(&name, &reply)?;
    let location = || format!("/v1/latches/{}", path::encode_segment(name.as_str()));
    Ok(if is_new && !reply.replayed { created(shown, location()) } else { shown })
}

/// Counts a latch down. At 0 it opens, and stays open. Works on a full disk.
#[utoipa::path(post, path = "/v1/latches/{name}/count_down", tag = "coordination", operation_id = "count_down",
    params(NamePath),
    request_body(content = CountDownRequest, content_type = "application/json", example = json!({"by": 1, "request_id": "part-7-loaded"})),
    responses(
        (status = 200, description = "The latch.", body = LatchAnswer, example = json!({"latch": "loaded", "count": 3, "left": 0, "open": true, "opened_revision": "53", "revision": "53", "index": 74})),
        (status = 404, description = "`not_found`: there is no such latch.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn count_down(context: Context, JsonOrNone(request): JsonOrNone<CountDownRequest>) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    let mut faults = Faults::default();
    let by = faults.within("/by", Some(request.by.unwrap_or(1)), 1..=LATCH_COUNT_MAX);
    let by = context.with_request_id(request.request_id, faults.complete(by))?;
    let reply = decide(&context, Action::Latch(LatchOp::CountDown { name: name.clone(), by }), false).await?;
    after(&name, &reply)
}

/// Shows a latch, at once or once it is open.
#[utoipa::path(get, path = "/v1/latches/{name}", tag = "coordination", operation_id = "latch",
    params(
        NamePath,
        ("wait_ms" = Option<u64>, Query, description = "Wait this many milliseconds, at most 60000, until it is open.", example = 30000),
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds, the wait aside."),
    ),
    responses(
        (status = 200, description = "The latch, open or not.", body = LatchAnswer, example = json!({"latch": "loaded", "count": 3, "left": 2, "open": false, "revision": "51", "index": 72})),
        (status = 404, description = "`not_found`: there is no such latch.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let mut query = Query::parse(context.head.uri.query());
    let wait = consistency::wait(&mut query).unwrap_or(Duration::ZERO);
    query.finish()?;
    let name = coordinate::name_of(context.name())?;
    let backend = &context.api.node;
    context.admit_read(&requirement::on_name(Permission::Read, name.as_str().as_bytes())).await?;
    let has_ended = |row: Option<LatchRow>| row.is_none_or(|row| row.opened.is_some());
    let read = |backend: &SharedNode| Ok(Some(backend.latch(&name)?).filter(|seen| has_ended(seen.found)));
    let ended = wait::until(&context, &Waker::Latch.of(name.as_str()), Instant::now() + wait, read).await?;
    let Observed { at, found, .. } = match ended {
        Some(seen) => seen,
        None => backend.latch(&name).map_err(|fault| Failure::from_fault(&fault))?,
    };
    let row = found.ok_or_else(|| command::missing(no_latch(&name), at))?;
    command::answer(&answer_of(&name, row, at.revision, at.index, false), at.revision, None)
}

/// Removes a latch. Who waits for it is told that it is gone.
#[utoipa::path(delete, path = "/v1/latches/{name}", tag = "coordination", operation_id = "delete_latch",
    params(NamePath),
    responses(
        (status = 200, description = "It is gone.", body = LatchRemoved, example = json!({"latch": "loaded", "revision": "54", "index": 75})),
        (status = 404, description = "`not_found`: there is no such latch.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn delete(context: Context) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    let reply = decide(&context, Action::Latch(LatchOp::Remove { name: name.clone() }), false).await?;
    let Reply { revision, index, replayed, .. } = reply;
    match &reply.outcome {
        Decided::Latch(None) => {
            command::answer(&LatchRemoved { latch: name.to_string(), revision, index, replayed }, revision, None)
        }
        Decided::Rejected(why) => Err(refused(&name, &reply, why)),
        _ => Err(propose::confused(&reply)),
    }
}

/// What a command left.
fn after(name: &Name, reply: &Reply) -> Outcome {
    let Reply { revision, index, replayed, .. } = *reply;
    match &reply.outcome {
        Decided::Latch(Some(row)) => command::answer(&answer_of(name, *row, revision, index, replayed), revision, None),
        Decided::Rejected(why) => Err(refused(name, reply, why)),
        _ => Err(propose::confused(reply)),
    }
}

fn answer_of(name: &Name, row: LatchRow, revision: Revision, index: u64, replayed: bool) -> LatchAnswer {
    let LatchRow { count, left, opened } = row;
    LatchAnswer {
        latch: name.to_string(),
        count,
        left,
        open: opened.is_some(),
        opened_revision: opened,
        revision,
        index,
        replayed,
    }
}

fn no_latch(name: &Name) -> String {
    format!("there is no latch {}", quoted(name.as_str()))
}

fn refused(name: &Name, reply: &Reply, why: &Rejection) -> Failure {
    let failure = Failure::from_rejection(name.as_str(), reply, why).of_number(name.as_str(), why, "count");
    if *why == Rejection::NotFound { failure.saying(no_latch(name)) } else { failure }
}
