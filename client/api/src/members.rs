//! The members of the cluster, seen and changed by operators.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a member is for.
///
/// # Examples
///
/// ```
/// use quorate_api::MemberRole;
///
/// let role: MemberRole = serde_json::from_str(r#""learner""#)?;
/// assert_eq!(role, MemberRole::Learner);
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::{Member, MemberRole};
///
/// let member: Member = serde_json::from_str(
///     r#"{"id":2,"role":"voter","leader":false,"healthy":true,"lag":3,"last_contact_ms":12,
///         "peer_addr":"10.0.0.2:7200","client_addr":"10.0.0.2:7100"}"#,
/// )?;
/// assert!(member.healthy && member.role == MemberRole::Voter);
/// assert_eq!(member.lag, Some(3));
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::MembersAnswer;
///
/// let answer: MembersAnswer = serde_json::from_str(
///     r#"{"leader_id":1,"changing":false,"needed":1,
///         "prospect":"1 of 1 voters (1) heard of, 1 needed: one failure from loss","members":[{"id":1,
///         "role":"voter","leader":true,"healthy":true,"peer_addr":"10.0.0.1:7200",
///         "client_addr":"10.0.0.1:7100"}]}"#,
/// )?;
/// assert_eq!(answer.members.iter().find(|member| member.leader).map(|member| member.id), Some(answer.leader_id));
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::AddMemberRequest;
///
/// let request = AddMemberRequest { id: 4, peer_addr: "10.0.0.4:7200".into(), promote: true };
/// assert_eq!(serde_json::to_string(&request)?, r#"{"id":4,"peer_addr":"10.0.0.4:7200","promote":true}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::ReplaceMemberRequest;
///
/// // To `/v1/cluster/members/3/replace`: 4 votes in place of 3.
/// assert_eq!(serde_json::to_string(&ReplaceMemberRequest { with: 4 })?, r#"{"with":4}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceMemberRequest {
    /// The learner that votes from now on.
    #[schema(minimum = 1)]
    pub with: u64,
}

/// The answer to a change of the members.
///
/// # Examples
///
/// ```
/// use quorate_api::MembersChanged;
///
/// let answer: MembersChanged = serde_json::from_str(
///     r#"{"changed":false,"dry_run":true,
///         "explanation":["then: 3 of 3 voters (1, 2, 4) heard of, 2 needed: one failure is tolerated"],
///         "voters":[1,2,4],"learners":[]}"#,
/// )?;
/// assert!(answer.dry_run && answer.voters == [1, 2, 4], "so it would be");
/// # Ok::<(), serde_json::Error>(())
/// ```
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
