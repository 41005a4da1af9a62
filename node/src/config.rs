//! What a node is told at start: flags, environment and a TOML file become one validated [`Config`].
//!
//! Owns the names, units, defaults and ranges of all settings. Nothing is bound or written before the whole configuration
//! passed, and nothing read but the files of TLS and the key of an archive; every fault is reported at once, each with the field and what to do. Never
//! read again later, but for what is to be logged.

mod archive;
mod args;
mod check;
mod data_dir;
mod faults;
mod jwt;
mod shown;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorate_node_core::connection::door::Door;
use quorate_node_core::gateway::admission::AdmissionLimits;
use quorate_node_core::gateway::admission::accounts::AccountLimits;
use quorate_node_core::gateway::admission::classes::ClassLimits;
use quorate_node_core::gateway::api::ApiSettings;
use quorate_node_core::gateway::auth::authenticator::AuthSettings;
use quorate_node_core::gateway::auth::jwt::JwtSettings;
use quorate_node_core::gateway::door::AdminPort;
use quorate_node_core::gateway::hosts::AllowedHosts;
use quorate_node_core::gateway::versions::EtcdVersion;
use quorate_node_core::limits;
use quorate_node_core::logging::LogFormat;
use quorate_node_core::millis::millis;
use quorate_node_core::tls::{Port, TlsFiles};
use quorate_node_core::traces::TraceParents;
use quorate_node_port::ServeSettings;
use quorate_node_replica::app::archive::ArchiveSettings;
use quorate_node_replica::app::backup_schedule::BackupSchedule;
use quorate_node_replica::app::bootstrap::JoinCredential;
use quorate_node_replica::app::members::admission::JoinPolicy;
use quorate_node_replica::peer::PeerTimings;
use quorate_store::identity::{self, IdentityError};
use tracing_subscriber::filter::Targets;

pub use args::Args;
pub use check::DEV_CLIENT_LISTEN;
pub use data_dir::{DataDir, OpenDataDir};

/// Whether those who ask have to say who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// Whoever reaches the client port may do everything.
    #[default]
    Off,
    /// Nothing is done for somebody without a token or a certificate.
    Required,
}

/// A Unix socket for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSocket {
    /// Its file.
    pub path: PathBuf,
    /// The mode of the file.
    pub mode: u32,
}

