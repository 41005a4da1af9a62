//! Nodes for the tests: a real server and a real client round a Raft and a service that do as told.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, StreamAppendError, StreamAppendResult, TransferLeaderError, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use parking_lot::Mutex;
use quorate_machine::codec::FORMAT_VERSION;
use quorate_machine::types::NodeDisk;
use quorate_machine::versions::Versions;
use quorate_node_core::tls::PortTls;
use quorate_node_replica::peer::handshake::PROTOCOL;
use quorate_node_replica::peer::message::{PeerRequest, PeerResponse};
use quorate_node_replica::peer::raft_rpc::{Answering, Appended, Appends, BegunIntake};
use quorate_node_replica::peer::{
    Levels, LocalPeer, MembershipStatus, PeerInfo, PeerNet, PeerService, PeerTimings, RaftCell, RaftRpc, serve,
};
use quorate_store::identity::Identity;
use quorate_store::raft::wire::{LogIdRecord, MemberRecord, VoteRecord};
use quorate_store::raft::{EncodedBatch, LogEntry, LogId, Member, TypeConfig, Vote};
use quorate_store::state::snapshot::SnapshotManifest;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub type Request = AppendEntriesRequest<TypeConfig>;
pub const CLUSTER: Option<u128> = Some(77);

pub fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

pub fn incarnation(id: u64) -> u128 {
    1_000 + u128::from(id)
}

pub fn log_id(index: u64) -> LogId {
    LogIdRecord { term: 3, node: 1, index }.into()
}

pub fn leader_vote() -> Vote {
    VoteRecord { term: 3, node: 1, committed: true }.into()
}

pub fn entry(index: u64, bytes: usize) -> LogEntry {
    let payload = EncodedBatch(vec![index as u8; bytes].into());
    LogEntry { log_id: log_id(index), payload: openraft::EntryPayload::Normal(payload) }
}

/// A request with the entries `from..to` of `bytes` each.
pub fn request(from: u64, to: u64, bytes: usize) -> Request {
    AppendEntriesRequest {
        vote: leader_vote(),
        prev_log_id: Some(log_id(from - 1)),
        entries: (from..to).map(|index| entry(index, bytes)).collect(),
        leader_commit: Some(log_id(1)),
    }
}

pub fn last_of(request: &Request) -> Option<LogId> {
    request.entries.last().map(|entry| entry.log_id).or(request.prev_log_id)
}

/// As long as no test waits.
pub fn option() -> RPCOption {
    RPCOption::new(Duration::from_secs(4))
}

type Handler = Box<dyn Fn(PeerInfo, PeerRequest) -> BoxFuture<'static, PeerResponse> + Send + Sync>;

pub struct FakeService {
    pub handler: Mutex<Handler>,
    pub known: Mutex<HashMap<u64, u128>>,
    /// What nodes are that are no members.
    pub statuses: watch::Sender<HashMap<u64, MembershipStatus>>,
    /// Whom others know.
    pub confirmed: Mutex<Vec<u64>>,
}

impl FakeService {
    pub fn on_request<F>(&self, handler: F)
    where
        F: Fn(PeerInfo, PeerRequest) -> BoxFuture<'static, PeerResponse> + Send + Sync + 'static,
    {
        *self.handler.lock() = Box::new(handler);
    }
}

impl PeerService for FakeService {
    fn handle(&self, from: PeerInfo, request: PeerRequest) -> BoxFuture<'static, PeerResponse> {
        (self.handler.lock())(from, request)
    }

    fn known_incarnation(&self, node_id: u64) -> Option<u128> {
        self.known.lock().get(&node_id).copied()
    }

    fn membership_status(&self, peer: NodeDisk) -> MembershipStatus {
        self.statuses.borrow().get(&peer.node_id).copied().unwrap_or(MembershipStatus::Member)
    }

    fn confirm_member(&self, peer: NodeDisk) -> BoxFuture<'static, bool> {
        let is_known = self.confirmed.lock().contains(&peer.node_id);
        async move { is_known }.boxed()
    }

    fn left(&self, peer: NodeDisk) -> BoxFuture<'static, ()> {
        let mut statuses = self.statuses.subscribe();
        let was_there = self.membership_status(peer) == MembershipStatus::Member;
        async move {
            let has_left =
                |all: &HashMap<u64, MembershipStatus>| all.get(&peer.node_id) == Some(&MembershipStatus::Removed);
            if !was_there || statuses.wait_for(has_left).await.is_err() {
                std::future::pending().await
            }
        }
        .boxed()
    }
}

