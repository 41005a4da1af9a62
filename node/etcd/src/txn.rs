//! Transactions: from etcd's messages to ours, and their results back.
//!
//! Owns which step stands for which operation. A put that keeps the value or the lease of what is there, and a read at a revision of
//! the past, are not steps: the first becomes a write that expects the entry it read, the second is read beside the transaction, since
//! the past does not change.

use quorate_etcd_api::Error;
use quorate_etcd_api::entry::KeyValue;
use quorate_etcd_api::header::ResponseHeader;
use quorate_etcd_api::kv::{
    Compare, CompareCompareResult, CompareCompareTarget, CompareTargetUnion, DeleteRangeRequest, DeleteRangeResponse,
    PutRequest, PutResponse, RangeRequest, RangeResponse, RequestOp, RequestOpRequest, ResponseOp, ResponseOpResponse,
    TxnRequest, TxnResponse,
};
use quorate_store::document::Criteria;
use quorate_store::limits::TXN_STEPS_MAX;
use quorate_store::types::{
    Branch, Change, Compared, Comparison, ComparisonOperator, Expect, Expiry, Key, ListShown, ListStep, Listed,
    RemoveStep, Removed, Revision, SessionId, Shown, Step, StepReply, WriteOp,
};

use crate::gateway::call::Call;
use crate::gateway::failure::Failure;
use crate::gateway::freshness;
use crate::header::inner;
use crate::past;
use crate::range::{key, key_range, key_value, list_step, value};
use crate::status::{Status, known};

/// The token of no entry.
const NO_TOKEN: Revision = 0;

/// A transaction of ours, and what is known of its answer before it is carried out.
pub struct Planned {
    /// The steps.
    pub branch: Branch,
    /// Whether one of its writes expects an entry that was read for it: where that has changed since, it is planned anew.
    pub expects: bool,
    /// What its results are to be shown as.
    pub shape: Shape,
}

/// What the results of a branch are to be shown as.
pub struct Shape {
    then: Vec<Part>,
    otherwise: Vec<Part>,
}

enum Part {
    Range,
    /// It was read already.
    Past(RangeResponse),
    /// With its key, where the entry as it was is shown.
    Put(Option<Key>),
    Delete,
    Txn(Shape),
}

/// How much a transaction asks for, before any of it is looked at.
#[derive(Default)]
struct Measure {
    /// Comparisons and operations, nested ones too.
    operations: usize,
    /// Whether planning it reads what is there: an entry that a put keeps a part of, or the past.
    looks_back: bool,
}

impl Measure {
    fn add(&mut self, request: &TxnRequest) {
        self.operations += request.compare.len() + request.success.len() + request.failure.len();
        for operation in request.success.iter().chain(&request.failure) {
            match &operation.request {
                Some(RequestOpRequest::RequestTxn(nested)) => self.add(nested),
                Some(RequestOpRequest::RequestPut(put)) => self.looks_back |= put.ignore_value || put.ignore_lease,
                Some(RequestOpRequest::RequestRange(range)) => self.looks_back |= range.revision > 0,
                Some(RequestOpRequest::RequestDeleteRange(_)) | None => {}
            }
        }
    }
}

/// Plans a transaction.
pub async fn plan(call: &Call, request: TxnRequest) -> Result<Planned, Status> {
    let mut measure = Measure::default();
    measure.add(&request);
    if measure.operations > TXN_STEPS_MAX {
        return Err(known(Error::TooManyOps));
    }
    if measure.looks_back {
        freshness::refresh(&call.api.backend, call.deadline).await?;
    }
    let mut expects = false;
    let (branch, shape) = plan_branch(call, request, &mut expects).await?;
    Ok(Planned { branch, expects, shape })
}

async fn plan_branch(call: &Call, request: TxnRequest, expects: &mut bool) -> Result<(Branch, Shape), Status> {
    let comparisons = request.compare.into_iter().map(comparison).collect::<Result<_, _>>()?;
    let (then, of_then) = plan_steps(call, request.success, expects).await?;
    let (otherwise, of_otherwise) = plan_steps(call, request.failure, expects).await?;
    Ok((Branch { comparisons, then, otherwise }, Shape { then: of_then, otherwise: of_otherwise }))
}

