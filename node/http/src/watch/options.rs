//! What somebody wants to watch.
//!
//! Owns the query parameters of `GET /v1/watch` and `Last-Event-ID`, and what they come to: which keys, from where on, which
//! changes, in which form.

use std::time::Duration;

use http::request::Parts;
use quorate_feed::FORMS;
use quorate_machine::document::{Criteria, Json, Steps, Subject, TooDear};
use quorate_machine::query::{FeedPosition, WatchRange};
use quorate_machine::rules::Rules;
use quorate_machine::types::{ClusterMillis, ContentKind, Entry, Key, Revision, WallMillis};
use quorate_node_core::backend::Consistency;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::limits;

use crate::headers;
use crate::input::consistency;
use crate::input::criteria::criteria;
use crate::input::extract::Query;
use crate::input::key::{self, GivenRange};
use crate::input::part::Part;

/// A watch as the request wants it.
#[derive(Debug)]
pub struct WatchOptions {
    /// Whose changes.
    pub range: WatchRange,
    /// From where on.
    pub start: Start,
    /// Whether it begins with the entries, where it does not go on.
    pub is_initial: bool,
    /// Which of them, and how they are shown.
    pub view: WatchView,
    /// When to say something where there is nothing to say.
    pub heartbeat: Duration,
    /// How fresh the node has to be when it begins.
    pub consistency: Consistency,
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the next change.
    Now,
    /// With the entries that there are, and then the next change.
    Initial,
    /// After a place in the feed. The pointer to what asked for it is for faults.
    After(FeedPosition, &'static str),
}

/// Which changes are shown, and how.
#[derive(Debug)]
pub struct WatchView {
    /// New versions are.
    pub puts: bool,
    /// Removals are.
    pub deletes: bool,
    /// Without values.
    pub keys_only: bool,
    /// With the entry before.
    pub prev: bool,
    /// Only of keys of this part.
    part: Option<Part>,
    /// What must hold of an entry.
    criteria: Criteria,
    /// How the collection of the keys understands that.
    rules: Option<Box<Rules>>,
}

impl WatchOptions {
    /// Reads the request.
    pub fn of(head: &Parts) -> Result<Self, Failure> {
        let resume = last_event_id(head)?;
        let mut query = Query::parse(head.uri.query());
        let range = range(&mut query);
        let (start, is_initial) = start(&mut query, resume);
        let view = WatchView::of(&mut query);
        let heartbeat = heartbeat(&mut query);
        let consistency = consistency::consistency(&mut query);
        query.finish()?;
        let range = range.ok_or_else(|| Failure::invalid("query", "gives no keys"))?;
        Ok(Self { range, start, is_initial, view, heartbeat, consistency })
    }
}

/// The pointer to where a reader that comes again was.
pub const LAST_EVENT_ID: &str = "header:Last-Event-ID";

/// After all of a revision. The first one is that of an empty store: nothing happened in it.
fn after(revision: Revision) -> FeedPosition {
    FeedPosition::after(revision.max(1))
}

/// `Last-Event-ID`: `revision.index`, or `revision` for all of it.
pub fn last_event_id(head: &Parts) -> Result<Option<FeedPosition>, Failure> {
    let Some(text) = headers::single(head, &headers::LAST_EVENT_ID)? else { return Ok(None) };
    let position = match text.split_once('.') {
        None => headers::decimal(text).map(after),
        Some((revision, index)) => {
            headers::decimal(revision).zip(headers::decimal(index)).and_then(|(revision, index)| {
                let index = u32::try_from(index).ok().filter(|index| *index < u32::MAX)?;
                Some(FeedPosition { revision, index })
            })
        }
    };
    let not_an_id = || headers::fault(&headers::LAST_EVENT_ID, "not an id of this API: `revision.index` or `revision`");
    position.map(Some).ok_or_else(not_an_id)
}

/// Notes its own faults; `None` only with one.
fn range(query: &mut Query<'_>) -> Option<WatchRange> {
    let key = query.bytes("key");
    let GivenRange { prefix, start, end } = GivenRange::take(query);
    let given = [key.is_some(), prefix.is_some(), start.is_some() || end.is_some()];
    if given.into_iter().filter(|given| *given).count() != 1 {
        query.faults.add("query:key", "give one of key, prefix (which may be empty), or start with or without end");
        return None;
    }
    if start.is_none() && end.is_some() {
        query.faults.add("query:start", "missing beside end; it may be empty");
        return None;
    }
    if let Some(key) = key {
        return key::read(key, "query:key", &mut query.faults).map(WatchRange::Key);
    }
    match (prefix, start) {
        (Some(prefix), _) => Some(WatchRange::Prefix(prefix)),
        (None, start) => Some(WatchRange::span(start.unwrap_or_default(), end)),
    }
}

/// `Last-Event-ID` stands for everything else: who reconnects by the rules of server-sent events repeats the URL as it is.
/// Tells also whether `initial` was asked for.
fn start(query: &mut Query<'_>, resume: Option<FeedPosition>) -> (Start, bool) {
    let (from, initial) = (query.number("from"), query.flag("initial"));
    if from.is_some() && initial {
        query
            .faults
            .add("query:from", "initial entries come first, and then what follows them; leave out one of the two");
    }
    let start = match (resume, from, initial) {
        (Some(position), _, _) => Start::After(position, LAST_EVENT_ID),
        (None, Some(from), _) => Start::After(after(from.saturating_sub(1)), "query:from"),
        (None, None, true) => Start::Initial,
        (None, None, false) => Start::Now,
    };
    (start, initial)
}

/// `heartbeat_ms`.
pub fn heartbeat(query: &mut Query<'_>) -> Duration {
    let (min, max) = (limits::HEARTBEAT_MS_MIN, limits::HEARTBEAT_MS_MAX);
    let millis = query.number("heartbeat_ms").unwrap_or(limits::HEARTBEAT_MS_DEFAULT);
    if !(min..=max).contains(&millis) {
        query.faults.add("query:heartbeat_ms", format!("out of range; give {min} to {max}"));
    }
    Duration::from_millis(millis)
}

impl WatchView {
    fn of(query: &mut Query<'_>) -> Self {
        let (puts, deletes) = events(query);
        let (keys_only, prev) = (query.flag("keys_only"), query.flag("prev"));
        let part = Part::read(query);
        let text = query.text("where");
        let criteria = text.and_then(|text| criteria(text.as_bytes(), "query:where", &mut query.faults));
        Self { puts, deletes, keys_only, prev, part, criteria: criteria.unwrap_or_default(), rules: None }
    }

