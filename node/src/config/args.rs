//! The settings as they are written: command line, environment, TOML file.
//!
//! Owns names, help texts and precedence (flag over environment over file). Never judges a value: that is `check`.

use std::path::PathBuf;

use clap::Parser;
use quorate_node_core::logging::LogFormat;
use quorate_node_core::traces::TraceParents;
use quorate_node_replica::app::members::admission::JoinPolicy;
use serde::{Deserialize, Serialize};

use super::{Auth, ConfigError};

/// All settings, as given in one place. In the file a setting is called as its flag, with `_` for `-`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Parser, Serialize, Deserialize)]
#[command(name = "quorate-node", version, max_term_width = 110)]
#[serde(deny_unknown_fields, default)]
pub struct Args {
    /// TOML file with settings; unknown keys are refused
    #[arg(long, env = "QUORATE_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// This node's number, 1 or more; never give it to another disk [required; 1 with --dev]
    #[arg(long, env = "QUORATE_NODE_ID", value_name = "N")]
    pub node_id: Option<u64>,

    /// Ids for this node's place when it has lost its disk, like 103,203: with a data directory that was never of a cluster it joins
    /// under the first of --node-id and these that the cluster does not know by another disk, and keeps it in the directory
    #[arg(long, env = "QUORATE_SPARE_NODE_IDS", value_name = "LIST")]
    pub spare_node_ids: Option<String>,

    /// Directory of this node's data, made if missing [required; a temporary one with --dev]
    #[arg(long, env = "QUORATE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// IP:PORT where clients connect [default: 127.0.0.1:7100; 127.0.0.1:7101 with --dev]
    #[arg(long, env = "QUORATE_CLIENT_LISTEN", value_name = "ADDR")]
    pub client_listen: Option<String>,

    /// Unix socket for clients on this machine, made at the start and removed at the end: plain HTTP for whoever may write to the
    /// file, like /run/quorate/clients [default: none]
    #[arg(long, env = "QUORATE_CLIENT_SOCKET", value_name = "PATH")]
    pub client_socket: Option<PathBuf>,

    /// Mode of that file in octal: 600 for this node's user alone, 666 for everybody on this machine [default: 660]
    #[arg(long, env = "QUORATE_CLIENT_SOCKET_MODE", value_name = "MODE")]
    pub client_socket_mode: Option<String>,

    /// IP:PORT where metrics and administration are served, beside the client port: with its TLS and its authentication, and with
    /// connections of its own, so that clients cannot shut an operator out [default: none]
    #[arg(long, env = "QUORATE_ADMIN_LISTEN", value_name = "ADDR")]
    pub admin_listen: Option<String>,

    /// Serve metrics, members, backups, users and the like at that port alone; the client port says where
    #[arg(long, env = "QUORATE_ADMIN_ONLY", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub admin_only: Option<bool>,

    /// Tell the metrics at that port whoever asks
    #[arg(long, env = "QUORATE_ADMIN_OPEN_METRICS", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub admin_open_metrics: Option<bool>,

    /// IP:PORT where the other nodes connect [default: 127.0.0.1:7200; 127.0.0.1:7201 with --dev]
    #[arg(long, env = "QUORATE_PEER_LISTEN", value_name = "ADDR")]
    pub peer_listen: Option<String>,

    /// HOST:PORT that clients are told to connect to [default: client-listen]
    #[arg(long, env = "QUORATE_CLIENT_ADVERTISE", value_name = "ADDR")]
    pub client_advertise: Option<String>,

    /// HOST:PORT that the other nodes are told to connect to [default: this node's address in --join]
    #[arg(long, env = "QUORATE_PEER_ADVERTISE", value_name = "ADDR")]
    pub peer_advertise: Option<String>,

    /// The founding members with their peer addresses, the same list on all nodes, also on those that join later, which say
    /// --peer-advertise: 1=10.0.0.1:7200,2=10.0.0.2:7200,3=10.0.0.3:7200 [required; this node alone with --dev]
    #[arg(long, env = "QUORATE_JOIN", value_name = "LIST")]
    pub join: Option<String>,

    /// Join as a standby: a learner without a vote that can take the place of a voter; not in --join, so it needs
    /// --peer-advertise
    #[arg(long, env = "QUORATE_STANDBY", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub standby: Option<bool>,

