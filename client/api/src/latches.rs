//! Latches: counted down to 0, where they open for good. They hang on no session.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::answers;
use super::decimal;
use super::strict::given;

/// The body of `PUT /v1/latches/{name}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LatchRequest {
    /// After how many counts it opens, 1 to 1000000000; 1 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000000000, nullable = false)]
    pub count: Option<u64>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The body of `POST /v1/latches/{name}/count_down`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CountDownRequest {
    /// By how much, 1 to 1000000000; 1 without it. More than is left is as good as what is left.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000000000, nullable = false)]
    pub by: Option<u64>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

answers! {
    /// A latch as it is: the answer of `PUT`, `GET` and `count_down` of `/v1/latches/{name}`.
    #[derive(Eq)]
    pub struct LatchAnswer: decided {
        /// Its name.
        pub latch: String,
        /// The count that it began with.
        pub count: u64,
        /// What is left of it.
        pub left: u64,
        /// Whether it is open.
        pub open: bool,
        /// Revision at which it opened.
        #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
        #[schema(schema_with = decimal::shown, required = false)]
        pub opened_revision: Option<u64>,
    }

    /// The answer of `DELETE /v1/latches/{name}`.
    #[derive(Eq)]
    pub struct LatchRemoved: decided {
        /// Its name.
        pub latch: String,
    }
}
