//! Elections by name: etcd's service `v3election`.
//!
//! Who leads is who stands first in the line of the name; what it says of itself is the value of its key.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryFutureExt};
use quorate_etcd_api::election::{
    CampaignRequest, CampaignResponse, LeaderKey, LeaderRequest, LeaderResponse, ProclaimRequest, ProclaimResponse,
    ResignRequest, ResignResponse,
};
use quorate_etcd_api::entry::{EventEventType, KeyValue};
use quorate_etcd_api::header::ResponseHeader;
use quorate_etcd_api::kv::{DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, RequestOpRequest, TxnRequest};
use quorate_etcd_api::watch::{WatchCreateRequest, WatchResponse};
use quorate_node_core::gateway::call::Call;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::contend::{self, Place};
use crate::status::{Flow, Status};
use crate::{kv, watch};

const NO_LEADER: &str = "election: no leader";
const NOT_LEADER: &str = "election: not leader";
const NO_LEADER_KEY: &str = "\"leader\" field must be provided";

/// Waits to be elected.
pub async fn campaign(call: &Call, request: CampaignRequest) -> Result<CampaignResponse, Status> {
    let CampaignRequest { name, lease, value } = request;
    let place = contend::enter(call, &name, lease, &value).await?;
    if place.before.as_ref().is_some_and(|entry| entry.value != value) {
        say(call, &place.key, place.revision, place.lease, value).await?;
    }
    contend::wait_turn(call, &name, &place).await?;
    let Place { key, revision: rev, lease, header, .. } = place;
    Ok(CampaignResponse { header: Some(header), leader: Some(LeaderKey { name, key, rev, lease }) })
}

/// Says something else of the leader.
pub async fn proclaim(call: &Call, request: ProclaimRequest) -> Result<ProclaimResponse, Status> {
    let LeaderKey { key, rev, lease, .. } = request.leader.ok_or_else(|| unknown(NO_LEADER_KEY))?;
    let header = say(call, &key, rev, lease, request.value).await?;
    Ok(ProclaimResponse { header: Some(header) })
}

async fn say(call: &Call, key: &Bytes, rev: i64, lease: i64, value: Bytes) -> Result<ResponseHeader, Status> {
    let put = PutRequest { key: key.clone(), value, lease, ..PutRequest::default() };
    let (header, is_leader) = if_created_at(call, key, rev, RequestOpRequest::RequestPut(put)).await?;
    if is_leader { Ok(header) } else { Err(unknown(NOT_LEADER)) }
}

/// Does something to a key of this revision. Whether there was one.
async fn if_created_at(
    call: &Call,
    key: &Bytes,
    rev: i64,
    what: RequestOpRequest,
) -> Result<(ResponseHeader, bool), Status> {
    let request = TxnRequest {
        compare: vec![contend::created_at(key, rev)],
        success: vec![RequestOp { request: Some(what) }],
        failure: Vec::new(),
    };
    let done = kv::txn(&contend::inner(call), request).await.map_err(contend::without_code)?;
    Ok((done.header.unwrap_or_default(), done.succeeded))
}

/// Leads no longer.
pub async fn resign(call: &Call, request: ResignRequest) -> Result<ResignResponse, Status> {
    let LeaderKey { key, rev, .. } = request.leader.ok_or_else(|| unknown(NO_LEADER_KEY))?;
    let delete = DeleteRangeRequest { key: key.clone(), ..DeleteRangeRequest::default() };
    // A leader that is gone already has resigned.
    let (header, _) = if_created_at(call, &key, rev, RequestOpRequest::RequestDeleteRange(delete)).await?;
    Ok(ResignResponse { header: Some(header) })
}

/// Tells who leads.
pub async fn leader(call: &Call, request: LeaderRequest) -> Result<LeaderResponse, Status> {
    match first(call, &request.name).await? {
        (header, Some(leader)) => Ok(LeaderResponse { header: Some(header), kv: Some(leader) }),
        (_, None) => Err(unknown(NO_LEADER)),
    }
}