    /// From now on its criteria are understood as this collection does.
    pub fn understand_by(&mut self, rules: Rules) {
        self.rules = (!self.criteria.is_empty()).then(|| Box::new(rules));
    }

    /// Whether it asks for something to hold of entries.
    pub fn has_criteria(&self) -> bool {
        !self.criteria.is_empty()
    }

    /// Which of the forms of a change it shows.
    pub fn form(&self) -> usize {
        usize::from(self.keys_only) + 2 * usize::from(self.prev)
    }

    /// Whether changes of this key are shown.
    pub fn has(&self, key: &Key) -> bool {
        self.part.is_none_or(|part| part.has(key.as_bytes()))
    }

    /// How many conditions there are, each of which may look through all of an entry; at least 1.
    pub fn looks(&self) -> usize {
        self.criteria.count().max(1)
    }

    /// Tells whether the criteria hold of an entry; fails where that takes too many steps.
    pub fn holds(
        &self,
        key: &Key,
        entry: &Entry,
        is_locked: bool,
        (clock, wall): (ClusterMillis, WallMillis),
        steps: &Steps,
    ) -> Result<bool, TooDear> {
        if self.criteria.is_empty() {
            return Ok(true);
        }
        let criteria = match &self.rules {
            Some(rules) => rules.converted(&self.criteria, wall),
            None => std::borrow::Cow::Borrowed(&self.criteria),
        };
        let is_json = criteria.needs_document() && entry.value.kind == ContentKind::Json;
        steps.take_parsing(if is_json { entry.value.data.as_slice() } else { &[] })?;
        let document = if is_json { Json::parse_stored(&entry.value.data).ok() } else { None };
        let meta = Some(&entry.meta);
        criteria.hold_within(&Subject { key, meta, is_locked, document: document.as_ref(), clock, wall }, steps)
    }
}

const _: () = assert!(FORMS == 4);

fn events(query: &mut Query<'_>) -> (bool, bool) {
    let Some(text) = query.text("events") else { return (true, true) };
    let mut wanted = (false, false);
    for name in text.split(',') {
        match name {
            "put" => wanted.0 = true,
            "delete" => wanted.1 = true,
            _ => {
                query.faults.add("query:events", "a list of `put` and `delete`, separated by commas");
                break;
            }
        }
    }
    wanted
}
