//! Waiting for the state to move: to an index, to a revision, or for one key to change.
//!
//! Owns who waits for what. Never reads the state. No waiter is woken for what it does not wait for, and none misses
//! what it waits for: each registers first, then looks, then waits; the writer writes first, then looks who is there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;
use tokio::sync::Notify;
use xxhash_rust::xxh3::xxh3_64;

use crate::types::Key;

/// Waiters for one thing.
#[derive(Default)]
struct Waiters {
    notify: Arc<Notify>,
    count: usize,
}

impl Waiters {
    fn join(&mut self) -> Arc<Notify> {
        self.count += 1;
        Arc::clone(&self.notify)
    }
}

/// A number that only grows, and those who wait for it to reach theirs.
pub(crate) struct Watermark {
    reached: AtomicU64,
    /// The lowest number waited for, so that a move that concerns nobody takes no lock.
    lowest: AtomicU64,
    waiters: Mutex<BTreeMap<u64, Waiters>>,
}

impl Watermark {
    pub(crate) fn new(reached: u64) -> Self {
        Self { reached: AtomicU64::new(reached), lowest: AtomicU64::new(u64::MAX), waiters: Mutex::default() }
    }

    /// Moves the mark and wakes those it has reached.
    pub(crate) fn reach(&self, number: u64) {
        self.reached.store(number, Ordering::SeqCst);
        if self.lowest.load(Ordering::SeqCst) > number {
            return;
        }
        let due = {
            let mut waiters = self.waiters.lock();
            let later = number.checked_add(1).map(|after| waiters.split_off(&after)).unwrap_or_default();
            let due = std::mem::replace(&mut *waiters, later);
            self.note_lowest(&waiters);
            due
        };
        for waiters in due.values() {
            waiters.notify.notify_waiters();
        }
    }

    /// Returns once the mark is at `number` or beyond. May be dropped at any time.
    pub(crate) async fn wait(&self, number: u64) {
        if self.reached.load(Ordering::SeqCst) >= number {
            return;
        }
        let ticket = self.register(number);
        let notified = ticket.notify.notified();
        if self.reached.load(Ordering::SeqCst) < number {
            notified.await;
        }
    }

    fn register(&self, number: u64) -> MarkTicket<'_> {
        let mut waiters = self.waiters.lock();
        let notify = waiters.entry(number).or_default().join();
        self.note_lowest(&waiters);
        MarkTicket { mark: self, number, notify }
    }

    fn note_lowest(&self, waiters: &BTreeMap<u64, Waiters>) {
        let lowest = waiters.keys().next().copied().unwrap_or(u64::MAX);
        self.lowest.store(lowest, Ordering::SeqCst);
    }
}

/// Leaves the register when dropped, so that a wait that was given up costs nothing.
struct MarkTicket<'m> {
    mark: &'m Watermark,
    number: u64,
    notify: Arc<Notify>,
}

impl Drop for MarkTicket<'_> {
    fn drop(&mut self) {
        let mut waiters = self.mark.waiters.lock();
        let Some(mine) = waiters.get_mut(&self.number).filter(|mine| Arc::ptr_eq(&mine.notify, &self.notify)) else {
            return;
        };
        mine.count -= 1;
        if mine.count == 0 {
            waiters.remove(&self.number);
            self.mark.note_lowest(&waiters);
        }
    }
}

/// Parts of the key register, so that waits on different keys rarely meet.
const SHARDS: usize = 16;

/// Most keys in the register: with the longest keys, 64 MiB. Whoever comes later is woken by every change.
const WATCHED_KEYS_MAX: usize = 16_384;

/// Keys somebody waits on.
pub(crate) struct KeyWatch {
    shards: [Mutex<BTreeMap<Key, Waiters>>; SHARDS],
    /// Tickets out, also those for every change.
    tickets: AtomicUsize,
    every_change: Notify,
    every_change_tickets: AtomicUsize,
}

/// A place in the register of one key. Left when dropped.
pub(crate) struct KeyTicket<'w> {
    watch: &'w KeyWatch,
    /// `None` where the register was full.
    place: Option<(&'w Key, Arc<Notify>)>,
}

impl KeyWatch {
    pub(crate) fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            tickets: AtomicUsize::new(0),
            every_change: Notify::new(),
            every_change_tickets: AtomicUsize::new(0),
        }
    }

    /// Enters the register. Call [`KeyTicket::notified`], then read the state, then await.
    pub(crate) fn register<'w>(&'w self, key: &'w Key) -> KeyTicket<'w> {
        let before = self.tickets.fetch_add(1, Ordering::SeqCst);
        if before >= WATCHED_KEYS_MAX {
            self.every_change_tickets.fetch_add(1, Ordering::SeqCst);
            return KeyTicket { watch: self, place: None };
        }
        let notify = self.shard(key).lock().entry(key.clone()).or_default().join();
        KeyTicket { watch: self, place: Some((key, notify)) }
    }

    /// Wakes those who wait on one of the keys. The changes must be visible to reads already.
    pub(crate) fn wake<'k>(&self, changed: impl Iterator<Item = &'k Key>) {
        fence(Ordering::SeqCst);
        if self.tickets.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut changed = changed.peekable();
        if changed.peek().is_none() {
            return;
        }
        for key in changed {
            if let Some(waiters) = self.shard(key).lock().get(key) {
                waiters.notify.notify_waiters();
            }
        }
        if self.every_change_tickets.load(Ordering::SeqCst) > 0 {
            self.every_change.notify_waiters();
        }
    }

    /// Wakes everybody: the whole state was replaced.
    pub(crate) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        for shard in &self.shards {
            for waiters in shard.lock().values() {
                waiters.notify.notify_waiters();
            }
        }
        self.every_change.notify_waiters();
    }

    /// Tickets out.
    pub(crate) fn len(&self) -> usize {
        self.tickets.load(Ordering::Relaxed)
    }

    fn shard(&self, key: &Key) -> &Mutex<BTreeMap<Key, Waiters>> {
        &self.shards[xxh3_64(key.as_bytes()) as usize % SHARDS]
    }
}

impl KeyTicket<'_> {
    /// Completes at the first change after this call.
    pub(crate) fn notified(&self) -> tokio::sync::futures::Notified<'_> {
        let notified = match &self.place {
            Some((_, notify)) => notify.notified(),
            None => self.watch.every_change.notified(),
        };
        // Pairs with the fence in `wake`: either the writer sees this ticket or the reads that follow see its write.
        fence(Ordering::SeqCst);
        notified
    }
}

impl Drop for KeyTicket<'_> {
    fn drop(&mut self) {
        match &self.place {
            Some((key, _)) => {
                let mut waiting = self.watch.shard(key).lock();
                let mine = waiting.get_mut(*key).expect("a ticket keeps its key in the register");
                mine.count -= 1;
                if mine.count == 0 {
                    waiting.remove(*key);
                }
            }
            None => {
                self.watch.every_change_tickets.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.watch.tickets.fetch_sub(1, Ordering::SeqCst);
    }
}
