//! `/v1/locks`: locks and semaphores.
//!
//! Owns the reading of their bodies and their answers. Who holds a lock is decided where commands are applied; how a request
//! waits is `queue`'s.

use quorate_api::{
    AcquireAnswer, AcquireRequest, Applied, CheckAnswer, ErrorCode, LockAnswer, LockHolder, LockList, LockMode,
    LockState, LockSummary, LockWaiter, Problem, ReleaseAnswer, ReleaseRequest,
};
use quorate_machine::keyspace::lock_queue::{HolderRow, WaiterRow};
use quorate_machine::limits::{LOCK_DELAY_MS_MAX, LOCK_SLOTS_MAX, LOCK_WAIT_MS_MAX, LOCK_WAITERS_MAX};
use quorate_machine::query::{LockRead, Observed, PartyShown, ReadPosition};
use quorate_machine::types::{
    self, Acquire, Action, LockName, LockOp, LockReply, LockSpace, Name, Outcome as Decided, Reply, Revision, SessionId,
};
use quorate_node_core::backend::SharedNode;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::propose;
use quorate_node_core::gateway::queue::{self, Acquired, QueueRequest, QueueState};
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::gateway::text::quoted;
use quorate_node_core::limits;
use utoipa_axum::routes;

use crate::command;
use crate::context::{Context, RequestContext};
use crate::coordinate;
use crate::described::{Changing, Common, NamePath, Page};
use crate::input::extract::{Faults, Query};
use crate::input::json_body::Json;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const COORDINATION: Policy = Policy::data(RequestClass::Coordination);
    Routes::new()
        .all(COORDINATION, [routes!(acquire), routes!(release), routes!(get), routes!(check)])
        .add(Policy::data(RequestClass::Scan), routes!(list))
}

/// Acquires a lock for a session, first come first served.
///
/// Where it is not to be had at once, the session gets a place in the queue for `wait_ms`, and the request waits for `poll_ms` of
/// them. 202 says that the place stays: ask again, at any node, to go on waiting with the same place; each time the wait counts
/// anew. The place is the cluster's: it survives the loss of the node that was asked, and ends by itself. A session has one place
/// in a lock; asking for what it holds already is answered with the same token. A request that hangs up in the middle of a wait
/// keeps the place for ten seconds: it goes, also where it was granted meanwhile, unless the session has asked again by then.
///
/// The token is greater than that of every holder before. A write with it as `guard` is applied only while it holds the lock, so
/// that a holder that was held up cannot overwrite what its successor wrote.
#[utoipa::path(post, path = "/v1/locks/{name}/acquire", tag = "coordination", operation_id = "acquire",
    params(
        NamePath,
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds, the wait aside."),
    ),
    request_body(content = AcquireRequest, content_type = "application/json", example = json!({"session": "42", "wait_ms": 30000})),
    responses(
        (status = 200, description = "The session holds it.", body = AcquireAnswer, example = json!({"lock": "reports", "state": "held", "token": "43", "session": "42", "mode": "exclusive", "revision": "43", "index": 61})),
        (status = 202, description = "The session waits.", body = AcquireAnswer, example = json!({"lock": "reports", "state": "waiting", "place": "44", "ahead": 0, "session": "42", "mode": "exclusive", "revision": "44", "index": 62})),
        (status = 409, description = "`session_expired`; `already_queued`: the session has a place there with another mode; `different_settings`: the lock is in use with another number of slots; `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        (status = 423, description = "`locked`: not to be had in the time given, or as many wait for it as `max_waiters` says, 1000 without it; `holders`, `waiters`, and `retry_after_ms` where the session of its holder has expired.", body = Problem, content_type = "application/problem+json"),
        Changing, Common,
    ))]
