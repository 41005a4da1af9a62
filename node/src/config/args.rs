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

/// Makes [`Args`] of a table of settings, each with its type, its variable, what its help calls its value, and what else clap is told.
macro_rules! settings {
    ($($(#[$($meta:tt)*])* $field:ident: $type:ident = $variable:tt $value:tt $([$($more:tt)*])?;)*) => {
        /// All settings, as given in one place. In the file a setting is called as its flag, with `_` for `-`.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Parser, Serialize, Deserialize)]
        #[command(name = "quorate-node", version, max_term_width = 110)]
        #[serde(deny_unknown_fields, default)]
        pub struct Args {
            $(
                $(#[$($meta)*])*
                #[arg(long, env = $variable, value_name = $value $(, $($more)*)?)]
                pub $field: Option<$type>,
            )*
        }

        impl Args {
            /// These settings, and where they are missing those of `under`.
            fn over(self, under: Self) -> Self {
                Self { $($field: self.$field.or(under.$field)),* }
            }

            /// The names of those that are given and whose names begin so, in the order of the table.
            pub(super) fn given(&self, prefix: &str) -> Vec<&'static str> {
                let all = [$((stringify!($field), self.$field.is_some())),*];
                let given = all.into_iter().filter(|(name, is_given)| *is_given && name.starts_with(prefix));
                given.map(|(name, _)| name).collect()
            }
        }
    };
}

settings! {
    /// TOML file with settings; unknown keys are refused
    #[serde(skip)]
    config: PathBuf = "QUORATE_CONFIG" "FILE";

    /// This node's number, 1 or more; never give it to another disk [required; 1 with --dev]
    node_id: u64 = "QUORATE_NODE_ID" "N";

    /// Ids for this node's place when it has lost its disk, like 103,203: with a data directory that was never of a cluster it joins
    /// under the first of --node-id and these that the cluster does not know by another disk, and keeps it in the directory
    spare_node_ids: String = "QUORATE_SPARE_NODE_IDS" "LIST";

    /// Directory of this node's data, made if missing [required; a temporary one with --dev]
    data_dir: PathBuf = "QUORATE_DATA_DIR" "DIR";

    /// IP:PORT where clients connect [default: 127.0.0.1:7100; 127.0.0.1:7101 with --dev]
    client_listen: String = "QUORATE_CLIENT_LISTEN" "ADDR";

    /// Unix socket for clients on this machine, made at the start and removed at the end: plain HTTP for whoever may write to the
    /// file, like /run/quorate/clients [default: none]
    client_socket: PathBuf = "QUORATE_CLIENT_SOCKET" "PATH";

    /// Mode of that file in octal: 600 for this node's user alone, 666 for everybody on this machine [default: 660]
    client_socket_mode: String = "QUORATE_CLIENT_SOCKET_MODE" "MODE";

    /// IP:PORT where metrics and administration are served, beside the client port: with its TLS and its authentication, and with
    /// connections of its own, so that clients cannot shut an operator out [default: none]
    admin_listen: String = "QUORATE_ADMIN_LISTEN" "ADDR";

    /// Serve metrics, members, backups, users and the like at that port alone; the client port says where
    admin_only: bool = "QUORATE_ADMIN_ONLY" "BOOL" [num_args = 0..=1, require_equals = true, default_missing_value = "true"];

    /// Tell the metrics at that port whoever asks
    admin_open_metrics: bool = "QUORATE_ADMIN_OPEN_METRICS" "BOOL" [num_args = 0..=1, require_equals = true, default_missing_value = "true"];

    /// IP:PORT where the other nodes connect [default: 127.0.0.1:7200; 127.0.0.1:7201 with --dev]
    peer_listen: String = "QUORATE_PEER_LISTEN" "ADDR";

    /// HOST:PORT that clients are told to connect to [default: client-listen]
    client_advertise: String = "QUORATE_CLIENT_ADVERTISE" "ADDR";

    /// HOST:PORT that the other nodes are told to connect to [default: this node's address in --join]
    peer_advertise: String = "QUORATE_PEER_ADVERTISE" "ADDR";

    /// The founding members with their peer addresses, the same list on all nodes, also on those that join later, which say
    /// --peer-advertise: 1=10.0.0.1:7200,2=10.0.0.2:7200,3=10.0.0.3:7200 [required; this node alone with --dev]
    join: String = "QUORATE_JOIN" "LIST";

    /// Join as a standby: a learner without a vote that can take the place of a voter; not in --join, so it needs
    /// --peer-advertise
    standby: bool = "QUORATE_STANDBY" "BOOL" [num_args = 0..=1, require_equals = true, default_missing_value = "true"];

    /// File with the invitation by which this node is taken in (`quorate member invite`): read when it asks to be, not needed by a
    /// founding member or once it is one, and may be missing until then [default: none]
    join_token_file: PathBuf = "QUORATE_JOIN_TOKEN_FILE" "FILE";

    /// Whom this node takes in while it leads: only newcomers with an invitation, or everybody who can connect; the same on all nodes
    /// [default: token where nodes use TLS, else open]
    join_policy: JoinPolicy = "QUORATE_JOIN_POLICY" "POLICY";

    /// Milliseconds after which a voter that is dead is replaced by a standby that is there, one at a time; 0 for never
    /// [default: 0]
    replace_dead_after_ms: u64 = "QUORATE_REPLACE_DEAD_AFTER_MS" "MS";

    /// What to log: a level, and levels of modules, like info,quorate_node=debug [default: info, of openraft warn]
    log: String = "QUORATE_LOG" "FILTER";

    /// Format of the log lines [default: text]
    log_format: LogFormat = "QUORATE_LOG_FORMAT" "FORMAT";

    /// Milliseconds from which a request is logged as slow; 0 for never [default: 500]
    slow_request_ms: u64 = "QUORATE_SLOW_REQUEST_MS" "MS";

    /// HTTP address of an OpenTelemetry collector that takes spans of requests, like http://127.0.0.1:4318 [default: none]
    otlp_endpoint: String = "QUORATE_OTLP_ENDPOINT" "URL";

    /// How many of a hundred requests are told to the collector, where the header traceparent does not decide [default: 1]
    trace_percent: u32 = "QUORATE_TRACE_PERCENT" "N";

    /// Whose header traceparent decides that a request is told to the collector, 200 a second at most: nobody's (none), that of
    /// somebody who said who they are and of everybody while authentication is off (known), everybody's (all) [default: known]
    trace_parents: TraceParents = "QUORATE_TRACE_PARENTS" "WHOSE";

    /// Highest feature level that this node agrees to: keep it during an upgrade for as long as you may want to go back to the
    /// version before [default: all that it knows]
    feature_level_max: u32 = "QUORATE_FEATURE_LEVEL_MAX" "N";

    /// Milliseconds between heartbeats of the leader [default: 40]
    heartbeat_ms: u64 = "QUORATE_HEARTBEAT_MS" "MS";

    /// Shortest silence of the leader, in milliseconds, before a node stands for election; at least three heartbeats
    /// [default: 280]
    election_min_ms: u64 = "QUORATE_ELECTION_MIN_MS" "MS";

    /// Longest such silence in milliseconds; more than the shortest [default: 400]
    election_max_ms: u64 = "QUORATE_ELECTION_MAX_MS" "MS";

    /// Log entries between two snapshots [default: 100000]
    snapshot_every_entries: u64 = "QUORATE_SNAPSHOT_EVERY_ENTRIES" "N";

    /// Log entries kept behind a snapshot, so that a slow follower needs no snapshot [default: 20000]
    keep_log_entries: u64 = "QUORATE_KEEP_LOG_ENTRIES" "N";

    /// Milliseconds of cluster time that old versions stay readable [default: 900000]
    history_keep_ms: u64 = "QUORATE_HISTORY_KEEP_MS" "MS";

    /// Revisions that stay readable, however old they are [default: 100000]
    history_keep_revisions: u64 = "QUORATE_HISTORY_KEEP_REVISIONS" "N";

    /// Bytes of history above which it is compacted sooner, from its oldest end [default: 4294967296]
    history_bytes_max: u64 = "QUORATE_HISTORY_BYTES_MAX" "BYTES";

    /// Bytes of the log on disk above which the node makes a snapshot and purges it [default: 1073741824]
    log_bytes_max: u64 = "QUORATE_LOG_BYTES_MAX" "BYTES";

    /// Bytes of keys, values and all else that is stored, without history, above which only what frees room is taken; the
    /// same on all nodes; 0 for no quota [default: 8589934592]
    quota_bytes: u64 = "QUORATE_QUOTA_BYTES" "BYTES";

    /// Milliseconds a request may take where it does not say itself (header Request-Timeout) [default: 10000]
    request_timeout_ms: u64 = "QUORATE_REQUEST_TIMEOUT_MS" "MS";

    /// Most milliseconds that a request may ask for [default: 60000]
    request_timeout_max_ms: u64 = "QUORATE_REQUEST_TIMEOUT_MAX_MS" "MS";

    /// Largest request body in bytes [default: 2162688]
    body_bytes_max: usize = "QUORATE_BODY_BYTES_MAX" "BYTES";

    /// Most client connections at a time; one more closes one that has not shown who it is [default: 4096]
    connections_max: usize = "QUORATE_CONNECTIONS_MAX" "N";

    /// Operations a second that one account may have done here, lists and finds at what they cost; an account is an address, of
    /// IPv6 a network; 0 for no limit [default: 0]
    account_ops_per_second: u64 = "QUORATE_ACCOUNT_OPS_PER_SECOND" "N";

    /// Bytes of requests and answers a second of one account; 0 for no limit [default: 0]
    account_bytes_per_second: u64 = "QUORATE_ACCOUNT_BYTES_PER_SECOND" "BYTES";

    /// Most connections of one address at a time; 0 for no limit. Behind a proxy all clients are one address
    /// [default: a quarter of --connections-max]
    account_connections_max: usize = "QUORATE_ACCOUNT_CONNECTIONS_MAX" "N";

    /// Most watches of one account at a time, observers of elections too; 0 for no limit [default: 0]
    account_watches_max: usize = "QUORATE_ACCOUNT_WATCHES_MAX" "N";

    /// Milliseconds in which a new connection must say something, and in which a request head must be complete
    /// [default: 5000]
    header_timeout_ms: u64 = "QUORATE_HEADER_TIMEOUT_MS" "MS";

    /// Milliseconds a request body may take before it must hold the minimum rate [default: 10000]
    body_timeout_ms: u64 = "QUORATE_BODY_TIMEOUT_MS" "MS";

    /// Slowest request body tolerated after that, in bytes a second [default: 16384]
    body_rate_min: u64 = "QUORATE_BODY_RATE_MIN" "BYTES";

    /// Milliseconds a connection may stand without a request [default: 60000]
    idle_timeout_ms: u64 = "QUORATE_IDLE_TIMEOUT_MS" "MS";

    /// Milliseconds that open requests get to end when the node stops [default: 5000]
    drain_timeout_ms: u64 = "QUORATE_DRAIN_TIMEOUT_MS" "MS";

    /// Threads for Raft, peers and requests; the databases have threads of their own [default: half of the cores]
    worker_threads: usize = "QUORATE_WORKER_THREADS" "N";

    /// Threads beside these that serve connections of clients, once there are more than a few; 0 for none [default: the
    /// other cores]
    client_threads: usize = "QUORATE_CLIENT_THREADS" "N";

    /// Microseconds for which a node that takes part in a write stays awake for what comes next, giving way to everybody
    /// else; 0 for none; with one worker thread only [default: 600]
    busy_poll_us: u64 = "QUORATE_BUSY_POLL_US" "US";

    /// Bytes of the ballast file that is given up when the disk is full; 0 for none [default: 67108864; 0 with --dev]
    ballast_bytes: u64 = "QUORATE_BALLAST_BYTES" "BYTES";

    /// Bytes of free disk below which writes are refused; deletes still work [default: 268435456; 0 with --dev]
    min_free_bytes: u64 = "QUORATE_MIN_FREE_BYTES" "BYTES";

    /// Directory into which this node writes a backup of its state every so often [default: none]
    backup_dir: PathBuf = "QUORATE_BACKUP_DIR" "DIR";

    /// Milliseconds from one backup to the next [default: 86400000, a day]
    backup_every_ms: u64 = "QUORATE_BACKUP_EVERY_MS" "MS";

    /// Backups of this node that are kept in the directory [default: 7]
    backup_keep: usize = "QUORATE_BACKUP_KEEP" "N";

    /// For whom these backups are encrypted: public keys of age, age1…, separated by commas [default: they are not encrypted]
    backup_recipients: String = "QUORATE_BACKUP_RECIPIENTS" "LIST";

    /// File with a secret by which these backups are authenticated; `openssl rand -hex 32` makes one [default: none]
    backup_mac_key: PathBuf = "QUORATE_BACKUP_MAC_KEY" "FILE";

    /// Where the cluster is archived, the same on all nodes: s3://BUCKET/PREFIX, gs://…, az://CONTAINER/PREFIX or a directory that all of
    /// them share; credentials come from the environment or the files of the cloud's own tools [default: none]
    archive: String = "QUORATE_ARCHIVE" "LOCATION";

    /// Milliseconds after which what was written is in the archive: what a disaster takes at most [default: 5000]
    archive_interval_ms: u64 = "QUORATE_ARCHIVE_INTERVAL_MS" "MS";

    /// Milliseconds from one base in the archive to the next; a restore applies all that was written since one [default: 86400000, a day]
    archive_base_every_ms: u64 = "QUORATE_ARCHIVE_BASE_EVERY_MS" "MS";

    /// Milliseconds for which every point in time can be restored from the archive [default: 604800000, seven days]
    archive_keep_ms: u64 = "QUORATE_ARCHIVE_KEEP_MS" "MS";

    /// Bases that the archive keeps at least, however old [default: 2]
    archive_keep_bases: usize = "QUORATE_ARCHIVE_KEEP_BASES" "N";

    /// For whom the archive is encrypted: public keys of age, age1…, separated by commas [default: those of archive-key; without one it
    /// is not encrypted]
    archive_recipients: String = "QUORATE_ARCHIVE_RECIPIENTS" "LIST";

    /// File with a key of age, as `age-keygen` writes it, which opens the archive: with it a node can try restores [default: none]
    archive_key: PathBuf = "QUORATE_ARCHIVE_KEY" "FILE";

    /// File with a secret, the same on all nodes, by which the archive is authenticated: nothing is restored with it that somebody else wrote
    /// there; `openssl rand -hex 32` makes one [default: none]
    archive_mac_key: PathBuf = "QUORATE_ARCHIVE_MAC_KEY" "FILE";

    /// Bytes of log that a node keeps for an archive that cannot be reached; beyond them the archive gets a gap, and then a new base
    /// [default: 4294967296]
    archive_hold_bytes: u64 = "QUORATE_ARCHIVE_HOLD_BYTES" "BYTES";

    /// Milliseconds from one restore of the archive that the leader tries, into a directory that it removes again, to the next; 0 for
    /// never [default: 86400000, a day]
    archive_verify_every_ms: u64 = "QUORATE_ARCHIVE_VERIFY_EVERY_MS" "MS";

    /// Milliseconds of a span whose pieces in the archive become one object once it is over, and later those of 24 such spans; 0 for never
    /// [default: 3600000, an hour]
    archive_merge_ms: u64 = "QUORATE_ARCHIVE_MERGE_MS" "MS";

    /// Serve no console: without it, browsers find one at /console/
    no_console: bool = "QUORATE_NO_CONSOLE" "BOOL" [num_args = 0..=1, require_equals = true, default_missing_value = "true"];

    /// Origins of web pages that browsers let use this node, separated by commas, like `https://app.example.org`; * for every page
    /// [default: none]
    cors_origins: String = "QUORATE_CORS_ORIGINS" "LIST";

    /// Names by which clients may ask this node, beside addresses, names of loopback and those it listens and is known by, separated by
    /// commas: `*.example.org` for all names that end so, * for every name. Looked at where nobody has to say who they are, and
    /// wherever it is given [default: none; with --auth required every name]
    allowed_hosts: String = "QUORATE_ALLOWED_HOSTS" "LIST";

    /// Version of etcd that clients of its protocol are told, which turn features on and off by it [default: 3.6.5]
    etcd_version: String = "QUORATE_ETCD_VERSION" "VERSION";

    /// PEM file with the certificate of the client port, and those between it and its CA: the port then speaks TLS only. Read again
    /// when it changes [default: none]
    tls_cert: PathBuf = "QUORATE_TLS_CERT" "FILE";

    /// PEM file with its private key
    tls_key: PathBuf = "QUORATE_TLS_KEY" "FILE";

    /// PEM file with the CAs whose client certificates are believed: a client may show one, and is then who the certificate says
    /// (its first DNS name, else its common name) [default: none]
    tls_client_ca: PathBuf = "QUORATE_TLS_CLIENT_CA" "FILE";

    /// PEM file with the lists of what those CAs have revoked (CRLs), one for each of them: who shows a certificate that is on one is
    /// refused, and cut off where it has a connection. Read again when it changes [default: none]
    tls_client_crl: PathBuf = "QUORATE_TLS_CLIENT_CRL" "FILE";

    /// PEM file with this node's certificate among the nodes, with the DNS name node-N.quorate for node N, for servers and clients:
    /// nodes then talk to each other over TLS only. All three or none, and the same on all nodes [default: none]
    peer_tls_cert: PathBuf = "QUORATE_PEER_TLS_CERT" "FILE";

    /// PEM file with its private key
    peer_tls_key: PathBuf = "QUORATE_PEER_TLS_KEY" "FILE";

    /// PEM file with the CAs that make the certificates of nodes
    peer_tls_ca: PathBuf = "QUORATE_PEER_TLS_CA" "FILE";

    /// PEM file with the lists of what those CAs have revoked (CRLs), one for each of them, the same on all nodes. Read again when it
    /// changes [default: none]
    peer_tls_crl: PathBuf = "QUORATE_PEER_TLS_CRL" "FILE";

    /// Whether those who ask have to say who they are [default: off]
    auth: Auth = "QUORATE_AUTH" "WHETHER";

    /// File with the token of `root`, who may do everything: one line of at least 32 printable characters that do not repeat
    /// themselves, like those of `openssl rand -hex 32`; read again when it changes; for --auth required
    root_token_file: PathBuf = "QUORATE_ROOT_TOKEN_FILE" "FILE";

    /// Believe JSON Web Tokens of this issuer (OpenID Connect), as it names itself in `iss`; with --jwt-audience and --jwt-jwks; for --auth
    /// required
    jwt_issuer: String = "QUORATE_JWT_ISSUER" "ISSUER";

    /// For whom its tokens have to be: a value of `aud`
    jwt_audience: String = "QUORATE_JWT_AUDIENCE" "AUDIENCE";

    /// The issuer's public keys (JSON Web Key Set): a file, read again when it changes, or an https:// address, asked every five minutes
    /// and when a token names a new key
    jwt_jwks: String = "QUORATE_JWT_JWKS" "FILE|URL";

    /// CA whose certificate that address shows, PEM
    jwt_ca: PathBuf = "QUORATE_JWT_CA" "FILE";

    /// The claim with the name of the user; dots lead into objects [default: sub]
    jwt_user_claim: String = "QUORATE_JWT_USER_CLAIM" "CLAIM";

    /// What stands before that name here, so that nobody is taken for a user of the cluster [default: nothing where the claim is sub, oidc:
    /// where it is another]
    jwt_user_prefix: String = "QUORATE_JWT_USER_PREFIX" "TEXT";

    /// The claim with the names of roles of this cluster: a list, or text with spaces between; dots lead into objects
    /// [default: none; the user has to be one of the cluster]
    jwt_roles_claim: String = "QUORATE_JWT_ROLES_CLAIM" "CLAIM";

    /// Longest time that one of its tokens may be good, from `iat` to `exp`, or from now where it has no `iat` [default: 86400000]
    jwt_lifetime_max_ms: u64 = "QUORATE_JWT_LIFETIME_MAX_MS" "MS";

    /// File to which this node adds a line of JSON for each command, refusal and administration [default: none]
    audit_log: PathBuf = "QUORATE_AUDIT_LOG" "FILE";

    /// A single node in a temporary directory that is removed at exit; it listens where `quorate` and the other clients look first
    dev: bool = "QUORATE_DEV" "BOOL" [num_args = 0..=1, require_equals = true, default_missing_value = "true"];

    /// Listen beyond loopback although TLS or authentication is missing: whoever reaches the port owns the data
    insecure: bool = "QUORATE_INSECURE" "BOOL" [num_args = 0..=1, require_equals = true, default_missing_value = "true"];
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
}
