//! Standing in line by keys, as etcd's own clients do it: what the services `v3lock` and `v3election` have in common.
//!
//! Owns the line below a name: each has a key of its own there, which ends with its lease, and is first whose key is the oldest. Clients
//! that stand in line by transactions of their own stand in the same one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quorate_etcd_api::entry::KeyValue;
use quorate_etcd_api::header::ResponseHeader;
use quorate_etcd_api::kv::{
    Compare, CompareCompareResult, CompareCompareTarget, CompareTargetUnion, DeleteRangeRequest, PutRequest,
    RangeRequest, RangeRequestSortOrder, RangeRequestSortTarget, RequestOp, RequestOpRequest, ResponseOpResponse,
    TxnRequest,
};
use quorate_etcd_api::lease::LeaseGrantRequest;
use quorate_machine::keyspace::after_prefix;
use quorate_machine::types::{Key, Revision};
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::request_ids;
use quorate_node_core::timings::{self, Part};
use quorate_threads::watchdog;
use tonic::Code;

use crate::status::Status;
use crate::{kv, lease, range};

/// Seconds that a lease lives which nobody brought along.
const LEASE_SECONDS: i64 = 60;
/// How long is waited before it is looked again, and such a lease renewed.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Whoever stood in line has lost its lease meanwhile.
pub const SESSION_EXPIRED: &str = "mutex: session is expired";

/// A place in a line.
pub struct Place {
    /// Its key.
    pub key: Bytes,
    /// The revision at which it was made: who has a lower one is before it.
    pub revision: i64,
    /// What it hangs on.
    pub lease: i64,
    /// Of the transaction that made it.
    pub header: ResponseHeader,
    /// What was there, if it was made before.
    pub before: Option<KeyValue>,
    is_own_lease: bool,
}

/// A call within a call: it has a deadline of its own, and a request id, since each may write.
pub fn inner(call: &Call) -> Call {
    let inner = call.lasting();
    inner.set_request_id(request_ids::fresh_id());
    inner
}

/// Takes a place in the line of a name, or finds that of this lease.
pub async fn enter(call: &Call, name: &[u8], lease: i64, value: &Bytes) -> Result<Place, Status> {
    // Before a lease is begun for it, and with the code that a put of it would have.
    range::key(&place_of(name, if lease == 0 { i64::MAX } else { lease }))?;
    let is_own_lease = lease == 0;
    let lease = match lease {
        0 => lease::grant(&inner(call), LeaseGrantRequest { ttl: LEASE_SECONDS, id: 0 }).await?.id,
        given => given,
    };
    let key = place_of(name, lease);
    let put = PutRequest { key: key.clone(), value: value.clone(), lease, ..PutRequest::default() };
    let get = RangeRequest { key: key.clone(), ..RangeRequest::default() };
    let request = TxnRequest {
        compare: vec![created_at(&key, 0)],
        success: vec![RequestOp { request: Some(RequestOpRequest::RequestPut(put)) }],
        failure: vec![RequestOp { request: Some(RequestOpRequest::RequestRange(get)) }],
    };
    let done = kv::txn(&inner(call), request).await.map_err(without_code)?;
    let header = done.header.unwrap_or_default();
    let before = done.responses.into_iter().find_map(|response| match response.response {
        Some(ResponseOpResponse::ResponseRange(found)) => found.kvs.into_iter().next(),
        _ => None,
    });
    let revision = before.as_ref().map_or(header.revision, |entry| entry.create_revision);
    Ok(Place { key, revision, lease, header, before, is_own_lease })
}

/// The key of a lease in the line of a name.
fn place_of(name: &[u8], lease: i64) -> Bytes {
    Bytes::from([name, format!("/{lease:x}").as_bytes()].concat())
}

/// etcd asks itself for these calls as a client would, and passes the text of what went wrong on without the code. One that says to
/// ask again is kept.
pub fn without_code(status: Status) -> Status {
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted => status,
        _ => Status::new(Code::Unknown, status.message()),
    }
}

