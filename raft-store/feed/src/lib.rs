//! The feed of changes: what the writer tells, and those who follow it.
//!
//! Owns the order in which a change becomes known: kept in the [ring], then told to those who wait, then counted as
//! told. Never reads the database: a follower that is too far behind is told so, and reads the audit rows until it is back.
//!
//! There is no queue for a follower, only its position. Whoever does not keep up costs nothing but a longer way back.

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A server says things through its log.
#![warn(clippy::print_stdout)]

mod register;
mod ring;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::RwLock;
use quorate_machine::keyspace::changes::KeyChange;
use quorate_machine::query::{FeedPosition, WatchRange};
use quorate_machine::types::{Entry, Key, Revision};

use register::Register;
use ring::Ring;

pub use register::Ticket;
pub use ring::{FORMS, RecentChange};

/// The feed of one state.
pub struct Feed {
    register: Arc<Register>,
    ring: RwLock<Ring>,
    watches: AtomicUsize,
    /// The revision up to which everybody was told.
    told: AtomicU64,
}

/// What one apply call changed.
#[derive(Debug)]
pub struct ChangeSet<'a> {
    /// Each change of a key, in order of revision.
    pub changes: Vec<KeyChange>,
    /// Names of what else has changed, see [`quorate_machine::types::Waker`].
    pub names: &'a std::collections::BTreeSet<Key>,
    /// The revision before the call.
    pub before: Revision,
    /// The revision after it.
    pub after: Revision,
    /// The oldest revision that can be read after it.
    pub oldest: Revision,
}

/// Somebody who follows the changes of some keys.
pub struct Watch {
    feed: Arc<Feed>,
    range: WatchRange,
    ticket: Ticket,
    position: FeedPosition,
    /// Whether everything up to the moment at which the ticket was armed has been looked at.
    waits: bool,
}

/// What a [`Watch`] is given.
#[derive(Debug)]
pub enum Pulled {
    /// What follows. The position is behind them.
    Changes(Vec<Arc<RecentChange>>),
    /// Nothing of the keys in what was looked at, and there is more.
    NothingYet,
    /// What follows is not in memory: read it from disk, then [`Watch::read_up_to`].
    Behind,
    /// Nothing: wait for [`Watch::poll_news`].
    Idle,
}

impl Feed {
    /// A feed that goes on after `revision`. The ring holds so many bytes, with all that is made of the changes in it.
    pub fn new(revision: Revision, ring_bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            register: Arc::new(Register::new()),
            ring: RwLock::new(Ring::new(ring_bytes_max)),
            watches: AtomicUsize::new(0),
            told: AtomicU64::new(revision),
        })
    }

    /// Tells what was changed. Readers see it already. There must be one caller at a time.
    pub fn tell(&self, told: ChangeSet<'_>) {
        let ChangeSet { changes, names, before, after, oldest } = told;
        self.register.note_names(names, before.saturating_add(1)).wake();
        // Held until the ring has them: who has news already waits for that, and who begins to watch finds all or nothing.
        let mut ring = self.ring.write();
        let noted = self.register.note(&changes);
        match self.watches.load(Ordering::SeqCst) {
            0 => ring.clear(),
            _ => ring.push(changes, before, after, oldest),
        }
        drop(ring);
        noted.wake();
        self.told.store(after, Ordering::Release);
    }

    /// Tells that the whole state was replaced by one at this revision.
    pub fn tell_replaced(&self, revision: Revision) {
        self.ring.write().clear();
        let since = self.told.load(Ordering::Acquire).saturating_add(1);
        self.register.note_all(since).wake();
        self.told.store(revision, Ordering::Release);
    }

    /// Follows the changes of these keys after a position.
    pub fn watch(self: &Arc<Self>, range: WatchRange, position: FeedPosition) -> Watch {
        if self.watches.fetch_add(1, Ordering::SeqCst) == 0 {
            // What is there is from before somebody watched, and may have gaps.
            self.ring.write().clear();
        }
        let ticket = self.join(range.clone());
        Watch { feed: Arc::clone(self), range, ticket, position, waits: false }
    }

    /// Waits for changes of these keys, or of what has such a name. Call [`Ticket::arm`], then look at the state, then wait for
    /// [`Ticket::changed`].
    pub fn join(&self, range: WatchRange) -> Ticket {
        self.register.join(range)
    }

    /// How many wait, those who watch among them.
    pub fn tickets(&self) -> usize {
        self.register.len()
    }

    /// How many watch.
    pub fn watches(&self) -> usize {
        self.watches.load(Ordering::Relaxed)
    }

    /// Leaves what was made of a change in a form, for others who show it.
    pub fn leave_form(&self, change: &RecentChange, form: usize, bytes: Bytes) {
        let length = bytes.len();
        if change.leave_form(form, bytes) {
            self.ring.write().grow(change, length);
        }
    }

    /// Leaves the entry that a change left or removed, for others who look at it.
    pub fn leave_entry(&self, change: &RecentChange, entry: Arc<Entry>) {
        let length = entry.value.data.len();
        if change.leave_entry(entry) {
            self.ring.write().grow(change, length);
        }
    }
}

impl Watch {
    /// Takes what follows, as far as it is in memory. Takes microseconds.
    pub fn pull(&mut self, wanted: impl Fn(&RecentChange) -> bool) -> Pulled {
        if self.waits {
            let Some(first) = self.ticket.news() else { return Pulled::Idle };
            // Before that nothing concerned these keys.
            self.position = self.position.max(FeedPosition::after(first.saturating_sub(1)));
            self.waits = false;
        }
        self.ticket.arm();
        let range = &self.range;
        let taken = self
            .feed
            .ring
            .read()
            .after(self.position, |change| range.contains(change.key.as_bytes()) && wanted(change));
        let Some(taken) = taken else { return Pulled::Behind };
        self.position = taken.to;
        match (taken.changes.is_empty(), taken.more) {
            (false, _) => Pulled::Changes(taken.changes),
            (true, true) => Pulled::NothingYet,
            (true, false) => {
                self.waits = true;
                Pulled::Idle
            }
        }
    }

    /// Everything up to there was read from disk since [`Self::pull`] said that it has to be; `all` where there was no more at
    /// that time.
    pub fn read_up_to(&mut self, position: FeedPosition, all: bool) {
        self.position = position;
        self.waits = all;
    }

    /// Goes back to a position: what was pulled after it could not be used.
    pub fn go_back(&mut self, position: FeedPosition) {
        assert!(position <= self.position, "back to {position:?} from {:?}", self.position);
        self.position = position;
        self.waits = false;
    }

    /// Waits until there may be something to pull. Only after [`Pulled::Idle`].
    pub fn poll_news(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.ticket.poll_news(cx).map(|_| ())
    }

    /// Where it stands. Nothing of its keys is missing up to there.
    pub fn position(&self) -> FeedPosition {
        self.position
    }

    /// Moves the position over what did not concern these keys, and gives the revision up to which nothing is missing.
    pub fn progress(&mut self) -> Revision {
        if self.waits {
            let told = self.feed.told.load(Ordering::Acquire);
            if self.ticket.news().is_none() {
                self.position = self.position.max(FeedPosition::after(told));
            }
        }
        match self.position.is_whole() {
            true => self.position.revision,
            false => self.position.revision.saturating_sub(1),
        }
    }

    /// Whose keys it follows.
    pub fn range(&self) -> &WatchRange {
        &self.range
    }

    /// The feed that it follows.
    pub fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.feed.watches.fetch_sub(1, Ordering::SeqCst);
    }
}
