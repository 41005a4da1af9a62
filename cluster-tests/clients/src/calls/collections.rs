//! Collections, sequences and members.

use quorate_client::api::{Cas, CollectionRules};
use serde::Deserialize;

use super::{Asked, With, answer, found};
use crate::failure::Outcome;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Put {
    name: String,
    rules: CollectionRules,
    cas: Option<Cas>,
}

pub async fn put(asked: Asked<'_>) -> Outcome {
    let Put { name, rules, cas } = asked.arguments()?;
    let put = asked.client.collection(name).put(rules);
    answer(&put.with(cas, |put, cas| put.cas(cas)).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

pub async fn get(asked: Asked<'_>) -> Outcome {
    let Named { name } = asked.arguments()?;
    found(asked.client.collection(name).get().await?)
}

pub async fn delete(asked: Asked<'_>) -> Outcome {
    let Named { name } = asked.arguments()?;
    answer(&asked.client.collection(name).delete().await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Next {
    name: String,
    count: Option<u64>,
}

pub async fn sequence_next(asked: Asked<'_>) -> Outcome {
    let Next { name, count } = asked.arguments()?;
    answer(&asked.client.sequence(name).next(count.unwrap_or(1)).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

pub async fn members(asked: Asked<'_>) -> Outcome {
    let Nothing {} = asked.arguments()?;
    answer(&asked.client.members().list().await?)
}
