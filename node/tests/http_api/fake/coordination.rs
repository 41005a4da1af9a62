//! What the fake node says of sessions: what it was told to. It knows of no lock, election, barrier and latch.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_machine::keyspace::lock_queue::{HolderRow, LockHead};
use quorate_machine::keyspace::session::SessionRow;
use quorate_machine::query::{BarrierRead, LeaderChange, LockRead, Observed, Page, Party, SessionHeld, StateFault};
use quorate_machine::types::{
    Action, Command, Key, LatchRow, LockName, LockSpace, Name, Outcome, Revision, SessionId, SessionOp, SessionReply,
};
use quorate_node_core::app::renewals::{Renewed, Renewer};
use quorate_node_core::app::{AppError, Consistency, LockPlace};
use quorate_node_core::backend::{Backend, Coordination, IsDone, Seen};

use super::{Fake, WALL};

/// What there is.
#[derive(Default)]
pub struct Coordinated {
    pub sessions: Vec<(SessionId, SessionHeld)>,
}

impl Fake {
    /// Says what there is from now on, and wakes whoever waits.
    pub fn coordinate(&self, tell: impl FnOnce(&mut Coordinated)) {
        self.with(|state| tell(&mut state.coordinated));
        self.changed.notify_waiters();
    }

    fn seen<T>(&self, read: impl FnOnce(&Coordinated) -> T) -> Seen<T> {
        Ok(self.with(|state| Observed { at: state.at(), wall: WALL, found: read(&state.coordinated) }))
    }
}

/// Whoever looks first once there is no lock has the turn.
struct FakePlace {
    fake: Fake,
    key: Key,
}

impl LockPlace for FakePlace {
    fn turn(&mut self, until: Instant) -> BoxFuture<'_, Result<bool, StateFault>> {
        Box::pin(async move {
            loop {
                let changed = self.fake.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let read = self.fake.get(&self.key)?;
                if !read.entry.is_some_and(|entry| entry.meta.is_locked_at(read.at.clock)) {
                    return Ok(true);
                }
                if tokio::time::timeout_at(until.into(), changed).await.is_err() {
                    return Ok(false);
                }
            }
        })
    }
}

/// Queries.
impl Fake {
    pub fn session_owners(&self, ids: &[SessionId]) -> Seen<Vec<Option<String>>> {
        let owner = |told: &Coordinated, id: &SessionId| {
            told.sessions.iter().find(|(known, _)| known == id).map(|(_, held)| held.row.principal.clone())
        };
        self.seen(|told| ids.iter().map(|id| owner(told, id)).collect())
    }

    pub fn session(&self, id: SessionId, _: usize) -> Seen<Option<SessionHeld>> {
        self.seen(|told| told.sessions.iter().find(|(known, _)| *known == id).map(|(_, held)| held.clone()))
    }

    pub fn sessions(&self, after: Option<SessionId>, limit: usize) -> Seen<Page<(SessionId, SessionRow)>> {
        self.seen(|told| {
            let behind = told.sessions.iter().filter(|(id, _)| after.is_none_or(|after| *id > after));
            let mut items: Vec<_> = behind.map(|(id, held)| (*id, held.row.clone())).collect();
            let more = items.len() > limit;
            items.truncate(limit);
            Page { items, more }
        })
    }

    pub fn party(&self, _: &LockName, _: SessionId) -> Seen<Party> {
        self.seen(|_| Party::Nothing)
    }

    pub fn places_before(&self, _: &LockName, _: Revision, _: usize) -> Result<usize, StateFault> {
        Ok(0)
    }

    pub fn lock(&self, _: &LockName, _: usize) -> Seen<LockRead> {
        self.seen(|_| LockRead { head: None, holders: Vec::new(), waiters: Vec::new() })
    }

    pub fn locks(&self, _: LockSpace, _: Option<&Name>, _: usize) -> Seen<Page<(Name, LockHead)>> {
        self.seen(|_| Page { items: Vec::new(), more: false })
    }

    pub fn holder(&self, _: &LockName, _: Revision) -> Seen<Option<HolderRow>> {
        self.seen(|_| None)
    }

    pub fn elected(&self, _: &Name) -> Seen<Option<LeaderChange>> {
        self.seen(|_| None)
    }

    pub fn elected_after(&self, _: &Name, _: Revision, _: usize) -> Seen<Page<LeaderChange>> {
        self.seen(|_| Page { items: Vec::new(), more: false })
    }

    pub fn barrier(&self, _: &Name, _: Option<SessionId>) -> Seen<BarrierRead> {
        self.seen(|_| BarrierRead { row: None, is_in: false, lives: true })
    }

    pub fn latch(&self, _: &Name) -> Seen<Option<LatchRow>> {
        self.seen(|_| None)
    }
}

impl Coordination for Fake {
    fn owners_of<'a>(
        &'a self,
        sessions: &'a [SessionId],
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Observed<Vec<Option<String>>>, AppError>> {
        Box::pin(async move {
            self.read_barrier(Consistency::Linearizable, deadline).await?;
            let owners = |told: &Coordinated| {
                let owner =
                    |id| told.sessions.iter().find(|(known, _)| known == id).map(|(_, held)| &held.row.principal);
                // Where nobody told of any, what is answered by the log says which live.
                let usual = told.sessions.is_empty().then(String::new);
                sessions.iter().map(|id| owner(id).cloned().or_else(|| usual.clone())).collect()
            };
            Ok(self.seen(owners)?)
        })
    }

    fn renew(
        &self,
        _: Renewer,
        sessions: Vec<SessionId>,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Renewed, AppError>> {
        Box::pin(async move {
            let action = Action::Session(SessionOp::Renew(sessions));
            let command = Command { request_id: None, principal: String::new(), action, access_revision: None };
            let reply = self.write(command, deadline).await?;
            match reply.outcome {
                Outcome::Session(SessionReply::Renewed(each)) => {
                    Ok(Renewed { index: reply.index, revision: reply.revision, clock: reply.clock, each })
                }
                other => panic!("not of a renewal: {other:?}"),
            }
        })
    }

    fn wait_applied(&self, _: u64) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn wait_woken<'a>(
        &'a self,
        _: &'a Key,
        wait: Duration,
        is_done: IsDone<'a>,
    ) -> BoxFuture<'a, Result<(), StateFault>> {
        Box::pin(async move {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !is_done()? {
                let _either = tokio::time::timeout(wait, changed).await;
            }
            Ok(())
        })
    }

    fn lock_place(&self, key: Key) -> Box<dyn LockPlace> {
        Box::new(FakePlace { fake: self.clone(), key })
    }
}