async fn plan_steps(
    call: &Call,
    operations: Vec<RequestOp>,
    expects: &mut bool,
) -> Result<(Vec<Step>, Vec<Part>), Status> {
    let (mut steps, mut parts) = (Vec::with_capacity(operations.len()), Vec::with_capacity(operations.len()));
    for operation in operations {
        let (step, part) = match operation.request {
            None => return Err(known(Error::KeyNotFound)),
            Some(RequestOpRequest::RequestRange(request)) => range(call, &request).await?,
            Some(RequestOpRequest::RequestPut(request)) => {
                let op = put(call, request, expects)?;
                let part = Part::Put(op.return_previous.then(|| op.key.clone()));
                (Step::Write(op), part)
            }
            Some(RequestOpRequest::RequestDeleteRange(request)) => (Step::Remove(removal(&request)?), Part::Delete),
            Some(RequestOpRequest::RequestTxn(request)) => {
                let (branch, shape) = Box::pin(plan_branch(call, request, expects)).await?;
                (Step::Branch(branch), Part::Txn(shape))
            }
        };
        steps.push(step);
        parts.push(part);
    }
    Ok((steps, parts))
}

async fn range(call: &Call, request: &RangeRequest) -> Result<(Step, Part), Status> {
    let step = list_step(request)?;
    let Some(revision) = past::revision_of(request.revision) else { return Ok((Step::List(step), Part::Range)) };
    // The rights on it are checked with those of the transaction, which names the range all the same.
    let names = ListStep { shown: ListShown::Count, limit: 1, ..step.clone() };
    let mut read = past::read(call, step, Some(revision)).await?;
    read.header = None;
    Ok((Step::List(names), Part::Past(read)))
}

/// A put as a write. Where it keeps a part of what is there, this node has to be as fresh as the cluster.
pub fn put(call: &Call, request: PutRequest, expects: &mut bool) -> Result<WriteOp, Status> {
    let PutRequest { key: name, value: data, lease, prev_kv, ignore_value, ignore_lease } = request;
    let name = key(&name)?;
    if ignore_value && !data.is_empty() {
        return Err(known(Error::ValueProvided));
    }
    if ignore_lease && lease != 0 {
        return Err(known(Error::LeaseProvided));
    }
    let session = match lease {
        0 => None,
        lease => Some(SessionId::of_lease(lease).ok_or_else(|| known(Error::LeaseNotFound))?),
    };
    let mut op = WriteOp {
        key: name,
        expect: Expect::Any,
        condition: Criteria::default(),
        change: Change::Upsert(value(&data)),
        expiry: Expiry::Usual,
        return_previous: prev_kv,
        session,
        guard: None,
    };
    if ignore_value || ignore_lease {
        *expects = true;
        let read = call.api.backend.get(&op.key).map_err(|fault| Failure::from_fault(&fault))?;
        let Some(entry) = read.entry else {
            // Refused where it is carried out, which a branch that is not taken is not; and planned anew where there is one by then.
            return Ok(WriteOp { change: Change::Replace(value(&data)), expect: Expect::Cas(NO_TOKEN), ..op });
        };
        op.expect = Expect::Cas(entry.meta.cas);
        if ignore_value {
            op.change = Change::Upsert(entry.value);
        }
        if ignore_lease {
            op.session = entry.meta.session;
        }
    }
    Ok(op)
}

/// A deletion as a step.
pub fn removal(request: &DeleteRangeRequest) -> Result<RemoveStep, Status> {
    let range = key_range(&request.key, &request.range_end)?;
    Ok(RemoveStep { range, return_previous: request.prev_kv })
}

fn comparison(compare: Compare) -> Result<Comparison, Status> {
    let range = key_range(&compare.key, &compare.range_end)?;
    let operator = match CompareCompareResult::try_from(compare.result) {
        Ok(CompareCompareResult::Equal) => ComparisonOperator::Equal,
        Ok(CompareCompareResult::Greater) => ComparisonOperator::Greater,
        Ok(CompareCompareResult::Less) => ComparisonOperator::Less,
        Ok(CompareCompareResult::NotEqual) => ComparisonOperator::NotEqual,
        Err(_) => return Err(Status::invalid_argument("quorate: an unknown way to compare")),
    };
    let target = CompareCompareTarget::try_from(compare.target);
    let target = target.map_err(|_| Status::invalid_argument("quorate: an unknown target to compare"))?;
    let with = match (target, compare.target_union) {
        (CompareCompareTarget::Version, Some(CompareTargetUnion::Version(number))) => Compared::Version(number),
        (CompareCompareTarget::Create, Some(CompareTargetUnion::CreateRevision(number))) => {
            Compared::CreateRevision(number)
        }
        (CompareCompareTarget::Mod, Some(CompareTargetUnion::ModRevision(number))) => Compared::ModRevision(number),
        (CompareCompareTarget::Lease, Some(CompareTargetUnion::Lease(number))) => Compared::Lease(number),
        (CompareCompareTarget::Value, Some(CompareTargetUnion::Value(value))) => Compared::Value(value.to_vec()),
        // What is not given, or is of another target, is the default of this one.
        (CompareCompareTarget::Version, _) => Compared::Version(0),
        (CompareCompareTarget::Create, _) => Compared::CreateRevision(0),
        (CompareCompareTarget::Mod, _) => Compared::ModRevision(0),
        (CompareCompareTarget::Lease, _) => Compared::Lease(0),
        (CompareCompareTarget::Value, _) => Compared::Value(Vec::new()),
    };
    Ok(Comparison { range, operator, with })
}

