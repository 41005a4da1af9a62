//! `/v1/kv/{key}`: one entry, read and written.
//!
//! Owns the body rules and the query parameters of writes. Reads are `read`'s, conditions come from `conditions`, writes go
//! through `write`.

use axum::body::Body;
use bytes::Bytes;
use quorate_api::{Problem, WriteAnswer};
use quorate_machine::document::Criteria;
use quorate_machine::limits::{TTL_MS_MAX, VALUE_BYTES_MAX};
use quorate_machine::types::{Change, ContentKind, Expect, Expiry, Guard, Key, SessionId, Value, WriteOp};
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::failure::Failure;
use quorate_threads::background;
use utoipa_axum::routes;

use crate::context::{Context, RequestContext};
use crate::coordinate;
use crate::described::{Common, Conditional, KeyPath, OpAnswer, ReadAnswer, Write};
use crate::headers::{self, BodyKind, body_kind};
use crate::input::conditions::Precondition;
use crate::input::extract::{Faults, Query};
use crate::input::{body, criteria, json_body, key};
use crate::keys::prefer::{self, Preferred};
use crate::keys::write::Manner;
use crate::keys::{read, write};
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const POINT: Policy = Policy::data(RequestClass::Point);
    Routes::new().all(POINT, [routes!(get), routes!(put), routes!(patch), routes!(delete)])
}

/// Reads one entry.
///
/// The answer is an envelope of the value and what is known of it. With `?raw` or `Accept: application/octet-stream` it is
/// the bare value, and the rest is in headers. `HEAD` answers with the same headers.
#[utoipa::path(get, path = "/v1/kv/{key}", tag = "entries", operation_id = "get",
    params(
        KeyPath,
        ("raw" = Option<bool>, Query, description = "The bare value instead of the envelope."),
        ("consistency" = Option<String>, Query, description = "`linearizable` (default), or `local`: whatever this node has, with its age in `Quorate-Staleness-Ms`.", example = "linearizable"),
        ("min_revision" = Option<u64>, Query, description = "Wait until this node has this revision, and read locally."),
        ("revision" = Option<u64>, Query, description = "The entry as it was at this revision."),
        ("wait_ms" = Option<u64>, Query, description = "With `if_none_match`: wait this many milliseconds, at most 60000, for a change.", example = 30000),
        ("if_none_match" = Option<String>, Query, description = "Same as the header; `0` stands for `there was no entry`.", example = "17"),
        ("If-None-Match" = Option<String>, Header, description = "304 if the entry has one of these tags (each a cas in quotes, at most 16), or, with `*`, if there is one. `W/` is passed over; a tag that is no cas matches nothing.", example = "\"17\", \"12\""),
        ("If-Match" = Option<String>, Header, description = "412 if the entry has none of these tags. Judged before `If-None-Match`. A weak tag, and one that is no cas, matches nothing.", example = "\"17\""),
    ),
    responses(
        (status = 200, description = "The entry, or its value.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run.")), content(
            (ReadAnswer = "application/json", example = json!({"key": "orders/o42", "value": {"status": "new"}, "content_type": "json", "cas": "17", "create_revision": "17", "mod_revision": "17", "version": 1, "revision": "20", "index": 31})),
            (Vec<u8> = "application/octet-stream"),
        )),
        (status = 304, description = "The entry is as the caller knows it; `ETag` says which of the versions known.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run."))),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        (status = 410, description = "`compacted`: the revision can no longer be read.", body = Problem, content_type = "application/problem+json"),
        (status = 412, description = "`cas_mismatch`: the entry has none of the tags in `If-Match`; `current` is the entry as it is. A key without an entry is 404, whatever the conditions.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let key = key::from_path(context.name())?;
    read::read(&context, key).await
}

