//! One node, asked about itself: its log, its configuration, and who holds its limited resources.

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

/// A limited resource of a node that its callers hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum NodeResourceKind {
    /// Requests that wait for a change, a lock, a task or their turn. In requests.
    Waits,
    /// Watches, and observers of elections. In streams.
    Watches,
    /// Requests whose body is still on its way. In requests.
    Arriving,
    /// Bodies of requests in memory. In bytes.
    Bodies,
    /// Answers that were made and that their readers have not taken. In bytes.
    Answers,
    /// Values that commands under way will have to be answered with. In values.
    Values,
    /// Operations of streams whose answers were not sent on yet. In operations.
    StreamOps,
    /// Connections of the client port, those in the handshake included. In connections.
    Connections,
    /// Places of requests for sessions, locks and the like. In requests. Nothing of this and the next two is counted on a caller while less
    /// than an eighth is taken.
    Coordination,
    /// Places of work on named keys and tasks. In operations; those of streams are [`Self::StreamOps`] of their callers.
    Point,
    /// Places of work that looks for what it is about. In units of cost.
    Scan,
    /// Time of the processors that an account took beyond its share and owes. In milliseconds until all is paid; accounts that owe pay at the
    /// same time. A connection counts for its address until a request shows its user.
    Processors,
}

impl NodeResourceKind {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Watches => "watches",
            Self::Arriving => "arriving",
            Self::Bodies => "bodies",
            Self::Answers => "answers",
            Self::Values => "values",
            Self::StreamOps => "stream_ops",
            Self::Connections => "connections",
            Self::Coordination => "coordination",
            Self::Point => "point",
            Self::Scan => "scan",
            Self::Processors => "processors",
        }
    }
}

/// How an account is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum NodeCallerKind {
    /// A user, wherever it asks from. Its name is that of the user.
    User,
    /// All callers from one address, where authentication is off. Its name is the address; of IPv6 the network of 64 bits.
    Address,
    /// All callers over the Unix socket as one user of the machine, where authentication is off. Its name is the number of that user.
    LocalUser,
    /// All together who did not say who they are, where that is asked. They have no name.
    Strangers,
}

/// An account, and how much it holds of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct NodeCaller {
    /// How the account is known.
    pub kind: NodeCallerKind,
    /// Its name, see `kind`; left out for strangers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How much it holds, in the unit of the resource. For processors, how much longer it owes.
    pub held: u64,
}

/// A resource of a node, and who holds most of it. All amounts are in the unit of the resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct NodeResource {
    /// The resource.
    pub resource: NodeResourceKind,
    /// How much all together may hold. For processors, the longest time that anybody owes.
    pub bound: u64,
    /// How much of that one account may hold. While less than half is taken, it may hold more of bodies, of the classes and of what arrives.
    /// For processors, the same as `bound`.
    pub share: u64,
    /// How much all hold together. For processors, how much longer the account owes that owes most: all have paid by then.
    pub taken: u64,
    /// How often since the start of the node there was no more for anybody. Connections that had to make room for others count here.
    /// Streams are not refused more operations, they wait. For processors always 0.
    pub refused: u64,
    /// How often since the start of the node an account wanted more than its share. For processors, how many requests were refused since
    /// their account had not paid at their deadline; those that only waited do not count.
    pub share_refused: u64,
    /// For processors only: how many connections, streams of HTTP/2, requests, and reads of watches wait now until their account has paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_up: Option<u64>,
    /// For processors only: whether the threads of the node are late now while several accounts ask. Accounts are held up only then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// The accounts that hold most, at most 20, the largest first. Those that hold nothing are left out.
    pub callers: Vec<NodeCaller>,
}

/// The limited resources of a node, and who holds them: the answer of `GET /v1/node/callers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct NodeCallersAnswer {
    /// The node that was asked.
    pub node_id: u64,
    /// Each of its resources once.
    pub resources: Vec<NodeResource>,
}
