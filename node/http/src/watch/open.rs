//! `GET /v1/watch`: the changes of some keys as they happen.
//!
//! Owns how a watch begins: where it goes on from, and that this can be.

use quorate_api::{ErrorCode, Problem, WatchEvent};
use quorate_machine::query::{FeedPosition, ReadPosition, WatchRange};
use quorate_node_core::backend::SharedNode;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{Permission, RequiredPermission, Requirement, Visit};
use quorate_node_core::gateway::caller::Watching;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::freshness;
use utoipa_axum::routes;

use crate::context::{Context, RequestContext};
use crate::described::Common;
use crate::headers;
use crate::input::accept;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};
use crate::watch::options::{LAST_EVENT_ID, Start, WatchOptions};
use crate::watch::read::Initial;
use crate::watch::stream::WatchBody;
use crate::watch::{event, sse};

pub fn routes() -> Routes {
    Routes::new().add(Policy::data(RequestClass::Point), routes!(get))
}

/// Watches keys: a stream of server-sent events.
///
/// `put` and `delete` are changes, each once and in the order of revisions; `data` is one line of JSON, see `WatchEvent`. With `initial`
/// all entries come first, then `synced`. Where nothing was sent for a while, `progress` says how far the watch is. `id` stands where
/// nothing of a revision is missing, so who goes on with `Last-Event-ID` never sees a part of a transaction or an event twice. A
/// watch that its node ends says why with `end`, see `WatchEnd`. Locks of documents are no changes.
///
/// A browser's `EventSource`, for which any status but 200 is the end for ever, is told apart by `Accept: text/event-stream` and nothing
/// else. By `end` in a stream that has ended it is told what passes (429, 500, 503, 504), with `retry`. Where nothing can go on after
/// `Last-Event-ID`, the stream begins with `reset`, see `WatchReset`: then the entries with `initial`, else the oldest changes that can be
/// read. With `initial` it begins with `reset` whenever the entries follow.
#[utoipa::path(get, path = "/v1/watch", tag = "entries", operation_id = "watch",
    params(
        ("key" = Option<String>, Query, description = "Only this key. Give one of `key`, `prefix` and `start`."),
        ("prefix" = Option<String>, Query, description = "Only keys that begin with this; with an empty one all.", example = "orders/"),
        ("start" = Option<String>, Query, description = "First key, inclusive."),
        ("end" = Option<String>, Query, description = "End key, exclusive; with `start`."),
        ("part" = Option<u64>, Query, description = "Only the keys of this part, from 0; with `of`. Workers that share a prefix watch one part each.", example = 0),
        ("of" = Option<u64>, Query, description = "Of so many parts, 1 to 1024; a key is in the part that the XXH3-64 of its bytes says, modulo their number.", example = 4),
        ("from" = Option<u64>, Query, description = "First revision wanted; without it only what changes from now on."),
        ("initial" = Option<bool>, Query, description = "First all entries as they are, then what changes; not with `from`."),
        ("where" = Option<String>, Query, description = "Only changes of entries of which this holds, after the change, or before it where they are gone: criteria as in a find, as JSON."),
        ("events" = Option<String>, Query, description = "Only these: `put`, `delete`, or both, separated by a comma.", example = "put"),
        ("keys_only" = Option<bool>, Query, description = "Leave the values out."),
        ("prev" = Option<bool>, Query, description = "With the entry as it was before."),
        ("heartbeat_ms" = Option<u64>, Query, description = "After how long of silence to say how far the watch is: 500 to 60000; 5000 without it.", example = 5000),
        ("consistency" = Option<String>, Query, description = "How fresh the node has to be at the start: `linearizable` (default) or `local`."),
        ("min_revision" = Option<u64>, Query, description = "Wait until this node has this revision, and begin there."),
        ("Last-Event-ID" = Option<String>, Header, description = "Go on after this: the last `id` seen. Stands for `from` and `initial`.", example = "42.0"),
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline for the begin of the stream, in milliseconds."),
    ),
    responses(
        (status = 200, description = "The stream; `data` of `put` and `delete` is shown.", body = WatchEvent, content_type = "text/event-stream"),
        (status = 410, description = "`compacted`: what was asked for can no longer be read; begin anew with `initial`.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let WatchOptions { range, start, is_initial, mut view, heartbeat, consistency } = WatchOptions::of(&context.head)?;
    let wants_no_status = accept::takes_events_alone(&context.head);
    // A reader that says where it was is told that this is gone; a first request that asks for it is at fault.
    let may_lose = wants_no_status && matches!(start, Start::After(_, LAST_EVENT_ID));
    let backend = &context.api.node;
    if !context.has_room_for_watch() {
        return Err(Failure::too_many("this node has as many watches as it may"));
    }
    let wanted = requirements(&range);
    match context.caller().admit_read(consistency, context.deadline, &wanted).await {
        // `min_revision` is of another epoch; the URL is that of the first try.
        Err(failure) if may_lose && failure.code() == ErrorCode::Compacted => context.admit_read(&wanted).await?,
        admitted => admitted?,
    }
    if view.has_criteria()
        && let Some(collection) =
            backend.collection_over(range.common_prefix()).map_err(|fault| Failure::from_fault(&fault))?
    {
        view.understand_by(collection.rules);
    }
    let ((at, mut after), lost) = match position(&context, start).await {
        Ok(found) => (found, None),
        Err(failure) if may_lose => (begin_anew(backend, &failure).ok_or_else(|| failure.clone())?, Some(failure)),
        Err(failure) => return Err(failure),
    };
    let begins_with_entries = start == Start::Initial || (is_initial && lost.is_some());
    if begins_with_entries {
        after = FeedPosition::after(at.revision);
    }
    let mut first = Vec::new();
    if wants_no_status && (begins_with_entries || lost.is_some()) {
        sse::reset(&mut first, after.revision, (!begins_with_entries).then_some(after.revision), lost.as_ref());
    } else if wants_no_status && start == Start::Now {
        // A browser goes on after an id, and has none where the stream breaks before its first event.
        event::progress(&mut first, "progress", after.revision);
    }
    let watching = Watching::of(&context.caller(), wanted);
    let initial = begins_with_entries.then(|| Initial::of(&range, at.revision, backend.wall_now()));
    let watch = backend.feed().watch(range, after);
    let body = WatchBody::new(&context, watch, view, initial);
    let mut response = sse::open(&context, body, heartbeat, watching, &first)?;
    response.headers_mut().insert(headers::REVISION, at.revision.into());
    Ok(response)
}

/// That all changes of these keys may be read.
fn requirements(range: &WatchRange) -> impl Fn(&mut Visit<'_>) + Send + Sync + 'static {
    let range = range.clone();
    move |visit| match &range {
        WatchRange::Key(key) => {
            visit(Requirement::Permission(RequiredPermission::Name(Permission::Read, key.as_bytes())))
        }
        WatchRange::Prefix(prefix) => {
            visit(Requirement::Permission(RequiredPermission::Prefix(Permission::Read, prefix)))
        }
        WatchRange::Span { start, end } => {
            visit(Requirement::Permission(RequiredPermission::Range(Permission::Read, start, end.as_deref())))
        }
    }
}

/// Where the node is, and after what the watch begins.
async fn position(context: &RequestContext, start: Start) -> Result<(ReadPosition, FeedPosition), Failure> {
    let backend = &context.api.node;
    let mut at = backend.position();
    let Start::After(position, pointer) = start else { return Ok((at, FeedPosition::after(at.revision))) };
    if position.revision > at.revision {
        // This node may only be behind the one that the caller has seen it on.
        freshness::refresh(backend, context.deadline).await?;
        at = backend.position();
    }
    if position.revision > at.revision {
        return Err(Failure::future(pointer, position.revision, at));
    }
    if !position.is_covered_from(at.oldest_revision) {
        return Err(Failure::compacted(position.revision, at));
    }
    Ok((at, position))
}

/// Where a watch goes on whose position can no longer be read, or has not happened in this cluster: there as little is missing as can be.
/// `None` where something else failed.
fn begin_anew(backend: &SharedNode, failure: &Failure) -> Option<(ReadPosition, FeedPosition)> {
    let at = backend.position();
    let may_begin = matches!(failure.code(), ErrorCode::Compacted | ErrorCode::InvalidArgument);
    may_begin.then(|| (at, FeedPosition::after(at.oldest_revision)))
}
