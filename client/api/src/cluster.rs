//! The cluster as a node sees it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::decimal;
use super::strict::given;

/// The content type of `GET /v1/cluster/backup`.
pub const BACKUP_CONTENT_TYPE: &str = "application/vnd.quorate.backup";

/// What a node is in its cluster at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum Role {
    /// Leads.
    Leader,
    /// Follows and votes.
    Follower,
    /// Asks for votes.
    Candidate,
    /// Follows without a vote.
    Learner,
    /// Not (yet) in the Raft group.
    Outside,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct MemberView {
    /// Its node id.
    pub id: u64,
    /// Where peers reach it.
    pub peer_addr: String,
    /// Where clients reach it.
    pub client_addr: String,
    /// Whether it votes.
    pub voter: bool,
    /// Last log index known to be on it; only the leader knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_index: Option<u64>,
    /// Milliseconds since it last answered; only the leader knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_contact_ms: Option<u64>,
}

/// The answer of `GET /v1/cluster/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct StatusAnswer {
    /// The cluster, 32 hex digits; empty until the node is in one.
    pub cluster_id: String,
    /// The answering node.
    pub node_id: u64,
    /// Identity of its data directory, 32 hex digits.
    pub incarnation: String,
    /// Version of its binary.
    pub version: String,
    /// Its role.
    pub role: Role,
    /// Whether it would answer a linearizable read now.
    pub ready: bool,
    /// Why it is not ready, quarantined or worried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The leader it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_id: Option<u64>,
    /// Where clients reach that leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_client_addr: Option<String>,
    /// Its Raft term.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub term: u64,
    /// All members.
    pub members: Vec<MemberView>,
    /// Last log index on this node.
    pub last_log_index: u64,
    /// Last index this node knows to be committed.
    pub committed_index: u64,
    /// Last index applied here.
    pub applied_index: u64,
    /// Last index covered by this node's snapshot; 0 for none.
    pub snapshot_index: u64,
    /// Last index dropped from this node's log; 0 for none.
    pub purged_index: u64,
    /// Cluster revision at the applied index.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Oldest revision that can still be read.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub oldest_revision: u64,
    /// Cluster clock at the applied index, milliseconds.
    pub cluster_clock_ms: u64,
    /// Digest of the replicated state at the applied index, 32 hex digits.
    pub digest: String,
    /// Feature level of the cluster at the applied index: what its members have agreed to do when they apply the log.
    #[serde(default)]
    pub level: u32,
    /// Highest feature level that the answering node agrees to.
    #[serde(default)]
    pub level_known: u32,
    /// Free bytes on its data disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_free_bytes: Option<u64>,
    /// Bytes of its data disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_size_bytes: Option<u64>,
    /// Entries there, those that expired but are not removed yet included.
    #[serde(default)]
    pub entries: u64,
    /// Bytes of all that is stored there, without history.
    #[serde(default)]
    pub stored_bytes: u64,
    /// Bytes of history there.
    #[serde(default)]
    pub history_bytes: u64,
    /// Bytes that may be stored; 0 for no quota.
    #[serde(default)]
    pub quota_bytes: u64,
    /// How often the state went on in another cluster, by a restore or a recovery; 0 in the first.
    #[serde(default)]
    pub epoch: u64,
    /// The revision at which that began: what is known from before it is of another history.
    #[serde(default, with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub epoch_revision: u64,
}

/// The answer of `GET /v1/cluster/digest`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct DigestAnswer {
    /// The answering node.
    pub node_id: u64,
    /// Log index that the digest belongs to.
    pub index: u64,
    /// Revision at that index.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// 32 hex digits; equal on all nodes for an equal index.
    pub digest: String,
}

/// The body of `POST /v1/cluster/leader`; may be left out whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaderRequest {
    /// Who is to lead; without it the best follower.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
}

/// The answer of `POST /v1/cluster/leader`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct LeaderAnswer {
    /// Who leads now.
    pub leader_id: u64,
}

/// The answer of `POST /v1/cluster/members/{id}/repair`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct RepairAnswer {
    /// The member.
    pub node_id: u64,
    /// Whether its state was replaced by the leader's. False: it trusts its state, and nothing was done.
    pub repaired: bool,
}

/// The answer of `GET /version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct VersionAnswer {
    /// Of the binary.
    pub version: String,
    /// Of the HTTP API.
    pub api: String,
    /// Of etcd's server whose interface the node has, for clients that choose by it how to ask.
    #[serde(default)]
    pub etcdserver: String,
    /// Of etcd's cluster, likewise.
    #[serde(default)]
    pub etcdcluster: String,
}

/// The answer of `GET /v1/limits`: what the node that answers takes at most. Whoever asks for more is refused with a problem that
/// names the limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct LimitsAnswer {
    /// Bytes of a key.
    pub key_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Bytes of a request's body, but for bulks. Each node has a setting of its own, `--body-bytes-max`.
    pub body_bytes: u64,
    /// Bytes of a bulk's body.
    pub bulk_body_bytes: u64,
    /// Operations of a bulk.
    pub bulk_operations: u64,
    /// Conditions and operations of a transaction, those of nested ones included.
    pub txn_steps: u64,
    /// Entries of one page of a list.
    pub list_entries: u64,
    /// Entries of one page of a find.
    pub find_entries: u64,
    /// Milliseconds for which an entry can be locked.
    pub lock_ms: u64,
    /// Milliseconds for which a session lasts without being renewed.
    pub session_ttl_ms: u64,
    /// Milliseconds for which an entry can be set to live.
    pub ttl_ms: u64,
}
