//! What the HTTP layer asks of the node about sessions, locks, elections, barriers and latches.
//!
//! Owns the trait and its implementation by the real [`App`]. Never waits for anything but what it says.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_machine::query::{BarrierRead, LeaderChange, LockRead, Observed, Page, Party, SessionHeld, StateFault};
use quorate_store::keyspace::lock_queue::{HolderRow, LockHead};
use quorate_store::keyspace::session::SessionRow;
use quorate_store::types::{Key, LatchRow, LockName, LockSpace, Name, Revision, SessionId};

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
    fn session_owners<'a>(
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
    /// Reads a session, with so many things of each kind that hang on it.
    fn session(&self, id: SessionId, shown_max: usize) -> Seen<Option<SessionHeld>>;
    /// Lists sessions. May take long: runs on a blocking thread.
    fn sessions(&self, after: Option<SessionId>, limit: usize) -> Seen<Page<(SessionId, SessionRow)>>;
    /// What a session is to a lock.
    fn party(&self, lock: &LockName, session: SessionId) -> Seen<Party>;
    /// How many places are before this one, counted up to `max`.
    fn places_before(&self, lock: &LockName, place: Revision, max: usize) -> Result<usize, StateFault>;
    /// Reads a lock, with so many of its holders and of its queue.
    fn lock(&self, lock: &LockName, shown_max: usize) -> Seen<LockRead>;
    /// Lists locks in use. May take long: runs on a blocking thread.
    fn locks(&self, space: LockSpace, after: Option<&Name>, limit: usize) -> Seen<Page<(Name, LockHead)>>;
    /// Who holds a lock by this token.
    fn holder(&self, lock: &LockName, token: Revision) -> Seen<Option<HolderRow>>;
    /// The last change of who leads an election.
    fn elected(&self, election: &Name) -> Seen<Option<LeaderChange>>;
    /// Changes of who leads an election after a revision.
    fn elected_after(&self, election: &Name, after: Revision, limit: usize) -> Seen<Page<LeaderChange>>;
    /// Reads a barrier, and what a session is to it.
    fn barrier(&self, name: &Name, session: Option<SessionId>) -> Seen<BarrierRead>;
    /// Reads a latch.
    fn latch(&self, name: &Name) -> Seen<Option<LatchRow>>;
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

    fn session_owners<'a>(
        &'a self,
        sessions: &'a [SessionId],
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Observed<Vec<Option<String>>>, AppError>> {
        Box::pin(App::session_owners(self, sessions, deadline))
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
        Box::new(App::lock_place(self, key))
    }

    fn session(&self, id: SessionId, shown_max: usize) -> Seen<Option<SessionHeld>> {
        self.state().session(id, shown_max)
    }

    fn sessions(&self, after: Option<SessionId>, limit: usize) -> Seen<Page<(SessionId, SessionRow)>> {
        self.state().sessions(after, limit)
    }

    fn party(&self, lock: &LockName, session: SessionId) -> Seen<Party> {
        self.state().party(lock, session)
    }

    fn places_before(&self, lock: &LockName, place: Revision, max: usize) -> Result<usize, StateFault> {
        self.state().places_before(lock, place, max)
    }

    fn lock(&self, lock: &LockName, shown_max: usize) -> Seen<LockRead> {
        self.state().lock(lock, shown_max)
    }

    fn locks(&self, space: LockSpace, after: Option<&Name>, limit: usize) -> Seen<Page<(Name, LockHead)>> {
        self.state().locks(space, after, limit)
    }

    fn holder(&self, lock: &LockName, token: Revision) -> Seen<Option<HolderRow>> {
        self.state().holder(lock, token)
    }

    fn elected(&self, election: &Name) -> Seen<Option<LeaderChange>> {
        self.state().elected(election)
    }

    fn elected_after(&self, election: &Name, after: Revision, limit: usize) -> Seen<Page<LeaderChange>> {
        self.state().elected_after(election, after, limit)
    }

    fn barrier(&self, name: &Name, session: Option<SessionId>) -> Seen<BarrierRead> {
        self.state().barrier(name, session)
    }

    fn latch(&self, name: &Name) -> Seen<Option<LatchRow>> {
        self.state().latch(name)
    }
}
