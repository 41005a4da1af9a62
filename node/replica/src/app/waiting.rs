//! How many requests wait on this node for something to change: a lock, an election, a barrier, a latch.
//!
//! Owns the count, for the metrics. Never bounds anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The count. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct WaitingCount(Arc<AtomicUsize>);

impl WaitingCount {
    /// One more, until what is returned is dropped.
    pub fn enter(&self) -> Waiting<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

    /// How many wait at the moment.
    pub fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Somebody who waits.
pub struct Waiting<'c>(&'c WaitingCount);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