    /// File with the invitation by which this node is taken in (`quorate member invite`): read when it asks to be, not needed by a
    /// founding member or once it is one, and may be missing until then [default: none]
    #[arg(long, env = "QUORATE_JOIN_TOKEN_FILE", value_name = "FILE")]
    pub join_token_file: Option<PathBuf>,

    /// Whom this node takes in while it leads: only newcomers with an invitation, or everybody who can connect; the same on all nodes
    /// [default: token where nodes use TLS, else open]
    #[arg(long, env = "QUORATE_JOIN_POLICY", value_name = "POLICY")]
    pub join_policy: Option<JoinPolicy>,

    /// Milliseconds after which a voter that is dead is replaced by a standby that is there, one at a time; 0 for never
    /// [default: 0]
    #[arg(long, env = "QUORATE_REPLACE_DEAD_AFTER_MS", value_name = "MS")]
    pub replace_dead_after_ms: Option<u64>,

    /// What to log: a level, and levels of modules, like info,quorate_node=debug [default: info, of openraft warn]
    #[arg(long, env = "QUORATE_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// Format of the log lines [default: text]
    #[arg(long, env = "QUORATE_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Milliseconds from which a request is logged as slow; 0 for never [default: 500]
    #[arg(long, env = "QUORATE_SLOW_REQUEST_MS", value_name = "MS")]
    pub slow_request_ms: Option<u64>,

    /// HTTP address of an OpenTelemetry collector that takes spans of requests, like http://127.0.0.1:4318 [default: none]
    #[arg(long, env = "QUORATE_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,

    /// How many of a hundred requests are told to the collector, where the header traceparent does not decide [default: 1]
    #[arg(long, env = "QUORATE_TRACE_PERCENT", value_name = "N")]
    pub trace_percent: Option<u32>,

    /// Whose header traceparent decides that a request is told to the collector, 200 a second at most: nobody's (none), that of
    /// somebody who said who they are and of everybody while authentication is off (known), everybody's (all) [default: known]
    #[arg(long, env = "QUORATE_TRACE_PARENTS", value_name = "WHOSE")]
    pub trace_parents: Option<TraceParents>,

    /// Highest feature level that this node agrees to: keep it during an upgrade for as long as you may want to go back to the
    /// version before [default: all that it knows]
    #[arg(long, env = "QUORATE_FEATURE_LEVEL_MAX", value_name = "N")]
    pub feature_level_max: Option<u32>,

    /// Milliseconds between heartbeats of the leader [default: 40]
    #[arg(long, env = "QUORATE_HEARTBEAT_MS", value_name = "MS")]
    pub heartbeat_ms: Option<u64>,

    /// Shortest silence of the leader, in milliseconds, before a node stands for election; at least three heartbeats
    /// [default: 280]
    #[arg(long, env = "QUORATE_ELECTION_MIN_MS", value_name = "MS")]
    pub election_min_ms: Option<u64>,

    /// Longest such silence in milliseconds; more than the shortest [default: 400]
    #[arg(long, env = "QUORATE_ELECTION_MAX_MS", value_name = "MS")]
    pub election_max_ms: Option<u64>,

    /// Log entries between two snapshots [default: 100000]
    #[arg(long, env = "QUORATE_SNAPSHOT_EVERY_ENTRIES", value_name = "N")]
    pub snapshot_every_entries: Option<u64>,

    /// Log entries kept behind a snapshot, so that a slow follower needs no snapshot [default: 20000]
    #[arg(long, env = "QUORATE_KEEP_LOG_ENTRIES", value_name = "N")]
    pub keep_log_entries: Option<u64>,

    /// Milliseconds of cluster time that old versions stay readable [default: 900000]
    #[arg(long, env = "QUORATE_HISTORY_KEEP_MS", value_name = "MS")]
    pub history_keep_ms: Option<u64>,

    /// Revisions that stay readable, however old they are [default: 100000]
    #[arg(long, env = "QUORATE_HISTORY_KEEP_REVISIONS", value_name = "N")]
    pub history_keep_revisions: Option<u64>,

    /// Bytes of history above which it is compacted sooner, from its oldest end [default: 4294967296]
    #[arg(long, env = "QUORATE_HISTORY_BYTES_MAX", value_name = "BYTES")]
    pub history_bytes_max: Option<u64>,

    /// Bytes of the log on disk above which the node makes a snapshot and purges it [default: 1073741824]
    #[arg(long, env = "QUORATE_LOG_BYTES_MAX", value_name = "BYTES")]
    pub log_bytes_max: Option<u64>,

