//! A running node: the order in which its parts start and stop.
//!
//! Owns that order and its reasons. Never does a part's work.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures::future::OptionFuture;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::Fatal;
use openraft::storage::{RaftLogReader, RaftLogStorage};
use quorate_machine::machine::Bounds;
use quorate_machine::{codec, level};
use quorate_node_core::connection::door::Door;
use quorate_node_core::gateway::api::{Api, ApiSettings};
use quorate_node_core::gateway::auth::audit::AuditFile;
use quorate_node_core::gateway::auth::authenticator::AuthSettings;
use quorate_node_core::gateway::auth::jwt::JwtVerifier;
use quorate_node_core::gateway::auth::root::RootToken;
use quorate_node_core::logging;
use quorate_node_core::metrics::Metrics;
use quorate_node_core::millis::{millis, wall_now};
use quorate_node_core::net::{Listener, Network, Tcp};
use quorate_node_core::slow::SlowLog;
use quorate_node_core::tls::reload::{self, TlsSamples};
use quorate_node_core::traces::{TraceCounts, Traces};
use quorate_node_core::unix_socket::UnixSocket;
use quorate_node_port::{ServeSettings, route_templates, serve};
use quorate_node_replica::app::archive::{self, ArchiveLedger, ArchiveSamples};
use quorate_node_replica::app::backup::{BackupLedger, BackupSamples};
use quorate_node_replica::app::bootstrap::{self, NoMember};
use quorate_node_replica::app::candidacy::{Candidacy, Timing};
use quorate_node_replica::app::integrity::{self, Integrity};
use quorate_node_replica::app::log_trimmer::LogBounds;
use quorate_node_replica::app::maintenance::Retention;
use quorate_node_replica::app::quota::Quota;
use quorate_node_replica::app::renewals::{self, Renewals};
use quorate_node_replica::app::samples::{NodeSamples, count_elections};
use quorate_node_replica::app::service::{Service, ServiceHandle};
use quorate_node_replica::app::wall::{self, WallClocks};
use quorate_node_replica::app::{
    App, AppParts, Awake, Clock, LockQueues, Peers, Proposer, ProposerParts, Raft, ReadIndex, StateMachine, View,
    WaitingCount, backup_schedule, levels, log_trimmer, maintenance, members, room,
};
use quorate_node_replica::peer::gate::{Gate, Halt};
use quorate_node_replica::peer::{self, Levels, LocalPeer, PeerNet, RaftRpc};
use quorate_store::adapters::start;
use quorate_store::identity::{self, Identity};
use quorate_store::log::{FatalHook, LogOptions, LogStore};
use quorate_store::raft::wire::MemberRecord;
use quorate_store::space::{RoomProbe, SpaceGuard};
use quorate_store::state::{StateOptions, StateReader};
use quorate_store::{clean_stop, offline};
use quorate_threads::{background, watchdog};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::config::{Auth, ClientSocket, Config};
use crate::node_tls::NodeTls;
use crate::raft_config;

/// Most connections at the port for metrics and administration.
const ADMIN_CONNECTIONS_MAX: usize = 256;
/// How often the node looks whether openraft still runs.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often the node looks whether its ballast file can be made again.
const BALLAST_EVERY: Duration = Duration::from_secs(10);
/// How long a graceful stop waits for another node to lead.
const HAND_OVER_MAX: Duration = Duration::from_millis(2_000);
/// Free bytes without which a node does not start, where it keeps as many free: half of what the ballast gives to a start on a full disk.
const START_FREE_BYTES: u64 = 32 << 20;
/// How often a start that waits for room looks for it.
const LOOK_FOR_ROOM_EVERY: Duration = Duration::from_secs(1);
/// And how often it says so.
const TELL_OF_ROOM_EVERY: Duration = Duration::from_secs(60);

/// How long a stop waits for the disk to take the last lines of the audit log.
const AUDIT_FLUSH_MAX: Duration = Duration::from_secs(2);

/// Why a node did not start or had to stop. A sentence for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ServerError(pub String);

