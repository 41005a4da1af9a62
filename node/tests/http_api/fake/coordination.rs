//! What the fake node says of sessions, locks, elections, barriers and latches: what it was told to.

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
    /// What each session is to each lock.
    pub parties: Vec<(LockName, SessionId, Party)>,
    pub locks: Vec<(LockName, LockRead)>,
    /// Of every election.
    pub elected: Vec<LeaderChange>,
    pub barrier: Option<BarrierRead>,
    pub latch: Option<LatchRow>,
    /// The log index that is not applied yet.
    pub not_applied: Option<u64>,
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

    pub fn party(&self, lock: &LockName, session: SessionId) -> Seen<Party> {
        self.seen(|told| {
            let known = told.parties.iter().find(|(known, id, _)| known == lock && *id == session);
            known.map_or(Party::Nothing, |(.., party)| party.clone())
        })
    }

    pub fn places_before(&self, _: &LockName, place: Revision, max: usize) -> Result<usize, StateFault> {
        Ok(self.with(|state| {
            let waits = |party: &Party| matches!(party, Party::Waiting { place: other, .. } if *other < place);
            state.coordinated.parties.iter().filter(|(.., party)| waits(party)).count().min(max)
        }))
    }

    pub fn lock(&self, lock: &LockName, _: usize) -> Seen<LockRead> {
        self.seen(|told| {
            let known = told.locks.iter().find(|(known, _)| known == lock);
            let none = LockRead { head: None, holders: Vec::new(), waiters: Vec::new() };
            known.map_or(none, |(_, read)| read.clone())
        })
    }

    pub fn locks(&self, space: LockSpace, after: Option<&Name>, limit: usize) -> Seen<Page<(Name, LockHead)>> {
        self.seen(|told| {
            let of_space = told.locks.iter().filter(|(lock, _)| lock.space == space);
            let behind = of_space.filter(|(lock, _)| after.is_none_or(|after| lock.name > *after));
            let mut items: Vec<_> =
                behind.filter_map(|(lock, read)| Some((lock.name.clone(), read.head.clone()?))).collect();
            let more = items.len() > limit;
            items.truncate(limit);
            Page { items, more }
        })
    }

    pub fn holder(&self, lock: &LockName, token: Revision) -> Seen<Option<HolderRow>> {
        self.seen(|told| {
            let (_, read) = told.locks.iter().find(|(known, _)| known == lock)?;
            read.holders.iter().find(|holder| holder.number == token).map(|holder| holder.row.clone())
        })
    }

    pub fn elected(&self, _: &Name) -> Seen<Option<LeaderChange>> {
        self.seen(|told| told.elected.last().cloned())
    }

    pub fn elected_after(&self, _: &Name, after: Revision, limit: usize) -> Seen<Page<LeaderChange>> {
        self.seen(|told| {
            let mut items: Vec<_> = told.elected.iter().filter(|(revision, _)| *revision > after).cloned().collect();
            let more = items.len() > limit;
            items.truncate(limit);
            Page { items, more }
        })
    }

    pub fn barrier(&self, _: &Name, _: Option<SessionId>) -> Seen<BarrierRead> {
        let nobody = BarrierRead { row: None, is_in: false, lives: true };
        self.seen(|told| told.barrier.clone().unwrap_or(nobody))
    }

    pub fn latch(&self, _: &Name) -> Seen<Option<LatchRow>> {
        self.seen(|told| told.latch)
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

    fn wait_applied(&self, index: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let changed = self.changed.notified();
                if self.with(|state| state.coordinated.not_applied.is_none_or(|from| index < from)) {
                    return;
                }
                changed.await;
            }
        })
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
