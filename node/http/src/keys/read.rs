//! Reading one entry: how fresh, how old, how long to wait, and in which form to show it.
//!
//! Owns the query parameters of reads but those of freshness, which are in `input::consistency`. Used by `kv` and by operations in JSON.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use quorate_machine::query::{KeyRead, PastRead};
use quorate_machine::types::{ContentKind, Entry, Key, Revision};
use quorate_node_core::backend::{Consistency, SharedNode};
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::caller::Caller;
use quorate_node_core::gateway::entry_view;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::timings::{self, Part};

use crate::context::RequestContext;
use crate::headers;
use crate::input::accept;
use crate::input::conditions::{Conditions, Verdict, Versions};
use crate::input::consistency::{consistency, wait};
use crate::input::extract::Query;
use crate::output::completed::Completed;
use crate::output::response::{Outcome, etag_value, ok};

/// Reads as the request wants it.
pub async fn read(context: &RequestContext, key: Key) -> Outcome {
    let params = ReadParams::of(context)?;
    let (backend, caller) = (&context.api.node, context.caller());
    let wanted = requirement::on_name(Permission::Read, key.as_bytes());
    caller.admit_read(params.consistency, context.deadline, &wanted).await?;
    let read = match params.revision {
        Some(revision) => read_past(backend, &key, revision)?,
        None => read_now(context, &key, &params).await?,
    };
    if params.wait.is_some() {
        // Who waited for long may have lost the right meanwhile.
        caller.check(&wanted)?;
    }
    answer_read(context, &key, read, &params)
}

/// Reads without any requests: what an operation in JSON does.
pub async fn perform(caller: &Caller<'_>, key: &Key, deadline: Instant) -> Result<Completed, Failure> {
    let wanted = requirement::on_name(Permission::Read, key.as_bytes());
    caller.admit_read(Consistency::Linearizable, deadline, &wanted).await?;
    let KeyRead { at, entry } = caller.api.node.get(key).map_err(|fault| Failure::from_fault(&fault))?;
    let entry = entry.ok_or_else(|| Failure::no_entry(key, at))?;
    Ok(Completed::read(key, &entry, at))
}

/// What a reader wants.
#[derive(Default)]
struct ReadParams {
    raw: bool,
    consistency: Consistency,
    revision: Option<Revision>,
    wait: Option<Duration>,
    condition: Conditions,
}

impl ReadParams {
    fn of(context: &RequestContext) -> Result<Self, Failure> {
        let (raw, condition) = (accept::wants_bytes(&context.head), Conditions::of(&context.head)?);
        let params = Self { raw, condition, ..Self::default() };
        match context.head.uri.query() {
            None => Ok(params),
            Some(text) => params.with_query(Query::parse(Some(text))),
        }
    }

    fn with_query(mut self, mut query: Query<'_>) -> Result<Self, Failure> {
        self.raw |= query.flag("raw");
        self.consistency = consistency(&mut query);
        self.revision = query.number("revision");
        self.wait = wait(&mut query);
        if let Some(cas) = query.number("if_none_match") {
            let named = Versions::Of(vec![cas]);
            if self.condition.known.as_ref().is_some_and(|known| *known != named) {
                query.faults.add("query:if_none_match", "differs from the header If-None-Match");
            }
            self.condition.known = Some(named);
        }
        if self.wait.is_some() && self.condition.known.is_none() {
            let why = "needs if_none_match: the cas that you have, or 0 if you found no entry";
            query.faults.add("query:wait_ms", why);
        }
        if self.wait.is_some() && self.revision.is_some() {
            query.faults.add("query:revision", "the past does not change; leave out revision or wait_ms");
        }
        query.finish()?;
        Ok(self)
    }
}

fn read_past(backend: &SharedNode, key: &Key, revision: Revision) -> Result<KeyRead, Failure> {
    match backend.get_at(key, revision).map_err(|fault| Failure::from_fault(&fault))? {
        PastRead::Found(read) => Ok(read),
        PastRead::Compacted(at) => Err(Failure::compacted(revision, at)),
        PastRead::Future(at) => Err(Failure::future("query:revision", revision, at)),
    }
}

/// Reads, and with `wait_ms` reads again until there is something new.
///
/// The barrier was passed before the first read; later reads see at least as much, so they need no barrier of their own.
async fn read_now(context: &RequestContext, key: &Key, params: &ReadParams) -> Result<KeyRead, Failure> {
    let backend = &context.api.node;
    let mut read = backend.get(key).map_err(|fault| Failure::from_fault(&fault))?;
    let Some(wait) = params.wait else { return Ok(read) };
    let Some(_waiting) = context.wait() else {
        return Err(context.api.admission.classes.refusal(RequestClass::Waiting));
    };
    let until = Instant::now() + wait;
    while params.condition.judge(read.entry.as_ref(), read.at.clock) == Verdict::NotModified {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let seen = read.entry.as_ref().map_or(read.at.revision, |entry| entry.meta.mod_revision);
        timings::on(Part::Wait, backend.wait_key_change(key, seen, left)).await;
        read = backend.get(key).map_err(|fault| Failure::from_fault(&fault))?;
    }
    Ok(read)
}

fn answer_read(context: &RequestContext, key: &Key, read: KeyRead, params: &ReadParams) -> Outcome {
    let KeyRead { at, entry } = read;
    let verdict = params.condition.judge(entry.as_ref(), at.clock);
    let mut response = match entry {
        Some(entry) if verdict == Verdict::Failed => {
            return Err(params.condition.failed(Failure::unwanted_version(key, &entry, at)));
        }
        _ if verdict == Verdict::NotModified => {
            let mut response = ok(headers::JSON, Bytes::new());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response.headers_mut().remove(header::CONTENT_TYPE);
            if let Some(cas) = entry.and_then(|entry| entry.meta.cas_shown_at(at.clock)) {
                response.headers_mut().insert(header::ETAG, etag_value(cas));
            }
            response
        }
        None => return Err(Failure::no_entry(key, at)),
        Some(entry) if params.raw => raw(entry, at.clock),
        Some(entry) => Completed::read(key, &entry, at).into_response(),
    };
    let fields = response.headers_mut();
    fields.insert(headers::REVISION, at.revision.into());
    if params.raw {
        fields.insert(headers::INDEX, at.index.into());
    }
    if params.consistency == Consistency::Local {
        let age = context.api.node.staleness_ms().map_or(HeaderValue::from_static("unknown"), HeaderValue::from);
        fields.insert(headers::STALENESS_MS, age);
    }
    Ok(response)
}

/// The bare value, and what is known of it in headers.
fn raw(entry: Entry, clock: u64) -> crate::output::response::Answer {
    let content_type = match entry.value.kind {
        ContentKind::Json => headers::JSON,
        ContentKind::Bytes => headers::BYTES,
    };
    let mut response = ok(content_type, entry.value.data);
    let fields = response.headers_mut();
    if let Some(cas) = entry.meta.cas_shown_at(clock) {
        fields.insert(header::ETAG, etag_value(cas));
    }
    fields.insert(headers::CREATE_REVISION, entry.meta.create_revision.into());
    fields.insert(headers::MOD_REVISION, entry.meta.mod_revision.into());
    fields.insert(headers::VERSION, entry.meta.version.into());
    if let Some(left) = entry_view::ttl_ms(entry.meta.expires_at, clock) {
        fields.insert(headers::TTL_MS, left.into());
    }
    // A value is whatever its writer made it; no browser should guess at it.
    fields.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
