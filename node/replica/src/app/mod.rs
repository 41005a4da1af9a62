//! The operations of a node for its clients, without HTTP.
//!
//! Owns how the services of a node are put together: the write path, the read path, sessions, turns to lock entries, the members, the room
//! for more and the upkeep. Never touches RocksDB or a socket itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quorate_machine::level::Level;
use quorate_machine::types::WallMillis;
use quorate_node_core::backend::{AppError, LeaderHint};
use quorate_node_core::slow::SlowLog;
use quorate_node_core::tls::PortTls;
use quorate_store::raft::{NodeId, TypeConfig};
use quorate_store::state::StateReader;

use crate::peer::gate::Halt;
use crate::peer::message::Lack;

use backup::Backups;
use candidacy::Candidacy;
use integrity::Integrity;
use lock_turn::LockTurns;
use members::Members;
use members::admission::JoinPolicy;
use quota::Quota;
use reads::ReadPath;
use renewals::Renewals;
use sessions::Sessions;
use snapshot::Snapshots;
use space::DiskSpace;
use upkeep::Upkeep;
use wall::WallClocks;
use write::WritePath;

pub use quorate_store::adapters::state_machine::{SnapshotRequest, StateMachine};

pub mod archive;
mod awake;
mod backend;
pub mod backup;
pub mod backup_schedule;
pub mod bootstrap;
pub mod candidacy;
mod clock;
mod dear;
pub mod integrity;
mod join_list;
mod lanes;
pub mod last_room;
pub mod levels;
mod lock_queues;
mod lock_turn;
pub mod log_trimmer;
pub mod maintenance;
pub mod members;
mod need;
mod pace;
mod peers;
mod proposer;
pub mod quota;
mod read_index;
mod reads;
pub mod renewals;
mod request_table;
pub mod room;
pub mod samples;
pub mod service;
mod sessions;
pub mod snapshot;
mod space;
mod status;
pub mod transfer;
mod upkeep;
mod view;
mod waiting;
pub mod wall;
mod write;

pub use awake::Awake;
pub use clock::Clock;
pub use lock_queues::LockQueues;
pub use lock_turn::Turn;
pub use peers::{Peers, QueryError};
pub use proposer::{Proposer, ProposerParts, Urgency};
pub use read_index::ReadIndex;
pub use view::{Leadership, View};
pub use waiting::WaitingCount;

/// The Raft group as every part of the node uses it.
pub type Raft = openraft::Raft<TypeConfig, StateMachine>;

/// The error of a node that lacks room.
fn no_space(node_id: NodeId, lack: Lack) -> AppError {
    AppError::NoSpace(match lack {
        Lack::Disk { free, needed } => format!(
            "the data disk of node {node_id} has {free} bytes free, writes need {needed}; free some space or remove keys"
        ),
        Lack::Quota { used, quota } => format!(
            "{used} bytes are stored and the quota of node {node_id} is {quota}; remove keys, or raise --quota-bytes on all nodes"
        ),
        Lack::Members { full } => room::said(&full),
    })
}

/// The node's services. Cheap to clone.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

/// The parts of a node, as its start hands them over.
pub struct AppParts {
    /// The Raft group.
    pub raft: Raft,
    /// The state that reads see.
    pub state: StateReader,
    /// The way of commands into the log.
    pub proposer: Proposer,
    /// Freshness of reads.
    pub read_index: ReadIndex,
    /// Leadership, as far as this node knows.
    pub view: Arc<View>,
    /// The other members.
    pub peers: Arc<Peers>,
    /// Ids of this node, its disk and its cluster.
    pub identity: Arc<arc_swap::ArcSwap<quorate_store::identity::Identity>>,
    /// Renewals of sessions.
    pub renewals: Renewals,
    /// The count of requests that wait for something to change.
    pub waiting: WaitingCount,
    /// Queues for locks of entries, while this node leads.
    pub lock_queues: LockQueues,
    /// Whether newcomers need an invitation, while this node leads.
    pub join_policy: JoinPolicy,
    /// Free space on the data disk.
    pub space: Arc<quorate_store::space::SpaceGuard>,
    /// The highest feature level that this node agrees to.
    pub level_known: Level,
    /// The log of forwarded writes that take too long.
    pub slow: SlowLog,
    /// The bound of what the cluster may hold.
    pub quota: Quota,
    /// Whether the state is trusted.
    pub integrity: Arc<Integrity>,
    /// Whether this node stands for election.
    pub candidacy: Arc<Candidacy>,
    /// The switch that halts the taking of entries.
    pub halt: Halt,
    /// The members' wall clocks, as far as they are known.
    pub wall_clocks: Arc<WallClocks>,
    /// The request for a snapshot out of turn.
    pub snapshot_request: SnapshotRequest,
    /// The reach of the archive, where there is one.
    pub archive: Option<Arc<archive::ArchiveLedger>>,
    /// Numbers of this node's backups.
    pub backups: Arc<backup::BackupLedger>,
    /// TLS of its ports; empty where both are plain.
    pub tls: Vec<Arc<PortTls>>,
    /// Whether the state has everything that this node showed before it was started.
    pub is_recovered: bool,
}

/// The services of a node.
struct Inner {
    raft: Raft,
    write: Arc<WritePath>,
    reads: Arc<ReadPath>,
    sessions: Sessions,
    locks: Arc<LockTurns>,
    members: Members,
    upkeep: Upkeep,
    space: Arc<DiskSpace>,
    integrity: Arc<Integrity>,
    candidacy: Arc<Candidacy>,
    halt: Halt,
    wall_clocks: Arc<WallClocks>,
    waiting: WaitingCount,
    /// Set at the start of a graceful stop.
    stopping: AtomicBool,
}