    /// Bytes of keys, values and all else that is stored, without history, above which only what frees room is taken; the
    /// same on all nodes; 0 for no quota [default: 8589934592]
    #[arg(long, env = "QUORATE_QUOTA_BYTES", value_name = "BYTES")]
    pub quota_bytes: Option<u64>,

    /// Milliseconds a request may take where it does not say itself (header Request-Timeout) [default: 10000]
    #[arg(long, env = "QUORATE_REQUEST_TIMEOUT_MS", value_name = "MS")]
    pub request_timeout_ms: Option<u64>,

    /// Most milliseconds that a request may ask for [default: 60000]
    #[arg(long, env = "QUORATE_REQUEST_TIMEOUT_MAX_MS", value_name = "MS")]
    pub request_timeout_max_ms: Option<u64>,

    /// Largest request body in bytes [default: 2162688]
    #[arg(long, env = "QUORATE_BODY_BYTES_MAX", value_name = "BYTES")]
    pub body_bytes_max: Option<usize>,

    /// Most client connections at a time; one more closes one that has not shown who it is [default: 4096]
    #[arg(long, env = "QUORATE_CONNECTIONS_MAX", value_name = "N")]
    pub connections_max: Option<usize>,

    /// Operations a second that one account may have done here, lists and finds at what they cost; an account is an address, of
    /// IPv6 a network; 0 for no limit [default: 0]
    #[arg(long, env = "QUORATE_ACCOUNT_OPS_PER_SECOND", value_name = "N")]
    pub account_ops_per_second: Option<u64>,

    /// Bytes of requests and answers a second of one account; 0 for no limit [default: 0]
    #[arg(long, env = "QUORATE_ACCOUNT_BYTES_PER_SECOND", value_name = "BYTES")]
    pub account_bytes_per_second: Option<u64>,

    /// Most connections of one address at a time; 0 for no limit. Behind a proxy all clients are one address
    /// [default: a quarter of --connections-max]
    #[arg(long, env = "QUORATE_ACCOUNT_CONNECTIONS_MAX", value_name = "N")]
    pub account_connections_max: Option<usize>,

    /// Most watches of one account at a time, observers of elections too; 0 for no limit [default: 0]
    #[arg(long, env = "QUORATE_ACCOUNT_WATCHES_MAX", value_name = "N")]
    pub account_watches_max: Option<usize>,

    /// Milliseconds in which a new connection must say something, and in which a request head must be complete
    /// [default: 5000]
    #[arg(long, env = "QUORATE_HEADER_TIMEOUT_MS", value_name = "MS")]
    pub header_timeout_ms: Option<u64>,

    /// Milliseconds a request body may take before it must hold the minimum rate [default: 10000]
    #[arg(long, env = "QUORATE_BODY_TIMEOUT_MS", value_name = "MS")]
    pub body_timeout_ms: Option<u64>,

    /// Slowest request body tolerated after that, in bytes a second [default: 16384]
    #[arg(long, env = "QUORATE_BODY_RATE_MIN", value_name = "BYTES")]
    pub body_rate_min: Option<u64>,

    /// Milliseconds a connection may stand without a request [default: 60000]
    #[arg(long, env = "QUORATE_IDLE_TIMEOUT_MS", value_name = "MS")]
    pub idle_timeout_ms: Option<u64>,

    /// Milliseconds that open requests get to end when the node stops [default: 5000]
    #[arg(long, env = "QUORATE_DRAIN_TIMEOUT_MS", value_name = "MS")]
    pub drain_timeout_ms: Option<u64>,

    /// Threads for Raft, peers and requests; the databases have threads of their own [default: half of the cores]
    #[arg(long, env = "QUORATE_WORKER_THREADS", value_name = "N")]
    pub worker_threads: Option<usize>,

    /// Threads beside these that serve connections of clients, once there are more than a few; 0 for none [default: the
    /// other cores]
    #[arg(long, env = "QUORATE_CLIENT_THREADS", value_name = "N")]
    pub client_threads: Option<usize>,

    /// Microseconds for which a node that takes part in a write stays awake for what comes next, giving way to everybody
    /// else; 0 for none; with one worker thread only [default: 600]
    #[arg(long, env = "QUORATE_BUSY_POLL_US", value_name = "US")]
    pub busy_poll_us: Option<u64>,

    /// Bytes of the ballast file that is given up when the disk is full; 0 for none [default: 67108864; 0 with --dev]
    #[arg(long, env = "QUORATE_BALLAST_BYTES", value_name = "BYTES")]
    pub ballast_bytes: Option<u64>,

