//! The lines of an operation stream: `POST /v1/ops` as `application/x-ndjson`.
//!
//! One line is one operation, and is answered by one line as soon as it is done, so not in the order in which the operations
//! came. The stream saves head, headers and a system call for each operation; what an operation means is the same.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::decimal;
use super::strict::given;
use super::{JsonText, Op};

/// The content type of an operation stream, in both directions.
pub const STREAM_CONTENT_TYPE: &str = "application/x-ndjson";

/// A line that asks for an operation.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OpLine {
    /// Chosen by the caller; the answer carries it. Whether it is unique is the caller's business.
    pub n: u64,
    /// Milliseconds for this operation from the moment its line has come; without it `Request-Timeout` counts.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub timeout_ms: Option<u64>,
    /// What the body of a single operation would be.
    pub op: Op,
}

/// A line that answers an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct AnswerLine {
    /// Of the line that is answered; `null` where that line had none that could be read.
    #[schema(required = true)]
    pub n: Option<u64>,
    /// The HTTP status that the operation alone would have been answered with.
    pub status: u16,
    /// Raft term of the node.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub term: u64,
    /// Node id of the leader; `null` where none is known.
    #[schema(required = true)]
    pub leader: Option<u64>,
    /// The body that the operation alone would have been answered with: an entry, what was written, a problem document.
    #[schema(value_type = Object)]
    pub answer: JsonText,
}
