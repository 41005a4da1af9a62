//! Elections, barriers and latches.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Asked, WAIT_DEFAULT, With, answer, given, json_value};
use crate::failure::Outcome;
use crate::things::{Held, Thing};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Campaign {
    election: String,
    #[serde(default, deserialize_with = "given")]
    value: Option<Value>,
    wait_ms: Option<u64>,
}

pub async fn campaign(asked: Asked<'_>) -> Outcome {
    let Campaign { election, value, wait_ms } = asked.arguments()?;
    let session = asked.session()?;
    let campaign = session.elect(election).wait(wait_ms.map_or(WAIT_DEFAULT, Duration::from_millis));
    let held = campaign.with(value, |campaign, value| campaign.value(json_value(&value))).campaign().await?;
    let guard = held.guard();
    let term = guard.token.to_string();
    asked.keep(Thing::Leadership(Held { guard, handle: Some(held) }));
    Ok(json!({"term": term}))
}

/// Gives the leadership up by its handle, and by its term once the handle is gone.
pub async fn resign(asked: Asked<'_>) -> Outcome {
    let Held { guard, handle } = asked.things.of(asked.of()?, Thing::leadership)?;
    match handle {
        Some(handle) => handle.resign().await?,
        None => drop(asked.client.election(guard.election.unwrap_or_default()).resign(guard.token).await?),
    }
    Ok(json!({"resigned": true}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Leader {
    election: String,
}

pub async fn leader(asked: Asked<'_>) -> Outcome {
    let Leader { election } = asked.arguments()?;
    Ok(json!({"leader": answer(&asked.client.election(election).leader().await?)?}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Enter {
    barrier: String,
    parties: u32,
    wait_ms: Option<u64>,
}

pub async fn barrier_enter(asked: Asked<'_>) -> Outcome {
    let Enter { barrier, parties, wait_ms } = asked.arguments()?;
    let session = asked.session()?;
    let barrier = session.barrier(barrier, parties);
    let barrier = barrier.with(wait_ms, |barrier, ms| barrier.wait(Duration::from_millis(ms)));
    answer(&barrier.enter().await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    latch: String,
    count: u64,
}

pub async fn latch_create(asked: Asked<'_>) -> Outcome {
    let Create { latch, count } = asked.arguments()?;
    answer(&asked.client.latch(latch).create(count).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CountDown {
    latch: String,
    by: Option<u64>,
}

pub async fn latch_count_down(asked: Asked<'_>) -> Outcome {
    let CountDown { latch, by } = asked.arguments()?;
    answer(&asked.client.latch(latch).count_down(by.unwrap_or(1)).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    latch: String,
    wait_ms: Option<u64>,
}

pub async fn latch_wait(asked: Asked<'_>) -> Outcome {
    let Wait { latch, wait_ms } = asked.arguments()?;
    let wait = wait_ms.map_or(WAIT_DEFAULT, Duration::from_millis);
    answer(&asked.client.latch(latch).wait(wait).await?)
}
