//! Elections.

use std::sync::Arc;
use std::time::Duration;

use quorate_client::api::{ErrorCode, LeaderView};
use quorate_client::{Error, Leadership};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::entries::content;
use super::fields;
use crate::agent::Agent;
use crate::input::{self, Json};
use crate::refusal::Refusal;
use crate::shown::{Budget, seconds};
use crate::tool::Outcome;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Campaign {
    /// The election.
    name: String,
    /// What others read of the leader: any JSON.
    #[serde(default, deserialize_with = "input::given")]
    value: Option<Json>,
    /// Wait so long if somebody else leads: 0 if nothing is said, 50 at most.
    wait_s: Option<f64>,
}

pub async fn campaign(agent: Arc<Agent>, input: Campaign) -> Outcome {
    let name = agent.scope().name(input.name)?;
    let wait = input::wait(input.wait_s, Duration::ZERO)?;
    let session = agent.session().await?;
    if let Some(term) = leads(&agent, &name).await? {
        return Ok(fields(json!({"election": name, "leader": true, "term": term.to_string(), "already_leader": true})));
    }
    let mut campaign = session.elect(&name).wait(wait);
    if let Some(value) = &input.value {
        campaign = campaign.value(content(&agent, value)?);
    }
    match agent.unless_gone(campaign.campaign()).await? {
        Ok(leadership) => {
            let term = leadership.guard().token;
            agent.keep_leadership(leadership);
            Ok(fields(json!({"election": name, "leader": true, "term": term.to_string()})))
        }
        Err(error) => Err(refused(&agent, &name, error).await),
    }
}

/// The term in which we lead, as the cluster sees it.
async fn leads(agent: &Agent, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(term) = agent.term(name) else { return Ok(None) };
    let leader = agent.client().election(name).leader().await.map_err(|error| agent.refused(&error))?;
    if leader.is_some_and(|leader| leader.term == term) {
        return Ok(Some(term));
    }
    drop(agent.take_leadership(name));
    let why = format!("the leadership of `{name}` was taken from you: your term {term} is over");
    Err(Refusal::new("leadership_lost", why).next("stop what only the leader does; the next call stands for it anew"))
}

/// Who leads, if it was not us for that.
async fn refused(agent: &Agent, name: &str, error: Error) -> Refusal {
    if error.code() != Some(ErrorCode::Locked) {
        return agent.refused(&error);
    }
    let refusal = Refusal::new("locked", format!("somebody else leads `{name}`"));
    let refusal =
        refusal.next("follow the leader, or call again with wait_s; it ends when the leader resigns or disconnects");
    match agent.client().election(name).leader().await {
        Ok(Some(leader)) => refusal.with("leader", shown(&leader, &mut agent.budget())),
        // Who leads is not known; that it is not us is.
        Ok(None) | Err(_) => refusal,
    }
}

fn shown(leader: &LeaderView, budget: &mut Budget) -> Value {
    let mut shown = fields(json!({
        "owner": leader.owner,
        "session": leader.session,
        "term": leader.term.to_string(),
        "for_s": seconds(leader.age_ms),
    }));
    if let Some(value) = &leader.value {
        budget.put_json(&mut shown, "value", value.0.get(), None);
    }
    Value::Object(shown)
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Resign {
    /// The election.
    name: String,
}

pub async fn resign(agent: Arc<Agent>, input: Resign) -> Outcome {
    let name = agent.scope().name(input.name)?;
    let Some(leadership) = agent.take_leadership(&name) else {
        let why = format!("you do not lead `{name}`");
        return Err(
            Refusal::new("not_lock_holder", why).next("there is nothing to resign; election_show tells who leads")
        );
    };
    Leadership::resign(leadership).await.map_err(|error| agent.refused(&error))?;
    Ok(fields(json!({"election": name, "resigned": true})))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Show {
    /// The election.
    name: String,
}

pub async fn show(agent: Arc<Agent>, input: Show) -> Outcome {
    let name = agent.scope().name(input.name)?;
    let election = agent.client().election(&name).get().await.map_err(|error| agent.refused(&error))?;
    let leader = election.leader.as_ref();
    let mine = leader.is_some_and(|leader| agent.term(&name) == Some(leader.term));
    let leader = leader.map(|leader| shown(leader, &mut agent.budget()));
    Ok(fields(json!({"election": name, "mine": mine, "leader": leader, "candidates": election.candidate_count})))
}