/// Whether a key was made at this revision; at 0: whether there is none.
pub fn created_at(key: &Bytes, revision: i64) -> Compare {
    Compare {
        result: CompareCompareResult::Equal as i32,
        target: CompareCompareTarget::Create as i32,
        key: key.clone(),
        target_union: Some(CompareTargetUnion::CreateRevision(revision)),
        ..Compare::default()
    }
}

/// Waits until nobody is before this place. Whoever stops waiting leaves the line.
pub async fn wait_turn(call: &Call, name: &[u8], place: &Place) -> Result<(), Status> {
    let Some(_waiting) = call.wait() else {
        return Err(call.api.admission.classes.refusal(RequestClass::Waiting).into());
    };
    let mut leaving = Leaving { call: Some(Arc::new(call.lasting())), key: place.key.clone() };
    let waited = until_first(call, name, place).await;
    if waited.is_ok() {
        leaving.call = None;
    }
    waited
}

async fn until_first(call: &Call, name: &[u8], place: &Place) -> Result<(), Status> {
    while let Some(before) = last_before(&inner(call), name, place.revision).await? {
        if place.is_own_lease {
            renew(call, place.lease).await?;
        }
        let key = Key::new(before.key.to_vec()).map_err(|error| Status::internal(format!("quorate: {error}")))?;
        let seen = before.mod_revision.unsigned_abs() as Revision;
        timings::on(Part::Wait, call.api.node.wait_key_change(&key, seen, LOOK_EVERY)).await;
        // Who may wait no longer is not waited for.
        call.caller().is_known()?;
    }
    let own = RangeRequest { key: place.key.clone(), ..RangeRequest::default() };
    let own = kv::range(&inner(call), own).await?;
    match own.kvs.first() {
        Some(entry) if entry.create_revision == place.revision => Ok(()),
        _ => Err(Status::new(Code::Unknown, SESSION_EXPIRED)),
    }
}

/// Who was last to come before this revision.
async fn last_before(call: &Call, name: &[u8], revision: i64) -> Result<Option<KeyValue>, Status> {
    let request = RangeRequest {
        sort_order: RangeRequestSortOrder::Descend as i32,
        max_create_revision: revision - 1,
        ..line(name)
    };
    Ok(kv::range(call, request).await?.kvs.into_iter().next())
}

/// Asks who came first, of all in the line.
pub fn line(name: &[u8]) -> RangeRequest {
    let prefix = [name, b"/"].concat();
    RangeRequest {
        range_end: after_prefix(&prefix).unwrap_or_else(|| vec![0]).into(),
        key: prefix.into(),
        limit: 1,
        sort_order: RangeRequestSortOrder::Ascend as i32,
        sort_target: RangeRequestSortTarget::Create as i32,
        ..RangeRequest::default()
    }
}

async fn renew(call: &Call, id: i64) -> Result<(), Status> {
    let call = inner(call);
    match lease::keep_alive(&call, id).await?.ttl {
        0 => Err(Status::new(Code::Unknown, SESSION_EXPIRED)),
        _ => Ok(()),
    }
}

/// Takes a key out of the line.
pub async fn leave(call: &Call, key: &Bytes) -> Result<ResponseHeader, Status> {
    let request = DeleteRangeRequest { key: key.clone(), ..DeleteRangeRequest::default() };
    Ok(kv::delete_range(&inner(call), request).await?.header.unwrap_or_default())
}

/// Leaves the line when it is dropped, unless it was told to stay.
struct Leaving {
    call: Option<Arc<Call>>,
    key: Bytes,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        let key = std::mem::take(&mut self.key);
        watchdog::spawn(async move {
            if let Err(status) = leave(&call, &key).await {
                // It ends with its lease.
                tracing::warn!(status = %*status, "a key stays in the line of a lock or an election that nobody waits in any more");
            }
        });
    }
}
