//! One watch of a stream: from its place in the feed of changes to etcd's events.
//!
//! Owns that a revision is never split over two answers, unless it was asked for in fragments. Holds no queue but what it is about to
//! send: what follows is read once that was taken.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use quorate_etcd_api::Message;
use quorate_etcd_api::entry::{Event, EventEventType, KeyValue};
use quorate_feed::{Pulled, RecentChange, Watch};
use quorate_machine::query::{ChangesPage, ChangesQuery, ChangesRead, FeedPosition, ReadPosition, StateFault};
use quorate_machine::types::{Entry, Key, Revision};
use quorate_node_core::gateway::admission::accounts::Held;
use quorate_node_core::gateway::admission::shares::LentPlace;
use quorate_node_core::gateway::api::Api;
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::caller::Watching;
use quorate_node_core::gateway::watch::{self, Reader, Versions};
use quorate_node_core::limits;
use quorate_node_core::metrics::WatchSource;

use crate::range::key_value;

/// What a watch shows.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// No change before this revision.
    pub first: Revision,
    /// Whether writes are shown.
    pub puts: bool,
    /// Whether removals are.
    pub deletes: bool,
    /// Whether with the entry as it was before.
    pub prev: bool,
    /// Whether what is long may come in parts.
    pub fragment: bool,
    /// Whether it is told how far it is where nothing happens.
    pub progress: bool,
}

/// A watch at work.
pub struct Watcher {
    /// One of the watches that its caller may have, as configured.
    _counted: Option<Held>,
    /// The same, of all.
    pub place: LentPlace,
    api: Arc<Api>,
    reader: Reader,
    watch: Watch,
    /// What it shows.
    pub view: View,
    /// Who watches, where not everybody may.
    pub watching: Option<Watching>,
    pulled: VecDeque<Arc<RecentChange>>,
    reading: Option<BoxFuture<'static, Result<Option<ChangesRead>, StateFault>>>,
    /// What is about to be sent.
    events: Vec<Event>,
    bytes: usize,
    /// The position of the last of them, and whether its revision has no change behind it.
    last: Option<(FeedPosition, bool)>,
}

/// What a watch came to.
pub enum Step {
    /// Events of whole revisions.
    Events(Vec<Event>),
    /// What follows can no longer be read.
    Compacted(ReadPosition),
}

impl Watcher {
    /// Begins at the position of `watch`.
    pub fn new(
        call: &Call,
        watch: Watch,
        view: View,
        watching: Option<Watching>,
        (counted, place): (Option<Held>, LentPlace),
    ) -> Self {
        let (pulled, reading, events, bytes, last) = Default::default();
        let (api, reader) = (Arc::clone(&call.api), Reader::of(call));
        Self { _counted: counted, place, api, reader, watch, view, watching, pulled, reading, events, bytes, last }
    }