type OpenIntake = Box<dyn Fn(SnapshotManifest) -> BegunIntake + Send + Sync>;

/// Acknowledges each append request once `gate` has a permit for it.
pub struct FakeRaft {
    pub gate: Arc<Semaphore>,
    pub seen: Arc<watch::Sender<Vec<Request>>>,
    /// Streams whose requests ended or were dropped.
    pub streams_over: Arc<watch::Sender<usize>>,
    pub conflict_after: Arc<Mutex<Option<u64>>>,
    pub vote: Mutex<Vote>,
    pub connected: watch::Sender<Vec<u64>>,
    pub intake: Mutex<Option<OpenIntake>>,
}

/// Says when it is dropped.
struct Farewell(Arc<watch::Sender<usize>>);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

impl RaftRpc for FakeRaft {
    fn append(&self, request: Request) -> Answering<StreamAppendResult<TypeConfig>> {
        let mut answers = self.stream_append(stream::iter([request]).boxed());
        async move { answers.next().await.expect("each request is answered") }.boxed()
    }

    fn stream_append(&self, requests: Appends) -> Appended {
        let (gate, seen) = (Arc::clone(&self.gate), Arc::clone(&self.seen));
        let conflict_after = Arc::clone(&self.conflict_after);
        let farewell = Farewell(Arc::clone(&self.streams_over));
        let state = Some((requests, farewell));
        stream::unfold(state, move |state| {
            let (gate, seen, conflict_after) = (Arc::clone(&gate), Arc::clone(&seen), Arc::clone(&conflict_after));
            async move {
                let (mut requests, farewell) = state?;
                let request = requests.next().await?;
                let matching = last_of(&request);
                let prev = request.prev_log_id;
                seen.send_modify(|seen| seen.push(request));
                gate.acquire().await.unwrap().forget();
                let conflict = conflict_after.lock().is_some_and(|after| matching.is_some_and(|at| at.index > after));
                if conflict {
                    return Some((Ok(Err(StreamAppendError::Conflict(prev.unwrap()))), None));
                }
                Some((Ok(Ok(matching)), Some((requests, farewell))))
            }
        })
        .boxed()
    }

    fn vote(&self, request: VoteRequest<TypeConfig>) -> Answering<VoteResponse<TypeConfig>> {
        async move { Ok(VoteResponse::new(request.vote, request.last_log_id, true)) }.boxed()
    }

    fn pre_vote(&self, request: VoteRequest<TypeConfig>) -> Answering<VoteResponse<TypeConfig>> {
        async move { Ok(VoteResponse::new(request.vote, None, false)) }.boxed()
    }

    fn transfer_leader(
        &self,
        request: TransferLeaderRequest<TypeConfig>,
    ) -> Answering<TransferLeaderResponse<TypeConfig>> {
        let expected = request.last_log_id().copied();
        async move { Ok(Err(TransferLeaderError::LogNotFlushed { expected, actual: None })) }.boxed()
    }

    fn current_vote(&self) -> Vote {
        *self.vote.lock()
    }

    fn receive_snapshot(&self, _state_dir: &Path, manifest: SnapshotManifest, _vote: Vote) -> BegunIntake {
        let intake = self.intake.lock();
        let intake = intake.as_ref().ok_or_else(|| io::Error::other("no snapshot was expected"))?;
        intake(manifest)
    }

