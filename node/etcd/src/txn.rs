//! Transactions: from etcd's messages to ours, and their results back.
//!
//! Owns which step stands for which operation. What is wrong with a transaction by itself is found first, without a look at the state, so
//! that it is what is told. A put that keeps the value or the lease of what is there, and a read at a revision of the past, are not steps:
//! the first becomes a write that expects the entry it read, the second is read beside the transaction, since the past does not change;
//! whether it could be read is decided with the transaction. Both are read as a scan, after the rights on all steps were judged, and one
//! sum bounds them.

use quorate_etcd_api::Error;
use quorate_etcd_api::entry::KeyValue;
use quorate_etcd_api::header::ResponseHeader;
use quorate_etcd_api::kv::{
    Compare, CompareCompareResult, CompareCompareTarget, CompareTargetUnion, DeleteRangeRequest, DeleteRangeResponse,
    PutRequest, PutResponse, RangeRequest, RangeResponse, RequestOp, RequestOpRequest, ResponseOp, ResponseOpResponse,
    TxnRequest, TxnResponse,
};
use quorate_machine::document::Criteria;
use quorate_machine::limits::{LOOK_BYTES, TXN_EFFECT_BYTES_MAX, VALUE_BYTES_MAX};
use quorate_machine::query::KeyRead;
use quorate_machine::types::{
    Action, Branch, Change, Compared, Comparison, ComparisonOperator, Entry, Expect, Expiry, Key, ListStep, Listed,
    RemoveStep, Removed, Revision, SessionId, Shown, Step, StepReply, Txn, WriteOp,
};
use quorate_node_core::gateway::auth::requirement;
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::limits;

use crate::header::inner;
use crate::past;
use crate::range::{key, key_range, key_value, list_step, value};
use crate::status::{Status, known, of_fault};

/// The token of no entry.
const NO_TOKEN: Revision = 0;
/// The session of a lease whose number none can have: none began before anything had happened.
const NO_SESSION: SessionId = SessionId(0);

/// A transaction of ours, and what is known of its answer before it is carried out.
pub struct Planned {
    /// It.
    pub txn: Txn,
    /// What its results are to be shown as.
    pub shape: Shape,
    /// What it costs among scans; 0 where it is none.
    cost: usize,
}

/// What the results of a branch are to be shown as.
pub struct Shape {
    then: Vec<Part>,
    otherwise: Vec<Part>,
}

enum Part {
    Range,
    Past(Past),
    /// With its key, where the entry as it was is shown.
    Put {
        shown: Option<Key>,
        keeps: Keeps,
    },
    Delete,
    Txn(Shape),
}

/// A read at another revision than that of now.
enum Past {
    /// At this one, which may be below 0; not done yet.
    At(Box<ListStep>, i64),
    /// It was read.
    Read(RangeResponse),
    /// It cannot be read: the transaction is not carried out where it comes to this.
    Not,
}

/// What a put keeps of the entry that is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keeps {
    value: bool,
    lease: bool,
}

impl Keeps {
    /// Whether it keeps anything: then it is planned by what is there.
    pub fn any(self) -> bool {
        self.value || self.lease
    }
}

/// Plans a transaction, as far as that needs no look at the state. It has no more operations than one may have, or was not decoded.
pub fn plan(request: TxnRequest) -> Result<Planned, Status> {
    let (branch, shape) = plan_branch(request)?;
    let txn = Txn::of_branch(branch);
    if let Some(fault) = txn.fault() {
        return Err(of_fault(&fault));
    }
    let cost = match txn.then.as_slice() {
        [Step::Branch(branch)] => cost_of_scans(branch, &shape, !txn.writes()),
        _ => 0,
    };
    Ok(Planned { txn, shape, cost })
}

