//! `/v1/elections`: locks whose holder leads and says something of itself. Who observes one is `observe`'s.
//!
//! Owns the reading of their bodies and their answers. Who leads is decided where commands are applied; how a request waits is
//! `queue`'s.

use quorate_api::{
    CampaignAnswer, CampaignRequest, CampaignState, ElectionAnswer, ElectionList, ElectionSummary, JsonText,
    LeaderView, Problem, ProclaimAnswer, ProclaimRequest, ResignAnswer, ResignRequest,
};
use quorate_machine::keyspace::lock_queue::{HolderRow, LockHead};
use quorate_machine::limits::{LOCK_DELAY_MS_MAX, LOCK_WAIT_MS_MAX, PROCLAIMED_BYTES_MAX};
use quorate_machine::query::{LockRead, Observed, PartyShown};
use quorate_machine::types::{
    Acquire, Action, ContentKind, LockName, LockOp, LockReply, LockSpace, Name, Outcome as Decided, Reply, Value,
};
use quorate_node_core::backend::SharedNode;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::queue::{self, Acquired, QueueRequest, QueueState};
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::gateway::{entry_view, propose};
use utoipa_axum::routes;

use crate::command;
use crate::context::Context;
use crate::coordinate;
use crate::coordination::locks::{self, give_up, party};
use crate::described::{Changing, Common, NamePath, Page};
use crate::input::extract::Faults;
use crate::input::json_body::Json;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const COORDINATION: Policy = Policy::data(RequestClass::Coordination);
    Routes::new()
        .all(COORDINATION, [routes!(campaign), routes!(proclaim), routes!(resign), routes!(get)])
        .add(Policy::data(RequestClass::Scan), routes!(list))
}

/// Stands in an election for a session, first come first served.
///
/// As with `POST /v1/locks/{name}/acquire`: 200 says that the session leads, 202 that it stands and may ask again. The term is
/// greater than that of every leader before, and is what a write takes as `guard`. A session that leads and campaigns again is
/// told that it leads, whatever value it names; the value stays the one proclaimed last. One that stands and names another
/// value than before is refused.
#[utoipa::path(post, path = "/v1/elections/{name}/campaign", tag = "coordination", operation_id = "campaign",
    params(
        NamePath,
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds, the wait aside."),
    ),
    request_body(content = CampaignRequest, content_type = "application/json", example = json!({"session": "42", "value": {"addr": "10.0.0.7:80"}, "wait_ms": 30000})),
    responses(
        (status = 200, description = "The session leads.", body = CampaignAnswer, example = json!({"election": "primary", "state": "leader", "term": "43", "session": "42", "revision": "43", "index": 61})),
        (status = 202, description = "The session stands.", body = CampaignAnswer, example = json!({"election": "primary", "state": "candidate", "place": "44", "ahead": 0, "session": "42", "revision": "44", "index": 62})),
        (status = 409, description = "`session_expired`; `already_queued`: the session stands with another value; `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        (status = 423, description = "`locked`: another led all the time, or 1000 stand already; `holders`, `waiters`, and `retry_after_ms` where the session of the last leader has expired.", body = Problem, content_type = "application/problem+json"),
        Changing, Common,
    ))]
pub async fn campaign(context: Context, Json(request): Json<CampaignRequest>) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    let parsed = asked(&request, &name);
    let parsed = context.with_request_id(request.request_id, parsed)?;
    let session = parsed.acquire.session.to_string();
    let Acquired { state, revision, index, replayed } = queue::acquire(&context, parsed).await?;
    let (state, term, place, ahead) = match state {
        QueueState::Holds { token } => (CampaignState::Leader, Some(token), None, None),
        QueueState::Waits { place, ahead } => (CampaignState::Candidate, None, Some(place), ahead),
    };
    let election = name.to_string();
    let answer = CampaignAnswer { election, state, term, place, ahead, session, revision, index, replayed };
    coordinate::answer(&answer, revision, state == CampaignState::Leader)
}

fn asked(request: &CampaignRequest, name: &Name) -> Result<QueueRequest, Failure> {
    let mut faults = Faults::default();
    let session = coordinate::session(&request.session, "/session", &mut faults);
    let value = request.value.as_ref().and_then(|value| value_of(value, &mut faults));
    let wait_ms = faults.within("/wait_ms", request.wait_ms, 0..=LOCK_WAIT_MS_MAX).unwrap_or(0);
    let poll = coordinate::poll(request.poll_ms, &mut faults);
    let delay_ms = faults.within("/delay_ms", request.delay_ms, 0..=LOCK_DELAY_MS_MAX).unwrap_or(0);
    let session = faults.complete(session)?;
    let acquire = Acquire { wait_ms, delay_ms, value, ..Acquire::of(election_of(name), session) };
    Ok(QueueRequest { acquire, poll })
}

/// What a leader says of itself.
fn value_of(value: &JsonText, faults: &mut Faults) -> Option<Value> {
    let data = value.0.get().as_bytes();
    if data.len() > PROCLAIMED_BYTES_MAX {
        faults.add_too_large("/value", "what a leader says of itself", PROCLAIMED_BYTES_MAX, data.len());
        return None;
    }
    Some(Value { kind: ContentKind::Json, data: data.to_vec() })
}

/// Exchanges what the leader says of itself. Who observes the election sees it.
#[utoipa::path(post, path = "/v1/elections/{name}/proclaim", tag = "coordination", operation_id = "proclaim",
    params(NamePath),
    request_body(content = ProclaimRequest, content_type = "application/json", example = json!({"term": "43", "value": {"addr": "10.0.0.8:80"}})),
    responses(
        (status = 200, description = "It is said.", body = ProclaimAnswer, example = json!({"election": "primary", "term": "43", "revision": "50", "index": 71})),
        (status = 409, description = "`not_lock_holder`: the term is not that of the leader, or not any more. `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        Changing, Common,
    ))]
