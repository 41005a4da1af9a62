//! The state of this node, and what an operator asks of it: etcd's service `Maintenance`.
//!
//! Alarms follow from what is so, and end with it: nobody raises or lowers one. A snapshot has the form of our backups, and
//! behind it what tools of etcd look for.

use std::io;
use std::sync::Arc;
use std::task::{Poll, ready};

use bytes::Bytes;
use futures::StreamExt;
use quorate_api::{MemberView, StatusAnswer};
use quorate_etcd_api::Error;
use quorate_etcd_api::maintenance::{
    AlarmMember, AlarmRequest, AlarmRequestAlarmAction, AlarmResponse, AlarmType, DefragmentRequest,
    DefragmentResponse, HashKVRequest, HashKVResponse, HashRequest, HashResponse, MoveLeaderRequest,
    MoveLeaderResponse, SnapshotRequest, SnapshotResponse, StatusRequest, StatusResponse,
};
use quorate_machine::query::{ListQuery, ListRead};
use quorate_machine::trailer::sector_rest;
use quorate_machine::types::{Entry, Key, Revision};
use quorate_node_core::backend::Consistency;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::backup;
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::failure::{Effect, Failure};
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::limits;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use tonic::Code;
use xxhash_rust::xxh3::Xxh3;

use crate::header::{header, header_now};
use crate::past::revision_of;
use crate::status::{Flow, Status, known};

/// Tells of this node.
pub async fn status(call: &Call, _: StatusRequest) -> Result<StatusResponse, Status> {
    let status: StatusAnswer = call.api.node.status();
    let is_self = |member: &&MemberView| member.id == status.node_id;
    let is_learner = status.members.iter().find(is_self).is_some_and(|member| !member.voter);
    let bytes = (status.stored_bytes + status.history_bytes) as i64;
    let emulated = &call.api.settings.etcd_version;
    Ok(StatusResponse {
        header: Some(header(&call.api, status.revision)),
        version: emulated.server.clone(),
        db_size: bytes,
        db_size_in_use: bytes,
        db_size_quota: status.quota_bytes as i64,
        leader: status.leader_id.unwrap_or(0),
        raft_index: status.committed_index,
        raft_applied_index: status.applied_index,
        raft_term: status.term,
        errors: status.warnings,
        is_learner,
        storage_version: emulated.cluster.clone(),
        downgrade_info: None,
    })
}

/// Lists alarms.
pub async fn alarm(call: &Call, request: AlarmRequest) -> Result<AlarmResponse, Status> {
    let status = call.api.node.status();
    let header = Some(header(&call.api, status.revision));
    let alarms = match AlarmRequestAlarmAction::try_from(request.action) {
        Ok(AlarmRequestAlarmAction::Get) => alarms(call, &status),
        // None stays once its reason is gone, so there is nothing to lower.
        Ok(AlarmRequestAlarmAction::Deactivate) => Vec::new(),
        Ok(AlarmRequestAlarmAction::Activate) | Err(_) => {
            let why = "quorate: alarms follow from what is so, and cannot be raised by a request";
            return Err(Status::new(Code::FailedPrecondition, why));
        }
    };
    let wanted = |alarm: &AlarmMember| request.alarm == AlarmType::None as i32 || alarm.alarm == request.alarm;
    Ok(AlarmResponse { header, alarms: alarms.into_iter().filter(wanted).collect() })
}

/// What is wrong with this node, as far as etcd has a word for it.
fn alarms(call: &Call, status: &StatusAnswer) -> Vec<AlarmMember> {
    let is_full = status.quota_bytes > 0 && status.stored_bytes >= status.quota_bytes;
    let is_distrusted = call.api.node.quarantine().is_some();
    let raised = [(is_full, AlarmType::Nospace), (is_distrusted, AlarmType::Corrupt)];
    let alarm = |kind: AlarmType| AlarmMember { member_id: status.node_id, alarm: kind as i32 };
    raised.into_iter().filter(|(is_so, _)| *is_so).map(|(_, kind)| alarm(kind)).collect()
}

/// There is nothing to defragment: RocksDB gives room back by itself.
pub async fn defragment(call: &Call, _: DefragmentRequest) -> Result<DefragmentResponse, Status> {
    Ok(DefragmentResponse { header: Some(header_now(&call.api)) })
}

/// A hash of all replicated state of this node: equal on nodes that have applied the same.
pub async fn hash(call: &Call, _: HashRequest) -> Result<HashResponse, Status> {
    let taken = call.api.node.digest();
    Ok(HashResponse { header: Some(header(&call.api, taken.at.revision)), hash: folded(taken.digest) })
}

/// As many bits as the answer has room for, each of which all others have a part in.
fn folded(digest: u128) -> u32 {
    let bytes = digest.to_le_bytes();
    bytes.chunks_exact(4).fold(0, |sum, part| sum ^ u32::from_le_bytes(part.try_into().expect("four bytes")))
}