    fn on_peer_connected(&self, node: u64) -> BoxFuture<'static, ()> {
        self.connected.send_modify(|connected| connected.push(node));
        async {}.boxed()
    }
}

pub struct Node {
    pub id: u64,
    pub net: PeerNet,
    pub addr: String,
    pub identity: Arc<ArcSwap<Identity>>,
    pub raft: Arc<FakeRaft>,
    pub service: Arc<FakeService>,
    pub shutdown: CancellationToken,
    pub serving: JoinHandle<()>,
}

pub struct Setup {
    pub id: u64,
    pub cluster: Option<u128>,
    pub timings: PeerTimings,
    pub with_raft: bool,
    pub format_version: u8,
    /// Of the protocol.
    pub protocol: Versions,
    /// Feature levels known and reached.
    pub levels: (u32, u32),
    /// Whether its state may be given to others.
    pub trusts_state: bool,
    pub tls: Option<Arc<PortTls>>,
}

impl Setup {
    pub fn new(id: u64) -> Self {
        Self {
            id,
            cluster: CLUSTER,
            timings: PeerTimings::new(500, 3_000, 4_000),
            with_raft: true,
            format_version: FORMAT_VERSION,
            protocol: PROTOCOL,
            levels: (1, 1),
            trusts_state: true,
            tls: None,
        }
    }

    pub async fn start(self) -> Node {
        let (listener, addr) = bound().await;
        let identity = Identity { cluster_id: self.cluster, node_id: self.id, incarnation: incarnation(self.id) };
        let identity = Arc::new(ArcSwap::from_pointee(identity));
        let member =
            MemberRecord { peer_addr: addr.clone(), client_addr: String::new(), incarnation: incarnation(self.id) };
        let (known, reached) = self.levels;
        let levels = Levels { known, reached: Arc::new(move || reached) };
        let local = LocalPeer {
            identity: Arc::clone(&identity),
            member,
            protocol: self.protocol,
            format_version: self.format_version,
            levels,
            trusts_state: Arc::new(move || self.trusts_state),
        };
        let net = PeerNet::new(local, self.timings, self.tls);
        let raft = Arc::new(FakeRaft {
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            seen: Arc::new(watch::Sender::new(Vec::new())),
            streams_over: Arc::new(watch::Sender::new(0)),
            conflict_after: Arc::default(),
            vote: Mutex::new(leader_vote()),
            connected: watch::Sender::new(Vec::new()),
            intake: Mutex::new(None),
        });
        let service = Arc::new(FakeService {
            handler: Mutex::new(Box::new(|_, _| async { PeerResponse::Done }.boxed())),
            known: Mutex::default(),
            statuses: watch::channel(HashMap::new()).0,
            confirmed: Mutex::default(),
        });
        let cell: RaftCell = Arc::new(OnceLock::new());
        if self.with_raft {
            assert!(cell.set(Arc::clone(&raft) as Arc<dyn RaftRpc>).is_ok());
        }
        let shutdown = CancellationToken::new();
        let served: Arc<dyn PeerService> = Arc::clone(&service) as _;
        let serving = tokio::spawn(serve(listener, net.clone(), cell, served, "unused".into(), shutdown.clone()));
        Node { id: self.id, net, addr, identity, raft, service, shutdown, serving }
    }
}

/// The port of a server of the test's own, and its address.
pub async fn bound() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    (listener, addr)
}

pub async fn node(id: u64) -> Node {
    Setup::new(id).start().await
}

impl Node {
    pub fn member(&self) -> Member {
        Member { peer_addr: self.addr.clone(), client_addr: String::new(), incarnation: incarnation(self.id) }
    }

    /// Has become part of the cluster.
    pub fn adopt(&self) {
        self.identity.store(Identity { cluster_id: CLUSTER, ..self.identity.load().as_ref().clone() }.into());
    }

    /// Takes all permits, so that requests stay unanswered until some are added.
    pub fn close_gate(&self) {
        self.raft.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        self.serving.await.unwrap();
    }
}
