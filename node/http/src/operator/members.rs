//! `/v1/cluster/members`: who is in the cluster, who votes, and changes of both.
//!
//! Owns the reading of their paths, parameters and bodies, and their answers. Whether a change is made, the leader judges.

use quorate_api::{
    AddMemberRequest, Applied, ErrorCode, Member, MemberRole, MembersAnswer, MembersChanged, Problem, RepairAnswer,
    ReplaceMemberRequest,
};
use quorate_node_core::backend::Repaired;
use quorate_node_core::backend::members::{MemberChange, MemberReply, MemberRequest, MemberSeen, MembersSeen};
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::failure::{Effect, Failure};
use utoipa_axum::routes;

use crate::context::{Context, RequestContext};
use crate::described::Common;
use crate::headers::decimal;
use crate::input::extract::Query;
use crate::input::json_body::{Empty, Json, JsonOrNone};
use crate::output::response::{Outcome, ok_json};
use crate::routes::{Policy, Routes};

/// Longer than the name of any host.
const ADDRESS_BYTES_MAX: usize = 300;

pub fn routes() -> Routes {
    const ADMIN: Policy = Policy::node(Guard::Admin).without_command();
    Routes::new()
        .add(Policy::node(Guard::Monitor), routes!(list))
        .add(ADMIN, routes!(add))
        .add(ADMIN, routes!(promote))
        .add(ADMIN, routes!(demote))
        .add(ADMIN, routes!(remove))
        .add(ADMIN, routes!(replace))
        .add(ADMIN, routes!(repair))
}

/// The members as the leader knows them. Needs a leader; `GET /v1/cluster/status` does not.
#[utoipa::path(get, path = "/v1/cluster/members", tag = "cluster", operation_id = "members",
    responses((status = 200, description = "All members.", body = MembersAnswer, example = json!({"leader_id": 1, "changing": false, "needed": 1, "prospect": "1 of 1 voters (1) heard of, 1 needed: one failure from loss", "members": [{"id": 1, "role": "voter", "leader": true, "healthy": true, "lag": 0, "last_contact_ms": 0, "peer_addr": "127.0.0.1:7201", "client_addr": "127.0.0.1:7101"}]})), Common))]
pub async fn list(context: Context) -> Outcome {
    let seen = context.api.node.members_seen(context.deadline).await;
    let MembersSeen { leader, changing, majority, prospect, members } =
        seen.map_err(|error| Failure::from_app(error, Effect::Read))?;
    let members = members.into_iter().map(|member| shown(member, leader)).collect();
    ok_json(&MembersAnswer { leader_id: leader, changing, needed: majority, prospect, members })
}

fn shown(seen: MemberSeen, leader: u64) -> Member {
    Member {
        id: seen.id,
        role: if seen.votes { MemberRole::Voter } else { MemberRole::Learner },
        leader: seen.id == leader,
        healthy: seen.is_heard,
        lag: (seen.lag != u64::MAX).then_some(seen.lag),
        last_contact_ms: seen.last_contact_ms,
        peer_addr: seen.peer_addr,
        client_addr: seen.client_addr,
    }
}