/// A configuration that holds together.
///
/// Invariants: `node_id >= 1`; `spare_node_ids` are others, none of them in `join`; `join` contains `node_id` under `peer_advertise`, or not
/// at all where the node joins later, as a standby always does; `3 * heartbeat <= election_min <
/// election_max`; `request_timeout <= request_timeout_max`; no advertised address is a wildcard or has port 0; without
/// `insecure` the listener of clients is on loopback or has TLS and authentication, that of peers is on loopback or has TLS.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// This node's number, from 1; never used again for another disk.
    pub node_id: u64,
    /// The ids that take the place of this one, in their order, should it be another disk's.
    pub spare_node_ids: Vec<u64>,
    /// Whether the id is such a one itself.
    pub is_spare: bool,
    /// Where the node keeps its data.
    pub data_dir: DataDir,
    /// Where clients connect.
    pub client_listen: SocketAddr,
    /// Where clients on this machine may connect as well.
    pub client_socket: Option<ClientSocket>,
    /// Where peers connect.
    pub peer_listen: SocketAddr,
    /// The `host:port` that clients are told.
    pub client_advertise: String,
    /// The `host:port` that peers are told.
    pub peer_advertise: String,
    /// The founding members: node id to peer `host:port`, the same list on all nodes.
    pub join: BTreeMap<u64, String>,
    /// Whether this node is to stay without a vote until it is needed.
    pub standby: bool,
    /// File with the invitation of this node.
    pub join_token_file: Option<PathBuf>,
    /// Whom it takes in while it leads.
    pub join_policy: JoinPolicy,
    /// How long a voter may be dead before a standby takes its place; `None` for ever.
    pub replace_dead_after: Option<Duration>,
    /// Levels of the lines that are logged.
    pub log_filter: Targets,
    /// Every setting that was given, as it may be shown.
    pub given: BTreeMap<String, String>,
    /// Format of the log lines.
    pub log_format: LogFormat,
    /// From when on a request is slow; zero for never.
    pub slow_request: Duration,
    /// Where spans of requests go: the whole address.
    pub otlp_endpoint: Option<String>,
    /// How many of a hundred requests go there where nobody else decided.
    pub trace_percent: u32,
    /// Whose `traceparent` decides.
    pub trace_parents: TraceParents,
    /// The highest feature level that this node agrees to.
    pub feature_level_max: u32,
    /// Pause between two heartbeats of a leader.
    pub heartbeat: Duration,
    /// Shortest silence of the leader after which a node stands for election; see [`Config::lease`].
    pub election_min: Duration,
    /// Longest such silence.
    pub election_max: Duration,
    /// Log entries between two snapshots.
    pub snapshot_every_entries: u64,
    /// Log entries kept behind a snapshot for slow followers.
    pub keep_log_entries: u64,
    /// How long old versions stay readable, cluster clock.
    pub history_keep: Duration,
    /// How many revisions stay readable, however old.
    pub history_keep_revisions: u64,
    /// Bytes of history above which it is compacted sooner.
    pub history_bytes_max: u64,
    /// Bytes of the log on disk above which it is purged sooner.
    pub log_bytes_max: u64,
    /// Bytes of what is stored above which only what frees room is taken; 0 for no bound.
    pub quota_bytes: u64,
    /// Deadline of a request that names none.
    pub request_timeout: Duration,
    /// Longest deadline a request may name.
    pub request_timeout_max: Duration,
    /// Largest request body, bytes.
    pub body_bytes_max: usize,
    /// Most client connections at a time; for one more, one that has shown nothing is closed.
    pub connections_max: usize,
    /// What one caller may take of this node.
    pub accounts: AccountLimits,
    /// How long a request head may take, first byte of a connection included.
    pub header_timeout: Duration,
    /// How long a request body may take before its rate counts.
    pub body_timeout: Duration,
    /// Slowest body tolerated after that, bytes a second.
    pub body_rate_min: u64,
    /// How long a connection may stand without a request.
    pub idle_timeout: Duration,
    /// How long open requests may take to end when the node stops.
    pub drain_timeout: Duration,
    /// Threads of the asynchronous runtime.
    pub worker_threads: usize,
    /// Threads beside these that serve connections of clients.
    pub client_threads: usize,
    /// How long a node stays awake for what follows a write, where it has one worker thread.
    pub busy_poll: Duration,
    /// Size of the ballast file that is given up when the disk is full, bytes; 0 for none.
    pub ballast_bytes: u64,
    /// Free disk space below which writes are refused, bytes.
    pub min_free_bytes: u64,
    /// Where the cluster is archived and how, if it is.
    pub archive: Option<ArchiveSettings>,
    /// Where and how often this node backs its state up, if it does.
    pub backups: Option<BackupSchedule>,
    /// Whether browsers find the console here.
    pub console: bool,
    /// Origins of web pages that browsers let ask this node, `*` for every one.
    pub cors_origins: Vec<String>,
    /// The names by which clients may ask it.
    pub hosts: AllowedHosts,
    /// Which etcd it says that it speaks like.
    pub etcd_version: EtcdVersion,
    /// Certificates of the client port; without them it is plain.
    pub tls: Option<TlsFiles>,
    /// Certificates between the nodes; without them their connections are plain.
    pub peer_tls: Option<TlsFiles>,
    /// Whether clients have to say who they are.
    pub auth: Auth,
    /// Where the token of `root` stands.
    pub root_token_file: Option<PathBuf>,
    /// The port for metrics and administration, if there is one.
    pub admin: Option<AdminPort>,
    /// Whose signed tokens are believed, if anybody's.
    pub jwt: Option<JwtSettings>,
    /// Where it is written who did what.
    pub audit_log: Option<PathBuf>,
    /// Throw-away single node.
    pub dev: bool,
    /// Listening beyond loopback without TLS and authentication was asked for.
    pub insecure: bool,
}

impl Config {
    /// These settings under the id that a data directory has by now: one of the spare ones, perhaps. A directory that was never of a
    /// cluster is tried under `node_id` first at each start, unless this process `goes_on` with what one before it was refused.
    ///
    /// # Errors
    /// The directory cannot be read, or changed.
    pub fn of_directory(self, goes_on: bool) -> Result<Self, IdentityError> {
        let DataDir::Given(dir) = &self.data_dir else { return Ok(self) };
        let Some(marker) = identity::read(dir)? else { return Ok(self) };
        let Some(at) = self.spare_node_ids.iter().position(|id| *id == marker.node_id) else {
            // That of somebody else is refused when it is opened.
            return Ok(self);
        };
        if marker.cluster_id.is_none() && !goes_on {
            identity::renumber(dir, Some(self.node_id), rand::random())?;
            return Ok(self);
        }
        Ok(self.renumbered(at))
    }