/// Creates or overwrites one entry.
///
/// `If-None-Match: *` creates only, `If-Match: *` overwrites only, `If-Match: "cas"` overwrites that version only, and
/// `If-Match: "cas", "cas"` one of those. `If-None-Match: "cas"` creates, or overwrites any version but those named.
/// `application/json` is checked and kept as text; `application/octet-stream` is kept as it is. A body that `curl -d` sends as
/// `application/x-www-form-urlencoded` is taken if it is JSON.
#[utoipa::path(put, path = "/v1/kv/{key}", tag = "entries", operation_id = "put",
    params(
        KeyPath,
        ("ttl_ms" = Option<u64>, Query, description = "Milliseconds to live; 0 or nothing for ever.", example = 60000),
        ("ttl" = Option<String>, Query, description = "`keep`: the entry expires when it would have without this write. Not beside `ttl_ms`.", example = "keep"),
        ("session" = Option<String>, Query, description = "The id of the session that the entry goes with: it is removed when that ends. Without it the entry goes with none.", example = "42"),
        Write,
        ("If-Match" = Option<String>, Header, description = "`*`, or a list of at most 16 tags, each a cas in quotes: the entry must have one of them, else 412. A weak tag, and one that is no cas, matches nothing.", example = "\"17\""),
        ("If-None-Match" = Option<String>, Header, description = "`*`: the key must not exist, else 412 `already_exists`. A list of tags: the entry must have none of them, else 412 `condition_not_met`. With `If-Match` both have to hold.", example = "*"),
        ("Prefer" = Option<String>, Header, description = "`return=minimal`: 204 without a body. `return=representation`: the entry as the write left it, an `EntryView`. Granted where `Preference-Applied` says so; passed over with `prev` or `dry_run`, and where this node cannot show the entry in time.", example = "return=representation"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes retries safe; 1 to 128 printable ASCII characters.", example = "order-42-create"),
    ),
    request_body(content((serde_json::Value = "application/json", example = json!({"status": "new"})), (Vec<u8> = "application/octet-stream"))),
    responses(
        (status = 200, description = "Written, durable on a majority. With `Prefer: return=representation` an `EntryView`.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run.")), body = OpAnswer, example = json!({"key": "orders/o42", "revision": "17", "index": 28, "cas": "17", "create_revision": "17", "version": 1})),
        (status = 201, description = "The same, and there was no entry before: `Location` is its path. With `Prefer: return=minimal` without a body.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run.")), body = OpAnswer, example = json!({"key": "orders/o42", "revision": "17", "index": 28, "cas": "17", "create_revision": "17", "version": 1})),
        (status = 204, description = "The same with `Prefer: return=minimal`: `ETag`, `Quorate-Revision` and `Quorate-Index` say the rest, and `Quorate-Replayed: true` that it is the kept answer of an earlier try.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run."))),
        Conditional, Common,
    ))]
pub async fn put(context: Context, body: Body) -> Outcome {
    let key = key::from_path(context.name())?;
    let parsed = WriteParams::of(&context, true)?;
    let precondition = Precondition::of(&context.head)?;
    let kind = body_kind(&context.head, "application/json")?;
    if matches!(kind, BodyKind::MergePatch | BodyKind::JsonPatch) {
        return Err(headers::unsupported("a patch is sent with PATCH; PUT takes the whole value"));
    }
    let value = value_of(kind, body::collect(&context, body, VALUE_BYTES_MAX).await?)?;
    submit(&context, key, Change::Put(value), &precondition, Expiry::Usual, parsed).await
}

