//! Locks by name.

use std::sync::Arc;
use std::time::Duration;

use quorate_client::api::{ErrorCode, LockAnswer, LockMode};
use quorate_client::{Error, LockGuard};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fields;
use crate::agent::Agent;
use crate::input;
use crate::refusal::Refusal;
use crate::shown::seconds;
use crate::tool::Outcome;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Acquire {
    /// The name, such as `file:src/main.rs`.
    name: String,
    /// Wait so long in the queue if somebody has it: 0 if nothing is said, 50 at most.
    wait_s: Option<f64>,
    /// Share it with others who share it.
    #[serde(default)]
    shared: bool,
    /// How many may hold it at once; 1 if nothing is said. All have to say the same.
    slots: Option<u32>,
}

pub async fn acquire(agent: Arc<Agent>, input: Acquire) -> Outcome {
    let name = agent.scope().name(input.name)?;
    let wait = input::wait(input.wait_s, Duration::ZERO)?;
    let session = agent.session().await?;
    if let Some(token) = held(&agent, &name).await? {
        return Ok(fields(json!({"lock": name, "held": true, "token": token.to_string(), "already_held": true})));
    }
    let mut lock = session.lock(&name).wait(wait);
    if input.shared {
        lock = lock.shared();
    }
    if let Some(slots) = input.slots {
        lock = lock.slots(slots);
    }
    match agent.unless_gone(lock.acquire()).await? {
        Ok(guard) => {
            let token = guard.guard().token;
            agent.keep_lock(guard);
            Ok(fields(json!({"lock": name, "held": true, "token": token.to_string()})))
        }
        Err(error) => Err(refused(&agent, &name, error).await),
    }
}

/// The token of a lock that we hold; the cluster is asked, since an operator may have taken it.
async fn held(agent: &Agent, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(token) = agent.lock_token(name) else { return Ok(None) };
    match agent.client().lock(name).check(token).await {
        Ok(_) => Ok(Some(token)),
        Err(error) if error.code() == Some(ErrorCode::GuardFailed) => {
            drop(agent.take_lock(name));
            let why = format!("the lock `{name}` was taken from you: your token {token} does not hold it any more");
            Err(Refusal::new("lock_lost", why).next("read again what it protects; the next call asks for it anew"))
        }
        Err(error) => Err(agent.refused(&error)),
    }
}

/// Who has it, if it was not got for that.
async fn refused(agent: &Agent, name: &str, error: Error) -> Refusal {
    if error.code() != Some(ErrorCode::Locked) {
        return agent.refused(&error);
    }
    let refusal = Refusal::new("locked", format!("the lock `{name}` is held by somebody else"));
    let refusal = refusal
        .next("do something else, or call again with wait_s; it is free when its holder releases it or disconnects");
    match agent.client().lock(name).get().await {
        Ok(lock) => refusal.with("holders", holders(&lock)).with("waiting", lock.waiter_count),
        // Who has it is not known; that it was not got is.
        Err(_) => refusal,
    }
}

fn holders(lock: &LockAnswer) -> Value {
    let holders = lock.holders.iter().map(|holder| {
        json!({
            "owner": holder.owner,
            "session": holder.session,
            "token": holder.token.to_string(),
            "shared": holder.mode == LockMode::Shared,
            "for_s": seconds(holder.age_ms),
        })
    });
    holders.collect::<Vec<_>>().into()
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Release {
    /// The name.
    name: String,
}

pub async fn release(agent: Arc<Agent>, input: Release) -> Outcome {
    let name = agent.scope().name(input.name)?;
    let Some(guard) = agent.take_lock(&name) else {
        let why = format!("you do not hold the lock `{name}`");
        return Err(
            Refusal::new("not_lock_holder", why).next("there is nothing to release; lock_show tells who holds it")
        );
    };
    LockGuard::release(guard).await.map_err(|error| agent.refused(&error))?;
    Ok(fields(json!({"lock": name, "released": true})))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Show {
    /// The name; without it all locks in use, the first hundred.
    name: Option<String>,
}

pub async fn show(agent: Arc<Agent>, input: Show) -> Outcome {
    let Some(name) = input.name else { return list(&agent).await };
    let name = agent.scope().name(name)?;
    let lock = agent.client().lock(&name).get().await.map_err(|error| agent.refused(&error))?;
    let queue: Vec<_> =
        lock.queue.iter().map(|waiter| json!({"owner": waiter.owner, "session": waiter.session})).collect();
    let mine = agent.lock_token(&name).filter(|token| lock.holders.iter().any(|holder| holder.token == *token));
    Ok(fields(json!({
        "lock": name,
        "mine": mine.is_some(),
        "holders": holders(&lock),
        "queue": queue,
        "slots": lock.slots,
    })))
}

async fn list(agent: &Agent) -> Outcome {
    const SHOWN_MAX: usize = 100;
    let pages = agent.client().locks();
    let (mut shown, mut page) = (Vec::new(), pages.page().await.map_err(|error| agent.refused(&error))?);
    loop {
        let inside = page.locks.into_iter().filter(|lock| agent.scope().has(&lock.lock));
        shown.extend(
            inside.map(|lock| json!({"lock": lock.lock, "holders": lock.holder_count, "waiting": lock.waiter_count})),
        );
        match page.cursor {
            Some(cursor) if shown.len() < SHOWN_MAX => {
                page = pages.page_after(&cursor).await.map_err(|error| agent.refused(&error))?;
            }
            more => {
                let is_whole = more.is_none() && shown.len() <= SHOWN_MAX;
                shown.truncate(SHOWN_MAX);
                return Ok(fields(json!({"locks": shown, "more": !is_whole})));
            }
        }
    }
}
