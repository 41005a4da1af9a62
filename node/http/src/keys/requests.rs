//! `GET /v1/requests/{id}`: what became of a request id.

use std::borrow::Cow;

use quorate_api::{Applied, Cas, ErrorCode, Problem, RequestAnswer, RequestState};
use quorate_machine::keyspace::request::KeptReply;
use quorate_machine::query::ReadPosition;
use quorate_machine::types::{Outcome as Decided, Reply, RequestId};
use quorate_node_core::backend::Consistency;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::Requirement;
use quorate_node_core::gateway::caller::Caller;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::rejection::rejection_code;
use quorate_node_core::gateway::{entry_lock, queue, text};
use utoipa_axum::routes;

use crate::context::Context;
use crate::described::Common;
use crate::headers;
use crate::input::extract::Query;
use crate::output::response::{Outcome, ok_json};
use crate::routes::{Policy, Routes};

/// Names of users that are shown where an id is of several.
const OWNERS_SHOWN_MAX: usize = 3;

pub fn routes() -> Routes {
    Routes::new().add(Policy::data(RequestClass::Point), routes!(get))
}

/// Tells the outcome of a request id.
///
/// An id that is not known was never applied, or its outcome is no longer kept (it is for 15 minutes at least), or the request
/// is still on its way: only a retry under the same id makes sure, within 15 minutes of the first try. A bulk of several parts
/// is known by its first part, whatever became of its items: send it again with the same id to learn of all. Each user has ids
/// of their own.
#[utoipa::path(get, path = "/v1/requests/{id}", tag = "entries", operation_id = "request",
    params(
        ("id" = String, Path, description = "The request id, percent-encoded.", example = "order-42-pay"),
        ("principal" = Option<String>, Query, description = "Whose request it was, for who may administer everything; their own without it, else the only user's that used the id."),
    ),
    responses(
        (status = 200, description = "It was decided.", body = RequestAnswer, example = json!({"request_id": "order-42-pay", "state": "applied", "decided_revision": "21", "decided_index": 33, "cas": "21", "revision": "40", "index": 60})),
        (status = 404, description = "`not_found`: not known. It may have been applied all the same, or be applied yet.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let id = text::percent_decode(context.name()).map_err(|why| Failure::invalid("path:id", why))?;
    if let Some(why) = headers::request_id_fault(&id) {
        return Err(Failure::invalid("path:id", why));
    }
    let mut query = Query::parse(context.head.uri.query());
    let principal = query.text("principal").map(Cow::into_owned);
    query.finish()?;
    let caller = context.caller();
    caller.admit_read(Consistency::Linearizable, context.deadline, &|visit| visit(Requirement::Something)).await?;
    let id = RequestId(id.into_owned());
    let Found { at, owner, kept } = find(&caller, principal, &id)?;
    let Some(KeptReply { reply, .. }) = kept else { return Err(unknown(at)) };
    // Its answer was that it was not got in time, although what it asked for first had an effect.
    let gave_up = queue::gave_up_since(&caller.api.node, &owner, &id, &reply)?;
    let fate = match gave_up {
        Some(last) => Some(shown(id.0, (RequestState::Rejected, Some(ErrorCode::Locked), None), &last, at)),
        None => answer(id.0, &reply, at),
    };
    match fate {
        Some(answer) => ok_json(&answer),
        None => Err(unknown(at)),
    }
}

/// What is kept under an id.
struct Found {
    at: ReadPosition,
    /// For whom.
    owner: String,
    kept: Option<KeptReply>,
}

/// What is kept under the id for the principal that is asked for: without one for the caller, or else for the only one who used it.
fn find(caller: &Caller<'_>, principal: Option<String>, id: &RequestId) -> Result<Found, Failure> {
    let backend = &caller.api.node;
    let is_said = principal.is_some();
    let owner = principal.unwrap_or_else(|| caller.who.name().to_owned());
    if is_said {
        caller.check_owner(&owner)?;
    }
    let found = |owner: String| -> Result<Found, Failure> {
        let (at, kept) = entry_lock::kept(backend, &owner, id)?;
        Ok(Found { at, owner, kept })
    };
    let own = found(owner)?;
    if own.kept.is_some() || is_said || !caller.may_do_all()? {
        return Ok(own);
    }
    let owners = backend.request_owners(id, OWNERS_SHOWN_MAX).map_err(|fault| Failure::from_fault(&fault))?;
    match &owners[..] {
        [] => Ok(own),
        [owner] => found(owner.clone()),
        several => {
            let names = several.iter().map(text::quoted).collect::<Vec<_>>().join(", ");
            Err(Failure::invalid(
                "query:principal",
                format!("several users used this id, among them {names}: say whose is meant"),
            ))
        }
    }
}

/// What is known of a decided request.
fn answer(request_id: String, reply: &Reply, at: ReadPosition) -> Option<RequestAnswer> {
    let became = match &reply.outcome {
        Decided::Written(written) => (RequestState::Applied, None, written.meta.map(|meta| Cas::new(meta.cas))),
        Decided::RulesSet(Some(row)) => (RequestState::Applied, None, Some(Cas::new(row.mod_revision))),
        Decided::Bulk(_)
        | Decided::Txn(_)
        | Decided::Where(_)
        | Decided::Claimed(_)
        | Decided::RulesSet(None)
        | Decided::Numbers { .. }
        | Decided::Session(_)
        | Decided::Lock(_)
        | Decided::Barrier(_)
        | Decided::Latch(_)
        | Decided::Task(_)
        | Decided::Access(_)
        | Decided::Members(_)
        | Decided::Quota(_)
        | Decided::Maintained { .. } => (RequestState::Applied, None, None),
        Decided::Rejected(rejection) => (RequestState::Rejected, Some(rejection_code(rejection)), None),
        Decided::TxnRejected(rejected) => (RequestState::Rejected, Some(rejection_code(&rejected.why)), None),
        Decided::Deferred => return None,
    };
    Some(shown(request_id, became, reply, at))
}

/// What a request became: its state, why it was refused, and the token of what it wrote.
type Became = (RequestState, Option<ErrorCode>, Option<Cas>);

fn shown(request_id: String, (state, code, cas): Became, reply: &Reply, at: ReadPosition) -> RequestAnswer {
    RequestAnswer {
        request_id,
        state,
        code,
        decided_revision: reply.revision,
        decided_index: reply.index,
        cas,
        revision: at.revision,
        index: at.index,
    }
}

fn unknown(at: ReadPosition) -> Failure {
    let detail = "this request id is not known: it was never applied, its outcome is no longer kept (it is for 15 minutes at \
                  least), or it is still on its way";
    Failure::new(ErrorCode::NotFound, Applied::No, detail).evaluated_at(at.revision, at.index)
}
