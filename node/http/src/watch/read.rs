//! What a watch reads from disk: initial entries, and changes that are no longer in memory.
//!
//! Owns these reads and the text made of them, all of it on a blocking thread, a few at a time. Each is bounded: whatever it finds,
//! it comes back after a step.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use quorate_store::state::{
    ChangesPage, ChangesQuery, ChangesRead, FeedPosition, ListQuery, ListRead, ReadPosition, StateFault, Watch,
    WatchRange,
};
use quorate_store::types::{Key, Revision, WallMillis};

use crate::gateway::admission::answer_memory::Share;
use crate::gateway::api::Api;
use crate::gateway::watch;
use crate::limits;
use crate::watch::event::{self, Shown};
use crate::watch::options::WatchView;

/// A read under way; `None` where there was no room for what it would have given.
pub type Reading = Pin<Box<dyn Future<Output = Result<Option<Read>, StateFault>> + Send>>;

/// What a read gave.
pub enum Read {
    /// Changes.
    Changes {
        /// As they are shown; only those that are.
        events: Vec<Event>,
        /// How far it got.
        to: FeedPosition,
        /// Whether there is more.
        more: bool,
    },
    /// Initial entries.
    Initial {
        /// As they are shown.
        bytes: Vec<u8>,
        /// How many.
        count: usize,
        /// What is left of them.
        next: Option<Initial>,
    },
    /// What was asked for can no longer be read.
    Compacted(ReadPosition),
}

/// An event, but for its id.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its text.
    pub bytes: Bytes,
    /// Of its change.
    pub position: FeedPosition,
    /// Whether its revision has no change behind it.
    pub is_last: bool,
}

impl Event {
    /// Appends it; with its id where it is the last event of its revision.
    pub fn write(&self, out: &mut Vec<u8>, is_last: bool) {
        out.extend_from_slice(&self.bytes);
        event::end_event(out, is_last.then_some(self.position));
    }
}

/// What is left of the initial entries.
#[derive(Debug, Clone)]
pub struct Initial {
    /// First key, inclusive.
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    /// The revision that they show.
    revision: Revision,
    /// What `{"now":true}` is for them.
    wall: WallMillis,
}

impl Initial {
    /// All entries of a range.
    pub fn of(range: &WatchRange, revision: Revision, wall: WallMillis) -> Self {
        let (start, end) = range.bounds();
        Self { start, end, revision, wall }
    }
}

/// Reads on from where the watch is.
pub fn changes(api: &Arc<Api>, share: &Arc<Share>, watch: &Watch, view: &Arc<WatchView>) -> Reading {
    let query = ChangesQuery {
        after: watch.position(),
        range: watch.range().clone(),
        writes: view.puts,
        removals: view.deletes,
        before_writes: view.prev,
        before_removals: view.prev || view.has_criteria(),
        bytes_max: limits::WATCH_CHUNK_BYTES,
        looked_at_max: limits::WATCH_LOOKED_AT_MAX,
    };
    let view = Arc::clone(view);
    watch::read(api, share, move |backend| {
        let page = match backend.changes(&query)? {
            ChangesRead::Page(page) => page,
            ChangesRead::Compacted(at) => return Ok(Read::Compacted(at)),
            ChangesRead::Future(at) => {
                return Err(StateFault::new(format!("a watch is at {:?}, the state at {at:?}", query.after)));
            }
        };
        let events = events(&page, &view);
        Ok(Read::Changes { events, to: page.to, more: page.more })
    })
}

fn events(page: &ChangesPage, view: &WatchView) -> Vec<Event> {
    let mut events = Vec::with_capacity(page.changes.len());
    for full in &page.changes {
        let change = &full.change;
        let subject = if change.cause.is_removal() { &full.before } else { &full.entry };
        let holds = |entry| view.holds(&full.key, entry, change.locks, (change.clock, change.wall));
        if !view.has(&full.key) || !subject.as_ref().is_none_or(holds) {
            continue;
        }
        let before = full.before.as_ref().filter(|_| view.prev);
        let shown = Shown { key: &full.key, revision: full.revision, change, entry: full.entry.as_ref(), before };
        let bytes = event::change(&shown, view).into();
        let position = FeedPosition { revision: full.revision, index: change.index };
        events.push(Event { bytes, position, is_last: change.is_last() });
    }
    events
}

/// Reads the next initial entries.
pub fn initial(api: &Arc<Api>, share: &Arc<Share>, view: &Arc<WatchView>, initial: Initial) -> Reading {
    let query = ListQuery {
        start: initial.start.clone(),
        end: initial.end.clone(),
        revision: Some(initial.revision),
        limit: limits::LIST_ENTRIES_MAX,
        bytes_max: limits::WATCH_CHUNK_BYTES,
        // Criteria look into values.
        keys_only: view.keys_only && !view.has_criteria(),
        reverse: false,
    };
    let view = Arc::clone(view);
    watch::read(api, share, move |backend| {
        let page = match backend.list(&query)? {
            ListRead::Page(page) => page,
            ListRead::Compacted(at) => return Ok(Read::Compacted(at)),
            ListRead::Future(at) => {
                return Err(StateFault::new(format!(
                    "a watch began at revision {}, the state is at {at:?}",
                    initial.revision
                )));
            }
        };
        let (mut bytes, mut count) = (Vec::with_capacity(limits::WATCH_CHUNK_BYTES), 0);
        for (key, entry) in &page.entries {
            let now = (page.at.clock, initial.wall);
            if view.has(key) && view.holds(key, entry, entry.meta.is_locked_at(page.at.clock), now) {
                event::initial(&mut bytes, key, entry, initial.revision, page.at.clock, view.keys_only);
                count += 1;
            }
        }
        let last = page.entries.last().filter(|_| page.more);
        let next = last.map(|(last, _)| Initial { start: behind(last), ..initial });
        Ok(Read::Initial { bytes, count, next })
    })
}

/// The smallest key after this one.
fn behind(key: &Key) -> Vec<u8> {
    [key.as_bytes(), b"\0"].concat()
}