/// A hash of all entries at a revision: equal on all nodes.
pub async fn hash_kv(call: &Call, request: HashKVRequest) -> Result<HashKVResponse, Status> {
    let at = call.api.node.position();
    let revision = revision_of(request.revision).unwrap_or(at.revision);
    let hash = hash_of_entries(call, revision).await?;
    Ok(HashKVResponse {
        header: Some(header(&call.api, at.revision)),
        hash,
        compact_revision: at.oldest_revision as i64,
        hash_revision: revision as i64,
    })
}

async fn hash_of_entries(call: &Call, revision: Revision) -> Result<u32, Status> {
    let (mut hasher, mut start) = (Xxh3::new(), Vec::new());
    loop {
        let query = ListQuery {
            start: std::mem::take(&mut start),
            end: None,
            revision: Some(revision),
            limit: usize::MAX,
            bytes_max: limits::ETCD_FRAGMENT_BYTES,
            keys_only: false,
            reverse: false,
        };
        let page = match scan(call, move |backend| backend.list(&query)).await? {
            ListRead::Page(page) => page,
            ListRead::Compacted(_) => return Err(known(Error::Compacted)),
            ListRead::Future(_) => return Err(known(Error::FutureRev)),
        };
        page.entries.iter().for_each(|(key, entry)| add_to_hash(&mut hasher, key, entry));
        match page.entries.last() {
            Some((last, _)) if page.more => start = [last.as_bytes(), &[0]].concat(),
            _ => return Ok(hasher.digest() as u32),
        }
    }
}

/// With the length of each part, so that no two entries are alike.
fn add_to_hash(hasher: &mut Xxh3, key: &Key, entry: &Entry) {
    let meta = &entry.meta;
    let lease = meta.session.map_or(0, |session| session.lease().unsigned_abs());
    for number in [meta.create_revision, meta.mod_revision, meta.version, lease] {
        hasher.update(&number.to_le_bytes());
    }
    for part in [key.as_bytes(), &entry.value.data] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
}

/// Lets another node lead.
pub async fn move_leader(call: &Call, request: MoveLeaderRequest) -> Result<MoveLeaderResponse, Status> {
    let status = call.api.node.status();
    // Any node of ours could pass it on; but clients of etcd look for the leader, and are told where it is not.
    if status.leader_id != Some(status.node_id) {
        return Err(known(Error::NotLeader));
    }
    if !status.members.iter().any(|member| member.id == request.target_id && member.voter) {
        return Err(known(Error::BadLeaderTransferee));
    }
    let moved = call.api.node.hand_over(Some(request.target_id), call.deadline).await;
    moved.map_err(|error| Failure::from_app(error, Effect::Write))?;
    Ok(MoveLeaderResponse { header: Some(header_now(&call.api)) })
}

/// Gives the whole state out, as a backup of ours.
pub fn snapshot(call: Arc<Call>, _: Flow<SnapshotRequest>, stop: CancellationToken) -> Flow<SnapshotResponse> {
    futures::stream::once(begin_snapshot(call))
        .flat_map(|begun| begun.unwrap_or_else(|status| futures::stream::iter([Err(status)]).boxed()))
        .take_until(stop.cancelled_owned())
        .boxed()
}

async fn begin_snapshot(call: Arc<Call>) -> Result<Flow<SnapshotResponse>, Status> {
    let place = backup::place(&call)?;
    let all = requirement::on_prefix(Permission::Backup, b"");
    call.caller().admit_read(Consistency::Linearizable, call.deadline, &all).await?;
    let (revision, mut pieces) = backup::begin(&call, place).await?;
    let (header, version) = (header(&call.api, revision), call.api.settings.etcd_version.cluster.clone());
    // How much is left is known when there is no more: the end of the stream says that.
    let message = move |blob: Bytes| SnapshotResponse {
        header: Some(header.clone()),
        remaining_bytes: 0,
        blob,
        version: version.clone(),
    };
    let mut trailer = Some(Trailer::default());
    Ok(futures::stream::poll_fn(move |cx| {
        let piece = ready!(pieces.poll_next(cx));
        Poll::Ready(match piece {
            Some(Ok(blob)) => {
                trailer.iter_mut().for_each(|trailer| trailer.add(&blob));
                Some(Ok(message(blob)))
            }
            Some(Err(error)) => {
                trailer = None;
                Some(Err(why_it_ended(&error)))
            }
            None => trailer.take().map(|trailer| Ok(message(trailer.end()))),
        })
    })
    .boxed())
}

fn why_it_ended(error: &io::Error) -> Status {
    match error.kind() {
        io::ErrorKind::PermissionDenied => known(Error::PermissionDenied),
        _ => Status::internal(format!("quorate: {error}")),
    }
}

/// What tools of etcd look for behind a snapshot: a whole number of sectors, and their SHA-256.
#[derive(Default)]
struct Trailer {
    bytes: u64,
    hash: Sha256,
}

impl Trailer {
    fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.hash.update(piece);
    }

    fn end(mut self) -> Bytes {
        let mut end = vec![0; sector_rest(self.bytes)];
        self.hash.update(&end);
        end.extend_from_slice(&self.hash.finalize());
        end.into()
    }
}
