//! Reads and writes of entries: etcd's service `KV`.

use quorate_etcd_api::Error;
use quorate_etcd_api::kv::{
    DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RangeRequest, RangeResponse, TxnRequest,
    TxnResponse,
};
use quorate_store::access::{Permission, RequiredPermission, Requirement, Visit};
use quorate_store::types::{Action, Branched, KeyRange, Outcome, Rejection, Reply, Step, StepReply, TxnReply};
use tonic::Status;

use crate::app::Consistency;
use crate::etcd::header::header;
use crate::etcd::service::{Policy, Unary};
use crate::etcd::status::{known, of_failure, of_fault};
use crate::etcd::{past, range, txn};
use crate::gateway::admission::classes::RequestClass;
use crate::gateway::call::Call;
use crate::gateway::decide::decide;
use crate::gateway::failure::Failure;
use crate::gateway::{freshness, propose, request_ids, text};

/// How often a write is planned anew whose entry changed under it. Whoever loses so often has that many rivals.
const PLANS_MAX: usize = 64;

const BELOW_LEVEL: &str =
    "quorate: transactions over ranges come with feature level 4, and not every member is known to have it yet";

/// Reads a range.
pub struct Range;

impl Unary for Range {
    type Request = RangeRequest;
    type Response = RangeResponse;
    const PATH: &'static str = "/etcdserverpb.KV/Range";
    const POLICY: Policy = Policy::read(RequestClass::Point);

    async fn answer(call: &Call, request: RangeRequest) -> Result<RangeResponse, Status> {
        let step = range::list_step(&request)?;
        let fresh = if request.serializable { Consistency::Local } else { Consistency::Linearizable };
        let wanted = |visit: &mut Visit<'_>| visit(reads(&step.range));
        call.caller().admit_read(fresh, call.deadline, &wanted).await.map_err(of_failure)?;
        past::read(call, step.clone(), past::revision_of(request.revision)).await
    }
}

/// The right to read a range.
pub fn reads(range: &KeyRange) -> Requirement<'_> {
    Requirement::Permission(match range.key() {
        Some(key) => RequiredPermission::Name(Permission::Read, key),
        None => RequiredPermission::Range(Permission::Read, &range.start, range.end.as_deref()),
    })
}

/// Writes an entry.
pub struct Put;

impl Unary for Put {
    type Request = PutRequest;
    type Response = PutResponse;
    const PATH: &'static str = "/etcdserverpb.KV/Put";
    const POLICY: Policy = Policy::write(RequestClass::Point);

    async fn answer(call: &Call, request: PutRequest) -> Result<PutResponse, Status> {
        for _ in 0..PLANS_MAX {
            if request.ignore_value || request.ignore_lease {
                freshness::refresh(&call.api.backend, call.deadline).await.map_err(of_failure)?;
            }
            let mut expects = false;
            let op = txn::put(call, request.clone(), &mut expects)?;
            let (name, shows) = (op.key.clone(), op.return_previous);
            let reply = decide(call, Action::Write(op), false).await.map_err(of_failure)?;
            match &reply.outcome {
                Outcome::Written(written) => {
                    let done = txn::put_of(shows.then_some(name), written.clone());
                    return Ok(PutResponse { header: Some(header(&call.api, reply.revision)), ..done });
                }
                Outcome::Rejected(Rejection::CasMismatch { .. }) if expects => {
                    call.set_request_id(request_ids::fresh_id())
                }
                Outcome::Rejected(why) => {
                    return Err(of_failure(Failure::from_rejection(&text::shown(&name), &reply, why)));
                }
                _ => return Err(of_failure(propose::confused(&reply))),
            }
        }
        Err(known(Error::RequestTooManyRequests))
    }
}

/// Removes a range.
pub struct DeleteRange;

impl Unary for DeleteRange {
    type Request = DeleteRangeRequest;
    type Response = DeleteRangeResponse;
    const PATH: &'static str = "/etcdserverpb.KV/DeleteRange";
    const POLICY: Policy = Policy::write(RequestClass::Point);

    async fn answer(call: &Call, request: DeleteRangeRequest) -> Result<DeleteRangeResponse, Status> {
        let steps = vec![Step::Remove(txn::removal(&request)?)];
        let action = Action::Txn(quorate_store::types::Txn { checks: Vec::new(), then: steps, otherwise: Vec::new() });
        let reply = decide(call, action, false).await.map_err(of_failure)?;
        match only_result(&reply)? {
            StepReply::Removed(removed) => {
                let done = txn::delete_of(removed);
                Ok(DeleteRangeResponse { header: Some(header(&call.api, reply.revision)), ..done })
            }
            _ => Err(of_failure(propose::confused(&reply))),
        }
    }
}

/// Carries out a transaction.
pub struct Txn;

impl Unary for Txn {
    type Request = TxnRequest;
    type Response = TxnResponse;
    const PATH: &'static str = "/etcdserverpb.KV/Txn";
    const POLICY: Policy = Policy::write(RequestClass::Point);

    async fn answer(call: &Call, request: TxnRequest) -> Result<TxnResponse, Status> {
        for _ in 0..PLANS_MAX {
            let planned = txn::plan(call, request.clone()).await?;
            let steps = vec![Step::Branch(planned.branch.clone())];
            let ours = quorate_store::types::Txn { checks: Vec::new(), then: steps, otherwise: Vec::new() };
            if let Some(fault) = ours.fault() {
                return Err(of_fault(&fault));
            }
            // What cannot write has no place in the log.
            let only_reads = !ours.writes();
            let reply = decide(call, Action::Txn(ours), only_reads).await.map_err(of_failure)?;
            if let Outcome::TxnRejected(rejected) = &reply.outcome
                && matches!(rejected.why, Rejection::CasMismatch { .. })
                && planned.expects
            {
                call.set_request_id(request_ids::fresh_id());
                continue;
            }
            let done = match only_result(&reply)? {
                StepReply::Branched(Branched { succeeded, results }) => {
                    txn::answer(planned, succeeded, results, reply.revision)
                }
                _ => None,
            };
            let done = done.ok_or_else(|| of_failure(propose::confused(&reply)))?;
            return Ok(TxnResponse { header: Some(header(&call.api, reply.revision)), ..done });
        }
        Err(known(Error::RequestTooManyRequests))
    }
}

/// What came of the one step of a transaction.
fn only_result(reply: &Reply) -> Result<StepReply, Status> {
    match &reply.outcome {
        Outcome::Txn(TxnReply { results, .. }) if results.len() == 1 => Ok(results[0].clone()),
        Outcome::TxnRejected(rejected) => Err(of_failure(Failure::from_step(reply, rejected))),
        // Only what cannot write comes so far: the rest is refused before it is proposed.
        Outcome::Rejected(Rejection::Unsupported(_)) => Err(Status::unavailable(BELOW_LEVEL)),
        Outcome::Rejected(why) => Err(of_failure(Failure::from_rejection("", reply, why))),
        _ => Err(of_failure(propose::confused(reply))),
    }
}
