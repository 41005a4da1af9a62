//! What the cluster met and contained: `/v1/cluster/faults`.
//!
//! Owns the bodies. Each fault is a bug of Quorate, or a state that contradicts itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::answers;
use super::decimal;
use super::strict::given;

/// The answer of `GET /v1/cluster/faults`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct FaultsAnswer {
    /// Commands that ever faulted. Each was taken back and answered as `internal`.
    pub commands: u64,
    /// Pieces of work that are set aside now.
    pub parked: u64,
    /// The last commands that faulted, the newest first.
    pub kept: Vec<FaultedCommand>,
    /// Work that is set aside: timers, expiries, compaction and the like. At most 256 pieces are shown.
    pub work: Vec<ParkedWork>,
}

/// A command that faulted, for a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct FaultedCommand {
    /// Log index of its entry.
    pub index: u64,
    /// Its number in the entry, from 0.
    pub number: u32,
    /// Revision of the state that it was applied to.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Cluster clock then, milliseconds.
    pub cluster_clock_ms: u64,
    /// Wall clock then, RFC 3339.
    pub at: String,
    /// Feature level then.
    pub level: u32,
    /// The command as it stands in the log, base64; empty where it was larger than 256 KiB. It may hold values.
    pub command: String,
}

/// Work that faulted and was set aside, so that all other work goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct ParkedWork {
    /// Names it in `POST /v1/cluster/faults`.
    pub work: String,
    /// What kind of work it is.
    pub kind: String,
    /// What it is about, with bytes that are no text escaped.
    pub subject: String,
    /// Log index of the entry that it faulted in.
    pub index: u64,
    /// Revision of the state then.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Wall clock then, RFC 3339.
    pub at: String,
}

/// What is to be done about faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum FaultsVerb {
    /// Tries work again; it is set aside again where it faults again.
    Retry,
    /// Gives work up.
    Drop,
    /// Forgets the commands that are kept.
    Forget,
}

/// The body of `POST /v1/cluster/faults`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultsRequest {
    /// What to do.
    pub verb: FaultsVerb,
    /// Which work, for `retry` and `drop`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// Makes retries safe.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

answers! {
    /// The answer of `POST /v1/cluster/faults`.
    #[derive(Eq)]
    pub struct FaultsReply: decided {
        /// Commands that were forgotten, or pieces of work.
        pub count: u32,
    }
}
