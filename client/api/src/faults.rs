//! What the cluster met and contained: `/v1/cluster/faults`.
//!
//! Owns the bodies. Each fault is a bug of Quorate, or a state that contradicts itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::decimal;
use super::strict::given;

/// The answer of `GET /v1/cluster/faults`.
///
/// # Examples
///
/// ```
/// use quorate_api::FaultsAnswer;
///
/// let faults: FaultsAnswer = serde_json::from_str(r#"{"commands":0,"parked":0,"kept":[],"work":[]}"#)?;
/// assert_eq!((faults.commands, faults.parked), (0, 0), "nothing has ever faulted");
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::FaultedCommand;
///
/// let fault: FaultedCommand = serde_json::from_str(
///     r#"{"index":51,"number":0,"revision":"43","cluster_clock_ms":61000,"at":"2026-11-21T08:00:00.000Z",
///         "level":1,"command":"AAEC"}"#,
/// )?;
/// assert_eq!(format!("entry {}, command {}", fault.index, fault.number), "entry 51, command 0");
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::{FaultsRequest, FaultsVerb, ParkedWork};
///
/// let work: ParkedWork = serde_json::from_str(
///     r#"{"work":"606d656d62657273","kind":"rules of a collection","subject":"members","index":51,
///         "revision":"43","at":"2026-11-21T08:00:00.000Z"}"#,
/// )?;
/// let retry = FaultsRequest { verb: FaultsVerb::Retry, work: Some(work.work), request_id: None };
/// assert_eq!(serde_json::to_string(&retry)?, r#"{"verb":"retry","work":"606d656d62657273"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::FaultsVerb;
///
/// assert_eq!(serde_json::to_string(&FaultsVerb::Forget)?, r#""forget""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::{FaultsRequest, FaultsVerb};
///
/// let request = FaultsRequest { verb: FaultsVerb::Drop, work: Some("606d656d62657273".into()), request_id: None };
/// assert_eq!(serde_json::to_string(&request)?, r#"{"verb":"drop","work":"606d656d62657273"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
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

/// The answer of `POST /v1/cluster/faults`.
///
/// # Examples
///
/// ```
/// use quorate_api::FaultsReply;
///
/// let reply: FaultsReply = serde_json::from_str(r#"{"count":1,"revision":"44","index":52}"#)?;
/// assert_eq!((reply.count, reply.replayed), (1, false));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct FaultsReply {
    /// Commands that were forgotten, or pieces of work.
    pub count: u32,
    /// Revision of the store after it.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index of the command.
    pub index: u64,
    /// Whether it was done before, under this request id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}
