//! Reading entries: one, lists, by criteria, and the past.

use std::sync::Arc;

use quorate_client::api::EntryView;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fields;
use crate::agent::Agent;
use crate::input::{Conditions, Digits};
use crate::refusal::Refusal;
use crate::shown;
use crate::tool::Outcome;

const LIMIT_DEFAULT: u32 = 20;
const LIMIT_MAX: u32 = 100;
const HISTORY_DEFAULT: u32 = 5;
const HISTORY_MAX: u32 = 20;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Get {
    /// The key, as answers show it: \xff in one is a byte that is no text.
    key: String,
    /// As it was at this revision.
    revision: Option<Digits>,
    /// Reads the text of a long value from this byte on, in parts: go on with `next_offset`.
    offset: Option<usize>,
}

pub async fn get(agent: Arc<Agent>, input: Get) -> Outcome {
    let key = agent.scope().key(&input.key)?;
    let mut get = agent.client().get(&key);
    if let Some(Digits(revision)) = input.revision {
        get = get.revision(revision);
    }
    let Some(entry) = get.await.map_err(|error| agent.refused(&error))? else {
        return Ok(fields(json!({"key": key.to_string(), "found": false})));
    };
    match input.offset {
        Some(offset) => Ok(shown::entry_part(&entry, offset, agent.answer_bytes())),
        None => Ok(agent.budget().entry(&entry)),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct List {
    /// What the keys begin with.
    prefix: Option<String>,
    /// At most so many: 20 if nothing is said, 100 at most.
    limit: Option<u32>,
    /// The `cursor` of the page before.
    cursor: Option<String>,
    /// Without values.
    #[serde(default)]
    keys_only: bool,
    /// From the last key to the first.
    #[serde(default)]
    reverse: bool,
}

pub async fn list(agent: Arc<Agent>, input: List) -> Outcome {
    let mut list =
        agent.client().list(agent.scope().prefix(input.prefix.as_deref())?).limit(limit(input.limit, LIMIT_DEFAULT)?);
    if input.keys_only {
        list = list.keys_only();
    }
    if input.reverse {
        list = list.reverse();
    }
    let page = match &input.cursor {
        Some(cursor) => list.page_after(cursor).await,
        None => list.page().await,
    };
    let page = page.map_err(|error| agent.refused(&error))?;
    answer(&agent, &page.entries, input.keys_only, page.cursor, page.revision)
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Find {
    /// What the keys begin with.
    prefix: Option<String>,
    /// Conditions that all hold: [{"field":"status","op":"eq","value":"open"}]; also {"any":[…]}, {"all":[…]}, {"not":…}. Operators: eq neq
    /// lt lte gt gte in nin between exists nexists contains ncontains starts ends like. Fields are dotted paths of the JSON, or $key
    /// $version $locked $mod_revision.
    #[serde(default, rename = "where")]
    conditions: Conditions,
    /// Fields to sort by; `-field` for the greatest first.
    #[serde(default)]
    order_by: Vec<String>,
    /// At most so many: 20 if nothing is said, 100 at most.
    limit: Option<u32>,
    /// The `cursor` of the page before.
    cursor: Option<String>,
    /// Only these fields of each document.
    #[serde(default)]
    fields: Vec<String>,
    /// Without values.
    #[serde(default)]
    keys_only: bool,
}

pub async fn find(agent: Arc<Agent>, input: Find) -> Outcome {
    let mut find =
        agent.client().find(agent.scope().prefix(input.prefix.as_deref())?).limit(limit(input.limit, LIMIT_DEFAULT)?);
    for condition in input.conditions.texts() {
        find = find.matching_json(&condition);
    }
    for field in input.order_by {
        find = find.order_by(field);
    }
    if !input.fields.is_empty() {
        find = find.fields(input.fields);
    }
    if input.keys_only {
        find = find.keys_only();
    }
    let page = match &input.cursor {
        Some(cursor) => find.page_after(cursor).await,
        None => find.page().await,
    };
    let page = page.map_err(|error| agent.refused(&error))?;
    answer(&agent, &page.entries, input.keys_only, page.cursor, page.revision)
}

/// A page. A cursor says itself where it goes on, so what it brings is looked at.
fn answer(agent: &Agent, entries: &[EntryView], keys_only: bool, cursor: Option<String>, revision: u64) -> Outcome {
    if let Some(outside) = entries.iter().find(|entry| !agent.scope().has(&entry.key)) {
        return Err(agent.scope().outside(&outside.key.to_string()));
    }
    let mut budget = agent.shared_budget();
    let entries: Vec<_> = match keys_only {
        true => entries.iter().map(|entry| Value::from(entry.key.to_string())).collect(),
        false => entries.iter().map(|entry| budget.entry(entry).into()).collect(),
    };
    let name = if keys_only { "keys" } else { "entries" };
    let mut shown = fields(json!({name: entries, "revision": revision.to_string()}));
    if let Some(cursor) = cursor {
        shown.insert("cursor".into(), cursor.into());
    }
    Ok(shown)
}

pub fn limit(given: Option<u32>, default: u32) -> Result<u32, Refusal> {
    match given.unwrap_or(default) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        _ => Err(Refusal::invalid(format!("limit is 1 to {LIMIT_MAX}; go on with cursor"))),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct History {
    /// The key.
    key: String,
    /// The last so many versions: 5 if nothing is said, 20 at most.
    limit: Option<u32>,
}

pub async fn history(agent: Arc<Agent>, input: History) -> Outcome {
    let key = agent.scope().key(&input.key)?;
    let limit = input.limit.unwrap_or(HISTORY_DEFAULT);
    if !(1..=HISTORY_MAX).contains(&limit) {
        return Err(Refusal::invalid(format!("limit is 1 to {HISTORY_MAX}")));
    }
    let versions = agent.client().history(&key).last(limit as usize).await.map_err(|error| agent.refused(&error))?;
    let mut budget = agent.shared_budget();
    let versions = versions.into_iter().map(|version| {
        let change = version.change;
        let mut shown = fields(json!({"revision": change.revision.to_string(), "time": change.time, "op": change.op}));
        if let Some(principal) = change.principal {
            shown.insert("by".into(), principal.into());
        }
        let entry = version.entry.map_or(Value::Null, |entry| budget.entry(&entry).into());
        shown.insert("entry".into(), entry);
        Value::Object(shown)
    });
    Ok(fields(json!({"key": key.to_string(), "versions": versions.collect::<Vec<_>>()})))
}
