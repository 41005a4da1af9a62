//! The calls of protocols about sessions, locks, elections, barriers and latches.
//!
//! Owns the trait and its words. Never waits for anything but what it says.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_machine::query::{Observed, StateFault};
use quorate_machine::types::{ClusterMillis, Key, Revision, SessionId};

use super::error::AppError;

/// What was observed, or a fault of the node.
pub type Seen<T> = Result<Observed<T>, StateFault>;

/// Says whether what is waited for has come.
pub type IsDone<'a> = Box<dyn FnOnce() -> Result<bool, StateFault> + Send + 'a>;

/// The outcome of a renewal of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed {
    /// Log index of the command; of the last one, where it took several.
    pub index: u64,
    /// Revision at which it was evaluated.
    pub revision: Revision,
    /// Cluster clock at which it was evaluated.
    pub clock: ClusterMillis,
    /// For each session, in order: its time to live and its end; `None` without such a session.
    pub each: Vec<Option<(u64, ClusterMillis)>>,
}

/// The account whose renewals take turns: a user, or an address without authentication.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Renewer(String);

impl Renewer {
    /// A user, wherever it asks from.
    pub fn user(name: &str) -> Self {
        Self(format!("user {name}"))
    }

    /// The callers at an address.
    pub fn from(place: &str) -> Self {
        Self(format!("from {place}"))
    }
}

/// A place in the queue of those who wait to lock an entry. Given up when dropped.
pub trait LockPlace: Send {
    /// Waits until it is its turn: nobody waits before it, and nobody holds the lock as far as the leader knows. The turn lasts until
    /// this is asked again. False: it is `until`, or there is no room for more who wait.
    fn turn(&mut self, until: Instant) -> BoxFuture<'_, Result<bool, StateFault>>;
}

/// Coordination as protocols see it. See `App` and `StateReader` for what each method promises.
pub trait Coordination {
    /// Renews sessions, together with those that others renew at the same time.
    fn renew(
        &self,
        renewer: Renewer,
        sessions: Vec<SessionId>,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Renewed, AppError>>;
    /// Whose each session is; nothing where there is certainly none any more.
    fn owners_of<'a>(
        &'a self,
        sessions: &'a [SessionId],
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Observed<Vec<Option<String>>>, AppError>>;
    /// Waits until a log index is applied here.
    fn wait_applied(&self, index: u64) -> BoxFuture<'_, ()>;
    /// Waits until what has this name changes, at most `wait`, unless `is_done` says so once a change would be noticed; may
    /// return early.
    fn wait_woken<'a>(
        &'a self,
        waker: &'a Key,
        wait: Duration,
        is_done: IsDone<'a>,
    ) -> BoxFuture<'a, Result<(), StateFault>>;
    /// A place to be taken in the queue of those who wait to lock an entry.
    fn lock_place(&self, key: Key) -> Box<dyn LockPlace>;
}
