//! Reads of sessions, locks, elections, barriers and latches.
//!
//! Owns what is told of them: each answer is of one moment. Never decides who holds what; that is the machine's.

mod locks;
mod sessions;

use super::{Moment, Observed, Page, Snapshot};
use crate::keyspace::gates;
use crate::keyspace::lock_queue::{HolderRow, LockHead, WaiterRow};
use crate::keyspace::session::{PartyAt, SessionRow};
use crate::machine::Fault;
use crate::types::{
    BarrierRow, Elected, Key, LatchRow, LockName, LockSpace, Name, QueueName, Revision, SessionId, TaskId,
};

/// A session, and what hangs on it: of each kind so many as were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHeld {
    /// The session.
    pub row: SessionRow,
    /// Locks and elections that it holds or waits for.
    pub locks: Vec<(LockName, PartyAt)>,
    /// Barriers that it is in.
    pub barriers: Vec<Name>,
    /// Entries that go with it.
    pub keys: Vec<Key>,
    /// Tasks that are claimed with it.
    pub tasks: Vec<(QueueName, TaskId)>,
}

/// What a session is to a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Party {
    /// It holds it.
    Holding {
        /// The fencing token.
        token: Revision,
        /// What is known of it.
        row: HolderRow,
    },
    /// It has a place in the queue.
    Waiting {
        /// The place.
        place: Revision,
        /// What is known of it.
        row: WaiterRow,
    },
    /// Nothing, and the session lives.
    Nothing,
    /// Nothing, since there is no such session, or not any more.
    Expired,
}

/// A party of a lock as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartyShown<R> {
    /// Its token or place.
    pub number: Revision,
    /// What is known of it.
    pub row: R,
    /// The owner of its session.
    pub owner: String,
}

/// A lock with those who hold it and wait for it: so many as were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRead {
    /// The lock; `None` where nobody uses it.
    pub head: Option<LockHead>,
    /// Its holders, by token.
    pub holders: Vec<PartyShown<HolderRow>>,
    /// Its queue.
    pub waiters: Vec<PartyShown<WaiterRow>>,
}

/// A change of who leads: the revision, and who does since then.
pub type LeaderChange = (Revision, Option<Elected>);

/// A barrier, and what a session is to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarrierRead {
    /// The barrier; `None` where nobody is in it.
    pub row: Option<BarrierRow>,
    /// Whether the session is in it.
    pub is_in: bool,
    /// Whether the session lives.
    pub lives: bool,
}

/// How much of it there is, for the metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoordinationCounts {
    /// Sessions.
    pub sessions: u64,
    /// Holders of locks and elections.
    pub holders: u64,
    /// Places in their queues.
    pub waiters: u64,
}

impl<S: Snapshot> Moment<S> {
    /// A session that lives, with at most `shown_max` things of each kind that hang on it.
    pub fn session(&self, id: SessionId, shown_max: usize) -> Result<Observed<Option<SessionHeld>>, Fault> {
        self.observe(|moment| sessions::held(moment, id, shown_max))
    }

    /// Whose each of these sessions is, in their order; nothing where there is none. Looks at nothing that hangs on them.
    pub fn session_owners(&self, ids: &[SessionId]) -> Result<Observed<Vec<Option<String>>>, Fault> {
        let owner = |moment: &Self, id| Ok(sessions::row(moment, id)?.map(|row| row.principal));
        self.observe(|moment| ids.iter().map(|id| owner(moment, *id)).collect())
    }

    /// Sessions after this one, in order of their creation: at most `limit`.
    pub fn sessions(
        &self,
        after: Option<SessionId>,
        limit: usize,
    ) -> Result<Observed<Page<(SessionId, SessionRow)>>, Fault> {
        self.observe(|moment| sessions::page(moment, after, limit))
    }

    /// What a session is to a lock.
    pub fn party(&self, lock: &LockName, session: SessionId) -> Result<Observed<Party>, Fault> {
        self.observe(|moment| locks::party(moment, lock, session))
    }

    /// How many places of a lock are before this one: at most `max` are counted.
    pub fn places_before(&self, lock: &LockName, place: Revision, max: usize) -> Result<usize, Fault> {
        locks::places_before(self, lock, place, max)
    }

    /// A lock, with at most `shown_max` of its holders and of its queue.
    pub fn lock(&self, lock: &LockName, shown_max: usize) -> Result<Observed<LockRead>, Fault> {
        self.observe(|moment| locks::lock(moment, lock, shown_max))
    }

    /// Locks of a space that are in use, after this name, in order of names: at most `limit`.
    pub fn locks(
        &self,
        space: LockSpace,
        after: Option<&Name>,
        limit: usize,
    ) -> Result<Observed<Page<(Name, LockHead)>>, Fault> {
        self.observe(|moment| locks::page(moment, space, after, limit))
    }

    /// Who holds a lock by this token.
    pub fn holder(&self, lock: &LockName, token: Revision) -> Result<Observed<Option<HolderRow>>, Fault> {
        self.observe(|moment| locks::holder(moment, lock, token))
    }

    /// The last change of who leads an election; `None` where none is known and nobody leads.
    pub fn elected(&self, election: &Name) -> Result<Observed<Option<LeaderChange>>, Fault> {
        self.observe(|moment| locks::elected(moment, election))
    }

    /// Changes of who leads an election after a revision, in order: at most `limit`. Those before the oldest revision are
    /// not known any more.
    pub fn elected_after(
        &self,
        election: &Name,
        after: Revision,
        limit: usize,
    ) -> Result<Observed<Page<LeaderChange>>, Fault> {
        self.observe(|moment| locks::elected_after(moment, election, after, limit))
    }

    /// A barrier, and what a session is to it.
    pub fn barrier(&self, name: &Name, session: Option<SessionId>) -> Result<Observed<BarrierRead>, Fault> {
        self.observe(|moment| {
            let row = moment.decoded(gates::barrier_key(name))?;
            let is_in = session.map(|id| sessions::is_in(moment, id, name)).transpose()?.unwrap_or(false);
            let lives = session.map(|id| sessions::lives(moment, id)).transpose()?.unwrap_or(false);
            Ok(BarrierRead { row, is_in, lives })
        })
    }

    /// A latch.
    pub fn latch(&self, name: &Name) -> Result<Observed<Option<LatchRow>>, Fault> {
        self.observe(|moment| moment.decoded(gates::latch_key(name)))
    }

    /// How much of it there is; looks at every lock in use, `locks_max` at most.
    pub fn coordination_counts(&self, locks_max: usize) -> Result<CoordinationCounts, Fault> {
        locks::counts(self, locks_max)
    }
}
