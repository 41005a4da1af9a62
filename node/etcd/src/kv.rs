//! Reads and writes of entries: etcd's service `KV`.

use std::sync::Arc;

use futures::{StreamExt, TryFutureExt};
use quorate_etcd_api::Error;
use quorate_etcd_api::kv::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse,
    RangeRequest, RangeResponse, RangeStreamResponse, TxnRequest, TxnResponse,
};
use quorate_machine::types::{
    self, Action, Branched, Maintenance, Outcome, Rejection, Reply, Step, StepReply, TxnReply,
};
use quorate_node_core::backend::Consistency;
use quorate_node_core::gateway::auth::requirement::{Permission, Requirement, Visit};
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::{freshness, propose, request_ids};
use quorate_node_core::limits;
use tokio_util::sync::CancellationToken;

use crate::header::{header, header_now};
use crate::parts::Parts;
use crate::status::{Flow, Status, known};
use crate::txn::{Planned, Shows};
use crate::{past, range, status, txn};

/// How often a write is planned anew whose entry changed under it. Whoever loses so often has that many rivals.
const PLANS_MAX: usize = 64;

/// That of a cluster in which nothing has happened.
const FIRST_REVISION: u64 = 1;

/// Reads a key, or a range, which is a scan.
pub async fn range(call: &Call, request: RangeRequest) -> Result<RangeResponse, Status> {
    let step = range::list_step(&request)?;
    past::enter(call, &step).await?;
    let fresh = if request.serializable { Consistency::Local } else { Consistency::Linearizable };
    let wanted = |visit: &mut Visit<'_>| visit(Requirement::on_range(Permission::Read, &step.range));
    call.caller().admit_read(fresh, call.deadline, &wanted).await?;
    past::read(call, step, past::revision_of(request.revision)).await
}

/// Writes an entry.
pub async fn put(call: &Call, request: PutRequest) -> Result<PutResponse, Status> {
    for _ in 0..PLANS_MAX {
        let (mut op, keeps) = txn::put(request.clone())?;
        let expects = keeps.any();
        if expects {
            freshness::refresh(&call.api.node, call.deadline).await?;
            let read = call.api.node.get(&op.key).map_err(|fault| Failure::from_fault(&fault))?;
            txn::take_over(read.entry, &mut op, keeps);
        }
        let (name, shows) = (op.key.clone(), op.return_previous);
        let mut reply = decide(call, Action::Write(op), false).await?;
        match &mut reply.outcome {
            Outcome::Written(written) => {
                let done = txn::put_of(shows.then_some(name), std::mem::take(&mut written.previous));
                return Ok(PutResponse { header: Some(header(&call.api, reply.revision)), ..done });
            }
            Outcome::Rejected(Rejection::CasMismatch { .. }) if expects => call.set_request_id(request_ids::fresh_id()),
            _ => return Err(status::of_reply(&name, &reply)),
        }
    }
    Err(known(Error::RequestTooManyRequests))
}

/// Removes a range.
pub async fn delete_range(call: &Call, request: DeleteRangeRequest) -> Result<DeleteRangeResponse, Status> {
    let steps = vec![Step::Remove(txn::removal(&request)?)];
    let action = Action::Txn(types::Txn { then: steps, ..Default::default() });
    let mut reply = decide(call, action, false).await?;
    match only_result(&mut reply)? {
        StepReply::Removed(removed) => {
            let done = txn::delete_of(removed);
            Ok(DeleteRangeResponse { header: Some(header(&call.api, reply.revision)), ..done })
        }
        _ => Err(propose::confused(&reply).into()),
    }
}

/// Carries out a transaction.
pub async fn txn(call: &Call, request: TxnRequest) -> Result<TxnResponse, Status> {
    for _ in 0..PLANS_MAX {
        let mut planned = txn::plan(request.clone())?;
        let expects = planned.look(call).await?;
        let Planned { txn: ours, shape, .. } = planned;
        // A transaction that cannot write has no place in the log.
        let only_reads = !ours.writes();
        let mut reply = decide(call, Action::Txn(ours), only_reads).await?;
        if let Outcome::TxnRejected(rejected) = &reply.outcome
            && matches!(rejected.why, Rejection::CasMismatch { .. })
            && expects
        {
            call.set_request_id(request_ids::fresh_id());
            continue;
        }
        let done = match only_result(&mut reply)? {
            result if result.lacks_listed() => return Err(status::not_listed(reply.revision)),
            StepReply::Branched(Branched { succeeded, results }) => {
                let mut shows = Shows::of(&results, reply.revision);
                shape.answer(succeeded, results, &mut shows)
            }
            _ => None,
        };
        let done = done.ok_or_else(|| propose::confused(&reply))?;
        return Ok(TxnResponse { header: Some(header(&call.api, reply.revision)), ..done });
    }
    Err(known(Error::RequestTooManyRequests))
}

/// Reads a range in parts.
pub fn range_stream(
    call: Arc<Call>,
    mut requests: Flow<RangeRequest>,
    stop: CancellationToken,
) -> Flow<RangeStreamResponse> {
    let begun = async move {
        let request = requests.next().await.unwrap_or_else(|| Ok(RangeRequest::default()))?;
        Ok::<_, Status>(futures::stream::try_unfold(Parts::new(request), move |mut parts| {
            let call = Arc::clone(&call);
            async move {
                let part = parts.next(&call).await?;
                Ok::<_, Status>(part.map(|part| (RangeStreamResponse { range_response: Some(part) }, parts)))
            }
        }))
    };
    begun.try_flatten_stream().take_until(stop.cancelled_owned()).boxed()
}

/// Drops all that is older than a revision, and answers once it is gone.
pub async fn compact(call: &Call, request: CompactionRequest) -> Result<CompactionResponse, Status> {
    let backend = &call.api.node;
    freshness::refresh(backend, call.deadline).await?;
    let at = backend.position();
    let revision = u64::try_from(request.revision).unwrap_or(0);
    if revision > at.revision {
        return Err(known(Error::FutureRev));
    }
    if (revision, at.oldest_revision) == (FIRST_REVISION, FIRST_REVISION) {
        // Nothing was compacted yet, and nothing is older.
        return Ok(CompactionResponse { header: Some(header_now(&call.api)) });
    }
    if revision <= at.oldest_revision {
        return Err(known(Error::Compacted));
    }
    // In steps, as the leader's own, so that other writes go in between. Each is judged anew where it is applied.
    let step = Maintenance::Compact { revision, groups_max: limits::COMPACT_GROUPS };
    loop {
        let reply = propose::propose_step(&call.caller(), Action::Maintain(step), call.deadline).await?;
        match reply.outcome {
            Outcome::Maintained { more: true, .. } => {}
            Outcome::Maintained { more: false, .. } => {
                return Ok(CompactionResponse { header: Some(header(&call.api, reply.revision)) });
            }
            _ => return Err(propose::confused(&reply).into()),
        }
    }
}

/// What came of the one step of a transaction.
fn only_result(reply: &mut Reply) -> Result<StepReply, Status> {
    match &mut reply.outcome {
        Outcome::Txn(TxnReply { results, .. }) if results.len() == 1 => Ok(results.swap_remove(0)),
        _ => Err(status::of_reply("", reply)),
    }
}
