//! `POST /v1/find` and `POST /v1/count`: entries by what holds of them, all pages at one moment.
//!
//! Owns the way from a checked query to its answer. How a body is read is in `find_body`.

use quorate_api::{Applied, CountAnswer, CountRequest, ErrorCode, FindAnswer, FindRequest, Problem};
use quorate_machine::document::path::Path;
use quorate_machine::query::{FindMoment, FindPage, FindQuery, FindRead, ReadPosition};
use quorate_machine::rules::field_text;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{Permission, RequiredPermission, Requirement, Visit};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::limits;
use utoipa_axum::routes;

use crate::context::{Context, RequestContext};
use crate::described::Common;
use crate::input::cursor::FindCursor;
use crate::input::json_body::Json;
use crate::keys::find_body::{Kind, ParsedFind};
use crate::keys::list;
use crate::output::render;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const SCAN: Policy = Policy::data(RequestClass::Scan).without_command();
    Routes::new().add(SCAN, routes!(find)).add(SCAN, routes!(count))
}

/// Finds entries by what holds of their documents and metadata.
///
/// All pages show one moment: revision, expiry and `{"now":true}` are those of the first page, whatever is written
/// meanwhile. The next page is asked for by the same body with the `cursor` of the page before.
///
/// One request looks at 10,000 entries or 8 MiB of keys and values at most, fewer where conditions look through long lists, and takes
/// 4 MiB into its page. In key order a
/// page may therefore hold fewer entries than `limit`, or none, and still have a `cursor`: only the absence of a cursor says
/// that everything was seen. A page also ends before an entry that takes too much work to judge, and the request that begins with that
/// entry is refused with `too_dear`, which names it. With `order_by` everything with the prefix must be seen for the first
/// entry to be known, unless an index of the collection gives the order; where that is too much, the answer is 413 and no
/// entries.
///
/// An index is used where all of the prefix lies in one collection and it narrows what is looked at or gives the order;
/// `index_used` then names its fields, and `examined` counts what was looked at all the same.
///
/// Field paths are dotted (`a.b.0`) or JSON pointers (`/a/b/0`); `$key $version $create_revision $mod_revision $exists
/// $locked $expires_at` and, but for `order_by`, `$cas` name metadata. Values that are not JSON have no fields. `{"now":true}` as a
/// `value` is the wall clock. `$expires_at` is when an entry expires, as far as can be told now: compared with RFC 3339 or Unix
/// milliseconds, missing where it never does, and looked at entry by entry, since no index has it. Where a collection declares the
/// type of a field, what it is compared with is converted to that first: `"17"` beside a `long` is 17. In `order_by` a `-` before a
/// path puts the greatest first; a name that begins with `-` is written as a pointer. Missing fields come before `null`, then false, true, numbers, strings, arrays, objects; entries that
/// are equal in all fields stand by key, in the direction of the last field.
#[utoipa::path(post, path = "/v1/find", tag = "entries", operation_id = "find",
    request_body(content = FindRequest, content_type = "application/json", examples(
        ("by status" = (value = json!({"prefix": "orders/", "where": [{"field": "status", "op": "eq", "value": "pending"}], "order_by": ["-priority", "due"], "limit": 10, "fields": ["status", "due"]}))),
        ("due or broken" = (value = json!({"prefix": "jobs/", "where": [{"any": [{"field": "execute_at", "op": "lte", "value": {"now": true}}, {"not": {"field": "error", "op": "nexists"}}]}], "keys_only": true}))),
    )),
    responses(
        (status = 200, description = "A page.", body = FindAnswer, example = json!({"entries": [{"key": "orders/o42", "value": {"status": "pending", "due": "2026-11-21T00:00:00Z"}, "content_type": "json", "cas": "17", "create_revision": "17", "mod_revision": "17", "version": 1}], "examined": 120, "revision": "20", "index": 31})),
        (status = 410, description = "`compacted`: the revision, or that of the cursor, can no longer be read.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn find(context: Context, Json(request): Json<FindRequest>) -> Outcome {
    answer(&context, ParsedFind::find(&request)?, Kind::Find).await
}

/// Counts the entries of which something holds.
///
/// As `POST /v1/find` does, and within the same bounds: while there is a `cursor`, this is the count of a part, and the same
/// body with the cursor counts the next. All parts show one moment; their sum is the count.
#[utoipa::path(post, path = "/v1/count", tag = "entries", operation_id = "count",
    request_body(content = CountRequest, content_type = "application/json",
        example = json!({"prefix": "orders/", "where": [{"field": "status", "op": "in", "value": ["pending", "paid"]}]})),
    responses(
        (status = 200, description = "The count, or that of a part.", body = CountAnswer, example = json!({"count": 42, "examined": 120, "revision": "20", "index": 31})),
        (status = 410, description = "`compacted`: the revision, or that of the cursor, can no longer be read.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn count(context: Context, Json(request): Json<CountRequest>) -> Outcome {
    answer(&context, ParsedFind::count(request)?, Kind::Count).await
}

async fn answer(context: &RequestContext, wanted: ParsedFind, kind: Kind) -> Outcome {
    let ParsedFind { mut query, consistency, hash } = wanted;
    query.may_walk_past = context.who().may_see_all();
    context.costs_a_find()?;
    context.caller().admit_read(consistency, context.deadline, &|visit| requirements(&query, visit)).await?;
    if let FindMoment::Now(wall) = &mut query.moment {
        *wall = context.api.node.wall_now();
    }
    let rendered = scan(context, move |backend| Ok(rendered(&query, backend.find(&query)?, hash, kind)));
    let (bytes, at) = rendered.await??;
    Ok(list::answer(bytes, at))
}

/// All with the prefix; and the entry that a cursor names, which an order makes the answer depend on.
fn requirements(query: &FindQuery, visit: &mut Visit<'_>) {
    visit(Requirement::Permission(RequiredPermission::Prefix(Permission::Read, &query.prefix)));
    if let Some(after) = &query.after {
        visit(Requirement::Permission(RequiredPermission::Name(Permission::Read, after.as_bytes())));
    }
}

fn rendered(query: &FindQuery, read: FindRead, hash: u64, kind: Kind) -> Result<(Vec<u8>, ReadPosition), Failure> {
    let (asked, pointer) = match query.moment {
        FindMoment::Now(_) => (0, ""),
        FindMoment::Revision(revision) => (revision, "/revision"),
        FindMoment::Pinned(pin) => (pin.revision, "/cursor"),
    };
    match read {
        FindRead::Page(page) => Ok((render_page(&page, hash, kind), page.at)),
        FindRead::Compacted(at) => Err(Failure::compacted(asked, at)),
        FindRead::Future(at) => {
            let detail = format!("revision {asked} does not exist here yet; the current one is {}", at.revision);
            Err(Failure::invalid(pointer, detail).evaluated_at(at.revision, at.index))
        }
        FindRead::TooManyToOrder(at) => Err(too_many_to_order(at)),
        FindRead::TooDear { at, key, dear } => Err(Failure::too_dear(&key, dear).evaluated_at(at.revision, at.index)),
    }
}

/// Not a part of the answer: the first of some entries need not be the first of all.
fn too_many_to_order(at: ReadPosition) -> Failure {
    let detail = format!(
        "to order them, all entries with the prefix must be looked at, and they are more than the {} entries or {} bytes \
         that one request may look at; narrow the prefix, or leave out order_by and page in key order",
        limits::FIND_ENTRIES_MAX,
        limits::FIND_BYTES_MAX
    );
    let failure = Failure::new(ErrorCode::TooLarge, Applied::No, detail.clone()).at("/order_by", detail);
    failure.evaluated_at(at.revision, at.index)
}

/// `FindAnswer` or `CountAnswer`.
fn render_page(page: &FindPage, hash: u64, kind: Kind) -> Vec<u8> {
    let mut out = Vec::with_capacity(4_096);
    match kind {
        Kind::Find => render_entries(&mut out, page),
        Kind::Count => {
            out.extend_from_slice(b"{\"count\":");
            render::number(&mut out, page.count);
        }
    }
    render::field(&mut out, "examined", page.examined);
    if let Some(fields) = &page.index {
        render_index(&mut out, fields);
    }
    if let Some(after) = &page.after {
        let cursor = FindCursor { query: hash, pin: page.pin, after: after.clone() };
        out.extend_from_slice(b",\"cursor\":");
        render::string(&mut out, &cursor.encode());
    }
    render::token(&mut out, "revision", page.at.revision);
    render::field(&mut out, "index", page.at.index);
    out.push(b'}');
    out
}

/// The fields of the index that was used.
fn render_index(out: &mut Vec<u8>, fields: &[Path]) {
    out.extend_from_slice(b",\"index_used\":[");
    for (position, path) in fields.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        render::string(out, &field_text(path));
    }
    out.push(b']');
}

fn render_entries(out: &mut Vec<u8>, page: &FindPage) {
    out.extend_from_slice(b"{\"entries\":[");
    for (position, found) in page.items.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        render::open_entry(out, &found.key, &found.entry, page.at.clock, found.has_value);
        out.push(b'}');
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use quorate_machine::query::{FindPin, Found};
    use quorate_machine::types::{ContentKind, Key};

    use super::*;
    use crate::output::render::tests::{entry, same_as};

    #[test]
    fn rendered_answers_are_the_wire_types() {
        let found = |kind, data: &[u8], has_value| {
            let entry = entry(kind, data, Some(9));
            Found { key: Key::new("k").expect("a key"), entry, has_value }
        };
        let items = vec![found(ContentKind::Json, b"{\"a\":1}", true), found(ContentKind::Bytes, b"", false)];
        let at = ReadPosition { index: 9, revision: 8, clock: 7, oldest_revision: 1 };
        let pin = FindPin { revision: 8, clock: 7, wall: 6 };
        for after in [None, Some(Key::new("k").expect("a key"))] {
            let index = after.is_some().then(|| vec![Path::parse("a.b").expect("a path")]);
            let page = FindPage { at, pin, items: items.clone(), count: 2, examined: 3, index, after };
            same_as::<FindAnswer>(&render_page(&page, 1, Kind::Find));
            same_as::<CountAnswer>(&render_page(&page, 1, Kind::Count));
        }
    }
}
