//! Calls on many entries.

use std::time::Duration;

use futures::TryStreamExt;
use quorate_client::api::{self, Guard, TxnStep};
use quorate_client::{ChangeWhere, Error, RequestId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Asked, Digits, With, answer, given, json_value, operations, part};
use crate::failure::{Failure, Outcome};
use crate::names::Written as Key;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    prefix: Key,
    limit: Option<u32>,
    #[serde(default)]
    keys_only: bool,
    #[serde(default)]
    sizes: bool,
    #[serde(default)]
    reverse: bool,
    revision: Option<Digits>,
    part: Option<u32>,
    of: Option<u32>,
}

pub async fn list(asked: Asked<'_>) -> Outcome {
    let List { prefix, limit, keys_only, sizes, reverse, revision, part: index, of } = asked.arguments()?;
    let list = asked.client.list(prefix).with(limit, |list, limit| list.limit(limit));
    let list = list.with(part(index, of)?, |list, (index, of)| list.part(index, of));
    let list = list.with(revision, |list, Digits(revision)| list.revision(revision));
    let list = list.with_if(keys_only, |list| list.keys_only()).with_if(sizes, |list| list.sizes());
    let list = list.with_if(reverse, |list| list.reverse());
    answer(&list.page().await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListAll {
    prefix: Key,
    limit: Option<u32>,
    part: Option<u32>,
    of: Option<u32>,
}

pub async fn list_all(asked: Asked<'_>) -> Outcome {
    let ListAll { prefix, limit, part: index, of } = asked.arguments()?;
    let list = asked.client.list(prefix).with(limit, |list, limit| list.limit(limit));
    let list = list.with(part(index, of)?, |list, (index, of)| list.part(index, of));
    let pages: Vec<_> = list.pages().try_collect().await?;
    let keys: Vec<_> = pages.into_iter().flat_map(|page| page.entries).map(|entry| entry.key.to_string()).collect();
    Ok(json!({"keys": keys}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    #[serde(default)]
    prefix: Key,
    #[serde(default, rename = "where")]
    criteria: Vec<Value>,
    #[serde(default)]
    order_by: Vec<String>,
    limit: Option<u32>,
    #[serde(default)]
    fields: Vec<String>,
    #[serde(default)]
    keys_only: bool,
    revision: Option<Digits>,
}

pub async fn find(asked: Asked<'_>) -> Outcome {
    let with: Find = asked.arguments()?;
    let find = asked
        .client
        .find(with.prefix)
        .with_each(&with.criteria, |find, criterion| find.matching_json(&criterion.to_string()))
        .with_each(with.order_by, |find, field| find.order_by(field))
        .with(with.limit, |find, limit| find.limit(limit))
        .with_if(!with.fields.is_empty(), |find| find.fields(with.fields))
        .with_if(with.keys_only, |find| find.keys_only())
        .with(with.revision, |find, Digits(revision)| find.revision(revision));
    answer(&find.page().await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    #[serde(default)]
    prefix: Key,
    #[serde(default, rename = "where")]
    criteria: Vec<Value>,
}

pub async fn count(asked: Asked<'_>) -> Outcome {
    let Count { prefix, criteria } = asked.arguments()?;
    let find = asked.client.find(prefix);
    let find = find.with_each(&criteria, |find, criterion| find.matching_json(&criterion.to_string()));
    answer(&find.count().await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    prefix: Key,
    #[serde(default, rename = "where")]
    criteria: Vec<Value>,
    #[serde(default)]
    order_by: Vec<String>,
    limit: Option<u32>,
    lock_ms: Option<u64>,
    #[serde(default, deserialize_with = "given")]
    patch: Option<Value>,
    guard: Option<Guard>,
    #[serde(default)]
    dry_run: bool,
    request_id: Option<String>,
}

pub async fn claim(asked: Asked<'_>) -> Outcome {
    let with: Claim = asked.arguments()?;
    let claim = asked
        .client
        .claim(with.prefix)
        .with_each(&with.criteria, |claim, criterion| claim.matching_json(&criterion.to_string()))
        .with_each(with.order_by, |claim, field| claim.order_by(field))
        .with(with.limit, |claim, limit| claim.limit(limit))
        .with(with.lock_ms, |claim, ms| claim.lock_time(Duration::from_millis(ms)))
        .with(with.patch, |claim, patch| claim.patch(json_value(&patch)))
        .with(with.guard, |claim, guard| claim.guarded_by(guard))
        .with_if(with.dry_run, |claim| claim.dry_run())
        .with(request_id(with.request_id)?, |claim, id| claim.request_id(id));
    answer(&claim.await?.answer)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Where {
    prefix: Key,
    #[serde(rename = "where")]
    criteria: Vec<Value>,
    #[serde(default, rename = "if")]
    condition: Vec<Value>,
    #[serde(default, deserialize_with = "given")]
    patch: Option<Value>,
    ttl_ms: Option<u64>,
    limit: Option<u32>,
    cursor: Option<String>,
    guard: Option<Guard>,
    #[serde(default)]
    dry_run: bool,
    request_id: Option<String>,
}

pub async fn update_where(asked: Asked<'_>) -> Outcome {
    let mut with: Where = asked.arguments()?;
    let patch = with.patch.take().ok_or_else(|| Failure::Suite("there is no patch".to_owned()))?;
    let change = asked.client.patch_where(with.prefix.clone(), json_value(&patch));
    answer(&with.refine(change)?.await?)
}

pub async fn delete_where(asked: Asked<'_>) -> Outcome {
    let with: Where = asked.arguments()?;
    if with.patch.is_some() {
        return Err(Failure::Suite("what is deleted is not patched".to_owned()));
    }
    let change = asked.client.delete_where(with.prefix.clone());
    answer(&with.refine(change)?.await?)
}

impl Where {
    fn refine(self, change: ChangeWhere<'_>) -> Result<ChangeWhere<'_>, Failure> {
        Ok(change
            .with_each(&self.criteria, |change, criterion| change.matching_json(&criterion.to_string()))
            .with_each(&self.condition, |change, criterion| change.only_if_json(&criterion.to_string()))
            .with(self.ttl_ms, |change, ms| change.ttl(Duration::from_millis(ms)))
            .with(self.limit, |change, limit| change.limit(limit))
            .with(self.cursor, |change, cursor| change.after(cursor))
            .with(self.guard, |change, guard| change.guarded_by(guard))
            .with_if(self.dry_run, |change| change.dry_run())
            .with(request_id(self.request_id)?, |change, id| change.request_id(id)))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bulk {
    ops: Vec<api::Op>,
    #[serde(default)]
    dry_run: bool,
    request_id: Option<String>,
}

pub async fn bulk(asked: Asked<'_>) -> Outcome {
    let Bulk { ops, dry_run, request_id: id } = asked.arguments_of_api()?;
    let ops = ops.into_iter().map(operations::op).collect::<Result<Vec<_>, _>>()?;
    let bulk = asked.client.bulk().extend(ops).with_if(dry_run, |bulk| bulk.dry_run());
    answer(&bulk.with(request_id(id)?, |bulk, id| bulk.request_id(id)).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Txn {
    #[serde(default, rename = "if")]
    checks: Vec<api::TxnCheck>,
    #[serde(default)]
    then: Vec<TxnStep>,
    #[serde(default, rename = "else")]
    otherwise: Vec<TxnStep>,
    #[serde(default)]
    dry_run: bool,
    request_id: Option<String>,
}

pub async fn txn(asked: Asked<'_>) -> Outcome {
    let Txn { checks, then, otherwise, dry_run, request_id: id } = asked.arguments_of_api()?;
    let txn = operations::txn(asked.client.txn(), checks, then, otherwise)?.with_if(dry_run, |txn| txn.dry_run());
    answer(&txn.with(request_id(id)?, |txn, id| txn.request_id(id)).await?)
}

fn request_id(id: Option<String>) -> Result<Option<RequestId>, Error> {
    id.map(|id| id.parse()).transpose()
}