impl ServerError {
    fn of(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Why a node ended that nobody stopped. A sentence for people.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// It did not start or could not go on.
    #[error(transparent)]
    Failed(#[from] ServerError),
    /// Its storage cannot be trusted or written.
    #[error(transparent)]
    Storage(ServerError),
    /// Its disk is full.
    #[error(transparent)]
    NoRoom(ServerError),
    /// It is no member of its cluster any more.
    #[error("{0}")]
    Removed(String),
    /// It was refused before it took part in any cluster, and its data directory is that of the next of its ids now: to be started anew.
    #[error("{0}")]
    Renumbered(String),
}

impl Ended {
    /// Why it did not start. A full disk has a variant of its own: it passes.
    fn of_start(error: ServerError) -> Self {
        if is_of_full_disk(&error.0) { Self::NoRoom(error) } else { Self::Failed(error) }
    }

    /// Why its storage stopped it.
    fn of_storage(error: ServerError) -> Self {
        if is_of_full_disk(&error.0) { Self::NoRoom(error) } else { Self::Storage(error) }
    }
}

/// Whether an error comes of a full disk. Nothing but the text is left of what stopped Raft or RocksDB, and both repeat in it what the system
/// said.
fn is_of_full_disk(error: &str) -> bool {
    error.contains("No space left on device")
}

/// What a node stands in.
pub struct Surroundings {
    /// Where its connections come from.
    pub network: Arc<dyn Network>,
    /// What its log is kept on.
    pub log: LogOptions,
    /// How much room its data disk has, where that is not to be asked of the system.
    pub room: Option<RoomProbe>,
    /// How long applied entries may stay out of the durable state.
    pub flush_every: Duration,
    /// What entries are applied within: the same on all nodes of a cluster, and always.
    pub bounds: Bounds,
    /// Runtimes that serve connections of clients beside the one that the node runs in.
    pub client_threads: Vec<Handle>,
    /// Called at the first fault of the log, after which the node must not say another word.
    pub on_fatal: FatalHook,
    /// Shown the node's parts once it has started.
    pub on_started: OnStarted,
}

/// Who is shown the parts of a node.
pub type OnStarted = Box<dyn FnOnce(&App, &LogStore) + Send>;

impl Default for Surroundings {
    /// Those of a process of its own.
    fn default() -> Self {
        Self {
            network: Arc::new(Tcp),
            log: LogOptions::default(),
            room: None,
            flush_every: StateOptions::new(0).flush_every,
            bounds: Bounds::default(),
            client_threads: Vec::new(),
            on_fatal: Arc::new(end_process),
            on_started: Box::new(|_, _| {}),
        }
    }
}

/// Runs a node until `stop` is cancelled (a graceful end), or it has to end with an error.
pub async fn run(config: Config, stop: CancellationToken) -> Result<(), Ended> {
    run_in(Surroundings::default(), config, stop).await
}

/// [`run`], in these surroundings.
pub async fn run_in(surroundings: Surroundings, config: Config, stop: CancellationToken) -> Result<(), Ended> {
    // Ports first: a taken port is the most frequent mistake and must not cost a recovery of the databases.
    let mut listeners = Listeners::open(&surroundings, &config)?;
    let data_dir = config.data_dir.open().map_err(|error| ServerError(format!("the data directory: {error}")))?;
    let marked = Marked::open(&config, data_dir.path(), &surroundings).map_err(Ended::of_start)?;
    if !marked.has_room(&config) {
        // For hours, perhaps: a connection that the system takes and nobody serves keeps a client waiting, a refused one sends it on.
        drop(listeners);
        if !marked.get_room(&config, &stop).await {
            return Ok(());
        }
        listeners = Listeners::open(&surroundings, &config)?;
    }
    let opened = Opened::open(&config, data_dir.path(), &surroundings, marked).map_err(Ended::of_start)?;
    let network = Arc::clone(&surroundings.network);
    let node = Node::start(&config, data_dir.path(), opened, network, listeners).await.map_err(Ended::of_start)?;
    (surroundings.on_started)(&node.app, &node.log);
    let ended = tokio::select! {
        () = stop.cancelled() => Ok(()),
        ended = node.failed() => Err(ended),
        ended = node.become_member(&config) => Err(ended),
        reason = members::removed::told(&node.app, &config.join) => Err(Ended::Removed(reason)),
    };
    match &ended {
        Ok(()) => node.stop_gracefully().await,
        Err(error) => {
            tracing::error!(%error, "stopping");
            node.stop().await;
        }
    }
    match ended {
        Err(Ended::Renumbered(reason)) => Err(renumber(&config, data_dir.path(), reason)),
        ended => ended,
    }
}

/// Gives the data directory of a node that was refused to the next of its ids; after the last, a start begins with the first again.
fn renumber(config: &Config, data_dir: &Path, reason: String) -> Ended {
    let next = config.spare_node_ids.first().copied();
    if let Err(error) = identity::renumber(data_dir, next, rand::random()) {
        return ServerError(format!("{reason}; and no other node id can be tried: {error}")).into();
    }
    match next {
        Some(next) => {
            tracing::warn!(
                node_id = config.node_id,
                next,
                reason,
                "refused under this node id; going on under the next"
            );
            Ended::Renumbered(reason)
        }
        None => {
            ServerError(format!("{reason}. All spare node ids were refused, too: give more in --spare-node-ids")).into()
        }
    }
}

fn listen(network: &dyn Network, what: &str, addr: SocketAddr) -> Result<Listener, ServerError> {
    network.listen(addr).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AddrInUse => taken(what, addr),
            _ => error.to_string(),
        };
        ServerError(format!("cannot listen for {what}s at {addr}: {why}"))
    })
}

