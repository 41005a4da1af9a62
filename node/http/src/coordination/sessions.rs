//! `/v1/sessions`: signs of life that entries, locks, leaderships and places in barriers hang on.
//!
//! Owns the reading of their bodies and their answers. When a session is over is decided where commands are applied.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_api::{
    LockState, Name, Problem, RenewAnswer, RenewRequest, Renewal, RenewedAnswer, SESSIONS_RENEWED_MAX, SessionAnswer,
    SessionEnded, SessionExpired, SessionHold, SessionHolds, SessionList, SessionRenewed, SessionRequest, SessionView,
};
use quorate_machine::keyspace::session::{PartyAt, SessionRow};
use quorate_machine::limits::{
    SESSION_LABEL_BYTES_MAX, SESSION_LABELS_MAX, SESSION_OWNER_BYTES_MAX, SESSION_TTL_MS_MAX, SESSION_TTL_MS_MIN,
};
use quorate_machine::query::{Observed, SessionHeld};
use quorate_machine::types::{
    Action, ClusterMillis, LockName, LockSpace, Outcome as Decided, Reply, SessionId, SessionOp, SessionReply,
};
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{self, Permission, Requirement, Visit};
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::renew::renew as renew_sessions;
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::gateway::{propose, rejection};
use quorate_node_core::limits;
use utoipa_axum::routes;

use crate::command;
use crate::context::{Context, RequestContext};
use crate::coordinate;
use crate::described::{Changing, Common, Page};
use crate::headers::decimal;
use crate::input::extract::Faults;
use crate::input::json;
use crate::input::json_body::{Empty, Json, JsonOrNone};
use crate::output::response::{Outcome, created};
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const COORDINATION: Policy = Policy::data(RequestClass::Coordination);
    const RENEWAL: Policy = Policy::data(RequestClass::Coordination).without_command().vital().for_owners();
    Routes::new()
        .add(COORDINATION, routes!(create))
        .add(COORDINATION, routes!(get))
        .add(COORDINATION.for_owners(), routes!(end))
        .add(Policy::data(RequestClass::Scan), routes!(list))
        .add(RENEWAL, routes!(renew_many))
        .add(RENEWAL, routes!(renew))
}

/// Creates a session.
///
/// It ends when it was not renewed for `ttl_ms` of the cluster's own clock, which no wall clock moves and which stands still while
/// there is no leader: so never early. With it go, at one revision, all entries written with it, and its places in locks,
/// elections and barriers.
#[utoipa::path(post, path = "/v1/sessions", tag = "coordination", operation_id = "create_session",
    request_body(content = SessionRequest, content_type = "application/json", example = json!({"ttl_ms": 10000, "owner": "worker-7", "labels": {"zone": "a"}})),
    responses(
        (status = 201, description = "It lives.", body = SessionAnswer, example = json!({"session": "42", "ttl_ms": 10000, "expires_in_ms": 10000, "renew_in_ms": 3333, "owner": "worker-7", "labels": {"zone": "a"}, "revision": "42", "index": 60})),
        (status = 409, description = "`request_id_reused`. `session_expired`, with `applied: yes`: the request was sent before, and the session that it created has ended since.", body = Problem, content_type = "application/problem+json"),
        Changing, Common,
    ))]
pub async fn create(context: Context, JsonOrNone(mut request): JsonOrNone<SessionRequest>) -> Outcome {
    let id = request.request_id.take();
    let SessionOp::Create { ttl_ms, owner, labels } = context.with_request_id(id, checked(request))? else {
        return Err(Failure::invalid("", "not a session"));
    };
    let action = Action::Session(SessionOp::Create { ttl_ms, owner: owner.clone(), labels: labels.clone() });
    let reply = decide(&context, action, false).await?;
    let Reply { revision, index, replayed, .. } = reply;
    match &reply.outcome {
        Decided::Session(SessionReply::Created { id, expires_at }) => {
            // What is kept tells of the time when it began: renewed, it is true again.
            let SessionRenewed { session, ttl_ms, expires_in_ms, renew_in_ms } = match replayed {
                true => renew_one(&context, *id).await.map_err(Failure::of_a_repeat)?,
                false => renewed(*id, ttl_ms, *expires_at, reply.clock),
            };
            let labels = labels.into_iter().collect();
            let answer =
                SessionAnswer { session, ttl_ms, expires_in_ms, renew_in_ms, owner, labels, revision, index, replayed };
            Ok(created(command::answer(&answer, revision, None)?, format!("/v1/sessions/{id}")))
        }
        Decided::Rejected(why) => Err(Failure::from_rejection("", &reply, why)),
        _ => Err(propose::confused(&reply)),
    }
}