pub async fn acquire(context: Context, Json(request): Json<AcquireRequest>) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    let parsed = asked(&request, &name);
    let parsed = context.with_request_id(request.request_id, parsed)?;
    let (session, mode) = (parsed.acquire.session.to_string(), mode_shown(parsed.acquire.mode));
    if request.with_holders {
        context.admit_read(&requirement::on_name(Permission::Read, name.as_str().as_bytes())).await?;
    }
    let Acquired { state, revision, index, replayed } = queue::acquire(&context, parsed).await?;
    let (state, token, place, ahead) = match state {
        QueueState::Holds { token } => (LockState::Held, Some(token), None, None),
        QueueState::Waits { place, ahead } => (LockState::Waiting, None, Some(place), ahead),
    };
    let mut holders = Vec::new();
    if request.with_holders && state == LockState::Waiting {
        // The place is taken: what fails from here on must not say that nothing was done.
        let read = context.api.node.lock(&lock_of(&name), limits::PARTIES_SHOWN_MAX);
        let read = read.map_err(|fault| Failure::from_fault(&fault).undecided(queue::WAITS_ON));
        let Observed { wall, found, .. } = read?;
        holders = found.holders.iter().map(|holder| holder_shown(holder, wall)).collect();
    }
    let lock = name.to_string();
    let answer = AcquireAnswer { lock, state, token, place, ahead, holders, session, mode, revision, index, replayed };
    coordinate::answer(&answer, revision, state == LockState::Held)
}

fn asked(request: &AcquireRequest, name: &Name) -> Result<QueueRequest, Failure> {
    let mut faults = Faults::default();
    let session = coordinate::session(&request.session, "/session", &mut faults);
    let wait_ms = faults.within("/wait_ms", request.wait_ms, 0..=LOCK_WAIT_MS_MAX).unwrap_or(0);
    let poll = coordinate::poll(request.poll_ms, &mut faults);
    let mode = request.mode.unwrap_or_default();
    let slots = faults.within("/slots", request.slots, 1..=LOCK_SLOTS_MAX);
    if mode == LockMode::Shared && slots.is_some_and(|slots| slots > 1) {
        faults.add("/slots", "only a lock that is held exclusively has more than one slot");
    }
    let delay_ms = faults.within("/delay_ms", request.delay_ms, 0..=LOCK_DELAY_MS_MAX).unwrap_or(0);
    let max_waiters = faults.within("/max_waiters", request.max_waiters, 1..=LOCK_WAITERS_MAX);
    let (session, mode) = (faults.complete(session)?, mode_of(mode));
    let acquire = Acquire { mode, slots, wait_ms, delay_ms, max_waiters, ..Acquire::of(lock_of(name), session) };
    Ok(QueueRequest { acquire, poll })
}

