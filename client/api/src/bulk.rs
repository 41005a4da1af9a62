//! Many operations in one request, and changes of everything that criteria find.
//!
//! Owns the bodies of `POST /v1/bulk`, `/v1/update_where` and `/v1/delete_where`, and their answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::decimal;
use super::name::{Name, named};
use super::strict::{at_most, given, given_object};
use super::{Criterion, EntryView, ErrorCode, Failed, InputFault, JsonText, Op};

/// Most operations of one bulk request.
pub const BULK_OPS_MAX: usize = 10_000;

/// The body of `POST /v1/bulk`. As `application/x-ndjson` it is the operations alone, one a line.
// A node reads the operations as texts, one after the other, so that each can have faults of its own.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "O: Deserialize<'de>"))]
pub struct BulkRequest<O = Op> {
    /// The operations, each applied on its own, in this order. All kinds but `get`; without `request_id` and `dry_run`, which
    /// belong to the whole.
    #[serde(deserialize_with = "at_most::<BULK_OPS_MAX, _, _>")]
    #[schema(value_type = Vec<Op>, min_items = 1, max_items = 10000)]
    pub ops: Vec<O>,
    /// Say what would happen, write nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Makes retries safe, also of a bulk of which only a part was applied: it goes on where it stopped.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What became of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum BulkOutcome {
    /// It took effect.
    Applied,
    /// It left things as they are, as was asked for: an `insert` found its key, or `if` does not hold.
    Skipped,
    /// It was refused; the other operations were not.
    Failed,
}

/// One operation of a bulk, or one entry that was not changed by `update_where` or `delete_where`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct BulkResult {
    /// Its place in the request, from 0; with `update_where` and `delete_where` its place among the entries that matched.
    pub n: u64,
    /// The key.
    pub key: Name,
    /// What became of it.
    pub outcome: BulkOutcome,
    /// Revision at which it took effect or was evaluated.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Applied: the new token, after `lock` the key to the lock; absent once the entry is removed, and of a dry run, which makes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub cas: Option<super::Cas>,
    /// Applied: revision that created the entry; absent once it is removed, and where a dry run would create it.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::shown, required = false)]
    pub create_revision: Option<u64>,
    /// Applied: changes since creation; absent once the entry is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Applied: milliseconds to live, for an entry that expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Applied: milliseconds until the lock ends by itself, after `lock` and `extend`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_ms: Option<u64>,
    /// Applied: the entry before, where `prev` was asked for and there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<EntryView>,
    /// Skipped or failed: the HTTP status that the operation alone would have been answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Skipped or failed: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// Skipped or failed: why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// For a condition or a patch that failed: which part of it, with pointers below `/ops/N`, and what is there instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// For a document that its collection does not accept: what is wrong with it, with pointers below `/ops/N/value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<InputFault>,
    /// Skipped or failed: the entry as it was then, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<EntryView>,
}

named!(BulkResult, key);

/// The answer of `POST /v1/bulk`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct BulkAnswer {
    /// How many operations took effect.
    pub applied: u64,
    /// How many left things as they are, as was asked for: inserts that found their key, and operations of which `if` does not hold.
    pub skipped: u64,
    /// How many were refused.
    pub failed: u64,
    /// Each operation, in order; with `Prefer: return=minimal` only those that failed.
    pub results: Vec<BulkResult>,
    /// Revision of the last part.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index of the last part.
    pub index: u64,
    /// Whether all of it is the kept answer of an earlier try with the same request id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Whether nothing was written because a dry run was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The body of `POST /v1/update_where` and `POST /v1/delete_where`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct WhereRequest {
    /// Only keys that begin with this. Every key only if it says so: `""`.
    pub prefix: Name,
    /// What holds of the entries to change, all of it; `[]` for each entry.
    #[serde(rename = "where")]
    #[schema(value_type = Vec<Criterion>)]
    pub criteria: Vec<JsonText>,
    /// What must hold of an entry that matched, or else it is skipped and shown.
    #[serde(default, rename = "if", deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Criterion>>, nullable = false)]
    pub condition: Option<Vec<JsonText>>,
    /// What to change: as in an operation `update`. Of `update_where`, which needs it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub patch: Option<JsonText>,
    /// Milliseconds to live from the moment the change applies; 0 for never. Only of `update_where`; without it the expiry stays.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ttl_ms: Option<u64>,
    /// Most entries that this request changes, 1 to 1000; 1000 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000, nullable = false)]
    pub limit: Option<u32>,
    /// Of the answer before, to go on where that stopped; under another request id.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cursor: Option<String>,
    /// Apply only while this token holds its lock or leads its election; otherwise nothing is changed.
    #[serde(default, deserialize_with = "given_object", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub guard: Option<super::Guard>,
    /// Say what would happen, write nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

named!(WhereRequest, prefix);

/// The answer of `POST /v1/update_where` and `POST /v1/delete_where`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct WhereAnswer {
    /// Entries that `where` found.
    pub matched: u64,
    /// How many of them were changed.
    pub applied: u64,
    /// Of how many `if` does not hold.
    pub skipped: u64,
    /// How many could not be changed.
    pub failed: u64,
    /// Entries looked at.
    pub examined: u64,
    /// Those that were skipped or failed; at most 100.
    pub results: Vec<BulkResult>,
    /// Whether `results` is missing because it was too long to be kept for a retry (`replayed`): what was done is done, read what
    /// there is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
    /// Give this back as `cursor`, with the rest of the body but another request id, to go on. Absent once everything was
    /// looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Revision at which the changes took effect or were evaluated.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which the changes took effect or were evaluated.
    pub index: u64,
    /// Whether this is the kept answer of an earlier try with the same request id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Whether nothing was written because a dry run was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}