/// A session as the log has it.
fn checked(request: SessionRequest) -> Result<SessionOp, Failure> {
    let mut faults = Faults::default();
    let ttl_ms = Some(request.ttl_ms.unwrap_or(limits::SESSION_TTL_MS_DEFAULT));
    let ttl_ms = faults.within("/ttl_ms", ttl_ms, SESSION_TTL_MS_MIN..=SESSION_TTL_MS_MAX);
    let owner = request.owner.unwrap_or_default();
    if owner.len() > SESSION_OWNER_BYTES_MAX {
        faults.add("/owner", format!("at most {SESSION_OWNER_BYTES_MAX} bytes, this one has {}", owner.len()));
    }
    let labels = request.labels.unwrap_or_default();
    if labels.len() > SESSION_LABELS_MAX {
        faults.add("/labels", format!("at most {SESSION_LABELS_MAX}, these are {}", labels.len()));
    }
    for (name, _) in labels.iter().filter(|(name, value)| name.len().max(value.len()) > SESSION_LABEL_BYTES_MAX) {
        let pointer = format!("/labels{}", json::pointer(name));
        faults.add(pointer, format!("names and values have at most {SESSION_LABEL_BYTES_MAX} bytes"));
    }
    let ttl_ms = faults.complete(ttl_ms)?;
    Ok(SessionOp::Create { ttl_ms, owner, labels: labels.into_iter().collect() })
}

/// Renews a session: it lives for its `ttl_ms` from now on. To do so again is harmless, so there is no request id. Needs no body.
#[utoipa::path(post, path = "/v1/sessions/{session}/renew", tag = "coordination", operation_id = "renew_session",
    params(
        ("session" = String, Path, description = "Its id.", example = "42"),
    ),
    responses(
        (status = 200, description = "It lives on.", body = RenewedAnswer, example = json!({"session": "42", "ttl_ms": 10000, "expires_in_ms": 10000, "renew_in_ms": 3333, "revision": "50", "index": 71})),
        (status = 409, description = "`session_expired`: there is no such session, or not any more.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn renew(context: Context, JsonOrNone(Empty {}): JsonOrNone<Empty>) -> Outcome {
    let id = coordinate::session_of(context.name())?;
    let RenewAnswer { mut sessions, revision, index } = renew_all(&context, vec![id]).await?;
    match sessions.pop() {
        Some(Renewal::Renewed(SessionRenewed { session, ttl_ms, expires_in_ms, renew_in_ms })) => {
            let answer = RenewedAnswer { session, ttl_ms, expires_in_ms, renew_in_ms, revision, index };
            command::answer(&answer, revision, None)
        }
        _ => Err(Failure::session_expired(id).evaluated_at(revision, index)),
    }
}

/// Renews many sessions at once: each lives on or is told to have expired.
#[utoipa::path(post, path = "/v1/sessions/renew", tag = "coordination", operation_id = "renew_sessions",
    request_body(content = RenewRequest, content_type = "application/json", example = json!({"sessions": ["42", "43"]})),
    responses(
        (status = 200, description = "What became of each.", body = RenewAnswer, example = json!({"sessions": [{"session": "42", "ttl_ms": 10000, "expires_in_ms": 10000, "renew_in_ms": 3333}, {"session": "43", "expired": true}], "revision": "50", "index": 71})),
        Common,
    ))]