/// The system does not say who has a port. Where it gives that port to outgoing connections, one of them may.
fn taken(what: &str, addr: SocketAddr) -> String {
    let advice = format!("give this node a port of its own by --{what}-listen");
    match outgoing_ports().filter(|ports| ports.contains(&addr.port())) {
        Some(ports) => format!(
            "the address is in use: another process listens there, or an outgoing connection has the port, since this machine gives \
             ports {} to {} to those; end it, or {advice}, best outside of these",
            ports.start(),
            ports.end()
        ),
        None => format!(
            "the address is in use: another process listens there, perhaps a node that runs already; end it, or {advice}"
        ),
    }
}

fn outgoing_ports() -> Option<RangeInclusive<u16>> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ports = text.split_whitespace().map(str::parse::<u16>);
    Some(ports.next()?.ok()?..=ports.next()?.ok()?)
}

fn listen_at_socket(socket: &ClientSocket) -> Result<UnixSocket, ServerError> {
    let path = socket.path.display();
    UnixSocket::listen(&socket.path, socket.mode).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AddrInUse => {
                "it is in use: another process listens there; end it, or give this node a path of its own".into()
            }
            ErrorKind::NotFound => "its directory is not there".into(),
            _ => error.to_string(),
        };
        ServerError(format!("client_socket: cannot listen at {path}: {why}"))
    })
}

/// Where a node's connections come from.
struct Listeners {
    peers: Listener,
    clients: Listener,
    /// Runtimes that serve clients, too.
    client_threads: Vec<Handle>,
    socket: Option<UnixSocket>,
    admin: Option<Listener>,
}

impl Listeners {
    fn open(surroundings: &Surroundings, config: &Config) -> Result<Self, ServerError> {
        let network = &*surroundings.network;
        Ok(Self {
            clients: listen(network, "client", config.client_listen)?,
            socket: config.client_socket.as_ref().map(listen_at_socket).transpose()?,
            admin: config.admin.map(|admin| listen(network, "admin", admin.address)).transpose()?,
            peers: listen(network, "peer", config.peer_listen)?,
            client_threads: surroundings.client_threads.clone(),
        })
    }
}

/// A data directory that is this node's, before anything in it is opened.
struct Marked {
    marker: Identity,
    space: Arc<SpaceGuard>,
}

impl Marked {
    /// Identity first: is this our disk? Then its room.
    fn open(config: &Config, data_dir: &Path, surroundings: &Surroundings) -> Result<Self, ServerError> {
        let marker = identity::open(data_dir, config.node_id, rand::random()).map_err(ServerError::of)?;
        let (ballast, free_min) = (config.ballast_bytes, config.min_free_bytes);
        let space = match &surroundings.room {
            None => SpaceGuard::open(data_dir, ballast, free_min),
            Some(room) => SpaceGuard::open_with(data_dir, ballast, free_min, Arc::clone(room)),
        };
        Ok(Self { marker, space: Arc::new(space.map_err(ServerError::of)?) })
    }

    fn has_room(&self, config: &Config) -> bool {
        self.space.free() >= needed_to_start(config)
    }