    /// What comes next.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Step, StateFault>> {
        loop {
            if let Some(reading) = &mut self.reading {
                let Poll::Ready(read) = reading.as_mut().poll(cx) else { return Poll::Pending };
                self.reading = None;
                match read? {
                    // It is read once there is room for it.
                    None => {}
                    Some(ChangesRead::Page(page)) => self.take_page(page),
                    Some(ChangesRead::Compacted(at)) => return Poll::Ready(Ok(Step::Compacted(at))),
                    Some(ChangesRead::Future(at)) => {
                        let fault = format!("a watch is at {:?}, the state at {at:?}", self.watch.position());
                        return Poll::Ready(Err(StateFault::new(fault)));
                    }
                }
            }
            while let Some(change) = self.pulled.pop_front() {
                if !self.take_change(&change)? {
                    // Its versions were compacted a moment ago: the disk knows what that means for this watch.
                    self.pulled.clear();
                    self.watch.go_back(change.position().previous());
                    self.read_on();
                    break;
                }
                if let Some(events) = self.full() {
                    return Poll::Ready(Ok(Step::Events(events)));
                }
            }
            if self.reading.is_some() {
                continue;
            }
            if let Some(events) = self.whole() {
                return Poll::Ready(Ok(Step::Events(events)));
            }
            let View { puts, deletes, .. } = self.view;
            match self.watch.pull(|change| if change.change.cause.is_removal() { deletes } else { puts }) {
                Pulled::Changes(changes) => self.pulled = changes.into(),
                Pulled::NothingYet => {}
                Pulled::Behind => self.read_on(),
                Pulled::Idle => {
                    if let Some(events) = self.whole() {
                        return Poll::Ready(Ok(Step::Events(events)));
                    }
                    if self.watch.poll_news(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// The revision up to which everything was sent, where nothing is under way.
    pub fn synced(&mut self) -> Option<Revision> {
        let is_idle = self.reading.is_none() && self.pulled.is_empty() && self.events.is_empty();
        is_idle.then(|| self.watch.progress())
    }

    fn read_on(&mut self) {
        let query = ChangesQuery {
            after: self.watch.position(),
            range: self.watch.range().clone(),
            writes: self.view.puts,
            removals: self.view.deletes,
            before_writes: self.view.prev,
            before_removals: self.view.prev,
            bytes_max: limits::WATCH_CHUNK_BYTES,
            looked_at_max: limits::WATCH_LOOKED_AT_MAX,
        };
        self.reading = Some(self.reader.read(move |backend| backend.changes(&query)));
    }

    fn take_page(&mut self, page: ChangesPage) {
        self.api.metrics.observe_watch_events(WatchSource::Disk, page.changes.len());
        for full in page.changes {
            let position = FeedPosition { revision: full.revision, index: full.change.index };
            let before = full.before.filter(|_| self.view.prev);
            self.push(&full.key, position, full.change.is_last(), full.entry, before);
        }
        self.watch.read_up_to(page.to, !page.more);
    }

    /// Takes a change that is in memory. `false` where what it shows can no longer be read.
    fn take_change(&mut self, change: &RecentChange) -> Result<bool, StateFault> {
        let Some(Versions { entry, before }) = watch::versions(&self.api.node, change, self.view.prev)? else {
            return Ok(false);
        };
        if let Some(entry) = entry.as_ref().filter(|_| change.entry().is_none()) {
            self.watch.feed().leave_entry(change, Arc::clone(entry));
        }
        let entry = entry.map(|entry| Entry::clone(&entry));
        self.api.metrics.observe_watch_events(WatchSource::Memory, 1);
        self.push(&change.key, change.position(), change.change.is_last(), entry, before);
        Ok(true)
    }

    fn push(&mut self, key: &Key, position: FeedPosition, is_last: bool, entry: Option<Entry>, before: Option<Entry>) {
        if position.revision < self.view.first {
            return;
        }
        let kind = if entry.is_some() { EventEventType::Put } else { EventEventType::Delete };
        let kv = match entry {
            Some(entry) => key_value(key, entry),
            None => KeyValue {
                key: Bytes::copy_from_slice(key.as_bytes()),
                mod_revision: position.revision as i64,
                ..KeyValue::default()
            },
        };
        let prev_kv = before.map(|entry| key_value(key, entry));
        let event = Event { r#type: kind.into(), kv: Some(kv), prev_kv };
        self.bytes += event.encoded_len();
        self.events.push(event);
        self.last = Some((position, is_last));
    }

    /// What is to be sent, where it is enough and nothing of its last revision follows.
    fn full(&mut self) -> Option<Vec<Event>> {
        let is_whole = self.last.is_some_and(|(_, is_last)| is_last);
        (is_whole && self.bytes >= limits::WATCH_CHUNK_BYTES).then(|| self.take())
    }

    /// What is to be sent, where nothing of its last revision follows.
    fn whole(&mut self) -> Option<Vec<Event>> {
        let (last, is_last) = self.last?;
        let position = self.watch.position();
        let is_whole = is_last || position.is_whole() || position.revision > last.revision;
        is_whole.then(|| self.take())
    }

    fn take(&mut self) -> Vec<Event> {
        (self.bytes, self.last) = (0, None);
        std::mem::take(&mut self.events)
    }
}
