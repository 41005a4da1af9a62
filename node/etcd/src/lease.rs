//! Leases: etcd's service `Lease`, over sessions.
//!
//! A lease is a session; [`SessionId::lease`] says which. Times are whole seconds here.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use quorate_etcd_api::Error;
use quorate_etcd_api::lease::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseLeasesRequest,
    LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse, LeaseStatus, LeaseTimeToLiveRequest,
    LeaseTimeToLiveResponse,
};
use quorate_machine::limits::{SESSION_ATTACHED_MAX, SESSION_TTL_MS_MAX};
use quorate_machine::types::{Action, Outcome, Rejection, SessionId, SessionOp, SessionReply};
use quorate_node_core::gateway::auth::requirement::{Requirement, Visit};
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::freshness;
use quorate_node_core::gateway::renew::renew;
use tokio_util::sync::CancellationToken;

use crate::header::header;
use crate::paged;
use crate::status::{self, Flow, Status, known};

/// Longest time to live that etcd takes.
const TTL_MAX: i64 = 9_000_000_000;
const NOT_CHOSEN: &str =
    "quorate: an id of one's own is above 0, and none of those that the cluster gives, from 2^62 to 2^62 + 2^48";

/// Begins a lease.
pub async fn grant(call: &Call, request: LeaseGrantRequest) -> Result<LeaseGrantResponse, Status> {
    if request.ttl > TTL_MAX {
        return Err(known(Error::LeaseTTLTooLarge));
    }
    let ttl = request.ttl.clamp(1, (SESSION_TTL_MS_MAX / 1_000) as i64);
    let (owner, labels) = ("etcd lease".to_owned(), Vec::new());
    let ttl_ms = ttl as u64 * 1_000;
    let op = match request.id {
        0 => SessionOp::Create { ttl_ms, owner, labels },
        id => match SessionId::chosen(id) {
            Some(id) => SessionOp::CreateAs { id, ttl_ms, owner, labels },
            None => return Err(not_chosen(call, id).await?),
        },
    };
    let reply = decide(call, Action::Session(op), false).await?;
    match &reply.outcome {
        Outcome::Session(SessionReply::Created { id, .. }) => Ok(LeaseGrantResponse {
            header: Some(header(&call.api, reply.revision)),
            id: id.lease(),
            ttl,
            error: String::new(),
        }),
        Outcome::Rejected(Rejection::SessionExists(_)) => Err(known(Error::LeaseExist)),
        _ => Err(status::of_reply("", &reply)),
    }
}

/// Why a lease cannot be called so: there may be one already, that the cluster called so.
async fn not_chosen(call: &Call, id: i64) -> Result<Status, Status> {
    freshness::refresh(&call.api.node, call.deadline).await?;
    if let Some(given) = SessionId::of_lease(id) {
        let seen = call.api.node.session(given, 0).map_err(|fault| Failure::from_fault(&fault))?;
        if seen.found.is_some() {
            return Ok(known(Error::LeaseExist));
        }
    }
    Ok(Status::invalid_argument(NOT_CHOSEN))
}

/// Ends a lease.
pub async fn revoke(call: &Call, request: LeaseRevokeRequest) -> Result<LeaseRevokeResponse, Status> {
    let id = SessionId::of_lease(request.id).ok_or_else(|| known(Error::LeaseNotFound))?;
    let reply = decide(call, Action::Session(SessionOp::End(id)), false).await?;
    match &reply.outcome {
        Outcome::Session(SessionReply::Ended(_)) => {
            Ok(LeaseRevokeResponse { header: Some(header(&call.api, reply.revision)) })
        }
        _ => Err(status::of_reply("", &reply)),
    }
}

/// Lets leases live on: an answer for each question.
pub fn keep_alives(
    call: Arc<Call>,
    requests: Flow<LeaseKeepAliveRequest>,
    stop: CancellationToken,
) -> Flow<LeaseKeepAliveResponse> {
    requests
        .then(move |request| {
            let call = Arc::clone(&call);
            async move { keep_alive(&call, request?.id).await }
        })
        .take_until(stop.cancelled_owned())
        .boxed()
}

/// Lets a lease live on; its time is 0 where it is over.
pub async fn keep_alive(call: &Call, id: i64) -> Result<LeaseKeepAliveResponse, Status> {
    // Read before the renewal: no header may show a revision at which the lease could have been over.
    // Nor one from before a write that this node has confirmed.
    let revision = call.api.revision();
    let gone = |at| LeaseKeepAliveResponse { header: Some(header(&call.api, revision.max(at))), id, ttl: 0 };
    let Some(session) = SessionId::of_lease(id) else { return Ok(gone(revision)) };
    let deadline = std::time::Instant::now() + call.timeout;
    let done = renew(call, &[session], deadline).await?;
    Ok(match done.each.first() {
        Some(Some((ttl_ms, _))) => {
            LeaseKeepAliveResponse { header: Some(header(&call.api, revision)), id, ttl: (ttl_ms / 1_000) as i64 }
        }
        _ => gone(done.revision),
    })
}

/// Tells how long a lease lives, and what hangs on it.
pub async fn time_to_live(call: &Call, request: LeaseTimeToLiveRequest) -> Result<LeaseTimeToLiveResponse, Status> {
    call.admit_read(&|visit: &mut Visit<'_>| visit(Requirement::Something)).await?;
    let over = |revision| LeaseTimeToLiveResponse {
        header: Some(header(&call.api, revision)),
        id: request.id,
        ttl: -1,
        ..LeaseTimeToLiveResponse::default()
    };
    let Some(id) = SessionId::of_lease(request.id) else { return Ok(over(call.api.node.position().revision)) };
    let seen = call.api.node.session(id, SESSION_ATTACHED_MAX as usize);
    let seen = seen.map_err(|fault| Failure::from_fault(&fault))?;
    let Some(held) = seen.found else { return Ok(over(seen.at.revision)) };
    call.caller().check(&|visit: &mut Visit<'_>| visit(Requirement::Session(id)))?;
    let left_ms = held.row.expires_at.saturating_sub(seen.at.clock);
    let keys = held.keys.iter().filter(|_| request.keys).map(|key| Bytes::copy_from_slice(key.as_bytes()));
    Ok(LeaseTimeToLiveResponse {
        header: Some(header(&call.api, seen.at.revision)),
        id: request.id,
        ttl: left_ms.div_ceil(1_000) as i64,
        granted_ttl: (held.row.ttl_ms / 1_000) as i64,
        keys: keys.collect(),
    })
}

/// Lists all leases.
pub async fn leases(call: &Call, _: LeaseLeasesRequest) -> Result<LeaseLeasesResponse, Status> {
    let (ids, revision) = paged::names(call, |node, after, limit| node.sessions(after.copied(), limit)).await?;
    let leases = ids.iter().map(|id| LeaseStatus { id: id.lease() }).collect();
    Ok(LeaseLeasesResponse { header: Some(header(&call.api, revision)), leases })
}
