//! `/v1/barriers`: so many sessions go on together, and are done together.
//!
//! Owns the reading of their bodies and their answers, and how a request waits for a barrier. When it opens and closes is decided
//! where commands are applied.

use std::time::{Duration, Instant};

use quorate_api::{BarrierAnswer, BarrierState, EnterRequest, LeaveRequest, Problem};
use quorate_machine::limits::BARRIER_PARTIES_MAX;
use quorate_machine::query::{BarrierRead, Observed};
use quorate_machine::types::{
    Action, BarrierOp, BarrierRow, Name, Outcome as Decided, Reply, Revision, SessionId, Waker,
};
use quorate_node_core::backend::SharedNode;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::{propose, wait};
use quorate_node_core::limits;
use utoipa_axum::routes;

use crate::command;
use crate::context::{Context, RequestContext};
use crate::coordinate;
use crate::described::{Changing, Common, NamePath, Reused};
use crate::input::extract::Faults;
use crate::input::json_body::Json;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const COORDINATION: Policy = Policy::data(RequestClass::Coordination);
    Routes::new().all(COORDINATION, [routes!(enter), routes!(leave), routes!(get)])
}

/// Enters a barrier, which opens for all once `parties` sessions are in it.
///
/// To enter again is harmless and goes on waiting. The session stays in it until it leaves or ends, also where its request was broken off. Once it has opened nobody can
/// enter until all have left: then the barrier can be used anew.
#[utoipa::path(post, path = "/v1/barriers/{name}/enter", tag = "coordination", operation_id = "enter_barrier",
    params(
        NamePath,
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds, the wait aside."),
    ),
    request_body(content = EnterRequest, content_type = "application/json", example = json!({"session": "42", "parties": 3, "wait_ms": 30000})),
    responses(
        (status = 200, description = "It is open.", body = BarrierAnswer, example = json!({"barrier": "stage-2", "state": "open", "parties": 3, "entered": 3, "opened_revision": "50", "revision": "50", "index": 71})),
        (status = 202, description = "The session is in it, and others are missing.", body = BarrierAnswer, example = json!({"barrier": "stage-2", "state": "waiting", "parties": 3, "entered": 2, "revision": "48", "index": 69})),
        (status = 409, description = "`session_expired`; `different_settings`: the others name another number of parties; `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        (status = 423, description = "`locked`: it is open, and not all who are in it have left.", body = Problem, content_type = "application/problem+json"),
        Changing, Common,
    ))]
pub async fn enter(context: Context, Json(request): Json<EnterRequest>) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    let mut faults = Faults::default();
    let session = coordinate::session(&request.session, "/session", &mut faults);
    let parties = faults.within("/parties", Some(request.parties), 1..=BARRIER_PARTIES_MAX);
    let wait = wait_of(request.wait_ms, &mut faults);
    let (session, parties) = context.with_request_id(request.request_id, faults.complete(session.zip(parties)))?;
    let end = Instant::now() + wait;
    let op = BarrierOp::Enter { name: name.clone(), session, parties };
    let reply = decide(&context, Action::Barrier(op), false).await?;
    let entered = after(&name, &reply)?;
    if entered.row.is_some_and(|row| row.opened.is_some())
        || !wait::for_applied(&context.api.node, reply.index, end).await
    {
        return entered.answer(&name, BarrierState::Open);
    }
    let has_moved = |read: &BarrierRead| !read.is_in || read.row.is_some_and(|row| row.opened.is_some());
    let seen = watch(&context, &name, session, end, has_moved).await?;
    if !seen.found.is_in && !seen.found.lives {
        return Err(Failure::session_expired(session).evaluated_at(seen.at.revision, seen.at.index));
    }
    BarrierView::seen(&seen, reply.replayed).answer(&name, BarrierState::Open)
}

/// Leaves a barrier. The barrier can be used anew once all have left. Works on a full disk.
#[utoipa::path(post, path = "/v1/barriers/{name}/leave", tag = "coordination", operation_id = "leave_barrier",
    params(
        NamePath,
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds, the wait aside."),
    ),
    request_body(content = LeaveRequest, content_type = "application/json", example = json!({"session": "42", "wait_ms": 30000})),
    responses(
        (status = 200, description = "All have left, or it had not opened.", body = BarrierAnswer, example = json!({"barrier": "stage-2", "state": "empty", "entered": 0, "revision": "55", "index": 76})),
        (status = 202, description = "The session has left, others have not.", body = BarrierAnswer, example = json!({"barrier": "stage-2", "state": "open", "parties": 3, "entered": 1, "opened_revision": "50", "revision": "54", "index": 75})),
        Reused, Common,
    ))]