pub async fn renew_many(context: Context, Json(request): Json<RenewRequest>) -> Outcome {
    let sessions = sessions_of(&request.sessions)?;
    let answer = renew_all(&context, sessions).await?;
    command::answer(&answer, answer.revision, None)
}

/// Renews a session that has to live.
async fn renew_one(context: &RequestContext, id: SessionId) -> Result<SessionRenewed, Failure> {
    let done = renew_all(context, vec![id]).await?;
    match done.sessions.into_iter().next() {
        Some(Renewal::Renewed(renewed)) => Ok(renewed),
        _ => Err(Failure::session_expired(id).evaluated_at(done.revision, done.index)),
    }
}

async fn renew_all(context: &RequestContext, ids: Vec<SessionId>) -> Result<RenewAnswer, Failure> {
    let done = renew_sessions(context, &ids, context.deadline).await?;
    let sessions = ids.iter().zip(&done.each).map(|(id, each)| match each {
        Some((ttl_ms, expires_at)) => Renewal::Renewed(renewed(*id, *ttl_ms, *expires_at, done.clock)),
        None => Renewal::Expired(SessionExpired { session: id.to_string(), expired: true }),
    });
    Ok(RenewAnswer { sessions: sessions.collect(), revision: done.revision, index: done.index })
}

fn sessions_of(ids: &[String]) -> Result<Vec<SessionId>, Failure> {
    let mut faults = Faults::default();
    if !(1..=SESSIONS_RENEWED_MAX).contains(&ids.len()) {
        faults.add("/sessions", format!("must be a list of 1 to {SESSIONS_RENEWED_MAX} ids of sessions"));
    }
    let mut sessions = Vec::with_capacity(ids.len().min(SESSIONS_RENEWED_MAX));
    for (at, id) in ids.iter().enumerate().take(SESSIONS_RENEWED_MAX) {
        sessions.extend(coordinate::session(id, &format!("/sessions/{at}"), &mut faults));
    }
    faults.check()?;
    Ok(sessions)
}

/// Shows a session, and what hangs on it.
#[utoipa::path(get, path = "/v1/sessions/{session}", tag = "coordination", operation_id = "session",
    params(
        ("session" = String, Path, description = "Its id.", example = "42"),
    ),
    responses(
        (status = 200, description = "It lives.", body = SessionView, example = json!({"session": "42", "owner": "worker-7", "labels": {}, "ttl_ms": 10000, "expires_in_ms": 8000, "created": "2026-11-21T01:06:00.123Z", "age_ms": 60000, "holds": {"locks": [{"name": "reports", "state": "held", "token": "43"}], "elections": [], "barriers": [], "keys": ["services/worker-7"], "tasks": [], "count": 2}, "revision": "50", "index": 71})),
        (status = 404, description = "`not_found`: there is no such session, or not any more.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let id = coordinate::session_of(context.name())?;
    context.admit_read(&|visit: &mut Visit<'_>| visit(Requirement::Something)).await?;
    let seen = context.api.node.session(id, limits::PARTIES_SHOWN_MAX).map_err(|fault| Failure::from_fault(&fault))?;
    let Observed { at, wall, found } = seen;
    let held = found.ok_or_else(|| command::missing(rejection::no_session(id), at))?;
    context.caller().check(&|visit| visit(Requirement::Session(id)))?;
    let mut view = view_of(id, &held.row, at.clock, wall);
    (view.holds, view.revision, view.index) = (Some(holds_of(&held)), Some(at.revision), Some(at.index));
    command::answer(&view, at.revision, None)
}

/// Lists the sessions, the oldest first.
#[utoipa::path(get, path = "/v1/sessions", tag = "coordination", operation_id = "sessions",
    params(Page),
    responses(
        (status = 200, description = "A page.", body = SessionList, example = json!({"sessions": [{"session": "42", "owner": "worker-7", "labels": {}, "ttl_ms": 10000, "expires_in_ms": 8000, "created": "2026-11-21T01:06:00.123Z", "age_ms": 60000}], "revision": "50", "index": 71})),
        Common,
    ))]