/// Takes in a node that was started and waits, as a learner; with `promote` it votes once it caught up. A node that is started
/// with the join list of the cluster needs none of this: it asks by itself.
#[utoipa::path(post, path = "/v1/cluster/members", tag = "cluster", operation_id = "add_member",
    params(
        ChangeParams,
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds, catching up included."),
    ),
    request_body(content = AddMemberRequest, content_type = "application/json", example = json!({"id": 4, "peer_addr": "10.0.0.4:7200", "promote": true})),
    responses(
        (status = 200, description = "It is so.", body = MembersChanged),
        (status = 409, description = "`change_refused`: `detail` says why.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn add(context: Context, Json(request): Json<AddMemberRequest>) -> Outcome {
    let how = ChangeParams::of(&context)?;
    let AddMemberRequest { id, peer_addr, promote } = request;
    let id = node_id(id, "/id")?;
    address(&peer_addr)?;
    change(&context, how, MemberChange::Add { id, peer_addr, promote }).await
}

/// Gives a learner that has caught up a vote.
#[utoipa::path(post, path = "/v1/cluster/members/{id}/promote", tag = "cluster", operation_id = "promote_member",
    params(
        ("id" = u64, Path, description = "Its node id.", minimum = 1, example = 4),
        ChangeParams,
    ),
    responses(
        (status = 200, description = "It is so.", body = MembersChanged),
        (status = 409, description = "`change_refused`: `detail` says why.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn promote(context: Context, JsonOrNone(Empty {}): JsonOrNone<Empty>) -> Outcome {
    let (how, id) = (ChangeParams::of(&context)?, id_of(context.name())?);
    change(&context, how, MemberChange::Promote { id }).await
}

/// Takes the vote of a member, which stays a learner.
#[utoipa::path(post, path = "/v1/cluster/members/{id}/demote", tag = "cluster", operation_id = "demote_member",
    params(
        ("id" = u64, Path, description = "Its node id.", minimum = 1, example = 3),
        ChangeParams,
    ),
    responses(
        (status = 200, description = "It is so.", body = MembersChanged),
        (status = 409, description = "`change_refused`: `detail` says why.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn demote(context: Context, JsonOrNone(Empty {}): JsonOrNone<Empty>) -> Outcome {
    let (how, id) = (ChangeParams::of(&context)?, id_of(context.name())?);
    change(&context, how, MemberChange::Demote { id }).await
}

/// Lets a member go. It ends by itself when it hears of it; its id and its disk are not used again.
#[utoipa::path(delete, path = "/v1/cluster/members/{id}", tag = "cluster", operation_id = "remove_member",
    params(
        ("id" = u64, Path, description = "Its node id.", minimum = 1, example = 3),
        ChangeParams,
    ),
    responses(
        (status = 200, description = "It is so.", body = MembersChanged),
        (status = 409, description = "`change_refused`: `detail` says why.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn remove(context: Context) -> Outcome {
    let (how, id) = (ChangeParams::of(&context)?, id_of(context.name())?);
    change(&context, how, MemberChange::Remove { id }).await
}

/// Lets a learner vote in place of a voter, which goes, in one step.
#[utoipa::path(post, path = "/v1/cluster/members/{id}/replace", tag = "cluster", operation_id = "replace_member",
    params(
        ("id" = u64, Path, description = "Who goes.", minimum = 1, example = 3),
        ChangeParams,
    ),
    request_body(content = ReplaceMemberRequest, content_type = "application/json", example = json!({"with": 4})),
    responses(
        (status = 200, description = "It is so.", body = MembersChanged),
        (status = 409, description = "`change_refused`: `detail` says why.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn replace(context: Context, Json(request): Json<ReplaceMemberRequest>) -> Outcome {
    let (how, old) = (ChangeParams::of(&context)?, id_of(context.name())?);
    let new = node_id(request.with, "/with")?;
    change(&context, how, MemberChange::Replace { old, new }).await
}

/// Rebuilds the state of a member in quarantine from the leader's. Any node takes the request.
///
/// Goes on if the deadline passes meanwhile; asking again then waits for it. A member that trusts its state is left as it is.
#[utoipa::path(post, path = "/v1/cluster/members/{id}/repair", tag = "cluster", operation_id = "repair_member",
    params(
        ("id" = u64, Path, description = "Its node id.", minimum = 1, example = 1),
    ),
    responses(
        (status = 200, description = "It has the leader's state, or trusts its own.", body = RepairAnswer, example = json!({"node_id": 1, "repaired": false})),
        (status = 404, description = "`not_found`: there is no such member.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn repair(context: Context, JsonOrNone(Empty {}): JsonOrNone<Empty>) -> Outcome {
    let node_id = id_of(context.name())?;
    if context.api.node.status().members.iter().all(|member| member.id != node_id) {
        let detail = format!("node {node_id} is not a member of this cluster");
        return Err(Failure::new(ErrorCode::NotFound, Applied::No, detail));
    }
    let repaired = context.api.node.repair(node_id, context.deadline).await;
    let repaired = repaired.map_err(|error| Failure::from_app(error, Effect::Write))?;
    ok_json(&RepairAnswer { node_id, repaired: repaired == Repaired::Done })
}

/// The switches that all changes have.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ChangeParams {
    /// Only say what it would come to.
    #[param(value_type = Option<bool>)]
    dry_run: bool,
    /// Do it also where it is unwise. Never where it would cost quorum.
    #[param(value_type = Option<bool>)]
    force: bool,
}

impl ChangeParams {
    fn of(context: &RequestContext) -> Result<Self, Failure> {
        let mut query = Query::parse(context.head.uri.query());
        let how = Self { dry_run: query.flag("dry_run"), force: query.flag("force") };
        query.finish()?;
        Ok(how)
    }
}

async fn change(context: &RequestContext, how: ChangeParams, wanted: MemberChange) -> Outcome {
    let ChangeParams { dry_run, force } = how;
    let asked = MemberRequest { change: wanted, dry_run, force };
    let done = context.api.node.change_members(asked, context.deadline).await;
    let effect = if dry_run { Effect::Read } else { Effect::Write };
    let MemberReply { changed, explanation, voters, learners } =
        done.map_err(|error| Failure::from_app(error, effect))?;
    ok_json(&MembersChanged { changed, dry_run, explanation, voters, learners })
}

/// The id in a path.
fn id_of(rest: &str) -> Result<u64, Failure> {
    let id = decimal(rest).filter(|id| *id != 0);
    id.ok_or_else(|| Failure::invalid("path:id", "must be a node id from 1"))
}

fn address(text: &str) -> Result<(), Failure> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    let is_one = port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port != 0));
    if is_one && text.len() <= ADDRESS_BYTES_MAX {
        return Ok(());
    }
    Err(Failure::invalid("/peer_addr", "must be the `host:port` where it listens for peers"))
}

fn node_id(id: u64, pointer: &str) -> Result<u64, Failure> {
    if id == 0 { Err(Failure::invalid(pointer, "must be a node id from 1")) } else { Ok(id) }
}