pub async fn leave(context: Context, Json(request): Json<LeaveRequest>) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    let mut faults = Faults::default();
    let session = coordinate::session(&request.session, "/session", &mut faults);
    let wait = wait_of(request.wait_ms, &mut faults);
    let session = context.with_request_id(request.request_id, faults.complete(session))?;
    let end = Instant::now() + wait;
    let op = BarrierOp::Leave { name: name.clone(), session };
    let reply = decide(&context, Action::Barrier(op), false).await?;
    let left = after(&name, &reply)?;
    let Some(BarrierRow { opened, .. }) = left.row else { return left.answer(&name, BarrierState::Empty) };
    // One that did not open has nobody to wait for.
    if opened.is_none() {
        return left.answer(&name, BarrierState::Waiting);
    }
    if !wait::for_applied(&context.api.node, reply.index, end).await {
        return left.answer(&name, BarrierState::Empty);
    }
    // Another opening, or none yet, means that all had left in between.
    let is_over = |row: Option<BarrierRow>| row.is_none_or(|row| row.opened != opened);
    let seen = watch(&context, &name, session, end, |read| is_over(read.row)).await?;
    let mut told = BarrierView::seen(&seen, reply.replayed);
    told.row = told.row.filter(|row| !is_over(Some(*row)));
    told.answer(&name, BarrierState::Empty)
}

/// Shows a barrier. One that nobody is in is empty.
#[utoipa::path(get, path = "/v1/barriers/{name}", tag = "coordination", operation_id = "barrier",
    params(NamePath),
    responses(
        (status = 200, description = "The barrier.", body = BarrierAnswer, example = json!({"barrier": "stage-2", "state": "waiting", "parties": 3, "entered": 2, "revision": "48", "index": 69})),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    context.admit_read(&requirement::on_name(Permission::Read, name.as_str().as_bytes())).await?;
    let seen = context.api.node.barrier(&name, None).map_err(|fault| Failure::from_fault(&fault))?;
    let told = BarrierView::seen(&seen, false);
    command::answer(&told.body(&name), told.revision, None)
}

/// Reads until it is as wanted or the time is over.
async fn watch(
    context: &RequestContext,
    name: &Name,
    session: SessionId,
    end: Instant,
    is_wanted: impl Fn(&BarrierRead) -> bool + Send + Sync,
) -> Result<Observed<BarrierRead>, Failure> {
    let backend = &context.api.node;
    let read =
        |backend: &SharedNode| Ok(Some(backend.barrier(name, Some(session))?).filter(|seen| is_wanted(&seen.found)));
    match wait::until(context, &Waker::Barrier.of(name.as_str()), end, read).await? {
        Some(seen) => Ok(seen),
        None => backend.barrier(name, Some(session)).map_err(|fault| Failure::from_fault(&fault)),
    }
}

/// What a command left.
fn after(name: &Name, reply: &Reply) -> Result<BarrierView, Failure> {
    let Reply { revision, index, replayed, .. } = *reply;
    match &reply.outcome {
        Decided::Barrier(row) => Ok(BarrierView { row: *row, revision, index, replayed }),
        Decided::Rejected(why) => {
            Err(Failure::from_rejection(name.as_str(), reply, why).of_number(name.as_str(), why, "parties"))
        }
        _ => Err(propose::confused(reply)),
    }
}

/// A barrier as answers show it.
struct BarrierView {
    row: Option<BarrierRow>,
    revision: Revision,
    index: u64,
    replayed: bool,
}

impl BarrierView {
    fn seen(seen: &Observed<BarrierRead>, replayed: bool) -> Self {
        Self { row: seen.found.row, revision: seen.at.revision, index: seen.at.index, replayed }
    }

    fn body(&self, name: &Name) -> BarrierAnswer {
        let state = match self.row {
            None => BarrierState::Empty,
            Some(row) if row.opened.is_some() => BarrierState::Open,
            Some(_) => BarrierState::Waiting,
        };
        BarrierAnswer {
            barrier: name.to_string(),
            state,
            parties: self.row.map(|row| row.parties),
            entered: self.row.map_or(0, |row| row.entered),
            opened_revision: self.row.and_then(|row| row.opened),
            revision: self.revision,
            index: self.index,
            replayed: self.replayed,
        }
    }

    /// 200 where it is what was waited for.
    fn answer(&self, name: &Name, wanted: BarrierState) -> Outcome {
        let body = self.body(name);
        coordinate::answer(&body, self.revision, body.state == wanted)
    }
}

fn wait_of(wait_ms: Option<u64>, faults: &mut Faults) -> Duration {
    Duration::from_millis(faults.within("/wait_ms", wait_ms, 0..=limits::WAIT_MS_MAX).unwrap_or(0))
}
