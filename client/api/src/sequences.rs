//! Sequences: counters that give each number once and leave none out.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::answers;
use super::strict::given;

/// The body of `POST /v1/sequences/{name}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SequenceRequest {
    /// How many numbers to take, 1 to 1000000; 1 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000000, nullable = false)]
    pub count: Option<u64>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

answers! {
    /// The answer of `GET /v1/sequences/{name}`.
    #[derive(Eq)]
    pub struct SequenceAnswer: at {
        /// Its name.
        pub name: String,
        /// The last number given; 0 before the first.
        pub value: u64,
    }

    /// The answer of `POST /v1/sequences/{name}`.
    #[derive(Eq)]
    pub struct SequenceNext: decided {
        /// Its name.
        pub name: String,
        /// The first of the numbers taken.
        pub first: u64,
        /// The last of them.
        pub last: u64,
    }
}
