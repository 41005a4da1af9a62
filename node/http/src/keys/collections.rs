//! `/v1/collections` and `/v1/collections/{name}`: the rules of collections.
//!
//! Owns their conditions and their answer. `quorate_machine::rules` owns the rules and their faults, and apply decides what they do to
//! writes.

use axum::body::Body;
use quorate_api::{
    Applied, Cas, CollectionAnswer, CollectionList, CollectionRemoved, CollectionRules, ErrorCode, IndexState,
    IndexView, Problem, path,
};
use quorate_machine::limits::INDEX_TEXT_BYTES_MAX;
use quorate_machine::query::ReadPosition;
use quorate_machine::rules::{CollectionName, IndexRule, Rules, field_text};
use quorate_machine::types::{
    Action, CollectionRow, Expect, IndexFailure, IndexStage, Key, Outcome as Decided, Presence, Rejection, Reply,
    RulesChange, RulesOp, Tokens,
};
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::gateway::text::quoted;
use quorate_node_core::gateway::{propose, text};
use quorate_node_core::limits;
use utoipa_axum::routes;

use crate::command;
use crate::context::Context;
use crate::described::{Common, NamePath, Reused};
use crate::input::conditions::Precondition;
use crate::input::criteria;
use crate::input::extract::{Faults, Query};
use crate::output::response::{Outcome, created};
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const POINT: Policy = Policy::data(RequestClass::Point);
    Routes::new()
        .add(Policy::data(RequestClass::Scan), routes!(list))
        .all(POINT, [routes!(get), routes!(put), routes!(delete)])
}

