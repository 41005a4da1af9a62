//! Invitations of nodes that are to become members: the routes below `/v1/cluster/invitations`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access::Secret;
use super::decimal;
use super::strict::given;

/// The body of `POST /v1/cluster/invitations`. All of it may be left out.
///
/// # Examples
///
/// ```
/// use quorate_api::InvitationRequest;
///
/// let request = InvitationRequest { node_id: Some(4), for_ms: Some(600_000), ..Default::default() };
/// assert_eq!(serde_json::to_string(&request)?, r#"{"node_id":4,"for_ms":600000}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InvitationRequest {
    /// Who is invited; without it whoever comes first. The id of a node that was removed is taken in again only where it stands here.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    pub node_id: Option<u64>,
    /// Whether it is good only for a node that stays without a vote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standby: bool,
    /// For how many milliseconds of cluster time it may be used; without it ten minutes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 2592000000_u64, nullable = false)]
    pub for_ms: Option<u64>,
    /// Of the request. A retry under it never shows the secret again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The answer of `POST /v1/cluster/invitations`.
///
/// # Examples
///
/// ```
/// use quorate_api::InvitationCreated;
///
/// let made: InvitationCreated = serde_json::from_str(
///     r#"{"token":"qj_0123456789abcdef_example","id":"0123456789abcdef","node_id":4,"for_ms":600000,
///         "revision":"18","index":29}"#,
/// )?;
/// assert_eq!(made.node_id, Some(4));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct InvitationCreated {
    /// What the node shows, from its file `--join-token-file`. Shown this once: the cluster keeps only a hash.
    #[schema(value_type = String)]
    pub token: Secret,
    /// Its public id.
    #[schema(max_length = 16)]
    pub id: String,
    /// Who is invited; without it whoever comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    pub node_id: Option<u64>,
    /// Whether it is good only for a node that stays without a vote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standby: bool,
    /// For how many milliseconds of cluster time it may be used.
    pub for_ms: u64,
    /// The revision that this took.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index that decided it.
    pub index: u64,
}

/// The answer of `GET /v1/cluster/invitations`.
///
/// # Examples
///
/// ```
/// use quorate_api::InvitationList;
///
/// let list: InvitationList = serde_json::from_str(r#"{"invitations":[],"revision":"18","index":29}"#)?;
/// assert!(list.invitations.is_empty());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct InvitationList {
    /// By id. Those whose time is over are among them until another is made.
    pub invitations: Vec<InvitationView>,
    /// The revision at which this was read.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index of that.
    pub index: u64,
}

/// An invitation, without its secret.
///
/// # Examples
///
/// ```
/// use quorate_api::InvitationView;
///
/// let view: InvitationView = serde_json::from_str(
///     r#"{"id":"0123456789abcdef","created":"2026-11-22T01:06:00.123Z","left_ms":1500,"used_by":4}"#,
/// )?;
/// assert_eq!((view.node_id, view.used_by), (None, Some(4)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct InvitationView {
    /// Its public id.
    #[schema(max_length = 16)]
    pub id: String,
    /// Who is invited; without it whoever comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    pub node_id: Option<u64>,
    /// Whether it is good only for a node that stays without a vote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standby: bool,
    /// When it was made, by the wall clock.
    #[schema(format = DateTime)]
    pub created: String,
    /// For how many milliseconds of cluster time it may still be used; 0 once that is over.
    pub left_ms: u64,
    /// The node that has used it and is not a member yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    pub used_by: Option<u64>,
}

/// The answer of `DELETE /v1/cluster/invitations/{id}`.
///
/// # Examples
///
/// ```
/// use quorate_api::InvitationRevoked;
///
/// let revoked: InvitationRevoked =
///     serde_json::from_str(r#"{"id":"0123456789abcdef","revision":"19","index":30}"#)?;
/// assert_eq!(revoked.revision, 19);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct InvitationRevoked {
    /// Its public id.
    #[schema(max_length = 16)]
    pub id: String,
    /// The revision that this took.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index that decided it.
    pub index: u64,
    /// Whether this is the kept answer of an earlier try.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}
