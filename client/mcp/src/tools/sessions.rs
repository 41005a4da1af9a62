//! The agent's own session, and what became of a write.

use std::sync::Arc;

use quorate_client::{RequestId, SessionState};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::fields;
use crate::agent::Agent;
use crate::tool::Outcome;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Show {}

pub async fn show(agent: Arc<Agent>, _: Show) -> Outcome {
    let session = agent.current();
    let state = session.as_ref().map(|session| match session.state() {
        SessionState::Ok => "ok",
        SessionState::Suspect => "suspect: the cluster did not confirm it lately",
        SessionState::Lost => "lost",
    });
    let mut shown = fields(json!({
        "owner": agent.owner(),
        "session": session.as_ref().map(|session| session.id()),
        "state": state.unwrap_or("none: one is opened at first need"),
        "ttl_s": session.map(|session| session.ttl().as_secs_f64()),
        "prefix": agent.scope().limit(),
    }));
    shown.extend(agent.holdings());
    Ok(shown)
}

/// All that may be true of a request id that the cluster does not know.
const NOT_KNOWN: &str = "not known: it was never applied, its outcome is no longer kept (it is for 15 minutes at least), or it is still on its \
                         way; read what it would have changed before you write it again";

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Request {
    /// The request_id of the refusal `outcome_unknown`.
    request_id: String,
}

pub async fn request(agent: Arc<Agent>, input: Request) -> Outcome {
    let refused = |error: quorate_client::Error| agent.refused(&error);
    let id: RequestId = input.request_id.parse().map_err(refused)?;
    let answer = agent.client().request_outcome(&id).await.map_err(refused)?;
    Ok(match answer {
        Some(answer) => fields(json!({
            "request_id": id.as_str(),
            "decided": true,
            "state": answer.state,
            "error": answer.code,
            "cas": answer.cas,
            "revision": answer.decided_revision.to_string(),
        })),
        None => fields(json!({"request_id": id.as_str(), "decided": false, "next": NOT_KNOWN})),
    })
}