/// The revisions that the headers within an answer show: the one before the transaction until something of it changed anything, then
/// its own.
pub struct Shows {
    now: Revision,
    own: Revision,
}

impl Shows {
    /// Those of a transaction that was carried out at this revision.
    pub fn of(results: &[StepReply], revision: Revision) -> Self {
        let now = if results.iter().any(changes) { revision - 1 } else { revision };
        Self { now, own: revision }
    }

    fn header(&mut self, result: &StepReply) -> ResponseHeader {
        if changes(result) {
            self.now = self.own;
        }
        inner(self.now)
    }
}

/// Whether a step changed anything.
fn changes(result: &StepReply) -> bool {
    match result {
        StepReply::Written(_) => true,
        StepReply::Removed(removed) => removed.count > 0,
        StepReply::Branched(done) => done.results.iter().any(changes),
        StepReply::Txn(done) => done.results.iter().any(changes),
        StepReply::Got(_) | StepReply::Listed(_) => false,
    }
}

impl Shape {
    /// The answer; `None` where the results are of something else.
    pub fn answer(self, succeeded: bool, results: Vec<StepReply>, shows: &mut Shows) -> Option<TxnResponse> {
        let parts = if succeeded { self.then } else { self.otherwise };
        if parts.len() != results.len() {
            return None;
        }
        let responses = parts
            .into_iter()
            .zip(results)
            .map(|(part, result)| Some(ResponseOp { response: Some(operation(part, result, shows)?) }));
        Some(TxnResponse { header: None, succeeded, responses: responses.collect::<Option<_>>()? })
    }
}

fn operation(part: Part, result: StepReply, shows: &mut Shows) -> Option<ResponseOpResponse> {
    let header = match &result {
        // Those within come first, and have their own.
        StepReply::Branched(_) => Some(ResponseHeader::default()),
        other => Some(shows.header(other)),
    };
    Some(match (part, result) {
        (Part::Txn(shape), StepReply::Branched(done)) => {
            let done = shape.answer(done.succeeded, done.results, shows)?;
            ResponseOpResponse::ResponseTxn(TxnResponse { header, ..done })
        }
        (Part::Range, StepReply::Listed(listed)) => {
            ResponseOpResponse::ResponseRange(RangeResponse { header, ..range_of(listed) })
        }
        (Part::Past(read), StepReply::Listed(_)) => ResponseOpResponse::ResponseRange(RangeResponse { header, ..read }),
        (Part::Put(key), StepReply::Written(written)) => {
            ResponseOpResponse::ResponsePut(PutResponse { header, ..put_of(key, written.previous) })
        }
        (Part::Delete, StepReply::Removed(removed)) => {
            ResponseOpResponse::ResponseDeleteRange(DeleteRangeResponse { header, ..delete_of(removed) })
        }
        _ => return None,
    })
}

fn range_of(listed: Listed) -> RangeResponse {
    let kvs = listed.entries.into_iter().filter_map(shown);
    RangeResponse { header: None, kvs: kvs.collect(), more: listed.more, count: listed.count as i64 }
}

/// What a put answers; with the entry as it was where its key is given.
pub fn put_of(key: Option<Key>, previous: Option<Shown>) -> PutResponse {
    let prev_kv = key.zip(previous).and_then(shown);
    PutResponse { header: None, prev_kv }
}

/// An entry with its key. Not the answer to a retry so late that the value is gone.
fn shown((key, shown): (Key, Shown)) -> Option<KeyValue> {
    match shown {
        Shown::Whole(entry) => Some(key_value(&key, entry)),
        Shown::Bare { .. } => None,
    }
}

/// What a deletion answers.
pub fn delete_of(removed: Removed) -> DeleteRangeResponse {
    let prev_kvs = removed.entries.into_iter().filter_map(shown);
    DeleteRangeResponse { header: None, deleted: removed.count as i64, prev_kvs: prev_kvs.collect() }
}
