//! Watches and mirrors.

use std::sync::Arc;

use quorate_client::api::WatchEventKind;
use quorate_client::{Mirror, Watched};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{Asked, Digits, With, answer, found, part};
use crate::failure::{Failure, Outcome};
use crate::names::Written as Key;
use crate::things::{Thing, Things};

/// Begins a watch or a mirror.
pub async fn start(what: &str, asked: Asked<'_>) -> Outcome {
    match what {
        "watch" => start_watch(asked).await,
        "mirror" => start_mirror(asked).await,
        unknown => Err(Failure::Suite(format!("there is no `{unknown}` to start"))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Watch {
    key: Option<Key>,
    prefix: Option<Key>,
    from: Option<Digits>,
    #[serde(default)]
    initial: bool,
    #[serde(default)]
    prev: bool,
    #[serde(default)]
    keys_only: bool,
    events: Option<WatchEventKind>,
    #[serde(default, rename = "where")]
    criteria: Vec<Value>,
    part: Option<u32>,
    of: Option<u32>,
}

async fn start_watch(asked: Asked<'_>) -> Outcome {
    let with: Watch = asked.arguments()?;
    let watch = asked
        .client
        .watch(with.prefix.unwrap_or_default())
        .with(with.key, |watch, key| watch.key(key))
        .with(with.from, |watch, Digits(revision)| watch.from(revision))
        .with_if(with.initial, |watch| watch.initial())
        .with_if(with.prev, |watch| watch.prev())
        .with_if(with.keys_only, |watch| watch.keys_only())
        .with(part(with.part, with.of)?, |watch, (index, of)| watch.part(index, of))
        .with(with.events, |watch, kind| watch.only(kind))
        .with_each(&with.criteria, |watch, criterion| watch.filter_json(&criterion.to_string()));
    asked.keep(Thing::Watch(Arc::new(Mutex::new(watch.start().await?))));
    Ok(json!({}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartMirror {
    prefix: Key,
}

async fn start_mirror(asked: Asked<'_>) -> Outcome {
    let StartMirror { prefix } = asked.arguments()?;
    asked.keep(Thing::Mirror(asked.client.mirror(prefix).start().await?));
    Ok(json!({}))
}

/// The next event of a watch.
pub async fn next(things: &Things, name: &str) -> Outcome {
    let watch = things.of(name, Thing::watch)?;
    let watched = watch.lock().await.next().await?;
    match watched {
        Watched::Event(event) => answer(&event),
        Watched::Synced(revision) => Ok(json!({"type": "synced", "revision": revision.to_string()})),
        Watched::Restarted => Ok(json!({"type": "restarted"})),
        other => Err(Failure::Suite(format!("there is no form for {other:?}"))),
    }
}

/// Ends a watch or a mirror.
pub fn stop(things: &Things, name: &str) -> Outcome {
    match things.take(name) {
        Some(Thing::Watch(_) | Thing::Mirror(_)) => Ok(json!({})),
        _ => Err(Failure::Suite(format!("`{name}` is no watch and no mirror"))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MirrorGet {
    key: Key,
    #[serde(default)]
    sync: bool,
}

pub async fn mirror_get(asked: Asked<'_>) -> Outcome {
    let MirrorGet { key, sync } = asked.arguments()?;
    found(mirror(&asked, sync).await?.get(&key.0).as_deref())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MirrorKeys {
    #[serde(default)]
    sync: bool,
}

pub async fn mirror_keys(asked: Asked<'_>) -> Outcome {
    let MirrorKeys { sync } = asked.arguments()?;
    let entries = mirror(&asked, sync).await?.list("");
    let keys: Vec<_> = entries.iter().map(|entry| entry.key.to_string()).collect();
    Ok(json!({"keys": keys}))
}

async fn mirror(asked: &Asked<'_>, sync: bool) -> Result<Mirror, Failure> {
    let mirror = asked.things.of(asked.of()?, Thing::mirror)?;
    if sync {
        mirror.sync().await?;
    }
    Ok(mirror)
}