async fn first(call: &Call, name: &[u8]) -> Result<(ResponseHeader, Option<KeyValue>), Status> {
    let found = kv::range(&contend::inner(call), contend::line(name)).await.map_err(contend::without_code)?;
    Ok((found.header.unwrap_or_default(), found.kvs.into_iter().next()))
}

/// Tells who leads, and of each change.
pub fn observe(call: Arc<Call>, mut requests: Flow<LeaderRequest>, stop: CancellationToken) -> Flow<LeaderResponse> {
    let begun = async move {
        let request = requests.next().await.unwrap_or_else(|| Ok(LeaderRequest::default()))?;
        Ok::<_, Status>(futures::stream::try_unfold(Observer::new(call, request.name), |mut observer| async {
            let next = observer.next().await?;
            Ok::<_, Status>(next.map(|leader| (leader, observer)))
        }))
    };
    begun.try_flatten_stream().take_until(stop.cancelled_owned()).boxed()
}

/// Somebody who wants to know who leads.
struct Observer {
    call: Arc<Call>,
    name: Bytes,
    watched: Option<Watched>,
    told: VecDeque<LeaderResponse>,
}

/// What is watched.
struct Watched {
    /// Whether it is the key of who leads; else it is those of all who might, and nobody does.
    is_of_leader: bool,
    responses: Flow<WatchResponse>,
}

impl Observer {
    fn new(call: Arc<Call>, name: Bytes) -> Self {
        Self { call, name, watched: None, told: VecDeque::new() }
    }

    /// The next leader, or what it says of itself next; `None` once nothing more comes.
    async fn next(&mut self) -> Result<Option<LeaderResponse>, Status> {
        loop {
            if let Some(leader) = self.told.pop_front() {
                return Ok(Some(leader));
            }
            let Some(watched) = &mut self.watched else {
                self.begin().await?;
                continue;
            };
            let is_of_leader = watched.is_of_leader;
            let Some(response) = watched.responses.next().await else { return Ok(None) };
            self.take(response?, is_of_leader);
        }
    }

    /// Finds who leads, and watches from there on.
    async fn begin(&mut self) -> Result<(), Status> {
        let (header, leader) = first(&self.call, &self.name).await?;
        match leader {
            Some(leader) => self.tell(header, leader),
            None => {
                let RangeRequest { key, range_end, .. } = contend::line(&self.name);
                let start_revision = header.revision + 1;
                let request = WatchCreateRequest { key, range_end, start_revision, ..WatchCreateRequest::default() };
                self.watched = Some(Watched { is_of_leader: false, responses: self.watch(request) });
            }
        }
        Ok(())
    }

    /// Tells of a leader, and watches what it says of itself next.
    fn tell(&mut self, header: ResponseHeader, leader: KeyValue) {
        let (key, start_revision) = (leader.key.clone(), leader.mod_revision + 1);
        let request = WatchCreateRequest { key, start_revision, ..WatchCreateRequest::default() };
        self.watched = Some(Watched { is_of_leader: true, responses: self.watch(request) });
        self.told.push_back(LeaderResponse { header: Some(header), kv: Some(leader) });
    }

    fn watch(&self, request: WatchCreateRequest) -> Flow<WatchResponse> {
        watch::open_one(Arc::clone(&self.call), request)
    }

    fn take(&mut self, response: WatchResponse, is_of_leader: bool) {
        let header = response.header.unwrap_or_default();
        for event in response.events {
            let is_gone = event.r#type == EventEventType::Delete as i32;
            match event.kv.filter(|_| !is_gone) {
                Some(kv) if is_of_leader => {
                    self.told.push_back(LeaderResponse { header: Some(header.clone()), kv: Some(kv) });
                }
                // The first to come leads; what comes after it is seen by the watch of its key.
                Some(kv) => {
                    self.tell(header, kv);
                    break;
                }
                None if is_of_leader => {
                    self.watched = None;
                    break;
                }
                None => {}
            }
        }
    }
}

fn unknown(text: &str) -> Status {
    Status::new(Code::Unknown, text)
}
