//! The members of the cluster, seen and changed by operators.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a member is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum MemberRole {
    /// Votes.
    Voter,
    /// Has all data and no vote: a standby, or a node that catches up.
    Learner,
}

/// A member as the leader knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Member {
    /// Its node id.
    pub id: u64,
    /// What it is for.
    pub role: MemberRole,
    /// Whether it leads.
    pub leader: bool,
    /// Whether it answered the leader lately.
    pub healthy: bool,
    /// Log entries that it is behind the leader; left out where nothing of it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<u64>,
    /// Milliseconds since it last answered; left out where it never answered this leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_contact_ms: Option<u64>,
    /// Where peers reach it.
    pub peer_addr: String,
    /// Where clients reach it.
    pub client_addr: String,
}

/// The answer of `GET /v1/cluster/members`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct MembersAnswer {
    /// Who leads, and told this.
    pub leader_id: u64,
    /// Whether a change of the voters is under way.
    pub changing: bool,
    /// How many voters have to be healthy.
    pub needed: u64,
    /// What the voters can lose, a sentence for people.
    pub prospect: String,
    /// All members by id.
    pub members: Vec<Member>,
}

/// The body of `POST /v1/cluster/members`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddMemberRequest {
    /// The node's id, never used in this cluster before.
    #[schema(minimum = 1)]
    pub id: u64,
    /// `host:port` where it listens for peers.
    pub peer_addr: String,
    /// Wait until it caught up, then give it a vote.
    #[serde(default)]
    pub promote: bool,
}

/// The body of `POST /v1/cluster/members/{id}/replace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceMemberRequest {
    /// The learner that votes from now on.
    #[schema(minimum = 1)]
    pub with: u64,
}

/// The answer to a change of the members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct MembersChanged {
    /// Whether anything was changed; false where it was so already, and after a dry run.
    pub changed: bool,
    /// Whether it was only asked what it would come to.
    pub dry_run: bool,
    /// What it means, sentences for people.
    pub explanation: Vec<String>,
    /// Who votes now; after a dry run, who would.
    pub voters: Vec<u64>,
    /// Who is a member without a vote then.
    pub learners: Vec<u64>,
}
