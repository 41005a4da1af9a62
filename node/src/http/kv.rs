//! `/v1/kv/{key}`: one entry, read and written.
//!
//! Owns the query parameters and body rules of these routes. Conditions come from `headers`, writes go through `write`.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use hyper::body::Incoming;
use quorate_client::api::{EntryView, Problem, WriteAnswer};
use quorate_store::limits::{TTL_MS_MAX, VALUE_BYTES_MAX};
use quorate_store::state::{KeyRead, PastRead};
use quorate_store::types::{Change, ContentKind, Entry, Expect, Expiry, Key, Revision, Value, WriteOp};

use super::ask::Ask;
use super::error::{Effect, Failure};
use super::extract::Query;
use super::headers::{BodyKind, Condition, Known, body_kind};
use super::json::JsonFault;
use super::key::{self, NamedKey};
use super::openapi::{Common, Conditional};
use super::{Backend, Outcome, body, convert, headers, json, ok, render, write};
use crate::app::Consistency;
use crate::limits;

/// Reads one entry.
///
/// The answer is an envelope of the value and what is known of it. With `?raw` or `Accept: application/octet-stream` it is
/// the bare value, and the rest is in headers. `HEAD` answers with the same headers.
#[utoipa::path(get, path = "/v1/kv/{key}", tag = "entries", operation_id = "get",
    params(
        ("key" = String, Path, description = "The key, percent-encoded; slashes may stand as they are.", example = "orders/o42"),
        ("raw" = Option<bool>, Query, description = "The bare value instead of the envelope."),
        ("consistency" = Option<String>, Query, description = "`linearizable` (default), or `local`: whatever this node has, with its age in `Quorate-Staleness-Ms`.", example = "linearizable"),
        ("min_revision" = Option<u64>, Query, description = "Wait until this node has this revision, and read locally."),
        ("revision" = Option<u64>, Query, description = "The entry as it was at this revision."),
        ("wait_ms" = Option<u64>, Query, description = "With `if_none_match`: wait this many milliseconds, at most 60000, for a change.", example = 30000),
        ("if_none_match" = Option<String>, Query, description = "Same as the header; `0` stands for `there was no entry`.", example = "17"),
        ("If-None-Match" = Option<String>, Header, description = "304 if the entry still has this cas (quoted), or, with `*`, if there is one.", example = "\"17\""),
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds."),
    ),
    responses(
        (status = 200, description = "The entry.", body = EntryView, example = json!({"key": "orders/o42", "value": {"status": "new"}, "content_type": "json", "cas": "17", "create_revision": 17, "mod_revision": 17, "version": 1, "revision": 20, "index": 31})),
        (status = 304, description = "The entry is as the caller knows it."),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        (status = 410, description = "`compacted`: the revision can no longer be read.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get<B: Backend>(ask: &mut Ask<'_, B>, rest: &str) -> Outcome {
    let key = key::from_path(rest)?;
    let wish = ReadWish::of(ask)?;
    ask.api
        .backend
        .read_barrier(wish.consistency, ask.deadline)
        .await
        .map_err(|error| Failure::from_app(error, Effect::Read))?;
    let read = match wish.revision {
        Some(revision) => read_past(ask, &key.key, revision)?,
        None => read_now(ask, &key.key, &wish).await?,
    };
    answer_read(ask, &key.text, read, &wish)
}

/// Creates or overwrites one entry.
///
/// `If-None-Match: *` creates only, `If-Match: *` overwrites only, `If-Match: "cas"` overwrites that version only.
/// `application/json` is checked and kept as text; `application/octet-stream` is kept as it is. A body that `curl -d` sends as
/// `application/x-www-form-urlencoded` is taken if it is JSON.
#[utoipa::path(put, path = "/v1/kv/{key}", tag = "entries", operation_id = "put",
    params(
        ("key" = String, Path, description = "The key, percent-encoded; slashes may stand as they are.", example = "orders/o42"),
        ("ttl_ms" = Option<u64>, Query, description = "Milliseconds to live; 0 or nothing for ever.", example = 60000),
        ("prev" = Option<bool>, Query, description = "Answer with the entry as it was before."),
        ("dry_run" = Option<bool>, Query, description = "Say what would happen, write nothing."),
        ("If-Match" = Option<String>, Header, description = "`*`, or a cas in quotes.", example = "\"17\""),
        ("If-None-Match" = Option<String>, Header, description = "Only `*`: the key must not exist.", example = "*"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes retries safe; 1 to 128 printable ASCII characters.", example = "order-42-create"),
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds."),
    ),
    request_body(content((Object = "application/json", example = json!({"status": "new"})), (Vec<u8> = "application/octet-stream"))),
    responses(
        (status = 200, description = "Written, durable on a majority.", body = WriteAnswer, example = json!({"key": "orders/o42", "revision": 17, "index": 28, "cas": "17", "create_revision": 17, "version": 1})),
        (status = 404, description = "`not_found`: `If-Match` on a key that does not exist.", body = Problem, content_type = "application/problem+json"),
        Conditional, Common,
    ))]
