//! What the HTTP layer asks of the node about sessions, locks, elections, barriers and latches.
//!
//! Owns the trait and its implementation by the real [`App`]. Never waits for anything but what it says.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_machine::query::{Observed, StateFault};
use quorate_machine::types::{Key, SessionId};

use crate::app::renewals::{Renewed, Renewer};
use crate::app::{App, AppError, LockPlace};

/// What was observed, or a fault of the node.
pub type Seen<T> = Result<Observed<T>, StateFault>;

/// Says whether what is waited for has come.
pub type IsDone<'a> = Box<dyn FnOnce() -> Result<bool, StateFault> + Send + 'a>;

/// Coordination as the HTTP API sees it. See [`App`] and `StateReader` for what each method promises.
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

impl Coordination for App {
    fn renew(
        &self,
        renewer: Renewer,
        sessions: Vec<SessionId>,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Renewed, AppError>> {
        Box::pin(App::renew(self, renewer, sessions, deadline))
    }

    fn owners_of<'a>(
        &'a self,
        sessions: &'a [SessionId],
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Observed<Vec<Option<String>>>, AppError>> {
        Box::pin(App::owners_of(self, sessions, deadline))
    }

    fn wait_applied(&self, index: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.state().wait_applied(index))
    }

    fn wait_woken<'a>(
        &'a self,
        waker: &'a Key,
        wait: Duration,
        is_done: IsDone<'a>,
    ) -> BoxFuture<'a, Result<(), StateFault>> {
        Box::pin(async move {
            let _waiting = self.count_waiting();
            self.state().wait_woken(waker, wait, is_done).await
        })
    }

    fn lock_place(&self, key: Key) -> Box<dyn LockPlace> {
        Box::new(self.lock_turns().place(key))
    }
}