    /// Waits until there is room for what a start writes: RocksDB does not even open on a full disk, and a supervisor gives a node that ends up
    /// after some tries. False where `stop` came first.
    async fn get_room(&self, config: &Config, stop: &CancellationToken) -> bool {
        let mut told = None::<Instant>;
        while !self.has_room(config) {
            if told.is_none_or(|told| told.elapsed() >= TELL_OF_ROOM_EVERY) {
                let (free, needed) = (self.space.free(), needed_to_start(config));
                tracing::error!(free, needed, "the disk of the data directory is full: the start waits for room");
                told = Some(Instant::now());
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(LOOK_FOR_ROOM_EVERY) => {}
            }
        }
        true
    }
}

fn needed_to_start(config: &Config) -> u64 {
    START_FREE_BYTES.min(config.min_free_bytes)
}

/// Everything on disk, opened.
struct Opened {
    identity: Arc<ArcSwap<Identity>>,
    space: Arc<SpaceGuard>,
    log: LogStore,
    machine: StateMachine,
    state: StateReader,
    /// Whether it shows all that was shown before it stopped.
    is_whole: bool,
}

impl Opened {
    /// First the log (may refuse), then the state, which may need the log's entries.
    fn open(
        config: &Config,
        data_dir: &Path,
        surroundings: &Surroundings,
        marked: Marked,
    ) -> Result<Self, ServerError> {
        let Marked { marker, space } = marked;
        let log = LogStore::open_with(data_dir, &marker, &surroundings.log, surroundings.on_fatal.clone());
        let log = log.map_err(ServerError::of)?;
        if offline::remove_beside_marker(data_dir).map_err(ServerError::of)? {
            tracing::info!("removed what a recovery left that did not come to its end");
        }
        let options = StateOptions {
            snapshot_entries_min: config.snapshot_every_entries,
            flush_every: surroundings.flush_every,
            bounds: surroundings.bounds,
            ..StateOptions::new(config.node_id)
        };
        let (machine, state) = StateMachine::open(data_dir, options).map_err(ServerError::of)?;
        start::reconcile(&log, &machine, &marker).map_err(ServerError::of)?;
        let is_whole = clean_stop::take(data_dir).map_err(ServerError::of)? == Some(state.position().index);
        let purger = log.clone();
        state.on_durable(Arc::new(move |index| purger.set_durable_state_index(index)));
        let identity = Arc::new(ArcSwap::from_pointee(marker));
        Ok(Self { identity, space, log, machine, state, is_whole })
    }
}

/// The first I/O error on the log ends the process at once: what was not acknowledged is unknown, and any further word of
/// this node could be a lie (a failed fsync marks pages clean).
fn end_process(error: &str) {
    tracing::error!(error, "the log cannot be written; the process ends");
    quorate_node_core::end_now(if is_of_full_disk(error) { crate::EXIT_NO_ROOM } else { crate::EXIT_STORAGE });
}

/// What this node says of feature levels to its peers.
fn levels_of(state: &StateReader) -> Levels {
    let state = state.clone();
    Levels { known: level::newest(), reached: Arc::new(move || state.applied().level) }
}

/// Lets the node stand for election from then on.
async fn stand_from(candidacy: Arc<Candidacy>, from: Instant) {
    tokio::time::sleep_until(from.into()).await;
    candidacy.begin();
}

/// Starts the work that a node does by itself, at its own pace. It ends with `tasks`.
fn keep_house(config: &Config, app: &App, parts: Arc<ProposerParts>, log: &LogStore, tasks: &mut JoinSet<()>) {
    let retention = Retention {
        keep_ms: millis(config.history_keep),
        keep_revisions: config.history_keep_revisions,
        bytes_max: config.history_bytes_max,
    };
    watchdog::spawn_in(tasks, keep_ballast(app.clone()));
    watchdog::spawn_in(tasks, integrity::run(app.clone()));
    watchdog::spawn_in(tasks, levels::run(parts.clone(), config.feature_level_max));
    watchdog::spawn_in(tasks, room::run(app.clone()));
    watchdog::spawn_in(tasks, wall::run(parts.self_id, parts.peers.clone(), parts.wall_clocks.clone()));
    watchdog::spawn_in(tasks, maintenance::run(parts.clone(), retention));
    watchdog::spawn_in(tasks, members::reconciler::run(app.clone(), config.replace_dead_after));
    if let Some(schedule) = config.backups.clone() {
        watchdog::spawn_in(tasks, backup_schedule::run(app.clone(), schedule));
    }
    if let (Some(settings), Some(ledger)) = (config.archive.clone(), app.archive()) {
        watchdog::spawn_in(tasks, archive::verify(app.clone(), settings.clone(), ledger.clone()));
        watchdog::spawn_in(tasks, archive::run(app.clone(), parts, log.reader(), settings, ledger.clone()));
    }
}