pub async fn put<B: Backend>(ask: &mut Ask<'_, B>, rest: &str, body: Incoming) -> Outcome {
    let key = key::from_path(rest)?;
    let wish = WriteWish::of(ask, true)?;
    let condition = headers::condition(ask.head)?;
    let kind = body_kind(ask.head, "application/json")?;
    if kind == BodyKind::MergePatch {
        return Err(headers::unsupported("a merge patch is sent with PATCH; PUT takes the whole value"));
    }
    let value = value_of(kind, body::collect(&ask.api.settings, body, VALUE_BYTES_MAX).await?)?;
    let (change, expect) = match condition {
        Condition::None => (Change::Upsert(value), Expect::Any),
        Condition::Absent => (Change::Insert(value), Expect::Any),
        Condition::Present => (Change::Replace(value), Expect::Any),
        Condition::Cas(cas) => (Change::Replace(value), Expect::Cas(cas)),
    };
    submit(ask, key, change, expect, Expiry::Never, wish).await
}

/// Changes parts of one document by a JSON merge patch (RFC 7396).
///
/// The entry must exist and hold a JSON object. Without `ttl_ms` it lives as long as before.
#[utoipa::path(patch, path = "/v1/kv/{key}", tag = "entries", operation_id = "patch",
    params(
        ("key" = String, Path, description = "The key, percent-encoded; slashes may stand as they are.", example = "orders/o42"),
        ("ttl_ms" = Option<u64>, Query, description = "Milliseconds to live from now; 0 for ever.", example = 60000),
        ("prev" = Option<bool>, Query, description = "Answer with the entry as it was before."),
        ("dry_run" = Option<bool>, Query, description = "Say what would happen, write nothing."),
        ("If-Match" = Option<String>, Header, description = "`*`, or a cas in quotes.", example = "\"17\""),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes retries safe; 1 to 128 printable ASCII characters."),
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds."),
    ),
    request_body(content((Object = "application/merge-patch+json", example = json!({"status": "paid"})), (Object = "application/json"))),
    responses(
        (status = 200, description = "Written, durable on a majority.", body = WriteAnswer, example = json!({"key": "orders/o42", "revision": 21, "index": 33, "cas": "21", "create_revision": 17, "version": 2})),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        Conditional, Common,
    ))]
pub async fn patch<B: Backend>(ask: &mut Ask<'_, B>, rest: &str, body: Incoming) -> Outcome {
    let key = key::from_path(rest)?;
    let wish = WriteWish::of(ask, true)?;
    let expect = existing(headers::condition(ask.head)?)?;
    let kind = body_kind(ask.head, "application/merge-patch+json")?;
    if kind == BodyKind::Bytes {
        return Err(headers::unsupported("a patch is JSON; send `Content-Type: application/merge-patch+json`"));
    }
    let text = body::collect(&ask.api.settings, body, VALUE_BYTES_MAX).await?;
    let patch = checked_patch(json_of(kind, &text)?, "")?;
    submit(ask, key, Change::Merge(patch.to_vec()), expect, Expiry::Keep, wish).await
}