    /// Bytes of free disk below which writes are refused; deletes still work [default: 268435456; 0 with --dev]
    #[arg(long, env = "QUORATE_MIN_FREE_BYTES", value_name = "BYTES")]
    pub min_free_bytes: Option<u64>,

    /// Directory into which this node writes a backup of its state every so often [default: none]
    #[arg(long, env = "QUORATE_BACKUP_DIR", value_name = "DIR")]
    pub backup_dir: Option<PathBuf>,

    /// Milliseconds from one backup to the next [default: 86400000, a day]
    #[arg(long, env = "QUORATE_BACKUP_EVERY_MS", value_name = "MS")]
    pub backup_every_ms: Option<u64>,

    /// Backups of this node that are kept in the directory [default: 7]
    #[arg(long, env = "QUORATE_BACKUP_KEEP", value_name = "N")]
    pub backup_keep: Option<usize>,

    /// For whom these backups are encrypted: public keys of age, age1…, separated by commas [default: they are not encrypted]
    #[arg(long, env = "QUORATE_BACKUP_RECIPIENTS", value_name = "LIST")]
    pub backup_recipients: Option<String>,

    /// File with a secret by which these backups are authenticated; `openssl rand -hex 32` makes one [default: none]
    #[arg(long, env = "QUORATE_BACKUP_MAC_KEY", value_name = "FILE")]
    pub backup_mac_key: Option<PathBuf>,

    /// Where the cluster is archived, the same on all nodes: s3://BUCKET/PREFIX, gs://…, az://CONTAINER/PREFIX or a directory that all of
    /// them share; credentials come from the environment or the files of the cloud's own tools [default: none]
    #[arg(long, env = "QUORATE_ARCHIVE", value_name = "LOCATION")]
    pub archive: Option<String>,

    /// Milliseconds after which what was written is in the archive: what a disaster takes at most [default: 5000]
    #[arg(long, env = "QUORATE_ARCHIVE_INTERVAL_MS", value_name = "MS")]
    pub archive_interval_ms: Option<u64>,

    /// Milliseconds from one base in the archive to the next; a restore applies all that was written since one [default: 86400000, a day]
    #[arg(long, env = "QUORATE_ARCHIVE_BASE_EVERY_MS", value_name = "MS")]
    pub archive_base_every_ms: Option<u64>,

    /// Milliseconds for which every point in time can be restored from the archive [default: 604800000, seven days]
    #[arg(long, env = "QUORATE_ARCHIVE_KEEP_MS", value_name = "MS")]
    pub archive_keep_ms: Option<u64>,

    /// Bases that the archive keeps at least, however old [default: 2]
    #[arg(long, env = "QUORATE_ARCHIVE_KEEP_BASES", value_name = "N")]
    pub archive_keep_bases: Option<usize>,

    /// For whom the archive is encrypted: public keys of age, age1…, separated by commas [default: those of archive-key; without one it
    /// is not encrypted]
    #[arg(long, env = "QUORATE_ARCHIVE_RECIPIENTS", value_name = "LIST")]
    pub archive_recipients: Option<String>,

    /// File with a key of age, as `age-keygen` writes it, which opens the archive: with it a node can try restores [default: none]
    #[arg(long, env = "QUORATE_ARCHIVE_KEY", value_name = "FILE")]
    pub archive_key: Option<PathBuf>,

    /// File with a secret, the same on all nodes, by which the archive is authenticated: nothing is restored with it that somebody else wrote
    /// there; `openssl rand -hex 32` makes one [default: none]
    #[arg(long, env = "QUORATE_ARCHIVE_MAC_KEY", value_name = "FILE")]
    pub archive_mac_key: Option<PathBuf>,

    /// Bytes of log that a node keeps for an archive that cannot be reached; beyond them the archive gets a gap, and then a new base
    /// [default: 4294967296]
    #[arg(long, env = "QUORATE_ARCHIVE_HOLD_BYTES", value_name = "BYTES")]
    pub archive_hold_bytes: Option<u64>,

    /// Milliseconds from one restore of the archive that the leader tries, into a directory that it removes again, to the next; 0 for
    /// never [default: 86400000, a day]
    #[arg(long, env = "QUORATE_ARCHIVE_VERIFY_EVERY_MS", value_name = "MS")]
    pub archive_verify_every_ms: Option<u64>,

