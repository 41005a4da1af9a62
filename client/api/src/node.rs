//! One node, asked about itself: its log and its configuration.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::strict::given;

/// What a node logs: the answer of `GET` and `PUT` of `/v1/node/log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct NodeLogAnswer {
    /// The node that was asked.
    pub node_id: u64,
    /// The filter that holds now.
    pub filter: String,
    /// The filter that holds after a start.
    pub configured: String,
}

/// The body of `PUT /v1/node/log`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeLogRequest {
    /// What to log: a level, or levels of modules, like `quorate_node=debug,info`. Without it, what is configured.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1024)]
    pub filter: Option<String>,
    /// After so many milliseconds it is as configured again; it stays without it, until the node starts again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub for_ms: Option<u64>,
}

/// The last lines of a node's log: the answer of `GET /v1/node/log/lines`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct NodeLogLinesAnswer {
    /// The node that was asked.
    pub node_id: u64,
    /// The lines, oldest first. Names and values of entries are left out of them.
    pub lines: Vec<String>,
}

/// How a node is configured: the answer of `GET /v1/node/config`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct NodeConfigAnswer {
    /// The node that was asked.
    pub node_id: u64,
    /// Of its program.
    pub version: String,
    /// Every setting that was given, by its name in a configuration file. Of files of secrets the path, never what is in them; what may
    /// hold a secret itself, as the user and password of an address, is left out.
    pub settings: BTreeMap<String, String>,
}