/// Removes one entry.
#[utoipa::path(delete, path = "/v1/kv/{key}", tag = "entries", operation_id = "delete",
    params(
        ("key" = String, Path, description = "The key, percent-encoded; slashes may stand as they are.", example = "orders/o42"),
        ("prev" = Option<bool>, Query, description = "Answer with the entry as it was before."),
        ("dry_run" = Option<bool>, Query, description = "Say what would happen, write nothing."),
        ("If-Match" = Option<String>, Header, description = "`*`, or a cas in quotes.", example = "\"17\""),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes retries safe; 1 to 128 printable ASCII characters."),
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds."),
    ),
    responses(
        (status = 200, description = "Removed, durable on a majority.", body = WriteAnswer, example = json!({"key": "orders/o42", "revision": 22, "index": 34})),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        Conditional, Common,
    ))]
pub async fn delete<B: Backend>(ask: &mut Ask<'_, B>, rest: &str) -> Outcome {
    let key = key::from_path(rest)?;
    let wish = WriteWish::of(ask, false)?;
    let expect = existing(headers::condition(ask.head)?)?;
    submit(ask, key, Change::Remove, expect, Expiry::Keep, wish).await
}

async fn submit<B: Backend>(
    ask: &mut Ask<'_, B>,
    key: NamedKey<'_>,
    change: Change,
    expect: Expect,
    default_expiry: Expiry,
    wish: WriteWish,
) -> Outcome {
    let expiry = wish.ttl_ms.map_or(default_expiry, expiry_of);
    let op = WriteOp { key: key.key, expect, change, expiry, return_previous: wish.prev };
    write::submit(ask, &key.text, op, wish.dry_run).await
}

/// 0 stands for ever.
pub fn expiry_of(ttl_ms: u64) -> Expiry {
    if ttl_ms == 0 { Expiry::Never } else { Expiry::After(ttl_ms) }
}

/// The condition of a write that needs an entry anyway.
fn existing(condition: Condition) -> Result<Expect, Failure> {
    match condition {
        Condition::None => Ok(Expect::Any),
        Condition::Present => Ok(Expect::Present),
        Condition::Cas(cas) => Ok(Expect::Cas(cas)),
        Condition::Absent => {
            Err(Failure::invalid("header:If-None-Match", "this needs an existing entry, so `*` could never hold"))
        }
    }
}

/// Query parameters of a write.
struct WriteWish {
    ttl_ms: Option<u64>,
    prev: bool,
    dry_run: bool,
}

impl WriteWish {
    fn of<B: Backend>(ask: &Ask<'_, B>, takes_ttl: bool) -> Result<Self, Failure> {
        let Some(text) = ask.head.uri.query() else { return Ok(Self { ttl_ms: None, prev: false, dry_run: false }) };
        let mut query = Query::parse(Some(text));
        let ttl_ms = if takes_ttl { query.number("ttl_ms") } else { None };
        if ttl_ms.is_some_and(|ttl| ttl > TTL_MS_MAX) {
            query.faults.add("query:ttl_ms", format!("more than the limit of {TTL_MS_MAX} milliseconds, 100 years"));
        }
        let wish = Self { ttl_ms, prev: query.flag("prev"), dry_run: query.flag("dry_run") };
        query.finish(if takes_ttl { "ttl_ms, prev, dry_run" } else { "prev, dry_run" })?;
        Ok(wish)
    }
}

/// The value in a body.
fn value_of(kind: BodyKind, body: Bytes) -> Result<Value, Failure> {
    match kind {
        BodyKind::Bytes => Ok(Value { kind: ContentKind::Bytes, data: body.into() }),
        _ => Ok(Value { kind: ContentKind::Json, data: json_of(kind, &body)?.to_vec() }),
    }
}

