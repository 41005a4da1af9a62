//! Everything that a request waits for at a node.
//!
//! Owns the trait and its words. Never waits for anything but what it says.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_machine::query::{Observed, StateFault};
use quorate_machine::types::{Key, QueueName, Revision, WallMillis};

/// An observation, or a fault of the node.
pub type Seen<T> = Result<Observed<T>, StateFault>;

/// Says whether what is waited for has come.
pub type IsDone<'a> = Box<dyn FnOnce() -> Result<bool, StateFault> + Send + 'a>;

/// A place in the queue of those who wait to lock an entry. Given up when dropped.
pub trait LockPlace: Send {
    /// Waits until it is its turn: nobody waits before it, and nobody holds the lock as far as the leader knows. The turn lasts until
    /// this is asked again. False: it is `until`, or there is no room for more who wait.
    fn turn(&mut self, until: Instant) -> BoxFuture<'_, Result<bool, StateFault>>;
}

/// Waits of requests. See `StateReader` for what each method promises.
pub trait Waits {
    /// Waits until a log index is applied here.
    fn wait_applied(&self, index: u64) -> BoxFuture<'_, ()>;
    /// Waits for a change of a key after `seen`, at most `wait`; may return early.
    fn wait_key_change<'a>(&'a self, key: &'a Key, seen: Revision, wait: Duration) -> BoxFuture<'a, ()>;
    /// Waits until what has this name changes, at most `wait`, unless `is_done` says so once a change would be noticed; may
    /// return early.
    fn wait_woken<'a>(
        &'a self,
        waker: &'a Key,
        wait: Duration,
        is_done: IsDone<'a>,
    ) -> BoxFuture<'a, Result<(), StateFault>>;
    /// Waits until a task looks due here at or after `revision`, by a wall clock that stood at a time at an instant. False: it is
    /// `until`.
    fn wait_tasks<'a>(
        &'a self,
        queue: &'a QueueName,
        revision: Revision,
        wall: (WallMillis, Instant),
        until: Instant,
    ) -> BoxFuture<'a, Result<bool, StateFault>>;
    /// A place to be taken in the queue of those who wait to lock an entry.
    fn lock_place(&self, key: Key) -> Box<dyn LockPlace>;
}
