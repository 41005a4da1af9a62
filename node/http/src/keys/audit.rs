//! `GET /v1/audit`: who changed a key, and when.
//!
//! Owns the parameters and the form of the answer. What is kept, and for how long, is the state's.

use quorate_api::{AuditAnswer, AuditView};
use quorate_machine::keyspace::audit::AuditEffect;
use quorate_machine::query::{AuditFound, AuditQuery};
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::rejection::refusal_code;
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::limits;
use utoipa_axum::routes;

use crate::command;
use crate::context::Context;
use crate::coordinate;
use crate::described::Common;
use crate::input::cursor::AuditCursor;
use crate::input::extract::Query;
use crate::input::key;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    Routes::new().add(Policy::data(RequestClass::Scan), routes!(get))
}

/// Shows who changed a key, who tried to, and when: in the order in which it was decided.
///
/// It goes back as far as the history does; refusals are kept for 15 minutes at least. A page may hold fewer lines than `limit`, or
/// none, and still have a `cursor`: it is the absence of a cursor that says that everything was looked at. A task stands under its
/// queue, a slash and its id.
#[utoipa::path(get, path = "/v1/audit", tag = "entries", operation_id = "audit",
    params(
        ("key" = String, Query, description = "The key.", example = "orders/o42", min_length = 1, max_length = 4096),
        ("from" = Option<u64>, Query, description = "The first revision wanted."),
        ("limit" = Option<u64>, Query, description = "About so many lines in the page, 1 to 1000; 100 without it.", example = 100),
        ("cursor" = Option<String>, Query, description = "Of the page before."),
    ),
    responses(
        (status = 200, description = "A page.", body = AuditAnswer, example = json!({"key": "orders/o42", "lines": [{"revision": "17", "index": 28, "time": "2026-11-22T01:06:00.123Z", "op": "upsert", "effect": "changed", "principal": "app", "request_id": "order-42"}], "oldest_revision": "1", "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let query = parsed(context.head.uri.query())?;
    let wanted = requirement::on_name(Permission::Read, query.key.as_bytes());
    context.admit_read(&wanted).await?;
    drop(wanted);
    // It is a search: what it looks at is all that was changed, and not what it finds.
    context.costs_a_find()?;
    let name = query.key.as_bytes().into();
    let page = scan(&context, move |backend| backend.audit(&query)).await?;
    let answer = AuditAnswer {
        key: name,
        lines: page.lines.iter().map(view).collect(),
        cursor: page.next.map(|after| AuditCursor { after }.encode()),
        oldest_revision: page.at.oldest_revision,
        revision: page.at.revision,
        index: page.at.index,
    };
    command::answer(&answer, page.at.revision, None)
}

fn parsed(text: Option<&str>) -> Result<AuditQuery, Failure> {
    let mut query = Query::parse(text);
    let key = query.bytes("key");
    if key.is_none() {
        query.faults.add("query:key", "missing; name the key whose changes are wanted");
    }
    let key = key.and_then(|key| key::read(key, "query:key", &mut query.faults));
    let from = query.number("from").unwrap_or(0);
    let limit = query.page_limit(limits::LIST_ENTRIES_DEFAULT);
    let after = query.cursor(|text| AuditCursor::decode(text).map(|cursor| cursor.after));
    query.finish()?;
    let key = key.ok_or_else(|| Failure::invalid("query:key", "missing"))?;
    Ok(AuditQuery { key, from, after, limit, groups_max: limits::AUDIT_GROUPS_MAX, bytes_max: limits::AUDIT_BYTES_MAX })
}

fn view(found: &AuditFound) -> AuditView {
    let AuditFound { index, wall, line } = found;
    let (effect, refusal) = match &line.effect {
        AuditEffect::Changed { removed: true, .. } => ("removed", None),
        AuditEffect::Changed { removed: false, .. } => ("changed", None),
        AuditEffect::Relocked { .. } => ("relocked", None),
        AuditEffect::Refused(why) => ("refused", Some(refusal_code(*why))),
        AuditEffect::Beside => ("beside", None),
        AuditEffect::Elected { .. } => ("elected", None),
    };
    AuditView {
        revision: line.revision,
        index: *index,
        time: coordinate::moment(*wall),
        op: words(&format!("{:?}", line.op)),
        effect: effect.to_owned(),
        refusal,
        principal: Some(line.principal.clone()).filter(|name| !name.is_empty()),
        request_id: line.request_id.as_ref().map(|id| id.0.clone()),
    }
}

/// The name of a variant, as names in JSON are: `Task(RunOut)` is `task_run_out`.
fn words(variant: &str) -> String {
    let mut words = String::with_capacity(variant.len() + 4);
    for letter in variant.chars().filter(char::is_ascii_alphanumeric) {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_have_the_names_of_json() {
        assert_eq!(words("Upsert"), "upsert");
        assert_eq!(words("SessionExpire"), "session_expire");
        assert_eq!(words("Task(RunOut)"), "task_run_out");
    }
}