/// What the scans of a branch cost: what is read for the plan, and ranges as of now where nothing is written. Those of a transaction that
/// writes are read in the log.
fn cost_of_scans(branch: &Branch, shape: &Shape, only_reads: bool) -> usize {
    let cost = |(step, part): (&Step, &Part)| match (step, part) {
        (Step::List(step), Part::Past(_)) => past::cost(step),
        (Step::List(step), Part::Range) if only_reads && past::named(step).is_none() => past::cost(step),
        (Step::Write(_), Part::Put { keeps, .. }) => usize::from(keeps.any()),
        (Step::Branch(branch), Part::Txn(shape)) => cost_of_scans(branch, shape, only_reads),
        _ => 0,
    };
    let of_then = branch.then.iter().zip(&shape.then).map(cost).sum::<usize>();
    of_then + branch.otherwise.iter().zip(&shape.otherwise).map(cost).sum::<usize>()
}

/// Places of the class of scans that a transaction takes for each key whose value it keeps from before it is carried out until then.
const KEY_PLACES: usize = 32;
/// The same for a range; and the most of all, since what a transaction looks at has one bound. With all places taken that is 256 MiB.
const PLACES_MAX: usize = 256;
const _: () = assert!(limits::SCAN_COST_MAX / PLACES_MAX * TXN_EFFECT_BYTES_MAX <= 256 << 20);
const _: () = assert!(limits::SCAN_COST_MAX / KEY_PLACES * VALUE_BYTES_MAX <= 256 << 20);

/// Places that a branch takes for what it looks at.
fn places(branch: &Branch, shape: &Shape) -> usize {
    let of_one = |(step, part): (&Step, &Part)| match (step, part) {
        (Step::List(step), Part::Past(_)) if past::named(step).is_none() => PLACES_MAX,
        (Step::List(_), Part::Past(_)) => KEY_PLACES,
        (Step::Write(_), Part::Put { keeps, .. }) if keeps.value => KEY_PLACES,
        (Step::Branch(branch), Part::Txn(shape)) => places(branch, shape),
        _ => 0,
    };
    let of_then = branch.then.iter().zip(&shape.then).map(of_one).sum::<usize>();
    (of_then + branch.otherwise.iter().zip(&shape.otherwise).map(of_one).sum::<usize>()).min(PLACES_MAX)
}

fn plan_branch(request: TxnRequest) -> Result<(Branch, Shape), Status> {
    let comparisons = request.compare.into_iter().map(comparison).collect::<Result<_, _>>()?;
    let (then, of_then) = plan_steps(request.success)?;
    let (otherwise, of_otherwise) = plan_steps(request.failure)?;
    Ok((Branch { comparisons, then, otherwise }, Shape { then: of_then, otherwise: of_otherwise }))
}

fn plan_steps(operations: Vec<RequestOp>) -> Result<(Vec<Step>, Vec<Part>), Status> {
    let planned = operations.into_iter().map(|operation| match operation.request {
        None => Err(known(Error::KeyNotFound)),
        Some(RequestOpRequest::RequestRange(request)) => range(&request),
        Some(RequestOpRequest::RequestPut(request)) => {
            let (op, keeps) = put(request)?;
            let shown = op.return_previous.then(|| op.key.clone());
            Ok((Step::Write(op), Part::Put { shown, keeps }))
        }
        Some(RequestOpRequest::RequestDeleteRange(request)) => Ok((Step::Remove(removal(&request)?), Part::Delete)),
        Some(RequestOpRequest::RequestTxn(request)) => {
            let (branch, shape) = plan_branch(request)?;
            Ok((Step::Branch(branch), Part::Txn(shape)))
        }
    });
    Ok(planned.collect::<Result<Vec<_>, Status>>()?.into_iter().unzip())
}

fn range(request: &RangeRequest) -> Result<(Step, Part), Status> {
    let step = list_step(request)?;
    match request.revision {
        0 => Ok((Step::List(step), Part::Range)),
        at => {
            // The rights on it are checked with those of the transaction, which names the range all the same.
            let names = ListStep { at: Some(NEVER), ..step.clone() };
            Ok((Step::List(names), Part::Past(Past::At(Box::new(step), at))))
        }
    }
}