/// Gives a lock up: what a token holds, or whatever a session has there, be it only a place in the queue. Works on a full disk.
#[utoipa::path(post, path = "/v1/locks/{name}/release", tag = "coordination", operation_id = "release",
    params(NamePath),
    request_body(content = ReleaseRequest, content_type = "application/json", example = json!({"token": "43"})),
    responses(
        (status = 200, description = "It is given up.", body = ReleaseAnswer, example = json!({"lock": "reports", "released": true, "revision": "50", "index": 71})),
        (status = 409, description = "`not_lock_holder`: the token does not hold it, or not any more. `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn release(context: Context, Json(request): Json<ReleaseRequest>) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    let party = party(request.token, request.session.as_deref(), "token");
    let party = context.with_request_id(request.request_id, party)?;
    let (reply, released) = give_up(&context, lock_of(&name), party).await?;
    let Reply { revision, index, replayed, .. } = reply;
    let answer = ReleaseAnswer { lock: name.to_string(), released, revision, index, replayed };
    command::answer(&answer, revision, None)
}

/// What is to be given up.
pub enum PartyNamed {
    /// What this token holds.
    Token(Revision),
    /// Whatever this session has.
    Session(SessionId),
}

/// What is to be given up: by its token, which goes by this name, or by its session.
pub fn party(token: Option<Revision>, session: Option<&str>, token_name: &str) -> Result<PartyNamed, Failure> {
    match (token, session) {
        (Some(token), None) => Ok(PartyNamed::Token(token)),
        (None, Some(session)) => {
            let mut faults = Faults::default();
            let session = coordinate::session(session, "/session", &mut faults);
            faults.complete(session).map(PartyNamed::Session)
        }
        _ => Err(Failure::invalid("", format!("needs `{token_name}` or `session`, one of the two"))),
    }
}

/// Gives it up. Tells whether there was something.
pub async fn give_up(context: &RequestContext, lock: LockName, party: PartyNamed) -> Result<(Reply, bool), Failure> {
    let name = lock.name.to_string();
    let op = match party {
        PartyNamed::Token(token) => LockOp::Release { lock, token },
        PartyNamed::Session(session) => LockOp::Leave { lock, session, asked: None, release: true },
    };
    let reply = decide(context, Action::Lock(op), false).await?;
    match reply.outcome {
        Decided::Lock(LockReply::Gone(was_there)) => Ok((reply, was_there)),
        Decided::Rejected(ref why) => Err(Failure::from_rejection(&name, &reply, why)),
        _ => Err(propose::confused(&reply)),
    }
}

/// Shows a lock: who holds it, and who waits. One that nobody uses has no holders and no queue.
#[utoipa::path(get, path = "/v1/locks/{name}", tag = "coordination", operation_id = "lock",
    params(NamePath),
    responses(
        (status = 200, description = "The lock.", body = LockAnswer, example = json!({"lock": "reports", "slots": 1, "mode": "exclusive", "holders": [{"session": "42", "owner": "worker-7", "token": "43", "mode": "exclusive", "age_ms": 900}], "queue": [], "holder_count": 1, "waiter_count": 0, "delay_left_ms": 0, "revision": "50", "index": 71})),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    let Observed { at, wall, found } = read_lock(&context, &lock_of(&name)).await?;
    let LockRead { head, holders, waiters } = found;
    let answer = LockAnswer {
        lock: name.to_string(),
        slots: head.as_ref().map_or(1, |head| head.slots),
        mode: head.as_ref().filter(|head| head.holders > 0).map(|head| mode_shown(head.mode)),
        holders: holders.iter().map(|holder| holder_shown(holder, wall)).collect(),
        queue: waiters.iter().map(|waiter| waiter_shown(waiter, at, wall)).collect(),
        holder_count: head.as_ref().map_or(0, |head| head.holders.into()),
        waiter_count: head.as_ref().map_or(0, |head| head.waiters.into()),
        delay_left_ms: head.and_then(|head| head.not_before).map_or(0, |until| until.saturating_sub(at.clock)),
        revision: at.revision,
        index: at.index,
    };
    command::answer(&answer, at.revision, None)
}

/// A lock as it is now.
pub async fn read_lock(context: &RequestContext, lock: &LockName) -> Result<Observed<LockRead>, Failure> {
    context.admit_read(&requirement::on_name(Permission::Read, lock.name.as_str().as_bytes())).await?;
    context.api.node.lock(lock, limits::PARTIES_SHOWN_MAX).map_err(|fault| Failure::from_fault(&fault))
}

/// Lists the locks in use, by name.
#[utoipa::path(get, path = "/v1/locks", tag = "coordination", operation_id = "locks",
    params(Page),
    responses(
        (status = 200, description = "A page.", body = LockList, example = json!({"locks": [{"lock": "reports", "slots": 1, "holder_count": 1, "waiter_count": 0}], "revision": "50", "index": 71})),
        Common,
    ))]