/// Lists the collections, by name.
///
/// A page ends at `limit` collections or at 4 MiB; while there is a `cursor`, there are more.
#[utoipa::path(get, path = "/v1/collections", tag = "collections", operation_id = "collections",
    params(
        ("limit" = Option<u64>, Query, description = "Most collections in the page, 1 to 1000; 1000 without it.", example = 100),
        ("cursor" = Option<String>, Query, description = "Of the page before."),
    ),
    responses(
        (status = 200, description = "A page.", body = CollectionList, example = json!({"collections": [{"name": "orders", "rules": {"required": ["total"]}, "cas": "12", "create_revision": "12", "mod_revision": "12", "version": 1, "indexes": []}], "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn list(context: Context) -> Outcome {
    let mut query = Query::parse(context.head.uri.query());
    let limit = query.page_limit(limits::LIST_ENTRIES_MAX);
    let after = query.cursor(|text| CollectionName::new(text).ok());
    query.finish()?;
    context.admit_read(&requirement::on_prefix(Permission::Read, b"")).await?;
    context.costs_page(limit)?;
    let page =
        scan(&context, move |backend| backend.collections(after.as_ref(), limit, limits::LIST_BYTES_MAX)).await?;
    let last = page.collections.last().map(|(name, _)| name.to_string());
    let shown = page.collections.iter().map(|(name, row)| view(name, row)).collect::<Result<_, _>>()?;
    let ReadPosition { revision, index, .. } = page.at;
    let answer = CollectionList { collections: shown, cursor: last.filter(|_| page.more), revision, index };
    command::answer(&answer, revision, None)
}

/// Shows a collection: its rules, and how far its indexes are.
#[utoipa::path(get, path = "/v1/collections/{name}", tag = "collections", operation_id = "collection",
    params(NamePath),
    responses(
        (status = 200, description = "The collection.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run.")), body = CollectionAnswer, example = json!({"name": "orders", "rules": {"indexes": [["status", "due"]]}, "cas": "12", "create_revision": "12", "mod_revision": "12", "version": 1, "indexes": [{"fields": ["status", "due"], "unique": false, "state": "building"}], "revision": "20", "index": 31})),
        (status = 404, description = "`not_found`: it is not declared.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let name = name_of(context.name())?;
    let keys = format!("{name}/");
    context.admit_read(&requirement::on_prefix(Permission::Read, keys.as_bytes())).await?;
    let (at, row) = context.api.node.collection(&name).map_err(|fault| Failure::from_fault(&fault))?;
    let row = row.ok_or_else(|| command::missing(not_declared(&name), at))?;
    let answer = CollectionAnswer { revision: Some(at.revision), index: Some(at.index), ..view(&name, &row)? };
    command::answer(&answer, at.revision, Some(row.mod_revision))
}

/// Declares a collection, or replaces all of its rules.
///
/// A key belongs to the collection whose name and a slash it begins with; collections do not nest. From now on the rules hold for
/// every write to it, by every route; what is there already stays as it is until it is written. Indexes that are new are
/// built in the background (`state`), those that are not named any more are dropped; one that failed is built anew.
#[utoipa::path(put, path = "/v1/collections/{name}", tag = "collections", operation_id = "put_collection",
    params(
        NamePath,
        ("If-Match" = Option<String>, Header, description = "`*`, or a list of at most 16 tags, each a cas in quotes: the rules must have one of them, else 412. A weak tag, and one that is no cas, matches nothing.", example = "\"12\""),
        ("If-None-Match" = Option<String>, Header, description = "`*`: the collection must not be declared yet, else 412 `already_exists`. A list of tags: the rules must have none of them, else 412 `condition_not_met`. With `If-Match` both have to hold.", example = "*"),
    ),
    request_body(content = CollectionRules, content_type = "application/json",
        example = json!({"fields": {"status": {"type": "varchar", "max": 20, "default": "new"}, "number": {"type": "long", "sequence": "orders"}, "updated": {"type": "datetime", "auto_update": true}}, "required": ["total"], "indexes": [["status", "due"], {"fields": ["number"], "unique": true}]})),
    responses(
        (status = 200, description = "The rules hold.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run.")), body = CollectionAnswer, example = json!({"name": "orders", "rules": {"required": ["total"]}, "cas": "12", "create_revision": "12", "mod_revision": "12", "version": 1, "indexes": [], "revision": "12", "index": 20})),
        (status = 201, description = "The same, and it was not there before: `Location` is its path.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run.")), body = CollectionAnswer, example = json!({"name": "orders", "rules": {"required": ["total"]}, "cas": "12", "create_revision": "12", "mod_revision": "12", "version": 1, "indexes": [], "revision": "12", "index": 20})),
        (status = 409, description = "`already_exists` (a collection within or around it), `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        (status = 412, description = "`cas_mismatch`, `condition_not_met`; `not_found` and `already_exists` where a header asks for the contrary. Rules that are there are in `current`: `key` is the name, `value` the rules.", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "`quota_exceeded`: the quota is used up or a disk nearly full; deletes still work.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn put(context: Context, body: Body) -> Outcome {
    let name = name_of(context.name())?;
    let precondition = Precondition::of(&context.head)?;
    let expect = expected(&precondition)?;
    let text = command::text(&context, body, "the rules of a collection").await?;
    let mut faults = Faults::default();
    let rules = criteria::rules(&text, "", &mut faults);
    faults.check()?;
    let rules = rules.ok_or_else(|| Failure::invalid("", "not the rules of a collection"))?;
    let op = RulesOp { name: name.clone(), expect, change: RulesChange::Set(rules) };
    let reply = decide(&context, Action::Rules(op), false).await?;
    match &reply.outcome {
        Decided::RulesSet(Some(row)) => {
            let (revision, index) = (Some(reply.revision), Some(reply.index));
            let answer = CollectionAnswer { revision, index, replayed: reply.replayed, ..view(&name, row)? };
            let shown = command::answer(&answer, reply.revision, Some(row.mod_revision))?;
            let location = || format!("/v1/collections/{}", path::encode(name.as_str()));
            Ok(if row.version == 1 { created(shown, location()) } else { shown })
        }
        Decided::Rejected(why @ Rejection::Overlaps(_)) => Err(refused(&name, &reply, why)),
        Decided::Rejected(why) => Err(precondition.failed(refused(&name, &reply, why))),
        _ => Err(propose::confused(&reply)),
    }
}

/// Both headers in the words of rules, which know no replacement.
fn expected(precondition: &Precondition) -> Result<Expect, Failure> {
    if matches!(precondition.expect, Expect { presence: Presence::Present, tokens: Tokens::NoneOf(_) }) {
        let why =
            "`If-Match: *` together with tags in If-None-Match is not taken here; give the tag that the rules have";
        return Err(Failure::invalid("header:If-Match", why));
    }
    Ok(precondition.expect.clone())
}

/// Removes the rules of a collection. Its entries stay; its indexes are dropped.
#[utoipa::path(delete, path = "/v1/collections/{name}", tag = "collections", operation_id = "delete_collection",
    params(
        NamePath,
        ("If-Match" = Option<String>, Header, description = "`*`, or a list of at most 16 tags, each a cas in quotes: the rules must have one of them, else 412. A weak tag, and one that is no cas, matches nothing.", example = "\"12\""),
        ("If-None-Match" = Option<String>, Header, description = "`*`: the collection must not be declared, else 412 `already_exists`. A list of tags: the rules must have none of them, else 412 `condition_not_met`. With `If-Match` both have to hold.", example = "\"12\""),
    ),
    responses(
        (status = 200, description = "It is not declared any more.", body = CollectionRemoved, example = json!({"name": "orders", "revision": "22", "index": 34})),
        (status = 404, description = "`not_found`: it is not declared.", body = Problem, content_type = "application/problem+json"),
        (status = 412, description = "`cas_mismatch`, `condition_not_met`; `not_found` and `already_exists` where a header asks for the contrary. Rules that are there are in `current`: `key` is the name, `value` the rules.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn delete(context: Context) -> Outcome {
    let name = name_of(context.name())?;
    let precondition = Precondition::of(&context.head)?;
    let op = RulesOp { name: name.clone(), expect: precondition.expect.clone(), change: RulesChange::Remove };
    let reply = decide(&context, Action::Rules(op), false).await?;
    let Reply { revision, index, replayed, .. } = reply;
    match &reply.outcome {
        Decided::RulesSet(_) => {
            let answer = CollectionRemoved { name: name.to_string(), revision, index, replayed };
            command::answer(&answer, revision, None)
        }
        Decided::Rejected(why) => Err(precondition.failed(refused(&name, &reply, why))),
        _ => Err(propose::confused(&reply)),
    }
}

/// The name in the rest of a path: all of it, slashes too.
fn name_of(rest: &str) -> Result<CollectionName, Failure> {
    let text = text::percent_decode(rest).map_err(|why| Failure::invalid("path:name", why))?;
    CollectionName::new(text).map_err(|why| Failure::invalid("path:name", why.to_string()))
}

fn not_declared(name: &CollectionName) -> String {
    format!("the collection {} is not declared", quoted(name.as_str()))
}

fn refused(name: &CollectionName, reply: &Reply, why: &Rejection) -> Failure {
    let failure = Failure::from_rejection(name.as_str(), reply, why);
    match why {
        Rejection::NotFound | Rejection::CasMismatch { current: None, .. } => failure.saying(not_declared(name)),
        _ => failure,
    }
}

/// A collection as a list shows it.
fn view(name: &CollectionName, row: &CollectionRow) -> Result<CollectionAnswer, Failure> {
    let indexes = row.rules.indexes().iter().zip(&row.indexes);
    Ok(CollectionAnswer {
        name: name.to_string(),
        rules: rules_view(&row.rules)?,
        cas: Cas::new(row.mod_revision),
        create_revision: row.create_revision,
        mod_revision: row.mod_revision,
        version: row.version,
        indexes: indexes.map(|(rule, state)| index_view(rule, &state.stage)).collect(),
        revision: None,
        index: None,
        replayed: false,
    })
}

fn rules_view(rules: &Rules) -> Result<CollectionRules, Failure> {
    let read = serde_json::from_str(&rules.to_json().to_text());
    read.map_err(|error| Failure::new(ErrorCode::Internal, Applied::No, format!("rules that cannot be shown: {error}")))
}

fn index_view(rule: &IndexRule, stage: &IndexStage) -> IndexView {
    let (state, detail) = match stage {
        IndexStage::Building(_) => (IndexState::Building, None),
        IndexStage::Ready => (IndexState::Ready, None),
        IndexStage::Failed(why) => (IndexState::Failed, Some(explain(why))),
    };
    IndexView { fields: rule.fields().iter().map(field_text).collect(), unique: rule.is_unique(), state, detail }
}

/// Why an index cannot be, for people.
fn explain(why: &IndexFailure) -> String {
    let shown = |key: &Key| quoted(key);
    match why {
        IndexFailure::NotUnique(first, second) => {
            format!("{} and {} have the same values in its fields", shown(first), shown(second))
        }
        IndexFailure::TooLong(key) => {
            format!("{} has a string of more than {INDEX_TEXT_BYTES_MAX} bytes in one of its fields", shown(key))
        }
        IndexFailure::Internal => {
            "building it met a bug of this software, see /v1/cluster/faults; to try again, declare it anew".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_machine::document::Json;

    use super::*;

    #[test]
    fn every_rule_is_shown_as_it_is_read() {
        let text = r#"{"fields":{"/a.b/c":{"default":[1.50]},"n":{"type":"long","sequence":"s"},"t":{"type":"datetime","auto_update":true},"v":{"type":"varchar","max":5,"default":"x"}},"required":["q"],"indexes":[["n","t"],{"fields":["v"],"unique":true}],"ttl_ms":7,"precondition_required":true}"#;
        let json = Json::parse(text.as_bytes()).expect("JSON");
        let rules = Rules::read(&json, "").expect("rules");
        let shown = serde_json::to_string(&rules_view(&rules).expect("shown")).expect("JSON");
        let again = Rules::read(&Json::parse(shown.as_bytes()).expect("JSON"), "").expect("rules");
        assert_eq!(again, rules, "{shown}");
        assert!(shown.contains("1.50"), "numbers stay as they are written: {shown}");
    }
}