/// The checked and trimmed JSON in a body.
pub fn json_of(kind: BodyKind, body: &[u8]) -> Result<&[u8], Failure> {
    match json::check(body) {
        Ok(()) => Ok(json::trim(body)),
        // `curl -d` sends this type unasked. Where the body is JSON there is no doubt what is meant; else the type is wrong.
        Err(_) if kind == BodyKind::Form => Err(headers::unsupported(
            "the body says it is a form (what `curl -d` says unasked) and is not JSON; add `-H 'Content-Type: \
             application/json'` for JSON or `-H 'Content-Type: application/octet-stream'` for bytes",
        )),
        Err(JsonFault { pointer, detail }) => Err(Failure::invalid(pointer, detail)),
    }
}

/// A merge patch must be an object: any other one would mean to overwrite the whole value.
pub fn checked_patch<'a>(text: &'a [u8], pointer: &str) -> Result<&'a [u8], Failure> {
    if json::is_object(text) {
        return Ok(text);
    }
    Err(Failure::invalid(pointer, "a merge patch is a JSON object; PUT overwrites the whole value"))
}

/// What a reader wants.
struct ReadWish {
    raw: bool,
    consistency: Consistency,
    revision: Option<Revision>,
    wait: Option<Duration>,
    known: Option<Known>,
}

impl ReadWish {
    fn of<B: Backend>(ask: &Ask<'_, B>) -> Result<Self, Failure> {
        let raw = headers::wants_bytes(ask.head);
        let known = headers::known(ask.head)?;
        let wish = Self { raw, consistency: Consistency::Linearizable, revision: None, wait: None, known };
        match ask.head.uri.query() {
            None => Ok(wish),
            Some(text) => wish.with_query(Query::parse(Some(text))),
        }
    }

    fn with_query(mut self, mut query: Query<'_>) -> Result<Self, Failure> {
        self.raw |= query.flag("raw");
        self.consistency = consistency(&mut query);
        self.revision = query.number("revision");
        self.wait = wait(&mut query);
        if let Some(cas) = query.number("if_none_match") {
            if self.known.is_some_and(|known| known != Known::Cas(cas)) {
                query.faults.add("query:if_none_match", "differs from the header If-None-Match");
            }
            self.known = Some(Known::Cas(cas));
        }
        if self.wait.is_some() && self.known.is_none() {
            let why = "needs if_none_match: the cas that you have, or 0 if you found no entry";
            query.faults.add("query:wait_ms", why);
        }
        if self.wait.is_some() && self.revision.is_some() {
            query.faults.add("query:revision", "the past does not change; leave out revision or wait_ms");
        }
        query.finish("raw, consistency, min_revision, revision, wait_ms, if_none_match")?;
        Ok(self)
    }
}

/// `consistency` and `min_revision`; used by listings too.
pub fn consistency(query: &mut Query<'_>) -> Consistency {
    let wanted = query.text("consistency");
    let min_revision = query.number("min_revision");
    match (wanted.as_deref(), min_revision) {
        (None, None) => Consistency::Linearizable,
        (None | Some("local"), Some(revision)) => Consistency::AtLeast(revision),
        (Some("linearizable"), None) => Consistency::Linearizable,
        (Some("local"), None) => Consistency::Local,
        (Some("linearizable"), Some(_)) => {
            query.faults.add("query:min_revision", "a linearizable read needs none; leave out one of the two");
            Consistency::Linearizable
        }
        (Some(_), _) => {
            query.faults.add("query:consistency", "neither `linearizable` nor `local`");
            Consistency::Linearizable
        }
    }
}

fn wait(query: &mut Query<'_>) -> Option<Duration> {
    let millis = query.number("wait_ms")?;
    if millis > limits::WAIT_MS_MAX {
        query.faults.add("query:wait_ms", format!("more than the limit of {}", limits::WAIT_MS_MAX));
    }
    Some(Duration::from_millis(millis))
}