/// Changes parts of one document by a merge patch (RFC 7396) or a JSON Patch (RFC 6902).
///
/// The content type says which; `application/json` is taken as a merge patch. The entry must exist and hold a JSON object.
/// `POST /v1/ops` also takes update operators as `patch`. Without `ttl_ms` it lives as long as before.
#[utoipa::path(patch, path = "/v1/kv/{key}", tag = "entries", operation_id = "patch",
    params(
        KeyPath,
        ("ttl_ms" = Option<u64>, Query, description = "Milliseconds to live from now; 0 for ever.", example = 60000),
        ("session" = Option<String>, Query, description = "The id of the session that the entry goes with from now on: it is removed when that ends. Without it that stays as it is.", example = "42"),
        Write,
        ("If-Match" = Option<String>, Header, description = "`*`, or a list of at most 16 tags, each a cas in quotes: the entry must have one of them, else 412. A weak tag, and one that is no cas, matches nothing.", example = "\"17\""),
        ("If-None-Match" = Option<String>, Header, description = "`*`: the key must not exist, else 412 `already_exists`. A list of tags: the entry must have none of them, else 412 `condition_not_met`. With `If-Match` both have to hold.", example = "\"17\""),
        ("Prefer" = Option<String>, Header, description = "`return=minimal`: 204 without a body. `return=representation`: the entry as the write left it, an `EntryView`. Granted where `Preference-Applied` says so; passed over with `prev` or `dry_run`, and where this node cannot show the entry in time.", example = "return=representation"),
    ),
    request_body(content(
        (Object = "application/merge-patch+json", example = json!({"status": "paid"})),
        (Vec<Object> = "application/json-patch+json", example = json!([{"op": "test", "path": "/status", "value": "new"}, {"op": "replace", "path": "/status", "value": "paid"}])),
        (Object = "application/json"),
    )),
    responses(
        (status = 200, description = "Written, durable on a majority. With `Prefer: return=representation` an `EntryView`.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run.")), body = OpAnswer, example = json!({"key": "orders/o42", "revision": "21", "index": 33, "cas": "21", "create_revision": "17", "version": 2})),
        (status = 204, description = "The same with `Prefer: return=minimal`: `ETag`, `Quorate-Revision` and `Quorate-Index` say the rest, and `Quorate-Replayed: true` that it is the kept answer of an earlier try.", headers(("ETag" = String, description = "The cas in quotes; absent of a locked entry, and after a dry run."))),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        Conditional, Common,
    ))]
pub async fn patch(context: Context, body: Body) -> Outcome {
    let key = key::from_path(context.name())?;
    let parsed = WriteParams::of(&context, true)?;
    let precondition = Precondition::of(&context.head)?;
    let kind = body_kind(&context.head, "application/merge-patch+json")?;
    if kind == BodyKind::Bytes {
        return Err(headers::unsupported("a patch is JSON; send `Content-Type: application/merge-patch+json`"));
    }
    let text = body::collect(&context, body, VALUE_BYTES_MAX).await?;
    let text = json_body::json_of(kind, &text)?;
    let mut faults = Faults::default();
    let patch = background::in_place(text.len(), || match kind {
        BodyKind::JsonPatch => criteria::json_patch(text, "", &mut faults),
        _ => criteria::merge_patch(text, "", &mut faults),
    });
    faults.check()?;
    let patch = patch.ok_or_else(|| Failure::invalid("", "not a patch"))?;
    submit(&context, key, Change::Patch(patch), &precondition, Expiry::Keep, parsed).await
}

/// Removes one entry.
#[utoipa::path(delete, path = "/v1/kv/{key}", tag = "entries", operation_id = "delete",
    params(
        KeyPath,
        Write,
        ("If-Match" = Option<String>, Header, description = "`*`, or a list of at most 16 tags, each a cas in quotes: the entry must have one of them, else 412. A weak tag, and one that is no cas, matches nothing.", example = "\"17\""),
        ("If-None-Match" = Option<String>, Header, description = "`*`: the key must not exist, else 412 `already_exists`. A list of tags: the entry must have none of them, else 412 `condition_not_met`. With `If-Match` both have to hold.", example = "\"17\""),
        ("Prefer" = Option<String>, Header, description = "`return=minimal`: 204 without a body; `Preference-Applied` says that it was granted. Passed over with `prev` or `dry_run`; nothing is left to represent.", example = "return=minimal"),
    ),
    responses(
        (status = 200, description = "Removed, durable on a majority.", body = WriteAnswer, example = json!({"key": "orders/o42", "revision": "22", "index": 34})),
        (status = 204, description = "The same with `Prefer: return=minimal`: `ETag`, `Quorate-Revision` and `Quorate-Index` say the rest, and `Quorate-Replayed: true` that it is the kept answer of an earlier try."),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        Conditional, Common,
    ))]
