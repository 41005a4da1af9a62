//! Writing entries.

use std::sync::Arc;
use std::time::Duration;

use quorate_client::api::{Guard, Name, WriteAnswer};
use quorate_client::{Value as Content, Write};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::fields;
use crate::agent::Agent;
use crate::input::{self, Conditions, Digits, Json};
use crate::refusal::Refusal;
use crate::tool::Outcome;

/// An entry that lives for longer needs no time to live.
const TTL_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// What a write may have to hold.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Guarding {
    /// Apply only while you hold the lock of this name.
    guard_lock: Option<String>,
    /// Apply only while you lead the election of this name.
    guard_election: Option<String>,
    /// The fencing token or term instead of your own.
    guard_token: Option<Digits>,
}

impl Guarding {
    /// The guard that is meant, if one is.
    pub fn guard(self, agent: &Agent) -> Result<Option<Guard>, Refusal> {
        let (lock, election) = match (self.guard_lock, self.guard_election) {
            (None, None) if self.guard_token.is_some() => {
                return Err(Refusal::invalid("guard_token needs guard_lock or guard_election"));
            }
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err(Refusal::invalid("give guard_lock or guard_election, not both")),
            (Some(lock), None) => (Some(agent.scope().name(lock)?), None),
            (None, Some(election)) => (None, Some(agent.scope().name(election)?)),
        };
        if let Some(Digits(token)) = self.guard_token {
            return Ok(Some(Guard { lock, election, token }));
        }
        let guard = agent.guard(lock.as_deref(), election.as_deref());
        let what = || match (&lock, &election) {
            (Some(name), _) => format!("you do not hold the lock `{name}`; lock_acquire gets it"),
            (None, name) => {
                format!("you do not lead `{}`; election_campaign stands for it", name.as_deref().unwrap_or(""))
            }
        };
        guard.map(Some).ok_or_else(|| {
            Refusal::new("not_lock_holder", what())
                .next("nothing was written: get it first, and read again what it protects")
        })
    }
}

/// When a write is applied.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct When {
    /// Apply only if the entry still has this cas.
    cas: Option<Digits>,
    /// Apply only if all of these conditions hold, in the form of `where` of entry_find.
    #[serde(default, rename = "if")]
    conditions: Conditions,
    #[serde(flatten)]
    guarding: Guarding,
}

impl When {
    fn refine<'a>(self, agent: &Agent, mut write: Write<'a>) -> Result<Write<'a>, Refusal> {
        if let Some(cas) = self.cas {
            write = write.cas(cas.into());
        }
        for condition in self.conditions.texts() {
            write = write.only_if_json(&condition);
        }
        Ok(match self.guarding.guard(agent)? {
            Some(guard) => write.guarded_by(guard),
            None => write,
        })
    }
}

/// How long what is written stays.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Life {
    /// Seconds until the entry is removed by itself.
    ttl_s: Option<f64>,
    /// Remove the entry when you disconnect.
    #[serde(default)]
    while_connected: bool,
}

impl Life {
    async fn refine<'a>(&self, agent: &Agent, mut write: Write<'a>) -> Result<Write<'a>, Refusal> {
        if let Some(seconds) = self.ttl_s {
            write = write.ttl(input::time("ttl_s", seconds, Duration::from_millis(1), TTL_MAX)?);
        }
        Ok(match self.while_connected {
            true => write.session(agent.session().await?.id()),
            false => write,
        })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Put {
    /// The key, as answers show it: \xff in one is a byte that is no text.
    key: String,
    /// Any JSON.
    value: Json,
    #[serde(flatten)]
    when: When,
    #[serde(flatten)]
    life: Life,
}

pub async fn put(agent: Arc<Agent>, input: Put) -> Outcome {
    let key = agent.scope().key(&input.key)?;
    let write = agent.client().put(&key, content(&agent, &input.value)?);
    store(&agent, key, input.when.refine(&agent, write)?, &input.life).await
}

pub async fn replace(agent: Arc<Agent>, input: Put) -> Outcome {
    let key = agent.scope().key(&input.key)?;
    let write = agent.client().replace(&key, content(&agent, &input.value)?);
    store(&agent, key, input.when.refine(&agent, write)?, &input.life).await
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Insert {
    /// The key.
    key: String,
    /// Any JSON.
    value: Json,
    #[serde(flatten)]
    guarding: Guarding,
    #[serde(flatten)]
    life: Life,
}

pub async fn insert(agent: Arc<Agent>, input: Insert) -> Outcome {
    let key = agent.scope().key(&input.key)?;
    let mut write = agent.client().insert(&key, content(&agent, &input.value)?);
    if let Some(guard) = input.guarding.guard(&agent)? {
        write = write.guarded_by(guard);
    }
    store(&agent, key, write, &input.life).await
}

async fn store(agent: &Agent, key: Name, write: Write<'_>, life: &Life) -> Outcome {
    let answer = life.refine(agent, write).await?.await.map_err(|error| agent.refused(&error))?;
    agent.note_entry(&key, life.while_connected);
    Ok(written(&answer))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Patch {
    /// The key.
    key: String,
    /// A merge patch, {"status":"done","owner":null}; or operators, [{"op":"inc","path":"count","value":1}], likewise set unset append
    /// max min now; or a JSON Patch.
    patch: Json,
    #[serde(flatten)]
    when: When,
}

pub async fn patch(agent: Arc<Agent>, input: Patch) -> Outcome {
    let key = agent.scope().key(&input.key)?;
    let write = agent.client().patch(&key, content(&agent, &input.patch)?);
    let answer = input.when.refine(&agent, write)?.await.map_err(|error| agent.refused(&error))?;
    Ok(written(&answer))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Delete {
    /// The key.
    key: String,
    #[serde(flatten)]
    when: When,
}

pub async fn delete(agent: Arc<Agent>, input: Delete) -> Outcome {
    let key = agent.scope().key(&input.key)?;
    let write = agent.client().remove(&key);
    let answer = input.when.refine(&agent, write)?.await.map_err(|error| agent.refused(&error))?;
    agent.note_entry(&key, false);
    Ok(fields(json!({"key": answer.key.to_string(), "deleted": true, "revision": answer.revision.to_string()})))
}

/// JSON as the client takes it.
pub fn content(agent: &Agent, value: &Json) -> Result<Content, Refusal> {
    Content::json(&value.0).map_err(|error| agent.refused(&error))
}

/// The answer to a write.
pub fn written(answer: &WriteAnswer) -> Map<String, Value> {
    let mut shown = fields(json!({"key": answer.key.to_string(), "revision": answer.revision.to_string()}));
    if let Some(cas) = answer.cas {
        shown.insert("cas".into(), cas.to_string().into());
    }
    if let Some(version) = answer.version {
        shown.insert("version".into(), version.into());
    }
    shown
}