pub async fn proclaim(context: Context, Json(request): Json<ProclaimRequest>) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    let mut faults = Faults::default();
    let value = value_of(&request.value, &mut faults);
    let (value, term) = (faults.complete(value), request.term);
    let value = context.with_request_id(request.request_id, value)?;
    let op = LockOp::Proclaim { lock: election_of(&name), token: term, value };
    let reply = decide(&context, Action::Lock(op), false).await?;
    let Reply { revision, index, replayed, .. } = reply;
    match &reply.outcome {
        Decided::Lock(LockReply::Proclaimed) => {
            let answer = ProclaimAnswer { election: name.to_string(), term, revision, index, replayed };
            command::answer(&answer, revision, None)
        }
        Decided::Rejected(why) => Err(Failure::from_rejection(name.as_str(), &reply, why)),
        _ => Err(propose::confused(&reply)),
    }
}

/// Resigns: the leader of a term, or whatever a session is there, be it only a candidate. Works on a full disk.
#[utoipa::path(post, path = "/v1/elections/{name}/resign", tag = "coordination", operation_id = "resign",
    params(NamePath),
    request_body(content = ResignRequest, content_type = "application/json", example = json!({"term": "43"})),
    responses(
        (status = 200, description = "It is given up.", body = ResignAnswer, example = json!({"election": "primary", "resigned": true, "revision": "50", "index": 71})),
        (status = 409, description = "`not_lock_holder`: the term is not that of the leader, or not any more. `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn resign(context: Context, Json(request): Json<ResignRequest>) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    let party = party(request.term, request.session.as_deref(), "term");
    let party = context.with_request_id(request.request_id, party)?;
    let (reply, resigned) = give_up(&context, election_of(&name), party).await?;
    let Reply { revision, index, replayed, .. } = reply;
    let answer = ResignAnswer { election: name.to_string(), resigned, revision, index, replayed };
    command::answer(&answer, revision, None)
}

/// Shows an election: who leads, and who stands. One that nobody stands in has no leader.
#[utoipa::path(get, path = "/v1/elections/{name}", tag = "coordination", operation_id = "election",
    params(NamePath),
    responses(
        (status = 200, description = "The election.", body = ElectionAnswer, example = json!({"election": "primary", "leader": {"session": "42", "owner": "worker-7", "term": "43", "value": {"addr": "10.0.0.7:80"}, "since": "2026-11-21T01:06:00.123Z", "age_ms": 900}, "candidates": [], "candidate_count": 0, "delay_left_ms": 0, "revision": "50", "index": 71})),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let name = coordinate::name_of(context.name())?;
    let Observed { at, wall, found } = locks::read_lock(&context, &election_of(&name)).await?;
    let LockRead { head, holders, waiters } = found;
    let answer = ElectionAnswer {
        election: name.to_string(),
        leader: holders.first().map(|leader| leader_shown(leader, wall)),
        candidates: waiters.iter().map(|waiter| locks::waiter_shown(waiter, at, wall)).collect(),
        candidate_count: head.as_ref().map_or(0, |head| head.waiters.into()),
        delay_left_ms: head.and_then(|head| head.not_before).map_or(0, |until| until.saturating_sub(at.clock)),
        revision: at.revision,
        index: at.index,
    };
    command::answer(&answer, at.revision, None)
}

/// Lists the elections in use, by name.
#[utoipa::path(get, path = "/v1/elections", tag = "coordination", operation_id = "elections",
    params(Page),
    responses(
        (status = 200, description = "A page.", body = ElectionList, example = json!({"elections": [{"election": "primary", "has_leader": true, "candidate_count": 0}], "revision": "50", "index": 71})),
        Common,
    ))]
pub async fn list(context: Context) -> Outcome {
    let (limit, after) = coordinate::page_of(&context, |text| Name::new(text).ok())?;
    context.costs_page(limit)?;
    context.admit_read(&requirement::on_prefix(Permission::Read, b"")).await?;
    let page = move |backend: SharedNode| backend.locks(LockSpace::Election, after.as_ref(), limit);
    let Observed { at, found, .. } = scan(&context, page).await?;
    let last = found.items.last().map(|(name, _)| name.to_string());
    let summary = |(name, head): &(Name, LockHead)| ElectionSummary {
        election: name.to_string(),
        has_leader: head.holders > 0,
        candidate_count: head.waiters.into(),
    };
    let elections = found.items.iter().map(summary).collect();
    let cursor = last.filter(|_| found.more);
    let answer = ElectionList { elections, cursor, revision: at.revision, index: at.index };
    command::answer(&answer, at.revision, None)
}

fn election_of(name: &Name) -> LockName {
    LockName { space: LockSpace::Election, name: name.clone() }
}

fn leader_shown(leader: &PartyShown<HolderRow>, wall: u64) -> LeaderView {
    let PartyShown { number, row, owner } = leader;
    LeaderView {
        session: row.session.to_string(),
        owner: owner.clone(),
        term: *number,
        value: said(row.value.as_ref()),
        since: coordinate::moment(row.since),
        age_ms: wall.saturating_sub(row.since),
    }
}

/// What a leader says of itself, as answers show it.
pub fn said(value: Option<&Value>) -> Option<JsonText> {
    value.and_then(|value| entry_view::json_text(&value.data))
}
