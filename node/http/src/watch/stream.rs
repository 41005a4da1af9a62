//! A watch at work: from the entries that are there, or a place in the feed, to the events of its stream.
//!
//! Owns what is sent when: initial entries, then changes from memory, from disk where the watch fell behind, and the id on the last
//! event of each revision. Holds no queue: what its peer has not taken is not read yet, but for a step's worth.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use quorate_api::WatchEndCode;
use quorate_feed::{Pulled, RecentChange, Watch};
use quorate_machine::document::{Steps, TooDear};
use quorate_machine::limits::COMMAND_STEPS_MAX;
use quorate_machine::query::{ReadPosition, StateFault};
use quorate_machine::types::{Entry, Revision};
use quorate_node_core::gateway::api::Api;
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::watch::{self, Reader, Versions};
use quorate_node_core::limits;
use quorate_node_core::metrics::WatchSource;
use quorate_threads::background;

use crate::watch::event::{self, Shown};
use crate::watch::options::WatchView;
use crate::watch::read::{self, Dear, Event, Initial, Read, Reading};
use crate::watch::sse::{self, Chunk, Source};

/// A watch and where it is.
pub struct WatchBody {
    api: Arc<Api>,
    reader: Reader,
    watch: Watch,
    view: Arc<WatchView>,
    /// What is left of the initial entries.
    initial: Option<Initial>,
    /// Changes that are in memory and not looked at yet.
    pulled: VecDeque<Arc<RecentChange>>,
    /// The last event, as long as another of its revision may follow.
    held: Option<Event>,
    /// What is being read from disk. Boxed, and there only while it is.
    work: Option<Reading>,
    /// Bytes of values that were held against the criteria since others last had the thread.
    judged: usize,
    /// Whether it has once had everything there was.
    was_live: bool,
    began: Instant,
}

/// What a step came to.
enum Step {
    /// There may be more to do.
    Done,
    /// Nothing to do until woken.
    Asleep,
    /// The stream ends with these words.
    Over(Vec<u8>),
}

impl WatchBody {
    /// Begins; with the initial entries of a revision, or right behind the position of `watch`.
    pub fn new(call: &Call, watch: Watch, view: WatchView, initial: Option<Initial>) -> Self {
        Self {
            api: Arc::clone(&call.api),
            reader: Reader::of(call),
            watch,
            view: Arc::new(view),
            initial,
            pulled: VecDeque::new(),
            held: None,
            work: None,
            judged: 0,
            was_live: false,
            began: Instant::now(),
        }
    }

