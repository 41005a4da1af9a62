//! What clients ask, as messages of etcd.
//!
//! Owns which message is which. Never sends one: gRPC and the gateway carry the same messages, and write them each in its own format.

use bytes::Bytes;
use quorate_etcd_api::Message;
use quorate_etcd_api::kv::{
    Compare, CompareCompareResult, CompareCompareTarget, CompareTargetUnion, PutRequest, PutResponse, RangeRequest,
    RangeResponse, RequestOp, RequestOpRequest, ResponseOpResponse, TxnRequest, TxnResponse,
};
use quorate_etcd_api::lease::{LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeRequest, LeaseRevokeResponse};
use quorate_etcd_api::lock::{LockRequest, LockResponse, UnlockRequest, UnlockResponse};
use quorate_etcd_api::maintenance::StatusResponse;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;
use crate::work::{Ask, LOCK_NAME, RANGE, Reply, key, own_key};

/// A method, by each of its two paths.
#[derive(Clone, Copy)]
pub struct Method {
    pub grpc: &'static str,
    pub gateway: &'static str,
}

const PUT: Method = Method { grpc: "/etcdserverpb.KV/Put", gateway: "/v3/kv/put" };
const READ: Method = Method { grpc: "/etcdserverpb.KV/Range", gateway: "/v3/kv/range" };
const TXN: Method = Method { grpc: "/etcdserverpb.KV/Txn", gateway: "/v3/kv/txn" };
const GRANT: Method = Method { grpc: "/etcdserverpb.Lease/LeaseGrant", gateway: "/v3/lease/grant" };
const REVOKE: Method = Method { grpc: "/etcdserverpb.Lease/LeaseRevoke", gateway: "/v3/lease/revoke" };
const LOCK: Method = Method { grpc: "/v3lockpb.Lock/Lock", gateway: "/v3/lock/lock" };
const UNLOCK: Method = Method { grpc: "/v3lockpb.Lock/Unlock", gateway: "/v3/lock/unlock" };
pub const STATUS: Method = Method { grpc: "/etcdserverpb.Maintenance/Status", gateway: "/v3/maintenance/status" };

/// How messages are written.
pub trait Format {
    type Answer<'a>;

    fn write(message: &(impl Message + Serialize)) -> Result<Vec<u8>, Failure>;
    fn read<M: Message + Default + DeserializeOwned>(answer: Self::Answer<'_>) -> Result<M, Failure>;
}

/// The method and the message of what is asked.
pub fn call<F: Format>(ask: &Ask, value: &Bytes) -> Result<(Method, Vec<u8>), Failure> {
    Ok(match ask {
        Ask::Put(number) => (PUT, F::write(&put(key(*number), value))?),
        Ask::Get(number) => (READ, F::write(&get(key(*number)))?),
        Ask::Swap(client, token) => (TXN, F::write(&swap(own_key(*client), *token, value))?),
        Ask::Txn(numbers) => {
            let puts = numbers.iter().map(|&number| op(RequestOpRequest::RequestPut(put(key(number), value))));
            (TXN, F::write(&TxnRequest { success: puts.collect(), ..TxnRequest::default() })?)
        }
        Ask::Range(first) => {
            (READ, F::write(&RangeRequest { range_end: key(first + RANGE).into(), ..get(key(*first)) })?)
        }
        Ask::Open(seconds) => (GRANT, F::write(&LeaseGrantRequest { ttl: *seconds as i64, id: 0 })?),
        Ask::End(session) => (REVOKE, F::write(&LeaseRevokeRequest { id: *session as i64 })?),
        Ask::Lock(session) => (LOCK, F::write(&LockRequest { name: LOCK_NAME.into(), lease: *session as i64 })?),
        Ask::Unlock(held) => (UNLOCK, F::write(&UnlockRequest { key: held.clone() })?),
        Ask::Bulk(_) | Ask::Documents(_) | Ask::Find(_) => return Err("etcd has nothing like it".into()),
    })
}

/// What was answered to it.
pub fn reply<F: Format>(ask: &Ask, answer: F::Answer<'_>) -> Result<Reply, Failure> {
    let header = match ask {
        Ask::Get(_) | Ask::Range(_) => return Ok(entries(&F::read(answer)?)),
        Ask::Swap(..) => return swapped(&F::read(answer)?),
        Ask::Open(_) => return Ok(Reply::Session(F::read::<LeaseGrantResponse>(answer)?.id as u64)),
        Ask::Lock(_) => return Ok(Reply::Held(F::read::<LockResponse>(answer)?.key)),
        Ask::Txn(_) => {
            let answer: TxnResponse = F::read(answer)?;
            answer.header.filter(|_| answer.succeeded)
        }
        Ask::End(_) => F::read::<LeaseRevokeResponse>(answer)?.header,
        Ask::Unlock(_) => F::read::<UnlockResponse>(answer)?.header,
        _ => F::read::<PutResponse>(answer)?.header,
    };
    header.map(|_| Reply::Done).ok_or_else(|| format!("{ask:?} was answered without a revision").into())
}

/// Whether a member leads, by its status.
pub fn is_leader(status: &StatusResponse) -> bool {
    status.header.as_ref().is_some_and(|header| header.member_id == status.leader)
}

fn put(key: String, value: &Bytes) -> PutRequest {
    PutRequest { key: key.into(), value: value.clone(), ..PutRequest::default() }
}

fn get(key: String) -> RangeRequest {
    RangeRequest { key: key.into(), ..RangeRequest::default() }
}

fn op(request: RequestOpRequest) -> RequestOp {
    RequestOp { request: Some(request) }
}

/// Replaces an entry where its last revision is this one, and reads it where it is not.
fn swap(key: String, revision: u64, value: &Bytes) -> TxnRequest {
    let expected = Compare {
        result: CompareCompareResult::Equal as i32,
        target: CompareCompareTarget::Mod as i32,
        key: key.clone().into(),
        target_union: Some(CompareTargetUnion::ModRevision(revision as i64)),
        ..Compare::default()
    };
    TxnRequest {
        compare: vec![expected],
        success: vec![op(RequestOpRequest::RequestPut(put(key.clone(), value)))],
        failure: vec![op(RequestOpRequest::RequestRange(get(key)))],
    }
}

fn entries(answer: &RangeResponse) -> Reply {
    Reply::Entries(answer.kvs.len(), answer.kvs.iter().map(|entry| entry.value.len()).sum())
}

fn swapped(answer: &TxnResponse) -> Result<Reply, Failure> {
    let revision = match (answer.succeeded, answer.responses.first().and_then(|first| first.response.as_ref())) {
        (true, _) => answer.header.as_ref().ok_or("a transaction was answered without a revision")?.revision,
        (false, Some(ResponseOpResponse::ResponseRange(found))) => {
            found.kvs.first().map_or(0, |entry| entry.mod_revision)
        }
        (false, _) => return Err("a transaction that was refused was answered without its entry".into()),
    };
    Ok(Reply::Swapped(answer.succeeded, revision as u64))
}
