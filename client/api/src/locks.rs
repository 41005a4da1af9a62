//! Locks and semaphores: a queue with holders, first come first served, each with a fencing token that only grows.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::answers;
use super::decimal;
use super::strict::given;

/// How a lock is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum LockMode {
    /// Each holder takes a slot for itself.
    #[default]
    Exclusive,
    /// Beside any number of others that share; only with one slot.
    Shared,
}

/// Whether a session holds a lock or waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum LockState {
    /// It holds it.
    Held,
    /// It has a place in the queue.
    Waiting,
}

/// What a write may depend on: it is applied only while this token holds the lock or leads the election. Exactly one of
/// `lock` and `election`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// The name of a lock.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lock: Option<String>,
    /// The name of an election.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub election: Option<String>,
    /// The fencing token, or the term.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::given)]
    pub token: u64,
}

impl Guard {
    /// This token holds this lock.
    pub fn lock(name: impl Into<String>, token: u64) -> Self {
        Self { lock: Some(name.into()), election: None, token }
    }

    /// This term is that of the leader of this election.
    pub fn election(name: impl Into<String>, term: u64) -> Self {
        Self { lock: None, election: Some(name.into()), token: term }
    }
}

/// The body of `POST /v1/locks/{name}/acquire`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcquireRequest {
    /// The id of the session that is to hold it. It has one place in the queue, however often it asks.
    pub session: String,
    /// How long to wait in the queue, counted anew each time that the session asks: at most 86400000; 0 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 86400000, nullable = false)]
    pub wait_ms: Option<u64>,
    /// After how long the request is answered with 202 although the wait is not over: at most 60000; 50000 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 60000, nullable = false)]
    pub poll_ms: Option<u64>,
    /// How to hold it; `exclusive` without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub mode: Option<LockMode>,
    /// How many may hold it at once, each for itself: 1 to 10000. Without it as the lock is, 1 for one that nobody uses.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10000, nullable = false)]
    pub slots: Option<u32>,
    /// How long nobody gets the lock after the session of this holder has expired: at most 60000; 0 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 60000, nullable = false)]
    pub delay_ms: Option<u64>,
    /// Most that may wait for it, with this session: where so many wait already, the request is refused (`locked`) instead of waiting
    /// behind them. 1 to 1000; without it 1000. A place that the session has stays.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000, nullable = false)]
    pub max_waiters: Option<u32>,
    /// Whether an answer that says `waiting` also says who holds the lock; asks for the permission `read` on it, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_holders: bool,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

answers! {
    /// The answer of `POST /v1/locks/{name}/acquire`.
    #[derive(Eq)]
    pub struct AcquireAnswer: decided {
        /// Its name.
        pub lock: String,
        /// Whether the session holds it (200), or has a place in the queue (202): ask again to go on waiting.
        pub state: LockState,
        /// Held: the fencing token, greater than that of every holder before.
        #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
        #[schema(schema_with = decimal::shown, required = false)]
        pub token: Option<u64>,
        /// Waiting: the place; smaller ones come first.
        #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
        #[schema(schema_with = decimal::shown, required = false)]
        pub place: Option<u64>,
        /// Waiting: how many are in the queue before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ahead: Option<u64>,
        /// Waiting, and asked `with_holders`: who held it when this was answered, the first hundred of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub holders: Vec<LockHolder>,
        /// The session.
        pub session: String,
        /// How it holds the lock, or is to hold it.
        pub mode: LockMode,
    }
}

/// The body of `POST /v1/locks/{name}/release`: exactly one of `token` and `session`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// What this token holds is given up.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::given, required = false)]
    pub token: Option<u64>,
    /// Whatever this session has there is given up, also a place in the queue.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub session: Option<String>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

answers! {
    /// The answer of `POST /v1/locks/{name}/release`.
    #[derive(Eq)]
    pub struct ReleaseAnswer: decided {
        /// Its name.
        pub lock: String,
        /// Whether something was given up; `false` only for a session that had nothing there.
        pub released: bool,
    }
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct LockHolder {
    /// The session.
    pub session: String,
    /// The owner of the session.
    pub owner: String,
    /// Its fencing token.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub token: u64,
    /// How it holds the lock.
    pub mode: LockMode,
    /// Milliseconds since it got it.
    pub age_ms: u64,
}

/// Who waits for a lock, or stands in an election.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct LockWaiter {
    /// The session.
    pub session: String,
    /// The owner of the session.
    pub owner: String,
    /// Its place; smaller ones come first.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub place: u64,
    /// How it is to hold the lock.
    pub mode: LockMode,
    /// Milliseconds since it took the place.
    pub age_ms: u64,
    /// Milliseconds for which it still waits unless it asks again. Whoever waits without a bound asks for the 86400000 that nodes take at
    /// most, again and again.
    pub wait_left_ms: u64,
}

answers! {
    /// A lock as it is: the answer of `GET /v1/locks/{name}`. One that nobody uses has no holders and no queue.
    #[derive(Eq)]
    pub struct LockAnswer: at {
        /// Its name.
        pub lock: String,
        /// How many may hold it at once.
        pub slots: u32,
        /// How it is held. Absent where nobody holds it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub mode: Option<LockMode>,
        /// Who holds it, the first 100 by token.
        pub holders: Vec<LockHolder>,
        /// Who waits for it, the first 100 by place.
        pub queue: Vec<LockWaiter>,
        /// How many hold it.
        pub holder_count: u64,
        /// How many wait for it.
        pub waiter_count: u64,
        /// Milliseconds for which nobody gets it, because the session of a holder with `delay_ms` has expired; 0 for none.
        pub delay_left_ms: u64,
    }
}

/// A lock in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct LockSummary {
    /// Its name.
    pub lock: String,
    /// How many may hold it at once.
    pub slots: u32,
    /// How many hold it.
    pub holder_count: u64,
    /// How many wait for it.
    pub waiter_count: u64,
}

answers! {
    /// The answer of `GET /v1/locks`.
    #[derive(Eq)]
    pub struct LockList: page {
        /// Locks in use, by name.
        pub locks: Vec<LockSummary>,
    }

    /// The answer of `GET /v1/locks/{name}/check` for a token that holds the lock.
    #[derive(Eq)]
    pub struct CheckAnswer: at {
        /// Its name.
        pub lock: String,
        /// `true`
        pub held: bool,
        /// The token.
        #[serde(with = "decimal")]
        #[schema(schema_with = decimal::shown)]
        pub token: u64,
        /// The session that holds it.
        pub session: String,
        /// How it is held.
        pub mode: LockMode,
    }
}