impl App {
    /// Puts the parts together.
    pub fn new(parts: AppParts) -> Self {
        let AppParts { raft, state, view, peers, identity, integrity, waiting, .. } = parts;
        let node_id = identity.load().node_id;
        let space = Arc::new(DiskSpace::new(node_id, parts.space, parts.quota, state.clone()));
        let reads = Arc::new(ReadPath::new(
            state.clone(),
            parts.read_index,
            Arc::clone(&view),
            Arc::clone(&integrity),
            parts.is_recovered,
        ));
        let write = Arc::new(WritePath {
            proposer: parts.proposer,
            view: Arc::clone(&view),
            reads: Arc::clone(&reads),
            space: Arc::clone(&space),
            slow: parts.slow,
        });
        let locks = Arc::new(LockTurns::new(
            node_id,
            state.clone(),
            Arc::clone(&view),
            Arc::clone(&peers),
            Arc::clone(&integrity),
            waiting.clone(),
            parts.lock_queues,
        ));
        let upkeep = Upkeep {
            snapshots: Snapshots {
                raft: raft.clone(),
                state: state.clone(),
                space: Arc::clone(&space),
                request: parts.snapshot_request,
            },
            backups: Backups { state, identity: Arc::clone(&identity), ledger: parts.backups },
            archive: parts.archive,
            tls: parts.tls,
            level_known: parts.level_known,
        };
        let sessions = Sessions { renewals: parts.renewals, reads: Arc::clone(&reads) };
        let members = Members::new(identity, view, peers, parts.join_policy);
        let (candidacy, halt, wall_clocks) = (parts.candidacy, parts.halt, parts.wall_clocks);
        let stopping = AtomicBool::new(false);
        Self {
            inner: Arc::new(Inner {
                raft,
                write,
                reads,
                sessions,
                locks,
                members,
                upkeep,
                space,
                integrity,
                candidacy,
                halt,
                wall_clocks,
                waiting,
                stopping,
            }),
        }
    }

    /// The Raft group.
    pub fn raft(&self) -> &Raft {
        &self.inner.raft
    }

    /// The other members.
    pub fn peers(&self) -> &Peers {
        self.members().peers()
    }

    /// The members' wall clocks, as far as they are known.
    pub fn wall_clocks(&self) -> &WallClocks {
        &self.inner.wall_clocks
    }

    /// The cluster's wall clock as far as this node knows: what it would go on from if it led.
    pub fn wall_now(&self) -> WallMillis {
        self.inner.wall_clocks.now(&wall::voters(&self.inner.raft), self.state().wall_by_now())
    }

    /// This node's number.
    pub fn node_id(&self) -> NodeId {
        self.members().node_id()
    }

    /// The write path.
    pub fn writes(&self) -> &Arc<WritePath> {
        &self.inner.write
    }

    /// The turns of callers that wait to lock entries.
    pub fn lock_turns(&self) -> &Arc<LockTurns> {
        &self.inner.locks
    }

    /// Ids of this node, the other members, and the leader among them.
    fn members(&self) -> &Members {
        &self.inner.members
    }

    /// The switch that halts the taking of entries.
    fn halt(&self) -> &Halt {
        &self.inner.halt
    }

    /// The upkeep of this node.
    fn upkeep(&self) -> &Upkeep {
        &self.inner.upkeep
    }

    /// Backups of this node's state, and their numbers.
    pub fn backups(&self) -> &Backups {
        &self.upkeep().backups
    }

    /// The room for more.
    pub fn space(&self) -> &DiskSpace {
        &self.inner.space
    }

    /// The read path.
    pub fn reads(&self) -> &ReadPath {
        &self.inner.reads
    }

    /// Why this node does not trust its state, or waits to know whether it may, if so: it serves nobody then.
    pub fn quarantine(&self) -> Option<String> {
        self.integrity().why_not_served()
    }

    /// Whether and when it stands for election.
    pub fn candidacy(&self) -> &Candidacy {
        &self.inner.candidacy
    }

    /// Whether this node trusts its state.
    pub fn integrity(&self) -> &Integrity {
        &self.inner.integrity
    }

    /// How far the archive is, where there is one.
    pub fn archive(&self) -> Option<&Arc<archive::ArchiveLedger>> {
        self.upkeep().archive.as_ref()
    }

    /// The state to read from, once it is as fresh as it has to be.
    pub fn state(&self) -> &StateReader {
        self.reads().state()
    }

    /// Term and leader for the response headers; never blocks, a few nanoseconds.
    pub fn leader_hint(&self) -> LeaderHint {
        let leadership = self.members().view().now();
        LeaderHint { term: leadership.term, leader_id: leadership.leader }
    }

    /// Why this node should not be sent traffic, if so (cheap part of `/readyz`; the other part is a real read).
    pub fn unready_reason(&self) -> Option<String> {
        if self.inner.stopping.load(Ordering::Relaxed) {
            return Some("the node is stopping".into());
        }
        self.reads().unready_reason()
    }

    /// From now on the node tells load balancers to go elsewhere.
    pub fn begin_stop(&self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether the node is about to end: what goes on beside it should end first.
    pub fn is_stopping(&self) -> bool {
        self.inner.stopping.load(Ordering::Relaxed)
    }
}
