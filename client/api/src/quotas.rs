//! Quotas: what a principal, or all names with a prefix, may take of the store.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::answers;
use super::decimal;
use super::name::{Name, named};
use super::strict::given;

/// The body of `PUT /v1/quotas/principals/{name}`, `/v1/quotas/default` and `/v1/quotas/prefixes/{prefix}`: all bounds of the
/// quota. What is not given is not bounded, and shows `used` all the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaRequest {
    /// Of a principal: sessions that live, by who began them.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u64>,
    /// Of a principal: locks and leaderships that its sessions hold or wait for.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub locks: Option<u64>,
    /// Of a prefix: entries.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Of a prefix: bytes of entries with their keys, and of tasks, as they are stored.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Of a prefix: tasks that are not done, in queues whose names have it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// How much there is, or may be, of each thing that a quota counts: of a principal sessions and locks, of a prefix the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct QuotaAmounts {
    /// Sessions that live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u64>,
    /// Locks and leaderships held and waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<u64>,
    /// Entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Bytes of entries with their keys, and of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Tasks that are not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
}

/// Whether a quota refuses anything yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum QuotaState {
    /// What would be beyond it is refused.
    Enforced,
    /// What was there before it is still being counted; `used` is what was counted so far, and nothing is refused.
    Counting,
}

answers! {
    /// A quota, with what is used of it.
    #[derive(Eq)]
    #[serde(remote = "Self")]
    pub struct QuotaAnswer: decided_unless_listed {
        /// Of a principal: its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub principal: Option<String>,
        /// Of all names with a prefix: that. Where there is neither, the quota is that of every principal without one of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub prefix: Option<Name>,
        /// The bounds that hold. What is missing is not bounded.
        pub bounds: QuotaAmounts,
        /// How much there is. Absent for the quota of every principal, and in answers to a change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub used: Option<QuotaAmounts>,
        /// Whether it refuses anything yet. Absent in answers to a change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub state: Option<QuotaState>,
        /// Whether a principal has none of its own, so that its bounds are those of every principal.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub is_default: bool,
        /// Revision at which it was last set. Absent where nobody has: then it is what holds without an operator.
        #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
        #[schema(schema_with = decimal::shown, required = false)]
        pub set_revision: Option<u64>,
        /// When it was first set, by the cluster's wall clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(format = DateTime)]
        pub created: Option<String>,
    }
}

named!(QuotaAnswer, prefix);

answers! {
    /// The answer of `GET /v1/quotas/principals` and `/v1/quotas/prefixes`.
    #[derive(Eq)]
    pub struct QuotaList: page {
        /// By name: of principals those that have a quota of their own or use something, of prefixes those with a quota.
        pub quotas: Vec<QuotaAnswer>,
    }

    /// The answer of `DELETE` of a quota.
    #[derive(Eq)]
    #[serde(remote = "Self")]
    pub struct QuotaRemoved: decided {
        /// Of a principal: its name. From now on it has the quota of every principal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub principal: Option<String>,
        /// Of all names with a prefix: that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub prefix: Option<Name>,
    }
}

named!(QuotaRemoved, prefix);

/// Which quota a refused request would have gone beyond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct QuotaExceeded {
    /// The principal that has too much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The prefix below which there is too much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Name>,
    /// Of what: `sessions`, `locks`, `entries`, `bytes` or `tasks`.
    pub counts: String,
    /// How much there may be.
    pub bound: u64,
    /// How much there is.
    pub used: u64,
}

named!(QuotaExceeded, prefix);
