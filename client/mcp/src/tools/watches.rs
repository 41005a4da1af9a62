//! Waiting for changes: a watch in steps, since an agent reads an answer and no stream.

use std::sync::Arc;
use std::time::Duration;

use quorate_client::api::WatchEvent;
use quorate_client::{Error, Watch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::fields;
use super::reads::limit;
use crate::agent::Agent;
use crate::input::{self, Conditions, Digits};
use crate::refusal::Refusal;
use crate::tool::Outcome;

const WAIT_DEFAULT: Duration = Duration::from_secs(20);
const EVENTS_DEFAULT: u32 = 20;
/// After the first event, others that are on their way come along.
const TOGETHER: Duration = Duration::from_millis(50);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Wait {
    /// What the keys begin with.
    prefix: Option<String>,
    /// Or one key.
    key: Option<String>,
    /// From this revision on: the `from` of the call before, so that nothing is missed; or 1 more than the `revision` of a list. From now on
    /// if nothing is said.
    from: Option<Digits>,
    /// Only entries of which these conditions hold, in the form of `where` of entry_find.
    #[serde(default, rename = "where")]
    conditions: Conditions,
    /// Wait so long for a change: 20 if nothing is said, 50 at most.
    wait_s: Option<f64>,
    /// About so many events: 20 if nothing is said, 100 at most.
    limit: Option<u32>,
    /// Without values.
    #[serde(default)]
    keys_only: bool,
}

pub async fn wait(agent: Arc<Agent>, input: Wait) -> Outcome {
    let until = Instant::now() + input::wait(input.wait_s, WAIT_DEFAULT)?;
    let limit = limit(input.limit, EVENTS_DEFAULT)? as usize;
    let mut setup = match (input.key, input.prefix) {
        (Some(_), Some(_)) => return Err(Refusal::invalid("give key or prefix, not both")),
        (Some(key), None) => agent.client().watch("").key(agent.scope().key(&key)?),
        (None, prefix) => agent.client().watch(agent.scope().prefix(prefix.as_deref())?),
    };
    if let Some(Digits(revision)) = input.from {
        setup = setup.from(revision);
    }
    for condition in input.conditions.texts() {
        setup = setup.filter_json(&condition);
    }
    if input.keys_only {
        setup = setup.keys_only();
    }
    let refused = |error: Error| agent.refused(&error);
    let mut watch = setup.start().await.map_err(refused)?;
    let events = agent.unless_gone(gather(&mut watch, until, limit)).await?.map_err(refused)?;
    let mut budget = agent.shared_budget();
    let shown: Vec<_> = events.iter().map(|event| budget.event(event)).collect();
    let from = watch.revision().map(|revision| (revision + 1).to_string());
    Ok(fields(json!({"events": shown, "from": from})))
}

/// Events of whole revisions: those that come until then, or soon after the first.
async fn gather(watch: &mut Watch, until: Instant, limit: usize) -> Result<Vec<WatchEvent>, Error> {
    let (mut events, mut until) = (Vec::new(), until);
    // What is ready is never left behind: it would be passed over.
    while events.len() < limit || watch.has_more() {
        let Ok(watched) = timeout_at(until, watch.next()).await else { break };
        if let Some(event) = watched?.event() {
            if events.is_empty() {
                until = until.min(Instant::now() + TOGETHER);
            }
            events.push(event);
        }
    }
    Ok(events)
}
