//! Calls on single entries.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use quorate_client::api::{Cas, Guard, Name};
use quorate_client::{Client, Error, RequestId, Version, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Asked, Digits, With, answer, found, given, json_value};
use crate::failure::{Failure, Outcome};
use crate::names::Written as Key;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Get {
    key: Key,
    consistency: Option<Consistency>,
    revision: Option<Digits>,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Consistency {
    Linearizable,
    Local,
}

pub async fn get(asked: Asked<'_>) -> Outcome {
    let Get { key, consistency, revision } = asked.arguments()?;
    let get = asked.client.get(&key).with(revision, |get, Digits(revision)| get.revision(revision));
    found(get.with_if(consistency == Some(Consistency::Local), |get| get.local()).await?)
}

/// What writes of one entry may say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Writing {
    key: Key,
    #[serde(default, deserialize_with = "given")]
    value: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    patch: Option<Value>,
    cas: Option<Cas>,
    #[serde(default, rename = "if")]
    condition: Vec<Value>,
    ttl_ms: Option<u64>,
    session: Option<String>,
    guard: Option<Guard>,
    #[serde(default)]
    prev: bool,
    #[serde(default)]
    dry_run: bool,
    request_id: Option<String>,
}

/// `put`, `insert`, `replace`, `remove` and `patch`.
pub async fn write(name: &str, asked: Asked<'_>) -> Outcome {
    let mut with: Writing = asked.arguments()?;
    let (client, key) = (asked.client, std::mem::take(&mut with.key));
    let write = match (name, with.value.take(), with.patch.take()) {
        ("put", Some(value), None) => client.put(key, json_value(&value)),
        ("insert", Some(value), None) => client.insert(key, json_value(&value)),
        ("replace", Some(value), None) => client.replace(key, json_value(&value)),
        ("patch", None, Some(patch)) => client.patch(key, json_value(&patch)),
        ("remove", None, None) => client.remove(key),
        _ => return Err(Failure::Suite(format!("`{name}` has other arguments than {}", asked.with))),
    };
    answer(&with.refine(write)?.await?)
}

impl Writing {
    fn refine(self, write: Write<'_>) -> Result<Write<'_>, Error> {
        let id = self.request_id.as_deref().map(str::parse::<RequestId>).transpose()?;
        Ok(write
            .with(self.cas, |write, cas| write.cas(cas))
            .with_each(&self.condition, |write, criterion| write.only_if_json(&criterion.to_string()))
            .with(self.ttl_ms, |write, ms| write.ttl(Duration::from_millis(ms)))
            .with(self.session, |write, session| write.session(session))
            .with(self.guard, |write, guard| write.guarded_by(guard))
            .with(id, |write, id| write.request_id(id))
            .with_if(self.prev, |write| write.prev())
            .with_if(self.dry_run, |write| write.dry_run()))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Touch {
    key: Key,
    ttl_ms: u64,
}

pub async fn touch(asked: Asked<'_>) -> Outcome {
    let Touch { key, ttl_ms } = asked.arguments()?;
    answer(&asked.client.touch(key, Duration::from_millis(ttl_ms)).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Increment {
    key: Key,
    path: String,
    by: i64,
}

pub async fn increment(asked: Asked<'_>) -> Outcome {
    let Increment { key, path, by } = asked.arguments()?;
    answer(&asked.client.patch_json(key, &json!([{"op": "inc", "path": path, "value": by}])).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Update {
    key: Key,
    by: i64,
}

pub async fn update(asked: Asked<'_>) -> Outcome {
    let Update { key, by } = asked.arguments()?;
    Ok(json!({"value": add(asked.client, &key, by).await?}))
}

/// What updates work on.
#[derive(Serialize, Deserialize)]
pub struct Counted {
    n: i64,
}

/// The client's own loop of updates adds to field `n`.
pub async fn add(client: &Client, key: impl Into<Name>, by: i64) -> Result<Option<Counted>, Error> {
    let change = |current: Option<Counted>| Some(Counted { n: current.map_or(0, |counted| counted.n) + by });
    Ok(client.update(key, change).await?.written())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GetAndLock {
    key: Key,
    lock_ms: u64,
    wait_ms: Option<u64>,
}

pub async fn get_and_lock(asked: Asked<'_>) -> Outcome {
    let GetAndLock { key, lock_ms, wait_ms } = asked.arguments()?;
    let lock = asked.client.get_and_lock_entry(key, Duration::from_millis(lock_ms));
    answer(&lock.with(wait_ms, |lock, ms| lock.wait(Duration::from_millis(ms))).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unlock {
    key: Key,
    cas: Cas,
}

pub async fn unlock(asked: Asked<'_>) -> Outcome {
    let Unlock { key, cas } = asked.arguments()?;
    answer(&asked.client.unlock_entry(key, cas).await?)
}

/// How many rounds of a stream are on their way at a time.
const ROUNDS_AT_ONCE: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stream {
    ops: Vec<Map<String, Value>>,
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

/// Operations one after the other, in many rounds at once: the client has a stream to each node, by which all go.
pub async fn stream(asked: Asked<'_>) -> Outcome {
    let Stream { ops, times } = asked.arguments()?;
    let rounds = stream::iter(0..times).map(|_| round(&asked, &ops)).buffered(ROUNDS_AT_ONCE);
    let rounds: Vec<Vec<_>> = rounds.try_collect().await?;
    let (answers, codes): (Vec<_>, Vec<_>) = rounds.into_iter().flatten().unzip();
    let failed = codes.iter().filter(|code| !code.is_null()).count();
    Ok(json!({"answers": answers, "codes": codes, "failed": failed}))
}

/// Of each operation its answer, and the code that it failed with.
async fn round(asked: &Asked<'_>, ops: &[Map<String, Value>]) -> Result<Vec<(Value, Value)>, Failure> {
    let mut outcomes = Vec::new();
    for op in ops {
        outcomes.push(match one(asked, op.clone()).await {
            Ok(answer) => (answer, Value::Null),
            Err(failure) => (Value::Null, failure.fields().map_err(Failure::Suite)?["code"].take()),
        });
    }
    Ok(outcomes)
}

async fn one(asked: &Asked<'_>, mut op: Map<String, Value>) -> Outcome {
    let name = op.remove("op").unwrap_or_default();
    let asked = Asked { client: asked.client, things: asked.things, names: None, of: None, with: Value::Object(op) };
    match name.as_str().unwrap_or_default() {
        "get" => get(asked).await,
        "upsert" => write("put", asked).await,
        "update" => write("patch", asked).await,
        name @ ("insert" | "replace" | "remove") => write(name, asked).await,
        name => Err(Failure::Suite(format!("`{name}` has no form in a stream here"))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct History {
    key: Key,
}

pub async fn history(asked: Asked<'_>) -> Outcome {
    let History { key } = asked.arguments()?;
    let pages: Vec<_> = asked.client.history(key).pages().try_collect().await?;
    let versions: Vec<_> = pages.iter().flat_map(|page| &page.versions).map(version).collect();
    Ok(json!({"versions": versions}))
}

fn version(version: &Version) -> Value {
    let revision = version.change.revision.to_string();
    match &version.entry {
        Some(entry) => json!({"type": "put", "revision": revision, "value": entry.value}),
        None => json!({"type": "delete", "revision": revision}),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    request_id: String,
}

pub async fn request(asked: Asked<'_>) -> Outcome {
    let Request { request_id } = asked.arguments()?;
    found(asked.client.request_outcome(&request_id.parse()?).await?)
}