    /// Takes one step. Appends what is to be sent.
    fn step(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<Step, StateFault> {
        if let Some(work) = &mut self.work {
            let Poll::Ready(read) = work.as_mut().poll(cx) else { return Ok(Step::Asleep) };
            self.work = None;
            // Without room it is read once there is some.
            return Ok(read?.map_or(Step::Done, |read| self.take_read(read, out)));
        }
        if let Some(initial) = &self.initial {
            self.work = Some(read::initial(&self.reader, &self.view, initial.clone()));
            return Ok(Step::Done);
        }
        if !self.pulled.is_empty() {
            return self.show_pulled(out);
        }
        self.release(out);
        let view = &self.view;
        let wanted = |change: &RecentChange| {
            let is_kind = if change.change.cause.is_removal() { view.deletes } else { view.puts };
            is_kind && view.has(&change.key)
        };
        match self.watch.pull(wanted) {
            Pulled::Changes(changes) => self.pulled = changes.into(),
            Pulled::NothingYet => {}
            Pulled::Behind => self.read_on(),
            Pulled::Idle => {
                self.was_live = true;
                if self.watch.poll_news(cx).is_pending() {
                    return Ok(Step::Asleep);
                }
            }
        }
        Ok(Step::Done)
    }

    /// Goes on from disk.
    fn read_on(&mut self) {
        self.work = Some(read::changes(&self.reader, &self.watch, &self.view));
    }

    /// Takes what was read from disk.
    fn take_read(&mut self, read: Read, out: &mut Vec<u8>) -> Step {
        match read {
            Read::Changes { events, to, more, dear } => {
                self.api.metrics.observe_watch_events(WatchSource::Disk, events.len());
                for event in events {
                    self.show(event, out);
                }
                self.watch.read_up_to(to, !more);
                self.release(out);
                if let Some(dear) = dear {
                    return Step::Over(self.too_dear(&dear));
                }
            }
            Read::Initial { bytes, count, next, dear } => {
                self.api.metrics.observe_watch_events(WatchSource::Initial, count);
                out.extend_from_slice(&bytes);
                if next.is_none() {
                    event::progress(out, "synced", self.watch.position().revision);
                }
                self.initial = next;
                if let Some(dear) = dear {
                    return Step::Over(self.too_dear(&dear));
                }
            }
            Read::Compacted(at) => return Step::Over(self.overtaken(at)),
        }
        Step::Done
    }

    /// Shows changes that are in memory, until a chunk is full.
    fn show_pulled(&mut self, out: &mut Vec<u8>) -> Result<Step, StateFault> {
        let (mut shown, mut dear) = (0, None);
        while out.len() < limits::WATCH_CHUNK_BYTES && self.judged < limits::WATCH_JUDGED_BYTES {
            let Some(change) = self.pulled.pop_front() else { break };
            match self.event_of(&change)? {
                Remembered::Shown(event) => {
                    self.show(event, out);
                    shown += 1;
                }
                Remembered::NotWanted => {}
                Remembered::TooDear(why) => {
                    dear = Some(Dear { key: change.key.clone(), revision: change.revision, why });
                    // The changes that are left say up to where all was sent.
                    self.pulled.push_front(change);
                    break;
                }
                Remembered::Gone => {
                    // Its versions were compacted a moment ago: the disk knows what that means for this watch.
                    self.pulled.clear();
                    self.watch.go_back(change.position().previous());
                    self.read_on();
                    break;
                }
            }
        }
        self.api.metrics.observe_watch_events(WatchSource::Memory, shown);
        Ok(match dear {
            None => Step::Done,
            Some(dear) => Step::Over(self.too_dear(&dear)),
        })
    }

    /// A change as this watch shows it, shared with all that show it in the same form.
    fn event_of(&mut self, change: &RecentChange) -> Result<Remembered, StateFault> {
        let (position, is_last) = (change.position(), change.change.is_last());
        if self.view.has_criteria() {
            let Some(entry) = self.entry_of(change)? else { return Ok(Remembered::Gone) };
            let bytes = entry.value.data.len();
            let now = (change.change.clock, change.change.wall);
            let steps = Steps::up_to(COMMAND_STEPS_MAX);
            let holds = || self.view.holds(&change.key, &entry, change.change.locks, now, &steps);
            let held = background::in_place(bytes.saturating_mul(self.view.looks()), holds);
            self.judged += bytes.max(steps.bytes());
            match held {
                Ok(true) => {}
                Ok(false) => return Ok(Remembered::NotWanted),
                Err(why) => return Ok(Remembered::TooDear(why)),
            }
        }
        let form = self.view.form();
        if let Some(bytes) = change.form(form) {
            return Ok(Remembered::Shown(Event { bytes: bytes.clone(), position, is_last }));
        }
        let Some(Versions { entry, before }) = watch::versions(&self.api.node, change, self.view.prev)? else {
            return Ok(Remembered::Gone);
        };
        let shown = Shown {
            key: &change.key,
            revision: change.revision,
            change: &change.change,
            entry: entry.as_deref(),
            before: before.as_ref(),
        };
        let bytes = Bytes::from(event::change(&shown, &self.view));
        self.watch.feed().leave_form(change, form, bytes.clone());
        Ok(Remembered::Shown(Event { bytes, position, is_last }))
    }

    /// The entry that criteria are about: after a write, before a removal. `None` where it can no longer be read.
    fn entry_of(&self, change: &RecentChange) -> Result<Option<Arc<Entry>>, StateFault> {
        if let Some(entry) = change.entry() {
            return Ok(Some(Arc::clone(entry)));
        }
        let revision = match (change.change.cause.is_removal(), change.change.previous) {
            (true, Some(previous)) => previous,
            _ => change.revision,
        };
        let Some(entry) = self.api.node.version(&change.key, revision)? else { return Ok(None) };
        let entry = Arc::new(entry);
        self.watch.feed().leave_entry(change, Arc::clone(&entry));
        Ok(Some(entry))
    }

    /// Sends an event, or holds it while it is not known whether it is the last of its revision.
    fn show(&mut self, event: Event, out: &mut Vec<u8>) {
        if let Some(held) = self.held.take() {
            held.write(out, held.position.revision != event.position.revision);
        }
        if event.is_last {
            event.write(out, true);
        } else {
            self.held = Some(event);
        }
    }

    /// Sends the event that is held, once the rest of its revision was looked at.
    fn release(&mut self, out: &mut Vec<u8>) {
        let position = self.watch.position();
        let is_done = |held: &mut Event| position.is_whole() || position.revision > held.position.revision;
        if let Some(held) = self.held.take_if(is_done) {
            held.write(out, true);
        }
    }

    /// The revision up to which everything was sent, if that can be said.
    fn sent_up_to(&mut self) -> Option<Revision> {
        if self.initial.is_some() {
            return None;
        }
        let first_open = self.held.as_ref().map(|held| held.position.revision);
        let first_open = first_open.or(self.pulled.front().map(|change| change.revision));
        Some(first_open.map_or_else(|| self.watch.progress(), |revision| revision.saturating_sub(1)))
    }

    fn end(&mut self, code: WatchEndCode, detail: String, oldest: Option<Revision>) -> Vec<u8> {
        self.api.metrics.observe_watch_end(code);
        event::end(code, detail, oldest, self.sent_up_to())
    }

    /// The last words where what follows cannot be judged. A watch must not leave out what it was asked for, nor show what it was not.
    fn too_dear(&mut self, dear: &Dear) -> Vec<u8> {
        self.end(WatchEndCode::TooDear, dear.detail(), None)
    }

    /// The last words where what follows is compacted.
    fn overtaken(&mut self, at: ReadPosition) -> Vec<u8> {
        let oldest = at.oldest_revision;
        let (code, why) = match self.was_live {
            true => (WatchEndCode::SlowConsumer, "the events were not read as fast as they came"),
            false => (WatchEndCode::Compacted, "what follows has been compacted"),
        };
        let detail =
            format!("{why}; the oldest revision that can be read is {oldest}, with initial=true the watch begins anew");
        self.end(code, detail, Some(oldest))
    }
}

/// What can be shown of a change by what is in memory.
enum Remembered {
    Shown(Event),
    NotWanted,
    /// It takes too many steps to say whether it is wanted.
    TooDear(TooDear),
    /// Its versions cannot be read any more.
    Gone,
}

impl Source for WatchBody {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Chunk>> {
        let mut out = Vec::new();
        self.judged = 0;
        for _ in 0..limits::WATCH_STEPS_MAX {
            match self.step(cx, &mut out) {
                Ok(Step::Done) => {}
                Ok(Step::Asleep) if out.is_empty() => return Poll::Pending,
                Ok(Step::Asleep) => break,
                Ok(Step::Over(last)) => {
                    out.extend_from_slice(&last);
                    return Poll::Ready(Ok(Chunk::Last(out.into())));
                }
                Err(fault) => {
                    tracing::error!(%fault, "a watch met a fault of this node");
                    return Poll::Ready(Err(io::Error::other(fault)));
                }
            }
            if out.len() >= limits::WATCH_CHUNK_BYTES || self.judged >= limits::WATCH_JUDGED_BYTES {
                break;
            }
        }
        if out.is_empty() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(Chunk::Some(out.into())))
    }

    fn heartbeat(&mut self) -> Bytes {
        let is_between = self.initial.is_none() && self.held.is_none() && self.pulled.is_empty();
        // An id that is before one already sent would make the client see events again.
        let revision = self.watch.progress();
        if !is_between || !self.watch.position().is_whole() {
            return sse::COMMENT;
        }
        let mut out = Vec::new();
        event::progress(&mut out, "progress", revision);
        out.into()
    }

    fn end_reason(&mut self) -> Option<Bytes> {
        let (code, detail) = watch::end_reason(&self.api.node, self.began)?;
        Some(self.end(code, detail, None).into())
    }

    fn refused(&mut self, code: WatchEndCode, detail: String) -> Bytes {
        self.api.metrics.observe_watch_end(code);
        // What was read last was not sent.
        event::end(code, detail, None, None).into()
    }

    fn ended(&mut self, code: WatchEndCode, detail: String) -> Bytes {
        self.end(code, detail, None).into()
    }
}