    /// These settings under a spare id, of which the later ones are left.
    fn renumbered(self, at: usize) -> Self {
        let mut spare_node_ids = self.spare_node_ids;
        let node_id = spare_node_ids[at];
        spare_node_ids.drain(..=at);
        let peer_tls = self.peer_tls.map(|files| TlsFiles { port: Port::Peers(node_id), ..files });
        Self { node_id, spare_node_ids, is_spare: true, peer_tls, ..self }
    }

    /// What the request handlers need of it; what is opened for them comes with the node.
    pub fn api_settings(&self) -> ApiSettings {
        ApiSettings {
            node_id: self.node_id,
            request_timeout: self.request_timeout,
            request_timeout_max: self.request_timeout_max,
            bounds: AdmissionLimits {
                classes: ClassLimits::default(),
                accounts: self.accounts,
                watches_max: limits::WATCHES_MAX,
                bodies_bytes_max: limits::BODIES_BYTES_MAX,
                body_bytes_max: self.body_bytes_max,
                answers_bytes_max: limits::ANSWERS_BYTES_MAX,
            },
            body_timeout: self.body_timeout,
            body_rate_min: self.body_rate_min,
            slow_request: self.slow_request,
            traces: None,
            cors_origins: self.cors_origins.clone(),
            hosts: self.hosts.clone(),
            console: self.console,
            etcd_version: self.etcd_version.clone(),
            auth: AuthSettings::Open,
            audit: None,
            log: None,
            given: Arc::new(self.given.clone()),
            admin: self.admin,
            clients_use_tls: self.tls.is_some(),
            peers_use_tls: self.peer_tls.is_some(),
        }
    }

    /// How long a node that heard the leader elects nobody else; reads and the cluster clock lean on it. Raft waits from then on for a
    /// random time before it asks for votes: longer than a heartbeat, and shorter than the lease. Together that is a silence
    /// between `election_min` and `election_max`.
    ///
    /// Invariant: `heartbeat < election_min - lease < lease`, and `2 * lease <= election_max`.
    pub fn lease(&self) -> Duration {
        let least_wait = self.election_min.saturating_sub(self.election_max / 2);
        let least_wait = least_wait.max(self.heartbeat + Duration::from_millis(1));
        self.election_min - least_wait
    }

    /// The times of the connections between nodes.
    pub fn peer_timings(&self) -> PeerTimings {
        PeerTimings::new(millis(self.heartbeat), millis(self.lease()), millis(self.election_min))
    }

    /// What this node comes with when it asks to be taken in.
    pub fn credential(&self) -> JoinCredential {
        JoinCredential {
            as_standby: self.standby,
            invitation_file: self.join_token_file.clone(),
            has_spare_ids: self.is_spare || !self.spare_node_ids.is_empty(),
            ..JoinCredential::default()
        }
    }

    /// What the accept loop needs of it; TLS comes with the node, since it is exchanged while it runs.
    pub fn serve_settings(&self) -> ServeSettings {
        ServeSettings {
            connections_max: self.connections_max,
            header_timeout: self.header_timeout,
            idle_timeout: self.idle_timeout,
            write_stall_timeout: self.idle_timeout.min(Duration::from_secs(30)),
            drain_timeout: self.drain_timeout,
            tls: None,
            door: Door::Clients,
            beside: Vec::new(),
        }
    }
}

/// One thing wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// The setting, as it is called in the file.
    pub field: &'static str,
    /// What is wrong and what to do.
    pub detail: String,
}

/// Why a configuration was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("--config {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system or the TOML parser said; names the key.
        reason: String,
    },
    /// Settings that do not hold; all of them.
    #[error("the configuration was refused:{}", list(.0))]
    Faults(Vec<ConfigFault>),
}

fn list(faults: &[ConfigFault]) -> String {
    faults.iter().map(|fault| format!("\n  {}: {}", fault.field, fault.detail)).collect()
}

impl Config {
    /// What these arguments say that is to be logged, with their file as it is now: the only setting that is ever read again.
    pub fn log_filter_now(args: Args) -> Result<Targets, ConfigError> {
        check::log_filter_alone(args.with_file()?)
    }
}

impl TryFrom<Args> for Config {
    type Error = ConfigError;

    /// Reads the file that the arguments name, if any, fills in the defaults and checks everything.
    fn try_from(args: Args) -> Result<Self, ConfigError> {
        check::resolve(args.with_file()?)
    }
}