fn read_past<B: Backend>(ask: &Ask<'_, B>, key: &Key, revision: Revision) -> Result<KeyRead, Failure> {
    match ask.api.backend.get_at(key, revision).map_err(|fault| Failure::from_fault(&fault))? {
        PastRead::Found(read) => Ok(read),
        PastRead::Compacted(at) => Err(Failure::compacted(revision, at)),
        PastRead::Future(at) => Err(Failure::future(revision, at)),
    }
}

/// Reads, and with `wait_ms` reads again until there is something new.
///
/// The barrier was passed before the first read; later reads see at least as much, so they need no barrier of their own.
async fn read_now<B: Backend>(ask: &Ask<'_, B>, key: &Key, wish: &ReadWish) -> Result<KeyRead, Failure> {
    let backend = &ask.api.backend;
    let mut read = backend.get(key).map_err(|fault| Failure::from_fault(&fault))?;
    let Some(wait) = wish.wait else { return Ok(read) };
    let until = Instant::now() + wait;
    while is_known(wish.known, read.entry.as_ref()) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let seen = read.entry.as_ref().map_or(read.at.revision, |entry| entry.meta.mod_revision);
        backend.wait_key_change(key, seen, left).await;
        read = backend.get(key).map_err(|fault| Failure::from_fault(&fault))?;
    }
    Ok(read)
}

/// Whether the caller knows this state already.
fn is_known(known: Option<Known>, entry: Option<&Entry>) -> bool {
    match (known, entry) {
        (Some(Known::Any), Some(_)) | (Some(Known::Cas(0)), None) => true,
        (Some(Known::Cas(cas)), Some(entry)) => entry.meta.cas == cas,
        _ => false,
    }
}

fn answer_read<B: Backend>(ask: &Ask<'_, B>, key: &str, read: KeyRead, wish: &ReadWish) -> Outcome {
    let KeyRead { at, entry } = read;
    let mut response = match entry {
        _ if is_known(wish.known, entry.as_ref()) => {
            let mut response = ok(headers::JSON, Bytes::new());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response.headers_mut().remove(header::CONTENT_TYPE);
            if let Some(entry) = entry {
                response.headers_mut().insert(header::ETAG, headers::etag_value(entry.meta.cas));
            }
            response
        }
        None => return Err(Failure::no_entry(key, at)),
        Some(entry) if wish.raw => raw(entry, at.clock),
        Some(entry) => {
            let mut response = ok(headers::JSON, render::read(key, &entry, at));
            response.headers_mut().insert(header::ETAG, headers::etag_value(entry.meta.cas));
            response
        }
    };
    let fields = response.headers_mut();
    fields.insert(headers::REVISION, at.revision.into());
    if wish.raw {
        fields.insert(headers::INDEX, at.index.into());
    }
    if wish.consistency == Consistency::Local {
        let age = ask.api.backend.staleness_ms().map_or(HeaderValue::from_static("unknown"), HeaderValue::from);
        fields.insert(headers::STALENESS_MS, age);
    }
    Ok(response)
}

/// The bare value, and what is known of it in headers.
fn raw(entry: Entry, clock: u64) -> super::Answer {
    let content_type = match entry.value.kind {
        ContentKind::Json => headers::JSON,
        ContentKind::Bytes => headers::BYTES,
    };
    let mut response = ok(content_type, entry.value.data);
    let fields = response.headers_mut();
    fields.insert(header::ETAG, headers::etag_value(entry.meta.cas));
    fields.insert(headers::CREATE_REVISION, entry.meta.create_revision.into());
    fields.insert(headers::MOD_REVISION, entry.meta.mod_revision.into());
    fields.insert(headers::VERSION, entry.meta.version.into());
    if let Some(left) = convert::ttl_ms(entry.meta.expires_at, clock) {
        fields.insert(headers::TTL_MS, left.into());
    }
    // A value is whatever its writer made it; no browser should guess at it.
    fields.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