/// Traces, where they are configured.
fn traces_of(config: &Config, metrics: &Metrics) -> Result<Option<Arc<Traces>>, ServerError> {
    let counts = TraceCounts::default();
    metrics.add_source(counts.clone());
    let traces = config.otlp_endpoint.as_deref().map(|endpoint| {
        let traces = Traces::start(endpoint, config.trace_percent, config.trace_parents, config.node_id, &counts);
        traces.map(Arc::new).map_err(|reason| ServerError(format!("otlp_endpoint: {reason}")))
    });
    traces.transpose()
}

/// Raft, built and not running yet.
struct BuiltRaft {
    raft: Raft,
    /// Whether this node ever voted.
    took_part: bool,
    /// When it may vote again: whom it promised its vote before it ended is forgotten by then.
    votes_from: Instant,
}

impl BuiltRaft {
    async fn new(config: &Config, net: PeerNet, log: &LogStore, machine: StateMachine) -> Result<Self, ServerError> {
        let mut reader = log.clone().get_log_reader().await;
        let took_part = reader.read_vote().await.map_err(ServerError::of)?.is_some();
        let votes_from = Instant::now() + if took_part { config.election_max } else { Duration::ZERO };
        let raft_config = raft_config::build(config, took_part).map_err(ServerError::of)?;
        let raft = Raft::build(config.node_id, raft_config, net, log.clone(), machine).await;
        Ok(Self { raft: raft.map_err(ServerError::of)?, took_part, votes_from })
    }

    /// Lets Raft run, tells `peers` the membership that the log holds, and lets this node stand for election in its time. Returns
    /// whether the disk may be that of another cluster.
    async fn run(
        &self,
        config: &Config,
        peers: &Peers,
        candidacy: Arc<Candidacy>,
        tasks: &mut JoinSet<()>,
    ) -> Result<bool, ServerError> {
        self.raft.run();
        let effective = self.raft.with_raft_state(|state| state.membership_state.effective().clone()).await;
        let effective = effective.map_err(ServerError::of)?;
        peers.learn(effective.membership());
        if self.took_part {
            let is_alone = effective.membership().voter_ids().eq([config.node_id]);
            // Nodes that start together must not stand for election together.
            let spread = (config.election_max - config.election_min).mul_f64(rand::random());
            let from = if is_alone { Instant::now() } else { self.votes_from + spread };
            watchdog::spawn_in(tasks, stand_from(candidacy, from));
        }
        Ok(bootstrap::is_doubtful(config.node_id, effective.membership(), &config.join))
    }
}

struct Node {
    app: App,
    raft: Raft,
    service: Arc<Service>,
    log: LogStore,
    state: StateReader,
    /// The HTTP server; ends once it has drained.
    clients: JoinHandle<()>,
    tasks: JoinSet<()>,
    /// Ends what serves clients.
    clients_end: CancellationToken,
    /// Ends everything else.
    all_end: CancellationToken,
    traces: Option<Arc<Traces>>,
    audit: Option<Arc<AuditFile>>,
}

