//! `GET /v1/kv`: pages of a key range, pinned to one revision.
//!
//! Owns the query parameters and the paging.

use hyper::body::Bytes;
use quorate_api::{ListAnswer, Problem};
use quorate_machine::keyspace::after_prefix;
use quorate_machine::query::{ListPage, ListQuery, ListRead, ReadPosition};
use quorate_machine::types::{Key, Revision};
use quorate_node_core::backend::Consistency;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::limits;
use utoipa_axum::routes;

use crate::context::{Context, RequestContext};
use crate::described::Common;
use crate::headers;
use crate::input::consistency;
use crate::input::cursor::Cursor;
use crate::input::extract::Query;
use crate::input::key::GivenRange;
use crate::input::part::Part;
use crate::output::render::{self, ValuesShown};
use crate::output::response::{Answer, Outcome, ok};
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    Routes::new().add(Policy::data(RequestClass::Scan), routes!(get))
}

/// Lists entries in key order.
///
/// A page ends at `limit` entries or at 4 MiB. All pages of a listing show the same revision, the first page's.
#[utoipa::path(get, path = "/v1/kv", tag = "entries", operation_id = "list",
    params(
        ("prefix" = Option<String>, Query, description = "Only keys that begin with this.", example = "orders/"),
        ("start" = Option<String>, Query, description = "First key, inclusive; not with `prefix`."),
        ("end" = Option<String>, Query, description = "End key, exclusive; not with `prefix`."),
        ("limit" = Option<u64>, Query, description = "Most entries in the page, 1 to 1000; 100 without it.", example = 100),
        ("cursor" = Option<String>, Query, description = "Of the page before; stands for the range, the order, the part and the revision."),
        ("keys_only" = Option<bool>, Query, description = "Leave the values out."),
        ("sizes" = Option<bool>, Query, description = "Say how many bytes each value has (`value_bytes`), also where `keys_only` leaves the values out. A page ends at 4 MiB of values all the same."),
        ("count_only" = Option<bool>, Query, description = "Only count the whole range."),
        ("reverse" = Option<bool>, Query, description = "From the end backwards."),
        ("part" = Option<u64>, Query, description = "Only the keys of this part, from 0; with `of`. A page looks at `limit` entries and shows those of the part, so it may be empty and have a `cursor` all the same.", example = 0),
        ("of" = Option<u64>, Query, description = "Of so many parts, 1 to 1024; a key is in the part that the XXH3-64 of its bytes says, modulo their number.", example = 4),
        ("revision" = Option<u64>, Query, description = "As it was at this revision."),
        ("consistency" = Option<String>, Query, description = "`linearizable` (default) or `local`."),
        ("min_revision" = Option<u64>, Query, description = "Wait until this node has this revision, and read locally."),
    ),
    responses(
        (status = 200, description = "A page.", body = ListAnswer, example = json!({"entries": [{"key": "orders/o42", "value": {"status": "new"}, "content_type": "json", "cas": "17", "create_revision": "17", "mod_revision": "17", "version": 1}], "count": 1, "revision": "20", "index": 31})),
        (status = 410, description = "`compacted`: the revision, or that of the cursor, can no longer be read.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let parsed = ListParams::of(context.head.uri.query())?;
    match parsed.count_only {
        true => context.costs_a_find()?,
        false => context.costs_page(parsed.query.limit)?,
    }
    let wanted = requirement::on_range(Permission::Read, &parsed.query.start, parsed.query.end.as_deref());
    context.caller().admit_read(parsed.consistency, context.deadline, &wanted).await?;
    drop(wanted);
    if parsed.count_only { count(&context, parsed.query).await } else { page(&context, parsed).await }
}

struct ListParams {
    query: ListQuery,
    shown: ValuesShown,
    part: Option<Part>,
    consistency: Consistency,
    count_only: bool,
}

impl ListParams {
    fn of(text: Option<&str>) -> Result<Self, Failure> {
        let mut query = Query::parse(text);
        let range = range(&mut query);
        let limit = query.page_limit(limits::LIST_ENTRIES_DEFAULT);
        let keys_only = query.flag("keys_only");
        let sizes = query.flag("sizes");
        let count_only = query.flag("count_only");
        if count_only && (range.from_cursor || keys_only || sizes || range.part.is_some()) {
            query.faults.add("query:count_only", "counts a whole range; leave out cursor, keys_only, sizes and part");
        }
        let consistency = consistency::consistency(&mut query);
        query.finish()?;
        let query = ListQuery {
            start: range.start,
            end: range.end,
            revision: range.revision,
            limit,
            bytes_max: limits::LIST_BYTES_MAX,
            keys_only: keys_only && !sizes,
            reverse: range.reverse,
        };
        let shown = ValuesShown { values: !keys_only, sizes };
        Ok(Self { query, shown, part: range.part, consistency, count_only })
    }
}

#[derive(Default)]
struct Range {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    revision: Option<Revision>,
    reverse: bool,
    part: Option<Part>,
    from_cursor: bool,
}

/// The range from a cursor, a prefix, or start and end.
fn range(query: &mut Query<'_>) -> Range {
    let cursor = query.text("cursor");
    let GivenRange { prefix, start, end } = GivenRange::take(query);
    let revision = query.number("revision");
    let reverse = query.flag("reverse");
    let part = Part::read(query);
    if let Some(cursor) = cursor {
        let is_range = prefix.is_some() || start.is_some() || end.is_some();
        if is_range || revision.is_some() || reverse || part.is_some() {
            query.faults.add("query:cursor", "stands for range, order, part and revision; leave those out");
            return Range::default();
        }
        return resume(&cursor, query);
    }
    let Some(prefix) = prefix else {
        return Range { start: start.unwrap_or_default(), end, revision, reverse, part, from_cursor: false };
    };
    if start.is_some() || end.is_some() {
        query.faults.add("query:prefix", "cannot be combined with start or end");
    }
    Range { end: after_prefix(&prefix), start: prefix, revision, reverse, part, from_cursor: false }
}

fn resume(text: &str, query: &mut Query<'_>) -> Range {
    let Some(cursor) = Cursor::decode(text) else {
        query
            .faults
            .add("query:cursor", "not a cursor of this API; give back the one of the page before, or start anew");
        return Range::default();
    };
    let Cursor { start, end, revision, reverse, part } = cursor;
    Range { start, end, revision: Some(revision), reverse, part, from_cursor: true }
}

async fn page(context: &RequestContext, params: ListParams) -> Outcome {
    let asked = params.query.revision.unwrap_or(0);
    let rendered = scan(context, move |backend| {
        Ok(match backend.list(&params.query)? {
            ListRead::Page(page) => Ok((render_page(&params, &page), page.at)),
            ListRead::Compacted(at) => Err(Failure::compacted(asked, at)),
            ListRead::Future(at) => Err(Failure::future("query:revision", asked, at)),
        })
    });
    let (bytes, at) = rendered.await??;
    Ok(answer(bytes, at))
}

fn render_page(params: &ListParams, page: &ListPage) -> Vec<u8> {
    let cursor = if page.more { next(&params.query, params.part, page) } else { None };
    let is_shown = |key: &Key| params.part.is_none_or(|part| part.has(key.as_bytes()));
    let entries: Vec<_> = page.entries.iter().filter(|(key, _)| is_shown(key)).collect();
    let count = entries.len() as u64;
    render::page(entries.into_iter(), params.shown, count, cursor.as_deref(), page.at)
}

/// The cursor to what comes after this page.
fn next(query: &ListQuery, part: Option<Part>, page: &ListPage) -> Option<String> {
    let (last, _) = page.entries.last()?;
    let last = last.as_bytes();
    let (start, end) = if query.reverse {
        (query.start.clone(), Some(last.to_vec()))
    } else {
        // The smallest key after `last`.
        ([last, b"\0"].concat(), query.end.clone())
    };
    Some(Cursor { start, end, revision: page.at.revision, reverse: query.reverse, part }.encode())
}

async fn count(context: &RequestContext, query: ListQuery) -> Outcome {
    if let Some(revision) = query.revision {
        let at = context.api.node.position();
        if revision < at.oldest_revision {
            return Err(Failure::compacted(revision, at));
        }
        if revision > at.revision {
            return Err(Failure::future("query:revision", revision, at));
        }
    }
    let (at, count) = scan(context, move |backend| backend.count(&query)).await?;
    let none = ValuesShown { values: false, sizes: false };
    Ok(answer(render::page(std::iter::empty(), none, count, None, at), at))
}

/// A page that was evaluated there.
pub fn answer(bytes: Vec<u8>, at: ReadPosition) -> Answer {
    let mut response = ok(headers::JSON, Bytes::from(bytes));
    response.headers_mut().insert(headers::REVISION, at.revision.into());
    response
}