    /// Milliseconds of a span whose pieces in the archive become one object once it is over, and later those of 24 such spans; 0 for never
    /// [default: 3600000, an hour]
    #[arg(long, env = "QUORATE_ARCHIVE_MERGE_MS", value_name = "MS")]
    pub archive_merge_ms: Option<u64>,

    /// Serve no console: without it, browsers find one at /console/
    #[arg(long, env = "QUORATE_NO_CONSOLE", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub no_console: Option<bool>,

    /// Origins of web pages that browsers let use this node, separated by commas, like `https://app.example.org`; * for every page
    /// [default: none]
    #[arg(long, env = "QUORATE_CORS_ORIGINS", value_name = "LIST")]
    pub cors_origins: Option<String>,

    /// Names by which clients may ask this node, beside addresses, names of loopback and those it listens and is known by, separated by
    /// commas: `*.example.org` for all names that end so, * for every name. Looked at where nobody has to say who they are, and
    /// wherever it is given [default: none; with --auth required every name]
    #[arg(long, env = "QUORATE_ALLOWED_HOSTS", value_name = "LIST")]
    pub allowed_hosts: Option<String>,

    /// Version of etcd that clients of its protocol are told, which turn features on and off by it [default: 3.6.5]
    #[arg(long, env = "QUORATE_ETCD_VERSION", value_name = "VERSION")]
    pub etcd_version: Option<String>,

    /// PEM file with the certificate of the client port, and those between it and its CA: the port then speaks TLS only. Read again
    /// when it changes [default: none]
    #[arg(long, env = "QUORATE_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// PEM file with its private key
    #[arg(long, env = "QUORATE_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// PEM file with the CAs whose client certificates are believed: a client may show one, and is then who the certificate says
    /// (its first DNS name, else its common name) [default: none]
    #[arg(long, env = "QUORATE_TLS_CLIENT_CA", value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,

    /// PEM file with the lists of what those CAs have revoked (CRLs), one for each of them: who shows a certificate that is on one is
    /// refused, and cut off where it has a connection. Read again when it changes [default: none]
    #[arg(long, env = "QUORATE_TLS_CLIENT_CRL", value_name = "FILE")]
    pub tls_client_crl: Option<PathBuf>,

    /// PEM file with this node's certificate among the nodes, with the DNS name node-N.quorate for node N, for servers and clients:
    /// nodes then talk to each other over TLS only. All three or none, and the same on all nodes [default: none]
    #[arg(long, env = "QUORATE_PEER_TLS_CERT", value_name = "FILE")]
    pub peer_tls_cert: Option<PathBuf>,

    /// PEM file with its private key
    #[arg(long, env = "QUORATE_PEER_TLS_KEY", value_name = "FILE")]
    pub peer_tls_key: Option<PathBuf>,

    /// PEM file with the CAs that make the certificates of nodes
    #[arg(long, env = "QUORATE_PEER_TLS_CA", value_name = "FILE")]
    pub peer_tls_ca: Option<PathBuf>,

    /// PEM file with the lists of what those CAs have revoked (CRLs), one for each of them, the same on all nodes. Read again when it
    /// changes [default: none]
    #[arg(long, env = "QUORATE_PEER_TLS_CRL", value_name = "FILE")]
    pub peer_tls_crl: Option<PathBuf>,

    /// Whether those who ask have to say who they are [default: off]
    #[arg(long, env = "QUORATE_AUTH", value_name = "WHETHER")]
    pub auth: Option<Auth>,

    /// File with the token of `root`, who may do everything: one line of at least 32 printable characters that do not repeat
    /// themselves, like those of `openssl rand -hex 32`; read again when it changes; for --auth required
    #[arg(long, env = "QUORATE_ROOT_TOKEN_FILE", value_name = "FILE")]
    pub root_token_file: Option<PathBuf>,

    /// Believe JSON Web Tokens of this issuer (OpenID Connect), as it names itself in `iss`; with --jwt-audience and --jwt-jwks; for --auth
    /// required
    #[arg(long, env = "QUORATE_JWT_ISSUER", value_name = "ISSUER")]
    pub jwt_issuer: Option<String>,

    /// For whom its tokens have to be: a value of `aud`
    #[arg(long, env = "QUORATE_JWT_AUDIENCE", value_name = "AUDIENCE")]
    pub jwt_audience: Option<String>,

    /// The issuer's public keys (JSON Web Key Set): a file, read again when it changes, or an https:// address, asked every five minutes
    /// and when a token names a new key
    #[arg(long, env = "QUORATE_JWT_JWKS", value_name = "FILE|URL")]
    pub jwt_jwks: Option<String>,