/// A revision that nothing can be read at yet.
const NEVER: Revision = Revision::MAX;

impl Planned {
    /// Looks at what it keeps and reads of what is there, as a scan. Says whether one of its writes expects an entry that was read for it:
    /// where that has changed since, it is planned anew.
    pub async fn look(&mut self, call: &Call) -> Result<bool, Status> {
        if self.cost == 0 {
            return Ok(false);
        }
        // Nobody makes a node read what they have no right to: all of its steps name what they are about.
        let action = Action::Txn(self.txn.clone());
        call.admit_read(&requirement::on_action(&action)).await?;
        call.go_on_as_scan().await?;
        let [Step::Branch(branch)] = self.txn.then.as_mut_slice() else { return Ok(false) };
        call.costs(self.cost.max(places(branch, &self.shape)), self.cost)?;
        let mut found = Found { expects: false, room: TXN_EFFECT_BYTES_MAX };
        look(call, branch, &mut self.shape, &mut found).await?;
        Ok(found.expects)
    }
}

/// What came of looking at what a transaction keeps and reads of the past.
struct Found {
    /// Whether a write of it expects an entry that was read.
    expects: bool,
    /// How many bytes it may still read.
    room: usize,
}

async fn look(call: &Call, branch: &mut Branch, shape: &mut Shape, found: &mut Found) -> Result<(), Status> {
    for (steps, parts) in [(&mut branch.then, &mut shape.then), (&mut branch.otherwise, &mut shape.otherwise)] {
        for (step, part) in steps.iter_mut().zip(parts) {
            match (step, part) {
                (Step::Write(op), Part::Put { keeps, .. }) if keeps.any() => keep(call, op, *keeps, found).await?,
                (Step::List(names), Part::Past(past)) => look_at_past(call, names, past, &mut found.room).await?,
                (Step::Branch(branch), Part::Txn(shape)) => Box::pin(look(call, branch, shape, found)).await?,
                _ => {}
            }
        }
    }
    Ok(())
}

async fn keep(call: &Call, op: &mut WriteOp, keeps: Keeps, found: &mut Found) -> Result<(), Status> {
    found.expects = true;
    let key = op.key.clone();
    let KeyRead { entry, .. } = scan(call, move |backend| backend.get(&key)).await?;
    let bytes = entry.as_ref().map_or(0, |entry| op.key.as_bytes().len() + entry.value.data.len() + LOOK_BYTES);
    found.room = found.room.checked_sub(bytes).ok_or_else(|| known(Error::RequestTooLarge))?;
    // That there is no entry is told first here, and beside a transaction that there is no such lease.
    if !take_over(entry, op, keeps) {
        op.session = None;
    }
    Ok(())
}

async fn look_at_past(call: &Call, names: &mut ListStep, past: &mut Past, room: &mut usize) -> Result<(), Status> {
    let Past::At(step, at) = past else { return Ok(()) };
    let (at, seen) = match past::revision_of(*at) {
        // Below all that there ever was.
        None => (0, Past::Not),
        Some(revision) => match past::look(call, ListStep::clone(step), revision, room).await? {
            Ok(read) => (revision, Past::Read(RangeResponse { header: None, ..read })),
            Err(Error::Compacted) => (revision, Past::Not),
            // It may have come by the time the transaction is carried out, and was not read.
            Err(_) => (NEVER, Past::Not),
        },
    };
    (names.at, *past) = (Some(at), seen);
    Ok(())
}