impl Node {
    async fn start(
        config: &Config,
        data_dir: &Path,
        opened: Opened,
        network: Arc<dyn Network>,
        listeners: Listeners,
    ) -> Result<Self, ServerError> {
        let Opened { identity, space, log, machine, state, is_whole } = opened;
        let tls = NodeTls::open(config).map_err(ServerError)?;
        let (clients_end, all_end) = (CancellationToken::new(), CancellationToken::new());
        let metrics = Metrics::new(&route_templates());
        let member = MemberRecord {
            peer_addr: config.peer_advertise.clone(),
            client_addr: config.client_advertise.clone(),
            incarnation: identity.load().incarnation,
        };
        let awake = Awake::start(config.busy_poll, config.worker_threads);
        let service = Arc::new(Service {
            data_dir: data_dir.to_path_buf(),
            identity: identity.clone(),
            member: member.clone(),
            level_known: config.feature_level_max,
            awake: awake.clone(),
            adopting: tokio::sync::Mutex::default(),
            join: config.join.clone(),
            app: OnceLock::new(),
        });
        let integrity = Arc::new(Integrity::open(data_dir.to_path_buf()).map_err(ServerError::of)?);
        let judged = Arc::clone(&integrity);
        let local = LocalPeer {
            identity: identity.clone(),
            member,
            protocol: peer::handshake::PROTOCOL,
            format_version: codec::FORMAT_VERSION,
            levels: levels_of(&state),
            trusts_state: Arc::new(move || !judged.is_quarantined()),
        };
        let net = PeerNet::over(network, local, config.peer_timings(), tls.peers.clone());

        let request = machine.snapshot_request();
        let halt = Halt::default();
        let built = BuiltRaft::new(config, net.clone(), &log, machine).await?;
        let raft = built.raft.clone();
        let (candidacy, ends) = Candidacy::new(raft.clone(), built.took_part);
        let candidacy = Arc::new(candidacy);

        let view = Arc::new(View::new(2 * config.election_max));
        let peers = Arc::new(Peers::new(net.clone()));
        let parts = Arc::new(ProposerParts {
            raft: raft.clone(),
            state: state.clone(),
            view: view.clone(),
            clock: Clock::new(config.lease()),
            wall_clocks: Arc::new(WallClocks::new(config.node_id)),
            peers: peers.clone(),
            self_id: config.node_id,
            metrics: metrics.clone(),
            awake,
        });
        let wall_clocks = parts.wall_clocks.clone();
        let proposer = Proposer::start(parts.clone());
        let read_index = ReadIndex::start(raft.clone(), view.clone(), peers.clone(), config.node_id, metrics.clone());
        let (renewals, renewal_queue) = Renewals::new();
        let (waiting, lock_queues) = (WaitingCount::default(), LockQueues::default());
        let backups = Arc::new(BackupLedger::default());
        metrics.add_source(BackupSamples(backups.clone()));
        let interval = config.archive.as_ref().map_or(Duration::ZERO, |settings| settings.interval);
        let ledger = Arc::new(ArchiveLedger::new(wall_now(), interval));
        metrics.add_source(ArchiveSamples { ledger: ledger.clone(), is_expected: config.archive.is_some() });
        let archive = config.archive.is_some().then_some(ledger);
        metrics.add_source(NodeSamples {
            log: log.clone(),
            state: state.clone(),
            net: net.clone(),
            backlog: proposer.backlog(),
            readers: read_index.readers(),
            space: space.clone(),
            renewals: renewals.counts(),
            waiting: waiting.clone(),
            lock_queues: lock_queues.clone(),
            view: view.clone(),
            integrity: integrity.clone(),
            wall_clocks: wall_clocks.clone(),
        });
        if let Some(log) = logging::current() {
            metrics.add_source(log);
        }
        let app = App::new(AppParts {
            raft: raft.clone(),
            state: state.clone(),
            proposer,
            read_index,
            view: view.clone(),
            peers: peers.clone(),
            identity,
            renewals,
            waiting,
            lock_queues,
            join_policy: config.join_policy,
            space,
            level_known: config.feature_level_max,
            slow: SlowLog::new(config.slow_request),
            quota: Quota { bytes_max: config.quota_bytes },
            integrity,
            candidacy: candidacy.clone(),
            halt: halt.clone(),
            wall_clocks,
            snapshot_request: request,
            archive,
            backups,
            tls: tls.ports(),
            is_recovered: is_whole,
        });

        let mut tasks = JoinSet::new();
        // Raft first: whoever asks this node from here on must find the membership that its log holds, or a wiped peer
        // could pass for a fresh one.
        if built.run(config, &peers, candidacy.clone(), &mut tasks).await? {
            app.reads().doubt_disk();
        }
        assert!(service.app.set(app.clone()).is_ok(), "the app is set once");
        let raft_rpc: Arc<dyn RaftRpc> =
            Arc::new(Gate { raft: Arc::new(raft.clone()), halt, votes_from: built.votes_from });
        let raft_cell = Arc::new(OnceLock::from(raft_rpc));
        let answering = Arc::new(ServiceHandle(service.clone()));
        let state_dir = state.state_dir().to_path_buf();
        watchdog::spawn_in(
            &mut tasks,
            peer::serve(listeners.peers, net, raft_cell, answering, state_dir, all_end.clone()),
        );
        watchdog::spawn_in(&mut tasks, follow(raft.clone(), view.clone(), peers));
        let timing = Timing { lease: config.lease(), step: config.heartbeat };
        watchdog::spawn_in(&mut tasks, async move { candidacy.run(ends, &view, timing).await });
        let recovering = app.clone();
        watchdog::spawn_in(&mut tasks, async move { recovering.reads().recover().await });
        let bounds = LogBounds {
            bytes_max: config.log_bytes_max,
            keep_entries: config.keep_log_entries,
            hold_bytes: config.archive.as_ref().map(|settings| settings.hold_bytes),
        };
        watchdog::spawn_in(&mut tasks, log_trimmer::run(app.clone(), log.clone(), bounds));
        watchdog::spawn_in(&mut tasks, renewals::run(Arc::clone(app.writes()), renewal_queue));
        watchdog::spawn_in(&mut tasks, count_elections(raft.clone(), metrics.clone()));
        keep_house(config, &app, parts, &log, &mut tasks);
        let traces = traces_of(config, &metrics)?;
        let ports = tls.ports();
        if !ports.is_empty() {
            metrics.add_source(TlsSamples(ports.clone()));
            watchdog::spawn_in(&mut tasks, reload::run(ports));
        }
        let auth = auth_settings_of(config)?;
        if let AuthSettings::Guarded { root, jwt } = &auth {
            if let Some(root) = root {
                watchdog::spawn_in(&mut tasks, root.clone().follow());
            }
            if let Some(jwt) = jwt {
                watchdog::spawn_in(&mut tasks, jwt.clone().follow());
            }
        }
        let audit = audit_of(config)?;
        if let Some(audit) = audit.clone() {
            let hangups = signal(SignalKind::hangup()).map_err(|error| ServerError(format!("signals: {error}")))?;
            watchdog::spawn_in(&mut tasks, follow_moves(audit, hangups));
        }
        let settings = ApiSettings {
            traces: traces.clone(),
            auth,
            audit: audit.clone(),
            log: logging::control(),
            ..config.api_settings()
        };
        let api = Api::new(app.clone(), settings, metrics);
        let serve_settings =
            ServeSettings { tls: tls.clients, beside: listeners.client_threads, ..config.serve_settings() };
        // It has places of its own and the node's own runtime, so that operators and probes get in no matter what clients do.
        let admin_settings = ServeSettings {
            door: Door::Admin,
            connections_max: ADMIN_CONNECTIONS_MAX,
            beside: Vec::new(),
            ..serve_settings.clone()
        };
        let admin =
            listeners.admin.map(|listener| serve(listener, None, api.clone(), admin_settings, clients_end.clone()));
        let clients = serve(listeners.clients, listeners.socket, api, serve_settings, clients_end.clone());
        let clients = watchdog::spawn(async move {
            tokio::join!(clients, OptionFuture::from(admin));
        });
        Ok(Self { app, raft, service, log, state, clients, tasks, clients_end, all_end, traces, audit })
    }

