//! Invitations of nodes that are to become members: the routes below `/v1/cluster/invitations`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access::Secret;
use super::answers::answers;
use super::strict::given;

/// The body of `POST /v1/cluster/invitations`. All of it may be left out.
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

answers! {
    /// The answer of `POST /v1/cluster/invitations`.
    #[derive(Eq)]
    pub struct InvitationCreated: at {
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
    }

    /// The answer of `GET /v1/cluster/invitations`.
    #[derive(Eq)]
    pub struct InvitationList: at {
        /// By id. Those whose time is over are among them until another is made.
        pub invitations: Vec<InvitationView>,
    }
}

/// An invitation, without its secret.
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

answers! {
    /// The answer of `DELETE /v1/cluster/invitations/{id}`.
    #[derive(Eq)]
    pub struct InvitationRevoked: decided {
        /// Its public id.
        #[schema(max_length = 16)]
        pub id: String,
    }
}
