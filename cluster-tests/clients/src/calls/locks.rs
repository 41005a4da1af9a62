//! Locks, and writes under what was granted.

use std::time::Duration;

use quorate_client::api::LockMode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Asked, WAIT_DEFAULT, With, answer, json_value};
use crate::failure::{Failure, Outcome};
use crate::names::Written as Key;
use crate::things::{Held, Thing};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    name: String,
    wait_ms: Option<u64>,
    mode: Option<LockMode>,
    slots: Option<u32>,
    max_waiters: Option<u32>,
}

pub async fn lock(asked: Asked<'_>) -> Outcome {
    let with: Lock = asked.arguments()?;
    let wait = with.wait_ms.map_or(WAIT_DEFAULT, Duration::from_millis);
    take(asked, with, wait).await
}

pub async fn lock_try(asked: Asked<'_>) -> Outcome {
    let with: Lock = asked.arguments()?;
    if with.wait_ms.is_some() {
        return Err(Failure::Suite("`lock_try` does not wait".to_owned()));
    }
    take(asked, with, Duration::ZERO).await
}

async fn take(asked: Asked<'_>, with: Lock, wait: Duration) -> Outcome {
    let session = asked.session()?;
    let lock = session.lock(with.name).wait(wait).with(with.slots, |lock, slots| lock.slots(slots));
    let lock = lock.with(with.max_waiters, |lock, most| lock.max_waiters(most));
    let held = lock.with_if(with.mode == Some(LockMode::Shared), |lock| lock.shared()).acquire().await?;
    let guard = held.guard();
    let token = guard.token.to_string();
    asked.keep(Thing::Lock(Held { guard, handle: Some(held) }));
    Ok(json!({"token": token}))
}

/// Gives the lock up by its handle, and by its token once the handle is gone.
pub async fn unlock(asked: Asked<'_>) -> Outcome {
    let Held { guard, handle } = asked.things.of(asked.of()?, Thing::lock)?;
    match handle {
        Some(handle) => handle.release().await?,
        None => drop(asked.client.lock(guard.lock.unwrap_or_default()).release(guard.token).await?),
    }
    Ok(json!({"released": true}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GuardedPut {
    key: Key,
    value: Value,
}

pub async fn guarded_put(asked: Asked<'_>) -> Outcome {
    let GuardedPut { key, value } = asked.arguments()?;
    let guard = asked.things.of(asked.of()?, Thing::guard)?;
    answer(&asked.client.put(key, json_value(&value)).guarded_by(guard).await?)
}
