//! Invitations of nodes that are to become members.
//!
//! Owns the calls. Never sees a secret but in the one answer that shows it.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;

use crate::api::{InvitationCreated, InvitationList, InvitationRequest, InvitationRevoked};
use crate::call::error::Error;
use crate::call::operation::milliseconds;
use crate::call::request::{RequestId, name_path};
use crate::client::Client;
use crate::client::pending::Pending;
use crate::cluster::members::Members;

const ROUTE: &str = "/v1/cluster/invitations";

impl<'a> Members<'a> {
    /// Invites a node: whichever is started with the token of the answer in its file `--join-token-file` is taken in, once and within
    /// ten minutes unless something else is asked for.
    pub fn invite(&self) -> Invite<'a> {
        Invite { client: self.client(), request: InvitationRequest::default(), id: None }
    }

    /// All invitations, without their secrets.
    pub async fn invitations(&self) -> Result<InvitationList, Error> {
        self.client().read(ROUTE.to_owned()).await
    }

    /// Revokes an invitation by its public id. Fails with `not_found`.
    pub fn revoke_invitation(&self, id: &str) -> Pending<'a, InvitationRevoked> {
        let path = name_path("/v1/cluster/invitations/", id, "the id of an invitation");
        Pending::bare(self.client(), Method::DELETE, path)
    }
}

/// An invitation to be made, from [`Members::invite`].
#[must_use = "does nothing until awaited"]
#[derive(Debug, Clone)]
pub struct Invite<'a> {
    client: &'a Client,
    request: InvitationRequest,
    id: Option<RequestId>,
}

impl Invite<'_> {
    /// Only for a node of this id; without it for whoever comes first. A node that was removed is taken in again only so.
    pub fn node(mut self, id: u64) -> Self {
        self.request.node_id = Some(id);
        self
    }

    /// Only for a node that stays without a vote.
    pub fn standby(mut self, standby: bool) -> Self {
        self.request.standby = standby;
        self
    }

    /// For so long it may be used, of cluster time.
    pub fn valid_for(mut self, life: Duration) -> Self {
        self.request.for_ms = Some(milliseconds(life));
        self
    }

    /// An id of one's own instead of a random one.
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.id = Some(id);
        self
    }
}

impl<'a> IntoFuture for Invite<'a> {
    type Output = Result<InvitationCreated, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let pending = Pending::with(self.client, Method::POST, Ok(ROUTE.to_owned()), &self.request);
        pending.request_id(self.id.unwrap_or_else(RequestId::random)).into_future()
    }
}
