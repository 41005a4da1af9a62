//! Waiting for the state to reach an index or a revision.
//!
//! Owns who waits for what. Never reads the state. No waiter is woken for what it does not wait for, and none misses
//! what it waits for: each registers first, then looks, then waits; the writer writes first, then looks who is there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

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
