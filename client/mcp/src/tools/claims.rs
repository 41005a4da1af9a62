//! Claims: the first entry that matches and that nobody has, kept until it is done or given back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_client::api::{EntryView, Name};
use quorate_client::{Cas, Claims, Error, Write};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::entries::{Guarding, content, written};
use super::fields;
use crate::agent::{Agent, Claim, is_over};
use crate::input::{self, Conditions, Json};
use crate::refusal::Refusal;
use crate::taking::take;
use crate::tool::Outcome;

/// Who waits for something to claim looks again so often: what ends by its time is no change that could be watched.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
const HELD_DEFAULT: Duration = Duration::from_secs(30 * 60);
const HELD_MAX: Duration = Duration::from_secs(24 * 3_600);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Next {
    /// What the keys begin with.
    prefix: Option<String>,
    /// Conditions that all hold, in the form of `where` of entry_find.
    #[serde(default, rename = "where")]
    conditions: Conditions,
    /// Fields to sort by; `-field` for the greatest first. By key if nothing is said.
    #[serde(default)]
    order_by: Vec<String>,
    /// Changes the entry in the same step, in the form of entry_patch. It stays if you lose the claim, so do not mark an entry as taken by it.
    patch: Option<Json>,
    /// Wait so long for one if there is none now: 0 if nothing is said, 50 at most.
    wait_s: Option<f64>,
    /// Give it back by itself after so many seconds: 1800 if nothing is said.
    for_s: Option<f64>,
}

pub async fn next(agent: Arc<Agent>, input: Next) -> Outcome {
    let prefix = agent.scope().prefix(input.prefix.as_deref())?;
    let until = Instant::now() + input::wait(input.wait_s, Duration::ZERO)?;
    let time = match input.for_s {
        Some(seconds) => input::time("for_s", seconds, Duration::from_secs(1), HELD_MAX)?,
        None => HELD_DEFAULT,
    };
    agent.session().await?;
    loop {
        if let Some((cas, entry)) = claim(&agent, &prefix, &input).await? {
            agent.keep_claim(&entry, cas, time);
            return Ok(fields(json!({"claimed": shown(&agent, &entry), "for_s": time.as_secs()})));
        }
        let pause = AGAIN_AFTER.min(until.saturating_duration_since(Instant::now()));
        if pause.is_zero() {
            let next = "nothing matches that nobody has claimed: call again with wait_s, or do something else";
            return Ok(fields(json!({"claimed": null, "next": next})));
        }
        agent.unless_gone(tokio::time::sleep(pause)).await?;
    }
}

/// Claims one that is there now.
async fn claim(agent: &Agent, prefix: &Name, input: &Next) -> Result<Option<(Cas, EntryView)>, Refusal> {
    let (client, prefix, lock) = (agent.client().clone(), prefix.clone(), agent.claim_lock());
    let patch = input.patch.as_ref().map(|patch| content(agent, patch)).transpose()?;
    let conditions: Vec<_> = input.conditions.texts().collect();
    let order_by = input.order_by.clone();
    let work = async move {
        let mut claim = client.claim(&prefix).limit(1).lock_time(lock);
        for condition in conditions {
            claim = claim.matching_json(&condition);
        }
        for field in order_by {
            claim = claim.order_by(field);
        }
        if let Some(patch) = patch {
            claim = claim.patch(patch);
        }
        claim.await
    };
    let claims = take(work, give_back).await.map_err(|error| agent.refused(&error))?;
    let claimed = claims.first().map(|claimed| claimed.entry);
    Ok(claimed.and_then(|entry| Some((entry.cas?, entry))))
}

async fn give_back(claims: Result<Claims, Error>) {
    for claimed in claims.into_iter().flatten() {
        // Its time ends it otherwise.
        let _ = claimed.release().await;
    }
}

/// The entry without the key to its lock: that is ours to use, and the agent names the entry.
fn shown(agent: &Agent, entry: &EntryView) -> Value {
    let mut shown = agent.budget().entry(entry);
    for name in ["cas", "locked", "claim_left_s"] {
        shown.remove(name);
    }
    Value::Object(shown)
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Complete {
    /// The key of the entry that you claimed.
    key: String,
    /// Write this as its new value.
    #[serde(default, deserialize_with = "input::given")]
    value: Option<Json>,
    /// Or change it by this, in the form of entry_patch.
    patch: Option<Json>,
    /// Or delete it.
    #[serde(default)]
    delete: bool,
    #[serde(flatten)]
    guarding: Guarding,
}

pub async fn complete(agent: Arc<Agent>, input: Complete) -> Outcome {
    let key = agent.scope().key(&input.key)?;
    let guard = input.guarding.guard(&agent)?;
    let write = match (&input.value, &input.patch, input.delete) {
        (Some(value), None, false) => agent.client().put(&key, content(&agent, value)?),
        (None, Some(patch), false) => agent.client().patch(&key, content(&agent, patch)?),
        (None, None, true) => agent.client().remove(&key),
        _ => return Err(Refusal::invalid("give one of value, patch and delete: what becomes of the entry")),
    };
    let write = match guard {
        Some(guard) => write.guarded_by(guard),
        None => write,
    };
    end(&agent, key, |claim| write.cas(claim.cas)).await
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Release {
    /// The key of the entry that you claimed.
    key: String,
    /// Changes it in the same step, in the form of entry_patch: say how far you got.
    patch: Option<Json>,
}

pub async fn release(agent: Arc<Agent>, input: Release) -> Outcome {
    let key = agent.scope().key(&input.key)?;
    let patch = input.patch.as_ref().map(|patch| content(&agent, patch)).transpose()?;
    let client = agent.client().clone();
    end(&agent, key.clone(), |claim| match patch {
        Some(patch) => client.patch(key, patch).cas(claim.cas),
        None => client.unlock_entry(key, claim.cas),
    })
    .await
}

/// Ends a claim by a write with the key to its lock.
async fn end<'a>(agent: &Agent, key: Name, write: impl FnOnce(&Claim) -> Write<'a>) -> Outcome {
    let Some(claim) = agent.take_claim(&key) else {
        let why = format!("you have no claim of `{key}`: it was ended, it is lost, or you never had it");
        return Err(Refusal::new("not_lock_holder", why).next("nothing was written: entry_get shows what it is now"));
    };
    match write(&claim).await {
        Ok(answer) => Ok(written(&answer)),
        Err(error) if is_over(&error) => Err(agent.refused(&error).next("the claim is lost, and nothing was written")),
        Err(error) => {
            agent.put_claim_back(&key, claim);
            Err(agent.refused(&error))
        }
    }
}