/// A put as a write, and what it keeps of what is there.
pub fn put(request: PutRequest) -> Result<(WriteOp, Keeps), Status> {
    let PutRequest { key: name, value: data, lease, prev_kv, ignore_value, ignore_lease } = request;
    let name = key(&name)?;
    if ignore_value && !data.is_empty() {
        return Err(known(Error::ValueProvided));
    }
    if ignore_lease && lease != 0 {
        return Err(known(Error::LeaseProvided));
    }
    let op = WriteOp {
        key: name,
        expect: Expect::ANY,
        condition: Criteria::default(),
        change: Change::Put(value(&data)),
        expiry: Expiry::Usual,
        return_previous: prev_kv,
        // A number that no lease has is told of where the put is carried out, which it may not be.
        session: (lease != 0).then(|| SessionId::of_lease(lease).unwrap_or(NO_SESSION)),
        guard: None,
    };
    Ok((op, Keeps { value: ignore_value, lease: ignore_lease }))
}

/// Lets a write keep what it is to keep, and expect the entry that it has that of: the one that is there. Where there is none it says so, and
/// the write is refused where it is carried out, unless there is one by then.
pub fn take_over(entry: Option<Entry>, op: &mut WriteOp, keeps: Keeps) -> bool {
    let Some(entry) = entry else {
        op.expect = Expect::cas(NO_TOKEN).and_present();
        return false;
    };
    op.expect = Expect::cas(entry.meta.cas);
    if keeps.value {
        op.change = Change::Put(entry.value);
    }
    if keeps.lease {
        op.session = entry.meta.session;
    }
    true
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
        (Part::Past(Past::Read(read)), StepReply::Listed(_)) => {
            ResponseOpResponse::ResponseRange(RangeResponse { header, ..read })
        }
        (Part::Put { shown, .. }, StepReply::Written(written)) => {
            ResponseOpResponse::ResponsePut(PutResponse { header, ..put_of(shown, written.previous) })
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quorate_machine::limits::{KEY_BYTES_MAX, TXN_DEPTH_MAX, TXN_STEPS_MAX};
    use tonic::Code;

    use super::*;

    fn op(request: RequestOpRequest) -> RequestOp {
        RequestOp { request: Some(request) }
    }

    fn put_of(key: &'static str) -> PutRequest {
        PutRequest { key: Bytes::from_static(key.as_bytes()), ..PutRequest::default() }
    }

    fn at(revision: i64) -> RequestOp {
        op(RequestOpRequest::RequestRange(RangeRequest { key: "a".into(), revision, ..RangeRequest::default() }))
    }

    fn refused(success: Vec<RequestOp>) -> (Code, String) {
        let status = plan(TxnRequest { success, ..TxnRequest::default() }).err().expect("it is refused");
        (status.code(), status.message().to_owned())
    }

    #[test]
    fn what_is_wrong_by_itself_is_told_before_anything_is_read() {
        let put = |request| op(RequestOpRequest::RequestPut(request));
        let with_value = PutRequest { ignore_value: true, value: "v".into(), ..put_of("b") };
        let duplicate = (Code::InvalidArgument, "etcdserver: duplicate key given in txn request".to_owned());
        assert_eq!(refused(vec![at(1 << 40), put(put_of("b")), put(put_of("b"))]), duplicate);
        assert_eq!(refused(vec![at(-1), put(PutRequest::default())]).1, "etcdserver: key is not provided");
        assert_eq!(refused(vec![at(1 << 40), put(with_value)]).1, "etcdserver: value is provided");
        // Whether there is such a lease or such a revision shows where it is carried out.
        for lease in [-1, i64::MIN, 12_345] {
            let success = vec![at(1 << 40), put(PutRequest { lease, ..put_of("b") })];
            assert!(plan(TxnRequest { success, ..TxnRequest::default() }).is_ok(), "{lease}");
        }
    }

    #[test]
    fn transactions_nest_as_deep_as_over_http() {
        let deep = |depth: usize| {
            let innermost = TxnRequest { success: vec![at(0)], ..TxnRequest::default() };
            (1..depth).fold(innermost, |within, _| TxnRequest {
                success: vec![op(RequestOpRequest::RequestTxn(within))],
                ..TxnRequest::default()
            })
        };
        assert!(plan(deep(TXN_DEPTH_MAX)).is_ok());
        let too_deep = plan(deep(TXN_DEPTH_MAX + 1)).err().expect("it is refused");
        assert_eq!(too_deep.code(), Code::InvalidArgument);
        assert!(too_deep.message().contains("at most 4 deep"), "{}", too_deep.message());
        let many = |count: usize| TxnRequest { success: vec![at(0); count], ..TxnRequest::default() };
        assert!(plan(many(TXN_STEPS_MAX)).is_ok());
        assert_eq!(plan(many(TXN_STEPS_MAX + 1)).err().expect("too many").message(), Error::TooManyOps.text());
    }

    #[test]
    fn what_is_read_for_a_plan_and_ranges_that_only_read_cost_as_scans() {
        let cost =
            |success: Vec<RequestOp>| plan(TxnRequest { success, ..TxnRequest::default() }).expect("it is one").cost;
        let range = |revision, count_only| {
            let (key, range_end) = ("a".into(), "b".into());
            let request = RangeRequest { key, range_end, revision, count_only, ..RangeRequest::default() };
            op(RequestOpRequest::RequestRange(request))
        };
        let put = |ignore_lease| op(RequestOpRequest::RequestPut(PutRequest { ignore_lease, ..put_of("p") }));
        let page = past::cost_of_page(usize::MAX);
        assert_eq!(cost(vec![at(0), put(false)]), 0);
        assert_eq!(cost(vec![at(5), put(true)]), 2);
        assert_eq!(cost(vec![range(0, false), range(0, true)]), page + quorate_node_core::limits::FIND_COST);
        assert_eq!(cost(vec![range(0, false), put(false)]), 0, "it is read in the log");
        assert_eq!(cost(vec![range(5, false), put(false)]), page);
        let nested = TxnRequest { failure: vec![at(5); 3], ..TxnRequest::default() };
        assert_eq!(cost(vec![op(RequestOpRequest::RequestTxn(nested))]), 3);
    }

    #[test]
    fn what_a_transaction_looks_at_takes_places_by_what_it_may_hold() {
        let taken = |success: Vec<RequestOp>| {
            let planned = plan(TxnRequest { success, ..TxnRequest::default() }).expect("it is one");
            match planned.txn.then.as_slice() {
                [Step::Branch(branch)] => places(branch, &planned.shape),
                other => panic!("{other:?}"),
            }
        };
        let keeps = |ignore_value, ignore_lease| {
            op(RequestOpRequest::RequestPut(PutRequest {
                ignore_value,
                ignore_lease,
                value: Bytes::new(),
                ..put_of("p")
            }))
        };
        let range = RangeRequest { key: "a".into(), range_end: "b".into(), revision: 5, ..RangeRequest::default() };
        assert_eq!(taken(vec![at(0), keeps(false, true)]), 0);
        assert_eq!(taken(vec![at(5), keeps(true, false)]), 2 * KEY_PLACES);
        assert_eq!(taken(vec![op(RequestOpRequest::RequestRange(range))]), PLACES_MAX);
        assert_eq!(taken(vec![at(5); 100]), PLACES_MAX);
    }

    #[test]
    fn what_is_too_long_for_a_key_is_planned_as_what_is_not_there() {
        let key = Bytes::from(vec![b'k'; KEY_BYTES_MAX + 1]);
        let compare = vec![Compare { key: key.clone(), ..Compare::default() }];
        let delete = DeleteRangeRequest { key: key.clone(), ..DeleteRangeRequest::default() };
        let range = RangeRequest { key: key.clone(), ..RangeRequest::default() };
        let success = vec![op(RequestOpRequest::RequestDeleteRange(delete)), op(RequestOpRequest::RequestRange(range))];
        assert!(plan(TxnRequest { compare, success, ..TxnRequest::default() }).is_ok());
        let put = op(RequestOpRequest::RequestPut(PutRequest { key, ..PutRequest::default() }));
        assert_eq!(refused(vec![put]).0, Code::InvalidArgument, "one that is to be there cannot be");
    }
}
