//! `/v1/cluster`: the cluster as this node sees it, and leadership.

use quorate_api::{DigestAnswer, LeaderAnswer, LeaderRequest, Problem, StatusAnswer};
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::failure::{Effect, Failure};
use utoipa_axum::routes;

use crate::context::Context;
use crate::described::Common;
use crate::input::json_body::JsonOrNone;
use crate::output::response::{Outcome, ok_json};
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const KNOWN: Policy = Policy::node(Guard::Known);
    Routes::new()
        .add(KNOWN, routes!(status))
        .add(KNOWN, routes!(digest))
        .add(Policy::node(Guard::Admin).without_command(), routes!(lead))
}

/// What this node knows of the cluster and itself. Local: never waits, works without a leader.
#[utoipa::path(get, path = "/v1/cluster/status", tag = "cluster", operation_id = "status",
    responses((status = 200, description = "The state of things.", body = StatusAnswer), Common))]
pub async fn status(context: Context) -> Outcome {
    let mut status = context.api.node.status();
    status.warnings.extend(context.api.auth.jwt().and_then(|jwt| jwt.warning()));
    ok_json(&status)
}

/// The digest of the replicated state on this node. Equal on all nodes for an equal index.
#[utoipa::path(get, path = "/v1/cluster/digest", tag = "cluster", operation_id = "digest",
    responses((status = 200, description = "The digest.", body = DigestAnswer, example = json!({"node_id": 1, "index": 60, "revision": "40", "digest": "0f343b0931126a20f133d67c2b018a3b"})), Common))]
pub async fn digest(context: Context) -> Outcome {
    let taken = context.api.node.digest();
    ok_json(&DigestAnswer {
        node_id: context.api.settings.node_id,
        index: taken.at.index,
        revision: taken.at.revision,
        digest: format!("{:032x}", taken.digest),
    })
}

/// Hands leadership to the best follower, or to `to`. Answers once that node leads; any node can be asked.
#[utoipa::path(post, path = "/v1/cluster/leader", tag = "cluster", operation_id = "lead",
    request_body(content((LeaderRequest = "application/json", example = json!({"to": 2})))),
    responses(
        (status = 200, description = "It leads.", body = LeaderAnswer, example = json!({"leader_id": 2})),
        (status = 409, description = "`change_refused`: who is asked for has no vote.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn lead(context: Context, JsonOrNone(LeaderRequest { to }): JsonOrNone<LeaderRequest>) -> Outcome {
    if to == Some(0) {
        return Err(Failure::invalid("/to", "must be a node id from 1"));
    }
    let moved = context.api.node.hand_over(to, context.deadline).await;
    // Leadership may have moved although the answer did not come; asking again does no harm.
    let leader_id = moved.map_err(|error| Failure::from_app(error, Effect::Write))?;
    ok_json(&LeaderAnswer { leader_id })
}
