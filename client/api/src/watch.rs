//! Watches: the messages of `GET /v1/watch`.
//!
//! Each is one server-sent event: `event:` names it, `data:` is one line of JSON. `id:` is where to go on after it, and stands
//! only where nothing of a revision is missing: on the last event of each revision, on `synced` and on `progress`.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::EntryView;
use super::decimal;
use super::error_code::ErrorCode;
use super::name::{Name, named};
use super::strict::known;

/// The content type of a watch.
pub const WATCH_CONTENT_TYPE: &str = "text/event-stream";

/// What happened to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum WatchEventKind {
    /// It was created or changed: its value, or when it expires.
    Put,
    /// It is gone.
    Delete,
}

/// Why an entry is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum DeleteCause {
    /// Somebody removed it.
    Removed,
    /// Its time to live was over.
    Expired,
    /// The session that it went with has ended.
    SessionEnded,
}

/// A change of an entry: `event: put` and `event: delete`.
///
/// # Examples
///
/// ```
/// use quorate_api::{DeleteCause, WatchEvent, WatchEventKind};
///
/// // The `data:` of `event: delete`.
/// let event: WatchEvent = serde_json::from_str(
///     r#"{"type":"delete","revision":"43","index":0,"key":"services/web-3","cause":"session_ended"}"#,
/// )?;
/// assert_eq!((event.kind, event.cause), (WatchEventKind::Delete, Some(DeleteCause::SessionEnded)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct WatchEvent {
    /// What happened.
    #[serde(rename = "type")]
    pub kind: WatchEventKind,
    /// The revision of the change; of an initial entry the one that all of them show.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Its place among the changes of that revision, those included that were not asked for. Absent for an initial entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The key.
    pub key: Name,
    /// The entry as the change left it, its `cas` included; absent once it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryView>,
    /// Why it is gone. A cause of a newer server is left out.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub cause: Option<DeleteCause>,
    /// With `prev`: the entry before the change, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<EntryView>,
    /// Whether nothing happened, and this is an entry that was there when the watch began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub initial: bool,
}

named!(WatchEvent, key);

/// How far a watch is: `event: synced` behind the last initial entry, `event: progress` where nothing was sent for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct WatchProgress {
    /// Everything up to this revision was sent.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
}

/// Why a node ends a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum WatchEndCode {
    /// What follows is compacted: read the entries anew, with `initial`.
    Compacted,
    /// The client read so slowly that what follows was compacted meanwhile.
    SlowConsumer,
    /// The node has heard no leader for a while: go on at another one.
    NoLeader,
    /// The node is stopping: go on at another one.
    Stopping,
    /// The node does not trust its state any more: go on at another one.
    Quarantined,
    /// Who watches may not read all of it any more.
    PermissionDenied,
    /// What says who watches does not hold any more.
    Unauthenticated,
    /// An entry takes too much work to be held against `where`: go on behind it, or with fewer conditions.
    TooDear,
    /// Instead of a status, for who takes nothing but `text/event-stream`: the node is starting, stopping or catching up.
    NotReady,
    /// The same: the node could not begin in time.
    Timeout,
    /// The same: there are too many requests or streams at the moment. It also ends a stream at work, of a caller with more than its share of the
    /// watches, once others find no room for theirs. Go on at another node.
    TooManyRequests,
    /// The same: the node met a fault.
    Internal,
}

impl WatchEndCode {
    /// As it stands in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compacted => "compacted",
            Self::SlowConsumer => "slow_consumer",
            Self::NoLeader => "no_leader",
            Self::Stopping => "stopping",
            Self::Quarantined => "quarantined",
            Self::PermissionDenied => "permission_denied",
            Self::Unauthenticated => "unauthenticated",
            Self::TooDear => "too_dear",
            Self::NotReady => "not_ready",
            Self::Timeout => "timeout",
            Self::TooManyRequests => "too_many_requests",
            Self::Internal => "internal",
        }
    }
}

/// That what was shown before does not count, or that something is missing: `event: reset`, the first message of a stream. Only for
/// readers that take nothing but `text/event-stream`, such as a browser's `EventSource`; all others are told by a status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct WatchReset {
    /// The stream goes on after this. With `initial`, and in an election, what follows is the state as of now; else changes up to this
    /// revision are missing.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Why it does not go on after `Last-Event-ID`: `compacted`, or `invalid_argument` where that has not happened in this cluster. Absent
    /// where nothing is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// What happened this time; with `code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The last message of a watch that its node ends: `event: end`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct WatchEnd {
    /// Why.
    pub code: WatchEndCode,
    /// What happened this time.
    pub detail: String,
    /// With `compacted` and `slow_consumer`: the oldest revision that can be read.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::shown, required = false)]
    pub oldest_revision: Option<u64>,
    /// Everything up to this revision was sent; absent where not even all initial entries were.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::shown, required = false)]
    pub revision: Option<u64>,
}

impl fmt::Display for WatchEnd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.code.name(), self.detail)
    }
}