pub async fn list(context: Context) -> Outcome {
    let (limit, after) = coordinate::page_of(&context, |text| decimal(text).map(SessionId))?;
    context.costs_page(limit)?;
    context.admit_read(&requirement::on_prefix(Permission::Admin, b"")).await?;
    let Observed { at, wall, found } = scan(&context, move |backend| backend.sessions(after, limit)).await?;
    let last = found.items.last().map(|(id, _)| id.to_string());
    let sessions = found.items.iter().map(|(id, row)| view_of(*id, row, at.clock, wall)).collect();
    let cursor = last.filter(|_| found.more);
    let answer = SessionList { sessions, cursor, revision: at.revision, index: at.index };
    command::answer(&answer, at.revision, None)
}

/// Ends a session at once, with all that hangs on it.
#[utoipa::path(delete, path = "/v1/sessions/{session}", tag = "coordination", operation_id = "end_session",
    params(
        ("session" = String, Path, description = "Its id.", example = "42"),
    ),
    responses(
        (status = 200, description = "It has ended, and what hung on it is gone.", body = SessionEnded, example = json!({"session": "42", "ended": true, "count": 2, "revision": "51", "index": 72})),
        (status = 409, description = "`session_expired`: there is no such session, or not any more. `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn end(context: Context) -> Outcome {
    let id = coordinate::session_of(context.name())?;
    let reply = decide(&context, Action::Session(SessionOp::End(id)), false).await?;
    let Reply { revision, index, replayed, .. } = reply;
    match &reply.outcome {
        Decided::Session(SessionReply::Ended(count)) => {
            let (session, count) = (id.to_string(), (*count).into());
            let answer = SessionEnded { session, ended: true, count, revision, index, replayed };
            command::answer(&answer, revision, None)
        }
        Decided::Rejected(why) => Err(Failure::from_rejection("", &reply, why)),
        _ => Err(propose::confused(&reply)),
    }
}

fn renewed(id: SessionId, ttl_ms: u64, expires_at: ClusterMillis, clock: ClusterMillis) -> SessionRenewed {
    let expires_in_ms = expires_at.saturating_sub(clock);
    SessionRenewed { session: id.to_string(), ttl_ms, expires_in_ms, renew_in_ms: ttl_ms / 3 }
}

fn view_of(id: SessionId, row: &SessionRow, clock: ClusterMillis, wall: u64) -> SessionView {
    SessionView {
        session: id.to_string(),
        owner: row.owner.clone(),
        labels: row.labels.iter().cloned().collect(),
        ttl_ms: row.ttl_ms,
        expires_in_ms: row.expires_at.saturating_sub(clock),
        created: coordinate::moment(row.created),
        age_ms: wall.saturating_sub(row.created),
        holds: None,
        revision: None,
        index: None,
    }
}

fn holds_of(held: &SessionHeld) -> SessionHolds {
    let of = |space| {
        let in_space = held.locks.iter().filter(move |(lock, _)| lock.space == space);
        in_space.map(|(lock, at)| hold_of(lock, *at)).collect()
    };
    let names = || held.keys.iter().map(|key| Name::from(key.as_bytes()));
    SessionHolds {
        locks: of(LockSpace::Lock),
        elections: of(LockSpace::Election),
        barriers: held.barriers.iter().map(ToString::to_string).collect(),
        keys: names().filter_map(|name| name.text().map(str::to_owned)).collect(),
        keys_base64: names().filter(|name| name.text().is_none()).map(|name| STANDARD.encode(name)).collect(),
        tasks: held.tasks.iter().map(|(queue, id)| format!("{queue}/{id}")).collect(),
        count: held.row.attached.into(),
    }
}

fn hold_of(lock: &LockName, at: PartyAt) -> SessionHold {
    let name = lock.name.to_string();
    match at {
        PartyAt::Holding(token) => SessionHold { name, state: LockState::Held, token: Some(token), place: None },
        PartyAt::Waiting(place) => SessionHold { name, state: LockState::Waiting, token: None, place: Some(place) },
    }
}
