//! Barriers: they open once so many sessions have entered, and close once all have left.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::answers;
use super::decimal;
use super::strict::given;

/// The body of `POST /v1/barriers/{name}/enter`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnterRequest {
    /// The id of the session that enters. The end of the session is as good as leaving.
    pub session: String,
    /// How many sessions open it, 1 to 10000: the same number for all of them.
    #[schema(minimum = 1, maximum = 10000)]
    pub parties: u32,
    /// How long to wait until it opens: at most 60000; 0 without it. The session stays in it afterwards.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 60000, nullable = false)]
    pub wait_ms: Option<u64>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The body of `POST /v1/barriers/{name}/leave`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaveRequest {
    /// The id of the session that leaves.
    pub session: String,
    /// How long to wait until all have left: at most 60000; 0 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 60000, nullable = false)]
    pub wait_ms: Option<u64>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What a barrier is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum BarrierState {
    /// Not all have entered.
    Waiting,
    /// All have entered, and not all have left.
    Open,
    /// Nobody is in it.
    Empty,
}

answers! {
    /// A barrier as it is: the answer of `enter`, `leave` and `GET` of `/v1/barriers/{name}`. A barrier that nobody knows is
    /// empty.
    #[derive(Eq)]
    pub struct BarrierAnswer: decided {
        /// Its name.
        pub barrier: String,
        /// What it is doing. After `enter`: `open` (200) or `waiting` (202). After `leave`: `empty` once all have left (200), else
        /// what it is doing (202).
        pub state: BarrierState,
        /// How many sessions open it. Absent where it is empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub parties: Option<u32>,
        /// How many sessions are in it.
        pub entered: u32,
        /// Revision at which it opened.
        #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
        #[schema(schema_with = decimal::shown, required = false)]
        pub opened_revision: Option<u64>,
    }
}