    /// Never returns while all is well.
    async fn become_member(&self, config: &Config) -> Ended {
        match bootstrap::become_member(&self.app, &self.service, &config.join, &config.credential()).await {
            Ok(()) => std::future::pending().await,
            Err(why) => self.end_of_no_member(config, why).await,
        }
    }

    /// How a node ends that becomes no member. Before it took part in any cluster, one that has spare ids goes on under the next where its id is
    /// what was refused.
    async fn end_of_no_member(&self, config: &Config, why: NoMember) -> Ended {
        let has_spare_ids = config.is_spare || !config.spare_node_ids.is_empty();
        let has_voted = !matches!(self.log.clone().get_log_reader().await.read_vote().await, Ok(None));
        let has_entries = self.raft.metrics().borrow_watched().last_log_index.is_some();
        let is_of_the_id = match &why {
            NoMember::Refused(refused) => refused.is_of_the_id,
            NoMember::Removed => true,
        };
        match why {
            why if has_spare_ids && is_of_the_id && !has_voted && !has_entries => Ended::Renumbered(why.to_string()),
            NoMember::Refused(refused) => ServerError(refused.reason).into(),
            NoMember::Removed => Ended::Removed(members::removed::explain(config.node_id)),
        }
    }

    /// Returns once openraft has stopped by itself, which it does only for a fault of this node. Looks now and then: the
    /// metrics change with every batch, and waking for each would cost more than the batch.
    async fn failed(&self) -> Ended {
        let metrics = self.raft.metrics();
        loop {
            if let Err(fatal) = &metrics.borrow_watched().running_state {
                let error = ServerError(format!("raft has stopped: {fatal}"));
                return match fatal {
                    Fatal::StorageError(_) => Ended::of_storage(error),
                    Fatal::Panicked | Fatal::Stopped => Ended::Failed(error),
                };
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Leadership first, so that the others go on while this node drains.
    async fn stop_gracefully(self) {
        self.app.begin_stop();
        match self.app.transfer_leader(None, Instant::now() + HAND_OVER_MAX).await {
            Ok(leader) => tracing::info!(leader, "handed leadership over"),
            Err(reason) => tracing::info!(%reason, "no leadership to hand over"),
        }
        self.stop().await;
    }

    async fn stop(mut self) {
        self.app.begin_stop();
        self.clients_end.cancel();
        if let Err(error) = self.clients.await {
            tracing::warn!(%error, "the HTTP server did not end cleanly");
        }
        if let Err(error) = self.raft.shutdown().await {
            tracing::warn!(%error, "raft did not stop cleanly");
        }
        self.all_end.cancel();
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
        let is_recovered = self.app.reads().is_recovered();
        let (state, log, traces, audit) = (self.state, self.log, self.traces, self.audit);
        let flushed = background::blocking(move || {
            let durable = state.flush().map_err(|fault| fault.to_string())?;
            log.close();
            // Nobody is shown anything any more, so this is how far the node went; unless it does not know how far it went before it was
            // started, and stops before it was told.
            if is_recovered
                && durable == state.position().index
                && let Some(data_dir) = state.state_dir().parent()
                && let Err(error) = clean_stop::note(data_dir, durable)
            {
                tracing::warn!(%error, "it was not noted that this node stopped cleanly; it will ask a leader before it shows anything");
            }
            if let Some(traces) = traces {
                traces.shut_down();
            }
            if let Some(audit) = audit
                && !audit.flush(AUDIT_FLUSH_MAX)
            {
                tracing::warn!("the last lines of the audit log were not written in time");
            }
            Ok::<(), String>(())
        });
        match flushed.await {
            Ok(Ok(())) => tracing::info!("stopped"),
            Ok(Err(error)) => tracing::error!(error, "the state could not be flushed; the log has everything"),
            Err(error) => tracing::error!(%error, "the stores did not close cleanly"),
        }
    }
}

/// Who has to say who they are.
fn auth_settings_of(config: &Config) -> Result<AuthSettings, ServerError> {
    match config.auth {
        Auth::Off => Ok(AuthSettings::Open),
        Auth::Required => {
            let root = config.root_token_file.as_deref().map(RootToken::open).transpose();
            Ok(AuthSettings::Guarded {
                root: root.map_err(|reason| ServerError(format!("root_token_file: {reason}")))?,
                jwt: config.jwt.clone().map(JwtVerifier::new),
            })
        }
    }
}

fn audit_of(config: &Config) -> Result<Option<Arc<AuditFile>>, ServerError> {
    let Some(path) = &config.audit_log else { return Ok(None) };
    let opened = AuditFile::open(path);
    opened.map(Some).map_err(|error| ServerError(format!("audit_log: {} cannot be written: {error}", path.display())))
}

/// Takes each SIGHUP for the notice that the file of the audit log was moved away.
async fn follow_moves(audit: Arc<AuditFile>, mut hangups: Signal) {
    while hangups.recv().await.is_some() {
        audit.reopen();
    }
}

/// Keeps view and address book in step with openraft.
async fn follow(raft: Raft, view: Arc<View>, peers: Arc<Peers>) {
    let learn = async {
        let mut metrics = raft.server_metrics();
        loop {
            peers.learn(metrics.borrow_watched().membership_config.membership());
            if metrics.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::join!(learn, view.follow(&raft), view.listen(&raft));
}

/// Makes the ballast again once there is room for it.
async fn keep_ballast(app: App) {
    loop {
        tokio::time::sleep(BALLAST_EVERY).await;
        match app.space().restore_ballast().await {
            Ok(()) => {}
            Err(error) => tracing::warn!(%error, "the ballast file could not be made again"),
        }
    }
}