pub async fn list(context: Context) -> Outcome {
    let (limit, after) = coordinate::page_of(&context, |text| Name::new(text).ok())?;
    context.costs_page(limit)?;
    context.admit_read(&requirement::on_prefix(Permission::Read, b"")).await?;
    let page = move |backend: SharedNode| backend.locks(LockSpace::Lock, after.as_ref(), limit);
    let Observed { at, found, .. } = scan(&context, page).await?;
    let last = found.items.last().map(|(name, _)| name.to_string());
    let summary = |(name, head): &(Name, quorate_machine::keyspace::lock_queue::LockHead)| LockSummary {
        lock: name.to_string(),
        slots: head.slots,
        holder_count: head.holders.into(),
        waiter_count: head.waiters.into(),
    };
    let locks = found.items.iter().map(summary).collect();
    let answer = LockList { locks, cursor: last.filter(|_| found.more), revision: at.revision, index: at.index };
    command::answer(&answer, at.revision, None)
}

/// Tells whether a token holds a lock, for those who protect something outside of Quorate. It may be over by the time that the
/// answer is read: for a write here `guard` is what is safe.
#[utoipa::path(get, path = "/v1/locks/{name}/check", tag = "coordination", operation_id = "check_lock",
    params(
        NamePath,
        ("token" = u64, Query, description = "The fencing token.", example = 43),
    ),
    responses(
        (status = 200, description = "It holds it.", body = CheckAnswer, example = json!({"lock": "reports", "held": true, "token": "43", "session": "42", "mode": "exclusive", "revision": "50", "index": 71})),
        (status = 412, description = "`guard_failed`: it does not, or not any more.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn check(context: Context) -> Outcome {
    let mut query = Query::parse(context.head.uri.query());
    let token = query.number("token");
    if token.is_none() && !query.faults.has("query:token") {
        query.faults.add("query:token", "missing; the fencing token");
    }
    query.finish()?;
    let name = coordinate::name_of(context.name())?;
    let token = token.ok_or_else(|| Failure::invalid("query:token", "missing"))?;
    context.admit_read(&requirement::on_name(Permission::Read, name.as_str().as_bytes())).await?;
    let held = context.api.node.holder(&lock_of(&name), token).map_err(|fault| Failure::from_fault(&fault))?;
    let (revision, index) = (held.at.revision, held.at.index);
    let Some(row) = held.found else {
        let detail = format!("token {token} does not hold the lock {}, or not any more", quoted(name.as_str()));
        return Err(Failure::new(ErrorCode::GuardFailed, Applied::No, detail).evaluated_at(revision, index));
    };
    let (session, mode) = (row.session.to_string(), mode_shown(row.mode));
    let answer = CheckAnswer { lock: name.to_string(), held: true, token, session, mode, revision, index };
    command::answer(&answer, revision, None)
}

fn lock_of(name: &Name) -> LockName {
    LockName { space: LockSpace::Lock, name: name.clone() }
}

fn mode_of(mode: LockMode) -> types::LockMode {
    match mode {
        LockMode::Exclusive => types::LockMode::Exclusive,
        LockMode::Shared => types::LockMode::Shared,
    }
}

fn mode_shown(mode: types::LockMode) -> LockMode {
    match mode {
        types::LockMode::Exclusive => LockMode::Exclusive,
        types::LockMode::Shared => LockMode::Shared,
    }
}

fn holder_shown(holder: &PartyShown<HolderRow>, wall: u64) -> LockHolder {
    let PartyShown { number, row, owner } = holder;
    LockHolder {
        session: row.session.to_string(),
        owner: owner.clone(),
        token: *number,
        mode: mode_shown(row.mode),
        age_ms: wall.saturating_sub(row.since),
    }
}

/// Who waits, as answers show it.
pub fn waiter_shown(waiter: &PartyShown<WaiterRow>, at: ReadPosition, wall: u64) -> LockWaiter {
    let PartyShown { number, row, owner } = waiter;
    LockWaiter {
        session: row.party.session.to_string(),
        owner: owner.clone(),
        place: *number,
        mode: mode_shown(row.party.mode),
        age_ms: wall.saturating_sub(row.party.since),
        wait_left_ms: row.until.saturating_sub(at.clock),
    }
}
