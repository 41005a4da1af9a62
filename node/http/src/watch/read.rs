//! What a watch reads from disk: initial entries, and changes that are no longer in memory.
//!
//! Owns these reads and the text made of them, all of it on a blocking thread, a few at a time. Each is bounded: whatever it finds,
//! it comes back after a step.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use quorate_feed::Watch;
use quorate_machine::document::{Steps, TooDear};
use quorate_machine::limits::COMMAND_STEPS_MAX;
use quorate_machine::query::{
    ChangesPage, ChangesQuery, ChangesRead, FeedPosition, ListQuery, ListRead, ReadPosition, StateFault, WatchRange,
};
use quorate_machine::types::{Key, Revision, WallMillis};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::watch::Reader;
use quorate_node_core::limits;

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
        /// The next change, where it cannot be judged.
        dear: Option<Dear>,
    },
    /// Initial entries.
    Initial {
        /// As they are shown.
        bytes: Vec<u8>,
        /// How many.
        count: usize,
        /// What is left of them.
        next: Option<Initial>,
        /// The next entry, where it cannot be judged.
        dear: Option<Dear>,
    },
    /// What was asked for can no longer be read.
    Compacted(ReadPosition),
}

/// An entry that takes too many steps to be held against the criteria.
pub struct Dear {
    /// Its key.
    pub key: Key,
    /// At which revision.
    pub revision: Revision,
    /// How many.
    pub why: TooDear,
}

impl Dear {
    /// Describes it for the one who watches.
    pub fn detail(&self) -> String {
        format!("at revision {}: {}", self.revision, Failure::too_dear(&self.key, self.why).detail())
    }
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
pub fn changes(reader: &Reader, watch: &Watch, view: &Arc<WatchView>) -> Reading {
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
    reader.read(move |backend| {
        let page = match backend.changes(&query)? {
            ChangesRead::Page(page) => page,
            ChangesRead::Compacted(at) => return Ok(Read::Compacted(at)),
            ChangesRead::Future(at) => {
                return Err(StateFault::new(format!("a watch is at {:?}, the state at {at:?}", query.after)));
            }
        };
        Ok(events(&page, &view))
    })
}

/// The changes of a page that are shown; fewer where it takes long to judge them.
fn events(page: &ChangesPage, view: &WatchView) -> Read {
    let mut events = Vec::with_capacity(page.changes.len());
    let mut taken = 0;
    for full in page.changes.iter().filter(|full| view.has(&full.key)) {
        let change = &full.change;
        let position = FeedPosition { revision: full.revision, index: change.index };
        let subject = if change.cause.is_removal() { &full.before } else { &full.entry };
        let steps = Steps::up_to(COMMAND_STEPS_MAX);
        let holds = |entry| view.holds(&full.key, entry, change.locks, (change.clock, change.wall), &steps);
        match subject.as_ref().map_or(Ok(true), holds) {
            Ok(true) => {
                let before = full.before.as_ref().filter(|_| view.prev);
                let entry = full.entry.as_ref();
                let shown = Shown { key: &full.key, revision: full.revision, change, entry, before };
                let bytes = event::change(&shown, view).into();
                events.push(Event { bytes, position, is_last: change.is_last() });
            }
            Ok(false) => {}
            Err(why) => {
                let dear = Some(Dear { key: full.key.clone(), revision: full.revision, why });
                return Read::Changes { events, to: position.previous(), more: true, dear };
            }
        }
        taken += steps.taken();
        if taken > COMMAND_STEPS_MAX {
            return Read::Changes { events, to: position, more: true, dear: None };
        }
    }
    Read::Changes { events, to: page.to, more: page.more, dear: None }
}

/// Reads the next initial entries.
pub fn initial(reader: &Reader, view: &Arc<WatchView>, initial: Initial) -> Reading {
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
    reader.read(move |backend| {
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
        let (mut bytes, mut count, mut taken) = (Vec::with_capacity(limits::WATCH_CHUNK_BYTES), 0, 0);
        for (key, entry) in page.entries.iter().filter(|(key, _)| view.has(key)) {
            let (now, is_locked) = ((page.at.clock, initial.wall), entry.meta.is_locked_at(page.at.clock));
            let steps = Steps::up_to(COMMAND_STEPS_MAX);
            match view.holds(key, entry, is_locked, now, &steps) {
                Ok(true) => {
                    event::initial(&mut bytes, key, entry, initial.revision, page.at.clock, view.keys_only);
                    count += 1;
                }
                Ok(false) => {}
                Err(why) => {
                    let dear = Some(Dear { key: key.clone(), revision: entry.meta.mod_revision, why });
                    return Ok(Read::Initial { bytes, count, next: Some(initial), dear });
                }
            }
            taken += steps.taken();
            if taken > COMMAND_STEPS_MAX {
                let next = Some(Initial { start: behind(key), ..initial });
                return Ok(Read::Initial { bytes, count, next, dear: None });
            }
        }
        let last = page.entries.last().filter(|_| page.more);
        let next = last.map(|(last, _)| Initial { start: behind(last), ..initial });
        Ok(Read::Initial { bytes, count, next, dear: None })
    })
}

/// The smallest key after this one.
fn behind(key: &Key) -> Vec<u8> {
    [key.as_bytes(), b"\0"].concat()
}