pub async fn delete(context: Context) -> Outcome {
    let key = key::from_path(context.name())?;
    let parsed = WriteParams::of(&context, false)?;
    let precondition = Precondition::of(&context.head)?;
    submit(&context, key, Change::Remove, &precondition, Expiry::Keep, parsed).await
}

async fn submit(
    context: &RequestContext,
    key: Key,
    change: Change,
    precondition: &Precondition,
    default_expiry: Expiry,
    parsed: WriteParams,
) -> Outcome {
    let expiry = parsed.expiry.unwrap_or(default_expiry);
    let preferred = Preferred::of(&context.head, &key, parsed.prev || parsed.dry_run);
    let (condition, return_previous) = (parsed.condition, parsed.prev);
    let (session, guard) = (parsed.session, parsed.guard);
    if matches!(change, Change::Put(_)) && precondition.expect == Expect::ABSENT && !condition.is_empty() {
        let why = "`If-None-Match: *` asks for no entry, of which no condition can hold; leave out one of the two";
        return Err(Failure::invalid("query:if", why));
    }
    let expect = precondition.expect.clone();
    let op = WriteOp { key: key.clone(), expect, condition, change, expiry, return_previous, session, guard };
    let manner = Manner { dry_run: parsed.dry_run, shows_entry: false };
    match parsed.dry_run {
        true => context.only_looks(),
        false => {
            let shows = return_previous || matches!(preferred, Some(Preferred::Representation(_)));
            context.take_values_room(usize::from(shows), &|visit| op.requirements(visit)).await?;
        }
    }
    let done = write::perform(&context.caller(), &key, op, manner, &context.request_id(), context.deadline).await;
    let done = done.map_err(|failure| precondition.failed(failure))?;
    Ok(prefer::answer(context, done, preferred).await)
}

/// What a query says of it.
fn expiry(query: &mut Query) -> Option<Expiry> {
    let ttl_ms = query.number("ttl_ms");
    if ttl_ms.is_some_and(|ttl| ttl > TTL_MS_MAX) {
        query.faults.add("query:ttl_ms", format!("more than the limit of {TTL_MS_MAX} milliseconds, 100 years"));
    }
    let rule = query.text("ttl");
    match rule.as_deref() {
        None => ttl_ms.map(expiry_of),
        Some("keep") if ttl_ms.is_none() => Some(Expiry::Keep),
        Some("keep") => {
            query.faults.add("query:ttl", "given beside ttl_ms; choose one");
            None
        }
        Some(_) => {
            query.faults.add("query:ttl", "`keep` is the only one; a time is given as ttl_ms");
            None
        }
    }
}

/// 0 stands for ever.
pub fn expiry_of(ttl_ms: u64) -> Expiry {
    if ttl_ms == 0 { Expiry::Never } else { Expiry::After(ttl_ms) }
}

/// Query parameters of a write.
#[derive(Default)]
struct WriteParams {
    expiry: Option<Expiry>,
    prev: bool,
    dry_run: bool,
    session: Option<SessionId>,
    guard: Option<Box<Guard>>,
    condition: Criteria,
}

impl WriteParams {
    fn of(context: &RequestContext, leaves_entry: bool) -> Result<Self, Failure> {
        let Some(text) = context.head.uri.query() else { return Ok(Self::default()) };
        let mut query = Query::parse(Some(text));
        let expiry = if leaves_entry { expiry(&mut query) } else { None };
        let (session, guard) = coordinate::of_query(&mut query, leaves_entry);
        let conditions = query.conditions();
        let condition = criteria::typed(&conditions, "query:if", &mut query.faults).unwrap_or_default();
        let (prev, dry_run) = (query.flag("prev"), query.flag("dry_run"));
        let parsed = Self { expiry, prev, dry_run, session, guard, condition };
        query.finish()?;
        Ok(parsed)
    }
}

/// The value in a body.
fn value_of(kind: BodyKind, body: Bytes) -> Result<Value, Failure> {
    match kind {
        BodyKind::Bytes => Ok(Value { kind: ContentKind::Bytes, data: body.into() }),
        _ => Ok(Value { kind: ContentKind::Json, data: json_body::json_of(kind, &body)?.to_vec() }),
    }
}
