//! Elections: locks whose holder leads, says something of itself and is observed.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::answers;
use super::decimal;
use super::strict::given;
use super::{JsonText, LockWaiter};

/// The body of `POST /v1/elections/{name}/campaign`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignRequest {
    /// The id of the session that is to lead. It stands once, however often it asks.
    pub session: String,
    /// What it says of itself once it leads: any JSON of at most 65536 bytes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value, required = false)]
    pub value: Option<JsonText>,
    /// How long to stand, counted anew each time that the session asks: at most 86400000; 0 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 86400000, nullable = false)]
    pub wait_ms: Option<u64>,
    /// After how long the request is answered with 202 although the wait is not over: at most 60000; 50000 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 60000, nullable = false)]
    pub poll_ms: Option<u64>,
    /// How long nobody is elected after the session of this leader has expired: at most 60000; 0 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 60000, nullable = false)]
    pub delay_ms: Option<u64>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Whether a session leads or stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum CampaignState {
    /// It leads.
    Leader,
    /// It stands, and leads once those before it are gone.
    Candidate,
}

answers! {
    /// The answer of `POST /v1/elections/{name}/campaign`.
    #[derive(Eq)]
    pub struct CampaignAnswer: decided {
        /// Its name.
        pub election: String,
        /// Whether the session leads (200), or stands (202): ask again to go on waiting.
        pub state: CampaignState,
        /// Leader: its term, the fencing token, greater than that of every leader before.
        #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
        #[schema(schema_with = decimal::shown, required = false)]
        pub term: Option<u64>,
        /// Candidate: its place; smaller ones come first.
        #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
        #[schema(schema_with = decimal::shown, required = false)]
        pub place: Option<u64>,
        /// Candidate: how many stand before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ahead: Option<u64>,
        /// The session.
        pub session: String,
    }
}

/// The body of `POST /v1/elections/{name}/proclaim`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProclaimRequest {
    /// The term of the leader that says it.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::given)]
    pub term: u64,
    /// What it says of itself from now on: any JSON of at most 65536 bytes.
    #[schema(value_type = serde_json::Value)]
    pub value: JsonText,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

answers! {
    /// The answer of `POST /v1/elections/{name}/proclaim`.
    #[derive(Eq)]
    pub struct ProclaimAnswer: decided {
        /// Its name.
        pub election: String,
        /// The term of the leader.
        #[serde(with = "decimal")]
        #[schema(schema_with = decimal::shown)]
        pub term: u64,
    }
}

/// The body of `POST /v1/elections/{name}/resign`: exactly one of `term` and `session`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResignRequest {
    /// The leader of this term resigns.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::given, required = false)]
    pub term: Option<u64>,
    /// This session resigns, or does not stand any more.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub session: Option<String>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

answers! {
    /// The answer of `POST /v1/elections/{name}/resign`.
    #[derive(Eq)]
    pub struct ResignAnswer: decided {
        /// Its name.
        pub election: String,
        /// Whether something was given up; `false` only for a session that neither led nor stood.
        pub resigned: bool,
    }
}

/// A leader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct LeaderView {
    /// The session.
    pub session: String,
    /// The owner of the session.
    pub owner: String,
    /// Its term.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub term: u64,
    /// What it says of itself; absent where it said nothing.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value, required = false)]
    pub value: Option<JsonText>,
    /// When it was elected, by the cluster's wall clock.
    #[schema(format = DateTime)]
    pub since: String,
    /// Milliseconds since it was elected.
    pub age_ms: u64,
}

answers! {
    /// An election as it is: the answer of `GET /v1/elections/{name}`. One that nobody stands in has no leader.
    pub struct ElectionAnswer: at {
        /// Its name.
        pub election: String,
        /// The leader; `null` where there is none.
        #[schema(required = true)]
        pub leader: Option<LeaderView>,
        /// Who stands, the first 100 by place.
        pub candidates: Vec<LockWaiter>,
        /// How many stand.
        pub candidate_count: u64,
        /// Milliseconds for which nobody is elected, because the session of a leader with `delay_ms` has expired; 0 for none.
        pub delay_left_ms: u64,
    }
}

/// An election in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct ElectionSummary {
    /// Its name.
    pub election: String,
    /// Whether somebody leads.
    pub has_leader: bool,
    /// How many stand.
    pub candidate_count: u64,
}

answers! {
    /// The answer of `GET /v1/elections`.
    #[derive(Eq)]
    pub struct ElectionList: page {
        /// Elections in use, by name.
        pub elections: Vec<ElectionSummary>,
    }
}

/// The data of an event `leader` of `GET /v1/elections/{name}/observe`: somebody was elected, or says something else of
/// itself. Its `id` is the revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct LeaderEvent {
    /// The election.
    pub election: String,
    /// Revision of the change.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// The term of the leader.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub term: u64,
    /// The session.
    pub session: String,
    /// The owner of the session.
    pub owner: String,
    /// What it says of itself; absent where it said nothing.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value, required = false)]
    pub value: Option<JsonText>,
    /// When it was elected, by the cluster's wall clock.
    #[schema(format = DateTime)]
    pub since: String,
}

/// The data of an event `vacant` of `GET /v1/elections/{name}/observe`: nobody leads. Its `id` is the revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct VacantEvent {
    /// The election.
    pub election: String,
    /// Revision of the change; at the start of an observation of an election without any known change, the current one.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
}
