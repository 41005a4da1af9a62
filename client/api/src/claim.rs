//! Claims: entries found and locked in one step.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::decimal;
use super::name::{Name, named};
use super::strict::{given, given_object};
use super::{BulkResult, Criterion, EntryView, JsonText};

/// Most entries of one claim.
pub const CLAIM_ENTRIES_MAX: u32 = 100;

/// The body of `POST /v1/claim`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct ClaimRequest {
    /// Only keys that begin with this.
    pub prefix: Name,
    /// What holds of the entries, all of it. Those that are locked are passed over.
    #[serde(default, rename = "where", deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Criterion>>, nullable = false)]
    pub criteria: Option<Vec<JsonText>>,
    /// Paths of the fields that decide which come first, `-` before those of which the greatest do. At most 8. Without it
    /// those found first: by key, or in the order of the index that is used.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 8, nullable = false)]
    pub order_by: Option<Vec<String>>,
    /// Most entries to claim, 1 to 100; 1 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100, nullable = false)]
    pub limit: Option<u32>,
    /// How long the locks hold: at most 30000. 15000 without it, with 0 and with more; `lock_ms` of each entry is the time given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lock_ms: Option<u64>,
    /// What to change of each entry in the same step: as in an operation `update`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub patch: Option<JsonText>,
    /// Apply only while this token holds its lock or leads its election; otherwise nothing is claimed.
    #[serde(default, deserialize_with = "given_object", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub guard: Option<super::Guard>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Say what would be claimed, lock and change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

named!(ClaimRequest, prefix);

/// The answer of `POST /v1/claim`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct ClaimAnswer {
    /// The entries as they are now, in order: locked, and `cas` is the key to the lock. None where nothing was to be claimed.
    pub entries: Vec<EntryView>,
    /// How many they are.
    pub count: u64,
    /// Entries that match and were passed over, because the patch does not fit them or their collection does not accept what
    /// it leaves; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<BulkResult>,
    /// Whether `failed` is missing because it was too long to be kept for a retry (`replayed`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
    /// Entries looked at.
    pub examined: u64,
    /// Whether it stopped because it had looked at as many as it may, so that there can be others.
    pub more: bool,
    /// Fields of the index that was used; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_used: Option<Vec<String>>,
    /// Revision of all the locks.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which it took effect or was evaluated.
    pub index: u64,
    /// Whether this is the kept answer of an earlier try with the same request id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Whether nothing was locked because a dry run was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}
