//! `/v1/cluster/invitations` and `/v1/cluster/invitations/{id}`: who may become a member.
//!
//! Owns their bodies and their answers, and that the secret of an invitation leaves the node once and stays nowhere. Never looks at one
//! that a node shows: the leader does.

use quorate_api::{
    InvitationCreated, InvitationList, InvitationRequest, InvitationRevoked, InvitationView, Problem, Secret,
};
use quorate_machine::limits::INVITATION_MS_MAX;
use quorate_machine::query::Observed;
use quorate_machine::types::{
    Action, ClusterMillis, InvitationRow, MembersOp, MembersReply, NewInvitation, NoTokenId, Outcome as Decided, Reply,
    TokenId,
};
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::gateway::{decide, freshness, propose, text};
use quorate_node_core::token_text::TokenText;
use utoipa_axum::routes;

use crate::command;
use crate::context::{Context, RequestContext};
use crate::coordinate;
use crate::described::{Common, Reused};
use crate::input::extract::Faults;
use crate::input::json_body::JsonOrNone;
use crate::output::response::{Outcome, created};
use crate::routes::{Policy, Routes};

/// For so long an invitation is good where nobody says.
const FOR_MS_DEFAULT: u64 = 10 * 60 * 1_000;

pub fn routes() -> Routes {
    const ADMIN: Policy = Policy::node(Guard::Admin);
    Routes::new().all(ADMIN, [routes!(list), routes!(invite), routes!(revoke)])
}

/// Lists the invitations, without their secrets. One that was used is among them until its node is a member, one whose time is over
/// until another is made.
#[utoipa::path(get, path = "/v1/cluster/invitations", tag = "cluster", operation_id = "invitations",
    responses(
        (status = 200, description = "All of them.", body = InvitationList, example = json!({"invitations": [{"id": "00c0ffee00c0ffee", "node_id": 4, "created": "2026-11-22T01:06:00.123Z", "left_ms": 600000}], "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn list(context: Context) -> Outcome {
    freshness::refresh(&context.api.node, context.deadline).await?;
    let Observed { at, found, .. } = scan(&context, |backend| backend.invitations()).await?;
    let invitations = found.iter().map(|(id, row)| view(*id, row, at.clock)).collect();
    let answer = InvitationList { invitations, revision: at.revision, index: at.index };
    command::answer(&answer, at.revision, None)
}

/// Invites a node: whichever is started with this token in its file `--join-token-file` is taken in, once.
///
/// The answer alone has the token; the cluster keeps a hash of it. A retry under the same request id does not show it again, and is
/// answered by `request_id_reused` where the first try was carried out: then revoke it, and ask for another.
#[utoipa::path(post, path = "/v1/cluster/invitations", tag = "cluster", operation_id = "invite_member",
    request_body(content = InvitationRequest, content_type = "application/json", example = json!({"node_id": 4, "for_ms": 600000})),
    responses(
        (status = 201, description = "The token.", body = InvitationCreated, example = json!({"token": "qj_00c0ffee00c0ffee_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "id": "00c0ffee00c0ffee", "node_id": 4, "for_ms": 600000, "revision": "12", "index": 20})),
        Reused, Common,
    ))]
pub async fn invite(context: Context, JsonOrNone(request): JsonOrNone<InvitationRequest>) -> Outcome {
    let InvitationRequest { node_id, standby, for_ms, request_id } = request;
    let mut faults = Faults::default();
    faults.within("/node_id", node_id, 1..=u64::MAX);
    faults.within("/for_ms", for_ms, 1..=INVITATION_MS_MAX);
    context.with_request_id(request_id, faults.check())?;
    let (token, for_ms) = (TokenText::make_invitation(), for_ms.unwrap_or(FOR_MS_DEFAULT));
    let new = NewInvitation { id: token.id, hash: token.hash(), node_id, is_standby: standby, for_ms };
    match decided(&context, MembersOp::Invite(new)).await? {
        (Reply { revision, index, .. }, MembersReply::Invited { for_ms }) => {
            let (token, id) = (Secret(token.reveal()), token.id.to_string());
            let location = format!("/v1/cluster/invitations/{id}");
            let answer = InvitationCreated { token, id, node_id, standby, for_ms, revision, index };
            Ok(created(command::answer(&answer, revision, None)?, location))
        }
        (reply, _) => Err(propose::confused(&reply)),
    }
}

/// Revokes an invitation. A node that has used it and is a member already stays one.
#[utoipa::path(delete, path = "/v1/cluster/invitations/{id}", tag = "cluster", operation_id = "revoke_invitation",
    params(
        ("id" = String, Path, description = "Its public id: 16 digits of 0-9 and a-f.", example = "00c0ffee00c0ffee", min_length = 16, max_length = 16, pattern = "^[0-9a-f]{16}$"),
    ),
    responses(
        (status = 200, description = "It is gone.", body = InvitationRevoked, example = json!({"id": "00c0ffee00c0ffee", "revision": "22", "index": 34})),
        (status = 404, description = "`not_found`: there is no such invitation.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn revoke(context: Context) -> Outcome {
    let text = text::percent_decode(context.name()).map_err(|why| Failure::invalid("path:id", why))?;
    let id: TokenId = text.parse().map_err(|why: NoTokenId| Failure::invalid("path:id", why.to_string()))?;
    match decided(&context, MembersOp::Revoke(id)).await? {
        (Reply { revision, index, replayed, .. }, MembersReply::Revoked) => {
            command::answer(&InvitationRevoked { id: id.to_string(), revision, index, replayed }, revision, None)
        }
        (reply, _) => Err(propose::confused(&reply)),
    }
}

async fn decided(context: &RequestContext, op: MembersOp) -> Result<(Reply, MembersReply), Failure> {
    let mut reply = decide::decide(context, Action::Members(op), false).await?;
    match std::mem::replace(&mut reply.outcome, Decided::Deferred) {
        Decided::Members(done) => Ok((reply, done)),
        Decided::Rejected(why) => Err(Failure::from_rejection("", &reply, &why)),
        _ => Err(propose::confused(&reply)),
    }
}

fn view(id: TokenId, row: &InvitationRow, clock: ClusterMillis) -> InvitationView {
    InvitationView {
        id: id.to_string(),
        node_id: row.node_id,
        standby: row.is_standby,
        created: coordinate::moment(row.created),
        left_ms: row.expires_at.saturating_sub(clock),
        used_by: row.used_by.map(|node| node.node_id),
    }
}