    /// CA whose certificate that address shows, PEM
    #[arg(long, env = "QUORATE_JWT_CA", value_name = "FILE")]
    pub jwt_ca: Option<PathBuf>,

    /// The claim with the name of the user; dots lead into objects [default: sub]
    #[arg(long, env = "QUORATE_JWT_USER_CLAIM", value_name = "CLAIM")]
    pub jwt_user_claim: Option<String>,

    /// What stands before that name here, so that nobody is taken for a user of the cluster [default: nothing where the claim is sub, oidc:
    /// where it is another]
    #[arg(long, env = "QUORATE_JWT_USER_PREFIX", value_name = "TEXT")]
    pub jwt_user_prefix: Option<String>,

    /// The claim with the names of roles of this cluster: a list, or text with spaces between; dots lead into objects
    /// [default: none; the user has to be one of the cluster]
    #[arg(long, env = "QUORATE_JWT_ROLES_CLAIM", value_name = "CLAIM")]
    pub jwt_roles_claim: Option<String>,

    /// Longest time that one of its tokens may be good, from `iat` to `exp`, or from now where it has no `iat` [default: 86400000]
    #[arg(long, env = "QUORATE_JWT_LIFETIME_MAX_MS", value_name = "MS")]
    pub jwt_lifetime_max_ms: Option<u64>,

    /// File to which this node adds a line of JSON for each command, refusal and administration [default: none]
    #[arg(long, env = "QUORATE_AUDIT_LOG", value_name = "FILE")]
    pub audit_log: Option<PathBuf>,

    /// A single node in a temporary directory that is removed at exit; it listens where `quorate` and the other clients look first
    #[arg(long, env = "QUORATE_DEV", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub dev: Option<bool>,

    /// Listen beyond loopback although TLS or authentication is missing: whoever reaches the port owns the data
    #[arg(long, env = "QUORATE_INSECURE", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub insecure: Option<bool>,
}

/// Takes each named setting from `over`, else from `under`.
macro_rules! layered {
    ($over:expr, $under:expr; $($field:ident)*) => { Args { $($field: $over.$field.or($under.$field)),* } };
}

impl Args {
    /// Lays these arguments over the file they name, if they name one.
    pub(super) fn with_file(self) -> Result<Self, ConfigError> {
        let Some(path) = self.config.clone() else { return Ok(self) };
        let refused = |reason: String| ConfigError::File { path: path.clone(), reason };
        let text = std::fs::read_to_string(&path).map_err(|error| refused(error.to_string()))?;
        let file: Self = toml::from_str(&text).map_err(|error| refused(error.to_string()))?;
        Ok(self.over(file))
    }

    /// These settings, and where they are missing those of `under`. Naming every field makes a forgotten one an error.
    fn over(self, under: Self) -> Self {
        layered!(self, under;
            config node_id spare_node_ids data_dir client_listen client_socket client_socket_mode admin_listen admin_only admin_open_metrics peer_listen client_advertise peer_advertise join standby join_token_file join_policy replace_dead_after_ms log log_format
            slow_request_ms otlp_endpoint trace_percent trace_parents feature_level_max heartbeat_ms election_min_ms election_max_ms
            snapshot_every_entries keep_log_entries history_keep_ms
            history_keep_revisions history_bytes_max log_bytes_max quota_bytes request_timeout_ms request_timeout_max_ms body_bytes_max connections_max
            account_ops_per_second account_bytes_per_second account_connections_max account_watches_max
            header_timeout_ms body_timeout_ms body_rate_min idle_timeout_ms drain_timeout_ms worker_threads client_threads busy_poll_us ballast_bytes
            min_free_bytes backup_dir backup_every_ms backup_keep backup_recipients backup_mac_key archive archive_interval_ms archive_base_every_ms archive_keep_ms
            archive_keep_bases archive_recipients archive_key archive_mac_key archive_hold_bytes archive_verify_every_ms archive_merge_ms no_console cors_origins allowed_hosts etcd_version tls_cert tls_key tls_client_ca tls_client_crl
            peer_tls_cert peer_tls_key peer_tls_ca peer_tls_crl auth root_token_file jwt_issuer jwt_audience jwt_jwks jwt_ca jwt_user_claim jwt_user_prefix jwt_roles_claim jwt_lifetime_max_ms audit_log dev insecure)
    }
}
